//! Runs one queued reaction as a turn, and decides what happens to the reaction if the turn fails.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use actix_web::web;
use serde_json::{Value, json};
use sqlx::postgres::PgRow;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    prompt::turn::Cause,
    state::Ai,
    turns::{
        answer,
        job::{Job, Reaction},
        running::Asker,
        start::start,
        store::{self, Failure, Place},
        view::Status,
    },
};
use base::{
    clock,
    error::{Code, Error, Result},
    metrics,
    stored::{self, Columns},
    text::on_one_line,
};
use db::tenancy::{self, Actor, TenantTx};
use edge::{caller::Caller, http::idempotency::IdempotencyKey, tenants::Tenant};
use entity::{kind::EntityKind, shapes::Extensions};
use world::significance::{
    report::{KEPT_MAX, Target},
    scores::Significance,
};

/// After this many attempts a reaction is dead.
pub(super) const TRIES_MAX: i32 = 3;
/// The most characters of one action, and of all together, in a prompt.
const ACTION_CHARS: usize = 500;
const ALL_CHARS: usize = 8000;

/// A reaction that this server has claimed.
pub(super) struct Claimed {
    pub id: Uuid,
    tenant: Arc<Tenant>,
    campaign: Uuid,
    kind: String,
    entity_kind: EntityKind,
    entity: Uuid,
    player: Uuid,
    actions: i32,
    message: Option<String>,
    location_key: Option<String>,
    turn: Uuid,
    /// `ready` if the turn waits for this server, or else the turn's status.
    turn_status: String,
    tries: i32,
}

impl Claimed {
    pub(super) fn of(row: &PgRow) -> Result<Self> {
        Ok(Self {
            id: row.read("id")?,
            tenant: Arc::new(Tenant::from_row(row)?),
            campaign: row.read("campaign_id")?,
            kind: row.read("kind")?,
            entity_kind: if row.read::<&str>("entity_kind")? == "owner" { EntityKind::Owner } else { EntityKind::Npc },
            entity: row.read("entity_id")?,
            player: row.read("player_id")?,
            actions: row.read("actions")?,
            message: row.read("message")?,
            location_key: row.read("location_key")?,
            turn: row.read("turn_id")?,
            turn_status: row.read("turn_status")?,
            tries: row.read("tries")?,
        })
    }
}

/// What happens to a reaction that did not end well.
enum Then {
    /// The reaction could not run at this moment. Try again after this time. The attempt does not count.
    Postpone(Duration),
    Retry(Duration),
    Dead,
    /// Nobody is left to react, or somebody ended the reaction.
    Cancel,
}

impl Then {
    fn name(&self) -> &'static str {
        match self {
            Then::Postpone(_) => "postponed",
            Then::Retry(_) => "retry",
            Then::Dead => "dead",
            Then::Cancel => "cancelled",
        }
    }
}

/// Runs a reaction to its end. If it fails, returns it to the queue.
pub(super) async fn run(app: &web::Data<Ai>, claimed: Claimed) {
    let caller = Caller::operator(claimed.tenant.clone());
    let error = match attempt(app, &caller, &claimed).await {
        // A cancelled turn has an answer, too.
        Ok(()) if is_unwanted(app, &claimed).await => cancelled(),
        Ok(()) => {
            metrics::REACTIONS.with_label_values(&[kind(&claimed), "done"]).inc();
            return;
        }
        Err(error) => error,
    };
    let then = match then(&claimed, &error) {
        // The turn was lost, and nobody asked for that.
        Then::Cancel if error.code == Code::Conflict && !is_unwanted(app, &claimed).await => match claimed.tries {
            TRIES_MAX.. => Then::Dead,
            _ => Then::Retry(Duration::from_secs(2)),
        },
        then => then,
    };
    metrics::REACTIONS.with_label_values(&[kind(&claimed), then.name()]).inc();
    if !matches!(then, Then::Postpone(_)) {
        tracing::info!(reaction_id = %claimed.id, turn_id = %claimed.turn, %error, then = then.name(), "a reaction failed");
    }
    if let Err(error) = give_back(app, &caller, &claimed, &error, then).await {
        tracing::warn!(reaction_id = %claimed.id, %error, "could not return a reaction; it is taken again when its lease ends");
    }
}

