//! The tool `recall`: an NPC or owner looks into its memory.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{
    BOB, HORSE, many, noted,
    prompt::{budget, innkeeper},
};
use crate::support::{Answer, Server, World};

const COUNCIL: &str = "/owners/town_council_owner";

/// A call as Bob over REST. `more` are further members of the request.
async fn call(world: &World<'_>, arguments: Value, more: Value) -> Answer {
    let mut body = json!({ "arguments": arguments, "actor": { "type": "npc", "id": "innkeeper_bob" } });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.post("/tools/recall", body).await
}

fn texts(result: &Value) -> Vec<String> {
    let memories = result["memories"].as_array().unwrap();
    assert_eq!(result["count"], memories.len(), "{result}");
    memories.iter().map(|memory| memory["text"].as_str().unwrap().to_owned()).collect()
}

/// What Bob recalls over REST, the best first.
pub async fn recalled(world: &World<'_>, arguments: Value, more: Value) -> Vec<String> {
    texts(&call(world, arguments, more).await.expect(200).body["result"])
}

/// Gives Bob the tool.
pub async fn grant(world: &World<'_>) {
    world.patch("/npcs/innkeeper_bob", json!({ "available_tools": ["NPC_memorize", "recall"] })).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_npc_looks_for_what_its_prompt_lacks() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    innkeeper(&server, &world).await;
    noted(&world, BOB, "player_mallory", "Mallory left a grey horse in my stable: アリス, Pferd.").await;
    grant(&world).await;
    // The prompt has room for nothing.
    budget(&world, 0).await;
    for (memory, question, _) in HORSE {
        let looks = Reply::tool("recall", json!({ "query": question }));
        server.model.set_script(Script::replies([looks, Reply::text("I remember.")]));
        let turn = world.bob("player_alice", "What of my horse?").await.expect(200).body;
        let result = &turn["tool_calls"][0]["result"];
        let found = texts(result);
        assert_eq!((found[0].as_str(), found.len()), (memory, 5), "{result}");
        assert!(!result.to_string().contains("Mallory"), "the turn is Alice's: {result}");
        let first = result["memories"][0].as_object().unwrap();
        assert_eq!(first.keys().collect::<Vec<_>>(), ["game_time", "memory_id", "source", "text"]);
        let path = format!("/memories/{}", first["memory_id"].as_str().unwrap());
        let row = world.get(&path).await.expect(200).body;
        assert_eq!([&row["source"], &row["game_time"]], [&first["source"], &first["game_time"]]);
        // The model reads it in the next step, and only there.
        let requests = server.model.requests();
        let has = |n: usize| requests[n]["messages"].to_string().contains(memory);
        assert_eq!([has(requests.len() - 2), has(requests.len() - 1)], [false, true]);
    }
    // Only its caller reads what it found.
    let alice =
        tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice", "scopes": ["read", "play"] })).await;
    let hers = World { client: &alice, slug: world.slug.clone() };
    let looks = Reply::tool("recall", json!({ "query": HORSE[0].1 }));
    server.model.set_script(Script::replies([looks, Reply::text("I remember.")]));
    let turn = hers.bob("player_alice", "What of my horse?").await.expect(200);
    let stored = hers.get(&format!("/turns/{}", turn.id())).await.expect(200);
    assert!(server.model.requests().pop().unwrap()["messages"].to_string().contains(HORSE[0].0));
    assert!(!turn.text.contains(HORSE[0].0) && !stored.text.contains(HORSE[0].0), "{}", turn.text);
    // Over REST it looks at everybody, or at whom the call says.
    let horse = json!({ "query": "Who left a grey horse?", "limit": 20 });
    let everybody = recalled(&world, horse.clone(), json!({})).await;
    assert!(everybody.len() > 10 && everybody.iter().any(|text| text.starts_with("Mallory")), "{everybody:?}");
    for (player, name) in [("player_alice", "Alice"), ("player_mallory", "Mallory")] {
        let found = recalled(&world, horse.clone(), json!({ "player_id": player })).await;
        assert!(found.iter().all(|text| !text.contains("Mallory") || name == "Mallory"), "{found:?}");
        assert_eq!(found.iter().any(|text| text.contains("Mallory")), name == "Mallory", "{found:?}");
    }
    let session = json!({ "client_id": "alices", "role": "player", "player_id": "player_alice", "dice": "server" });
    let session = world.post("/sessions", session).await.expect(201).id();
    let found = recalled(&world, horse, json!({ "session_id": session })).await;
    assert!(!found.is_empty() && found.iter().all(|text| !text.contains("Mallory")), "{found:?}");
}

