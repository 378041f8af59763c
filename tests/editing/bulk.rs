//! `POST …/lore/bulk`: all entries or none, previewed, and undone as one step.

use edge::caller::Scope;
use serde_json::{Value, json};

use super::{bulk, entries, entry};
use crate::support::{Prepared, Server, World};

#[tokio::test(flavor = "multi_thread")]
async fn every_change_reaches_the_entries_named() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let square = entry(&world, "the_square").await;
    let changes = json!({
        "tags": { "add": ["law", "town"] }, "priority": { "add": 7 }, "enabled": false, "secret": true, "ai_lock": true,
        "scope": "faction", "associated_id": "The Watch",
    });
    let ids = json!([square["id"], "the_harbour"]);
    let body = json!({ "ids": ids, "changes": changes });
    let mut preview = body.clone();
    preview["dry_run"] = json!(true);
    let told = bulk(&world, preview).await.expect(200).body;
    assert_eq!((&told["matched"], &told["changed"], &told["step_id"]), (&json!(2), &json!(2), &Value::Null));
    assert_eq!(told["entries"][0]["before"]["tags"], json!([]));
    assert_eq!(told["entries"][0]["after"]["tags"], json!(["law", "town"]));
    assert_eq!(entry(&world, "the_square").await, square, "a preview changes nothing");
    let done = bulk(&world, body).await.expect(200).body;
    assert!(done["step_id"].is_string());
    for slug in ["the_square", "the_harbour"] {
        let now = entry(&world, slug).await;
        assert_eq!(now["tags"], json!(["law", "town"]));
        assert_eq!((&now["priority"], &now["enabled"], &now["secret"]), (&json!(7), &json!(false), &json!(true)));
        assert_eq!((&now["scope"], &now["associated_id"]), (&json!("faction"), &json!("The Watch")));
        assert_eq!((&now["ai_lock"], &now["version"]), (&json!(true), &json!(2)));
    }
    assert_eq!(entry(&world, "the_reach").await["version"], 1);
    // What is the same already is left alone.
    let again = bulk(&world, json!({ "ids": ids, "changes": { "enabled": false } })).await.expect(200).body;
    assert_eq!((&again["matched"], &again["changed"], &again["step_id"]), (&json!(2), &json!(0), &Value::Null));
    let changes = json!({ "tags": { "remove": ["law"] }, "priority": { "set": -1 }, "scope": "global" });
    bulk(&world, json!({ "filter": { "tag": "law" }, "changes": changes })).await.expect(200);
    let now = entry(&world, "the_square").await;
    assert_eq!((&now["tags"], &now["priority"], &now["associated_id"]), (&json!(["town"]), &json!(-1), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_undone_and_done_again() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let before = entry(&world, "the_harbour").await;
    let body = json!({ "filter": {}, "changes": { "delete": true } });
    let done = bulk(&world, body).await.expect(200).body;
    assert_eq!((&done["deleted"], &done["entries"][0]["after"]), (&json!(4), &Value::Null));
    assert!(world.get("/lore").await.expect(200).items().is_empty());
    let undo = async |step: &Value| world.post(&format!("/lore/bulk/{}/undo", step.as_str().unwrap()), json!({})).await;
    let undone = undo(&done["step_id"]).await.expect(200).body;
    assert_eq!(undone["changes_reverted"], 4);
    let after = entry(&world, "the_harbour").await;
    assert_eq!((&after["id"], &after["content"]), (&before["id"], &before["content"]));
    assert!(after["version"].as_i64() > before["version"].as_i64());
    undo(&done["step_id"]).await.problem(409, "conflict");
    // The undoing is a step as well.
    undo(&undone["undo_step_id"]).await.expect(200);
    assert!(world.get("/lore").await.expect(200).items().is_empty());
    // A step of another campaign or tenant is no step.
    let other = World::make(&tenant, "elsewhere").await;
    other
        .post(&format!("/lore/bulk/{}/undo", done["step_id"].as_str().unwrap()), json!({}))
        .await
        .problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_that_would_overwrite_somebody_is_refused_column_by_column() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let changes = json!({ "tags": { "set": ["x"] }, "replace": { "find": "blades", "with": "swords" } });
    let done = bulk(&world, json!({ "filter": {}, "changes": changes })).await.expect(200).body;
    let path = format!("/lore/bulk/{}/undo", done["step_id"].as_str().unwrap());
    // Another column than those of the step is nobody's conflict.
    world.patch("/lore/the_reach", json!({ "priority": 9 })).await.expect(200);
    let square = world.patch("/lore/the_square", json!({ "content": "No swords at all." })).await.expect(200).id();
    world.delete("/lore/the_harbour").await.expect(204);
    let refused = world.post(&path, json!({})).await.problem(409, "undo_conflict");
    assert!(refused.pointers().contains(&format!("/lore/{square}").as_str()), "{}", refused.text);
    assert_eq!(entry(&world, "the_reach").await["tags"], json!(["x"]), "nothing was undone");
    let reasons: Vec<_> = refused.body["errors"].as_array().unwrap().iter().map(|e| e["code"].clone()).collect();
    assert!(reasons.contains(&json!("changed_since")) && reasons.contains(&json!("deleted_since")), "{reasons:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_wrong_entry_refuses_the_edit() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let refused = async |body: Value, pointer: &str| {
        let answer = bulk(&world, body).await.problem(422, "validation_failed");
        assert!(answer.pointers().contains(&pointer), "{pointer}: {}", answer.text);
    };
    let on = |changes: Value| json!({ "filter": {}, "changes": changes });
    refused(on(json!({})), "/changes").await;
    refused(on(json!({ "delete": true, "enabled": true })), "/changes/delete").await;
    refused(on(json!({ "tags": { "set": [], "add": ["x"] } })), "/changes/tags/set").await;
    refused(on(json!({ "tags": { "add": ["x\ny"] } })), "/changes/tags/add").await;
    refused(on(json!({ "scope": "global", "associated_id": "x" })), "/changes/associated_id").await;
    refused(on(json!({ "scope": "zone" })), "/the_reach/associated_id").await;
    refused(on(json!({ "activation": "keyword" })), "/the_reach/keys").await;
    refused(on(json!({ "priority": { "set": 2_000_000 } })), "/the_reach/priority").await;
    refused(on(json!({ "replace": { "find": "The Reach is a cold sea.", "with": "" } })), "/the_reach/content").await;
    refused(on(json!({ "replace": { "find": "The Reach", "with": " ", "in": ["title"] } })), "/the_reach/title").await;
    refused(json!({ "ids": ["the_reach", "nobody"], "changes": { "enabled": true } }), "/ids/1").await;
    refused(json!({ "changes": { "enabled": true } }), "/ids").await;
    refused(json!({ "ids": ["the_reach"], "filter": {}, "changes": { "enabled": true } }), "/ids").await;
    // A preview tells instead.
    let told = bulk(&world, json!({ "filter": {}, "changes": { "scope": "zone" }, "dry_run": true })).await.expect(200);
    assert_eq!(told.body["errors"][0]["pointer"], "/the_reach/associated_id");
    assert!(world.get("/lore").await.expect(200).items().iter().all(|e| e["version"] == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sees_no_secrets_edits_none() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("/lore/the_square", json!({ "secret": true })).await.expect(200);
    let writer = tenant.with_scopes(&[Scope::Read, Scope::Write]).await;
    let body = json!({ "filter": {}, "changes": { "tags": { "add": ["seen"] } } });
    let done = writer.post(&world.path("/lore/bulk"), body).await.expect(200);
    assert_eq!(done.body["changed"], 3);
    assert!(!done.text.contains("square"), "{}", done.text);
    assert_eq!(entry(&world, "the_square").await["tags"], json!([]));
    let body = json!({ "ids": ["the_square"], "changes": { "enabled": false } });
    writer.post(&world.path("/lore/bulk"), body).await.problem(422, "validation_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_entries_are_one_step() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    entries(&server, &world, 1000, "The harbour of Port Town, where the chain is raised at night.").await;
    let changes = json!({
        "tags": { "add": ["new"], "remove": ["old"] }, "priority": { "add": 1 },
        "replace": { "find": "chain", "with": "great chain", "whole_word": true },
    });
    let done = bulk(&world, json!({ "filter": { "tag": "old" }, "changes": changes })).await.expect(200).body;
    assert_eq!((&done["changed"], done["entries"].as_array().unwrap().len()), (&json!(1000), 100));
    let now = entry(&world, "entry_00999").await;
    assert_eq!((&now["tags"], &now["priority"]), (&json!(["new"]), &json!(1000)));
    assert_eq!(now["content"], "The harbour of Port Town, where the great chain is raised at night. 999");
    let undone =
        world.post(&format!("/lore/bulk/{}/undo", done["step_id"].as_str().unwrap()), json!({})).await.expect(200);
    assert_eq!(undone.body["changes_reverted"], 1000);
    assert_eq!(entry(&world, "entry_00999").await["tags"], json!(["old"]));
    // The journal is as dense as ever, and goes on behind the step.
    world.patch("/lore/the_reach", json!({ "priority": 1 })).await.expect(200);
    let mut db = server.owner().await;
    let dense: (i64, i64) = sqlx::query_as(
        "SELECT max(j.seq), count(*) FROM journal j JOIN feed_head h ON h.campaign_id = j.campaign_id AND h.seq >= j.seq \
         WHERE j.tenant_id = $1",
    )
    .bind(tenant.tenant)
    .fetch_one(&mut db)
    .await
    .unwrap();
    assert_eq!(dense.0, dense.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_has_a_limit() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    entries(&server, &world, 10_001, "x").await;
    let body = json!({ "filter": { "tag": "old" }, "changes": { "enabled": false } });
    let answer = bulk(&world, body).await.problem(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/filter"]);
    let body = json!({ "filter": { "tag": "old", "scope": "zone" }, "changes": { "enabled": false } });
    let done = bulk(&world, body).await.expect(200).body;
    assert_eq!(done["changed"], 5000);
}

/// The time of an edit is in `./dev bench`; here is what it is made of.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_costs_two_statements_for_each_portion() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start(&model).await;
    let lore: Vec<_> = (0..1000)
        .map(|n| json!({ "slug": format!("entry_{n}"), "title": format!("Entry {n}"), "scope": "global", "content": "A chain.",
            "tags": ["old"] }))
        .collect();
    child.post("/import/seed", json!({ "lore": lore })).await.unwrap().expect(200);
    let statements = async || child.counter("tavernkeep_db_statements_total").await;
    let changes = json!({ "tags": { "add": ["new"] }, "replace": { "find": "chain", "with": "rope" } });
    let before = statements().await;
    let done = child.post("/lore/bulk", json!({ "filter": { "tag": "old" }, "changes": changes })).await;
    assert_eq!(done.unwrap().expect(200).body["changed"], 1000);
    // Four portions; beside them the campaign, the ids, the size, the time allowed and the step. The longer it takes, the more does the
    // server on its own meanwhile; a statement for each entry would be a thousand.
    let spent = statements().await - before;
    assert!((8..=200).contains(&spent), "{spent} statements");
}
