//! The 15 conditions (SRD 5.1, "Appendix PH-A: Conditions"), and their effects on rolls.

use serde::Serialize;
use utoipa::ToSchema;

use super::same;
use crate::srd::Advantage;

/// A sense that a check may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sense {
    /// Seeing.
    Sight,
    /// Hearing.
    Hearing,
}

/// What a condition does to the rolls of the creature that has it, and to rolls against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SrdCondition)]
pub struct ConditionRule {
    /// Lower-case name.
    #[schema(value_type = String)]
    pub name: &'static str,
    /// Its own attack rolls.
    pub attacks: Advantage,
    /// Attack rolls against it from within 5 feet.
    pub attacks_against: Advantage,
    /// Attack rolls against it from farther away.
    pub attacks_against_from_afar: Advantage,
    /// Its ability checks.
    pub checks: Advantage,
    /// Its Dexterity saving throws.
    pub dexterity_saves: Advantage,
    /// Whether it fails Strength and Dexterity saving throws without a roll.
    pub fails_strength_and_dexterity_saves: bool,
    /// Whether its effects on attacks and checks only apply while the source of the condition is in sight.
    pub needs_source_in_sight: bool,
    /// Checks that need this sense automatically fail.
    #[schema(required = true)]
    pub loses: Option<Sense>,
    /// Whether it prevents actions and reactions.
    pub incapacitated: bool,
    /// Whether its speed is 0.
    pub speed_zero: bool,
    /// Whether a hit from within 5 feet is a critical hit.
    pub critical_when_hit_nearby: bool,
    /// Whether it resists all damage and is immune to poison.
    pub resists_all_damage: bool,
    /// Conditions that it implies.
    #[schema(value_type = Vec<String>)]
    pub implies: &'static [&'static str],
    /// A short description.
    #[schema(value_type = String)]
    pub summary: &'static str,
}

const NONE: ConditionRule = ConditionRule {
    name: "",
    attacks: Advantage::None,
    attacks_against: Advantage::None,
    attacks_against_from_afar: Advantage::None,
    checks: Advantage::None,
    dexterity_saves: Advantage::None,
    fails_strength_and_dexterity_saves: false,
    needs_source_in_sight: false,
    loses: None,
    incapacitated: false,
    speed_zero: false,
    critical_when_hit_nearby: false,
    resists_all_damage: false,
    implies: &[],
    summary: "",
};

const ADV: Advantage = Advantage::Advantage;
const DIS: Advantage = Advantage::Disadvantage;

/// A creature that cannot act and is easy to hit.
const HELPLESS: ConditionRule = ConditionRule {
    attacks_against: ADV,
    attacks_against_from_afar: ADV,
    fails_strength_and_dexterity_saves: true,
    incapacitated: true,
    speed_zero: true,
    ..NONE
};

/// All conditions, by name. The effects of exhaustion depend on its level: see `Creature::exhaustion`.
pub const CONDITIONS: [ConditionRule; 15] = [
    ConditionRule {
        name: "blinded",
        attacks: DIS,
        attacks_against: ADV,
        attacks_against_from_afar: ADV,
        loses: Some(Sense::Sight),
        summary: "cannot see; fails checks that need sight",
        ..NONE
    },
    ConditionRule {
        name: "charmed",
        summary: "cannot attack the charmer, who has advantage on social checks against it",
        ..NONE
    },
    ConditionRule {
        name: "deafened",
        loses: Some(Sense::Hearing),
        summary: "cannot hear; fails checks that need hearing",
        ..NONE
    },
    ConditionRule {
        name: "exhaustion",
        summary: "six levels: disadvantage on checks; half speed; disadvantage on attacks and saves; half maximum hit points; speed 0; death",
        ..NONE
    },
    ConditionRule {
        name: "frightened",
        attacks: DIS,
        checks: DIS,
        needs_source_in_sight: true,
        summary: "worse at everything while it sees what it fears; cannot approach it",
        ..NONE
    },
    ConditionRule { name: "grappled", speed_zero: true, summary: "held in place by the grappler", ..NONE },
    ConditionRule { name: "incapacitated", incapacitated: true, summary: "no actions, no reactions", ..NONE },
    ConditionRule {
        name: "invisible",
        attacks: ADV,
        attacks_against: DIS,
        attacks_against_from_afar: DIS,
        summary: "cannot be seen without special senses",
        ..NONE
    },
    ConditionRule {
        name: "paralyzed",
        critical_when_hit_nearby: true,
        implies: &["incapacitated"],
        summary: "cannot move, speak or act; hits from within 5 feet are critical",
        ..HELPLESS
    },
    ConditionRule {
        name: "petrified",
        resists_all_damage: true,
        implies: &["incapacitated"],
        summary: "turned to stone: resists all damage, immune to poison and disease",
        ..HELPLESS
    },
    ConditionRule {
        name: "poisoned",
        attacks: DIS,
        checks: DIS,
        summary: "disadvantage on attacks and checks",
        ..NONE
    },
    ConditionRule {
        name: "prone",
        attacks: DIS,
        attacks_against: ADV,
        attacks_against_from_afar: DIS,
        summary: "lies on the ground; standing up takes half its speed",
        ..NONE
    },
    ConditionRule {
        name: "restrained",
        attacks: DIS,
        attacks_against: ADV,
        attacks_against_from_afar: ADV,
        dexterity_saves: DIS,
        speed_zero: true,
        summary: "held fast",
        ..NONE
    },
    ConditionRule {
        name: "stunned",
        implies: &["incapacitated"],
        summary: "cannot move or act, speaks falteringly",
        ..HELPLESS
    },
    ConditionRule {
        name: "unconscious",
        critical_when_hit_nearby: true,
        implies: &["incapacitated", "prone"],
        summary: "unaware, drops what it holds and falls prone; hits from within 5 feet are critical",
        ..HELPLESS
    },
];

/// The condition with this name, in any case.
#[must_use]
pub fn condition(name: &str) -> Option<&'static ConditionRule> {
    CONDITIONS.iter().find(|c| same(c.name, name))
}
