//! Asking players for a roll.

use actix_web::HttpResponse;
use entity::CharacterId;
use rules::srd::{Ability, Advantage, SKILLS};

use super::{answer::done, say};
use crate::admin::InCampaign;
use base::error::{Error, Result};
use world::{
    messages::{asked::Asked, asking::request},
    table,
};

/// The most players who are asked by name.
const NAMED_MAX: usize = 20;

/// What can be asked for, in groups: the name of the group, and the value and label of each.
#[must_use]
pub(super) fn choices() -> [(&'static str, Vec<(String, String)>); 3] {
    let skills = SKILLS.iter().map(|skill| (format!("skill {}", skill.name), skill.name.to_owned()));
    let of = |kind: &str| {
        Ability::ALL.iter().map(|ability| (format!("{kind} {}", ability.name()), ability.title().to_owned())).collect()
    };
    [("Skills", skills.collect()), ("Saving throws", of("save")), ("Abilities", of("ability"))]
}

/// Asks for a roll.
pub async fn ask(at: InCampaign) -> Result<HttpResponse> {
    done(&at, asked(&at).await)
}

async fn asked(at: &InCampaign) -> Result<()> {
    let dc = match at.form.text("dc").trim() {
        "" => None,
        text => Some(text.parse().map_err(|_| Error::invalid("/dc", "invalid_value", "Write a whole number."))?),
    };
    let advantage = match at.form.text("advantage") {
        "advantage" => Advantage::Advantage,
        "disadvantage" => Advantage::Disadvantage,
        _ => Advantage::None,
    };
    let asked = Asked { of: at.form.text("of").to_owned(), advantage, dc }.checked()?;
    let named: Vec<&str> = at.form.all("who").filter(|slug| !slug.is_empty()).take(NAMED_MAX).collect();
    let characters = match named.is_empty() {
        true => Vec::new(),
        false => table::characters(&at.read().await?, at.campaign.id, None).await?,
    };
    let mut who = Vec::new();
    for slug in named {
        let found = characters.iter().find(|person| person.slug == slug);
        let gone = || {
            Error::invalid(
                "/who",
                "unknown_reference",
                "Whom you chose is not in the world any more, so nobody was asked.",
            )
        };
        let person = found.ok_or_else(gone)?;
        who.push((person.name.clone(), CharacterId(person.id)));
    }
    say::write(at, async |_| Ok(request(&asked, &who))).await
}
