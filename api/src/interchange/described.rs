//! Files as types: the OpenAPI document describes what is exported by these. What a file brought that is no member of ours is in it again as it
//! was, so that only what we write ourselves has a type here.
#![expect(dead_code, reason = "they describe files that are written piece by piece")]

use std::collections::BTreeMap;

use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::document::{MemoryDocument, MessageDocument};
use crate::{
    campaigns::CampaignInput, characters::CharacterInput, lore::LoreInput, npcs::NpcInput, owners::OwnerInput,
    scenes::SceneInput,
};

/// A campaign as one document: everything of its world. Rows are named by slug; there is no id, key, seed or account in it.
#[derive(ToSchema)]
pub struct CampaignDocument {
    /// Always `tavernkeep.campaign`.
    format: String,
    /// The version of the format: 1.
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
    npcs: Vec<NpcInput>,
    /// Scenes, by slug.
    #[schema(required = false)]
    scenes: Vec<SceneInput>,
    /// Lore, by slug.
    #[schema(required = false)]
    lore: Vec<LoreInput>,
    /// What NPCs and owners remember, in the order in which it was made.
    #[schema(required = false)]
    memories: Vec<MemoryDocument>,
    /// What was said and rolled, in its order.
    #[schema(required = false)]
    messages: Vec<MessageDocument>,
}

/// An owner of a campaign's document.
#[derive(ToSchema)]
pub struct OwnerDocument {
    #[serde(flatten)]
    #[schema(inline)]
    owner: OwnerInput,
    /// What it may spend to act, as it was when it was last counted.
    influence: Option<InfluenceDocument>,
}

/// What an owner may spend to act.
#[derive(ToSchema)]
pub struct InfluenceDocument {
    /// What was left.
    current: Option<f64>,
    /// How much there can be.
    max: Option<f64>,
    /// How much comes back in an hour.
    regen_per_hour: Option<f64>,
    /// When that was counted.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<OffsetDateTime>,
}

/// A character card of version 3, as other frontends read it.
#[derive(ToSchema)]
pub struct CharacterCard {
    /// Always `chara_card_v3`.
    spec: String,
    /// Always `3.0`.
    spec_version: String,
    /// The character.
    data: CharacterCardData,
}

/// A character of a card. Members of the card that it was imported from are there as they were.
#[derive(ToSchema)]
pub struct CharacterCardData {
    /// The character's name.
    name: String,
    /// What the character is.
    description: Value,
    /// Who the character is.
    personality: Value,
    /// Where it meets whom.
    scenario: Value,
    /// How it greets.
    first_mes: Value,
    /// How it speaks.
    mes_example: Value,
    /// Notes of whoever made it.
    creator_notes: Value,
    /// What its maker tells a model first.
    system_prompt: Value,
    /// What its maker tells a model last.
    post_history_instructions: Value,
    /// Who made it.
    creator: Value,
    /// Which version of it this is.
    character_version: Value,
    /// How else it greets.
    alternate_greetings: Value,
    /// Words to find it by.
    tags: Value,
    /// How it greets a group.
    group_only_greetings: Value,
    /// Members of programs' own; ours are in `tavernkeep`.
    extensions: Value,
    /// What it alone knows, for those who see secrets.
    character_book: Option<CharacterBook>,
}

/// The book of a card.
#[derive(ToSchema)]
pub struct CharacterBook {
    /// Its entries, as cards write them.
    #[schema(value_type = Vec<Object>)]
    entries: Vec<Value>,
    /// Members of programs' own.
    extensions: Value,
}

/// Lore as SillyTavern's world info.
#[derive(ToSchema)]
pub struct WorldInfo {
    /// The entries by their numbers.
    entries: BTreeMap<String, WorldInfoEntry>,
    /// What the book is called, if it is one that was imported.
    name: Option<Value>,
}

/// An entry of world info. Members that it was imported with are there as they were.
#[derive(ToSchema)]
pub struct WorldInfoEntry {
    /// Its number in this file.
    uid: u64,
    /// Words that bring it up.
    key: Value,
    /// Further words that count.
    keysecondary: Value,
    /// Its title.
    comment: Value,
    /// Its text.
    content: Value,
    /// Whether it is always told.
    constant: Value,
    /// Whether the further words count.
    selective: Value,
    /// How the further words count: a number from 0 to 3.
    #[serde(rename = "selectiveLogic")]
    selective_logic: Value,
    /// What goes first.
    order: Value,
    /// Where it stands.
    position: Value,
    /// Whether it is not used.
    disable: Value,
    /// How many messages are searched for its words.
    #[serde(rename = "scanDepth")]
    scan_depth: Value,
    /// Members of programs' own; ours are in `tavernkeep`.
    extensions: Value,
}
