//! Rolls at the table: a formula, or a check or a save of the player's sheet. Dice come from the campaign's fair stream, and
//! everyone sees them.

use actix_web::{HttpRequest, HttpResponse, web};
use ai::state::Ai;
use base::error::{Error, Result};
use db::tenancy::{self, TenantTx};
use edge::http::forms::from_our_page;
use entity::{CampaignId, character, message::Author};
use rules::{
    dice::{Dice, Meaning},
    resolve::{
        AbilityCheckArgs, Automatic, Circumstances, Outcome, RuleError, SavingThrowArgs, SkillCheckArgs,
        resolve_ability_check, resolve_saving_throw, resolve_skill_check, sheet_attacks,
    },
    sheet::Creature,
};
use serde::Deserialize;
use uuid::Uuid;
use world::{
    dice::{
        service::{self as streams, Wish},
        sheet as variables,
    },
    messages::service::{self as messages, NewMessage, RollFacts},
};

use super::{
    answer::{Filled, empty_or_redirect, filled},
    table::Seat,
    visit::{Seating, Visitor, seated_at},
};
use crate::table::dice;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roll {
    formula: String,
}

/// Rolls a formula.
pub async fn roll(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<String>,
    form: Filled<Roll>,
) -> HttpResponse {
    seated_at(visitor, &request, async |visitor| {
        from_our_page(&request)?;
        rolled(&app, &visitor, &path, &filled(form)?.formula, "").await?;
        Ok(empty_or_redirect(&request, &path))
    })
    .await
}

/// Rolls a formula for everyone to see. `flavor` says for what.
///
/// # Errors
/// `validation_failed` for a formula that cannot be rolled; `quota_exceeded`.
pub async fn rolled(app: &Ai, visitor: &Visitor, link: &str, formula: &str, flavor: &str) -> Result<()> {
    let seat = Seat::take(app, visitor, link).await?;
    let who = seat.actor().await?;
    let own = variables::of_character(&who);
    let (caller, campaign) = seat.leave();
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        app.limits.check_rows(tx, &caller, "message").await?;
        let value = |name: &str| variables::value(&own, name).map(Meaning::Number);
        let facts = dice::rolled(tx, CampaignId(campaign), (formula, flavor), &value).await?;
        tell(tx, CampaignId(campaign), &who, facts).await
    })
    .await
}

/// Tells everyone a roll.
async fn tell(tx: &TenantTx, campaign: CampaignId, who: &character::Model, facts: RollFacts) -> Result<()> {
    let own = NewMessage { player_id: Some(who.id.0), ..NewMessage::chat(Author::Player, &who.name, String::new()) };
    let message = dice::told(facts, own);
    messages::insert(tx, campaign.0, std::slice::from_ref(&message)).await?;
    messages::report_table(tx, campaign.0, std::iter::once(&message)).await
}

/// What of the sheet is rolled.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfSheet {
    /// `ability`, `skill`, `save`, `attack` or `damage`, and after a space the name of the ability, the skill or the attack.
    of: String,
}

/// Rolls something of the player's sheet, without a difficulty: the game master knows it.
pub async fn check(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<String>,
    form: Filled<OfSheet>,
) -> HttpResponse {
    seated_at(visitor, &request, async |visitor| {
        from_our_page(&request)?;
        let OfSheet { of } = filled(form)?;
        let (kind, name) = of.split_once(' ').unwrap_or((&of, ""));
        match kind {
            "attack" | "damage" => attacked(&app, &visitor, &path, kind == "damage", name).await?,
            _ => checked(&app, &visitor, &path, kind, name).await?,
        }
        Ok(empty_or_redirect(&request, &path))
    })
    .await
}

/// Rolls to hit, or the damage, with an attack of the sheet.
async fn attacked(app: &Ai, visitor: &Visitor, link: &str, damages: bool, name: &str) -> Result<()> {
    let seat = Seat::take(app, visitor, link).await?;
    let (creature, _) = seat.creature(&seat.character().await?).await?;
    drop(seat);
    let attacks = sheet_attacks(&creature);
    let attack = attacks.into_iter().find(|attack| attack.name == name && attack.problem.is_none());
    let attack =
        attack.ok_or_else(|| Error::invalid("/of", "invalid_value", "There is no such attack on the sheet."))?;
    if damages {
        let kind = format!("{} damage", attack.damage_type);
        let flavor = format!("{}, {}", attack.name, kind.trim());
        return rolled(app, visitor, link, &attack.damage, &flavor).await;
    }
    rolled(app, visitor, link, &format!("1d20{:+}", attack.bonus), &format!("{}, to hit", attack.name)).await
}

/// Rolls a check or a save with all that the rules know of the character: conditions, effects, training.
async fn checked(app: &Ai, visitor: &Visitor, link: &str, kind: &str, name: &str) -> Result<()> {
    let seat = Seat::take(app, visitor, link).await?;
    let who = seat.actor().await?;
    let (creature, _) = seat.creature(&who).await?;
    let (caller, campaign) = seat.leave();
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        app.limits.check_rows(tx, &caller, "message").await?;
        let resolved = |dice: &mut dyn Dice| Ok(resolve(&creature, kind, name, dice)?);
        let (outcome, _) = streams::roll(tx, campaign, &Wish::default(), resolved).await?;
        if let Some(automatic) = outcome.automatic.filter(|_| outcome.die_result == 0) {
            let does = if automatic == Automatic::Success { "succeeds" } else { "fails" };
            let content = format!("{}: it {does} without a roll.", outcome.check_type);
            let message =
                NewMessage { player_id: Some(who.id.0), ..NewMessage::chat(Author::Player, &who.name, content) };
            messages::insert(tx, campaign, std::slice::from_ref(&message)).await?;
            return messages::report_table(tx, campaign, std::iter::once(&message)).await;
        }
        if outcome.die_result == 0 {
            return Err(Error::invalid("/of", "invalid_value", format!("Nothing is rolled: {}.", outcome.notes)));
        }
        let facts = RollFacts {
            formula: format!("1d20{}", outcome.total_modifier),
            total: outcome.total.into(),
            flavor: outcome.check_type,
            dice: serde_json::to_value(&outcome.dice).map_err(Error::internal)?,
            outcome: None,
        };
        tell(tx, CampaignId(campaign), &who, facts).await
    })
    .await
}

fn resolve(
    creature: &Creature,
    kind: &str,
    name: &str,
    dice: &mut dyn Dice,
) -> std::result::Result<Outcome, RuleError> {
    // The rules ask for a difficulty. Nobody is told what they make of this one.
    let (dc, name, plain) = (10, name.to_owned(), Circumstances::default());
    match kind {
        "skill" => resolve_skill_check(creature, &SkillCheckArgs { skill: name, dc, ability: None }, &plain, dice),
        "save" => {
            let args = SavingThrowArgs { ability: name, dc, ..SavingThrowArgs::default() };
            resolve_saving_throw(creature, &args, &plain, dice)
        }
        "ability" => resolve_ability_check(creature, &AbilityCheckArgs { ability: name, dc }, &plain, dice),
        _ => Err(RuleError::Argument {
            argument: "of",
            message: "the sheet rolls abilities, skills, saves, attacks and damage".to_owned(),
        }),
    }
}
