//! The conversation of one entity with one player. It only grows, and is cut to half when it exceeds its budget.
//!
//! The beginning of the window is stored with each exchange, so that every replica sees the same prefix. A turn writes its messages when
//! it commits, so only turns that succeeded and were not undone have any.

use std::{collections::HashMap, sync::Arc};

use sha2::{Digest, Sha256};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{fence::of_conversation, hash::short_hash, size::MESSAGE_TOKENS};
use base::{
    error::Result,
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use llm::{Message, Role};
use world::messages::prompt_text::with_words;

/// The most exchanges that are loaded. Far more than any budget allows.
const EXCHANGES_MAX: i64 = 2000;

/// Stands for an answer without words, because many endpoints reject an empty message.
const SILENCE: &str = "…";

/// The messages for the model: the rules (the first `rules` of `texts`), then everything about the world, then the conversation. Roles
/// alternate, as strict endpoints require. Nothing is copied.
#[must_use]
pub fn messages(
    texts: impl IntoIterator<Item = Arc<str>>,
    rules: usize,
    transcript: &Transcript,
    turn: impl IntoIterator<Item = Arc<str>>,
) -> Vec<Message> {
    let plain = Message::pieces;
    let mut texts = texts.into_iter();
    let mut messages = Vec::with_capacity(2 * transcript.exchanges.len() + 2);
    messages.push(plain(Role::System, texts.by_ref().take(rules).filter(|text| !text.is_empty()).collect()));
    let mut user: Vec<Arc<str>> = texts.filter(|t| !t.is_empty()).collect();
    for exchange in &transcript.exchanges {
        user.push(exchange.user.clone());
        messages.push(plain(Role::User, std::mem::take(&mut user)));
        messages.push(plain(Role::Assistant, vec![exchange.assistant.clone()]));
    }
    user.extend(turn);
    messages.push(plain(Role::User, user));
    messages
}

/// A player's action and the entity's answer.
#[derive(Debug)]
pub struct Exchange {
    /// The id of the player's message.
    pub id: Uuid,
    /// The action as the player wrote it.
    pub said: Arc<str>,
    /// The action as the model read it, with keyword lore and situation.
    pub user: Arc<str>,
    pub assistant: Arc<str>,
    pub tokens: u32,
}

/// A stored message of a conversation.
struct Line {
    id: Uuid,
    turn: Option<Uuid>,
    is_answer: bool,
    content: String,
    prompt_text: Option<String>,
    tokens: i32,
}

impl Line {
    fn of(row: &PgRow) -> Result<Self> {
        Ok(Self {
            id: row.read("id")?,
            turn: row.read("turn_id")?,
            is_answer: row.read::<&str>("author")? == "ai",
            content: row.read("content")?,
            prompt_text: row.read("prompt_text")?,
            tokens: row.read("tokens")?,
        })
    }
}

/// The window of the conversation that goes into prompts.
#[derive(Debug)]
pub struct Transcript {
    pub exchanges: Vec<Arc<Exchange>>,
    pub tokens: u32,
    pub hash: String,
    pub version: i64,
}

impl Default for Transcript {
    /// An empty conversation. Its hash is that of an empty section.
    fn default() -> Self {
        Self { exchanges: Vec::new(), tokens: 0, hash: short_hash(&Sha256::digest("")), version: 0 }
    }
}

impl Transcript {
    /// Loads the window. One statement.
    ///
    /// # Errors
    /// Database errors.
    pub async fn load(tx: &TenantTx, entity: Uuid, player: Uuid, version: i64) -> Result<Self> {
        let rows = sqlx::query(
            "SELECT id, author, content, prompt_text, tokens, turn_id FROM message \
             WHERE tenant_id = $1 AND entity_id = $2 AND player_id = $3 AND turn_id IS NOT NULL AND seq >= coalesce((\
               SELECT window_start FROM message WHERE tenant_id = $1 AND entity_id = $2 AND player_id = $3 \
               AND window_start IS NOT NULL ORDER BY seq DESC LIMIT 1), 0) \
             ORDER BY seq DESC LIMIT $4",
        )
        .bind(tx.tenant())
        .bind(entity)
        .bind(player)
        .bind(EXCHANGES_MAX * 2)
        .fetch_all(&mut *tx.connection().await)
        .await?;
        Ok(Self::of_rows(&rows, version))
    }

    /// Loads the window of a session: what its AI read and wrote. One statement.
    ///
    /// # Errors
    /// Database errors.
    pub async fn of_session(tx: &TenantTx, session: Uuid, conversation_key: &str, version: i64) -> Result<Self> {
        let rows = sqlx::query(
            "SELECT id, author, content, prompt_text, tokens, turn_id FROM message \
             WHERE tenant_id = $1 AND session_id = $2 AND entity_id = $2 AND told_as = $4 AND turn_id IS NOT NULL AND seq >= coalesce((\
               SELECT window_start FROM message WHERE tenant_id = $1 AND session_id = $2 AND entity_id = $2 AND told_as = $4 \
               AND window_start IS NOT NULL ORDER BY seq DESC LIMIT 1), 0) \
             ORDER BY seq DESC LIMIT $3",
        )
        .bind(tx.tenant())
        .bind(session)
        .bind(EXCHANGES_MAX * 2)
        .bind(conversation_key)
        .fetch_all(&mut *tx.connection().await)
        .await?;
        Ok(Self::of_rows(&rows, version))
    }

    /// Pairs the questions and answers of turns, in the order of the answers. The newest row comes first. If a row cannot be read, only its
    /// exchange is lost.
    fn of_rows(rows: &[PgRow], version: i64) -> Self {
        let mut transcript = Self { version, ..Self::default() };
        // A question may have been asked long before it is answered.
        let mut questions: HashMap<Option<Uuid>, Line> = HashMap::new();
        for answer in stored::each(rows.iter().rev(), Line::of) {
            if !answer.is_answer {
                questions.insert(answer.turn, answer);
                continue;
            }
            // Without a question if that was deleted.
            let Some(asked) = questions.remove(&answer.turn) else { continue };
            let said: Arc<str> = asked.content.into();
            let user = asked.prompt_text.map_or_else(|| said.clone(), |text| with_words(text, &said).into());
            let tokens = asked.tokens.saturating_add(answer.tokens).unsigned_abs();
            transcript.push(Exchange { id: asked.id, said, user, assistant: answer.content.into(), tokens });
        }
        transcript
    }

    /// This conversation with one more exchange.
    #[must_use]
    pub fn with(&self, exchange: Exchange, version: i64) -> Self {
        let mut next =
            Self { exchanges: self.exchanges.clone(), tokens: self.tokens, hash: self.hash.clone(), version };
        next.push(exchange);
        next
    }

    fn push(&mut self, mut exchange: Exchange) {
        if exchange.assistant.trim().is_empty() {
            exchange.assistant = SILENCE.into();
        }
        exchange.user = of_conversation(exchange.user);
        exchange.assistant = of_conversation(exchange.assistant);
        self.add(Arc::new(exchange));
    }

    /// Adds an exchange in the form in which models read it.
    fn add(&mut self, exchange: Arc<Exchange>) {
        self.tokens = self.tokens.saturating_add(exchange.tokens);
        let mut hash = Sha256::new();
        for part in [self.hash.as_bytes(), exchange.user.as_bytes(), exchange.assistant.as_bytes()] {
            hash.update(part);
            hash.update([0]);
        }
        self.hash = short_hash(&hash.finalize());
        self.exchanges.push(exchange);
    }

    /// This window, or its newer half if it has more than `budget_tokens`.
    #[must_use]
    pub fn within(self: &Arc<Self>, budget_tokens: u32) -> Arc<Self> {
        if self.tokens <= budget_tokens {
            return self.clone();
        }
        let mut kept = 0u32;
        let newest = self.exchanges.iter().rev().take_while(|e| {
            kept = kept.saturating_add(e.tokens);
            kept <= budget_tokens / 2
        });
        Arc::new(self.newest(newest.count()))
    }

    /// The newest exchanges of this window, alone.
    #[must_use]
    pub fn newest(&self, exchanges: usize) -> Self {
        let mut cut = Self { version: self.version, ..Self::default() };
        for exchange in self.exchanges.iter().skip(self.exchanges.len().saturating_sub(exchanges)) {
            cut.add(exchange.clone());
        }
        cut
    }

    /// How many of the oldest exchanges have at least so many tokens together, with what surrounds them.
    #[must_use]
    pub fn oldest_with(&self, tokens: u32) -> usize {
        let mut found = 0u32;
        let fewer = self.exchanges.iter().take_while(|exchange| {
            let before = found;
            found = found.saturating_add(exchange.tokens).saturating_add(2 * MESSAGE_TOKENS);
            before < tokens
        });
        fewer.count()
    }

    /// The number of bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.exchanges.iter().map(|e| e.user.len() + e.assistant.len() + e.said.len() + 120).sum()
    }
}
