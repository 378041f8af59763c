//! `POST …/rules/resolve`: a model says which check an action needs, the rules decide it.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Answer, Client, Server, World};

/// A campaign with a rogue, a fighter and a goblin in a crypt, and an innkeeper elsewhere.
async fn crypt<'a>(client: &'a Client<'a>) -> World<'a> {
    let world = client.world().await;
    let shade = json!({
        "slug": "shade", "name": "Shade", "race": "human", "profession": "Rogue", "level": 3, "location": "Crypt", "max_hp": 21,
        "abilities": { "strength": 8, "dexterity": 16, "constitution": 12, "intelligence": 10, "wisdom": 10, "charisma": 14 },
        "skill_proficiencies": ["stealth"], "saving_throw_proficiencies": ["dexterity", "intelligence"],
        "weapon_proficiencies": ["simple weapons", "rapier"],
        "features": [{ "name": "Sneak Attack" }, { "name": "Expertise", "chosen_option": "Stealth" }],
        "weapons": [{ "name": "Rapier" }], "inventory": ["rope", { "name": "lantern" }],
    });
    world.post("/characters", shade).await.expect(201);
    let goblin = json!({
        "slug": "goblin", "name": "Goblin", "location": "crypt", "disposition": "hostile",
        "stats": { "armor_class": 13, "hp": 7, "max_hp": 7 },
    });
    world.post("/npcs", goblin).await.expect(201);
    world
}

