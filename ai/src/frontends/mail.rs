//! Talks to frontends of other servers: stores which connection a session has, and questions and answers as rows that live for
//! seconds. A notification only says that there is something to fetch.

use std::{sync::PoisonError, time::Duration};

use serde_json::{Value, json};
use tokio::{sync::oneshot, time::timeout};
use uuid::Uuid;

use super::{
    connected::Frontends,
    hub::{Connection, Hub},
    question::{Answer, Asked, Failure},
    whereabouts::Frontend,
};
use base::{
    clock,
    error::{Error, Result},
    stored::{self, Columns},
};
use db::tenancy::{self, Actor, TenantTx};
use world::playing::Playing;

/// The channel for notifications. Their text is the number of a server that has mail, optionally followed by the id of a connection
/// of that server that was taken over.
pub const CHANNEL: &str = "tavernkeep_bridge";
/// After this long without a sign of life, a connection counts as dead.
const SEEN_SECONDS: i32 = 90;
/// How much longer than the frontend the frontend's server may take to answer.
const ON_THE_WAY: Duration = Duration::from_millis(1500);
/// The kind of mail that needs no answer.
pub const WORLD_STATE: &str = "world_state";

/// Stores this connection as its session's, and notifies the server of an older one. Two statements.
///
/// # Errors
/// Database errors.
pub async fn register(tx: &TenantTx, connection: &Connection, instance: i64) -> Result<()> {
    sqlx::query(
        "SELECT pg_notify($4, instance || ' ' || connection_id) FROM bridge_connection \
         WHERE tenant_id = $1 AND session_id = $2 AND instance <> $3 AND left_at IS NULL",
    )
    .bind(tx.tenant())
    .bind(connection.session.id)
    .bind(instance)
    .bind(CHANNEL)
    .execute(&mut *tx.connection().await)
    .await?;
    sqlx::query(
        "INSERT INTO bridge_connection (tenant_id, session_id, connection_id, instance) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (tenant_id, session_id) DO UPDATE SET connection_id = $3, instance = $4, seen_at = now(), left_at = NULL",
    )
    .bind(tx.tenant())
    .bind(connection.session.id)
    .bind(connection.id)
    .bind(instance)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(())
}

/// Stores that a connection ended, unless it was taken over.
///
/// # Errors
/// Database errors.
pub async fn unregister(app: &Frontends, connection: &Connection) -> Result<()> {
    let statement = "UPDATE bridge_connection SET left_at = now() \
         WHERE tenant_id = $1 AND session_id = $2 AND connection_id = $3 AND left_at IS NULL";
    tenancy::execute_lazily(&app.edge.pool, &Actor::system(connection.tenant), statement, |q| {
        q.bind(connection.session.id).bind(connection.id)
    })
    .await
}

/// Finds the frontend of a session that is not connected to this server. One statement.
///
/// # Errors
/// Database errors.
pub async fn find(tx: &TenantTx, session: Uuid, own_instance: i64) -> Result<Frontend> {
    let row = sqlx::query(
        "SELECT instance, connection_id, left_at IS NULL AND seen_at > now() - $3 * interval '1 second' \
             AND instance <> $4 AND server_lives(instance) AS lives \
         FROM bridge_connection WHERE tenant_id = $1 AND session_id = $2",
    )
    .bind(tx.tenant())
    .bind(session)
    .bind(SEEN_SECONDS)
    .bind(own_instance)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    Ok(match row {
        None => Frontend::Nowhere { left: false },
        Some(row) if row.read("lives")? => {
            Frontend::There { instance: row.read("instance")?, connection: row.read("connection_id")? }
        }
        Some(_) => Frontend::Nowhere { left: true },
    })
}

/// A piece of mail to a connection of another server.
struct Letter<'a> {
    id: Uuid,
    session: &'a Playing,
    to: (i64, Uuid),
    kind: &'a str,
    data: &'a Value,
}

async fn put(app: &Frontends, actor: &Actor, letter: &Letter<'_>) -> Result<()> {
    let statement = "WITH put AS (INSERT INTO bridge_mail (tenant_id, id, campaign_id, session_id, connection_id, asker, instance, kind, data) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING instance) \
         SELECT pg_notify($10, instance::text) FROM put";
    tenancy::execute_lazily(&app.edge.pool, actor, statement, |q| {
        q.bind(letter.id)
            .bind(letter.session.campaign)
            .bind(letter.session.id)
            .bind(letter.to.1)
            .bind(app.instance)
            .bind(letter.to.0)
            .bind(letter.kind)
            .bind(letter.data)
            .bind(CHANNEL)
    })
    .await
}

/// Forgets a question when its asker stops waiting.
struct Awaited<'a>(&'a Hub, Uuid);

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.awaited.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}

