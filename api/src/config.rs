//! Reads the [`settings`]. All mistakes are reported at once, each with the variable's or the option's name.

use std::{cell::RefCell, fmt::Display, net::SocketAddr, path::PathBuf, str::FromStr, sync::Arc, time::Duration};

use actix_web::http::Uri;
use tracing_subscriber::EnvFilter;

use crate::settings::{self, Given};
use ai::{
    frontends::connected::FrontendSettings,
    state::{AiSettings, PlannerSettings, TurnSettings},
};
use base::secrets::Secrets;
use edge::{admission::AdmissionSettings, client::Proxies, connections::ConnectionSettings};
use llm::{AllowedHost, CallOptions, Endpoint, LlmSettings, OutputLimit, ReplyMode, Secret};

/// Looking more often would cost more than it is worth.
const SWEEP_MS_MIN: u64 = 50;
const MS_MAX: u64 = 3_600_000;
const WORKERS_MAX: usize = 256;

/// All settings of the server.
pub struct Config {
    pub bind: SocketAddr,
    /// Where people reach the server, without a slash at the end. `None`: where it listens.
    pub public_url: Option<String>,
    pub data_dir: PathBuf,
    /// `None`: use the embedded PostgreSQL.
    pub database_url: Option<String>,
    /// The schema owner's URL, if the server itself connects as another role.
    pub migration_database_url: Option<String>,
    pub database_connections_max: u32,
    /// How long a request waits for a connection to the database.
    pub database_wait: Duration,
    /// `None`: use a secret that is stored in the data directory.
    pub secrets: Option<Secrets>,
    /// `None`: use the rehearsal model.
    pub model: Option<Endpoint>,
    /// The models besides its own that tenants may name at the operator's endpoint.
    pub models_allowed: Vec<String>,
    pub reply_mode: ReplyMode,
    pub llm: LlmSettings,
    /// The proxies whose `X-Forwarded-For` is trusted.
    pub proxies: Proxies,
    pub connections: ConnectionSettings,
    pub admission: AdmissionSettings,
    pub journal_retention_days: Option<u32>,
    pub turn_retention_days: u32,
    /// `None`: keep forever.
    pub usage_retention_days: Option<u32>,
    pub demo_api_key: Option<String>,
    pub demo_password: Option<String>,
    pub metrics_token: Option<String>,
    pub ai: AiSettings,
    pub workers: usize,
    pub shutdown_seconds: u64,
    /// How often the server looks for turns that other servers left behind.
    pub sweep_every: Duration,
}

/// Where the text of a setting comes from, and how mistakes call it.
struct Reader<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    called: &'a dyn Fn(&str) -> String,
    mistakes: Vec<String>,
}

impl Reader<'_> {
    /// The text of a setting that has one: what was given, or else its default.
    fn text(&self, variable: &str) -> Option<String> {
        let default = settings::named(variable).map_or("", |setting| setting.default);
        let given = (self.get)(variable).and_then(settings::said);
        given.or_else(|| (!default.is_empty()).then(|| default.to_owned()))
    }

    /// Notes that a setting cannot be used: `why` goes on after its name.
    fn wrong(&mut self, variable: &str, why: impl Display) {
        self.mistakes.push(format!("{} {why}", (self.called)(variable)));
    }

    /// A setting without a default; `unset` if it has no text or one that cannot be used.
    fn parsed_or<T: FromStr>(&mut self, variable: &str, unset: T, what: &str) -> T {
        match self.text(variable).map(|text| text.trim().parse()) {
            None => unset,
            Some(Ok(value)) => value,
            Some(Err(_)) => {
                self.wrong(variable, format_args!("must be {what}"));
                unset
            }
        }
    }

    /// A setting with a default.
    fn parsed<T: FromStr + Default>(&mut self, variable: &str, what: &str) -> T {
        self.parsed_or(variable, T::default(), what)
    }

    fn number<T: FromStr + Default>(&mut self, variable: &str) -> T {
        self.fit(variable, |_| true, "")
    }

    /// A number with a default, if it is fit.
    fn fit<T: FromStr + Default>(&mut self, variable: &str, is_fit: impl Fn(&T) -> bool, limits: &str) -> T {
        match self.text(variable).map(|text| text.trim().parse()) {
            Some(Ok(value)) if is_fit(&value) => value,
            _ => {
                self.wrong(variable, format_args!("must be a number{limits}"));
                T::default()
            }
        }
    }

    fn within<T: FromStr + Default + PartialOrd + Display>(&mut self, variable: &str, min: T, max: T) -> T {
        self.fit(variable, |value| (&min..=&max).contains(&value), &format!(", {min} to {max}"))
    }

    fn at_least<T: FromStr + Default + PartialOrd + Display>(&mut self, variable: &str, min: T) -> T {
        self.fit(variable, |value| *value >= min, &format!(", at least {min}"))
    }

    fn millis(&mut self, variable: &str) -> Duration {
        Duration::from_millis(self.within(variable, 1, MS_MAX))
    }
}

