//! Templates of prompts: `settings.prompt_templates`. A campaign decides for a task which sections a prompt has, in which order, how much
//! of the model's context each may use, and what is cut first.

use entity::shapes::Extensions;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::prompt_section::Section;
use base::error::{Error, Result};

/// The sections of a game master's base prompt, in their own order.
pub const GM_BASE: [&str; 5] = ["engine_rules", "instructions", "campaign", "global_lore", "tools"];
/// The sections that follow them, always in this order.
const GM_REST: [&str; 4] = ["history", "world_state_overview", "scoped_lore", "turn"];

/// A campaign's templates, for the tasks whose prompts have sections.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PromptTemplates {
    /// For the turns of NPCs.
    pub npc: Option<PromptTemplate>,
    /// For the turns of owners.
    pub owner: Option<PromptTemplate>,
    /// For the turns of sessions' AIs.
    pub gm: Option<PromptTemplate>,
}

impl PromptTemplates {
    /// Checks all templates.
    ///
    /// # Errors
    /// `validation_failed`, with a pointer below `at`.
    pub fn check(&self, at: &str) -> Result<()> {
        for (task, template) in [("npc", &self.npc), ("owner", &self.owner), ("gm", &self.gm)] {
            template.as_ref().map_or(Ok(()), |template| template.check(task, &format!("{at}/{task}")))?;
        }
        Ok(())
    }
}

/// The sections of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptTemplate {
    /// In their order in the prompt. A section that is not named is left out, except `engine_rules`, which is always first, and `recalled`, which
    /// goes with `memories`. The conversation comes last, with `turn` at the end.
    #[schema(min_items = 1, max_items = 20)]
    pub sections: Vec<TemplateSection>,
}

/// A section of a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TemplateSection {
    /// The section's name, as in the answer of `POST …/prompt`.
    pub name: String,
    /// The largest share of the model's context that the section may use, in percent. It replaces the budget in tokens if the model's
    /// profile says how large its context is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub share: Option<u8>,
    /// If the prompt is larger than the model's context: sections with the smallest number give way first, then everything else in the usual
    /// order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub cut: Option<u8>,
}

fn refused(pointer: String, message: String) -> Result<()> {
    Err(Error::invalid(pointer, "invalid_value", message))
}

impl TemplateSection {
    /// Checks its share and its place among those that give way.
    fn check_sizes(&self, task: &str, at: &str) -> Result<()> {
        let of = Section::named(&self.name).filter(|_| task != "gm");
        if let Some(share) = self.share {
            let at = format!("{at}/share");
            if !(1..=100).contains(&share) {
                return refused(at, "must be from 1 to 100 percent".to_owned());
            }
            if of.is_none_or(|of| of.budget_tokens().is_none()) {
                return refused(at, "This section cannot have a share.".to_owned());
            }
        }
        if let Some(cut) = self.cut {
            let at = format!("{at}/cut");
            if !(1..=100).contains(&cut) {
                return refused(at, "must be from 1 to 100".to_owned());
            }
            if of.is_none_or(|of| !of.may_be_cut()) {
                return refused(at, "This section cannot be cut.".to_owned());
            }
        }
        Ok(())
    }
}

impl PromptTemplate {
    /// A campaign's template for a task. None if it has none, or if the stored one does not fit.
    #[must_use]
    pub fn of(settings: &Extensions, task: &str) -> Option<Self> {
        let template: Self = serde_json::from_value(settings.get("prompt_templates")?.get(task)?.clone()).ok()?;
        template.check(task, "").is_ok().then_some(template)
    }

