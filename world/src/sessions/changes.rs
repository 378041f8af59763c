//! Computes a delta from the campaign's journal and from the reports of the session's frontend.

use std::collections::BTreeSet;

use entity::session::Role;
use serde_json::Value;
use sqlx::{AssertSqlSafe, postgres::PgRow};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    combat,
    delta::{CombatantChange, Delta, DiceRoll, ItemGain, SceneChange, Started},
    events::characters_named,
    facts::Facts,
    service::{self, Standing},
    world_state::Scene,
};
use crate::playing::Playing;
use crate::{encounters::news::LastAction, messages::service::rolls};
use base::{
    error::Result,
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::http::budget;

/// The most rows that one delta reads: messages with rolls, and rows of scenes, characters and encounters.
const ROWS_MAX: i64 = 500;

/// What happened since the session's last completed turn, up to `standing.now`, as far as its AI may know it. One statement if the
/// feed has news, and one more each for rolls, for changed rows and for the frontend's own events, if there are any.
///
/// # Errors
/// Database errors.
pub async fn delta(tx: &TenantTx, facts: &Facts) -> Result<Delta> {
    let (session, standing) = (&facts.playing, &facts.standing);
    // Before the first turn, `has_news` has not been computed.
    let (mut delta, has_moved) = match facts.has_news || standing.cursor.is_none() {
        true => message_changes(tx, session, standing).await?,
        false => (Delta::default(), false),
    };
    delta.leave_out("changes", standing.beyond().unsigned_abs());
    let mut pieces: Vec<(OffsetDateTime, Delta)> = Vec::new();
    if has_moved {
        let rows = moved(tx, session, standing).await?;
        pieces.extend(stored::each(&rows, |row| Ok((row.read("at")?, change_of(row, session)?))));
    }
    if standing.since().event < standing.now.event {
        pieces.extend(reported_deltas(tx, session, standing).await?);
    }
    // Of two values the newer one counts, no matter where it came from.
    pieces.sort_by_key(|(at, _)| *at);
    pieces.into_iter().for_each(|(_, piece)| delta.add(piece));
    if session.role == Role::Player {
        // Only the game master may read notes.
        delta.scene_note_updated.clear();
    }
    Ok(delta)
}

/// What the session's frontend reported.
async fn reported_deltas(
    tx: &TenantTx,
    session: &Playing,
    standing: &Standing,
) -> Result<Vec<(OffsetDateTime, Delta)>> {
    let events = sqlx::query(
        "SELECT created_at, delta FROM session_event WHERE tenant_id = $1 AND session_id = $2 AND number > $3 AND number <= $4 ORDER BY number",
    )
    .bind(tx.tenant())
    .bind(session.id)
    .bind(standing.since().event)
    .bind(standing.now.event)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let read = |row: PgRow| Ok((row.read("created_at")?, row.read_json("delta")?));
    let mut pieces = events.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    if session.role == Role::Player {
        veil(tx, session, &mut pieces).await?;
    }
    Ok(pieces)
}

/// Removes how much foes were hurt or healed from a frontend's reports: a player sees their conditions, not their numbers. Two
/// statements if anyone was hurt or healed.
async fn veil(tx: &TenantTx, session: &Playing, told: &mut [(OffsetDateTime, Delta)]) -> Result<()> {
    let all = told.iter().flat_map(|(_, piece)| &piece.combatant_changed);
    let actors: Vec<String> = all.filter(|c| c.hp_change != 0).map(|c| c.actor_id.clone()).collect();
    if actors.is_empty() {
        return Ok(());
    }
    let known = service::reported_world(tx, session.id, false).await?;
    let actors: Vec<&str> = actors.iter().map(String::as_str).collect();
    let people = characters_named(tx, session.campaign, &actors).await?;
    let friends: BTreeSet<String> = people.into_keys().chain(known.players()).collect();
    told.iter_mut().for_each(|(_, piece)| piece.veil_combatants(|actor| friends.contains(actor)));
    Ok(())
}

/// The journal's rows of a window that are news: not those of the session's own turns in its present role, nor those that were
/// reverted within the window. Parameters: tenant, campaign, after, up to, session; the seventh is the session's `told_as`.
const NEWS: &str = "SELECT j.* FROM journal j WHERE j.tenant_id = $1 AND j.campaign_id = $2 AND j.seq > $3 AND j.seq <= $4 \
    AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.tenant_id = $1 AND t.id = j.turn_id AND t.entity_id = $5 AND t.kind = 'gm' AND t.told_as = $7) \
    AND (j.turn_id IS NULL OR NOT EXISTS (SELECT 1 FROM journal r WHERE r.tenant_id = $1 AND r.row_id = j.row_id \
         AND r.seq > $3 AND r.seq <= $4 AND r.origin = 'revert'))";

/// The numbers of new and deleted messages, and the new rolls; and whether anything else is news. The AI's own messages are not
/// news, even if its frontend reports them, but what an owner makes happen is. Neither are the log's messages about a fight (`encounters::log`), because the delta
/// itself reports the fight.
async fn message_changes(tx: &TenantTx, session: &Playing, standing: &Standing) -> Result<(Delta, bool)> {
    let sees = |row: &'static str| {
        let field = move |name: &str| match name {
            "whisper_to" => format!("n.{row} -> 'whisper_to'"),
            name => format!("(n.{row} ->> '{name}')"),
        };
        session.reader().sees(field, "$6")
    };
    let counted = "n.table_name = 'message' AND n.op = 'insert' \
        AND NOT (n.after ->> 'author' = 'ai' AND n.turn_id IS NULL AND (n.after ->> 'session_id')::uuid = $5) \
        AND NOT (n.after ->> 'author' = 'system' AND n.turn_id IS NOT NULL AND n.after ->> 'event' IS NULL) \
        AND NOT (n.after ->> 'author' = 'system' AND n.after ->> 'flavor' IS NOT DISTINCT FROM 'fight')";
    let (sees_after, sees_before) = (sees("after"), sees("before"));
    let counts = format!(
        "SELECT count(*) FILTER (WHERE {counted} AND {sees_after}) AS new, \
                count(*) FILTER (WHERE {counted} AND {sees_after} AND n.after ->> 'type' = 'roll') AS rolls, \
                count(*) FILTER (WHERE n.table_name = 'message' AND n.op = 'delete' AND {sees_before} \
                    AND NOT (n.before ->> 'author' = 'system' AND n.before ->> 'flavor' IS NOT DISTINCT FROM 'fight')) AS deleted, \
                coalesce(bool_or(n.table_name IN ('scene', 'character', 'encounter') \
                    OR n.table_name = 'session' AND n.row_id = $5), false) AS moved \
         FROM ({NEWS}) n"
    );
    let row = window(AssertSqlSafe(counts), tx, session, standing).fetch_one(&mut *tx.connection().await).await?;
    let mut delta = Delta {
        new_messages: row.read::<i64>("new")?.unsigned_abs(),
        deleted_messages: row.read::<i64>("deleted")?.unsigned_abs(),
        ..Delta::default()
    };
    let (with_rolls, has_moved): (i64, bool) = (row.read("rolls")?, row.read("moved")?);
    if with_rolls == 0 {
        return Ok((delta, has_moved));
    }
    let newest = format!(
        "SELECT n.after -> 'roll' AS roll, n.after ->> 'flavor' AS flavor FROM ({NEWS}) n \
         WHERE {counted} AND {sees_after} AND n.after ->> 'type' = 'roll' ORDER BY n.seq DESC LIMIT {ROWS_MAX}"
    );
    let newest = AssertSqlSafe(budget::within(&newest, ["roll", "flavor"]));
    let rows = window(newest, tx, session, standing).fetch_all(&mut *tx.connection().await).await?;
    delta.leave_out("NewDiceRolls", (with_rolls - ROWS_MAX).max(0).unsigned_abs());
    for row in rows.iter().rev() {
        let roll: Option<Value> = row.read("roll")?;
        let found = rolls(&roll.unwrap_or_default(), row.read::<Option<&str>>("flavor")?);
        let told = found.into_iter().map(|r| DiceRoll { formula: r.formula, result: r.total, flavor: r.flavor });
        delta.add(Delta { new_dice_rolls: told.collect(), ..Delta::default() });
    }
    Ok((delta, has_moved))
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
        .bind(session.conversation_key())
}

