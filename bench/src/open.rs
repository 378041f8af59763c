//! An open-loop generator: requests are due by the clock, whether or not those before them were answered.
//!
//! It has a thread of its own and keep-alive connections, each with one request at a time. What is due while all are taken was not
//! sent, which is the generator's own failure and counted apart. It never waits for an answer before it sends.

use std::{
    cell::RefCell,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::{sync::mpsc, task::LocalSet, time::sleep};

use crate::{Failure, client::Connection};

/// What is sent at what rate for how long.
#[derive(Clone, Debug)]
pub struct Load {
    pub addr: String,
    /// Sent one after the other, again and again.
    pub requests: Vec<Vec<u8>>,
    /// Requests a second.
    pub rate: f64,
    pub time: Duration,
    /// Connections, and so requests under way at once.
    pub connections: usize,
    /// Whether the generator never sleeps. One that sleeps has to be woken by whoever answers it, with an interrupt that is
    /// charged to the server, and more to its cheapest answers than to others.
    pub is_awake: bool,
}

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub seconds: f64,
    pub sent: usize,
    /// Due while every connection was taken.
    pub unsent: usize,
    pub done: usize,
    /// Refused in the contract's words: `unavailable`, or that the pair is busy.
    pub refused: usize,
    /// Milliseconds that refusals took, in order.
    pub refusals_ms: Vec<f64>,
    /// Answers that the contract does not know, and how many of each; 0 is a connection that was closed.
    pub odd: Vec<(u16, usize)>,
}

impl Outcome {
    /// What was done a second.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        self.done as f64 / self.seconds
    }

    /// The time of a share of the refusals, in milliseconds.
    #[must_use]
    pub fn refusal_ms(&self, share: f64) -> f64 {
        let at = (self.refusals_ms.len() as f64 * share) as usize;
        self.refusals_ms.get(at.min(self.refusals_ms.len().saturating_sub(1))).copied().unwrap_or(0.0)
    }

    /// Counts another load's outcome with this one's.
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

/// Sends a load from a thread of its own and waits for its answers.
///
/// # Errors
/// If nothing can be connected to.
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
    // What was sent is answered, or its connection closed.
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
    // A connection that was idle may have been closed at any moment: a request that it lost is sent once more.
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
