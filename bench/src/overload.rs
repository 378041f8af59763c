//! `load overload`: sends three times what the server can handle, for reads, messages, turns, and turns of busy pairs.
//!
//! It first finds the server's capacity with an open loop at rising rates. Then periods at that rate and at three times that
//! rate alternate, because machines change their speed within seconds and the two must be measured at the same time. Server and
//! PostgreSQL run on one half of the cores, generator and model on the other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::time::sleep;

use crate::{
    Failure,
    client::{self, Connection, request},
    open::{self, Load, Outcome},
    process,
    report::Report,
    world::World,
};

const ACTION: &str = "Good morning to you";
const CONNECTIONS: usize = 800;
/// How often each of the two rates is measured.
const ROUNDS: u32 = 6;

/// Measures each kind of request for `time`. `server` is the server's process id.
///
/// # Errors
/// Socket errors.
pub async fn measure(report: &mut Report, world: &World, server: u32, time: Duration) -> Result<(), Failure> {
    let all: Vec<Vec<u8>> =
        world.turns(1, ACTION).concat().into_iter().chain(world.strangers(1, ACTION).concat()).collect();
    let busy: Vec<Vec<u8>> = all.iter().take(8).cloned().collect();
    let body = json!({ "type": "chat", "speaker": { "name": "Bench" }, "content": "The harbour watch counts every crate twice." });
    let message = request("POST", "/v1/campaigns/port-town/messages", &world.key, &body.to_string());
    // Let each pair talk once, so that its prompt is cached.
    client::once(&world.addr, &world.strangers(8, ACTION)).await?;
    // A model that answers runs on the generator's cores.
    for (name, requests, is_awake) in [
        ("reads", world.reads(1).concat(), true),
        ("messages", vec![message], true),
        ("turns", all, false),
        ("busy pairs", busy, false),
    ] {
        let load = Load { addr: world.addr.clone(), requests, rate: 0.0, time, connections: CONNECTIONS, is_awake };
        kind(report, world, server, name, load).await?;
    }
    Ok(())
}

async fn kind(report: &mut Report, world: &World, server: u32, name: &str, load: Load) -> Result<(), Failure> {
    let rate = peak(&load).await?;
    sleep(Duration::from_secs(2)).await;
    let before = Counts::read(world).await?;
    let resident = process::resident_mib(server);
    let highest = Highest::watch(server);
    let (mut peak, mut outcome) = (Outcome::default(), Outcome::default());
    for _ in 0..ROUNDS {
        for (times, sum) in [(1.0, &mut peak), (3.0, &mut outcome)] {
            sum.add(open::drive(Load { rate: times * rate, time: load.time / ROUNDS, ..load.clone() }).await?);
            sleep(Duration::from_millis(500)).await;
        }
    }
    let grown = highest.end().await - resident;
    sleep(Duration::from_secs(1)).await;
    let spent = Counts::read(world).await?;
    tell(report, name, peak.goodput(), &outcome);
    report.at_most(&format!("{name}: memory grown by"), (grown, "MiB"), 100.0);
    let thrown = (spent.answered - before.answered) - (spent.succeeded - before.succeeded);
    report.at_most(&format!("{name}: model calls thrown away"), (thrown, ""), 0.0);
    Ok(())
}

fn tell(report: &mut Report, name: &str, peak: f64, outcome: &Outcome) {
    let ratio = outcome.goodput() / peak;
    let (a, b) = (format!("{peak:.0}/s"), format!("{:.0}/s", outcome.goodput()));
    report.line(&format!("{name}: at 3 x peak"), [&a, &b], (ratio, "x"), ">= 0.9", ratio >= 0.9);
    let refused = format!("{} refused", outcome.refused);
    let p99 = outcome.refusal_ms(0.99);
    report.line(
        &format!("{name}: refusals, p99"),
        [&refused, &format!("p50 {:.1} ms", outcome.refusal_ms(0.5))],
        (p99, "ms"),
        "<= 50",
        p99 <= 50.0,
    );
    let odd: usize = outcome.odd.iter().map(|(_, count)| count).sum();
    let which = format!("{:?}", outcome.odd);
    report.line(&format!("{name}: outside of the contract"), ["", &which], (odd as f64, ""), "<= 0", odd == 0);
    let share = outcome.unsent as f64 / (outcome.sent + outcome.unsent).max(1) as f64;
    report.line(&format!("{name}: not sent by the generator"), ["", ""], (share * 100.0, "%"), "", true);
}

/// The highest rate that succeeds per second: a closed loop finds the range, and an open loop with rising rates the
/// value.
async fn peak(load: &Load) -> Result<f64, Failure> {
    let clients: Vec<Vec<Vec<u8>>> =
        (0..32).map(|c| load.requests.iter().skip(c % load.requests.len()).step_by(32).cloned().collect()).collect();
    let closed = client::drive(&load.addr, &clients, Duration::from_secs(4)).await?;
    let about = (closed.requests - closed.failed) as f64 / closed.seconds;
    let mut best = 0.0f64;
    for share in [0.6, 0.8, 1.0, 1.2] {
        let step = Load { rate: share * about, time: Duration::from_secs(4), ..load.clone() };
        best = best.max(open::drive(step).await?.goodput());
        sleep(Duration::from_secs(1)).await;
    }
    Ok(best)
}

/// Counters of the server.
struct Counts {
    /// Answered model calls.
    answered: f64,
    /// Turns that succeeded.
    succeeded: f64,
}

impl Counts {
    async fn read(world: &World) -> Result<Self, Failure> {
        let mut connection = Connection::open(&world.addr).await?;
        let (_, text) = connection.send(&request("GET", "/metrics", &world.key, "")).await?;
        let text = String::from_utf8_lossy(text).into_owned();
        let sum = |name: &str, label: &str| -> f64 {
            let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(label));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
        };
        Ok(Self {
            answered: sum("tavernkeep_llm_calls_total{", "outcome=\"ok\""),
            succeeded: sum("tavernkeep_turns_total{", "status=\"succeeded\""),
        })
    }
}

/// The most memory that a watched process has used.
struct Highest {
    ends: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<f64>,
}

impl Highest {
    fn watch(process: u32) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let ended = ends.clone();
        let task = tokio::spawn(async move {
            let mut most = 0.0f64;
            while !ended.load(Ordering::Relaxed) {
                most = most.max(process::resident_mib(process));
                sleep(Duration::from_millis(200)).await;
            }
            most
        });
        Self { ends, task }
    }

    async fn end(self) -> f64 {
        self.ends.store(true, Ordering::Relaxed);
        self.task.await.unwrap_or_default()
    }
}
