//! A stream of server-sent events, read event by event. Each event is compared with what `openapi.yaml` says of its stream.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{error::Elapsed, timeout};

use super::contract;

/// One event as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub name: String,
    pub id: String,
    pub data: Value,
}

/// An open stream.
pub struct Events {
    response: reqwest::Response,
    /// Of which not all bytes of a character may have come.
    read: Vec<u8>,
}

impl Events {
    /// Sends a request that is answered with a stream; resumes after `last`.
    pub async fn open(request: reqwest::RequestBuilder, last: Option<&str>) -> Self {
        let request = match last {
            Some(last) => request.header("last-event-id", last),
            None => request,
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
        assert_eq!(response.headers()["cache-control"], "no-store, no-transform");
        Self::of(response)
    }

    /// The stream that an answer is.
    pub fn of(response: reqwest::Response) -> Self {
        Self { response, read: Vec::new() }
    }

    /// A header of the answer.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name).map(|value| value.to_str().unwrap())
    }

    /// The next event; none when the stream has ended.
    pub async fn next(&mut self) -> Option<Event> {
        self.event(Duration::from_secs(120)).await.expect("nothing comes")
    }

    /// The next event; none when the stream has ended, or is silent for `patience`.
    pub async fn next_within(&mut self, patience: Duration) -> Option<Event> {
        self.event(patience).await.ok()?
    }

    async fn event(&mut self, patience: Duration) -> Result<Option<Event>, Elapsed> {
        loop {
            while let Some(end) = self.read.windows(2).position(|w| w == b"\n\n") {
                let event: Vec<u8> = self.read.drain(..end + 2).collect();
                let event = String::from_utf8(event).unwrap();
                let field = |name: &str| event.lines().find_map(|l| l.strip_prefix(name)).map(str::to_owned);
                if let (Some(name), Some(data)) = (field("event: "), field("data: ")) {
                    let id = field("id: ").unwrap_or_default();
                    let data: Value = serde_json::from_str(&data).unwrap();
                    let path = self.response.url().path();
                    contract::check_event(path, &name, &data).unwrap_or_else(|wrong| panic!("{wrong}"));
                    return Ok(Some(Event { name, id, data }));
                }
            }
            let Ok(Some(chunk)) = timeout(patience, self.response.chunk()).await? else { return Ok(None) };
            self.read.extend_from_slice(&chunk);
        }
    }

    /// Everything up to the end.
    pub async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}
