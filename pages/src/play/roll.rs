//! Rolls at the table: a formula, or a check or a save of the player's sheet. Dice come from the campaign's fair stream.

use actix_web::{HttpRequest, HttpResponse, web};
use ai::state::Ai;
use base::error::{Error, Result};
use db::tenancy;
use edge::http::forms::from_our_page;
use entity::{CampaignId, MessageId, message::Author};
use rules::{
    dice::{Dice, Meaning},
    resolve::{
        AbilityCheckArgs, Automatic, Circumstances, Outcome, RuleError, SavingThrowArgs, SkillCheckArgs,
        resolve_ability_check, resolve_saving_throw, resolve_skill_check, sheet_attacks,
    },
    sheet::Creature,
    srd::Advantage,
};
use serde::Deserialize;
use world::{
    dice::{
        service::{self as streams, Wish},
        sheet as variables,
    },
    messages::{
        asked::Asked,
        asking::{answering, asking},
        service::{self as messages, NewMessage, RollFacts},
    },
};

use super::{
    answer::{Filled, empty_or_redirect, filled, told_alone},
    seat::Seat,
    visit::{Seating, Visitor, seated_at},
};
use crate::table::dice::{self, Readers};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roll {
    formula: String,
    /// A button's formula, instead.
    die: Option<String>,
    #[serde(default)]
    readers: Readers,
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
        let Roll { formula, die, readers } = filled(form)?;
        rolled(&app, &visitor, &path, (&die.unwrap_or(formula), ""), readers).await?;
        told_to(&request, &path, readers)
    })
    .await
}

/// What is answered to a roll: the table shows it, unless who rolled may not see it.
///
/// # Errors
/// `internal` if it cannot be rendered.
pub(super) fn told_to(request: &HttpRequest, link: &str, readers: Readers) -> Result<HttpResponse> {
    match readers {
        Readers::MasterAlone => told_alone(request, link, "Only the game master sees what came of it."),
        Readers::Everybody | Readers::MasterToo => Ok(empty_or_redirect(request, link)),
    }
}

/// Rolls a formula. `flavor` says for what.
///
/// # Errors
/// `validation_failed` for a formula that cannot be rolled; `quota_exceeded`.
pub async fn rolled(
    app: &Ai,
    visitor: &Visitor,
    link: &str,
    (formula, flavor): (&str, &str),
    readers: Readers,
) -> Result<()> {
    let seat = Seat::take(app, visitor, link).await?;
    let who = seat.actor().await?;
    let own = variables::of_character(&who);
    let (caller, campaign) = seat.leave();
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        app.limits.check_rows(tx, &caller, "message").await?;
        let value = |name: &str| variables::value(&own, name).map(Meaning::Number);
        let facts = dice::rolled(tx, CampaignId(campaign), (formula, flavor), &value).await?;
        let own =
            NewMessage { player_id: Some(who.id.0), ..NewMessage::chat(Author::Player, &who.name, String::new()) };
        let message = dice::told(facts, readers.of(own));
        messages::insert(tx, campaign, std::slice::from_ref(&message)).await?;
        messages::report_table(tx, campaign, std::iter::once(&message)).await
    })
    .await
}

/// What of the sheet is rolled.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfSheet {
    /// `ability`, `skill`, `save`, `attack` or `damage`, and after a space the name of the ability, the skill or the attack.
    of: String,
    /// The message that asks for it. It says what is rolled, how, and for whom.
    asked: Option<MessageId>,
    #[serde(default)]
    advantage: Advantage,
    #[serde(default)]
    readers: Readers,
}

impl OfSheet {
    /// The kind of roll and the name.
    fn parts(&self) -> (&str, &str) {
        self.of.split_once(' ').unwrap_or((&self.of, ""))
    }
}

/// Rolls something of the player's sheet. The game master knows the difficulty, unless it was told by whoever asked for the roll.
pub async fn check(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<String>,
    form: Filled<OfSheet>,
) -> HttpResponse {
    seated_at(visitor, &request, async |visitor| {
        from_our_page(&request)?;
        let wanted = filled(form)?;
        let readers = if wanted.asked.is_some() { Readers::Everybody } else { wanted.readers };
        match wanted.parts().0 {
            "attack" | "damage" if wanted.asked.is_none() => attacked(&app, &visitor, &path, &wanted).await?,
            _ => checked(&app, &visitor, &path, &wanted).await?,
        }
        told_to(&request, &path, readers)
    })
    .await
}

