//! Player characters: a sheet for the 5e rules, and who plays it. A whole sheet has at most 16 KiB of JSON.

pub mod http;
pub mod moves;
pub mod service;

use std::collections::BTreeMap;

use entity::{
    character,
    shapes::{
        Abilities, Concentration, Condition, DeathSaves, Effect, Extensions, Feature, HitDice, Resource as Pool, Spell,
        SpellSlot, Weapon,
    },
};
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::actors;
use base::error::{Code, Error, Result};
use db::tenancy::TenantTx;
use edge::http::{
    resource::{self, Place, Resource, Stamp, col},
    validate,
};

/// The largest size of a sheet as JSON, in bytes.
pub const SHEET_BYTES_MAX: usize = 16 * 1024;

/// The members of a character that a client can write.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct CharacterInput {
    #[garde(custom(validate::opt_slug))]
    #[schema(min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9_-]*$")]
    #[serde(default)]
    pub slug: Option<String>,
    #[garde(custom(validate::line))]
    #[schema(min_length = 1)]
    pub name: String,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub player_name: Option<String>,
    /// The user who plays it, by id. The email address, which paths accept instead, is not accepted here.
    #[serde(default)]
    pub player_user: Option<Uuid>,
    #[garde(length(chars, max = 200))]
    #[serde(default)]
    pub race: String,
    #[garde(length(chars, max = 200))]
    #[serde(default)]
    pub profession: String,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub faction: Option<String>,
    #[garde(range(min = 1, max = 20))]
    #[schema(minimum = 1, maximum = 20)]
    #[serde(default = "one")]
    pub level: i32,
    #[garde(custom(scores_fit))]
    #[serde(default)]
    pub abilities: Abilities,
    #[garde(range(min = 1, max = 100_000))]
    #[schema(minimum = 1, maximum = 100_000)]
    #[serde(default)]
    pub max_hp: Option<i32>,
    #[garde(range(min = 0, max = 100_000))]
    #[schema(minimum = 0, maximum = 100_000)]
    #[serde(default)]
    pub hp: Option<i32>,
    #[garde(range(min = 0, max = 100_000))]
    #[schema(minimum = 0, maximum = 100_000)]
    #[serde(default)]
    pub temp_hp: i32,
    /// The armor class. Unless it is set, it follows from armor, shield and Dexterity, or is 10 without armor and
    /// shield. Null unsets it.
    #[garde(range(min = 0, max = 100))]
    #[schema(minimum = 0, maximum = 100)]
    #[serde(default)]
    pub armor_class: Option<i32>,
    /// The speed in feet per round.
    #[garde(range(min = 0, max = 10_000))]
    #[schema(minimum = 0, maximum = 10_000)]
    #[serde(default = "thirty")]
    pub speed: i32,
    #[garde(custom(known_size))]
    #[serde(default = "medium")]
    pub size: String,
    #[garde(custom(validate::words))]
    #[serde(default)]
    pub skill_proficiencies: Vec<String>,
    #[garde(custom(validate::words))]
    #[serde(default)]
    pub saving_throw_proficiencies: Vec<String>,
    #[garde(custom(validate::words))]
    #[serde(default)]
    pub weapon_proficiencies: Vec<String>,
    #[garde(custom(features_fit))]
    #[serde(default)]
    pub features: Vec<Feature>,
    #[serde(default)]
    pub weapons: Vec<Weapon>,
    #[serde(default)]
    pub armor: Option<Value>,
    #[serde(default)]
    pub shield: Option<Value>,
    #[garde(custom(opt_ability))]
    #[serde(default)]
    pub spellcasting_ability: Option<String>,
    #[serde(default)]
    pub spells: Vec<Spell>,
    #[serde(default)]
    pub effects: Vec<Effect>,
    #[serde(default)]
    pub concentration: Option<Concentration>,
    #[serde(default)]
    pub hit_dice: Option<HitDice>,
    #[serde(default)]
    pub death_saves: DeathSaves,
    #[garde(custom(validate::words))]
    #[serde(default)]
    pub resistances: Vec<String>,
    #[garde(custom(validate::words))]
    #[serde(default)]
    pub immunities: Vec<String>,
    #[garde(custom(validate::words))]
    #[serde(default)]
    pub vulnerabilities: Vec<String>,
    #[garde(custom(slots))]
    #[serde(default)]
    pub spell_slots: BTreeMap<String, SpellSlot>,
    #[garde(custom(pools))]
    #[serde(default)]
    pub resources: Vec<Pool>,
    #[serde(default)]
    pub conditions: Vec<Condition>,
    #[serde(default)]
    pub inventory: Vec<Value>,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub location: Option<String>,
    /// Whether AI tools must not change it.
    #[serde(default)]
    pub ai_lock: bool,
    #[garde(custom(validate::extensions))]
    #[serde(default)]
    #[schema(value_type = Object)]
    pub extensions: Extensions,
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub external_ref: Option<String>,
}

