//! Writing and reading model profiles.

use std::collections::BTreeMap;

use garde::Validate;
use llm::{
    Endpoint, Parameters, ReplyMode,
    parameters::{is_ours, is_sampling},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{AssertSqlSafe, postgres::PgRow};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use utoipa::ToSchema;
use uuid::Uuid;

use super::references;
use crate::{
    caller::Caller,
    http::{
        self, Answer, bounds, budget,
        etag::Expected,
        idempotency::IdempotencyKey,
        paging::{Items, NoFilter, Page, contains, pattern},
        patch as merge_patch,
        resource::slug_of,
        validate,
    },
    models::{
        PROFILES_MAX,
        profile::{Profile, ProfileSettings, Supports, Timeouts, header},
    },
    state::Edge,
    tenants::Prices,
};
use base::{
    clock,
    error::{Code, Error, FieldError, Result},
    json::escape,
    stored::{self, Columns},
};
use db::tenancy::{self, TenantTx};

/// Stands for the value of a header. Any of them may be a secret, whatever its name is.
const HIDDEN: &str = "***";
/// Headers of a profile, and bytes of each value.
const HEADERS_MAX: usize = 20;
const HEADER_BYTES_MAX: usize = 2000;
/// The largest integer that every JSON reader keeps exactly.
const SEED_MAX: u64 = 9_007_199_254_740_991;
/// Members of `parameters.extra`, and bytes of all together.
const EXTRA_MEMBERS_MAX: usize = 50;
const EXTRA_BYTES_MAX: usize = 16 * 1024;

/// A model profile. What is null is taken from the tenant's own settings, or else from the operator's.
#[derive(Clone, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ModelInput {
    /// By default made from the name. It cannot be changed later.
    #[garde(custom(validate::opt_slug))]
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9_-]*$")]
    #[serde(default)]
    pub slug: Option<String>,
    #[garde(custom(validate::line))]
    #[schema(min_length = 1)]
    pub name: String,
    /// Base URL of an OpenAI-compatible endpoint, or its chat-completions URL.
    #[garde(length(min = 1, max = 2000))]
    #[schema(min_length = 1, max_length = 2000)]
    #[serde(default)]
    pub endpoint: Option<String>,
    /// Write-only. The key belongs to its endpoint: a new endpoint without a new key removes it.
    #[garde(length(min = 1, max = 500))]
    #[schema(min_length = 1, max_length = 500)]
    #[serde(default)]
    pub api_key: Option<String>,
    /// The model's name. At the operator's endpoint it must be on the operator's list.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub reply_mode: Option<ReplyMode>,
    #[serde(default)]
    pub parameters: Parameters,
    /// Tokens of the model's context window. Prompt and answer fit into it together: parts of the prompt are left out if necessary.
    #[garde(range(min = 512, max = 100_000_000))]
    #[schema(minimum = 512, maximum = 100_000_000)]
    #[serde(default)]
    pub context_tokens: Option<u32>,
    /// Further headers of each request to the profile's own endpoint. Their values are never shown: `***` stands for
    /// each. Writing `***` keeps the stored value. A new endpoint removes the headers whose values are not written again.
    #[garde(custom(few_headers))]
    #[serde(default)]
    pub headers: BTreeMap<String, Option<String>>,
    /// How long to wait for this model.
    #[garde(dive)]
    #[serde(default)]
    pub timeouts: Timeouts,
    /// What tokens cost, for the usage ledger.
    #[garde(dive)]
    #[serde(default)]
    pub prices: Option<Prices>,
    /// Profiles that answer instead when this one cannot, in this order, by slug.
    #[garde(length(max = 5))]
    #[schema(max_items = 5)]
    #[serde(default)]
    pub fallbacks: Vec<String>,
    /// What works with this model, as `POST /models/{model}/test` finds it.
    #[serde(default)]
    pub supports: Supports,
}

