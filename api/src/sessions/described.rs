//! The events of frontends as types: the OpenAPI document and the schema of the bridge's frames describe them by these. They are read by
//! [`super::events`], which knows more shapes of them than clients need be told; tests hold what is sent to the document.
//!
//! To add an event: a variant here.
#![expect(dead_code, reason = "they describe events that are read elsewhere")]

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

use super::{
    combat::CombatState,
    delta::{CombatantChange, DoorChange, ItemGain, LightChange, NewToken, NoteChange, SceneChange, TokenMove},
    events::Said,
    world_state::WorldState,
};

/// Something that happened at a frontend's table. Members of `data` that nobody knows are ignored: frontends send their own.
#[derive(ToSchema)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[schema(as = EventInput)]
pub(crate) enum SessionEvent {
    /// Somebody said something: `content` says what.
    ChatMessage(Said),
    /// Somebody rolled dice: `formula` and `total` say what, or `rolls` if they were several.
    DiceRoll(Said),
    /// A message was taken back.
    MessageDeleted(DeletedMessage),
    /// How the fights stand.
    CombatState(FightsReported),
    /// The world as the frontend has it.
    WorldState(WorldState),
    /// What changed, as the frontend counted it itself: members named as those of `Delta`, in snake_case or in PascalCase.
    GameDelta(BTreeMap<String, Value>),
    /// A fight began.
    EncounterStarted(FightBegun),
    /// A fight ended.
    EncounterEnded,
    /// The next turn of a fight began.
    TurnAdvanced,
    /// Somebody was hurt, healed or afflicted.
    CombatantChanged(CombatantChange),
    /// Another scene is shown.
    SceneChanged(SceneChange),
    /// A token moved.
    TokenMoved(TokenMove),
    /// A token was put on the scene.
    TokenCreated(NewToken),
    /// A note was put, moved or renamed.
    SceneNoteUpdated(NoteChange),
    /// A light changed.
    SceneLightingChanged(LightChange),
    /// A door was opened, closed or locked.
    DoorStateChanged(DoorChange),
    /// Somebody got something.
    ItemAcquired(ItemGain),
}

/// A message that is gone.
#[derive(ToSchema)]
pub(crate) struct DeletedMessage {
    /// The frontend's own id of the message, or the server's.
    #[schema(min_length = 1, max_length = 200)]
    id: String,
}

/// One fight, or all that go on. What `combat_state` has may stand beside it as well, without it.
#[derive(ToSchema)]
pub(crate) struct FightsReported {
    /// The fight.
    combat_state: Option<CombatState>,
    /// Every fight that goes on; one that is left out has ended.
    #[schema(max_items = 20)]
    encounters: Option<Vec<CombatState>>,
}

/// A fight that began.
#[derive(ToSchema)]
pub(crate) struct FightBegun {
    /// The frontend's own id of the fight.
    id: String,
    /// What it is called.
    name: Option<String>,
}
