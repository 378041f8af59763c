//! A page of any list ends at 4 MiB and one row, however many rows were asked for, and no row is lost between pages.

use std::collections::BTreeSet;

use edge::http::budget::PAGE_BYTES_MAX;
use serde_json::{Value, json};

use super::free;
use crate::support::{Client, Server, World};

/// Room for a row beside the budget.
const ROW: usize = 600 * 1024;

/// Follows a list to its end; returns the ids in their order and how many pages there were.
async fn ids(client: &Client<'_>, path: &str) -> (Vec<String>, usize) {
    let (mut found, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = client.get(&format!("{path}{cursor}")).await.expect(200);
        assert!(page.text.len() < PAGE_BYTES_MAX + ROW, "{path}: {} bytes", page.text.len());
        assert!(!page.items().is_empty(), "{path}: a page without a row");
        found.extend(page.items().iter().map(|row| row["id"].as_str().unwrap_or_default().to_owned()));
        pages += 1;
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (found, pages),
        }
    }
}

/// Rows that compress well and rows that do not are counted as what they are.
fn text(seed: usize, chars: usize) -> String {
    if seed.is_multiple_of(2) {
        return "a".repeat(chars);
    }
    let mut state = seed as u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from((state >> 40) % 26).unwrap())
    };
    (0..chars).map(|_| next()).collect()
}

async fn fill(world: &World<'_>, kind: &str, count: usize, row: impl Fn(usize) -> Value) {
    for n in 0..count {
        world.post(kind, row(n)).await.expect(201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_large_rows_come_in_pages() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    fill(
        &world,
        "/scenes",
        24,
        |n| json!({ "name": format!("Scene {n}"), "notes": [text(n, 255_000)], "light_sources": [text(n, 255_000)] }),
    )
    .await;
    fill(
        &world,
        "/messages",
        70,
        |n| json!({ "content": text(n, 20_000), "roll": { "k": text(n, 60_000) }, "extensions": free(60_000) }),
    )
    .await;
    for (path, count) in [("/scenes?limit=200", 24), ("/messages?limit=200", 70), ("/scenes?limit=200&sort=-name", 24)]
    {
        let (found, pages) = ids(&tenant, &world.path(path)).await;
        assert_eq!(found.len(), count, "{path}");
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), count, "{path}: a row came twice");
        assert!(pages > 2, "{path}: {pages} pages");
        if !path.contains("sort") {
            assert!(found.is_sorted(), "{path}");
        }
    }
    // Small rows are as many as were asked for.
    let npcs = world.get("/npcs?limit=1").await.expect(200);
    assert_eq!(npcs.items().len(), 1);
    journal_comes_in_pages(&world).await;
    revisions_come_in_pages(&world).await;
}

/// Control characters are six times as long in JSON as they are stored.
#[tokio::test(flavor = "multi_thread")]
async fn what_grows_when_it_is_written_is_counted_as_written() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    fill(&world, "/messages", 120, |_| json!({ "content": "\"".repeat(20_000) })).await;
    let (found, pages) = ids(&tenant, &world.path("/messages?limit=200")).await;
    assert_eq!((found.len(), pages), (120, 2));
}

async fn journal_comes_in_pages(world: &World<'_>) {
    let (mut after, mut seen, mut pages) = (0, Vec::new(), 0);
    loop {
        let page = world.get(&format!("/changes?limit=200&after={after}")).await.expect(200);
        assert!(page.text.len() < PAGE_BYTES_MAX + 2 * ROW, "{} bytes", page.text.len());
        seen.extend(page.items().iter().map(|change| change["seq"].as_i64().unwrap()));
        pages += 1;
        after = page.body["next_after"].as_i64().unwrap();
        if page.body["has_more"] == false {
            break;
        }
    }
    assert!(pages > 4, "{pages} pages");
    assert_eq!(seen, (1..=seen.len() as i64).collect::<Vec<_>>(), "dense, in order, each once");
}

async fn revisions_come_in_pages(world: &World<'_>) {
    let scene = world.post("/scenes", json!({ "name": "The quay" })).await.expect(201).id();
    for n in 0..12 {
        world.patch(&format!("/scenes/{scene}"), json!({ "notes": [text(n, 250_000)] })).await.expect(200);
    }
    let (mut before, mut seen) = (String::new(), Vec::new());
    loop {
        let page = world.get(&format!("/scenes/{scene}/revisions?limit=200{before}")).await.expect(200);
        assert!(page.text.len() < PAGE_BYTES_MAX + ROW, "{} bytes", page.text.len());
        seen.extend(page.items().iter().map(|revision| revision["version"].as_i64().unwrap()));
        match page.body["next_before"].as_i64() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }
    assert_eq!(seen, (1..=13).rev().collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_come_in_pages() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for n in 0..90 {
        let memory = json!({ "player_id": "player_alice", "text": format!("Memory {n}") });
        world.post("/npcs/innkeeper_bob/memories", memory).await.expect(201);
    }
    // As large as a patch makes it.
    sqlx::query("UPDATE memory SET extensions = jsonb_build_object('k', repeat('x', 65000))")
        .execute(&mut server.owner().await)
        .await
        .unwrap();
    for sort in ["", "&sort=-created_at", "&sort=name"] {
        let (found, pages) = ids(&tenant, &world.path(&format!("/memories?limit=200{sort}"))).await;
        let whole = found.iter().collect::<BTreeSet<_>>().len();
        assert_eq!((found.len(), whole), (92, 92), "{sort}");
        assert_eq!(pages, 2, "{sort}");
    }
}

/// What a page leaves out is not read: the database decides it.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_holds_every_row_of_every_page() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    fill(
        &world,
        "/scenes",
        20,
        |n| json!({ "name": format!("Scene {n}"), "notes": [text(n, 255_000)], "light_sources": [text(n, 255_000)] }),
    )
    .await;
    fill(&world, "/messages", 60, |n| json!({ "content": text(n, 20_000), "roll": { "k": text(n, 60_000) } })).await;
    let document = world.get("/export").await.expect(200).body;
    let counts = ["scenes", "messages", "npcs"].map(|list| document[list].as_array().unwrap().len());
    assert_eq!(counts, [20, 60, 2]);
}
