//! Work that never rests: each worker sends one request after the other, and repeats one that was not answered, with its
//! key, through whichever server answers. What was acknowledged is written into a ledger.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::stage::Stage;
use crate::support::sse;

/// How long a request may be repeated before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(90);
/// Answers outside of the contract that are kept to be shown.
const STRANGE_MAX: usize = 5;
/// Problems that say: not now.
const NOT_NOW: [&str; 9] = [
    "unavailable",
    "llm_unavailable",
    "llm_timeout",
    "idempotency_in_flight",
    "turn_in_progress",
    "rate_limited",
    "conflict",
    "precondition_failed",
    "quota_exceeded",
];

/// What the servers acknowledged.
#[derive(Default)]
pub struct Ledger {
    /// Texts of memories.
    pub memories: Vec<String>,
    /// Actions of turns, and the turns' ids.
    pub turns: BTreeMap<String, String>,
    /// Turns that a 202 told of.
    pub told: Vec<String>,
    /// The last hit points of each worker's character, and how often they were set.
    pub edits: BTreeMap<String, (i64, i64)>,
    /// The priorities that all lore was given.
    pub bulk_edits: Vec<i64>,
    /// Campaigns that were imported or forked.
    pub campaigns: Vec<String>,
    /// Answers that the contract does not have in a fault.
    pub strange: Vec<String>,
    /// How long the longest single answer took.
    pub slowest: Duration,
}

/// Whom workers work for.
#[derive(Clone)]
pub struct Party {
    urls: Arc<Vec<String>>,
    credential: String,
    http: reqwest::Client,
    pub ledger: Arc<Mutex<Ledger>>,
    over: Arc<AtomicBool>,
    number: Arc<AtomicU64>,
    /// How far the follower has heard.
    heard: Arc<AtomicI64>,
}

/// An answer that counts.
pub struct Done {
    pub status: StatusCode,
    pub body: Value,
}

impl Party {
    fn of(stage: &Stage) -> Self {
        // A worker takes its own connections to the grave with a server, and does not wait for ever for a silent one.
        let http = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().unwrap();
        Self {
            urls: Arc::new(stage.urls()),
            credential: stage.credential().to_owned(),
            http,
            ledger: Arc::default(),
            over: Arc::default(),
            number: Arc::default(),
            heard: Arc::default(),
        }
    }

    fn next(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// A request below `/v1`, to one of the servers.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let nth = usize::try_from(self.next()).unwrap() % self.urls.len();
        self.http.request(method, format!("{}/v1{path}", self.urls[nth])).bearer_auth(&self.credential)
    }

    /// One try: its answer if it counts.
    pub async fn once(&self, request: RequestBuilder) -> Option<Done> {
        let began = Instant::now();
        let response = request.send().await.ok()?;
        let (status, kind) = (response.status(), response.headers().get("content-type").cloned());
        let body: Value = serde_json::from_str(&response.text().await.ok()?).unwrap_or(Value::Null);
        let mut ledger = self.ledger.lock().unwrap();
        ledger.slowest = ledger.slowest.max(began.elapsed());
        if status.is_success() {
            return Some(Done { status, body });
        }
        let is_problem = kind.is_some_and(|kind| kind.as_bytes() == b"application/problem+json");
        if !is_problem || !NOT_NOW.contains(&body["code"].as_str().unwrap_or_default()) {
            ledger.strange.push(format!("{status}: {body}"));
            ledger.strange.truncate(STRANGE_MAX);
        }
        None
    }

