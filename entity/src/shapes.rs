//! The nested parts of characters, NPCs and scenes, as in JSON columns and in the API.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

/// Members that belong to clients. They are returned as given.
pub type Extensions = BTreeMap<String, Value>;

macro_rules! shape {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident : $ty:ty),* $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$field_doc])* pub $field: $ty),* }
    )+};
}

shape! {
    /// The six ability scores, 1 to 30 (SRD 5.1, "Using Ability Scores").
    Abilities {
        #[serde(default = "ten")] #[schema(minimum = 1, maximum = 30)] strength: i32,
        #[serde(default = "ten")] #[schema(minimum = 1, maximum = 30)] dexterity: i32,
        #[serde(default = "ten")] #[schema(minimum = 1, maximum = 30)] constitution: i32,
        #[serde(default = "ten")] #[schema(minimum = 1, maximum = 30)] intelligence: i32,
        #[serde(default = "ten")] #[schema(minimum = 1, maximum = 30)] wisdom: i32,
        #[serde(default = "ten")] #[schema(minimum = 1, maximum = 30)] charisma: i32,
    }
    /// A class or racial feature.
    Feature {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")] level: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")] chosen_option: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")] scaling_formula: Option<String>,
        /// How well the character masters a passive skill, 0 to 100. Prompts about the character show features with a
        /// percentage.
        #[serde(default, skip_serializing_if = "Option::is_none")] #[schema(minimum = 0, maximum = 100)] percentage: Option<i32>,
        /// What the feature does, in a sentence.
        #[serde(default, skip_serializing_if = "Option::is_none")] description: Option<String>,
        /// Who granted it. Prompts about the character show features with a source.
        #[serde(default, skip_serializing_if = "Option::is_none")] source: Option<String>,
    }
    /// A note that the model reads near the end of the conversation.
    AuthorsNote {
        #[serde(default)] text: String,
        /// How many messages of the conversation stand after the note. 0: it stands after the player's words.
        #[serde(default = "four")] #[schema(minimum = 0, maximum = 100, default = 4)] depth: u32,
    }
    /// A draft: what a character card tells models, and what it lets its NPC do. No model reads any of it, and nothing of it has an
    /// effect, until a person accepts it.
    PendingInstructions {
        #[serde(default, skip_serializing_if = "Option::is_none")] instructions: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")] post_history_instructions: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")] authors_note: Option<AuthorsNote>,
        /// Tools that the NPC does not have yet, and entries with words of their own. Accepted, each takes the place of the entry
        /// of the same name, or is added.
        #[serde(default, skip_serializing_if = "Option::is_none")] available_tools: Option<Vec<ToolRef>>,
        /// The sum of scores at which the NPC reacts to a player.
        #[serde(default, skip_serializing_if = "Option::is_none")] #[schema(minimum = 0, maximum = 1_000_000)] reaction_threshold: Option<i32>,
        /// The score of a single action to which the NPC reacts at once.
        #[serde(default, skip_serializing_if = "Option::is_none")] #[schema(minimum = 1, maximum = 1_000_000)] immediate_threshold: Option<i32>,
    }
    /// Normal and long range in feet.
    Range { normal: i32, #[serde(default)] long: Option<i32> }
    /// A weapon on a character's sheet. What is left out comes from the SRD weapon with that name.
    Weapon {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")] dice: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")] versatile_dice: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")] damage_type: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")] ability: Option<WeaponAbility>,
        #[serde(default)] bonus: i32,
        #[serde(default)] properties: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")] range: Option<Range>,
    }
    /// An active effect, such as Bless or Rage.
    Effect {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")] source: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")] rounds_remaining: Option<i32>,
    }
    /// An active condition. `level` is for exhaustion. With `until_rest` the next rest ends it.
    Condition {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")] source: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")] rounds_remaining: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")] level: Option<i32>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] until_rest: bool,
    }
    /// What a character is concentrating on.
    Concentration { spell: String }
    /// Hit dice: the size of the die, the maximum number and the number left.
    HitDice { die: i32, max: i32, remaining: i32 }
    /// Death saving throws so far.
    #[derive(Default)]
    DeathSaves { #[serde(default)] successes: i32, #[serde(default)] failures: i32 }
    /// Spell slots of one level.
    SpellSlot {
        #[schema(minimum = 0, maximum = 100)] max: i32,
        #[schema(minimum = 0, maximum = 100)] remaining: i32,
    }
    /// A class resource, such as ki points. A character has at most 10,000 of each.
    Resource {
        name: String,
        #[schema(minimum = 0, maximum = 1_000_000)] max: i32,
        #[schema(minimum = 0, maximum = 1_000_000)] remaining: i32,
    }
    /// Something that an owner has, such as grain, and the place where it is.
    OwnerResource {
        name: String,
        #[schema(minimum = 0, maximum = 1_000_000_000)] amount: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")] location: Option<String>,
    }
    /// How an owner makes an NPC behave. With `player_id` it is towards this player only.
    NpcBehavior {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")] player_id: Option<Uuid>,
        #[serde(with = "time::serde::rfc3339")] created_at: OffsetDateTime,
    }
    /// An attack in an NPC's stat block. `damage` is a dice formula.
    NpcAttack {
        name: String,
        #[serde(default)] bonus: i32,
        damage: String,
        #[serde(default)] damage_type: String,
        #[serde(default, skip_serializing_if = "Option::is_none")] reach_ft: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")] range: Option<Range>,
    }
    /// A token on a scene; coordinates in grid units.
    SceneToken {
        id: String,
        #[serde(default)] name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")] actor_id: Option<String>,
        #[serde(default)] x: f64,
        #[serde(default)] y: f64,
        #[serde(default)] is_player: bool,
    }
    /// The speaker of a message.
    #[derive(Default)]
    Speaker {
        #[serde(default)] name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")] alias: Option<String>,
    }
}

