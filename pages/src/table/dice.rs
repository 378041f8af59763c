//! Rolls at the table. Dice come from the campaign's fair stream.

use base::error::{Error, Result};
use db::tenancy::TenantTx;
use entity::{CampaignId, message::Type};
use rules::dice::Names;
use world::{
    dice::{
        rolls::{self, RollInput},
        seeds::Taking,
        service::Wish,
    },
    messages::service::{NewMessage, RollFacts, roll_text, roll_value},
};

/// How a roll begins that is typed among the words.
const COMMANDS: [&str; 2] = ["/roll", "/r"];

/// The formula after the command, if the text is a roll.
#[must_use]
pub(crate) fn parse(text: &str) -> Option<&str> {
    super::command::rest(text, &COMMANDS)
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
    let wanted = [RollInput { formula: formula.trim().to_owned(), flavor: None }];
    let report = rolls::roll(Taking::Within(tx), Some(campaign.0), &Wish::default(), &wanted, value).await?;
    let Some((result, total)) = report.results.first().and_then(|first| Some((first, first.total.clone()?))) else {
        let error = report.results.into_iter().find_map(|result| result.error);
        let message = error.map_or_else(|| "This formula cannot be rolled.".to_owned(), |error| error.message);
        return Err(Error::invalid("/formula", "invalid_formula", message));
    };
    Ok(RollFacts {
        formula: result.formula.clone(),
        total,
        flavor: flavor.to_owned(),
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
