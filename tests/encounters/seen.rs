//! What everybody but the game master reads of a fight: a list of what is shown, and no member more.

use edge::{caller::Scope, users::Role};
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{begin, dungeon};
use crate::{
    admin::Visitor,
    support::{Client, Server, World, sse::Events},
};

const ALWAYS: &[&str] =
    &["check_type", "outcome", "success", "automatic", "impossible", "no_check", "advantage", "damage"];
const OF_FRIENDS_ROLLS: &[&str] = &["components", "die_result", "total_modifier", "total", "modifiers", "dice"];
const OF_ENEMIES: &[&str] =
    &["id", "character_id", "npc_id", "name", "is_enemy", "status", "initiative", "conditions", "position"];

/// Fenric, who wrestles and smites; Mira, who casts; an orc whose every number would be known again; and somebody hidden.
async fn ambush(world: &World<'_>) -> String {
    let mira = json!({ "slug": "mira", "name": "Mira", "profession": "Wizard", "level": 9, "max_hp": 90, "hp": 90,
        "abilities": { "intelligence": 18 },
        "spells": ["Fire Bolt", "Scorching Ray", "Magic Missile", "Acid Splash", "Fireball", "Thunderwave"],
        "spell_slots": { "1": { "max": 4, "remaining": 4 }, "2": { "max": 4, "remaining": 4 }, "3": { "max": 4, "remaining": 4 } } });
    world.post("/characters", mira).await.expect(201);
    let abilities = json!({ "strength": 29, "dexterity": 26, "constitution": 28, "wisdom": 27 });
    let attacks = json!([{ "name": "Axe", "bonus": 17, "damage": "7d4+19", "damage_type": "slashing" }]);
    let stats = json!({ "armor_class": 1, "hp": 934_117, "max_hp": 934_118, "abilities": abilities, "attacks": attacks,
        "resistances": ["bludgeoning", "slashing"], "immunities": ["acid"], "vulnerabilities": ["fire"], "condition_immunities": ["prone"] });
    world.post("/npcs", json!({ "slug": "orc", "name": "Orc", "stats": stats })).await.expect(201);
    let fight = json!({ "participants": [
        { "id": "fenric", "character_id": "fenric", "initiative": 20, "position": { "x": 1, "y": 1 } },
        { "id": "mira", "character_id": "mira", "initiative": 19, "position": { "x": 2, "y": 2 } },
        { "id": "orc", "npc_id": "orc", "is_enemy": true, "initiative": 18, "position": { "x": 1, "y": 2 } },
        { "id": "zz_killer", "name": "Night Killer", "hp": 934_119, "max_hp": 934_119, "armor_class": 1, "is_enemy": true,
          "initiative": 17, "hidden": true, "position": { "x": 5, "y": 5 } },
    ], "terrain": { "hazards": [{ "position": "9,9", "type": "pit", "damage": "11d6", "dc": 37 }] } });
    begin(world, fight).await
}

/// What would tell something of the orc that is not on the list, or of the hidden.
const SECRETS: &[&str] = &[
    "dc_or_ac",
    "\"raw\"",
    "\"notes\"",
    "\"events\"",
    "STR +9",
    "DEX +8",
    "resist",
    "immune",
    "vulnerab",
    "934117",
    "934118",
    "934119",
    "\"11d6\"",
    "\"dc\"",
    "7d4+19",
    "+17",
    "Night Killer",
    "zz_",
    "armor_class\":1,",
];

fn keeps_secrets(text: &str) {
    // What the friends resist is theirs.
    let text = ["resistances\":[]", "immunities\":[]", "vulnerabilities\":[]"]
        .iter()
        .fold(text.to_owned(), |text, own| text.replace(own, ""));
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} is told: {text}");
    }
}

fn has_only(it: &Value, lists: &[&[&str]]) {
    for name in it.as_object().unwrap().keys() {
        assert!(lists.iter().any(|list| list.contains(&name.as_str())), "{name} is shown: {it}");
    }
}

fn participants_are_as_listed(answer: &Value) {
    for enemy in answer["participants"].as_array().into_iter().flatten().filter(|p| p["is_enemy"] == true) {
        has_only(enemy, &[OF_ENEMIES]);
        assert!(enemy["conditions"].as_array().into_iter().flatten().all(Value::is_string), "{enemy}");
    }
}

