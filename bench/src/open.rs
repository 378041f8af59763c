//! An open-loop generator: it sends requests by the clock, whether or not earlier ones were answered.
//!
//! It has its own thread and keep-alive connections, each with one request at a time. A request that is due while all connections
//! are taken is not sent. That is the generator's own failure and is counted separately. The generator never waits for an answer
//! before it sends.

use std::{
    cell::RefCell,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::{sync::mpsc, task::LocalSet, time::sleep};

use crate::{Failure, client::Connection};

/// What to send, at what rate, for how long.
#[derive(Clone, Debug)]
pub struct Load {
    pub addr: String,
    /// Sent one after the other, repeatedly.
    pub requests: Vec<Vec<u8>>,
    /// Requests per second.
    pub rate: f64,
    pub time: Duration,
    /// The number of connections, which is also the limit of concurrent requests.
    pub connections: usize,
    /// Whether the generator never sleeps. A sleeping generator must be woken by an interrupt, which is charged to the
    /// server that answers. That costs the server's cheapest answers the most.
    pub is_awake: bool,
}

/// The result of a load.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub seconds: f64,
    pub sent: usize,
    /// Requests that were due while every connection was taken.
    pub unsent: usize,
    pub done: usize,
    /// Rejected as documented: `unavailable`, or because the pair is busy.
    pub refused: usize,
    /// The time of each rejection in milliseconds, in order.
    pub refusals_ms: Vec<f64>,
    /// Undocumented answers and their numbers; 0 is a closed connection.
    pub odd: Vec<(u16, usize)>,
}

impl Outcome {
    /// Successful requests per second.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        self.done as f64 / self.seconds
    }

    /// A quantile of the rejections' times, in milliseconds.
    #[must_use]
    pub fn refusal_ms(&self, share: f64) -> f64 {
        let at = (self.refusals_ms.len() as f64 * share) as usize;
        self.refusals_ms.get(at.min(self.refusals_ms.len().saturating_sub(1))).copied().unwrap_or(0.0)
    }

    /// Adds another load's outcome to this one.
    pub fn add(&mut self, other: Self) {
        self.seconds += other.seconds;
        self.sent += other.sent;
        self.unsent += other.unsent;
        self.done += other.done;
        self.refused += other.refused;
        self.refusals_ms.extend(other.refusals_ms);
        self.refusals_ms.sort_by(f64::total_cmp);
        for (status, count) in other.odd {
            self.count_odd(status, count);
        }
    }

    fn count_odd(&mut self, status: u16, more: usize) {
        match self.odd.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += more,
            None => self.odd.push((status, more)),
        }
    }

    fn note(&mut self, status: u16, answer: &[u8], time: Duration) {
        let says = |words: &str| answer.windows(words.len()).any(|w| w == words.as_bytes());
        let refused = match status {
            200..300 => {
                self.done += 1;
                return;
            }
            503 => says(r#""code":"unavailable""#),
            409 => says(r#""code":"turn_in_progress""#),
            _ => false,
        };
        if refused {
            self.refused += 1;
            self.refusals_ms.push(time.as_secs_f64() * 1000.0);
            return;
        }
        self.count_odd(status, 1);
    }
}

/// Sends a load from its own thread and waits for the answers.
///
/// # Errors
/// If it cannot connect.
pub async fn drive(load: Load) -> Result<Outcome, Failure> {
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        LocalSet::new().block_on(&runtime, generate(load))
    });
    tokio::task::spawn_blocking(move || thread.join().map_err(|_| "the generator panicked")?).await?
}

async fn generate(load: Load) -> Result<Outcome, Failure> {
    let outcome = Rc::new(RefCell::new(Outcome::default()));
    let requests = Rc::new(load.requests);
    let (free_again, mut freed) = mpsc::unbounded_channel();
    let mut lines = Vec::new();
    for n in 0..load.connections {
        let (line, due) = mpsc::unbounded_channel();
        let mut connection = Some(Connection::open(&load.addr).await?);
        let (addr, free_again) = (load.addr.clone(), free_again.clone());
        let (requests, outcome) = (requests.clone(), outcome.clone());
        tokio::task::spawn_local(async move {
            let mut due: mpsc::UnboundedReceiver<(usize, Instant)> = due;
            while let Some((request, at)) = due.recv().await {
                one(&addr, &mut connection, &requests[request], at, &outcome).await;
                let _ = free_again.send(n);
            }
        });
        lines.push(line);
    }
    let mut free: Vec<usize> = (0..lines.len()).collect();
    let (started, mut next) = (Instant::now(), 0usize);
    while started.elapsed() < load.time {
        let due = (started.elapsed().as_secs_f64() * load.rate) as usize;
        while let Ok(line) = freed.try_recv() {
            free.push(line);
        }
        while next < due {
            match free.pop() {
                Some(line) => {
                    outcome.borrow_mut().sent += 1;
                    lines[line].send((next % requests.len(), Instant::now()))?;
                }
                None => outcome.borrow_mut().unsent += 1,
            }
            next += 1;
        }
        match load.is_awake {
            true => tokio::task::yield_now().await,
            false => sleep(Duration::from_millis(1)).await,
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    // Wait until every request is answered or its connection is closed.
    while free.len() < lines.len() {
        match tokio::time::timeout(Duration::from_secs(30), freed.recv()).await {
            Ok(Some(line)) => free.push(line),
            _ => return Err(format!("{} requests were never answered", lines.len() - free.len()).into()),
        }
    }
    let mut outcome = outcome.take();
    outcome.seconds = seconds;
    outcome.refusals_ms.sort_by(f64::total_cmp);
    Ok(outcome)
}

async fn one(addr: &str, connection: &mut Option<Connection>, request: &[u8], at: Instant, outcome: &RefCell<Outcome>) {
    // An idle connection may have been closed at any moment. A request that was lost with it is sent once more.
    for is_last in [connection.is_none(), true] {
        if connection.is_none() {
            *connection = Connection::open(addr).await.ok();
        }
        let Some(open) = connection else { break };
        match open.send(request).await {
            Ok((status, answer)) => return outcome.borrow_mut().note(status, answer, at.elapsed()),
            Err(_) => *connection = None,
        }
        if is_last {
            break;
        }
    }
    outcome.borrow_mut().note(0, b"", at.elapsed());
}
