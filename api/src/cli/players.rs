//! Players' actions from the command line: `act` and `command`, with the API's services and answers; the planner's switch and its
//! evaluation.
//!
//! These commands can run next to a server on the same database. Their turns are kept alive like a server's.

use std::{path::Path, process::ExitCode, sync::Arc};

use clap::{Args, ValueEnum};
use rand::RngExt;
use serde::Serialize;
use serde_json::json;
use sqlx::Connection;

use super::{
    output::{failed, say},
    serve,
};
use crate::{app::App, config::Config, database, demo, ops::maintenance};
use ai::{
    commands::{self, arguments::of_words, service},
    planner::{
        act::act as act_on,
        answer::{ActView, Outcome},
        evaluate as evaluation,
        request::{ActRequest, SWITCH},
    },
    turns::running::Asker,
};
use base::error::{Code, Error, Result};
use edge::{caller::Caller, http::Written, tenant_settings::service as tenants};
use llm::LlmClient;

/// Database connections of a command.
const CONNECTIONS: u32 = 3;

/// On whose behalf to act.
#[derive(Args)]
pub(super) struct Whom {
    #[arg(long, default_value = demo::TENANT)]
    tenant: String,
    /// The campaign, by id or slug.
    #[arg(long, default_value = demo::CAMPAIGN)]
    campaign: String,
    /// The player character, by id or slug.
    #[arg(long, default_value = demo::PLAYER)]
    player: String,
    /// The scene in which it happens, by id or slug.
    #[arg(long)]
    scene: Option<String>,
    /// A frontend's channel, instead of a scene.
    #[arg(long)]
    channel: Option<String>,
}

/// On or off.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

/// A server without HTTP, and the operator as its caller.
pub(super) struct Table {
    pub(super) app: Arc<App>,
    pub(super) caller: Caller,
    rehearsing: Option<rehearsal::Rehearsal>,
}

impl Table {
    pub(super) async fn open(mut config: Config, owner_url: &str, tenant: &str) -> Result<Self> {
        let secrets = serve::secrets_of(&mut config)?;
        let url = config.database_url.clone().unwrap_or_else(|| owner_url.to_owned());
        let mut db = database::as_owner(owner_url).await?;
        let tenant = tenants::load(&mut db, tenant).await?;
        db.close().await?;
        let pool = database::connect(&url, CONNECTIONS).await?;
        let instance = i64::from(rand::rng().random_range(1..i32::MAX));
        let held = database::hold_instance(&url, instance).await?;
        let (endpoint, rehearsing) = serve::model(&config).await?;
        let app = Arc::new(App::new(config, pool, secrets, endpoint, instance)?);
        maintenance::stay_alive(&app, held);
        let caller = Caller::operator(Arc::new(tenant));
        Ok(Self { app, caller, rehearsing })
    }

    /// Shuts down without an answer.
    pub(super) async fn leave(self) {
        self.app.pool.close();
        if let Some(model) = self.rehearsing {
            model.stop().await;
        }
    }

    /// Prints the answer and shuts down. The exit code is a failure if the request was not carried out.
    async fn close<T: Serialize>(
        self,
        answer: Result<Written<T>>,
        is_json: bool,
        told: impl FnOnce(&T) -> (String, ExitCode),
    ) -> Result<ExitCode> {
        self.app.pool.close();
        if let Some(model) = self.rehearsing {
            model.stop().await;
        }
        let answer = match answer {
            Ok(answer) => {
                answer.fresh().ok_or_else(|| Error::internal("a request without a key was answered before"))?
            }
            Err(error) => return Ok(failed(is_json, &error, &self.caller.request)),
        };
        let (text, code) = told(&answer);
        say(is_json, &serde_json::to_value(&answer).map_err(Error::internal)?, &text);
        Ok(code)
    }
}