/// Changed rows of scenes, characters, encounters and the session: the newest, with the oldest of them first.
async fn moved(tx: &TenantTx, session: &Playing, standing: &Standing) -> Result<Vec<PgRow>> {
    let sql = format!(
        "SELECT n.seq, n.at, n.table_name, n.before, n.after, \
             n.table_name = 'character' AND EXISTS (SELECT 1 FROM encounter_member m \
               WHERE m.tenant_id = $1 AND m.record_id = n.row_id AND m.committed_at = n.at) AS is_commit, \
             CASE n.table_name WHEN 'session' THEN (SELECT s.name FROM scene s WHERE s.tenant_id = $1 \
               AND s.id = (n.after ->> 'scene_id')::uuid) END AS scene_name \
           FROM ({NEWS}) n WHERE (n.table_name IN ('scene', 'character', 'encounter') OR n.table_name = 'session' AND n.row_id = $5) \
           AND (n.op <> 'delete' OR n.table_name = 'encounter') ORDER BY n.seq DESC LIMIT {ROWS_MAX}"
    );
    let sql = AssertSqlSafe(budget::within(&sql, ["before", "after"]));
    let mut rows = window(sql, tx, session, standing).fetch_all(&mut *tx.connection().await).await?;
    rows.reverse();
    Ok(rows)
}

