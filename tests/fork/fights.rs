//! Fights in copies: as they stood, whatever became of them, and played on.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{
    fork_at,
    picture::{assert_same, now},
    undo,
};
use crate::support::{Server, World};

/// A game master's turn that makes these calls.
async fn turn(world: &World<'_>, session: &str, calls: &[(&str, Value)]) -> String {
    let calls = calls.iter().map(|(tool, arguments)| Reply::tool(*tool, arguments.clone()));
    world.client.server.model.set_script(Script::replies(calls.chain([Reply::text("So it goes.")])));
    let done = world.post(&format!("/sessions/{session}/turns"), json!({})).await.expect(200).body;
    for call in done["tool_calls"].as_array().unwrap() {
        assert_eq!(call["status"], "succeeded", "{call}");
    }
    done["id"].as_str().unwrap().to_owned()
}

async fn only_fight(world: &World<'_>) -> String {
    let fights = world.get("/encounters?include_ended=true").await.expect(200);
    assert_eq!(fights.items().len(), 1);
    fights.items()[0]["id"].as_str().unwrap().to_owned()
}

async fn hp(world: &World<'_>, who: &str) -> i64 {
    world.get(&format!("/characters/{who}")).await.expect(200).body["hp"].as_i64().unwrap()
}

async fn commit(world: &World<'_>, id: &str) -> Value {
    world.post(&format!("/encounters/{id}/commit"), json!({})).await.expect(200).body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fight_is_played_on_from_where_it_stood() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = world.post("/sessions", json!({ "client_id": "vtt", "role": "gm" })).await.expect(201).id();
    let create = json!({ "operation": "create", "participants": [
        { "id": "alice", "character_id": "player_alice", "initiative": 20 }, { "npc_id": "innkeeper_bob", "initiative": 5 },
        { "id": "mallory", "character_id": "player_mallory", "initiative": 1 }] });
    let begun = turn(&world, &session, &[("manage_encounter", create)]).await;
    let after_begun = now(&world).await;
    let id = only_fight(&world).await;
    // Enough blows that the state is written anew in between.
    let blow = json!({ "action": "damage", "target_id": "alice", "amount": 1 });
    for _ in 0..40 {
        world.post(&format!("/encounters/{id}/actions"), blow.clone()).await.expect(200);
    }
    // Somebody leaves, and an action is taken back.
    world.delete(&format!("/encounters/{id}/participants/mallory")).await.expect(204);
    world.post(&format!("/encounters/{id}/actions"), blow.clone()).await.expect(200);
    world.post(&format!("/encounters/{id}/undo"), json!({})).await.expect(200);
    let hurt = json!({ "encounter_id": id, "action": "damage", "target_id": "alice", "amount": 5 });
    let hurt = turn(&world, &session, &[("encounter_action", hurt)]).await;
    let after_hurt = now(&world).await;
    let end = json!({ "operation": "end", "encounter_id": id, "outcome": "victory" });
    let committed = json!({ "operation": "commit", "encounter_id": id });
    let ended = turn(&world, &session, &[("manage_encounter", end)]).await;
    let after_ended = now(&world).await;
    let committed = turn(&world, &session, &[("manage_encounter", committed)]).await;
    let after_committed = now(&world).await;
    assert_eq!(hp(&world, "player_alice").await, 55);
    undo(&world, &committed).await.expect(200);
    undo(&world, &ended).await.expect(200);
    let looked = turn(&world, &session, &[]).await;
    let after_undone = now(&world).await;
    undo(&world, &hurt).await.expect(200);
    world.patch("/characters/player_alice", json!({ "hp": 90 })).await.expect(200);
    world.delete(&format!("/encounters/{id}")).await.expect(204);
    for (turn, picture) in [
        (&begun, &after_begun),
        (&hurt, &after_hurt),
        (&ended, &after_ended),
        (&committed, &after_committed),
        (&looked, &after_undone),
    ] {
        assert_same(&now(&fork_at(&world, turn).await).await, picture, turn);
    }

    // It goes on in the copy, and is committed there once, with final values: nobody edited the record.
    let copy = fork_at(&world, &hurt).await;
    let fight = only_fight(&copy).await;
    assert_ne!(fight, id);
    copy.post(&format!("/encounters/{fight}/actions"), blow).await.expect(200);
    copy.post(&format!("/encounters/{fight}/end"), json!({ "outcome": "fled" })).await.expect(200);
    let done = commit(&copy, &fight).await;
    assert_eq!(done["committed"].as_array().unwrap().len(), 3, "{done}");
    assert!(done["committed"].as_array().unwrap().iter().all(|c| c.get("merged").is_none()), "{done}");
    assert_eq!((hp(&copy, "player_alice").await, hp(&world, "player_alice").await), (54, 90));
    // What was committed then is committed in the copy.
    let copy = fork_at(&world, &committed).await;
    let again = commit(&copy, &only_fight(&copy).await).await;
    assert!(again["skipped"].as_array().unwrap().iter().all(|s| s["reason"] == "already_committed"), "{again}");
    assert_eq!(again["committed"], json!([]));
    // In the copy as of its end it is not.
    let copy = fork_at(&world, &ended).await;
    assert_eq!(commit(&copy, &only_fight(&copy).await).await["skipped"], json!([]));
    assert_eq!(hp(&copy, "player_alice").await, 55);
}
