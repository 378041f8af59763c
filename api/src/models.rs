//! Which model answers a tenant's turns: the tenant's own, or the operator's, or the rehearsal model.

use std::borrow::Cow;

use crate::{
    error::{Code, Error, Result},
    llm::{BreakerState, Endpoint, LlmClient, LlmSettings, ReplyMode, Secret},
    secrets::Secrets,
    tenants::Tenant,
};

/// The client and the operator's endpoint.
pub struct Models {
    client: LlmClient,
    operator: Endpoint,
    reply_mode: ReplyMode,
}

impl Models {
    /// Prepares the client.
    ///
    /// # Errors
    /// `internal` if no TLS is to be had.
    pub fn new(settings: LlmSettings, operator: Endpoint, reply_mode: ReplyMode) -> Result<Self> {
        Ok(Self { client: LlmClient::new(settings).map_err(Error::internal)?, operator, reply_mode })
    }

    #[must_use]
    pub fn client(&self) -> &LlmClient {
        &self.client
    }

    /// How many endpoints are given up on for now.
    #[must_use]
    pub fn open_breakers(&self) -> i64 {
        let open = self.client.breaker_states().into_iter().filter(|b| b.state != BreakerState::Closed).count();
        i64::try_from(open).unwrap_or(i64::MAX)
    }

    /// The endpoint of a tenant. The operator's key goes to the operator's endpoint alone.
    ///
    /// # Errors
    /// `feature_disabled` if the tenant switched AI off; `llm_unavailable` if its endpoint is not allowed.
    pub fn endpoint<'a>(&'a self, tenant: &Tenant, secrets: &Secrets) -> Result<Cow<'a, Endpoint>> {
        if !tenant.settings.features.llm {
            return Err(Error::new(Code::FeatureDisabled, "AI turns are switched off for this tenant."));
        }
        let llm = &tenant.settings.llm;
        match (&llm.endpoint, &llm.model) {
            (None, None) => Ok(Cow::Borrowed(&self.operator)),
            (None, Some(model)) => Ok(Cow::Owned(Endpoint { model: model.clone(), ..self.operator.clone() })),
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
