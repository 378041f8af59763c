//! Lists of lore as a worldbuilder with thousands of entries needs them.

use edge::caller::Scope;
use serde_json::{Value, json};

use super::{entries, global};
use crate::support::{Server, World};

async fn slugs(world: &World<'_>, query: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = world.get(&format!("/lore?{query}&limit=3{cursor}")).await.expect(200);
        all.extend(page.items().iter().map(|e| e["slug"].as_str().unwrap().to_owned()));
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_sorted_and_paged() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    entries(&server, &world, 10, "Deep water.").await;
    let rising: Vec<String> = (0..10).map(|n| format!("entry_{n:05}")).collect();
    assert_eq!(slugs(&world, "tag=old&sort=priority").await, rising);
    let falling: Vec<String> = rising.iter().rev().cloned().collect();
    assert_eq!(slugs(&world, "tag=old&sort=-priority").await, falling);
    world.patch("/lore/entry_00007", json!({ "content": "x" })).await.expect(200);
    assert_eq!(slugs(&world, "tag=old&sort=tokens").await[0], "entry_00007");
    assert_eq!(slugs(&world, "tag=old&sort=-tokens").await[9], "entry_00007");
    assert_eq!(slugs(&world, "tag=old&scope=zone").await.len(), 5);
    assert_eq!(slugs(&world, "associated_id=Harbour&sort=-name").await.len(), 6);
    assert_eq!(slugs(&world, "q=deep").await.len(), 9);
    // The last word may be the beginning of one.
    assert_eq!(slugs(&world, "q=deep wat").await.len(), 9);
    assert_eq!(slugs(&world, "q=wat deep").await.len(), 0);
    assert_eq!(slugs(&world, "q=\"deep water\" -3").await.len(), 8);
    // Keys and tags are found as words are; a reader sees no more by them.
    let keyed = json!({ "title": "Well", "scope": "global", "content": "Dry.", "tags": ["Old Quarter"], "activation": "keyword",
        "keys": ["moon pool", "\"quoted\", and more"], "secondary_keys": ["lantern"] });
    world.post("/lore", keyed).await.expect(201);
    for found in ["q=moon pool", "q=poo", "q=quoted", "q=lantern", "q=quarter", "q=well dry lantern"] {
        assert_eq!(slugs(&world, found).await, ["well"], "{found}");
    }
    world.patch("/lore/well", json!({ "keys": ["sun"], "secret": true })).await.expect(200);
    assert!(slugs(&world, "q=moon").await.is_empty());
    let reader = tenant.with_scopes(&[Scope::Read]).await;
    assert!(reader.get(&world.path("/lore?q=sun")).await.expect(200).items().is_empty());
    for nasty in ["q=%27%3Ax%26%26%7C", "q=!", "q=%5C", "q=a%3A*", "q=%22", "q=-"] {
        world.get(&format!("/lore?{nasty}")).await.expect(200);
    }
    world.patch("/lore/entry_00003", json!({ "ai_lock": true, "enabled": false })).await.expect(200);
    assert_eq!(slugs(&world, "ai_lock=true").await, ["entry_00003"]);
    assert_eq!(slugs(&world, "enabled=false").await, ["entry_00003"]);
    world.get("/npcs?sort=priority").await.problem(400, "bad_request");
    world.get("/memories?sort=tokens").await.problem(400, "bad_request");
    let other = World::make(&tenant, "elsewhere").await;
    assert!(slugs(&other, "tag=old").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn totals_and_duplicates_are_of_what_the_caller_sees() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    entries(&server, &world, 10, "Deep water.").await;
    let totals = world.get("/lore-totals?tag=old").await.expect(200).body;
    assert_eq!((&totals["count"], &totals["tokens"]), (&json!(10), &json!(100)));
    let zones = totals["by_scope"].as_array().unwrap().iter().find(|s| s["scope"] == "zone").unwrap();
    assert_eq!((&zones["count"], &zones["tokens"], &zones["always_tokens"]), (&json!(5), &json!(50), &json!(50)));
    world.patch("/lore/entry_00001", json!({ "secret": true })).await.expect(200);
    let reader = tenant.with_scopes(&[Scope::Read]).await;
    let seen = reader.get(&world.path("/lore-totals?tag=old")).await.expect(200).body;
    assert_eq!(seen["count"], 9);

    world.post("/lore", global("ENTRY 2", "Other.")).await.expect(201);
    world.post("/lore", global("Twin", "Deep water. 4")).await.expect(201);
    let told = world.get("/lore-duplicates").await.expect(200);
    let groups: Vec<(Value, usize)> =
        told.items().iter().map(|g| (g["same"].clone(), g["entries"].as_array().unwrap().len())).collect();
    assert_eq!(groups, [(json!("title"), 2), (json!("content"), 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_is_copied() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let change = json!({ "secret": true, "known_by": ["innkeeper_bob"], "external_ref": "r", "tags": ["x"] });
    world.patch("/lore/the_harbour", change).await.expect(200);
    let copy = world.post("/lore/the_harbour/duplicate", json!({})).await.expect(201);
    assert_eq!((&copy.body["title"], &copy.body["slug"]), (&json!("The harbour (copy)"), &json!("the_harbour_copy")));
    assert_eq!((&copy.body["external_ref"], &copy.body["tags"]), (&Value::Null, &json!(["x"])));
    assert_eq!(copy.body["known_by"].as_array().unwrap().len(), 1);
    let read = tenant.get(copy.header("location")).await.expect(200);
    assert_eq!(read.body, copy.body);
    let named = world.post("/lore/the_harbour/duplicate", json!({ "title": "The quay" })).await.expect(201);
    assert_eq!(named.body["slug"], "the_quay");
    world.post("/lore/nobody/duplicate", json!({})).await.problem(404, "not_found");
}

/// A list of secrets is the secrets, one of what is public everything else, and one that says nothing both.
#[tokio::test(flavor = "multi_thread")]
async fn lore_is_listed_by_whether_it_is_secret() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for slug in ["smugglers", "council_plot"] {
        let entry = json!({ "slug": slug, "title": slug, "scope": "global", "content": "x", "secret": true });
        world.post("/lore", entry).await.expect(201);
    }
    let listed = async |query: &str| {
        let list = world.get(&format!("/lore{query}")).await.expect(200);
        let mut slugs: Vec<_> = list.items().iter().map(|entry| entry["slug"].as_str().unwrap().to_owned()).collect();
        slugs.sort();
        slugs
    };
    assert_eq!(listed("?secret=true").await, ["council_plot", "smugglers"]);
    assert_eq!(listed("?secret=false").await, ["the_adventurers", "the_harbour", "the_reach", "the_square"]);
    assert_eq!(listed("").await.len(), 6);
}