/// Whether somebody asked to cancel the turn.
async fn is_unwanted(app: &Ai, claimed: &Claimed) -> bool {
    store::cancel_requested(&app.pool, claimed.tenant.id, claimed.turn).await.unwrap_or(false)
}

fn kind(claimed: &Claimed) -> &'static str {
    if claimed.kind == "prayer" { "prayer" } else { "significance" }
}

async fn attempt(app: &web::Data<Ai>, caller: &Caller, claimed: &Claimed) -> Result<()> {
    let place = match claimed.turn_status.as_str() {
        "ready" => Place::Queued(claimed.turn),
        // The turn ended, but the database's answer to that was lost.
        "succeeded" | "limit_reached" => return mark_done(app, caller, claimed).await,
        "failed" | "cancelled" => Place::Free,
        // Its server died, and the sweeper has not reverted it yet.
        "running" => return Err(Error::new(Code::TurnInProgress, "The turn of the last attempt is not reverted yet.")),
        _ => return Err(cancelled()),
    };
    let (settings, action) = read(app, claimed).await?;
    let [campaign, entity, player] = [claimed.campaign, claimed.entity, claimed.player].map(|id| id.to_string());
    let job = Job {
        key: Some(IdempotencyKey {
            key: claimed.id.to_string(),
            route: "reactions".to_owned(),
            fingerprint: Vec::new(),
        }),
        reaction: Some(Reaction {
            id: claimed.id,
            cause: if claimed.kind == "prayer" { Cause::Prayer } else { Cause::Significance },
            location_key: claimed.location_key.clone(),
            reverts: settings.reverts(),
            expires_seconds: settings.expires_seconds(),
        }),
        ..Job::new(&campaign, (claimed.entity_kind, &entity), &player, action)
    };
    let run = async move |app: web::Data<Ai>, caller: Caller, asker: Asker| {
        answer::react(&app, &caller, &job, &asker, place).await
    };
    start(app, caller, true, run)?.ended().await.map(drop)
}