/// A turn finds what it has remembered itself, although the server knows what was there before. Nobody finds it when the turn is undone.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_finds_what_it_wrote() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    many(&server, &world, BOB, 20, "Alice drank cider number #.").await;
    let memorize = |text: &str| json!({ "player_id": "player_alice", "memory_string": text });
    let emerald = json!({ "query": "emerald" });
    let calls = Reply::tool("NPC_memorize", memorize("Alice hid an emerald."))
        .with_tool("recall", emerald.clone())
        .with_tool("NPC_memorize", memorize("The emerald is hers."))
        .with_tool("recall", emerald.clone());
    let emeralds = |result: &Value| texts(result).iter().filter(|text| text.contains("emerald")).count();
    grant(&world).await;
    for more in [json!({ "player_id": "player_alice" }), json!({})] {
        assert!(!recalled(&world, json!({ "query": "Alice" }), more).await.is_empty());
    }
    server.model.set_script(Script::replies([calls, Reply::text("Yes.")]));
    let turn = world.bob("player_alice", "Keep it.").await.expect(200);
    let calls = turn.body["tool_calls"].as_array().unwrap();
    assert_eq!([emeralds(&calls[1]["result"]), emeralds(&calls[3]["result"])], [1, 2], "{}", turn.text);
    let found = recalled(&world, emerald.clone(), json!({})).await;
    assert!(found[..2].iter().all(|text| text.contains("emerald")), "{found:?}");
    world.post(&format!("/turns/{}/undo", turn.id()), json!({})).await.expect(200);
    let found = recalled(&world, emerald.clone(), json!({})).await;
    assert!(!found.iter().any(|text| text.contains("emerald")), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_recall_is_refused_and_a_bad_query_says_why() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    many(&server, &world, BOB, 3, "Alice and the 🐴 a b c of number #.").await;
    // Bob does not have the tool yet.
    call(&world, json!({ "query": "horse" }), json!({})).await.problem(403, "forbidden");
    grant(&world).await;
    for (kind, id) in [("character", "player_alice"), ("gm", "gm"), ("owner", "town_council_owner")] {
        let actor = json!({ "actor": { "type": kind, "id": id } });
        call(&world, json!({ "query": "horse" }), actor).await.problem(403, "forbidden");
    }
    let long = "a".repeat(201);
    for (arguments, pointer) in [
        (json!({}), "/arguments/query"),
        (json!({ "query": "" }), "/arguments/query"),
        (json!({ "query": " \u{3000}\t" }), "/arguments/query"),
        (json!({ "query": long }), "/arguments/query"),
        (json!({ "query": 7 }), "/arguments/query"),
        (json!({ "query": "a", "limit": 0 }), "/arguments/limit"),
        (json!({ "query": "a", "limit": 21 }), "/arguments/limit"),
        (json!({ "query": "a", "limit": -1 }), "/arguments/limit"),
        (json!({ "query": "a", "player_id": "player_mallory" }), "/arguments/player_id"),
    ] {
        let refused = call(&world, arguments.clone(), json!({})).await.problem(422, "validation_failed");
        assert_eq!(refused.pointers(), [pointer], "{arguments}");
    }
    // Nothing that can be asked is an error.
    let all_a = "a".repeat(200);
    for (query, count) in
        [("🐴", 0), ("馬", 0), ("'", 0), ("%_\\", 0), (&*all_a, 0), ("a", 3), ("the of and", 3), ("Alice\n🐴", 3)]
    {
        let of_alice = json!({ "player_id": "player_alice" });
        let mut found = recalled(&world, json!({ "query": query, "limit": 20 }), of_alice).await;
        found.retain(|text| text.contains('🐴'));
        assert_eq!(found.len(), count, "{query:?}: {found:?}");
    }
    // Somebody without memories, and a player without any.
    for entity in [COUNCIL, "/npcs/harbour_ilse"] {
        world.patch(entity, json!({ "available_tools": ["recall"] })).await.expect(200);
    }
    let ilse = json!({ "actor": { "type": "npc", "id": "harbour_ilse" } });
    for more in [ilse, json!({ "player_id": "player_mallory" })] {
        let answer = call(&world, json!({ "query": "horse" }), more).await.expect(200);
        assert_eq!(answer.body["result"], json!({ "count": 0, "memories": [] }));
    }
    noted(&world, &format!("{COUNCIL}/memories"), "player_alice", "Alice pays for her horse.").await;
    let council = json!({ "actor": { "type": "owner", "id": "town_council_owner" } });
    let answer = call(&world, json!({ "query": "horses" }), council).await.expect(200);
    assert_eq!(texts(&answer.body["result"])[0], "Alice pays for her horse.");
    // What a model reads of many long memories is bounded.
    many(&server, &world, BOB, 30, &format!("Mares # {}", "🐴".repeat(1980))).await;
    let looks = Reply::tool("recall", json!({ "query": "mares", "limit": 20 }));
    server.model.set_script(Script::replies([looks, Reply::text("Horses.")]));
    world.bob("player_alice", "Horses?").await.expect(200);
    let request = server.model.requests().pop().unwrap();
    let read = request["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(read.len() <= 128 * 1024 && read.contains("Mares") && read.contains("shortened"), "{}", read.len());
}
