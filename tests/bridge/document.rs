//! `docs/bridge.md`: its examples are played against a real server, in their order.

use std::path::Path;

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::Socket;
use crate::support::{Client, Server, contract};

/// A fenced block: what is done beside it, and its lines.
struct Block {
    deed: String,
    lines: Vec<(bool, String)>,
}

fn blocks(document: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in document.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(rest)) => {
                if let Some(deed) = rest.strip_prefix("frames") {
                    open = Some(Block { deed: deed.trim().to_owned(), lines: Vec::new() });
                }
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                let (sign, frame) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
                assert!(matches!(sign, "<" | ">"), "{line}");
                block.lines.push((sign == ">", frame.to_owned()));
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Whether a frame is as the document has it; `…` stands for anything.
fn same(shown: &Value, frame: &Value) -> bool {
    match (shown, frame) {
        (Value::String(s), _) if s == "…" => true,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|frame| same(v, frame)))
        }
        (a, b) => a == b,
    }
}

struct Player<'a> {
    tenant: &'a Client<'a>,
    socket: Socket,
    session: String,
    request: String,
    message: String,
    sent: Vec<String>,
    got: Vec<String>,
}

impl Player<'_> {
    async fn play(&mut self, lines: &[(bool, String)]) {
        for (sends, text) in lines {
            let text = text.replace("TOKEN", &self.tenant.credential).replace("REQUEST", &self.request);
            let shown: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
            let kind = shown["type"].as_str().unwrap().to_owned();
            if *sends {
                if kind != "dance" {
                    contract::check_frame("FrontendFrame", &shown).unwrap_or_else(|wrong| panic!("{wrong}"));
                }
                self.socket.send(shown).await;
                self.sent.push(kind);
                continue;
            }
            let mut frame = self.socket.next().await;
            // What an AI says in a turn is sent to everyone, whenever the journal is read.
            while frame["type"] != kind && frame["data"]["message"]["turn_id"].is_string() {
                frame = self.socket.next().await;
            }
            assert!(frame.as_object_mut().unwrap().remove("timestamp").is_some());
            assert!(same(&shown, &frame), "the document shows\n{shown}\nand the server sent\n{frame}");
            self.got.push(kind);
            let text = |pointer: &str| frame.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            self.request = text("/request_id");
            self.session = Some(text("/data/session_id")).filter(|id| !id.is_empty()).unwrap_or(self.session.clone());
            self.message = Some(text("/data/message/id")).filter(|id| !id.is_empty()).unwrap_or(self.message.clone());
        }
    }

    async fn block(&mut self, block: &Block) {
        let campaign = "/v1/campaigns/port-town";
        let (deed, rest) = block.deed.split_once(' ').unwrap_or((&block.deed, "{}"));
        let body: Value = serde_json::from_str(rest).unwrap();
        let tenant = self.tenant;
        match deed {
            "" | "turn" => self.play(&block.lines).await,
            "correct" => {
                let said = json!({ "player_id": "player_alice", "action": "Hello!" });
                let turn = tenant.post(&format!("{campaign}/npcs/innkeeper_bob/turns"), said).await.expect(200).id();
                tenant.patch(&format!("{campaign}/turns/{turn}"), body).await.expect(200);
                self.play(&block.lines).await;
            }
            "delete" => {
                tenant.delete(&format!("{campaign}/messages/{}", self.message)).await.expect(204);
                self.play(&block.lines).await;
            }
            "world-state" => {
                let path = format!("{campaign}/sessions/{}/world-state", self.session);
                tenant.send(tenant.request(reqwest::Method::PUT, &path).json(&body)).await.expect(200);
                self.play(&block.lines).await;
            }
            tool => {
                let call = json!({ "arguments": body, "session_id": self.session });
                let path = format!("{campaign}/tools/{tool}");
                let (answer, ()) = tokio::join!(tenant.post(&path, call), self.play(&block.lines));
                let refused = block.lines.iter().any(|(sends, l)| *sends && l.contains("\"type\": \"error\""));
                answer.expect(if refused { 502 } else { 200 });
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_document_are_true() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    server.model.set_script(Script::always(Reply::text("A gull cries.").delta_chars(100)));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/bridge.md");
    let blocks = blocks(&std::fs::read_to_string(path).unwrap());
    let mut player = Player {
        tenant: &tenant,
        socket: Socket::open(&server.url).await,
        session: String::new(),
        request: String::new(),
        message: String::new(),
        sent: Vec::new(),
        got: Vec::new(),
    };
    for block in &blocks {
        player.block(block).await;
    }
    // No type of frame is without an example, but for events that are told of in docs/sessions.md.
    for kind in ai::frontends::frames::IN.iter().filter(|kind| **kind != "event") {
        assert!(player.sent.iter().any(|sent| sent == kind), "{kind}");
    }
    for kind in [
        "connected",
        "ack",
        "pong",
        "error",
        "execute_roll",
        "combat_state_refresh",
        "chat_response",
        "turn_event",
        "message_changed",
        "message_deleted",
        "world_state",
    ] {
        assert!(player.got.iter().any(|got| got == kind), "{kind}");
    }
}
