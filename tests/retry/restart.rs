//! PostgreSQL itself restarts while a model answers. It is a cluster of the test's own.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use db::tenancy::{Actor, TenantTx};
use pgcluster::find_binaries;
use rehearsal::Reply;
use sqlx::{Connection, PgConnection};

use super::{billed, remember, says, told, until};
use crate::support::{Database, Server, Wire};

/// A cluster in a directory of its own, gone at the end.
struct Cluster {
    home: PathBuf,
    port: u16,
}

impl Cluster {
    /// One that is started with these options besides.
    fn new(options: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let home = std::env::temp_dir().join(format!("tavernkeep-restart-{}-{number}", std::process::id()));
        let cluster = Self { home, port };
        cluster.run("initdb", &["-A", "trust", "-U", "postgres", "--no-sync"]);
        cluster.run(
            "pg_ctl",
            &[
                "start",
                "-w",
                "-l",
                "/dev/null",
                "-o",
                &format!("-p {port} -h 127.0.0.1 -c unix_socket_directories='' {options}"),
            ],
        );
        cluster
    }

    fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Runs one of PostgreSQL's programs, which root may not.
    fn run(&self, program: &str, arguments: &[&str]) {
        let program = find_binaries().unwrap().dir().join(program);
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        let mut command = if is_root {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.arg("-D").arg(&self.home).args(arguments);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        assert!(command.status().unwrap().success(), "{arguments:?}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.run("pg_ctl", &["stop", "-m", "immediate"]);
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_turn_succeeds_with_the_calls_it_made() {
    let cluster = Cluster::new("");
    tavernkeep::database::migrate(&cluster.url(), &cluster.url()).await.unwrap();
    let server = Server::on(Database::elsewhere(cluster.url()), &[]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (n, mode) in [(1_u64, "fast"), (2, "immediate")] {
        let (note, last) = (format!("Kept {n}."), format!("Thanks {n}."));
        says(&server, [remember(&note).held(), Reply::text(last.clone())]);
        let turn = tenant.npc_turn("port-town", "innkeeper_bob", "player_alice", "I pay.");
        let restart = async {
            until("the call", async || server.model.request_count() as u64 == 2 * n - 1).await;
            // What began is on the disk before it is forgotten by a crash.
            sqlx::query("CHECKPOINT").execute(&mut server.owner().await).await.unwrap();
            tokio::task::block_in_place(|| cluster.run("pg_ctl", &["restart", "-w", "-m", mode]));
            server.model.let_go(1);
        };
        let (turn, ()) = tokio::join!(turn, restart);
        assert_eq!(turn.expect(200).body["narrative"], last.as_str(), "{mode}");
        assert_eq!((server.model.request_count() as u64, told(&world, &last).await), (2 * n, 1), "{mode}");
        let memories = world.memories("npcs/innkeeper_bob", "player_alice").await;
        assert_eq!(memories.iter().filter(|memory| **memory == note).count(), 1, "{mode}: {memories:?}");
        assert_eq!(billed(&tenant).await, 2 * n, "{mode}");
    }
}

/// What a crash forgot is not taken for written because another transaction has its number now.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_is_given_again_says_nothing() {
    // What no commit waits for stays off the disk for long.
    let cluster = Cluster::new("-c wal_writer_delay=10s");
    tavernkeep::database::migrate(&cluster.url(), &cluster.url()).await.unwrap();
    let wire = Wire::to(&format!("127.0.0.1:{}", cluster.port)).await;
    let server = Server::on(Database::elsewhere(wire.url(&cluster.url())), &[]).await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let tx = TenantTx::write(server.pool(), &Actor::system(tenant.tenant)).await.unwrap();
    sqlx::query("UPDATE campaign SET name = 'Lost' WHERE tenant_id = $1")
        .bind(tx.tenant())
        .execute(&mut *tx.connection().await)
        .await
        .unwrap();
    wire.silence();
    let commit = tokio::spawn(tx.commit());
    tokio::task::block_in_place(|| cluster.run("pg_ctl", &["restart", "-w", "-m", "immediate"]));
    let mut others = PgConnection::connect(&cluster.url()).await.unwrap();
    for _ in 0..100 {
        sqlx::query("SELECT pg_current_xact_id()").execute(&mut others).await.unwrap();
    }
    let error = commit.await.unwrap().expect_err("nothing was written");
    assert!(error.in_doubt(), "{error}");
    assert_ne!(tenant.get("/v1/campaigns/port-town").await.expect(200).body["name"], "Lost");
}
