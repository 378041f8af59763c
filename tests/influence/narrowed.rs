//! Tools as an entry narrows them, tools that stand alone, and names of tools that do not exist.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::Server;

const BOB: &str = "/npcs/innkeeper_bob";

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_narrows_what_a_tool_takes() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let entry = json!({ "name": "NPC_memorize", "parameters": {
        "player_id": { "default": "player_alice", "description": "Alice, unless you mean Mallory.",
            "enum": ["player_alice", "player_mallory"] },
        "memory_string": { "type": "string", "maxLength": 20 },
    } });
    world.patch(BOB, json!({ "available_tools": [entry] })).await.expect(200);
    server.model.set_script(Script::replies([
        Reply::tool("NPC_memorize", json!({ "memory_string": "By default." }))
            .with_tool("NPC_memorize", json!({ "entity_id": "player_alice", "memory_string": "By another name." }))
            .with_tool(
                "NPC_memorize",
                json!({ "player_id": "player_alice", "memory_string": "Longer than twenty characters." }),
            )
            .with_tool("NPC_memorize", json!({ "player_id": "innkeeper_bob", "memory_string": "Short." })),
        Reply::text("Noted."),
    ]));
    let turn = world.bob("player_alice", "Hello.").await.expect(200);
    let calls = turn.body["tool_calls"].as_array().unwrap();
    let outcome =
        |n: usize| (calls[n]["status"].as_str().unwrap(), calls[n]["error"]["code"].as_str().unwrap_or_default());
    assert_eq!(outcome(0), ("succeeded", ""), "{}", turn.text);
    assert_eq!(outcome(1), ("succeeded", ""));
    assert_eq!(outcome(2), ("failed", "validation_failed"));
    assert!(calls[2]["error"]["message"].as_str().unwrap().contains("/memory_string"), "{}", calls[2]);
    assert_eq!(outcome(3), ("failed", "validation_failed"));
    assert!(calls[3]["error"]["message"].as_str().unwrap().contains("/player_id"), "{}", calls[3]);
    let sent = &server.model.requests()[0]["tools"][0]["function"]["parameters"];
    assert_eq!(sent["required"], json!(["memory_string"]));
    assert_eq!(sent["properties"]["memory_string"]["maxLength"], 20);
    assert_eq!(sent["properties"]["player_id"]["enum"], json!(["player_alice", "player_mallory"]));
    // In text mode the same schema is written into the prompt, and a call over REST is held to it.
    let body = json!({ "player_id": "player_alice", "action": "Hello.", "reply_mode": "xml" });
    let prompt = world.post(&format!("{BOB}/prompt"), body).await.expect(200).text;
    assert!(prompt.contains("\\\\\\\"maxLength\\\\\\\":20") || prompt.contains("\\\"maxLength\\\":20"), "{prompt}");
    let call = |words: &str| json!({ "actor": { "type": "npc", "id": "innkeeper_bob" }, "arguments": { "memory_string": words } });
    world.post("/tools/NPC_memorize", call("By hand.")).await.expect(200);
    let long = world.post("/tools/NPC_memorize", call(&"x".repeat(21))).await.problem(422, "validation_failed");
    assert_eq!(long.pointers(), ["/arguments/memory_string"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_can_be_added_or_widened() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (tool, parameters, at) in [
        ("NPC_memorize", json!({ "mood": { "type": "string" } }), "/mood"),
        ("NPC_memorize", json!({ "memory_string": { "maxLength": 2001 } }), "/memory_string/maxLength"),
        ("NPC_memorize", json!({ "memory_string": { "type": "number" } }), "/memory_string/type"),
        ("NPC_memorize", json!({ "memory_string": { "minimum": 1 } }), "/memory_string/minimum"),
        ("NPC_memorize", json!({ "memory_string": { "enum": [] } }), "/memory_string/enum"),
        ("NPC_memorize", json!({ "memory_string": { "enum": ["ok", 5] } }), "/memory_string/enum"),
        ("NPC_memorize", json!({ "memory_string": { "maxLength": 3, "default": "long" } }), "/memory_string/default"),
        ("NPC_memorize", json!({ "memory_string": { "pattern": ".*" } }), "/memory_string/pattern"),
        ("NPC_memorize", json!({ "memory_string": "short" }), "/memory_string"),
        ("NPC_memorize", json!([]), ""),
        ("spawn_entity", json!({ "quantity": { "maximum": 11 } }), "/quantity/maximum"),
        ("spawn_entity", json!({ "quantity": { "minimum": 5, "maximum": 2 } }), "/quantity/minimum"),
        ("NPC_memorize", json!({ "type": "object", "properties": { "mood": {} } }), "/properties/mood"),
    ] {
        let tools = json!({ "available_tools": ["roll_dice", { "name": tool, "parameters": parameters }] });
        let refused = world.patch(BOB, tools.clone()).await.problem(422, "validation_failed");
        assert_eq!(refused.pointers(), [format!("/available_tools/1/parameters{at}")], "{tools}");
        let mut new = json!({ "name": "Dora" });
        new.as_object_mut().unwrap().extend(tools.as_object().unwrap().clone());
        assert_eq!(world.post("/npcs", new).await.problem(422, "validation_failed").pointers().len(), 1);
    }
    // A parameter that must be there cannot be taken away.
    let taken = json!({ "available_tools": [{ "name": "NPC_memorize", "parameters": { "player_id": false } }] });
    let refused = world.patch(BOB, taken).await.problem(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/available_tools/0/parameters/player_id"]);
    let narrow =
        json!({ "name": "spawn_entity", "parameters": { "quantity": { "minimum": 2, "maximum": 2, "default": 2 } } });
    world.patch("/owners/town_council_owner", json!({ "available_tools": [narrow] })).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_takes_optional_parameters_away_and_fixes_values() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let entry = json!({ "name": "spawn_entity", "parameters": {
        "description": false, "quantity": false, "name": { "const": "giant_rat" },
    } });
    let council =
        json!({ "available_tools": [entry], "influence": { "current": 100, "max": 100, "regen_per_hour": 0 } });
    world.patch("/owners/town_council_owner", council).await.expect(200);
    let spawn = async |given: Value| {
        let body = json!({ "actor": { "type": "owner", "id": "town_council_owner" }, "arguments": given });
        world.post("/tools/spawn_entity", body).await
    };
    let rat = |name: &str| json!({ "kind": "npc", "name": name, "location": "town_square" });
    spawn(rat("giant_rat")).await.expect(200);
    let wrong = spawn(rat("dragon")).await.problem(422, "validation_failed");
    assert_eq!(wrong.pointers(), ["/arguments/name"]);
    let mut many = rat("giant_rat");
    many["quantity"] = json!(3);
    assert_eq!(spawn(many).await.problem(422, "validation_failed").pointers(), ["/arguments/quantity"]);
    let body = json!({ "player_id": "player_alice", "action": "Hello." });
    let prompt = world.post("/owners/town_council_owner/prompt", body).await.expect(200).text;
    assert!(prompt.contains("spawn_entity"), "{prompt}");
    let turn = json!({ "player_id": "player_alice", "action": "Hello." });
    server.model.set_script(Script::replies([Reply::text("So be it.")]));
    world.post("/owners/town_council_owner/turns", turn).await.expect(200);
    let sent = server.model.requests()[0]["tools"][0]["function"]["parameters"]["properties"].clone();
    let names: Vec<_> = sent.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["kind", "location", "name"]);
    assert_eq!(sent["name"]["enum"], json!(["giant_rat"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_does_not_exist_is_refused_but_what_is_stored_stays() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let unknown = json!({ "available_tools": ["NPC_memorize", "fly", { "name": "swim" }] });
    for path in [BOB, "/owners/town_council_owner"] {
        let refused = world.patch(path, unknown.clone()).await.problem(422, "validation_failed");
        assert_eq!(refused.pointers(), ["/available_tools/1", "/available_tools/2"]);
    }
    let mut new = json!({ "name": "Dora" });
    new.as_object_mut().unwrap().extend(unknown.as_object().unwrap().clone());
    assert_eq!(world.post("/npcs", new).await.problem(422, "validation_failed").pointers().len(), 2);
    // An import leaves them out and says so.
    let file = json!({ "NPCs": [{ "ID": "birdman", "Name": "Birdman", "OwnerIDs": [],
        "AvailableTools": [{ "Name": "NPC_memorize" }, { "Name": "fly" }] }] });
    let report = world.post("/import/seed", file).await.expect(200);
    let warnings = report.body["warnings"].to_string();
    assert!(warnings.contains("there is no tool `fly`") && !warnings.contains("NPC_memorize"), "{warnings}");
    let stored = world.get("/npcs/birdman").await.expect(200).body["available_tools"].clone();
    assert_eq!(stored.as_array().unwrap().len(), 1, "{stored}");
    // One that is stored all the same holds nobody up who changes something else, or keeps the entry.
    let older = "UPDATE npc SET available_tools = available_tools || '[{\"name\": \"fly\"}]' WHERE slug = 'birdman'";
    sqlx::query(older).execute(&mut server.owner().await).await.unwrap();
    let stored = world.get("/npcs/birdman").await.expect(200).body["available_tools"].clone();
    world.patch("/npcs/birdman", json!({ "description": "He flies." })).await.expect(200);
    let kept = json!({ "available_tools": [stored[1], "roll_dice"] });
    world.patch("/npcs/birdman", kept).await.expect(200);
    let refused = world.patch("/npcs/birdman", json!({ "available_tools": ["soar"] })).await;
    assert_eq!(refused.problem(422, "validation_failed").pointers(), ["/available_tools/0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exclusive_tool_must_be_the_only_call_of_a_reply() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let tools = json!({ "available_tools": [{ "name": "roll_dice", "exclusive": true }, "NPC_memorize"] });
    world.patch(BOB, tools.clone()).await.expect(200);
    assert_eq!(world.get(BOB).await.expect(200).body["available_tools"], tools["available_tools"]);
    let remember = |words: &str| json!({ "player_id": "player_alice", "memory_string": words });
    let roll = json!({ "rolls": [{ "formula": "1d1" }] });
    let outcomes = async |reply: Reply| -> Vec<(Value, Value)> {
        server.model.set_script(Script::replies([reply, Reply::text("Done.")]));
        let turn = world.bob("player_alice", "Hello.").await.expect(200);
        let calls = turn.body["tool_calls"].as_array().unwrap().clone();
        calls.iter().map(|call| (call["status"].clone(), call["error"]["code"].clone())).collect()
    };
    let ran = (json!("succeeded"), Value::Null);
    let refused = (json!("rejected"), json!("exclusive_tool"));
    let three = Reply::tool("NPC_memorize", remember("One."))
        .with_tool("roll_dice", roll.clone())
        .with_tool("roll_dice", roll.clone());
    assert_eq!(outcomes(three).await, [refused.clone(), ran.clone(), refused]);
    assert_eq!(outcomes(Reply::tool("roll_dice", roll)).await, std::slice::from_ref(&ran));
    let two = Reply::tool("NPC_memorize", remember("Two.")).with_tool("NPC_memorize", remember("Three."));
    assert_eq!(outcomes(two).await, [ran.clone(), ran]);
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.len(), 3);
    let sent = server.model.requests()[0]["tools"].to_string();
    assert!(sent.contains("Call it alone"), "{sent}");
}

#[test]
fn the_world_knows_the_names_of_all_tools() {
    let mut names: Vec<_> = ai::tools::REGISTRY.iter().map(|tool| tool.name).collect();
    let mut older: Vec<_> = ai::tools::REGISTRY.iter().flat_map(|tool| tool.aliases.iter().copied()).collect();
    let (mut known, mut known_older) = (world::tools::NAMES.to_vec(), world::tools::OLDER_NAMES.to_vec());
    [&mut names, &mut known, &mut older, &mut known_older].into_iter().for_each(|list| list.sort_unstable());
    assert_eq!((names, older), (known, known_older));
    assert!(world::tools::PRICES.iter().all(|(name, _)| world::tools::is_known(name)));
    // What only reads does not act on the world; what owners pay for does, except remembering.
    assert!(ai::tools::REGISTRY.iter().all(|tool| !(tool.reads && world::tools::acts(tool.name))));
    let remembers = |name: &str| world::tools::REMEMBERING.contains(&name);
    assert!(world::tools::PRICES.iter().all(|(name, _)| world::tools::acts(name) != remembers(name)));
    assert!(world::tools::REMEMBERING.iter().all(|name| world::tools::is_known(name)));
}
