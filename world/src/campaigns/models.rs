//! The model profiles that a campaign names.

use serde_json::Value;

use base::{error::Result, json::escape};
use db::tenancy::TenantTx;
use edge::{caller::Caller, model_profiles::references, state::Edge};

/// Checks that the model profiles exist which a client names. Those in a file may not: they are passed over.
///
/// # Errors
/// `validation_failed` that points to each unknown profile.
pub async fn check(app: &Edge, caller: &Caller, models: Option<&Value>) -> Result<()> {
    let named = models.and_then(Value::as_object).into_iter().flatten();
    let named = named.filter_map(|(task, slug)| Some((format!("/settings/models/{}", escape(task)), slug.as_str()?)));
    let named: Vec<_> = named.collect();
    if named.is_empty() {
        return Ok(());
    }
    references::exist(&TenantTx::read(&app.pool, caller.tenant_id()).await?, &named).await
}
