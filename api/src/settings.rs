//! All settings: their variables, defaults and meanings. `tavernkeep serve --help`, the options of `serve` and the defaults in
//! [`crate::config`] come from this list, and a test compares the table in `docs/operations.md` with it.
//!
//! Each setting is an environment variable, and an option of `serve` unless it may hold a secret: other users of the machine can see
//! the options of a running program.

use std::{collections::HashMap, env::VarError, ffi::OsString};

use clap::{Arg, ArgMatches, Command, parser::ValueSource, value_parser};

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// The environment variable.
    pub variable: &'static str,
    /// The value of a variable that is not set or empty. An empty text if there is no such value; `meaning` says then what happens.
    pub default: &'static str,
    /// What it means, with its unit and its limits, without a full stop.
    pub meaning: &'static str,
    pub is_secret: bool,
}

/// Settings that belong together.
#[derive(Debug)]
pub struct Group {
    pub heading: &'static str,
    pub settings: &'static [Setting],
}

const fn set(variable: &'static str, default: &'static str, meaning: &'static str) -> Setting {
    Setting { variable, default, meaning, is_secret: false }
}

const fn secret(variable: &'static str, meaning: &'static str) -> Setting {
    Setting { variable, default: "", meaning, is_secret: true }
}

/// All settings.
pub const ALL: &[Group] = &[
    Group {
        heading: "Address and data",
        settings: &[
            set("TAVERNKEEP_BIND", "127.0.0.1:8080", "address and port to listen on"),
            set(
                "TAVERNKEEP_PUBLIC_URL",
                "",
                "address at which people reach the server, such as https://tavern.example.org; links that the server gives out begin with it; unset: the address of the request, or for commands the one that it listens on",
            ),
            set(
                DATA_DIR,
                "./data",
                "directory of the private PostgreSQL cluster and of the secret that the server makes",
            ),
            secret(
                "DATABASE_URL",
                "PostgreSQL 15 or newer; unset: the server runs a private cluster in the data directory",
            ),
            secret("MIGRATION_DATABASE_URL", "the schema owner's URL, if the server connects as another role"),
            set("DATABASE_CONNECTIONS_MAX", "16", "most connections to the database; 2 to 1000"),
            set("DATABASE_WAIT_MS", "3000", "how long a request waits for one of these connections"),
        ],
    },
    Group {
        heading: "Secrets and the demo",
        settings: &[
            secret(
                "TAVERNKEEP_SECRET_KEY",
                "signs tokens and encrypts what tenants store: at least 32 characters; two keys, separated by a comma, while rotating; unset: the server makes one and keeps it in the data directory (replicas must share one)",
            ),
            secret("TAVERNKEEP_METRICS_TOKEN", "if set, /metrics requires it as a bearer token"),
            secret(
                "TAVERNKEEP_DEMO_API_KEY",
                "the demo tenant's API key, tk_<8>_<43>; unset: a random one, shown once",
            ),
            secret(
                "TAVERNKEEP_DEMO_PASSWORD",
                "the password of the demo's user, demo@localhost: 10 to 128 characters; unset: a random one, shown once",
            ),
        ],
    },
    Group {
        heading: "Connections and load",
        settings: &[
            set("TAVERNKEEP_WORKERS", "", "HTTP threads, 1 to 256; unset: the number of cores"),
            set(
                "TAVERNKEEP_TRUSTED_PROXIES",
                "",
                "addresses and networks (10.0.0.0/8), separated by commas, whose X-Forwarded-For is trusted; unset: none",
            ),
            set(
                "TAVERNKEEP_CONNECTIONS_PER_ADDRESS_MAX",
                "1000",
                "connections of one address at a time, except trusted proxies; 0: no limit",
            ),
            set("TAVERNKEEP_HEAD_TIMEOUT_MS", "10000", "how long the head of a request may take"),
            set("TAVERNKEEP_BODY_TIMEOUT_MS", "60000", "how long the body of a request may take"),
            set("TAVERNKEEP_KEEP_ALIVE_MS", "75000", "how long a connection stays open for the next request"),
            set(
                "TAVERNKEEP_REQUESTS_MAX",
                "",
                "concurrent requests; unset: 8 for each database connection, at least 64",
            ),
            set("TAVERNKEEP_TURNS_MAX", "256", "concurrent turns, including those that wait for their place"),
            set(
                "TAVERNKEEP_BODIES_MIB",
                "128",
                "request bodies in memory, at least 64; one tenant gets at most half of it",
            ),
            set(
                "TAVERNKEEP_BRIDGE_CONNECTIONS_MAX",
                "1000",
                "game frontends of one tenant that may be connected to one server",
            ),
            set(
                "TAVERNKEEP_BRIDGE_PING_SECONDS",
                "20",
                "time between two pings, 1 to 3600; a frontend that is silent for three times as long is disconnected",
            ),
            set("TAVERNKEEP_BRIDGE_ROLL_TIMEOUT_MS", "10000", "how long a frontend may take to roll dice"),
            set("TAVERNKEEP_SHUTDOWN_SECONDS", "30", "how long the server waits for running work when it stops"),
        ],
    },
    Group {
        heading: "Turns",
        settings: &[
            set("TAVERNKEEP_TURN_STEPS_MAX", "8", "most model calls of one turn, 1 to 32"),
            set(
                "TAVERNKEEP_TURN_EFFECTS_MAX",
                "100000",
                "rows that one turn may change, 1000 to 1000000; a broadcast changes one for each NPC",
            ),
            set(
                "TAVERNKEEP_PROMPT_CACHE_MIB",
                "96",
                "most memory for the prompts, and what they are made of, that are kept to be used again, in MiB",
            ),
            set(
                "TAVERNKEEP_REACTION_LEASE_SECONDS",
                "20",
                "after how many seconds another server takes over a reaction of an NPC whose server died, 4 to 600",
            ),
            set(
                "TAVERNKEEP_SWEEP_MS",
                "5000",
                "how often the server looks for turns of servers that died, at least 50",
            ),
        ],
    },
    Group {
        heading: "What is kept",
        settings: &[
            set("TAVERNKEEP_JOURNAL_RETENTION_DAYS", "0", "days that the journal of changes is kept; 0: forever"),
            set("TAVERNKEEP_TURN_RETENTION_DAYS", "30", "days that records of turns are kept"),
            set("TAVERNKEEP_USAGE_RETENTION_DAYS", "0", "days that usage is kept; 0: forever"),
        ],
    },
    Group {
        heading: "The model",
        settings: &[
            set(
                "LLM_API_ENDPOINT",
                "",
                "base URL or chat-completions URL of an OpenAI-compatible API; unset: a small built-in model answers, for trying things out",
            ),
            secret("LLM_API_KEY", "the key for LLM_API_ENDPOINT"),
            set("LLM_MODEL_NAME", "", "the model at LLM_API_ENDPOINT; must be set with it"),
            set(
                "LLM_MODELS_ALLOWED",
                "",
                "models, separated by commas, that tenants may name at LLM_API_ENDPOINT; unset: only LLM_MODEL_NAME",
            ),
            set("LLM_REPLY_MODE", "native", "native (tool calls) or xml"),
            set("LLM_CONNECT_TIMEOUT_MS", "3000", "how long connecting to a model may take"),
            set("LLM_FIRST_TOKEN_TIMEOUT_MS", "20000", "how long a model may take until its first token"),
            set("LLM_TIMEOUT_MS", "60000", "how long a call of a model may take"),
            set("LLM_RETRIES", "2", "how often a failed call is repeated, 0 to 10 times"),
            set(
                "LLM_OUTPUT_LIMIT_NAME",
                "max_tokens",
                "parameter that limits answers; OpenAI's reasoning models want max_completion_tokens",
            ),
            set(
                "LLM_OUTPUT_TOKENS_MAX",
                "4096",
                "most tokens of an answer, 1 to 1000000, for models whose profile sets no limit of its own",
            ),
            set(
                "LLM_TENANT_HOSTS_ALLOWED",
                "",
                "hosts that tenants may use as endpoints, separated by commas; unset: all public https hosts",
            ),
            set("LLM_TENANT_PRIVATE_ALLOWED", "false", "true lets tenants use private addresses; for development"),
        ],
    },
    Group {
        heading: "The planner",
        settings: &[
            set(
                "FEATURE_PLANNER_ENABLED",
                "true",
                "false disables the planner, as `tavernkeep planner off` does while servers run",
            ),
            set("PLANNER_TIMEOUT_MS", "6000", "how long a player waits for a plan"),
            set("PLANNER_CACHE_SECONDS", "30", "for how long the same text of a player gets the same plan, 0 to 3600"),
        ],
    },
    Group {
        heading: "The log",
        settings: &[set(
            RUST_LOG,
            "info,sqlx=warn,actix_server=warn",
            "what is logged: a level, or levels of modules separated by commas; commands other than `serve` log warnings unless it is set",
        )],
    },
];

