//! Secondary keys, and searches for keys that would take for ever.

use serde_json::{Value, json};

use super::{cut, included, lore};
use crate::support::{Server, World};

/// Entries of a lorebook: `count` of them with one key, and one more.
async fn book(world: &World<'_>, count: usize, entry: &dyn Fn(usize) -> Value) {
    let entries: Vec<Value> = (0..count).map(entry).collect();
    world.post("/import/lorebook?name=many", json!({ "entries": entries })).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn secondary_keys_are_whole_words_too() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for logic in ["and_any", "not_any"] {
        let entry = json!({ "activation": "keyword", "keys": ["dragon"], "secondary_keys": ["red"], "logic": logic });
        lore(&world, logic, entry).await;
    }
    for (action, expected) in [
        ("Is the red dragon here?", "and_any"),
        ("Is the dragon red?", "and_any"),
        ("Is the reddish dragon here?", "not_any"),
        ("Is the bored dragon here?", "not_any"),
        ("A dragon, so bored and reddish.", "not_any"),
    ] {
        let prompt = world.prompt("innkeeper_bob", "player_alice", action).await;
        let woken: Vec<_> = included(&prompt).into_iter().filter(|s| !s.starts_with("the_")).collect();
        assert_eq!(woken, [expected], "{action}");
    }
}

/// A tenant writes both the keys and the text. However often they meet, the search has an end, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_for_keys_has_an_end() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    book(&world, 150, &|n| json!({ "comment": format!("E{n}"), "key": ["a"], "content": "x" })).await;
    lore(&world, "zebra", json!({ "activation": "keyword", "keys": ["zebra"], "priority": 1000 })).await;
    let prompt = world.prompt("innkeeper_bob", "player_alice", "A zebra.").await;
    assert!(included(&prompt).contains(&"zebra"));
    assert!(!cut(&prompt, "turn").contains("not checked"), "{}", cut(&prompt, "turn"));
    let prompt = world.prompt("innkeeper_bob", "player_alice", &format!("{}zebra", "a ".repeat(1900))).await;
    assert!(cut(&prompt, "turn").ends_with("the other keyword entries were not checked"), "{}", cut(&prompt, "turn"));
    assert!(!included(&prompt).contains(&"zebra"), "the end of the text was not reached");
}

/// The same for secondary keys, each of which is looked for by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_for_secondary_keys_has_an_end() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let keys: Vec<_> = (0..100).map(|n| format!("never {n}")).collect();
    book(
        &world,
        250,
        &|n| json!({ "comment": format!("E{n}"), "key": ["dragon"], "keysecondary": keys, "content": "x" }),
    )
    .await;
    let prompt = world.prompt("innkeeper_bob", "player_alice", "A dragon.").await;
    assert_eq!(cut(&prompt, "turn"), "");
    let prompt = world.prompt("innkeeper_bob", "player_alice", &format!("A dragon. {}", "word ".repeat(750))).await;
    assert!(cut(&prompt, "turn").ends_with("the other keyword entries were not checked"), "{}", cut(&prompt, "turn"));
}
