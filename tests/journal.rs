//! The journal: every change once, in the order of commits, with who did it, and nothing else.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, Ordering},
};

use base::{clock, request_id::RequestId};
use db::tenancy::{Actor, Origin, TenantTx};
use futures_util::future::{join, join_all};
use rehearsal::{Reply, Script};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Row;
use tavernkeep::ops::maintenance;
use uuid::Uuid;

use crate::support::{Client, Server, World};

/// The whole feed of the world, read page by page; it has no gap.
async fn feed(world: &World<'_>, after: i64) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut position = after;
    loop {
        let page = world.get(&format!("/changes?after={position}&limit=7")).await.expect(200);
        for item in page.items() {
            position += 1;
            assert_eq!(item["seq"], position, "{item}");
            items.push(item.clone());
        }
        assert_eq!(page.body["next_after"], position);
        if page.body["has_more"] == false {
            return items;
        }
    }
}

/// Where the feed of the world is now.
async fn position(world: &World<'_>) -> i64 {
    feed(world, 0).await.last().map_or(0, |item| item["seq"].as_i64().unwrap())
}

async fn insert_scene(tx: &TenantTx, campaign: Uuid, slug: &str) {
    sqlx::query(
        "INSERT INTO scene (tenant_id, campaign_id, id, slug, name, description, active, width, height, grid, tokens, notes, light_sources) \
         VALUES ($1, $2, $3, $4, $4, '', false, 0, 0, '{}', '[]', '[]', '[]')",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(clock::id())
    .bind(slug)
    .execute(&mut *tx.connection().await)
    .await
    .unwrap();
}

fn slugs(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["after"]["slug"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_is_told_with_who_made_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let prefix = tenant.credential.split('_').nth(1).unwrap();
    let key = tenant.get(&format!("/v1/api-keys/{prefix}")).await.expect(200).id();
    let imported = feed(&world, 0).await;
    assert_eq!(
        (&imported[0]["table"], &imported[0]["op"], &imported[0]["origin"]),
        (&json!("campaign"), &json!("insert"), &json!("api"))
    );
    assert!(imported[1..].iter().all(|item| item["origin"] == "import" && item["op"] == "insert"));
    let start = position(&world).await;

    let named = |method: Method, rest: &str, request: &str| {
        tenant.request(method, &world.path(rest)).header("x-request-id", request)
    };
    let uuid = clock::id().to_string();
    let named_so = "Root=1-6789:a/b";
    let made = tenant.send(named(Method::POST, "/scenes", &uuid).json(&json!({ "name": "Quay" }))).await.expect(201);
    let patched = named(Method::PATCH, "/scenes/quay", named_so).json(&json!({ "description": "Wet." }));
    let patched = tenant.send(patched).await.expect(200);
    let deleted = world.delete("/scenes/quay").await.expect(204);

    let items = feed(&world, start).await;
    let ops: Vec<_> = items.iter().map(|i| i["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["insert", "update", "delete"]);
    for (item, request) in items.iter().zip([uuid.as_str(), named_so, deleted.header("x-request-id")]) {
        assert_eq!((&item["table"], &item["id"]), (&json!("scene"), &json!(made.id())));
        assert_eq!((&item["actor"], &item["origin"], &item["turn_id"]), (&json!(key), &json!("api"), &Value::Null));
        assert_eq!(item["request_id"], request);
        base::clock::parse(item["at"].as_str().unwrap()).unwrap();
    }
    let without_time = |row: &Value| {
        let mut row = row.clone();
        row.as_object_mut().unwrap().retain(|key, _| !["created_at", "updated_at"].contains(&key.as_str()));
        row
    };
    assert_eq!((&items[0]["before"], &items[2]["after"]), (&Value::Null, &Value::Null));
    assert_eq!(without_time(&items[0]["after"]), without_time(&made.body));
    assert_eq!(items[1]["before"], items[0]["after"]);
    assert_eq!(without_time(&items[1]["after"]), without_time(&patched.body));
    assert_eq!(items[2]["before"], items[1]["after"]);

    // What a turn writes carries the turn.
    server.model.set_script(Script::replies([
        Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "Alice waves." })),
        Reply::text("Hello!"),
    ]));
    let turn = world.bob("player_alice", "I wave.").await.expect(200).id();
    let told = feed(&world, start + 3).await;
    assert!(told.len() >= 3 && told.iter().all(|i| i["turn_id"] == turn.as_str()), "{told:?}");
    let memory = told.iter().find(|i| i["table"] == "memory").unwrap();
    assert_eq!((&memory["origin"], &memory["after"]["text"]), (&json!("turn"), &json!("Alice waves.")));
    let text = Value::from(told).to_string();
    for ours in ["tenant_id", "prompt_text", "associated_key"] {
        assert!(!text.contains(ours), "{ours}");
    }
    // What changes nothing is not told, nor is what failed.
    let end = position(&world).await;
    world.post("/scenes", json!({ "name": "" })).await.expect(422);
    world.delete("/owners/town_council_owner").await.problem(409, "referenced");
    assert_eq!(position(&world).await, end);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_is_that_of_commits() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let campaign: Uuid = world.get("").await.expect(200).id().parse().unwrap();
    let start = position(&world).await;
    let actor = Actor::system(tenant.tenant);
    let first = TenantTx::write(server.pool(), &actor).await.unwrap();
    insert_scene(&first, campaign, "a1").await;
    let second = TenantTx::write(server.pool(), &actor).await.unwrap();
    insert_scene(&second, campaign, "b1").await;
    insert_scene(&first, campaign, "a2").await;
    insert_scene(&second, campaign, "b2").await;
    assert!(feed(&world, start).await.is_empty(), "what is not committed is not told");
    // Who began first does not hold up who commits first.
    second.commit().await.unwrap();
    assert_eq!(slugs(&feed(&world, start).await), ["b1", "b2"]);
    insert_scene(&first, campaign, "a3").await;
    first.commit().await.unwrap();
    assert_eq!(slugs(&feed(&world, start + 2).await), ["a1", "a2", "a3"]);
    // A transaction that is given up leaves no gap.
    let third = TenantTx::write(server.pool(), &actor).await.unwrap();
    insert_scene(&third, campaign, "c1").await;
    drop(third);
    world.post("/scenes", json!({ "name": "d1" })).await.expect(201);
    assert_eq!(slugs(&feed(&world, start).await), ["b1", "b2", "a1", "a2", "a3", "d1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_campaign_has_a_feed_of_its_own() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    tenant.post("/v1/campaigns", json!({ "slug": "inland", "name": "Inland" })).await.expect(201);
    let inland = World { client: &tenant, slug: "inland".to_owned() };
    let ids: [Uuid; 2] = [world.get("").await.id().parse().unwrap(), inland.get("").await.id().parse().unwrap()];
    let start = position(&world).await;
    // One transaction in two campaigns, and two that meet them in opposite order.
    let actor = Actor::system(tenant.tenant);
    let write = async |tag: &str, order: [usize; 2]| {
        let tx = TenantTx::write(server.pool(), &actor).await.unwrap();
        for i in order {
            insert_scene(&tx, ids[i], &format!("{tag}{i}")).await;
        }
        tx
    };
    write("x", [0, 1]).await.commit().await.unwrap();
    let (up, down) = (write("y", [0, 1]).await, write("z", [1, 0]).await);
    let (up, down) = join(up.commit(), down.commit()).await;
    assert!(up.is_ok() || down.is_ok());
    let here = feed(&world, start).await;
    let there = feed(&inland, 1).await;
    assert_eq!(here.len(), there.len());
    assert_eq!((slugs(&here)[0], slugs(&there)[0]), ("x0", "x1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_misses_nothing_of_many_writers() {
    const WRITERS: usize = 8;
    const WRITES: usize = 12;
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let start = position(&world).await;
    let written = AtomicBool::new(false);
    let write = async |writer: usize| {
        for i in 0..WRITES {
            let content = format!("{writer}:{i}");
            match i % 3 {
                0 => world.post("/messages", json!({ "content": content })).await.expect(201),
                1 => world
                    .post("/npcs/innkeeper_bob/memories", json!({ "player_id": "player_alice", "text": content }))
                    .await
                    .expect(201),
                _ => world.post("/scenes", json!({ "name": content })).await.expect(201),
            };
        }
    };
    let read = async {
        let mut seen = Vec::new();
        loop {
            let last = written.load(Ordering::Acquire);
            seen.extend(feed(&world, start + i64::try_from(seen.len()).unwrap()).await);
            if last {
                return seen;
            }
        }
    };
    let all = async {
        join_all((0..WRITERS).map(&write)).await;
        written.store(true, Ordering::Release);
    };
    let ((), seen) = join(all, read).await;
    assert_eq!(seen.len(), WRITERS * WRITES);
    // Each writer's changes are in the order it made them.
    let mut by_writer: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for item in &seen {
        let row = &item["after"];
        let text = ["content", "text", "name"].iter().find_map(|m| row[m].as_str()).unwrap();
        let (writer, i) = text.split_once(':').unwrap();
        by_writer.entry(writer.to_owned()).or_default().push(i.parse().unwrap());
    }
    assert!(by_writer.values().all(|order| *order == (0..WRITES).collect::<Vec<_>>()), "{by_writer:?}");
    assert_eq!(feed(&world, start).await, seen, "what was read once reads the same again");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pruned_is_gone() {
    let server = Server::start_with(&[("TAVERNKEEP_JOURNAL_RETENTION_DAYS", "7")]).await;
    let (tenant, other) = (server.tenant("acme").await, server.tenant("other").await);
    let (world, theirs) = (tenant.world().await, other.world().await);
    other.patch("/v1/tenant", json!({ "settings": { "journal_retention_days": 30 } })).await.expect(200);
    let end = position(&world).await;
    maintenance::prune(&server.app).await.unwrap();
    assert_eq!(position(&world).await, end, "what is young stays");

    let back = "UPDATE journal SET at = at - interval '8 days' WHERE seq <= 3";
    sqlx::query(back).execute(&mut server.owner().await).await.unwrap();
    maintenance::prune(&server.app).await.unwrap();
    for after in 0..3 {
        world.get(&format!("/changes?after={after}")).await.problem(410, "gone");
        world.get(&format!("/events?after={after}")).await.problem(410, "gone");
    }
    let kept = feed(&world, 3).await;
    assert_eq!(kept.len(), usize::try_from(end - 3).unwrap());
    // A tenant's own retention goes first.
    assert_eq!(feed(&theirs, 0).await[0]["seq"], 1);
    let further = "UPDATE journal SET at = at - interval '30 days' WHERE seq <= 3";
    sqlx::query(further).execute(&mut server.owner().await).await.unwrap();
    maintenance::prune(&server.app).await.unwrap();
    theirs.get("/changes?after=0").await.problem(410, "gone");
    // New changes go on from where the feed was.
    world.post("/scenes", json!({ "name": "New" })).await.expect(201);
    assert_eq!(position_after(&world, 3).await, end + 1);
}

async fn position_after(world: &World<'_>, after: i64) -> i64 {
    feed(world, after).await.last().unwrap()["seq"].as_i64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn bookkeeping_is_not_journaled() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let key = tenant.post("/v1/api-keys", json!({ "scopes": ["read"] })).await.expect(201);
    tenant.delete(key.header("location")).await.expect(204);
    tenant.patch("/v1/tenant", json!({ "settings": { "llm": { "api_key": "sk-provider" } } })).await.expect(200);
    tenant.post_with_key(&world.path("/scenes"), "once", json!({ "name": "Quay" })).await.expect(201);
    server.model.set_script(Script::replies([Reply::text("Aye.")]));
    world.bob("player_alice", "Hello.").await.expect(200);
    world.post("/lore", json!({ "title": "x", "scope": "global", "content": "x" })).await.expect(201);
    let rows =
        sqlx::query("SELECT DISTINCT table_name FROM journal").fetch_all(&mut server.owner().await).await.unwrap();
    let tables: BTreeSet<String> = rows.iter().map(|row| row.get("table_name")).collect();
    let world_tables = ["campaign", "character", "lore", "memory", "message", "npc", "owner", "scene"];
    assert_eq!(tables, world_tables.map(str::to_owned).into());
}

/// The version of a prompt's source, which cached prompts are compared with.
async fn head(server: &Server, key: &str) -> i64 {
    let sql = "SELECT coalesce(max(version), 0) FROM version_head WHERE key = $1";
    sqlx::query_scalar(sql).bind(key).fetch_one(&mut server.owner().await).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_rise_across_deletion_and_restoration() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = world.patch("/npcs/innkeeper_bob", json!({ "name": "Robert" })).await.expect(200).id();
    world.patch("/npcs/innkeeper_bob", json!({ "name": "Rob" })).await.expect(200);
    let before = world.get("/npcs/innkeeper_bob").await.expect(200);
    let entity = format!("entity:{id}");
    let mut heads = vec![head(&server, &entity).await];
    world.delete("/npcs/innkeeper_bob").await.expect(204);
    heads.push(head(&server, &entity).await);
    let mut versions = vec![before.body["version"].as_i64().unwrap()];
    for round in 0..2 {
        let mut actor = Actor::system(tenant.tenant);
        actor.origin = Origin::Revert;
        actor.request = RequestId::generate();
        let tx = TenantTx::write(server.pool(), &actor).await.unwrap();
        let restore = "SELECT restore_row(table_name, row_id, before) FROM journal WHERE tenant_id = $1 AND row_id = $2 \
                       AND op = 'delete' ORDER BY seq DESC LIMIT 1";
        let id: Uuid = id.parse().unwrap();
        sqlx::query(restore).bind(tenant.tenant).bind(id).execute(&mut *tx.connection().await).await.unwrap();
        tx.commit().await.unwrap();
        let back = world.get("/npcs/innkeeper_bob").await.expect(200);
        assert_eq!((&back.body["name"], back.id()), (&json!("Rob"), id.to_string()));
        assert_eq!(back.body["owner_ids"], before.body["owner_ids"]);
        versions.push(back.body["version"].as_i64().unwrap());
        heads.push(head(&server, &entity).await);
        stale(&tenant, &world, before.header("etag")).await;
        if round == 0 {
            world.delete("/npcs/innkeeper_bob").await.expect(204);
            heads.push(head(&server, &entity).await);
        }
    }
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
    assert!(heads.is_sorted_by(|a, b| a < b), "{heads:?}");
}

/// A tag of before the deletion is never met again.
async fn stale(tenant: &Client<'_>, world: &World<'_>, tag: &str) {
    let request = tenant.request(Method::PATCH, &world.path("/npcs/innkeeper_bob")).header("if-match", tag);
    tenant.send(request.json(&json!({ "name": "Late" }))).await.problem(412, "precondition_failed");
}
