//! The events of frontends as types, from which the OpenAPI document and the schema of the bridge's frames are generated.
//! [`super::events`] reads the events, and accepts more shapes of them than clients need to know. Tests compare sent events with
//! the document.
//!
//! To add an event, add a variant here.
#![expect(dead_code, reason = "they describe events that are read elsewhere")]

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

use super::{
    combat::CombatState,
    delta::{CombatantChange, DoorChange, ItemGain, LightChange, NewToken, NoteChange, SceneChange, TokenMove},
    events::ReportedMessage,
    world_state::WorldState,
};

/// An event at a frontend's table. Unknown members of `data` are ignored, because frontends send members of their own.
#[derive(ToSchema)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[schema(as = EventInput)]
pub enum SessionEvent {
    /// Somebody said something. `content` has the text.
    ChatMessage(ReportedMessage),
    /// Somebody rolled dice. `formula` and `total` have the roll, or `rolls` if there were several.
    DiceRoll(ReportedMessage),
    /// A message was deleted.
    MessageDeleted(DeletedMessage),
    /// The state of the fights.
    CombatState(FightsReported),
    /// The world as the frontend has it.
    WorldState(WorldState),
    /// Changes that the frontend computed itself. The members have the names of those of `Delta`, in snake_case or PascalCase.
    GameDelta(BTreeMap<String, Value>),
    /// A fight began.
    EncounterStarted(FightBegun),
    /// A fight ended.
    EncounterEnded,
    /// The next turn of a fight began.
    TurnAdvanced,
    /// Somebody was hurt, healed or got a condition.
    CombatantChanged(CombatantChange),
    /// Another scene is shown now.
    SceneChanged(SceneChange),
    /// A token moved.
    TokenMoved(TokenMove),
    /// A token was added to the scene.
    TokenCreated(NewToken),
    /// A note was added, moved or renamed.
    SceneNoteUpdated(NoteChange),
    /// A light changed.
    SceneLightingChanged(LightChange),
    /// A door was opened, closed or locked.
    DoorStateChanged(DoorChange),
    /// Somebody received an item.
    ItemAcquired(ItemGain),
}

/// A deleted message.
#[derive(ToSchema)]
pub struct DeletedMessage {
    /// The frontend's own id of the message, or the server's.
    #[schema(min_length = 1, max_length = 200)]
    id: String,
}

/// One fight, or all fights in progress. The members of `combat_state` may also stand directly in `data`.
#[derive(ToSchema)]
pub struct FightsReported {
    /// The fight.
    combat_state: Option<CombatState>,
    /// All fights in progress. A fight that is missing has ended.
    #[schema(max_items = 20)]
    encounters: Option<Vec<CombatState>>,
}

/// A fight that began.
#[derive(ToSchema)]
pub struct FightBegun {
    /// The frontend's own id of the fight.
    id: String,
    /// The fight's name.
    name: Option<String>,
}
