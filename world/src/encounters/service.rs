//! Operations on encounters, shared by the REST routes, the tools and the pages.

use rules::{
    encounter::{Action, ActionKind, Decision, Encounter, Refusal, Setup, Verbosity, commit_required},
    resolve::Outcome,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    answers::{ActionTold, EncounterView, EndTold, FightShown},
    enlist::{enlist, invalid},
    eyes::Eyes,
    input::{ActionInput, CreateInput, EndInput},
    stand::{own_in, whose_turn},
    store::{self, LogEntry, Place, Stored},
};
use crate::{
    dice::service::{self as dice, DiceOrigin, Failure, Wish, given_error},
    messages::service::NewMessage,
    rules::service::{most_dice, spares},
    significance::report::{ActionReport, Source, report_own},
};
use base::{
    clock,
    error::{Code, Error, Result},
    metrics,
};
use db::tenancy::TenantTx;
use edge::{
    caller::{Caller, Scope},
    http::resource::Ref,
    limits::check_rows_more,
};

/// The transaction, the place and the turn of an operation.
#[derive(Clone, Copy)]
pub struct Cx<'a> {
    pub tx: &'a TenantTx,
    pub place: Place<'a>,
    pub turn: Option<Uuid>,
    /// Whether a command does it.
    pub is_command: bool,
    /// Whether an AI's tool does it, which must not change locked records.
    pub obeys_locks: bool,
    /// The most rows of a kind that the tenant may have. The campaign's log counts, too.
    pub rows_max: u64,
    /// Who reads the answer.
    pub eyes: Eyes,
}

/// The most messages that tell one action.
pub const MESSAGES: u64 = 2;

impl<'a> Cx<'a> {
    /// What a client asks for, without a turn.
    #[must_use]
    pub fn of(tx: &'a TenantTx, campaign: &'a Ref, caller: &Caller) -> Self {
        let place = Place { campaign, only: caller.campaign };
        let rows_max = caller.tenant.limits.rows_per_kind;
        Self { tx, place, turn: None, is_command: false, obeys_locks: false, rows_max, eyes: Eyes::of(caller) }
    }

    /// Checks that the campaign's log has room. One statement, or none if the tenant has no limit.
    ///
    /// # Errors
    /// `quota_exceeded`.
    pub(super) async fn has_room(&self) -> Result<()> {
        check_rows_more(self.tx, self.rows_max, "message", MESSAGES).await
    }
}

/// A new encounter.
pub struct Created {
    pub id: Uuid,
    pub version: i64,
    pub view: EncounterView,
}

/// Begins an encounter: looks up records, rolls initiative and begins the first turn.
///
/// # Errors
/// `validation_failed`, `invalid_dice`; database errors.
pub async fn create(tx: &TenantTx, campaign: Uuid, input: &CreateInput, rows_max: u64, eyes: Eyes) -> Result<Created> {
    check_rows_more(tx, rows_max, "message", MESSAGES).await?;
    let id = clock::id();
    let mut warnings = Vec::new();
    if input.seed.is_some() && input.dice.is_some() {
        return Err(invalid("/seed".to_owned(), "give either dice or a seed, not both"));
    }
    let at = |index| format!("/participants/{index}");
    let (participants, members) = enlist(tx, campaign, &input.participants, at, &mut warnings).await?;
    let setup = Setup {
        encounter_id: id.to_string(),
        name: input.name.clone(),
        participants,
        terrain: input.terrain.as_ref().map(Into::into),
        lighting: input.lighting,
        surprise: input.surprise.clone(),
        warnings,
    };
    let wish = Wish { given: input.dice.as_deref(), seed: input.seed, preview: false };
    let (made, rolled) = dice::roll(tx, campaign, &wish, |dice| Ok(Encounter::create(&setup, dice)?)).await?;
    rolled.used_up(0)?;
    let version = store::insert(tx, campaign, id, &made.0, &members).await?;
    metrics::ENCOUNTERS.with_label_values(&["created"]).inc();
    let (fight, hidden) = (eyes.view(&made.0, Verbosity::Standard), eyes.hidden(&made.0));
    let view = EncounterView { fight, dice: rolled.told(), hidden, id, version };
    Ok(Created { id, version, view })
}

/// Reads an encounter's current state.
///
/// # Errors
/// `not_found`.
pub async fn get(cx: &Cx<'_>, id: &str, verbosity: Verbosity) -> Result<EncounterView> {
    let it = store::read(cx.tx, cx.place, id, false).await?;
    if it.hidden {
        return Err(Error::not_found("encounter"));
    }
    Ok(view(&it, verbosity, cx.eyes))
}

