//! Who names a profile: the tenant's settings, campaigns, NPCs, owners, other profiles. A profile cannot be deleted while something names it.

use base::{
    error::{Code, Error, FieldError, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use sqlx::postgres::PgRow;

use crate::tenants::tasks::TaskModels;

/// The most names that an error lists.
const NAMED_MAX: i64 = 100;

/// Checks that the profiles which somebody names exist. A choice that is unchanged from `before` is not checked.
///
/// # Errors
/// `validation_failed` that points to each unknown profile.
pub async fn check(tx: &TenantTx, wanted: &TaskModels, pointer: &str, before: &TaskModels) -> Result<()> {
    let named: Vec<_> = wanted.named().filter(|named| before.named().all(|stored| stored != *named)).collect();
    let pointers = named.iter().map(|(task, slug)| (format!("{pointer}/{task}"), *slug)).collect::<Vec<_>>();
    exist(tx, &pointers).await
}

/// Checks that profiles exist. Each comes with the pointer that an error shows.
///
/// # Errors
/// `validation_failed`.
pub async fn exist(tx: &TenantTx, named: &[(String, &str)]) -> Result<()> {
    if named.is_empty() {
        return Ok(());
    }
    let slugs: Vec<&str> = named.iter().map(|(_, slug)| *slug).collect();
    let rows = sqlx::query("SELECT slug FROM model_profile WHERE tenant_id = $1 AND slug = ANY ($2)")
        .bind(tx.tenant())
        .bind(&slugs)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let known: Vec<String> = stored::each(&rows, |row| row.read("slug"));
    let unknown = named.iter().filter(|(_, slug)| known.iter().all(|known| known != slug));
    let errors: Vec<_> = unknown
        .map(|(pointer, slug)| FieldError {
            pointer: pointer.clone(),
            code: "unknown_reference".into(),
            message: format!("There is no model profile `{slug}`."),
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(Error::validation(errors)) }
}

/// Checks that nothing names a profile.
///
/// # Errors
/// `referenced`, which lists who does.
pub async fn check_unused(tx: &TenantTx, slug: &str) -> Result<()> {
    let rows = sqlx::query(
        "SELECT * FROM ( \
            SELECT '/tenant/settings/models/' || m.key AS pointer, 'The tenant''s settings' AS who FROM tenant t, jsonb_each_text(t.settings -> 'models') m \
            WHERE t.tenant_id = $1 AND m.value = $2 \
            UNION ALL SELECT '/models/' || p.slug, 'The model profile `' || p.slug || '`' FROM model_profile p \
            WHERE p.tenant_id = $1 AND p.settings -> 'fallbacks' ? $2 \
            UNION ALL SELECT '/campaigns/' || c.slug || '/settings/models/' || m.key, 'The campaign `' || c.slug || '`' \
            FROM campaign c, jsonb_each_text(CASE WHEN jsonb_typeof(c.settings -> 'models') = 'object' THEN c.settings -> 'models' END) m \
            WHERE c.tenant_id = $1 AND c.removed_at IS NULL AND m.value = $2 \
            UNION ALL SELECT '/campaigns/' || c.slug || '/npcs/' || n.slug || '/model', 'The NPC `' || n.slug || '` of the campaign `' || c.slug || '`' \
            FROM npc n JOIN campaign c ON c.tenant_id = n.tenant_id AND c.id = n.campaign_id \
            WHERE n.tenant_id = $1 AND n.model = $2 AND c.removed_at IS NULL \
            UNION ALL SELECT '/campaigns/' || c.slug || '/owners/' || o.slug || '/model', 'The owner `' || o.slug || '` of the campaign `' || c.slug || '`' \
            FROM owner o JOIN campaign c ON c.tenant_id = o.tenant_id AND c.id = o.campaign_id \
            WHERE o.tenant_id = $1 AND o.model = $2 AND c.removed_at IS NULL) named \
         LIMIT $3",
    )
    .bind(tx.tenant())
    .bind(slug)
    .bind(NAMED_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let field = |row: &PgRow| {
        Ok(FieldError {
            pointer: row.read("pointer")?,
            code: "referenced".into(),
            message: format!("{} names it.", row.read::<&str>("who")?),
        })
    };
    let errors = stored::each(&rows, field);
    let Some(first) = errors.first() else { return Ok(()) };
    let detail = match errors.len() {
        1 => first.message.clone(),
        n => format!("{n} choices name it. {}", first.message),
    };
    let mut error = Error::new(Code::Referenced, detail);
    error.errors = errors;
    Err(error)
}
