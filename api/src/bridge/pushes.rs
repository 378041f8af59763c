//! What is said in a campaign, sent to its frontends: read from the journal, so that nothing is missed, whichever server or client
//! wrote it, and what was taken back is taken back there too. A frontend is not told what it told itself. One whose session or
//! campaign is deleted is closed, and so is one whose session became another than its `connected` said.

use std::{collections::BTreeSet, sync::Arc};

use entity::session::Role;
use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, postgres::PgRow};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{frames::Frame, hub::Connection, outbox::Close};
use crate::{
    app::App, error::Result, feeds::Feed, http::budget, journal::in_utc, messages::service::Reader, stored::Columns,
    tenancy::TenantTx,
};

/// Messages read at once.
const ROWS_MAX: i64 = 100;
/// Members of a message that frontends are sent.
const SHOWN: &[&str] = &[
    "id",
    "session_id",
    "type",
    "speaker",
    "content",
    "author",
    "flavor",
    "roll",
    "player_id",
    "whisper_to",
    "blind",
    "turn_id",
    "created_at",
];

/// Follows a campaign from `after` until its last frontend has left.
pub async fn follow(app: Arc<App>, feed: Feed, after: i64, empty: CancellationToken) {
    let changes = match app.feeds.watch(feed) {
        Ok(changes) => changes,
        Err(error) => {
            tracing::warn!(%error, "a campaign's frontends are not told what its AI says");
            return;
        }
    };
    tokio::select! {
        () = empty.cancelled() => {}
        () = tell_all(&app, feed, after, changes) => {}
    }
}

async fn tell_all(app: &App, feed: Feed, mut after: i64, mut changes: watch::Receiver<i64>) {
    loop {
        let end = *changes.borrow_and_update();
        while after < end {
            match tell(app, feed, after, end).await {
                Ok(reached) => after = reached,
                Err(error) => {
                    tracing::warn!(%error, "what an AI said cannot be read");
                    break;
                }
            }
        }
        // After an error the next change, or the next second, tries again.
        let again = tokio::time::sleep(std::time::Duration::from_secs(1));
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = again, if after < end => {}
        }
    }
}

/// Tells what is new; returns up to where.
async fn tell(app: &App, feed: Feed, after: i64, end: i64) -> Result<i64> {
    let room = app.bridge.room(feed);
    let players: BTreeSet<Uuid> = room.iter().filter_map(|c| c.reader().player).collect();
    let rows = read(app, feed, (after, end), &players).await?;
    for row in &rows {
        if row.read::<&str>("table_name")? == "campaign" {
            room.iter().for_each(|connection| connection.outbox.close(Close::TakenOver));
            continue;
        }
        if row.read::<&str>("table_name")? == "session" {
            let session: Uuid = row.read("row_id")?;
            let its_own = |c: &&Arc<Connection>| c.session.id == session;
            room.iter().filter(its_own).try_for_each(|connection| close(connection, row))?;
            continue;
        }
        for connection in room.iter() {
            if is_for(connection, row)? {
                connection.outbox.send(frame(row)?);
            }
        }
    }
    let whole = !budget::is_cut(&rows) && rows.len() < usize::try_from(ROWS_MAX).unwrap_or(usize::MAX);
    rows.last().filter(|_| !whole).map_or(Ok(end), |row| row.read("seq"))
}

/// Ends a connection whose session was deleted or is no longer what it was told.
fn close(connection: &Connection, row: &PgRow) -> Result<()> {
    if row.read::<&str>("op")? == "delete" {
        connection.outbox.close(Close::TakenOver);
        return Ok(());
    }
    let Some(now) = row.read::<Option<Value>>("session")? else { return Ok(()) };
    let told = &connection.session;
    let told = json!({ "connection": connection.id, "role": told.role, "dice": told.dice, "player": told.player });
    // Who took over may have changed it; who was taken over is told so elsewhere.
    if now["connection"] == told["connection"] && now != told {
        connection.outbox.close(Close::Changed);
    }
    Ok(())
}

