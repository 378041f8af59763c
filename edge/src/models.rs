//! Which model answers a tenant's turns: the tenant's own, the operator's, or the rehearsal model.

use std::borrow::Cow;

use crate::tenants::Tenant;
use base::{
    error::{Code, Error, Result},
    secrets::Secrets,
};
use llm::{BreakerState, Endpoint, LlmClient, LlmSettings, ReplyMode, Secret};

/// The client, the operator's endpoint, and the models that tenants may choose there.
pub struct Models {
    client: LlmClient,
    operator: Endpoint,
    allowed: Vec<String>,
    reply_mode: ReplyMode,
}

impl Models {
    /// Creates the client.
    ///
    /// # Errors
    /// `internal` if TLS is not available.
    pub fn new(settings: LlmSettings, operator: Endpoint, allowed: Vec<String>, reply_mode: ReplyMode) -> Result<Self> {
        Ok(Self { client: LlmClient::new(settings).map_err(Error::internal)?, operator, allowed, reply_mode })
    }

    /// Checks that a tenant's turns may use a model at the operator's endpoint: its own model, or one that the operator
    /// allows.
    ///
    /// # Errors
    /// A sentence that lists the allowed models.
    pub fn check_model(&self, model: &str) -> std::result::Result<(), String> {
        if model == self.operator.model || self.allowed.iter().any(|allowed| allowed == model) {
            return Ok(());
        }
        let others = self.allowed.iter().filter(|allowed| **allowed != self.operator.model);
        let known: Vec<&str> = std::iter::once(&self.operator.model).chain(others).map(String::as_str).collect();
        Err(format!("The operator's endpoint does not offer the model `{model}`. It offers: {}.", known.join(", ")))
    }

    #[must_use]
    pub fn client(&self) -> &LlmClient {
        &self.client
    }

    /// The number of endpoints whose breaker is open.
    #[must_use]
    pub fn open_breakers(&self) -> i64 {
        let open = self.client.breaker_states().into_iter().filter(|b| b.state != BreakerState::Closed).count();
        i64::try_from(open).unwrap_or(i64::MAX)
    }

    /// The endpoint for a tenant's turns. The operator's key is only ever sent to the operator's endpoint.
    ///
    /// # Errors
    /// `feature_disabled` if the tenant switched AI off; `llm_unavailable` if its endpoint or model is not allowed.
    pub fn endpoint<'a>(&'a self, tenant: &Tenant, secrets: &Secrets) -> Result<Cow<'a, Endpoint>> {
        if !tenant.settings.features.llm {
            return Err(Error::new(Code::FeatureDisabled, "AI turns are switched off for this tenant."));
        }
        let llm = &tenant.settings.llm;
        match (&llm.endpoint, &llm.model) {
            (None, None) => Ok(Cow::Borrowed(&self.operator)),
            (None, Some(model)) => {
                // The model may no longer be allowed, although it was when the tenant set it.
                self.check_model(model).map_err(|why| Error::new(Code::LlmUnavailable, why))?;
                Ok(Cow::Owned(Endpoint { model: model.clone(), ..self.operator.clone() }))
            }
            (Some(url), model) => {
                let key = tenant.llm_api_key.as_deref().map(|sealed| secrets.open(tenant.id, sealed)).transpose()?;
                let model = model.clone().unwrap_or_else(|| "default".to_owned());
                Endpoint::untrusted(url, key.map(Secret::new), model)
                    .map(Cow::Owned)
                    .map_err(|e| Error::new(Code::LlmUnavailable, e.to_string()))
            }
        }
    }

    /// How a tenant's models reply.
    #[must_use]
    pub fn reply_mode(&self, tenant: &Tenant) -> ReplyMode {
        tenant.settings.llm.reply_mode.unwrap_or(self.reply_mode)
    }
}
