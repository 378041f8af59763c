//! `tavernkeep memory-eval`.

use std::{path::Path, process::ExitCode};

use base::error::{Code, Error, Result};
use world::memory::recall::evaluate::{BUDGETS, DECISIVE, PLAY_LOG, Set, evaluate};

use super::output::say;

/// Measures how well memories are found, with the built-in play log or with a file.
pub(super) fn run(file: Option<&Path>, at_least: f64, is_json: bool) -> Result<ExitCode> {
    let wrong = |why: String| Error::new(Code::BadRequest, why);
    let texts = match file {
        None => PLAY_LOG.map(str::to_owned).to_vec(),
        Some(path) => vec![std::fs::read_to_string(path).map_err(|e| wrong(format!("{}: {e}", path.display())))?],
    };
    let sets: Vec<Set> = texts.iter().map(|text| Set::read(text)).collect::<Result<_, _>>().map_err(wrong)?;
    let found = evaluate(&sets, &BUDGETS).map_err(wrong)?;
    let worst = 100.0 * found.worst_recall();
    let report = format!(
        "{} memories\n\n{}\nIn {DECISIVE} tokens, at least {worst:.1} % of the questions of every language find any of their evidence.",
        found.rows,
        found.report()
    );
    say(is_json, &serde_json::to_value(&found).map_err(Error::internal)?, &report);
    Ok(if worst < at_least { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
