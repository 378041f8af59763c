//! One process of a test binary: starts it, follows what its tests do, and ends it if a test hangs.

use std::{
    collections::VecDeque,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader, Split},
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

use crate::binaries::Binary;

/// How many lines of standard error are kept for the report of a process that died.
const ERROR_LINES_MAX: usize = 100;
/// How long the last lines of a process that has ended may take to arrive. Its children may hold the pipe open for ever.
const LAST_LINES: Duration = Duration::from_secs(2);

/// The order of the tests: always the same one, for the same tests.
const SHUFFLE_SEED: u64 = 1;

/// What became of a test.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Passed,
    /// With what it printed.
    Failed(String),
    /// Marked with `#[ignore]`.
    Skipped,
}

/// A test that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Finished {
    pub name: String,
    pub verdict: Verdict,
    pub seconds: f64,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It ran all of its tests.
    Whole,
    /// It ended by itself before that. With a description for people.
    Died(String),
    /// Tests ran for too long, and it was ended. Names them.
    Hung(Vec<String>),
}

/// What a process did.
#[derive(Debug)]
pub(crate) struct Ended {
    pub finished: Vec<Finished>,
    /// Tests that had begun when the process ended and did not hang.
    pub interrupted: Vec<String>,
    pub end: End,
}

/// A line that libtest prints with `--format=json`.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    event: String,
    name: Option<String>,
    stdout: Option<String>,
    message: Option<String>,
    exec_time: Option<f64>,
}

/// The names of the tests that the arguments select.
///
/// # Errors
/// A sentence, if the binary cannot list its tests.
pub(crate) async fn list(binary: &Binary, arguments: &[String]) -> Result<Vec<String>, String> {
    let listed = Command::new(&binary.path)
        .current_dir(&binary.folder)
        .args(["--list", "--format=terse"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|error| cannot_start(&binary.path, &error))?;
    if !listed.status.success() {
        let said = String::from_utf8_lossy(&listed.stderr).into_owned();
        return Err(format!("{} cannot list its tests: {said}", binary.path.display()));
    }
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Runs a test binary until it ends or one of its tests has run for `hang_after`. `tell` learns of each test that ends.
///
/// # Errors
/// A sentence, if the binary cannot be started or somebody interrupts the run.
pub(crate) async fn run(
    binary: &Binary,
    arguments: &[String],
    hang_after: Duration,
    tell: &mut dyn FnMut(&Finished),
) -> Result<Ended, String> {
    let mut child = Command::new(&binary.path)
        .current_dir(&binary.folder)
        .args(["--format=json", "-Zunstable-options", "--report-time"])
        // By name, all that need a browser would run side by side, and so would all that wait.
        .arg(format!("--shuffle-seed={SHUFFLE_SEED}"))
        .args(arguments)
        .env("CARGO_MANIFEST_DIR", &binary.folder)
        .env("RUSTC_BOOTSTRAP", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that it is ended together with the programs that its tests have started.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| cannot_start(&binary.path, &error))?;
    let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("a process has no output".to_owned());
    };
    let errors = follow_errors(errors);
    let mut watch = Watch { running: Vec::new(), finished: Vec::new(), is_whole: false, heard: Instant::now(), tell };
    let end = watch.follow(&mut child, BufReader::new(output).split(b'\n'), hang_after).await;
    group.end();
    let end = match end? {
        Stop::Exited(_) if watch.is_whole => End::Whole,
        Stop::Exited(status) => End::Died(format!("the process ended with {status}\n{}", errors.last().await)),
        Stop::TooLong => {
            let mut hung = watch.take_older_than(hang_after);
            if hung.is_empty() && !watch.is_whole {
                // The process itself does: all that it runs is suspect.
                hung = watch.take_older_than(Duration::ZERO);
            }
            if hung.is_empty() { End::Whole } else { End::Hung(hung) }
        }
    };
    let interrupted = watch.running.into_iter().map(|(name, _)| name).collect();
    Ok(Ended { finished: watch.finished, interrupted, end })
}

fn cannot_start(path: &Path, error: &std::io::Error) -> String {
    format!("cannot start {}: {error}", path.display())
}

/// Why a process is no longer followed.
enum Stop {
    Exited(ExitStatus),
    TooLong,
}

/// What is known of a process while it runs.
struct Watch<'a> {
    running: Vec<(String, Instant)>,
    finished: Vec<Finished>,
    /// The process has said that all its tests have ended.
    is_whole: bool,
    /// When its last event arrived.
    heard: Instant,
    tell: &'a mut dyn FnMut(&Finished),
}