impl Config {
    /// Reads the settings from the process's options and environment.
    ///
    /// # Errors
    /// One sentence for each mistake.
    pub fn given(given: &Given) -> Result<Self, Vec<String>> {
        let mistakes = RefCell::new(Vec::new());
        let called = |variable: &str| match settings::named(variable).filter(|_| given.has_option(variable)) {
            Some(setting) => format!("--{}", setting.option()),
            None => variable.to_owned(),
        };
        let get = |variable: &str| {
            given.text(variable).unwrap_or_else(|_| {
                mistakes.borrow_mut().push(format!("{} is not UTF-8", called(variable)));
                None
            })
        };
        let config = Self::read_as(&get, &called);
        let mistakes = mistakes.into_inner();
        match config {
            Ok(config) if mistakes.is_empty() => Ok(config),
            Ok(_) => Err(mistakes),
            Err(others) => Err([mistakes, others].concat()),
        }
    }

    /// Reads the settings through `get`, which knows the variables' texts.
    ///
    /// # Errors
    /// One sentence for each mistake.
    pub fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Self, Vec<String>> {
        Self::read_as(get, &ToOwned::to_owned)
    }

    fn read_as(get: &dyn Fn(&str) -> Option<String>, called: &dyn Fn(&str) -> String) -> Result<Self, Vec<String>> {
        let mut r = Reader { get, called, mistakes: Vec::new() };
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let database_connections_max = r.within("DATABASE_CONNECTIONS_MAX", 2, 1000);
        let workers = r.parsed_or("TAVERNKEEP_WORKERS", cores.min(WORKERS_MAX), "a number");
        if !(1..=WORKERS_MAX).contains(&workers) {
            r.wrong("TAVERNKEEP_WORKERS", format_args!("must be 1 to {WORKERS_MAX}"));
        }
        let config = Self {
            bind: r.parsed_or(
                "TAVERNKEEP_BIND",
                SocketAddr::from(([127, 0, 0, 1], 8080)),
                "an address such as 127.0.0.1:8080",
            ),
            public_url: public_url(&mut r),
            data_dir: r.text(settings::DATA_DIR).unwrap_or_default().into(),
            database_url: database_url(&mut r, "DATABASE_URL"),
            migration_database_url: database_url(&mut r, "MIGRATION_DATABASE_URL"),
            database_connections_max,
            database_wait: r.millis("DATABASE_WAIT_MS"),
            secrets: secrets(&mut r),
            model: model(&mut r),
            models_allowed: listed(&r, "LLM_MODELS_ALLOWED"),
            reply_mode: r.parsed("LLM_REPLY_MODE", "native or xml"),
            llm: llm(&mut r),
            proxies: proxies(&mut r),
            connections: connections(&mut r),
            admission: admission(&mut r, database_connections_max),
            journal_retention_days: Some(r.number("TAVERNKEEP_JOURNAL_RETENTION_DAYS")).filter(|days| *days > 0),
            usage_retention_days: Some(r.number("TAVERNKEEP_USAGE_RETENTION_DAYS")).filter(|days| *days > 0),
            turn_retention_days: r.number("TAVERNKEEP_TURN_RETENTION_DAYS"),
            demo_api_key: demo_key(&mut r),
            demo_password: demo_password(&mut r),
            metrics_token: r.text("TAVERNKEEP_METRICS_TOKEN"),
            ai: ai(&mut r),
            workers,
            shutdown_seconds: r.number("TAVERNKEEP_SHUTDOWN_SECONDS"),
            sweep_every: Duration::from_millis(r.within("TAVERNKEEP_SWEEP_MS", SWEEP_MS_MIN, MS_MAX)),
        };
        if r.text(settings::RUST_LOG).is_some_and(|levels| EnvFilter::try_new(levels).is_err()) {
            r.wrong(settings::RUST_LOG, "must be a level such as `info`, or levels such as `warn,tavernkeep=debug`");
        }
        if r.mistakes.is_empty() { Ok(config) } else { Err(r.mistakes) }
    }

