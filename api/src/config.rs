//! Configuration from environment variables. All mistakes are reported at once, each with the variable's name.

use std::{cell::RefCell, env::VarError, net::SocketAddr, path::PathBuf, str::FromStr, sync::Arc, time::Duration};

use ai::{
    frontends::connected::FrontendSettings,
    state::{AiSettings, PlannerSettings, TurnSettings},
};
use base::secrets::Secrets;
use db::pool::BEGIN_WAIT;
use edge::{admission::AdmissionSettings, client::Proxies, connections::ConnectionSettings};
use llm::{AllowedHost, CallOptions, Endpoint, LlmSettings, OutputLimit, ReplyMode, Secret};

/// Looking more often would cost more than it is worth.
const SWEEP_EVERY_MIN: Duration = Duration::from_millis(50);

/// All settings of the server.
pub struct Config {
    pub bind: SocketAddr,
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

/// The text that `--help` prints after the commands.
pub const HELP: &str = "Environment:
  DATABASE_URL                     PostgreSQL 15 or newer; unset: the server runs a private cluster in the data directory
  MIGRATION_DATABASE_URL           the schema owner's URL, if the server connects as another role
  DATABASE_CONNECTIONS_MAX         16
  DATABASE_WAIT_MS                 3000: how long a request waits for one of these connections
  TAVERNKEEP_BIND                  127.0.0.1:8080
  TAVERNKEEP_DATA_DIR              ./data
  TAVERNKEEP_SECRET_KEY            at least 32 characters; two keys, separated by a comma, while rotating; unset: the server
                                   makes one and stores it in the data directory (replicas must share one)
  TAVERNKEEP_WORKERS               HTTP threads; unset: the number of cores
  TAVERNKEEP_TRUSTED_PROXIES       addresses and networks (10.0.0.0/8), separated by commas, whose X-Forwarded-For is
                                   trusted; unset: none
  TAVERNKEEP_CONNECTIONS_PER_ADDRESS_MAX  1000: connections of one address at a time, except trusted proxies; 0: no limit
  TAVERNKEEP_HEAD_TIMEOUT_MS       10000: how long the head of a request may take
  TAVERNKEEP_KEEP_ALIVE_MS         75000: how long a connection stays open for the next request
  TAVERNKEEP_BODY_TIMEOUT_MS       60000: how long the body of a request may take
  TAVERNKEEP_REQUESTS_MAX          concurrent requests; unset: 8 for each database connection, at least 64
  TAVERNKEEP_TURNS_MAX             256: concurrent turns, including those that wait for their place
  TAVERNKEEP_BODIES_MIB            128: request bodies in memory; one tenant gets at most half of it
  TAVERNKEEP_SHUTDOWN_SECONDS      30: how long the server waits for running work when it stops
  TAVERNKEEP_REACTION_LEASE_SECONDS 20: after how long another server does a reaction whose server died; 4 to 600
  TAVERNKEEP_SWEEP_MS              5000: how often the server looks for turns of servers that died
  TAVERNKEEP_METRICS_TOKEN         if set, /metrics requires it as a bearer token
  TAVERNKEEP_DEMO_API_KEY          sets the demo tenant's API key (tk_<8>_<43>)
  TAVERNKEEP_DEMO_PASSWORD         sets the password of the demo's user, demo@localhost; at least 10 characters
  TAVERNKEEP_PROMPT_CACHE_MIB      64
  TAVERNKEEP_TURN_STEPS_MAX        8: the most model calls of one turn
  TAVERNKEEP_TURN_EFFECTS_MAX      100000: rows that one turn may change; a broadcast changes one for each NPC; 1000 to 1000000
  TAVERNKEEP_JOURNAL_RETENTION_DAYS  unset: forever
  TAVERNKEEP_TURN_RETENTION_DAYS   30
  TAVERNKEEP_USAGE_RETENTION_DAYS  unset: forever
  TAVERNKEEP_BRIDGE_CONNECTIONS_MAX  1000: connected frontends of one tenant on one server
  TAVERNKEEP_BRIDGE_PING_SECONDS   20: time between two pings; a frontend that is silent for three times as long is disconnected
  TAVERNKEEP_BRIDGE_ROLL_TIMEOUT_MS  10000: how long a frontend may take to roll dice
  LLM_API_ENDPOINT                 base URL or chat-completions URL; unset: the rehearsal model answers
  LLM_API_KEY, LLM_MODEL_NAME      for that endpoint
  LLM_MODELS_ALLOWED               models, separated by commas, that tenants may name at that endpoint; unset: LLM_MODEL_NAME
  LLM_REPLY_MODE                   native (tool calls) or xml
  LLM_CONNECT_TIMEOUT_MS           3000
  LLM_FIRST_TOKEN_TIMEOUT_MS       20000
  LLM_TIMEOUT_MS                   60000
  LLM_OUTPUT_LIMIT_NAME            max_tokens; OpenAI's reasoning models want max_completion_tokens
  LLM_OUTPUT_TOKENS_MAX            4096: the most tokens of an answer, for models whose profile sets no limit of its own
  LLM_RETRIES                      2
  PLANNER_TIMEOUT_MS               6000: how long a player waits for a plan
  PLANNER_CACHE_SECONDS            30: for how long the same text of a player gets the same plan
  FEATURE_PLANNER_ENABLED          true; false disables the planner, as `tavernkeep planner off` does while servers run
  LLM_TENANT_HOSTS_ALLOWED         hosts that tenants may use as endpoints, separated by commas; unset: public https hosts
  LLM_TENANT_PRIVATE_ALLOWED       true lets tenants use private addresses; for development
  RUST_LOG                         info";

/// A value without the newline that ends the file it came from.
pub(crate) fn without_newline(mut value: String) -> String {
    if value.ends_with('\n') {
        value.pop();
        if value.ends_with('\r') {
            value.pop();
        }
    }
    value
}

struct Reader<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    errors: Vec<String>,
}

