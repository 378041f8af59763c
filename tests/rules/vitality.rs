//! Damage, healing, concentration, death, falls and rests.

use serde_json::{Value, json};

use super::{call, result, roll, row, table};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn damage_and_healing_arrive() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    world.patch("/characters/korga", json!({ "temp_hp": 5, "resistances": ["fire"] })).await.expect(200);
    let blow = json!({ "target": "korga", "parts": [{ "amount": 11, "type": "fire" }, { "amount": 10, "type": "slashing" }, { "amount": 4 }] });
    // Rage resists what cuts.
    let mut preview = blow.clone();
    preview["preview"] = json!(true);
    let shown = result(&world, "apply_damage", "npc:ogre", preview, &[]).await;
    assert_eq!((&shown["damage"]["taken"], &shown["preview"]), (&json!(14), &json!(true)));
    assert_eq!(row(&world, "/characters/korga").await["temp_hp"], 5);
    // The game master needs no actor.
    let done = world.post("/tools/apply_damage", json!({ "arguments": blow })).await.expect(200);
    assert_eq!(done.body["result"]["damage"]["taken"], 14);
    let korga = row(&world, "/characters/korga").await;
    assert_eq!((&korga["hp"], &korga["temp_hp"]), (&json!(86), &json!(0)));
    result(&world, "apply_healing", "vera", json!({ "target": "Korga", "formula": "1d8+3" }), &[2]).await;
    assert_eq!(row(&world, "/characters/korga").await["hp"], 91);
    result(&world, "apply_healing", "vera", json!({ "target": "Korga", "amount": 50 }), &[]).await;
    assert_eq!(row(&world, "/characters/korga").await["hp"], 95);
    // What only silver harms.
    let wolf = json!({ "resistances": ["piercing from nonmagical attacks not made with silvered weapons"] });
    world.patch("/npcs/ogre", json!({ "stats": wolf })).await.expect(200);
    for (marks, taken) in [(json!({}), 5), (json!({ "adamantine": true }), 5), (json!({ "silvered": true }), 10)] {
        let mut blow = json!({ "target": "ogre", "parts": [{ "amount": 10, "type": "piercing" }], "preview": true });
        blow.as_object_mut().unwrap().extend(marks.as_object().unwrap().clone());
        let shown = result(&world, "apply_damage", "npc:ogre", blow, &[]).await;
        assert_eq!(shown["damage"]["taken"], taken, "{marks}");
    }
    let both = json!({ "target": "Korga", "amount": 1, "formula": "1d4" });
    let both = roll(&world, "apply_healing", "vera", both, &[]).await.problem(422, "validation_failed");
    assert_eq!(both.pointers(), ["/arguments/amount"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn concentration_ends_for_everybody() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    world.patch("/characters/vera", json!({ "spell_slots": { "1": { "max": 4, "remaining": 4 } } })).await.expect(200);
    for target in ["shade", "ogre"] {
        let bless = json!({ "spell_name": "Bless", "target": target });
        result(&world, "resolve_attack", "vera", bless, &[]).await;
    }
    // Casting it again ended it on the first.
    assert_eq!(row(&world, "/characters/shade").await["effects"], json!([]));
    assert_eq!(row(&world, "/npcs/ogre").await["effects"][0]["name"], "Bless");
    world
        .patch("/npcs/goblin", json!({ "effects": [{ "name": "Bless", "source": "somebody else" }] }))
        .await
        .expect(200);
    let hurt = json!({ "target": "vera", "parts": [{ "amount": 30, "type": "cold" }] });
    let hurt = result(&world, "apply_damage", "vera", hurt, &[]).await;
    let due = hurt["effects"].as_array().unwrap().iter().find(|e| e["type"] == "concentration_check").unwrap();
    assert_eq!(due["dc"], 15);
    let kept = result(&world, "resolve_concentration", "vera", json!({ "damage": 30 }), &[13]).await;
    assert_eq!(kept["success"], true);
    let lost = result(&world, "resolve_concentration", "vera", json!({ "damage": 30 }), &[12]).await;
    assert_eq!((&lost["success"], &lost["dc_or_ac"]), (&json!(false), &json!("15")));
    assert_eq!(row(&world, "/characters/vera").await["concentration"], Value::Null);
    assert_eq!(row(&world, "/npcs/ogre").await["effects"], json!([]));
    assert_eq!(row(&world, "/npcs/goblin").await["effects"][0]["name"], "Bless");
}

#[tokio::test(flavor = "multi_thread")]
async fn dying_falling_and_waking() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    roll(&world, "resolve_death_save", "shade", json!({}), &[10]).await.problem(409, "not_dying");
    let fall = result(&world, "resolve_fall", "shade", json!({ "distance_ft": 60 }), &[6, 6, 6, 6, 6, 6]).await;
    assert_eq!(fall["damage"]["taken"], 36);
    assert_eq!(row(&world, "/characters/shade").await["hp"], 0);
    result(&world, "resolve_death_save", "shade", json!({}), &[10]).await;
    result(&world, "resolve_death_save", "shade", json!({}), &[1]).await;
    let saves = row(&world, "/characters/shade").await["death_saves"].clone();
    assert_eq!(saves, json!({ "successes": 1, "failures": 2 }));
    let woke = result(&world, "resolve_death_save", "shade", json!({}), &[20]).await;
    assert_eq!(woke["outcome"], "regains 1 hit point");
    let shade = row(&world, "/characters/shade").await;
    assert_eq!((&shade["hp"], &shade["death_saves"]["failures"]), (&json!(1), &json!(0)));
    // An NPC that was knocked out is stable.
    let knock = json!({ "target": "goblin", "parts": [{ "amount": 9 }], "context": { "knock_out": true } });
    result(&world, "apply_damage", "vera", knock, &[]).await;
    roll(&world, "resolve_death_save", "npc:goblin", json!({}), &[10]).await.problem(409, "not_dying");
}

