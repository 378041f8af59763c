//! Forks among others: once per key, and each write wholly in or out.

use futures_util::future::{join, join_all};
use serde_json::json;

use super::picture::{assert_same, feed, now, picture, replayed};
use crate::support::{Server, World, counts, patiently};

#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_one_copy() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let path = world.path("/fork");
    let answers = join_all((0..8).map(|_| tenant.post_with_key(&path, "k", json!({ "name": "Twin" })))).await;
    let made: Vec<_> = answers.iter().filter(|a| a.status == 201).collect();
    assert!(!made.is_empty());
    for answer in &answers {
        assert!(matches!(answer.status, 201 | 409 | 503), "{}", answer.text);
    }
    assert!(made.iter().all(|a| a.text == made[0].text));
    let before = counts(&server).await;
    let again = tenant.post_with_key(&path, "k", json!({ "name": "Twin" })).await.expect(201);
    assert_eq!((again.header("idempotency-replayed"), &again.text), ("true", &made[0].text));
    assert_eq!(again.header("location"), made[0].header("location"));
    tenant.post_with_key(&path, "k", json!({})).await.problem(422, "idempotency_key_reused");
    assert_eq!(counts(&server).await, before);
}

/// Every writer makes pairs in one transaction: a broadcast of two memories. A copy holds whole broadcasts, and is the world as
/// it was after some number of its journal.
#[tokio::test(flavor = "multi_thread")]
async fn twenty_writers_and_some_copies() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world
        .post("/npcs", json!({ "slug": "cook", "name": "Cook", "owner_ids": ["town_council_owner"] }))
        .await
        .expect(201);
    world.free_of_charge().await;
    let writers = (0..20).map(async |n| {
        for m in 0..5 {
            let call = json!({ "arguments": { "player_id": "player_alice", "memory_string": format!("Word {n} {m}.") },
                "actor": { "type": "owner", "id": "town_council_owner" } });
            patiently(|| world.post("/tools/OWNER_memorize_dependables", call.clone())).await.expect(200);
            let lore = json!({ "slug": format!("lore_{n}_{m}"), "title": "x", "scope": "global", "content": "x" });
            patiently(|| world.post("/lore", lore.clone())).await.expect(201);
            if m % 2 == 0 {
                let path = format!("/lore/lore_{n}_{m}");
                patiently(|| world.delete(&path)).await.expect(204);
            }
        }
    });
    let copies = async {
        let mut copies = Vec::new();
        for _ in 0..6 {
            let made = patiently(|| world.post("/fork", json!({}))).await.expect(201);
            copies.push(World { client: &tenant, slug: made.id() });
        }
        copies
    };
    let (_, copies) = join(join_all(writers), copies).await;
    let changes = feed(&world).await;
    for copy in copies {
        let copied = picture(replayed(feed(&copy).await.iter()));
        let is_prefix = |end: usize| picture(replayed(changes[..end].iter())) == copied;
        let end = (0..=changes.len()).find(|end| is_prefix(*end));
        let end = end.expect("the copy is the world after some number of its journal");
        // Rows of one request are one transaction.
        let request = |n: usize| changes.get(n).map(|c| c["request_id"].clone());
        assert!(request(end).is_none() || request(end) != request(end - 1), "a transaction was cut at {end}");
    }
    let copy = super::fork(&world, json!({})).await;
    assert_same(&now(&copy).await, &now(&world).await, "when all is quiet");
}
