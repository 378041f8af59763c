//! Campaigns: one world each. A campaign's slug is unique in its tenant. Deleting a campaign deletes everything in it.

pub mod fork;
pub mod http;
pub mod models;
pub mod prompt_section;
pub mod prompt_template;
pub mod removal;
pub mod settings;

use entity::{
    campaign,
    shapes::{Extensions, PendingInstructions},
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::guidance;
use base::error::Result;
use db::tenancy::TenantTx;
use edge::http::{
    paging::NoFilter,
    resource::{self, Place, Resource, Stamp},
    validate,
};

/// The members of a campaign that a client can write.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct CampaignInput {
    #[garde(custom(validate::opt_slug))]
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9_-]*$")]
    #[serde(default)]
    pub slug: Option<String>,
    #[garde(custom(validate::line))]
    #[schema(min_length = 1)]
    pub name: String,
    #[garde(length(chars, max = 20_000))]
    #[serde(default)]
    pub description: String,
    #[garde(custom(known_rules))]
    #[serde(default = "dnd5e")]
    pub game_system: String,
    #[garde(length(chars, max = 200))]
    #[serde(default)]
    pub game_time: Option<String>,
    /// What the author tells all models of the campaign: tone, style, length, language, lines and veils.
    #[garde(custom(guidance::instructions))]
    #[serde(default)]
    pub instructions: String,
    /// Instructions that nobody has accepted yet. No model reads them.
    #[garde(custom(guidance::pending_of_campaign))]
    #[serde(default)]
    pub pending_instructions: Option<PendingInstructions>,
    #[garde(custom(settings::stored_fit))]
    #[serde(default)]
    #[schema(value_type = settings::CampaignSettings)]
    pub settings: Extensions,
    #[garde(custom(validate::extensions))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub external_ref: Option<String>,
}

fn dnd5e() -> String {
    "dnd5e".to_owned()
}

fn known_rules(value: &str, _: &()) -> garde::Result {
    if value == "dnd5e" {
        Ok(())
    } else {
        Err(garde::Error::new("must be `dnd5e`, the only rules system that there is"))
    }
}

/// Campaigns as a resource.
pub struct Campaigns;

/// The slug of a campaign's answer.
#[derive(Deserialize)]
pub struct Named {
    pub slug: String,
}

impl Resource for Campaigns {
    const TABLE: &'static str = "campaign";
    const IN_CAMPAIGN: bool = false;
    const READ_ONLY: &'static [&'static str] = &["forked_from"];
    const HIDDEN_FROM_PLAYERS: &'static [&'static str] =
        &["instructions", "pending_instructions", "settings", "forked_from"];
    type Entity = campaign::Entity;
    type Model = campaign::Model;
    type View = campaign::Model;
    type Input = CampaignInput;
    type Filter = NoFilter;

    fn stamp(m: &campaign::Model) -> Stamp<'_> {
        Stamp { id: m.id.0, version: m.version, label: &m.name, updated_at: m.updated_at }
    }

    async fn delete(tx: &TenantTx, id: Uuid) -> Result<Vec<Uuid>> {
        removal::leave(tx, id).await
    }

    fn check_sent(sent: &Value) -> Result<()> {
        sent.get("settings").filter(|settings| !settings.is_null()).map_or(Ok(()), settings::check)
    }

    async fn columns(_: &Place<'_>, input: CampaignInput) -> Result<Map<String, Value>> {
        resource::plain_columns(&input)
    }
}
