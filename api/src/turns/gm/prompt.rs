//! What the AI of a session is told: rules, campaign and lore, the conversation so far, and then the world as it is or what
//! changed in it, never both.

use std::{fmt::Write as _, sync::Arc};

use entity::{campaign, session::Role, shapes::Extensions};
use sea_orm::{EntityTrait, QueryFilter, sea_query::ExprTrait};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::{lore::Lore, role};
use crate::{
    error::{Error, Result},
    http::resource::col,
    llm::{Message, ReplyMode},
    prompt::{
        LoreDecision,
        cache::Prompts,
        fence,
        preview::{MessageText, Preview, SectionText},
        section::Section,
        segment::{Segment, short_hash},
        tokens,
        transcript::{Transcript, messages},
    },
    sessions::{
        changes,
        combat::{self, Fight},
        delta::NO_CHANGES,
        overview,
        service::{self, Playing, Position, Standing},
    },
    tenancy::TenantTx,
    tools::Tool,
};

/// How an overview begins; the transcript is looked through for it.
const OVERVIEW: &str = "World State Overview:\n";
const CHANGES: &str = "Recent changes to the game:\n";

/// A section of the prompt.
pub(super) struct Part {
    pub name: &'static str,
    pub text: Arc<str>,
    pub tokens: u32,
    pub hash: String,
    pub cut: String,
}

impl Part {
    fn new(name: &'static str, text: String, cut: String) -> Self {
        let hash = short_hash(&Sha256::digest(text.as_bytes()));
        Self { name, tokens: tokens::count(&text), hash, text: text.into(), cut }
    }
}

/// A prompt, and up to where it tells what happened.
pub(super) struct GmPrompt {
    /// In order; the first [`BASE`] are the base, then history, context, the place's lore and the turn itself.
    pub sections: Vec<Part>,
    pub transcript: Arc<Transcript>,
    /// `overview` or `delta`.
    pub context: &'static str,
    pub upto: Position,
    /// The turn's own message.
    pub text: Arc<str>,
    pub text_tokens: u32,
    pub tools: Option<Box<RawValue>>,
    pub cache_key: String,
    pub base_hash: String,
    pub base_tokens: u32,
    pub lore: Vec<LoreDecision>,
}

/// Sections that stay the same from turn to turn: rules, campaign, lore, tools.
const BASE: usize = 4;

impl GmPrompt {
    /// Reads and writes everything. About ten statements, whatever the size of the world.
    ///
    /// # Errors
    /// `not_found`; those of the database.
    pub(super) async fn build(
        prompts: &Prompts,
        tx: &TenantTx,
        session: &Playing,
        mode: ReplyMode,
        instruction: Option<&str>,
        mechanics: Option<&str>,
    ) -> Result<Self> {
        let standing = service::standing(tx, session).await?;
        let found = campaign::Entity::find().filter(col("tenant_id").eq(tx.tenant()));
        let found = found.filter(col("id").eq(session.campaign)).one(tx).await?;
        let campaign = found.ok_or_else(|| Error::not_found("campaign"))?;
        let settings = &campaign.settings.0;
        let known = Lore::read(prompts, tx, session).await?;
        let Segment { text: lore_text, mut lore, cut, .. } = known.global(settings);
        let transcript = Arc::new(Transcript::of_session(tx, session.id).await?);
        let older = transcript.exchanges.len();
        // An overview is a part of the conversation: there has to be room for it beside the talk.
        let room = Section::History.budget_in(settings).saturating_add(Section::Overview.budget_in(settings));
        let transcript = transcript.within(room);
        let older = older - transcript.exchanges.len();
        let fights = combat::going_on(tx, session.campaign, Some(session.id)).await?;
        let fights = combat::seen_by(session.role, fights);
        // Shown while one of the server's own fights goes on, or always if the campaign says so.
        let fighting = fights.iter().any(|f| f.own) || settings.get("gm_encounters").is_some_and(|s| *s == true);
        let shown = role::shown(session.role, fighting);
        let (context, told) = context(tx, session, &standing, &transcript, settings, fights).await?;
        let place = known.of_place(settings, &transcript);
        let words = [instruction.unwrap_or_default(), mechanics.unwrap_or_default(), &told.text];
        let woken = known.woken((tx, session), settings, &transcript, &words).await?;
        let turn = format!("{}{}", woken.text, turn_text(session.role, instruction, mechanics));
        lore.extend(place.lore.into_iter().chain(woken.lore));
        let base = [
            Part::new("engine_rules", role::rules(session.role, mode), String::new()),
            Part::new("campaign", about(&campaign), String::new()),
            Part::new("global_lore", lore_text.to_string(), cut),
            Part::new("tools", tools_text(&shown, mode), String::new()),
        ];
        let mut hash = Sha256::new();
        base.iter().for_each(|part| hash.update(part.hash.as_bytes()));
        let base_tokens = base.iter().map(|part| part.tokens).sum();
        let text: Arc<str> = format!("{}{}{turn}", told.text, place.text).into();
        let cut = if older > 0 { format!("{older} older exchanges") } else { String::new() };
        let history = Part {
            name: "history",
            text: transcript
                .exchanges
                .iter()
                .map(|e| format!("{}{}\n", e.user, e.assistant))
                .collect::<String>()
                .into(),
            tokens: transcript.tokens,
            hash: transcript.hash.clone(),
            cut,
        };
        let key = [tx.tenant().into_bytes(), session.campaign.into_bytes(), session.id.into_bytes()];
        Ok(Self {
            sections: base
                .into_iter()
                .chain([
                    history,
                    told,
                    Part::new("scoped_lore", place.text, place.cut),
                    Part::new("turn", turn, woken.cut),
                ])
                .collect(),
            transcript,
            context,
            upto: standing.now,
            text_tokens: tokens::count(&text),
            text,
            tools: (mode == ReplyMode::Native).then(|| role::definitions(&shown)).flatten(),
            cache_key: short_hash(&Sha256::digest(key.concat())),
            base_hash: short_hash(&hash.finalize()),
            base_tokens,
            lore,
        })
    }

