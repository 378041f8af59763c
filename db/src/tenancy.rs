//! [`TenantTx`], the only way to tenant tables (with [`call`] and [`SingleReads`], whose transactions are one statement each).
//!
//! A transaction sets its tenant as a local setting, and for writes also who acts, in which request and turn. Row
//! security and the journal read these settings. Nothing else in the server may run a statement on a tenant table.
//! Commit explicitly; dropping a transaction rolls it back. Never hold one across a model call.

use std::{
    sync::PoisonError,
    time::{Duration, Instant},
};

use futures_util::lock::{Mutex, MutexGuard};
use sea_orm::{ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, RuntimeErr, Statement, sea_query::Expr};
use sqlx::{
    AssertSqlSafe, Executor, Postgres,
    postgres::{PgArguments, PgRow},
    query::Query,
};
use uuid::Uuid;

use crate::{
    link::{Link, is_silence, limit_of},
    pool::{Lease, Pool},
    retry::{self, BRIEF, Patience, Tries},
};
use base::{
    error::{Error, Result, is_outage},
    metrics,
    request_id::RequestId,
};

/// Where a change came from, as the journal records it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A client's request.
    #[default]
    Api,
    /// A tool that an AI entity called.
    Turn,
    /// An import.
    Import,
    /// A fork: the first rows of a campaign's journal.
    Fork,
    /// A revert or an undo.
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

/// Who acts, as the journal records it.
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

    /// The form that the journal's trigger parses: `origin|key|turn|request`. A user's id, prefixed with `user:`, takes the key's
    /// place.
    fn who(&self, request: &str) -> String {
        let id = |id: Option<Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
        let by = self.user.map_or_else(|| id(self.key), |user| format!("user:{user}"));
        format!("{}|{by}|{}|{request}", self.origin.as_str(), id(self.turn))
    }

    /// Who acts, in the form that database functions take.
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

/// A whole transaction in one round trip: calls a database function that first sets `app.tenant_id` and `app.who` from its
/// first two parameters, so that row security applies to it as to every other statement. `bind` adds the other parameters. Use
/// this for hot paths only, because their SQL then lives in database functions.
///
/// # Errors
/// `unavailable` if no connection is free in time; errors that the function raises.
pub async fn call<'q>(
    pool: &Pool,
    actor: &Actor,
    statement: &'static str,
    bind: impl FnOnce(Call<'q>) -> Call<'q>,
) -> Result<PgRow> {
    let row = call_optional(pool, actor, statement, bind).await?;
    row.ok_or_else(|| Error::internal("a database function returned no row"))
}

/// [`call`] for a function that may return no row.
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
    let mut lease = pool.acquire_for(Some(actor.tenant)).await?;
    let row = bind(query).fetch_optional(&mut *lease).await.map_err(|error| Error::from(error).of_commit())?;
    lease.give_back();
    Ok(row)
}

/// Statements that only read, each a transaction of its own: one round trip instead of the three of begin, statement and end.
///
/// Each must have the condition [`SingleReads::condition`], which sets its tenant. Row security hides every row from a statement without
/// it.
pub struct SingleReads<'p> {
    pool: &'p Pool,
    tenant: Uuid,
}

impl<'p> SingleReads<'p> {
    /// Reads as a tenant. Takes a connection for each statement.
    #[must_use]
    pub fn new(pool: &'p Pool, tenant: Uuid) -> Self {
        Self { pool, tenant }
    }

    /// A condition that is always true. PostgreSQL checks a condition without columns once, before it scans, and checking this one sets
    /// the tenant until the statement ends.
    #[must_use]
    pub fn condition(&self) -> Expr {
        let tenant = self.tenant.to_string();
        Expr::cust_with_values("(SELECT set_config('app.tenant_id', $1, true)) IS NOT NULL", [tenant])
    }

    async fn rows(&self, statement: &Statement) -> Result<Vec<PgRow>, DbErr> {
        let mut dead = Dead::default();
        loop {
            metrics::STATEMENTS.inc();
            let mut lease = self.pool.acquire_for(Some(self.tenant)).await.map_err(query_error)?;
            match bound(statement).fetch_all(&mut *lease).await {
                Ok(rows) => {
                    lease.give_back();
                    return Ok(rows);
                }
                Err(error) if dead.skips(&error) => {}
                Err(error) => return Err(query_error(error)),
            }
        }
    }
}

/// A statement and its parameters.
pub type Call<'q> = Query<'q, Postgres, PgArguments>;

/// Something that depends on whether a transaction commits. If it does not, this is dropped before others can see the
/// rollback.
pub trait Fate: Send {
    /// The transaction was committed.
    fn committed(self: Box<Self>);
}

/// After this many seconds without a sign of life, a turn is no longer its server's.
pub const TURN_LEASE_SECONDS: i32 = 20;
/// A transaction that has held a turn for longer than this renews the turn's lease itself, and gets more time for its commit.
const HELD_LONG: Duration = Duration::from_secs(1);
/// How long the commit of such a transaction may take.
const COMMIT_SECONDS_MAX: u32 = 60;

