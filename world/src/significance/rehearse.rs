//! Plays a list of actions without storing anything, and shows whom each action would concern, why, and who would
//! react.

use std::collections::BTreeMap;

use garde::Validate;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    report::{Action, ActionReport, CONCERNED_MAX, Resolved, resolve_for},
    standing::NamedEntity,
};
use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::{caller::Caller, http::validate};

/// The most actions of one rehearsal.
pub const ACTIONS_MAX: usize = 50;

/// Actions to rehearse, in order.
#[derive(Clone, Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct RehearsalInput {
    /// The actions, in the order in which they happen.
    #[garde(length(min = 1, max = ACTIONS_MAX))]
    #[schema(min_items = 1, max_items = 50)]
    pub actions: Vec<ActionReport>,
    /// Whether scores and cooldowns begin at their present values. By default every score begins at 0.
    #[serde(default)]
    pub from_present: bool,
}

/// What one action would do.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RehearsedAction {
    #[serde(rename = "type")]
    pub kind: String,
    /// The score of the action.
    pub score: f64,
    /// Everyone whom the action concerns.
    pub concerned: Vec<Concerned>,
}

/// What an action would do to one entity.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Concerned {
    pub entity: NamedEntity,
    /// Why the action concerns it: `target`, `location`, `race`, `profession` or `faction`.
    pub reason: String,
    /// The score before and after the action.
    pub before: f64,
    pub after: f64,
    /// The score at which the entity reacts. Null if it reacts to no sum.
    #[schema(required = true)]
    pub threshold: Option<i32>,
    /// Whether the entity would react.
    pub reacts: bool,
    /// Why the entity would or would not react, as a sentence.
    pub explanation: String,
}

/// The result of a rehearsal.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Rehearsal {
    /// The actions of the request, in the same order.
    pub actions: Vec<RehearsedAction>,
}

/// The score of an entity for a player at this point of the rehearsal.
#[derive(Clone, Copy, Default)]
struct Tally {
    score: f64,
    /// Whether an action since the last reaction reached the immediate threshold.
    at_once: bool,
    /// Whether the entity has reacted already, or is in its cooldown now.
    rests: bool,
}

/// Rehearses actions. Takes two statements for each action, and a third one if scores begin at their present values.
///
/// # Errors
/// Those of a report, with a pointer to the action.
pub async fn rehearse(tx: &TenantTx, caller: &Caller, campaign: &str, input: &RehearsalInput) -> Result<Rehearsal> {
    validate::check(input)?;
    let mut tallies: BTreeMap<(Uuid, Uuid), Tally> = BTreeMap::new();
    let mut actions = Vec::with_capacity(input.actions.len());
    for (i, report) in input.actions.iter().enumerate() {
        let at = |error: Error| error.below(&format!("/actions/{i}"));
        validate::check(report).map_err(at)?;
        let Resolved { settings, action, .. } = resolve_for(tx, caller, campaign, report).await.map_err(at)?;
        let mut concerned = Vec::new();
        let found = concerned_by(tx, &action).await?;
        if input.from_present {
            let new =
                found.iter().map(|one| one.entity.id).filter(|id| !tallies.contains_key(&(*id, action.player_id)));
            tallies.extend(present(tx, new.collect(), action.player_id).await?);
        }
        for one in found {
            let tally = tallies.entry((one.entity.id, action.player_id)).or_default();
            concerned.push(step(tally, &action, one, settings.cooldown_seconds()));
        }
        actions.push(RehearsedAction { kind: action.kind, score: action.score, concerned });
    }
    Ok(Rehearsal { actions })
}

/// Somebody whom an action concerns.
struct Found {
    entity: NamedEntity,
    reason: String,
    threshold: Option<i32>,
    immediate: Option<i32>,
}

/// One action for one entity.
fn step(tally: &mut Tally, action: &Action, found: Found, cooldown_seconds: u32) -> Concerned {
    let Found { entity, reason, threshold, immediate } = found;
    let threshold = threshold.filter(|threshold| *threshold > 0);
    let before = tally.score;
    // The database keeps three decimals.
    let after = ((before + action.score) * 1000.0).round() / 1000.0;
    let at_once = tally.at_once || immediate.is_some_and(|immediate| action.score >= f64::from(immediate));
    let is_high = threshold.is_some_and(|threshold| after >= f64::from(threshold));
    let reacts = at_once || (is_high && !tally.rests);
    let why = match (at_once, threshold) {
        (true, _) => "One action reaches the immediate threshold".to_owned(),
        (false, Some(threshold)) if is_high => format!("{after} reaches the threshold {threshold}"),
        (false, Some(threshold)) => format!("{after} is less than the threshold {threshold}"),
        (false, None) => "It has no threshold for sums".to_owned(),
    };
    let explanation = match (reacts, is_high || at_once) {
        (false, true) => {
            format!("{why}, but the entity has just reacted. It reacts when the cooldown of {cooldown_seconds} s ends.")
        }
        _ => format!("{why}."),
    };
    *tally = if reacts {
        Tally { rests: cooldown_seconds > 0, ..Tally::default() }
    } else {
        Tally { score: after, at_once, ..*tally }
    };
    Concerned { entity, reason, before, after, threshold, reacts, explanation }
}

async fn concerned_by(tx: &TenantTx, action: &Action) -> Result<Vec<Found>> {
    let rows = sqlx::query("SELECT * FROM concerned_by($1, $2, $3)")
        .bind(tx.tenant())
        .bind(Json(action))
        .bind(CONCERNED_MAX)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    rows.iter()
        .map(|row| {
            let entity = NamedEntity {
                kind: row.read("entity_kind")?,
                id: row.read("entity_id")?,
                slug: Some(row.read("slug")?),
                name: Some(row.read("name")?),
            };
            Ok(Found {
                entity,
                reason: row.read("reason")?,
                threshold: row.read("threshold")?,
                immediate: row.read("immediate")?,
            })
        })
        .collect()
}

/// The present scores of entities for a player. One statement, or none.
async fn present(tx: &TenantTx, entities: Vec<Uuid>, player: Uuid) -> Result<Vec<((Uuid, Uuid), Tally)>> {
    if entities.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(
        "SELECT entity_id, score::float8 AS score, at_once, coalesce(cooldown_until > now(), false) AS rests FROM significance \
         WHERE tenant_id = $1 AND entity_id = ANY ($2) AND player_id = $3",
    )
    .bind(tx.tenant())
    .bind(entities)
    .bind(player)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter()
        .map(|row| {
            let tally = Tally { score: row.read("score")?, at_once: row.read("at_once")?, rests: row.read("rests")? };
            Ok(((row.read("entity_id")?, player), tally))
        })
        .collect()
}
