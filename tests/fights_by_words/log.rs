//! What happens in a fight stands in the log, by words or by the API, for those who may see it, once.

use serde_json::{Value, json};

use super::{begin, foe, log_of, player, says, tenant, town};
use crate::support::{Server, World};

async fn acts(world: &World<'_>, id: &str, action: Value) {
    world.post(&format!("/encounters/{id}/actions"), action).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_fight_is_told() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let mut thug = foe("thug", "Thug", 10);
    thug["hp"] = json!(9);
    let fight = json!({ "name": "Brawl", "participants": [
        { "id": "alice", "character_id": "player_alice", "initiative": 20 }, thug ] });
    let id = begin(&world, fight).await;
    let attack = |dice: Value| json!({ "action": "attack", "target_id": "thug", "weapon": "Longsword", "dice": dice });
    acts(&world, &id, attack(json!([15, 1]))).await;
    acts(&world, &id, json!({ "action": "move", "amount": 15 })).await;
    says(super::Door::Rules, &acme, "player_alice", "I end my turn").await.expect(200);
    acts(&world, &id, json!({ "action": "attack", "target_id": "alice", "weapon": "Club", "dice": [19, 2] })).await;
    acts(&world, &id, json!({ "action": "add_condition", "target_id": "alice", "condition": "prone" })).await;
    acts(&world, &id, json!({ "action": "advance_turn" })).await;
    world
        .post(&format!("/encounters/{id}/participants"), json!({ "id": "rat", "name": "Rat", "hp": 1 }))
        .await
        .expect(200);
    acts(&world, &id, json!({ "action": "damage", "target_id": "thug", "amount": 50 })).await;
    world.post(&format!("/encounters/{id}/end"), json!({ "outcome": "victory" })).await.expect(200);
    let alice = player(&acme, "player_alice").await;
    let told = log_of(&alice).await;
    assert_eq!(told, log_of(&acme).await, "nothing here is a secret");
    let total = told[1].split(": ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    assert_eq!(
        told,
        [
            "A fight begins: Alice against Thug. It is Alice's turn.".to_owned(),
            format!("Alice attacks Thug with Longsword: {total}, a hit. Thug is hurt."),
            "Alice moves 15 feet.".to_owned(),
            "Alice's turn is over. It is Thug's turn.".to_owned(),
            "Thug attacks Alice with Club: a hit. Alice takes 3 damage (97 of 100 hit points).".to_owned(),
            "Alice is prone.".to_owned(),
            "Thug's turn is over. Round 2. It is Alice's turn.".to_owned(),
            "Rat joins the fight.".to_owned(),
            "Thug is hurt. Thug dies.".to_owned(),
            "The fight is over: victory.".to_owned(),
        ],
        "{told:#?}"
    );
    let messages = world.get("/messages?limit=200").await.expect(200);
    let kinds = messages.items().iter().all(|m| {
        (&m["type"], &m["author"], &m["flavor"]) == (&json!("system"), &json!("system"), &json!("fight"))
            && m["speaker"]["name"] == "Brawl"
    });
    assert!(kinds, "{}", messages.text);
}

/// A preview and a refusal tell nothing; a quota of messages holds.
#[tokio::test(flavor = "multi_thread")]
async fn what_did_not_happen_is_not_told() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let id = super::brawling(&world).await;
    let before = log_of(&acme).await.len();
    let path = format!("/encounters/{id}/actions");
    world.post(&path, json!({ "action": "dodge", "preview": true })).await.expect(200);
    world.post(&path, json!({ "action": "dodge", "participant_id": "dog" })).await.problem(409, "not_your_turn");
    world.post(&path, json!({ "action": "attack", "target_id": "dog", "weapon": "Spoon" })).await.expect(200);
    assert_eq!(log_of(&acme).await.len(), before);
    let alice = player(&acme, "player_alice").await;
    let shown = json!({ "player_id": "player_alice", "action": "I attack the dog", "preview": true });
    alice.post(&world.path("/rules/resolve"), shown.clone()).await.problem(403, "forbidden");
    acme.post(&world.path("/rules/resolve"), shown).await.expect(200);
    assert_eq!(log_of(&acme).await.len(), before);
}
