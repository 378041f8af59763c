//! The printed table, and the processing of measurements for it.

use crate::{Failure, client::Run};

/// The printed table.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of missed goals.
    pub missed: usize,
}

impl Report {
    /// Prints the column headings.
    pub fn heads() {
        println!("{:<44} {:>14} {:>14} {:>12} {:>12}", "", "floor", "ours", "value", "goal");
    }

    /// Prints a line: what was measured, the floor's value and ours, the figure and its unit, its goal, and whether it
    /// was met.
    pub fn line(&mut self, name: &str, [floor, ours]: [&str; 2], (value, unit): (f64, &str), goal: &str, met: bool) {
        self.missed += usize::from(!met);
        let verdict = if met { "ok" } else { "MISSED" };
        println!("{name:<44} {floor:>14} {ours:>14} {:>12} {goal:>12}  {verdict}", format!("{value:.2} {unit}"));
    }

    /// Prints a figure that has no floor and should be at most its goal.
    pub fn at_most(&mut self, name: &str, (value, unit): (f64, &str), goal: f64) {
        self.line(name, ["", ""], (value, unit), &format!("<= {goal}"), value <= goal);
    }

    /// Prints the CPU time of server and PostgreSQL together, in milliseconds. An infinite goal means that there is
    /// none.
    pub fn cpu(&mut self, name: &str, [api, database]: [f64; 2], goal: f64) {
        let (a, b) = (format!("pg {database:.2} ms"), format!("api {api:.2} ms"));
        let goal_text = if goal.is_finite() { format!("<= {goal}") } else { String::new() };
        self.line(name, [&a, &b], (api + database, "ms"), &goal_text, api + database <= goal);
    }
}

/// Checks that no request of a run failed.
///
/// # Errors
/// If one did.
pub fn checked(run: Run) -> Result<Run, Failure> {
    if run.failed > 0 { Err(format!("{} of {} requests failed", run.failed, run.requests).into()) } else { Ok(run) }
}

/// The median.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
