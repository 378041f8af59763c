//! The tools of a session's AI, called by hand.

use edge::caller::Scope;
use rehearsal::{Reply, Script};
use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::Session;
use crate::support::{Server, until};

#[tokio::test(flavor = "multi_thread")]
async fn old_names_are_answered_and_not_listed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    let listed = world.get("/tools").await.expect(200);
    let names: Vec<_> = listed.items().iter().map(|t| t["function"]["name"].as_str().unwrap()).collect();
    for name in [
        "get_message_history",
        "post_message",
        "roll_dice",
        "get_encounter",
        "get_actor_details",
        "get_party_members",
        "get_current_scene",
        "measure_distance",
        "search_lore",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    for (old, arguments) in [("get_messages", json!({})), ("post_messages", json!({ "content": "Hi." }))] {
        assert!(!names.contains(&old), "{old}");
        let answer = session.tool(old, arguments).await.expect(200);
        assert_ne!(answer.body["tool"], old);
    }
    let stranger = json!({ "arguments": {}, "session_id": "00000000-0000-7000-8000-000000000000" });
    let answer = world.post("/tools/get_encounter", stranger).await.problem(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/session_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_posted_and_read() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    session.chat("Who goes there?").await;
    let posted = json!({ "content": "A friend.", "speaker_name": "Guard", "flavor": "gruffly", "type": "ic" });
    let posted = session.called("post_message", posted).await;
    assert_eq!((&posted["sent_count"], &posted["results"][0]["success"]), (&json!(1), &json!(true)));
    let several = json!({ "messages": [
        { "content": "One." }, { "content": " " }, { "content": "Psst.", "whisper_to": ["player_alice"] },
        { "content": "Psst.", "whisper_to": ["nobody"] },
    ]});
    let several = session.called("post_message", several).await;
    let done: Vec<_> = several["results"].as_array().unwrap().iter().map(|r| &r["success"]).collect();
    assert_eq!(
        (&several["sent_count"], done),
        (&json!(2), vec![&json!(true), &json!(false), &json!(true), &json!(false)])
    );
    let rolled = session.called("roll_dice", json!({ "rolls": [{ "formula": "1d1+4", "flavor": "Attack" }] })).await;
    assert_eq!(rolled["source"], "server");

    let history = session.called("get_message_history", json!({})).await;
    assert_eq!(history["count"], 5);
    let messages = history["messages"].as_array().unwrap();
    assert_eq!((&messages[0]["content"], &messages[0]["speaker"]), (&json!("Who goes there?"), &json!("Ann")));
    assert_eq!((&messages[1]["speaker"], &messages[1]["flavor"]), (&json!("Guard"), &json!("gruffly")));
    let roll = &messages[4];
    assert_eq!(
        (&roll["type"], &roll["formula"], &roll["total"], &roll["flavor"], &roll["speaker"]),
        (&json!("roll"), &json!("1d1+4"), &json!(5), &json!("Attack"), &json!("Game Master"))
    );
    assert!(roll["ts"].is_i64() && roll["dice"].is_array());
    let short = session.called("get_message_history", json!({ "limit": 1, "compact": true })).await;
    let roll = &short["messages"][0];
    assert_eq!(
        (&roll["t"], &roll["f"], &roll["tt"], &roll["ft"]),
        (&json!("dr"), &json!("1d1+4"), &json!(5), &json!("Attack"))
    );
    // The AI's own posts and rolls are no news.
    assert_eq!(session.delta().await["NewMessages"], 1);
    assert_eq!(session.delta().await.get("NewDiceRolls"), None);

    for (tool, arguments, pointer) in [
        ("get_message_history", json!({ "count": 0 }), "/arguments/count"),
        ("get_message_history", json!({ "count": 51 }), "/arguments/count"),
        ("get_message_history", json!({ "count": true }), "/arguments/count"),
        ("post_message", json!({}), "/arguments/content"),
        ("post_message", json!({ "content": "x", "messages": [{ "content": "y" }] }), "/arguments/messages"),
        ("post_message", json!({ "messages": vec![json!({ "content": "y" }); 21] }), "/arguments/messages"),
        ("post_message", json!({ "content": "x", "type": "shout" }), "/arguments/type"),
        ("measure_distance", json!({ "from_x": 1 }), "/arguments/from_x"),
        ("measure_distance", json!({ "from_token": "t9", "to_x": 1, "to_y": 1 }), "/arguments/from_token"),
        ("search_lore", json!({ "query": "" }), "/arguments/query"),
        ("get_actor_details", json!({ "actor_id": "nobody" }), "/arguments/actor_id"),
    ] {
        let answer = session.tool(tool, arguments.clone()).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{tool} {arguments}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_is_looked_at() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let tokens = json!([
        { "id": "t1", "name": "Alice", "actor_id": "player_alice", "x": 100, "y": 100, "is_player": true },
        { "id": "t2", "name": "Bob", "actor_id": "innkeeper_bob", "x": 400, "y": 100 },
        { "id": "t3", "name": "Cat", "x": 250, "y": 110 },
    ]);
    let scene = json!({ "id": "s1", "name": "Inn", "dimensions": { "width": 1000, "height": 800, "grid": 50 }, "tokens": tokens });
    let body = json!({ "client_id": "vtt", "world_state": { "active_scene": scene } });
    let session = Session::with(&world, body).await;
    assert_eq!(session.called("get_current_scene", json!({})).await["tokens"].as_array().unwrap().len(), 3);
    let way = session.called("measure_distance", json!({ "from_token": "Alice", "to_token": "t2" })).await;
    assert_eq!((&way["distance"], &way["units"]), (&json!(30.0), &json!("ft")));
    assert_eq!(way["intervening_tokens"], json!([{ "id": "t3", "name": "Cat" }]));
    let points = json!({ "from_x": 0, "from_y": 0, "to_x": 100, "to_y": 150 });
    assert_eq!(session.called("measure_distance", points).await["distance"], 15.0);

    let whole = session.called("get_actor_details", json!({ "actor_id": "player_alice" })).await;
    assert_eq!((&whole["name"], &whole["data"]["profession"]), (&json!("Alice"), &json!("adventurer")));
    // A token stands for its actor.
    assert_eq!(session.called("get_actor_details", json!({ "actor_id": "t2" })).await["name"], "Innkeeper Bob");
    let found = session.called("get_actor_details", json!({ "actor_id": "t1", "search_phrase": "MAX_HP" })).await;
    assert_eq!(found["matches"][0], json!({ "path": "max_hp", "value": 100 }));
    assert_eq!(found["total_matches"], found["matches"].as_array().unwrap().len());

    let party = session.called("get_party_members", json!({})).await;
    assert_eq!((&party["count"], &party["members"][0]["slug"]), (&json!(2), &json!("player_alice")));

    world.patch("/lore/the_harbour", json!({ "secret": true })).await.expect(200);
    let lore = session.called("search_lore", json!({ "query": "chain" })).await;
    assert_eq!((&lore["count"], &lore["entries"][0]["secret"]), (&json!(1), &json!(true)));
    let any = session.called("search_lore", json!({ "query": "blades dragons" })).await;
    assert_eq!(any["entries"][0]["slug"], "the_square", "any of the words, where all stand nowhere");
    // A player's AI sees what its player may.
    let player = json!({ "client_id": "p", "role": "player", "player_id": "player_alice" });
    let player = Session::with(&world, player).await;
    assert_eq!(player.called("search_lore", json!({ "query": "chain" })).await["count"], 0);
    let bob = player.called("get_actor_details", json!({ "actor_id": "innkeeper_bob" })).await;
    assert_eq!(bob["data"].get("personality_prompt"), None, "{bob}");
    assert_eq!(bob["data"].get("stats"), None);
    // Of a fight it sees what happens, not how much its foes can take; notes are the game master's.
    let combatants =
        json!([{ "name": "Goblin", "hp": 7, "max_hp": 7 }, { "name": "Alice", "is_player": true, "hp": 9 }]);
    player.event("combat_state", json!({ "in_combat": true, "combatants": combatants })).await;
    let fight = player.called("get_encounter", json!({})).await;
    assert_eq!((fight["combatants"][0].get("hp"), &fight["combatants"][1]["hp"]), (None, &json!(9)));
    let preview = player.post("/prompt", json!({})).await.expect(200).text;
    assert!(preview.contains("Goblin") && !preview.contains("\\\"hp\\\":7"), "{preview}");
    // Without a scene of the frontend's: the campaign's own.
    assert_eq!(player.called("get_current_scene", json!({})).await["message"], "No active scene");
    let own = json!({ "name": "Harbour", "active": true, "width": 20, "height": 20,
        "tokens": [{ "id": "a", "name": "A", "x": 0, "y": 0 }, { "id": "b", "name": "B", "x": 3, "y": 4 }] });
    world.post("/scenes", own).await.expect(201);
    assert_eq!(player.called("get_current_scene", json!({})).await["name"], "Harbour");
    let way = player.called("measure_distance", json!({ "from_token": "a", "to_token": "b" })).await;
    assert_eq!(way["distance"], 20.0);
}

/// The scope `tools` alone calls them, and is told no secret.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_without_gm_is_told_no_secrets() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    session.event("chat_message", json!({ "content": "For the master.", "whisper_to": ["gm"] })).await;
    session.chat("For everyone.").await;
    world.patch("/lore/the_harbour", json!({ "secret": true })).await.expect(200);
    let caller = tenant.with_scopes(&[Scope::Tools]).await;
    for (tool, arguments, secret) in [
        ("get_message_history", json!({}), "For the master."),
        ("search_lore", json!({ "query": "chain" }), "closes it at night"),
        ("get_actor_details", json!({ "actor_id": "innkeeper_bob" }), "You love gossip"),
    ] {
        let body = json!({ "arguments": arguments, "session_id": session.id });
        let path = world.path(&format!("/tools/{tool}"));
        assert!(tenant.post(&path, body.clone()).await.expect(200).text.contains(secret), "{tool}");
        assert!(!caller.post(&path, body).await.expect(200).text.contains(secret), "{tool}");
    }
}

/// Dice and words need no transaction until something is read; what is read then has them.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_reply_see_those_before_them() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    let roll = json!({ "rolls": [{ "formula": "1d20" }] });
    let calls = Reply::tool("roll_dice", roll.clone())
        .with_tool("post_message", json!({ "content": "The door opens." }))
        .with_tool("get_message_history", json!({}))
        .with_tool("roll_dice", roll);
    server.model.set_script(Script::replies([calls, Reply::text("And so it is.")]));
    let turn = session.turn().await;
    let calls = turn["tool_calls"].as_array().unwrap();
    assert!(calls.iter().all(|call| call["status"] == "succeeded"), "{turn}");
    let told = calls[2]["result"]["messages"].to_string();
    assert!(told.contains("1d20") && told.contains("The door opens."), "{told}");
    assert_eq!([0, 3].map(|n| calls[n]["result"]["counter"].clone()), [json!(1), json!(2)]);
    let rolls = world.get("/messages?type=roll").await.expect(200);
    assert_eq!(rolls.items().len(), 2);
}