#[tokio::test(flavor = "multi_thread")]
async fn rests_give_back_what_they_give_back() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let tired = json!({ "hp": 5, "temp_hp": 3, "conditions": [{ "name": "exhaustion", "level": 2 }],
        "spell_slots": { "1": { "max": 4, "remaining": 0 }, "2": { "max": 3, "remaining": 0 }, "3": { "max": 2, "remaining": 0 } } });
    world.patch("/characters/ilmar", tired).await.expect(200);
    let short = json!({ "type": "short", "hit_dice": 2, "recover_slots": [2, 1] });
    let rested = result(&world, "take_rest", "ilmar", short.clone(), &[4, 1]).await;
    assert_eq!(rested["total"], 9);
    let ilmar = row(&world, "/characters/ilmar").await;
    assert_eq!((&ilmar["hp"], &ilmar["hit_dice"]["remaining"]), (&json!(14), &json!(1)));
    assert_eq!(
        (&ilmar["spell_slots"]["1"]["remaining"], &ilmar["spell_slots"]["2"]["remaining"]),
        (&json!(1), &json!(1))
    );
    let again = world.post("/tools/take_rest", call("ilmar", short)).await.expect(200);
    assert_eq!(again.body["result"]["impossible"], true, "{}", again.text);

    // The endpoint does the same; a player rests as herself only.
    let token = tenant.token(json!({ "campaign": "dungeon", "player_id": "ilmar" })).await;
    let path = |who: &str| world.path(&format!("/characters/{who}/rest"));
    token.post(&path("vera"), json!({ "type": "long" })).await.problem(403, "forbidden");
    token.post(&path("ilmar"), json!({ "type": "short", "dice": [1] })).await.problem(403, "forbidden");
    let long = token.post(&path("ilmar"), json!({ "type": "long" })).await.expect(200);
    assert_eq!(long.body["outcome"], "13 hit points");
    let ilmar = row(&world, "/characters/ilmar").await;
    assert_eq!((&ilmar["hp"], &ilmar["temp_hp"], &ilmar["hit_dice"]["remaining"]), (&json!(27), &json!(0), &json!(3)));
    assert_eq!((&ilmar["conditions"][0]["level"], &ilmar["spell_slots"]["3"]["remaining"]), (&json!(1), &json!(2)));
    for (body, pointer) in [
        (json!({ "type": "nap" }), "/type"),
        (json!({}), "/type"),
        (json!({ "type": "short", "hit_dice": 101 }), "/hit_dice"),
        (json!({ "type": "short", "recover_slots": [1, 10] }), "/recover_slots/1"),
    ] {
        let answer = tenant.post(&path("ilmar"), body).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer]);
    }
    tenant.post(&path("nobody"), json!({ "type": "long" })).await.problem(404, "not_found");
    tenant.post(&path("goblin"), json!({ "type": "long" })).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_srd_can_be_read() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    for (name, count) in [("weapons", 37), ("armor", 12), ("conditions", 15), ("skills", 18)] {
        let table = tenant.get(&format!("/v1/rules/srd/{name}")).await.expect(200);
        assert_eq!((table.items().len(), &table.body["next_cursor"]), (count, &Value::Null), "{name}");
        assert!(table.items().iter().all(|row| row["name"].is_string()));
    }
    assert!(tenant.get("/v1/rules/srd/spells").await.expect(200).items().len() > 40);
    tenant.get("/v1/rules/srd/monsters").await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn armor_and_shield_give_an_armor_class_unless_one_is_set() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (n, (sheet, armor_class)) in [
        (json!({}), 10),
        (json!({ "abilities": { "dexterity": 18 } }), 10),
        (json!({ "abilities": { "dexterity": 18 }, "armor": "leather" }), 15),
        (json!({ "abilities": { "dexterity": 18 }, "armor": { "name": "Half Plate" }, "shield": true }), 19),
        (json!({ "abilities": { "dexterity": 6 }, "armor": "plate", "shield": "+1 shield" }), 21),
        (json!({ "abilities": { "dexterity": 14 }, "shield": "shield" }), 14),
        (json!({ "armor": "+1 chain mail" }), 17),
        (json!({ "armor": "plate", "armor_class": 12 }), 12),
        (json!({ "armor": "a barrel", "shield": true }), 10),
    ]
    .into_iter()
    .enumerate()
    {
        let mut body = sheet.clone();
        body["name"] = json!(format!("Fighter {n}"));
        let made = world.post("/characters", body).await.expect(201);
        assert_eq!(made.body["armor_class"], armor_class, "{sheet}");
    }
    let change = async |x: &str, sheet: Value| {
        world.patch(&format!("/characters/{x}"), sheet).await.expect(200).body["armor_class"].clone()
    };
    assert_eq!(change("fighter_2", json!({ "shield": "shield" })).await, 17, "what armor gave follows the armor");
    assert_eq!(change("fighter_2", json!({ "abilities": { "dexterity": 12 } })).await, 14);
    assert_eq!(change("fighter_2", json!({ "armor_class": 18 })).await, 18);
    assert_eq!(change("fighter_2", json!({ "shield": null, "speed": 25 })).await, 18, "what is set stays");
    assert_eq!(change("fighter_2", json!({ "armor_class": null })).await, 12, "and may be unset");
    assert_eq!(change("fighter_0", json!({ "armor": "chain mail" })).await, 16);
}
