//! The ways by which words get into a prompt. Each puts a text where it stands and says whose turn then reads it.

use serde_json::{Value, json};

use super::model::Obedient;
use crate::support::{Answer, World};

/// What reads the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    Npc(&'static str),
    Owner,
    /// The session of a player's AI.
    Player,
    /// The session of the game master's AI, which knows the secrets.
    GameMaster,
    Rules,
    Planner,
}

/// Words that are put somewhere, and what the turn then asks.
pub struct Put {
    pub reader: Reader,
    pub action: String,
    pub session: Option<String>,
}

const BOB: &str = "innkeeper_bob";
const HELLO: &str = "Hello, abracadabra.";

fn to(reader: Reader) -> Put {
    Put { reader, action: HELLO.to_owned(), session: None }
}

fn bob() -> Put {
    to(Reader::Npc(BOB))
}

async fn session(world: &World<'_>, role: &str, more: Value) -> String {
    let mut body = json!({ "client_id": role, "role": role, "dice": "server" });
    if role == "player" {
        body["player_id"] = json!("player_alice");
    }
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.post("/sessions", body).await.expect(201).id()
}

fn at(reader: Reader, session: String, instruction: &str) -> Put {
    Put { reader, action: instruction.to_owned(), session: Some(session) }
}

async fn member(world: &World<'_>, row: &str, name: &str, value: Value) {
    world.patch(row, json!({ name: value })).await.expect(200);
}

async fn entry(world: &World<'_>, entry: Value) {
    let mut all = json!({ "title": "A rumour", "scope": "global", "content": "Nothing." });
    all.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
    world.post("/lore", all).await.expect(201);
}

/// Puts the words in their way.
pub async fn put(world: &World<'_>, model: &Obedient, way: &str, text: &str) -> Put {
    let npc = format!("/npcs/{BOB}");
    let owner = "/owners/town_council_owner";
    let alice = "/characters/player_alice";
    match way {
        "action" => Put { action: text.to_owned(), ..bob() },
        "history" => {
            world.bob("player_alice", text).await.expect(200);
            bob()
        }
        "earlier_answer" => {
            // Said by the model itself, and now part of what it said before.
            let words = text.replace("@@", "@");
            world.bob("player_alice", &format!("@@say {words}@@")).await.expect(200);
            bob()
        }
        "player_name" | "player_race" | "player_profession" | "player_location" => {
            member(world, alice, way.trim_start_matches("player_"), json!(text)).await;
            bob()
        }
        "npc_name" | "npc_description" | "npc_race" | "npc_profession" | "npc_location" | "npc_faction"
        | "npc_disposition" => {
            member(world, &npc, way.trim_start_matches("npc_"), json!(text)).await;
            bob()
        }
        "npc_personality" => {
            member(world, &npc, "personality_prompt", json!(text)).await;
            bob()
        }
        "tool_description" => {
            let tools = json!([{ "name": "NPC_memorize", "description": text.chars().take(1000).collect::<String>() }]);
            member(world, &npc, "available_tools", tools).await;
            bob()
        }
        "lore_content" => {
            entry(world, json!({ "content": text })).await;
            bob()
        }
        "lore_keyword" => {
            entry(world, json!({ "content": text, "activation": "keyword", "keys": ["abracadabra"] })).await;
            bob()
        }
        "lore_title" => {
            entry(world, json!({ "title": text })).await;
            bob()
        }
        "lore_tag" => {
            entry(world, json!({ "tags": [text] })).await;
            bob()
        }
        "lorebook" => {
            let book = json!({ "entries": { "0": { "uid": 0, "key": ["abracadabra"], "comment": "A rumour",
                "content": text, "constant": true, "disable": false } } });
            world.post("/import/lorebook", book).await.expect(200);
            bob()
        }
        "memory" | "memory_line" => {
            let memory = json!({ "player_id": "player_alice", "text": text });
            world.post(&format!("{npc}/memories"), memory).await.expect(201);
            bob()
        }
        "memory_moved" => {
            let memory = json!({ "player_id": "player_alice", "text": text });
            let memory = world.post("/npcs/harbour_ilse/memories", memory).await.expect(201).id();
            world.post(&format!("/memories/{memory}/move"), json!({ "holder_id": BOB })).await.expect(200);
            bob()
        }
        "card_description" | "card_personality" | "card_book" => {
            let words = |here: &str| if way == here { text } else { "Quiet." };
            let card = json!({ "spec": "chara_card_v2", "spec_version": "2.0", "data": {
                "name": "Zoe", "description": words("card_description"), "personality": words("card_personality"),
                "scenario": "", "first_mes": "", "mes_example": "", "creator_notes": "", "system_prompt": text,
                "post_history_instructions": text, "alternate_greetings": [], "tags": [], "creator": "", "character_version": "",
                "extensions": {}, "character_book": { "extensions": {}, "entries": [{ "keys": ["abracadabra"],
                    "content": words("card_book"), "extensions": {}, "enabled": true, "insertion_order": 1, "constant": true }] },
            } });
            world.post("/import/character-card", card).await.expect(200);
            to(Reader::Npc("zoe"))
        }
        "game_time" => {
            member(world, "", "game_time", json!(text)).await;
            bob()
        }
        "owner_name" | "owner_description" => {
            member(world, owner, way.trim_start_matches("owner_"), json!(text)).await;
            to(Reader::Owner)
        }
        "owner_personality" => {
            member(world, owner, "personality_prompt", json!(text)).await;
            to(Reader::Owner)
        }
        "owner_action" => Put { action: text.to_owned(), ..to(Reader::Owner) },
        "owner_memory" => {
            let memory = json!({ "player_id": "player_alice", "text": text });
            world.post(&format!("{owner}/memories"), memory).await.expect(201);
            to(Reader::Owner)
        }
        "rules_action" => Put { action: text.to_owned(), ..to(Reader::Rules) },
        "rules_name" => {
            member(world, &npc, "name", json!(text)).await;
            Put { action: "I climb the wall.".to_owned(), ..to(Reader::Rules) }
        }
        "planned_text" => Put { action: text.chars().take(400).collect(), ..to(Reader::Planner) },
        "mechanics" => {
            // What the rules decided goes into the next turn with the words of the action.
            let decided = json!({ "player_id": "player_alice", "action": text });
            world.post("/rules/resolve", decided).await;
            bob()
        }
        _ => at_a_session(world, model, way, text).await,
    }
}