    /// Checks a template.
    ///
    /// # Errors
    /// `validation_failed`, with a pointer below `at`.
    pub fn check(&self, task: &str, at: &str) -> Result<()> {
        let known: Vec<&str> = match task {
            "gm" => GM_BASE.iter().chain(&GM_REST).copied().collect(),
            _ => Section::ORDER.iter().map(|section| section.name()).collect(),
        };
        let last = if task == "gm" { &GM_REST[..] } else { &["history", "recalled", "turn"] };
        let mut shares = 0u32;
        let mut rank = 0;
        for (n, section) in self.sections.iter().enumerate() {
            let pointer = |member: &str| format!("{at}/sections/{n}{member}");
            let name = section.name.as_str();
            if !known.contains(&name) {
                return refused(pointer("/name"), format!("must be one of {}", known.join(", ")));
            }
            if self.sections.iter().take(n).any(|other| other.name == name) {
                return refused(pointer("/name"), "A section may stand in a template once.".to_owned());
            }
            if name == "engine_rules" && n > 0 {
                return refused(pointer("/name"), "`engine_rules` is always the first section.".to_owned());
            }
            let its_rank = last.iter().position(|other| *other == name).map_or(0, |at| at + 1);
            if its_rank < rank {
                return refused(
                    pointer("/name"),
                    format!("The last sections must be, in this order: {}.", last.join(", ")),
                );
            }
            rank = its_rank;
            section.check_sizes(task, &pointer(""))?;
            shares += section.share.map_or(0, u32::from);
        }
        let has = |name: &str| self.sections.iter().any(|section| section.name == name);
        if !has("turn") {
            return refused(
                format!("{at}/sections"),
                "A template must contain `turn`, which holds what the player does.".to_owned(),
            );
        }
        if has("recalled") && !has("memories") {
            return refused(
                format!("{at}/sections"),
                "A template with `recalled` must contain `memories`, which has the budget for both.".to_owned(),
            );
        }
        if task == "gm"
            && let Some(missing) = GM_REST.iter().find(|name| !has(name))
        {
            return refused(format!("{at}/sections"), format!("A template for `gm` must contain `{missing}`."));
        }
        if shares > 100 {
            return refused(
                format!("{at}/sections"),
                format!("The shares add up to {shares} %. They must be at most 100 %."),
            );
        }
        Ok(())
    }
}

/// Which sections a prompt has, in which order, and their budgets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The sections of the base prompt.
    pub base: Vec<Section>,
    /// The sections that are cut first if the prompt is too large for the model's context, in this order.
    pub cut: Vec<Section>,
    has_history: bool,
    has_shares: bool,
    /// The shares in tokens. Empty if the size of the model's context is unknown.
    shares: Vec<(Section, u32)>,
}

impl Layout {
    /// The layout of an NPC's or owner's prompts. `context_tokens` is the size of the model's context, if it is known.
    #[must_use]
    pub fn of(settings: &Extensions, task: &str, context_tokens: Option<u32>) -> Self {
        let Some(template) = PromptTemplate::of(settings, task) else {
            let base = Section::ORDER.into_iter().filter(|section| section.is_base()).collect();
            return Self { base, cut: Vec::new(), has_history: true, has_shares: false, shares: Vec::new() };
        };
        let named: Vec<(Section, &TemplateSection)> =
            template.sections.iter().filter_map(|s| Some((Section::named(&s.name)?, s))).collect();
        let base = named.iter().map(|(section, _)| *section).filter(|s| s.is_base() && *s != Section::EngineRules);
        let base = std::iter::once(Section::EngineRules).chain(base).collect();
        let mut cut: Vec<(u8, Section)> = named.iter().filter_map(|(section, s)| Some((s.cut?, *section))).collect();
        cut.sort_by_key(|(order, _)| *order);
        let share = |(section, s): &(Section, &TemplateSection)| Some((*section, share_of(context_tokens?, s.share?)));
        Self {
            base,
            cut: cut.into_iter().map(|(_, section)| section).collect(),
            has_history: named.iter().any(|(section, _)| *section == Section::History),
            has_shares: named.iter().any(|(_, s)| s.share.is_some()),
            shares: named.iter().filter_map(share).collect(),
        }
    }

    /// Whether prompts hold the whole conversation, as far as its budget allows. Otherwise older exchanges may come back with another
    /// template or model.
    #[must_use]
    pub fn shows_history(&self) -> bool {
        self.has_history && self.share(Section::History).is_none()
    }

    /// Whether it depends on the size of the model's context.
    #[must_use]
    pub fn has_shares(&self) -> bool {
        self.has_shares
    }

    /// The most tokens of a section whose budget is a share of the model's context.
    #[must_use]
    pub fn share(&self, section: Section) -> Option<u32> {
        self.shares.iter().find(|(other, _)| *other == section).map(|(_, tokens)| *tokens)
    }

