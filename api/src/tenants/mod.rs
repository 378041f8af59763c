//! Tenants: who owns a world, with settings of their own and limits of the operator's.
//!
//! Settings are one JSON document with a type; the provider's key is apart, encrypted, and never comes back.

pub mod change;
pub mod http;
pub mod service;
pub mod usage;

use entity::shapes::Extensions;
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgRow;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{error::Result, limits::TenantLimits, llm::ReplyMode, stored::Columns};

/// A tenant as requests see it.
#[derive(Clone, Debug)]
pub struct Tenant {
    pub id: Uuid,
    pub version: i64,
    pub limits: TenantLimits,
    pub settings: Settings,
    pub origins: Vec<String>,
    /// The provider's key, sealed.
    pub llm_api_key: Option<Vec<u8>>,
    /// Features that the operator switched off for everyone.
    pub switched_off: Vec<String>,
}

impl Tenant {
    /// Reads the row of `auth_key`.
    ///
    /// # Errors
    /// `internal` if the stored settings do not fit their type.
    pub fn from_row(row: &PgRow) -> Result<Self> {
        Ok(Self {
            id: row.read("tenant_id")?,
            version: row.read("tenant_version")?,
            limits: row.read_json("limits")?,
            settings: row.read_json("settings")?,
            origins: row.read("origins")?,
            llm_api_key: row.read("llm_api_key")?,
            switched_off: row.read("switched_off")?,
        })
    }
}

/// What a tenant decides for itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub features: Features,
    pub llm: LlmSettings,
    /// Whether users of the editor need a second factor to do anything here.
    pub second_factor_required: bool,
    /// Days that journal rows are kept; null: for ever.
    #[schema(minimum = 1, maximum = 36500)]
    pub journal_retention_days: Option<i32>,
    /// Days that turn records are kept; null: 30.
    #[schema(minimum = 1, maximum = 36500)]
    pub turn_retention_days: Option<i32>,
    /// Clients' own keys.
    #[schema(value_type = Object)]
    pub extensions: Extensions,
}

/// Switches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Features {
    /// AI turns.
    pub llm: bool,
    /// Whether the planner acts on what the model says, or only logs it.
    pub llm_visible: bool,
    /// The planner.
    pub planner: bool,
    /// The commands the planner may choose; null: the usual six.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planner_commands: Option<Vec<String>>,
    /// What a plan that took too long leads to.
    #[schema(inline)]
    pub planner_fallback: Fallback,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            llm: true,
            llm_visible: true,
            planner: true,
            planner_commands: None,
            planner_fallback: Fallback::Message,
        }
    }
}

/// What comes of a plan when the model takes too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// A sentence that says so.
    #[default]
    Message,
    /// A d20, rolled for everyone to see.
    Roll,
}

/// The tenant's model; what is null is the operator's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LlmSettings {
    /// Base URL of an OpenAI-compatible endpoint, or its chat-completions URL.
    pub endpoint: Option<String>,
    /// At the operator's endpoint one of the operator's list.
    pub model: Option<String>,
    pub reply_mode: Option<ReplyMode>,
    /// What tokens cost, for the usage ledger.
    pub prices: Option<Prices>,
}

/// Prices in micro-units of the tenant's currency per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    #[schema(minimum = 0)]
    pub prompt: u64,
    #[schema(minimum = 0)]
    pub cached: u64,
    #[schema(minimum = 0)]
    pub completion: u64,
}

impl Prices {
    /// The cost in micro-units of one turn's tokens.
    #[must_use]
    pub fn cost_micros(&self, usage: &crate::llm::Usage) -> u64 {
        let fresh = u128::from(usage.prompt_tokens.saturating_sub(usage.cached_tokens)) * u128::from(self.prompt);
        let cached = u128::from(usage.cached_tokens) * u128::from(self.cached);
        let completion = u128::from(usage.completion_tokens) * u128::from(self.completion);
        u64::try_from((fresh + cached + completion) / 1_000_000).unwrap_or(u64::MAX)
    }
}