/// The fight, with its name and notes as clients edited them.
pub(super) fn fight_shown(it: &Stored, verbosity: Verbosity, eyes: Eyes) -> FightShown {
    let mut fight = eyes.view(&it.now, verbosity);
    fight.edited(&it.name, it.notes.as_deref());
    fight
}

pub(super) fn view(it: &Stored, verbosity: Verbosity, eyes: Eyes) -> EncounterView {
    let (fight, hidden) = (fight_shown(it, verbosity, eyes), eyes.hidden(&it.now));
    EncounterView { fight, dice: DiceOrigin::default(), hidden, id: it.id, version: it.version }
}

/// On whose behalf an action is done.
pub enum Hand<'a> {
    /// Somebody who may play the game master.
    Table,
    /// A character, by its id. It may only act for itself.
    Own(&'a str),
}

/// Actions that only a game master may do.
const MASTERS: &[ActionKind] = &[
    ActionKind::Damage,
    ActionKind::Heal,
    ActionKind::TempHp,
    ActionKind::AddCondition,
    ActionKind::RemoveCondition,
    ActionKind::AddEffect,
    ActionKind::RemoveEffect,
    ActionKind::RollInitiative,
    ActionKind::Conceal,
    ActionKind::Reveal,
];

/// Does an action in an encounter.
///
/// # Errors
/// `not_your_turn`, `no_action_left`, `not_dying`, `encounter_already_ended`, `validation_failed`, `invalid_dice`,
/// `forbidden`, `not_found`. Nothing has changed then.
pub async fn act(cx: &Cx<'_>, id: &str, input: &ActionInput, hand: Hand<'_>) -> Result<ActionTold> {
    cx.has_room().await?;
    let it = store::read(cx.tx, cx.place, id, true).await?;
    let mut action = Action::from(input);
    let mut own_id = None;
    if let Hand::Own(character) = hand {
        own_id = Some(own(&it.now, &mut action, character)?);
    }
    only_known(&it.now, &mut action, cx.eyes)?;
    let how = How {
        given: input.dice.as_deref(),
        preview: input.preview,
        turn: cx.turn,
        is_command: cx.is_command,
        own: own_id.as_deref(),
        eyes: cx.eyes,
    };
    act_in(cx.tx, it, &action, &how).await
}

/// Does what a client asks for, as far as its credential allows.
///
/// # Errors
/// `forbidden` for what only a game master may do, and as for [`act`].
pub async fn act_for(
    tx: &TenantTx,
    caller: &Caller,
    (campaign, id): (&Ref, &str),
    input: &ActionInput,
) -> Result<ActionTold> {
    if input.dice.is_some() {
        caller.needs_game_master("Giving dice")?;
    }
    if input.overridden {
        caller.needs(Scope::Gm, "Overriding the rules of a turn")?;
    }
    if input.preview {
        may_preview(Eyes::of(caller))?;
    }
    let own = caller.player.map(|player| player.to_string());
    let hand = own.as_deref().map_or(Hand::Table, Hand::Own);
    act(&Cx::of(tx, campaign, caller), id, input, hand).await
}

/// How to carry out an action.
pub struct How<'a> {
    /// Dice rolled by hand.
    pub given: Option<&'a [u32]>,
    /// Whether to write nothing.
    pub preview: bool,
    pub turn: Option<Uuid>,
    /// Whether a command does it. Commands report themselves as actions, so a deed is not reported a second time.
    pub is_command: bool,
    /// The participant whose player acts; `None` for somebody who acts for everybody.
    pub own: Option<&'a str>,
    /// Who reads the answer.
    pub eyes: Eyes,
}

