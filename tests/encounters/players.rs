//! What a player's token may see and do.

use serde_json::json;

use super::{begin, duel, dungeon};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_player_acts_for_its_own_character() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    world.post("/characters", json!({ "slug": "mira", "name": "Mira" })).await.expect(201);
    // The sword's best blow does not fell the orc, so it has a turn.
    let mut fight = duel();
    fight["participants"][1]["hp"] = json!(60);
    fight["participants"][1]["max_hp"] = json!(60);
    let id = begin(&world, fight).await;
    let path = world.path(&format!("/encounters/{id}/actions"));
    let token = |player: &str| json!({ "campaign": "dungeon", "player_id": player, "scopes": ["read", "play"] });
    let (fenric, mira) = (tenant.token(token("fenric")).await, tenant.token(token("mira")).await);

    let dodge = json!({ "action": "dodge" });
    mira.post(&path, dodge).await.problem(403, "forbidden");
    fenric.post(&path, json!({ "action": "dodge", "participant_id": "orc" })).await.problem(403, "forbidden");
    for masters in [
        json!({ "action": "heal", "target_id": "fenric", "amount": 9 }),
        json!({ "action": "dodge", "override": true }),
        json!({ "action": "attack", "target_id": "orc", "dice": [20, 8, 8] }),
    ] {
        fenric.post(&path, masters).await.problem(403, "forbidden");
    }
    let own = json!({ "action": "attack", "target_id": "orc", "weapon": "Longsword" });
    let mut shown = own.clone();
    shown["preview"] = json!(true);
    fenric.post(&path, shown).await.problem(403, "forbidden");
    fenric.post(&path, json!({ "action": "end_concentration", "target_id": "orc" })).await.problem(403, "forbidden");
    let blow = fenric.post(&path, own).await.expect(200);
    assert!(blow.body["outcomes"][0]["total"].is_i64());
    for hidden in ["dc_or_ac", "effects", "notes", "raw"] {
        assert_eq!(blow.body["outcomes"][0].get(hidden), None, "{}", blow.text);
    }
    world
        .post(
            &format!("/encounters/{id}/actions"),
            json!({ "action": "dodge", "participant_id": "fenric", "override": true }),
        )
        .await
        .expect(200);
    fenric.post(&path, json!({ "action": "advance_turn" })).await.expect(200);
    fenric.post(&path, json!({ "action": "advance_turn" })).await.problem(409, "not_your_turn");
    for (path, body) in
        [("end", json!({ "outcome": "fled" })), ("commit", json!({})), ("participants", json!({ "id": "x" }))]
    {
        fenric.post(&world.path(&format!("/encounters/{id}/{path}")), body).await.problem(403, "forbidden");
    }

    // How enemies fare, not their numbers.
    let view = fenric.get(&world.path(&format!("/encounters/{id}?verbosity=detailed"))).await.expect(200).body;
    let (own, orc) = (&view["participants"][0], &view["participants"][1]);
    assert_eq!((&own["hp"], &orc["status"]), (&json!(28), &json!("alive")));
    for hidden in ["hp", "max_hp", "armor_class", "statistics", "resistances"] {
        assert_eq!(orc.get(hidden), None, "{orc}");
    }
}
