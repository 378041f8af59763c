//! Dice of a resolution: given, fair, too few, too many.

use edge::caller::Scope;
use serde_json::{Value, json};

use super::{call, roll, table};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn given_dice_have_to_fit() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let stab = json!({ "weapon": "dagger", "target": "ogre" });
    for dice in [&[][..], &[15], &[21, 1], &[0, 1], &[15, 5], &[15, 1, 1]] {
        roll(&world, "resolve_attack", "shade", stab.clone(), dice).await.problem(422, "invalid_dice");
    }
    for dice in [&[][..], &[21], &[10, 10]] {
        roll(&world, "resolve_skill_check", "shade", json!({ "skill": "stealth", "dc": 10 }), dice)
            .await
            .problem(422, "invalid_dice");
    }
    roll(&world, "apply_damage", "shade", json!({ "target": "ogre", "parts": [{ "amount": 1 }] }), &[1])
        .await
        .problem(422, "invalid_dice");
    assert_eq!(super::row(&world, "/npcs/ogre").await["stats"]["hp"], 59);
    // What is impossible gives them back.
    let nobody = json!({ "weapon": "dagger", "target": "nobody" });
    let back = roll(&world, "resolve_attack", "shade", nobody, &[15, 2]).await.expect(200);
    assert_eq!(back.body["result"]["dice_unused"], json!([15, 2]));
    // They are a game master's.
    let frontend = tenant.with_scopes(&[Scope::Tools, Scope::Read]).await;
    let mut body = call("shade", stab);
    body["dice"] = json!([15, 1]);
    frontend.post(&world.path("/tools/resolve_attack"), body).await.problem(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fair_stream_moves_only_when_dice_fall() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let check = call("shade", json!({ "skill": "stealth", "dc": 10 }));
    let first = world.post("/tools/resolve_skill_check", check.clone()).await.expect(200).body["result"].clone();
    assert_eq!((&first["source"], &first["counter"]), (&json!("server"), &json!(1)));
    for (tool, body) in [
        ("resolve_attack", call("shade", json!({ "weapon": "dagger", "target": "nobody" }))),
        ("resolve_attack", call("shade", json!({ "weapon": "halberd", "target": "ogre" }))),
        ("resolve_passive", call("shade", json!({ "skill": "perception" }))),
        ("mark_no_check", json!({ "arguments": { "reason": "Easy." } })),
        ("apply_damage", json!({ "arguments": { "target": "ogre", "parts": [{ "amount": 1 }] } })),
    ] {
        let still = world.post(&format!("/tools/{tool}"), body).await.expect(200).body["result"].clone();
        assert_eq!((&still["counter"], &still["source"]), (&Value::Null, &Value::Null), "{tool}");
    }
    let second = world.post("/tools/resolve_skill_check", check).await.expect(200).body["result"].clone();
    assert_eq!((&second["counter"], &second["seed_id"]), (&json!(2), &first["seed_id"]));
}
