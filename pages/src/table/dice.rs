//! Rolls at the table. Dice come from the campaign's fair stream.

use base::{
    error::{Error, Result},
    text::on_one_line,
};
use db::tenancy::TenantTx;
use entity::{CampaignId, message::Type};
use rules::dice::Names;
use serde::Deserialize;
use world::{
    dice::{
        rolls::{self, RollInput},
        seeds::Taking,
        service::Wish,
    },
    messages::service::{NewMessage, RollFacts, roll_text, roll_value},
};

/// The most characters of what a roll is for.
const WHAT_FOR_CHARS_MAX: usize = 200;

/// Who reads a roll.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Readers {
    #[default]
    #[serde(rename = "everybody")]
    Everybody,
    /// The game master, and who rolls.
    #[serde(rename = "gm")]
    MasterToo,
    /// Only the game master.
    #[serde(rename = "blind")]
    MasterAlone,
}

impl Readers {
    /// A message for these readers alone.
    pub(crate) fn of(self, message: NewMessage) -> NewMessage {
        match self {
            Self::Everybody => message,
            Self::MasterToo => NewMessage { whisper_to: vec!["gm".to_owned()], ..message },
            Self::MasterAlone => NewMessage { blind: true, ..message },
        }
    }
}

/// Rolls a formula. `flavor` says for what; `value` is what the names in it mean.
///
/// # Errors
/// `validation_failed` for a formula that cannot be rolled.
pub(crate) async fn rolled(
    tx: &TenantTx,
    campaign: CampaignId,
    (formula, flavor): (&str, &str),
    value: &Names<'_>,
) -> Result<RollFacts> {
    if flavor.chars().count() > WHAT_FOR_CHARS_MAX {
        let message = format!("Say what the roll is for in at most {WHAT_FOR_CHARS_MAX} characters.");
        return Err(Error::invalid("/text", "invalid_value", message));
    }
    let wanted = [RollInput { formula: formula.trim().to_owned(), flavor: None }];
    let report = rolls::roll(Taking::Within(tx), Some(campaign.0), &Wish::default(), &wanted, value).await?;
    let Some((result, total)) = report.results.first().and_then(|first| Some((first, first.total.clone()?))) else {
        let error = report.results.into_iter().find_map(|result| result.error);
        let message = error.map_or_else(
            || "This formula cannot be rolled.".to_owned(),
            |error| {
                let more = error.hint.or_else(|| error.expected.map(|expected| format!("There should be {expected}.")));
                format!("This formula cannot be rolled: {}. {}", error.message, more.unwrap_or_default())
            },
        );
        return Err(Error::invalid("/formula", "invalid_formula", message));
    };
    Ok(RollFacts {
        formula: result.formula.clone(),
        total,
        flavor: on_one_line(flavor).into_owned(),
        dice: serde_json::to_value(&result.dice).map_err(Error::internal)?,
        outcome: None,
    })
}

/// A message that tells a roll instead of words.
#[must_use]
pub(crate) fn told(facts: RollFacts, message: NewMessage) -> NewMessage {
    let flavor = Some(facts.flavor.clone()).filter(|flavor| !flavor.is_empty());
    let facts = [facts];
    NewMessage { kind: Type::Roll, roll: Some(roll_value(&facts)), flavor, content: roll_text(&facts), ..message }
}
