//! Turns that a frontend asks for over its connection.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::Socket;
use crate::support::{Prepared, Server, World, sse::Events};

const TALE: &str = "The gate stands open, and nobody has seen who opened it.";

/// What the turn tells, up to its end; other frames are left out, rolls are answered.
async fn told(socket: &mut Socket, request: &str) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let mut frame = socket.next().await;
        match frame["type"].as_str().unwrap() {
            "turn_event" => {
                assert_eq!(frame["request_id"], request);
                let event = frame["data"].take();
                let name = event["event"].as_str().unwrap().to_owned();
                events.push(event);
                if matches!(name.as_str(), "turn.completed" | "turn.failed" | "turn.cancelled") {
                    return events;
                }
            }
            "execute_roll" => {
                let result =
                    json!({ "formula": "1d20", "total": 17, "dice": [{ "faces": 20, "value": 17, "kept": true }] });
                let id = frame["request_id"].clone();
                let answer = json!({ "type": "roll_result", "request_id": id, "data": { "results": [result] } });
                socket.send(answer).await;
            }
            "error" => panic!("{frame}"),
            _ => {}
        }
    }
}

fn text(events: &[Value]) -> String {
    events.iter().filter_map(|event| event["data"]["text"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_told_to_who_asked_for_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (mut socket, connected) =
        Socket::connect(&server.url, &tenant.credential, json!({ "dice": "frontend", "role": "gm" })).await;
    let roll = Reply::tool("roll_dice", json!({ "rolls": [{ "formula": "1d20" }] })).with_text("A roll.");
    server.model.set_script(Script::replies([roll, Reply::text(TALE).delta_chars(4)]));
    socket.send(json!({ "type": "turn_request", "request_id": "t1", "data": { "instruction": "Go on." } })).await;
    let events = told(&mut socket, "t1").await;
    let turn = &events.last().unwrap()["data"]["turn"];
    assert_eq!((&turn["kind"], &turn["entity_id"]), (&json!("gm"), &connected["session_id"]));
    assert_eq!(
        (text(&events), turn["narrative"].as_str()),
        (format!("A roll.\n\n{TALE}"), Some(&*format!("A roll.\n\n{TALE}")))
    );
    let result = &turn["tool_calls"][0]["result"];
    assert_eq!((&result["source"], &result["results"][0]["total"]), (&json!("frontend"), &json!(17)), "{turn}");
    let kept = world.get(&format!("/turns/{}", turn["id"].as_str().unwrap())).await.expect(200).body;
    assert_eq!(kept["status"], "succeeded");
}

/// Asks, and gives the error.
async fn refused(world: &World<'_>, credential: &str, role: &str) -> Value {
    let (mut socket, _) =
        Socket::connect(&world.client.server.url, credential, json!({ "client_id": format!("c-{role}") })).await;
    socket.send(json!({ "type": "turn_request", "request_id": "t1" })).await;
    let frame = socket.next().await;
    assert_eq!((&frame["type"], &frame["request_id"]), (&json!("error"), &json!("t1")), "{frame}");
    frame["data"]["code"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_ask_and_when() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let play = tenant.with_scopes(&[edge::caller::Scope::Read, edge::caller::Scope::Play]).await;
    assert_eq!(refused(&world, &play.credential, "play").await, "forbidden");
    let alice = tenant.token(json!({ "campaign": world.slug, "player_id": "player_alice" })).await;
    assert_eq!(refused(&world, &alice.credential, "alice").await, "forbidden");

    let (mut socket, _) = Socket::connect(&server.url, &tenant.credential, json!({})).await;
    server.model.set_script(Script::always(Reply::text(TALE).held()));
    socket.send(json!({ "type": "turn_request", "request_id": "t1" })).await;
    assert_eq!(socket.next().await["data"]["event"], "turn.started");
    socket.send(json!({ "type": "turn_request", "request_id": "t2" })).await;
    let busy = socket.next().await;
    assert_eq!((&busy["request_id"], &busy["data"]["code"]), (&json!("t2"), &json!("turn_in_progress")));
    server.model.let_go(1);
    assert_eq!(text(&told(&mut socket, "t1").await), TALE);
    server.model.set_script(Script::always(Reply::status(400)));
    socket.send(json!({ "type": "turn_request", "request_id": "t3" })).await;
    let failed = told(&mut socket, "t3").await.pop().unwrap();
    assert_eq!(
        (&failed["event"], &failed["data"]["error"]["code"]),
        (&json!("turn.failed"), &json!("llm_unavailable"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_on_when_its_frontend_vanishes() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    model.set_script(Script::always(Reply::text(TALE).delta_chars(3).chunk_bytes(100).chunk_delay_ms(20)));
    let (one, other) = (prepared.start(&model).await, prepared.start(&model).await);
    let (mut socket, _) = Socket::connect(one.url(), &prepared.credential, json!({})).await;
    socket.send(json!({ "type": "turn_request", "request_id": "t1" })).await;
    let turn = socket.next().await["data"]["data"]["turn_id"].as_str().unwrap().to_owned();
    let piece = socket.next().await;
    drop(socket);
    let request = other.request(reqwest::Method::GET, &format!("/turns/{turn}/events"));
    let rest = Events::open(request, piece["data"]["id"].as_str()).await.rest().await;
    let rest_text: String = rest.iter().filter_map(|event| event.data["text"].as_str()).collect();
    assert_eq!(format!("{}{rest_text}", piece["data"]["data"]["text"].as_str().unwrap()), TALE);
    assert_eq!(rest.last().unwrap().name, "turn.completed");
}

/// A player's words that a frontend sends to the game master's AI act in the fight, in the character's turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_chat_request_acts_in_the_fight() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let armed = json!({ "weapons": [{ "name": "Longsword" }], "weapon_proficiencies": ["martial weapons"] });
    world.patch("/characters/player_alice", armed).await.expect(200);
    let fight = json!({ "participants": [
        { "id": "alice", "character_id": "player_alice", "initiative": 20 },
        { "id": "thug", "name": "Thug", "hp": 900_000, "max_hp": 900_000, "armor_class": 1, "is_enemy": true, "initiative": 10 },
    ] });
    let fight = world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    let attacks = async || {
        let view = world.get(&format!("/encounters/{fight}?verbosity=detailed")).await.expect(200).body;
        let all = view["participants"].as_array().unwrap().clone();
        all.into_iter().find(|p| p["id"] == "alice").unwrap()["statistics"]["attacks_made"].clone()
    };
    let (mut socket, _) =
        Socket::connect(&server.url, &tenant.credential, json!({ "dice": "server", "role": "gm" })).await;
    let strike = json!({ "encounter_id": fight, "action": "attack", "participant_id": "alice", "target_id": "thug", "weapon": "Longsword" });
    let strike = Reply::tool("encounter_action", strike);
    server.model.set_script(Script::replies([strike.clone(), Reply::text("A hit!"), strike, Reply::text("Not yet.")]));
    let mut asks = async |request: &str| {
        let words = json!({ "instruction": "Alice says: I attack the thug with my longsword." });
        socket.send(json!({ "type": "chat_request", "request_id": request, "data": words })).await;
        told(&mut socket, request).await.pop().unwrap()["data"]["turn"].take()
    };
    let turn = asks("c1").await;
    assert_eq!((&turn["tool_calls"][0]["status"], attacks().await), (&json!("succeeded"), json!(1)), "{turn}");
    world.post(&format!("/encounters/{fight}/actions"), json!({ "action": "advance_turn" })).await.expect(200);
    let turn = asks("c2").await;
    assert_eq!(turn["tool_calls"][0]["error"]["code"], "not_your_turn", "{turn}");
    assert_eq!(attacks().await, json!(1));
}
