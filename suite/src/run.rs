//! The order of things: every test once, those that measure by themselves at the end, then those that failed again, alone.

use std::time::{Duration, Instant};

use crate::{
    binaries::Binary,
    process::{self, End, Ended, Finished, Verdict},
};

/// How often a test that failed runs again.
const RERUNS: usize = 2;

/// What to run, and how.
pub(crate) struct Request {
    pub binaries: Vec<Binary>,
    /// Only tests whose names contain one of these; all, if there is none.
    pub filters: Vec<String>,
    /// Options for the test binaries.
    pub arguments: Vec<String>,
    /// Tests whose names contain one of these run alone, after the others.
    pub alone: Vec<String>,
    pub hang_after: Duration,
    /// How many tests may fail at first. If more do, nothing is run again.
    pub reruns_max: usize,
}

/// What became of a test in the end.
#[derive(Debug, PartialEq)]
pub(crate) enum Status {
    Passed,
    /// It failed at first, with this output, and passed when it ran alone.
    Flaky(String),
    /// It failed each time. With its first output.
    Failed(String),
    Skipped,
}

/// A test and what became of it.
#[derive(Debug)]
pub(crate) struct TestResult {
    /// The index of its binary in the request.
    binary: usize,
    pub name: String,
    pub status: Status,
    /// How long it ran the first time.
    pub seconds: f64,
}

/// A part of the run, for the table of times.
#[derive(Debug)]
pub(crate) struct Part {
    /// Such as `it` or `it, alone`.
    pub name: String,
    pub tests: usize,
    pub took: Duration,
}

/// What became of every test, and where the time went.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub results: Vec<TestResult>,
    pub parts: Vec<Part>,
}

/// Runs everything.
///
/// # Errors
/// A sentence, if a binary cannot be run at all or somebody interrupts the run.
pub(crate) async fn run(request: &Request) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    for (index, binary) in request.binaries.iter().enumerate() {
        let (begun, before) = (Instant::now(), outcome.results.len());
        let first = First { request, binary, index, results: &mut outcome.results };
        first.pass().await?;
        outcome.note(binary.name(), before, begun);
    }
    for (index, binary) in request.binaries.iter().enumerate() {
        let (begun, before) = (Instant::now(), outcome.results.len());
        measure(request, binary, index, &mut outcome.results).await?;
        outcome.note(format!("{}, alone", binary.name()), before, begun);
    }
    let begun = Instant::now();
    let tests = rerun(request, &mut outcome.results).await?;
    outcome.parts.push(Part { name: "run again".to_owned(), tests, took: begun.elapsed() });
    outcome.parts.retain(|part| part.tests > 0);
    Ok(outcome)
}

impl Outcome {
    /// Notes how long the tests took whose results came after the first `before`.
    fn note(&mut self, name: String, before: usize, begun: Instant) {
        self.parts.push(Part { name, tests: self.results.len() - before, took: begun.elapsed() });
    }
}

/// Runs the tests of a binary that must have the machine to themselves, because they measure.
async fn measure(
    request: &Request,
    binary: &Binary,
    index: usize,
    results: &mut Vec<TestResult>,
) -> Result<(), String> {
    for name in process::list(binary, &selected(request)).await? {
        if is_measured(request, &name) {
            let finished = alone(request, binary, &name).await?;
            results.push(TestResult::of(index, finished));
        }
    }
    Ok(())
}

fn is_measured(request: &Request, name: &str) -> bool {
    request.alone.iter().any(|part| name.contains(part))
}

/// What selects the tests for a test binary.
fn selected(request: &Request) -> Vec<String> {
    request.filters.iter().chain(&request.arguments).cloned().collect()
}

impl TestResult {
    fn of(binary: usize, finished: Finished) -> Self {
        let status = match finished.verdict {
            Verdict::Passed => Status::Passed,
            Verdict::Failed(output) => Status::Failed(output),
            Verdict::Skipped => Status::Skipped,
        };
        Self { binary, name: finished.name, status, seconds: finished.seconds }
    }
}

/// Runs the tests that failed again, alone, unless there are too many of them. Returns how many it ran again.
async fn rerun(request: &Request, results: &mut [TestResult]) -> Result<usize, String> {
    let failed = results.iter_mut().filter(|result| matches!(result.status, Status::Failed(_)));
    let mut failed: Vec<&mut TestResult> = failed.collect();
    if failed.len() > request.reruns_max {
        println!("{} tests failed, more than {}: none of them runs again", failed.len(), request.reruns_max);
        return Ok(0);
    }
    for result in &mut failed {
        for _ in 0..RERUNS {
            println!("running again, alone: {}", result.name);
            let again = alone(request, &request.binaries[result.binary], &result.name).await?;
            if again.verdict == Verdict::Passed {
                if let Status::Failed(output) = &mut result.status {
                    result.status = Status::Flaky(std::mem::take(output));
                }
                break;
            }
        }
    }
    Ok(failed.len())
}

