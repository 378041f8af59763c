//! A session as turns and tools use it: who plays, where its turns have got to, what changed since.

use entity::{
    message::Author,
    session::{Dice, Role},
};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Row, postgres::PgRow};
use uuid::Uuid;

use super::{
    combat::{self, Told},
    delta::{CombatantChange, Delta, DiceRoll, ItemGain, SceneChange},
    world_state::{Scene, WorldState},
};
use crate::{
    clock,
    error::{Error, Result},
    messages::service::{NewMessage, Reader, rolls},
    tenancy::TenantTx,
};

/// Events of a session that are kept.
pub const EVENTS_MAX: i64 = 2000;
/// Changes of the journal that one delta looks at.
const CHANGES_MAX: i64 = 10_000;
/// Messages with rolls and rows of scenes and characters that it looks into.
const ROWS_MAX: i64 = 500;

/// A session that something happens in.
#[derive(Clone, Debug)]
pub struct Playing {
    pub id: Uuid,
    pub campaign: Uuid,
    pub client_id: String,
    pub role: Role,
    pub dice: Dice,
    pub player: Option<Uuid>,
    player_name: Option<String>,
}

impl Playing {
    /// What its AI is called at the table.
    #[must_use]
    pub fn speaker(&self) -> &str {
        match (self.role, &self.player_name) {
            (Role::Player, Some(name)) => name,
            (Role::Player, None) => "Player",
            (Role::Assistant, _) => "GM's Assistant",
            (Role::Gm, _) => "Game Master",
        }
    }

    /// A message of its AI. What an assistant says is for the game master alone.
    #[must_use]
    pub fn message(&self, turn: Option<Uuid>, speaker: &str, content: String) -> NewMessage {
        NewMessage {
            session_id: Some(self.id),
            turn_id: turn,
            player_id: self.player.filter(|_| self.role == Role::Player),
            whisper_to: if self.role == Role::Assistant { vec!["gm".to_owned()] } else { Vec::new() },
            ..NewMessage::chat(Author::Ai, speaker, content)
        }
    }

    /// For whom its AI reads messages.
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
        "SELECT s.client_id, s.role, s.dice, s.player_id, c.name AS player_name FROM session s \
         LEFT JOIN character c ON c.tenant_id = $1 AND c.id = s.player_id \
         WHERE s.tenant_id = $1 AND s.campaign_id = $2 AND s.id = $3",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(id)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("session"))?;
    let role = match row.get::<&str, _>("role") {
        "assistant" => Role::Assistant,
        "player" => Role::Player,
        _ => Role::Gm,
    };
    let dice = if row.get::<&str, _>("dice") == "frontend" { Dice::Frontend } else { Dice::Server };
    Ok(Playing {
        id,
        campaign,
        client_id: row.get("client_id"),
        role,
        dice,
        player: row.get("player_id"),
        player_name: row.get("player_name"),
    })
}

/// The same for a session named in a request's body.
///
/// # Errors
/// `validation_failed` with `unknown_reference` at `/session_id`.
pub async fn named(tx: &TenantTx, campaign: Uuid, id: Uuid) -> Result<Playing> {
    playing(tx, campaign, id).await.map_err(|e| match e.code.status() {
        404 => Error::invalid("/session_id", "unknown_reference", "There is no such session in this campaign."),
        _ => e,
    })
}

/// A place in what happens: in the campaign's feed and in the session's own events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub seq: i64,
    pub event: i64,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// Up to where its completed turns have been told what happened; none before the first.
    pub cursor: Option<Position>,
    /// Where it began.
    pub began: Position,
    /// Where things are now.
    pub now: Position,
    /// Up to where the journal has been pruned.
    pruned: i64,
}

impl Standing {
    /// Where the next delta begins.
    fn since(&self) -> Position {
        self.cursor.unwrap_or(self.began)
    }

    /// Changes before those that one delta looks at.
    fn beyond(&self) -> i64 {
        (self.now.seq - CHANGES_MAX - self.since().seq).max(0)
    }

    /// Whether what happened since the cursor is no longer all there, or too much to be told one by one.
    #[must_use]
    pub fn is_too_old(&self) -> bool {
        let since = self.since();
        since.seq < self.pruned || self.beyond() > 0 || self.now.event - since.event > EVENTS_MAX
    }
}

