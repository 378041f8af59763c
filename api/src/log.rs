//! The program's log on standard error. No request waits for the log's reader.
//!
//! A thread of its own writes the lines. If the reader has exited, the disk is full, or the reader is so slow that too many lines wait,
//! lines are lost and counted, and nothing else happens. Never write to standard error in any other way while the server runs: a write
//! can block for as long as the reader likes, and `eprintln!` panics if it fails.

use std::{
    io::{self, Write},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use crate::settings::{self, Given};
use base::{metrics::LOG_LINES_LOST, text::json_on_one_line};

/// How many lines may wait to be written, and how many bytes.
const LINES_MAX: usize = 8192;
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long the end of the program waits for the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// The time between two attempts to put the flush into a full queue.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// The log of this process.
static LOG: OnceLock<Log> = OnceLock::new();

/// What the writing thread gets.
enum Message {
    Line(Vec<u8>),
    /// The sender is dropped when everything before this is written.
    Flush(SyncSender<()>),
}

/// The queue of lines, which is the writer of the log.
#[derive(Clone)]
struct Log {
    queue: SyncSender<Message>,
    /// The bytes of the lines that wait.
    bytes: Arc<AtomicUsize>,
}

/// Starts the log of this process: JSON lines for a server, text of at least `warn` for a command, unless `RUST_LOG` says otherwise.
/// The last lines are written when the guard is dropped.
#[must_use]
pub fn start(is_serve: bool, given: &Given) -> FlushGuard {
    let default =
        if is_serve { settings::named(settings::RUST_LOG).map_or("info", |setting| setting.default) } else { "warn" };
    let asked = given.text(settings::RUST_LOG).ok().flatten().and_then(settings::said);
    let filter = asked.and_then(|asked| EnvFilter::try_new(for_all_crates(&asked)).ok());
    let filter = filter.unwrap_or_else(|| default.into());
    let log = LOG.get_or_init(|| Log::to(io::stderr(), is_serve)).clone();
    // The library reports its own errors with `eprintln!`.
    let format = tracing_subscriber::fmt().with_env_filter(filter).with_writer(log.clone()).log_internal_errors(false);
    // If the process already has a subscriber, this fails, and that is fine.
    let _ = if is_serve { format.json().flatten_event(true).try_init() } else { format.try_init() };
    if is_serve {
        log_panics();
    }
    FlushGuard(log)
}

/// Writes a line of text between those of the log.
pub fn line(text: &str) {
    let line = format!("{text}\n");
    match LOG.get() {
        Some(mut log) => log.write_all(line.as_bytes()),
        None => io::stderr().write_all(line.as_bytes()),
    }
    // The exit status says it too.
    .unwrap_or_default();
}

/// Waits for the last lines when it is dropped, but not long.
pub struct FlushGuard(Log);

impl Drop for FlushGuard {
    #[expect(clippy::disallowed_methods, reason = "no task runs any more")]
    fn drop(&mut self) {
        let until = Instant::now() + FLUSH_TIMEOUT;
        let (done, written) = sync_channel(0);
        let mut flush = Message::Flush(done);
        while let Err(TrySendError::Full(back)) = self.0.queue.try_send(flush) {
            if Instant::now() >= until {
                return;
            }
            flush = back;
            thread::sleep(RETRY_INTERVAL);
        }
        // It ends with an error when the sender is dropped.
        let _ = written.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

impl Log {
    /// A log that is written to `out`.
    fn to(out: impl Write + Send + 'static, is_json: bool) -> Self {
        let (queue, messages) = sync_channel(LINES_MAX);
        let bytes = Arc::new(AtomicUsize::new(0));
        let waiting_bytes = bytes.clone();
        let writer = thread::Builder::new().name("log".to_owned());
        // Without a thread, nobody receives, and every line is lost.
        let _ = writer.spawn(move || write(out, is_json, &messages, &waiting_bytes));
        Self { queue, bytes }
    }
}

fn write(mut out: impl Write, is_json: bool, messages: &Receiver<Message>, waiting_bytes: &AtomicUsize) {
    let mut last_failed = false;
    while let Ok(message) = messages.recv() {
        let line = match message {
            Message::Line(line) => line,
            Message::Flush(done) => {
                drop(done);
                continue;
            }
        };
        waiting_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        // A part of the line before may have been written.
        let mut whole = if last_failed { "\n".to_owned() } else { String::new() };
        let text = String::from_utf8_lossy(&line);
        // A value of JSON may have what some reader takes for the end of a line.
        whole.push_str(&if is_json { json_on_one_line(text.trim_end_matches('\n')) } else { text.trim_end().into() });
        whole.push('\n');
        last_failed = out.write_all(whole.as_bytes()).is_err();
        if last_failed {
            LOG_LINES_LOST.inc();
        }
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> &'a Self {
        self
    }
}

impl Write for &Log {
    /// Takes one line. It never fails and never waits.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let waiting = self.bytes.fetch_add(line.len(), Ordering::Relaxed);
        let fits = waiting + line.len() <= BYTES_MAX;
        if !fits || self.queue.try_send(Message::Line(line.to_vec())).is_err() {
            self.bytes.fetch_sub(line.len(), Ordering::Relaxed);
            LOG_LINES_LOST.inc();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reports panics in the log, with their place. By default they are written to standard error, which may block.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string).unwrap_or_default();
        let said = panic.payload_as_str().unwrap_or("no text");
        tracing::error!(at, said, "a panic began");
    }));
}

/// A log filter in which a level for `tavernkeep` counts for all crates of the program. A level that is given for one
/// of them by its own name is kept, because the last directive for a crate counts.
fn for_all_crates(asked: &str) -> String {
    const CRATES: [&str; 9] = ["base", "db", "edge", "world", "ai", "pages", "llm", "migration", "pgcluster"];
    let level = asked.split(',').find_map(|directive| directive.trim().strip_prefix("tavernkeep="));
    let ours = level.into_iter().flat_map(|level| CRATES.map(|name| format!("{name}={level}")));
    ours.chain([asked.to_owned()]).collect::<Vec<_>>().join(",")
}
