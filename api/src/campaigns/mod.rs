//! Campaigns: one world each. A campaign's slug is unique in its tenant; deleting one deletes what is in it.

pub mod fork;
pub mod http;
pub mod overview;
pub mod removal;

use entity::{campaign, shapes::Extensions};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    commands,
    error::Result,
    http::{
        paging::NoFilter,
        resource::{self, Place, Resource, Stamp},
        validate,
    },
    memory::subject::ABOUT_OTHERS,
    tenancy::TenantTx,
};

/// What a client writes of a campaign.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct CampaignInput {
    #[garde(custom(validate::opt_slug))]
    #[serde(default)]
    pub slug: Option<String>,
    #[garde(custom(validate::line))]
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
    #[garde(custom(settings_fit))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub settings: Extensions,
    #[garde(custom(validate::extensions))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    #[garde(custom(validate::opt_line))]
    #[serde(default)]
    pub external_ref: Option<String>,
}

fn dnd5e() -> String {
    "dnd5e".to_owned()
}

fn known_rules(value: &str, _: &()) -> garde::Result {
    if value == "dnd5e" { Ok(()) } else { Err(garde::Error::new("the only rules there are: `dnd5e`")) }
}

/// Settings are a client's own, but for those that the server reads: `planner_commands` is a list of commands,
/// [`ABOUT_OTHERS`] is true or false.
fn settings_fit(value: &Extensions, cx: &()) -> garde::Result {
    if let Some(names) = value.get("planner_commands").filter(|names| !names.is_null()) {
        let names: Option<Vec<String>> = serde_json::from_value(names.clone()).ok();
        commands::are_known(&names.ok_or_else(|| garde::Error::new("planner_commands is a list of commands"))?)?;
    }
    if value.get(ABOUT_OTHERS).is_some_and(|allowed| !allowed.is_boolean() && !allowed.is_null()) {
        return Err(garde::Error::new(format!("{ABOUT_OTHERS} is true or false")));
    }
    validate::extensions(value, cx)
}

/// The kind.
pub struct Campaigns;

impl Resource for Campaigns {
    const TABLE: &'static str = "campaign";
    const IN_CAMPAIGN: bool = false;
    const READ_ONLY: &'static [&'static str] = &["forked_from"];
    const HIDDEN_FROM_PLAYERS: &'static [&'static str] = &["settings", "forked_from"];
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

    async fn columns(_: &Place<'_>, input: CampaignInput) -> Result<Map<String, Value>> {
        resource::plain_columns(&input)
    }
}
