//! Deleting a campaign: it is gone at once whatever is in it, its rows go in steps, and nothing else waits for that.

use std::time::Duration;

use rehearsal::{Reply, Script};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor, PgConnection, Row};
use world::campaigns::removal;

use crate::support::{Child, Prepared, Server, World, sse::Events, until};

/// Adds `count` memories of Bob's, as many as nobody writes by hand.
async fn remember(db: &mut PgConnection, count: i32) {
    let sql = "INSERT INTO memory (tenant_id, id, campaign_id, holder_type, holder_id, subject_id, text, source) \
        SELECT n.tenant_id, uuid7(), n.campaign_id, 'npc', n.id, c.id, 'wanderer ' || g, 'manual' \
        FROM npc n JOIN character c ON c.campaign_id = n.campaign_id AND c.slug = 'player_alice', generate_series(1, $1) AS g \
        WHERE n.slug = 'innkeeper_bob'";
    sqlx::query(sql).bind(count).execute(db).await.unwrap();
}

async fn count(db: &mut PgConnection, from: &str) -> i64 {
    sqlx::query(AssertSqlSafe(format!("SELECT count(*) FROM {from}"))).fetch_one(db).await.unwrap().get(0)
}

/// Asks until a table has no row any more.
async fn emptied(db: &mut PgConnection, from: &str) {
    for _ in 0..2400 {
        if count(db, from).await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{from} still has rows");
}

/// Every table that holds something of a campaign, but for what the usage of models cost and answers that are kept under keys.
async fn left(db: &mut PgConnection, campaign: &str) -> Vec<String> {
    let tables: Vec<String> = sqlx::query(
        "SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'campaign_id' \
         WHERE c.relkind = 'r' AND c.relname <> 'usage_entry' ORDER BY 1",
    )
    .fetch_all(&mut *db)
    .await
    .unwrap()
    .iter()
    .map(|row| row.get(0))
    .collect();
    let mut found = Vec::new();
    for table in tables {
        if count(db, &format!("{table} WHERE campaign_id = '{campaign}'")).await > 0 {
            found.push(table);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_of_any_size_is_gone_at_once_and_its_rows_soon() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let campaign = world.get("").await.expect(200).id();
    tenant.post("/v1/campaigns", json!({ "slug": "other", "name": "Other" })).await.expect(201);
    let mut db = server.owner().await;
    remember(&mut db, 20_000).await;
    let bob = world.get("/npcs/innkeeper_bob").await.expect(200).id();
    let token = tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice" })).await;
    let token_of_one = tenant.token(json!({ "campaign": "port-town" })).await;
    let journal = count(&mut db, "journal").await;

    tenant
        .send(tenant.request(reqwest::Method::DELETE, &world.path("")).header("if-match", "\"v7\""))
        .await
        .problem(412, "precondition_failed");
    // Its rows are not waited for: none of them can go while somebody holds one.
    let mut holder = server.owner().await;
    holder.execute("BEGIN; SELECT FROM memory WHERE text = 'wanderer 1' FOR UPDATE").await.unwrap();
    tenant
        .send(tenant.request(reqwest::Method::DELETE, &world.path("")).header("if-match", "\"v1\""))
        .await
        .expect(204);
    holder.execute("ROLLBACK").await.unwrap();
    // By its slug and by its id, for every reader, though its rows are there.
    for named in ["port-town", &campaign] {
        for rest in [
            "",
            "/npcs",
            "/npcs/innkeeper_bob",
            &format!("/npcs/{bob}"),
            "/memories?q=wanderer",
            "/lore?q=sea",
            "/turns",
            "/changes",
            "/messages",
            "/events",
            "/export",
            "/sessions",
        ] {
            let path = format!("/v1/campaigns/{named}{rest}");
            for client in [&tenant, &token_of_one] {
                client.get(&path).await.problem(404, "not_found");
            }
        }
        tenant
            .patch(&format!("/v1/campaigns/{named}/npcs/{bob}"), json!({ "name": "Bo" }))
            .await
            .problem(404, "not_found");
        tenant.delete(&format!("/v1/campaigns/{named}/npcs/{bob}")).await.problem(404, "not_found");
        tenant.delete(&format!("/v1/campaigns/{named}")).await.problem(404, "not_found");
    }
    assert_eq!(tenant.get("/v1/campaigns").await.expect(200).items().len(), 1);
    let roll = json!({ "rolls": [{ "formula": "1d6" }] });
    for token in [&token, &token_of_one] {
        let refused = token.post("/v1/dice/roll", roll.clone()).await;
        assert!([401, 404].contains(&refused.status), "{}", refused.text);
    }
    // Its name is free at once.
    let again = tenant.world().await;
    assert_eq!(again.memories("npcs/innkeeper_bob", "player_alice").await.len(), 1);

    emptied(&mut db, "campaign_removal").await;
    assert_eq!(count(&mut db, "campaign").await, 2);
    assert_eq!(left(&mut db, &campaign).await, ["feed_head", "journal", "version_head"], "retention forgets these");
    // It was told of once, as a whole.
    let told = format!("journal WHERE campaign_id = '{campaign}' AND op = 'delete'");
    assert_eq!(count(&mut db, &told).await, 1);
    assert!(count(&mut db, "journal").await < journal + 100);
    assert_eq!(count(&mut db, "memory").await, 2, "those of the campaign that has the name now");
}

/// A campaign whose rows cannot be deleted holds up nobody; what is wrong with it stands in its row, and once it is mended it goes.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_go_does_not_stop_the_others() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let mut db = server.owner().await;
    let stuck = World::make(&tenant, "stuck").await;
    let other = World::make(&tenant, "other").await;
    db.execute(
        "CREATE FUNCTION stays() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it stays' USING ERRCODE = 'TK999'; END $$; \
         CREATE TRIGGER stays BEFORE DELETE ON lore FOR EACH ROW WHEN (OLD.slug = 'rock') EXECUTE FUNCTION stays()",
    )
    .await
    .unwrap();
    let rock = json!({ "slug": "rock", "title": "Rock", "scope": "global", "content": "It stays." });
    stuck.post("/lore", rock).await.expect(201);
    stuck.delete("").await.expect(204);
    other.delete("").await.expect(204);
    emptied(&mut db, "campaign_removal WHERE failed IS NULL").await;
    assert_eq!(count(&mut db, "campaign").await, 1);
    let row = sqlx::query("SELECT attempts, failed FROM campaign_removal").fetch_one(&mut db).await.unwrap();
    assert_eq!((row.get::<i32, _>(0) > 0, row.get::<&str, _>(1)), (true, "TK999"));
    let metrics = server.anonymous().get("/metrics").await;
    assert!(metrics.text.contains("tavernkeep_campaigns_stuck"), "{}", metrics.text);
    db.execute("DROP TRIGGER stays ON lore; UPDATE campaign_removal SET next_at = now()").await.unwrap();
    emptied(&mut db, "campaign").await;
    emptied(&mut db, "lore").await;
}

/// A server that dies in the middle of it leaves the rest to the others, and two that come to it at once share it.
#[tokio::test(flavor = "multi_thread")]
async fn any_server_goes_on_with_it() {
    let prepared = Prepared::new().await;
    let mut db = <PgConnection as sqlx::Connection>::connect(&prepared.db.url).await.unwrap();
    remember(&mut db, 30_000).await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let mut first = prepared.start(&model).await;
    let answer = first.request(reqwest::Method::DELETE, "").send().await.unwrap();
    assert_eq!(answer.status(), 204);
    first.kill().await;
    assert!(count(&mut db, "campaign_removal").await == 1);
    let (here, there): (Child, Child) = (prepared.start(&model).await, prepared.start(&model).await);
    emptied(&mut db, "campaign").await;
    emptied(&mut db, "memory").await;
    let removed = here.counter("tavernkeep_campaign_rows_removed_total").await
        + there.counter("tavernkeep_campaign_rows_removed_total").await;
    assert!(removed > 0);
}

/// While thousands of rows go, others are answered as fast as ever: no step holds what they need.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_step() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let other = World::make(&tenant, "other").await;
    let mut db = server.owner().await;
    remember(&mut db, 20_000).await;
    server.model.set_script(Script::always(Reply::text("Hm.")));
    world.delete("").await.expect(204);
    // A step is under way, and does not end.
    let mut step = server.owner().await;
    step.execute("BEGIN").await.unwrap();
    let row = sqlx::query("SELECT tenant_id, campaign_id FROM campaign_removal").fetch_one(&mut db).await.unwrap();
    let (tenant_id, campaign): (uuid::Uuid, uuid::Uuid) = (row.get(0), row.get(1));
    // Another server may be at it just now.
    for _ in 0..2400 {
        let begun = sqlx::query("SELECT gone FROM campaign_remove($1, $2, 200)").bind(tenant_id).bind(campaign);
        if begun.fetch_optional(&mut step).await.unwrap().is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    removal::carry_on(server.pool()).await.unwrap();
    other.bob("player_alice", "Hello.").await.expect(200);
    other.post("/lore", json!({ "slug": "l", "title": "L", "scope": "global", "content": "x" })).await.expect(201);
    other.patch("", json!({ "description": "Here." })).await.expect(200);
    World::make(&tenant, "port-town").await.bob("player_alice", "Hello.").await.expect(200);
    tenant.get("/v1/campaigns").await.expect(200);
    step.execute("ROLLBACK").await.unwrap();
    emptied(&mut db, "campaign_removal").await;
}

/// Who follows a campaign hears that it is gone, and then nothing more; its turns end.
#[tokio::test(flavor = "multi_thread")]
async fn who_follows_a_campaign_is_told_that_it_went() {
    let server = Server::start().await;
    let replica = Server::on(server.db.clone(), &[]).await;
    let tenant = server.tenant("acme").await;
    let there = tenant.at(&replica);
    let world = tenant.world().await;
    let campaign = world.get("").await.expect(200).id();
    let mut streams = Vec::new();
    for client in [&tenant, &there] {
        streams.push(Events::open(client.request(reqwest::Method::GET, &world.path("/events")), None).await);
    }
    server.model.set_script(Script::always(Reply::text("Hm.").held()));
    let post = tenant
        .request(reqwest::Method::POST, &world.path("/npcs/innkeeper_bob/turns"))
        .header("prefer", "respond-async");
    tenant.send(post.json(&json!({ "player_id": "player_alice", "action": "Hello." }))).await.expect(202);
    world.delete("").await.expect(204);
    for stream in streams {
        let heard = stream.rest().await;
        let last: &Value = &heard.last().unwrap().data;
        assert_eq!(
            (&last["table"], &last["op"], &last["id"], &last["after"]),
            (&json!("campaign"), &json!("delete"), &json!(campaign), &Value::Null)
        );
    }
    // Its model has not answered and will not.
    until("its turn to end", async || server.app.running.count() == 0).await;
    emptied(&mut server.owner().await, "campaign").await;
}

/// An erasure of somebody of the tenant takes their words also from a campaign whose rows are still to go, and from its copies.
#[tokio::test(flavor = "multi_thread")]
async fn an_erased_word_leaves_a_campaign_that_is_going() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut db = server.owner().await;
    let lore = json!({ "slug": "l", "title": "L", "scope": "global", "content": "Brunhilde Oakenshield was here." });
    world.post("/lore", lore).await.expect(201);
    world.patch("/characters/player_alice", json!({ "player_name": "Brunhilde Oakenshield" })).await.expect(200);
    let copy = tenant.post(&world.path("/fork"), json!({ "slug": "copy", "name": "Copy" })).await.expect(201).id();
    db.execute(
        "CREATE FUNCTION stays() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it stays' USING ERRCODE = 'TK999'; END $$; \
         CREATE TRIGGER stays BEFORE DELETE ON lore FOR EACH ROW EXECUTE FUNCTION stays()",
    )
    .await
    .unwrap();
    tenant.delete("/v1/campaigns/copy").await.expect(204);
    let path = world.path("/characters/player_alice?erase=true&forks=true&also=Brunhilde%20Oakenshield");
    let answer = tenant.delete(&path).await;
    assert!([202, 204].contains(&answer.status), "{}", answer.text);
    emptied(&mut db, "erasure WHERE done_at IS NULL").await;
    let rest = format!("lore WHERE campaign_id = '{copy}'");
    assert!(count(&mut db, &rest).await > 0);
    assert_eq!(count(&mut db, &format!("{rest} AND content LIKE '%Oakenshield%'")).await, 0);
}