/// Asks a frontend that is connected to another server.
///
/// # Errors
/// Database errors. The inner error says why there is no answer.
pub async fn ask(
    app: &Frontends,
    actor: &Actor,
    session: &Playing,
    to: (i64, Uuid),
    asked: Asked,
    data: &Value,
) -> Result<Answer> {
    let id = clock::id();
    let (sender, answer) = oneshot::channel();
    app.hub.awaited.lock().unwrap_or_else(PoisonError::into_inner).insert(id, (actor.tenant, sender));
    let _awaited = Awaited(&app.hub, id);
    app.hub.used.cancel();
    put(app, actor, &Letter { id, session, to, kind: asked.as_str(), data }).await?;
    app.hub.mail.notify_one();
    match timeout(app.patience(asked) + ON_THE_WAY, answer).await {
        Ok(answer) => Ok(answer.unwrap_or(Err(Failure::Gone))),
        Err(_) => Ok(Err(Failure::Silent)),
    }
}

/// Sends a session's new world state to a connection of another server.
///
/// # Errors
/// Database errors.
pub async fn tell(app: &Frontends, actor: &Actor, session: &Playing, to: (i64, Uuid), world: &Value) -> Result<()> {
    put(app, actor, &Letter { id: clock::id(), session, to, kind: WORLD_STATE, data: world }).await
}

/// A piece of mail for this server.
pub struct Mail {
    pub tenant: Uuid,
    pub id: Uuid,
    pub campaign: Uuid,
    pub session: Uuid,
    pub connection: Uuid,
    pub kind: String,
    pub data: Value,
}

/// Takes the mail for this server.
///
/// # Errors
/// Database errors.
pub async fn take(app: &Frontends) -> Result<Vec<Mail>> {
    let rows = sqlx::query("SELECT * FROM bridge_take($1, 200)")
        .bind(app.instance)
        .fetch_all(&mut *app.edge.pool.acquire().await?)
        .await?;
    Ok(stored::each(&rows, |row| {
        Ok(Mail {
            tenant: row.read("tenant_id")?,
            id: row.read("id")?,
            campaign: row.read("campaign_id")?,
            session: row.read("session_id")?,
            connection: row.read("connection_id")?,
            kind: row.read("kind")?,
            data: row.read("data")?,
        })
    }))
}

/// Answers a question of another server.
///
/// # Errors
/// Database errors.
pub async fn reply(app: &Frontends, mail: &Mail, answer: &Answer) -> Result<()> {
    let answer = match answer {
        Ok(value) => json!({ "told": value }),
        Err(failure) => json!({ "failed": failure }),
    };
    let statement = "WITH put AS (UPDATE bridge_mail SET reply = $3 WHERE tenant_id = $1 AND id = $2 RETURNING asker) \
         SELECT pg_notify($4, asker::text) FROM put";
    tenancy::execute_lazily(&app.edge.pool, &Actor::system(mail.tenant), statement, |q| {
        q.bind(mail.id).bind(&answer).bind(CHANNEL)
    })
    .await
}

/// Fetches replies to this server's questions and passes them on.
///
/// # Errors
/// Database errors.
pub async fn fetch_replies(app: &Frontends) -> Result<()> {
    let (questions, tenants): (Vec<Uuid>, Vec<Uuid>) = {
        let awaited = app.hub.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        awaited.iter().map(|(id, (tenant, _))| (*id, *tenant)).unzip()
    };
    if questions.is_empty() {
        return Ok(());
    }
    let rows = sqlx::query("SELECT id, reply FROM bridge_replies($1, $2, $3)")
        .bind(app.instance)
        .bind(&tenants)
        .bind(&questions)
        .fetch_all(&mut *app.edge.pool.acquire().await?)
        .await?;
    for row in rows {
        let reply: Option<Value> = row.read("reply")?;
        let answer = reply.map_or(Err(Failure::Gone), |mut reply| match reply.get_mut("failed") {
            Some(failed) => Err(serde_json::from_value(failed.take()).unwrap_or(Failure::Gone)),
            None => Ok(reply.get_mut("told").map(Value::take).unwrap_or_default()),
        });
        let waits = app.hub.awaited.lock().unwrap_or_else(PoisonError::into_inner).remove(&row.read("id")?);
        if let Some((_, waits)) = waits {
            let _ = waits.send(answer);
        }
    }
    Ok(())
}

/// Renews this server's connections. Returns those that are no longer their session's.
///
/// # Errors
/// Database errors.
pub async fn renew_connections(app: &Frontends) -> Result<Vec<Uuid>> {
    let own = app.hub.ids();
    if own.is_empty() {
        return Ok(own);
    }
    let rows = sqlx::query("SELECT * FROM bridge_seen($1, $2) AS id")
        .bind(app.instance)
        .bind(&own)
        .fetch_all(&mut *app.edge.pool.acquire().await?)
        .await?;
    rows.iter().map(|row| row.read("id")).collect()
}

/// Deletes mail that nobody fetched and connections that ended long ago.
///
/// # Errors
/// Database errors.
pub async fn prune(app: &Frontends) -> Result<()> {
    sqlx::query("SELECT prune_bridge()").execute(&mut *app.edge.pool.acquire().await?).await.map_err(Error::from)?;
    Ok(())
}
