//! A campaign as one document: everything in its world. Rows are named by slug. The document contains no ids, keys,
//! seeds or accounts.
//!
//! Sessions, turns, encounters and dice seeds belong to this server, not to the world, and are not exported (decision
//! 0019). Memories and messages have no slug; they are recognised by their people, time and text. Exporting a document,
//! importing it and exporting it again gives the same document.

mod apart;
mod behavior;
pub mod export;
mod ids;
pub mod import;
mod talk;

pub use behavior::BehaviorDocument;
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

use edge::http::{bounds, validate};

/// The value of the document's `format`.
pub const FORMAT: &str = "tavernkeep.campaign";
/// The version that this server writes, and the newest that it reads.
pub const VERSION: u32 = 1;
/// The largest number of rows of one kind in a document.
pub const ROWS_MAX: usize = 200_000;

/// The holder of a memory in a document.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HolderDocument {
    /// Whether it is an NPC or an owner.
    #[serde(rename = "type")]
    #[schema(inline)]
    pub kind: Holder,
    /// The slug.
    pub slug: String,
}

/// A memory in a document. One that the campaign has already, of the same holder, player, source, text and time of writing, stays as it is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct MemoryDocument {
    /// The NPC or owner that has the memory.
    pub holder: HolderDocument,
    /// The slug of the character that it is about.
    pub player: String,
    /// The text.
    pub text: String,
    /// When it happened in the world, such as `second day of the fair`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 120)]
    pub game_time: Option<String>,
    /// Whether it is pinned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// How it was made.
    #[serde(default)]
    #[schema(inline)]
    pub source: Source,
    /// Memories with the same number came from the same broadcast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<u32>,
    /// When it was made.
    #[serde(default, with = "base::clock::optional_rfc3339", skip_serializing_if = "Option::is_none")]
    pub created_at: Option<OffsetDateTime>,
    /// The client's own members.
    #[garde(custom(validate::extensions))]
    #[serde(default, skip_serializing_if = "Extensions::is_empty")]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    /// The name or id in another system.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_ref: Option<String>,
}

/// A message in a document.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct MessageDocument {
    /// The type of the message.
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
    /// The result of the roll.
    #[garde(inner(custom(rolled)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roll: Option<Value>,
    /// The scene's slug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scene: Option<String>,
    /// The character's slug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub player: Option<String>,
    /// The slug of the NPC or owner that was spoken to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// The people who may read it: `gm`, or slugs of characters.
    #[garde(length(max = 50))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whisper_to: Vec<String>,
    /// Whether only the game master sees the roll.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blind: bool,
    /// A message and the answer to it have the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u32>,
    /// The text that the model read.
    #[garde(length(chars, max = 400_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_text: Option<String>,
    /// The index in this list of the first message that the model still sees, from this message on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_start: Option<u32>,
    /// When it was written.
    #[serde(default, with = "base::clock::optional_rfc3339", skip_serializing_if = "Option::is_none")]
    pub created_at: Option<OffsetDateTime>,
    /// The client's own members.
    #[garde(custom(validate::extensions))]
    #[serde(default, skip_serializing_if = "Extensions::is_empty")]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    /// The name or id in another system.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_ref: Option<String>,
}

/// The largest size of the dice of a message in bytes. Twenty rolls may have ten thousand dice each, but no client
/// sends that many by itself.
const ROLL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Checks the size of a roll's result.
fn rolled(roll: &Value, _: &()) -> garde::Result {
    if bounds::size(roll) <= ROLL_BYTES_MAX {
        return Ok(());
    }
    Err(garde::Error::new(format!("must have at most {ROLL_BYTES_MAX} bytes of JSON")))
}

/// Checks the length of a speaker's names.
fn speaker_fits(speaker: &Speaker, _: &()) -> garde::Result {
    let is_short = |name: &str| name.chars().count() <= bounds::CHARS;
    if is_short(&speaker.name) && speaker.alias.as_deref().is_none_or(is_short) {
        return Ok(());
    }
    Err(garde::Error::new(format!("names must have at most {} characters", bounds::CHARS)))
}
