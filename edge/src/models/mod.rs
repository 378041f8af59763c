//! Which model answers: the operator's, the tenant's, or that of a model profile.
//!
//! [`Models::of`] reads what a tenant has, once for each version of the tenant. [`TenantModels::choose`] is the one place that decides
//! which model is asked: the first named profile that exists (the entity's own, then the campaign's and the tenant's choice for the task),
//! and else what the tenant's own settings and the operator say.

pub mod profile;

use std::{collections::HashMap, sync::Arc, time::Duration};

use moka::future::Cache;
use uuid::Uuid;

use crate::tenants::{
    Prices, Tenant,
    tasks::{Task, TaskModels},
};
use base::{
    error::{Code, Error, Result},
    secrets::Secrets,
    stored::Columns,
};
use db::{pool::Pool, tenancy::TenantTx};
use llm::{
    BreakerState, CallOptions, Endpoint, LlmClient, LlmSettings, Parameters, ReplyMode, Secret, Window,
    parameters::is_sampling,
};
use profile::Profile;

/// Bytes of all profiles that are kept in memory, and how long they are kept unused.
const KEPT_BYTES_MAX: u64 = 64 * 1024 * 1024;
const KEPT_FOR: Duration = Duration::from_secs(300);
/// The most profiles of a tenant.
pub const PROFILES_MAX: usize = 100;

/// The client, the operator's endpoint, and the models that tenants may choose there.
pub struct Models {
    client: LlmClient,
    operator: Endpoint,
    allowed: Vec<String>,
    reply_mode: ReplyMode,
    /// What a tenant's profile cannot exceed at the operator's endpoint.
    limits: OperatorLimits,
    /// By tenant and its version. A change of a profile raises the version.
    tenants: Cache<(Uuid, i64), Arc<TenantModels>>,
}

/// The operator's limits of a call.
#[derive(Clone, Copy, Debug)]
struct OperatorLimits {
    output_tokens: u32,
    first_token: Duration,
    total: Duration,
}

/// A model that answers, and how.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The profile's slug; none for the tenant's or the operator's own settings.
    pub profile: Option<String>,
    pub endpoint: Endpoint,
    pub mode: ReplyMode,
    pub prices: Option<Prices>,
    /// Models that answer instead if this one cannot, in this order. Their own fallbacks are not asked.
    pub fallbacks: Vec<Arc<Choice>>,
}

/// Everything that may answer a tenant's turns.
pub struct TenantModels {
    /// Whether the tenant has AI turns at all.
    is_on: bool,
    /// The reply mode if no model can be chosen.
    mode: ReplyMode,
    /// What answers where no profile is named, or why nothing can.
    own: std::result::Result<Arc<Choice>, String>,
    profiles: HashMap<String, std::result::Result<Arc<Choice>, String>>,
    by_task: TaskModels,
    /// Stands in until a turn knows its campaign's choice. Nothing is asked of it.
    operator: Arc<Choice>,
    bytes: u32,
}

impl TenantModels {
    /// The model for a task. `named` are slugs of profiles, the nearest choice first. A slug that no profile has, such as one that an
    /// import brought, is passed over.
    ///
    /// # Errors
    /// `llm_unavailable` if the endpoint or model is not allowed.
    pub fn choose(&self, task: Task, named: &[Option<&str>]) -> Result<Arc<Choice>> {
        let slugs = named.iter().copied().chain([self.by_task.of(task)]).flatten();
        let chosen = slugs.into_iter().find_map(|slug| self.profiles.get(slug)).unwrap_or(&self.own);
        chosen.clone().map_err(|why| Error::new(Code::LlmUnavailable, why))
    }

    /// A profile by its slug; none if there is no such profile.
    #[must_use]
    pub fn profile(&self, slug: &str) -> Option<Result<Arc<Choice>>> {
        let found = self.profiles.get(slug)?.clone();
        Some(found.map_err(|why| Error::new(Code::LlmUnavailable, why)))
    }

    /// A choice to begin a turn with, before its campaign's choice is known. It may be one that cannot be asked.
    #[must_use]
    pub fn provisional(&self, task: Task, named: &[Option<&str>]) -> Arc<Choice> {
        self.choose(task, named).unwrap_or_else(|_| self.operator.clone())
    }

    /// The reply mode of the model for a task. If no model can be chosen, the tenant's default.
    #[must_use]
    pub fn mode(&self, task: Task, named: &[Option<&str>]) -> ReplyMode {
        self.choose(task, named).map_or(self.mode, |choice| choice.mode)
    }

    /// Whether the tenant has AI turns at all.
    ///
    /// # Errors
    /// `feature_disabled`.
    pub fn check_on(&self) -> Result<()> {
        if self.is_on {
            return Ok(());
        }
        Err(Error::new(Code::FeatureDisabled, "AI turns are switched off for this tenant."))
    }
}

