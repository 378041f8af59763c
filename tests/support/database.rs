//! A database for each test, cloned from a template that was migrated once.

use std::{
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, Row, postgres::PgConnectOptions};
use tavernkeep::{database::connect_waiting, demo};
use tokio::sync::{Mutex, OnceCell, RwLock, RwLockReadGuard};

use super::until;

static TEMPLATE: OnceCell<String> = OnceCell::const_new();
static WITH_DEMO: OnceCell<String> = OnceCell::const_new();
/// PostgreSQL clones a template for one at a time.
static CLONING: Mutex<()> = Mutex::const_new(());
static NUMBER: AtomicU32 = AtomicU32::new(1);
/// Names of databases whose tests have ended. The next test drops them: a run's databases together fill a small disk.
static ENDED: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

/// The key of the demo, and the password of its user.
pub const DEMO_KEY: &str = "tk_pictures_0123456789012345678901234567890123456789012";
pub const DEMO_PASSWORD: &str = "only for these tests";

static CHECKPOINTS: RwLock<()> = RwLock::const_new(());

/// Until this is dropped no test makes PostgreSQL write a checkpoint, after which nobody can tell what became of a commit before it.
/// The last one is so long ago that it has nothing to do with what begins now.
pub async fn without_checkpoints() -> RwLockReadGuard<'static, ()> {
    let held = CHECKPOINTS.read().await;
    let mut db = PgConnection::connect(&server_url()).await.unwrap();
    // Its time has whole seconds, and the server keeps another second away from it.
    let past = "SELECT checkpoint_time < now() - interval '2 seconds' FROM pg_control_checkpoint()";
    until("the last checkpoint to be past", async || sqlx::query(past).fetch_one(&mut db).await.unwrap().get(0)).await;
    held
}

/// The server that tests use: `DATABASE_URL`, set by `./dev test`.
pub fn server_url() -> String {
    std::env::var("DATABASE_URL").expect("DATABASE_URL is set: run the tests by ./dev test")
}

fn url_of(name: &str) -> String {
    PgConnectOptions::from_str(&server_url()).unwrap().database(name).to_url_lossy().to_string()
}

/// A migrated database, dropped some time after the last clone of this is.
#[derive(Clone)]
pub struct Database {
    pub url: String,
    pub number: u32,
    _held: Option<Arc<Held>>,
}

/// The name of a database that a test still uses.
struct Held(String);

impl Drop for Held {
    fn drop(&mut self) {
        ENDED.lock().unwrap().push(std::mem::take(&mut self.0));
    }
}

impl Database {
    /// A fresh database.
    pub async fn create() -> Self {
        Self::clone_of(TEMPLATE.get_or_init(template).await).await
    }

    /// A fresh database with the demo in it, which [`DEMO_KEY`] and [`DEMO_PASSWORD`] open.
    pub async fn with_demo() -> Self {
        Self::clone_of(WITH_DEMO.get_or_init(template_with_demo).await).await
    }

    async fn clone_of(template: &str) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tkt_{}_{number}", std::process::id());
        let _one = CLONING.lock().await;
        let mut db = PgConnection::connect(&server_url()).await.unwrap();
        // Each drop makes PostgreSQL write a checkpoint.
        let alone = CHECKPOINTS.try_write();
        let ended = alone.as_ref().map(|_| std::mem::take(&mut *ENDED.lock().unwrap())).unwrap_or_default();
        for name in ended {
            let dropped = db.execute(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))).await;
            // PostgreSQL's own vacuum may be at it, which only a superuser may stop: another test drops it.
            if dropped.is_err() {
                ENDED.lock().unwrap().push(name);
            }
        }
        // Copying files is three times as fast as copying through the log, but it needs checkpoints as well.
        let strategy = if alone.is_ok() { "FILE_COPY" } else { "WAL_LOG" };
        let create = format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY {strategy}");
        db.execute(AssertSqlSafe(create)).await.unwrap();
        drop(alone);
        Self { url: url_of(&name), number, _held: Some(Arc::new(Held(name))) }
    }

    /// A database of a server that the test started itself.
    pub fn elsewhere(url: String) -> Self {
        Self { url, number: 0, _held: None }
    }

    /// The same database under another address.
    pub fn by_way_of(&self, url: String) -> Self {
        Self { url, ..self.clone() }
    }

    /// Returns when somebody waits for a lock that another holds.
    pub async fn somebody_waits(&self) {
        let mut db = PgConnection::connect(&self.url).await.unwrap();
        let waiting = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')";
        until("somebody to wait", async || sqlx::query(waiting).fetch_one(&mut db).await.unwrap().get(0)).await;
    }
}

async fn template() -> String {
    let mut db = PgConnection::connect(&server_url()).await.unwrap();
    drop_leftovers(&mut db).await;
    let name = format!("tkt_{}_0", std::process::id());
    db.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    let url = url_of(&name);
    tavernkeep::database::migrate(&url, &url).await.unwrap();
    name
}

async fn template_with_demo() -> String {
    let empty = TEMPLATE.get_or_init(template).await;
    let name = format!("tkt_{}_demo", std::process::id());
    {
        let _one = CLONING.lock().await;
        let mut db = PgConnection::connect(&server_url()).await.unwrap();
        db.execute(AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE {empty}"))).await.unwrap();
    }
    let url = url_of(&name);
    let pool = connect_waiting(&url, 2, Duration::from_secs(60)).await.unwrap();
    let fixed = demo::Fixed { password: Some(DEMO_PASSWORD), api_key: Some(DEMO_KEY) };
    demo::ensure(&url, &pool, &fixed).await.unwrap();
    // PostgreSQL copies no database that somebody is connected to; it waits a few seconds for those who leave.
    pool.close();
    name
}

/// Databases of runs that have ended.
async fn drop_leftovers(db: &mut PgConnection) {
    let rows =
        sqlx::query("SELECT datname FROM pg_database WHERE datname LIKE 'tkt\\_%'").fetch_all(&mut *db).await.unwrap();
    for row in rows {
        let name: String = row.get("datname");
        let pid = name.split('_').nth(1).unwrap_or_default().to_owned();
        if !std::path::Path::new(&format!("/proc/{pid}")).exists() {
            // Another run may be doing the same.
            let _ = db.execute(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))).await;
        }
    }
}

/// How often a table was read from its beginning to its end, and how many of its rows were read by indexes, by connections that are
/// closed and by this one. PostgreSQL counts what the others did when they close ([`close_others`]).
pub async fn reads(db: &mut PgConnection, table: &str) -> (i64, i64) {
    db.execute("SELECT pg_stat_force_next_flush()").await.unwrap();
    let counts = "SELECT seq_scan, coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = $1";
    let row = sqlx::query(counts).bind(table).fetch_one(db).await.unwrap();
    (row.get(0), row.get(1))
}

/// Closes all other connections to a database. Its server opens new ones.
pub async fn close_others(db: &mut PgConnection) {
    let others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    let closed = format!("SELECT pid FROM (SELECT pid, pg_terminate_backend(pid) {others}) AS closed");
    let closed: Vec<i32> = sqlx::query_scalar(AssertSqlSafe(closed)).fetch_all(&mut *db).await.unwrap();
    let alive = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY ($1)";
    until("connections to close", async || {
        sqlx::query_scalar::<_, i64>(alive).bind(&closed).fetch_one(&mut *db).await.unwrap() == 0
    })
    .await;
}
