//! The tasks that fetch mail: one listens for notifications, the other fetches when there may be mail. Without notifications the
//! server polls for mail. Neither task does anything before the first connection or question.

use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

use sqlx::{Executor, postgres::PgListener};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::{
    connected::Frontends,
    frames::Frame,
    mail::{self, CHANNEL, Mail, WORLD_STATE},
    outbox::Close,
    question::{Asked, Failure},
};
use base::error::Result;
use db::link::{CONNECT_LIMIT, silent};

/// How often to poll while a question is open or notifications do not arrive.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const RECONNECT_FIRST: Duration = Duration::from_millis(250);
const RECONNECT_LAST: Duration = Duration::from_secs(10);
/// After this long without a notification the server tests the connection, and how long the test may take.
const QUIET_MAX: Duration = Duration::from_secs(4);
const SIGN_LIMIT: Duration = Duration::from_secs(2);

/// Listens for notifications for ever. `url` is the database's.
pub async fn listen(app: Arc<Frontends>, url: String) {
    app.hub.used.cancelled().await;
    let mut wait = RECONNECT_FIRST;
    while !app.edge.is_stopping() {
        match hear(&app, &url).await {
            Ok(()) => wait = RECONNECT_FIRST,
            Err(error) => {
                tracing::warn!(%error, "the bridge cannot receive notifications; it polls for mail until it can");
                wait = (wait * 2).min(RECONNECT_LAST);
            }
        }
        app.hub.listening.store(false, Ordering::Relaxed);
        sleep(wait).await;
    }
}

/// Listens until the connection is lost.
async fn hear(app: &Frontends, url: &str) -> sqlx::Result<()> {
    let connected = timeout(CONNECT_LIMIT, async {
        let mut listener = PgListener::connect(url).await?;
        listener.listen(CHANNEL).await?;
        sqlx::Result::Ok(listener)
    });
    let mut listener = connected.await.unwrap_or_else(|_| Err(silent()))?;
    app.hub.listening.store(true, Ordering::Relaxed);
    // There may be mail from before the server listened.
    app.hub.mail.notify_one();
    loop {
        let notification = match timeout(QUIET_MAX, listener.try_recv()).await {
            Ok(Ok(Some(notification))) => notification,
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                timeout(SIGN_LIMIT, listener.execute("SELECT 1")).await.unwrap_or_else(|_| Err(silent()))?;
                continue;
            }
        };
        let mut words = notification.payload().split(' ');
        if words.next().and_then(|server| server.parse().ok()) != Some(app.instance) {
            continue;
        }
        match words.next().and_then(|id| Uuid::try_parse(id).ok()) {
            Some(connection) => app.hub.close(&[connection], Close::TakenOver),
            None => app.hub.mail.notify_one(),
        }
    }
}

/// Fetches mail and renews this server's connections, for ever.
pub async fn fetch(app: Arc<Frontends>) {
    let beat = app.settings.ping;
    let mut next_beat = Instant::now() + beat;
    loop {
        let awaits = !app.hub.awaited.lock().is_ok_and(|awaited| awaited.is_empty());
        let deaf = !app.hub.listening.load(Ordering::Relaxed) && app.hub.used.is_cancelled();
        let look = if awaits || deaf { Instant::now() + LOOK_EVERY } else { next_beat };
        tokio::select! {
            () = app.hub.mail.notified() => {}
            () = tokio::time::sleep_until(look.min(next_beat)) => {}
        }
        let beats = Instant::now() >= next_beat;
        if beats {
            next_beat = Instant::now() + beat;
        }
        if let Err(error) = once(&app, beats).await {
            tracing::warn!(%error, "could not fetch the bridge's mail");
            sleep(LOOK_EVERY).await;
        }
    }
}

async fn once(app: &Arc<Frontends>, beats: bool) -> Result<()> {
    mail::fetch_replies(app).await?;
    if app.hub.ids().is_empty() {
        return Ok(());
    }
    if beats {
        app.hub.close(&mail::renew_connections(app).await?, Close::TakenOver);
    }
    for mail in mail::take(app).await? {
        deliver(app, mail);
    }
    Ok(())
}

/// Passes a piece of mail on to its connection. A question is answered once the frontend has answered.
fn deliver(app: &Arc<Frontends>, mail: Mail) {
    let found = app.hub.find(mail.tenant, mail.campaign, mail.session).filter(|c| c.id == mail.connection);
    if mail.kind == WORLD_STATE {
        if let Some(connection) = found {
            connection.outbox.send(Frame::new("world_state", None, &mail.data));
        }
        return;
    }
    let asked = [Asked::ExecuteRoll, Asked::CombatStateRefresh].into_iter().find(|a| a.as_str() == mail.kind);
    let app = app.clone();
    tokio::spawn(async move {
        let answer = match (found, asked) {
            (Some(connection), Some(asked)) => connection.ask(asked, &mail.data, app.patience(asked)).await,
            _ => Err(Failure::Gone),
        };
        if let Err(error) = mail::reply(&app, &mail, &answer).await {
            tracing::warn!(%error, "could not pass on a frontend's answer");
        }
    });
}
