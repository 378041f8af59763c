//! Commits an ended encounter: writes it into each participant's record once, all in one transaction.

use std::collections::HashMap;

use rules::encounter::{Changes, MergeOptions, Status, merge};
use uuid::Uuid;

use super::{
    answers::{CommitError, CommitTold, Committed, SkipReason, Skipped},
    input::CommitInput,
    service::Cx,
    store::{self, Stored},
};
use crate::rules::{
    cast::{Cast, Who},
    values::Words,
};
use base::{
    error::{Code, Error, Result},
    metrics,
    stored::Columns,
};

/// A participant's record, and whether it has been committed.
struct Member {
    who: Who,
    version: i64,
    committed: bool,
}

/// Writes what the fight changed into each record that has not been committed yet. A record that was edited since it joined
/// takes the differences, not the final values.
///
/// # Errors
/// `encounter_not_ended`, `not_found`; nothing is written then.
pub async fn commit(cx: &Cx<'_>, id: &str, input: &CommitInput) -> Result<CommitTold> {
    let it = store::read(cx.tx, cx.place, id, !input.dry_run).await?;
    commit_in(cx, &it, input).await
}

/// The same with an encounter that was read, and locked unless it is a dry run.
///
/// # Errors
/// `encounter_not_ended`; nothing is written then.
pub(super) async fn commit_in(cx: &Cx<'_>, it: &Stored, input: &CommitInput) -> Result<CommitTold> {
    if it.now.status() != Status::Ended {
        return Err(Error::new(Code::EncounterNotEnded, "The encounter is still active. End it before you commit it."));
    }
    let members = members(cx, it.id).await?;
    let who: Vec<Who> = members.values().map(|m| m.who).collect();
    let mut cast = Cast::read_those_left(cx.tx, it.campaign, &who, !input.dry_run).await?;
    let (mut committed, mut skipped, mut written, mut marked) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut wanted = RequestedRecords::new(input.character_ids.as_ref().map(|names| names.0.as_slice()));
    for update in it.now.diff() {
        let participant = it.now.anybody(&update.participant_id);
        let member = members.get(&update.participant_id);
        let record = member.and_then(|m| cast.record(m.who));
        let reason = match (member, record) {
            (None, _) => SkipReason::Ephemeral,
            (Some(m), ref record)
                if !wanted.takes(m.who, &update.participant_id, record.as_ref().map(|r| r.now.slug.as_str())) =>
            {
                SkipReason::Excluded
            }
            (Some(m), _) if m.committed => SkipReason::AlreadyCommitted,
            (Some(_), None) => SkipReason::NotFound,
            (Some(_), Some(record)) if cx.obeys_locks && record.is_locked => SkipReason::Locked,
            (Some(m), Some(record)) => {
                let options = MergeOptions {
                    unchanged: record.version == m.version,
                    exclude_conditions: input.exclude_conditions,
                    exclude_spell_slots: input.exclude_spell_slots,
                };
                let written_changes = merge(record.now, &update, options);
                let seen = cx.eyes.changes(&it.now, &update.participant_id, written_changes);
                committed.extend(seen.map(|changes| told(&update.participant_id, record.now, changes, options)));
                marked.push(m.who);
                written.push(update.participant_id);
                continue;
            }
        };
        if participant.is_some_and(|one| cx.eyes.knows(&it.now, one)) {
            skipped.push(Skipped { participant_id: update.participant_id, reason });
        }
    }
    if !input.dry_run && !written.is_empty() {
        marked.into_iter().for_each(|who| cast.mark(who));
        cast.write(cx.tx, it.campaign, cx.obeys_locks).await?;
        mark(cx, it.id, &written).await?;
        metrics::ENCOUNTERS.with_label_values(&["committed"]).inc();
    }
    Ok(CommitTold { committed, skipped, errors: wanted.unknown(), dry_run: input.dry_run })
}

/// Describes what was written into a record.
fn told(participant: &str, record: &rules::sheet::Creature, changes: Changes, options: MergeOptions) -> Committed {
    let (id, name) = (Some(record.id.clone()), Some(record.name.clone()));
    let ((character_id, character_name), (npc_id, npc_name)) = match record.is_npc {
        true => ((None, None), (id, name)),
        false => ((id, name), (None, None)),
    };
    Committed {
        participant_id: participant.to_owned(),
        changes,
        character_id,
        character_name,
        npc_id,
        npc_name,
        merged: (!options.unchanged).then_some(true),
    }
}

/// The records that the request names.
struct RequestedRecords<'a> {
    names: Option<&'a [Words<100>]>,
    met: Vec<bool>,
}

impl<'a> RequestedRecords<'a> {
    fn new(names: Option<&'a [Words<100>]>) -> Self {
        Self { names, met: vec![false; names.map_or(0, <[_]>::len)] }
    }

    fn takes(&mut self, who: Who, participant: &str, slug: Option<&str>) -> bool {
        let Some(names) = self.names else { return true };
        // A deleted record has no slug any more. Its participant's id is often the same.
        let is = |name: &str| slug.unwrap_or(participant) == name || Uuid::try_parse(name) == Ok(who.id());
        let at = names.iter().position(|name| is(&name.0));
        if let Some(met) = at.and_then(|at| self.met.get_mut(at)) {
            *met = true;
        }
        at.is_some()
    }

    /// Requested names that match no record.
    fn unknown(&self) -> Vec<CommitError> {
        let unmet = self.names.into_iter().flatten().zip(&self.met).filter(|(_, met)| !**met);
        let error = "is not a participant with a record";
        unmet.map(|(name, _)| CommitError { character_id: name.0.clone(), error: error.to_owned() }).collect()
    }
}

async fn members(cx: &Cx<'_>, encounter: Uuid) -> Result<HashMap<String, Member>> {
    let rows = sqlx::query(
        "SELECT participant_id, kind, record_id, version, committed_at IS NOT NULL AS committed FROM encounter_member \
         WHERE tenant_id = $1 AND encounter_id = $2",
    )
    .bind(cx.tx.tenant())
    .bind(encounter)
    .fetch_all(&mut *cx.tx.connection().await)
    .await?;
    let member = |row: &sqlx::postgres::PgRow| {
        let id = row.read("record_id")?;
        let who = if row.read::<&str>("kind")? == "npc" { Who::Npc(id) } else { Who::Character(id) };
        Ok((
            row.read("participant_id")?,
            Member { who, version: row.read("version")?, committed: row.read("committed")? },
        ))
    };
    rows.iter().map(member).collect()
}

/// Marks participants as committed. This also changes the encounter, so that the journal records it.
async fn mark(cx: &Cx<'_>, encounter: Uuid, participants: &[String]) -> Result<()> {
    sqlx::query(
        "WITH e AS (UPDATE encounter SET hidden = hidden WHERE tenant_id = $1 AND id = $2) \
         UPDATE encounter_member SET committed_at = now(), since_at = now(), turn_id = $4 \
         WHERE tenant_id = $1 AND encounter_id = $2 AND participant_id = ANY ($3)",
    )
    .bind(cx.tx.tenant())
    .bind(encounter)
    .bind(participants)
    .bind(cx.turn)
    .execute(&mut *cx.tx.connection().await)
    .await?;
    Ok(())
}
