//! The real program as a child process, to be killed, stopped and measured from outside.

use std::{
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child as Process, Command},
};

use super::{Answer, PATIENT, SECRET, Server, database::Database, until};

/// Settings of a server that soon finds what dead servers left behind.
pub const SWEEPS: [(&str, &str); 3] =
    [("RUST_LOG", "error"), ("TAVERNKEEP_SWEEP_MS", "100"), ("TAVERNKEEP_REACTION_LEASE_SECONDS", "4")];

/// A database with a world in it, and a key to it; no server runs.
pub struct Prepared {
    pub db: Database,
    pub credential: String,
}

impl Prepared {
    /// Makes the world of [`super::World`] in the campaign `port-town`.
    pub async fn new() -> Self {
        Self::on(Database::create().await).await
    }

    /// The same in a database that has its schema.
    pub async fn on(db: Database) -> Self {
        let server = Server::on(db, &[]).await;
        let credential = {
            let tenant = server.tenant("acme").await;
            tenant.world().await;
            tenant.credential.clone()
        };
        Self { db: server.stop().await, credential }
    }

    /// Starts the program on the database; `model` answers its turns.
    pub async fn start(&self, model: &rehearsal::Rehearsal) -> Child {
        self.start_with(model, &[("RUST_LOG", "error")]).await
    }

    /// Starts it with more in its environment.
    pub async fn start_with(&self, model: &rehearsal::Rehearsal, env: &[(&str, &str)]) -> Child {
        self.start_program("tavernkeep", model, env).await
    }

    /// Starts a program that also counts its allocations ([`Child::allocated`]).
    pub async fn start_counted(&self, model: &rehearsal::Rehearsal, env: &[(&str, &str)]) -> Child {
        self.start_program("counted", model, env).await
    }

    /// Starts it with a log that goes to `log`.
    pub async fn start_logging(&self, model: &rehearsal::Rehearsal, log: Stdio, env: &[(&str, &str)]) -> Child {
        self.start_process("tavernkeep", model, log, env).await
    }

    async fn start_program(&self, name: &str, model: &rehearsal::Rehearsal, env: &[(&str, &str)]) -> Child {
        self.start_process(name, model, Stdio::piped(), env).await
    }

    async fn start_process(
        &self,
        name: &str,
        model: &rehearsal::Rehearsal,
        errors: Stdio,
        env: &[(&str, &str)],
    ) -> Child {
        let mut process = Command::new(program(name))
            .arg("serve")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("DATABASE_URL", &self.db.url)
            .env("DATABASE_CONNECTIONS_MAX", "8")
            .env("TAVERNKEEP_SECRET_KEY", SECRET)
            .env("TAVERNKEEP_BIND", "127.0.0.1:0")
            .env("TAVERNKEEP_WORKERS", "1")
            .env("TAVERNKEEP_SHUTDOWN_SECONDS", "10")
            .env("LLM_API_ENDPOINT", model.base_url())
            .env("LLM_MODEL_NAME", "rehearsal")
            .envs(PATIENT)
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = loop {
            let line = lines.next_line().await.unwrap().expect("the server said where it answers");
            if let Some((_, rest)) = line.split_once("answers at ") {
                break rest.split_whitespace().next().unwrap().to_owned();
            }
        };
        // Somebody has to read on, or a full pipe stops the child.
        let log = Arc::new(Mutex::new(String::new()));
        tokio::spawn(keep(lines, log.clone()));
        if let Some(errors) = process.stderr.take() {
            tokio::spawn(keep(BufReader::new(errors).lines(), log.clone()));
        }
        let http = reqwest::Client::builder().timeout(Duration::from_secs(180)).build().unwrap();
        Child { process, url, credential: self.credential.clone(), http, log }
    }
}

async fn keep<R: AsyncBufRead + Unpin>(mut lines: Lines<R>, log: Arc<Mutex<String>>) {
    while let Ok(Some(line)) = lines.next_line().await {
        let mut log = log.lock().unwrap();
        log.push_str(&line);
        log.push('\n');
    }
}

/// A running program.
pub struct Child {
    process: Process,
    url: String,
    credential: String,
    http: reqwest::Client,
    log: Arc<Mutex<String>>,
}

