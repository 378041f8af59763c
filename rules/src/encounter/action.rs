//! What can be asked of an encounter.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Position;
use crate::{
    resolve::{AttackArgs, Circumstances, DamagePart},
    srd::Ability,
};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)+) => {
        /// What is done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[schema(as = EncounterActionKind, rename_all = "snake_case")]
        pub enum ActionKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)+
        }

        impl ActionKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            /// As on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),+ }
            }
        }
    };
}

kinds! {
    /// An attack with a weapon or a spell; with `target_ids` a spell that asks everybody there for a saving throw.
    Attack = "attack",
    /// The same; spells stand in `spell_name`.
    CastSpell = "cast_spell",
    /// Damage from anywhere.
    Damage = "damage",
    /// Healing from anywhere.
    Heal = "heal",
    /// Temporary hit points; the higher of old and new.
    TempHp = "temp_hp",
    /// A condition begins.
    AddCondition = "add_condition",
    /// A condition ends.
    RemoveCondition = "remove_condition",
    /// An effect such as Bless, Rage or Shield begins.
    AddEffect = "add_effect",
    /// An effect ends.
    RemoveEffect = "remove_effect",
    /// A spell slot is spent.
    UseSpellSlot = "use_spell_slot",
    /// A resource is spent.
    UseResource = "use_resource",
    /// Moving to a square, or towards or away from somebody.
    Move = "move",
    /// Standing up, which costs half the speed.
    StandUp = "stand_up",
    /// A death saving throw.
    DeathSave = "death_save",
    /// Initiative is rolled, or set; of all without a participant.
    RollInitiative = "roll_initiative",
    /// The turn ends, and the next begins.
    AdvanceTurn = "advance_turn",
    /// As much movement again.
    Dash = "dash",
    /// Moving without provoking.
    Disengage = "disengage",
    /// Attacks against it have disadvantage until its next turn.
    Dodge = "dodge",
    /// The target's next attack or check has advantage.
    Help = "help",
    /// Seizing.
    Grapple = "grapple",
    /// Knocking over, or with `away` pushing a square away.
    Shove = "shove",
    /// Getting out of a grapple.
    Escape = "escape",
    /// Concentration is given up.
    EndConcentration = "end_concentration",
    /// Players no longer know of it.
    Conceal = "conceal",
    /// Players know of it.
    Reveal = "reveal",
    /// Becoming unseen; what it comes to is a check.
    Hide = "hide",
    /// Waiting for something, to act with the reaction.
    Ready = "ready",
    /// Looking for something; what it comes to is a check.
    Search = "search",
    /// Using a thing.
    UseObject = "use_object",
    /// Anything else that takes an action.
    Improvise = "improvise",
}

/// What an action takes of a turn (SRD 5.1, "Your Turn").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TurnCost)]
pub enum Cost {
    /// The action.
    Action,
    /// The bonus action.
    BonusAction,
    /// The reaction, in anybody's turn.
    Reaction,
    /// Nothing; only with `override`.
    Free,
}

/// A spell that leaves less to be cast in the same turn (SRD 5.1, "Casting Time").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SpellPace)]
pub enum Cast {
    /// With the bonus action.
    Quick,
    /// With something else, and no cantrip.
    Levelled,
}

impl Cost {
    /// As on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::BonusAction => "bonus_action",
            Self::Reaction => "reaction",
            Self::Free => "free",
        }
    }
}

/// How long a condition lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ConditionDuration)]
pub enum Duration {
    /// So many ends of its owner's turn.
    Rounds,
    /// As long as `participant_id` concentrates.
    Concentration,
    /// Until somebody ends it.
    UntilDispelled,
    /// Until its owner has rested.
    UntilRest,
    /// Until its owner saves, at the end of its turn.
    SaveEnds,
}

/// Something asked of an encounter. `participant_id` acts, `target_id` is affected; each kind reads the fields it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// What is done.
    pub action: ActionKind,
    /// Who acts; none: whose turn it is.
    #[serde(default)]
    pub participant_id: Option<String>,
    /// Who is affected; of `move` without a square: whom to approach.
    #[serde(default)]
    pub target_id: Option<String>,
    /// Who stands in the area of a spell.
    #[serde(default)]
    pub target_ids: Vec<String>,
    /// Hit points, uses of a resource, feet moved without positions, or an initiative that was rolled elsewhere.
    #[serde(default)]
    pub amount: Option<i32>,
    /// Healing as a sum of dice.
    #[serde(default)]
    pub formula: Option<String>,
    /// Type of `amount` as damage.
    #[serde(default)]
    pub damage_type: Option<String>,
    /// Damage of several types.
    #[serde(default)]
    pub parts: Vec<DamagePart>,
    /// Whether damage is magical.
    #[serde(default)]
    pub magical: bool,
    /// Whether damage comes from a critical hit.
    #[serde(default)]
    pub critical: bool,
    /// A condition.
    #[serde(default)]
    pub condition: Option<String>,
    /// An effect.
    #[serde(default)]
    pub effect: Option<String>,
    /// Rounds it lasts.
    #[serde(default)]
    pub rounds: Option<i32>,
    /// How long it lasts; none: `rounds` if there are any, else until it is dispelled.
    #[serde(default)]
    pub duration: Option<Duration>,
    /// Difficulty of the save that ends it.
    #[serde(default)]
    pub save_dc: Option<i32>,
    /// The ability of that save.
    #[serde(default)]
    pub save_ability: Option<Ability>,
    /// What it comes from.
    #[serde(default)]
    pub source: Option<String>,
    /// What it looks like.
    #[serde(default)]
    pub description: Option<String>,
    /// Level of a slot, or of exhaustion.
    #[serde(default)]
    pub level: Option<i32>,
    /// Name of a resource.
    #[serde(default)]
    pub resource: Option<String>,
    /// Where to.
    #[serde(default)]
    pub position: Option<Position>,
    /// The way there, square by square; none: the cheapest.
    #[serde(default)]
    pub path: Vec<Position>,
    /// Whether a shove pushes away, or a move leads away from the target.
    #[serde(default)]
    pub away: bool,
    /// What it takes of the turn, where that is not what it usually takes: an attack in somebody else's turn takes the reaction
    /// if it was provoked or readied.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// A game master's word: turn, economy and movement are not checked.
    #[serde(default, rename = "override")]
    pub overridden: bool,
    /// What is attacked with.
    #[serde(flatten)]
    pub attack: AttackArgs,
    /// What only the table knows of a roll.
    #[serde(flatten)]
    pub circumstances: Circumstances,
}

impl Action {
    /// An action of this kind, with nothing else said.
    #[must_use]
    pub fn new(action: ActionKind) -> Self {
        Self {
            action,
            participant_id: None,
            target_id: None,
            target_ids: Vec::new(),
            amount: None,
            formula: None,
            damage_type: None,
            parts: Vec::new(),
            magical: false,
            critical: false,
            condition: None,
            effect: None,
            rounds: None,
            duration: None,
            save_dc: None,
            save_ability: None,
            source: None,
            description: None,
            level: None,
            resource: None,
            position: None,
            path: Vec::new(),
            away: false,
            cost: None,
            overridden: false,
            attack: AttackArgs::default(),
            circumstances: Circumstances::default(),
        }
    }
}
