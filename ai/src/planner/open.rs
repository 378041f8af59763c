//! Begins a plan: one transaction in one round trip. It finds the acting character and the scene, writes the player's words into
//! the history, stores that the turn runs, and claims its idempotency key.

use edge::auth::player;
use serde::Serialize;
use serde_json::Value;
use sqlx::{postgres::PgRow, types::Json};
use uuid::Uuid;

use super::act::ActRequest;
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
use db::{
    retry::{self, BRIEF},
    tenancy::{self, Call, TenantTx},
};
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
    /// The model profiles that the campaign chose, by task.
    pub models: Option<Value>,
    /// The campaign's setting `automatic_actions`.
    automatic: Option<Value>,
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
pub async fn player(app: &PlannerState, caller: &Caller, wanted: &ActRequest) -> Result<Uuid> {
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
pub async fn open(app: &PlannerState, caller: &Caller, wanted: &ActRequest, asker: &Asker) -> Result<Begun> {
    let attempt = async || retry::repeat(BRIEF, async || attempt(app, caller, wanted, asker).await).await;
    match attempt().await {
        // The server of the first request may be gone.
        Err(e) if e.code == Code::IdempotencyInFlight => {
            if !store::freed(&app.pool, &app.running, caller.tenant_id(), &e).await {
                return Err(e);
            }
            attempt().await
        }
        result => result,
    }
}

const PLAN_OPEN: &str = "SELECT p.*, set_config('synchronous_commit', $5, true), \
    (SELECT c.settings -> 'models' FROM campaign c WHERE c.tenant_id = $1 AND c.id = p.campaign) AS models FROM plan_open($1, $2, $3, $4) p";

/// The names in a request, each an id or a slug, in the form that the database function `plan_open` takes.
#[derive(Serialize)]
struct Named<'a> {
    campaign_id: Option<Uuid>,
    campaign: Option<String>,
    only_campaign: Option<Uuid>,
    player_id: Option<Uuid>,
    player: Option<String>,
    only_player: Option<Uuid>,
    scene_id: Option<Uuid>,
    scene: Option<String>,
    channel: Option<&'a str>,
    is_told: bool,
}

async fn attempt(app: &PlannerState, caller: &Caller, wanted: &ActRequest, asker: &Asker) -> Result<Begun> {
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
    asked: (&ActRequest, &Asker),
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
    (wanted, asker): (&'q ActRequest, &Asker),
    turn: Uuid,
    scene: Option<&str>,
    channel: Option<&'q str>,
) -> Call<'q> {
    let by = |name: Option<&str>| match name.map(Ref::parse) {
        Some(Ref::Id(id)) => (Some(id), None),
        Some(Ref::Slug(slug)) => (None, Some(slug)),
        None => (None, None),
    };
    let (campaign_id, campaign) = by(Some(&wanted.campaign));
    let (player_id, player) = by(Some(&wanted.player));
    let (scene_id, scene) = by(scene);
    let named = Named {
        campaign_id,
        campaign,
        only_campaign: caller.campaign,
        player_id,
        player,
        only_player: caller.player,
        scene_id,
        scene,
        channel,
        is_told: !wanted.dry_run,
    };
    // The database finds the campaign and the player.
    let new = new_turn(turn, (Uuid::nil(), Uuid::nil()), app, caller, wanted);
    q.bind(Json(named)).bind(new.row()).bind(if asker.live.is_some() { "on" } else { "off" })
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
        automatic: row.read("automatic")?,
        models: row.read("models")?,
        player: row.read("player")?,
        player_slug: row.read("player_slug")?,
        player_name: row.read("player_name")?,
        scene: row.read("scene")?,
    })
}

impl Scene {
    /// Whether the server reports a command as an action.
    pub fn reports(&self, command: &str) -> bool {
        self.automatic.as_ref().and_then(Value::as_array).into_iter().flatten().any(|name| name == command)
    }

    /// The turn's row, in the form that `turns::store` needs to end it.
    pub fn row<'a>(&self, app: &TurnState, caller: &Caller, wanted: &'a ActRequest) -> NewTurn<'a> {
        new_turn(self.turn, (self.campaign, self.player), app, caller, wanted)
    }
}

fn new_turn<'a>(
    id: Uuid,
    (campaign, player): (Uuid, Uuid),
    app: &TurnState,
    caller: &Caller,
    wanted: &'a ActRequest,
) -> NewTurn<'a> {
    NewTurn {
        id,
        campaign,
        kind: "planner",
        entity: player,
        player: Some(player),
        action: &wanted.text,
        mode: app.llm.reply_mode(&caller.tenant),
        on_failure: OnFailure::Revert,
        key_id: caller.author(),
        instance: app.running.instance,
        key: wanted.key.as_ref(),
        live: None,
        talk_version: None,
        parent: None,
        place: store::Place::Free,
    }
}
