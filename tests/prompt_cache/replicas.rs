//! Several servers on one database: what is written through one is in the next prompt of another.

use rehearsal::{Reply, Script};
use serde_json::json;

use crate::support::{Client, Server};

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_through_one_is_seen_by_the_next_turn_on_another() {
    let one = Server::start().await;
    let two = Server::on(one.db.clone(), &[]).await;
    let tenant = one.tenant("acme").await;
    let there = tenant.at(&two);
    let world = tenant.world().await;
    let turn = async || there.npc_turn(&world.slug, "innkeeper_bob", "player_alice", "Hello").await.expect(200);
    two.model.set_script(Script::always(Reply::text("Hm.")));
    assert_eq!(turn().await.body["prompt"]["cache"], "miss");
    assert_eq!(turn().await.body["prompt"]["cache"], "hit");
    for n in 0..10 {
        let canary = format!("Canary {n}.");
        match n % 4 {
            0 => world
                .post("/npcs/innkeeper_bob/memories", json!({ "player_id": "player_alice", "text": canary }))
                .await
                .expect(201),
            1 => world.patch("/lore/the_square", json!({ "content": canary })).await.expect(200),
            2 => world.patch("/npcs/innkeeper_bob", json!({ "personality_prompt": canary })).await.expect(200),
            _ => {
                one.model.set_script(Script::always(Reply::text(&*canary)));
                world.bob("player_alice", "And you?").await.expect(200)
            }
        };
        let answer = turn().await;
        assert!(two.model.requests().pop().unwrap().to_string().contains(&canary), "{n}");
        assert_eq!(answer.body["prompt"]["cache"], if n % 4 == 3 { "hit" } else { "miss" }, "{n}");
        assert_eq!(turn().await.body["prompt"]["cache"], "hit");
    }
}

/// Whatever is being read and cached while a write happens: once it is acknowledged, every prompt holds it.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_in_every_prompt_after_it() {
    let one = Server::start().await;
    let two = Server::on(one.db.clone(), &[]).await;
    let tenant = one.tenant("acme").await;
    let there = tenant.at(&two);
    let world = tenant.world().await;
    let path = world.path("/npcs/innkeeper_bob/prompt");
    let read = async |client: &Client<'_>| {
        client.post(&path, json!({ "player_id": "player_alice", "action": "Hello" })).await.expect(200).text
    };
    for n in 0..40 {
        let canary = format!("Canary {n}.");
        let write = async {
            match n % 3 {
                0 => world.patch("/lore/the_reach", json!({ "content": canary })).await,
                1 => world.patch("/npcs/innkeeper_bob", json!({ "description": canary })).await,
                _ => world.patch("/characters/player_alice", json!({ "name": canary })).await,
            }
            .expect(200)
        };
        // Reads that race with the write may hold either; they must not leave the old one behind as new.
        tokio::join!(write, read(&tenant), read(&there), read(&tenant), read(&there));
        let (a, b, c) = tokio::join!(read(&tenant), read(&there), read(&tenant));
        assert!([a, b, c].iter().all(|text| text.contains(&canary)), "{n}");
    }
}
