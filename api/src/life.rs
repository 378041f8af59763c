//! Shows other servers that this one is alive: a separate connection that holds an advisory lock and renews the leases of turns. On the same
//! connection it reads the database's clock, which this process follows.
//!
//! The connection does not belong to the pool, so renewing never queues behind requests. If it is lost or silent, another is opened
//! at once, and no turn is given up. Other servers take over a turn only if its lease has expired, or if its server has neither
//! held the lock nor renewed the lease for a few seconds (`orphaned_turns`). The new connection ends whatever the lost one may
//! still hold in the database. This module does not decide what happens to a turn.

use std::{
    str::FromStr,
    time::{Duration, Instant},
};

use sqlx::{AssertSqlSafe, Executor, PgConnection, PgExecutor, postgres::PgConnectOptions};
use time::OffsetDateTime;
use uuid::Uuid;

use base::{
    clock,
    error::{Error, Result},
    metrics,
    stored::Columns,
};
use db::link::{Link, limit_of};

/// The class of the servers' advisory locks. `orphaned_turns` looks for it.
const CLASS: i32 = 1_413_567_051;
/// The `statement_timeout` in [`GREETING`]. It is shorter than elsewhere, because these statements are repeated soon
/// anyway.
const STATEMENT: Duration = Duration::from_secs(2);
const GREETING: &str = "SET ROLE tavernkeep_app; SET statement_timeout = '2s'; SET lock_timeout = '1s'; SET tcp_keepalives_idle = 5; \
     SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3";

/// How far a machine's clock may be off before somebody should know.
pub(crate) const CLOCK_OFF_MAX: time::Duration = time::Duration::seconds(5);

/// What servers' connections are called in `pg_stat_activity`; what follows is the server's address, as soon as it is known.
const NAME: &str = "tavernkeep: ";
/// PostgreSQL cuts longer names.
const NAME_BYTES_MAX: usize = 63;

/// The connection and its lock.
pub struct Life {
    url: String,
    instance: i64,
    name: String,
    link: Option<Link>,
    is_locked: bool,
    /// Whether this machine's clock was wrong when it was compared last.
    is_clock_wrong: bool,
}

impl Life {
    /// Takes the lock for the server with this number.
    ///
    /// # Errors
    /// Database errors; `internal` if another server has this number.
    pub async fn begin(url: &str, instance: i64) -> Result<Self> {
        let name = format!("{NAME}life");
        let mut life =
            Self { url: url.to_owned(), instance, name, link: None, is_locked: false, is_clock_wrong: false };
        life.link().await?;
        if life.is_locked {
            Ok(life)
        } else {
            Err(Error::internal("another running server has the same instance number"))
        }
    }

    /// Lets commands that run next to this server know its address ([`announced`]): the first that is not too long.
    ///
    /// # Errors
    /// Database errors.
    pub async fn announce(&mut self, addresses: [&str; 2]) -> Result<()> {
        let names = addresses.map(|address| format!("{NAME}{address}"));
        if let Some(name) = names.into_iter().find(|name| name.len() <= NAME_BYTES_MAX) {
            self.name = name;
            let call_it = sqlx::query("SELECT set_config('application_name', $1, false)").bind(self.name.clone());
            call_it.execute(self.link().await?).await?;
        }
        Ok(())
    }

    /// Renews the leases of `turns` for `seconds`. Returns the turns that somebody wants to cancel or that no longer belong to this
    /// server. Replaces a failed connection once.
    ///
    /// # Errors
    /// Database errors, if a new connection fails as well.
    pub async fn renew(&mut self, turns: &[Uuid], seconds: i32) -> Result<Vec<Uuid>> {
        match self.say(turns, seconds).await {
            Ok(unwanted) => Ok(unwanted),
            Err(error) => {
                tracing::warn!(%error, "lost the liveness connection; opening a new one");
                self.forget();
                self.end_others().await?;
                self.say(turns, seconds).await
            }
        }
    }