/// A model profile as it is read. It never contains the key.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ModelView {
    pub id: Uuid,
    pub slug: String,
    pub name: String,
    pub endpoint: Option<String>,
    /// Whether a key is stored.
    pub has_api_key: bool,
    /// Whether the stored key and headers can no longer be decrypted. The profile answers nothing until its key is written again, and has no
    /// headers until they are.
    pub secrets_lost: bool,
    pub model: Option<String>,
    pub reply_mode: Option<ReplyMode>,
    pub parameters: Parameters,
    /// Tokens of the model's context window.
    pub context_tokens: Option<u32>,
    /// The names of the headers. `***` stands for each value.
    pub headers: BTreeMap<String, String>,
    pub timeouts: Timeouts,
    pub prices: Option<Prices>,
    /// Profiles that answer instead when this one cannot, by slug.
    pub fallbacks: Vec<String>,
    pub supports: Supports,
    pub created_at: String,
    pub updated_at: String,
    pub version: i64,
}

/// Checks a profile by itself. Each error points to the member that it is about.
fn check(input: &ModelInput) -> Result<()> {
    validate::check(input)?;
    let errors: Vec<_> = wrong_parameters(&input.parameters)
        .into_iter()
        .map(|(member, message)| (format!("/parameters/{}", escape(&member)), message))
        .chain(wrong_headers(&input.headers).map(|(name, message)| (format!("/headers/{}", escape(name)), message)))
        .map(|(pointer, message)| FieldError { pointer, code: "invalid_value".into(), message })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(Error::validation(errors)) }
}

/// Checks parameters that somebody tries without a profile.
///
/// # Errors
/// `validation_failed` with a pointer below `/parameters` for each that does not fit.
pub fn check_parameters(parameters: &Parameters) -> Result<()> {
    let errors: Vec<_> = wrong_parameters(parameters)
        .into_iter()
        .map(|(member, message)| FieldError {
            pointer: format!("/parameters/{}", escape(&member)),
            code: "invalid_value".into(),
            message,
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(Error::validation(errors)) }
}

/// The parameters that do not fit, and what they must be.
fn wrong_parameters(parameters: &Parameters) -> Vec<(String, String)> {
    let numbers = [
        ("temperature", parameters.temperature, 0.0, 2.0),
        ("top_p", parameters.top_p, 0.0, 1.0),
        ("presence_penalty", parameters.presence_penalty, -2.0, 2.0),
        ("frequency_penalty", parameters.frequency_penalty, -2.0, 2.0),
        ("max_output_tokens", parameters.max_output_tokens.map(f64::from), 1.0, 1_000_000.0),
    ];
    let out_of_range = |(name, value, least, most): (&str, Option<f64>, f64, f64)| {
        let is_wrong = value.is_some_and(|value| !(least..=most).contains(&value));
        is_wrong.then(|| (name.to_owned(), format!("must be from {least} to {most}")))
    };
    let mut wrong: Vec<_> = numbers.into_iter().filter_map(out_of_range).collect();
    if parameters.seed.is_some_and(|seed| seed.unsigned_abs() > SEED_MAX) {
        wrong.push(("seed".to_owned(), format!("must be from -{SEED_MAX} to {SEED_MAX}")));
    }
    if parameters.stop.len() > 16 || parameters.stop.iter().any(|stop| stop.is_empty() || stop.chars().count() > 200) {
        wrong.push(("stop".to_owned(), "must have at most 16 texts of 1 to 200 characters".to_owned()));
    }
    let extra = &parameters.extra;
    if let Some(name) = extra.keys().find(|name| is_ours(name)) {
        wrong.push(("extra".to_owned(), format!("must not contain `{name}`, which the server writes itself")));
    } else if extra.len() > EXTRA_MEMBERS_MAX || extra.keys().any(|name| name.is_empty() || name.len() > 100) {
        let rule = format!("must have at most {EXTRA_MEMBERS_MAX} members with names of 1 to 100 bytes");
        wrong.push(("extra".to_owned(), rule));
    } else if bounds::size(extra) > EXTRA_BYTES_MAX {
        wrong.push(("extra".to_owned(), format!("must have at most {EXTRA_BYTES_MAX} bytes of JSON")));
    }
    wrong
}

/// Headers that the client writes itself, or that belong to the connection.
const OUR_HEADERS: [&str; 14] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// The headers that cannot be sent, and why.
fn wrong_headers(headers: &BTreeMap<String, Option<String>>) -> impl Iterator<Item = (&str, String)> {
    let sent = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_deref()?)));
    sent.filter_map(|(name, value)| {
        let is_twice = headers.keys().any(|other| other != name && other.eq_ignore_ascii_case(name));
        let why = if OUR_HEADERS.iter().any(|ours| ours.eq_ignore_ascii_case(name)) {
            "is written by the server; a key belongs in `api_key`".to_owned()
        } else if name.len() > 100 || value.len() > HEADER_BYTES_MAX || header(name, value).is_none() {
            format!("must be a header of HTTP with at most {HEADER_BYTES_MAX} visible characters")
        } else if is_twice {
            "is there twice, in another spelling".to_owned()
        } else {
            return None;
        };
        Some((name, why))
    })
}

