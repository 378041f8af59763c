//! One resolver, run for a request: with the right dice, its changes written, its outcome told.
//!
//! It must never write in a preview, nor change hit points where the caller only asked what would happen.

use rules::{
    dice::{Dice, OutOfDice},
    resolve::{Outcome, RuleError, StateChange},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::cast::Cast;
use crate::{
    dice::service::{self as dice, Failure, Rolled, Wish},
    error::{Code, Error, Result},
    ops::metrics,
    tenancy::TenantTx,
};

/// How something is resolved.
pub struct How<'a> {
    pub tx: &'a TenantTx,
    pub campaign: Uuid,
    /// The tool, for metrics.
    pub tool: &'static str,
    /// Dice rolled by hand.
    pub given: Option<&'a [u32]>,
    /// Nothing is written, and the fair stream is left alone.
    pub preview: bool,
    /// Whether hit points change, and what follows from that; the rest is spent in any case.
    pub harm: bool,
    /// Whether damage dice may be given that a miss or a save makes needless.
    pub spares_damage: bool,
}

/// Runs a resolver over a cast and writes what it changes.
///
/// # Errors
/// `invalid_dice` for given dice that do not fit, `validation_failed` and `not_dying` as the rules say, and those of the
/// database.
pub async fn resolve(
    how: &How<'_>,
    mut cast: Cast,
    run: impl Fn(&Cast, &mut dyn Dice) -> Result<Result<Outcome, RuleError>>,
) -> Result<Value> {
    let wish = Wish { given: how.given, seed: None, preview: how.preview };
    let (outcome, dice) = dice::roll(how.tx, how.campaign, &wish, |dice| Ok(run(&cast, dice)??)).await?;
    if !dice.unused.is_empty() && !outcome.impossible {
        dice.used_up(needless(how, &cast, &outcome, &run))?;
    }
    let withheld = if how.harm { vec![false; outcome.effects.len()] } else { withheld(&outcome.effects) };
    let applied: Vec<bool> = withheld.into_iter().map(|w| !w && !how.preview).collect();
    if applied.contains(&true) {
        cast.change(outcome.effects.iter().zip(&applied).filter(|(_, applied)| **applied).map(|(change, _)| change));
        cast.write(how.tx, how.campaign).await?;
    }
    told(how, &outcome, &applied, &dice)
}

/// An outcome that nobody rolled for and that changes nothing.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub fn plain(how: &How<'_>, outcome: &Outcome) -> Result<Value> {
    let unused = how.given.unwrap_or_default();
    told(how, outcome, &[], &Rolled::nothing(unused))
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
                "Only who is at 0 hit points, neither stable nor dead, makes death saving throws.",
            ),
        })
    }
}

/// How many of the dice a miss or a save made needless: those that the same roll takes when everything hits, or is failed.
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

/// Whether a miss or a save may have made damage dice needless.
pub(crate) fn spares(outcome: &Outcome) -> bool {
    !outcome.dice.is_empty() && (outcome.damage.is_none() || outcome.attacks.iter().any(|a| a.damage.is_none()))
}

/// How many dice something takes when everything hits, or every save is failed; `run` says how many it took.
pub(crate) fn most_dice(run: impl Fn(&mut dyn Dice) -> Option<usize>) -> usize {
    [Always::Highest, Always::Lowest].into_iter().filter_map(|mut dice| run(&mut dice)).max().unwrap_or(0)
}

/// Dice that hit with everything, or fail every save.
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

/// Which changes are hit points or follow from them: for each creature everything from the first such change on, but for what
/// somebody else puts on it (a spell's condition, which names its source).
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

/// The outcome as it is answered: which of its effects were applied, and whose dice fell.
pub(crate) fn told(how: &How<'_>, outcome: &Outcome, applied: &[bool], dice: &Rolled<'_>) -> Result<Value> {
    let word = match outcome {
        o if o.impossible => "impossible",
        o if o.no_check => "no_check",
        o if o.success => "success",
        _ => "failure",
    };
    metrics::RULES_RESOLVED.with_label_values(&[how.tool, word]).inc();
    let mut told = serde_json::to_value(outcome).map_err(Error::internal)?;
    if let Some(effects) = told.get_mut("effects").and_then(Value::as_array_mut) {
        for (effect, applied) in effects.iter_mut().zip(applied) {
            effect["applied"] = json!(applied);
        }
    }
    if how.preview {
        told["preview"] = json!(true);
    }
    dice.tell(&mut told);
    Ok(told)
}