async fn token<'a>(client: &Client<'a>, player: &str) -> Client<'a> {
    client.token(json!({ "campaign": "dungeon", "player_id": player, "scopes": ["read", "play"] })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_sees_of_each_outcome_what_is_on_the_list() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = ambush(&world).await;
    let (fenric, mira) = (token(&tenant, "fenric").await, token(&tenant, "mira").await);
    let path = world.path(&format!("/encounters/{id}/actions"));
    let master = async |body: Value| world.post(&format!("/encounters/{id}/actions"), body).await.expect(200).body;
    // Time enough for everything.
    let again = async || {
        for _ in 0..4 {
            master(json!({ "action": "advance_turn" })).await;
        }
    };

    for action in ["attack", "grapple", "shove"] {
        let body = json!({ "action": action, "target_id": "orc", "weapon": "Longsword" });
        let body = if action == "attack" { body } else { json!({ "action": action, "target_id": "orc" }) };
        let done = fenric.post(&path, body).await.expect(200);
        keeps_secrets(&done.text);
        participants_are_as_listed(&done.body);
        let outcome = &done.body["outcomes"][0];
        has_only(outcome, &[ALWAYS, OF_FRIENDS_ROLLS, &["participants"]]);
        assert!(OF_FRIENDS_ROLLS.iter().all(|own| outcome.get(*own).is_some()), "{outcome}");
        if action == "attack" {
            let damage = &outcome["damage"];
            assert!(
                damage.is_null() || damage["breakdown"][0]["dice"].is_string() && damage.get("taken").is_none(),
                "{damage}"
            );
        } else {
            let [own, orc] = outcome["participants"].as_array().unwrap().as_slice() else { panic!("{outcome}") };
            assert!(own["components"].as_str().unwrap().starts_with("STR +3"), "{own}");
            has_only(orc, &[&["name", "success"]]);
            assert_eq!(outcome["dice"].as_array().unwrap().len(), 1, "the own die: {outcome}");
        }
        again().await;
    }

    master(json!({ "action": "advance_turn" })).await;
    for (spell, rolls) in [
        ("Fire Bolt", true),
        ("Scorching Ray", true),
        ("Magic Missile", true),
        ("Acid Splash", false),
        ("Thunderwave", false),
    ] {
        let cast = json!({ "action": "cast_spell", "target_id": "orc", "spell_name": spell });
        let done = mira.post(&path, cast).await.expect(200);
        keeps_secrets(&done.text);
        participants_are_as_listed(&done.body);
        let outcome = &done.body["outcomes"][0];
        assert_eq!(outcome.get("die_result").is_some(), rolls, "{spell}: {outcome}");
        has_only(outcome, &[ALWAYS, if rolls { OF_FRIENDS_ROLLS } else { &[] }, &["attacks", "effects"]]);
        let effects = outcome["effects"].as_array().into_iter().flatten();
        effects.for_each(|change| assert_eq!(change["creature"], "mira", "{outcome}"));
        if !rolls && outcome["damage"].is_object() {
            for row in outcome["damage"]["breakdown"].as_array().unwrap() {
                has_only(row, &[&["damage_type"]]);
            }
        }
        for beam in outcome["attacks"].as_array().into_iter().flatten() {
            assert!(beam["damage"].get("taken").is_none(), "{beam}");
        }
        again().await;
    }
    // Several targets: each by who rolled, and the friends' part is whole.
    let fire = json!({ "action": "cast_spell", "target_ids": ["orc", "fenric"], "spell_name": "Fireball" });
    let done = mira.post(&path, fire).await.expect(200);
    keeps_secrets(&done.text);
    let outcome = &done.body["outcomes"][0];
    has_only(outcome, &[ALWAYS, OF_FRIENDS_ROLLS, &["participants", "effects"]]);
    let rolls = outcome["participants"].as_array().unwrap();
    has_only(&rolls[0], &[&["name", "success"]]);
    assert!(rolls[1]["total"].is_i64(), "{outcome}");
    assert_eq!(outcome["damage"].get("taken"), None, "a sum of both: {outcome}");
    assert!(outcome["effects"].as_array().unwrap().iter().all(|change| change["creature"] != "orc"), "{outcome}");

    // What an enemy does is seen as a deed. What it does to friends is known to them.
    master(json!({ "action": "advance_turn" })).await;
    let strike = json!({ "action": "attack", "target_id": "mira", "weapon": "Axe", "dice": [2, 1, 1, 1, 1, 1, 1, 1] });
    let struck = master(strike).await;
    assert_eq!(struck["outcomes"][0]["components"], "Bonus +17 = +17", "the game master sees it: {struck}");
    for reader in [&fenric, &mira] {
        for verbosity in ["minimal", "summary", "standard", "detailed"] {
            let view = reader.get(&world.path(&format!("/encounters/{id}?verbosity={verbosity}"))).await.expect(200);
            keeps_secrets(&view.text);
            participants_are_as_listed(&view.body);
            assert_eq!(view.body["participant_count"], 3);
        }
        let log = reader.get(&world.path("/messages?limit=200")).await.expect(200);
        keeps_secrets(&log.text);
        assert!(log.text.contains("Orc attacks Mira with Axe: a hit for "), "{}", log.text);
    }
}

