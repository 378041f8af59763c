//! Model profiles as they are stored.

use std::{collections::BTreeMap, time::Duration};

use garde::Validate;
use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgRow;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::tenants::Prices;
use base::{
    error::{Error, Result},
    secrets::Secrets,
    stored::Columns,
};
use llm::{CallOptions, OutputLimit, Parameters, ReplyMode};

/// Timeouts of one model, at most ten minutes: a turn keeps its place meanwhile. A null timeout uses the operator's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Milliseconds from a request to the first byte of its answer.
    #[garde(range(min = 100, max = 600_000))]
    #[schema(minimum = 100, maximum = 600_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u32>,
    /// Milliseconds for a whole call with all of its attempts.
    #[garde(range(min = 100, max = 600_000))]
    #[schema(minimum = 100, maximum = 600_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<u32>,
}

/// What works at an endpoint with a model. Null means that nobody has tried it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Supports {
    /// The name of the output limit; null means `max_tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_limit: Option<OutputLimit>,
    /// Answers that come as a stream. False means that none is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// The provider's own tool calls. False makes `xml` the reply mode of a profile that has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Several tool calls in one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tools: Option<bool>,
    /// Answers that follow a JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<bool>,
    /// Token counts at the end of streams. False means that none are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_usage: Option<bool>,
    /// Prompt tokens that come from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<bool>,
    /// Reasoning beside the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
}

/// The unencrypted part of a profile, as the column `settings` holds it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProfileSettings {
    pub endpoint: Option<String>,
    pub model: Option<String>,
    pub reply_mode: Option<ReplyMode>,
    pub parameters: Parameters,
    pub context_tokens: Option<u32>,
    pub timeouts: Timeouts,
    pub prices: Option<Prices>,
    pub fallbacks: Vec<String>,
    pub supports: Supports,
}

/// A stored profile.
pub struct Profile {
    pub id: Uuid,
    pub slug: String,
    pub settings: ProfileSettings,
    pub api_key: Option<String>,
    /// Names and values.
    pub headers: BTreeMap<String, String>,
    /// Whether its key and headers cannot be decrypted, because they were encrypted with a secret that is gone.
    pub secrets_lost: bool,
}

impl Profile {
    /// Reads a row of `model_profile` with its secrets.
    ///
    /// # Errors
    /// `internal` if the row does not fit its types.
    pub fn open(row: &PgRow, tenant: Uuid, secrets: &Secrets) -> Result<Self> {
        let open = |column: &str| -> Result<Option<String>> {
            row.read::<Option<Vec<u8>>>(column)?.map(|sealed| secrets.open(tenant, &sealed)).transpose()
        };
        let opened = || -> Result<(Option<String>, BTreeMap<String, String>)> {
            let headers = open("headers")?.map(|text| serde_json::from_str(&text)).transpose();
            Ok((open("api_key")?, headers.map_err(Error::internal)?.unwrap_or_default()))
        };
        let (id, slug): (Uuid, String) = (row.read("id")?, row.read("slug")?);
        let opened = opened().inspect_err(|error| {
            tracing::error!(%tenant, slug, cause = ?error.cause(), "the secrets of a model profile cannot be read");
        });
        let secrets_lost = opened.is_err();
        let (api_key, headers) = opened.unwrap_or_default();
        Ok(Self { id, slug, settings: row.read_json("settings")?, api_key, headers, secrets_lost })
    }

    /// About how many bytes it takes in memory, twice: alone, and as a choice.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len() + 100).sum();
        let extra = serde_json::to_string(&self.settings.parameters.extra).map_or(0, |text| text.len());
        2 * (headers + 4 * extra + 2000)
    }

    /// How its model is asked.
    #[must_use]
    pub fn options(&self) -> CallOptions {
        let wait = |ms: Option<u32>| ms.map(|ms| Duration::from_millis(ms.into()));
        let ProfileSettings { parameters, context_tokens, timeouts, supports, .. } = &self.settings;
        CallOptions {
            parameters: parameters.clone(),
            output_limit: supports.output_limit.unwrap_or_default(),
            cannot_stream: supports.streaming == Some(false),
            cannot_count_streams: supports.stream_usage == Some(false),
            context_tokens: *context_tokens,
            headers: self.headers.iter().filter_map(|(name, value)| header(name, value)).collect(),
            first_token_timeout: wait(timeouts.first_token_ms),
            total_timeout: wait(timeouts.total_ms),
            caller: String::new(),
        }
    }

    /// How its model replies, if the profile decides that.
    #[must_use]
    pub fn reply_mode(&self) -> Option<ReplyMode> {
        let without_tools = self.settings.supports.tools == Some(false);
        self.settings.reply_mode.or_else(|| without_tools.then_some(ReplyMode::Xml))
    }
}

/// A header as it is sent. None if the name or the value is not valid in HTTP.
#[must_use]
pub fn header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
}
