//! The page of an owner.

use entity::{
    kind::EntityKind,
    owner::{self, Aspect},
};

use super::{
    Company, Parts, Shown, ask_links, facts, known, last_words, listed, location_link, remembers, texts, threshold,
    tools_of,
};
use crate::admin::InCampaign;
use ai::prompt::scope;
use base::error::Result;
use db::tenancy::TenantTx;
use world::{
    around,
    npcs::place::location_name,
    owners::{OwnerView, Owners},
};

impl Shown for Owners {
    async fn parts(at: &InCampaign, tx: &TenantTx, row: &owner::Model) -> Result<Parts> {
        let scopes = scope::of_owner(row);
        let scopes: Vec<(&str, &str)> = scopes.iter().map(|scope| (scope.scope, scope.key.as_str())).collect();
        let influence = OwnerView::from(row.clone()).influence;
        let has: Vec<String> = row.resources.0.iter().map(|has| format!("{} {}", has.amount, has.name)).collect();
        let watches = location_name(&row.associated_id);
        let (who, location) = match row.monitored_aspect {
            Aspect::Location => ("Watches over".to_owned(), location_link(at, Some(&row.associated_id))),
            Aspect::Race => (format!("Watches over the race {watches}"), None),
            Aspect::Profession => (format!("Watches over the profession {watches}"), None),
            Aspect::Faction => (format!("Watches over the faction {watches}"), None),
        };
        Ok(Parts {
            who,
            location,
            tags: row.ai_lock.then(|| "locked".to_owned()).into_iter().collect(),
            description: Some(row.description.clone()),
            texts: texts(&[
                ("Personality", &row.personality_prompt),
                ("Scenario", &row.scenario),
                ("Instructions", &row.instructions),
                ("Greetings", &row.greetings.0.join("\n\n")),
                ("Example dialogue", &row.example_dialogue),
            ]),
            facts: facts(&[
                ("Influence", Some(format!("{} of {}", influence.current.floor(), influence.max))),
                ("Regained per hour", Some(influence.regen_per_hour.to_string())),
                ("Has", listed(has.iter().map(String::as_str))),
                ("Model profile", row.model.clone()),
                ("Reacts at a score of", threshold(row.reaction_threshold)),
                ("At once at a score of", threshold(row.immediate_threshold)),
            ]),
            sheet: None,
            people: vec![Company::new("Its NPCs", around::dependents(tx, row.id.0).await?)],
            lore: Some(known(at, tx, &scopes).await?),
            words: last_words(at, tx, row.id.0).await?,
            memories: Some(remembers(at, tx, (row.id.0, &row.slug)).await?),
            tools: Some(tools_of(&row.available_tools.0)),
            links: ask_links(at, EntityKind::Owner, &row.slug),
        })
    }
}
