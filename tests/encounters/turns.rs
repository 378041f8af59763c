//! Fights in a model's turns, and turns that are taken back.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{act, begin, commit, duel, dungeon, end, hp, hurt, participant};
use crate::support::{Server, World};

/// A game master's turn that makes these calls.
async fn turn(world: &World<'_>, session: &str, calls: &[(&str, Value)]) -> Value {
    let calls = calls.iter().map(|(tool, arguments)| Reply::tool(*tool, arguments.clone()));
    world.client.server.model.set_script(Script::replies(calls.chain([Reply::text("So it goes.")])));
    let done = world.post(&format!("/sessions/{session}/turns"), json!({})).await.expect(200).body;
    for call in done["tool_calls"].as_array().unwrap() {
        assert_eq!(call["status"], "succeeded", "{call}");
    }
    done["id"].clone()
}

async fn undo(world: &World<'_>, turn: &Value) -> crate::support::Answer {
    world.post(&format!("/turns/{}/undo", turn.as_str().unwrap()), json!({})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_turn_did_in_a_fight_is_undone() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let session = world.post("/sessions", json!({ "client_id": "vtt", "role": "gm" })).await.expect(201).id();
    let id = begin(&world, duel()).await;
    hurt(&world, &id, "orc", 2).await;
    let damage = |amount: i32| json!({ "encounter_id": id, "action": "damage", "target_id": "orc", "amount": amount });
    let first = turn(
        &world,
        &session,
        &[
            ("encounter_action", damage(3)),
            ("encounter_action", json!({ "encounter_id": id, "action": "advance_turn" })),
            ("encounter_action", damage(4)),
        ],
    )
    .await;
    let orc = async || participant(&world, &id, "orc").await["hp"].clone();
    assert_eq!(orc().await, 15 - 2 - 3 - 4);
    // A turn is taken back as a whole, not action by action.
    let by_hand = world.post(&format!("/encounters/{id}/undo"), json!({})).await.problem(409, "conflict");
    assert!(by_hand.body["detail"].as_str().unwrap().contains("Undo the turn"), "{}", by_hand.body);
    undo(&world, &first).await.expect(200);
    assert_eq!(orc().await, 13);
    let view = world.get(&format!("/encounters/{id}")).await.expect(200).body;
    assert_eq!((&view["current_participant_id"], &view["turn"]), (&json!("fenric"), &json!(1)));
    assert_eq!(world.get("/encounters").await.items()[0]["current_participant_id"], "fenric");
    // It goes on from there.
    hurt(&world, &id, "orc", 1).await;
    assert_eq!(orc().await, 12);

    // What somebody did since stands in the way, and nothing is undone.
    let second = turn(&world, &session, &[("encounter_action", damage(2))]).await;
    act(&world, &id, json!({ "action": "dodge", "participant_id": "fenric" })).await.expect(200);
    let refused = undo(&world, &second).await.problem(409, "undo_conflict");
    assert_eq!(refused.pointers(), [format!("/encounter/{id}")]);
    assert_eq!(orc().await, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beginning_and_a_commit_are_undone() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let session = world.post("/sessions", json!({ "client_id": "vtt", "role": "gm" })).await.expect(201).id();
    let mut create = duel();
    create["operation"] = json!("create");
    let begun = turn(&world, &session, &[("manage_encounter", create)]).await;
    assert_eq!(world.get("/encounters").await.items().len(), 1);
    undo(&world, &begun).await.expect(200);
    assert!(world.get("/encounters").await.items().is_empty());

    // Also after others acted in it and took that back.
    let mut create = duel();
    create["operation"] = json!("create");
    let begun = turn(&world, &session, &[("manage_encounter", create)]).await;
    let id = world.get("/encounters").await.items()[0]["id"].clone();
    let damage = json!({ "encounter_id": id, "action": "damage", "target_id": "orc", "amount": 3 });
    let advance = json!({ "encounter_id": id, "action": "advance_turn" });
    let acted = turn(&world, &session, &[("encounter_action", damage), ("encounter_action", advance)]).await;
    undo(&world, &begun).await.problem(409, "undo_conflict");
    undo(&world, &acted).await.expect(200);
    undo(&world, &begun).await.expect(200);
    assert!(world.get("/encounters").await.items().is_empty());

    let id = begin(&world, duel()).await;
    hurt(&world, &id, "fenric", 5).await;
    end(&world, &id).await;
    let committed =
        turn(&world, &session, &[("manage_encounter", json!({ "operation": "commit", "encounter_id": id }))]).await;
    assert_eq!(hp(&world, "fenric").await, 23);
    undo(&world, &committed).await.expect(200);
    assert_eq!(hp(&world, "fenric").await, 28);
    assert_eq!(commit(&world, &id, json!({})).await["committed"][0]["changes"]["hp"]["delta"], -5);
    assert_eq!(hp(&world, "fenric").await, 23);
}