impl Child {
    /// All it has printed since it said where it answers.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Where it answers.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it holds in memory.
    pub fn memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id().unwrap())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// How often it has allocated memory so far, and how many bytes. Only for [`Prepared::start_counted`].
    pub async fn allocated(&mut self) -> (u64, u64) {
        let log = self.log.clone();
        let said = || log.lock().unwrap().matches("allocated ").count();
        let before = said();
        self.process.stdin.as_mut().unwrap().write_all(b"\n").await.unwrap();
        until("the counts", async || said() > before).await;
        let log = self.log();
        let line = log.lines().rfind(|line| line.starts_with("allocated ")).unwrap();
        let mut numbers = line.split(' ').filter_map(|word| word.parse().ok());
        (numbers.next().unwrap(), numbers.next().unwrap())
    }

    /// `kill -9`, and waits until it is gone.
    pub async fn kill(&mut self) {
        self.process.kill().await.unwrap();
    }

    /// Asks it to stop.
    pub async fn terminate(&self) {
        let pid = self.process.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    }

    /// Waits until it has stopped; whether it went in order.
    pub async fn stopped(&mut self) -> bool {
        tokio::time::timeout(Duration::from_secs(60), self.process.wait()).await.unwrap().unwrap().success()
    }

    /// GET below the campaign, or anywhere if the path begins with two slashes.
    pub async fn get(&self, path: &str) -> Answer {
        self.read(path).await.unwrap()
    }

    /// [`Self::get`] that outlives this borrow.
    pub fn read(&self, path: &str) -> impl Future<Output = reqwest::Result<Answer>> + Send + use<> {
        send(self.credential.clone(), self.http.get(self.place(path)))
    }

    /// POST below the campaign, or anywhere if the path begins with two slashes; it outlives this borrow.
    pub fn post(&self, path: &str, body: Value) -> impl Future<Output = reqwest::Result<Answer>> + Send + use<> {
        send(self.credential.clone(), self.http.post(self.place(path)).json(&body))
    }

    fn place(&self, path: &str) -> String {
        let path = path
            .strip_prefix('/')
            .filter(|p| p.starts_with('/'))
            .map_or_else(|| format!("/v1/campaigns/port-town{path}"), str::to_owned);
        format!("{}{path}", self.url)
    }

    /// A request below the campaign, to be changed and sent.
    pub fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        let url = format!("{}/v1/campaigns/port-town{path}", self.url);
        self.http.request(method, url).bearer_auth(&self.credential)
    }

    /// A request for a turn of an NPC for Alice; it outlives this borrow.
    pub fn turn(
        &self,
        npc: &str,
        action: &str,
        key: Option<&str>,
    ) -> impl Future<Output = reqwest::Result<Answer>> + Send + use<> {
        let url = format!("{}/v1/campaigns/port-town/npcs/{npc}/turns", self.url);
        let mut request = self.http.post(url).json(&json!({ "player_id": "player_alice", "action": action }));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        send(self.credential.clone(), request)
    }

    /// A counter of its metrics.
    pub async fn counter(&self, name: &str) -> u64 {
        let metrics = self.get("//metrics").await.expect(200).text;
        let line = metrics.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')).unwrap();
        line.parse::<f64>().unwrap() as u64
    }

    /// What an NPC remembers about Alice.
    pub async fn memories(&self, npc: &str) -> Vec<String> {
        let list = self.get(&format!("/npcs/{npc}/memories?player_id=player_alice&limit=200")).await.expect(200);
        list.items().iter().map(|m| m["text"].as_str().unwrap().to_owned()).collect()
    }
}

async fn send(credential: String, request: reqwest::RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.bearer_auth(credential).send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await?;
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    Ok(Answer { status, headers, text, body })
}

/// A real program, which is built beside the tests.
pub fn program(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push(name);
    assert!(path.exists(), "build it first: cargo build --workspace --bins");
    path
}

/// The real program's command line: its status and what it printed as JSON.
pub async fn operator(url: &str, arguments: &[&str]) -> (bool, Value) {
    let done = Command::new(program("tavernkeep"))
        .args(arguments)
        .arg("--json")
        .env_clear()
        .env("DATABASE_URL", url)
        .env("TAVERNKEEP_SECRET_KEY", SECRET)
        .output()
        .await
        .unwrap();
    (done.status.success(), serde_json::from_slice(&done.stdout).unwrap_or_default())
}