/// A transaction within one tenant.
pub struct TenantTx {
    /// The first field, so that it is dropped before the connection is returned.
    fates: std::sync::Mutex<Vec<Box<dyn Fate>>>,
    inner: Mutex<Lease>,
    tenant: Uuid,
    pool: Pool,
    /// How PostgreSQL can tell later whether it was committed ([`retry::NUMBER`]); `None` if it only reads.
    number: Option<String>,
    begun_at: Instant,
}

impl TenantTx {
    /// Opens a read-only transaction. One round trip.
    ///
    /// # Errors
    /// `unavailable` if no connection is free in time.
    pub async fn read(pool: &Pool, tenant: Uuid) -> Result<Self> {
        Self::open(pool, tenant, &format!("BEGIN READ ONLY; SET LOCAL app.tenant_id = '{tenant}'"), None).await
    }

    /// Opens a transaction that writes. One round trip, and one more if the client chose the request's id.
    ///
    /// # Errors
    /// `unavailable` if no connection is free in time.
    pub async fn write(pool: &Pool, actor: &Actor) -> Result<Self> {
        Self::write_as(pool, actor, None, |who| {
            format!("SET LOCAL app.tenant_id = '{}'; SET LOCAL app.who = '{who}'", actor.tenant)
        })
        .await
    }

    /// Opens a transaction for writes that may be lost if PostgreSQL itself crashes, such as the beginning of a turn.
    /// Its commit does not wait for the disk.
    ///
    /// # Errors
    /// `unavailable` if no connection is free in time.
    pub async fn write_lazily(pool: &Pool, actor: &Actor) -> Result<Self> {
        let settings = |who: &str| {
            format!(
                "SET LOCAL app.tenant_id = '{}'; SET LOCAL app.who = '{who}'; SET LOCAL synchronous_commit = off",
                actor.tenant
            )
        };
        Self::write_as(pool, actor, None, settings).await
    }

    /// Opens a long transaction that reads from one snapshot and writes much. One round trip.
    ///
    /// # Errors
    /// `unavailable` if no connection is free in time.
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

    /// Opens a read-only transaction that reads from one snapshot and may idle for a minute while its consumer catches up. One round
    /// trip.
    ///
    /// # Errors
    /// `unavailable` if no connection is free in time.
    pub async fn read_at_one_moment(pool: &Pool, tenant: Uuid) -> Result<Self> {
        let sql = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = '60s'; \
             SET LOCAL app.tenant_id = '{tenant}'"
        );
        Self::open(pool, tenant, &sql, None).await
    }

    /// Opens a long transaction that writes much. One round trip.
    ///
    /// # Errors
    /// `unavailable` if no connection is free in time.
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

    /// Opens a transaction for a batch of a turn's tool calls and locks the turn until it ends. One round trip.
    ///
    /// # Errors
    /// `conflict` if the turn no longer belongs to this server.
    pub async fn hold_turn(pool: &Pool, actor: &Actor, turn: Uuid, instance: i64) -> Result<Self> {
        Self::write_as(pool, actor, None, |who| {
            format!("SELECT turn_hold('{}', '{who}', '{turn}', {instance})", actor.tenant)
        })
        .await
    }

    /// Lets the rest of the transaction act as somebody else, in the journal. Triggers write the journal's rows at the commit, so what was
    /// changed before is written now.
    ///
    /// # Errors
    /// Database errors.
    pub async fn act_as(&self, actor: &Actor) -> Result<()> {
        self.connection().await.execute("SET CONSTRAINTS b_journal IMMEDIATE").await?;
        let query = sqlx::query("SELECT set_config('app.who', $1, true)").bind(actor.signature());
        query.execute(&mut *self.connection().await).await?;
        Ok(())
    }

    /// Prepares the commit of a transaction that has held a turn for long ([`Self::hold_turn`]). No round trip if it was short.
    ///
    /// - It renews the turn's lease. Nobody else could in that time, and without this the turn would count as abandoned from the commit
    ///   until its server's next sign of life.
    /// - It allows a long commit, because the journal is written then: 16,000 rows can take longer than one statement may.
    ///
    /// # Errors
    /// Database errors.
    pub async fn renew_held(&self, turn: Uuid) -> Result<()> {
        if self.begun_at.elapsed() > HELD_LONG {
            let renew = "UPDATE turn SET lease_until = clock_timestamp() + $3 * interval '1 second' WHERE tenant_id = $1 AND id = $2";
            let seconds = TURN_LEASE_SECONDS.saturating_add_unsigned(COMMIT_SECONDS_MAX);
            let query = sqlx::query(renew).bind(self.tenant).bind(turn).bind(seconds);
            query.execute(&mut *self.connection().await).await?;
            self.take_time(COMMIT_SECONDS_MAX).await?;
        }
        Ok(())
    }

    /// Opens a transaction with statements that set its tenant and who acts.
    async fn write_as(
        pool: &Pool,
        actor: &Actor,
        statement_max: Option<Duration>,
        settings: impl FnOnce(&str) -> String,
    ) -> Result<Self> {
        // Only UUIDs, integers and our own constants are written into the statement. A client's request id is bound as
        // a parameter.
        let request = actor.request.as_uuid().map(|id| id.to_string());
        let who = actor.who(request.as_deref().unwrap_or_default());
        let sql = format!("BEGIN; {}; {}", settings(&who), retry::NUMBER);
        let (lease, number) = begin((pool, actor.tenant), &sql, statement_max).await?;
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
        let (lease, _) = begin((pool, tenant), sql, statement_max).await?;
        Ok(Self::begun(pool, tenant, lease))
    }

    fn begun(pool: &Pool, tenant: Uuid, lease: Lease) -> Self {
        let (fates, inner) = (std::sync::Mutex::default(), Mutex::new(lease));
        Self { fates, inner, tenant, pool: pool.clone(), number: None, begun_at: Instant::now() }
    }

    /// Sets how long each statement may take from now on.
    ///
    /// # Errors
    /// Database errors.
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

    /// The connection, for handwritten SQL. Each call counts as one statement.
    pub async fn connection(&self) -> Conn<'_> {
        metrics::STATEMENTS.inc();
        Conn(self.inner.lock().await)
    }

    /// Commits. If the answer is lost, this asks PostgreSQL whether the transaction was committed.
    ///
    /// # Errors
    /// Violations of deferred constraints; `unavailable`, in doubt if it is unknown whether the transaction was
    /// committed.
    pub async fn commit(self) -> Result<()> {
        self.commit_within(BRIEF).await
    }

    /// [`Self::commit`], with the given patience for asking whether it was committed.
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

    /// Notifies `fate` when this transaction is committed, and drops it otherwise.
    pub fn bind_fate(&self, fate: Box<dyn Fate>) {
        self.fates.lock().unwrap_or_else(PoisonError::into_inner).push(fate);
    }

    /// The pool of its connection, for writes that must happen even if this transaction does not commit.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
}

