//! A request for the rules to decide an action.

use uuid::Uuid;

use super::resolution::Resolution;
use base::error::Result;
use edge::http::idempotency::IdempotencyKey;
use llm::ReplyMode;
use world::messages::service::NewMessage;

/// An action for the rules to decide, and what is answered.
pub struct RulesJob<V = Resolution> {
    pub campaign: String,
    pub player: String,
    pub action: String,
    /// None if the chosen model decides.
    pub mode: Option<ReplyMode>,
    pub dice: Option<Vec<u32>>,
    pub preview: bool,
    pub key: Option<IdempotencyKey>,
    /// Set if the action was given as a command.
    pub command: Option<AsCommand>,
    pub answer: Answering<V>,
}

/// How to handle an action that was given as a command: it is narrated and written to the table.
pub struct AsCommand {
    /// The scene in which it happens, by id or slug. Alternatively, `channel`.
    pub scene: Option<String>,
    pub channel: Option<String>,
}

/// Makes the answer of a decision, and the messages for the table.
pub type Answering<V> = fn(Resolution, &Teller<'_>) -> Result<(V, Vec<NewMessage>)>;

/// Whose action it is, and where.
pub struct Teller<'a> {
    pub turn: Uuid,
    pub player: Uuid,
    pub name: &'a str,
    pub scene: Option<Uuid>,
    /// The player's words, unless the history already has them.
    pub words: Option<&'a str>,
}

/// The most messages of a command: the player's words, the decision, its narration.
pub const COMMAND_MESSAGES: u64 = 3;
