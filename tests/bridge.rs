//! The bridge: real WebSockets against a real server.

mod connect;
mod dice;
mod document;
mod events;
mod example;
mod fights;
mod frames;
mod idle;
mod pushes;
mod replicas;
mod takeover;
mod turns;

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Error, Message, client::IntoClientRequest},
};

use crate::support::contract;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A frontend's end of a connection.
pub struct Socket(pub WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    /// Opens a socket to the campaign `port-town`, and says nothing.
    pub async fn open(url: &str) -> Self {
        Self::open_from(url, "port-town", None).await
    }

    /// Opens a socket from a page of this origin.
    pub async fn open_from(url: &str, campaign: &str, origin: Option<&str>) -> Self {
        let url = format!("{}/v1/campaigns/{campaign}/bridge", url.replacen("http", "ws", 1));
        let mut request = url.into_client_request().unwrap();
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        Self(connect_async(request).await.unwrap().0)
    }

    /// Opens a socket and connects; also what the server said to it.
    pub async fn connect(url: &str, token: &str, more: Value) -> (Self, Value) {
        let mut socket = Self::open(url).await;
        let mut connect = json!({ "type": "connect", "client_id": "vtt", "token": token });
        connect.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        socket.send(connect).await;
        let mut connected = socket.next().await;
        assert_eq!(connected["type"], "connected", "{connected}");
        let data = connected["data"].take();
        (socket, data)
    }

    pub async fn send(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// The next frame.
    pub async fn next(&mut self) -> Value {
        self.maybe().await.unwrap_or_else(|(code, why)| panic!("closed: {code} {why}"))
    }

    /// The next frame, or code and reason of the close; 1006 if there is none.
    pub async fn maybe(&mut self) -> Result<Value, (u16, String)> {
        loop {
            match tokio::time::timeout(PATIENCE, self.0.next()).await.expect("the server says something") {
                Some(Ok(Message::Text(text))) => {
                    let frame = serde_json::from_str(&text).unwrap();
                    contract::check_frame("ServerFrame", &frame).unwrap_or_else(|wrong| panic!("{wrong}"));
                    return Ok(frame);
                }
                Some(Ok(Message::Close(Some(close)))) => return Err((close.code.into(), close.reason.to_string())),
                Some(Ok(Message::Close(None))) | None | Some(Err(Error::ConnectionClosed | Error::Protocol(_))) => {
                    return Err((1006, String::new()));
                }
                Some(Err(Error::Io(e))) => return Err((1006, e.to_string())),
                Some(Ok(_)) => {}
                Some(Err(e)) => panic!("{e}"),
            }
        }
    }

    /// Waits until the server looks whether somebody is there; frames before are passed over.
    pub async fn beat(&mut self) {
        let beat = async { while !matches!(self.0.next().await, Some(Ok(Message::Ping(_)))) {} };
        tokio::time::timeout(PATIENCE, beat).await.expect("the server asks");
    }

    /// The next frame of a type; others are passed over.
    pub async fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.next().await;
            if frame["type"] == kind {
                return frame;
            }
        }
    }

    /// Waits until the server closes; frames before are passed over.
    pub async fn closed(&mut self) -> u16 {
        loop {
            if let Err((code, _)) = self.maybe().await {
                return code;
            }
        }
    }

    /// Answers the next `execute_roll` with these results.
    pub async fn roll(&mut self, results: Value) -> Value {
        let asked = self.next_of("execute_roll").await;
        self.send(json!({ "type": "roll_result", "request_id": asked["request_id"], "data": { "results": results } }))
            .await;
        asked
    }
}

/// A fight as a frontend tells of it.
fn fight(round: i64) -> Value {
    json!({ "combat_state": { "in_combat": true, "combat_id": "c1", "name": "Ambush", "round": round, "turn": 1, "combatants": [
        { "name": "Goblin", "initiative": 9, "is_player": false, "is_current_turn": true, "token_id": "t2", "hp": 7, "max_hp": 7 }] } })
}
