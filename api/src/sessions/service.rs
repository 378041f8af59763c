//! A session for turns and tools: who plays, how far its turns have got, what its frontend reported.

use entity::{
    message::Author,
    session::{Dice, Role},
};
use serde_json::Value;
use sqlx::{AssertSqlSafe, postgres::PgRow};
use uuid::Uuid;

use super::{
    combat::{self, Told},
    delta::Delta,
    world_state::WorldState,
};
use crate::messages::service::{NewMessage, Reader};
use base::{
    clock,
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// The most events of a session that are kept.
pub const EVENTS_MAX: i64 = 2000;
/// The most journal entries that one delta reads.
const CHANGES_MAX: i64 = 10_000;

/// A session in use.
#[derive(Clone, Debug)]
pub struct Playing {
    pub id: Uuid,
    pub campaign: Uuid,
    pub client_id: String,
    /// The session's own role, or another one for a single turn.
    pub role: Role,
    pub dice: Dice,
    pub player: Option<Uuid>,
    /// The session's own scene, if it has one.
    pub scene: Option<Uuid>,
    player_name: Option<String>,
}

impl Playing {
    pub(super) fn of_row(row: &PgRow, campaign: Uuid, id: Uuid) -> Result<Self> {
        let role = match row.read::<&str>("role")? {
            "assistant" => Role::Assistant,
            "player" => Role::Player,
            _ => Role::Gm,
        };
        Ok(Self {
            id,
            campaign,
            client_id: row.read("client_id")?,
            role,
            dice: if row.read::<&str>("dice")? == "frontend" { Dice::Frontend } else { Dice::Server },
            player: row.read("player_id")?,
            scene: row.read("scene_id")?,
            player_name: row.read("player_name")?,
        })
    }

    /// The AI's role and, if it plays a character, that character. Each of these has its own conversation and cursor, so that a
    /// player's AI never sees the game master's. The same as the database's `told_as`.
    #[must_use]
    pub fn told_as(&self) -> String {
        match (self.role, self.player) {
            (Role::Gm, _) => "gm".to_owned(),
            (Role::Assistant, _) => "assistant".to_owned(),
            (Role::Player, player) => format!("player:{}", player.map(|id| id.to_string()).unwrap_or_default()),
        }
    }

    /// The AI's name at the table.
    #[must_use]
    pub fn speaker(&self) -> &str {
        match (self.role, &self.player_name) {
            (Role::Player, Some(name)) => name,
            (Role::Player, None) => "Player",
            (Role::Assistant, _) => "GM's Assistant",
            (Role::Gm, _) => "Game Master",
        }
    }

    /// A message from the session's AI. Only the game master reads an assistant's messages.
    #[must_use]
    pub fn message(&self, turn: Option<Uuid>, speaker: &str, content: String) -> NewMessage {
        NewMessage {
            session_id: Some(self.id),
            scene_id: self.scene,
            turn_id: turn,
            player_id: self.player.filter(|_| self.role == Role::Player),
            whisper_to: if self.role == Role::Assistant { vec!["gm".to_owned()] } else { Vec::new() },
            ..NewMessage::chat(Author::Ai, speaker, content)
        }
    }

    /// The reader for whom the AI may read messages.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader { role: self.role, player: self.player }
    }
}

/// A session of a campaign.
///
/// # Errors
/// `not_found`.
pub async fn playing(tx: &TenantTx, campaign: Uuid, id: Uuid) -> Result<Playing> {
    let row = sqlx::query(
        "SELECT s.client_id, s.role, s.dice, s.player_id, s.scene_id, c.name AS player_name FROM session s \
         LEFT JOIN character c ON c.tenant_id = $1 AND c.id = s.player_id \
         WHERE s.tenant_id = $1 AND s.campaign_id = $2 AND s.id = $3",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(id)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("session"))?;
    Playing::of_row(&row, campaign, id)
}

/// The same for a session from a request's body.
///
/// # Errors
/// `validation_failed` with `unknown_reference` at `/session_id`.
pub async fn named(tx: &TenantTx, campaign: Uuid, id: Uuid) -> Result<Playing> {
    playing(tx, campaign, id).await.map_err(|e| match e.code.status() {
        404 => Error::invalid("/session_id", "unknown_reference", "There is no such session in this campaign."),
        _ => e,
    })
}

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
pub struct Known {
    /// The session's present scene. A connection may outlive the scene with which it was opened.
    pub scene: Option<Uuid>,
    pub world_state: Option<WorldState>,
    pub encounters: Vec<combat::Encounter>,
}

impl Known {
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
pub async fn known(tx: &TenantTx, session: Uuid, hold: bool) -> Result<Known> {
    let sql = format!(
        "SELECT st.world_state, st.combat, s.scene_id FROM session_state st \
         JOIN session s ON s.tenant_id = $1 AND s.id = st.session_id WHERE st.tenant_id = $1 AND st.session_id = $2{}",
        if hold { " FOR UPDATE OF st" } else { "" }
    );
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(session)
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(|| Error::not_found("session"))?;
    let world_state: Option<Value> = row.read("world_state")?;
    Ok(Known {
        scene: row.read("scene_id")?,
        world_state: world_state.map(serde_json::from_value).transpose().map_err(Error::internal)?,
        encounters: row.read_json("combat")?,
    })
}

/// Stores a world state in `known`. Returns what changed.
pub fn take_world(known: &mut Known, mut state: WorldState) -> Delta {
    let fight = state.active_encounter.take();
    let mut delta = state.since(known.world_state.as_ref());
    known.world_state = Some(state);
    if let Some(mut fight) = fight {
        fight.in_combat = true;
        delta.add(take_combat(known, Told::One(fight)));
    }
    delta
}

/// Stores a report about fights in `known`. Returns what changed.
pub fn take_combat(known: &mut Known, told: Told) -> Delta {
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
pub async fn keep(tx: &TenantTx, session: Uuid, known: &Known, dirty: Dirty, deltas: &[Delta]) -> Result<()> {
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
