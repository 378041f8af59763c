//! The command line. Each command is a function; `serve` and the larger ones have files of their own.

mod address;
mod doctor;
mod erase;
mod interchange;
mod memory_eval;
mod model;
mod output;
mod players;
mod serve;
mod turn;
mod user;
mod with_postgres;

use std::{io::Write, net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use self::output::{failed, say};
use crate::{
    config::Config,
    database, demo, log, routes,
    settings::{self, Given},
};
use base::{
    clock,
    error::{Code, Error, Result},
    request_id::RequestId,
};
use edge::{
    auth::service::store_key,
    caller::{Scope, keys::NewKey},
    tenant_settings::service as tenants,
    tenants::TenantLimits,
};
use time::OffsetDateTime;
use world::player_links::operator::{self, Whom};

const SETTINGS_HELP: &str =
    "`tavernkeep serve --help` lists all settings. Other commands read what they need from the environment.";

/// The game-master backend for AI tabletop play.
#[derive(Parser)]
#[command(name = "tavernkeep", version, after_help = SETTINGS_HELP)]
struct Cli {
    /// Print JSON on standard output. An error is printed there as the API's problem document, and the exit status is not
    /// 0.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server.
    Serve,
    /// Bring the database's schema up to date, then exit.
    Migrate,
    /// Create the demo tenant and its campaign in the database.
    Demo,
    /// Create tenants and set their limits.
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Create and revoke API keys.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Create users of the editor and set their passwords.
    #[command(subcommand)]
    User(user::UserCommand),
    /// List, change and try a tenant's model profiles.
    Model {
        #[arg(long, global = true, default_value = demo::TENANT)]
        tenant: String,
        #[command(subcommand)]
        command: model::ModelCommand,
    },
    /// Make a link with which somebody plays a character in the browser, and print it. It lasts until it is revoked.
    PlayLink {
        #[arg(long, default_value = demo::TENANT)]
        tenant: String,
        #[arg(long, default_value = demo::CAMPAIGN)]
        campaign: String,
        /// The character's slug.
        #[arg(long, default_value = demo::PLAYER)]
        player: String,
        /// After how long the link ends, such as `30d`, `12h` or `5m`.
        #[arg(long)]
        expires_in: Option<String>,
        /// The server's public URL. Default: TAVERNKEEP_PUBLIC_URL, or the address that the running server listens on.
        #[arg(long)]
        url: Option<String>,
    },
    /// Plan and carry out a player's text, as `POST …/act` does. Works next to a running server.
    Act {
        #[command(flatten)]
        whom: players::Whom,
        /// Only plan the text; carry nothing out.
        #[arg(long)]
        dry_run: bool,
        /// The player's text.
        text: String,
    },
    /// Run a command as a player, as `POST …/commands/{name}` does. Works next to a running server.
    #[command(name = "command")]
    Give {
        #[command(flatten)]
        whom: players::Whom,
        /// The command's name; `list` prints all commands.
        name: String,
        /// Arguments as `name=value`, or one JSON object.
        arguments: Vec<String>,
    },
    /// Switch the planner on or off for all tenants. Running servers follow within a second.
    Planner { state: players::Switch },
    /// Let the configured model plan 150 sentences and print the results. Needs no database.
    PlannerEval {
        /// A JSON file with other sentences, in the format of the built-in one.
        #[arg(long)]
        utterances: Option<PathBuf>,
        /// Fail if fewer than this percentage are right.
        #[arg(long, default_value_t = 0.0)]
        at_least: f64,
    },
    /// Measure recall: for how many questions the memories in a budget of tokens hold what answers them. Asks 482 questions in three
    /// languages, or those of a file. Needs no database and no model.
    MemoryEval {
        /// A JSON file with other memories and questions:
        /// `{"worlds": [{"rows": [{"id", "text", "game_time"?}], "questions": [{"text", "evidence": [id], "language"}]}]}`.
        #[arg(long)]
        set: Option<PathBuf>,
        /// Fail if, in any language, less than this percentage of the questions have some of their evidence in 1000 tokens.
        #[arg(long, default_value_t = 0.0)]
        at_least: f64,
    },
    /// Erase a player's character or a user. Their words leave every table. This cannot be undone.
    #[command(subcommand)]
    Erase(erase::EraseCommand),
    /// Check the database and print problems that a person must solve: with the schema, with row security, and turns,
    /// erasures and deletions of campaigns that do not finish. The exit status is then not 0.
    Doctor,
    /// End turns that do not end by themselves.
    #[command(subcommand)]
    Turn(turn::TurnCommand),
    /// Write a whole campaign as one document.
    Export(interchange::ExportArgs),
    /// Import a campaign document, a character card or a lorebook.
    Import(interchange::ImportArgs),
    /// Serve the rehearsal model: a small deterministic model that speaks the OpenAI API.
    Rehearse {
        /// The address to listen on.
        #[arg(long, default_value = "127.0.0.1:8089")]
        bind: SocketAddr,
        /// A script of replies (see docs/rehearsal.md).
        #[arg(long)]
        script: Option<PathBuf>,
        /// How many requests to keep for GET /rehearsal/requests.
        #[arg(long, default_value_t = 1000)]
        record: usize,
    },
    /// Print the OpenAPI document.
    Openapi {
        /// Print the JSON Schema of the bridge's frames instead.
        #[arg(long)]
        bridge: bool,
    },
    /// Run a command with DATABASE_URL set to a private PostgreSQL, then stop it.
    WithPostgres {
        /// The cluster's directory.
        #[arg(long)]
        data_dir: PathBuf,
        /// The command to run.
        #[arg(required = true, trailing_var_arg = true)]
        command: Vec<String>,
    },
}

#[derive(Subcommand)]
enum TenantCommand {
    /// Create a tenant.
    Create {
        #[arg(long)]
        slug: String,
        #[arg(long)]
        name: String,
    },
    /// Set a tenant's limits. Limits that you do not give stay as they are. 0 means no limit.
    Limits {
        #[arg(long)]
        tenant: String,
        #[arg(long)]
        requests_per_minute: Option<u32>,
        #[arg(long)]
        tools_per_minute: Option<u32>,
        #[arg(long)]
        turns_per_minute: Option<u32>,
        #[arg(long)]
        planner_per_player_per_minute: Option<u32>,
        #[arg(long)]
        concurrent_turns: Option<u32>,
        #[arg(long)]
        tokens_per_day: Option<u64>,
        #[arg(long)]
        rows_per_kind: Option<u64>,
        /// The most reactions of NPCs and owners in a day (UTC).
        #[arg(long)]
        reactions_per_day: Option<u64>,
    },
}

#[derive(Subcommand)]
enum KeyCommand {
    /// Create a key and print it on standard output.
    Create {
        #[arg(long)]
        tenant: String,
        /// The scopes, separated by commas.
        #[arg(long, value_delimiter = ',', required = true)]
        scopes: Vec<String>,
        /// How long the key is valid: a number and s, m, h or d.
        #[arg(long)]
        expires_in: Option<String>,
        #[arg(long, default_value = "")]
        name: String,
    },
    /// Revoke a key by its prefix (the eight characters after `tk_`).
    Revoke { prefix: String },
}

/// Runs the command line.
#[must_use]
pub fn main() -> ExitCode {
    let matches = settings::add_to(Cli::command()).get_matches();
    let (cli, given) = (Cli::from_arg_matches(&matches).unwrap_or_else(|wrong| wrong.exit()), Given::from(&matches));
    let (is_serve, json) = (matches!(cli.command, Command::Serve), cli.json);
    let _written = log::start(is_serve, &given);
    let code = match actix_web::rt::System::new().block_on(run(cli, &given)) {
        Ok(code) => code,
        Err(error) => failed(json, &error, &RequestId::generate()),
    };
    // A server goes on if nobody reads what it prints. A command has nothing else to give.
    if !is_serve && output::was_lost() { ExitCode::FAILURE } else { code }
}

async fn run(cli: Cli, given: &Given) -> Result<ExitCode> {
    let json = cli.json;
    match cli.command {
        Command::Openapi { bridge } => return print_openapi(bridge).map(|()| ExitCode::SUCCESS),
        Command::WithPostgres { data_dir, command } => return with_postgres::run(&data_dir, &command).await,
        Command::Rehearse { bind, script, record } => return rehearse(bind, script, record).await,
        _ => {}
    }
    let mut config = match Config::given(given) {
        Ok(config) => config,
        Err(mistakes) => {
            mistakes.iter().for_each(output::complain);
            return Ok(ExitCode::from(2));
        }
    };
    match cli.command {
        Command::Serve => return serve::run(config).await,
        Command::PlannerEval { utterances, at_least } => {
            return players::evaluate(&config, utterances.as_deref(), at_least, json).await;
        }
        Command::MemoryEval { set, at_least } => return memory_eval::run(set.as_deref(), at_least, json),
        _ => {}
    }
    let url = owner_url(&config).await?;
    match cli.command {
        Command::Migrate => {
            database::migrate(&url, config.database_url.as_deref().unwrap_or(&url)).await?;
            say(json, &serde_json::json!({ "migrated": true }), "The schema is up to date.");
        }
        Command::Demo => make_demo(&config, &url, json).await?,
        Command::PlayLink { tenant, campaign, player, expires_in, url: server } => {
            let whom = Whom { tenant: &tenant, campaign: &campaign, player: &player };
            let expires_at = expires_in.as_deref().map(ends_in).transpose()?;
            print_play_link(&mut config, &url, (whom, expires_at), server, json).await?;
        }
        Command::Act { whom, dry_run, text } => return players::act(config, &url, &whom, (text, dry_run), json).await,
        Command::Give { whom, name, arguments } => {
            return players::command(config, &url, &whom, (&name, &arguments), json).await;
        }
        Command::Model { tenant, command } => return model::run(config, &url, &tenant, &command, json).await,
        Command::Doctor => return doctor::run(&url, json).await,
        Command::Turn(command) => return turn::run(&config, &url, &command, json).await,
        Command::Erase(whom) => return erase::run(config, &url, &whom, json).await,
        Command::Planner { state } => database::in_time(players::switch(&url, state, json)).await?,
        Command::Export(args) => {
            interchange::export(&url, config.database_url.as_deref().unwrap_or(&url), args).await?;
        }
        Command::Import(args) => {
            let report = interchange::import(&url, config.database_url.as_deref().unwrap_or(&url), &args).await?;
            interchange::tell(json, &report)?;
        }
        Command::Tenant(command) => database::in_time(tenant(&url, command, json)).await?,
        Command::Key(command) => database::in_time(key(&url, command, json)).await?,
        Command::User(command) => database::in_time(user::run(&url, command, json)).await?,
        Command::Serve
        | Command::Openapi { .. }
        | Command::PlannerEval { .. }
        | Command::MemoryEval { .. }
        | Command::WithPostgres { .. }
        | Command::Rehearse { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn print_openapi(bridge: bool) -> Result<()> {
    let text = if bridge {
        serde_json::to_string_pretty(&routes::frames()?).map_err(Error::internal)? + "\n"
    } else {
        routes::published_yaml()?
    };
    std::io::stdout().write_all(text.as_bytes()).map_err(Error::internal)
}

/// Makes the demo world and prints how to get into it.
async fn make_demo(config: &Config, url: &str, json: bool) -> Result<()> {
    let app_url = config.database_url.as_deref().unwrap_or(url);
    database::migrate(url, app_url).await?;
    let pool = database::connect(app_url, 2).await?;
    let made = demo::ensure(url, &pool, &demo::Fixed::of(config)).await?;
    let mut text = match &made.api_key {
        Some(key) => format!("The demo is ready. API key: {key}"),
        None => "The demo already exists. Its API key was shown when it was created.".to_owned(),
    };
    if let Some(password) = &made.password {
        text.push_str(&format!("\nEditor: {} with the password {password}", demo::EMAIL));
    }
    let password = &made.password;
    let made = serde_json::json!({
        "api_key": made.api_key, "is_new": made.is_new, "email": demo::EMAIL, "password": password,
    });
    say(json, &made, &text);
    Ok(())
}

/// Prints a link with which a player plays one character.
async fn print_play_link(
    config: &mut Config,
    url: &str,
    (whom, expires_at): (Whom<'_>, Option<OffsetDateTime>),
    server: Option<String>,
    json: bool,
) -> Result<()> {
    let secrets = serve::secrets_of(config)?;
    let made = database::in_time(async {
        let mut db = database::as_owner(url).await?;
        let server = match server {
            Some(server) => server,
            None => address::of_server(config, &mut db).await?,
        };
        Ok((server, operator::make(&mut db, &secrets, whom, "", expires_at).await?))
    });
    let (server, link) = made.await?;
    let link = format!("{}{link}", server.trim_end_matches('/'));
    say(json, &serde_json::json!({ "link": link }), &link);
    Ok(())
}

/// The schema owner's database: the one in the environment, or that of a server running on the data directory.
async fn owner_url(config: &Config) -> Result<String> {
    if let Some(url) = config.migration_database_url.as_ref().or(config.database_url.as_ref()) {
        return Ok(url.clone());
    }
    let running = pgcluster::connection_url_of_running(&config.data_dir).await.map_err(Error::internal)?;
    running.ok_or_else(|| {
        let dir = config.data_dir.display();
        Error::new(
            Code::Unavailable,
            format!("No server is running on {dir}. Start `tavernkeep serve`, or set DATABASE_URL or --data-dir."),
        )
    })
}

async fn tenant(url: &str, command: TenantCommand, json: bool) -> Result<()> {
    let mut db = database::as_owner(url).await?;
    match command {
        TenantCommand::Create { slug, name } => {
            let id = tenants::create(&mut db, &slug, &name, &TenantLimits::default()).await?;
            say(json, &serde_json::json!({ "id": id, "slug": slug, "name": name }), &id.to_string());
        }
        TenantCommand::Limits {
            tenant,
            requests_per_minute,
            tools_per_minute,
            turns_per_minute,
            planner_per_player_per_minute,
            concurrent_turns,
            tokens_per_day,
            rows_per_kind,
            reactions_per_day,
        } => {
            let (id, now) = tenants::by_slug(&mut db, &tenant).await?;
            let limits = TenantLimits {
                requests_per_minute: requests_per_minute.unwrap_or(now.requests_per_minute),
                tools_per_minute: tools_per_minute.unwrap_or(now.tools_per_minute),
                turns_per_minute: turns_per_minute.unwrap_or(now.turns_per_minute),
                planner_per_player_per_minute: planner_per_player_per_minute
                    .unwrap_or(now.planner_per_player_per_minute),
                concurrent_turns: concurrent_turns.unwrap_or(now.concurrent_turns),
                tokens_per_day: tokens_per_day.unwrap_or(now.tokens_per_day),
                rows_per_kind: rows_per_kind.unwrap_or(now.rows_per_kind),
                reactions_per_day: reactions_per_day.unwrap_or(now.reactions_per_day),
            };
            tenants::set_limits(&mut db, id, &limits).await?;
            let shown = serde_json::to_value(&limits).map_err(Error::internal)?;
            say(json, &shown, &shown.to_string());
        }
    }
    Ok(())
}

async fn key(url: &str, command: KeyCommand, json: bool) -> Result<()> {
    let mut db = database::as_owner(url).await?;
    match command {
        KeyCommand::Create { tenant, scopes, expires_in, name } => {
            let mut parsed = Vec::new();
            for scope in scopes.iter().map(|s| s.trim()) {
                let known = Scope::parse(scope);
                parsed.push(
                    known.ok_or_else(|| Error::new(Code::ValidationFailed, format!("`{scope}` is not a scope.")))?,
                );
            }
            let expires_at = expires_in.as_deref().map(ends_in).transpose()?;
            let (id, _) = tenants::by_slug(&mut db, &tenant).await?;
            let new = NewKey::generate();
            store_key(&mut db, id, &new, &name, &parsed, expires_at).await?;
            say(json, &serde_json::json!({ "key": new.key, "prefix": new.prefix, "tenant": tenant }), &new.key);
        }
        KeyCommand::Revoke { prefix } => {
            let prefix = prefix.strip_prefix("tk_").unwrap_or(&prefix);
            let prefix = prefix.split('_').next().unwrap_or(prefix);
            let done = sqlx::query("UPDATE api_key SET revoked_at = coalesce(revoked_at, now()) WHERE prefix = $1")
                .bind(prefix)
                .execute(&mut db)
                .await?;
            if done.rows_affected() == 0 {
                return Err(Error::not_found("API key"));
            }
            say(json, &serde_json::json!({ "prefix": prefix, "revoked": true }), "revoked");
        }
    }
    Ok(())
}

/// The end of a duration that begins now.
fn ends_in(text: &str) -> Result<OffsetDateTime> {
    Ok(clock::later(clock::now(), duration(text)?))
}

/// Parses a duration such as `30d`, `12h`, `5m` or `90s`.
fn duration(text: &str) -> Result<time::Duration> {
    let wrong = || {
        Error::new(
            Code::ValidationFailed,
            format!("`{text}` is not a duration. Use a number and s, m, h or d, at most 3650d."),
        )
    };
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let number: i64 = text.trim_end_matches(unit).parse().map_err(|_| wrong())?;
    let total = number.checked_mul(seconds).filter(|s| (1..=315_360_000).contains(s)).ok_or_else(wrong)?;
    Ok(time::Duration::seconds(total))
}

async fn rehearse(bind: SocketAddr, script: Option<PathBuf>, record: usize) -> Result<ExitCode> {
    let script = match script {
        None => rehearsal::Script::default(),
        Some(path) => {
            let text = std::fs::read_to_string(&path)
                .map_err(|e| Error::new(Code::BadRequest, format!("{}: {e}", path.display())))?;
            rehearsal::Script::from_json(&text)
                .map_err(|e| Error::new(Code::BadRequest, format!("{}: {e}", path.display())))?
        }
    };
    let options = rehearsal::Options { bind, script, record_requests_max: record, ..rehearsal::Options::default() };
    let model = rehearsal::start(options).await.map_err(Error::internal)?;
    output::print(format_args!("The rehearsal model answers at {}", model.base_url()));
    serve::interrupted().await;
    model.stop().await;
    Ok(ExitCode::SUCCESS)
}
