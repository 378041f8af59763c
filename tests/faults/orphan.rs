//! A turn whose server died and which cannot be taken back.

use rehearsal::{Reply, Script, Step};
use serde_json::json;
use sqlx::{Executor, PgConnection};

use super::{account::balance, stage::Stage, work::Work};

const POISONED: &str = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
     $$ BEGIN RAISE EXCEPTION 'this row does not go'; END $$; \
     CREATE TRIGGER poisoned BEFORE DELETE ON memory FOR EACH ROW WHEN (OLD.text = 'Poison.') EXECUTE FUNCTION refuse()";

async fn is_there(db: &mut PgConnection) -> bool {
    // Copies of the world may have it as well.
    let there = "SELECT EXISTS (SELECT FROM memory m JOIN campaign c ON c.id = m.campaign_id \
                 WHERE c.slug = 'port-town' AND m.text = 'Poison.')";
    sqlx::query_scalar(there).fetch_one(db).await.unwrap()
}

/// Everybody else goes on, servers start, and once the reason is gone the turn is taken back.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: ./dev faults"]
async fn an_orphan_is_poisoned() {
    let mut stage = Stage::set().await;
    let poison = json!({ "player_id": "player_mallory", "memory_string": "Poison." });
    let step = |reply| Step { reply, ..Step::default() }.when_contains("a bitter cup");
    stage.model.set_script(Script {
        steps: vec![step(Reply::tool("NPC_memorize", poison)), step(Reply::hang())],
        ..Script::default()
    });
    let work = Work::begin(&stage).await;
    let turn = json!({ "player_id": "player_mallory", "action": "I offer a bitter cup.", "on_busy": "queue" });
    let url = format!("{}/v1/campaigns/port-town/npcs/harbour_ilse/turns", stage.urls()[0]);
    let http = reqwest::Client::new();
    let turn = tokio::spawn(http.post(url).bearer_auth(stage.credential()).json(&turn).send());
    let mut db = stage.cluster.superuser().await;
    while !is_there(&mut db).await {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    db.execute(POISONED).await.unwrap();
    stage.kill_server(0).await;
    turn.await.unwrap().unwrap_err();
    work.goes_on().await;
    stage.start_server(0).await;
    work.goes_on().await;
    assert!(is_there(&mut db).await, "it cannot have been taken back");
    db.execute("DROP TRIGGER poisoned ON memory").await.unwrap();
    while is_there(&mut db).await {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    balance(&stage, work).await;
}
