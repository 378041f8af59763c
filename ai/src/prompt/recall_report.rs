//! Why a prompt holds which memories, for those who may read prompts.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use base::stored;
use world::memory::recall::{self, Corpus, Decision, Query, Reason, Score, Selection};

/// The most memories that a report names.
const ITEMS_MAX: usize = 1000;

/// Which memories a prompt holds, and why.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct RecallReport {
    /// What the memories were compared with: the action, or for an answer that goes on the last action before it.
    #[schema(value_type = String, required = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// How many memories the holder has about the player.
    pub rows: usize,
    /// The tokens that the sections `memories` and `recalled` may have together.
    pub budget: u32,
    /// The tokens that they have.
    pub used: u32,
    /// How many memories are left out.
    pub left_out: usize,
    /// Empty if there was room for all. Else all memories in the prompt, in the order of writing, and then the best 50 that are left out; 1,000
    /// at most.
    #[schema(max_items = 1000)]
    #[serde(deserialize_with = "unfolded")]
    pub items: Vec<RecallItem>,
}

/// A memory, and why it is in the prompt or not.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RecallItem {
    /// Always `memory`.
    pub kind: RecallKind,
    /// The memory's id.
    pub id: Uuid,
    /// Whether the prompt holds it.
    pub included: bool,
    /// Where it stands; null if it is left out.
    #[schema(required = true)]
    pub section: Option<RecallSection>,
    /// Why it is there, or why it is not.
    pub reason: RecallReason,
    /// Null if it has nothing to do with the query.
    #[schema(required = true)]
    pub score: Option<ScoreView>,
    /// The words of the query that it has, also in another form: at most 20 of the first 100, cut to 50 letters.
    pub words: Vec<String>,
}

/// What was recalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecallKind {
    Memory,
}

/// A section of a prompt with memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecallSection {
    /// In the base prompt.
    Memories,
    /// In the turn's message.
    Recalled,
}

impl From<recall::Section> for RecallSection {
    fn from(section: recall::Section) -> Self {
        match section {
            recall::Section::Base => Self::Memories,
            recall::Section::Turn => Self::Recalled,
        }
    }
}

/// Why a memory is in a prompt, or why it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecallReason {
    /// It is pinned.
    Pinned,
    /// It is one of the newest.
    Newest,
    /// It has to do with the query.
    Relevant,
    /// It says again what a memory in the prompt says.
    Echo,
    /// There was no room.
    OverBudget,
}

impl From<Reason> for RecallReason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Pinned => Self::Pinned,
            Reason::Newest => Self::Newest,
            Reason::Relevant => Self::Relevant,
            Reason::Echo => Self::Echo,
            Reason::OverBudget => Self::OverBudget,
        }
    }
}

/// How relevant a memory is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScoreView {
    /// The sum of the others.
    pub total: f64,
    /// For the memory's own words.
    pub own: f64,
    /// For the memories that were written just before and after it.
    pub near: f64,
}

impl ScoreView {
    /// A score with three digits after the point.
    #[must_use]
    pub fn of(score: Score) -> Self {
        let thousandths = |share: f64| (share * 1000.0).round();
        let (total, own) = (thousandths(score.total()), thousandths(score.own));
        Self { total: total / 1000.0, own: own / 1000.0, near: (total - own) / 1000.0 }
    }
}

/// A report as the record of a turn keeps it. Each turn has one, with hundreds of items, so it is short.
#[derive(Debug, Serialize)]
pub struct KeptReport<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<&'a str>,
    rows: usize,
    budget: u32,
    used: u32,
    left_out: usize,
    items: Vec<KeptItem<'a>>,
}

/// A memory's id, its section, the reason, `total` and `own` of its score, and its words.
#[derive(Debug, Serialize, Deserialize)]
struct KeptItem<'a>(Uuid, Option<RecallSection>, RecallReason, Option<(f64, f64)>, Cow<'a, [String]>);

impl<'a> From<&'a RecallReport> for KeptReport<'a> {
    fn from(report: &'a RecallReport) -> Self {
        let RecallReport { query, rows, budget, used, left_out, items } = report;
        let kept = |item: &'a RecallItem| {
            let score = item.score.map(|score| (score.total, score.own));
            KeptItem(item.id, item.section, item.reason, score, Cow::Borrowed(&item.words))
        };
        let items = items.iter().map(kept).collect();
        Self { query: query.as_deref(), rows: *rows, budget: *budget, used: *used, left_out: *left_out, items }
    }
}

impl From<KeptItem<'_>> for RecallItem {
    fn from(KeptItem(id, section, reason, score, words): KeptItem<'_>) -> Self {
        Self {
            kind: RecallKind::Memory,
            id,
            included: section.is_some(),
            section,
            reason,
            score: score.map(|(total, own)| ScoreView::of(Score { own, near: total - own })),
            words: words.into_owned(),
        }
    }
}

/// Reads the items of a kept report. Older records have whole items.
fn unfolded<'de, D: Deserializer<'de>>(items: D) -> Result<Vec<RecallItem>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Item {
        Kept(KeptItem<'static>),
        Whole(RecallItem),
    }
    let items = stored::readable_items::<_, Item>(items)?.into_iter().map(|item| match item {
        Item::Kept(item) => item.into(),
        Item::Whole(item) => item,
    });
    Ok(items.collect())
}

impl RecallReport {
    /// Reports what was chosen for a query.
    #[must_use]
    pub fn of(corpus: &Corpus, query: &Query, selection: &Selection, budget: u32) -> Self {
        let mut shared = corpus.shared_words(query);
        let item = |decision: &Decision| {
            Some(RecallItem {
                kind: RecallKind::Memory,
                id: corpus.memory(decision.memory)?.id,
                included: decision.section.is_some(),
                section: decision.section.map(RecallSection::from),
                reason: decision.reason.into(),
                score: decision.score.map(ScoreView::of),
                words: shared.of(decision.memory),
            })
        };
        let taken = selection.decisions.partition_point(|decision| decision.section.is_some());
        let (taken, left) = selection.decisions.split_at(taken);
        Self {
            query: None,
            rows: corpus.total(),
            budget,
            used: 0,
            left_out: selection.left_out,
            items: taken.iter().take(ITEMS_MAX - left.len().min(ITEMS_MAX)).chain(left).filter_map(item).collect(),
        }
    }

    /// A kept report with its query, which is the action unless it says otherwise.
    #[must_use]
    pub fn about(self, action: &str) -> Self {
        Self { query: self.query.or_else(|| Some(action.to_owned())), ..self }
    }

    /// Reports what was left out so that the prompt fits into the model's context. `shown` are the memories that stay, in the order
    /// of their ids.
    pub fn revise(&mut self, shown: &[Uuid]) {
        for item in self.items.iter_mut().filter(|item| item.included && shown.binary_search(&item.id).is_err()) {
            (item.included, item.section, item.reason) = (false, None, RecallReason::OverBudget);
        }
    }
}
