//! Checks, saves, contests, marks: seed 001's other calls.

use serde_json::{Value, json};

use super::{result, row, says, snapshot, table};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn checks_add_what_the_sheet_says() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let stealth = result(&world, "resolve_skill_check", "shade", json!({ "skill": "Stealth", "dc": 15 }), &[8]).await;
    assert_eq!(stealth["components"], "DEX +3, Expertise +6 = +9");
    assert_eq!(
        (&stealth["total"], &stealth["success"], &stealth["dc_or_ac"]),
        (&json!(17), &json!(true), &json!("15"))
    );
    snapshot("raw_of_a_check", stealth["raw"].as_str().unwrap());
    let lifted = result(&world, "resolve_ability_check", "shade", json!({ "ability": "STR", "dc": 15 }), &[15]).await;
    assert_eq!((&lifted["check_type"], &lifted["success"]), (&json!("Strength Check"), &json!(true)));
    let other = json!({ "skill": "intimidation", "ability": "strength", "dc": 20 });
    let other = result(&world, "resolve_skill_check", "korga", other, &[9, 16]).await;
    assert_eq!((&other["total"], &other["advantage"]), (&json!(20), &json!("advantage")), "{other}");
    let passive = result(&world, "resolve_passive", "shade", json!({ "skill": "perception" }), &[]).await;
    assert_eq!(passive["total"], 10 + 1 + 6);
    let first = result(&world, "roll_initiative", "npc:goblin", json!({}), &[11]).await;
    assert_eq!((&first["check_type"], &first["total"]), (&json!("Initiative"), &json!(11)));
}

#[tokio::test(flavor = "multi_thread")]
async fn saves_and_the_damage_they_save_from() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let save = json!({ "ability": "dexterity", "dc": 15, "source": "dragon's breath" });
    let plain = result(&world, "resolve_saving_throw", "shade", save.clone(), &[9]).await;
    assert_eq!((&plain["components"], &plain["success"]), (&json!("DEX +3, Prof +3 = +6"), &json!(true)));
    assert!(plain["notes"].as_str().unwrap().contains("dragon's breath"));

    let mut breath = save;
    breath["damage"] = json!({ "dice": "4d6", "type": "fire", "on_save": "half" });
    breath["apply"] = json!(true);
    let half = result(&world, "resolve_saving_throw", "shade", breath.clone(), &[9, 6, 6, 6, 3]).await;
    assert_eq!((&half["damage"]["total_damage"], &half["damage"]["taken"]), (&json!(10), &json!(10)));
    assert_eq!(row(&world, "/characters/shade").await["hp"], 23);
    breath["damage"]["on_save"] = json!("none");
    let none = result(&world, "resolve_saving_throw", "shade", breath.clone(), &[9, 6, 6, 6, 3]).await;
    assert_eq!((&none["damage"], &none["dice_unused"]), (&Value::Null, &json!([6, 6, 6, 3])));
    breath["apply"] = json!(false);
    let failed = result(&world, "resolve_saving_throw", "shade", breath, &[8, 6, 6, 6, 3]).await;
    assert_eq!((&failed["success"], &failed["damage"]["taken"]), (&json!(false), &json!(21)));
    assert_eq!(row(&world, "/characters/shade").await["hp"], 23);

    world.patch("/characters/shade", json!({ "conditions": [{ "name": "paralyzed" }] })).await.expect(200);
    let automatic = result(&world, "resolve_saving_throw", "shade", json!({ "ability": "dex", "dc": 5 }), &[]).await;
    assert_eq!((&automatic["automatic"], &automatic["die_result"]), (&json!("failure"), &json!(0)));
    assert!(says(&automatic, "automatic failure: paralyzed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn contests_and_group_checks() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let arm = json!({ "opponent": "ogre", "own": { "ability": "strength" }, "theirs": { "skill": "Athletics" } });
    let won = result(&world, "resolve_contest", "korga", arm, &[4, 12, 10]).await;
    assert_eq!((&won["total"], &won["outcome"]), (&json!(16), &json!("wins")), "{won}");
    assert_eq!(won["participants"].as_array().unwrap().len(), 2);
    let shove = json!({ "opponent": "goblin", "purpose": "shove_prone" });
    let shoved = result(&world, "resolve_contest", "korga", shove, &[4, 12, 10]).await;
    assert_eq!(shoved["success"], true, "{shoved}");
    assert_eq!(row(&world, "/npcs/goblin").await["conditions"][0]["name"], "prone");

    let sneak = json!({ "participants": ["shade", "Vera", "ilmar"], "skill": "stealth", "dc": 12 });
    let together = result(&world, "resolve_group_check", "shade", sneak.clone(), &[3, 5, 10]).await;
    assert_eq!((&together["total"], &together["success"]), (&json!(2), &json!(true)), "{together}");
    // Nobody has to lead it.
    let call = json!({ "arguments": sneak, "dice": [1, 1, 1] });
    let alone = world.post("/tools/resolve_group_check", call).await.expect(200);
    assert_eq!(alone.body["result"]["success"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_impossible_or_needs_no_check_is_two_lines() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    for (tool, kind, flag) in [("mark_impossible", "IMPOSSIBLE", "impossible"), ("mark_no_check", "NONE", "no_check")] {
        let call = json!({ "arguments": { "reason": "The moon is out of reach." } });
        let marked = world.post(&format!("/tools/{tool}"), call).await.expect(200).body["result"].clone();
        assert_eq!(
            (&marked["check_type"], &marked[flag], &marked["success"]),
            (&json!(kind), &json!(true), &json!(false))
        );
        assert_eq!(marked["raw"], format!("CHECK: {kind}\nNOTES: The moon is out of reach."));
    }
}
