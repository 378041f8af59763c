//! What tools find and do, as types: the OpenAPI document describes results by these. The results themselves are put together where
//! something happens; tests hold every one of them to the document.
//!
//! To add a tool: what it answers here, named by its `ToolSpec::Answer`. What others answer too, such as a roll, has its type there.
#![expect(dead_code, reason = "they describe results that are put together elsewhere")]

use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    encounters::answers::{CommitTold, EncounterView, EndTold},
    sessions::{
        combat::Combatant,
        world_state::{Dimensions, Light, Note, Token},
    },
};

/// A memory that was made.
#[derive(ToSchema)]
pub struct MemoryMade {
    /// The memory.
    memory_id: Uuid,
}

/// What was told to everybody who depends on an owner.
#[derive(ToSchema)]
pub struct BroadcastMade {
    /// The broadcast.
    broadcast_id: Uuid,
    /// How many remember it.
    count: u64,
    /// The NPCs that remember it.
    npc_ids: Vec<Uuid>,
}

/// A sheet: all of it, or what a phrase finds in it.
#[derive(ToSchema)]
pub struct ActorDetails {
    /// Whose sheet it is.
    name: String,
    /// The sheet as it is kept; without a phrase.
    #[schema(value_type = Option<Object>)]
    data: Option<Value>,
    /// What the phrase finds, at most 100.
    matches: Option<Vec<ActorMatch>>,
    /// How many it finds.
    total_matches: Option<u64>,
}

/// A member of a sheet.
#[derive(ToSchema)]
pub struct ActorMatch {
    /// Where it stands: `weapons.0.name`.
    path: String,
    /// What stands there.
    value: Value,
}

/// The scene that is played, or that there is none.
#[derive(ToSchema)]
pub struct CurrentScene {
    /// Its id; null if none is played.
    #[schema(required = true)]
    id: Option<String>,
    /// That no scene is played.
    message: Option<String>,
    /// Its name.
    name: Option<String>,
    /// The place it plays in.
    location: Option<String>,
    /// Its size.
    dimensions: Option<Dimensions>,
    /// Who stands there.
    tokens: Option<Vec<Token>>,
    /// Notes on it; not for players.
    notes: Option<Vec<Note>>,
    /// Lights on it.
    light_sources: Option<Vec<Light>>,
}

/// The fight that goes on, several, or that there is none.
#[derive(ToSchema)]
pub struct FightsTold {
    /// Whether anybody fights.
    in_combat: bool,
    /// That nobody does.
    message: Option<String>,
    /// How many fights go on, if several do.
    active_count: Option<u64>,
    /// Those fights.
    encounters: Option<Vec<FightTold>>,
    /// The fight's id.
    combat_id: Option<String>,
    /// What it is called.
    name: Option<String>,
    /// The round, from 1.
    round: Option<i64>,
    /// The place in the order of whose turn it is.
    turn: Option<i64>,
    /// Who fights, in the order of their turns.
    combatants: Option<Vec<Combatant>>,
    /// When it was last heard of.
    last_updated: Option<String>,
    /// It may have gone on unseen: its frontend did not answer.
    stale: Option<bool>,
}

/// A fight of several that go on.
#[derive(ToSchema)]
pub struct FightTold {
    /// Always true.
    in_combat: bool,
    /// The fight's id.
    combat_id: String,
    /// What it is called.
    name: Option<String>,
    /// The round, from 1.
    round: i64,
    /// The place in the order of whose turn it is.
    turn: i64,
    /// Who fights, in the order of their turns.
    combatants: Vec<Combatant>,
    /// When it was last heard of.
    last_updated: String,
    /// It may have gone on unseen: its frontend did not answer.
    stale: Option<bool>,
}

/// What was said and rolled last, the oldest first.
#[derive(ToSchema)]
pub struct MessageHistory {
    /// How many there are.
    count: u64,
    /// The messages; a message of several rolls is several.
    messages: Vec<HistoryMessage>,
    /// How many older ones have no room.
    shortened: Option<String>,
}

