//! A database that says nothing: connections that fall silent are given up in time, and what was under way goes on over new ones.

use std::time::Duration;

use ai::turns::store::sweep;
use futures_util::future::join_all;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection, Row};
use time::OffsetDateTime;
use tokio::time::timeout;

use crate::support::{Database, Server, Wire, sse::Events, until};

/// What followers may take to go on; without a limit of ours nothing would ever come.
const SOON: Duration = Duration::from_secs(60);

async fn lease(db: &mut PgConnection) -> OffsetDateTime {
    sqlx::query("SELECT lease_until FROM turn WHERE status = 'running'").fetch_one(db).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_are_replaced() {
    let (wire, db) = (Wire::to_postgres().await, Database::create().await);
    let mut aside = PgConnection::connect(&db.url).await.unwrap();
    let server = Server::on(wire.database(&db), &[]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut events = Events::open(tenant.request(reqwest::Method::GET, &world.path("/events")), None).await;
    // As many connections as there may be.
    join_all((0..12).map(|_| tenant.get("/v1/campaigns"))).await;
    let remember = json!({ "player_id": "player_alice", "memory_string": "Pays." });
    server.model.set_script(Script::replies([Reply::tool("NPC_memorize", remember).held(), Reply::text("Thanks.")]));
    let asked = server.model.request_count();
    let turn = async { tenant.npc_turn("port-town", "innkeeper_bob", "player_alice", "I pay.").await };
    let meanwhile = async {
        until("the model's call", async || server.model.request_count() > asked).await;
        wire.silence();
        let before = lease(&mut aside).await;
        // Each is answered in time: by a connection that was lost, or a new one.
        let all = join_all((0..12).map(|_| tenant.get("/v1/campaigns"))).await;
        for answer in all {
            assert!([200, 503].contains(&answer.status), "{}", answer.text);
            assert!(answer.status == 200 || !answer.header("retry-after").is_empty());
        }
        // From now on connections are new ones: none is found silent, which would be told.
        for _ in 0..6 {
            tenant.get("/v1/campaigns").await.expect(200);
        }
        until("the lease", async || lease(&mut aside).await > before).await;
        // A follower hears what happens now.
        world.post("/scenes", json!({ "name": "Cellar" })).await.expect(201);
        loop {
            let event = timeout(SOON, events.next()).await.expect("the follower hears nothing").unwrap();
            if event.data.to_string().contains("Cellar") {
                break;
            }
        }
        server.model.let_go(1);
    };
    let (turn, ()) = tokio::join!(turn, meanwhile);
    assert_eq!(turn.expect(200).body["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_silent_altogether_is_told_of() {
    let (wire, db) = (Wire::to_postgres().await, Database::create().await);
    let server = Server::on(wire.database(&db), &[]).await;
    let tenant = server.tenant("acme").await;
    tenant.get("/v1/campaigns").await.expect(200);
    wire.silence_all();
    let nobody = server.anonymous();
    let (listed, ready) = tokio::join!(tenant.get("/v1/campaigns"), nobody.get("/readyz"));
    listed.problem(503, "unavailable");
    ready.problem(503, "unavailable");
    server.anonymous().get("/healthz").await.expect(200);
    wire.heal();
    until("the database", async || tenant.get("/v1/campaigns").await.status == 200).await;
    server.anonymous().get("/readyz").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_were_cut_fail_once() {
    let (wire, db) = (Wire::to_postgres().await, Database::create().await);
    let server = Server::on(wire.database(&db), &[]).await;
    let tenant = server.tenant("acme").await;
    join_all((0..12).map(|_| tenant.get("/v1/campaigns"))).await;
    wire.cut();
    let first = tenant.get("/v1/campaigns").await;
    assert!([200, 503].contains(&first.status), "{}", first.text);
    for _ in 0..6 {
        tenant.get("/v1/campaigns").await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_sign_of_life_ends_no_turn() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mut aside = server.owner().await;
    server.model.set_script(Script::replies([Reply::text("Thanks.").held()]));
    let asked = server.model.request_count();
    let turn = async { tenant.npc_turn("port-town", "innkeeper_bob", "player_alice", "I pay.").await };
    let meanwhile = async {
        until("the model's call", async || server.model.request_count() > asked).await;
        let instance = server.app.running.instance;
        let holder = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 1413567051 AND objid::bigint = $1 \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let lost: i32 = sqlx::query(holder).bind(instance).fetch_one(&mut aside).await.unwrap().get(0);
        sqlx::query("SELECT pg_terminate_backend($1)").bind(lost).execute(&mut aside).await.unwrap();
        // Nobody takes the turn meanwhile, however often somebody looks.
        until("another sign of life", async || {
            assert_eq!(sweep(server.pool(), &server.app.running).await.unwrap().ended, 0);
            let now = sqlx::query(holder).bind(instance).fetch_optional(&mut aside).await.unwrap();
            now.is_some_and(|row| row.get::<i32, _>(0) != lost)
        })
        .await;
        server.model.let_go(1);
    };
    let (turn, ()) = tokio::join!(turn, meanwhile);
    assert_eq!(turn.expect(200).body["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_holds_its_row_does_not_hold_up_others_leases() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mut aside = server.owner().await;
    server.model.set_script(Script::always(Reply::text("Thanks.").held()));
    let asked = server.model.request_count();
    let turn = |npc| tenant.npc_turn("port-town", npc, "player_alice", "I pay.");
    let meanwhile = async {
        until("the model's calls", async || server.model.request_count() == asked + 2).await;
        let mut tx = aside.begin().await.unwrap();
        let held = "SELECT id, lease_until FROM turn WHERE status = 'running' ORDER BY id LIMIT 1 FOR UPDATE";
        let held = sqlx::query(held).fetch_one(&mut *tx).await.unwrap();
        let mut others = server.owner().await;
        let other = "SELECT lease_until FROM turn WHERE status = 'running' AND id <> $1";
        let lease = async |db: &mut PgConnection| -> OffsetDateTime {
            sqlx::query(other).bind(held.get::<uuid::Uuid, _>("id")).fetch_one(db).await.unwrap().get(0)
        };
        let before = lease(&mut others).await;
        until("the other's lease", async || lease(&mut others).await > before).await;
        tx.rollback().await.unwrap();
        server.model.let_go(2);
    };
    let (one, other, ()) = tokio::join!(turn("innkeeper_bob"), turn("harbour_ilse"), meanwhile);
    for turn in [one, other] {
        assert_eq!(turn.expect(200).body["status"], Value::from("succeeded"));
    }
}
