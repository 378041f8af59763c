//! The tool `roll_dice`: called by a frontend, and by a model in a turn.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Answer, Server, World, fenced};

async fn call(world: &World<'_>, formulas: &[&str], more: Value) -> Answer {
    let rolls: Vec<Value> = formulas.iter().map(|f| json!({ "formula": f })).collect();
    let mut body = json!({ "arguments": { "rolls": rolls } });
    for (member, value) in more.as_object().unwrap() {
        body[member] = value.clone();
    }
    world.post("/tools/roll_dice", body).await
}

/// The totals of a call of the tool as this actor.
async fn totals(world: &World<'_>, kind: &str, id: &str, formulas: &[&str]) -> Vec<Value> {
    let answer = call(world, formulas, json!({ "actor": { "type": kind, "id": id } })).await.expect(200);
    answer.body["result"]["results"].as_array().unwrap().iter().map(|r| r["total"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn anyone_rolls_with_the_fair_stream() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let seed = world.get("/dice/seeds").await.expect(200).items()[0]["id"].clone();
    for (n, actor) in [
        json!({}),
        json!({ "actor": { "type": "gm" } }),
        json!({ "actor": { "type": "character", "id": "player_alice" } }),
        json!({ "actor": { "type": "npc", "id": "harbour_ilse" } }),
        json!({ "actor": { "type": "owner", "id": "town_council_owner" } }),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = call(&world, &["1d20", "oops"], actor).await.expect(200);
        assert_eq!((&answer.body["tool"], &answer.body["status"]), (&json!("roll_dice"), &json!("succeeded")));
        let result = &answer.body["result"];
        assert_eq!((&result["count"], &result["source"], &result["seed_id"]), (&json!(2), &json!("server"), &seed));
        assert_eq!(result["counter"], 2 * n + 1);
        assert_eq!((&result["results"][0]["success"], &result["results"][1]["success"]), (&json!(true), &json!(false)));
        assert_eq!(result["results"][1]["error"]["code"], "invalid_formula");
    }
    // Dice by hand, and a preview that leaves the stream alone.
    let manual = call(&world, &["1d20 + 1"], json!({ "dice": [20] })).await.expect(200);
    assert_eq!(
        (&manual.body["result"]["source"], &manual.body["result"]["results"][0]["total"]),
        (&json!("manual"), &json!(21))
    );
    call(&world, &["1d20"], json!({ "dice": [20, 1] })).await.problem(422, "invalid_dice");
    let preview = call(&world, &["1d20"], json!({ "preview": true })).await.expect(200);
    assert_eq!(preview.body["result"].get("counter"), None);
    assert_eq!(world.get("/dice/seeds").await.expect(200).items()[0]["counter"], 10);
    for (arguments, pointer) in [
        (json!({}), "/arguments/rolls"),
        (json!({ "rolls": [] }), "/arguments/rolls"),
        (json!({ "rolls": vec![json!({ "formula": "1d6" }); 21] }), "/arguments/rolls"),
        (json!({ "rolls": [{ "flavor": "x" }] }), "/arguments/rolls/0/formula"),
    ] {
        let answer = world.post("/tools/roll_dice", json!({ "arguments": arguments })).await;
        assert_eq!(answer.problem(422, "validation_failed").pointers(), [pointer]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_are_those_of_the_sheet() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let sheet = json!({
        "profession": "Fighter 3 / Rogue 2", "level": 5, "abilities": { "dexterity": 17, "strength": 8 },
        "max_hp": 40, "hp": 31, "temp_hp": 4, "armor_class": 16, "speed": 25,
    });
    world.patch("/characters/player_alice", sheet).await.expect(200);
    let known = [
        ("@abilities.dex.mod", 3),
        ("@abilities.dexterity.value", 17),
        ("@abilities.str.mod", -1),
        ("@prof", 3),
        ("@attributes.prof", 3),
        ("@level", 5),
        ("@details.level", 5),
        ("@classes.rogue.levels", 2),
        ("@classes.fighter.levels", 3),
        ("@hp", 31),
        ("@attributes.hp.max", 40),
        ("@max_hp", 40),
        ("@temp_hp", 4),
        ("@ac", 16),
        ("@speed", 25),
        ("(@classes.rogue.levels)d1", 2),
    ];
    let formulas: Vec<_> = known.iter().map(|(f, _)| *f).collect();
    let expected: Vec<_> = known.iter().map(|(_, total)| json!(total)).collect();
    assert_eq!(totals(&world, "character", "player_alice", &formulas).await, expected);
    assert_eq!(
        totals(&world, "character", "player_alice", &["@classes.bard.levels", "@name", "@abilities.luck.mod"]).await,
        [Value::Null, Value::Null, Value::Null]
    );
    world
        .patch("/npcs/harbour_ilse", json!({ "stats": { "hp": 9, "max_hp": 11, "abilities": { "wisdom": 14 } } }))
        .await
        .expect(200);
    let ilse = totals(&world, "npc", "harbour_ilse", &["@hp", "@max_hp", "@abilities.wis.mod", "@level"]).await;
    assert_eq!(ilse, [json!(9), json!(11), json!(2), Value::Null]);
    assert_eq!(totals(&world, "owner", "town_council_owner", &["@hp"]).await, [Value::Null]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_rolls_in_its_turn() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("/npcs/innkeeper_bob", json!({ "available_tools": ["NPC_memorize", "roll_dice"] })).await.expect(200);
    let rolls = json!({ "rolls": [{ "formula": "1d20 + @abilities.cha.mod", "flavor": "Haggling" }, { "formula": "1d20adv" }] });
    server
        .model
        .set_script(Script::replies([Reply::tool("roll_dice", rolls), Reply::text("He drives a hard bargain.")]));
    let turn = world.bob("player_alice", "Cheaper, please.").await.expect(200);
    let made = &turn.body["tool_calls"][0];
    assert_eq!((&made["name"], &made["status"]), (&json!("roll_dice"), &json!("succeeded")), "{}", turn.text);
    let result = &made["result"];
    assert_eq!(
        (&result["count"], &result["counter"], &result["results"][0]["flavor"]),
        (&json!(2), &json!(1), &json!("Haggling"))
    );
    assert!(result["results"][1]["error"]["hint"].as_str().unwrap().contains("2d20kh"), "{result}");
    assert_eq!(turn.body["narrative"], "He drives a hard bargain.");
    // The model is told the same result, and anyone can check it later.
    let requests = server.model.requests();
    let told = requests[1]["messages"].as_array().unwrap().iter().find(|m| m["role"] == "tool").unwrap();
    assert_eq!(&fenced(told["content"].as_str().unwrap()), result);
    world.post("/dice/seeds/rotate", json!({})).await.expect(200);
    let again = json!({ "seed_id": result["seed_id"], "counter": 1, "formula": "1d20" });
    let again = tenant.post("/v1/dice/verify", again).await.expect(200);
    assert_eq!(again.body["results"][0]["dice"], result["results"][0]["dice"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_text_mode_the_model_is_shown_its_roll() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("/npcs/innkeeper_bob", json!({ "available_tools": ["roll_dice"] })).await.expect(200);
    let calls = json!([{ "tool_name": "roll_dice", "parameters": { "rolls": [{ "formula": "1d1 + 41" }] } }]);
    server.model.set_script(Script::replies([
        Reply::text(format!("<response><narrative>He rolls.</narrative><tools>{calls}</tools></response>")),
        Reply::text("<response><narrative>He wins.</narrative></response>"),
    ]));
    let body = json!({ "player_id": "player_alice", "action": "Dice?", "reply_mode": "xml" });
    let turn = world.post("/npcs/innkeeper_bob/turns", body).await.expect(200);
    assert_eq!(
        (&turn.body["usage"]["llm_calls"], &turn.body["narrative"]),
        (&json!(2), &json!("He rolls.\n\nHe wins."))
    );
    let requests = server.model.requests();
    assert!(requests[1]["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().contains("42"));
}