/// A profile has at most this many headers.
fn few_headers(headers: &BTreeMap<String, Option<String>>, _: &()) -> garde::Result {
    if headers.len() > HEADERS_MAX {
        return Err(garde::Error::new(format!("must have at most {HEADERS_MAX} headers")));
    }
    Ok(())
}

impl ModelView {
    /// Reads a row of `model_profile`.
    ///
    /// # Errors
    /// `internal` if the row does not fit its types.
    fn of(app: &Edge, tenant: Uuid, row: &PgRow) -> Result<Self> {
        let profile = Profile::open(row, tenant, &app.secrets)?;
        let ProfileSettings {
            endpoint,
            model,
            reply_mode,
            parameters,
            context_tokens,
            timeouts,
            prices,
            fallbacks,
            supports,
        } = profile.settings;
        let time = |at: OffsetDateTime| at.format(&Rfc3339).unwrap_or_default();
        Ok(Self {
            id: profile.id,
            slug: profile.slug,
            name: row.read("name")?,
            endpoint,
            has_api_key: profile.api_key.is_some() || profile.secrets_lost,
            secrets_lost: profile.secrets_lost,
            model,
            reply_mode,
            parameters,
            context_tokens,
            headers: profile.headers.into_keys().map(|name| (name, HIDDEN.to_owned())).collect(),
            timeouts,
            prices,
            fallbacks,
            supports,
            created_at: time(row.read("created_at")?),
            updated_at: time(row.read("updated_at")?),
            version: row.read("version")?,
        })
    }
}

/// A page of the tenant's profiles.
///
/// # Errors
/// `bad_request` for any other order than by creation.
pub async fn list(app: &Edge, tx: &TenantTx, page: &Page<NoFilter>) -> Result<Items<ModelView>> {
    let (sign, order) = if page.by_creation()? { ("<", "DESC") } else { (">", "ASC") };
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT * FROM model_profile WHERE tenant_id = $1 AND ($2::uuid IS NULL OR id {sign} $2) \
         AND {} AND ($5::timestamptz IS NULL OR updated_at >= $5) \
         ORDER BY id {order} LIMIT $3",
        contains(4, &["name", "slug"])
    )))
    .bind(tx.tenant())
    .bind(page.after.as_ref().map(|a| a.id))
    .bind(i64::try_from(page.limit + 1).unwrap_or(201))
    .bind(page.q.as_deref().map(pattern))
    .bind(page.updated_since)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let mut views = stored::each(&rows, |row| ModelView::of(app, tx.tenant(), row));
    let is_cut = budget::keep(&mut views) || page.has_more(&rows);
    Ok(page.finish(views, is_cut, |view| (view.id, None)))
}

