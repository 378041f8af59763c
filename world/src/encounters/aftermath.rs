//! What an ended fight did, for its page: to whom, and whether that is in the records.

use entity::{CampaignId, EncounterId};
use rules::encounter::{Changes, EndOutcome, Status, commit_required};
use uuid::Uuid;

use super::{answers::SkipReason, commit::commit_in, input::CommitInput, service::Cx, store};
use base::{
    error::{Code, Error, Result},
    stored::{self, Columns},
};

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

/// The newest fight of a campaign, if it has ended and left something that is not in the records: its id and name. One statement, and those
/// of [`of`] if it has ended and is not written.
///
/// # Errors
/// Database errors.
pub async fn unwritten(cx: &Cx<'_>, campaign: CampaignId) -> Result<Option<(EncounterId, String)>> {
    let row = sqlx::query(
        "SELECT e.id, coalesce(e.name, '') FROM (SELECT * FROM encounter WHERE tenant_id = $1 AND campaign_id = $2 AND NOT hidden \
           ORDER BY id DESC LIMIT 1) e \
         WHERE e.status = 'ended' AND EXISTS (SELECT FROM encounter_member m \
           WHERE m.tenant_id = $1 AND m.encounter_id = e.id AND m.committed_at IS NULL)",
    )
    .bind(cx.tx.tenant())
    .bind(campaign.0)
    .fetch_optional(&mut *cx.tx.connection().await)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let (id, name): (Uuid, String) = row.read_all()?;
    // A fight that cannot be read reminds of nothing.
    let Some(after) = stored::readable(of(cx, &id.to_string()).await) else { return Ok(None) };
    let waits =
        |one: &AfterRecord| one.has_changed && matches!(one.commit, CommitState::Waits | CommitState::WaitsForMerge);
    Ok(after.records.iter().any(waits).then_some((EncounterId(id), name)))
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
