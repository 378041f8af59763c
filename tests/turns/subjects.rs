//! About whom a turn's tools remember: about its player alone, unless the campaign says otherwise.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{BOB, statuses};
use crate::support::{Server, World};

const TOOLS: [&str; 2] = ["OWNER_memorize", "OWNER_memorize_dependables"];

fn about(tool: &str, player: &str) -> Reply {
    Reply::tool(tool, json!({ "player_id": player, "memory_string": "Alice's words about another." }))
}

/// Whether anybody remembers her words about Mallory.
async fn stands(world: &World<'_>) -> bool {
    world.get("/memories?player_id=player_mallory").await.expect(200).text.contains("Alice's words")
}

async fn turn(world: &World<'_>, npc: bool, reply: Reply) -> Value {
    world.client.server.model.set_script(Script::replies([reply, Reply::text("Noted.")]));
    let answer = match npc {
        true => world.bob("player_alice", "Remember this about Mallory.").await,
        false => world.client.owner_turn(&world.slug, "town_council_owner", "player_alice", "Remember this.").await,
    };
    let answer = answer.expect(200);
    assert_eq!(statuses(&answer).len(), 1, "{}", answer.text);
    answer.body["tool_calls"][0].clone()
}

async fn allow(world: &World<'_>, allowed: Value) {
    world.patch("", json!({ "settings": { "memories_about_others": allowed } })).await.expect(200);
}

async fn put(world: &World<'_>, player: &str, location: Value) {
    world.patch(&format!("/characters/{player}"), json!({ "location": location })).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_remembers_about_its_player_alone() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mallory = world.get("/characters/player_mallory").await.expect(200).id();
    for named in ["player_mallory", mallory.as_str()] {
        let refused = turn(&world, true, about("NPC_memorize", named)).await;
        assert_eq!(
            (&refused["status"], &refused["error"]["code"]),
            (&json!("failed"), &json!("forbidden")),
            "{refused}"
        );
        for tool in TOOLS {
            let refused = turn(&world, false, about(tool, named)).await;
            assert_eq!(refused["error"]["code"], "forbidden", "{tool}: {refused}");
        }
    }
    assert!(!stands(&world).await);
    assert!(!world.prompt("innkeeper_bob", "player_mallory", "Hello").await.to_string().contains("Alice's words"));
    // Its own player, by whatever name. Twice the same is remembered once.
    let alice = world.get("/characters/player_alice").await.expect(200).id();
    for named in ["player_alice", alice.as_str()] {
        assert_eq!(turn(&world, true, about("NPC_memorize", named)).await["status"], "succeeded");
    }
    assert_eq!(world.memories(BOB, "player_alice").await.len(), 2);
    let unknown = turn(&world, true, about("NPC_memorize", "nobody")).await;
    assert_eq!(unknown["error"]["code"], "validation_failed", "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_may_allow_those_who_are_present() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let status =
        async |tool: &str| turn(&world, tool == "NPC_memorize", about(tool, "player_mallory")).await["status"].clone();
    // Both are in the starting room; only true is a yes.
    for no in [json!(false), json!(null)] {
        allow(&world, no.clone()).await;
        assert_eq!(status("NPC_memorize").await, "failed", "{no}");
    }
    for no in [json!("true"), json!(1), json!({})] {
        let settings = json!({ "settings": { "memories_about_others": no } });
        world.patch("", settings).await.problem(422, "validation_failed");
    }
    allow(&world, json!(true)).await;
    for (there, is_present) in [
        (json!("harbour"), false),
        (Value::Null, false),
        (json!("Starting Room"), true),
        (json!("starting_room"), true),
    ] {
        put(&world, "player_mallory", there.clone()).await;
        for tool in ["NPC_memorize", TOOLS[0], TOOLS[1]] {
            let expected = if is_present { "succeeded" } else { "failed" };
            assert_eq!(status(tool).await, expected, "{tool} at {there}");
        }
        assert_eq!(stands(&world).await, is_present, "{there}");
    }
    // Nobody is present where nobody is.
    for player in ["player_alice", "player_mallory"] {
        put(&world, player, Value::Null).await;
    }
    assert_eq!(status("NPC_memorize").await, "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_rest_a_call_says_whose_turn_it_is_part_of() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = json!({ "client_id": "alices", "role": "player", "player_id": "player_alice", "dice": "server" });
    let session = world.post("/sessions", session).await.expect(201).id();
    let calls = [
        ("NPC_memorize", json!({ "type": "npc", "id": "innkeeper_bob" })),
        (TOOLS[0], json!({ "type": "owner", "id": "town_council_owner" })),
        (TOOLS[1], json!({ "type": "owner", "id": "town_council_owner" })),
    ];
    for (tool, actor) in calls {
        let call = async |more: Value| {
            let arguments = json!({ "player_id": "player_mallory", "memory_string": "Alice's words." });
            let mut body = json!({ "arguments": arguments, "actor": actor });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            world.post(&format!("/tools/{tool}"), body).await
        };
        call(json!({ "player_id": "player_alice" })).await.problem(403, "forbidden");
        call(json!({ "session_id": session })).await.problem(403, "forbidden");
        call(json!({ "player_id": "nobody" })).await.problem(422, "validation_failed");
        assert!(!stands(&world).await, "{tool}");
    }
    // Who writes memories by hand chooses whom they are about.
    let by_hand = json!({ "arguments": { "player_id": "player_mallory", "memory_string": "Seen by the gate." },
        "actor": { "type": "npc", "id": "innkeeper_bob" } });
    world.post("/tools/NPC_memorize", by_hand).await.expect(200);
    assert_eq!(world.memories(BOB, "player_mallory").await, ["Seen by the gate."]);
}
