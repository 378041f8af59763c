//! `/v1/tenant` and `/v1/usage`.

use actix_web::{HttpRequest, get, patch, web};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::Row;
use time::{
    Date, OffsetDateTime, Time,
    format_description::well_known::{Iso8601, Rfc3339},
};
use utoipa::{IntoParams, ToSchema};

use super::{Features, LlmSettings, Settings, service};
use crate::{
    app::App,
    auth::Caller,
    clock, commands,
    error::{Code, Error, Problem, Result},
    http::{Body, Reply, etag, paging, patch as merge_patch, validate},
    limits::TenantLimits,
    tenancy::TenantTx,
};

/// The caller's tenant.
#[derive(Serialize, ToSchema)]
pub struct TenantView {
    id: uuid::Uuid,
    slug: String,
    name: String,
    settings: Settings,
    /// The operator's; read only.
    limits: TenantLimits,
    /// Origins of pages that may call from a browser.
    origins: Vec<String>,
    has_llm_api_key: bool,
    version: i64,
}

/// What a tenant may change.
#[derive(Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct TenantInput {
    #[garde(custom(validate::line))]
    name: String,
    #[garde(dive)]
    settings: SettingsInput,
    #[garde(length(max = 50), inner(custom(origin)))]
    #[serde(default)]
    origins: Vec<String>,
}

/// Settings, with the provider's key, which is never shown again.
#[derive(Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields, default)]
#[garde(allow_unvalidated)]
#[derive(Default)]
struct SettingsInput {
    #[garde(custom(features_fit))]
    features: Features,
    #[garde(dive)]
    llm: LlmInput,
    #[garde(range(min = 1, max = 36500))]
    journal_retention_days: Option<i32>,
    #[garde(range(min = 1, max = 36500))]
    turn_retention_days: Option<i32>,
    #[garde(custom(validate::extensions))]
    #[schema(value_type = Object)]
    extensions: entity::shapes::Extensions,
}

#[derive(Default, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields, default)]
#[garde(allow_unvalidated)]
struct LlmInput {
    #[garde(length(max = 2000))]
    endpoint: Option<String>,
    #[garde(custom(validate::opt_line))]
    model: Option<String>,
    reply_mode: Option<crate::llm::ReplyMode>,
    prices: Option<super::Prices>,
    /// Write only; null removes it.
    #[garde(length(min = 1, max = 500))]
    api_key: Option<String>,
}

fn features_fit(features: &Features, _: &()) -> garde::Result {
    features.planner_commands.as_deref().map_or(Ok(()), commands::are_known)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "garde's signature")]
fn origin(value: &str, _: &()) -> garde::Result {
    let parsed = url::Url::parse(value).ok().filter(|u| matches!(u.scheme(), "http" | "https") && !value.contains('*'));
    if value == "*" || parsed.is_some_and(|u| u.origin().ascii_serialization() == value) {
        return Ok(());
    }
    Err(garde::Error::new("must be an origin such as https://play.example.org, or *"))
}

/// The caller's tenant: settings and limits.
#[utoipa::path(tag = "tenant", operation_id = "get_tenant",
    responses((status = 200, body = TenantView), (status = "default", body = Problem)))]
#[get("/tenant")]
pub async fn get(app: web::Data<App>, caller: Caller) -> Result<Reply> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let (version, view) = service::view(&tx, false).await?;
    Ok(Reply::ok(&view)?.versioned(version))
}

/// Changes settings by a JSON merge patch. `settings.llm.api_key` is write only; limits are the operator's.
#[utoipa::path(tag = "tenant", operation_id = "patch_tenant",
    request_body(content = TenantInput, content_type = "application/merge-patch+json"),
    responses((status = 200, body = TenantView), (status = "default", body = Problem)))]
#[patch("/tenant")]
pub async fn change(app: web::Data<App>, caller: Caller, request: HttpRequest, body: Body<Value>) -> Result<Reply> {
    let changed = crate::http::write(&app, &caller, None, async |tx| {
        let (version, current) = service::view(tx, true).await?;
        etag::check(&request, version)?;
        let patch = with_settings(body.value.clone());
        // A null above the key removes it too.
        let above = ["/settings", "/settings/llm"].iter().any(|p| patch.pointer(p).is_some_and(Value::is_null));
        let key_given = above || patch.pointer("/settings/llm/api_key").is_some();
        if patch.pointer("/settings/limits").is_some() {
            return Err(Error::invalid("/settings/limits", "read_only", "Limits are the operator's."));
        }
        let read_only = ["id", "slug", "limits", "has_llm_api_key", "version"];
        let input: TenantInput = crate::http::body::typed(merge_patch::apply(current, patch, &read_only)?)?;
        validate::check(&input)?;
        let SettingsInput { features, llm, journal_retention_days, turn_retention_days, extensions } = input.settings;
        let LlmInput { endpoint, model, reply_mode, prices, api_key } = llm;
        let settings = Settings {
            features,
            llm: LlmSettings { endpoint, model, reply_mode, prices },
            journal_retention_days,
            turn_retention_days,
            extensions,
        };
        let llm_api_key = key_given.then_some(api_key);
        let change = service::Change { name: input.name, settings, origins: input.origins, llm_api_key };
        service::store(&app, tx, change).await?;
        let (version, view) = service::view(tx, false).await?;
        Ok(Reply::ok(&view)?.versioned(version))
    })
    .await?;
    app.keys.forget();
    Ok(changed)
}