/// Where a session stands. What is read after this may be newer, and is then told again, never lost. One statement.
///
/// # Errors
/// Those of the database.
pub async fn standing(tx: &TenantTx, session: &Playing) -> Result<Standing> {
    let row = sqlx::query(
        "SELECT s.events, s.from_seq, coalesce(h.seq, 0) AS seq, coalesce(h.pruned_seq, 0) AS pruned, t.seen_seq, t.seen_event \
         FROM session_state s LEFT JOIN feed_head h ON h.tenant_id = $1 AND h.campaign_id = $2 \
         LEFT JOIN LATERAL (SELECT seen_seq, seen_event FROM turn WHERE tenant_id = $1 AND entity_id = $3 AND kind = 'gm' \
             AND status IN ('succeeded', 'limit_reached') AND undone_at IS NULL AND seen_seq IS NOT NULL \
             ORDER BY seen_seq DESC, seen_event DESC LIMIT 1) t ON true \
         WHERE s.tenant_id = $1 AND s.session_id = $3",
    )
    .bind(tx.tenant())
    .bind(session.campaign)
    .bind(session.id)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("session"))?;
    let seen: Option<i64> = row.get("seen_seq");
    let event: Option<i64> = row.get("seen_event");
    Ok(Standing {
        cursor: seen.map(|seq| Position { seq, event: event.unwrap_or_default() }),
        began: Position { seq: row.get("from_seq"), event: 0 },
        now: Position { seq: row.get("seq"), event: row.get("events") },
        pruned: row.get("pruned"),
    })
}

/// What happened since the session's last completed turn, up to `standing.now`, as far as its AI may know it. Four statements.
///
/// # Errors
/// Those of the database.
pub async fn delta(tx: &TenantTx, session: &Playing, standing: &Standing) -> Result<Delta> {
    let mut delta = said(tx, session, standing).await?;
    delta.leave_out("changes", standing.beyond().unsigned_abs());
    for row in moved(tx, session, standing).await? {
        delta.add(change_of(&row));
    }
    let events = sqlx::query(
        "SELECT delta FROM session_event WHERE tenant_id = $1 AND session_id = $2 AND number > $3 AND number <= $4 ORDER BY number",
    )
    .bind(tx.tenant())
    .bind(session.id)
    .bind(standing.since().event)
    .bind(standing.now.event)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    for row in events {
        delta.add(serde_json::from_value(row.get("delta")).map_err(Error::internal)?);
    }
    Ok(delta)
}

/// The journal's rows of a window that are news: not what the session's own turns did, nor what was taken back within it.
/// Parameters: tenant, campaign, after, up to, session.
const NEWS: &str = "SELECT j.* FROM journal j WHERE j.tenant_id = $1 AND j.campaign_id = $2 AND j.seq > $3 AND j.seq <= $4 \
    AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.tenant_id = $1 AND t.id = j.turn_id AND t.entity_id = $5 AND t.kind = 'gm') \
    AND (j.turn_id IS NULL OR NOT EXISTS (SELECT 1 FROM journal r WHERE r.tenant_id = $1 AND r.row_id = j.row_id \
         AND r.seq > $3 AND r.seq <= $4 AND r.origin = 'revert'))";

/// Messages that came and went, and the rolls among them. The AI's own words are no news, whoever brought them.
async fn said(tx: &TenantTx, session: &Playing, standing: &Standing) -> Result<Delta> {
    let sees = |row: &'static str| {
        let field = move |name: &str| match name {
            "whisper_to" => format!("n.{row} -> 'whisper_to'"),
            name => format!("(n.{row} ->> '{name}')"),
        };
        session.reader().sees(field, "$6")
    };
    let counted = "n.table_name = 'message' AND n.op = 'insert' AND n.after ->> 'author' <> 'ai' \
        AND NOT (n.after ->> 'author' = 'system' AND n.turn_id IS NOT NULL)";
    let (sees_after, sees_before) = (sees("after"), sees("before"));
    let counts = format!(
        "SELECT count(*) FILTER (WHERE {counted} AND {sees_after}) AS new, \
                count(*) FILTER (WHERE {counted} AND {sees_after} AND n.after ->> 'type' = 'roll') AS rolls, \
                count(*) FILTER (WHERE n.table_name = 'message' AND n.op = 'delete' AND {sees_before}) AS deleted \
         FROM ({NEWS}) n"
    );
    let row = window(AssertSqlSafe(counts), tx, session, standing).fetch_one(&mut *tx.connection().await).await?;
    let mut delta = Delta {
        new_messages: row.get::<i64, _>("new").unsigned_abs(),
        deleted_messages: row.get::<i64, _>("deleted").unsigned_abs(),
        ..Delta::default()
    };
    let with_rolls: i64 = row.get("rolls");
    if with_rolls == 0 {
        return Ok(delta);
    }
    let newest = format!(
        "SELECT n.after -> 'roll' AS roll, n.after ->> 'flavor' AS flavor FROM ({NEWS}) n \
         WHERE {counted} AND {sees_after} AND n.after ->> 'type' = 'roll' ORDER BY n.seq DESC LIMIT {ROWS_MAX}"
    );
    let rows = window(AssertSqlSafe(newest), tx, session, standing).fetch_all(&mut *tx.connection().await).await?;
    delta.leave_out("NewDiceRolls", (with_rolls - ROWS_MAX).max(0).unsigned_abs());
    for row in rows.iter().rev() {
        let roll: Option<Value> = row.get("roll");
        let found = rolls(&roll.unwrap_or_default(), row.get::<Option<&str>, _>("flavor"));
        let told = found.into_iter().map(|r| DiceRoll { formula: r.formula, result: r.total, flavor: r.flavor });
        delta.add(Delta { new_dice_rolls: told.collect(), ..Delta::default() });
    }
    Ok(delta)
}