fn seconds(n: u32) -> Duration {
    Duration::from_secs(n.into())
}

/// How many dead connections to skip. The first one makes the pool check all others before use.
const DEAD_MAX: usize = 4;

/// The connections that broke before they had done anything.
#[derive(Default)]
struct Dead(usize);

impl Dead {
    /// Whether to try the next connection. Not after a silent one, because that already took its time.
    fn skips(&mut self, error: &sqlx::Error) -> bool {
        let skips = self.0 < DEAD_MAX && !is_silence(error) && is_outage(error);
        self.0 += usize::from(skips);
        skips
    }
}

/// Begins a transaction and returns the text of the last statement's result. Tries the next connection if one is dead.
async fn begin(
    (pool, tenant): (&Pool, Uuid),
    sql: &str,
    statement_max: Option<Duration>,
) -> Result<(Lease, Option<String>)> {
    let mut dead = Dead::default();
    loop {
        let mut lease = pool.acquire_for(Some(tenant)).await?;
        match lease.begin(sql, statement_max).await {
            Ok(number) => return Ok((lease, number)),
            Err(error) if dead.skips(&error) => {}
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

#[async_trait::async_trait]
impl ConnectionTrait for SingleReads<'_> {
    fn get_database_backend(&self) -> DbBackend {
        DbBackend::Postgres
    }

    async fn execute_raw(&self, _: Statement) -> Result<ExecResult, DbErr> {
        Err(DbErr::Custom("a single read does not write".to_owned()))
    }

    async fn execute_unprepared(&self, _: &str) -> Result<ExecResult, DbErr> {
        Err(DbErr::Custom("a single read does not write".to_owned()))
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        Ok(self.rows(&statement).await?.into_iter().next().map(Into::into))
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        Ok(self.rows(&statement).await?.into_iter().map(Into::into).collect())
    }
}

/// Runs `work` in a transaction and commits it. Retries errors that will pass.
///
/// # Errors
/// Those of `work`. Nothing is written then, unless the error is in doubt.
pub async fn write<T>(pool: &Pool, actor: Actor, work: impl AsyncFn(&TenantTx) -> Result<T>) -> Result<T> {
    retry::repeat(BRIEF, async || {
        let tx = TenantTx::write(pool, &actor).await?;
        let done = work(&tx).await?;
        tx.commit().await?;
        Ok(done)
    })
    .await
}

/// Runs one statement in a transaction that may be lost if PostgreSQL itself crashes ([`TenantTx::write_lazily`]). Retries
/// errors that will pass. The statement's first parameter is the tenant, and `bind` adds the others.
///
/// # Errors
/// Those of the statement.
pub async fn execute_lazily<'q>(
    pool: &Pool,
    actor: &Actor,
    statement: &'static str,
    bind: impl Fn(Call<'q>) -> Call<'q>,
) -> Result<()> {
    let mut tries = Tries::with(BRIEF);
    loop {
        match execute_once(pool, actor, bind(sqlx::query(statement).bind(actor.tenant))).await {
            Err(error) if tries.wait_to_retry(&error).await => {}
            done => return done,
        }
    }
}

async fn execute_once(pool: &Pool, actor: &Actor, query: Call<'_>) -> Result<()> {
    let tx = TenantTx::write_lazily(pool, actor).await?;
    query.execute(&mut *tx.connection().await).await?;
    tx.commit().await
}