/// `features` and `llm` may also be given without the `settings` around them.
fn with_settings(mut patch: Value) -> Value {
    if let Value::Object(members) = &mut patch {
        for name in ["features", "llm"] {
            let Some(given) = members.remove(name) else { continue };
            let settings = members.entry("settings").or_insert_with(|| json!({}));
            if let Value::Object(settings) = settings {
                settings.entry(name).or_insert(given);
            }
        }
    }
    patch
}

/// What `/usage` is asked for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct UsageParams {
    /// First day or time, inclusive; 30 days ago unless given.
    from: Option<String>,
    /// Last day (inclusive) or time (exclusive); now unless given.
    to: Option<String>,
    /// `day`, `campaign`, `kind` or `model`; several separated by commas. Day unless given.
    group_by: Option<String>,
}

/// Model calls and tokens of a group.
#[derive(Serialize, ToSchema)]
pub struct UsageRow {
    day: Option<String>,
    campaign_id: Option<uuid::Uuid>,
    kind: Option<String>,
    model: Option<String>,
    turns: i64,
    llm_calls: i64,
    prompt_tokens: i64,
    cached_tokens: i64,
    completion_tokens: i64,
    total_tokens: i64,
    /// Null until the tenant sets `llm.prices`.
    cost_micros: Option<i64>,
}

/// The usage ledger, summed by day, campaign, kind or model.
#[utoipa::path(tag = "tenant", operation_id = "get_usage", params(UsageParams),
    responses((status = 200, body = paging::Items<UsageRow>), (status = "default", body = Problem)))]
#[get("/usage")]
pub async fn usage(app: web::Data<App>, caller: Caller, request: HttpRequest) -> Result<Reply> {
    let asked: UsageParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    let from = instant(asked.from.as_deref(), false)?.unwrap_or_else(|| clock::now() - time::Duration::days(30));
    let to = instant(asked.to.as_deref(), true)?.unwrap_or_else(clock::now);
    let mut columns = Vec::new();
    for group in asked.group_by.as_deref().unwrap_or("day").split(',') {
        columns.push(match group.trim() {
            "day" => ("day", "to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"),
            "campaign" => ("campaign_id", "campaign_id::text"),
            "kind" => ("kind", "kind"),
            "model" => ("model", "model"),
            _ => return Err(Error::new(Code::BadRequest, "`group_by` is `day`, `campaign`, `kind` or `model`.")),
        });
    }
    let object: Vec<_> = columns.iter().map(|(name, sql)| format!("'{name}', {sql}")).collect();
    let group: Vec<_> = columns.iter().map(|(_, sql)| *sql).collect();
    let sql = format!(
        "SELECT jsonb_build_object({}, 'turns', count(*), 'llm_calls', sum(llm_calls)::bigint, \
           'prompt_tokens', sum(prompt_tokens)::bigint, 'cached_tokens', sum(cached_tokens)::bigint, \
           'completion_tokens', sum(completion_tokens)::bigint, \
           'total_tokens', sum(prompt_tokens + completion_tokens)::bigint, 'cost_micros', sum(cost_micros)::bigint) AS row \
         FROM usage_entry WHERE tenant_id = $1 AND created_at >= $2 AND created_at < $3 \
           AND ($4::uuid IS NULL OR campaign_id = $4) GROUP BY {1} ORDER BY {1} LIMIT 10000",
        object.join(", "),
        group.join(", ")
    );
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(from)
        .bind(to)
        .bind(caller.campaign)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let items: Vec<Value> = rows.iter().map(|row| row.get("row")).collect();
    Reply::ok(&json!({ "items": items, "next_cursor": null }))
}

fn instant(text: Option<&str>, end_of_day: bool) -> Result<Option<OffsetDateTime>> {
    let Some(text) = text else { return Ok(None) };
    if let Ok(time) = OffsetDateTime::parse(text, &Rfc3339) {
        return Ok(Some(time));
    }
    let day = Date::parse(text, &Iso8601::DATE)
        .map_err(|_| Error::new(Code::BadRequest, "`from` and `to` are days (2026-01-31) or times in RFC 3339."))?;
    let midnight = day.with_time(Time::MIDNIGHT).assume_utc();
    Ok(Some(if end_of_day { midnight + time::Duration::days(1) } else { midnight }))
}
