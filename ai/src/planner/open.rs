//! Begins a plan: one transaction in one round trip. It finds the acting character and the scene, writes the player's words into
//! the history, stores that the turn runs, and claims its idempotency key.

use edge::auth::player;
use serde_json::Value;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::act::Wanted;
use crate::{
    planner::state::PlannerState,
    turns::{
        OnFailure,
        start::Asker,
        state::TurnState,
        store::{self, NewTurn, Opened},
    },
};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::{self, Call, TenantTx};
use edge::{
    caller::Caller,
    http::{
        Reply,
        resource::{Place, Ref, campaign_id},
    },
    limits,
};
use world::scenes;

/// The most messages of a plan: the player's words, and those of the command.
const MESSAGES: u64 = 3;

/// The context of a plan: who acts, and where.
#[derive(Clone, Debug)]
pub struct Scene {
    pub turn: Uuid,
    pub campaign: Uuid,
    /// The campaign's setting for allowed commands.
    pub allowed: Option<Value>,
    pub player: Uuid,
    pub player_slug: String,
    pub player_name: String,
    pub scene: Option<Uuid>,
}

/// The result of beginning a plan.
pub enum Begun {
    /// The same request was answered before.
    Replay(Reply),
    Runs(Scene),
}

/// The player whose rate limit counts, from the names in the request. Cached for a minute: the transaction that begins the plan
/// checks the player again.
///
/// # Errors
/// `not_found` for the campaign, `validation_failed` for the player.
pub async fn player(app: &PlannerState, caller: &Caller, wanted: &Wanted) -> Result<Uuid> {
    if let Some(own) = caller.player {
        return Ok(own);
    }
    let key = (caller.tenant_id(), wanted.campaign.clone(), wanted.player.clone());
    if let Some(known) = app.planner.players.get(&key) {
        return Ok(known);
    }
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(&wanted.campaign)).await?;
    let player = player::id(&tx, campaign, &wanted.player).await?;
    app.planner.players.insert(key, player);
    Ok(player)
}

/// Begins a plan.
///
/// # Errors
/// `not_found`, `forbidden`, `validation_failed` for the request's references; `idempotency_in_flight`, `quota_exceeded`.
pub async fn open(app: &PlannerState, caller: &Caller, wanted: &Wanted, asker: &Asker) -> Result<Begun> {
    match attempt(app, caller, wanted, asker).await {
        // The server of the first request may be gone.
        Err(e) if e.code == Code::IdempotencyInFlight => {
            if !store::freed(&app.pool, &app.running, caller.tenant_id(), &e).await {
                return Err(e);
            }
            attempt(app, caller, wanted, asker).await
        }
        result => result,
    }
}

const PLAN_OPEN: &str = "SELECT p.*, set_config('synchronous_commit', $23, true) FROM plan_open($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, \
    $20, $21, $22) p";

async fn attempt(app: &PlannerState, caller: &Caller, wanted: &Wanted, asker: &Asker) -> Result<Begun> {
    let turn = Uuid::now_v7();
    let actor = caller.actor();
    let limits = &caller.tenant.limits;
    if limits.tokens_per_day == 0 && limits.rows_per_kind == 0 {
        let row = tenancy::call(&app.pool, &actor, PLAN_OPEN, |q| {
            bind(q, app, caller, (wanted, asker), turn, wanted.scene.as_deref(), wanted.channel.as_deref())
        })
        .await?;
        if !matches!(row.read("state")?, "new_channel" | "known") {
            return begun(&row, turn);
        }
    }
    // Rare cases take one statement each.
    let tx = store::opening(&app.pool, &actor, asker.live.as_deref(), store::Place::Free).await?;
    app.limits.check_tokens(&tx, &caller.tenant).await?;
    limits::check_rows_more(&tx, limits.rows_per_kind, "message", MESSAGES).await?;
    let channel = wanted.channel.as_deref();
    let mut row = opened(&tx, app, caller, (wanted, asker), turn, (wanted.scene.as_deref(), channel)).await?;
    if row.read::<&str>("state")? == "new_channel" {
        row = if wanted.dry_run {
            // A dry run creates no scene. Plan without one.
            opened(&tx, app, caller, (wanted, asker), turn, (None, None)).await?
        } else {
            let place = Place { tx: &tx, campaign: row.read("campaign")?, caller };
            let scene = scenes::service::of_channel(&place, channel.unwrap_or_default()).await?;
            opened(&tx, app, caller, (wanted, asker), turn, (Some(&scene.to_string()), channel)).await?
        };
    }
    if let (Some(key), "known") = (&wanted.key, row.read("state")?) {
        let scene = scene(&row, turn)?;
        let new = NewTurn { id: turn, live: asker.live.as_deref(), ..scene.row(app, caller, wanted) };
        let begun = match store::reopen(&tx, &new, key).await? {
            Opened::Replay(reply) => Begun::Replay(reply),
            Opened::Runs(turn) => Begun::Runs(Scene { turn, ..scene }),
            Opened::Moved => return Err(Error::new(Code::TurnInProgress, "The player is already acting.")),
        };
        tx.commit().await?;
        return Ok(begun);
    }
    let begun = begun(&row, turn)?;
    tx.commit().await?;
    Ok(begun)
}

