//! `spawn_entity`: new NPCs appear at a location in an owner's domain.

use entity::owner::{self, Aspect};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    answers::{EntitiesSpawned, Spawned},
    arguments::{line, text},
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::{Error, Result};
use edge::limits::check_rows_more;
use world::{
    npcs::changes::{like, named, spawn},
    owners::domain::{Domain, find_npc},
};

pub(super) struct SpawnEntity;

/// Who appears, where, and how many.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// What appears.
    kind: Kind,
    /// The name of something new, or the slug of an NPC that the new ones are like.
    #[schemars(length(min = 1, max = 200))]
    name: String,
    /// What it is and looks like.
    #[serde(default)]
    #[schemars(length(min = 1, max = 2000))]
    description: Option<String>,
    /// The place where they appear. It must be in your domain.
    #[schemars(length(min = 1, max = 200))]
    location: String,
    /// How many appear.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10))]
    quantity: u8,
}

/// What can appear.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Npc,
}

fn one() -> u8 {
    1
}

impl ToolSpec for SpawnEntity {
    const NAME: &'static str = "spawn_entity";
    const DESCRIPTION: &'static str = "Let new NPCs appear at a place in your domain. They answer to you.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = EntitiesSpawned;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let Kind::Npc = arguments.kind;
        let name = line(&arguments.name, "/name")?;
        let description =
            arguments.description.as_deref().map(|words| text(words, "/description", 2000)).transpose()?;
        let location = line(&arguments.location, "/location")?;
        let how_many = arguments.quantity;
        if !(1..=10).contains(&how_many) {
            return Err(Error::invalid("/quantity", "invalid_value", "must be from 1 to 10"));
        }
        let tx = cx.tx().await?;
        let domain = Domain::of(tx, cx.campaign, cx.entity).await?;
        domain.covers(tx, location).await?;
        cx.changes(u64::from(how_many) - 1).await?;
        check_rows_more(tx, cx.rows_max, "npc", how_many.into()).await?;
        let (mut row, name) = match find_npc(tx, cx.campaign, name).await? {
            Some(npc) => (like(&npc)?, npc.name),
            None => (of_owner(named(name)?, &domain.owner), name.to_owned()),
        };
        if let Some(description) = description {
            row.insert("description".to_owned(), description.into());
        }
        answers_to(&mut row, &domain.owner);
        row.insert("location".to_owned(), location.into());
        let made = spawn(tx, cx.campaign, row, &name, how_many).await?;
        let npcs = made.into_iter().map(|(id, slug)| Spawned { id, slug }).collect();
        Ok(EntitiesSpawned { name, location: location.to_owned(), npcs })
    }
}

/// Gives a new kind of NPC the race, profession or faction that its owner watches over.
fn of_owner(mut row: Map<String, Value>, owner: &owner::Model) -> Map<String, Value> {
    let column = match owner.monitored_aspect {
        Aspect::Location => return row,
        Aspect::Race => "race",
        Aspect::Profession => "profession",
        Aspect::Faction => "faction",
    };
    row.insert(column.to_owned(), owner.associated_id.as_str().into());
    row
}

/// Adds the owner to the new NPCs' owners.
fn answers_to(row: &mut Map<String, Value>, owner: &owner::Model) {
    let own = json!(owner.id);
    let owners = row.entry("owner_ids").or_insert_with(|| json!([]));
    if let Some(owners) = owners.as_array_mut().filter(|owners| !owners.contains(&own)) {
        owners.push(own);
    }
}