    /// The name of the operator's model as `/readyz` and the startup message show it.
    #[must_use]
    pub fn llm_label(&self) -> &str {
        self.model.as_ref().map_or("rehearsal", |m| &m.model)
    }
}

fn public_url(r: &mut Reader<'_>) -> Option<String> {
    let text = r.text("TAVERNKEEP_PUBLIC_URL")?;
    let text = text.trim().trim_end_matches('/');
    // The parser drops a fragment.
    let is_fit = !text.contains('#')
        && text.parse().is_ok_and(|url: Uri| {
            let has_user = url.authority().is_some_and(|authority| authority.as_str().contains('@'));
            (text.starts_with("http://") || text.starts_with("https://"))
                && !has_user
                && url.path() == "/"
                && url.query().is_none()
        });
    if !is_fit {
        r.wrong("TAVERNKEEP_PUBLIC_URL", "must be an address such as https://tavern.example.org, without a path");
    }
    Some(text.to_owned())
}

fn database_url(r: &mut Reader<'_>, variable: &str) -> Option<String> {
    match db::url::read(r.text(variable)?.trim()) {
        Ok(url) => Some(url),
        Err(why) => {
            r.wrong(variable, why);
            None
        }
    }
}

fn secrets(r: &mut Reader<'_>) -> Option<Secrets> {
    match Secrets::parse(&r.text("TAVERNKEEP_SECRET_KEY")?) {
        Ok(secrets) => Some(secrets),
        Err(why) => {
            r.wrong("TAVERNKEEP_SECRET_KEY", why);
            None
        }
    }
}

fn model(r: &mut Reader<'_>) -> Option<Endpoint> {
    let url = r.text("LLM_API_ENDPOINT")?;
    let Some(name) = r.text("LLM_MODEL_NAME") else {
        r.wrong("LLM_MODEL_NAME", "must be set if LLM_API_ENDPOINT is set");
        return None;
    };
    let output_limit: OutputLimit = r.parsed("LLM_OUTPUT_LIMIT_NAME", "`max_tokens` or `max_completion_tokens`");
    match Endpoint::trusted(&url, r.text("LLM_API_KEY").map(Secret::new), name) {
        Ok(endpoint) => {
            let options = CallOptions { output_limit, ..CallOptions::default() };
            Some(Endpoint { options: Arc::new(options), ..endpoint })
        }
        Err(why) => {
            r.wrong("LLM_API_ENDPOINT", format_args!("cannot be used: {why}"));
            None
        }
    }
}

fn demo_password(r: &mut Reader<'_>) -> Option<String> {
    let password = r.text("TAVERNKEEP_DEMO_PASSWORD")?;
    if !(10..=128).contains(&password.chars().count()) {
        r.wrong("TAVERNKEEP_DEMO_PASSWORD", "must have 10 to 128 characters");
    }
    Some(password)
}

fn listed(r: &Reader<'_>, name: &str) -> Vec<String> {
    let text = r.text(name).unwrap_or_default();
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(ToOwned::to_owned).collect()
}

fn proxies(r: &mut Reader<'_>) -> Proxies {
    match Proxies::parse(&listed(r, "TAVERNKEEP_TRUSTED_PROXIES")) {
        Ok(proxies) => proxies,
        Err(wrong) => {
            r.wrong(
                "TAVERNKEEP_TRUSTED_PROXIES",
                format_args!("has `{wrong}`, which is neither an address nor a network"),
            );
            Proxies::default()
        }
    }
}

