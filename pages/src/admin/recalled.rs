//! Which memories a prompt holds, and why, in words that people understand.

use std::collections::HashMap;

use uuid::Uuid;

use super::InCampaign;
use ai::prompt::recall_report::{RecallItem, RecallReason, RecallReport};
use base::error::Result;
use db::tenancy::TenantTx;
use world::memory::{MemoryView, service};

/// The most memories that are shown.
const SHOWN_MAX: usize = 200;

/// The memories of a prompt.
pub struct Recalled {
    /// How many are in, and what they take.
    pub summary: String,
    pub rows: Vec<RecalledRow>,
    /// How many more the report names.
    pub more: usize,
}

/// A memory, and why it is in or out.
pub struct RecalledRow {
    /// None if it is gone since.
    pub memory: Option<RecalledMemory>,
    pub is_in: bool,
    pub reason: &'static str,
    /// The words that it shares with the action.
    pub shared: String,
    /// Whether it counts more for the memories that were written just before and after it.
    pub is_near: bool,
}

pub struct RecalledMemory {
    pub path: String,
    pub text: String,
}

/// The memories of a report, with the texts that they have now. Takes one statement, or none if everything had room.
///
/// # Errors
/// Those of the database.
pub async fn recalled(at: &InCampaign, tx: &TenantTx, report: RecallReport) -> Result<Recalled> {
    let summary = summary(&report);
    let more = report.items.len().saturating_sub(SHOWN_MAX);
    let mut items = report.items;
    // The best first.
    items.sort_by(|a, b| b.included.cmp(&a.included).then(total(b).total_cmp(&total(a))));
    items.truncate(SHOWN_MAX);
    let ids: Vec<Uuid> = items.iter().map(|item| item.id).collect();
    let found = if ids.is_empty() { Vec::new() } else { service::of_ids(tx, at.campaign.id.0, &ids).await? };
    let mut found: HashMap<Uuid, MemoryView> = found.into_iter().map(|memory| (memory.id, memory)).collect();
    let row = |item: RecallItem| RecalledRow {
        memory: found
            .remove(&item.id)
            .map(|memory| RecalledMemory { path: at.url(&format!("memories/{}", memory.id)), text: memory.text }),
        is_in: item.included,
        reason: reason(&item),
        shared: item.words.join(", "),
        is_near: item.score.is_some_and(|score| score.near > score.own),
    };
    Ok(Recalled { summary, rows: items.into_iter().map(row).collect(), more })
}

fn total(item: &RecallItem) -> f64 {
    item.score.map_or(0.0, |score| score.total)
}

fn summary(report: &RecallReport) -> String {
    let RecallReport { rows, budget, used, left_out, .. } = report;
    let memories = if *rows == 1 { "memory" } else { "memories" };
    match left_out {
        0 => format!("All of {rows} {memories}, with {used} tokens. {budget} are allowed."),
        _ => format!(
            "{} of {rows} {memories}, with {used} tokens. {budget} are allowed.",
            rows.saturating_sub(*left_out)
        ),
    }
}

fn reason(item: &RecallItem) -> &'static str {
    match item.reason {
        RecallReason::Pinned => "pinned",
        RecallReason::Newest => "one of the newest",
        RecallReason::Relevant => "matters to the action",
        RecallReason::Echo => "says what another one says",
        RecallReason::OverBudget => "no room",
    }
}
