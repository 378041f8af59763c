//! Sends a campaign's messages to its frontends. They are read from the journal, so that none is missed, whichever server or client
//! wrote it. Reverted messages are deleted at the frontends too, and corrected ones change. A frontend does not receive its own
//! messages, but it is told when they change, because no frontend can change one. A connection is closed when its session or campaign
//! is deleted, and when its session no longer is what `connected` said.

use std::{collections::BTreeSet, sync::Arc};

use entity::session::Role;
use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, postgres::PgRow};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    frontends::{frames::Frame, hub::Connection, outbox::Close},
    reactions::replies::{self, ReplyView},
    state::Ai,
};
use base::{error::Result, stored::Columns};
use db::{feeds::Feed, tenancy::TenantTx};
use edge::http::budget;
use world::{journal::in_utc, messages::service::REWORDS, playing::Reader};

/// The most journal entries that are read at once.
const ROWS_MAX: i64 = 100;
/// The members of a message that frontends receive.
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

/// Follows a campaign from `after` on, until its last frontend has left.
pub async fn follow(app: Arc<Ai>, feed: Feed, after: i64, empty: CancellationToken) {
    let changes = match app.feeds.watch(feed) {
        Ok(changes) => changes,
        Err(error) => {
            tracing::warn!(%error, "cannot watch a campaign; its frontends receive no messages");
            return;
        }
    };
    tokio::select! {
        () = empty.cancelled() => {}
        () = tell_all(&app, feed, after, changes) => {}
    }
}

async fn tell_all(app: &Ai, feed: Feed, mut after: i64, mut changes: watch::Receiver<i64>) {
    loop {
        let end = *changes.borrow_and_update();
        while after < end {
            match tell(app, feed, after, end).await {
                Ok(reached) => after = reached,
                Err(error) => {
                    tracing::warn!(%error, "could not read a campaign's new messages; trying again");
                    break;
                }
            }
        }
        // After an error, try again with the next change or after a second.
        let again = tokio::time::sleep(std::time::Duration::from_secs(1));
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = again, if after < end => {}
        }
    }
}

/// Sends what is new. Returns how far it got.
async fn tell(app: &Ai, feed: Feed, after: i64, end: i64) -> Result<i64> {
    let room = app.frontends.hub.room(feed);
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
        let id = (feed.1, row.read("row_id")?);
        let announced = match row.read::<&str>("table_name")? {
            "reply" => announce_one(app, &room, id).await,
            "character" => announce_waiting(app, &room, id).await,
            _ => {
                for connection in room.iter() {
                    if is_for(connection, row)? {
                        connection.outbox.send(frame(row)?);
                    }
                }
                Ok(())
            }
        };
        // After such an error the rest of these changes is still sent, and nothing twice. The reply stays on the player's list.
        if let Err(error) = announced {
            tracing::warn!(%error, "could not tell frontends of a reply");
        }
    }
    let whole = !budget::is_cut(&rows) && rows.len() < usize::try_from(ROWS_MAX).unwrap_or(usize::MAX);
    rows.last().filter(|_| !whole).map_or(Ok(end), |row| row.read("seq"))
}

/// Tells frontends that an NPC or owner has something to say to a player, if the player can hear it now.
async fn announce_one(app: &Ai, room: &[Arc<Connection>], (campaign, reply): (Uuid, Uuid)) -> Result<()> {
    let Some(connection) = room.first() else { return Ok(()) };
    let reply = replies::one(app, &connection.caller(), campaign, reply).await?;
    reply.iter().for_each(|reply| send_reply(room, reply));
    Ok(())
}

/// Tells frontends what waits for a player at the location to which the character has come.
async fn announce_waiting(app: &Ai, room: &[Arc<Connection>], (campaign, player): (Uuid, Uuid)) -> Result<()> {
    let Some(connection) = room.first() else { return Ok(()) };
    replies::tell(app, &connection.caller(), (campaign, player), |reply| send_reply(room, reply)).await
}

/// Tells a new connection what waits for its player.
///
/// # Errors
/// Database errors.
pub async fn welcome(app: &Ai, connection: &Arc<Connection>) -> Result<()> {
    let Some(player) = connection.session.player else { return Ok(()) };
    announce_waiting(app, std::slice::from_ref(connection), (connection.session.campaign, player)).await
}

/// Sends a reply to the frontends of the game master, and to those of its player.
fn send_reply(room: &[Arc<Connection>], reply: &ReplyView) {
    let is_for = |connection: &&Arc<Connection>| match connection.reader().role {
        Role::Gm | Role::Assistant => true,
        Role::Player => connection.reader().player == Some(reply.conditions.player_id),
    };
    for connection in room.iter().filter(is_for) {
        connection.outbox.send(Frame::new("reply", None, &json!({ "reply": reply })));
    }
}

/// Ends a connection whose session was deleted, or is no longer what `connected` said.
fn close(connection: &Connection, row: &PgRow) -> Result<()> {
    if row.read::<&str>("op")? == "delete" {
        connection.outbox.close(Close::TakenOver);
        return Ok(());
    }
    let Some(now) = row.read::<Option<Value>>("session")? else { return Ok(()) };
    let told = &connection.session;
    let told = json!({ "connection": connection.id, "role": told.role, "dice": told.dice, "player": told.player });
    // A newer connection may have changed the session. The older connection learns elsewhere that it was taken over.
    if now["connection"] == told["connection"] && now != told {
        connection.outbox.close(Close::Changed);
    }
    Ok(())
}

/// Reads new, reworded and deleted messages, each with who may read it; deleted and changed sessions; and whether the campaign was deleted.
/// One statement.
async fn read(app: &Ai, feed: Feed, window: (i64, i64), players: &BTreeSet<Uuid>) -> Result<Vec<PgRow>> {
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
                 AND (table_name = 'message' AND (op <> 'update' OR {REWORDS}) OR table_name = 'session' AND op <> 'insert' \
                   OR table_name = 'reply' AND op = 'insert' \
                   OR table_name = 'character' AND op = 'update' AND before ->> 'location' IS DISTINCT FROM after ->> 'location' \
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

/// Whether to send a message to a connection: if it may read the message, and did not say or roll it itself. It is told of each change.
fn is_for(connection: &Connection, row: &PgRow) -> Result<bool> {
    let reader = connection.reader();
    let players: Vec<Uuid> = row.read("players")?;
    let own = reader.player.is_some_and(|player| players.contains(&player));
    let sees = match reader.role {
        Role::Gm | Role::Assistant => row.read::<bool>("gm")?,
        Role::Player => row.read::<bool>("anyone")?,
    };
    Ok((own || sees) && (row.read::<&str>("op")? == "update" || !is_from(connection, &row.read("message")?)))
}

/// Whether the connection's frontend reported the message, or rolled the AI's dice for it.
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
    let kind = match row.read::<&str>("op")? {
        "delete" => return Ok(Frame::new("message_deleted", None, &json!({ "id": message.get("id") }))),
        "update" => "message_changed",
        _ if is_of_ai(&message) => "chat_response",
        _ => "chat_message",
    };
    let shown = SHOWN.iter().filter_map(|name| {
        let mut value = message.get(*name)?.clone();
        in_utc(name, &mut value);
        Some(((*name).to_owned(), value))
    });
    Ok(Frame::new(kind, None, &json!({ "message": shown.collect::<Map<_, _>>() })))
}