async fn row(tx: &TenantTx, x: &str, lock: &'static str) -> Result<PgRow> {
    let sql = format!("SELECT * FROM model_profile WHERE tenant_id = $1 AND (id::text = $2 OR slug = $2) {lock}");
    let row =
        sqlx::query(AssertSqlSafe(sql)).bind(tx.tenant()).bind(x).fetch_optional(&mut *tx.connection().await).await?;
    row.ok_or_else(|| Error::not_found("model profile"))
}

/// One profile, by id or slug.
///
/// # Errors
/// `not_found`.
pub async fn get(app: &Edge, tx: &TenantTx, x: &str) -> Result<ModelView> {
    ModelView::of(app, tx.tenant(), &row(tx, x, "").await?)
}

/// The slug and the endpoint of a stored profile, to ask it something.
///
/// # Errors
/// `not_found`; `feature_disabled`; `quota_exceeded`; `llm_unavailable` if the endpoint or the model is not allowed.
pub async fn endpoint(app: &Edge, caller: &Caller, x: &str) -> Result<(String, Endpoint)> {
    app.llm.of(&app.pool, &app.secrets, &caller.tenant).await?.check_on()?;
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    app.limits.check_tokens(&tx, &caller.tenant).await?;
    let profile = Profile::open(&row(&tx, x, "").await?, tx.tenant(), &app.secrets)?;
    drop(tx);
    let endpoint = app.llm.endpoint_of(&profile, &caller.tenant, &app.secrets);
    Ok((profile.slug, endpoint.map_err(|why| Error::new(Code::LlmUnavailable, why))?))
}

/// Creates a profile.
///
/// # Errors
/// `validation_failed`, `slug_taken`, `quota_exceeded`.
pub async fn create(
    app: &Edge,
    caller: &Caller,
    input: &ModelInput,
    key: Option<&IdempotencyKey>,
) -> Result<http::Written<ModelView>> {
    check(input)?;
    let slug = input.slug.clone().or_else(|| slug_of(&input.name, "-"));
    let no_slug = || Error::invalid("/slug", "required", "No slug can be made from this name. Choose one.");
    let slug = slug.ok_or_else(no_slug)?;
    let made = http::write(app, caller, key, async |tx| {
        lock_tenant(tx).await?;
        let many: i64 = sqlx::query("SELECT count(*) AS many FROM model_profile WHERE tenant_id = $1")
            .bind(tx.tenant())
            .fetch_one(&mut *tx.connection().await)
            .await?
            .read("many")?;
        if usize::try_from(many).unwrap_or(usize::MAX) >= PROFILES_MAX {
            return Err(Error::new(
                Code::QuotaExceeded,
                format!("A tenant has at most {PROFILES_MAX} model profiles."),
            ));
        }
        let written = Written::of(app, tx, caller, input, &slug, None).await?;
        let row = sqlx::query(
            "INSERT INTO model_profile (tenant_id, id, slug, name, settings, api_key, headers) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *",
        )
        .bind(tx.tenant())
        .bind(clock::id())
        .bind(&slug)
        .bind(&input.name)
        .bind(written.settings)
        .bind(written.api_key)
        .bind(written.headers)
        .fetch_one(&mut *tx.connection().await)
        .await?;
        let view = ModelView::of(app, tx.tenant(), &row)?;
        Ok(Answer::created(format!("/v1/models/{}", view.slug), view.version, view))
    })
    .await?;
    app.keys.forget();
    Ok(made)
}

