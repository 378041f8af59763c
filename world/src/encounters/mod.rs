//! Encounters: fights that the server stores, runs, ends and commits. `rules::encounter` decides what happens in them.
//!
//! A fight is a simulation. Its state and log are rows of their own. The row that clients list and follow in the journal shows how it
//! stands. Characters do not change before `commit`, which writes each of them once.
//!
//! - `input`: what requests contain; `http` and `tools::encounters`: the two entry points.
//! - `store`: reads the rows under a lock and writes them in one statement; `service`: create, act, end; `enlist` and `roster`: who takes
//!   part, joins and leaves; `recruits`: finds them by name; `aftermath`: what an ended fight did; `commit`; `rewind`: reverts actions.
//! - `eyes`: what a reader sees of a fight. Every answer about a fight goes through it.
//! - `answers`: the answers' types for the OpenAPI document.
//! - `open`: active fights for pages, with what their reader can do; `combat`: those for `get_encounter`; `news`: what an action did, for the journal and deltas.
//! - `stand`: a character's place in a fight, and whose turn it is; `names`: what participants are called, and whom a name means;
//!   `log`: the text for the campaign's log, with `rolls`: dice in words.
//!
//! Every change to an encounter locks its row first, so that actions follow one another and none is lost.

pub mod aftermath;
pub mod answers;
pub mod combat;
pub mod commit;
mod enlist;
pub mod eyes;
pub mod http;
pub mod input;
pub mod log;
pub mod names;
pub mod news;
pub mod open;
pub mod recruits;
pub mod rewind;
mod rolls;
pub mod roster;
pub mod service;
pub mod stand;
pub mod store;

use entity::{encounter, shapes::Extensions};
use garde::Validate;
use sea_orm::{QueryFilter, QueryTrait, sea_query::ExprTrait};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use base::error::Result;
use edge::{
    caller::Caller,
    http::{
        resource::{self, Place, Resource, Stamp, col},
        validate,
    },
};

/// What a client can change in an encounter without acting in it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct EncounterInput {
    #[garde(length(chars, max = 200))]
    #[serde(default)]
    pub name: String,
    #[garde(inner(length(chars, max = 10_000)))]
    #[serde(default)]
    pub notes: Option<String>,
    #[garde(custom(validate::extensions))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub external_ref: Option<String>,
}

/// Filters of the list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct EncounterFilter {
    /// Also ended encounters.
    include_ended: bool,
}

/// The resource kind.
pub struct Encounters;

impl Resource for Encounters {
    const TABLE: &'static str = "encounter";
    const HAS_SLUG: bool = false;
    const READ_ONLY: &'static [&'static str] =
        &["status", "round", "turn", "current_participant_id", "participant_count", "outcome"];
    const HIDDEN_FROM_PLAYERS: &'static [&'static str] = &["notes", "extensions"];
    const ONLY_FOR_GM: &'static [&'static str] = &["notes"];
    type Entity = encounter::Entity;
    type Model = encounter::Model;
    type View = encounter::Model;
    type Input = EncounterInput;
    type Filter = EncounterFilter;

    fn stamp(m: &encounter::Model) -> Stamp<'_> {
        Stamp { id: m.id.0, version: m.version, label: &m.name, updated_at: m.updated_at }
    }

    fn restrict(select: sea_orm::Select<encounter::Entity>, _: &Caller) -> sea_orm::Select<encounter::Entity> {
        select.filter(col("hidden").eq(false))
    }

    fn filter(
        select: sea_orm::Select<encounter::Entity>,
        filter: &EncounterFilter,
    ) -> Result<sea_orm::Select<encounter::Entity>> {
        Ok(select.apply_if((!filter.include_ended).then_some("active"), |s, v| s.filter(col("status").eq(v))))
    }

    async fn columns(_: &Place<'_>, input: EncounterInput) -> Result<Map<String, Value>> {
        resource::plain_columns(&input)
    }
}
