//! Runs one resolver for a request: with the right dice, writing its changes and answering its outcome.
//!
//! It must never write in a preview, and never change hit points if the caller only asked what would happen.

use rules::{
    dice::{Dice, OutOfDice},
    resolve::{Outcome, RuleError, StateChange},
};
use uuid::Uuid;

use super::{
    answers::{AppliedChange, OutcomeShown, ResolvedOutcome},
    cast::Cast,
};
use crate::dice::service::{self as dice, Failure, Rolled, Wish};
use base::{
    error::{Code, Error, Result},
    metrics,
};
use db::tenancy::TenantTx;

/// How to resolve something.
pub struct How<'a> {
    pub tx: &'a TenantTx,
    pub campaign: Uuid,
    /// The tool's name, for metrics.
    pub tool: &'static str,
    /// Dice rolled by hand.
    pub given: Option<&'a [u32]>,
    /// True to write nothing and to leave the fair stream alone.
    pub preview: bool,
    /// Whether to apply changes of hit points and what follows from them. Everything else is applied in any case.
    pub harm: bool,
    /// Whether given dice may include damage dice that a miss or a save makes unnecessary.
    pub spares_damage: bool,
    /// Whether an AI's tool resolves it, which must not change locked records.
    pub obeys_locks: bool,
}

/// Runs a resolver over a cast and writes the changes.
///
/// # Errors
/// `invalid_dice` for given dice that do not match, `validation_failed` and `not_dying` as the rules say, and database
/// errors.
pub async fn resolve(
    how: &How<'_>,
    mut cast: Cast,
    run: impl Fn(&Cast, &mut dyn Dice) -> Result<Result<Outcome, RuleError>>,
) -> Result<ResolvedOutcome> {
    let wish = Wish { given: how.given, seed: None, preview: how.preview };
    let (outcome, dice) = dice::roll(how.tx, how.campaign, &wish, |dice| Ok(run(&cast, dice)??)).await?;
    if !dice.unused.is_empty() && !outcome.impossible {
        dice.used_up(needless(how, &cast, &outcome, &run))?;
    }
    let withheld = if how.harm { vec![false; outcome.effects.len()] } else { withheld(&outcome.effects) };
    let applied: Vec<bool> = withheld.into_iter().map(|w| !w && !how.preview).collect();
    if applied.contains(&true) {
        cast.change(outcome.effects.iter().zip(&applied).filter(|(_, applied)| **applied).map(|(change, _)| change));
        cast.write(how.tx, how.campaign, how.obeys_locks).await?;
    }
    Ok(answer(how, outcome, &applied, &dice))
}

/// Answers an outcome that needed no roll and has no effects.
#[must_use]
pub fn plain(how: &How<'_>, outcome: Outcome) -> ResolvedOutcome {
    let unused = how.given.unwrap_or_default();
    answer(how, outcome, &[], &Rolled::nothing(unused))
}

impl From<RuleError> for Failure {
    fn from(error: RuleError) -> Self {
        Self::Other(match error {
            RuleError::Dice(cause) => return Self::Dice(cause),
            RuleError::Argument { argument, message } => {
                Error::invalid(format!("/{argument}"), "invalid_value", format!("{message}."))
            }
            RuleError::Target { index, message } => {
                Error::invalid(format!("/target_ids/{index}"), "invalid_value", format!("{message}."))
            }
            RuleError::NotDying => Error::new(
                Code::NotDying,
                "Only a creature at 0 hit points that is neither stable nor dead makes death saving throws.",
            ),
        })
    }
}

/// How many dice a miss or a save made unnecessary: those that the same roll would take if everything hit or every save
/// failed.
fn needless(
    how: &How<'_>,
    cast: &Cast,
    outcome: &Outcome,
    run: &impl Fn(&Cast, &mut dyn Dice) -> Result<Result<Outcome, RuleError>>,
) -> usize {
    if !how.spares_damage || !spares(outcome) {
        return 0;
    }
    let full = |dice: &mut dyn Dice| run(cast, dice).ok()?.ok().map(|full| full.dice.len());
    most_dice(full).saturating_sub(outcome.dice.len())
}

/// Whether a miss or a save may have made damage dice unnecessary.
pub(crate) fn spares(outcome: &Outcome) -> bool {
    !outcome.dice.is_empty() && (outcome.damage.is_none() || outcome.attacks.iter().any(|a| a.damage.is_none()))
}

/// How many dice something takes at most, that is if everything hits or every save fails. `run` returns how many it
/// took.
pub(crate) fn most_dice(run: impl Fn(&mut dyn Dice) -> Option<usize>) -> usize {
    [Always::Highest, Always::Lowest].into_iter().filter_map(|mut dice| run(&mut dice)).max().unwrap_or(0)
}

/// Dice that always hit, or always fail saves.
enum Always {
    Highest,
    Lowest,
}

impl Dice for Always {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        Ok(match self {
            Self::Highest => faces,
            Self::Lowest => 1,
        })
    }
}

/// Which changes are changes of hit points or follow from them. For each creature these are all from the first such change
/// on, except what somebody else puts on it (a spell's condition, which names its source).
fn withheld(changes: &[StateChange]) -> Vec<bool> {
    let mut harmed: Vec<&str> = Vec::new();
    let withheld = changes.iter().map(|change| {
        let source = match change {
            StateChange::AddCondition { condition, .. } => condition.source.as_deref(),
            StateChange::AddEffect { effect, .. } => effect.source.as_deref(),
            StateChange::Damage { .. }
            | StateChange::Heal { .. }
            | StateChange::TempHp { .. }
            | StateChange::DeathSaves { .. }
            | StateChange::Dies { .. } => {
                harmed.push(change.creature());
                None
            }
            _ => None,
        };
        source.is_none() && harmed.contains(&change.creature())
    });
    withheld.collect()
}

fn answer(how: &How<'_>, outcome: Outcome, applied: &[bool], dice: &Rolled<'_>) -> ResolvedOutcome {
    count(how, &outcome);
    complete(how, OutcomeShown::Whole(Box::new(outcome)), applied, dice)
}

/// Counts an outcome in the metrics.
pub fn count(how: &How<'_>, outcome: &Outcome) {
    let word = match outcome {
        o if o.impossible => "impossible",
        o if o.no_check => "no_check",
        o if o.success => "success",
        _ => "failure",
    };
    metrics::RULES_RESOLVED.with_label_values(&[how.tool, word]).inc();
}

/// An outcome as an answer: with the dice's origin and, for each effect, whether it was applied. If the reader does not see all effects,
/// all or none must have been applied.
#[must_use]
pub fn complete(how: &How<'_>, mut outcome: OutcomeShown, applied: &[bool], dice: &Rolled<'_>) -> ResolvedOutcome {
    let effects = outcome.take_effects().into_iter().zip(applied);
    ResolvedOutcome {
        effects: effects.map(|(change, applied)| AppliedChange { change, applied: *applied }).collect(),
        preview: how.preview.then_some(true),
        dice: dice.told(),
        ..ResolvedOutcome::from(outcome)
    }
}