/// Changes a profile by a JSON merge patch.
///
/// # Errors
/// `not_found`, `precondition_failed`, `validation_failed`.
pub async fn update(app: &Edge, caller: &Caller, expected: &Expected, x: &str, patch: &Value) -> Result<ModelView> {
    let changed = tenancy::write(&app.pool, caller.actor(), async |tx| {
        lock_tenant(tx).await?;
        let stored = row(tx, x, "FOR NO KEY UPDATE").await?;
        let current = ModelView::of(app, tx.tenant(), &stored)?;
        expected.check(current.version)?;
        let before = Profile::open(&stored, tx.tenant(), &app.secrets)?;
        let shown = serde_json::to_value(&current).map_err(Error::internal)?;
        let read_only = ["id", "slug", "has_api_key", "secrets_lost", "created_at", "updated_at", "version"];
        let input: ModelInput = bounds::read(merge_patch::apply(shown, patch.clone(), &read_only)?)?;
        check(&input)?;
        let written =
            Written::of(app, tx, caller, &input, &current.slug, Some((&before, patch.get("api_key").is_some()))).await?;
        let row = sqlx::query(
            "UPDATE model_profile SET name = $3, settings = $4, api_key = $5, headers = $6 WHERE tenant_id = $1 AND id = $2 \
             RETURNING *",
        )
        .bind(tx.tenant())
        .bind(current.id)
        .bind(&input.name)
        .bind(written.settings)
        .bind(written.api_key)
        .bind(written.headers)
        .fetch_one(&mut *tx.connection().await)
        .await?;
        ModelView::of(app, tx.tenant(), &row)
    })
    .await?;
    app.keys.forget();
    Ok(changed)
}

/// Deletes a profile that nothing names.
///
/// # Errors
/// `not_found`, `precondition_failed`, `referenced`.
pub async fn delete(app: &Edge, caller: &Caller, expected: &Expected, x: &str) -> Result<()> {
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        // Both locks wait for those who begin to name the profile, such as a new campaign, so the check below sees them.
        sqlx::query("SELECT FROM tenant WHERE tenant_id = $1 FOR UPDATE")
            .bind(tx.tenant())
            .execute(&mut *tx.connection().await)
            .await?;
        // Its secrets need not be readable.
        let stored = row(tx, x, "FOR UPDATE").await?;
        expected.check(stored.read("version")?)?;
        references::check_unused(tx, stored.read("slug")?).await?;
        sqlx::query("DELETE FROM model_profile WHERE tenant_id = $1 AND id = $2")
            .bind(tx.tenant())
            .bind(stored.read::<Uuid>("id")?)
            .execute(&mut *tx.connection().await)
            .await?;
        Ok(())
    })
    .await?;
    app.keys.forget();
    Ok(())
}

/// Locks the tenant and raises its version: servers keep profiles in memory for each version of their tenant.
async fn lock_tenant(tx: &TenantTx) -> Result<()> {
    sqlx::query("UPDATE tenant SET name = name WHERE tenant_id = $1")
        .bind(tx.tenant())
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}

/// The columns of a profile that is written.
struct Written {
    settings: Value,
    api_key: Option<Vec<u8>>,
    headers: Option<Vec<u8>>,
}