    /// Tries until it is done.
    async fn until_done(&self, what: &str, request: impl Fn() -> RequestBuilder) -> Done {
        let began = Instant::now();
        loop {
            if let Some(done) = self.once(request()).await {
                return done;
            }
            assert!(began.elapsed() < PATIENCE, "never answered: {what}\n{:?}", self.ledger.lock().unwrap().strange);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// A POST under a key of its own, until it is done.
    async fn post(&self, path: &str, body: &Value) -> Done {
        let key = format!("key-{}", self.next());
        let request = || self.request(Method::POST, path).header("idempotency-key", &key).json(body);
        self.until_done(path, request).await
    }

    async fn memories(self) {
        while !self.is_over() {
            let text = format!("Mark {}.", self.next());
            let body = json!({ "player_id": "player_mallory", "text": text });
            let done = self.post("/campaigns/port-town/npcs/harbour_ilse/memories", &body).await;
            assert_eq!(done.status, 201);
            self.ledger.lock().unwrap().memories.push(text);
        }
    }

    /// Turns in which the rehearsal model remembers who pays.
    async fn turns(self, npc: &'static str, player: &'static str) {
        while !self.is_over() {
            let action = format!("I pay {} coins to {npc}.", self.next());
            let body = json!({ "player_id": player, "action": action });
            let done = self.post(&format!("/campaigns/port-town/npcs/{npc}/turns"), &body).await;
            assert_eq!(done.body["status"], "succeeded", "{}", done.body);
            let id = done.body["id"].as_str().unwrap().to_owned();
            self.ledger.lock().unwrap().turns.insert(action, id);
        }
    }

    /// Turns that are told of before they run; whatever becomes of them, they are there.
    async fn told(self) {
        while !self.is_over() {
            let body = json!({ "player_id": "player_mallory", "action": format!("I nod {} times.", self.next()) });
            let request = self.request(Method::POST, "/campaigns/port-town/npcs/harbour_ilse/turns");
            if let Some(told) = self.once(request.header("prefer", "respond-async").json(&body)).await {
                assert_eq!(told.status, 202);
                self.ledger.lock().unwrap().told.push(told.body["turn_id"].as_str().unwrap().to_owned());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Changes with `If-Match`: whether one whose answer was lost was made, the row itself says.
    async fn edits(self, slug: String) {
        let made =
            self.post("/campaigns/port-town/characters", &json!({ "name": slug, "slug": slug, "max_hp": 500 })).await;
        assert_eq!(made.status, 201);
        let path = format!("/campaigns/port-town/characters/{slug}");
        let (mut version, mut hp) = (1, 500);
        while !self.is_over() {
            let wanted = i64::try_from(self.next() % 400).unwrap() + 1;
            if wanted == hp {
                continue;
            }
            let began = Instant::now();
            loop {
                let patch = self.request(Method::PATCH, &path).header("if-match", format!("\"v{version}\""));
                let done = self.once(patch.json(&json!({ "hp": wanted }))).await;
                if done.is_some() {
                    break;
                }
                let now = self.until_done(&path, || self.request(Method::GET, &path)).await.body;
                if (now["version"].as_i64(), now["hp"].as_i64()) == (Some(version + 1), Some(wanted)) {
                    break;
                }
                assert_eq!(now["version"], version, "somebody else wrote: {now}");
                assert!(began.elapsed() < PATIENCE, "never changed");
            }
            (version, hp) = (version + 1, wanted);
            self.ledger.lock().unwrap().edits.insert(slug.clone(), (hp, version));
        }
    }

    /// All lore at once, again and again.
    async fn bulk(self) {
        while !self.is_over() {
            let priority = i64::try_from(self.next() % 1000).unwrap();
            let body = json!({ "filter": {}, "changes": { "priority": { "set": priority } } });
            self.post("/campaigns/port-town/lore/bulk", &body).await;
            self.ledger.lock().unwrap().bulk_edits.push(priority);
        }
    }

    /// Documents imported, and the world forked.
    async fn copies(self) {
        while !self.is_over() {
            let slug = format!("copy-{}", self.next());
            self.post("/campaigns/port-town/fork", &json!({ "slug": slug })).await;
            self.ledger.lock().unwrap().campaigns.push(slug.clone());
            let path = format!("/campaigns/{slug}/export");
            let document = self.until_done(&path, || self.request(Method::GET, &path)).await.body;
            let twin = format!("twin-{}", self.next());
            self.post(&format!("/campaigns/import?slug={twin}"), &document).await;
            self.ledger.lock().unwrap().campaigns.push(twin);
        }
    }

    /// Follows the campaign's changes, through one server after another; each comes once and in order. Gives the last.
    async fn follow(self, upto: Arc<Mutex<Option<i64>>>) -> i64 {
        let mut last = 0;
        loop {
            let request =
                self.request(Method::GET, "/campaigns/port-town/events").header("last-event-id", last.to_string());
            // A server that is gone, or away, is asked again.
            if let Ok(response) = request.send().await
                && response.status() == StatusCode::OK
            {
                let mut events = sse::Events::of(response);
                while let Some(event) = events.next_within(Duration::from_secs(2)).await {
                    let Ok(seq) = event.id.parse::<i64>() else { continue };
                    assert_eq!(seq, last + 1, "the stream left something out or told it twice");
                    last = seq;
                    self.heard.store(last, Ordering::Relaxed);
                }
            }
            if upto.lock().unwrap().is_some_and(|end| last >= end) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Workers at work.
pub struct Work {
    pub party: Party,
    workers: Vec<JoinHandle<()>>,
    follower: JoinHandle<i64>,
    upto: Arc<Mutex<Option<i64>>>,
}

impl Work {
    /// Lets the workers begin, and waits until each kind of work was done once.
    pub async fn begin(stage: &Stage) -> Self {
        let party = Party::of(stage);
        let upto = Arc::default();
        let mut workers = vec![
            tokio::spawn(party.clone().bulk()),
            tokio::spawn(party.clone().copies()),
            tokio::spawn(party.clone().told()),
            tokio::spawn(party.clone().turns("innkeeper_bob", "player_alice")),
            tokio::spawn(party.clone().turns("harbour_ilse", "player_alice")),
            tokio::spawn(party.clone().turns("innkeeper_bob", "player_mallory")),
        ];
        workers.extend((0..2).map(|_| tokio::spawn(party.clone().memories())));
        workers.extend((0..2).map(|n| tokio::spawn(party.clone().edits(format!("worker_{n}")))));
        let follower = tokio::spawn(party.clone().follow(Arc::clone(&upto)));
        let work = Self { party, workers, follower, upto };
        work.goes_on().await;
        work
    }

    /// What was done so far: memories, turns, edits, what the follower heard; then what takes long: bulk edits, copies.
    fn done(&self) -> [usize; 6] {
        let ledger = self.party.ledger.lock().unwrap();
        let edits: i64 = ledger.edits.values().map(|(_, version)| version).sum();
        let heard = self.party.heard.load(Ordering::Relaxed);
        let count = |n: i64| usize::try_from(n).unwrap();
        [
            ledger.memories.len(),
            ledger.turns.len(),
            count(edits),
            count(heard),
            ledger.bulk_edits.len(),
            ledger.campaigns.len(),
        ]
    }

    /// Waits until more of every kind was done.
    pub async fn goes_on(&self) {
        self.more(0..6, PATIENCE).await;
    }

    /// Waits until more of each kind was done that takes no time of its own; that is soon.
    pub async fn goes_on_within(&self, patience: Duration) {
        self.more(0..4, patience).await;
    }

    /// Waits until the follower has heard more.
    pub async fn is_heard_within(&self, patience: Duration) {
        self.more(3..4, patience).await;
    }

    async fn more(&self, kinds: Range<usize>, patience: Duration) {
        let before = self.done();
        let began = Instant::now();
        while self.done()[kinds.clone()].iter().zip(&before[kinds.clone()]).any(|(now, before)| now <= before) {
            let stopped = self.workers.iter().any(JoinHandle::is_finished);
            assert!(!stopped && began.elapsed() < patience, "work stands still: {before:?}, {:?}", self.done());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Lets each worker end what it does, and checks that it did; the follower hears everything up to the end.
    pub async fn settle(self, stage: &Stage) -> Party {
        self.party.over.store(true, Ordering::Relaxed);
        for worker in self.workers {
            worker.await.unwrap();
        }
        let mut db = stage.cluster.superuser().await;
        let head = "SELECT h.seq FROM feed_head h JOIN campaign c ON c.id = h.campaign_id WHERE c.slug = 'port-town'";
        let end: i64 = sqlx::query_scalar(head).fetch_one(&mut db).await.unwrap();
        *self.upto.lock().unwrap() = Some(end);
        let heard = tokio::time::timeout(PATIENCE, self.follower).await.expect("the stream ends too early").unwrap();
        assert!(heard >= end);
        self.party
    }
}