fn one() -> i32 {
    1
}
fn thirty() -> i32 {
    30
}
fn medium() -> String {
    "medium".to_owned()
}

fn scores_fit(a: &Abilities, _: &()) -> garde::Result {
    let all = [a.strength, a.dexterity, a.constitution, a.intelligence, a.wisdom, a.charisma];
    if all.iter().all(|score| (1..=30).contains(score)) {
        Ok(())
    } else {
        Err(garde::Error::new("ability scores must be from 1 to 30"))
    }
}

fn features_fit(features: &[Feature], _: &()) -> garde::Result {
    if features.iter().filter_map(|feature| feature.percentage).all(|p| (0..=100).contains(&p)) {
        Ok(())
    } else {
        Err(garde::Error::new("a feature's `percentage` must be from 0 to 100"))
    }
}

fn known_size(value: &str, _: &()) -> garde::Result {
    if rules::SIZES.contains(&value) {
        Ok(())
    } else {
        Err(garde::Error::new(format!("must be one of {}", rules::SIZES.join(", "))))
    }
}

fn opt_ability(value: &Option<String>, _: &()) -> garde::Result {
    match value {
        Some(name) if !rules::ABILITIES.contains(&name.as_str()) => {
            Err(garde::Error::new(format!("must be one of {}", rules::ABILITIES.join(", "))))
        }
        _ => Ok(()),
    }
}

fn slots(slots: &BTreeMap<String, SpellSlot>, _: &()) -> garde::Result {
    let fits = |(level, slot): (&String, &SpellSlot)| {
        level.parse::<u8>().is_ok_and(|l| (1..=9).contains(&l))
            && (0..=slot.max).contains(&slot.remaining)
            && slot.max <= 100
    };
    if slots.iter().all(fits) {
        Ok(())
    } else {
        Err(garde::Error::new("levels must be 1 to 9, and `remaining` must be from 0 to `max`"))
    }
}

fn pools(pools: &[Pool], _: &()) -> garde::Result {
    let fits = |p: &Pool| p.max <= 10_000 && (0..=p.max).contains(&p.remaining) && !p.name.is_empty();
    if pools.iter().all(fits) {
        Ok(())
    } else {
        Err(garde::Error::new("resources must have a name, and `remaining` must be from 0 to `max`"))
    }
}

/// Filters of the list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct CharacterFilter {
    /// Only characters of this player.
    player_name: Option<String>,
    /// Only characters at this location, spelled the same.
    location: Option<String>,
}

/// Characters as a resource.
pub struct Characters;

impl Resource for Characters {
    const TABLE: &'static str = "character";
    const IS_ACTOR: bool = true;
    type Entity = character::Entity;
    type Model = character::Model;
    type View = character::Model;
    type Input = CharacterInput;
    type Filter = CharacterFilter;

