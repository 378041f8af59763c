//! Changes that a tenant makes to its own settings, for `/v1/tenant` and the editor.

use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::service;
use crate::tenants::{Features, LlmSettings, Settings, tasks::TaskModels};
use crate::{
    caller::Caller,
    http::{etag::Expected, patch as merge_patch, validate},
    state::Edge,
    tenants,
};
use base::error::{Error, Result};
use db::tenancy;

/// The members of a tenant that it may change.
#[derive(Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct TenantInput {
    #[garde(custom(validate::line))]
    #[schema(min_length = 1)]
    name: String,
    #[garde(dive)]
    settings: SettingsInput,
    #[garde(length(max = 50), inner(custom(origin)))]
    #[serde(default)]
    origins: Vec<String>,
}

/// Settings, with the provider's key. Answers never contain the key.
#[derive(Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields, default)]
#[garde(allow_unvalidated)]
#[derive(Default)]
pub struct SettingsInput {
    #[garde(custom(features_fit))]
    features: Features,
    #[garde(dive)]
    llm: LlmInput,
    /// The model profile for each task, where a campaign names none.
    models: TaskModels,
    /// Whether users of the editor need a second factor. Null, as in a merge patch, means no.
    #[schema(value_type = Option<bool>)]
    second_factor_required: bool,
    #[garde(range(min = 1, max = 36500))]
    #[schema(minimum = 1, maximum = 36500)]
    journal_retention_days: Option<i32>,
    #[garde(range(min = 1, max = 36500))]
    #[schema(minimum = 1, maximum = 36500)]
    turn_retention_days: Option<i32>,
    #[garde(custom(validate::extensions))]
    #[schema(value_type = Object)]
    extensions: entity::shapes::Extensions,
}

#[derive(Default, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields, default)]
#[garde(allow_unvalidated)]
pub struct LlmInput {
    #[garde(length(max = 2000))]
    endpoint: Option<String>,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    model: Option<String>,
    reply_mode: Option<llm::ReplyMode>,
    #[garde(dive)]
    prices: Option<crate::tenants::Prices>,
    /// Write-only; null removes it. The key belongs to its endpoint: a new endpoint without a new key removes it too.
    #[garde(length(min = 1, max = 500))]
    #[schema(min_length = 1)]
    api_key: Option<String>,
}

fn features_fit(features: &Features, _: &()) -> garde::Result {
    features.planner_commands.as_deref().map_or(Ok(()), tenants::commands::are_known)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "garde's signature")]
fn origin(value: &str, _: &()) -> garde::Result {
    let parsed = url::Url::parse(value).ok().filter(|u| matches!(u.scheme(), "http" | "https") && !value.contains('*'));
    if value == "*" || parsed.is_some_and(|u| u.origin().ascii_serialization() == value) {
        return Ok(());
    }
    Err(garde::Error::new("must be an origin such as https://play.example.org, or *"))
}

/// Changes the caller's tenant by a JSON merge patch. Returns its version and its view.
///
/// # Errors
/// `precondition_failed`, `validation_failed`.
pub async fn apply(app: &Edge, caller: &Caller, expected: &Expected, patch: &Value) -> Result<(i64, Value)> {
    let changed = tenancy::write(&app.pool, caller.actor(), async |tx| {
        let (version, current) = service::view(tx, true).await?;
        expected.check(version)?;
        let patch = with_settings(patch.clone())?;
        // A null above the key also removes the key.
        let above = ["/settings", "/settings/llm"].iter().any(|p| patch.pointer(p).is_some_and(Value::is_null));
        let key_given = above || patch.pointer("/settings/llm/api_key").is_some();
        if patch.pointer("/settings/limits").is_some() {
            return Err(Error::invalid("/settings/limits", "read_only", "Only the operator can change limits."));
        }
        let read_only = ["id", "slug", "limits", "has_llm_api_key", "version"];
        let input: TenantInput = crate::http::bounds::read(merge_patch::apply(current, patch, &read_only)?)?;
        validate::check(&input)?;
        let SettingsInput {
            features,
            llm,
            models,
            second_factor_required,
            journal_retention_days,
            turn_retention_days,
            extensions,
        } = input.settings;
        let LlmInput { endpoint, model, reply_mode, prices, api_key } = llm;
        let settings = Settings {
            features,
            llm: LlmSettings { endpoint, model, reply_mode, prices },
            models,
            second_factor_required,
            journal_retention_days,
            turn_retention_days,
            extensions,
        };
        let llm_api_key = key_given.then_some(api_key);
        let change = service::Change { name: input.name, settings, origins: input.origins, llm_api_key };
        service::store(app, tx, change).await?;
        service::view(tx, false).await
    })
    .await?;
    app.keys.forget();
    if patch.get("origins").is_some()
        && let Err(error) = app.origins.read(&app.pool).await
    {
        tracing::warn!(%error, "could not read the allowed origins");
    }
    Ok(changed)
}

/// Moves `features` and `llm` into `settings` if they are given beside it.
///
/// # Errors
/// `validation_failed` for one that is given twice.
fn with_settings(mut patch: Value) -> Result<Value> {
    if let Value::Object(members) = &mut patch {
        for name in ["features", "llm"] {
            let Some(given) = members.remove(name) else { continue };
            match members.entry("settings").or_insert_with(|| json!({})) {
                Value::Object(settings) if !settings.contains_key(name) => {
                    settings.insert(name.to_owned(), given);
                }
                _ => {
                    let rule = format!("give `{name}` either in `settings` or beside it");
                    return Err(Error::invalid(format!("/{name}"), "invalid_value", rule));
                }
            }
        }
    }
    Ok(patch)
}
