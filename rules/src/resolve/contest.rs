//! Contests: two checks against each other, such as grappling and shoving (SRD 5.1, "Contests", "Grappling").

use serde::{Deserialize, Serialize};

use super::{
    Automatic, CheckKind, Circumstances, Outcome, ParticipantRoll, RuleError, StateChange,
    check::{Checked, checked, prepare},
    d20::D20Test,
    error::{Stop, settle},
    summary::signed,
};
use crate::srd::Advantage;
use crate::{
    dice::Dice,
    sheet::{Condition, Creature},
    srd::Ability,
};

/// The purpose of a contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContestPurpose {
    /// To grab: the loser is grappled.
    Grapple,
    /// To knock over: the loser is prone.
    ShoveProne,
    /// To push 5 feet away.
    ShoveAway,
    /// To get out of a grapple.
    Escape,
}

/// A contest (tool `resolve_contest`). The opponent is an argument of the function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContestArgs {
    /// What the actor rolls. Default for a grapple or a shove: Athletics; for an escape: the better of Athletics and
    /// Acrobatics.
    pub own: CheckKind,
    /// What the opponent rolls. Default for a grapple or a shove: the better of Athletics and Acrobatics.
    pub theirs: CheckKind,
    /// The purpose, if the contest changes anything.
    pub purpose: Option<ContestPurpose>,
}

