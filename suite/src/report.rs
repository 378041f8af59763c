//! What a run says in the end: where the time went, the flaky tests, the failed ones, and the counts.

use std::{fmt::Write, path::Path, time::Duration};

use crate::{
    run::{Outcome, Status, TestResult},
    speed::Speed,
};

const SLOWEST: usize = 20;
/// How much of each failed test's output the summary shows. The file has all of it.
const OUTPUT_LINES_MAX: usize = 60;
const OUTPUT_LINE_CHARS_MAX: usize = 2000;

/// True if tests ran and none failed.
pub(crate) fn is_success(results: &[TestResult]) -> bool {
    let counts = Counts::of(results);
    counts.failed == 0 && counts.passed > 0
}

struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Counts {
    fn of(results: &[TestResult]) -> Self {
        let mut counts = Self { passed: 0, failed: 0, skipped: 0 };
        for result in results {
            match result.status {
                Status::Passed | Status::Flaky(_) => counts.passed += 1,
                Status::Failed(_) => counts.failed += 1,
                Status::Skipped => counts.skipped += 1,
            }
        }
        counts
    }
}

/// Writes the first output of each flaky test to `flaky/` in `folder`, and that of each failed one to `failed/`. Outputs of
/// earlier runs stay in `flaky/` until somebody has looked at them; those in `failed/` go.
///
/// # Errors
/// A sentence, if a file cannot be written.
pub(crate) fn write_outputs(results: &[TestResult], folder: &Path) -> Result<(), String> {
    // There may be none.
    let _ = std::fs::remove_dir_all(folder.join("failed"));
    for result in results {
        let (kind, output) = match &result.status {
            Status::Flaky(output) => ("flaky", output),
            Status::Failed(output) => ("failed", output),
            Status::Passed | Status::Skipped => continue,
        };
        let folder = folder.join(kind);
        let file = folder.join(file_name(&result.name));
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&file, output))
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    Ok(())
}

fn file_name(test: &str) -> String {
    format!("{}.txt", test.replace("::", "."))
}

/// Writes to `times` in `folder` how long each test binary and each test took, the slowest first.
///
/// # Errors
/// A sentence, if the file cannot be written.
pub(crate) fn write_times(outcome: &Outcome, whole: Duration, folder: &Path) -> Result<(), String> {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = tell_parts(&mut text, outcome, whole).and_then(|()| tell_slowest(&mut text, &outcome.results, usize::MAX));
    let file = folder.join("times");
    std::fs::write(&file, text.trim_start()).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// The summary of a run. Its last line is `N passed, N failed, N skipped`.
pub(crate) fn summary(outcome: &Outcome, whole: Duration, speed: &Speed, folder: &Path) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_summary(&mut text, outcome, whole, speed, folder);
    text
}

fn tell_parts(text: &mut String, outcome: &Outcome, whole: Duration) -> std::fmt::Result {
    writeln!(text, "\ntime of each test binary:")?;
    for part in &outcome.parts {
        let s = if part.tests == 1 { "" } else { "s" };
        writeln!(text, "{:8.1} s  {}: {} test{s}", part.took.as_secs_f64(), part.name, part.tests)?;
    }
    writeln!(text, "{:8.1} s  all of it", whole.as_secs_f64())
}

fn tell_slowest(text: &mut String, results: &[TestResult], most: usize) -> std::fmt::Result {
    let mut slowest: Vec<&TestResult> = results.iter().filter(|result| result.status != Status::Skipped).collect();
    slowest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    writeln!(text, "\nslowest tests:")?;
    for result in slowest.iter().take(most) {
        writeln!(text, "{:8.1} s  {}", result.seconds, result.name)?;
    }
    Ok(())
}

fn write_summary(
    text: &mut String,
    outcome: &Outcome,
    whole: Duration,
    speed: &Speed,
    folder: &Path,
) -> std::fmt::Result {
    let results = &outcome.results;
    tell_slowest(text, results, SLOWEST)?;
    tell_parts(text, outcome, whole)?;
    writeln!(text)?;
    for result in results {
        if let Status::Flaky(_) = result.status {
            let file = folder.join("flaky").join(file_name(&result.name));
            writeln!(text, "FLAKY {} (its first output: {})", result.name, file.display())?;
        }
    }
    let failed = || {
        results.iter().filter_map(|result| match &result.status {
            Status::Failed(output) => Some((&result.name, output)),
            _ => None,
        })
    };
    for (name, output) in failed() {
        writeln!(text, "---- {name}\n{}\n", shortened(output))?;
    }
    let counts = Counts::of(results);
    if counts.failed > 0 {
        writeln!(text, "failures (whole outputs: {}):", folder.join("failed").display())?;
        for (name, _) in failed() {
            writeln!(text, "    {name}")?;
        }
    }
    if counts.passed + counts.failed == 0 {
        writeln!(text, "no test ran")?;
    }
    writeln!(text, "{speed}")?;
    writeln!(text, "{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped)
}

fn shortened(output: &str) -> String {
    let mut lines: Vec<String> =
        output.lines().take(OUTPUT_LINES_MAX).map(|line| line.chars().take(OUTPUT_LINE_CHARS_MAX).collect()).collect();
    let left_out = output.lines().count().saturating_sub(OUTPUT_LINES_MAX);
    if left_out > 0 {
        lines.push(format!("… {left_out} more lines"));
    }
    lines.join("\n")
}