/// Does an action in an encounter that the transaction has locked.
///
/// # Errors
/// As for [`act`].
pub async fn act_in(tx: &TenantTx, mut it: Stored, action: &Action, how: &How<'_>) -> Result<ActionTold> {
    let attacks = matches!(action.action, ActionKind::Attack | ActionKind::CastSpell);
    let wish = Wish { given: how.given, seed: None, preview: how.preview };
    let decide = |dice: &mut dyn rules::dice::Dice| {
        it.now.act(action, dice).map_err(|refusal| match refusal {
            Refusal::NotYourTurn { .. } if how.own.is_some() || how.eyes != Eyes::Master => {
                Failure::Other(Error::new(Code::NotYourTurn, whose_turn(&it.now, how.own)))
            }
            refusal => how.eyes.refusal(&it.now, action.participant_id.as_deref(), refusal).into(),
        })
    };
    let (decision, rolled) = dice::roll(tx, it.campaign, &wish, decide).await?;
    let needless = if attacks && decision.outcomes.iter().any(spares) {
        let full = most_dice(|dice| it.now.act(action, dice).ok().map(|full| dice_of(&full)));
        full.saturating_sub(dice_of(&decision))
    } else {
        0
    };
    rolled.used_up(needless)?;
    let Decision { events, outcomes } = decision;
    let before = it.now.clone();
    let shown_events = (how.eyes == Eyes::Master).then(|| events.clone());
    let mut told = None;
    if how.preview {
        it.now.apply_all(&events);
    } else if !events.is_empty() {
        let asked = serde_json::to_string(&action_for_log(action)?).map_err(Error::internal)?;
        let with = action.attack.spell_name.as_deref().or(action.attack.weapon.as_deref());
        let entry = LogEntry { with, outcomes: &outcomes, ..LogEntry::of(asked, action.action.name(), how.turn) };
        let messages = store::append(tx, &mut it, events, &entry).await?;
        told = Some(for_all(&messages));
        if let Some(kind) = reported_as(action.action).filter(|_| it.deeds_count) {
            report_deed(tx, &it, &before, (action, kind), &for_all(&messages)).await?;
        }
    }
    metrics::ENCOUNTER_ACTIONS.with_label_values(&[action.action.name()]).inc();
    Ok(ActionTold {
        action: action.action,
        outcomes: how.eyes.outcomes(&it.now, outcomes),
        events: shown_events,
        preview: how.preview.then_some(true),
        standing: how.eyes.standing(&before, &it.now),
        told,
        seq: it.seq,
        dice: rolled.told(),
    })
}

/// The type of action as which the server reports what a character does in a fight.
fn reported_as(action: ActionKind) -> Option<&'static str> {
    match action {
        ActionKind::Attack => Some("attack"),
        ActionKind::CastSpell => Some("cast_spell"),
        _ => None,
    }
}

/// Reports what a character did in a fight as an action on the NPCs that it was aimed at.
async fn report_deed(
    tx: &TenantTx,
    it: &Stored,
    before: &Encounter,
    (action, kind): (&Action, &str),
    told: &str,
) -> Result<()> {
    let find = |id: &str| before.participants().iter().find(|p| p.id == id);
    let actor = action.participant_id.as_deref().map_or_else(|| before.current().map(|p| p.id.as_str()), Some);
    let character =
        actor.and_then(find).and_then(|p| p.character_id.as_deref()).and_then(|id| Uuid::try_parse(id).ok());
    let Some(character) = character else { return Ok(()) };
    let aims = action.target_id.iter().chain(&action.target_ids);
    let targets = aims.filter_map(|id| find(id)?.npc_id.clone()).collect();
    let seen = ActionReport::observed(character, kind, targets, told);
    report_own(tx, it.campaign, &seen, Source::Encounter).await
}

/// The text that everybody may read.
fn for_all(messages: &[NewMessage]) -> String {
    let open = messages.iter().filter(|m| m.whisper_to.is_empty());
    open.map(|m| m.content.as_str()).collect::<Vec<_>>().join(" ")
}

/// An action for the log, without empty fields.
fn action_for_log(action: &Action) -> Result<Value> {
    let mut said = serde_json::to_value(action).map_err(Error::internal)?;
    if let Some(members) = said.as_object_mut() {
        members.retain(|_, v| match v {
            Value::Null | Value::Bool(false) => false,
            Value::Array(list) => !list.is_empty(),
            Value::Object(members) => !members.is_empty(),
            _ => true,
        });
    }
    Ok(said)
}

/// Checks that an action is one that the character may do itself. Returns its id in the fight.
fn own(it: &Encounter, action: &mut Action, character: &str) -> Result<String> {
    let mine = own_in(it, character);
    let mine =
        mine.ok_or_else(|| Error::new(Code::Forbidden, "This character does not take part in the encounter."))?;
    let acts = action.participant_id.get_or_insert_with(|| mine.id.clone());
    if *acts != mine.id {
        return Err(Error::new(Code::Forbidden, "A character can only act for itself."));
    }
    if action.overridden || MASTERS.contains(&action.action) {
        return Err(Error::new(Code::Forbidden, "Only a game master can do this."));
    }
    if action.action == ActionKind::EndConcentration && action.target_id.as_ref().is_some_and(|id| *id != mine.id) {
        return Err(Error::new(Code::Forbidden, "A character can only end its own concentration."));
    }
    if action.action == ActionKind::AdvanceTurn && it.current().is_none_or(|p| p.id != mine.id) {
        let message = format!("A character can only end its own turn. {}", whose_turn(it, Some(&mine.id)));
        return Err(Error::new(Code::NotYourTurn, message));
    }
    Ok(mine.id.clone())
}

