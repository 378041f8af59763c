//! Connecting and migrating.

use std::str::FromStr;

use migration::{Migrator, MigratorTrait};
use sqlx::{Connection, Executor, PgConnection, postgres::PgConnectOptions};

use crate::{
    error::{Error, Result},
    pool::Pool,
    stored::Columns,
};

/// The number under which one server at a time migrates.
const MIGRATION_LOCK: i64 = 6_071_962_513_410_531_145;
/// The class of advisory locks by which servers say that they live; `orphaned_turns` looks for it.
const INSTANCE_LOCK_CLASS: i32 = 1_413_567_051;
/// PostgreSQL 15: `ON DELETE SET NULL (column)`.
const SERVER_VERSION_MIN: i32 = 150_000;

/// Brings the schema up to date as its owner. Servers that start together wait for each other.
///
/// # Errors
/// A sentence for the operator.
pub async fn migrate(owner_url: &str, app_url: &str) -> Result<()> {
    let mut lock = PgConnection::connect(owner_url).await?;
    let version: i32 =
        sqlx::query("SELECT current_setting('server_version_num')::int AS v").fetch_one(&mut lock).await?.read("v")?;
    if version < SERVER_VERSION_MIN {
        return Err(Error::internal(format!("PostgreSQL 15 or newer is needed; this one is {}", version / 10_000)));
    }
    sqlx::query("SELECT pg_advisory_lock($1)").bind(MIGRATION_LOCK).execute(&mut lock).await?;
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

/// The server's pool, with a first connection.
///
/// # Errors
/// A sentence for the operator, also if row security would not bind the role.
pub async fn connect(url: &str, connections_max: u32) -> Result<Pool> {
    let pool = Pool::new(url, connections_max)?;
    let row = sqlx::query(
        "SELECT current_user AS name, rolsuper OR rolbypassrls AS free FROM pg_roles WHERE rolname = current_user",
    )
    .fetch_one(&mut *pool.acquire().await?)
    .await?;
    if row.read::<bool>("free")? {
        let name: String = row.read("name")?;
        return Err(Error::internal(format!("refusing to run as `{name}`, which row security does not bind")));
    }
    Ok(pool)
}

/// A connection that holds this server's sign of life. Others see its turns as abandoned as soon as it is gone.
///
/// # Errors
/// Those of the database.
pub async fn hold_instance(url: &str, instance: i64) -> Result<PgConnection> {
    let mut conn = PgConnection::connect(url).await?;
    let id = i32::try_from(instance).map_err(Error::internal)?;
    sqlx::query("SELECT pg_advisory_lock($1, $2)").bind(INSTANCE_LOCK_CLASS).bind(id).execute(&mut conn).await?;
    Ok(conn)
}