/// Words that the AI of a session reads.
async fn at_a_session(world: &World<'_>, model: &Obedient, way: &str, text: &str) -> Put {
    let said = |content: &str, speaker: &str| {
        json!({ "events": [{ "type": "chat_message",
        "data": { "content": content, "speaker": { "name": speaker } } }] })
    };
    let (role, reader) =
        if way.starts_with("table_") { ("gm", Reader::GameMaster) } else { ("player", Reader::Player) };
    let none = json!({});
    let scene = |scene: &str, actor: &str| {
        json!({ "world_state": { "active_scene": { "id": "s", "name": scene,
        "tokens": [{ "id": "t", "name": actor, "actor_id": "player_alice", "is_player": true }] } } })
    };
    match way {
        "campaign_name" | "campaign_description" => {
            member(world, "", way.trim_start_matches("campaign_"), json!(text)).await;
            at(reader, session(world, role, none).await, HELLO)
        }
        "session_world_name" => at(reader, session(world, role, scene(text, "Alice")).await, HELLO),
        "session_actor_name" => at(reader, session(world, role, scene("Harbour", text)).await, HELLO),
        "session_instruction" | "table_instruction" => at(reader, session(world, role, none).await, text),
        "table_message" => {
            let id = session(world, role, none).await;
            world
                .post("/messages", json!({ "content": text, "author": "player", "player_id": "player_alice" }))
                .await
                .expect(201);
            at(reader, id, "@@call get_message_history limit=20@@")
        }
        "table_found" => {
            entry(world, json!({ "content": format!("rumour {text}"), "activation": "keyword", "keys": ["unsaid"] }))
                .await;
            at(reader, session(world, role, none).await, "@@call search_lore query=rumour@@")
        }
        "session_chat" | "table_chat" | "session_history" | "session_speaker" => {
            let id = session(world, role, none).await;
            let events = format!("/sessions/{id}/events");
            // What comes after the first completed turn is told as news.
            world.post(&format!("/sessions/{id}/turns"), json!({})).await.expect(200);
            let words = if way == "session_speaker" { said("Well met.", text) } else { said(text, "Ann") };
            world.post(&events, words).await.expect(200);
            if way == "session_history" {
                world.post(&format!("/sessions/{id}/turns"), json!({})).await.expect(200);
            }
            at(reader, id, HELLO)
        }
        other => panic!("no way called {other}; the model was asked {} times", model.asked().len()),
    }
}

/// The turn that reads the words.
pub async fn turn(world: &World<'_>, put: &Put, mode: &str) -> Answer {
    let action = &put.action;
    let body = json!({ "player_id": "player_alice", "action": action, "reply_mode": mode });
    match put.reader {
        Reader::Npc(npc) => world.post(&format!("/npcs/{npc}/turns"), body).await,
        Reader::Owner => world.post("/owners/town_council_owner/turns", body).await,
        Reader::Rules => world.post("/rules/resolve", body).await,
        Reader::Planner => world.post("/act", json!({ "player_id": "player_alice", "message": action })).await,
        Reader::Player | Reader::GameMaster => {
            let path = format!("/sessions/{}/turns", put.session.as_deref().unwrap());
            world.post(&path, json!({ "instruction": action, "reply_mode": mode })).await
        }
    }
}