/// Resolves a contest. The higher total wins; a tie changes nothing. The circumstances are the actor's.
///
/// Dice: the actor's d20s, the opponent's, then the bonus dice of both.
///
/// # Errors
/// If dice run out.
pub fn resolve_contest(
    actor: &Creature,
    opponent: &Creature,
    args: &ContestArgs,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, RuleError> {
    settle(contest(actor, opponent, args, circumstances, dice))
}

fn contest(
    actor: &Creature,
    opponent: &Creature,
    args: &ContestArgs,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, Stop> {
    use ContestPurpose::{Escape, Grapple, ShoveAway, ShoveProne};
    let (mine, other) = match args.purpose {
        Some(Grapple | ShoveProne | ShoveAway) => {
            fits(actor, opponent)?;
            (chosen(&args.own, || checked(Some("athletics"), None))?, chosen(&args.theirs, || either(opponent))?)
        }
        Some(Escape) => {
            (chosen(&args.own, || either(actor))?, chosen(&args.theirs, || checked(Some("athletics"), None))?)
        }
        None => {
            let of = |kind: &CheckKind| checked(kind.skill.as_deref(), kind.ability.as_deref());
            (of(&args.own)?, of(&args.theirs)?)
        }
    };
    let mut own = prepare(actor, mine, circumstances);
    let mut theirs = prepare(opponent, other, &Circumstances::default());
    let charmed = opponent.condition_rules();
    let charmed = charmed.iter().find(|(rule, _)| rule.name == "charmed").and_then(|(_, source)| *source);
    if mine.ability == Ability::Charisma && charmed.is_some_and(|by| actor.is_called(by)) {
        own.lean(Advantage::Advantage, || "the opponent is charmed by the actor".into());
    }
    if args.purpose.is_some() && opponent.is_incapacitated() {
        own.settle(Automatic::Success, "automatic success: the opponent is incapacitated");
        theirs.automatic = Some(Automatic::Failure);
    }
    own.roll(dice)?;
    theirs.roll(dice)?;
    own.roll_bonus(dice)?;
    theirs.roll_bonus(dice)?;
    Ok(judged(actor, opponent, (own, mine), (theirs, other), args.purpose))
}

fn judged(
    actor: &Creature,
    opponent: &Creature,
    (own, mine): (D20Test, Checked),
    (mut theirs, other): (D20Test, Checked),
    purpose: Option<ContestPurpose>,
) -> Outcome {
    let order = match (own.automatic, theirs.automatic) {
        (Some(Automatic::Success), _) | (None, Some(Automatic::Failure)) => std::cmp::Ordering::Greater,
        (Some(Automatic::Failure), _) | (None, Some(Automatic::Success)) => std::cmp::Ordering::Less,
        (None, None) => own.total().cmp(&theirs.total()),
    };
    let success = order.is_gt();
    let participants =
        vec![participant(actor, &own, mine, success), participant(opponent, &theirs, other, order.is_lt())];
    let opposed = theirs.total();
    let theirs_shown = std::mem::take(&mut theirs.shown);
    let mut outcome = Outcome::of(mine.title(), own);
    outcome.with(opponent);
    outcome.dice_of(opponent, theirs_shown);
    outcome.effects.append(&mut theirs.spent);
    outcome.reasons.extend(theirs.reasons.iter().map(|r| format!("{}: {r}", opponent.name).into()));
    outcome.dc_or_ac = opposed.to_string();
    outcome.success = success;
    outcome.participants = participants;
    (outcome.outcome, outcome.notes) = match order {
        std::cmp::Ordering::Greater => ("wins".to_owned(), format!("{} wins against {}.", actor.name, opponent.name)),
        std::cmp::Ordering::Less => ("loses".to_owned(), format!("{} loses against {}.", actor.name, opponent.name)),
        std::cmp::Ordering::Equal => ("tie".to_owned(), "A tie: nothing changes.".to_owned()),
    };
    if success {
        outcome.effects.extend(purpose.and_then(|purpose| won(actor, opponent, purpose)));
    }
    outcome.finished()
}

/// What a win changes.
fn won(actor: &Creature, opponent: &Creature, purpose: ContestPurpose) -> Option<StateChange> {
    let name = match purpose {
        ContestPurpose::Grapple => "grappled",
        ContestPurpose::ShoveProne => "prone",
        ContestPurpose::ShoveAway => return None,
        ContestPurpose::Escape => {
            let name = "grappled".to_owned();
            return Some(StateChange::RemoveCondition { creature: actor.key().to_owned(), name });
        }
    };
    if opponent.is_immune_to_condition(name) {
        return None;
    }
    let condition = Condition { name: name.to_owned(), source: Some(actor.key().to_owned()), ..Condition::default() };
    Some(StateChange::AddCondition { creature: opponent.key().to_owned(), condition })
}

/// Checks that the opponent is at most one size larger.
fn fits(actor: &Creature, opponent: &Creature) -> Result<(), Stop> {
    let (own, theirs) = (actor.size_step().unwrap_or(2), opponent.size_step().unwrap_or(2));
    if actor.is_incapacitated() {
        return Err(Stop::Impossible(format!("{} cannot act", actor.name)));
    }
    if theirs > own + 1 {
        return Err(Stop::Impossible(format!("{} is too large for {}", opponent.name, actor.name)));
    }
    Ok(())
}

fn chosen(kind: &CheckKind, default: impl FnOnce() -> Result<Checked, Stop>) -> Result<Checked, Stop> {
    if kind.skill.is_none() && kind.ability.is_none() {
        return default();
    }
    checked(kind.skill.as_deref(), kind.ability.as_deref())
}

/// The better of Athletics and Acrobatics.
fn either(creature: &Creature) -> Result<Checked, Stop> {
    let plain = Circumstances::default();
    let (strong, nimble) = (checked(Some("athletics"), None)?, checked(Some("acrobatics"), None)?);
    let better = prepare(creature, nimble, &plain).modifier() > prepare(creature, strong, &plain).modifier();
    Ok(if better { nimble } else { strong })
}

/// One creature's roll, as answers show it.
pub(crate) fn participant(creature: &Creature, test: &D20Test, what: Checked, success: bool) -> ParticipantRoll {
    ParticipantRoll {
        creature: creature.key().to_owned(),
        name: creature.name.clone(),
        check_type: what.title(),
        components: test.components(),
        die_result: test.die(),
        total_modifier: signed(test.modifier()),
        total: test.total(),
        success,
        advantage: test.advantage(),
        automatic: test.automatic,
    }
}