    /// The messages a model is sent.
    pub(super) fn messages(&self) -> Vec<Message> {
        let texts = self.sections.iter().take(BASE).map(|s| s.text.clone());
        messages(texts, &self.transcript, self.text.clone())
    }

    /// The prompt as a preview shows it.
    pub(super) fn preview(self) -> Preview {
        let messages = self.messages();
        let section = |s: Part| SectionText {
            name: s.name,
            text: s.text.to_string(),
            tokens: s.tokens,
            hash: s.hash,
            cut: s.cut,
        };
        Preview {
            total_tokens: self.sections.iter().map(|s| s.tokens).sum(),
            messages: messages.iter().map(|m| MessageText { role: m.role, content: m.content.concat() }).collect(),
            sections: self.sections.into_iter().map(section).collect(),
            lore: self.lore,
            cache: "miss",
            context: Some(self.context),
            base_hash: self.base_hash,
            base_tokens: self.base_tokens,
        }
    }
}

/// The world as it is, unless the model was told it in what it still reads of the conversation; then what changed since.
async fn context(
    tx: &TenantTx,
    session: &Playing,
    standing: &Standing,
    transcript: &Transcript,
    settings: &Extensions,
    fights: Vec<Fight>,
) -> Result<(&'static str, Part)> {
    let was_told = transcript.exchanges.iter().any(|e| e.user.starts_with(OVERVIEW));
    if standing.cursor.is_some() && was_told && !standing.is_too_old() {
        let delta = changes::delta(tx, session, standing).await?;
        let mut text = String::new();
        if delta.is_empty() {
            let _ = writeln!(text, "{NO_CHANGES}");
        } else {
            text.push_str(CHANGES);
            let shown = serde_json::to_string_pretty(&delta.shown()?).map_err(Error::internal)?;
            fence::put(&mut text, "recent_changes", &[], &shown);
        }
        return Ok(("delta", Part::new("recent_changes", text, String::new())));
    }
    let known = service::known(tx, session.id, false).await?;
    let overview = overview::overview(tx, session, known, fights).await?;
    let (shown, cut) = overview.within(Section::Overview.budget_in(settings))?;
    let mut text = OVERVIEW.to_owned();
    fence::put(&mut text, "world_state", &[], &shown);
    Ok(("overview", Part::new("world_state_overview", text, cut)))
}

fn about(campaign: &campaign::Model) -> String {
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

fn turn_text(role: Role, instruction: Option<&str>, mechanics: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(mechanics) = mechanics {
        fence::put(&mut text, "mechanics", &[], mechanics);
    }
    let _ = writeln!(text, "{}", role::take_your_turn(role));
    if let Some(instruction) = instruction {
        fence::put(&mut text, "instruction", &[], instruction);
    }
    text
}