/// Runs one test in a process of its own.
async fn alone(request: &Request, binary: &Binary, name: &str) -> Result<Finished, String> {
    let arguments = exactly(request, std::slice::from_ref(&name.to_owned()));
    let mut ended = process::run(binary, &arguments, request.hang_after, &mut tell).await?;
    let failed = |output| Finished { name: name.to_owned(), verdict: Verdict::Failed(output), seconds: 0.0 };
    Ok(match (ended.finished.pop(), ended.end) {
        (Some(finished), _) => finished,
        (None, End::Whole) => failed("the test binary did not run it".to_owned()),
        (None, End::Died(how)) => failed(how),
        (None, End::Hung(_)) => failed(too_long(request)),
    })
}

fn exactly(request: &Request, names: &[String]) -> Vec<String> {
    let exact = std::iter::once("--exact".to_owned());
    exact.chain(names.iter().cloned()).chain(request.arguments.iter().cloned()).collect()
}

fn too_long(request: &Request) -> String {
    format!("it ran for more than {} seconds, and was ended", request.hang_after.as_secs())
}

fn tell(finished: &Finished) {
    let Finished { name, verdict, seconds } = finished;
    match verdict {
        Verdict::Passed => println!("test {name} ... ok ({seconds:.1} s)"),
        Verdict::Failed(_) => println!("test {name} ... FAILED ({seconds:.1} s)"),
        Verdict::Skipped => println!("test {name} ... ignored"),
    }
}

/// The first pass over the tests of one binary.
struct First<'a> {
    request: &'a Request,
    binary: &'a Binary,
    index: usize,
    results: &'a mut Vec<TestResult>,
}

impl First<'_> {
    /// Runs all tests, in one process if it lives that long.
    async fn pass(mut self) -> Result<(), String> {
        let mut selected = selected(self.request);
        let mut waiting = process::list(self.binary, &selected).await?;
        if waiting.iter().any(|name| is_measured(self.request, name)) {
            waiting.retain(|name| !is_measured(self.request, name));
            selected = exactly(self.request, &waiting);
        }
        while !waiting.is_empty() {
            let ended = process::run(self.binary, &selected, self.request.hang_after, &mut tell).await?;
            let before = waiting.len();
            self.note(ended).await?;
            waiting
                .retain(|name| !self.results.iter().any(|result| result.binary == self.index && result.name == *name));
            if waiting.len() == before {
                return Err(format!("{} does not run {}", self.binary.path.display(), waiting.join(", ")));
            }
            selected = exactly(self.request, &waiting);
        }
        Ok(())
    }

    async fn note(&mut self, ended: Ended) -> Result<(), String> {
        for finished in ended.finished {
            self.add(finished);
        }
        match ended.end {
            // A test that another's hanging interrupted runs with the rest.
            End::Whole => {}
            End::Hung(names) => {
                for name in names {
                    println!("test {name} ... HANGS");
                    let seconds = self.request.hang_after.as_secs_f64();
                    self.add(Finished { name, verdict: Verdict::Failed(too_long(self.request)), seconds });
                }
            }
            End::Died(how) => self.suspect(ended.interrupted, how).await?,
        }
        Ok(())
    }

    /// Finds out which of the tests that ran when their process died is to blame.
    async fn suspect(&mut self, names: Vec<String>, how: String) -> Result<(), String> {
        println!("a process died while it ran {}", names.join(", "));
        if names.is_empty() {
            return Err(format!("{} died between tests: {how}", self.binary.path.display()));
        }
        let mut alibis = Vec::new();
        let mut is_found = false;
        for name in names {
            let finished = alone(self.request, self.binary, &name).await?;
            if finished.verdict == Verdict::Passed {
                alibis.push(finished);
            } else {
                is_found = true;
                self.add(finished);
            }
        }
        for Finished { name, seconds, .. } in alibis {
            // If nobody does it again, it may have been any of them.
            let status = if is_found { Status::Passed } else { Status::Flaky(how.clone()) };
            self.results.push(TestResult { binary: self.index, name, status, seconds });
        }
        Ok(())
    }

    fn add(&mut self, finished: Finished) {
        self.results.push(TestResult::of(self.index, finished));
    }
}
