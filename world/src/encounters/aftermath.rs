//! What an ended fight did, for its page: to whom, and whether that is in the records.

use rules::encounter::{Changes, EndOutcome, Status, commit_required};

use super::{answers::SkipReason, commit::commit_in, input::CommitInput, service::Cx, store};
use base::error::{Code, Error, Result};

/// What an ended fight did, as far as its reader may see it.
pub struct Aftermath {
    pub outcome: EndOutcome,
    pub summary: String,
    pub notes: Option<String>,
    /// Those with a record.
    pub records: Vec<AfterRecord>,
}

/// What a fight did to somebody with a record.
pub struct AfterRecord {
    pub name: String,
    /// What a commit would write, or else what the fight did.
    pub changes: Changes,
    /// Whether anything is different for the record.
    pub has_changed: bool,
    pub commit: CommitState,
}

/// Whether the changes are in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitState {
    /// Not yet.
    Waits,
    /// Not yet, and the record was edited since the fight began: it takes the differences.
    WaitsForMerge,
    Written,
    /// The record was deleted.
    Gone,
}

/// What an ended fight did. Two statements, and at most two more for the records.
///
/// # Errors
/// `not_found`; `encounter_not_ended`.
pub async fn of(cx: &Cx<'_>, id: &str) -> Result<Aftermath> {
    let it = store::read(cx.tx, cx.place, id, false).await?;
    let (false, Status::Ended, Some(outcome)) = (it.hidden, it.now.status(), it.now.outcome()) else {
        return Err(Error::new(Code::EncounterNotEnded, "The encounter is still active."));
    };
    let told = commit_in(cx, &it, &CommitInput { dry_run: true, ..CommitInput::default() }).await?;
    let mut records = Vec::new();
    for update in cx.eyes.updates(&it.now).into_iter().filter(|update| !update.is_ephemeral) {
        let waits = told.committed.iter().find(|one| one.participant_id == update.participant_id);
        let skipped = told.skipped.iter().find(|one| one.participant_id == update.participant_id);
        let commit = match (waits, skipped.map(|one| one.reason)) {
            (Some(one), _) if one.merged == Some(true) => CommitState::WaitsForMerge,
            (_, Some(SkipReason::AlreadyCommitted)) => CommitState::Written,
            (_, Some(SkipReason::NotFound)) => CommitState::Gone,
            _ => CommitState::Waits,
        };
        let name = it.now.anybody(&update.participant_id).map(|one| one.creature.name.clone());
        let has_changed = commit_required(std::slice::from_ref(&update));
        let changes = waits.map_or(update.changes, |one| one.changes.clone());
        records.push(AfterRecord { name: name.unwrap_or(update.participant_id), changes, has_changed, commit });
    }
    let notes = it.notes.filter(|_| cx.eyes == super::eyes::Eyes::Master);
    Ok(Aftermath { outcome, summary: cx.eyes.summary(&it.now).text, notes, records })
}