/// What is rolled for a turn that was cancelled meanwhile, elsewhere, is told to nobody, and no other roll has its counter.
#[tokio::test(flavor = "multi_thread")]
async fn a_roll_of_a_cancelled_turn_is_nobodys() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    let roll = || Reply::tool("roll_dice", json!({ "rolls": [{ "formula": "1d20" }] }));
    let end = || Reply::text("So be it.");
    server.model.set_script(Script::replies([roll(), end(), roll().held(), roll(), end()]));
    let first = session.turn().await;
    assert_eq!(first["tool_calls"][0]["result"]["counter"], 1, "{first}");
    let cancel = async {
        until("the third question", async || server.model.request_count() >= 3).await;
        let mut db = PgConnection::connect(&server.db.url).await.unwrap();
        let asked = sqlx::query("UPDATE turn SET cancel_requested = true WHERE status = 'running'").execute(&mut db);
        assert_eq!(asked.await.unwrap().rows_affected(), 1);
        server.model.let_go(1);
    };
    let path = session.path("/turns");
    let (cancelled, ()) = tokio::join!(world.post(&path, json!({})), cancel);
    assert_eq!(cancelled.expect(200).body["status"], "cancelled");
    assert_eq!(world.get("/messages?type=roll").await.expect(200).items().len(), 1);
    assert_eq!(session.turn().await["tool_calls"][0]["result"]["counter"], 3);
}