/// Rolls to hit, or the damage, with an attack of the sheet.
async fn attacked(app: &Ai, visitor: &Visitor, link: &str, wanted: &OfSheet) -> Result<()> {
    let (kind, name) = wanted.parts();
    let seat = Seat::take(app, visitor, link).await?;
    let (creature, _) = seat.creature(&seat.character().await?).await?;
    drop(seat);
    let attacks = sheet_attacks(&creature);
    let attack = attacks.into_iter().find(|attack| attack.name == name && attack.problem.is_none());
    let attack =
        attack.ok_or_else(|| Error::invalid("/of", "invalid_value", "There is no such attack on the sheet."))?;
    if kind == "damage" {
        let kind = format!("{} damage", attack.damage_type);
        let flavor = format!("{}, {}", attack.name, kind.trim());
        return rolled(app, visitor, link, (&attack.damage, &flavor), wanted.readers).await;
    }
    let (formula, flavor) =
        (format!("{}{:+}", d20(wanted.advantage), attack.bonus), format!("{}, to hit", attack.name));
    rolled(app, visitor, link, (&formula, &flavor), wanted.readers).await
}

/// The formula of a d20.
fn d20(advantage: Advantage) -> &'static str {
    match advantage {
        Advantage::None => "1d20",
        Advantage::Advantage => "2d20kh",
        Advantage::Disadvantage => "2d20kl",
    }
}

/// Rolls a check or a save with all that the rules know of the character: conditions, effects, training.
async fn checked(app: &Ai, visitor: &Visitor, link: &str, wanted: &OfSheet) -> Result<()> {
    let seat = Seat::take(app, visitor, link).await?;
    let who = seat.actor().await?;
    let (creature, _) = seat.creature(&who).await?;
    let (caller, campaign) = seat.leave();
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        app.limits.check_rows(tx, &caller, "message").await?;
        let asking = match wanted.asked {
            Some(message) => Some(asking(tx, CampaignId(campaign), message, who.id).await?),
            None => None,
        };
        let asked = asking.as_ref().map(|asking| &asking.asked);
        let advantage = asked.map_or(wanted.advantage, |asked| asked.advantage);
        let dc = asked.and_then(|asked| asked.dc);
        let of = asked.map_or_else(|| wanted.parts(), Asked::parts);
        let resolved = |dice: &mut dyn Dice| Ok(resolve(&creature, of, (advantage, dc), dice)?);
        let (outcome, _) = streams::roll(tx, campaign, &Wish::default(), resolved).await?;
        let own = NewMessage {
            player_id: Some(who.id.0),
            // What not everybody was asked for is for the game master.
            whisper_to: asking.iter().filter(|asking| asking.is_whisper).map(|_| "gm".to_owned()).collect(),
            ..NewMessage::chat(Author::Player, &who.name, String::new())
        };
        let own = if asking.is_some() { own } else { wanted.readers.of(own) };
        let told = match outcome.automatic.filter(|_| outcome.die_result == 0) {
            Some(automatic) => {
                let does = if automatic == Automatic::Success { "succeeds" } else { "fails" };
                NewMessage { content: format!("{}: it {does} without a roll.", outcome.check_type), ..own }
            }
            None if outcome.die_result == 0 => {
                return Err(Error::invalid("/of", "invalid_value", format!("Nothing is rolled: {}.", outcome.notes)));
            }
            None => dice::told(facts(outcome, asked)?, own),
        };
        let told = match wanted.asked {
            Some(message) => answering(told, message),
            None => told,
        };
        messages::insert(tx, campaign, std::slice::from_ref(&told)).await?;
        messages::report_table(tx, campaign, std::iter::once(&told)).await
    })
    .await
}

/// The roll of a check or save. What came of it is told if the difficulty was.
fn facts(outcome: Outcome, asked: Option<&Asked>) -> Result<RollFacts> {
    Ok(RollFacts {
        formula: format!("{}{}", d20(outcome.advantage), outcome.total_modifier),
        total: outcome.total.into(),
        outcome: asked.and_then(|asked| asked.outcome(outcome.total, outcome.success)),
        flavor: outcome.check_type,
        dice: serde_json::to_value(&outcome.dice).map_err(Error::internal)?,
    })
}

fn resolve(
    creature: &Creature,
    (kind, name): (&str, &str),
    (advantage, dc): (Advantage, Option<i32>),
    dice: &mut dyn Dice,
) -> std::result::Result<Outcome, RuleError> {
    // The rules ask for a difficulty. Nobody is told what they make of one that was not told.
    let dc = dc.unwrap_or(10);
    let how = Circumstances { advantage, ..Circumstances::default() };
    let name = name.to_owned();
    match kind {
        "skill" => resolve_skill_check(creature, &SkillCheckArgs { skill: name, dc, ability: None }, &how, dice),
        "save" => {
            let args = SavingThrowArgs { ability: name, dc, ..SavingThrowArgs::default() };
            resolve_saving_throw(creature, &args, &how, dice)
        }
        "ability" => resolve_ability_check(creature, &AbilityCheckArgs { ability: name, dc }, &how, dice),
        _ => Err(RuleError::Argument {
            argument: "of",
            message: "the sheet rolls abilities, skills, saves, attacks and damage".to_owned(),
        }),
    }
}