/// What a fork was copied from. The campaign or the turn may no longer exist.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ForkedFrom {
    pub campaign_id: Uuid,
    /// The turn after which it was copied; absent if the campaign was copied in its current state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<Uuid>,
}

/// An NPC's stat block (SRD 5.1, "Monsters"). Everything has a default, so an NPC that only talks needs none of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stats {
    pub armor_class: i32,
    pub hp: i32,
    pub max_hp: i32,
    pub temp_hp: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<StatBlockAbilities>)]
    pub abilities: Option<Abilities>,
    pub saving_throws: BTreeMap<String, i32>,
    pub attacks: Vec<NpcAttack>,
    pub creature_type: String,
    pub size: String,
    pub speed: i32,
    pub resistances: Vec<String>,
    pub immunities: Vec<String>,
    pub vulnerabilities: Vec<String>,
    pub condition_immunities: Vec<String>,
}

/// The six ability scores of a stat block. Unlike those of a character, they are stored as given.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it describes `Abilities` where nothing checks them")]
struct StatBlockAbilities {
    #[serde(default)]
    strength: i32,
    #[serde(default)]
    dexterity: i32,
    #[serde(default)]
    constitution: i32,
    #[serde(default)]
    intelligence: i32,
    #[serde(default)]
    wisdom: i32,
    #[serde(default)]
    charisma: i32,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            armor_class: 10,
            hp: 4,
            max_hp: 4,
            temp_hp: 0,
            abilities: None,
            saving_throws: BTreeMap::new(),
            attacks: Vec::new(),
            creature_type: "humanoid".to_owned(),
            size: "medium".to_owned(),
            speed: 30,
            resistances: Vec::new(),
            immunities: Vec::new(),
            vulnerabilities: Vec::new(),
            condition_immunities: Vec::new(),
        }
    }
}

/// The ability that a weapon uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WeaponAbility {
    Str,
    Dex,
    Finesse,
    None,
}

/// How a spell reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpellAttack {
    Ranged,
    Melee,
    Save,
    None,
}

/// A known spell: the name of an SRD spell, or a custom one with its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Spell {
    Name(String),
    Custom {
        name: String,
        level: i32,
        attack: SpellAttack,
        #[serde(flatten)]
        details: BTreeMap<String, Value>,
    },
}

/// A tool that an AI entity may call: a name, or a name with a custom description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ToolRef {
    Name(String),
    Described(DescribedTool),
}

shape! {
    /// A tool with the worldbuilder's own description. `parameters` narrows the tool's parameters, each by its name: a
    /// `default`, an `enum`, a `minimum` or `maximum`, a `maxLength`, and a `description`. A call to an `exclusive`
    /// tool must be the only call in its reply.
    DescribedTool {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")] description: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")] parameters: Option<Value>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] exclusive: bool,
    }
}

impl ToolRef {
    /// The tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            ToolRef::Name(name) => name,
            ToolRef::Described(tool) => &tool.name,
        }
    }

    /// Whether a call to the tool must be the only call in its reply.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        matches!(self, ToolRef::Described(tool) if tool.exclusive)
    }

    /// How the worldbuilder narrows the tool's parameters, if at all.
    #[must_use]
    pub fn parameters(&self) -> Option<&Value> {
        match self {
            ToolRef::Name(_) => None,
            ToolRef::Described(tool) => tool.parameters.as_ref(),
        }
    }

    /// The worldbuilder's own description, if there is one.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        match self {
            ToolRef::Name(_) => None,
            ToolRef::Described(tool) => tool.description.as_deref(),
        }
    }
}

fn four() -> u32 {
    4
}

fn ten() -> i32 {
    10
}

impl Default for Abilities {
    fn default() -> Self {
        Self { strength: 10, dexterity: 10, constitution: 10, intelligence: 10, wisdom: 10, charisma: 10 }
    }
}