/// A message or a roll. With `compact` its members are `t`, `s`, `a`, `c`, `f`, `tt`, `r` and `ft`.
#[derive(ToSchema)]
pub struct HistoryMessage {
    /// When it was said, in milliseconds since 1970.
    ts: i64,
    /// `chat`, `roll`, `card`, `system` or `whisper`.
    r#type: Option<String>,
    /// Who said it.
    speaker: Option<String>,
    /// As whom.
    alias: Option<String>,
    /// The text.
    content: Option<String>,
    /// What was rolled.
    formula: Option<String>,
    /// What it came to.
    total: Option<f64>,
    /// The dice.
    dice: Option<Value>,
    /// What it was for.
    flavor: Option<String>,
}

/// The player characters.
#[derive(ToSchema)]
pub struct PartyTold {
    /// How many there are.
    count: u64,
    /// Each of them; of a frontend's own only `id`, `name` and `player`.
    members: Vec<PartyMemberTold>,
}

/// A player character and how it is.
#[derive(ToSchema)]
pub struct PartyMemberTold {
    /// Its id.
    id: String,
    /// Its slug.
    slug: Option<String>,
    /// Its name.
    name: String,
    /// Who plays it.
    player: Option<String>,
    /// Its people.
    race: Option<String>,
    /// Its class.
    profession: Option<String>,
    /// Its level.
    level: Option<i32>,
    /// Its hit points.
    hp: Option<i32>,
    /// Its hit points at most.
    max_hp: Option<i32>,
    /// Its temporary hit points.
    temp_hp: Option<i32>,
    /// What an attack must reach.
    armor_class: Option<i32>,
    /// Conditions in force.
    conditions: Option<Vec<Value>>,
    /// Where it is.
    location: Option<String>,
}

/// How far it is.
#[derive(ToSchema)]
pub struct DistanceTold {
    /// The distance.
    distance: f64,
    /// Its unit: `ft`.
    units: String,
    /// The same in squares.
    squares: f64,
    /// Always null: walls are not known.
    #[schema(required = true)]
    path_blocked: Option<bool>,
    /// Always false.
    walls_known: bool,
    /// The tokens in between.
    intervening_tokens: Vec<TokenBetween>,
}

/// A token that stands in between.
#[derive(ToSchema)]
pub struct TokenBetween {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
}

/// What was posted.
#[derive(ToSchema)]
pub struct PostsSent {
    /// How many messages were posted.
    sent_count: u64,
    /// What became of each, in their order.
    results: Vec<PostSent>,
}

/// What became of a message.
#[derive(ToSchema)]
pub struct PostSent {
    /// The message; null if it was not posted.
    #[schema(required = true)]
    id: Option<Uuid>,
    /// Whether it was posted.
    success: bool,
    /// Why it was not.
    error: Option<String>,
}

/// What is written about something.
#[derive(ToSchema)]
pub struct LoreFound {
    /// How many entries there are.
    count: u64,
    /// The entries, those of the highest priority first.
    entries: Vec<LoreFoundEntry>,
}

/// An entry.
#[derive(ToSchema)]
pub struct LoreFoundEntry {
    /// Its slug.
    slug: String,
    /// Its title.
    title: String,
    /// Whom it concerns.
    scope: String,
    /// The name of what it is about.
    #[schema(required = true)]
    associated_id: Option<String>,
    /// Its text, or the beginning of it.
    content: String,
    /// Whether there is more of it.
    cut: bool,
    /// Whether it is for the game master alone.
    secret: bool,
}

/// What came of an operation on an encounter: `create`, `get` and `add_participant` answer the encounter, `list`, `end` and `commit`
/// something of their own.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum EncounterManaged {
    View(EncounterView),
    List(EncounterList),
    End(EndTold),
    Commit(CommitTold),
}

/// Encounters that go on, and others if they were asked for.
#[derive(ToSchema)]
pub struct EncounterList {
    /// The encounters, the newest first.
    encounters: Vec<EncounterListed>,
}

/// An encounter in a few words.
#[derive(ToSchema)]
pub struct EncounterListed {
    /// Its id.
    encounter_id: Uuid,
    /// What it is called.
    #[schema(required = true)]
    name: Option<String>,
    /// `active` or `ended`.
    status: String,
    /// The round, from 1.
    round: i32,
    /// How many take part.
    participant_count: i32,
    /// How it ended.
    #[schema(required = true)]
    outcome: Option<String>,
}
