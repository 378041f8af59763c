//! Who takes part: creatures of the SRD, somebody who leaves and comes back, and the newest action taken back.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{act, begin, commit, duel, dungeon, end, hp, hurt, participant};
use crate::support::{Answer, Server, World};

async fn undo(world: &World<'_>, id: &str) -> Answer {
    world.post(&format!("/encounters/{id}/undo"), json!({})).await
}

async fn leave(world: &World<'_>, id: &str, who: &str) -> Answer {
    world.delete(&format!("/encounters/{id}/participants/{who}")).await
}

/// What the campaign's log says of fights, oldest first.
async fn told(world: &World<'_>) -> Vec<String> {
    let log = world.get("/messages?limit=200").await.expect(200).body;
    let fights = log["items"].as_array().unwrap().iter().filter(|message| message["flavor"] == "fight");
    fights.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_creature_of_the_srd_can_be_sent_into_a_fight() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let table = tenant.get("/v1/rules/srd/creatures").await.expect(200).body;
    let rows = table["items"].as_array().unwrap();
    assert_eq!(rows.len(), 20);
    let mut participants: Vec<Value> = rows.clone();
    for (n, row) in participants.iter_mut().enumerate() {
        let row = row.as_object_mut().unwrap();
        assert!(row.remove("challenge_rating").is_some() && row.remove("hit_dice").is_some());
        row.insert("id".to_owned(), json!(format!("creature_{n}")));
        row.insert("is_enemy".to_owned(), json!(true));
    }
    let view =
        world.post("/encounters?verbosity=detailed", json!({ "participants": participants })).await.expect(201).body;
    let ogre = view["participants"].as_array().unwrap().iter().find(|p| p["name"] == "Ogre").unwrap();
    assert_eq!((&ogre["hp"], &ogre["max_hp"], &ogre["armor_class"]), (&json!(59), &json!(59), &json!(11)));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_is_out_of_the_fight_and_what_happened_to_it_is_committed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = begin(&world, duel()).await;
    hurt(&world, &id, "fenric", 5).await;
    // Who read an older state is told so, and nothing has changed.
    let old = world.get(&format!("/encounters/{id}")).await.header("etag").to_owned();
    hurt(&world, &id, "fenric", 1).await;
    let path = world.path(&format!("/encounters/{id}/participants/fenric"));
    let stale = tenant.request(reqwest::Method::DELETE, &path).header("if-match", old);
    tenant.send(stale).await.problem(412, "precondition_failed");
    leave(&world, &id, "nobody").await.problem(404, "not_found");

    leave(&world, &id, "fenric").await.expect(204);
    leave(&world, &id, "fenric").await.problem(404, "not_found");
    let view = world.get(&format!("/encounters/{id}")).await.expect(200).body;
    assert_eq!((&view["participant_count"], &view["current_participant_id"]), (&json!(1), &json!("orc")), "{view}");
    assert_eq!(told(&world).await.last().unwrap(), "Fenric leaves the fight. It is Orc's turn.");
    // Its player is no longer in the fight.
    let token = json!({ "campaign": "dungeon", "player_id": "fenric", "scopes": ["read", "play"] });
    let player = tenant.token(token).await;
    let swing = json!({ "action": "attack", "target_id": "orc", "weapon": "Longsword" });
    player.post(&world.path(&format!("/encounters/{id}/actions")), swing.clone()).await.problem(403, "forbidden");

    // It comes back as it was, not as its sheet is.
    world.post(&format!("/encounters/{id}/participants"), json!({ "character_id": "fenric" })).await.expect(200);
    assert_eq!(participant(&world, &id, "fenric").await["hp"], 22);
    leave(&world, &id, "fenric").await.expect(204);
    let ended = end(&world, &id).await;
    let update = &ended["participant_updates"][1];
    assert_eq!(
        (&update["participant_id"], &update["changes"]["hp"]["delta"]),
        (&json!("fenric"), &json!(-6)),
        "{ended}"
    );
    leave(&world, &id, "orc").await.problem(409, "encounter_already_ended");
    assert_eq!(commit(&world, &id, json!({})).await["committed"][0]["character_name"], "Fenric");
    assert_eq!(hp(&world, "fenric").await, 22);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_action_is_taken_back_with_what_was_told_of_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = begin(&world, duel()).await;
    undo(&world, &id).await.problem(409, "conflict");
    hurt(&world, &id, "orc", 4).await;
    let before = world.get(&format!("/encounters/{id}?verbosity=detailed")).await.body;
    let said = told(&world).await;

    // Whatever it was: damage, a turn that ended, somebody who came or left.
    for action in ["damage", "turn", "join", "leave"] {
        match action {
            "damage" => drop(hurt(&world, &id, "orc", 30).await),
            "turn" => drop(act(&world, &id, json!({ "action": "advance_turn" })).await.expect(200)),
            "join" => {
                let path = format!("/encounters/{id}/participants");
                world.post(&path, json!({ "npc_id": "goblin", "is_enemy": true })).await.expect(200);
            }
            _ => drop(leave(&world, &id, "fenric").await.expect(204)),
        }
        assert_eq!(told(&world).await.len(), said.len() + 1, "{action}");
        let mut back = undo(&world, &id).await.expect(200).body;
        assert!(back["version"].as_i64() > before["version"].as_i64());
        back = world.get(&format!("/encounters/{id}?verbosity=detailed")).await.body;
        let differs = |key: &str| key != "version" && back[key] != before[key];
        let keys: Vec<&String> = before.as_object().unwrap().keys().filter(|key| differs(key)).collect();
        assert!(keys.is_empty(), "{action}: {keys:?} {back}");
        assert_eq!(told(&world).await, said, "{action}");
    }
    // Who was taken out and is back is in the fight again, and is committed.
    hurt(&world, &id, "fenric", 3).await;
    end(&world, &id).await;
    undo(&world, &id).await.problem(409, "conflict");
    assert_eq!(commit(&world, &id, json!({})).await["committed"][0]["changes"]["hp"]["final"], 25);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_game_masters_take_one_action_back_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = begin(&world, duel()).await;
    for _ in 0..3 {
        hurt(&world, &id, "orc", 2).await;
    }
    let seen = world.get(&format!("/encounters/{id}")).await.header("etag").to_owned();
    let path = world.path(&format!("/encounters/{id}/undo"));
    let both = join_all((0..4).map(|_| {
        let request = tenant.request(reqwest::Method::POST, &path).header("if-match", &seen).json(&json!({}));
        tenant.send(request)
    }))
    .await;
    let mut status: Vec<u16> = both.iter().map(|answer| answer.status).collect();
    status.sort_unstable();
    assert_eq!(status, [200, 412, 412, 412]);
    assert_eq!(participant(&world, &id, "orc").await["hp"], 11);
    // A player takes nothing back.
    let token = json!({ "campaign": "dungeon", "player_id": "fenric", "scopes": ["read", "play"] });
    tenant.token(token).await.post(&path, json!({})).await.problem(403, "forbidden");
}
