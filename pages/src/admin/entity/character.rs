//! The page of a character.

use entity::{character, owner::Aspect};

use super::{Company, Link, Memories, Parts, Shown, facts, last_words, line, location_link};
use crate::{
    admin::{InCampaign, memories, query::encoded},
    sheet::Sheet,
};
use base::error::Result;
use db::tenancy::TenantTx;
use edge::caller::Scope;
use world::{around, characters::Characters, fallen::Fallen};

impl Shown for Characters {
    async fn parts(at: &InCampaign, tx: &TenantTx, row: &character::Model) -> Result<Parts> {
        let slug = encoded(&row.slug);
        let aspects = [
            (Aspect::Location, row.location.as_deref().unwrap_or_default()),
            (Aspect::Race, &row.race),
            (Aspect::Profession, &row.profession),
            (Aspect::Faction, row.faction.as_deref().unwrap_or_default()),
        ];
        let aspects: Vec<_> = aspects.into_iter().filter(|(_, subject)| !subject.trim().is_empty()).collect();
        let watchers = around::watchers(tx, at.campaign.id.0, &aspects).await?;
        let remembered = Memories {
            title: "What others remember",
            rows: memories::newest(at, tx, None, &format!("player_id={slug}&")).await?,
            all: at.url(&format!("memories?player_id={slug}")),
            new: at.may_write().then(|| at.url(&format!("memories/new?player_id={slug}"))),
            example: "NPCs and owners write down what they learn about a character, such as: “She keeps her word.”",
        };
        let invite = at.may(Scope::Play).then(|| Link {
            label: "Invite the player",
            icon: "table",
            path: at.url(&format!("invite?player={slug}")),
        });
        Ok(Parts {
            who: line(&[Some(&row.race), Some(&row.profession)]),
            location: location_link(at, row.location.as_deref()),
            tags: Fallen::of_character(row)
                .map(|fallen| fallen.as_str().to_owned())
                .into_iter()
                .chain(row.ai_lock.then(|| "locked".to_owned()))
                .collect(),
            facts: facts(&[("Player", row.player_name.clone()), ("Faction", row.faction.clone())]),
            sheet: Some(Sheet::of_character(row)),
            people: vec![Company::new("Watched by", watchers)],
            words: last_words(at, tx, row.id.0).await?,
            memories: Some(remembered),
            links: invite.into_iter().collect(),
            ..Parts::default()
        })
    }
}
