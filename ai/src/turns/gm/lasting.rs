//! The part of a session's prompt that stays the same from turn to turn.

use std::{fmt::Write as _, sync::Arc};

use entity::session::Role;
use sha2::{Digest, Sha256};

use super::{lore::Lore, role};
use crate::{
    prompt::{
        LoreDecision, fence,
        hash::{self, short_hash},
        pieces::{Lessened, Pieces},
        segment::SectionDraft,
    },
    tools::Tool,
};
use base::{error::Result, tokens};
use llm::ReplyMode;
use world::{
    campaigns::{
        prompt_section::Section,
        prompt_template::{GM_BASE, PromptTemplate},
    },
    sessions::facts::CampaignNow,
};

/// A section of the prompt.
#[derive(Clone)]
pub(super) struct Part {
    pub name: &'static str,
    pub text: Arc<str>,
    pub tokens: u32,
    pub hash: String,
    pub cut: String,
    /// What may be left out to fit the model's context.
    pub pieces: Pieces,
}

impl Part {
    pub async fn new(name: &'static str, text: String, cut: String) -> Result<Self> {
        let (text, hash) = hashed(text);
        Ok(Self { name, tokens: tokens::count_apart(text.clone()).await?, hash, text, cut, pieces: Pieces::default() })
    }

    /// A section that stays the same from turn to turn. Its token count is cached.
    pub async fn lasting(name: &'static str, text: String, cut: String) -> Result<Self> {
        let (text, hash) = hashed(text);
        Ok(Self {
            name,
            tokens: tokens::count_lasting(text.clone()).await?,
            hash,
            text,
            cut,
            pieces: Pieces::default(),
        })
    }

    /// A section without text.
    pub fn empty(name: &'static str) -> Self {
        let (text, hash) = hashed(String::new());
        Self { name, tokens: 0, hash, text, cut: String::new(), pieces: Pieces::default() }
    }

    /// The same, with what may be left out of it.
    pub fn of(self, pieces: Pieces) -> Self {
        Self { pieces, ..self }
    }

    /// Leaves out what it takes to save `excess` tokens, or all that may be left out. Says what that was.
    pub async fn lessen(&mut self, excess: u32, context: u32) -> Result<Option<Lessened>> {
        let less = self.pieces.lessen(&self.text, self.tokens, excess, context).await?;
        if let Some(less) = &less {
            self.cut = less.cut_after(&self.cut);
            self.text = less.text.clone();
            self.tokens = less.tokens;
            self.hash.clone_from(&less.hash);
            self.pieces = less.pieces.clone();
        }
        Ok(less)
    }
}

/// The hash of a base and its tokens.
fn summed(parts: &[Part]) -> (String, u32) {
    hash::summed(parts.iter().map(|part| (part.hash.as_str(), part.tokens)))
}

fn hashed(text: String) -> (Arc<str>, String) {
    let hash = short_hash(&Sha256::digest(text.as_bytes()));
    (text.into(), hash)
}

/// The part that stays the same from turn to turn, and the data from which it was written.
pub(super) struct Base {
    /// Rules, instructions, campaign, global lore and tools, in the order of the campaign's template.
    pub parts: Vec<Part>,
    /// How many of them are rules and instructions at the beginning.
    pub rules: usize,
    pub hash: String,
    pub tokens: u32,
    pub lore: Vec<LoreDecision>,
    role: Role,
    is_fighting: bool,
    campaign: Arc<CampaignNow>,
    knows: Arc<Lore>,
}

impl Base {
    pub async fn write(
        role: Role,
        mode: ReplyMode,
        is_fighting: bool,
        campaign: &Arc<CampaignNow>,
        knows: &Arc<Lore>,
    ) -> Result<Self> {
        let template = PromptTemplate::of(&campaign.settings, "gm");
        let mut parts = Vec::with_capacity(GM_BASE.len());
        let mut lore = Vec::new();
        for name in order(template.as_ref()) {
            let SectionDraft { text, lore: told, cut, pieces } = match name {
                "engine_rules" => role::rules(role, mode).into(),
                "instructions" => instructions(campaign).into(),
                "campaign" => about(campaign).into(),
                "global_lore" => knows.global(&campaign.settings),
                _ => tools_text(&role::shown_tools(role, is_fighting), mode).into(),
            };
            lore.extend(told);
            parts.push(Part::lasting(name, text, cut).await?.of(pieces));
        }
        let is_rule = |part: &&Part| matches!(part.name, "engine_rules" | "instructions");
        let rules = parts.iter().take_while(is_rule).count();
        let (hash, tokens) = summed(&parts);
        Ok(Self {
            hash,
            tokens,
            parts,
            rules,
            lore,
            role,
            is_fighting,
            campaign: campaign.clone(),
            knows: knows.clone(),
        })
    }

    /// The same with less of a section, to save `excess` tokens. None if nothing may be left out of it.
    pub async fn lessen(&self, section: Section, excess: u32, context: u32) -> Result<Option<Self>> {
        let mut parts = self.parts.clone();
        let Some(part) = parts.iter_mut().find(|part| part.name == section.name()) else { return Ok(None) };
        let Some(less) = part.lessen(excess, context).await? else { return Ok(None) };
        let (hash, tokens) = summed(&parts);
        let (campaign, knows) = (self.campaign.clone(), self.knows.clone());
        Ok(Some(Self { hash, tokens, parts, lore: less.decided(&self.lore, context), campaign, knows, ..*self }))
    }

    /// Whether it would be written in the same way again.
    pub fn is_of(&self, role: Role, is_fighting: bool, campaign: &Arc<CampaignNow>, knows: &Arc<Lore>) -> bool {
        (self.role, self.is_fighting) == (role, is_fighting)
            && Arc::ptr_eq(&self.campaign, campaign)
            && Arc::ptr_eq(&self.knows, knows)
    }

    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.text.len() + part.pieces.bytes()).sum::<usize>() + self.lore.len() * 100
    }
}

/// The sections of the base prompt in their order. The rules are always first.
fn order(template: Option<&PromptTemplate>) -> Vec<&'static str> {
    let Some(template) = template else { return GM_BASE.to_vec() };
    let named = template.sections.iter().filter_map(|s| GM_BASE.iter().copied().find(|name| *name == s.name));
    std::iter::once("engine_rules").chain(named.filter(|name| *name != "engine_rules")).collect()
}

/// What the author tells all models of the campaign. A session has no character, so macros about one stay as they are.
fn instructions(campaign: &CampaignNow) -> String {
    let mut text = String::new();
    if !campaign.instructions.trim().is_empty() {
        fence::put(&mut text, "instructions", &[], &campaign.instructions);
    }
    text
}

fn about(campaign: &CampaignNow) -> String {
    let mut text = String::new();
    let time = campaign.game_time.as_deref().unwrap_or_default();
    let attributes = [("name", campaign.name.as_str()), ("game_system", &campaign.game_system), ("time", time)];
    fence::put(&mut text, "campaign", &attributes, &campaign.description);
    text
}

fn tools_text(shown: &[&Tool], mode: ReplyMode) -> String {
    let mut text = String::new();
    fence::open(&mut text, "available_tools", &[]);
    for tool in shown {
        let _ = writeln!(text, "- {}: {}", tool.name, fence::inside(tool.description));
        if mode == ReplyMode::Xml {
            let _ = writeln!(text, "  parameters: {}", tool.schema_text());
        }
    }
    fence::close(&mut text, "available_tools");
    text
}
