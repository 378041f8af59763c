//! What every turn needs while it opens and runs.

use std::sync::Arc;

use tokio::time::Instant;
use uuid::Uuid;

use super::{running::Asker, store::Place};
use crate::state::Ai;
use base::error::Result;
use edge::{caller::Caller, models::TenantModels};

/// What every turn needs while it opens and runs: who asks for it, how to reach them, and the models that the tenant may ask.
pub struct Cx<'a> {
    pub app: &'a Ai,
    pub caller: &'a Caller,
    pub asker: &'a Asker,
    pub models: Arc<TenantModels>,
}

impl<'a> Cx<'a> {
    /// Reads the tenant's models, which the server remembers.
    ///
    /// # Errors
    /// `feature_disabled` if the tenant's models are switched off.
    pub async fn new(app: &'a Ai, caller: &'a Caller, asker: &'a Asker) -> Result<Self> {
        let models = app.llm.of(&app.pool, &app.secrets, &caller.tenant).await?;
        models.check_on()?;
        Ok(Self { app, caller, asker, models })
    }
}

/// An attempt to open a turn.
#[derive(Clone, Copy)]
pub struct Start {
    pub place: Place,
    /// The turn's id, unless its key starts an earlier turn again.
    pub id: Uuid,
    pub at: Instant,
}
