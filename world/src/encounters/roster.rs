//! Participants join and leave.

use rules::encounter::Verbosity;
use serde_json::json;

use super::{
    answers::EncounterView,
    enlist::{enlist, invalid},
    input::ParticipantInput,
    service::{Cx, view},
    store::{self, LogEntry},
};
use crate::dice::service::{self as dice, Wish};
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
    cx.has_room().await?;
    let mut it = store::read(cx.tx, cx.place, id, true).await?;
    let mut warnings = Vec::new();
    let (mut new, members) =
        enlist(cx.tx, it.campaign, std::slice::from_ref(input), |_| pointer.to_owned(), &mut warnings).await?;
    let new = new.pop().ok_or_else(|| Error::internal("nobody joins"))?;
    let record = new.character_id.as_ref().or(new.npc_id.as_ref());
    if it.now.participants().iter().any(|p| record.is_some() && p.character_id.as_ref().or(p.npc_id.as_ref()) == record)
    {
        return Err(invalid(format!("{pointer}/character_id"), "already takes part"));
    }
    let wish = Wish { given, seed: None, preview: false };
    let decide = |dice: &mut dyn rules::dice::Dice| {
        it.now.join(&new, dice).map_err(|refusal| cx.eyes.refusal(&it.now, None, refusal).into())
    };
    let joining = dice::roll(cx.tx, it.campaign, &wish, decide).await;
    let (decision, rolled) = joining.map_err(|error| below(error, pointer))?;
    rolled.used_up(0)?;
    let action = json!({ "action": "join", "participant_id": new.id }).to_string();
    let entry = LogEntry { member: members.first(), ..LogEntry::of(action, "join", cx.turn) };
    store::append(cx.tx, &mut it, decision.events, &entry).await?;
    let mut view = EncounterView { dice: rolled.told(), ..view(&it, Verbosity::Standard, cx.eyes) };
    view.fight.warn(warnings);
    Ok(view)
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