/// The messages that came or went, each with who may see it, the sessions that went or changed, and that the campaign went. One statement.
async fn read(app: &App, feed: Feed, window: (i64, i64), players: &BTreeSet<Uuid>) -> Result<Vec<PgRow>> {
    let field = |name: &str| match name {
        "whisper_to" => "n.message -> 'whisper_to'".to_owned(),
        name => format!("(n.message ->> '{name}')"),
    };
    let player = Reader { role: Role::Player, player: None };
    let (gm, anyone, own) = (Reader::GM.sees(field, "NULL"), player.sees(field, "NULL"), player.sees(field, "p"));
    let sql = format!(
        "SELECT n.seq, n.table_name, n.row_id, n.op, n.message, coalesce({gm}, false) AS gm, coalesce({anyone}, false) AS anyone, \
             ARRAY(SELECT p FROM unnest($5::uuid[]) AS p WHERE {own}) AS players, \
             CASE n.table_name WHEN 'session' THEN (SELECT jsonb_build_object('connection', b.connection_id, 'role', s.role, \
                 'dice', s.dice, 'player', s.player_id) FROM session s JOIN bridge_connection b ON b.tenant_id = $1 AND b.session_id = s.id \
                 WHERE s.tenant_id = $1 AND s.id = n.row_id) END AS session \
         FROM (SELECT seq, table_name, row_id, op, CASE op WHEN 'delete' THEN before ELSE after END AS message FROM journal \
               WHERE tenant_id = $1 AND campaign_id = $2 AND seq > $3 AND seq <= $4 \
                 AND (table_name = 'message' AND op IN ('insert', 'delete') OR table_name = 'session' AND op <> 'insert' \
                   OR table_name = 'campaign' AND op = 'delete')) n \
         WHERE n.table_name <> 'message' OR n.message ->> 'content' <> '' AND n.message ->> 'author' <> 'system' \
         ORDER BY n.seq LIMIT {ROWS_MAX}"
    );
    let tx = TenantTx::read(&app.pool, feed.0).await?;
    let rows = sqlx::query(AssertSqlSafe(budget::within(&sql, ["message"])))
        .bind(feed.0)
        .bind(feed.1)
        .bind(window.0)
        .bind(window.1)
        .bind(players.iter().copied().collect::<Vec<_>>())
        .fetch_all(&mut *tx.connection().await)
        .await?;
    Ok(rows)
}

/// Whether a connection is told of a message: if it may read it, and has not said or rolled it itself.
fn is_for(connection: &Connection, row: &PgRow) -> Result<bool> {
    let reader = connection.reader();
    let players: Vec<Uuid> = row.read("players")?;
    let own = reader.player.is_some_and(|player| players.contains(&player));
    let sees = match reader.role {
        Role::Gm | Role::Assistant => row.read::<bool>("gm")?,
        Role::Player => row.read::<bool>("anyone")?,
    };
    Ok((own || sees) && !is_from(connection, &row.read("message")?))
}

/// Whether people's words were told by a connection's frontend, or its AI's dice rolled there.
fn is_from(connection: &Connection, message: &Value) -> bool {
    let session = message.get("session_id").and_then(Value::as_str).and_then(|id| Uuid::try_parse(id).ok());
    let is_ours = session == Some(connection.session.id);
    is_ours && (!is_of_ai(message) || message.pointer("/extensions/dice") == Some(&json!("frontend")))
}

fn is_of_ai(message: &Value) -> bool {
    message.get("author") == Some(&json!("ai"))
}

fn frame(row: &PgRow) -> Result<Frame> {
    let message: Value = row.read("message")?;
    if row.read::<&str>("op")? == "delete" {
        return Ok(Frame::new("message_deleted", None, &json!({ "id": message.get("id") })));
    }
    let kind = if is_of_ai(&message) { "chat_response" } else { "chat_message" };
    let shown = SHOWN.iter().filter_map(|name| {
        let mut value = message.get(*name)?.clone();
        in_utc(name, &mut value);
        Some(((*name).to_owned(), value))
    });
    Ok(Frame::new(kind, None, &json!({ "message": shown.collect::<Map<_, _>>() })))
}
