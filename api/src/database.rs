//! Connects to the database and migrates its schema.

use std::{str::FromStr, time::Duration};

use migration::{Migrator, MigratorTrait};
use sqlx::{Connection, Executor, PgConnection, Postgres, postgres::PgConnectOptions};
use tokio::time::timeout;

use crate::life::{Life, follow_clock};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::pool::{BEGIN_WAIT, Pool};

/// How long migrating may take, including the wait for other servers that migrate first.
const MIGRATION_LIMIT: Duration = Duration::from_secs(60 * 60);
/// How long a short command of the operator may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// The advisory lock that lets one server migrate at a time.
const MIGRATION_LOCK: i64 = 6_071_962_513_410_531_145;
/// The first migration of databases that cannot be migrated.
const FIRST_OF_OLD_SCHEMA: &str = "m0001_world";
/// PostgreSQL 15, for `ON DELETE SET NULL (column)`.
const SERVER_VERSION_MIN: i32 = 150_000;

/// Runs an operator's command with a time limit, so that it does not hang on a silent database.
///
/// # Errors
/// Those of `work`; `unavailable` when it takes too long.
pub async fn in_time<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    within(COMMAND_LIMIT, work).await
}

async fn within<T>(limit: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    let late = |_| Err(Error::new(Code::Unavailable, "The database did not answer in time."));
    timeout(limit, work).await.unwrap_or_else(late)
}

/// Connects as the owner of the schema, or as an operator's role.
///
/// # Errors
/// Database errors; a sentence for the operator if the connection would not find our tables.
pub async fn as_owner(url: &str) -> Result<PgConnection> {
    let mut db = PgConnection::connect(url).await?;
    finds_tables(&mut db).await?;
    follow_clock(&mut db).await?;
    Ok(db)
}

/// Our statements name tables without a schema, and migrations make them in the first schema of the search path.
async fn finds_tables<'c>(db: impl Executor<'c, Database = Postgres>) -> Result<()> {
    let row = sqlx::query(
        "SELECT current_schema() IS NOT DISTINCT FROM 'public' AS finds, current_setting('search_path') AS path, \
         session_user AS login, current_user AS role",
    )
    .fetch_one(db)
    .await?;
    if row.read::<bool>("finds")? {
        return Ok(());
    }
    let [path, login, role] = ["path", "login", "role"].map(|name| row.read::<String>(name));
    let (path, login, role) = (path?, login?, role?);
    Err(Error::internal(format!(
        "The tables of Tavernkeep are in the schema `public`, but the role `{login}` does not look there first: its search_path is \
         `{path}`. Put `public` first (`ALTER ROLE {login} SET search_path = public`), or remove `search_path` from the database's URL. \
         If `public` is first, let the role use that schema (`GRANT USAGE ON SCHEMA public TO {role}`)."
    )))
}

/// Migrates the schema as its owner. Servers that start together wait for each other.
///
/// # Errors
/// A sentence for the operator.
pub async fn migrate(owner_url: &str, app_url: &str) -> Result<()> {
    within(MIGRATION_LIMIT, up(owner_url, app_url)).await
}

async fn up(owner_url: &str, app_url: &str) -> Result<()> {
    let mut lock = as_owner(owner_url).await?;
    let version: i32 =
        sqlx::query("SELECT current_setting('server_version_num')::int AS v").fetch_one(&mut lock).await?.read("v")?;
    if version < SERVER_VERSION_MIN {
        return Err(Error::internal(format!(
            "PostgreSQL 15 or newer is required; this server is version {}",
            version / 10_000
        )));
    }
    sqlx::query("SELECT pg_advisory_lock($1)").bind(MIGRATION_LOCK).execute(&mut lock).await?;
    if is_too_old(&mut lock).await? {
        return Err(Error::internal(
            "This database was made by an earlier version of Tavernkeep and cannot be migrated. Start that version once more and save \
             each campaign (`GET /v1/campaigns/{c}/export`). Then start this version with an empty database (set `DATABASE_URL` or \
             `TAVERNKEEP_DATA_DIR` to another one), and import the files (`POST /v1/campaigns/import`).",
        ));
    }
    let db = sea_orm::Database::connect(owner_url).await?;
    Migrator::up(&db, None).await?;
    db.close().await?;
    let app_user = PgConnectOptions::from_str(app_url)?.get_username().to_owned();
    sqlx::query("SELECT set_config('tavernkeep.login', $1, false); ").bind(&app_user).execute(&mut lock).await?;
    lock.execute(
        "DO $$ BEGIN IF NOT pg_has_role(current_setting('tavernkeep.login'), 'tavernkeep_app', 'MEMBER') THEN \
         EXECUTE format('GRANT tavernkeep_app TO %I', current_setting('tavernkeep.login')); END IF; END $$",
    )
    .await?;
    lock.close().await?;
    Ok(())
}

/// Whether the schema is from before the one that migrations begin with now.
async fn is_too_old(db: &mut PgConnection) -> Result<bool> {
    let table = sqlx::query("SELECT to_regclass('public.seaql_migrations') IS NOT NULL AS exists").fetch_one(&mut *db);
    if !table.await?.read::<bool>("exists")? {
        return Ok(false);
    }
    let names = sqlx::query("SELECT EXISTS (SELECT FROM seaql_migrations WHERE version = $1) AS has_run");
    names.bind(FIRST_OF_OLD_SCHEMA).fetch_one(db).await?.read("has_run")
}

/// Creates the pool of a command, and opens a first connection.
///
/// # Errors
/// Those of [`connect_waiting`].
pub async fn connect(url: &str, connections_max: u32) -> Result<Pool> {
    connect_waiting(url, connections_max, BEGIN_WAIT).await
}

/// Creates the server's pool, in which requests wait `wait` for a connection, and opens a first connection.
///
/// # Errors
/// A sentence for the operator, also if row security would not apply to the role.
pub async fn connect_waiting(url: &str, connections_max: u32, wait: Duration) -> Result<Pool> {
    let pool = Pool::new(url, connections_max, wait)?;
    let mut connection = pool.acquire().await?;
    finds_tables(&mut *connection).await?;
    follow_clock(&mut *connection).await?;
    let row = sqlx::query(
        "SELECT current_user AS name, rolsuper OR rolbypassrls AS free FROM pg_roles WHERE rolname = current_user",
    )
    .fetch_one(&mut *connection)
    .await?;
    drop(connection);
    if row.read::<bool>("free")? {
        let name: String = row.read("name")?;
        return Err(Error::internal(format!(
            "row security does not apply to the role `{name}`; use one without SUPERUSER and BYPASSRLS"
        )));
    }
    Ok(pool)
}

/// Registers this server as alive. Soon after it ends, others treat its turns as orphaned.
///
/// # Errors
/// Database errors.
pub async fn hold_instance(url: &str, instance: i64) -> Result<Life> {
    Life::begin(url, instance).await
}
