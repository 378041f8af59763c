//! The `settings` of a campaign. Only settings that the server reads are allowed there. Clients keep their own values
//! in `extensions`.
//!
//! To add a setting, add a member to [`CampaignSettings`] and its name to `NAMES`.

use std::collections::BTreeMap;

use entity::shapes::Extensions;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    campaigns::{prompt_section::Section, prompt_template::PromptTemplates},
    memory::subject::ABOUT_OTHERS,
    owners::influence::TOOL_PRICES,
    paused::{AI_PAUSED, AiPaused},
    significance::scores::{self, DEAD_SPEAK, ReportActions},
    tools,
};
use base::{
    error::{Error, Result},
    json,
};
use edge::http::{read, validate};
use edge::tenants::{commands, tasks::TaskModels};

const NAMES: [&str; 17] = [
    "models",
    PROMPT_TEMPLATES,
    CLEAN_ANSWERS,
    "planner_commands",
    "prompt_budgets",
    ABOUT_OTHERS,
    "gm_encounters",
    DEAD_SPEAK,
    AI_PAUSED,
    "significance_scores",
    "reaction_cooldown_seconds",
    "reactions_per_day_max",
    REACTIONS_AT_ONCE_MAX,
    "reply_expiry_seconds",
    "withheld_reverts",
    REPORT_ACTIONS,
    TOOL_PRICES,
];
const REPORT_ACTIONS: &str = "report_actions";
const REACTIONS_AT_ONCE_MAX: &str = "reactions_at_once_max";
const CLEAN_ANSWERS: &str = "clean_answers";
const PROMPT_TEMPLATES: &str = "prompt_templates";
const BUDGET_MAX: u32 = 200_000;
const PRICE_MAX: f64 = 1000.0;
const PAUSED_MAX: usize = 500;

/// A campaign's settings. A setting that is absent or null has its default.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignSettings {
    /// The commands that the planner may choose, of those that the tenant allows. By default all of these.
    #[schema(max_items = 64)]
    pub planner_commands: Option<Vec<String>>,
    /// The largest number of tokens in a section of a prompt, 0 to 200000, by the name of the section.
    pub prompt_budgets: Option<BTreeMap<String, Option<u32>>>,
    /// The sections of prompts, by task. By default all sections in the usual order.
    pub prompt_templates: Option<PromptTemplates>,
    /// Whether a turn's model may also remember things about other players at the same location. Otherwise it can do so
    /// only about the turn's own player.
    #[schema(default = false)]
    pub memories_about_others: Option<bool>,
    /// Whether the game master's AI gets the tools that begin fights while there is none.
    #[schema(default = false)]
    pub gm_encounters: Option<bool>,
    /// Whether the dead talk and act as the living do. The prompt says that they are dead.
    #[schema(default = false)]
    pub dead_speak: Option<bool>,
    /// Whose AI does not answer players for now. Reactions and prayers wait.
    pub ai_paused: Option<AiPaused>,
    /// The score of each type of action, 0 to 1000, by the name of the type. By default `look` 0, `move` 1, `say` 2, `use_item` 3, `give` 4,
    /// `talk` 5, `use_skill` 5, `steal` 7, `cast_spell` 7, `pray` 8 and `attack` 10. Other names define further types.
    pub significance_scores: Option<BTreeMap<String, Option<f64>>>,
    /// For how many seconds after a reaction the entity does not react to the same player again. Actions still count.
    #[schema(minimum = 0, maximum = 86400, default = 60)]
    pub reaction_cooldown_seconds: Option<u32>,
    /// The most reactions in a day (UTC); 0 means no limit. Scores still grow after the limit is reached.
    #[schema(minimum = 0, maximum = 1_000_000, default = 1000)]
    pub reactions_per_day_max: Option<u32>,
    /// The most reactions at the same time. Others wait.
    #[schema(minimum = 1, maximum = 16, default = 4)]
    pub reactions_at_once_max: Option<u32>,
    /// For how many seconds a reply waits for its player.
    #[schema(minimum = 1, maximum = 604_800, default = 86400)]
    pub reply_expiry_seconds: Option<u32>,
    /// Whether the effects of a reaction are undone when its reply cannot be delivered.
    #[schema(default = false)]
    pub withheld_reverts: Option<bool>,
    /// What the server reports as actions by itself. By default nothing.
    pub report_actions: Option<ReportActions>,
    /// The model profile for each task. A task without one uses the tenant's choice.
    pub models: Option<TaskModels>,
    /// What is removed from the texts of models. By default nothing.
    pub clean_answers: Option<CleanAnswers>,
    /// The prices of tools in influence, 0 to 1000, by the name of the tool. Other tools have their default prices.
    pub tool_prices: Option<BTreeMap<String, Option<f64>>>,
}