fn connections(r: &mut Reader<'_>) -> ConnectionSettings {
    ConnectionSettings {
        per_address_max: r.number("TAVERNKEEP_CONNECTIONS_PER_ADDRESS_MAX"),
        head_timeout: r.millis("TAVERNKEEP_HEAD_TIMEOUT_MS"),
        keep_alive: r.millis("TAVERNKEEP_KEEP_ALIVE_MS"),
        body_timeout: r.millis("TAVERNKEEP_BODY_TIMEOUT_MS"),
    }
}

fn admission(r: &mut Reader<'_>, connections: u32) -> AdmissionSettings {
    let requests = usize::try_from(connections).unwrap_or(usize::MAX).saturating_mul(8).max(64);
    // One tenant gets half of it, and that must be enough for the largest import.
    let mib: usize = r.at_least("TAVERNKEEP_BODIES_MIB", 64);
    let requests_max = r.parsed_or("TAVERNKEEP_REQUESTS_MAX", requests, "a number");
    if requests_max == 0 {
        r.wrong("TAVERNKEEP_REQUESTS_MAX", "must be at least 1");
    }
    AdmissionSettings {
        requests_max,
        turns_max: r.at_least("TAVERNKEEP_TURNS_MAX", 1),
        body_bytes_max: mib.saturating_mul(1024 * 1024),
    }
}

fn ai(r: &mut Reader<'_>) -> AiSettings {
    let cache_mib: usize = r.number("TAVERNKEEP_PROMPT_CACHE_MIB");
    AiSettings {
        frontends: frontends(r),
        turns: TurnSettings {
            steps_max: r.within("TAVERNKEEP_TURN_STEPS_MAX", 1, 32),
            effects_max: r.within("TAVERNKEEP_TURN_EFFECTS_MAX", 1000, 1_000_000),
        },
        planner: planner(r),
        prompt_cache_bytes_max: cache_mib.saturating_mul(1024 * 1024),
        reaction_lease_seconds: r.within("TAVERNKEEP_REACTION_LEASE_SECONDS", 4, 600),
    }
}

fn frontends(r: &mut Reader<'_>) -> FrontendSettings {
    FrontendSettings {
        connections_max: r.number("TAVERNKEEP_BRIDGE_CONNECTIONS_MAX"),
        ping: Duration::from_secs(r.within("TAVERNKEEP_BRIDGE_PING_SECONDS", 1, 3600)),
        roll_timeout: r.millis("TAVERNKEEP_BRIDGE_ROLL_TIMEOUT_MS"),
    }
}

fn planner(r: &mut Reader<'_>) -> PlannerSettings {
    PlannerSettings {
        enabled: r.parsed("FEATURE_PLANNER_ENABLED", "true or false"),
        timeout: r.millis("PLANNER_TIMEOUT_MS"),
        plan_kept: Duration::from_secs(r.within("PLANNER_CACHE_SECONDS", 0, 3600)),
    }
}

fn llm(r: &mut Reader<'_>) -> LlmSettings {
    let mut allowed_hosts = Vec::new();
    for host in listed(r, "LLM_TENANT_HOSTS_ALLOWED") {
        match host.parse::<AllowedHost>() {
            Ok(host) => allowed_hosts.push(host),
            Err(_) => r.wrong("LLM_TENANT_HOSTS_ALLOWED", format_args!("has `{host}`, which is not a host")),
        }
    }
    LlmSettings {
        connect_timeout: r.millis("LLM_CONNECT_TIMEOUT_MS"),
        first_token_timeout: r.millis("LLM_FIRST_TOKEN_TIMEOUT_MS"),
        total_timeout: r.millis("LLM_TIMEOUT_MS"),
        output_tokens_max: r.within("LLM_OUTPUT_TOKENS_MAX", 1, 1_000_000),
        retries: r.within("LLM_RETRIES", 0, 10),
        allow_private: r.parsed("LLM_TENANT_PRIVATE_ALLOWED", "true or false"),
        allowed_hosts,
        ..LlmSettings::default()
    }
}

fn demo_key(r: &mut Reader<'_>) -> Option<String> {
    let key = r.text("TAVERNKEEP_DEMO_API_KEY")?;
    if edge::caller::keys::prefix_of(&key).is_none() {
        r.wrong("TAVERNKEEP_DEMO_API_KEY", "must have the form tk_<8 letters or digits>_<43 of A-Z a-z 0-9 - _>");
    }
    Some(key)
}
