//! The results of tools. Those that are built elsewhere have a type here that only describes them.
//!
//! To add a tool, add its result here, and name it as its `ToolSpec::Answer`. Results that other parts of the API return too, such
//! as a roll, have their types there.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use world::{
    encounters::{
        answers::{CommitTold, EncounterView, EndTold},
        combat::{CombatantTold, FightTold},
    },
    sessions::world_state::{Dimensions, Light, Note, PartyMember, Token},
};

/// A memory.
#[derive(Serialize, ToSchema)]
pub struct MemoryMade {
    /// The id of the new memory, or of an existing one with the same words.
    pub(super) memory_id: Uuid,
}

/// A memory that was given to everybody who depends on an owner.
#[derive(Serialize, ToSchema)]
pub struct BroadcastMade {
    /// The broadcast's id.
    pub(super) broadcast_id: Uuid,
    /// How many NPCs got the memory.
    #[schema(value_type = u64)]
    pub(super) count: usize,
    /// The NPCs that got the memory.
    pub(super) npc_ids: Vec<Uuid>,
}

/// A character's or NPC's sheet: all of it, or the members that match a search phrase.
#[derive(Serialize, ToSchema)]
pub struct ActorDetails {
    /// The character's or NPC's name.
    #[schema(value_type = String)]
    pub(super) name: Value,
    /// The whole sheet, if there is no search phrase.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Value>,
    /// The members that match the search phrase, at most 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) matches: Option<Vec<ActorMatch>>,
    /// How many members match.
    #[schema(value_type = Option<u64>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_matches: Option<usize>,
}

/// A member of a sheet.
#[derive(Serialize, ToSchema)]
pub struct ActorMatch {
    /// The member's path, such as `weapons.0.name`.
    pub(super) path: String,
    /// The member's value.
    pub(super) value: Value,
}

/// The present scene, or the message that there is none.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes an answer that is built elsewhere")]
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
#[expect(dead_code, reason = "it describes an answer that is built elsewhere")]
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
#[derive(Serialize, ToSchema)]
pub struct MessageHistory {
    /// How many messages there are.
    #[schema(value_type = u64)]
    pub(super) count: usize,
    /// The messages. A message with several rolls counts once for each roll.
    #[schema(value_type = Vec<HistoryMessage>)]
    pub(super) messages: Vec<Value>,
    /// Says how many older messages did not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shortened: Option<String>,
}

/// A message or a roll. With `compact`, its members are `t`, `s`, `a`, `c`, `f`, `tt`, `r` and `ft`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes an answer that is built elsewhere")]
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
#[derive(Serialize, ToSchema)]
pub struct PartyTold {
    /// How many player characters there are.
    #[schema(value_type = u64)]
    pub(super) count: usize,
    /// The player characters. Those from a frontend have only `id`, `name` and `player`.
    #[schema(value_type = Vec<PartyMemberTold>)]
    pub(super) members: Vec<MemberTold>,
}

/// A player character of the campaign, or one that only a frontend knows.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum MemberTold {
    Ours(PartyMemberTold),
    Reported(PartyMember),
}

/// A player character and their present condition.
#[derive(Serialize, ToSchema)]
pub struct PartyMemberTold {
    /// The character's id.
    pub(super) id: String,
    /// The character's slug.
    pub(super) slug: Option<String>,
    /// The character's name.
    pub(super) name: String,
    /// The name of the player.
    pub(super) player: Option<String>,
    /// The character's race.
    pub(super) race: Option<String>,
    /// The character's class.
    pub(super) profession: Option<String>,
    /// The character's level.
    pub(super) level: Option<i32>,
    /// The hit points.
    pub(super) hp: Option<i32>,
    /// The maximum hit points.
    pub(super) max_hp: Option<i32>,
    /// The temporary hit points.
    pub(super) temp_hp: Option<i32>,
    /// The armor class.
    pub(super) armor_class: Option<i32>,
    /// The character's conditions.
    #[schema(value_type = Option<Vec<Value>>)]
    pub(super) conditions: Value,
    /// The character's location.
    pub(super) location: Option<String>,
}

