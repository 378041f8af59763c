//! Attacks with weapons and spells, through `resolve_attack`.

use serde_json::{Value, json};

use super::{call, result, row, says, snapshot, table};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_rogue_hits_with_a_sneak_attack() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let arguments = json!({ "weapon": "shortsword", "target": "Goblin", "extra_damage_sources": ["Sneak Attack"],
        "context": { "ally_adjacent": true } });
    let hit = result(&world, "resolve_attack", "shade", arguments.clone(), &[14, 4, 5, 3, 6]).await;
    assert_eq!(hit["check_type"], "Shortsword +1 Attack");
    assert_eq!(hit["components"], "DEX +3, Prof +3, Bonus +1 = +7");
    assert_eq!((&hit["die_result"], &hit["total"], &hit["dc_or_ac"]), (&json!(14), &json!(21), &json!("15")));
    assert_eq!((&hit["success"], &hit["outcome"]), (&json!(true), &json!("hit")));
    let rows: Vec<_> = hit["damage"]["breakdown"].as_array().unwrap().iter().map(|r| r["subtotal"].clone()).collect();
    assert_eq!(rows, [8, 14], "{}", hit["damage"]);
    assert_eq!((&hit["damage"]["total_damage"], &hit["source"]), (&json!(22), &json!("manual")));
    snapshot("raw_of_a_hit", hit["raw"].as_str().unwrap());
    // Nobody said that hit points should change.
    assert_eq!(row(&world, "/npcs/goblin").await["stats"]["hp"], 7);

    let critical = result(&world, "resolve_attack", "shade", arguments.clone(), &[20, 4, 5, 3, 6, 1, 1, 1, 1]).await;
    assert_eq!((&critical["outcome"], &critical["damage"]["is_crit"]), (&json!("critical hit"), &json!(true)));
    assert_eq!(critical["damage"]["breakdown"][1]["dice"], "6d6");

    // Damage dice that a miss made needless come back; more than a hit could take do not.
    let miss = result(&world, "resolve_attack", "shade", arguments.clone(), &[2, 4, 5, 3, 6]).await;
    assert_eq!((&miss["outcome"], &miss["damage"]), (&json!("miss"), &Value::Null));
    assert_eq!(miss["dice_unused"], json!([4, 5, 3, 6]));
    let mut many = vec![2];
    many.extend([1; 40]);
    super::roll(&world, "resolve_attack", "shade", arguments, &many).await.problem(422, "invalid_dice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_smite_spends_its_slot_and_is_refused_without_one() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let smite =
        json!({ "weapon": "Longsword", "target": "zombie", "extra_damage_sources": ["Divine Smite 1"], "apply": true });
    // 1d8 for the sword, 2d8 and one more against the undead.
    let hit = result(&world, "resolve_attack", "vera", smite.clone(), &[10, 5, 8, 8, 1]).await;
    assert_eq!(hit["damage"]["total_damage"], 9 + 17);
    assert_eq!(row(&world, "/characters/vera").await["spell_slots"]["1"], json!({ "max": 4, "remaining": 0 }));
    let zombie = row(&world, "/npcs/zombie").await;
    assert_eq!(zombie["stats"]["hp"], 0);
    let effects = hit["effects"].as_array().unwrap();
    assert!(effects.iter().all(|e| e["applied"] == true), "{effects:?}");

    let refused = result(&world, "resolve_attack", "vera", smite, &[10, 5]).await;
    assert!(says(&refused, "refused: Divine Smite 1"), "{}", refused["reasons"]);
    assert_eq!(row(&world, "/characters/vera").await["spell_slots"]["2"]["remaining"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn rage_cantrips_and_spells_with_a_save() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let axe = json!({ "weapon": "greataxe", "target": "ogre" });
    let hit = result(&world, "resolve_attack", "korga", axe, &[10, 7]).await;
    assert_eq!(hit["damage"]["total_damage"], 7 + 4 + 3, "{}", hit["damage"]);
    assert!(says(&hit, "Rage"), "{}", hit["reasons"]);

    let bolt =
        result(&world, "resolve_attack", "ilmar", json!({ "spell_name": "fire bolt", "target": "ogre" }), &[10, 9, 2])
            .await;
    assert_eq!(
        (&bolt["damage"]["breakdown"][0]["dice"], &bolt["damage"]["total_damage"]),
        (&json!("2d10"), &json!(11))
    );

    // The target's roll; `success` is the caster's.
    let ball = json!({ "spell_name": "Fireball", "target": "ogre", "apply": true });
    let failed = result(&world, "resolve_attack", "ilmar", ball.clone(), &[3, 6, 6, 6, 6, 6, 6, 6, 6]).await;
    assert_eq!(
        (&failed["success"], &failed["dc_or_ac"], &failed["damage"]["taken"]),
        (&json!(true), &json!("DC 15"), &json!(48))
    );
    assert_eq!(row(&world, "/npcs/ogre").await["stats"]["hp"], 11);
    let saved = result(&world, "resolve_attack", "ilmar", ball, &[19, 1, 1, 1, 1, 1, 1, 1, 2]).await;
    assert_eq!((&saved["success"], &saved["damage"]["taken"]), (&json!(false), &json!(4)));
    assert_eq!(row(&world, "/characters/ilmar").await["spell_slots"]["3"]["remaining"], 0);

    // A condition that a spell puts on its target is no damage: it begins with the slot that was spent for it.
    let hold = json!({ "spell_name": "Hold Person", "target": "goblin" });
    let held = result(&world, "resolve_attack", "ilmar", hold, &[2]).await;
    assert_eq!(held["success"], true, "{held}");
    let ilmar = row(&world, "/characters/ilmar").await;
    assert_eq!(
        (&ilmar["concentration"]["spell"], &ilmar["spell_slots"]["2"]["remaining"]),
        (&json!("Hold Person"), &json!(2))
    );
    let goblin = row(&world, "/npcs/goblin").await;
    assert_eq!(
        (&goblin["conditions"][0]["name"], &goblin["conditions"][0]["source"]),
        (&json!("paralyzed"), &ilmar["id"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_npc_attacks_with_its_stat_block() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    // The only attack needs no name.
    let club = json!({ "target": "Shade", "apply": true });
    let hit = result(&world, "resolve_attack", "npc:ogre", club, &[12, 5, 6]).await;
    assert_eq!((&hit["check_type"], &hit["damage"]["total_damage"]), (&json!("Greatclub Attack"), &json!(15)));
    assert_eq!(row(&world, "/characters/shade").await["hp"], 18);
    // Of two, one has to be named.
    let which = result(&world, "resolve_attack", "npc:goblin", json!({ "target": "shade" }), &[]).await;
    assert_eq!(which["impossible"], true);
    assert!(which["notes"].as_str().unwrap().contains("Scimitar, Shortbow"), "{which}");
    let miss =
        result(&world, "resolve_attack", "npc:goblin", json!({ "weapon": "shortbow", "target": "shade" }), &[3]).await;
    assert_eq!(miss["success"], false);
    // Down, and then dead.
    let club = json!({ "weapon": "greatclub", "target": "shade", "apply": true });
    result(&world, "resolve_attack", "npc:ogre", club.clone(), &[12, 8, 8]).await;
    let shade = row(&world, "/characters/shade").await;
    assert_eq!(shade["hp"], 0);
    assert!(
        shade["conditions"].as_array().unwrap().iter().any(|c| c["name"] == "unconscious"),
        "{}",
        shade["conditions"]
    );
    let again = result(&world, "resolve_attack", "npc:ogre", club, &[12, 1, 1, 1, 1, 1]).await;
    assert_eq!((&again["advantage"], &again["outcome"]), (&json!("advantage"), &json!("critical hit")), "{again}");
    assert_eq!(row(&world, "/characters/shade").await["death_saves"]["failures"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn advantage_has_its_reasons() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    world.patch("/characters/shade", json!({ "conditions": [{ "name": "poisoned" }] })).await.expect(200);
    world.patch("/npcs/ogre", json!({ "conditions": [{ "name": "restrained" }] })).await.expect(200);
    let stab = json!({ "weapon": "dagger", "target": "ogre" });
    let both = result(&world, "resolve_attack", "shade", stab, &[10, 3]).await;
    assert_eq!(both["advantage"], "none");
    assert!(says(&both, "poisoned") && says(&both, "restrained"), "{}", both["reasons"]);
    let asked = json!({ "weapon": "dagger", "target": "goblin", "advantage": "disadvantage", "cover": "half" });
    let asked = result(&world, "resolve_attack", "shade", asked, &[18, 9, 3]).await;
    assert_eq!(
        (&asked["advantage"], &asked["die_result"], &asked["dc_or_ac"]),
        (&json!("disadvantage"), &json!(9), &json!("17"))
    );
    assert_eq!(asked["success"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_meant_has_to_be_clear() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let id = row(&world, "/npcs/guard_east").await["id"].as_str().unwrap().to_owned();
    for (name, found) in [
        ("guard_east", true),
        (id.as_str(), true),
        ("east guard", true),
        ("the East Guard", true),
        ("East", true),
        ("guard", false),
        ("dragon", false),
    ] {
        let answer = world
            .post("/tools/resolve_attack", call("shade", json!({ "weapon": "dagger", "target": name })))
            .await
            .expect(200);
        let result = &answer.body["result"];
        assert_eq!(result["impossible"].is_null(), found, "{name}: {result}");
        if !found {
            assert!(result["notes"].as_str().unwrap().contains(name), "{result}");
            assert!(result["raw"].as_str().unwrap().starts_with("CHECK: IMPOSSIBLE\nNOTES: "), "{result}");
            assert_eq!(result["counter"], Value::Null, "nothing was rolled for {name}");
        }
    }
    let unclear =
        world.post("/tools/resolve_attack", call("shade", json!({ "weapon": "dagger", "target": "guard" }))).await;
    let notes = unclear.body["result"]["notes"].as_str().unwrap();
    assert!(notes.contains("East Guard (guard_east)") && notes.contains("West Guard (guard_west)"), "{notes}");
    let unarmed =
        world.post("/tools/resolve_attack", call("shade", json!({ "weapon": "halberd", "target": "goblin" }))).await;
    assert!(unarmed.body["result"]["notes"].as_str().unwrap().contains("halberd"), "{}", unarmed.text);
}