async fn opened(
    tx: &TenantTx,
    app: &PlannerState,
    caller: &Caller,
    asked: (&Wanted, &Asker),
    turn: Uuid,
    (scene, channel): (Option<&str>, Option<&str>),
) -> Result<PgRow> {
    let q = sqlx::query(PLAN_OPEN).bind(caller.tenant_id()).bind(caller.actor().signature());
    let q = bind(q, app, caller, asked, turn, scene, channel);
    Ok(q.fetch_one(&mut *tx.connection().await).await?)
}

/// Binds the arguments after tenant and signature in [`PLAN_OPEN`].
fn bind<'q>(
    q: Call<'q>,
    app: &PlannerState,
    caller: &Caller,
    (wanted, asker): (&'q Wanted, &Asker),
    turn: Uuid,
    scene: Option<&str>,
    channel: Option<&'q str>,
) -> Call<'q> {
    let named = |name: Option<&str>| match name.map(Ref::parse) {
        Some(Ref::Id(id)) => (Some(id), None),
        Some(Ref::Slug(slug)) => (None, Some(slug)),
        None => (None, None),
    };
    let ((campaign, campaign_slug), (player, player_slug)) =
        (named(Some(&wanted.campaign)), named(Some(&wanted.player)));
    let (scene, scene_slug) = named(scene);
    q.bind(campaign)
        .bind(campaign_slug)
        .bind(caller.campaign)
        .bind(player)
        .bind(player_slug)
        .bind(caller.player)
        .bind(scene)
        .bind(scene_slug)
        .bind(channel)
        .bind(turn)
        .bind(&wanted.text)
        .bind(!wanted.dry_run)
        .bind(app.llm.reply_mode(&caller.tenant).as_str())
        .bind(caller.author())
        .bind(app.running.instance)
        .bind(store::LEASE_SECONDS)
        .bind(Uuid::now_v7())
        .bind(wanted.key.as_ref().map(|k| k.route.as_str()))
        .bind(wanted.key.as_ref().map(|k| k.key.as_str()))
        .bind(wanted.key.as_ref().map(|k| &k.fingerprint[..]))
        .bind(if asker.live.is_some() { "on" } else { "off" })
}

fn begun(row: &PgRow, turn: Uuid) -> Result<Begun> {
    let unknown = |pointer: &str, what: &str| {
        Error::invalid(pointer, "unknown_reference", format!("There is no such {what} in this campaign."))
    };
    match row.read("state")? {
        "open" => Ok(Begun::Runs(scene(row, turn)?)),
        "campaign" => Err(Error::not_found("campaign")),
        "player" => Err(unknown("/player_id", "character")),
        "other_player" => Err(Error::new(Code::Forbidden, "This token can only act as the player it was made for.")),
        "scene" => Err(unknown("/scene_id", "scene")),
        "other_scene" => {
            let message = "The scene in `scene_id` is not this channel's. Give one of the two.";
            Err(Error::invalid("/channel", "invalid_value", message))
        }
        other => Err(Error::internal(format!("a plan began as {other}"))),
    }
}

fn scene(row: &PgRow, turn: Uuid) -> Result<Scene> {
    Ok(Scene {
        turn,
        campaign: row.read("campaign")?,
        allowed: row.read("allowed")?,
        player: row.read("player")?,
        player_slug: row.read("player_slug")?,
        player_name: row.read("player_name")?,
        scene: row.read("scene")?,
    })
}

impl Scene {
    /// The turn's row, in the form that `turns::store` needs to end it.
    pub fn row<'a>(&self, app: &TurnState, caller: &Caller, wanted: &'a Wanted) -> NewTurn<'a> {
        NewTurn {
            id: self.turn,
            campaign: self.campaign,
            kind: "planner",
            entity: self.player,
            player: Some(self.player),
            action: &wanted.text,
            mode: app.llm.reply_mode(&caller.tenant),
            on_failure: OnFailure::Revert,
            key_id: caller.author(),
            instance: app.running.instance,
            key: wanted.key.as_ref(),
            live: None,
            talk_version: None,
            place: store::Place::Free,
        }
    }
}