/// A planned action for people to read: its sentence, and what the player may have meant.
fn told_of_act(answer: &ActView) -> (String, ExitCode) {
    let options = answer.options.iter().map(|option| format!("\n- {}", option.label));
    let text = [answer.message.clone()].into_iter().chain(options).collect();
    let came_to_nothing = matches!(answer.outcome, Outcome::Rejected | Outcome::Timeout | Outcome::Unavailable);
    (text, if came_to_nothing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// `tavernkeep act`.
pub(super) async fn act(
    config: Config,
    owner_url: &str,
    whom: &Whom,
    (text, dry_run): (String, bool),
    is_json: bool,
) -> Result<ExitCode> {
    let table = Table::open(config, owner_url, &whom.tenant).await?;
    let wanted = ActRequest {
        campaign: whom.campaign.clone(),
        player: whom.player.clone(),
        text: text.trim().to_owned(),
        scene: whom.scene.clone(),
        channel: whom.channel.clone(),
        dry_run,
        key: None,
    };
    let answer = act_on(&table.app, &table.caller, &wanted, &Asker::default()).await;
    table.close(answer, is_json, told_of_act).await
}

/// `tavernkeep command`.
pub(super) async fn command(
    config: Config,
    owner_url: &str,
    whom: &Whom,
    (name, arguments): (&str, &[String]),
    is_json: bool,
) -> Result<ExitCode> {
    if name == "list" {
        let items: Vec<_> = commands::REGISTRY.iter().map(commands::Command::definition).collect();
        let lines: Vec<_> = commands::REGISTRY.iter().map(|c| format!("{:<13} {}", c.name, c.description)).collect();
        say(is_json, &json!({ "items": items }), &lines.join("\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let command = commands::find(name).ok_or_else(|| Error::not_found("command"))?;
    let arguments =
        of_words(command.schema(), arguments).map_err(|why| Error::new(Code::BadRequest, format!("{why}.")))?;
    let table = Table::open(config, owner_url, &whom.tenant).await?;
    let wanted = service::CommandRequest {
        campaign: whom.campaign.clone(),
        player: whom.player.clone(),
        arguments,
        scene: whom.scene.clone(),
        channel: whom.channel.clone(),
        key: None,
    };
    let answer = service::give(&table.app, &table.caller, command, &wanted, &Asker::default()).await;
    table.close(answer, is_json, |answer| (answer.message.clone(), ExitCode::SUCCESS)).await
}

/// `tavernkeep planner`.
pub(super) async fn switch(owner_url: &str, state: Switch, is_json: bool) -> Result<()> {
    let enabled = matches!(state, Switch::On);
    let mut db = database::as_owner(owner_url).await?;
    tenants::switch(&mut db, SWITCH, enabled).await?;
    let text = if enabled {
        "The planner is on, except on servers with FEATURE_PLANNER_ENABLED=false and for tenants that switched it off."
    } else {
        "The planner is off."
    };
    say(is_json, &json!({ "planner": enabled }), text);
    Ok(())
}

/// `tavernkeep planner-eval`.
pub(super) async fn evaluate(config: &Config, file: Option<&Path>, at_least: f64, is_json: bool) -> Result<ExitCode> {
    let wrong = |why: String| Error::new(Code::BadRequest, why);
    let text = match file {
        None => evaluation::UTTERANCES.to_owned(),
        Some(path) => std::fs::read_to_string(path).map_err(|e| wrong(format!("{}: {e}", path.display())))?,
    };
    let utterances = evaluation::utterances(&text).map_err(wrong)?;
    let (endpoint, rehearsing) = serve::model(config).await?;
    let client = LlmClient::new(config.llm.clone()).map_err(Error::internal)?;
    let found = evaluation::evaluate(&client, &endpoint, config.ai.planner.timeout, &utterances).await;
    if let Some(model) = rehearsing {
        model.stop().await;
    }
    let report = format!("{} sentences planned by {}\n\n{}", found.asked, endpoint.model, found.report());
    say(is_json, &serde_json::to_value(&found).map_err(Error::internal)?, report.trim_end());
    Ok(if found.right_percent() < at_least { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
