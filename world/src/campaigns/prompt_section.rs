//! The sections of a prompt in order: the most widely shared first, so that a provider's prefix cache works.

use entity::shapes::Extensions;

/// The sections, in their order in the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    EngineRules,
    /// What the author tells all models of the campaign.
    Instructions,
    GlobalLore,
    ScopedLore,
    /// What the author tells the model about the character.
    CharacterInstructions,
    Personality,
    Scenario,
    ExampleDialogue,
    Tools,
    PlayerLore,
    Memories,
    History,
    /// The world as a session's AI reads it once, in the same message as the turn.
    Overview,
    /// Memories that matter to the turn's action, in the same message as the turn. `memories` has the budget for both.
    Recalled,
    Turn,
}

use Section::{
    CharacterInstructions, EngineRules, ExampleDialogue, GlobalLore, History, Instructions, Memories, Overview,
    Personality, PlayerLore, Recalled, Scenario, ScopedLore, Tools, Turn,
};

impl Section {
    /// The order of sections in an NPC's or owner's prompt, unless the campaign has a template.
    pub const ORDER: [Section; 14] = [
        EngineRules,
        Instructions,
        GlobalLore,
        ScopedLore,
        CharacterInstructions,
        Personality,
        Scenario,
        ExampleDialogue,
        Tools,
        PlayerLore,
        Memories,
        History,
        Recalled,
        Turn,
    ];

    /// Whether the section belongs to the base prompt, which is cached and checked by version heads.
    #[must_use]
    pub fn is_base(self) -> bool {
        !matches!(self, History | Overview | Recalled | Turn)
    }

    /// Whether views list the section only if it has a text, because most campaigns do not use it.
    #[must_use]
    pub fn is_optional(self) -> bool {
        matches!(self, Instructions | CharacterInstructions | Scenario | ExampleDialogue | Recalled)
    }

    /// Whether the section may be cut if the prompt does not fit into the model's context.
    #[must_use]
    pub fn may_be_cut(self) -> bool {
        matches!(
            self,
            GlobalLore | ScopedLore | Scenario | ExampleDialogue | PlayerLore | Memories | History | Recalled
        )
    }

    /// The section's name in JSON, in metrics and in a campaign's `settings.prompt_budgets`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EngineRules => "engine_rules",
            Instructions => "instructions",
            CharacterInstructions => "character_instructions",
            Scenario => "scenario",
            ExampleDialogue => "example_dialogue",
            GlobalLore => "global_lore",
            ScopedLore => "scoped_lore",
            Personality => "personality",
            Tools => "tools",
            PlayerLore => "player_lore",
            Memories => "memories",
            History => "history",
            Overview => "world_state_overview",
            Recalled => "recalled",
            Turn => "turn",
        }
    }

    /// The section with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ORDER.into_iter().chain([Overview]).find(|section| section.name() == name)
    }

    /// The most tokens of a section. The turn's budget is for keyword lore. Sections without a budget are limited by their sources.
    #[must_use]
    pub fn budget_tokens(self) -> Option<u32> {
        match self {
            EngineRules | Instructions | CharacterInstructions | Personality | Scenario | Tools | Recalled => None,
            ExampleDialogue => Some(2000),
            GlobalLore | ScopedLore => Some(3000),
            PlayerLore => Some(1000),
            Memories => Some(2000),
            History | Overview => Some(6000),
            Turn => Some(1500),
        }
    }

    /// The campaign's own budget: `settings.prompt_budgets.{name}`, 0 to 200,000 tokens.
    #[must_use]
    pub fn budget_in(self, settings: &Extensions) -> u32 {
        let set = settings.get("prompt_budgets").and_then(|b| b.get(self.name())).and_then(serde_json::Value::as_u64);
        match set {
            Some(tokens) => u32::try_from(tokens.min(200_000)).unwrap_or(200_000),
            None => self.budget_tokens().unwrap_or(u32::MAX),
        }
    }
}