/// The roll in an attack's sentence is the attacker's. Of a save, the roll is the target's, and an enemy's is nobody's business.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_tells_no_enemys_save() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = ambush(&world).await;
    let path = format!("/encounters/{id}/actions");
    world.post(&path, json!({ "action": "advance_turn" })).await.expect(200);
    let cast = json!({ "action": "cast_spell", "target_id": "orc", "spell_name": "Thunderwave", "dice": [7, 4, 4] });
    let done = world.post(&path, cast).await.expect(200);
    let total = done.body["outcomes"][0]["total"].as_i64().unwrap();
    let player = token(&tenant, "mira").await;
    let log = player.get(&world.path("/messages?limit=200")).await.expect(200);
    let told =
        log.items().iter().find(|m| m["content"].as_str().unwrap().contains("Thunderwave")).unwrap()["content"].clone();
    assert!(!told.as_str().unwrap().contains(&total.to_string()), "{told}");
}

/// Whoever is no game master sees what players see, by a key, a tool or a page; and can neither mean nor find the hidden.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_scope_gm_everybody_sees_what_players_see() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = ambush(&world).await;
    let keys = [&[Scope::Read][..], &[Scope::Read, Scope::Play, Scope::Write, Scope::Tools]];
    let fight = world.path(&format!("/encounters/{id}"));
    for scopes in keys {
        let key = tenant.with_scopes(scopes).await;
        for path in
            [fight.clone(), format!("{fight}?verbosity=detailed"), world.path("/encounters"), world.path("/messages")]
        {
            keeps_secrets(&key.get(&path).await.expect(200).text);
        }
    }
    let mut viewer = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    for page in [
        format!("/admin/c/dungeon/encounters/{id}"),
        "/admin/c/dungeon/encounters".to_owned(),
        "/admin/c/dungeon".to_owned(),
    ] {
        let shown = viewer.get(&page).await.expect(200).text;
        assert!(!shown.contains("Night Killer") && !shown.contains("9341"), "{shown}");
    }
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let shown = owner.get(&format!("/admin/c/dungeon/encounters/{id}")).await.expect(200).text;
    assert!(shown.contains("Night Killer") && shown.contains("934117 of 934118"), "{shown}");

    let key = tenant.with_scopes(keys[1]).await;
    let act = format!("{fight}/actions");
    for body in [
        json!({ "action": "damage", "target_id": "zz_killer", "amount": 1 }),
        json!({ "action": "attack", "target_ids": ["zz_killer"], "spell_name": "Fireball" }),
        json!({ "action": "dodge", "participant_id": "zz_killer" }),
        json!({ "action": "damage", "target_id": "nobody", "amount": 1 }),
    ] {
        let refused = key.post(&act, body.clone()).await;
        let id = ["participant_id", "target_id"].iter().find_map(|name| body[*name].as_str()).unwrap_or("zz_killer");
        let problem = refused.problem(422, "validation_failed");
        assert_eq!(
            problem.body["errors"][0]["message"],
            format!("Nobody called \"{id}\" takes part."),
            "as somebody who is not there"
        );
    }
    // Also when it is nobody's turn to do that.
    let late = |target: &str| json!({ "action": "attack", "participant_id": "orc", "target_id": target });
    let (hidden, nobody) = (key.post(&act, late("zz_killer")).await, key.post(&act, late("nobody")).await);
    assert_eq!((hidden.status, &hidden.body["detail"]), (nobody.status, &nobody.body["detail"]));
    // A preview would tell an armor class, one try after the other.
    let shown = json!({ "action": "attack", "target_id": "orc", "weapon": "Longsword", "preview": true });
    key.post(&act, shown).await.problem(403, "forbidden");
    let shown = json!({ "target": "orc", "weapon": "Longsword", "encounter_id": id, "preview": true });
    let call = json!({ "arguments": shown, "actor": { "type": "character", "id": "fenric" } });
    key.post(&world.path("/tools/resolve_attack"), call).await.problem(403, "forbidden");
    // A square is taken, whoever stands there.
    let to = json!({ "action": "move", "participant_id": "fenric", "position": { "x": 5, "y": 5 } });
    let taken = key.post(&act, to).await;
    assert_eq!(
        taken.problem(422, "validation_failed").body["errors"][0]["message"],
        "is taken, because somebody is there"
    );
    // The turn of the hidden is nobody's that they know.
    for place in [1, 2, 3] {
        assert_eq!(key.get(&fight).await.expect(200).body["turn"], place);
        if place == 3 {
            let why = "is not possible for it";
            let asks = json!({ "action": "use_resource", "resource": "Rage" });
            assert_eq!(key.post(&act, asks).await.problem(422, "validation_failed").body["errors"][0]["message"], why);
            let far = json!({ "action": "move", "position": { "x": 40, "y": 40 } });
            let far = key.post(&act, far).await.problem(409, "no_action_left");
            assert_eq!(far.body["detail"], "Not enough of that is left.");
        }
        key.post(&act, json!({ "action": "advance_turn" })).await.expect(200);
    }
    let hers = key.get(&fight).await.expect(200).body;
    assert_eq!((hers.get("turn"), &hers["current_participant_id"]), (None, &Value::Null));
    let listed = key.get(&world.path("/encounters")).await.expect(200).body;
    assert_eq!((&listed["items"][0]["turn"], &listed["items"][0]["current_participant_id"]), (&json!(0), &Value::Null));
    let early = key.post(&act, json!({ "action": "dodge", "participant_id": "orc" })).await;
    assert_eq!(early.problem(409, "not_your_turn").body["detail"], "It is somebody else's turn.");
    for action in ["stand_up", "use_resource", "attack", "dodge"] {
        let body = json!({ "action": action, "resource": "Rage", "target_id": "mira" });
        let body = if action == "attack" { body } else { json!({ "action": action }) };
        let theirs = key.post(&act, body).await.problem(409, "not_your_turn");
        assert_eq!(theirs.body["detail"], "It is somebody else's turn.", "{action}");
    }
    let own = json!({ "target": "self", "weapon": "Axe", "encounter_id": id });
    let call = json!({ "arguments": own, "actor": { "type": "gm" } });
    keeps_secrets(&key.post(&world.path("/tools/resolve_attack"), call).await.problem(422, "validation_failed").text);
    let tool = json!({ "arguments": { "action": "dodge", "encounter_id": id, "participant_id": "orc" }, "actor": { "type": "gm" } });
    let early = key.post(&world.path("/tools/encounter_action"), tool).await;
    assert!(early.status == 409 && !early.text.contains("zz_"), "{}", early.text);
    for operation in ["get", "list"] {
        let call = json!({ "arguments": { "operation": operation, "encounter_id": id }, "actor": { "type": "gm" } });
        let call = if operation == "list" {
            json!({ "arguments": { "operation": "list" }, "actor": { "type": "gm" } })
        } else {
            call
        };
        keeps_secrets(&key.post(&world.path("/tools/manage_encounter"), call).await.expect(200).text);
    }
    keeps_secrets(
        &key.post(&world.path("/tools/get_encounter"), json!({ "arguments": {}, "actor": { "type": "gm" } }))
            .await
            .expect(200)
            .text,
    );

    // Nor does the end tell, not even by what somebody hidden did to friends.
    let master = async |body: Value| world.post(&format!("/encounters/{id}/actions"), body).await.expect(200);
    master(json!({ "action": "add_condition", "target_id": "mira", "condition": "frightened", "source": "zz_killer" }))
        .await;
    master(json!({ "action": "add_effect", "target_id": "mira", "effect": "Bane", "source": "zz_killer" })).await;
    key.post(&act, json!({ "action": "damage", "target_id": "orc", "amount": 3, "damage_type": "fire" }))
        .await
        .expect(200);
    let ended = key
        .post(&format!("{fight}/end"), json!({ "outcome": "victory", "notes": "Night Killer fled." }))
        .await
        .expect(200);
    keeps_secrets(&ended.text);
    for path in [fight.clone(), world.path("/encounters?include_ended=true")] {
        keeps_secrets(&key.get(&path).await.expect(200).text);
        assert!(tenant.get(&path).await.expect(200).text.contains("Night Killer fled."));
    }
    let told: Vec<_> =
        ended.body["participant_updates"].as_array().unwrap().iter().map(|u| &u["participant_id"]).collect();
    assert_eq!(told, ["fenric", "mira"]);
    assert_eq!(ended.body["summary"]["standing"], json!(["Fenric", "Mira", "Orc"]));
    let committed = key.post(&format!("{fight}/commit"), json!({})).await.expect(200);
    keeps_secrets(&committed.text);
    assert_eq!(world.get("/npcs/orc").await.expect(200).body["stats"]["hp"], 934_111, "and is committed all the same");
}

