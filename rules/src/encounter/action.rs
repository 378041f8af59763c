//! Requests to an encounter.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Position;
use crate::{
    resolve::{AttackArgs, Circumstances, DamagePart},
    srd::Ability,
};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)+) => {
        /// The kinds of actions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[schema(as = EncounterActionKind, rename_all = "snake_case")]
        pub enum ActionKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)+
        }

        impl ActionKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            /// Its name in JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),+ }
            }
        }
    };
}

kinds! {
    /// An attack with a weapon or a spell. With `target_ids` a spell that makes several creatures save.
    Attack = "attack",
    /// Like `attack`, with the spell in `spell_name`.
    CastSpell = "cast_spell",
    /// Damage from any source.
    Damage = "damage",
    /// Healing from any source.
    Heal = "heal",
    /// Temporary hit points. The higher of the old and new value counts.
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
    /// Move to a square, or towards or away from somebody.
    Move = "move",
    /// Stand up, which costs half the speed.
    StandUp = "stand_up",
    /// A death saving throw.
    DeathSave = "death_save",
    /// Roll or set initiative. Without a participant, for everybody.
    RollInitiative = "roll_initiative",
    /// End the turn and begin the next one.
    AdvanceTurn = "advance_turn",
    /// Add the speed to the movement once more.
    Dash = "dash",
    /// Move without provoking opportunity attacks.
    Disengage = "disengage",
    /// Attacks against the participant have disadvantage until its next turn.
    Dodge = "dodge",
    /// The target's next attack or check has advantage.
    Help = "help",
    /// Grab a creature.
    Grapple = "grapple",
    /// Knock a creature over or, with `away`, push it one square away.
    Shove = "shove",
    /// Break free of a grapple.
    Escape = "escape",
    /// Give up concentration.
    EndConcentration = "end_concentration",
    /// Hide a participant from players.
    Conceal = "conceal",
    /// Show a hidden participant to players.
    Reveal = "reveal",
    /// Try to get out of sight. A separate check decides the result.
    Hide = "hide",
    /// Wait for something, to act with the reaction.
    Ready = "ready",
    /// Look for something. A separate check decides the result.
    Search = "search",
    /// Use an object.
    UseObject = "use_object",
    /// Anything else that takes an action.
    Improvise = "improvise",
}

/// What an action costs (SRD 5.1, "Your Turn").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TurnCost)]
pub enum Cost {
    /// The action.
    Action,
    /// The bonus action.
    BonusAction,
    /// The reaction, in any creature's turn.
    Reaction,
    /// Nothing. Only allowed with `override`.
    Free,
}

/// A spell that limits which other spells may be cast in the same turn (SRD 5.1, "Casting Time").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SpellPace)]
pub enum Cast {
    /// Cast with the bonus action.
    Quick,
    /// Cast with anything else, and not a cantrip.
    Levelled,
}

impl Cost {
    /// Its name in JSON.
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
    /// The given number of ends of its owner's turn.
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

/// A request to an encounter. `participant_id` acts and `target_id` is affected. Each kind reads the fields it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// What is done.
    pub action: ActionKind,
    /// Who acts; `None`: the participant whose turn it is.
    #[serde(default)]
    pub participant_id: Option<String>,
    /// Who is affected; for a `move` without a square, whom to approach.
    #[serde(default)]
    pub target_id: Option<String>,
    /// The creatures in a spell's area.
    #[serde(default)]
    pub target_ids: Vec<String>,
    /// Hit points, uses of a resource, feet to move without positions, or an initiative that was rolled elsewhere.
    #[serde(default)]
    pub amount: Option<i32>,
    /// Healing as a sum of dice.
    #[serde(default)]
    pub formula: Option<String>,
    /// The damage type of `amount`.
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
    /// The rounds that it lasts.
    #[serde(default)]
    pub rounds: Option<i32>,
    /// How long it lasts; `None`: `rounds` if given, otherwise until it is dispelled.
    #[serde(default)]
    pub duration: Option<Duration>,
    /// The DC of the save that ends it.
    #[serde(default)]
    pub save_dc: Option<i32>,
    /// The ability of that save.
    #[serde(default)]
    pub save_ability: Option<Ability>,
    /// The source of a condition or an effect.
    #[serde(default)]
    pub source: Option<String>,
    /// The description of a condition.
    #[serde(default)]
    pub description: Option<String>,
    /// The level of a slot or of exhaustion.
    #[serde(default)]
    pub level: Option<i32>,
    /// Name of a resource.
    #[serde(default)]
    pub resource: Option<String>,
    /// The destination.
    #[serde(default)]
    pub position: Option<Position>,
    /// The path, square by square; empty: the cheapest path.
    #[serde(default)]
    pub path: Vec<Position>,
    /// Whether a shove pushes away, or a move leads away from the target.
    #[serde(default)]
    pub away: bool,
    /// What the action costs, if not its usual cost. An attack outside of the actor's turn costs the reaction if it was
    /// provoked or readied.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// True if a game master overrides the rules: turn, economy and movement are not checked.
    #[serde(default, rename = "override")]
    pub overridden: bool,
    /// The attack or spell.
    #[serde(flatten)]
    pub attack: AttackArgs,
    /// Circumstances of a roll that only the people at the table know.
    #[serde(flatten)]
    pub circumstances: Circumstances,
}

impl Action {
    /// An action of this kind with everything else at its default.
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