    async fn say(&mut self, turns: &[Uuid], seconds: i32) -> Result<Vec<Uuid>> {
        let instance = self.instance;
        let ahead = follow_clock(self.link().await?).await?;
        self.compare(ahead);
        if turns.is_empty() {
            return Ok(Vec::new());
        }
        let link = self.link().await?;
        let rows = sqlx::query("SELECT * FROM renew_leases($1, $2, $3) AS id")
            .bind(instance)
            .bind(turns)
            .bind(seconds)
            .fetch_all(link)
            .await?;
        rows.iter().map(|row| row.read("id")).collect()
    }

    /// Says when this machine's clock begins to be wrong, and when it is right again.
    fn compare(&mut self, ahead: time::Duration) {
        metrics::CLOCK_AHEAD.set(ahead.as_seconds_f64());
        let is_wrong = ahead.abs() >= CLOCK_OFF_MAX;
        if is_wrong != self.is_clock_wrong {
            self.is_clock_wrong = is_wrong;
            if is_wrong {
                let seconds = ahead.whole_seconds();
                tracing::warn!(
                    seconds,
                    "this machine's clock is ahead of the database's (behind it, if negative); the database's counts"
                );
            } else {
                tracing::info!("this machine's clock is right again");
            }
        }
    }

    fn forget(&mut self) {
        self.link = None;
        self.is_locked = false;
    }

    /// The connection. It holds the lock, unless a lost connection still does.
    async fn link(&mut self) -> Result<&mut Link> {
        let number = i32::try_from(self.instance).map_err(Error::internal)?;
        let link = match self.link.take() {
            Some(link) => link,
            None => {
                let options = PgConnectOptions::from_str(&self.url)?.application_name(&self.name);
                Link::open(&options, GREETING, limit_of(STATEMENT), std::sync::Arc::default()).await?
            }
        };
        let link = self.link.insert(link);
        if !self.is_locked {
            let row = sqlx::query("SELECT pg_try_advisory_lock($1, $2) AS locked").bind(CLASS).bind(number);
            self.is_locked = row.fetch_one(&mut *link).await?.read("locked")?;
        }
        Ok(link)
    }

    /// Ends a lost connection that still holds this server's lock in the database.
    async fn end_others(&mut self) -> Result<()> {
        self.link().await?;
        let (Some(link), false) = (&mut self.link, self.is_locked) else { return Ok(()) };
        // The lost connection belongs to the login role, and the application role may not end it. Only integers are written into
        // this statement.
        let statement = format!(
            "RESET ROLE; SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted \
                 AND classid::bigint = {CLASS} AND objid::bigint = {} \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()); SET ROLE tavernkeep_app",
            self.instance
        );
        link.execute(AssertSqlSafe(statement)).await?;
        Ok(())
    }
}

/// Lets this process follow the database's clock. Returns how far this machine's clock is ahead of it. One statement.
///
/// # Errors
/// Database errors.
pub(crate) async fn follow_clock<'c>(db: impl PgExecutor<'c>) -> Result<time::Duration> {
    let asked = Instant::now();
    let row = sqlx::query("SELECT clock_timestamp()").fetch_one(db).await?;
    let (told,) = row.read_all::<(OffsetDateTime,)>()?;
    clock::follow(asked, told, Instant::now());
    Ok(clock::ahead_of(told))
}

/// The address of a server that runs on a database: of the one that came last, if this role may see that. Others who may connect to the
/// database can call themselves what they like, so only connections of the application's roles count.
///
/// # Errors
/// Database errors.
pub async fn announced(db: &mut PgConnection) -> Result<Option<String>> {
    let row = sqlx::query(
        "SELECT substr(application_name, length($1) + 1) AS address FROM pg_stat_activity \
         WHERE datname = current_database() AND starts_with(application_name, $1 || 'http') \
           AND pg_has_role(usesysid, 'tavernkeep_app', 'MEMBER') ORDER BY backend_start DESC LIMIT 1",
    )
    .bind(NAME)
    .fetch_optional(db)
    .await?;
    row.map(|row| row.read("address")).transpose()
}