impl Models {
    /// Creates the client.
    ///
    /// # Errors
    /// `internal` if TLS is not available.
    pub fn new(settings: LlmSettings, operator: Endpoint, allowed: Vec<String>, reply_mode: ReplyMode) -> Result<Self> {
        let limits = OperatorLimits {
            output_tokens: settings.output_tokens_max,
            first_token: settings.first_token_timeout,
            total: settings.total_timeout,
        };
        let client = LlmClient::new(settings).map_err(Error::internal)?;
        let tenants = Cache::builder()
            .max_capacity(KEPT_BYTES_MAX)
            .weigher(|_, models: &Arc<TenantModels>| models.bytes)
            .time_to_idle(KEPT_FOR)
            .build();
        Ok(Self { client, operator, allowed, reply_mode, limits, tenants })
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

    /// How long a call of an endpoint's model may take.
    #[must_use]
    pub fn total_timeout(&self, endpoint: &Endpoint) -> Duration {
        endpoint.options.total_timeout.unwrap_or(self.limits.total)
    }

    /// The context window of a model. None if its size is unknown.
    #[must_use]
    pub fn window(&self, choice: &Choice) -> Option<Window> {
        self.client.window(&choice.endpoint)
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

    /// Everything that may answer a tenant's turns. One statement if the tenant changed since the last call.
    ///
    /// # Errors
    /// `unavailable` when the database cannot be asked.
    pub async fn of(&self, pool: &Pool, secrets: &Secrets, tenant: &Tenant) -> Result<Arc<TenantModels>> {
        let key = (tenant.id, tenant.version);
        if let Some(known) = self.tenants.get(&key).await {
            return Ok(known);
        }
        let loading = self.tenants.try_get_with(key, async { self.load(pool, secrets, tenant).await.map(Arc::new) });
        Box::pin(loading).await.map_err(|shared: Arc<Error>| shared.for_another())
    }

    async fn load(&self, pool: &Pool, secrets: &Secrets, tenant: &Tenant) -> Result<TenantModels> {
        let tx = TenantTx::read(pool, tenant.id).await?;
        let rows = sqlx::query("SELECT * FROM model_profile WHERE tenant_id = $1 ORDER BY id LIMIT $2")
            .bind(tenant.id)
            .bind(i64::try_from(PROFILES_MAX).unwrap_or(i64::MAX))
            .fetch_all(&mut *tx.connection().await)
            .await?;
        let (mut profiles, mut broken, mut bytes) = (Vec::new(), Vec::new(), 2000);
        for row in &rows {
            match Profile::open(row, tenant.id, secrets) {
                Ok(profile) => {
                    bytes += profile.bytes();
                    profiles.push(profile);
                }
                Err(error) => {
                    tracing::error!(%error, cause = ?error.cause(), "a stored model profile cannot be read");
                    broken.push((row.read::<String>("slug")?, Err("The model profile cannot be read.".to_owned())));
                }
            }
        }
        let own = self.own(tenant, secrets);
        let choose = |profile: &Profile| self.profile(profile, own.as_ref(), tenant);
        let alone: HashMap<&str, _> = profiles.iter().map(|profile| (profile.slug.as_str(), choose(profile))).collect();
        let with_fallbacks = |profile: &Profile| {
            let named = profile.settings.fallbacks.iter().filter_map(|slug| alone.get(slug.as_str())?.clone().ok());
            let fallbacks = named.map(Arc::new).collect();
            Ok(Arc::new(Choice { fallbacks, ..choose(profile)? }))
        };
        let profiles =
            profiles.iter().map(|profile| (profile.slug.clone(), with_fallbacks(profile))).chain(broken).collect();
        let operator = Choice {
            profile: None,
            endpoint: self.operator.clone(),
            mode: self.reply_mode(tenant),
            prices: None,
            fallbacks: Vec::new(),
        };
        Ok(TenantModels {
            is_on: tenant.settings.features.llm,
            mode: self.reply_mode(tenant),
            own: own.map(Arc::new),
            profiles,
            by_task: tenant.settings.models.clone(),
            operator: Arc::new(operator),
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        })
    }

    /// What a tenant's own settings say. The operator's key is only ever sent to the operator's endpoint.
    fn own(&self, tenant: &Tenant, secrets: &Secrets) -> std::result::Result<Choice, String> {
        let llm = &tenant.settings.llm;
        let endpoint = match (&llm.endpoint, &llm.model) {
            (None, None) => self.operator.clone(),
            (None, Some(model)) => {
                // The model may no longer be allowed, although it was when the tenant set it.
                self.check_model(model)?;
                Endpoint { model: model.clone(), ..self.operator.clone() }
            }
            (Some(url), model) => {
                let key = tenant.llm_api_key.as_deref().map(|sealed| secrets.open(tenant.id, sealed)).transpose();
                let key = key.map_err(|_| "The tenant's key cannot be read.".to_owned())?;
                let model = model.clone().unwrap_or_else(|| "default".to_owned());
                Endpoint::untrusted(url, key.map(Secret::new), model).map_err(|e| e.to_string())?
            }
        };
        let mode = llm.reply_mode.unwrap_or(self.reply_mode);
        Ok(Choice { profile: None, endpoint, mode, prices: llm.prices, fallbacks: Vec::new() })
    }

    /// What a profile says. Without an endpoint of its own it uses that of the tenant's settings, with the key that belongs to it.
    fn profile(
        &self,
        profile: &Profile,
        own: std::result::Result<&Choice, &String>,
        tenant: &Tenant,
    ) -> std::result::Result<Choice, String> {
        if profile.secrets_lost {
            let why = "The key and the headers of the model profile cannot be read, because they were encrypted with another secret.";
            return Err(why.to_owned());
        }
        let settings = &profile.settings;
        let endpoint = match &settings.endpoint {
            Some(url) => {
                let model = settings.model.clone().unwrap_or_else(|| "default".to_owned());
                Endpoint::untrusted(url, profile.api_key.as_deref().map(Secret::new), model)
                    .map_err(|e| e.to_string())?
            }
            None => {
                let own = own.map_err(Clone::clone)?;
                let model = settings.model.clone().unwrap_or_else(|| own.endpoint.model.clone());
                if own.endpoint.trusted {
                    self.check_model(&model)?;
                }
                Endpoint { model, ..own.endpoint.clone() }
            }
        };
        let mut options = profile.options();
        options.caller = profile.id.to_string();
        if endpoint.trusted {
            self.within_limits(&mut options);
            options.output_limit = endpoint.options.output_limit;
        }
        let mode = profile.reply_mode().or(tenant.settings.llm.reply_mode).unwrap_or(self.reply_mode);
        Ok(Choice {
            profile: Some(profile.slug.clone()),
            endpoint: Endpoint { options: Arc::new(options), ..endpoint },
            mode,
            prices: settings.prices.or(tenant.settings.llm.prices),
            fallbacks: Vec::new(),
        })
    }

    /// At the operator's endpoint, whose key pays, the operator's limits hold: nothing but parameters of sampling is added, and no limit
    /// is raised.
    fn within_limits(&self, options: &mut CallOptions) {
        options.headers.clear();
        options.parameters.extra.retain(|member, _| is_sampling(member));
        let wanted = options.parameters.max_output_tokens.unwrap_or(self.limits.output_tokens);
        options.parameters.max_output_tokens = Some(wanted.min(self.limits.output_tokens));
        options.first_token_timeout = options.first_token_timeout.map(|wait| wait.min(self.limits.first_token));
        options.total_timeout = options.total_timeout.map(|wait| wait.min(self.limits.total));
    }

    /// The same model with other parameters for sampling. What an administrator set beside them (routing, the output limit) stays, and the
    /// operator's limits hold. Its fallbacks are not asked.
    #[must_use]
    pub fn with_parameters(&self, choice: &Choice, mut parameters: Parameters) -> Choice {
        let own = &choice.endpoint.options.parameters;
        parameters.extra.retain(|member, _| is_sampling(member));
        let kept = own.extra.iter().filter(|(member, _)| !is_sampling(member));
        parameters.extra.extend(kept.map(|(member, value)| (member.clone(), value.clone())));
        if let Some(limit) = own.max_output_tokens {
            parameters.max_output_tokens = Some(parameters.max_output_tokens.map_or(limit, |tried| tried.min(limit)));
        }
        let mut options = CallOptions { parameters, ..(*choice.endpoint.options).clone() };
        if choice.endpoint.trusted {
            let headers = std::mem::take(&mut options.headers);
            self.within_limits(&mut options);
            options.headers = headers;
        }
        let endpoint = Endpoint { options: Arc::new(options), ..choice.endpoint.clone() };
        Choice { endpoint, fallbacks: Vec::new(), ..choice.clone() }
    }

    /// The endpoint that a profile which is being written would use, for a check of it.
    ///
    /// # Errors
    /// A sentence that says why it cannot be used.
    pub fn endpoint_of(
        &self,
        profile: &Profile,
        tenant: &Tenant,
        secrets: &Secrets,
    ) -> std::result::Result<Endpoint, String> {
        let own = self.own(tenant, secrets);
        self.profile(profile, own.as_ref(), tenant).map(|choice| choice.endpoint)
    }

    /// How a tenant's models reply where no profile decides it.
    fn reply_mode(&self, tenant: &Tenant) -> ReplyMode {
        tenant.settings.llm.reply_mode.unwrap_or(self.reply_mode)
    }
}
