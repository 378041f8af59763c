//! Measures how well memories are found: worlds of memories, questions, and the memories that answer each.
//!
//! It needs neither database nor model. `play_log/` holds a log of our own in three languages.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt::Write as _,
};

use base::tokens;
use entity::memory::Source;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Corpus, Memory, Query};

/// The built-in worlds.
pub const PLAY_LOG: [&str; 3] = [
    include_str!("play_log/english.json"),
    include_str!("play_log/german.json"),
    include_str!("play_log/japanese.json"),
];

/// The budgets, in tokens, at which recall is measured.
pub const BUDGETS: [u32; 4] = [250, 500, 1000, 2000];
/// The budget whose recall decides.
pub const DECISIVE: u32 = 1000;

/// A file of worlds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    worlds: Vec<World>,
}

/// What somebody remembers, and questions about it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct World {
    /// The oldest first.
    rows: Vec<Row>,
    questions: Vec<Question>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    text: String,
    #[serde(default)]
    game_time: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    text: String,
    /// The ids of all memories that help to answer it.
    evidence: Vec<String>,
    language: String,
}

impl Set {
    /// Reads a file.
    ///
    /// # Errors
    /// A sentence about what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let set: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        for world in &set.worlds {
            world.check()?;
        }
        if set.worlds.iter().all(|world| world.questions.is_empty()) {
            return Err("there are no questions".to_owned());
        }
        Ok(set)
    }
}

impl World {
    /// The place of each memory, by its id.
    fn places(&self) -> HashMap<&str, usize> {
        self.rows.iter().enumerate().map(|(place, row)| (row.id.as_str(), place)).collect()
    }

    /// Checks that every id is there, once.
    fn check(&self) -> Result<(), String> {
        let mut ids = HashSet::new();
        if let Some(twice) = self.rows.iter().find(|row| !ids.insert(row.id.as_str())) {
            return Err(format!("two rows have the id `{}`", twice.id));
        }
        for Question { text, evidence, .. } in &self.questions {
            if evidence.is_empty() {
                return Err(format!("the question `{text}` names no evidence"));
            }
            if let Some(unknown) = evidence.iter().find(|id| !ids.contains(id.as_str())) {
                return Err(format!("the question `{text}` names `{unknown}`, which is no row of its world"));
            }
        }
        Ok(())
    }

    fn corpus(&self) -> Corpus {
        Corpus::of((0..).zip(&self.rows).map(|(seq, row)| Memory {
            id: Uuid::from_u64_pair(0, seq as u64),
            version: 1,
            seq,
            text: row.text.clone(),
            game_time: row.game_time.clone(),
            source: Source::Personal,
            is_pinned: false,
        }))
    }
}

/// What was found at one budget, as sums over questions.
#[derive(Debug, Default, Serialize)]
pub struct Found {
    /// Questions with at least one memory of their evidence in the budget.
    pub any: usize,
    /// Questions with all of it.
    pub all: usize,
    /// The shares of the evidence in the budget, added up.
    pub share: f64,
}

/// The results of one language.
#[derive(Debug, Default, Serialize)]
pub struct Results {
    pub questions: usize,
    /// Questions for which no memory had a score.
    pub empty: usize,
    /// What was found, by budget.
    pub found: BTreeMap<u32, Found>,
    /// The questions without any of their evidence at the decisive budget.
    pub missed: Vec<String>,
}

impl Results {
    /// The share of questions with any of their evidence at the decisive budget.
    #[must_use]
    pub fn any_recall(&self) -> f64 {
        self.found.get(&DECISIVE).map_or(0.0, |found| found.any as f64 / self.questions.max(1) as f64)
    }
}

/// The results of all languages.
#[derive(Debug, Default, Serialize)]
pub struct Evaluation {
    pub rows: usize,
    pub languages: BTreeMap<String, Results>,
}

/// Answers every question of the sets, within each of the budgets.
#[must_use]
pub fn evaluate(sets: &[Set], budgets: &[u32]) -> Evaluation {
    let mut all = Evaluation::default();
    for world in sets.iter().flat_map(|set| &set.worlds) {
        let (places, corpus) = (world.places(), world.corpus());
        all.rows += world.rows.len();
        for question in &world.questions {
            let wanted: BTreeSet<usize> =
                question.evidence.iter().filter_map(|id| places.get(id.as_str()).copied()).collect();
            let results = all.languages.entry(question.language.clone()).or_default();
            answer(&corpus, (&question.text, &wanted), budgets, results);
        }
    }
    all
}

/// The tokens of a memory in a prompt.
fn cost(memory: &Memory) -> u32 {
    match &memory.game_time {
        Some(game_time) => tokens::count_line(&format!("[{game_time}] {}", memory.text)),
        None => tokens::count_line(&memory.text),
    }
}

fn answer(corpus: &Corpus, (text, wanted): (&str, &BTreeSet<usize>), budgets: &[u32], results: &mut Results) {
    let query = Query::of_action(text, None);
    results.questions += 1;
    results.empty += usize::from(corpus.rank(&query).best_first().next().is_none());
    for &budget in budgets {
        let chosen = corpus.select(&query, budget, cost);
        let has = |place: &&usize| chosen.base.contains(place) || chosen.turn.contains(place);
        let hits = wanted.iter().filter(has).count();
        let found = results.found.entry(budget).or_default();
        found.any += usize::from(hits > 0);
        found.all += usize::from(hits == wanted.len());
        found.share += hits as f64 / wanted.len().max(1) as f64;
        if budget == DECISIVE && hits == 0 {
            results.missed.push(text.to_owned());
        }
    }
}

impl Evaluation {
    /// The smallest share, of all languages, of questions with any of their evidence at the decisive budget.
    #[must_use]
    pub fn worst_recall(&self) -> f64 {
        self.languages.values().map(Results::any_recall).fold(1.0, f64::min)
    }

    /// A table for people.
    #[must_use]
    pub fn report(&self) -> String {
        let mut text = String::from("language     questions  empty  budget  any evidence  all evidence  share of it\n");
        for (language, results) in &self.languages {
            for (budget, found) in &results.found {
                let percent = |sum: f64| 100.0 * sum / results.questions.max(1) as f64;
                let _ = writeln!(
                    text,
                    "{language:<12} {:>9} {:>6} {budget:>7} {:>11.1} % {:>11.1} % {:>10.1} %",
                    results.questions,
                    results.empty,
                    percent(found.any as f64),
                    percent(found.all as f64),
                    percent(found.share),
                );
            }
        }
        text
    }
}
