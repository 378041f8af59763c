//! [`TenantTx`]: the only door to tenant tables (and [`call`], which is a whole transaction of it in one round trip).
//!
//! A transaction that carries its tenant, and for writes who acts in which request and turn, as settings local to it;
//! row security and the journal read them. Nothing else in the server may run a statement on a tenant table. Commit is
//! explicit; a transaction that is dropped rolls back. Never hold one across a model call.

use std::{sync::PoisonError, time::Duration};

use futures_util::lock::{Mutex, MutexGuard};
use sea_orm::{ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, RuntimeErr, Statement};
use sqlx::{
    AssertSqlSafe, Executor, Postgres,
    postgres::{PgArguments, PgRow},
    query::Query,
};
use uuid::Uuid;

use crate::{
    error::{Error, Result},
    http::RequestId,
    link::{Link, is_silence, limit_of},
    ops::metrics,
    pool::{Lease, Pool},
    retry::{self, Patience},
};

/// Where a change came from, as the journal tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A client's request.
    #[default]
    Api,
    /// A tool an AI entity called.
    Turn,
    /// An import.
    Import,
    /// A fork: the first rows of a campaign's journal.
    Fork,
    /// The undoing of a turn.
    Revert,
    /// A maintenance task or the command line.
    System,
}

impl Origin {
    fn as_str(self) -> &'static str {
        match self {
            Origin::Api => "api",
            Origin::Turn => "turn",
            Origin::Import => "import",
            Origin::Fork => "fork",
            Origin::Revert => "revert",
            Origin::System => "system",
        }
    }
}

/// Who acts: what the journal remembers of a write.
#[derive(Clone, Debug)]
pub struct Actor {
    pub tenant: Uuid,
    pub key: Option<Uuid>,
    /// A user of the editor, instead of a key.
    pub user: Option<Uuid>,
    pub turn: Option<Uuid>,
    pub origin: Origin,
    pub request: RequestId,
}

impl Actor {
    /// The server itself acting for a tenant.
    #[must_use]
    pub fn system(tenant: Uuid) -> Self {
        Self { tenant, key: None, user: None, turn: None, origin: Origin::System, request: RequestId::generate() }
    }

    /// The same as the journal's trigger reads it: `origin|key|turn|request`, with `user:` before a user's id in the key's place.
    fn who(&self, request: &str) -> String {
        let id = |id: Option<Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
        let by = self.user.map_or_else(|| id(self.key), |user| format!("user:{user}"));
        format!("{}|{by}|{}|{request}", self.origin.as_str(), id(self.turn))
    }

    /// Who acts, as functions of the database take it.
    #[must_use]
    pub fn signature(&self) -> String {
        self.who(&self.request.to_string())
    }

    #[must_use]
    pub fn in_turn(mut self, turn: Uuid, origin: Origin) -> Self {
        self.turn = Some(turn);
        self.origin = origin;
        self
    }
}

/// A transaction of its own in one round trip: a function of the database that begins by setting `app.tenant_id` and
/// `app.who` from its first two parameters, and so is bound by row security like every other statement. `bind` gives the rest.
/// For the hot paths only, whose statements are then in the database's functions.
///
/// # Errors
/// `unavailable` when no connection is free in time; what the function says.
pub async fn call<'q>(
    pool: &Pool,
    actor: &Actor,
    statement: &'static str,
    bind: impl FnOnce(Call<'q>) -> Call<'q>,
) -> Result<PgRow> {
    let row = call_optional(pool, actor, statement, bind).await?;
    row.ok_or_else(|| Error::internal("a function that returned no row"))
}

/// The same for a function that may return no row.
///
/// # Errors
/// As for [`call`].
pub async fn call_optional<'q>(
    pool: &Pool,
    actor: &Actor,
    statement: &'static str,
    bind: impl FnOnce(Call<'q>) -> Call<'q>,
) -> Result<Option<PgRow>> {
    metrics::STATEMENTS.inc();
    let query = sqlx::query(statement).bind(actor.tenant).bind(actor.signature());
    let mut lease = pool.acquire().await?;
    let row = bind(query).fetch_optional(&mut *lease).await.map_err(|error| Error::from(error).of_commit())?;
    lease.done();
    Ok(row)
}

/// A statement and what is bound to it.
pub type Call<'q> = Query<'q, Postgres, PgArguments>;

/// Something that hangs on whether a transaction is committed. If it is not, this is dropped before others can see that.
pub trait Fate: Send {
    /// It was committed.
    fn committed(self: Box<Self>);
}

/// A transaction within one tenant.
pub struct TenantTx {
    /// The first field, because it is to be dropped before the connection is given back.
    fates: std::sync::Mutex<Vec<Box<dyn Fate>>>,
    inner: Mutex<Lease>,
    tenant: Uuid,
    pool: Pool,
    /// By which PostgreSQL knows what became of it ([`retry::NUMBER`]); none if it only reads.
    number: Option<String>,
}