/// The variable of the data directory. All commands that look for it take it as an option.
pub const DATA_DIR: &str = "TAVERNKEEP_DATA_DIR";
/// The variable of the log.
pub const RUST_LOG: &str = "RUST_LOG";

impl Setting {
    /// The option's name without the dashes: that of the variable, without the program's own prefix.
    #[must_use]
    pub fn option(&self) -> String {
        let name = self.variable.strip_prefix("TAVERNKEEP_").unwrap_or(self.variable);
        name.to_ascii_lowercase().replace('_', "-")
    }

    /// How the program asks `clap` for the option.
    fn id(&self) -> String {
        self.option().replace('-', "_")
    }

    fn argument(&self, heading: &'static str) -> Arg {
        let argument = Arg::new(self.id())
            .value_name(self.id().to_ascii_uppercase())
            .long(self.option())
            .env(self.variable)
            .hide_env_values(true)
            // Text that is not UTF-8 is reported with all other mistakes.
            .value_parser(value_parser!(OsString))
            .help(self.meaning)
            .help_heading(heading);
        if self.default.is_empty() { argument } else { argument.default_value(self.default) }
    }
}

/// A setting by its variable.
#[must_use]
pub fn named(variable: &str) -> Option<&'static Setting> {
    ALL.iter().flat_map(|group| group.settings).find(|setting| setting.variable == variable)
}