    /// The most tokens of a section.
    #[must_use]
    pub fn budget(&self, section: Section, settings: &Extensions) -> u32 {
        if section == Section::History && !self.has_history {
            return 0;
        }
        self.share(section).unwrap_or_else(|| section.budget_in(settings))
    }
}

/// A share of a context, in tokens.
#[must_use]
pub fn share_of(context_tokens: u32, percent: u8) -> u32 {
    u32::try_from(u64::from(context_tokens) * u64::from(percent) / 100).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template(sections: serde_json::Value) -> PromptTemplate {
        serde_json::from_value(json!({ "sections": sections })).unwrap()
    }

    #[test]
    fn what_is_wrong_with_a_template_is_pointed_to() {
        let name = |name: &str| json!({ "name": name });
        for (sections, task, pointer) in [
            (json!([name("history"), name("turn")]), "npc", None),
            (json!([name("engine_rules"), name("memories"), name("personality"), name("turn")]), "owner", None),
            (
                json!([
                    name("tools"),
                    name("campaign"),
                    name("history"),
                    name("world_state_overview"),
                    name("scoped_lore"),
                    name("turn")
                ]),
                "gm",
                None,
            ),
            (json!([name("tools"), name("history"), name("turn")]), "gm", Some("/sections")),
            (json!([{ "name": "history", "share": 10 }, name("turn")]), "gm", Some("/sections/0/share")),
            (json!([]), "npc", Some("/sections")),
            (json!([name("personality")]), "npc", Some("/sections")),
            (json!([name("memories"), name("history"), { "name": "recalled", "cut": 1 }, name("turn")]), "npc", None),
            (json!([name("recalled"), name("turn")]), "npc", Some("/sections")),
            (json!([name("recalled"), name("memories"), name("turn")]), "npc", Some("/sections/1/name")),
            (
                json!([name("memories"), { "name": "recalled", "share": 9 }, name("turn")]),
                "npc",
                Some("/sections/1/share"),
            ),
            (json!([name("turn"), name("turn")]), "npc", Some("/sections/1/name")),
            (json!([name("campaign"), name("turn")]), "npc", Some("/sections/0/name")),
            (json!([name("tools"), name("engine_rules"), name("turn")]), "npc", Some("/sections/1/name")),
            (json!([name("turn"), name("tools")]), "npc", Some("/sections/1/name")),
            (json!([name("turn"), name("history")]), "npc", Some("/sections/1/name")),
            (json!([{ "name": "memories", "share": 0 }, name("turn")]), "npc", Some("/sections/0/share")),
            (json!([{ "name": "tools", "share": 10 }, name("turn")]), "npc", Some("/sections/0/share")),
            (json!([{ "name": "memories", "share": 60 }, { "name": "turn", "share": 41 }]), "npc", Some("/sections")),
            (json!([{ "name": "tools", "cut": 1 }, name("turn")]), "npc", Some("/sections/0/cut")),
            (json!([{ "name": "global_lore", "cut": 1 }, name("turn")]), "gm", Some("/sections/0/cut")),
        ] {
            let checked = template(sections.clone()).check(task, "");
            let found = checked.err().map(|error| error.errors[0].pointer.clone());
            assert_eq!(found.as_deref(), pointer, "{sections}");
        }
    }

    #[test]
    fn a_layout_has_the_order_and_the_shares_of_its_template() {
        let sections = json!([{ "name": "memories", "share": 20, "cut": 2 }, { "name": "personality" }, { "name": "scenario", "cut": 1 }, { "name": "turn" }]);
        let settings: Extensions =
            serde_json::from_value(json!({ "prompt_templates": { "npc": { "sections": sections } } })).unwrap();
        let layout = Layout::of(&settings, "npc", Some(8000));
        assert_eq!(layout.base, [Section::EngineRules, Section::Memories, Section::Personality, Section::Scenario]);
        assert_eq!(layout.cut, [Section::Scenario, Section::Memories]);
        assert_eq!(layout.budget(Section::Memories, &settings), 1600);
        assert_eq!(layout.budget(Section::History, &settings), 0);
        assert_eq!(Layout::of(&settings, "npc", None).budget(Section::Memories, &settings), 2000);
        assert_eq!(Layout::of(&settings, "owner", None).budget(Section::History, &settings), 6000);
    }
}