async fn resolve(world: &World<'_>, action: &str, more: Value) -> Answer {
    let mut body = json!({ "player_id": "shade", "action": action });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.post("/rules/resolve", body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attack_is_classified_by_the_model_and_computed_by_the_server() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = crypt(&tenant).await;
    server.model.set_script(Script::always(Reply::tool(
        "resolve_attack",
        json!({ "weapon": "Rapier", "target": "goblin", "apply": true, "preview": true }),
    )));
    let done = resolve(&world, "I stab the goblin.", json!({ "dice": [15, 6] })).await.expect(200);
    let parsed = &done.body["parsed"];
    assert_eq!(done.body["tool"], "resolve_attack");
    assert_eq!(done.body["arguments"], json!({ "weapon": "Rapier", "target": "goblin" }));
    assert_eq!((&parsed["die_result"], &parsed["total"], &parsed["success"]), (&json!(15), &json!(20), &json!(true)));
    assert_eq!(parsed["damage"]["total_damage"], 9);
    let raw = done.body["raw"].as_str().unwrap();
    assert_eq!(raw.lines().count(), 7, "{raw}");
    assert!(raw.starts_with("CHECK: ") && raw.contains("RESULT: SUCCESS"), "{raw}");
    assert_eq!(done.body["usage"]["llm_calls"], 1);

    // The model had to call one of six tools, and saw names but no numbers of the sheet.
    let request = &server.model.requests()[0];
    assert_eq!(request["tool_choice"], "required");
    assert_eq!(request["tools"].as_array().unwrap().len(), 6);
    let seen = request["messages"].to_string();
    for word in ["Rapier", "Sneak Attack", "Expertise (Stealth)", "lantern", "goblin | Goblin | AC 13 | hostile"] {
        assert!(seen.contains(word), "{word} is missing: {seen}");
    }
    for word in ["innkeeper_bob", "max_hp", "dexterity", "proficienc", "16"] {
        assert!(!seen.contains(word), "{word} is none of its business: {seen}");
    }
    // Whether anything is applied is not offered.
    let offered = request["tools"].to_string();
    assert!(!offered.contains("apply") && !offered.contains("preview") && offered.len() < 7000, "{}", offered.len());
    // Outside an encounter an attack takes no hit points.
    assert_eq!(world.get("/npcs/goblin").await.expect(200).body["stats"]["hp"], 7);

    let id = done.body["turn_id"].as_str().unwrap();
    let turn = world.get(&format!("/turns/{id}")).await.expect(200).body;
    assert_eq!(
        (&turn["kind"], &turn["status"], &turn["narrative"]),
        (&json!("rules"), &json!("succeeded"), &json!(raw))
    );
    assert_eq!(turn["tool_calls"][0]["result"]["total"], 20);
    assert!(turn["trace"]["turn_text"].as_str().unwrap().contains("I stab the goblin."));
    assert!(world.get("/messages").await.expect(200).items().is_empty());
}

/// However large the world is, and however its places are written.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_where_the_player_is_is_shown() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = crypt(&tenant).await;
    let mut db = server.owner().await;
    let copies = async |db: &mut _, prefix: &str, place: Option<&str>, count: i32| {
        sqlx::query(
            "INSERT INTO npc (tenant_id, id, campaign_id, slug, name, description, personality_prompt, location, owner_ids, available_tools, stats, \
               conditions, effects, disposition, inventory, reaction_threshold) \
             SELECT tenant_id, uuid7(), campaign_id, $1 || g, $1 || g, description, personality_prompt, $2, owner_ids, available_tools, stats, \
               conditions, effects, disposition, inventory, reaction_threshold \
             FROM npc n, generate_series(1, $3) g WHERE n.slug = 'goblin'",
        )
        .bind(prefix)
        .bind(place)
        .bind(count)
        .execute(db)
        .await
        .unwrap();
    };
    copies(&mut db, "far", Some("Castle"), 600).await;
    copies(&mut db, "lost", None, 3).await;
    copies(&mut db, "near", Some(" Crypt!"), 4).await;
    server.model.set_script(Script::always(Reply::tool("mark_no_check", json!({ "reason": "Nothing is uncertain." }))));
    let creatures = async |server: &Server| {
        resolve(&world, "I look around.", json!({})).await.expect(200);
        let seen = server.model.requests().last().unwrap()["messages"].to_string();
        let from = seen.find("<creatures>").unwrap();
        seen[from..from + seen[from..].find("</creatures>").unwrap()].to_owned()
    };
    let here = creatures(&server).await;
    assert!(here.contains("goblin | Goblin | AC 13 | hostile") && here.contains("near4 | near4 | AC 13"), "{here}");
    assert!(!here.contains("far") && !here.contains("lost") && !here.contains("and more"), "{here}");
    assert_eq!(here.matches("AC 13").count(), 5);
    copies(&mut db, "crowd", Some("crypt"), 40).await;
    let here = creatures(&server).await;
    assert_eq!(here.matches("AC 13").count(), 30);
    assert!(here.contains("and more who are not listed"), "{here}");
    // Nobody knows where that is: everybody may be there.
    world.patch("/characters/shade", json!({ "location": null })).await.expect(200);
    assert!(creatures(&server).await.contains("innkeeper_bob"));
    world.patch("/characters/shade", json!({ "location": "Moon" })).await.expect(200);
    assert!(!creatures(&server).await.contains("AC "));
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_saves_the_impossible_and_the_plain() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = crypt(&tenant).await;
    server.model.set_script(Script::replies([
        Reply::tool("resolve_skill_check", json!({ "skill": "stealth", "dc": 15 })),
        Reply::tool("resolve_saving_throw", json!({ "ability": "wisdom", "dc": 15, "source": "a ghost" })),
        Reply::tool("mark_impossible", json!({ "reason": "There is no door." })),
        Reply::tool("mark_no_check", json!({ "reason": "Just talk." })),
        Reply::text("You walk on."),
        Reply::tool("cast_wish", json!({})),
    ]));
    let sneak = resolve(&world, "I sneak.", json!({ "dice": [8] })).await.expect(200).body;
    assert_eq!((&sneak["parsed"]["total"], &sneak["parsed"]["success"]), (&json!(15), &json!(true)), "{sneak}");
    let save = resolve(&world, "I resist.", json!({ "dice": [8] })).await.expect(200).body;
    assert_eq!((&save["parsed"]["total"], &save["parsed"]["success"]), (&json!(8), &json!(false)), "{save}");
    let no_door = resolve(&world, "I open the door.", json!({})).await.expect(200).body;
    assert_eq!((&no_door["parsed"]["impossible"], &no_door["parsed"]["success"]), (&json!(true), &json!(false)));
    assert!(no_door["raw"].as_str().unwrap().contains("There is no door."));
    for (action, dice) in [("I say hello.", json!({})), ("I walk.", json!({ "dice": [3] })), ("I wish.", json!({}))] {
        let plain = resolve(&world, action, dice.clone()).await.expect(200).body;
        assert_eq!((&plain["tool"], &plain["parsed"]["no_check"]), (&json!("mark_no_check"), &json!(true)), "{plain}");
        assert_eq!(plain["parsed"]["dice_unused"], dice["dice"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_mode_and_a_second_chance() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = crypt(&tenant).await;
    let call = json!([{ "tool_name": "resolve_skill_check", "parameters": { "skill": "stealth", "dc": 10 } }]);
    server.model.set_script(Script::replies([
        Reply::text(format!("<response><narrative></narrative><tools>{call}</tools></response>")),
        Reply::tool("resolve_skill_check", json!({ "skill": "juggling", "dc": 10 })),
        Reply::tool("resolve_skill_check", json!({ "skill": "acrobatics", "dc": 10 })),
        Reply::tool("resolve_skill_check", "{\"skill\": "),
        Reply::tool("resolve_skill_check", json!({ "skill": "juggling", "dc": 10 })),
    ]));
    let xml = resolve(&world, "I sneak.", json!({ "reply_mode": "xml", "dice": [10] })).await.expect(200).body;
    assert_eq!(xml["parsed"]["total"], 17, "{xml}");
    let requests = server.model.requests();
    assert!(requests[0].get("tools").is_none());
    assert!(requests[0]["messages"][0]["content"].as_str().unwrap().contains("mark_impossible"));

    let second = resolve(&world, "I juggle.", json!({ "dice": [10] })).await.expect(200).body;
    assert_eq!((&second["parsed"]["total"], &second["usage"]["llm_calls"]), (&json!(13), &json!(2)));
    let told = server.model.requests()[2]["messages"].as_array().unwrap().last().unwrap().clone();
    assert!(told["role"] == "tool" && told["content"].as_str().unwrap().contains("skill"), "{told}");

    let given_up = resolve(&world, "I juggle.", json!({})).await.expect(200).body;
    assert_eq!(given_up["tool"], "mark_no_check");
    let turn = world.get(&format!("/turns/{}", given_up["turn_id"].as_str().unwrap())).await.expect(200).body;
    let statuses: Vec<_> =
        turn["tool_calls"].as_array().unwrap().iter().map(|c| c["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["failed", "failed", "succeeded"]);
    assert!(turn["parse_error"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_and_what_is_refused() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = crypt(&tenant).await;
    let sneak = || Script::always(Reply::tool("resolve_skill_check", json!({ "skill": "stealth", "dc": 15 })));
    server.model.set_script(sneak());
    let path = world.path("/rules/resolve");
    let alice = tenant.token(json!({ "campaign": world.slug, "player_id": "player_alice" })).await;
    let shade = tenant.token(json!({ "campaign": world.slug, "player_id": "shade", "scopes": ["play"] })).await;
    let body = json!({ "player_id": "shade", "action": "I sneak." });
    alice.post(&path, body.clone()).await.problem(403, "forbidden");
    shade.post(&path, body.clone()).await.expect(200);
    let mut given = body.clone();
    given["dice"] = json!([20]);
    shade.post(&path, given).await.problem(403, "forbidden");
    resolve(&world, "I sneak.", json!({ "dice": [21] })).await.problem(422, "invalid_dice");
    resolve(&world, "I sneak.", json!({ "dice": [] })).await.problem(422, "invalid_dice");
    resolve(&world, "I sneak.", json!({ "dice": [3, 4] })).await.problem(422, "invalid_dice");
    resolve(&world, " ", json!({})).await.problem(422, "validation_failed");
    world
        .post("/rules/resolve", json!({ "player_id": "nobody", "action": "x" }))
        .await
        .problem(422, "validation_failed");

    // One key, one roll.
    let first = tenant.post_with_key(&path, "once", body.clone()).await.expect(200);
    let again = tenant.post_with_key(&path, "once", body.clone()).await.expect(200);
    assert_eq!((first.text, again.header("idempotency-replayed")), (again.text.clone(), "true"));

    // A model that is down decides nothing, and the player is free again.
    server.model.set_script(Script::always(Reply::status(400)));
    let failed = resolve(&world, "I sneak.", json!({})).await.problem(502, "llm_unavailable");
    let turn = world.get(&format!("/turns/{}", failed.body["turn_id"].as_str().unwrap())).await.expect(200).body;
    assert_eq!((&turn["status"], &turn["kind"]), (&json!("failed"), &json!("rules")));
    server.model.set_script(sneak());
    resolve(&world, "I sneak.", json!({})).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_narrating_turn_tells_what_the_rules_decided() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = crypt(&tenant).await;
    server.model.set_script(Script::replies([
        Reply::tool("resolve_skill_check", json!({ "skill": "deception", "dc": 12 })),
        Reply::text("He believes every word."),
    ]));
    let check = resolve(&world, "I lie to Bob.", json!({ "dice": [11] })).await.expect(200).body;
    let turn = async |player: &str, id: &Value| {
        let body = json!({ "player_id": player, "action": "I lie to Bob.", "mechanics_turn_id": id });
        world.post("/npcs/innkeeper_bob/turns", body).await
    };
    turn("player_alice", &check["turn_id"]).await.problem(422, "validation_failed");
    turn("shade", &json!("01890000-0000-7000-8000-000000000000")).await.problem(422, "validation_failed");
    let told = turn("shade", &check["turn_id"]).await.expect(200).body;
    assert_eq!((&told["mechanics"]["raw"], &told["mechanics"]["turn_id"]), (&check["raw"], &check["turn_id"]));
    assert_eq!(told["mechanics"]["parsed"]["total"], 13);
    let request = server.model.requests().last().unwrap()["messages"].to_string();
    assert!(request.contains("<mechanics>\\nCHECK: Deception Check"), "{request}");
    // What was undone is no fact any more.
    world.post(&format!("/turns/{}/undo", check["turn_id"].as_str().unwrap()), json!({})).await.expect(200);
    turn("shade", &check["turn_id"]).await.problem(422, "validation_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_the_rehearsal_knows_a_check_when_it_reads_one() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = crypt(&tenant).await;
    for mode in ["native", "xml"] {
        for (action, tool, argument) in [
            ("I attack the goblin with my rapier!", "resolve_attack", ("target", "goblin")),
            ("I sneak past it.", "resolve_skill_check", ("skill", "stealth")),
            ("I withstand the poison.", "resolve_saving_throw", ("ability", "constitution")),
            ("I jump to the moon.", "mark_impossible", ("reason", "The world does not allow it.")),
            ("I greet the guard.", "mark_no_check", ("reason", "Nothing about it is uncertain.")),
        ] {
            let done = resolve(&world, action, json!({ "reply_mode": mode })).await.expect(200).body;
            assert_eq!(
                (&done["tool"], &done["arguments"][argument.0]),
                (&json!(tool), &json!(argument.1)),
                "{mode}: {done}"
            );
        }
    }
}