impl Written {
    /// Checks what a profile refers to, and encrypts its secrets. `before` holds the stored profile, and whether the patch contains
    /// `api_key`.
    async fn of(
        app: &Edge,
        tx: &TenantTx,
        caller: &Caller,
        input: &ModelInput,
        slug: &str,
        before: Option<(&Profile, bool)>,
    ) -> Result<Self> {
        let input = input.clone();
        if let Some(endpoint) = &input.endpoint {
            let refused = |e: llm::EndpointRefused| Error::invalid("/endpoint", "endpoint_refused", e.to_string());
            app.llm.client().check_endpoint(endpoint).map_err(refused)?;
        } else {
            without_endpoint(&input)?;
        }
        let fallbacks: Vec<_> =
            input.fallbacks.iter().enumerate().map(|(n, slug)| (format!("/fallbacks/{n}"), slug.as_str())).collect();
        check_fallbacks(&fallbacks, slug)?;
        references::exist(tx, &fallbacks).await?;
        if before.is_some_and(|(stored, names_key)| stored.secrets_lost && !names_key) {
            let why = "The stored key and headers cannot be read any more. Write the key again, or null for none, and the headers.";
            return Err(Error::invalid("/api_key", "required", why));
        }
        // Secrets belong to their endpoint.
        let same = before.filter(|(stored, _)| match (&stored.settings.endpoint, &input.endpoint) {
            (Some(was), Some(is)) => Endpoint::is_same(was, is),
            _ => false,
        });
        let kept = same.filter(|(_, names_key)| !names_key).and_then(|(stored, _)| stored.api_key.clone());
        let api_key = input.api_key.clone().or(kept);
        let hidden = |name: &str| same.and_then(|(stored, _)| stored.headers.get(name)).cloned();
        let headers: BTreeMap<String, String> = input
            .headers
            .into_iter()
            .filter_map(|(name, value)| match value?.as_str() {
                HIDDEN => Some((name.clone(), hidden(&name)?)),
                value => Some((name, value.to_owned())),
            })
            .collect();
        let settings = ProfileSettings {
            endpoint: input.endpoint,
            model: input.model,
            reply_mode: input.reply_mode,
            parameters: input.parameters,
            context_tokens: input.context_tokens,
            timeouts: input.timeouts,
            prices: input.prices,
            fallbacks: input.fallbacks,
            supports: input.supports,
        };
        let stored = serde_json::to_value(&settings).map_err(Error::internal)?;
        let profile =
            Profile { id: Uuid::nil(), slug: slug.to_owned(), settings, api_key, headers, secrets_lost: false };
        let is_as_before = before.is_some_and(|(stored, _)| {
            stored.settings.endpoint.is_none() && stored.settings.model == profile.settings.model
        });
        if profile.settings.endpoint.is_none() && !is_as_before {
            let refused = |why| Error::invalid("/model", "model_not_allowed", why);
            app.llm.endpoint_of(&profile, &caller.tenant, &app.secrets).map_err(refused)?;
        }
        let seal = |text: &str| app.secrets.seal(tx.tenant(), text);
        let headers = serde_json::to_string(&profile.headers).map_err(Error::internal)?;
        Ok(Self {
            settings: stored,
            api_key: profile.api_key.as_deref().map(seal).transpose()?,
            headers: (!profile.headers.is_empty()).then(|| seal(&headers)).transpose()?,
        })
    }
}

/// Checks a profile that uses the endpoint of the tenant or of the operator: it brings no secrets, and nothing but parameters of sampling.
fn without_endpoint(input: &ModelInput) -> Result<()> {
    let refused = |pointer: &str, message: String| Err(Error::invalid(pointer, "invalid_value", message));
    if input.api_key.is_some() {
        return refused("/api_key", "A key belongs to an endpoint. Set `endpoint` too.".to_owned());
    }
    if input.headers.values().any(Option::is_some) {
        return refused("/headers", "Headers belong to an endpoint. Set `endpoint` too.".to_owned());
    }
    match input.parameters.extra.keys().find(|member| !is_sampling(member)) {
        Some(member) => refused(
            "/parameters/extra",
            format!(
                "`{member}` needs an endpoint of the profile's own. Without one, only parameters of sampling can be added."
            ),
        ),
        None => Ok(()),
    }
}

fn check_fallbacks(fallbacks: &[(String, &str)], own: &str) -> Result<()> {
    let mut errors = Vec::new();
    for (n, (pointer, slug)) in fallbacks.iter().enumerate() {
        let message = if *slug == own {
            "A profile cannot be its own fallback."
        } else if fallbacks.iter().take(n).any(|(_, before)| before == slug) {
            "This fallback is there twice."
        } else {
            continue;
        };
        let (pointer, code) = (pointer.clone(), "invalid_value".into());
        errors.push(FieldError { pointer, code, message: message.to_owned() });
    }
    if errors.is_empty() { Ok(()) } else { Err(Error::validation(errors)) }
}
