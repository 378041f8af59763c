//! What a command's file says about the command, and what it gets and returns.

use entity::message::{Author, Type};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    corpora::Corpora,
    tools::{
        self, Work,
        spec::{ActorKind, ToolCx},
    },
    turns::{
        rules::fight,
        view::{CallStatus, ToolCall, Visibility},
    },
};
use base::error::{Code, Error, Result};
use db::tenancy::TenantTx;
use edge::caller::{Caller, Scope};
use world::{
    encounters::stand::{self, Stand},
    messages::service::NewMessage,
    playing::Reader,
    rules::answers::ResolvedOutcome,
};

/// The context of a command: who gives it, and where.
pub struct CommandCx<'a> {
    pub work: &'a Work<'a>,
    pub corpora: &'a Corpora,
    pub caller: &'a Caller,
    pub campaign: Uuid,
    /// The character who acts.
    pub player: Uuid,
    pub name: &'a str,
    /// The scene in which it happens.
    pub scene: Option<Uuid>,
    /// The turn that the command is part of.
    pub turn: Option<Uuid>,
    /// The player's words, if the history already has them: the message's id and its text.
    pub said: Option<(Uuid, &'a str)>,
}

impl CommandCx<'_> {
    /// The transaction in which the command runs.
    ///
    /// # Errors
    /// The errors of [`Work::tx`].
    pub(super) async fn tx(&self) -> Result<&TenantTx> {
        self.work.tx().await
    }

    /// A message that everyone at the table reads.
    pub(super) fn tell(&self, kind: Type, content: String) -> NewMessage {
        NewMessage {
            kind,
            scene_id: self.scene,
            player_id: Some(self.player),
            turn_id: self.turn,
            ..NewMessage::chat(Author::Player, self.name, content)
        }
    }

    /// Runs a resolver as the acting character, in the fight in which it stands, if any. The result has only what everyone may read.
    pub(super) async fn resolve(&self, stand: Option<&Stand>, name: &str, arguments: Value) -> Result<ResolvedOutcome> {
        let tool = tools::find(name).ok_or_else(|| Error::internal("a command's tool is missing"))?;
        match stand {
            Some(stand) => fight::run(stand, &self.as_character(), tool, arguments).await,
            None => tool.resolve(&self.as_character(), arguments).await,
        }
    }

    /// Refuses what nobody does during a fight. `more` is a further sentence, after a space.
    pub(super) async fn outside_fights(&self, what: &str, more: &str) -> Result<()> {
        if stand::fight_of(self.tx().await?, self.player).await?.is_none() {
            return Ok(());
        }
        let message = format!("{} is in a fight and cannot {what}. End the fight first.{more}", self.name);
        Err(Error::new(Code::EncounterNotEnded, message))
    }

    pub(super) fn as_character(&self) -> ToolCx<'_> {
        ToolCx {
            effects: None,
            work: self.work,
            corpora: self.corpora,
            campaign: self.campaign,
            kind: ActorKind::Character,
            entity: self.player,
            player: None,
            session: None,
            reader: Reader { role: entity::session::Role::Player, player: Some(self.player) },
            turn: self.turn,
            is_command: true,
            key: self.caller.author(),
            dice: None,
            heard: None,
            hand: None,
            earlier: None,
            preview: false,
            apply: false,
            rows_max: self.caller.tenant.limits.rows_per_kind,
        }
    }
}

/// The result of a command.
pub struct CommandOutcome<A = Value> {
    pub visibility: Visibility,
    pub result: A,
    /// A sentence for people.
    pub message: String,
    /// The messages for the table.
    pub messages: Vec<NewMessage>,
    /// The decision of the rules, for the turn's record.
    pub call: Option<ToolCall>,
}

impl<A> CommandOutcome<A> {
    /// A result that only the caller sees.
    pub(super) fn ephemeral(result: A, message: String) -> Self {
        Self { visibility: Visibility::Ephemeral, result, message, messages: Vec::new(), call: None }
    }

    /// A result that everyone sees: the sentence becomes a message.
    pub(super) fn public(cx: &CommandCx<'_>, kind: Type, result: A, message: String) -> Self {
        let messages = vec![cx.tell(kind, message.clone())];
        Self { visibility: Visibility::Public, result, message, messages, call: None }
    }

    /// The same with another result.
    pub(super) fn map<B>(self, other: impl FnOnce(A) -> B) -> CommandOutcome<B> {
        let Self { visibility, result, message, messages, call } = self;
        CommandOutcome { visibility, result: other(result), message, messages, call }
    }
}

/// What a command's file says about the command.
pub trait CommandSpec {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;
    /// A scope that the caller needs besides `play`.
    const ALSO: Option<Scope> = None;
    /// Whether a player's token may give the command.
    const FOR_PLAYERS: bool = true;
    /// Whether the planner may choose the command unless the tenant's settings say otherwise.
    const PLANNED: bool = true;
    /// Whether the rules decide the command, so that the decision is kept as a turn.
    const DECIDES: bool = false;
    /// Whether the players of the dead and the unconscious may give it, because it is not what the character does.
    const FOR_FALLEN: bool = false;
    /// What to tell a player whose words led to invalid arguments.
    const HINT: &'static str;
    type Arguments: DeserializeOwned + JsonSchema;
    type Answer: Serialize + ToSchema;

    /// Checks what a schema cannot express.
    ///
    /// # Errors
    /// `validation_failed` with pointers into the arguments.
    fn check(_: &Self::Arguments) -> Result<()> {
        Ok(())
    }
}

/// A command that runs in the transaction of its answer.
pub trait AtOnce: CommandSpec {
    /// Runs the command.
    fn run(
        cx: &CommandCx<'_>,
        arguments: Self::Arguments,
    ) -> impl Future<Output = Result<CommandOutcome<Self::Answer>>>;
}

/// A tool's result, as a turn's record keeps it.
pub(super) fn call(tool: &'static str, arguments: Value, result: Value) -> ToolCall {
    ToolCall {
        id: "call_1".to_owned(),
        name: tool.to_owned(),
        arguments,
        status: CallStatus::Succeeded,
        result: Some(result),
        error: None,
    }
}
