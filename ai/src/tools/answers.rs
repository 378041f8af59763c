//! The results of tools as types, which the OpenAPI document uses to describe results. Most results are built elsewhere, without these
//! types; tests compare every one of them with the document.
//!
//! To add a tool, add its result here, and name it as its `ToolSpec::Answer`. Results that other parts of the API return too, such
//! as a roll, have their types there.
#![expect(dead_code, reason = "most of them describe results that are built elsewhere")]

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use world::{
    encounters::{
        answers::{CommitTold, EncounterView, EndTold},
        combat::{CombatantTold, FightTold},
    },
    sessions::world_state::{Dimensions, Light, Note, Token},
};

/// A memory.
#[derive(ToSchema)]
pub struct MemoryMade {
    /// The id of the new memory, or of an existing one with the same words.
    memory_id: Uuid,
}

/// A memory that was given to everybody who depends on an owner.
#[derive(ToSchema)]
pub struct BroadcastMade {
    /// The broadcast's id.
    broadcast_id: Uuid,
    /// How many NPCs got the memory.
    count: u64,
    /// The NPCs that got the memory.
    npc_ids: Vec<Uuid>,
}

/// A character's or NPC's sheet: all of it, or the members that match a search phrase.
#[derive(ToSchema)]
pub struct ActorDetails {
    /// The character's or NPC's name.
    name: String,
    /// The whole sheet, if there is no search phrase.
    #[schema(value_type = Option<Object>)]
    data: Option<Value>,
    /// The members that match the search phrase, at most 100.
    matches: Option<Vec<ActorMatch>>,
    /// How many members match.
    total_matches: Option<u64>,
}

/// A member of a sheet.
#[derive(ToSchema)]
pub struct ActorMatch {
    /// The member's path, such as `weapons.0.name`.
    path: String,
    /// The member's value.
    value: Value,
}

/// The present scene, or the message that there is none.
#[derive(ToSchema)]
pub struct CurrentScene {
    /// The scene's id; null if there is no scene.
    #[schema(required = true)]
    id: Option<String>,
    /// Says that there is no scene.
    message: Option<String>,
    /// The scene's name.
    name: Option<String>,
    /// The scene's location.
    location: Option<String>,
    /// The scene's size.
    dimensions: Option<Dimensions>,
    /// The tokens on the scene.
    tokens: Option<Vec<Token>>,
    /// The notes on the scene. Not for players.
    notes: Option<Vec<Note>>,
    /// The lights on the scene.
    light_sources: Option<Vec<Light>>,
}

/// The fight in progress, several fights, or the message that there is none.
#[derive(ToSchema)]
pub struct FightsTold {
    /// Whether there is a fight.
    in_combat: bool,
    /// Says that there is no fight.
    message: Option<String>,
    /// How many fights are in progress, if there are several.
    active_count: Option<u64>,
    /// The fights, if there are several.
    encounters: Option<Vec<FightTold>>,
    /// The fight's id.
    combat_id: Option<String>,
    /// The fight's name.
    name: Option<String>,
    /// The round, from 1.
    round: Option<i64>,
    /// The place of the present turn in the initiative order.
    turn: Option<i64>,
    /// The participants, in initiative order.
    combatants: Option<Vec<CombatantTold>>,
    /// When the fight was last updated.
    last_updated: Option<String>,
    /// Whether this may be outdated, because the frontend did not answer.
    stale: Option<bool>,
}

/// The newest messages and rolls, the oldest first.
#[derive(ToSchema)]
pub struct MessageHistory {
    /// How many messages there are.
    count: u64,
    /// The messages. A message with several rolls counts once for each roll.
    messages: Vec<HistoryMessage>,
    /// Says how many older messages did not fit.
    shortened: Option<String>,
}

/// A message or a roll. With `compact`, its members are `t`, `s`, `a`, `c`, `f`, `tt`, `r` and `ft`.
#[derive(ToSchema)]
pub struct HistoryMessage {
    /// When it was written, in milliseconds since 1970.
    ts: i64,
    /// `chat`, `roll`, `card`, `system` or `whisper`.
    r#type: Option<String>,
    /// The speaker.
    speaker: Option<String>,
    /// The name under which the speaker speaks.
    alias: Option<String>,
    /// The text.
    content: Option<String>,
    /// The formula of a roll.
    formula: Option<String>,
    /// The total of a roll.
    total: Option<f64>,
    /// The dice.
    dice: Option<Value>,
    /// What the roll was for.
    flavor: Option<String>,
}

/// The player characters.
#[derive(ToSchema)]
pub struct PartyTold {
    /// How many player characters there are.
    count: u64,
    /// The player characters. Those from a frontend have only `id`, `name` and `player`.
    members: Vec<PartyMemberTold>,
}