fn change_of(row: &PgRow, session: &Playing) -> Result<Delta> {
    let (before, after): (Option<Value>, Option<Value>) = (row.read("before")?, row.read("after")?);
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    Ok(match row.read::<&str>("table_name")? {
        "scene" => scene_change(&before, &after, session.scene),
        "encounter" => encounter_change(&before, &after, session.role),
        "session" => {
            let now = text(&after, "scene_id");
            match row.read::<Option<String>>("scene_name")? {
                Some(name) if !before.is_null() && now != text(&before, "scene_id") => arrived(now, name),
                _ => Delta::default(),
            }
        }
        _ if before.is_null() => Delta::default(),
        _ => {
            let mut delta = character_change(&before, &after);
            if row.read("is_commit")? {
                // The fight has reported it already.
                delta.combatant_changed.clear();
            }
            delta
        }
    })
}

fn text(row: &Value, name: &str) -> String {
    row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn arrived(new_scene_id: String, new_scene_name: String) -> Delta {
    Delta { scene_changed: Some(SceneChange { new_scene_id, new_scene_name }), ..Delta::default() }
}

/// A fight that the server runs: whether it began, advanced, ended or was deleted, and what its last action did.
fn encounter_change(before: &Value, after: &Value, role: Role) -> Delta {
    let is_active = |row: &Value| row.get("status").and_then(Value::as_str) == Some("active");
    let (was_active, combatant_changed) = (is_active(before), hurt(before, after, role));
    match (was_active, is_active(after)) {
        (false, true) => {
            let name =
                Some(text(after, "name")).filter(|n| !n.is_empty()).unwrap_or_else(|| combat::UNNAMED.to_owned());
            Delta {
                encounter_started: Some(Started { id: text(after, "id"), name }),
                combatant_changed,
                ..Delta::default()
            }
        }
        (true, false) => Delta { encounter_ended: true, combatant_changed, ..Delta::default() },
        (true, true) => {
            let moved = |name: &str| before.get(name) != after.get(name);
            Delta {
                turn_advanced: moved("round") || moved("turn") || moved("current_participant_id"),
                combatant_changed,
                ..Delta::default()
            }
        }
        (false, false) => Delta::default(),
    }
}

/// Who was hurt, healed or given conditions by an action. A player's AI does not learn the numbers of its enemies.
fn hurt(before: &Value, after: &Value, role: Role) -> Vec<CombatantChange> {
    let last = |row: &Value| -> LastAction {
        row.get("last_action").and_then(|a| serde_json::from_value(a.clone()).ok()).unwrap_or_default()
    };
    let action = last(after);
    // A fight without an earlier version is new or copied. An edit is not an action.
    if before.is_null() || action.seq == last(before).seq {
        return Vec::new();
    }
    let seen = action.changes.into_iter().filter(|c| !c.hidden || role != Role::Player);
    let told = seen.map(|c| CombatantChange {
        actor_id: c.actor_id,
        hp_change: if c.is_enemy && role == Role::Player { 0 } else { c.hp_change },
        new_status_effects: c.new_status_effects,
    });
    told.filter(|c| c.hp_change != 0 || !c.new_status_effects.is_empty()).collect()
}

/// What changed in the session's own scene or, if it has none, in the campaign's active scenes.
fn scene_change(before: &Value, after: &Value, own: Option<Uuid>) -> Delta {
    let is_played = |row: &Value| match own {
        Some(own) => row.get("id").and_then(Value::as_str).is_some_and(|id| id.parse() == Ok(own)),
        None => row.get("active").and_then(Value::as_bool).unwrap_or(false),
    };
    let now = Scene::of_row(after);
    match (is_played(before), is_played(after)) {
        (true, true) => now.since(&Scene::of_row(before)),
        (false, true) if own.is_none() => arrived(now.id, now.name),
        _ => Delta::default(),
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
