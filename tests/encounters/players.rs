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
    let id = begin(&world, duel()).await;
    let path = world.path(&format!("/encounters/{id}/actions"));
    let token = |player: &str| json!({ "campaign": "dungeon", "player_id": player, "scopes": ["read", "play"] });
    let (fenric, mira) = (tenant.token(token("fenric")).await, tenant.token(token("mira")).await);

    let dodge = json!({ "action": "dodge" });
    mira.post(&path, dodge.clone()).await.problem(403, "forbidden");
    fenric.post(&path, json!({ "action": "dodge", "participant_id": "orc" })).await.problem(403, "forbidden");
    for masters in [
        json!({ "action": "heal", "target_id": "fenric", "amount": 9 }),
        json!({ "action": "dodge", "override": true }),
        json!({ "action": "attack", "target_id": "orc", "dice": [20, 8, 8] }),
    ] {
        fenric.post(&path, masters).await.problem(403, "forbidden");
    }
    fenric.post(&path, dodge).await.expect(200);
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
