//! Fights in the editor: whoever may play acts for whoever has the turn.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use edge::users::Role;
use serde_json::json;

use super::Visitor;
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn the_game_master_acts_by_buttons() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let claws = json!([{ "name": "Claws", "bonus": 4, "damage": "1d4", "damage_type": "slashing" }]);
    let fight = json!({ "name": "The pier", "participants": [
        { "id": "orc", "name": "Orc <b>", "hp": 70, "max_hp": 70, "armor_class": 5, "is_enemy": true, "initiative": 20, "attacks": claws },
        { "id": "lurker", "name": "The Lurker", "hp": 9, "max_hp": 9, "is_enemy": true, "initiative": 1, "hidden": true },
        { "id": "alice", "character_id": "player_alice", "initiative": 10 },
    ] });
    let id = world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    let path = format!("/admin/c/port-town/encounters/{id}");
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let mut viewer = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    for page in [path.clone(), "/admin/c/port-town".to_owned()] {
        let shown = owner.get(&page).await.expect(200).text;
        assert!(shown.contains(">Claws<span class=\"unseen\"> against Alice</span>"), "{shown}");
        assert!(
            shown.contains("It is Orc &#60;b&#62;&#39;s turn: an action, a bonus action, 30 feet to move."),
            "{shown}"
        );
        let read = viewer.get(&page).await.expect(200).text;
        assert!(!read.contains("name=\"action\""), "who may only read has no buttons: {read}");
    }
    let act = format!("{path}/act");
    let attack =
        json!({ "action": "attack", "participant_id": "orc", "target_id": "alice", "weapon": "Claws" }).to_string();
    viewer.post(&act, &[("action", &attack)]).await.expect(403);
    assert_eq!(owner.post(&act, &[("action", &attack)]).await.expect(303).header("location"), path);
    let told = world.get("/messages").await.expect(200);
    assert!(
        told.items().iter().any(|m| m["content"].as_str().unwrap().contains("attacks Alice with Claws")),
        "{told:?}"
    );
    // Buttons of a page that is out of date say what is so now, and change nothing.
    let dodge = json!({ "action": "dodge", "participant_id": "alice" }).to_string();
    for (late, why) in [(attack, "Orc <b> has no action left in this turn."), (dodge, "It is the turn of orc.")] {
        let answer = owner.post(&act, &[("action", &late)]).await.expect(303);
        let cookie = answer.header("set-cookie");
        let message = cookie.split_once("=!").expect("a refusal").1.split(';').next().unwrap();
        let message = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(message).unwrap()).unwrap();
        assert_eq!(message, why[..1].to_uppercase() + &why[1..]);
    }
    owner.post(&act, &[("action", "{}")]).await.expect(422);
    owner.post(&act, &[]).await.expect(400);
    owner.post("/admin/c/port-town/encounters/nonsense/act", &[("action", "{\"action\":\"dodge\"}")]).await.expect(404);
    world.post(&format!("/encounters/{id}/end"), json!({ "outcome": "fled" })).await.expect(200);
    assert!(!owner.get(&path).await.expect(200).text.contains("name=\"action\""));
}