impl Reader<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.get)(name).map(without_newline).filter(|v| !v.trim().is_empty())
    }

    fn parsed<T: FromStr>(&mut self, name: &str, default: T, what: &str) -> T {
        match self.text(name).map(|v| v.trim().parse()) {
            None => default,
            Some(Ok(value)) => value,
            Some(Err(_)) => {
                self.errors.push(format!("{name} must be {what}"));
                default
            }
        }
    }

    fn millis(&mut self, name: &str, default: Duration) -> Duration {
        let ms = self.parsed(name, u64::try_from(default.as_millis()).unwrap_or(u64::MAX), "a number of milliseconds");
        if !(1..=3_600_000).contains(&ms) {
            self.errors.push(format!("{name} must be 1 to 3600000 milliseconds"));
        }
        Duration::from_millis(ms)
    }
}

impl Config {
    /// Reads the settings from the process's environment.
    ///
    /// # Errors
    /// One sentence for each mistake.
    pub fn from_env() -> Result<Self, Vec<String>> {
        let mistakes = RefCell::new(Vec::new());
        let config = Self::read(&|name| match std::env::var(name) {
            Ok(value) => Some(value),
            Err(VarError::NotPresent) => None,
            Err(VarError::NotUnicode(_)) => {
                mistakes.borrow_mut().push(format!("{name} is not UTF-8"));
                None
            }
        });
        let mistakes = mistakes.into_inner();
        match config {
            Ok(config) if mistakes.is_empty() => Ok(config),
            Ok(_) => Err(mistakes),
            Err(others) => Err([mistakes, others].concat()),
        }
    }

    /// Reads the settings through `get`.
    ///
    /// # Errors
    /// One sentence for each mistake.
    pub fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Self, Vec<String>> {
        let mut r = Reader { get, errors: Vec::new() };
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let usage_retention = r.parsed("TAVERNKEEP_USAGE_RETENTION_DAYS", 0u32, "a number of days");
        let retention = r.parsed("TAVERNKEEP_JOURNAL_RETENTION_DAYS", 0u32, "a number of days");
        let database_connections_max = r.parsed("DATABASE_CONNECTIONS_MAX", 16, "a number");
        let config = Self {
            bind: r.parsed(
                "TAVERNKEEP_BIND",
                SocketAddr::from(([127, 0, 0, 1], 8080)),
                "an address such as 127.0.0.1:8080",
            ),
            data_dir: r.text("TAVERNKEEP_DATA_DIR").unwrap_or_else(|| "./data".to_owned()).into(),
            database_url: database_url(&mut r, "DATABASE_URL"),
            migration_database_url: database_url(&mut r, "MIGRATION_DATABASE_URL"),
            database_connections_max,
            database_wait: r.millis("DATABASE_WAIT_MS", BEGIN_WAIT),
            secrets: secrets(&mut r),
            model: model(&mut r),
            models_allowed: listed(&r, "LLM_MODELS_ALLOWED"),
            reply_mode: r.parsed("LLM_REPLY_MODE", ReplyMode::Native, "native or xml"),
            llm: llm(&mut r),
            proxies: proxies(&mut r),
            connections: connections(&mut r),
            admission: admission(&mut r, database_connections_max),
            journal_retention_days: (retention > 0).then_some(retention),
            usage_retention_days: (usage_retention > 0).then_some(usage_retention),
            turn_retention_days: r.parsed("TAVERNKEEP_TURN_RETENTION_DAYS", 30, "a number of days"),
            demo_api_key: demo_key(&mut r),
            demo_password: demo_password(&mut r),
            metrics_token: r.text("TAVERNKEEP_METRICS_TOKEN"),
            ai: ai(&mut r),
            workers: r.parsed("TAVERNKEEP_WORKERS", cores, "a number").clamp(1, 256),
            shutdown_seconds: r.parsed("TAVERNKEEP_SHUTDOWN_SECONDS", 30, "a number of seconds"),
            sweep_every: r.millis("TAVERNKEEP_SWEEP_MS", Duration::from_secs(5)).max(SWEEP_EVERY_MIN),
        };
        if !(2..=1000).contains(&config.database_connections_max) {
            r.errors.push("DATABASE_CONNECTIONS_MAX must be 2 to 1000".to_owned());
        }
        if r.errors.is_empty() { Ok(config) } else { Err(r.errors) }
    }