/// A distance.
#[derive(Serialize, ToSchema)]
pub struct DistanceTold {
    /// The distance.
    pub(super) distance: f64,
    /// The unit: `ft`.
    #[schema(value_type = String)]
    pub(super) units: &'static str,
    /// The distance in squares.
    pub(super) squares: f64,
    /// Always null, because walls are not known.
    #[schema(required = true)]
    pub(super) path_blocked: Option<bool>,
    /// Always false.
    pub(super) walls_known: bool,
    /// The tokens in between.
    pub(super) intervening_tokens: Vec<TokenBetween>,
}

/// A token between two points.
#[derive(Serialize, ToSchema)]
pub struct TokenBetween {
    /// The token's id.
    pub(super) id: String,
    /// The token's name.
    pub(super) name: String,
}

/// The messages that were posted.
#[derive(Serialize, ToSchema)]
pub struct PostsSent {
    /// How many messages were posted.
    #[schema(value_type = u64)]
    pub(super) sent_count: usize,
    /// The result for each message, in the same order.
    pub(super) results: Vec<PostSent>,
}

/// The result for one message.
#[derive(Serialize, ToSchema)]
pub struct PostSent {
    /// The message's id; null if it was not posted.
    #[schema(required = true)]
    pub(super) id: Option<Uuid>,
    /// Whether the message was posted.
    pub(super) success: bool,
    /// Why the message was not posted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// The lore entries that match a search.
#[derive(Serialize, ToSchema)]
pub struct LoreFound {
    /// How many entries there are.
    #[schema(value_type = u64)]
    pub(super) count: usize,
    /// The entries, the highest priority first.
    pub(super) entries: Vec<LoreFoundEntry>,
}

/// A lore entry.
#[derive(Serialize, ToSchema)]
pub struct LoreFoundEntry {
    /// The entry's slug.
    pub(super) slug: String,
    /// The entry's title.
    pub(super) title: String,
    /// The kind of lore, such as `global` or `zone`.
    pub(super) scope: String,
    /// The subject of the entry.
    #[schema(required = true)]
    pub(super) associated_id: Option<String>,
    /// The entry's text, or the beginning of it.
    pub(super) content: String,
    /// Whether the text was cut.
    pub(super) cut: bool,
    /// Whether only the game master may know it.
    pub(super) secret: bool,
}

/// The result of an operation on an encounter. `create`, `get` and `add_participant` return the encounter; `list`, `end` and
/// `commit` return results of their own.
#[derive(Serialize, ToSchema)]
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
#[derive(Serialize, ToSchema)]
pub struct MessageSent {
    /// The chat message that only the player reads.
    pub(super) message_id: Uuid,
}

/// How an NPC behaves from now on.
#[derive(Serialize, ToSchema)]
pub struct BehaviorChanged {
    /// The NPC's id.
    pub(super) npc_id: Uuid,
    /// The new behavior. The NPC keeps those before it.
    pub(super) behavior: entity::shapes::NpcBehavior,
}

/// An NPC's changed stat block.
#[derive(Serialize, ToSchema)]
pub struct StatsChanged {
    /// The NPC's id.
    pub(super) npc_id: Uuid,
    /// The whole stat block.
    pub(super) stats: entity::shapes::Stats,
    /// The disposition.
    pub(super) disposition: String,
}

/// An event of the world.
#[derive(Serialize, ToSchema)]
pub struct EventTriggered {
    /// The system message that tells it in the log.
    pub(super) message_id: Uuid,
}

/// New NPCs.
#[derive(Serialize, ToSchema)]
pub struct EntitiesSpawned {
    /// The name of each.
    pub(super) name: String,
    /// The place where they are.
    pub(super) location: String,
    /// The new NPCs.
    pub(super) npcs: Vec<Spawned>,
}

/// A new NPC.
#[derive(Serialize, ToSchema)]
pub struct Spawned {
    /// The NPC's id.
    pub(super) id: Uuid,
    /// The NPC's slug.
    pub(super) slug: String,
}

/// A passive skill that a character got.
#[derive(Serialize, ToSchema)]
pub struct SkillGranted {
    /// The character's id.
    pub(super) player_id: Uuid,
    /// The new feature of the character.
    pub(super) feature: entity::shapes::Feature,
}
