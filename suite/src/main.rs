//! `suite`: runs test binaries, looks twice at what fails, and says which kind of failure it saw. `./dev test` calls it.
//!
//! Every test of a binary runs in one process, because tests share what is expensive to make. A test that fails runs again
//! alone, up to two times: if it then passes, it is flaky, and the run succeeds. A test that hangs is ended and named. If a
//! process dies, the tests that it had not run are run. On a machine with nothing else to do, a test that takes too long fails
//! the run as well (`speed.rs`).
//!
//! It must never succeed without having run a test. To learn what tests do, it reads the JSON that libtest prints, which
//! Rust still calls unstable: `process.rs` is the only place that knows it.

mod binaries;
mod machine;
mod process;
mod report;
mod run;
mod speed;

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Parser;

use crate::{machine::Machine, speed::Limits};

/// Runs test binaries. Tests that fail run again alone, up to two times.
#[derive(Debug, Parser)]
struct Options {
    /// What `cargo build --tests --message-format=json` printed: names the test binaries.
    #[arg(long, value_name = "FILE")]
    built: Option<PathBuf>,
    /// A test binary to run, beside those that were built. May be repeated.
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// The folder for the first outputs of flaky tests, and for the outputs of failed ones.
    #[arg(long, value_name = "FOLDER", default_value = "target")]
    keep: PathBuf,
    /// How long a test may run before it counts as hanging, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    hang_after: u64,
    /// How many tests may fail at first. If more do, nothing is run again.
    #[arg(long, value_name = "TESTS", default_value_t = 15)]
    reruns_max: usize,
    /// Runs the tests whose names contain this alone, after the others, because they measure. May be repeated.
    #[arg(long, value_name = "NAME")]
    alone: Vec<String>,
    /// Fails if a test takes longer than this, in seconds, on a quiet machine.
    #[arg(long, value_name = "SECONDS")]
    slowest_max: Option<f64>,
    /// Warns if the whole run takes longer than this, in seconds, on a quiet machine.
    #[arg(long, value_name = "SECONDS")]
    whole_max: Option<f64>,
    /// A machine is quiet if other programs used less than this share of its processors.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    others_max: f64,
    /// The process whose descendants belong to this run; by default this one.
    #[arg(long, value_name = "PID")]
    root: Option<u32>,
    /// Runs only the tests whose names contain one of these.
    filters: Vec<String>,
    /// Options for the test binaries, such as `--ignored`.
    #[arg(last = true)]
    arguments: Vec<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = Options::parse();
    match run_all(options).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("suite: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run_all(options: Options) -> Result<ExitCode, String> {
    let mut binaries = match &options.built {
        Some(file) => binaries::read(file)?,
        None => Vec::new(),
    };
    binaries.extend(options.binary.into_iter().map(binaries::Binary::of));
    let request = run::Request {
        binaries,
        filters: options.filters,
        arguments: options.arguments,
        alone: options.alone,
        hang_after: Duration::from_secs(options.hang_after),
        reruns_max: options.reruns_max,
    };
    let begun = Instant::now();
    let machine = Machine::watch(options.root.unwrap_or_else(std::process::id));
    let outcome = run::run(&request).await?;
    let whole = begun.elapsed();
    let limits = Limits { slowest: options.slowest_max, whole: options.whole_max, others: options.others_max };
    let speed = speed::judge(&outcome.results, whole, machine.others().await, &limits);
    report::write_outputs(&outcome.results, &options.keep)?;
    report::write_times(&outcome, whole, &options.keep)?;
    print!("{}", report::summary(&outcome, whole, &speed, &options.keep));
    let is_success = report::is_success(&outcome.results) && !speed.is_too_slow();
    Ok(if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
