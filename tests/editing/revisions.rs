//! `…/revisions` and `…/restore`, for every kind of row.

use edge::{caller::Scope, users::Role};
use serde_json::{Value, json};

use super::entry;
use crate::{admin::Visitor, support::Server};

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_tells_what_it_was_and_becomes_it_again() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.post("/scenes", json!({ "slug": "quay", "name": "Quay" })).await.expect(201);
    for (kind, slug, member) in [
        ("lore", "the_reach", "content"),
        ("npcs", "innkeeper_bob", "description"),
        ("owners", "town_council_owner", "description"),
        ("characters", "player_alice", "profession"),
        ("scenes", "quay", "name"),
    ] {
        let path = format!("/{kind}/{slug}");
        let first = world.get(&path).await.expect(200).body;
        for text in ["second", "third"] {
            world.patch(&path, json!({ member: text })).await.expect(200);
        }
        let told = world.get(&format!("{path}/revisions")).await.expect(200);
        let items = told.items();
        assert_eq!(items.len(), 3, "{kind}");
        assert_eq!((&items[0]["op"], &items[2]["op"]), (&json!("update"), &json!("insert")));
        assert!(items[0]["changed"].as_array().unwrap().contains(&json!(member)), "{}", items[0]);
        assert_eq!((&items[0]["before"][member], &items[0]["after"][member]), (&json!("second"), &json!("third")));
        assert_eq!(
            (&items[0]["version"], &items[0]["actor_name"], &items[0]["origin"]),
            (&json!(3), &json!("test"), &json!("api"))
        );
        assert_eq!((&items[2]["before"], &told.body["next_before"]), (&Value::Null, &Value::Null));
        assert!(!told.text.contains("tenant_id") && !told.text.contains("associated_key"));
        // Paged, newest first.
        let page = world.get(&format!("{path}/revisions?limit=2")).await.expect(200).body;
        let rest = world.get(&format!("{path}/revisions?before={}", page["next_before"])).await.expect(200);
        assert_eq!(rest.items()[0], items[2]);

        let restore = async |seq: &Value, version: i64| {
            let path = world.path(&format!("{path}/revisions/{seq}/restore"));
            let request = tenant.request(reqwest::Method::POST, &path).header("if-match", format!("\"v{version}\""));
            tenant.send(request.json(&json!({}))).await
        };
        restore(&items[2]["seq"], 1).await.problem(412, "precondition_failed");
        let restored = restore(&items[2]["seq"], 3).await.expect(200);
        assert_eq!(restored.header("etag"), "\"v4\"", "a restore is a forward write");
        assert_eq!(restored.body[member], first[member]);
        let unstamped = |row: &Value| {
            let mut row = row.clone();
            row.as_object_mut().unwrap().retain(|k, _| !["version", "updated_at"].contains(&k.as_str()));
            row
        };
        assert_eq!(unstamped(&restored.body), unstamped(&first), "{kind}");
        assert_eq!(world.get(&format!("{path}/revisions")).await.expect(200).items().len(), 4);
        world.post(&format!("{path}/revisions/999999/restore"), json!({})).await.problem(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_comes_back_under_its_id() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let bob = world.get("/npcs/innkeeper_bob").await.expect(200).body;
    world
        .patch("/lore/the_reach", json!({ "secret": true, "known_by": ["harbour_ilse", "innkeeper_bob"] }))
        .await
        .expect(200);
    let reach = entry(&world, "the_reach").await;
    world.delete("/lore/the_reach").await.expect(204);
    world.delete("/npcs/harbour_ilse").await.expect(204);
    let id = reach["id"].as_str().unwrap();
    world.get("/lore/the_reach/revisions").await.problem(404, "not_found");
    let told = world.get(&format!("/lore/{id}/revisions")).await.expect(200);
    assert_eq!((&told.items()[0]["op"], &told.items()[0]["after"]), (&json!("delete"), &Value::Null));
    let path = format!("/lore/{id}/revisions/{}/restore", told.items()[0]["seq"]);
    // A slug that somebody else has by now.
    world.post("/lore", super::global("The Reach", "Another.")).await.expect(201);
    world.post(&path, json!({})).await.problem(409, "slug_taken");
    world.delete("/lore/the_reach").await.expect(204);
    let back = world.post(&path, json!({})).await.expect(200).body;
    assert_eq!((&back["id"], &back["content"]), (&reach["id"], &reach["content"]));
    assert!(back["version"].as_i64() > reach["version"].as_i64());
    assert_eq!(back["known_by"], json!([bob["id"]]), "who is gone knows nothing");
    // An owner that is gone cannot be had again.
    let told = world.get("/npcs/innkeeper_bob/revisions").await.expect(200);
    world.patch("/npcs/innkeeper_bob", json!({ "owner_ids": [] })).await.expect(200);
    world.delete("/owners/town_council_owner").await.expect(204);
    let path = format!("/npcs/innkeeper_bob/revisions/{}/restore", told.items()[0]["seq"]);
    world.post(&path, json!({})).await.problem(422, "validation_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_are_a_game_masters_and_end_where_the_journal_does() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let path = world.path("/lore/the_reach/revisions");
    tenant.with_scopes(&[Scope::Read, Scope::Write]).await.get(&path).await.problem(403, "forbidden");
    let seq = world.get("/lore/the_reach/revisions").await.expect(200).items()[0]["seq"].clone();
    world.patch("/lore/the_reach", json!({ "content": "Later." })).await.expect(200);
    let mut db = server.owner().await;
    sqlx::query("UPDATE journal SET at = at - interval '400 days' WHERE seq <= $1")
        .bind(seq.as_i64())
        .execute(&mut db)
        .await
        .unwrap();
    sqlx::query("SELECT prune_journal(interval '300 days', 1000)").execute(&mut db).await.unwrap();
    let told = world.get("/lore/the_reach/revisions").await.expect(200);
    assert_eq!((told.items().len(), &told.body["pruned"]), (1, &json!(true)));
    world.get(&format!("/lore/the_reach/revisions?before={seq}")).await.problem(410, "gone");
    world.post(&format!("/lore/the_reach/revisions/{seq}/restore"), json!({})).await.problem(410, "gone");
    // A step below the baseline cannot be undone, and is forgotten.
    let edit = json!({ "ids": ["the_reach"], "changes": { "priority": { "add": 1 } } });
    let step = world.post("/lore/bulk", edit).await.expect(200).body["step_id"].as_str().unwrap().to_owned();
    sqlx::query("UPDATE journal SET at = at - interval '400 days'").execute(&mut db).await.unwrap();
    sqlx::query("SELECT prune_journal(interval '300 days', 1000)").execute(&mut db).await.unwrap();
    world.post(&format!("/lore/bulk/{step}/undo"), json!({})).await.problem(410, "gone");
    tavernkeep::ops::maintenance::prune(&server.app).await.unwrap();
    world.post(&format!("/lore/bulk/{step}/undo"), json!({})).await.problem(404, "not_found");
    for query in ["limit=0", "limit=201", "before=0", "before=x", "other=1"] {
        world.get(&format!("/lore/the_reach/revisions?{query}")).await.problem(400, "bad_request");
    }
}

/// Revisions come in pages, over the API and in the editor, and each page leads to the next until all were shown once.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_is_read_page_by_page() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = world.get("/lore/the_reach").await.expect(200).id();
    for n in 0..44 {
        world.patch("/lore/the_reach", json!({ "content": format!("Wave {n}.") })).await.expect(200);
    }
    let (mut before, mut seen) = (String::new(), Vec::new());
    for size in [20, 20, 5] {
        let page = world.get(&format!("/lore/the_reach/revisions?limit=20{before}")).await.expect(200).body;
        let items = page["items"].as_array().unwrap();
        assert_eq!(items.len(), size);
        seen.extend(items.iter().map(|item| item["seq"].as_i64().unwrap()));
        before = page["next_before"].as_i64().map_or_else(String::new, |next| format!("&before={next}"));
        assert_eq!(before.is_empty(), seen.len() == 45, "{page}");
    }
    assert!(seen.is_sorted_by(|a, b| a > b), "{seen:?}");

    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let mut path = format!("/admin/c/port-town/lore/{id}/history");
    let mut pages = Vec::new();
    loop {
        let page = mara.get(&path).await.expect(200).text;
        let older = page.split_once("rel=\"next\" href=\"").map(|(_, rest)| rest.split('"').next().unwrap().to_owned());
        pages.push(page);
        match older {
            Some(older) => path = older.replace("&amp;", "&"),
            None => break,
        }
    }
    assert_eq!(pages.len(), 3);
    let number = |part: &str| part.split('"').next().unwrap().parse::<i64>().ok();
    let mut shown: Vec<_> = pages.iter().flat_map(|page| page.split("/history/").filter_map(number)).collect();
    assert!(pages[0].contains("This is the current version."));
    shown.insert(0, seen[0]);
    assert_eq!(shown, seen, "what is now, and ways back to all before it");
}
