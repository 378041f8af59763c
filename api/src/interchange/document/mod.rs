//! A campaign as one document: everything of its world, in a form that names rows by slug and holds no id, key, seed or account.
//!
//! Sessions, turns, encounters and dice seeds are this server's work, not the world, and stay behind (decision 0019). Memories and
//! messages have no slug; they are known by whose they are, when they were made and what they say. A document that is written,
//! read and written again is the same.

pub mod export;
mod ids;
pub mod import;
mod talk;

use entity::{
    memory::{Holder, Source},
    message::{Author, Type},
    shapes::{Extensions, Speaker},
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::http::{bounds, validate};

/// The document's name for itself.
pub const FORMAT: &str = "tavernkeep.campaign";
/// What this server writes, and the newest it reads.
pub const VERSION: u32 = 1;
/// Rows of one kind in a document.
pub const ROWS_MAX: usize = 200_000;

/// Who remembers, in a document.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HolderDocument {
    /// What it is.
    #[serde(rename = "type")]
    #[schema(inline)]
    pub kind: Holder,
    /// Its slug.
    pub slug: String,
}

/// A memory in a document.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct MemoryDocument {
    /// Who remembers.
    pub holder: HolderDocument,
    /// The character it is about.
    pub player: String,
    /// What is remembered.
    pub text: String,
    /// How it was made.
    #[serde(default)]
    #[schema(inline)]
    pub source: Source,
    /// Memories of the same number were broadcast together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<u32>,
    /// When it was made.
    #[serde(default, with = "crate::clock::written", skip_serializing_if = "Option::is_none")]
    pub created_at: Option<OffsetDateTime>,
    /// Members of clients' own.
    #[garde(custom(validate::extensions))]
    #[serde(default, skip_serializing_if = "Extensions::is_empty")]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    /// What it is called elsewhere.
    #[garde(custom(validate::opt_line))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_ref: Option<String>,
}

/// A message in a document.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct MessageDocument {
    /// What kind it is.
    #[serde(rename = "type", default)]
    #[schema(inline)]
    pub kind: Type,
    /// Who wrote it.
    #[serde(default)]
    #[schema(inline)]
    pub author: Author,
    /// Who speaks.
    #[garde(custom(speaker_fits))]
    #[serde(default)]
    pub speaker: Speaker,
    /// The text.
    #[garde(length(chars, max = 100_000))]
    pub content: String,
    /// What the roll is for.
    #[garde(length(chars, max = 2000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flavor: Option<String>,
    /// What fell.
    #[garde(inner(custom(rolled)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roll: Option<Value>,
    /// The scene's slug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scene: Option<String>,
    /// The character's slug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub player: Option<String>,
    /// The slug of the NPC or owner spoken with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// `gm`, or slugs of characters.
    #[garde(length(max = 50))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whisper_to: Vec<String>,
    /// Whether only the game master sees the roll.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blind: bool,
    /// What was said and its answer have the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u32>,
    /// The text as the model saw it.
    #[garde(length(chars, max = 400_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_text: Option<String>,
    /// Where the conversation as the model sees it begins since then: the place of a message in this list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_start: Option<u32>,
    /// When it was made.
    #[serde(default, with = "crate::clock::written", skip_serializing_if = "Option::is_none")]
    pub created_at: Option<OffsetDateTime>,
    /// Members of clients' own.
    #[garde(custom(validate::extensions))]
    #[serde(default, skip_serializing_if = "Extensions::is_empty")]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    /// What it is called elsewhere.
    #[garde(custom(validate::opt_line))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_ref: Option<String>,
}

/// Bytes of the dice of a message: twenty rolls may have ten thousand dice each, which no client sends by itself.
const ROLL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What fell, as the server wrote it.
fn rolled(roll: &Value, _: &()) -> garde::Result {
    if bounds::size(roll) <= ROLL_BYTES_MAX {
        return Ok(());
    }
    Err(garde::Error::new(format!("must have at most {ROLL_BYTES_MAX} bytes of JSON")))
}

/// Who speaks has names as everybody has.
fn speaker_fits(speaker: &Speaker, _: &()) -> garde::Result {
    let is_short = |name: &str| name.chars().count() <= bounds::CHARS;
    if is_short(&speaker.name) && speaker.alias.as_deref().is_none_or(is_short) {
        return Ok(());
    }
    Err(garde::Error::new(format!("names have at most {} characters", bounds::CHARS)))
}
