//! Input from clients and models: the arguments of the encounter tools, and the bodies of the matching REST routes.
//!
//! This module checks shapes only. The rules' own limits are in `rules::encounter::limits`.
//!
//! - `participant`: who takes part; `ground`: where; `action`: what is done; this file: how a fight begins, ends and is
//!   committed.

mod action;
mod ground;
mod participant;

use rules::encounter::{EndOutcome, Lighting, Verbosity};
use schemars::JsonSchema;
use serde::Deserialize;
use utoipa::ToSchema;

pub use action::ActionInput;
pub use ground::TerrainInput;
pub use participant::ParticipantInput;

use crate::rules::values::{UpTo, Words, or_default};

/// How an encounter begins.
#[derive(Clone, Debug, Default, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateInput {
    /// Its name.
    pub name: Option<String>,
    /// 1 to 200.
    #[serde(default)]
    pub participants: Vec<ParticipantInput>,
    /// The ground; 50 by 50 empty squares unless given.
    pub terrain: Option<TerrainInput>,
    /// `bright`, `dim`, `darkness` or `magical_darkness`.
    #[schema(value_type = Option<String>)]
    #[schemars(with = "String", extend("enum" = ["bright", "dim", "darkness", "magical_darkness"]))]
    #[serde(default, deserialize_with = "or_default")]
    pub lighting: Lighting,
    /// Ids of those who are surprised.
    #[serde(default)]
    pub surprise: Vec<String>,
    /// Rolls initiative from this number instead of the campaign's dice.
    pub seed: Option<u64>,
    /// Initiative dice rolled by hand, in the order of the participants; needs the scope `gm`.
    #[schemars(skip)]
    pub dice: Option<Vec<u32>>,
}

/// How an encounter ends.
#[derive(Clone, Debug, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndInput {
    /// `victory`, `defeat`, `fled`, `negotiated` or `other`.
    #[schema(value_type = String)]
    #[schemars(with = "String", extend("enum" = ["victory", "defeat", "fled", "negotiated", "other"]))]
    pub outcome: EndOutcome,
    /// Whether a summary is wanted; yes unless given.
    #[serde(default = "yes")]
    pub generate_summary: bool,
    /// Without it the encounter leaves lists and reads; its rows stay, and it can be committed.
    #[serde(default = "yes")]
    pub preserve_log: bool,
    /// The game master's notes.
    #[serde(default)]
    pub notes: Option<String>,
}

/// Which parts of an ended encounter to write into the records.
#[derive(Clone, Debug, Default, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitInput {
    /// Only these characters, by id or slug; without it, all.
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) character_ids: Option<UpTo<Words<100>, 0, 200>>,
    /// Conditions stay as the record has them.
    #[serde(default)]
    pub exclude_conditions: bool,
    /// Slots stay as the record has them.
    #[serde(default)]
    pub exclude_spell_slots: bool,
    /// Only show what would be written.
    #[serde(default)]
    pub dry_run: bool,
}

/// How much is told.
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct GetParams {
    /// `minimal`, `summary`, `standard` or `detailed`.
    #[param(value_type = Option<String>)]
    pub verbosity: Verbosity,
}

fn yes() -> bool {
    true
}
