//! The embedded cluster: made once, found again, recovered from every way of dying.
//!
//! These start real servers from the machine's own programs, each in a directory of its own, as
//! whatever user runs the tests (for root they run as `postgres`).

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use pgcluster::{EmbeddedError, EmbeddedPostgres, OWNER_ROLE, connection_url_of_running, find_binaries};
use sqlx::{Connection, Executor, PgConnection};

/// A directory name that nobody uses yet; deleted at the end.
struct Home(PathBuf);

impl Home {
    fn new() -> Home {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tavernkeep-embedded-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        assert!(!path.exists(), "{} is left from before", path.display());
        Home(path)
    }

    async fn start(&self) -> EmbeddedPostgres {
        pgcluster::start(&self.0).await.unwrap()
    }

    fn cluster(&self) -> PathBuf {
        self.0.join("cluster")
    }

    fn postmaster(&self) -> String {
        let text = std::fs::read_to_string(self.cluster().join("postmaster.pid")).unwrap();
        text.lines().next().unwrap().trim().to_owned()
    }

    /// Everything in the directory that a half-finished `initdb` could have left.
    fn unfinished(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().contains("cluster.tmp"))
            .collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("cannot delete {}: {error}", self.0.display());
        }
    }
}

async fn connect(pg: &EmbeddedPostgres) -> PgConnection {
    PgConnection::connect(pg.owner_url()).await.unwrap()
}

async fn remember(pg: &EmbeddedPostgres, word: &'static str) {
    let mut db = connect(pg).await;
    db.execute("create table if not exists remembered (word text)").await.unwrap();
    sqlx::query("insert into remembered values ($1)").bind(word).execute(&mut db).await.unwrap();
    db.close().await.unwrap();
}

async fn remembered(pg: &EmbeddedPostgres) -> Vec<String> {
    let mut db = connect(pg).await;
    sqlx::query_scalar("select word from remembered order by word").fetch_all(&mut db).await.unwrap()
}

fn kill(pid: &str) {
    let status = Command::new("kill").args(["-KILL", pid]).status().unwrap();
    assert!(status.success(), "kill -KILL {pid}");
}

fn alive(pid: &str) -> bool {
    let output = Command::new("kill").args(["-0", pid]).output().unwrap();
    output.status.success()
}

async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "still not: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The lock file of a server with that number, written as the server's user would.
fn write_stale_pid(home: &Home, pid: &str) {
    let file = home.cluster().join("postmaster.pid");
    let text = format!("{pid}\n{}\n1\n1\n\n\n\n", home.cluster().display());
    std::fs::write(&file, text).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&file, open).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn second_start_finds_what_the_first_left() {
    let home = Home::new();
    let first = home.start().await;
    assert_eq!(first.data_dir().canonicalize().unwrap(), home.0.canonicalize().unwrap());
    remember(&first, "ale").await;
    let url = first.owner_url().to_owned();
    assert_eq!(connection_url_of_running(&home.0).await.unwrap(), Some(url.clone()));
    first.stop().await.unwrap();
    assert_eq!(connection_url_of_running(&home.0).await.unwrap(), None);
    assert!(PgConnection::connect(&url).await.is_err());

    let second = home.start().await;
    assert_eq!(remembered(&second).await, ["ale"]);
    second.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_private_and_needed() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let pg = home.start().await;
    let secrets = home.0.join("postgres.json").metadata().unwrap();
    assert_eq!(secrets.permissions().mode() & 0o777, 0o600);
    let cluster = home.cluster().metadata().unwrap();
    assert_eq!(cluster.permissions().mode() & 0o777, 0o700);
    let (before, after) = pg.owner_url().split_once('@').unwrap();
    let wrong = format!("{before}x@{after}");
    assert!(PgConnection::connect(&wrong).await.is_err());
    pg.stop().await.unwrap();
}

