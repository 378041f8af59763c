//! Who takes part in a conversation: the campaign, the entity and the player, as sections of the prompt show them.

use std::fmt::Write as _;

use entity::{
    character,
    kind::EntityKind,
    npc, owner,
    shapes::{AuthorsNote, Extensions, Feature, NpcBehavior, OwnerResource, Stats, ToolRef},
};
use uuid::Uuid;

use super::scope::{self, LoreScope};
use edge::tenants::tasks::{Task, slug_in};
use world::{fallen::Fallen, interchange::card};

/// The campaign, the entity and the player, as of the heads in the prompt.
#[derive(Debug)]
pub struct Cast {
    pub campaign: Uuid,
    pub settings: Extensions,
    /// What the author tells all models of the campaign.
    pub instructions: String,
    pub game_time: String,
    pub entity: EntityFacts,
    pub player: PlayerFacts,
}

impl Cast {
    /// The profiles that the entity and its campaign name.
    #[must_use]
    pub fn named_models(&self, task: Task) -> [Option<&str>; 2] {
        [self.entity.model.as_deref(), slug_in(self.settings.get("models"), task)]
    }
}

/// The entity that answers.
#[derive(Debug)]
pub struct EntityFacts {
    pub kind: EntityKind,
    pub id: Uuid,
    pub slug: String,
    pub name: String,
    /// What its prompts call it: an NPC from a card may have a nickname.
    pub called: String,
    pub description: String,
    pub personality: String,
    /// What the author tells the model about this entity.
    pub instructions: String,
    pub post_history_instructions: String,
    pub authors_note: Option<AuthorsNote>,
    pub scenario: String,
    pub example_dialogue: String,
    pub greetings: Vec<String>,
    pub race: String,
    pub profession: String,
    pub faction: String,
    pub location: String,
    /// The location of an NPC, or the location that an owner watches over.
    pub place: String,
    pub disposition: String,
    /// How its owners make an NPC behave.
    pub behaviors: Vec<NpcBehavior>,
    /// An NPC's stat block in a few words. Empty for one that only talks.
    pub body: String,
    /// The resources of an owner, or of the owners of an NPC: the owner's name, and how much it has of what.
    pub resources: Vec<(String, String)>,
    /// The aspect that an owner monitors, and its subject.
    pub watches_over: String,
    pub tools: Vec<ToolRef>,
    /// Slug of the model profile that it uses.
    pub model: Option<String>,
    pub scopes: Vec<LoreScope>,
    /// Whether it is dead or unconscious.
    pub fallen: Option<Fallen>,
}

impl EntityFacts {
    /// Its names.
    #[must_use]
    pub fn names(&self) -> [&str; 2] {
        [&self.name, &self.called]
    }

    /// An NPC, with the owners it belongs to.
    #[must_use]
    pub fn of_npc(npc: npc::Model, owners: &[owner::Model]) -> Self {
        Self {
            kind: EntityKind::Npc,
            id: npc.id.0,
            scopes: scope::of_npc(&npc, owners),
            fallen: Fallen::of_npc(&npc),
            called: card::called_here(&npc),
            slug: npc.slug,
            name: npc.name,
            description: npc.description,
            personality: npc.personality_prompt,
            instructions: npc.instructions,
            post_history_instructions: npc.post_history_instructions,
            authors_note: npc.authors_note.map(|note| note.0),
            scenario: npc.scenario,
            example_dialogue: npc.example_dialogue,
            greetings: npc.greetings.0,
            race: npc.race.unwrap_or_default(),
            profession: npc.profession.unwrap_or_default(),
            faction: npc.faction.unwrap_or_default(),
            place: npc.location.clone().unwrap_or_default(),
            location: npc.location.unwrap_or_default(),
            disposition: npc.disposition,
            behaviors: npc.behaviors.0,
            body: body(&npc.stats.0),
            resources: having(owners).map(|owner| (format!("resources of {}", owner.name), amounts(owner))).collect(),
            watches_over: String::new(),
            tools: npc.available_tools.0,
            model: npc.model,
        }
    }

