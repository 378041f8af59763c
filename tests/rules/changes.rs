//! What a resolution changes: nothing in a preview, a slot once, and all of it in the journal.

use std::sync::Arc;

use futures_util::future::join_all;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::{call, result, row, table};
use crate::support::{Server, counts};

fn smite(target: &str) -> Value {
    json!({ "weapon": "Longsword", "target": target, "extra_damage_sources": ["Divine Smite 1"] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_changes_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let before = (counts(&server).await, row(&world, "/characters/vera").await, row(&world, "/npcs/ogre").await);
    let mut inside = call("vera", smite("ogre"));
    inside["arguments"]["preview"] = json!(true);
    inside["arguments"]["apply"] = json!(true);
    let mut beside = call("vera", smite("ogre"));
    beside["preview"] = json!(true);
    beside["apply"] = json!(true);
    for body in [inside, beside] {
        let given = {
            let mut given = body.clone();
            given["dice"] = json!([15, 4, 4, 4]);
            given
        };
        let shown = world.post("/tools/resolve_attack", given).await.expect(200).body["result"].clone();
        assert_eq!((&shown["preview"], &shown["outcome"]), (&json!(true), &json!("hit")));
        let effects = shown["effects"].as_array().unwrap();
        assert!(effects.len() >= 2 && effects.iter().all(|e| e["applied"] == false), "{effects:?}");
        // Without dice of its own it leaves the fair stream alone, too.
        let rolled = world.post("/tools/resolve_attack", body).await.expect(200).body["result"].clone();
        assert_eq!((&rolled["source"], &rolled["counter"]), (&json!("server"), &Value::Null));
    }
    let after = (counts(&server).await, row(&world, "/characters/vera").await, row(&world, "/npcs/ogre").await);
    assert_eq!(after, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hit_spends_what_it_used_and_hurts_when_it_is_applied() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let seen = world.get("/changes?limit=200").await.expect(200).items().len();
    let unapplied = result(&world, "resolve_attack", "vera", smite("ogre"), &[15, 4, 4, 4]).await;
    assert_eq!(row(&world, "/npcs/ogre").await["stats"]["hp"], 59);
    assert_eq!(row(&world, "/characters/vera").await["spell_slots"]["1"]["remaining"], 0);
    for effect in unapplied["effects"].as_array().unwrap() {
        assert_eq!(effect["applied"], effect["type"] == "spend_slot", "{effect}");
    }
    let changes = world.get(&format!("/changes?after={seen}&limit=200")).await.expect(200);
    assert_eq!(changes.items().len(), 1, "{}", changes.text);
    let spent = &changes.items()[0];
    assert_eq!((&spent["table"], &spent["op"]), (&json!("character"), &json!("update")));
    assert_eq!(spent["before"]["spell_slots"]["1"]["remaining"], 1);
    assert_eq!(spent["after"]["spell_slots"]["1"]["remaining"], 0);

    let mut body = call("korga", json!({ "weapon": "greataxe", "target": "ogre" }));
    body["apply"] = json!(true);
    body["dice"] = json!([15, 6]);
    world.post("/tools/resolve_attack", body).await.expect(200);
    let ogre = row(&world, "/npcs/ogre").await;
    assert_eq!((&ogre["stats"]["hp"], &ogre["stats"]["max_hp"], &ogre["version"]), (&json!(46), &json!(59), &json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_works_once_a_turn_works_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let stab = |turn: Value| {
        json!({ "weapon": "dagger", "target": "ogre", "extra_damage_sources": ["Sneak Attack"],
            "context": { "ally_adjacent": true, "turn_key": turn } })
    };
    let first = result(&world, "resolve_attack", "shade", stab(json!("round 1")), &[15, 1, 1, 1, 1]).await;
    assert_eq!(first["damage"]["breakdown"].as_array().unwrap().len(), 2);
    let second = result(&world, "resolve_attack", "shade", stab(json!("round 1")), &[15, 1]).await;
    assert!(super::says(&second, "refused: Sneak Attack"), "{}", second["reasons"]);
    result(&world, "resolve_attack", "shade", stab(json!(2)), &[15, 1, 1, 1, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_smites_at_once_spend_the_last_slot_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let barrier = Arc::new(Barrier::new(8));
    let blows = (0..8).map(|n| {
        let (world, barrier) = (&world, barrier.clone());
        async move {
            let target = if n % 2 == 0 { "ogre" } else { "goblin" };
            let mut body = call("vera", smite(target));
            body["apply"] = json!(true);
            body["arguments"]["slot_level"] = json!(1);
            body["arguments"]["advantage"] = json!("advantage");
            barrier.wait().await;
            world.post("/tools/resolve_attack", body).await.expect(200).body["result"].clone()
        }
    });
    let results = join_all(blows).await;
    let smitten = |r: &&Value| r["effects"].as_array().is_some_and(|e| e.iter().any(|e| e["type"] == "spend_slot"));
    let hits = results.iter().filter(|r| r["success"] == true).count();
    assert_eq!(results.iter().filter(smitten).count(), hits.min(1), "{results:?}");
    let vera = row(&world, "/characters/vera").await;
    assert_eq!(vera["spell_slots"]["1"]["remaining"], if hits == 0 { 1 } else { 0 });
    // Each roll of the fair stream is another one.
    let mut counters: Vec<_> = results.iter().map(|r| r["counter"].as_i64().unwrap()).collect();
    counters.sort_unstable();
    assert_eq!(counters, (1..=8).collect::<Vec<_>>());
    // And what was taken from them is what they lack.
    for target in ["ogre", "goblin"] {
        let row = row(&world, &format!("/npcs/{target}")).await;
        let id = &row["id"];
        let taken: i64 = results
            .iter()
            .flat_map(|r| r["effects"].as_array().into_iter().flatten())
            .filter(|e| e["type"] == "damage" && e["creature"] == *id)
            .map(|e| e["total"].as_i64().unwrap())
            .sum();
        let (hp, max) = (row["stats"]["hp"].as_i64().unwrap(), row["stats"]["max_hp"].as_i64().unwrap());
        assert_eq!(hp, (max - taken).max(0), "{target}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_npc_strikes_in_its_turn_and_an_undo_takes_it_back() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    world.patch("/npcs/ogre", json!({ "available_tools": ["apply_damage", "resolve_attack"] })).await.expect(200);
    let blow = json!({ "target": "shade", "parts": [{ "amount": 10, "type": "bludgeoning" }] });
    server.model.set_script(Script::replies([
        Reply::tool("apply_damage", blow)
            .with_tool("resolve_attack", json!({ "target": "shade" }))
            .with_tool("resolve_attack", json!({ "target": "nobody" }))
            .with_tool("resolve_attack", json!({ "target": "shade", "cover": "tree" })),
        Reply::text("It roars."),
    ]));
    let turn = tenant.npc_turn("dungeon", "ogre", "shade", "I run.").await.expect(200);
    let statuses: Vec<_> = turn.body["tool_calls"].as_array().unwrap().iter().map(|c| c["status"].clone()).collect();
    assert_eq!(statuses, ["succeeded", "succeeded", "succeeded", "failed"], "{}", turn.text);
    assert_eq!(turn.body["tool_calls"][1]["result"]["counter"], 1);
    assert_eq!(turn.body["tool_calls"][2]["result"]["impossible"], true);
    assert_eq!(row(&world, "/characters/shade").await["hp"], 23);
    world.post(&format!("/turns/{}/undo", turn.id()), json!({})).await.expect(200);
    assert_eq!(row(&world, "/characters/shade").await["hp"], 33);
}

/// Models write whole numbers as text and with a decimal point. What is no whole number is refused, not rounded.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_may_write_a_whole_number_in_other_ways() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    world.patch("/npcs/ogre", json!({ "available_tools": ["resolve_skill_check"] })).await.expect(200);
    for (dc, understood) in [(json!("15"), true), (json!(15.0), true), (json!(15.5), false), (json!("15.5"), false)] {
        let check = || Reply::tool("resolve_skill_check", json!({ "skill": "stealth", "dc": dc }));
        server.model.set_script(Script::replies([check(), Reply::text("It listens.")]));
        let turn = tenant.npc_turn("dungeon", "ogre", "shade", "I hide.").await.expect(200);
        let call = &turn.body["tool_calls"][0];
        let resolve = json!({ "player_id": "shade", "action": "I hide.", "dice": [12], "preview": true });
        server.model.set_script(Script::always(check()));
        let resolved = world.post("/rules/resolve", resolve).await;
        if understood {
            assert_eq!((&call["status"], &call["result"]["dc_or_ac"]), (&json!("succeeded"), &json!("15")), "{call}");
            assert!(resolved.expect(200).text.contains(r#""dc_or_ac":"15""#));
        } else {
            assert_eq!(call["status"], "failed", "{call}");
            assert!(call.to_string().contains("/dc"), "{call}");
            assert!(!resolved.text.contains(r#""dc_or_ac":"1"#), "{}", resolved.text);
        }
    }
}
