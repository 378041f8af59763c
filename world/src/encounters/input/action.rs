//! Input for actions.

use rules::{
    encounter::{Action, ActionKind, Cost, Duration},
    resolve::{AttackArgs, Circumstances, Cover, DamagePart},
    srd::Advantage,
};
use schemars::JsonSchema;
use serde::Deserialize;
use utoipa::ToSchema;

use super::ground::PositionInput;
use crate::rules::{
    context::ContextInput,
    values::{AbilityName, Within},
};

/// Something done in an encounter. `participant_id` acts (whose turn it is, unless given), `target_id` is affected; each
/// action reads the fields it needs.
#[derive(Debug, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionInput {
    /// What is done.
    #[schema(value_type = String)]
    #[schemars(with = "String", extend("enum" = kinds()))]
    pub action: ActionKind,
    /// Who acts.
    #[serde(default)]
    pub participant_id: Option<String>,
    /// Who is affected. A `move` without `position` leads towards them.
    #[serde(default)]
    pub target_id: Option<String>,
    /// Instead of `target_id`, the several targets of a spell: those it names, or those who stand in its area.
    #[serde(default)]
    pub target_ids: Vec<String>,
    /// Hit points, uses of a resource, an initiative, or feet: how far a `move` goes without a `position`, at most.
    #[serde(default)]
    #[schema(minimum = -1_000_000, maximum = 1_000_000)]
    pub amount: Option<i32>,
    /// Healing as a sum of dice.
    #[serde(default)]
    pub formula: Option<String>,
    /// Type of `amount` as damage.
    #[serde(default)]
    pub damage_type: Option<String>,
    /// Damage of several types.
    #[serde(default)]
    pub parts: Vec<PartInput>,
    /// Whether damage is magical.
    #[serde(default)]
    pub magical: bool,
    /// Whether damage comes from a critical hit.
    #[serde(default)]
    pub critical: bool,
    /// One of the 15 conditions.
    #[serde(default)]
    pub condition: Option<String>,
    /// A spell or feature at work, such as Bless.
    #[serde(default)]
    pub effect: Option<String>,
    /// Rounds it lasts.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 10_000)]
    pub rounds: Option<i32>,
    /// `rounds`, `concentration`, `until_dispelled`, `until_rest` or `save_ends`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    #[schemars(with = "Option<String>")]
    pub duration: Option<Duration>,
    /// Difficulty of the save that ends it.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 100)]
    pub save_dc: Option<i32>,
    /// The ability of that save.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub(crate) save_ability: Option<AbilityName>,
    /// What it comes from.
    #[serde(default)]
    pub source: Option<String>,
    /// What it looks like.
    #[serde(default)]
    pub description: Option<String>,
    /// Of a spell slot, or of exhaustion.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 9)]
    pub level: Option<i32>,
    /// Name of a resource.
    #[serde(default)]
    pub resource: Option<String>,
    /// Where to.
    #[serde(default)]
    pub position: Option<PositionInput>,
    /// The way there, square by square; the cheapest unless given.
    #[serde(default)]
    pub path: Vec<PositionInput>,
    /// Whether a shove pushes away instead of over, or a `move` leads away from `target_id`.
    #[serde(default)]
    pub away: bool,
    /// `action`, `bonus_action`, `reaction` or `free`, where it is not the usual.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    #[schemars(with = "Option<String>")]
    pub cost: Option<Cost>,
    /// A game master's word: turn, economy and movement are not checked. Needs the scope `gm`.
    #[serde(default, rename = "override")]
    pub overridden: bool,
    /// What is attacked with; may be left out with `spell_name`, or when there is one attack.
    #[serde(default)]
    pub weapon: Option<String>,
    /// Damage sources to use, such as Sneak Attack or Divine Smite 2.
    #[serde(default)]
    pub extra_damage_sources: Vec<String>,
    /// Whether `weapon` names a spell.
    #[serde(default)]
    pub is_spell_attack: bool,
    /// The spell to attack with.
    #[serde(default)]
    pub spell_name: Option<String>,
    /// Level of the slot to cast or smite with.
    #[serde(default)]
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 9)]
    pub(crate) slot_level: Option<Within<1, 9>>,
    /// Whether a versatile weapon is held in two hands.
    #[serde(default)]
    pub two_handed: bool,
    /// `none`, `advantage` or `disadvantage`, beside what the rules find.
    #[serde(default)]
    #[schema(value_type = String)]
    #[schemars(with = "String", extend("enum" = ["none", "advantage", "disadvantage"]))]
    pub advantage: Advantage,
    /// `none`, `half`, `three_quarters` or `total`.
    #[serde(default)]
    #[schema(value_type = String)]
    #[schemars(with = "String", extend("enum" = ["none", "half", "three_quarters", "total"]))]
    pub cover: Cover,
    /// What positions and conditions do not tell.
    #[serde(default)]
    pub context: ContextInput,
    /// Dice rolled by hand; needs the scope `gm`.
    #[serde(default)]
    #[schemars(skip)]
    pub dice: Option<Vec<u32>>,
    /// Only show what would come of it.
    #[serde(default)]
    #[schemars(skip)]
    pub preview: bool,
}

/// Damage of one type.
#[derive(Clone, Debug, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartInput {
    /// How much.
    #[schema(minimum = 0, maximum = 1_000_000)]
    amount: i32,
    /// Damage type.
    #[serde(default, rename = "type", alias = "damage_type")]
    kind: Option<String>,
}

fn kinds() -> Vec<&'static str> {
    ActionKind::ALL.iter().map(|kind| kind.name()).collect()
}

impl From<&ActionInput> for Action {
    fn from(input: &ActionInput) -> Self {
        let part = |p: &PartInput| DamagePart { amount: p.amount, damage_type: p.kind.clone().unwrap_or_default() };
        Self {
            action: input.action,
            participant_id: input.participant_id.clone(),
            target_id: input.target_id.clone(),
            target_ids: input.target_ids.clone(),
            amount: input.amount,
            formula: input.formula.clone(),
            damage_type: input.damage_type.clone(),
            parts: input.parts.iter().map(part).collect(),
            magical: input.magical,
            critical: input.critical,
            condition: input.condition.clone(),
            effect: input.effect.clone(),
            rounds: input.rounds,
            duration: input.duration,
            save_dc: input.save_dc,
            save_ability: input.save_ability.map(|a| a.0),
            source: input.source.clone(),
            description: input.description.clone(),
            level: input.level,
            resource: input.resource.clone(),
            position: input.position.map(Into::into),
            path: input.path.iter().copied().map(Into::into).collect(),
            away: input.away,
            cost: input.cost,
            overridden: input.overridden,
            attack: AttackArgs {
                weapon: input.weapon.clone(),
                extra_damage_sources: input.extra_damage_sources.clone(),
                is_spell_attack: input.is_spell_attack,
                spell_name: input.spell_name.clone(),
                slot_level: input.slot_level.map(|level| level.0),
                two_handed: input.two_handed,
            },
            circumstances: Circumstances {
                advantage: input.advantage,
                cover: input.cover,
                context: (&input.context).into(),
            },
        }
    }
}