type Asked<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

fn window<'q>(sql: AssertSqlSafe<String>, tx: &TenantTx, session: &Playing, standing: &Standing) -> Asked<'q> {
    sqlx::query(sql)
        .bind(tx.tenant())
        .bind(session.campaign)
        .bind(standing.since().seq + standing.beyond())
        .bind(standing.now.seq)
        .bind(session.id)
        .bind(session.player)
}

/// Scenes and characters of the campaign that changed; the newest, oldest first.
async fn moved(tx: &TenantTx, session: &Playing, standing: &Standing) -> Result<Vec<PgRow>> {
    // The reader's character is a parameter of every statement over this window; here it decides nothing.
    let sql = format!(
        "SELECT * FROM (SELECT n.seq, n.table_name, n.before, n.after FROM ({NEWS}) n WHERE n.table_name IN ('scene', 'character') \
           AND n.op <> 'delete' AND coalesce($6::text, '') IS NOT NULL ORDER BY n.seq DESC LIMIT {ROWS_MAX}) newest ORDER BY seq"
    );
    Ok(window(AssertSqlSafe(sql), tx, session, standing).fetch_all(&mut *tx.connection().await).await?)
}

fn change_of(row: &PgRow) -> Delta {
    let (before, after): (Option<Value>, Option<Value>) = (row.get("before"), row.get("after"));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    if row.get::<&str, _>("table_name") == "scene" {
        return scene_change(&before, &after);
    }
    if before.is_null() { Delta::default() } else { character_change(&before, &after) }
}

fn scene_change(before: &Value, after: &Value) -> Delta {
    let active = |row: &Value| row.get("active").and_then(Value::as_bool).unwrap_or(false);
    let now = Scene::of_row(after);
    match (active(before), active(after)) {
        (true, true) => now.since(&Scene::of_row(before)),
        (false, true) => {
            let scene_changed = Some(SceneChange { new_scene_id: now.id, new_scene_name: now.name });
            Delta { scene_changed, ..Delta::default() }
        }
        (_, false) => Delta::default(),
    }
}

fn character_change(before: &Value, after: &Value) -> Delta {
    let actor_id = after.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let hp = |row: &Value| row.get("hp").and_then(Value::as_i64).unwrap_or_default();
    let names = |row: &Value, list: &str| -> Vec<String> {
        let items = row.get(list).and_then(Value::as_array).into_iter().flatten();
        let name = |item: &Value| item.as_str().or_else(|| item.get("name")?.as_str()).map(str::to_owned);
        items.filter_map(name).collect()
    };
    let fresh = |list: &str| -> Vec<String> {
        let mut had = names(before, list);
        let mut fresh = names(after, list);
        fresh.retain(|name| match had.iter().position(|h| h == name) {
            Some(at) => {
                had.swap_remove(at);
                false
            }
            None => true,
        });
        fresh
    };
    let (hp_change, new_status_effects) = (hp(after) - hp(before), fresh("conditions"));
    let mut delta = Delta::default();
    for item_name in fresh("inventory") {
        delta.item_acquired.push(ItemGain { actor_id: actor_id.clone(), item_name });
    }
    if hp_change != 0 || !new_status_effects.is_empty() {
        delta.combatant_changed.push(CombatantChange { actor_id, hp_change, new_status_effects });
    }
    delta
}

/// What a frontend told of its world, and its fights.
#[derive(Debug, Default)]
pub struct Known {
    pub world_state: Option<WorldState>,
    pub encounters: Vec<combat::Encounter>,
}

/// What a session knows of its frontend's world; held until the transaction ends if it is to be written.
///
/// # Errors
/// `not_found`.
pub async fn known(tx: &TenantTx, session: Uuid, hold: bool) -> Result<Known> {
    let sql = format!(
        "SELECT world_state, combat FROM session_state WHERE tenant_id = $1 AND session_id = $2{}",
        if hold { " FOR UPDATE" } else { "" }
    );
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(session)
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(|| Error::not_found("session"))?;
    let world_state: Option<Value> = row.get("world_state");
    Ok(Known {
        world_state: world_state.map(serde_json::from_value).transpose().map_err(Error::internal)?,
        encounters: serde_json::from_value(row.get("combat")).map_err(Error::internal)?,
    })
}

/// Takes in a world state; returns what it changed.
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

/// Takes in what is told of fights; returns what it changed.
pub fn take_combat(known: &mut Known, told: Told) -> Delta {
    combat::mirror(&mut known.encounters, told, clock::now())
}

/// What of a session's state is to be written again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dirty {
    pub world: bool,
    pub combat: bool,
}

/// Writes what became known and appends the pieces of the next delta; of the older ones as many as are kept. One statement.
///
/// # Errors
/// `not_found`; those of the database.
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