/// What migrations do: make the application's role and pass rights on to it.
#[tokio::test(flavor = "multi_thread")]
async fn the_owner_is_no_superuser_and_can_assume_a_role_it_makes() {
    let home = Home::new();
    let pg = home.start().await;
    let mut db = connect(&pg).await;
    let flags: (String, bool, bool, bool) = sqlx::query_as(
        "select rolname::text, rolsuper, rolbypassrls, rolcreaterole from pg_roles where rolname = current_user",
    )
    .fetch_one(&mut db)
    .await
    .unwrap();
    assert_eq!(flags, (OWNER_ROLE.to_owned(), false, false, true));
    db.execute("create role app nologin nobypassrls; grant app to current_user").await.unwrap();
    db.execute("create table public.t (x int); grant select on t to app; set role app").await.unwrap();
    let role: String = sqlx::query_scalar("select current_user::text from (select 1) one left join t on true")
        .fetch_one(&mut db)
        .await
        .unwrap();
    assert_eq!(role, "app");
    assert!(db.execute("insert into t values (1)").await.is_err());
    db.close().await.unwrap();
    pg.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_all_scripts_fold() {
    let home = Home::new();
    let pg = home.start().await;
    let mut db = connect(&pg).await;
    let (folded, encoding): (String, String) =
        sqlx::query_as("select lower('ÉÄЖ'), current_setting('server_encoding')").fetch_one(&mut db).await.unwrap();
    assert_eq!((folded.as_str(), encoding.as_str()), ("éäж", "UTF8"));
    db.close().await.unwrap();
    pg.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_can_be_given_for_one_run() {
    let home = Home::new();
    let pg = pgcluster::start_with(&home.0, &[("max_connections", "77")]).await.unwrap();
    let mut db = connect(&pg).await;
    let value: String = sqlx::query_scalar("show max_connections").fetch_one(&mut db).await.unwrap();
    assert_eq!(value, "77");
    db.close().await.unwrap();
    pg.stop_and_delete().await.unwrap();
    assert!(!home.0.exists());
    std::fs::create_dir(&home.0).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_is_noticed_and_recovers() {
    let home = Home::new();
    let mut first = home.start().await;
    remember(&first, "kept").await;
    kill(&home.postmaster());
    let notice = tokio::time::timeout(Duration::from_secs(60), first.wait()).await.unwrap();
    assert!(notice.to_string().contains("ended by itself"), "{notice}");
    drop(first);
    let second = home.start().await;
    assert_eq!(remembered(&second).await, ["kept"]);
    second.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_handle_ends_the_server() {
    let home = Home::new();
    let pg = home.start().await;
    let pid = home.postmaster();
    assert!(alive(&pid));
    drop(pg);
    eventually("the server ended", || !alive(&pid)).await;
    let again = home.start().await;
    again.stop().await.unwrap();
}

/// As after `kill -9` of everything that would have ended the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_left_behind_is_replaced() {
    let home = Home::new();
    let first = home.start().await;
    remember(&first, "kept").await;
    let left_behind = home.postmaster();
    // A restart in the instant after the handle is gone meets the old server in mid-shutdown.
    drop(first);
    let second = home.start().await;
    assert_ne!(home.postmaster(), left_behind);
    assert!(!alive(&left_behind));
    assert_eq!(remembered(&second).await, ["kept"]);
    second.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_starts_on_one_directory_are_refused() {
    let home = Home::new();
    let first = home.start().await;
    let error = pgcluster::start(&home.0).await.err().unwrap();
    assert!(matches!(error, EmbeddedError::InUse { .. }), "{error}");
    let pid = std::process::id().to_string();
    assert!(error.to_string().contains(&pid), "{error}");
    remember(&first, "unharmed").await;
    first.stop().await.unwrap();
    home.start().await.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_made_cluster_is_made_anew() {
    let home = Home::new();
    for name in ["cluster.tmp", "cluster.tmp-0123abcd"] {
        let half = home.0.join(name);
        std::fs::create_dir_all(half.join("base")).unwrap();
        std::fs::write(half.join("PG_VERSION"), "15\n").unwrap();
    }
    std::fs::write(home.0.join("cluster.tmp-0123abcd.password"), "old").unwrap();
    passable(&home.0);
    let pg = home.start().await;
    assert_eq!(home.unfinished(), Vec::<PathBuf>::new());
    remember(&pg, "whole").await;
    pg.stop().await.unwrap();
}

fn passable(dir: &Path) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir, mode).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_file_of_a_dead_server_does_not_block() {
    let home = Home::new();
    home.start().await.stop().await.unwrap();
    let mut gone = Command::new("true").spawn().unwrap();
    let pid = gone.id().to_string();
    gone.wait().unwrap();
    write_stale_pid(&home, &pid);
    home.start().await.stop().await.unwrap();
}

/// After a reboot the number in the file may be that of any program.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_file_that_names_a_stranger_does_not_block_nor_harm_it() {
    let home = Home::new();
    home.start().await.stop().await.unwrap();
    let mut stranger = Command::new("sleep").arg("60").spawn().unwrap();
    write_stale_pid(&home, &stranger.id().to_string());
    let pg = home.start().await;
    assert_eq!(stranger.try_wait().unwrap(), None);
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    pg.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_start_shows_its_log() {
    let home = Home::new();
    let error = pgcluster::start_with(&home.0, &[("shared_buffers", "nonsense")]).await.err().unwrap().to_string();
    assert!(error.contains("invalid value for parameter"), "{error}");
    home.start().await.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_passwords_are_told_apart_from_a_new_directory() {
    let home = Home::new();
    home.start().await.stop().await.unwrap();
    std::fs::remove_file(home.0.join("postgres.json")).unwrap();
    let error = pgcluster::start(&home.0).await.err().unwrap();
    assert!(error.to_string().contains("postgres.json"), "{error}");
}

#[test]
fn the_machine_has_usable_programs() {
    let binaries = find_binaries().unwrap();
    assert!(binaries.major() >= pgcluster::OLDEST_MAJOR);
    assert!(binaries.dir().join("initdb").is_file());
}
