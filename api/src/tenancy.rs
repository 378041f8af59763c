//! [`TenantTx`]: the only door to tenant tables.
//!
//! A transaction that carries its tenant, and for writes who acts in which request and turn, as settings local to it;
//! row security and the journal read them. Nothing else in the server may run a statement on a tenant table. Commit is
//! explicit; a transaction that is dropped rolls back. Never hold one across a model call.

use std::{
    fmt::Write as _,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::lock::{Mutex, MutexGuard};
use sea_orm::{ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, RuntimeErr, Statement};
use sqlx::{AssertSqlSafe, Executor, PgConnection, PgPool, Postgres, Transaction};
use uuid::Uuid;

use crate::{error::Result, http::RequestId, ops::metrics};

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
    pub turn: Option<Uuid>,
    pub origin: Origin,
    pub request: RequestId,
}

impl Actor {
    /// The server itself acting for a tenant.
    #[must_use]
    pub fn system(tenant: Uuid) -> Self {
        Self { tenant, key: None, turn: None, origin: Origin::System, request: RequestId::generate() }
    }

    #[must_use]
    pub fn in_turn(mut self, turn: Uuid, origin: Origin) -> Self {
        self.turn = Some(turn);
        self.origin = origin;
        self
    }
}

/// A transaction within one tenant.
pub struct TenantTx {
    inner: Mutex<Transaction<'static, Postgres>>,
    tenant: Uuid,
}

impl TenantTx {
    /// Opens a transaction that can only read. One round trip.
    ///
    /// # Errors
    /// `unavailable` when no connection is free in time.
    pub async fn read(pool: &PgPool, tenant: Uuid) -> Result<Self> {
        Self::open(pool, tenant, format!("BEGIN READ ONLY; SET LOCAL app.tenant_id = '{tenant}'")).await
    }

    /// Opens a transaction that writes. One round trip, and one more if the client named the request itself.
    ///
    /// # Errors
    /// `unavailable` when no connection is free in time.
    pub async fn write(pool: &PgPool, actor: &Actor) -> Result<Self> {
        Self::write_with(pool, actor, "").await
    }

    /// Opens a transaction that writes what may be lost if PostgreSQL itself crashes, such as that a turn begins: its
    /// commit does not wait for the disk.
    ///
    /// # Errors
    /// `unavailable` when no connection is free in time.
    pub async fn write_lazily(pool: &PgPool, actor: &Actor) -> Result<Self> {
        Self::write_with(pool, actor, "; SET LOCAL synchronous_commit = off").await
    }

    async fn write_with(pool: &PgPool, actor: &Actor, more: &str) -> Result<Self> {
        // Only UUIDs and words of our own are written into the statement; a client's request id is bound.
        let mut sql = format!(
            "BEGIN; SET LOCAL app.tenant_id = '{}'; SET LOCAL app.origin = '{}'",
            actor.tenant,
            actor.origin.as_str()
        );
        let ids = [("key_id", actor.key), ("turn_id", actor.turn), ("request_id", actor.request.as_uuid())];
        for (name, id) in ids.into_iter().filter_map(|(name, id)| Some((name, id?))) {
            let _ = write!(sql, "; SET LOCAL app.{name} = '{id}'");
        }
        sql.push_str(more);
        let tx = Self::open(pool, actor.tenant, sql).await?;
        if actor.request.as_uuid().is_none() {
            sqlx::query("SELECT set_config('app.request_id', $1, true)")
                .bind(actor.request.as_str())
                .execute(&mut *tx.connection().await)
                .await?;
        }
        Ok(tx)
    }

    async fn open(pool: &PgPool, tenant: Uuid, sql: String) -> Result<Self> {
        let pool = pool.clone();
        let begin = Finish(Some(Box::pin(async move { pool.begin_with(AssertSqlSafe(sql)).await })));
        Ok(Self { inner: Mutex::new(begin.await?), tenant })
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

    /// Makes what was written last.
    ///
    /// # Errors
    /// What a deferred constraint found.
    pub async fn commit(self) -> Result<()> {
        Ok(self.inner.into_inner().commit().await?)
    }
}

type Opening = Pin<Box<dyn Future<Output = sqlx::Result<Transaction<'static, Postgres>>> + Send>>;

/// Finishes opening a transaction although nobody waits for it any more. The driver knows of a transaction only once the
/// server has answered BEGIN; a request that is dropped before that would leave it open on a connection of the pool.
struct Finish(Option<Opening>);

impl Future for Finish {
    type Output = sqlx::Result<Transaction<'static, Postgres>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(opening) = &mut self.0 else { return Poll::Pending };
        let result = opening.as_mut().poll(cx);
        if result.is_ready() {
            self.0 = None;
        }
        result
    }
}

impl Drop for Finish {
    fn drop(&mut self) {
        if let (Some(opening), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(opening);
        }
    }
}

/// The transaction's connection while a statement runs on it.
pub struct Conn<'a>(MutexGuard<'a, Transaction<'static, Postgres>>);

impl std::ops::Deref for Conn<'_> {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        &self.0
    }
}

impl std::ops::DerefMut for Conn<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
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
