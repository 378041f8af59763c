//! Measures how well a model plans: sample sentences, the commands they should lead to, and the results.
//!
//! It needs only a model, and neither database nor world, so everybody that a sentence names is assumed to exist. The sentences are
//! data.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::{
    SURE,
    gates::{Allowed, fitting, plain},
    is_refusal, plan, prompt,
};
use llm::{CancellationToken, ChatRequest, Endpoint, LlmClient};

/// The built-in sentences.
pub const UTTERANCES: &str = include_str!("utterances.json");

/// Stands for a plan that is not sure.
const UNSURE: &str = "unsure";
/// Stands for a model that says that no command fits.
const REFUSED: &str = "refused";
/// Stand for unreadable replies and for plans that the gates reject.
const REJECTED: [&str; 3] = ["unreadable", "not allowed", "misfit"];
/// Stands for a missing reply.
const SILENT: &str = "no reply";

/// A sentence of a player.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Utterance {
    pub text: String,
    /// The expected result: a command's name, `unsure` or `refused`.
    pub want: String,
    /// Other results that count as right.
    #[serde(default)]
    pub or: Vec<String>,
    /// The style of the sentence.
    pub tone: String,
}

/// Reads the sentences of a file.
///
/// # Errors
/// A sentence about what is wrong with the file.
pub fn utterances(text: &str) -> Result<Vec<Utterance>, String> {
    let all: Vec<Utterance> = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let is_known = |name: &String| name == UNSURE || name == REFUSED || default_commands().command(name).is_some();
    match all.iter().find(|u| u.text.trim().is_empty() || !std::iter::once(&u.want).chain(&u.or).all(is_known)) {
        Some(wrong) => Err(format!("`{}` expects a result that does not exist", wrong.text)),
        None => Ok(all),
    }
}

/// The commands that the planner may choose unless a tenant's settings say otherwise.
fn default_commands() -> Allowed {
    Allowed::only(|command| command.planned)
}

/// The results for all sentences.
#[derive(Debug, Default, Serialize)]
pub struct Evaluation {
    pub asked: usize,
    pub right: usize,
    /// Replies that the gates rejected.
    pub rejected: usize,
    /// How often each expected result led to each actual result.
    pub table: BTreeMap<String, BTreeMap<String, usize>>,
    /// Text, expected result, actual result.
    pub wrong: Vec<(String, String, String)>,
    pub latency_ms: Latency,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

/// How long planning took.
#[derive(Debug, Default, Serialize)]
pub struct Latency {
    pub median: u64,
    pub p95: u64,
    pub max: u64,
}

/// Plans every sentence, one after the other.
pub async fn evaluate(
    client: &LlmClient,
    endpoint: &Endpoint,
    patience: Duration,
    utterances: &[Utterance],
) -> Evaluation {
    let mut found = Evaluation::default();
    let mut took = Vec::with_capacity(utterances.len());
    for Utterance { text, want, or, .. } in utterances {
        let started = Instant::now();
        let messages = prompt::messages(default_commands(), &prompt::words("player_alice", "Alice", text).0);
        let request = ChatRequest { prefix: &messages, ..ChatRequest::default() };
        let answer = client.complete_within(endpoint, &request, &CancellationToken::new(), patience).await;
        took.push(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
        let got = match &answer {
            Ok(completion) => {
                found.prompt_tokens += completion.usage.prompt_tokens;
                found.completion_tokens += completion.usage.completion_tokens;
                outcome(&completion.text)
            }
            Err(_) => SILENT,
        };
        found.asked += 1;
        found.rejected += usize::from(REJECTED.contains(&got));
        if got == want || or.iter().any(|name| name == got) {
            found.right += 1;
        } else {
            found.wrong.push((text.clone(), want.clone(), got.to_owned()));
        }
        *found.table.entry(want.clone()).or_default().entry(got.to_owned()).or_default() += 1;
    }
    took.sort_unstable();
    let at =
        |share: usize| took.get((took.len() * share / 100).min(took.len().saturating_sub(1))).copied().unwrap_or(0);
    found.latency_ms = Latency { median: at(50), p95: at(95), max: at(100) };
    found
}

/// The result of a reply: a command's name, or one of the words above.
fn outcome(text: &str) -> &'static str {
    let [unreadable, not_allowed, misfit] = REJECTED;
    let Ok(plan) = plan::parse(text) else { return unreadable };
    if is_refusal(&plan.command) {
        return REFUSED;
    }
    let Some(command) = default_commands().command(&plan.command) else { return not_allowed };
    if !plain(&plan.args).is_empty() || fitting(command, plan.args).is_err() {
        return misfit;
    }
    if plan.confidence.is_some_and(|confidence| confidence < SURE) { UNSURE } else { command.name }
}

impl Evaluation {
    /// The percentage of right plans.
    #[must_use]
    pub fn right_percent(&self) -> f64 {
        100.0 * self.right as f64 / self.asked.max(1) as f64
    }

    /// A report for people, with expected results in rows and actual results in columns.
    #[must_use]
    pub fn report(&self) -> String {
        let mut out = String::new();
        let mut columns: Vec<&str> = self.table.values().flat_map(BTreeMap::keys).map(String::as_str).collect();
        columns.sort_unstable();
        columns.dedup();
        let head: String = columns.iter().map(|name| format!("{name:>13}")).collect();
        let _ = writeln!(out, "{:<14}{head}", "wanted \\ got");
        for (want, row) in &self.table {
            let counts: String =
                columns.iter().map(|name| format!("{:>13}", row.get(*name).copied().unwrap_or(0))).collect();
            let _ = writeln!(out, "{want:<14}{counts}");
        }
        for (text, want, got) in &self.wrong {
            let _ = writeln!(out, "  {got} instead of {want}: {text}");
        }
        let Latency { median, p95, max } = self.latency_ms;
        let share = 100.0 * self.rejected as f64 / self.asked.max(1) as f64;
        let _ = writeln!(out, "right     {} of {} ({:.1} %)", self.right, self.asked, self.right_percent());
        let _ = writeln!(out, "rejected  {} plans ({share:.1} %)", self.rejected);
        let _ = writeln!(out, "latency   median {median} ms, 95 % below {p95} ms, longest {max} ms");
        let _ = writeln!(out, "tokens    {} in prompts, {} in plans", self.prompt_tokens, self.completion_tokens);
        out
    }
}
