//! What a session's AI is for a turn decides which conversation it reads.

use rehearsal::{Reply, Script};
use serde_json::json;

use super::{Session, fight, no_changes};
use crate::support::Server;

/// What was told to a game master's or an assistant's AI stays out of the prompts of a player's, whichever way it becomes one.
#[tokio::test(flavor = "multi_thread")]
async fn a_players_ai_is_not_shown_the_game_masters_conversation() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = Session::open(&world, "vtt").await;
    session.event("world_state", fight(1, 1, 7, &[])["combat_state"].clone()).await;
    server.model.set_script(Script::replies([
        Reply::text("The cellar is trapped."),
        Reply::text("Let them find the key."),
        Reply::text("I open the door."),
        Reply::text("They are at the door."),
        Reply::text("I wait."),
        Reply::text("I look about."),
    ]));
    let turn = async |body| session.post("/turns", body).await.expect(200).body;
    let prompt = || server.model.requests().pop().unwrap().to_string();
    turn(json!({ "instruction": "Hide the golden key." })).await;
    let assistant = turn(json!({ "role": "assistant" })).await;
    assert_eq!(assistant["context"], "overview", "it was told nothing before");
    let player = turn(json!({ "role": "player" })).await;
    for hidden in ["golden key", "The cellar is trapped", "Let them find the key"] {
        assert!(!prompt().contains(hidden), "{hidden}: {}", prompt());
    }
    assert_eq!(player["context"], "overview");
    // The game master's goes on where it was, and is told what the others did.
    let gm = turn(json!({})).await;
    assert_eq!(gm["context"], "delta");
    assert!(prompt().contains("golden key") && prompt().contains("The cellar is trapped"));
    assert!(session.last_told().contains("NewMessages"), "{}", session.last_told());
    // A session that becomes a player's, and then another player's.
    for (player, hidden) in [("player_alice", "They are at the door"), ("player_mallory", "I wait.")] {
        world.patch(&session.path(""), json!({ "role": "player", "player_id": player })).await.expect(200);
        turn(json!({})).await;
        assert!(!prompt().contains("golden key") && !prompt().contains(hidden), "{}", prompt());
    }
}

/// What other AIs say and roll is news; what one's own did is none, also when the frontend brings it back.
#[tokio::test(flavor = "multi_thread")]
async fn another_ais_words_are_news() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let gm = Session::open(&world, "gm").await;
    let player =
        Session::with(&world, json!({ "client_id": "pl", "role": "player", "player_id": "player_alice" })).await;
    gm.turn().await;
    assert_eq!(gm.delta().await, no_changes());
    gm.event("chat_message", json!({ "content": "Night falls.", "speaker": { "name": "GM" }, "author": "ai" })).await;
    assert_eq!(gm.delta().await, no_changes(), "it said so itself");
    server.model.set_script(Script::replies([
        Reply::tool("roll_dice", json!({ "rolls": [{ "formula": "1d20" }] })),
        Reply::text("I draw my sword."),
    ]));
    player.turn().await;
    let delta = gm.delta().await;
    assert_eq!(delta["NewMessages"], 2, "the roll and the words: {delta}");
    assert_eq!(delta["NewDiceRolls"].as_array().unwrap().len(), 1);
    assert_eq!(player.delta().await, no_changes());
}