    /// The name of the operator's model as `/readyz` and the startup message show it.
    #[must_use]
    pub fn llm_label(&self) -> &str {
        self.model.as_ref().map_or("rehearsal", |m| &m.model)
    }
}

fn database_url(r: &mut Reader<'_>, name: &str) -> Option<String> {
    match db::url::read(r.text(name)?.trim()) {
        Ok(url) => Some(url),
        Err(why) => {
            r.errors.push(format!("{name} {why}"));
            None
        }
    }
}

fn secrets(r: &mut Reader<'_>) -> Option<Secrets> {
    match Secrets::parse(&r.text("TAVERNKEEP_SECRET_KEY")?) {
        Ok(secrets) => Some(secrets),
        Err(why) => {
            r.errors.push(format!("TAVERNKEEP_SECRET_KEY {why}"));
            None
        }
    }
}

fn model(r: &mut Reader<'_>) -> Option<Endpoint> {
    let url = r.text("LLM_API_ENDPOINT")?;
    let Some(name) = r.text("LLM_MODEL_NAME") else {
        r.errors.push("LLM_MODEL_NAME must be set if LLM_API_ENDPOINT is set".to_owned());
        return None;
    };
    let output_limit =
        r.parsed("LLM_OUTPUT_LIMIT_NAME", OutputLimit::default(), "`max_tokens` or `max_completion_tokens`");
    match Endpoint::trusted(&url, r.text("LLM_API_KEY").map(Secret::new), name) {
        Ok(endpoint) => {
            let options = CallOptions { output_limit, ..CallOptions::default() };
            Some(Endpoint { options: Arc::new(options), ..endpoint })
        }
        Err(why) => {
            r.errors.push(format!("LLM_API_ENDPOINT: {why}"));
            None
        }
    }
}

fn demo_password(r: &mut Reader<'_>) -> Option<String> {
    let password = r.text("TAVERNKEEP_DEMO_PASSWORD")?;
    if !(10..=128).contains(&password.chars().count()) {
        r.errors.push("TAVERNKEEP_DEMO_PASSWORD must have 10 to 128 characters".to_owned());
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
            r.errors.push(format!("TAVERNKEEP_TRUSTED_PROXIES: `{wrong}` is neither an address nor a network"));
            Proxies::default()
        }
    }
}

fn connections(r: &mut Reader<'_>) -> ConnectionSettings {
    ConnectionSettings {
        per_address_max: r.parsed("TAVERNKEEP_CONNECTIONS_PER_ADDRESS_MAX", 1000, "a number"),
        head_timeout: r.millis("TAVERNKEEP_HEAD_TIMEOUT_MS", Duration::from_secs(10)),
        keep_alive: r.millis("TAVERNKEEP_KEEP_ALIVE_MS", Duration::from_secs(75)),
        body_timeout: r.millis("TAVERNKEEP_BODY_TIMEOUT_MS", Duration::from_secs(60)),
    }
}