/// Before the id of somebody whom the caller does not know of, so that nobody has it. Ids have no control characters.
const NOBODY: char = '\0';

/// Makes an action mean nobody whom its reader does not know of. To the engine, they are not there.
fn only_known(it: &Encounter, action: &mut Action, eyes: Eyes) -> Result<()> {
    let Action { participant_id, target_id, target_ids, .. } = action;
    for id in participant_id.iter_mut().chain(target_id).chain(target_ids) {
        if it.participant(id).is_some_and(|one| !eyes.knows(it, one)) {
            id.insert(0, NOBODY);
        }
    }
    let is_unknown = it.current().is_some_and(|current| !eyes.knows(it, current));
    let acts = action.action != ActionKind::AdvanceTurn && !MASTERS.contains(&action.action);
    if is_unknown && acts && action.participant_id.is_none() {
        return Err(Error::new(Code::NotYourTurn, whose_turn(it, None)));
    }
    Ok(())
}

/// Checks that the reader of an answer may preview an action in a fight. With previews one could try until one knows an enemy's
/// armor class.
///
/// # Errors
/// `forbidden`.
pub fn may_preview(eyes: Eyes) -> Result<()> {
    if eyes == Eyes::Master {
        return Ok(());
    }
    let message =
        "Previewing an action in a fight needs the scope `gm`, because a preview would reveal enemies' numbers.";
    Err(Error::new(Code::Forbidden, message))
}

/// Ends an encounter.
///
/// # Errors
/// `encounter_already_ended`, `validation_failed`, `not_found`.
pub async fn end(cx: &Cx<'_>, id: &str, input: &EndInput) -> Result<EndTold> {
    cx.has_room().await?;
    let mut it = store::read(cx.tx, cx.place, id, true).await?;
    let decision = it.now.end(input.outcome, input.notes.as_deref()).map_err(refused)?;
    let action = json!({ "action": "end", "outcome": input.outcome }).to_string();
    let hide = !input.preserve_log;
    let entry = LogEntry { notes: input.notes.as_deref(), hide, ..LogEntry::of(action, "end", cx.turn) };
    store::append(cx.tx, &mut it, decision.events, &entry).await?;
    metrics::ENCOUNTERS.with_label_values(&["ended"]).inc();
    Ok(EndTold {
        encounter_id: it.id,
        outcome: input.outcome,
        summary: input.generate_summary.then(|| cx.eyes.summary(&it.now)),
        commit_required: commit_required(&it.now.diff()),
        participant_updates: cx.eyes.updates(&it.now),
    })
}

fn dice_of(decision: &Decision) -> usize {
    decision.outcomes.iter().map(|o: &Outcome| o.dice.len()).sum()
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Dice(cause) => Self::Dice(cause),
            other => Self::Other(refused(other)),
        }
    }
}

/// A refusal by the rules as an error for clients.
pub(super) fn refused(refusal: Refusal) -> Error {
    let sentence = |text: String| {
        let mut letters = text.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>() + ".").unwrap_or_default()
    };
    let message = sentence(refusal.to_string().replace(NOBODY, ""));
    match refusal {
        Refusal::AlreadyEnded => Error::new(Code::EncounterAlreadyEnded, message),
        Refusal::NotYourTurn { .. } => Error::new(Code::NotYourTurn, message),
        Refusal::NoActionLeft { .. } => Error::new(Code::NoActionLeft, message),
        Refusal::NotDying => Error::new(Code::NotDying, message),
        Refusal::NobodyLeft => Error::new(Code::Conflict, message),
        Refusal::Unknown { argument, id } => {
            let id = id.replace(NOBODY, "");
            Error::invalid(format!("/{argument}"), "unknown_reference", format!("Nobody called \"{id}\" takes part."))
        }
        Refusal::Argument { argument, message } => invalid(format!("/{argument}"), message.replace(NOBODY, "")),
        Refusal::Dice(cause) => given_error(&cause),
    }
}