    /// An owner.
    #[must_use]
    pub fn of_owner(owner: owner::Model) -> Self {
        let scopes = scope::of_owner(&owner);
        let own = having(std::slice::from_ref(&owner)).map(|owner| ("your resources".to_owned(), amounts(owner)));
        let resources = own.collect();
        let place =
            if owner.monitored_aspect == owner::Aspect::Location { owner.associated_id.clone() } else { String::new() };
        Self {
            kind: EntityKind::Owner,
            id: owner.id.0,
            watches_over: scopes
                .first()
                .map(|s| s.describe().trim_start_matches("scope ").to_owned())
                .unwrap_or_default(),
            scopes,
            slug: owner.slug,
            called: owner.name.clone(),
            name: owner.name,
            description: owner.description,
            personality: owner.personality_prompt,
            instructions: owner.instructions,
            post_history_instructions: owner.post_history_instructions,
            authors_note: owner.authors_note.map(|note| note.0),
            scenario: owner.scenario,
            example_dialogue: owner.example_dialogue,
            greetings: owner.greetings.0,
            race: String::new(),
            profession: String::new(),
            faction: String::new(),
            location: String::new(),
            place,
            disposition: String::new(),
            behaviors: Vec::new(),
            body: String::new(),
            resources,
            tools: owner.available_tools.0,
            model: owner.model,
            fallen: None,
        }
    }
}

/// The acting player character.
#[derive(Debug)]
pub struct PlayerFacts {
    pub id: Uuid,
    pub slug: String,
    pub name: String,
    pub race: String,
    pub profession: String,
    pub location: String,
    /// Passive skills, in a few words each.
    pub skills: String,
    /// Whether it is dead or unconscious.
    pub fallen: Option<Fallen>,
}

impl PlayerFacts {
    /// A player character.
    #[must_use]
    pub fn of(player: character::Model) -> Self {
        Self {
            id: player.id.0,
            fallen: Fallen::of_character(&player),
            slug: player.slug,
            name: player.name,
            race: player.race,
            profession: player.profession,
            location: player.location.unwrap_or_default(),
            skills: skills(&player.features.0),
        }
    }
}

/// The owners that have resources, in the order of their ids.
fn having(owners: &[owner::Model]) -> impl Iterator<Item = &owner::Model> {
    let mut owners: Vec<_> = owners.iter().filter(|owner| !owner.resources.0.is_empty()).collect();
    owners.sort_by_key(|owner| owner.id.0);
    owners.into_iter()
}

/// How much of what an owner has.
fn amounts(owner: &owner::Model) -> String {
    let one = |resource: &OwnerResource| match &resource.location {
        Some(place) => format!("{} {} at {place}", resource.name, resource.amount),
        None => format!("{} {}", resource.name, resource.amount),
    };
    owner.resources.0.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A stat block in a few words. Empty for an NPC without a stat block.
fn body(stats: &Stats) -> String {
    if *stats == Stats::default() {
        return String::new();
    }
    let Stats { armor_class, hp, max_hp, speed, size, creature_type, .. } = stats;
    format!("{size} {creature_type}, {hp} of {max_hp} hit points, armor class {armor_class}, speed {speed} feet")
}

/// Features with a percentage or a source, which everybody who meets the character notices.
fn skills(features: &[Feature]) -> String {
    let shown = features.iter().filter(|feature| feature.percentage.is_some() || feature.source.is_some());
    let one = |feature: &Feature| {
        let mut text = feature.name.clone();
        if let Some(percentage) = feature.percentage {
            let _ = write!(text, " {percentage} %");
        }
        if let Some(description) = &feature.description {
            let _ = write!(text, " ({description})");
        }
        text
    };
    shown.map(one).collect::<Vec<_>>().join(", ")
}
