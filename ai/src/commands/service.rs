//! Runs a command that a frontend or the command line gives directly.

use uuid::Uuid;

use super::{
    Command,
    answer::CommandView,
    deed,
    spec::{CommandCx, CommandOutcome},
};
use crate::{
    state::Ai,
    tools::Work,
    turns::{
        rules::{
            self,
            job::{AsCommand, RulesJob},
            settled::{Settled, keep},
        },
        running::Asker,
    },
};
use base::{
    clock,
    error::{Error, Result},
    metrics,
    stored::Columns,
};
use db::tenancy::{self, Origin, TenantTx};
use edge::{
    caller::Caller,
    http::{
        Answer, Written,
        idempotency::IdempotencyKey,
        resource::{Place, Ref, campaign_id},
    },
    limits,
};
use world::{
    fallen, messages, scenes,
    significance::{
        report::{self, ActionReport, Source},
        scores::ReportActions,
    },
};

/// A requested command.
#[derive(Clone, Debug)]
pub struct CommandRequest {
    pub campaign: String,
    pub player: String,
    pub arguments: serde_json::Value,
    /// The scene in which it happens, by id or slug. Alternatively, `channel`.
    pub scene: Option<String>,
    pub channel: Option<String>,
    pub key: Option<IdempotencyKey>,
}

/// Gives a command. If it is a turn, runs the turn to its end.
///
/// # Errors
/// `forbidden`, `not_found`, `dead`, `unconscious`, `validation_failed` with pointers below `/arguments`; the errors of a rules turn.
pub async fn give(
    app: &Ai,
    caller: &Caller,
    command: &Command,
    wanted: &CommandRequest,
    asker: &Asker,
) -> Result<Written<CommandView>> {
    command.allowed(caller)?;
    command.check(&wanted.arguments).map_err(in_arguments)?;
    let done = if command.is_turn() {
        let done = by_turn(app, caller, wanted, asker).await;
        if let Ok(answer) = &done
            && !answer.is_replayed()
        {
            report_turn(app, caller, command, wanted).await;
        }
        done
    } else {
        at_once(app, caller, command, wanted).await
    };
    counted(command, "direct", done.is_ok());
    done
}

/// Counts a command.
pub fn counted(command: &Command, origin: &str, is_ok: bool) {
    let status = if is_ok { "succeeded" } else { "failed" };
    metrics::COMMANDS.with_label_values(&[command.name, origin, status]).inc();
}

/// Reports a command that was a turn. Such a turn's answer has neither the campaign's id nor the player's.
async fn report_turn(app: &Ai, caller: &Caller, command: &Command, wanted: &CommandRequest) {
    let found = async {
        let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
        let campaign = campaign_id(&tx, caller, &Ref::parse(&wanted.campaign)).await?;
        let GivenBy { player, reported, .. } = given_by(&tx, campaign, &wanted.player, command.name).await?;
        Ok::<_, Error>((campaign, player, reported))
    };
    if let Ok((campaign, player, Some(kind))) = found.await {
        let words = wanted.arguments.get("message").and_then(serde_json::Value::as_str).unwrap_or_default();
        report_after(app, caller, campaign, &action_report(player, kind, &wanted.arguments, words), Source::Deed).await;
    }
}

async fn by_turn(app: &Ai, caller: &Caller, wanted: &CommandRequest, asker: &Asker) -> Result<Written<CommandView>> {
    let job = RulesJob {
        campaign: wanted.campaign.clone(),
        player: wanted.player.clone(),
        action: deed::deed(wanted.arguments.clone()).map_err(in_arguments)?,
        mode: None,
        dice: None,
        preview: false,
        key: wanted.key.clone(),
        command: Some(AsCommand { scene: wanted.scene.clone(), channel: wanted.channel.clone() }),
        answer: deed::answer,
    };
    rules::run(app, caller, &job, asker).await
}