impl Watch<'_> {
    async fn follow<R: AsyncRead + Unpin>(
        &mut self,
        child: &mut Child,
        mut lines: Split<BufReader<R>>,
        hang_after: Duration,
    ) -> Result<Stop, String> {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
        let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
        let mut is_open = true;
        loop {
            let oldest = self.running.iter().map(|(_, since)| *since).min().unwrap_or(self.heard);
            tokio::select! {
                line = lines.next_segment(), if is_open => match line {
                    Ok(Some(line)) => self.read(&line),
                    Ok(None) | Err(_) => is_open = false,
                },
                status = child.wait() => {
                    while let Ok(Ok(Some(line))) = timeout(LAST_LINES, lines.next_segment()).await {
                        self.read(&line);
                    }
                    return status.map(Stop::Exited).map_err(|error| error.to_string());
                },
                () = sleep_until(oldest + hang_after) => return Ok(Stop::TooLong),
                _ = interrupt.recv() => return Err("interrupted".to_owned()),
                _ = terminate.recv() => return Err("terminated".to_owned()),
            }
        }
    }

    /// Reads a line. What is no event was printed by a test that is not captured.
    fn read(&mut self, line: &[u8]) {
        let line = &*String::from_utf8_lossy(line);
        let (printed, event) = line.find(r#"{ "type":"#).map_or((line, ""), |at| line.split_at(at));
        let Ok(event) = serde_json::from_str::<Event>(event) else {
            println!("{line}");
            return;
        };
        if !printed.is_empty() {
            println!("{printed}");
        }
        self.heard = Instant::now();
        match (event.kind.as_str(), event.event.as_str(), event.name) {
            ("suite", "ok" | "failed", _) => self.is_whole = true,
            ("test", "started", Some(name)) => self.running.push((name, Instant::now())),
            ("test", "ok", Some(name)) => self.finish(name, Verdict::Passed, event.exec_time),
            ("test", "ignored", Some(name)) => self.finish(name, Verdict::Skipped, None),
            ("test", "failed", Some(name)) => {
                let message = event.message.map(|message| format!("{message}\n")).unwrap_or_default();
                let output = format!("{message}{}", event.stdout.unwrap_or_default());
                self.finish(name, Verdict::Failed(output), event.exec_time);
            }
            _ => {}
        }
    }

    fn finish(&mut self, name: String, verdict: Verdict, seconds: Option<f64>) {
        self.running.retain(|(running, _)| *running != name);
        let finished = Finished { name, verdict, seconds: seconds.unwrap_or_default() };
        (self.tell)(&finished);
        self.finished.push(finished);
    }

    fn take_older_than(&mut self, age: Duration) -> Vec<String> {
        let old = self.running.extract_if(.., |(_, since)| since.elapsed() >= age);
        old.map(|(name, _)| name).collect()
    }
}

/// The process group of a test binary.
struct Group(Option<Pid>);

impl Group {
    /// Ends what is left of the group.
    fn end(&self) {
        if let Some(id) = self.0 {
            // It may be gone already.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

/// The last part of standard error, all of which is also printed.
struct Errors {
    kept: Arc<Mutex<VecDeque<String>>>,
    task: JoinHandle<()>,
}

fn follow_errors(errors: impl AsyncRead + Unpin + Send + 'static) -> Errors {
    let kept = Arc::new(Mutex::new(VecDeque::new()));
    let lines = kept.clone();
    let task = tokio::spawn(async move {
        let mut segments = BufReader::new(errors).split(b'\n');
        while let Ok(Some(line)) = segments.next_segment().await {
            let line = String::from_utf8_lossy(&line).into_owned();
            eprintln!("{line}");
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push_back(line);
            if lines.len() > ERROR_LINES_MAX {
                lines.pop_front();
            }
        }
    });
    Errors { kept, task }
}

impl Errors {
    async fn last(self) -> String {
        let _ = timeout(LAST_LINES, self.task).await;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}