impl TenantTx {
    /// Opens a transaction that can only read. One round trip.
    ///
    /// # Errors
    /// `unavailable` when no connection is free in time.
    pub async fn read(pool: &Pool, tenant: Uuid) -> Result<Self> {
        Self::open(pool, tenant, &format!("BEGIN READ ONLY; SET LOCAL app.tenant_id = '{tenant}'"), None).await
    }

    /// Opens a transaction that writes. One round trip, and one more if the client named the request itself.
    ///
    /// # Errors
    /// `unavailable` when no connection is free in time.
    pub async fn write(pool: &Pool, actor: &Actor) -> Result<Self> {
        Self::write_as(pool, actor, None, |who| {
            format!("SET LOCAL app.tenant_id = '{}'; SET LOCAL app.who = '{who}'", actor.tenant)
        })
        .await
    }

    /// Opens a transaction that writes what may be lost if PostgreSQL itself crashes, such as that a turn begins: its
    /// commit does not wait for the disk.
    ///
    /// # Errors
    /// `unavailable` when no connection is free in time.
    pub async fn write_lazily(pool: &Pool, actor: &Actor) -> Result<Self> {
        let settings = |who: &str| {
            format!(
                "SET LOCAL app.tenant_id = '{}'; SET LOCAL app.who = '{who}'; SET LOCAL synchronous_commit = off",
                actor.tenant
            )
        };
        Self::write_as(pool, actor, None, settings).await
    }

    /// Opens a transaction that reads everything as of one moment, writes much, and may take its time. One round trip.
    ///
    /// # Errors
    /// `unavailable` when no connection is free in time.
    pub async fn write_at_one_moment(pool: &Pool, actor: &Actor, seconds_max: u32) -> Result<Self> {
        let settings = |who: &str| {
            format!(
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET LOCAL statement_timeout = '{seconds_max}s'; \
                 SET LOCAL enable_seqscan = on; SET LOCAL app.tenant_id = '{}'; SET LOCAL app.who = '{who}'",
                actor.tenant
            )
        };
        Self::write_as(pool, actor, Some(seconds(seconds_max)), settings).await
    }

    /// Opens a transaction that reads everything as of one moment, and may wait a minute for who takes what it reads. One round trip.
    ///
    /// # Errors
    /// `unavailable` when no connection is free in time.
    pub async fn read_at_one_moment(pool: &Pool, tenant: Uuid) -> Result<Self> {
        let sql = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = '60s'; \
             SET LOCAL app.tenant_id = '{tenant}'"
        );
        Self::open(pool, tenant, &sql, None).await
    }

    /// Opens a transaction that writes much, and may take its time. One round trip.
    ///
    /// # Errors
    /// `unavailable` when no connection is free in time.
    pub async fn write_much(pool: &Pool, actor: &Actor, seconds_max: u32) -> Result<Self> {
        let settings = |who: &str| {
            format!(
                "SET LOCAL statement_timeout = '{seconds_max}s'; SET LOCAL lock_timeout = '10s'; \
                 SET LOCAL idle_in_transaction_session_timeout = '60s'; \
                 SET LOCAL app.tenant_id = '{}'; SET LOCAL app.who = '{who}'",
                actor.tenant
            )
        };
        Self::write_as(pool, actor, Some(seconds(seconds_max)), settings).await
    }

    /// Opens a transaction for a batch of a turn's tool calls and holds the turn until it ends. One round trip.
    ///
    /// # Errors
    /// `conflict` if the turn is no longer this server's.
    pub async fn hold_turn(pool: &Pool, actor: &Actor, turn: Uuid, instance: i64) -> Result<Self> {
        Self::write_as(pool, actor, None, |who| {
            format!("SELECT turn_hold('{}', '{who}', '{turn}', {instance})", actor.tenant)
        })
        .await
    }

    /// Opens a transaction with statements that set whose it is and who acts.
    async fn write_as(
        pool: &Pool,
        actor: &Actor,
        statement_max: Option<Duration>,
        settings: impl FnOnce(&str) -> String,
    ) -> Result<Self> {
        // Only UUIDs, integers and words of our own are written into the statement; a client's request id is bound.
        let request = actor.request.as_uuid().map(|id| id.to_string());
        let who = actor.who(request.as_deref().unwrap_or_default());
        let sql = format!("BEGIN; {}; {}", settings(&who), retry::NUMBER);
        let (lease, number) = begin(pool, &sql, statement_max).await?;
        let tx = Self { number, ..Self::begun(pool, actor.tenant, lease) };
        if request.is_none() {
            sqlx::query("SELECT set_config('app.who', $1, true)")
                .bind(actor.who(actor.request.as_str()))
                .execute(&mut *tx.connection().await)
                .await?;
        }
        Ok(tx)
    }

    async fn open(pool: &Pool, tenant: Uuid, sql: &str, statement_max: Option<Duration>) -> Result<Self> {
        let (lease, _) = begin(pool, sql, statement_max).await?;
        Ok(Self::begun(pool, tenant, lease))
    }

    fn begun(pool: &Pool, tenant: Uuid, lease: Lease) -> Self {
        let (fates, inner) = (std::sync::Mutex::default(), Mutex::new(lease));
        Self { fates, inner, tenant, pool: pool.clone(), number: None }
    }

    /// From now on a statement may take so long.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn take_time(&self, seconds_max: u32) -> Result<()> {
        let mut conn = self.connection().await;
        conn.allow(limit_of(seconds(seconds_max)));
        conn.execute(AssertSqlSafe(format!("SET LOCAL statement_timeout = '{seconds_max}s'"))).await?;
        Ok(())
    }

    /// The tenant whose rows this transaction sees.
    #[must_use]
    pub fn tenant(&self) -> Uuid {
        self.tenant
    }

    /// The connection, for statements written by hand; each use counts as one statement.
    pub async fn connection(&self) -> Conn<'_> {
        metrics::STATEMENTS.inc();
        Conn(self.inner.lock().await)
    }

    /// Makes what was written last. If the answer is lost, PostgreSQL is asked what became of it.
    ///
    /// # Errors
    /// What a deferred constraint found; `unavailable`, in doubt if nobody knows whether it was committed.
    pub async fn commit(self) -> Result<()> {
        self.commit_within(retry::BRIEF).await
    }

    /// The same with another patience for the question.
    ///
    /// # Errors
    /// As for [`Self::commit`].
    pub async fn commit_within(self, patience: Patience) -> Result<()> {
        let Self { fates, inner, pool, number, .. } = self;
        if let Err(lost) = inner.into_inner().commit().await {
            retry::fate(&pool, number.as_deref(), patience, Error::from(lost).of_commit()).await?;
        }
        let fates = fates.into_inner().unwrap_or_else(PoisonError::into_inner);
        fates.into_iter().for_each(Fate::committed);
        Ok(())
    }

    /// Tells something when this is committed, and drops it if that does not happen.
    pub fn bind_fate(&self, fate: Box<dyn Fate>) {
        self.fates.lock().unwrap_or_else(PoisonError::into_inner).push(fate);
    }

    /// Where its connection is from, for what has to be written even if this is not committed.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
}