/// The campaign's settings, and what the entity reads about the actions. Writes the latter to the turn's row too.
async fn read(app: &Ai, claimed: &Claimed) -> Result<(Significance, String)> {
    let tx = TenantTx::write_lazily(&app.pool, &Actor::system(claimed.tenant.id)).await?;
    let row = sqlx::query("SELECT settings FROM campaign WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(claimed.campaign)
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(|| Error::not_found("campaign"))?;
    let settings = Significance::of(&row.read_json::<Extensions>("settings")?);
    if let Some(message) = &claimed.message {
        return Ok((settings, message.clone()));
    }
    let rows = sqlx::query(
        "SELECT a.type, a.targets, a.location, a.text FROM action_concern k JOIN player_action a ON a.tenant_id = $1 AND a.id = k.action_id \
         WHERE k.tenant_id = $1 AND k.reaction_id = $2 ORDER BY k.action_id DESC LIMIT $3",
    )
    .bind(tx.tenant())
    .bind(claimed.id)
    .bind(i64::from(KEPT_MAX))
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let mut lines = stored::each(&rows, line);
    lines.reverse();
    let action = listed(&lines, claimed.actions);
    // The turn's row was created before the server knew what the turn is about.
    sqlx::query("UPDATE turn SET action = $3 WHERE tenant_id = $1 AND id = $2 AND status = 'queued'")
        .bind(tx.tenant())
        .bind(claimed.turn)
        .bind(&action)
        .execute(&mut *tx.connection().await)
        .await?;
    tx.commit().await?;
    Ok((settings, action))
}

/// An action as the entity reads it.
fn line(row: &PgRow) -> Result<String> {
    let targets: Vec<Target> = row.read_json("targets")?;
    let mut out = row.read::<String>("type")?;
    if !targets.is_empty() {
        let names: Vec<&str> = targets.iter().map(|target| target.slug.as_str()).collect();
        let _ = write!(out, " → {}", names.join(", "));
    }
    if let Some(location) = row.read::<Option<String>>("location")? {
        let _ = write!(out, " at {location}");
    }
    if let Some(text) = row.read::<Option<String>>("text")? {
        let _ = write!(out, ": {}", text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    Ok(on_one_line(&out).chars().take(ACTION_CHARS).collect())
}

/// The newest actions that fit, oldest first, and the number of earlier ones.
fn listed(lines: &[String], actions: i32) -> String {
    let mut room = ALL_CHARS;
    let fits = |line: &&String| {
        let chars = line.chars().count() + 8;
        let fits = chars <= room;
        room = room.saturating_sub(chars);
        fits
    };
    let kept = lines.iter().rev().take_while(fits).count();
    let earlier = usize::try_from(actions).unwrap_or_default().saturating_sub(kept);
    let mut out = String::new();
    if earlier > 0 {
        let _ =
            writeln!(out, "({earlier} earlier {} left out)", if earlier == 1 { "action is" } else { "actions are" });
    }
    for (n, line) in lines.iter().skip(lines.len() - kept).enumerate() {
        let _ = writeln!(out, "{}. {line}", n + 1);
    }
    out.truncate(out.trim_end().len());
    out
}

fn cancelled() -> Error {
    Error::new(Code::Gone, "The turn was cancelled.")
}

fn then(claimed: &Claimed, error: &Error) -> Then {
    let wait = [1, 5].get(usize::try_from(claimed.tries - 1).unwrap_or_default()).copied().unwrap_or(5);
    match error.code {
        Code::TurnInProgress | Code::IdempotencyInFlight => Then::Postpone(Duration::from_millis(500)),
        Code::RateLimited | Code::Unavailable => Then::Postpone(Duration::from_secs(2)),
        Code::QuotaExceeded | Code::FeatureDisabled => Then::Postpone(Duration::from_secs(60)),
        Code::NotFound | Code::Gone | Code::ValidationFailed | Code::Conflict | Code::Dead | Code::Unconscious => {
            Then::Cancel
        }
        // Another attempt would be as large.
        Code::PromptTooLarge => Then::Dead,
        _ if claimed.tries >= TRIES_MAX => Then::Dead,
        _ => Then::Retry(Duration::from_secs(wait)),
    }
}

/// Returns a reaction to the queue, or ends it. If its turn never began, ends the turn too.
async fn give_back(app: &Ai, caller: &Caller, claimed: &Claimed, error: &Error, then: Then) -> Result<()> {
    let (state, wait, is_counted) = match then {
        Then::Postpone(wait) => ("queued", Some(wait), false),
        Then::Retry(wait) => ("queued", Some(wait), true),
        Then::Dead => ("dead", None, true),
        Then::Cancel => ("cancelled", None, true),
    };
    if wait.is_none() {
        let failure = Failure {
            status: if state == "dead" { Status::Failed } else { Status::Cancelled },
            code: error.code.as_str(),
            message: &error.detail,
            record: None,
            calls: &[],
        };
        store::fail(&app.pool, &caller.actor(), claimed.turn, app.running.instance, &failure).await?;
    }
    let why: Option<Value> = is_counted.then(|| json!({ "code": error.code.as_str(), "message": error.detail }));
    let due: Option<OffsetDateTime> = wait.map(|wait| clock::now() + wait);
    tenancy::call(
        &app.pool,
        &caller.actor(),
        "SELECT return_reaction($1, $2, $3, $4, $5, $6, $7, $8) AS is_returned",
        |q| q.bind(claimed.id).bind(app.running.instance).bind(due).bind(state).bind(why).bind(is_counted),
    )
    .await?;
    Ok(())
}

/// Notes that the turn of a reaction has ended well.
async fn mark_done(app: &Ai, caller: &Caller, claimed: &Claimed) -> Result<()> {
    tenancy::call(
        &app.pool,
        &caller.actor(),
        "SELECT return_reaction($1, $2, $3, $4, NULL, 'done', NULL, true) AS is_returned",
        |q| q.bind(claimed.id).bind(app.running.instance),
    )
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_actions_are_told_oldest_first() {
        let lines = ["look".to_owned(), "talk → bob: Hello".to_owned()];
        assert_eq!(listed(&lines, 2), "1. look\n2. talk → bob: Hello");
        assert_eq!(listed(&lines, 3), "(1 earlier action is left out)\n1. look\n2. talk → bob: Hello");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let lines: Vec<String> = (0..100).map(|n| format!("{n}{}", "x".repeat(400))).collect();
        let text = listed(&lines, 100);
        assert!(text.chars().count() <= ALL_CHARS + 60, "{}", text.len());
        assert!(text.starts_with('(') && text.contains("99x"), "{text}");
    }
}
