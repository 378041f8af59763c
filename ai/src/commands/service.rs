//! Runs a command that a frontend or the command line gives directly.

use uuid::Uuid;

use super::{Command, CommandCx, Done, deed, http::CommandView};
use crate::{
    tools::Work,
    turns::{
        rules::{
            self, AsCommand, RulesJob,
            settled::{Settled, keep},
        },
        start::Asker,
        state::TurnState,
    },
};
use base::{
    error::{Error, Result},
    metrics,
    stored::Columns,
};
use db::tenancy::{Origin, TenantTx};
use edge::{
    caller::Caller,
    http::{
        Reply,
        idempotency::IdempotencyKey,
        resource::{Place, Ref, campaign_id},
    },
    limits,
};
use world::{messages, scenes};

/// A requested command.
#[derive(Clone, Debug)]
pub struct Wanted {
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
/// `forbidden`, `not_found`, `validation_failed` with pointers below `/arguments`; the errors of a rules turn.
pub async fn give(
    app: &TurnState,
    caller: &Caller,
    command: &Command,
    wanted: &Wanted,
    asker: &Asker,
) -> Result<Reply> {
    command.allowed(caller)?;
    command.check(&wanted.arguments).map_err(in_arguments)?;
    let done = if command.is_turn() {
        by_turn(app, caller, wanted, asker).await
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

async fn by_turn(app: &TurnState, caller: &Caller, wanted: &Wanted, asker: &Asker) -> Result<Reply> {
    let job = RulesJob {
        campaign: wanted.campaign.clone(),
        player: wanted.player.clone(),
        action: deed::deed(wanted.arguments.clone()).map_err(in_arguments)?,
        mode: app.llm.reply_mode(&caller.tenant),
        dice: None,
        preview: false,
        key: wanted.key.clone(),
        command: Some(AsCommand { scene: wanted.scene.clone(), channel: wanted.channel.clone(), answer: deed::answer }),
    };
    rules::run(app, caller, &job, asker).await
}

async fn at_once(app: &TurnState, caller: &Caller, command: &Command, wanted: &Wanted) -> Result<Reply> {
    let turn = command.decides.then(Uuid::now_v7);
    let actor = match turn {
        Some(turn) => caller.actor().in_turn(turn, Origin::Turn),
        None => caller.actor(),
    };
    let open = async || TenantTx::write(&app.pool, &actor).await;
    edge::http::write_in(open, wanted.key.as_ref(), async |tx| {
        let campaign = campaign_id(tx, caller, &Ref::parse(&wanted.campaign)).await?;
        let (player, name) = player(tx, campaign, &wanted.player).await?;
        caller.may_act_as(player)?;
        let place = Place { tx, campaign, caller };
        let scene = scenes::service::named(&place, wanted.scene.as_deref(), wanted.channel.as_deref()).await?;
        let work = Work::within(tx, campaign);
        let cx = CommandCx { work: &work, caller, campaign, player, name: &name, scene, turn, said: None };
        let done = command.run(&cx, wanted.arguments.clone()).await.map_err(in_arguments)?;
        let Done { visibility, result, message, messages, call } = done;
        limits::check_rows_more(tx, caller.tenant.limits.rows_per_kind, "message", messages.len() as u64).await?;
        messages::service::insert(tx, campaign, &messages).await?;
        if let (Some(turn), Some(call)) = (turn, &call) {
            let settled = Settled { turn, campaign, player, instance: app.running.instance };
            let action = format!("{} {}", command.name, wanted.arguments);
            keep(tx, caller, settled, &action, call).await?;
        }
        Reply::ok(&CommandView { command: command.name, visibility, result, message, turn_id: turn })
    })
    .await
}

/// A player character's id and name.
async fn player(tx: &TenantTx, campaign: Uuid, wanted: &str) -> Result<(Uuid, String)> {
    let (id, slug) = match Ref::parse(wanted) {
        Ref::Id(id) => (Some(id), None),
        Ref::Slug(slug) => (None, Some(slug)),
    };
    let row = sqlx::query(
        "SELECT id, name FROM character WHERE tenant_id = $1 AND campaign_id = $2 AND (id = $3 OR slug = $4)",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(id)
    .bind(slug)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::invalid("/player_id", "unknown_reference", "There is no such character in this campaign."))?;
    Ok((row.read("id")?, row.read("name")?))
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
