//! The page of an NPC.

use entity::{kind::EntityKind, npc};

use super::{
    Company, Parts, Shown, ask_links, facts, known, last_words, line, location_link, remembers, texts, threshold,
    tools_of,
};
use crate::{admin::InCampaign, sheet::Sheet};
use ai::prompt::scope;
use base::error::Result;
use db::tenancy::TenantTx;
use world::{around, fallen::Fallen, npcs::Npcs, overview::Resident};

impl Shown for Npcs {
    async fn parts(at: &InCampaign, tx: &TenantTx, row: &npc::Model) -> Result<Parts> {
        let owners = around::owners(tx, &row.owner_ids).await?;
        let scopes = scope::of_npc(row, &owners);
        let scopes: Vec<(&str, &str)> = scopes.iter().map(|scope| (scope.scope, scope.key.as_str())).collect();
        let owner =
            |owner: entity::owner::Model| Resident { kind: "owners".to_owned(), slug: owner.slug, name: owner.name };
        let belongs = Company::new("Belongs to", owners.into_iter().map(owner).collect());
        let behaviors: Vec<&str> = row.behaviors.0.iter().map(|behavior| behavior.text.as_str()).collect();
        let mood = if row.disposition.is_empty() { "neutral".to_owned() } else { row.disposition.clone() };
        Ok(Parts {
            who: line(&[row.race.as_deref(), row.profession.as_deref()]),
            location: location_link(at, row.location.as_deref()),
            tags: std::iter::once(mood)
                .chain(Fallen::of_npc(row).map(|fallen| fallen.as_str().to_owned()))
                .chain(row.ai_lock.then(|| "locked".to_owned()))
                .collect(),
            description: Some(row.description.clone()),
            texts: texts(&[
                ("Personality", &row.personality_prompt),
                ("How owners make it behave", &behaviors.join("\n")),
                ("Scenario", &row.scenario),
                ("Instructions", &row.instructions),
                ("Greetings", &row.greetings.0.join("\n\n")),
                ("Example dialogue", &row.example_dialogue),
            ]),
            facts: facts(&[
                ("Faction", row.faction.clone()),
                ("Model profile", row.model.clone()),
                ("Reacts at a score of", threshold(row.reaction_threshold)),
                ("At once at a score of", threshold(row.immediate_threshold)),
            ]),
            sheet: Sheet::of_npc(row),
            people: vec![belongs],
            lore: Some(known(at, tx, &scopes).await?),
            words: last_words(at, tx, row.id.0).await?,
            memories: Some(remembers(at, tx, (row.id.0, &row.slug)).await?),
            tools: Some(tools_of(&row.available_tools.0)),
            links: ask_links(at, EntityKind::Npc, &row.slug),
        })
    }
}