    fn stamp(m: &character::Model) -> Stamp<'_> {
        Stamp { id: m.id.0, version: m.version, label: &m.name, updated_at: m.updated_at }
    }

    fn filter(
        select: sea_orm::Select<character::Entity>,
        filter: &CharacterFilter,
    ) -> Result<sea_orm::Select<character::Entity>> {
        use sea_orm::{QueryFilter, QueryTrait, sea_query::ExprTrait};
        Ok(select
            .apply_if(filter.player_name.clone(), |s, v| s.filter(col("player_name").eq(v)))
            .apply_if(filter.location.clone(), |s, v| s.filter(col("location").eq(v))))
    }

    async fn may_delete(tx: &TenantTx, character: &character::Model) -> Result<()> {
        actors::may_be_forgotten(tx, character.campaign_id.0, character.id.0).await
    }

    /// A computed armor class follows changes of the armor; one that somebody set stays. Death saves are about the hit points that were: with
    /// others they begin anew.
    fn derived(before: &Value, changes: &Value) -> &'static [&'static str] {
        let follows = before["armor_class"] == armor_class_worn(before) && changes.get("armor_class").is_none();
        let has_other = |hp: &Value| *hp != before["hp"] || hp.as_i64().is_some_and(|hp| hp > 0);
        let begins = changes.get("hp").is_some_and(has_other) && changes.get("death_saves").is_none();
        match (follows, begins) {
            (true, true) => &["armor_class", "death_saves"],
            (true, false) => &["armor_class"],
            (false, true) => &["death_saves"],
            (false, false) => &[],
        }
    }

    fn watched(character: &character::Model) -> Option<String> {
        character.location.clone()
    }

    async fn changed(place: &Place<'_>, before: Option<String>, now: &character::Model) -> Result<()> {
        let places = (before.as_deref(), now.location.as_deref());
        moves::moved(place.tx, place.campaign, (now.id.0, &now.name), places).await
    }

    async fn columns(_: &Place<'_>, mut input: CharacterInput) -> Result<Map<String, Value>> {
        let max_hp = input.max_hp.or(input.hp.filter(|hp| *hp > 0)).unwrap_or(10);
        let hp = input.hp.unwrap_or(max_hp);
        if hp > max_hp {
            return Err(Error::invalid("/hp", "invalid_value", format!("must be at most max_hp, {max_hp}")));
        }
        (input.max_hp, input.hp) = (Some(max_hp), Some(hp));
        if input.armor_class.is_none() {
            input.armor_class = Some(armor_class_worn(&serde_json::to_value(&input).map_err(Error::internal)?));
        }
        let columns = resource::plain_columns(&input)?;
        size_fits(&columns)?;
        Ok(columns)
    }
}

/// Checks the size of a changed sheet.
///
/// # Errors
/// `payload_too_large`.
fn sheet_fits(character: &character::Model) -> Result<()> {
    let mut columns = resource::plain_columns(character)?;
    columns.retain(|name, _| !resource::READ_ONLY.contains(&name.as_str()));
    size_fits(&columns)
}

fn size_fits(columns: &Map<String, Value>) -> Result<()> {
    let filled = columns.iter().filter(|(_, v)| !is_empty(v)).collect::<BTreeMap<_, _>>();
    let bytes = serde_json::to_vec(&filled).map_err(Error::internal)?.len();
    if bytes > SHEET_BYTES_MAX {
        let detail = format!("A sheet may have at most {SHEET_BYTES_MAX} bytes of JSON; this one has {bytes}.");
        return Err(Error::new(Code::PayloadTooLarge, detail));
    }
    Ok(())
}

/// The armor class of a sheet where none is set.
fn armor_class_worn(sheet: &Value) -> i32 {
    let worn = |member| (member, sheet[member].clone());
    let defence = Value::from_iter([worn("abilities"), worn("armor"), worn("shield")]);
    let creature = serde_json::from_value::<::rules::sheet::Creature>(defence).unwrap_or_default();
    creature.armor_class_worn().unwrap_or(10).clamp(0, 100)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}
