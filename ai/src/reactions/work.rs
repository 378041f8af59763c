//! The worker that takes reactions from the queue. It runs on a thread of its own, so it delays no request. It wakes up
//! when a notification arrives, when the next reaction or score is due, and at least every [`LOOK_EVERY`].

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    rc::Rc,
    thread,
    time::Duration,
};

use actix_web::web;
use sqlx::{Executor, postgres::PgListener};
use tokio::{
    runtime, select,
    sync::Notify,
    task::{LocalSet, spawn_local},
    time::{interval, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    replies,
    run::{self, Claimed},
};
use crate::{reactions::run::TRIES_MAX, state::Ai};
use base::{
    error::{Error, Result},
    metrics,
    stored::{self, Columns},
};
use db::{
    link::{CONNECT_LIMIT, silent},
    tenancy::{self, Actor},
};
use entity::shapes::Extensions;
use sqlx::types::Json;
use world::significance::{report::ReactionRules, scores::Significance};

/// The channel on which the database says that a reaction was queued.
const CHANNEL: &str = "tavernkeep_reactions";
/// The most reactions that run on one server, of one tenant, and of one campaign.
const OF_SERVER: usize = 32;
const OF_TENANT: i32 = 16;
const OF_CAMPAIGN: i32 = 16;
/// The most scores that one round checks again.
const DUE_ROWS: i32 = 50;
/// The most expired replies that one round drops.
const EXPIRED_ROWS: i32 = 50;
const EXPIRE_EVERY: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// How often to look while notifications do not arrive, and after an error.
const LOOK_WITHOUT_NEWS: Duration = Duration::from_secs(1);
/// How often to test a connection on which nothing arrives, and how long the test may take.
const QUIET_MAX: Duration = Duration::from_secs(30);
const SIGN_LIMIT: Duration = Duration::from_secs(2);

/// Starts the worker. It ends together with the runtime that calls this. `url` is the URL of the database.
///
/// # Errors
/// `internal` if the thread cannot be started.
pub fn start(app: web::Data<Ai>, url: String) -> Result<()> {
    let ends = CancellationToken::new();
    let guard = ends.clone().drop_guard();
    // Nobody awaits this task: it is dropped with its runtime, and the guard with it.
    tokio::spawn(async move {
        let _guard = guard;
        std::future::pending::<()>().await;
    });
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(Error::internal)?;
    thread::Builder::new()
        .name("reactions".to_owned())
        .spawn(move || LocalSet::new().block_on(&runtime, live(app, &url, ends)))
        .map(drop)
        .map_err(Error::internal)
}

async fn live(app: web::Data<Ai>, url: &str, ends: CancellationToken) {
    let worker = Rc::new(Worker { app, news: Notify::new(), at_work: RefCell::default(), hears: Cell::new(false) });
    select! {
        () = ends.cancelled() => {}
        () = worker.listen(url) => {}
        () = worker.clone().work() => {}
        () = worker.renew() => {}
        () = worker.expire() => {}
    }
}

struct Worker {
    app: web::Data<Ai>,
    /// Something may be due: a notification came, or a place became free.
    news: Notify,
    /// The reactions that run here.
    at_work: RefCell<HashSet<Uuid>>,
    /// Whether notifications arrive.
    hears: Cell<bool>,
}

impl Worker {
    /// Listens for notifications, for ever.
    async fn listen(&self, url: &str) {
        loop {
            if let Err(error) = self.hear(url).await {
                tracing::warn!(%error, "cannot listen for reactions; looking every second until it works");
            }
            self.hears.set(false);
            sleep(LOOK_WITHOUT_NEWS).await;
        }
    }

    /// Listens until the connection is lost.
    async fn hear(&self, url: &str) -> sqlx::Result<()> {
        let connected = timeout(CONNECT_LIMIT, async {
            let mut listener = PgListener::connect(url).await?;
            listener.listen(CHANNEL).await?;
            sqlx::Result::Ok(listener)
        });
        let mut listener = connected.await.unwrap_or_else(|_| Err(silent()))?;
        self.hears.set(true);
        self.news.notify_one();
        loop {
            match timeout(QUIET_MAX, listener.try_recv()).await {
                Ok(Ok(Some(_))) => self.news.notify_one(),
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    timeout(SIGN_LIMIT, listener.execute("SELECT 1")).await.unwrap_or_else(|_| Err(silent()))?;
                }
            }
        }
    }

    /// Renews the leases of the reactions that run here, for ever.
    async fn renew(&self) {
        let mut ticks = interval(Duration::from_secs(self.app.settings.reaction_lease_seconds.into()) / 4);
        loop {
            ticks.tick().await;
            let at_work: Vec<Uuid> = self.at_work.borrow().iter().copied().collect();
            if at_work.is_empty() {
                continue;
            }
            if let Err(error) = self.renew_once(&at_work).await {
                tracing::warn!(%error, "could not renew the leases of reactions");
            }
        }
    }

    async fn renew_once(&self, at_work: &[Uuid]) -> Result<()> {
        sqlx::query("SELECT renew_reactions($1, $2, $3)")
            .bind(self.app.running.instance)
            .bind(at_work)
            .bind(i32::from(self.app.settings.reaction_lease_seconds))
            .execute(&mut *self.app.pool.acquire().await?)
            .await?;
        Ok(())
    }

    /// Drops replies that nobody fetched in time, for ever. This may undo turns, so it is a task of its own and delays
    /// no reaction.
    async fn expire(&self) {
        loop {
            sleep(EXPIRE_EVERY).await;
            if let Err(error) = replies::expire(&self.app, EXPIRED_ROWS).await {
                tracing::warn!(%error, "could not look for expired replies");
            }
        }
    }

    /// Takes and runs reactions, for ever.
    async fn work(self: Rc<Self>) {
        loop {
            let wait = match self.round().await {
                Ok(wait) => wait,
                Err(error) => {
                    tracing::warn!(%error, "could not look for reactions");
                    LOOK_WITHOUT_NEWS
                }
            };
            let wait = if self.hears.get() { wait } else { wait.min(LOOK_WITHOUT_NEWS) };
            select! {
                () = self.news.notified() => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// Checks the queue once. Returns how long nothing will be due.
    async fn round(self: &Rc<Self>) -> Result<Duration> {
        if self.app.is_stopping() {
            return Ok(LOOK_EVERY);
        }
        self.look_again().await?;
        let free = OF_SERVER.saturating_sub(self.at_work.borrow().len());
        if free > 0 {
            for claimed in self.claim(free).await? {
                let worker = self.clone();
                worker.at_work.borrow_mut().insert(claimed.id);
                let at_work = AtWork { worker, id: claimed.id };
                spawn_local(async move { run::run(&at_work.worker.app, claimed).await });
            }
        }
        self.wait().await
    }

    /// Checks again the scores that became high enough while their entities could not react.
    async fn look_again(&self) -> Result<()> {
        let due = sqlx::query("SELECT * FROM significance_due($1)")
            .bind(DUE_ROWS)
            .fetch_all(&mut *self.app.pool.acquire().await?)
            .await?;
        for row in &due {
            let (tenant, campaign): (Uuid, Uuid) = (row.read("tenant_id")?, row.read("campaign_id")?);
            let pair: (Uuid, Uuid) = (row.read("entity_id")?, row.read("player_id")?);
            // One tenant's bad row must not stop the others.
            if let Err(error) = self.look_again_at(tenant, campaign, pair).await {
                tracing::warn!(%tenant, %error, "could not look at a score again");
                self.look_later(tenant, pair).await?;
            }
        }
        Ok(())
    }

    async fn look_again_at(&self, tenant: Uuid, campaign: Uuid, (entity, player): (Uuid, Uuid)) -> Result<()> {
        tenancy::write(&self.app.pool, Actor::system(tenant), async |tx| {
            let row = sqlx::query("SELECT settings FROM campaign WHERE tenant_id = $1 AND id = $2")
                .bind(tenant)
                .bind(campaign)
                .fetch_optional(&mut *tx.connection().await)
                .await?
                .ok_or_else(|| Error::not_found("campaign"))?;
            let settings = Significance::of(&row.read_json::<Extensions>("settings")?);
            let rules = ReactionRules::of(&settings, None);
            sqlx::query("SELECT react_again($1, $2, $3, $4)")
                .bind(tenant)
                .bind(entity)
                .bind(player)
                .bind(Json(rules))
                .execute(&mut *tx.connection().await)
                .await?;
            Ok(())
        })
        .await
    }

    /// If a score cannot be checked, it waits a minute, so that it does not block other scores.
    async fn look_later(&self, tenant: Uuid, (entity, player): (Uuid, Uuid)) -> Result<()> {
        tenancy::write(&self.app.pool, Actor::system(tenant), async |tx| {
            sqlx::query(
                "UPDATE significance SET due_at = now() + interval '1 minute' \
                 WHERE tenant_id = $1 AND entity_id = $2 AND player_id = $3 AND due_at <= now()",
            )
            .bind(tenant)
            .bind(entity)
            .bind(player)
            .execute(&mut *tx.connection().await)
            .await?;
            Ok(())
        })
        .await
    }

    async fn claim(&self, free: usize) -> Result<Vec<Claimed>> {
        let rows = sqlx::query("SELECT * FROM claim_reactions($1, $2, $3, $4, $5, $6)")
            .bind(self.app.running.instance)
            .bind(i32::from(self.app.settings.reaction_lease_seconds))
            .bind(i32::try_from(free).unwrap_or(i32::MAX))
            .bind(OF_CAMPAIGN)
            .bind(OF_TENANT)
            .bind(TRIES_MAX)
            .fetch_all(&mut *self.app.pool.acquire().await?)
            .await?;
        Ok(stored::each(&rows, Claimed::of))
    }

    async fn wait(&self) -> Result<Duration> {
        let mut connection = self.app.pool.acquire().await?;
        let row = sqlx::query("SELECT reactions_wait() AS seconds").fetch_one(&mut *connection).await?;
        let seconds = row.read::<Option<f64>>("seconds")?.unwrap_or(f64::MAX);
        // If a reaction is already due, it waits for a place. The worker wakes up when another reaction frees one.
        Ok(Duration::try_from_secs_f64(seconds.max(0.2)).unwrap_or(LOOK_EVERY).min(LOOK_EVERY))
    }
}

/// A reaction that runs here. Dropping this makes room for another, even if the reaction panicked.
struct AtWork {
    worker: Rc<Worker>,
    id: Uuid,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.worker.at_work.borrow_mut().remove(&self.id);
        self.worker.news.notify_one();
    }
}

/// Updates the metrics about the queue.
///
/// # Errors
/// Database errors.
pub async fn measure(app: &Ai) -> Result<()> {
    let row = sqlx::query("SELECT waiting, dead, oldest_seconds FROM reactions_counted()")
        .fetch_one(&mut *app.pool.acquire().await?)
        .await?;
    metrics::REACTIONS_WAITING.set(row.read("waiting")?);
    metrics::REACTIONS_DEAD.set(row.read("dead")?);
    metrics::REACTIONS_OLDEST.set(row.read("oldest_seconds")?);
    Ok(())
}
