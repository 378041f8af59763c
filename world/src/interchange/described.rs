//! The types of exported files, for the OpenAPI document. Members that came from an imported file are exported
//! unchanged, so only members that we write ourselves have types here.
#![expect(dead_code, reason = "these types only describe files; other code writes them piece by piece")]

use std::collections::BTreeMap;

use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::document::{BehaviorDocument, MemoryDocument, MessageDocument};
use crate::{
    campaigns::CampaignInput, characters::CharacterInput, lore::LoreInput, npcs::NpcInput, owners::OwnerInput,
    scenes::SceneInput,
};
use entity::shapes::OwnerResource;

/// A campaign as one document, with everything in its world. Rows are identified by slug. It contains no ids, keys,
/// seeds or accounts.
#[derive(ToSchema)]
pub struct CampaignDocument {
    /// Always `tavernkeep.campaign`.
    format: String,
    /// The version of the format: 1.
    #[schema(minimum = 1, maximum = 1)]
    version: u32,
    /// The campaign itself.
    campaign: CampaignInput,
    /// Owners, by slug.
    #[schema(required = false)]
    owners: Vec<OwnerDocument>,
    /// Player characters, by slug.
    #[schema(required = false)]
    characters: Vec<CharacterInput>,
    /// NPCs, by slug.
    #[schema(required = false)]
    npcs: Vec<NpcDocument>,
    /// Scenes, by slug.
    #[schema(required = false)]
    scenes: Vec<SceneInput>,
    /// Lore, by slug.
    #[schema(required = false)]
    lore: Vec<LoreInput>,
    /// The memories of NPCs and owners, in the order in which they were made.
    #[schema(required = false)]
    memories: Vec<MemoryDocument>,
    /// The messages, in order.
    #[schema(required = false)]
    messages: Vec<MessageDocument>,
}

/// An NPC in a campaign document.
#[derive(ToSchema)]
pub struct NpcDocument {
    #[serde(flatten)]
    #[schema(inline)]
    npc: NpcInput,
    /// How owners make it behave, the oldest first.
    #[schema(required = false)]
    behaviors: Vec<BehaviorDocument>,
}

/// An owner in a campaign document.
#[derive(ToSchema)]
pub struct OwnerDocument {
    #[serde(flatten)]
    #[schema(inline)]
    owner: OwnerInput,
    /// The influence that it can spend to act, when it was last updated.
    influence: Option<InfluenceDocument>,
    /// What it has.
    #[schema(required = false)]
    resources: Vec<OwnerResource>,
}

/// An owner's influence, which it can spend to act.
#[derive(ToSchema)]
pub struct InfluenceDocument {
    /// The current influence.
    #[schema(minimum = 0, maximum = 1_000_000)]
    current: Option<f64>,
    /// The most influence that it can have.
    #[schema(minimum = 0, maximum = 1_000_000)]
    max: Option<f64>,
    /// How much it regains per hour.
    #[schema(minimum = 0, maximum = 1_000_000)]
    regen_per_hour: Option<f64>,
    /// When the current influence was last updated.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<OffsetDateTime>,
}

/// A character card of version 3, as other programs read it.
#[derive(ToSchema)]
pub struct CharacterCard {
    /// Always `chara_card_v3`.
    spec: String,
    /// Always `3.0`.
    spec_version: String,
    /// The character.
    data: CharacterCardData,
}

/// The character of a card. Members of the card that it was imported from are exported unchanged.
#[derive(ToSchema)]
pub struct CharacterCardData {
    /// The character's name.
    name: String,
    /// A description of the character.
    description: Value,
    /// The character's personality.
    personality: Value,
    /// The situation in which the character appears.
    scenario: Value,
    /// The first message of the character.
    first_mes: Value,
    /// Examples of the character's speech.
    mes_example: Value,
    /// Notes by the card's creator.
    creator_notes: Value,
    /// The creator's system prompt.
    system_prompt: Value,
    /// The creator's instructions after the conversation.
    post_history_instructions: Value,
    /// The creator of the card.
    creator: Value,
    /// The version of the character.
    character_version: Value,
    /// Other first messages.
    alternate_greetings: Value,
    /// Tags for finding the card.
    tags: Value,
    /// First messages in a group.
    group_only_greetings: Value,
    /// Members of other programs. Ours are in `tavernkeep`.
    extensions: Value,
    /// The secret lore of this character. Only present if the caller may see secrets.
    character_book: Option<CharacterBook>,
}

/// The lorebook of a card.
#[derive(ToSchema)]
pub struct CharacterBook {
    /// The entries, in the format of cards.
    #[schema(value_type = Vec<Object>)]
    entries: Vec<Value>,
    /// Members of other programs.
    extensions: Value,
}

/// Lore in the format of SillyTavern's world info.
#[derive(ToSchema)]
pub struct WorldInfo {
    /// The entries by number.
    entries: BTreeMap<String, WorldInfoEntry>,
    /// The name of the book, if it was imported.
    name: Option<Value>,
}

/// An entry of world info. Members that it was imported with are exported unchanged.
#[derive(ToSchema)]
pub struct WorldInfoEntry {
    /// The number of the entry in this file.
    uid: u64,
    /// The keywords that activate the entry.
    key: Value,
    /// The secondary keywords.
    keysecondary: Value,
    /// The title.
    comment: Value,
    /// The text.
    content: Value,
    /// Whether the entry is always active.
    constant: Value,
    /// Whether the secondary keywords count.
    selective: Value,
    /// How the secondary keywords are combined: a number from 0 to 3.
    #[serde(rename = "selectiveLogic")]
    selective_logic: Value,
    /// The priority.
    order: Value,
    /// The position in the prompt.
    position: Value,
    /// Whether the entry is switched off.
    disable: Value,
    /// How many messages are searched for the keywords.
    #[serde(rename = "scanDepth")]
    scan_depth: Value,
    /// Members of other programs. Ours are in `tavernkeep`.
    extensions: Value,
}