/// What somebody hidden does to a friend is told by what comes of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_blow_from_the_dark_is_somebodys_unseen() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = ambush(&world).await;
    for _ in 0..3 {
        world.post(&format!("/encounters/{id}/actions"), json!({ "action": "advance_turn" })).await.expect(200);
    }
    let act = format!("/encounters/{id}/actions");
    let near = json!({ "action": "move", "position": { "x": 2, "y": 1 } });
    world.post(&act, near).await.expect(200);
    let blow = json!({ "action": "attack", "target_id": "fenric", "weapon": "Unarmed Strike", "dice": [19], "override": true });
    world.post(&act, blow).await.expect(200);
    let fenric = token(&tenant, "fenric").await;
    let read = fenric.get(&world.path("/messages?sort=-created_at&limit=1")).await.expect(200);
    let said = read.items()[0]["content"].as_str().unwrap();
    assert!(said.starts_with("Fenric is hit by somebody unseen. Fenric takes 1 damage"), "{said}");
    keeps_secrets(&read.text);
}

/// A model that plays an NPC sees its own roll. The player whose turn it is does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_players_turn_does_not_tell_what_an_npc_rolled() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = ambush(&world).await;
    world
        .patch("/npcs/orc", json!({ "available_tools": ["resolve_attack", "resolve_saving_throw"] }))
        .await
        .expect(200);
    for _ in 0..2 {
        world.post(&format!("/encounters/{id}/actions"), json!({ "action": "advance_turn" })).await.expect(200);
    }
    let fenric = token(&tenant, "fenric").await;
    let strike = Reply::tool("resolve_attack", json!({ "target": "Fenric" }));
    // A call need not name the fight.
    let brace = Reply::tool("resolve_saving_throw", json!({ "ability": "strength", "dc": 12 }));
    server.model.set_script(Script::replies([strike, brace, Reply::text("Ha!")]));
    let said = json!({ "player_id": "fenric", "action": "I insult the orc." });
    let turn = fenric.post(&world.path("/npcs/orc/turns"), said).await.expect(200);
    let read = fenric.get(&world.path(&format!("/turns/{}", turn.body["id"].as_str().unwrap()))).await.expect(200);
    for answer in [&turn, &read] {
        let calls = answer.body["tool_calls"].as_array().unwrap();
        assert_eq!(calls.len(), 2, "{}", answer.text);
        for call in calls {
            assert_eq!(
                (&call["status"], call.get("result"), &call["arguments"]),
                (&json!("succeeded"), None, &Value::Null),
                "{call}"
            );
        }
        keeps_secrets(&answer.text);
    }
    let kept = world.get(&format!("/turns/{}", turn.body["id"].as_str().unwrap())).await.expect(200).body;
    assert_eq!(kept["tool_calls"][0]["result"]["components"], "Bonus +17 = +17", "{kept}");
    assert!(kept["tool_calls"][1]["result"]["total"].is_i64(), "{kept}");

    let events = world.path(&format!("/turns/{}/events", turn.body["id"].as_str().unwrap()));
    let heard = Events::open(fenric.request(reqwest::Method::GET, &events), None).await.rest().await;
    assert_eq!(heard.iter().filter(|event| event.name == "tool.result").count(), 2, "{heard:?}");
    heard.iter().for_each(|event| keeps_secrets(&event.data.to_string()));

    // As it happens, too.
    let brace = Reply::tool("resolve_saving_throw", json!({ "ability": "strength", "dc": 12, "encounter_id": id }));
    server.model.set_script(Script::replies([brace.clone(), Reply::text("Ha!"), brace, Reply::text("Ha!")]));
    for (reader, sees) in [(&fenric, false), (&tenant, true)] {
        let said = json!({ "player_id": "fenric", "action": "I insult the orc.", "stream": true });
        let request = reader.request(reqwest::Method::POST, &world.path("/npcs/orc/turns")).json(&said);
        let heard = Events::open(request, None).await.rest().await;
        let result = heard.iter().find(|event| event.name == "tool.result").unwrap();
        assert_eq!(result.data.get("result").is_some(), sees, "{heard:?}");
        let call = heard.iter().find(|event| event.name == "tool.call").unwrap();
        assert_eq!(call.data["arguments"].is_object(), sees, "{heard:?}");
        assert_eq!(heard.last().unwrap().data["turn"]["tool_calls"][0].get("result").is_some(), sees, "{heard:?}");
    }
}
