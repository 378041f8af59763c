//! `sheet.create`: creates a player character.

use std::borrow::Cow;

use entity::character;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::spec::{AtOnce, CommandCx, CommandOutcome, CommandSpec};
use crate::tools::spec::Described;
use base::error::Result;
use edge::{
    caller::Scope,
    http::{
        resource::{self, Place, Resource as _},
        validate,
    },
    limits,
};
use world::characters::{CharacterInput, Characters};

pub(super) struct SheetCreate;

/// Accepts a whole sheet. The schema only names what people usually say about a new character.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Arguments(CharacterInput);

impl JsonSchema for Arguments {
    fn schema_name() -> Cow<'static, str> {
        "SheetArguments".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let score = json_schema!({ "type": "integer", "minimum": 1, "maximum": 30 });
        let names = json_schema!({ "type": "array", "items": { "type": "string" } });
        let ability = |name: &&str| ((*name).to_owned(), serde_json::Value::from(score.clone()));
        let abilities: serde_json::Map<_, _> = rules::ABILITIES.iter().map(ability).collect();
        json_schema!({
            "type": "object", "required": ["name"],
            "properties": {
                "name": { "type": "string", "minLength": 1, "maxLength": 200 },
                "race": { "type": "string", "maxLength": 200 },
                "profession": { "type": "string", "description": "The class, such as Fighter.", "maxLength": 200 },
                "level": { "type": "integer", "minimum": 1, "maximum": 20 },
                "abilities": { "type": "object", "properties": abilities },
                "max_hp": { "type": "integer", "minimum": 1 },
                "armor_class": { "type": "integer", "minimum": 0, "maximum": 100 },
                "speed": { "type": "integer", "minimum": 0 },
                "skill_proficiencies": names,
                "spells": names,
                "inventory": names,
                "location": { "type": "string", "maxLength": 200 },
            },
        })
    }
}

impl CommandSpec for SheetCreate {
    const NAME: &'static str = "sheet.create";
    const DESCRIPTION: &'static str = "Make a new player character with what the player says of it; a name is enough.";
    const ALSO: Option<Scope> = Some(Scope::Write);
    const FOR_PLAYERS: bool = false;
    const HINT: &'static str = "Say the new character's name, and what else there is to it: race, class, level.";
    type Arguments = Arguments;
    type Answer = Described<serde_json::Value, character::Model>;

    fn check(arguments: &Arguments) -> Result<()> {
        validate::check(&arguments.0)
    }
}

impl AtOnce for SheetCreate {
    async fn run(cx: &CommandCx<'_>, Arguments(input): Arguments) -> Result<CommandOutcome<Self::Answer>> {
        limits::check_rows(cx.tx().await?, cx.caller.tenant.limits.rows_per_kind, Characters::TABLE).await?;
        let place = Place { tx: cx.tx().await?, campaign: cx.campaign, caller: cx.caller };
        let made = resource::insert::<Characters>(&place, input).await?;
        let message = format!("{} is ready to play as {}", made.name, made.slug);
        Ok(CommandOutcome::ephemeral(resource::view::<Characters>(made, cx.caller)?.into(), message))
    }
}
