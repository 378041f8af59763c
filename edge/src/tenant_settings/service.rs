//! Reading and changing a tenant. Used by the API and the command line.

use serde_json::{Value, json};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::tenants::{Settings, Tenant};
use crate::{model_profiles, state::Edge, tenants::TenantLimits};
use base::{
    clock,
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use llm::Endpoint;

/// A tenant as the API shows it: settings, limits, and whether a provider key is stored, never the key.
///
/// # Errors
/// Those of the database.
pub async fn view(tx: &TenantTx, lock: bool) -> Result<(i64, Value)> {
    let sql = if lock {
        "SELECT * FROM tenant WHERE tenant_id = $1 FOR NO KEY UPDATE"
    } else {
        "SELECT * FROM tenant WHERE tenant_id = $1"
    };
    let row = sqlx::query(sql).bind(tx.tenant()).fetch_one(&mut *tx.connection().await).await?;
    let settings: Settings = row.read_json("settings")?;
    let limits: TenantLimits = row.read_json("limits")?;
    let version = row.read("version")?;
    let view = json!({
        "id": row.read::<Uuid>("tenant_id")?, "slug": row.read::<String>("slug")?, "name": row.read::<String>("name")?,
        "settings": settings, "limits": limits, "origins": row.read::<Vec<String>>("origins")?,
        "has_llm_api_key": row.read::<Option<Vec<u8>>>("llm_api_key")?.is_some(), "version": version,
    });
    Ok((version, view))
}

/// The new values of a tenant.
pub struct Change {
    pub name: String,
    pub settings: Settings,
    pub origins: Vec<String>,
    /// None keeps the provider's key if its endpoint stays; `Some(None)` removes it.
    pub llm_api_key: Option<Option<String>>,
}

/// Stores a validated change and encrypts the provider's key. The key belongs to its endpoint: if the endpoint changes
/// or is removed, and no new key is given, the key is removed.
///
/// # Errors
/// `validation_failed` for an endpoint or a model that the operator does not allow.
pub async fn store(app: &Edge, tx: &TenantTx, change: Change) -> Result<()> {
    let row = sqlx::query("SELECT settings FROM tenant WHERE tenant_id = $1 FOR NO KEY UPDATE")
        .bind(tx.tenant())
        .fetch_one(&mut *tx.connection().await)
        .await?;
    let before: Settings = row.read_json("settings")?;
    let (was, is) = (&before.llm, &change.settings.llm);
    if let (None, Some(model)) = (&is.endpoint, &is.model)
        && (was.endpoint.is_some() || was.model.as_ref() != Some(model))
    {
        let refused = |why| Error::invalid("/settings/llm/model", "model_not_allowed", why);
        app.llm.check_model(model).map_err(refused)?;
    }
    model_profiles::references::check(tx, &change.settings.models, "/settings/models", &before.models).await?;
    let is_same_endpoint = match (&was.endpoint, &is.endpoint) {
        (Some(was), Some(is)) => Endpoint::is_same(was, is),
        (None, None) => true,
        _ => false,
    };
    let sets_key = change.llm_api_key.is_some() || !is_same_endpoint;
    if let Some(endpoint) = &change.settings.llm.endpoint {
        app.llm
            .client()
            .check_endpoint(endpoint)
            .map_err(|e| Error::invalid("/settings/llm/endpoint", "endpoint_refused", e.to_string()))?;
    }
    let sealed = match &change.llm_api_key {
        Some(Some(key)) => Some(app.secrets.seal(tx.tenant(), key)?),
        _ => None,
    };
    let settings = serde_json::to_value(&change.settings).map_err(Error::internal)?;
    sqlx::query(
        "UPDATE tenant SET name = $2, settings = $3, origins = $4, \
         llm_api_key = CASE WHEN $5 THEN $6 ELSE llm_api_key END WHERE tenant_id = $1",
    )
    .bind(tx.tenant())
    .bind(change.name)
    .bind(settings)
    .bind(change.origins)
    .bind(sets_key)
    .bind(sealed)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(())
}

/// Creates a tenant. For the operator: the connection must be the schema owner's.
///
/// # Errors
/// `slug_taken`, or `validation_failed` for an invalid slug.
pub async fn create(db: impl PgExecutor<'_>, slug: &str, name: &str, limits: &TenantLimits) -> Result<Uuid> {
    if crate::http::validate::opt_slug(&Some(slug.to_owned()), &()).is_err() {
        return Err(Error::new(
            Code::ValidationFailed,
            format!("`{slug}` is not a valid slug. Use a-z, 0-9, _ and -."),
        ));
    }
    let id = clock::id();
    sqlx::query("INSERT INTO tenant (tenant_id, slug, name, limits) VALUES ($1, $2, $3, $4)")
        .bind(id)
        .bind(slug)
        .bind(name)
        .bind(serde_json::to_value(limits).map_err(Error::internal)?)
        .execute(db)
        .await?;
    Ok(id)
}

/// A tenant's id by its slug. For the operator.
///
/// # Errors
/// `not_found`.
pub async fn by_slug(db: impl PgExecutor<'_>, slug: &str) -> Result<(Uuid, TenantLimits)> {
    let row = sqlx::query("SELECT tenant_id, limits FROM tenant WHERE slug = $1").bind(slug).fetch_optional(db).await?;
    let row = row.ok_or_else(|| Error::not_found("tenant"))?;
    Ok((row.read("tenant_id")?, row.read_json("limits")?))
}

/// A tenant by its slug, as requests see it. For the operator.
///
/// # Errors
/// `not_found`.
pub async fn load(db: impl PgExecutor<'_>, slug: &str) -> Result<Tenant> {
    let row = sqlx::query(
        "SELECT tenant_id, version AS tenant_version, limits, settings, origins, llm_api_key, \
                ARRAY(SELECT s.name FROM operator_switch s WHERE NOT s.enabled) AS switched_off FROM tenant WHERE slug = $1",
    )
    .bind(slug)
    .fetch_optional(db)
    .await?;
    Tenant::from_row(&row.ok_or_else(|| Error::not_found("tenant"))?)
}

/// Switches a feature on or off for every tenant. Servers notice within a second. For the operator.
///
/// # Errors
/// Those of the database.
pub async fn switch(db: impl PgExecutor<'_>, feature: &str, enabled: bool) -> Result<()> {
    sqlx::query(
        "INSERT INTO operator_switch (name, enabled) VALUES ($1, $2) \
         ON CONFLICT (name) DO UPDATE SET enabled = $2, changed_at = now()",
    )
    .bind(feature)
    .bind(enabled)
    .execute(db)
    .await?;
    Ok(())
}

/// Sets a tenant's limits. For the operator.
///
/// # Errors
/// Those of the database.
pub async fn set_limits(db: impl PgExecutor<'_>, tenant: Uuid, limits: &TenantLimits) -> Result<()> {
    sqlx::query("UPDATE tenant SET limits = $2 WHERE tenant_id = $1")
        .bind(tenant)
        .bind(serde_json::to_value(limits).map_err(Error::internal)?)
        .execute(db)
        .await?;
    Ok(())
}