/// What is removed from the texts of NPCs, owners and sessions' AIs before they are stored. A rule that would leave nothing of a text is not
/// applied. The turn's trace lists what was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CleanAnswers {
    /// Fences of the prompt and special tokens of models, such as `</memories>` and `<|im_end|>`; the text between them stays. Reasoning
    /// between `<think>` and `</think>` goes with them.
    pub markup: bool,
    /// Lines that begin with the player's name and a colon, up to an empty line or a line of the speaker.
    pub player_lines: bool,
    /// The speaker's own name and a colon in front of a line.
    pub role_prefixes: bool,
    /// An unfinished last sentence.
    pub unfinished_sentences: bool,
}

impl CleanAnswers {
    /// The rules of a campaign; none if nothing is to be removed, or if the stored setting does not fit.
    #[must_use]
    pub fn of(settings: &Extensions) -> Option<Self> {
        let rules = serde_json::from_value(settings.get(CLEAN_ANSWERS)?.clone()).ok()?;
        (rules != Self::default()).then_some(rules)
    }
}

/// Checks that the server knows every setting that a client sends, and that the values are valid.
///
/// # Errors
/// `validation_failed` that points to the first unknown or invalid setting.
pub fn check(settings: &Value) -> Result<()> {
    let mut sent = settings.clone();
    // A null removes a setting, even one that only an earlier server knew.
    if let Value::Object(members) = &mut sent {
        members.retain(|_, value| !value.is_null());
        for name in [CLEAN_ANSWERS, REPORT_ACTIONS, AI_PAUSED] {
            if let Some(Value::Object(rules)) = members.get_mut(name) {
                rules.retain(|_, value| !value.is_null());
            }
        }
    }
    let read: CampaignSettings = read::typed(sent).map_err(|error| error.below("/settings"))?;
    if let Some(names) = &read.planner_commands {
        let known = commands::are_known(names);
        known.map_err(|e| Error::invalid("/settings/planner_commands", "invalid_value", e.to_string()))?;
    }
    check_significance(&read)?;
    if read.ai_paused.is_some_and(|paused| paused.entities.len() > PAUSED_MAX) {
        let rule = format!("must have at most {PAUSED_MAX} items");
        return Err(Error::invalid("/settings/ai_paused/entities", "invalid_value", rule));
    }
    for (name, tokens) in read.prompt_budgets.iter().flatten() {
        let pointer = format!("/settings/prompt_budgets/{}", json::escape(name));
        match Section::named(name) {
            None => return Err(Error::invalid(pointer, "unknown_field", "A prompt has no section with this name.")),
            Some(Section::Recalled) => {
                let rule = "`recalled` shares the budget of `memories`. Set `memories` instead.";
                return Err(Error::invalid(pointer, "invalid_value", rule));
            }
            Some(_) => {}
        }
        if tokens.is_some_and(|tokens| tokens > BUDGET_MAX) {
            return Err(Error::invalid(pointer, "invalid_value", format!("must be from 0 to {BUDGET_MAX} tokens")));
        }
    }
    if let Some(templates) = &read.prompt_templates {
        templates.check(&format!("/settings/{PROMPT_TEMPLATES}"))?;
    }
    for (name, price) in read.tool_prices.iter().flatten() {
        let pointer = format!("/settings/{TOOL_PRICES}/{}", json::escape(name));
        if !tools::is_known(name) {
            return Err(Error::invalid(pointer, "unknown_field", "There is no tool with this name."));
        }
        if price.is_some_and(|price| !(0.0..=PRICE_MAX).contains(&price)) {
            return Err(Error::invalid(pointer, "invalid_value", format!("must be from 0 to {PRICE_MAX}")));
        }
    }
    Ok(())
}

fn check_significance(read: &CampaignSettings) -> Result<()> {
    if let Some(own) = &read.significance_scores {
        scores::check_scores(own)?;
    }
    let limits = [
        ("reaction_cooldown_seconds", read.reaction_cooldown_seconds, 0, 86_400),
        ("reactions_per_day_max", read.reactions_per_day_max, 0, 1_000_000),
        (REACTIONS_AT_ONCE_MAX, read.reactions_at_once_max, 1, 16),
        ("reply_expiry_seconds", read.reply_expiry_seconds, 1, 604_800),
    ];
    for (name, value, least, most) in limits {
        if value.is_some_and(|value| !(least..=most).contains(&value)) {
            return Err(Error::invalid(
                format!("/settings/{name}"),
                "invalid_value",
                format!("must be from {least} to {most}"),
            ));
        }
    }
    Ok(())
}

/// Like [`check`], for settings that are stored or in a file. Unknown settings are accepted, because an earlier server
/// may have known them.
pub fn stored_fit(settings: &Extensions, cx: &()) -> garde::Result {
    let read = settings.iter().filter(|(name, _)| NAMES.contains(&name.as_str()));
    let read = read.map(|(name, value)| (name.clone(), value.clone())).collect();
    check(&Value::Object(read)).map_err(|error| garde::Error::new(error.detail.as_str()))?;
    validate::extensions(settings, cx)
}