async fn at_once(
    app: &Ai,
    caller: &Caller,
    command: &Command,
    wanted: &CommandRequest,
) -> Result<Written<CommandView>> {
    let turn = command.decides.then(clock::id);
    let actor = match turn {
        Some(turn) => caller.actor().in_turn(turn, Origin::Turn),
        None => caller.actor(),
    };
    let open = async || TenantTx::write(&app.pool, &actor).await;
    let done = edge::http::write_in(open, wanted.key.as_ref(), async |tx| {
        let campaign = campaign_id(tx, caller, &Ref::parse(&wanted.campaign)).await?;
        let GivenBy { player, name, reported, is_fallen } =
            given_by(tx, campaign, &wanted.player, command.name).await?;
        caller.may_act_as(player)?;
        if is_fallen && !command.for_fallen {
            fallen::check_fallen(tx, player).await?;
        }
        let place = Place { tx, campaign, caller };
        let scene = scenes::service::named(&place, wanted.scene.as_deref(), wanted.channel.as_deref()).await?;
        let work = Work::within(tx, campaign);
        let cx = CommandCx {
            work: &work,
            corpora: &app.prompts.corpora,
            caller,
            campaign,
            player,
            name: &name,
            scene,
            turn,
            said: None,
        };
        let done = command.run(&cx, wanted.arguments.clone()).await.map_err(in_arguments)?;
        let CommandOutcome { visibility, result, message, messages, call } = done;
        limits::check_rows_more(tx, caller.tenant.limits.rows_per_kind, "message", messages.len() as u64).await?;
        messages::service::insert(tx, campaign, &messages).await?;
        if let Some(kind) = reported {
            let seen = action_report(player, kind, &wanted.arguments, &message);
            report::report_own(tx, campaign, &seen, Source::Command).await?;
        }
        if let (Some(turn), Some(call)) = (turn, &call) {
            let settled = Settled { turn, campaign, player, instance: app.running.instance };
            let action = format!("{} {}", command.name, wanted.arguments);
            keep(tx, caller, settled, &action, call).await?;
        }
        Ok(Answer::ok(CommandView { command: command.name, visibility, result, message, turn_id: turn }))
    });
    done.await
}

/// Describes a command as an action of the character.
#[must_use]
pub fn action_report(player: Uuid, kind: &str, arguments: &serde_json::Value, message: &str) -> ActionReport {
    let target = arguments.get("target").and_then(serde_json::Value::as_str).map(ToOwned::to_owned);
    ActionReport::observed(player, kind, target.into_iter().collect(), message)
}

/// Reports a command that has ended, if the campaign's settings say so. If the report fails, the command's effects
/// stay.
pub async fn report_after(app: &Ai, caller: &Caller, campaign: Uuid, seen: &ActionReport, source: Source) {
    let reported =
        tenancy::write(&app.pool, caller.actor(), async |tx| report::report_own(tx, campaign, seen, source).await);
    if let Err(error) = reported.await {
        tracing::warn!(%campaign, %error, "could not report a command as an action");
    }
}

/// The player character that gives a command.
struct GivenBy {
    player: Uuid,
    name: String,
    /// The type of action as which the server reports the command.
    reported: Option<&'static str>,
    /// Whether it is dead or unconscious.
    is_fallen: bool,
}

async fn given_by(tx: &TenantTx, campaign: Uuid, wanted: &str, command: &str) -> Result<GivenBy> {
    let (id, slug) = match Ref::parse(wanted) {
        Ref::Id(id) => (Some(id), None),
        Ref::Slug(slug) => (None, Some(slug)),
    };
    let row = sqlx::query(
        "SELECT p.id, p.name, c.settings -> 'report_actions' AS report_actions, \
           character_fallen(p.hp, p.max_hp, p.death_saves, p.conditions) IS NOT NULL AS is_fallen FROM character p \
           JOIN campaign c ON c.tenant_id = $1 AND c.id = $2 \
         WHERE p.tenant_id = $1 AND p.campaign_id = $2 AND (p.id = $3 OR p.slug = $4)",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(id)
    .bind(slug)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::invalid("/player_id", "unknown_reference", "There is no such character in this campaign."))?;
    let reports: Option<serde_json::Value> = row.read("report_actions")?;
    let reported = ReportActions::of(reports.as_ref()).of_command(command);
    Ok(GivenBy { player: row.read("id")?, name: row.read("name")?, reported, is_fallen: row.read("is_fallen")? })
}

/// A command's errors point into its arguments. Makes them point into the request, where the arguments are one level down.
fn in_arguments(mut error: Error) -> Error {
    if error.errors.is_empty() {
        return error;
    }
    let mut errors = std::mem::take(&mut error.errors);
    errors.iter_mut().for_each(|e| e.pointer.insert_str(0, "/arguments"));
    Error::validation(errors)
}
