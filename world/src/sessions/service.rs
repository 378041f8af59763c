//! A session for turns and tools: who plays, how far its turns have got, what its frontend reported.

use sqlx::{AssertSqlSafe, types::Json};
use uuid::Uuid;

use super::{
    combat::{self, CombatReport},
    delta::Delta,
    world_state::WorldState,
};
use base::{
    clock,
    error::{Error, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;

/// The most events of a session that are kept.
pub const EVENTS_MAX: i64 = 2000;
/// The most journal entries that one delta reads.
const CHANGES_MAX: i64 = 10_000;

/// A position in what happened: in the campaign's feed and in the session's own events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub seq: i64,
    pub event: i64,
}

/// How far a session has got.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// The position up to which completed turns have told the AI what happened. None before the first turn.
    pub cursor: Option<Position>,
    /// The position at which the session began.
    pub began: Position,
    /// The present position.
    pub now: Position,
    /// The `seq` up to which the journal has been pruned.
    pub(super) pruned: i64,
}

impl Standing {
    /// The position at which the next delta begins.
    #[must_use]
    pub fn since(&self) -> Position {
        self.cursor.unwrap_or(self.began)
    }

    /// How many changes are too old for one delta to read.
    #[must_use]
    pub fn beyond(&self) -> i64 {
        (self.now.seq - CHANGES_MAX - self.since().seq).max(0)
    }

    /// Whether the journal no longer has everything since the cursor, or too much for single changes.
    #[must_use]
    pub fn is_too_old(&self) -> bool {
        let since = self.since();
        since.seq < self.pruned || self.beyond() > 0 || self.now.event - since.event > EVENTS_MAX
    }
}

/// What a frontend reported about its world and its fights.
#[derive(Debug, Default)]
pub struct ReportedWorld {
    /// The session's present scene. A connection may outlive the scene with which it was opened.
    pub scene: Option<Uuid>,
    /// Whether the server reports what players say or roll at the table as actions.
    pub table_counts: bool,
    pub world_state: Option<WorldState>,
    pub encounters: Vec<combat::Encounter>,
}

impl ReportedWorld {
    /// The ids of those who belong to players, as far as the frontend said so.
    pub fn players(&self) -> impl Iterator<Item = String> {
        let party = self.world_state.iter().flat_map(|w| &w.party_compendium).map(|member| member.id.clone());
        let tokens = self.world_state.iter().filter_map(|w| w.active_scene.as_ref()).flat_map(|scene| &scene.tokens);
        let tokens = tokens.filter(|t| t.is_player).flat_map(|t| [Some(t.id.clone()), t.actor_id.clone()]);
        let fighters = self.encounters.iter().flat_map(|e| &e.combatants).filter(|c| c.is_player);
        party.chain(tokens.flatten()).chain(fighters.map(|c| c.actor().to_owned()))
    }
}

/// What a session knows about its frontend's world. With `hold`, the row is locked for writing until the transaction ends.
///
/// # Errors
/// `not_found`.
pub async fn reported_world(tx: &TenantTx, session: Uuid, hold: bool) -> Result<ReportedWorld> {
    let sql = format!(
        "SELECT st.world_state, st.combat, s.scene_id, \
           coalesce(c.settings #>> '{{report_actions,table_events}}' = 'true', false) AS table_counts \
         FROM session_state st JOIN session s ON s.tenant_id = $1 AND s.id = st.session_id \
         JOIN campaign c ON c.tenant_id = $1 AND c.id = s.campaign_id WHERE st.tenant_id = $1 AND st.session_id = $2{}",
        if hold { " FOR NO KEY UPDATE OF st" } else { "" }
    );
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(session)
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(|| Error::not_found("session"))?;
    // What cannot be read is as if it had not been reported. The next report replaces it.
    Ok(ReportedWorld {
        scene: row.read("scene_id")?,
        table_counts: row.read("table_counts")?,
        world_state: stored::readable(row.read::<Option<Json<_>>>("world_state")).flatten().map(|Json(state)| state),
        encounters: stored::readable(row.read_json("combat")).unwrap_or_default(),
    })
}

/// Stores a world state in `known`. Returns what changed.
pub fn take_world(known: &mut ReportedWorld, mut state: WorldState) -> Delta {
    let fight = state.active_encounter.take();
    let mut delta = state.since(known.world_state.as_ref());
    known.world_state = Some(state);
    if let Some(mut fight) = fight {
        fight.in_combat = true;
        delta.add(take_combat(known, CombatReport::One(fight)));
    }
    delta
}

/// Stores a report about fights in `known`. Returns what changed.
pub fn take_combat(known: &mut ReportedWorld, told: CombatReport) -> Delta {
    combat::mirror(&mut known.encounters, told, clock::now())
}

/// Which parts of a session's state must be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dirty {
    pub world: bool,
    pub combat: bool,
}

/// Writes the changed state, appends the pieces of the next delta, and deletes pieces beyond the limit. One statement.
///
/// # Errors
/// `not_found`; database errors.
pub async fn keep(tx: &TenantTx, session: Uuid, known: &ReportedWorld, dirty: Dirty, deltas: &[Delta]) -> Result<()> {
    let deltas: Vec<&Delta> = deltas.iter().filter(|d| !d.is_empty()).collect();
    if deltas.is_empty() && !dirty.world && !dirty.combat {
        return Ok(());
    }
    let world =
        if dirty.world { Some(serde_json::to_value(&known.world_state).map_err(Error::internal)?) } else { None };
    let fights =
        if dirty.combat { Some(serde_json::to_value(&known.encounters).map_err(Error::internal)?) } else { None };
    sqlx::query(
        "WITH head AS (UPDATE session_state SET events = events + jsonb_array_length($3), \
             world_state = coalesce($4, world_state), world_state_at = CASE WHEN $4 IS NULL THEN world_state_at ELSE now() END, \
             combat = coalesce($5, combat), combat_at = CASE WHEN $5 IS NULL THEN combat_at ELSE now() END \
           WHERE tenant_id = $1 AND session_id = $2 RETURNING events), \
         old AS (DELETE FROM session_event e USING head WHERE e.tenant_id = $1 AND e.session_id = $2 AND e.number <= head.events - $6) \
         INSERT INTO session_event (tenant_id, session_id, number, delta) \
         SELECT $1, $2, head.events - jsonb_array_length($3) + d.n, d.piece \
         FROM head, jsonb_array_elements($3) WITH ORDINALITY AS d (piece, n)",
    )
    .bind(tx.tenant())
    .bind(session)
    .bind(serde_json::to_value(&deltas).map_err(Error::internal)?)
    .bind(world)
    .bind(fights)
    .bind(EVENTS_MAX)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(())
}