fn admission(r: &mut Reader<'_>, connections: u32) -> AdmissionSettings {
    let requests = usize::try_from(connections).unwrap_or(usize::MAX).saturating_mul(8).max(64);
    let mib = r.parsed("TAVERNKEEP_BODIES_MIB", 128usize, "a number of MiB");
    // One tenant gets half of it, and that must be enough for the largest import.
    if mib < 64 {
        r.errors.push("TAVERNKEEP_BODIES_MIB must be at least 64".to_owned());
    }
    let settings = AdmissionSettings {
        requests_max: r.parsed("TAVERNKEEP_REQUESTS_MAX", requests, "a number"),
        turns_max: r.parsed("TAVERNKEEP_TURNS_MAX", 256, "a number"),
        body_bytes_max: mib.saturating_mul(1024 * 1024),
    };
    if settings.requests_max == 0 || settings.turns_max == 0 {
        r.errors.push("TAVERNKEEP_REQUESTS_MAX and TAVERNKEEP_TURNS_MAX must be at least 1".to_owned());
    }
    settings
}

fn ai(r: &mut Reader<'_>) -> AiSettings {
    let cache_mib = r.parsed("TAVERNKEEP_PROMPT_CACHE_MIB", 64usize, "a number of MiB");
    AiSettings {
        frontends: frontends(r),
        turns: TurnSettings {
            steps_max: r.parsed("TAVERNKEEP_TURN_STEPS_MAX", 8u32, "a number").clamp(1, 32),
            effects_max: r.parsed("TAVERNKEEP_TURN_EFFECTS_MAX", 100_000u64, "a number").clamp(1000, 1_000_000),
        },
        planner: planner(r),
        prompt_cache_bytes_max: cache_mib.saturating_mul(1024 * 1024),
        reaction_lease_seconds: r
            .parsed("TAVERNKEEP_REACTION_LEASE_SECONDS", 20u16, "a number of seconds")
            .clamp(4, 600),
    }
}

fn frontends(r: &mut Reader<'_>) -> FrontendSettings {
    let ping = r.parsed("TAVERNKEEP_BRIDGE_PING_SECONDS", 20u64, "a number of seconds");
    if !(1..=3600).contains(&ping) {
        r.errors.push("TAVERNKEEP_BRIDGE_PING_SECONDS must be 1 to 3600".to_owned());
    }
    FrontendSettings {
        connections_max: r.parsed("TAVERNKEEP_BRIDGE_CONNECTIONS_MAX", 1000, "a number"),
        ping: Duration::from_secs(ping.max(1)),
        roll_timeout: r.millis("TAVERNKEEP_BRIDGE_ROLL_TIMEOUT_MS", Duration::from_secs(10)),
    }
}

fn planner(r: &mut Reader<'_>) -> PlannerSettings {
    let kept = r.parsed("PLANNER_CACHE_SECONDS", 30u64, "a number of seconds");
    if kept > 3600 {
        r.errors.push("PLANNER_CACHE_SECONDS must be 0 to 3600".to_owned());
    }
    PlannerSettings {
        enabled: r.parsed("FEATURE_PLANNER_ENABLED", true, "true or false"),
        timeout: r.millis("PLANNER_TIMEOUT_MS", Duration::from_secs(6)),
        plan_kept: Duration::from_secs(kept),
    }
}

fn llm(r: &mut Reader<'_>) -> LlmSettings {
    let defaults = LlmSettings::default();
    let mut allowed_hosts = Vec::new();
    for host in listed(r, "LLM_TENANT_HOSTS_ALLOWED") {
        match host.parse::<AllowedHost>() {
            Ok(host) => allowed_hosts.push(host),
            Err(_) => r.errors.push(format!("LLM_TENANT_HOSTS_ALLOWED: `{host}` is not a host")),
        }
    }
    LlmSettings {
        connect_timeout: r.millis("LLM_CONNECT_TIMEOUT_MS", defaults.connect_timeout),
        first_token_timeout: r.millis("LLM_FIRST_TOKEN_TIMEOUT_MS", defaults.first_token_timeout),
        total_timeout: r.millis("LLM_TIMEOUT_MS", defaults.total_timeout),
        output_tokens_max: r
            .parsed("LLM_OUTPUT_TOKENS_MAX", defaults.output_tokens_max, "a number")
            .clamp(1, 1_000_000),
        retries: r.parsed("LLM_RETRIES", defaults.retries, "a number").min(10),
        allow_private: r.parsed("LLM_TENANT_PRIVATE_ALLOWED", false, "true or false"),
        allowed_hosts,
        ..defaults
    }
}

fn demo_key(r: &mut Reader<'_>) -> Option<String> {
    let key = r.text("TAVERNKEEP_DEMO_API_KEY")?;
    if edge::caller::keys::prefix_of(&key).is_none() {
        r.errors.push(
            "TAVERNKEEP_DEMO_API_KEY must have the form tk_<8 letters or digits>_<43 of A-Z a-z 0-9 - _>".to_owned(),
        );
    }
    Some(key)
}
