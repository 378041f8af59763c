//! Tenants: the owners of campaigns. Each has its own settings, and limits that the operator sets.
//!
//! The settings are one typed JSON document. The provider's key is stored apart from them, encrypted, and is never
//! returned.

pub mod commands;
pub mod tasks;

use entity::shapes::Extensions;
use garde::Validate;
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgRow;
use utoipa::ToSchema;
use uuid::Uuid;

use base::{error::Result, stored::Columns};
use llm::ReplyMode;
use tasks::TaskModels;

/// A tenant as requests see it.
#[derive(Clone, Debug)]
pub struct Tenant {
    pub id: Uuid,
    pub version: i64,
    pub limits: TenantLimits,
    pub settings: Settings,
    pub origins: Vec<String>,
    /// The provider's key, encrypted.
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

/// A tenant's limits; 0 means no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TenantLimits {
    pub requests_per_minute: u32,
    pub tools_per_minute: u32,
    pub turns_per_minute: u32,
    pub planner_per_player_per_minute: u32,
    pub concurrent_turns: u32,
    pub tokens_per_day: u64,
    pub rows_per_kind: u64,
    /// The most reactions of NPCs and owners in a day (UTC).
    pub reactions_per_day: u64,
}

impl Default for TenantLimits {
    fn default() -> Self {
        Self {
            requests_per_minute: 6000,
            tools_per_minute: 3000,
            turns_per_minute: 600,
            planner_per_player_per_minute: 5,
            concurrent_turns: 64,
            tokens_per_day: 0,
            rows_per_kind: 0,
            reactions_per_day: 10_000,
        }
    }
}

impl TenantLimits {
    /// No limit except the planner's.
    #[must_use]
    pub fn unlimited() -> Self {
        Self {
            requests_per_minute: 0,
            tools_per_minute: 0,
            turns_per_minute: 0,
            concurrent_turns: 0,
            reactions_per_day: 0,
            ..Self::default()
        }
    }
}

/// Settings that a tenant decides for itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub features: Features,
    pub llm: LlmSettings,
    /// The model profile for each task, where a campaign names none.
    pub models: TaskModels,
    /// Whether users of the editor need a second factor to do anything in this tenant.
    pub second_factor_required: bool,
    /// Days that journal entries are kept; null means for ever.
    #[schema(minimum = 1, maximum = 36500)]
    pub journal_retention_days: Option<i32>,
    /// Days that turn records are kept; null means 30.
    #[schema(minimum = 1, maximum = 36500)]
    pub turn_retention_days: Option<i32>,
    /// Clients' own keys.
    #[schema(value_type = Object)]
    pub extensions: Extensions,
}

/// Switches for features.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Features {
    /// Whether AI turns are allowed.
    pub llm: bool,
    /// Whether the planner acts on the model's plan, or only logs it.
    pub llm_visible: bool,
    /// Whether the planner may be used.
    pub planner: bool,
    /// The commands that the planner may choose; null means the default six.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planner_commands: Option<Vec<String>>,
    /// What happens when planning takes too long.
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

/// What happens when the model takes too long to plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// The player gets a message that says so.
    #[default]
    Message,
    /// A d20 is rolled for everyone to see.
    Roll,
}

/// The tenant's model. A member that is null has the operator's value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LlmSettings {
    /// Base URL of an OpenAI-compatible endpoint, or its chat-completions URL.
    pub endpoint: Option<String>,
    /// The model's name. At the operator's endpoint it must be on the operator's list.
    pub model: Option<String>,
    pub reply_mode: Option<ReplyMode>,
    /// What tokens cost, for the usage ledger.
    pub prices: Option<Prices>,
}

/// Prices in micro-units of the tenant's currency per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    #[garde(range(max = PRICE_MAX))]
    #[schema(minimum = 0, maximum = 1_000_000_000_000i64)]
    pub prompt: u64,
    #[garde(range(max = PRICE_MAX))]
    #[schema(minimum = 0, maximum = 1_000_000_000_000i64)]
    pub cached: u64,
    #[garde(range(max = PRICE_MAX))]
    #[schema(minimum = 0, maximum = 1_000_000_000_000i64)]
    pub completion: u64,
}

/// The highest price: a million units for a million tokens.
const PRICE_MAX: u64 = 1_000_000_000_000;

impl Prices {
    /// The cost in micro-units of one turn's tokens.
    #[must_use]
    pub fn cost_micros(&self, usage: &llm::Usage) -> u64 {
        let fresh = u128::from(usage.prompt_tokens.saturating_sub(usage.cached_tokens)) * u128::from(self.prompt);
        let cached = u128::from(usage.cached_tokens) * u128::from(self.cached);
        let completion = u128::from(usage.completion_tokens) * u128::from(self.completion);
        u64::try_from((fresh + cached + completion) / 1_000_000).unwrap_or(u64::MAX)
    }
}