/// Gives `serve` an option for each setting but the secrets, and all commands that look for the data directory its option.
#[must_use]
pub fn add_to(mut command: Command) -> Command {
    let mut secrets = "Secrets, which are set by environment variables only:".to_owned();
    for group in ALL {
        for setting in group.settings {
            if setting.is_secret {
                secrets.push_str(&format!("\n  {}\n          {}", setting.variable, setting.meaning));
            } else if setting.variable == DATA_DIR {
                command = command.arg(setting.argument(group.heading).global(true));
            } else {
                command = command.mut_subcommand("serve", |serve| serve.arg(setting.argument(group.heading)));
            }
        }
    }
    secrets.push_str("\n\nTimes in milliseconds (…_MS) are 1 to 3600000.");
    command.mut_subcommand("serve", |serve| serve.after_help(secrets))
}

/// What was given to this process: options, and otherwise its environment.
#[derive(Debug, Default)]
pub struct Given(HashMap<&'static str, OsString>);

impl Given {
    /// The options of a command line that [`add_to`] describes.
    #[must_use]
    pub fn from(matches: &ArgMatches) -> Self {
        let mut given = HashMap::new();
        let levels = [Some(matches), matches.subcommand().map(|(_, of)| of)];
        for setting in ALL.iter().flat_map(|group| group.settings).filter(|setting| !setting.is_secret) {
            let id = setting.id();
            for matches in levels.into_iter().flatten() {
                // A blank option is none, as for variables.
                if let Ok(Some(text)) = matches.try_get_one::<OsString>(&id)
                    && matches.value_source(&id) == Some(ValueSource::CommandLine)
                    && text.to_str().is_none_or(|text| !text.trim().is_empty())
                {
                    given.insert(setting.variable, text.clone());
                }
            }
        }
        Self(given)
    }

    /// Whether a setting was given as an option.
    #[must_use]
    pub fn has_option(&self, variable: &str) -> bool {
        self.0.contains_key(variable)
    }

    /// A setting's text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn text(&self, variable: &str) -> Result<Option<String>, OsString> {
        match self.0.get(variable) {
            Some(text) => text.clone().into_string().map(Some),
            None => match std::env::var(variable) {
                Ok(text) => Ok(Some(text)),
                Err(VarError::NotPresent) => Ok(None),
                Err(VarError::NotUnicode(text)) => Err(text),
            },
        }
    }
}

/// What a setting's text says: without the newline that ends the file it came from. Nothing if that is blank.
pub(crate) fn said(mut text: String) -> Option<String> {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Some(text).filter(|text| !text.trim().is_empty())
}
