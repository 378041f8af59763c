//! A model endpoint that answers with the bytes that a test gives it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use llm::{Endpoint, Secret};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The key that endpoints are asked with.
pub const KEY: &str = "sk-canary-0123456789";

/// What an endpoint does with a request.
#[derive(Clone)]
pub enum Act {
    /// Status line and headers after it, then a body with its length.
    Answer(&'static str, String),
    Later(Duration, String),
    /// Headers, then a piece of the body every so often, for ever.
    Drip(Duration, usize),
    Hang,
    /// Nothing until [`Scripted::let_go`], and the connection closes.
    Hold,
    Close,
    CloseInBody,
    /// These bytes, and the connection closes.
    Raw(Vec<u8>),
    /// What a rule makes of the request's body, as [`Act::Raw`].
    By(fn(&Value) -> String),
    /// These bytes, and then a comment of an event stream now and then, for ever.
    Open(Vec<u8>),
}

/// An endpoint with a script: one act for each request, the last one repeated.
pub struct Scripted {
    pub url: String,
    pub requests: Arc<Mutex<Vec<String>>>,
    pub connections: Arc<AtomicUsize>,
    script: Arc<Mutex<Vec<Act>>>,
    held: watch::Sender<bool>,
}

impl Scripted {
    pub async fn start(script: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let script = Arc::new(Mutex::new(script));
        let (held, holds) = watch::channel(true);
        let (seen, opened, acts) = (Arc::clone(&requests), Arc::clone(&connections), Arc::clone(&script));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                opened.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, Arc::clone(&seen), Arc::clone(&acts), holds.clone()));
            }
        });
        Self { url, requests, connections, script, held }
    }

    /// Ends all that [`Act::Hold`] holds.
    pub fn let_go(&self) {
        self.held.send_replace(false);
    }

    /// Forgets what it was asked, and goes on with another script.
    pub fn follow(&self, script: Vec<Act>) {
        let mut requests = self.requests.lock().unwrap();
        *self.script.lock().unwrap() = script;
        requests.clear();
    }

    pub async fn answering(body: impl Into<String>) -> Self {
        Self::start(vec![Act::Answer("200 OK", body.into())]).await
    }

    pub fn endpoint(&self) -> Endpoint {
        Endpoint::trusted(&self.url, Some(Secret::new(KEY)), "gpt-test").unwrap()
    }

    /// The bodies of the requests.
    pub fn bodies(&self) -> Vec<Value> {
        self.seen()
            .iter()
            .map(|request| serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap())
            .collect()
    }

    /// The requests, heads included.
    pub fn seen(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

async fn serve(
    mut stream: TcpStream,
    seen: Arc<Mutex<Vec<String>>>,
    script: Arc<Mutex<Vec<Act>>>,
    mut holds: watch::Receiver<bool>,
) -> Option<()> {
    while let Some(request) = read_request(&mut stream).await {
        let body = serde_json::from_str(request.split_once("\r\n\r\n")?.1).unwrap_or_default();
        let act = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            let script = script.lock().unwrap();
            script[(seen.len() - 1).min(script.len() - 1)].clone()
        };
        let answer =
            |status: &str, body: &str| format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        match act {
            Act::Answer(status, body) => stream.write_all(answer(status, &body).as_bytes()).await.ok()?,
            Act::Later(wait, body) => {
                tokio::time::sleep(wait).await;
                stream.write_all(answer("200 OK", &body).as_bytes()).await.ok()?;
            }
            Act::Drip(every, size) => {
                stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.ok()?;
                loop {
                    let chunk = format!("{size:x}\r\n{}\r\n", " ".repeat(size));
                    stream.write_all(chunk.as_bytes()).await.ok()?;
                    tokio::time::sleep(every).await;
                }
            }
            Act::Hang => std::future::pending().await,
            Act::Hold => {
                let _ = holds.wait_for(|held| !held).await;
                return None;
            }
            Act::Close => return None,
            Act::CloseInBody => {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"choices\"").await.ok()?;
                return None;
            }
            Act::Raw(bytes) => {
                stream.write_all(&bytes).await.ok()?;
                return None;
            }
            Act::By(rule) => {
                stream.write_all(rule(&body).as_bytes()).await.ok()?;
                return None;
            }
            Act::Open(bytes) => {
                stream.write_all(&bytes).await.ok()?;
                loop {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    stream.write_all(b": ping\n\n").await.ok()?;
                }
            }
        }
    }
    None
}
