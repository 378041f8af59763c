//! Participants join and leave.

use rules::encounter::{Decision, Participant, Refusal, Verbosity};
use serde_json::json;

use super::{
    answers::EncounterView,
    enlist::enlist,
    input::ParticipantInput,
    service::{Cx, refused, view},
    store::{self, LogEntry, Stored},
};
use crate::dice::service::{self as dice, DiceOrigin, Failure, Wish};
use base::error::{Error, Result};
use edge::http::etag::Expected;

/// Adds a participant to an active encounter.
///
/// # Errors
/// `not_found`, `encounter_already_ended`, `validation_failed`, `invalid_dice`.
pub async fn join(
    cx: &Cx<'_>,
    id: &str,
    (input, pointer): (&ParticipantInput, &str),
    given: Option<&[u32]>,
) -> Result<EncounterView> {
    let (it, dice, warnings) = join_at(cx, id, std::slice::from_ref(input), |_| pointer.to_owned(), given).await?;
    let mut view = EncounterView { dice, ..view(&it, Verbosity::Standard, cx.eyes) };
    view.fight.warn(warnings);
    Ok(view)
}

/// Adds participants to an active encounter: all of them as one action, or none.
///
/// # Errors
/// `not_found`, `encounter_already_ended`, `validation_failed` with a pointer such as `/2/npc_id`.
pub async fn join_all(cx: &Cx<'_>, id: &str, inputs: &[ParticipantInput]) -> Result<()> {
    join_at(cx, id, inputs, |nth| format!("/{nth}"), None).await?;
    Ok(())
}

/// Adds participants whose errors are at these pointers. Returns the encounter, where the dice came from, and warnings.
async fn join_at(
    cx: &Cx<'_>,
    id: &str,
    inputs: &[ParticipantInput],
    at: impl Fn(usize) -> String,
    given: Option<&[u32]>,
) -> Result<(Stored, DiceOrigin, Vec<String>)> {
    cx.has_room().await?;
    let mut it = store::read(cx.tx, cx.place, id, true).await?;
    let mut warnings = Vec::new();
    let (mut all, mut members) = enlist(cx.tx, it.campaign, inputs, &at, &mut warnings).await?;
    // Who comes back has the id that it had.
    for new in all.iter_mut().zip(inputs).filter_map(|(new, input)| input.id.is_none().then_some(new)) {
        let record = new.character_id.as_ref().or(new.npc_id.as_ref());
        let is = |before: &&Participant| {
            record.is_some() && before.character_id.as_ref().or(before.npc_id.as_ref()) == record
        };
        let Some(before) = it.now.departed().iter().find(is) else { continue };
        members
            .iter_mut()
            .filter(|one| one.participant == new.id)
            .for_each(|one| one.participant.clone_from(&before.id));
        new.id.clone_from(&before.id);
    }
    let wish = Wish { given, seed: None, preview: false };
    let decide = |dice: &mut dyn rules::dice::Dice| {
        let (mut now, mut events) = (it.now.clone(), Vec::new());
        for (nth, new) in all.iter().enumerate() {
            let joined = now.join(new, dice).map_err(|refusal| match refusal {
                refusal @ Refusal::Dice(_) => Failure::from(refusal),
                refusal => Failure::Other(below(refused(cx.eyes.refusal(&now, None, refusal)), &at(nth))),
            })?;
            now.apply_all(&joined.events);
            events.extend(joined.events);
        }
        Ok(Decision { events, outcomes: Vec::new() })
    };
    let (decision, rolled) = dice::roll(cx.tx, it.campaign, &wish, decide).await?;
    rolled.used_up(0)?;
    let ids: Vec<&str> = all.iter().map(|new| new.id.as_str()).collect();
    let action = json!({ "action": "join", "participant_ids": ids }).to_string();
    let entry = LogEntry { members: &members, ..LogEntry::of(action, "join", cx.turn) };
    store::append(cx.tx, &mut it, decision.events, &entry).await?;
    Ok((it, rolled.told(), warnings))
}

/// Takes a participant out of an active encounter. Whoever has the turn passes it on. What the fight did to a record is written into it by
/// the commit as if it had stayed; who comes back is as it was.
///
/// # Errors
/// `not_found`, also if nobody has this id; `precondition_failed`; `encounter_already_ended`.
pub async fn remove(cx: &Cx<'_>, id: &str, participant: &str, expected: &Expected) -> Result<()> {
    cx.has_room().await?;
    let mut it = store::read(cx.tx, cx.place, id, true).await?;
    let known = it.now.participant(participant).filter(|one| !it.hidden && cx.eyes.knows(&it.now, one));
    let missing = || Error::not_found("participant");
    let leaver = known.ok_or_else(missing)?.id.clone();
    expected.check(it.version)?;
    let wish = Wish { given: None, seed: None, preview: false };
    let decide = |dice: &mut dyn rules::dice::Dice| Ok(it.now.leave(&leaver, dice)?);
    let (decision, _) = dice::roll(cx.tx, it.campaign, &wish, decide).await?;
    let action = json!({ "action": "leave", "participant_id": leaver }).to_string();
    let entry =
        LogEntry { leaver: Some(&leaver), outcomes: &decision.outcomes, ..LogEntry::of(action, "leave", cx.turn) };
    store::append(cx.tx, &mut it, decision.events, &entry).await?;
    Ok(())
}

/// Moves an error's pointers below another pointer.
fn below(error: Error, pointer: &str) -> Error {
    error.with_pointers(|own| format!("{pointer}{}", own.strip_prefix("/participant").unwrap_or(own)))
}
