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
    let mut whole = log_of(&acme).await;
    let dice = whole.remove(4);
    assert!(dice.starts_with("The dice of Thug against Alice with Club: "), "{dice}");
    assert!(dice.contains("a hit for 3 bludgeoning damage (1d"), "{dice}");
    assert_eq!(told, whole, "nothing else is a secret");
    let total = told[1].split(": ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    assert_eq!(
        told,
        [
            "A fight begins: Alice against Thug. It is Alice's turn.".to_owned(),
            format!("Alice attacks Thug with Longsword: {total}, a hit for 1 slashing damage (1d8: 1). Thug is hurt."),
            "Alice moves 15 feet.".to_owned(),
            "Alice's turn is over. It is Thug's turn.".to_owned(),
            "Thug attacks Alice with Club: a hit for 3 bludgeoning damage. Alice takes 3 damage (97 of 100 hit points).".to_owned(),
            "Alice is prone.".to_owned(),
            "Thug's turn is over. Round 2. It is Alice's turn.".to_owned(),
            "Rat joins the fight.".to_owned(),
            "Thug dies.".to_owned(),
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

/// Dice are told as far as everybody may see them: those of friends, and of foes what came of them. The game master reads the others before.
#[tokio::test(flavor = "multi_thread")]
async fn dice_are_told() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let mage = json!({ "slug": "mage", "name": "Mage", "profession": "Wizard", "level": 5, "hp": 40, "max_hp": 40,
        "abilities": { "strength": 8, "dexterity": 14, "constitution": 12, "intelligence": 18, "wisdom": 10, "charisma": 10 },
        "spells": ["Fireball", "Scorching Ray", "Hold Person", "Fire Bolt", "Bless"],
        "weapons": [{ "name": "Dagger" }], "spell_slots": { "2": { "max": 9, "remaining": 9 }, "3": { "max": 9, "remaining": 9 } } });
    world.post("/characters", mage).await.expect(201);
    let thug = json!({ "id": "thug", "name": "Thug", "hp": 300, "max_hp": 300, "armor_class": 10, "is_enemy": true, "initiative": 1,
        "attacks": [{ "name": "Mace", "bonus": 4, "damage": "1d6+2", "damage_type": "bludgeoning" }] });
    let fight = json!({ "participants": [
        { "id": "mage", "character_id": "mage", "initiative": 20 }, { "id": "alice", "character_id": "player_alice", "initiative": 10 }, thug ] });
    let id = begin(&world, fight).await;
    let did = async |mut action: Value| {
        action["override"] = json!(true);
        let told = log_of(&acme).await.len();
        acts(&world, &id, action).await;
        log_of(&acme).await.split_off(told).join("\n")
    };
    let bolt = |dice: Value| json!({ "action": "attack", "participant_id": "mage", "target_id": "thug", "spell_name": "Fire Bolt", "dice": dice });
    let mut with = bolt(json!([12, 4, 3, 5]));
    with["advantage"] = json!("advantage");
    let told = [
        did(with).await,
        did(bolt(json!([20, 1, 2, 3, 4]))).await,
        did(bolt(json!([2]))).await,
        did(json!({ "action": "cast_spell", "participant_id": "mage", "target_id": "thug", "spell_name": "Scorching Ray",
            "slot_level": 2, "dice": [15, 2, 18, 2, 3, 4, 5] })).await,
        did(json!({ "action": "cast_spell", "participant_id": "mage", "target_ids": ["thug", "alice"], "spell_name": "Fireball",
            "slot_level": 3, "dice": [3, 17, 1, 2, 3, 4, 5, 6, 1, 2] })).await,
        did(json!({ "action": "cast_spell", "participant_id": "mage", "target_id": "alice", "spell_name": "Hold Person",
            "slot_level": 2, "dice": [4] })).await,
        did(json!({ "action": "attack", "participant_id": "thug", "target_id": "mage", "weapon": "Mace", "advantage": "disadvantage",
            "dice": [15, 12, 4, 9] })).await,
        did(json!({ "action": "shove", "participant_id": "thug", "target_id": "mage", "dice": [12, 8] })).await,
    ];
    insta::assert_snapshot!(told.join("\n"));
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