fn seconds(n: u32) -> Duration {
    Duration::from_secs(n.into())
}

/// Connections that may turn out to be dead before one is not. The first makes the pool look at all others before they are used.
const DEAD_MAX: usize = 4;

/// Begins a transaction, and gives the text that the last statement gave. Nothing was done on a connection that breaks here, so the
/// next one is taken; not after one that was silent, since that took its time.
async fn begin(pool: &Pool, sql: &str, statement_max: Option<Duration>) -> Result<(Lease, Option<String>)> {
    let mut dead = 0;
    loop {
        let mut lease = pool.acquire().await?;
        match lease.begin(sql, statement_max).await {
            Ok(number) => return Ok((lease, number)),
            Err(error) if !is_silence(&error) && dead < DEAD_MAX => {
                let error = Error::from(error);
                if !error.is_outage() {
                    return Err(error);
                }
                dead += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The transaction's connection while a statement runs on it.
pub struct Conn<'a>(MutexGuard<'a, Lease>);

impl std::ops::Deref for Conn<'_> {
    type Target = Link;
    fn deref(&self) -> &Link {
        &self.0
    }
}

impl std::ops::DerefMut for Conn<'_> {
    fn deref_mut(&mut self) -> &mut Link {
        &mut self.0
    }
}

fn bound(statement: &Statement) -> sqlx::query::Query<'_, Postgres, sea_query_sqlx::SqlxValues> {
    let values = statement.values.clone().unwrap_or(sea_orm::sea_query::Values(Vec::new()));
    sqlx::query_with(AssertSqlSafe(statement.sql.as_str()), sea_query_sqlx::SqlxValues(values))
}

fn query_error(error: sqlx::Error) -> DbErr {
    DbErr::Query(RuntimeErr::SqlxError(error.into()))
}

#[async_trait::async_trait]
impl ConnectionTrait for TenantTx {
    fn get_database_backend(&self) -> DbBackend {
        DbBackend::Postgres
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        let mut conn = self.connection().await;
        bound(&statement).execute(&mut *conn).await.map(Into::into).map_err(query_error)
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        let mut conn = self.connection().await;
        (&mut *conn).execute(AssertSqlSafe(sql)).await.map(Into::into).map_err(query_error)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        let mut conn = self.connection().await;
        let row = bound(&statement).fetch_optional(&mut *conn).await.map_err(query_error)?;
        Ok(row.map(Into::into))
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let mut conn = self.connection().await;
        let rows = bound(&statement).fetch_all(&mut *conn).await.map_err(query_error)?;
        Ok(rows.into_iter().map(Into::into).collect())
    }
}
