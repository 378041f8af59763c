//! `tavernkeep memory-eval`.

use std::{path::Path, process::ExitCode};

use base::error::{Code, Error, Result};
use world::memory::recall::evaluate::{BUDGETS, DECISIVE, PLAY_LOG, Set, evaluate};

use super::output::say;

/// Measures recall with the built-in play log or with a file.
pub(super) fn run(file: Option<&Path>, at_least: f64, is_json: bool) -> Result<ExitCode> {
    let wrong = |why: String| Error::new(Code::BadRequest, why);
    let sets: Vec<Set> = match file {
        None => PLAY_LOG.iter().map(|text| Set::read(text)).collect::<Result<_, _>>().map_err(wrong)?,
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|e| e.to_string());
            vec![text.and_then(|text| Set::read(&text)).map_err(|e| wrong(format!("{}: {e}.", path.display())))?]
        }
    };
    let found = evaluate(&sets, &BUDGETS);
    let worst = 100.0 * found.worst_recall();
    let report = format!(
        "{} memories\n\n{}\nIn every language, at least {worst:.1} % of the questions have some of their evidence in {DECISIVE} tokens.",
        found.rows,
        found.report()
    );
    say(is_json, &serde_json::to_value(&found).map_err(Error::internal)?, &report);
    Ok(if worst >= at_least { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
