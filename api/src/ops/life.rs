//! This server's sign of life: a connection of its own that holds an advisory lock and says that turns go on.
//!
//! It is no connection of the pool, so that saying so never queues behind requests. When it is lost or silent, another is opened at
//! once, and no turn is given up: others take a turn only when its lease ran out, or when its server has neither held the lock nor
//! renewed the lease for a few seconds (`orphaned_turns`). What the lost connection may still hold in the database is ended by the
//! new one. Nothing here decides what becomes of a turn.

use std::{str::FromStr, time::Duration};

use sqlx::{AssertSqlSafe, Executor, postgres::PgConnectOptions};
use uuid::Uuid;

use crate::{
    error::{Error, Result},
    link::{Link, limit_of},
    stored::Columns,
};

/// The class of advisory locks by which servers say that they live; `orphaned_turns` looks for it.
const CLASS: i32 = 1_413_567_051;
/// What [`GREETING`] says of statements: less than others', for what is said here is said again soon.
const STATEMENT: Duration = Duration::from_secs(2);
const GREETING: &str = "SET ROLE tavernkeep_app; SET statement_timeout = '2s'; SET lock_timeout = '1s'; SET tcp_keepalives_idle = 5; \
     SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3";

/// The connection, as long as there is one.
pub struct Life {
    url: String,
    instance: i64,
    link: Option<Link>,
    is_locked: bool,
}

impl Life {
    /// Gives the sign of life of the server with this number.
    ///
    /// # Errors
    /// Those of the database; `internal` if another server has this number.
    pub async fn begin(url: &str, instance: i64) -> Result<Self> {
        let mut life = Self { url: url.to_owned(), instance, link: None, is_locked: false };
        life.link().await?;
        if life.is_locked { Ok(life) } else { Err(Error::internal("another server has this one's number")) }
    }

    /// Says that this server lives and its turns go on for so many seconds; gives those that someone wants cancelled, or that are no
    /// longer this server's. A connection that fails is replaced, once.
    ///
    /// # Errors
    /// Those of the database, when a new connection does no better.
    pub async fn renew(&mut self, turns: &[Uuid], seconds: i32) -> Result<Vec<Uuid>> {
        match self.say(turns, seconds).await {
            Ok(unwanted) => Ok(unwanted),
            Err(error) => {
                tracing::warn!(%error, "the sign of life was lost; giving it anew");
                self.forget();
                self.end_others().await?;
                self.say(turns, seconds).await
            }
        }
    }

    async fn say(&mut self, turns: &[Uuid], seconds: i32) -> Result<Vec<Uuid>> {
        let instance = self.instance;
        let link = self.link().await?;
        if turns.is_empty() {
            link.ping().await?;
            return Ok(Vec::new());
        }
        let rows = sqlx::query("SELECT * FROM renew_leases($1, $2, $3) AS id")
            .bind(instance)
            .bind(turns)
            .bind(seconds)
            .fetch_all(link)
            .await?;
        rows.iter().map(|row| row.read("id")).collect()
    }

    fn forget(&mut self) {
        self.link = None;
        self.is_locked = false;
    }

    /// The connection, with the lock unless one that was lost still holds it.
    async fn link(&mut self) -> Result<&mut Link> {
        let number = i32::try_from(self.instance).map_err(Error::internal)?;
        let link = match self.link.take() {
            Some(link) => link,
            None => {
                let options = PgConnectOptions::from_str(&self.url)?.application_name("tavernkeep: life");
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

    /// Ends whatever connection the database still takes for this server's sign of life: it was lost on the way.
    async fn end_others(&mut self) -> Result<()> {
        self.link().await?;
        let (Some(link), false) = (&mut self.link, self.is_locked) else { return Ok(()) };
        // The login owns the lost connection; the role that row security binds may end nothing. Only integers are written into it.
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