/// A player character and their present condition.
#[derive(ToSchema)]
pub struct PartyMemberTold {
    /// The character's id.
    id: String,
    /// The character's slug.
    slug: Option<String>,
    /// The character's name.
    name: String,
    /// The name of the player.
    player: Option<String>,
    /// The character's race.
    race: Option<String>,
    /// The character's class.
    profession: Option<String>,
    /// The character's level.
    level: Option<i32>,
    /// The hit points.
    hp: Option<i32>,
    /// The maximum hit points.
    max_hp: Option<i32>,
    /// The temporary hit points.
    temp_hp: Option<i32>,
    /// The armor class.
    armor_class: Option<i32>,
    /// The character's conditions.
    conditions: Option<Vec<Value>>,
    /// The character's location.
    location: Option<String>,
}

/// A distance.
#[derive(ToSchema)]
pub struct DistanceTold {
    /// The distance.
    distance: f64,
    /// The unit: `ft`.
    units: String,
    /// The distance in squares.
    squares: f64,
    /// Always null, because walls are not known.
    #[schema(required = true)]
    path_blocked: Option<bool>,
    /// Always false.
    walls_known: bool,
    /// The tokens in between.
    intervening_tokens: Vec<TokenBetween>,
}

/// A token between two points.
#[derive(ToSchema)]
pub struct TokenBetween {
    /// The token's id.
    id: String,
    /// The token's name.
    name: String,
}

/// The messages that were posted.
#[derive(ToSchema)]
pub struct PostsSent {
    /// How many messages were posted.
    sent_count: u64,
    /// The result for each message, in the same order.
    results: Vec<PostSent>,
}

/// The result for one message.
#[derive(ToSchema)]
pub struct PostSent {
    /// The message's id; null if it was not posted.
    #[schema(required = true)]
    id: Option<Uuid>,
    /// Whether the message was posted.
    success: bool,
    /// Why the message was not posted.
    error: Option<String>,
}

/// The lore entries that match a search.
#[derive(ToSchema)]
pub struct LoreFound {
    /// How many entries there are.
    count: u64,
    /// The entries, the highest priority first.
    entries: Vec<LoreFoundEntry>,
}

/// A lore entry.
#[derive(ToSchema)]
pub struct LoreFoundEntry {
    /// The entry's slug.
    slug: String,
    /// The entry's title.
    title: String,
    /// The kind of lore, such as `global` or `zone`.
    scope: String,
    /// The subject of the entry.
    #[schema(required = true)]
    associated_id: Option<String>,
    /// The entry's text, or the beginning of it.
    content: String,
    /// Whether the text was cut.
    cut: bool,
    /// Whether only the game master may know it.
    secret: bool,
}

/// The result of an operation on an encounter. `create`, `get` and `add_participant` return the encounter; `list`, `end` and
/// `commit` return results of their own.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum EncounterManaged {
    View(EncounterView),
    List(EncounterList),
    End(EndTold),
    Commit(CommitTold),
}

/// The encounters in progress and, on request, those that have ended.
#[derive(Serialize, ToSchema)]
pub struct EncounterList {
    /// The encounters, the newest first.
    pub(super) encounters: Vec<EncounterListed>,
}

/// A short description of an encounter.
#[derive(Serialize, ToSchema)]
pub struct EncounterListed {
    /// The encounter's id.
    pub(super) encounter_id: Uuid,
    /// The encounter's name.
    #[schema(required = true)]
    pub(super) name: Option<String>,
    /// `active` or `ended`.
    pub(super) status: String,
    /// The round, from 1.
    pub(super) round: i32,
    /// How many participants there are.
    pub(super) participant_count: i32,
    /// How it ended.
    #[schema(required = true)]
    pub(super) outcome: Option<String>,
}

/// An owner's message.
#[derive(ToSchema)]
pub struct MessageSent {
    /// The chat message that only the player reads.
    message_id: Uuid,
}

/// How an NPC behaves from now on.
#[derive(ToSchema)]
pub struct BehaviorChanged {
    /// The NPC's id.
    npc_id: Uuid,
    /// The new behavior. The NPC keeps those before it.
    behavior: entity::shapes::NpcBehavior,
}

/// An NPC's changed stat block.
#[derive(ToSchema)]
pub struct StatsChanged {
    /// The NPC's id.
    npc_id: Uuid,
    /// The whole stat block.
    stats: entity::shapes::Stats,
    /// The disposition.
    disposition: String,
}

/// An event of the world.
#[derive(ToSchema)]
pub struct EventTriggered {
    /// The system message that tells it in the log.
    message_id: Uuid,
}

/// New NPCs.
#[derive(ToSchema)]
pub struct EntitiesSpawned {
    /// The name of each.
    name: String,
    /// The place where they are.
    location: String,
    /// The new NPCs.
    npcs: Vec<Spawned>,
}

/// A new NPC.
#[derive(ToSchema)]
pub struct Spawned {
    /// The NPC's id.
    id: Uuid,
    /// The NPC's slug.
    slug: String,
}

/// A passive skill that a character got.
#[derive(ToSchema)]
pub struct SkillGranted {
    /// The character's id.
    player_id: Uuid,
    /// The new feature of the character.
    feature: entity::shapes::Feature,
}
