//! Commands: what a player may ask for. Each command has one file and one line in [`REGISTRY`].
//!
//! A command's typed arguments define its JSON Schema (in the list of commands and for the planner), its validation and its
//! documentation. The player is always the actor: no command has an argument for it. Commands work through services and tools, in
//! the transaction of their answer. Only `do` is a turn, because a model says which check an action needs.
//!
//! - [`arguments`] reads the arguments from a planner or command line, [`http`] has the routes, [`service`] runs a command for a
//!   caller.
//!
//! To add a command: a file that implements [`CommandSpec`] and [`AtOnce`], a line in the registry, and a row in `docs/planner.md`.

pub mod arguments;
mod check;
pub mod deed;
pub mod http;
mod ooc;
mod roll;
pub mod service;
mod sheet_create;
mod sheet_show;
mod travel;
mod use_skill;

use std::{collections::BTreeMap, sync::LazyLock};

use entity::message::{Author, Type};
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    tools::{self, ActorKind, Schemas, Tool, ToolCx, Work},
    turns::{
        rules::fight,
        view::{CallStatus, ToolCall},
    },
};
use base::error::{Code, Error, Result};
use db::tenancy::TenantTx;
use edge::caller::{Caller, Scope};
use world::{
    encounters::stand::Stand, messages::service::NewMessage, playing::Reader, rules::answers::ResolvedOutcome,
};

/// The context of a command: who gives it, and where.
pub struct CommandCx<'a> {
    pub work: &'a Work<'a>,
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
    async fn tx(&self) -> Result<&TenantTx> {
        self.work.tx().await
    }

    /// A message that everyone at the table reads.
    fn tell(&self, kind: Type, content: String) -> NewMessage {
        NewMessage {
            kind,
            scene_id: self.scene,
            player_id: Some(self.player),
            turn_id: self.turn,
            ..NewMessage::chat(Author::Player, self.name, content)
        }
    }

    /// Runs a tool as the acting character. The result has only what everyone may read.
    async fn tool(&self, name: &str, arguments: Value) -> Result<Value> {
        found(name)?.run(&self.as_character(), arguments).await
    }

    /// Runs a tool as the acting character, in the fight in which it stands.
    async fn tool_in(&self, stand: &Stand, name: &str, arguments: Value) -> Result<Value> {
        fight::run(stand, &self.as_character(), found(name)?, arguments).await
    }

    fn as_character(&self) -> ToolCx<'_> {
        ToolCx {
            effects: None,
            work: self.work,
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

fn found(tool: &str) -> Result<&'static Tool> {
    tools::find(tool).ok_or_else(|| Error::internal("a command's tool is missing"))
}

/// Who sees the result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Everyone at the table. The result is in the history.
    Public,
    /// Only the caller.
    Ephemeral,
}

/// The result of a command.
pub struct CommandOutcome {
    pub visibility: Visibility,
    pub result: Value,
    /// A sentence for people.
    pub message: String,
    /// The messages for the table.
    pub messages: Vec<NewMessage>,
    /// The decision of the rules, for the turn's record.
    pub call: Option<ToolCall>,
}

impl CommandOutcome {
    /// A result that only the caller sees.
    fn ephemeral(result: Value, message: String) -> Self {
        Self { visibility: Visibility::Ephemeral, result, message, messages: Vec::new(), call: None }
    }

    /// A result that everyone sees: the sentence becomes a message.
    fn public(cx: &CommandCx<'_>, kind: Type, result: Value, message: String) -> Self {
        let messages = vec![cx.tell(kind, message.clone())];
        Self { visibility: Visibility::Public, result, message, messages, call: None }
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
    /// What to tell a player whose words led to invalid arguments.
    const HINT: &'static str;
    type Arguments: DeserializeOwned + JsonSchema;
    /// The answer's type, for the OpenAPI document.
    type Answer: ToSchema;

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
    fn run(cx: &CommandCx<'_>, arguments: Self::Arguments) -> impl Future<Output = Result<CommandOutcome>>;
}

/// The function that runs a command.
type Run = for<'a> fn(&'a CommandCx<'a>, Value) -> LocalBoxFuture<'a, Result<CommandOutcome>>;

/// A command of the registry.
pub struct Command {
    pub name: &'static str,
    pub description: &'static str,
    pub also: Option<Scope>,
    pub for_players: bool,
    pub planned: bool,
    pub decides: bool,
    pub hint: &'static str,
    schema: fn() -> Value,
    answer: fn() -> Schemas,
    check: fn(&Value) -> Result<()>,
    /// None for `do`, which is a turn.
    run: Option<Run>,
}

const fn by_turn<T: CommandSpec>() -> Command {
    fn schema<T: CommandSpec>() -> Value {
        tools::arguments::schema::<T::Arguments>()
    }
    fn check<T: CommandSpec>(given: &Value) -> Result<()> {
        T::check(&tools::arguments::read(given.clone())?)
    }
    Command {
        name: T::NAME,
        description: T::DESCRIPTION,
        also: T::ALSO,
        for_players: T::FOR_PLAYERS,
        planned: T::PLANNED,
        decides: T::DECIDES,
        hint: T::HINT,
        schema: schema::<T>,
        answer: tools::schemas::<T::Answer>,
        check: check::<T>,
        run: None,
    }
}

const fn at_once<T: AtOnce>() -> Command {
    fn run<'a, T: AtOnce>(cx: &'a CommandCx<'a>, given: Value) -> LocalBoxFuture<'a, Result<CommandOutcome>> {
        Box::pin(async move {
            let arguments = tools::arguments::read(given)?;
            T::check(&arguments)?;
            T::run(cx, arguments).await
        })
    }
    Command { run: Some(run::<T>), ..by_turn::<T>() }
}

/// All commands.
pub static REGISTRY: &[Command] = &[
    at_once::<roll::Roll>(),
    at_once::<check::Check>(),
    at_once::<sheet_create::SheetCreate>(),
    at_once::<sheet_show::SheetShow>(),
    by_turn::<deed::Do>(),
    at_once::<ooc::Ooc>(),
    at_once::<travel::Move>(),
    at_once::<use_skill::UseSkill>(),
];

impl Command {
    /// The arguments' JSON Schema.
    #[must_use]
    pub fn schema(&self) -> &'static Value {
        static SCHEMAS: LazyLock<BTreeMap<&'static str, Value>> =
            LazyLock::new(|| REGISTRY.iter().map(|c| (c.name, (c.schema)())).collect());
        SCHEMAS.get(self.name).unwrap_or(&Value::Null)
    }

    /// The schemas of the answer, the answer's own first.
    #[must_use]
    pub fn answer(&self) -> Schemas {
        (self.answer)()
    }

    /// The command's entry in the list of commands.
    #[must_use]
    pub fn definition(&self) -> Value {
        json!({ "name": self.name, "description": self.description, "parameters": self.schema(), "planned": self.planned })
    }

    /// Checks whether a caller may give the command.
    ///
    /// # Errors
    /// `forbidden`, with what is missing.
    pub fn allowed(&self, caller: &Caller) -> Result<()> {
        if caller.is_player() && !self.for_players {
            return Err(Error::new(
                Code::Forbidden,
                format!("A player's token may not give the command `{}`.", self.name),
            ));
        }
        let what = format!("The command `{}`", self.name);
        [Some(Scope::Play), self.also].into_iter().flatten().try_for_each(|scope| caller.needs(scope, &what))
    }

    /// Checks the arguments without doing anything.
    ///
    /// # Errors
    /// `validation_failed` with pointers into the arguments.
    pub fn check(&self, arguments: &Value) -> Result<()> {
        (self.check)(arguments)
    }

    /// Whether the command is a turn, in which the rules and a model work in transactions of their own.
    #[must_use]
    pub fn is_turn(&self) -> bool {
        self.run.is_none()
    }

    /// Runs the command in the transaction of `cx`. The caller that commits also writes the messages for the table.
    ///
    /// # Errors
    /// `validation_failed` with pointers into the arguments; the command's own errors.
    pub async fn run(&self, cx: &CommandCx<'_>, arguments: Value) -> Result<CommandOutcome> {
        let run = self.run.ok_or_else(|| Error::internal("a command that is a turn was run at once"))?;
        run(cx, arguments).await
    }
}

/// Finds a command by its name. `:` counts as `.`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Command> {
    let name = name.replace(':', ".");
    REGISTRY.iter().find(|c| c.name == name)
}

/// A message that a command wrote.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a command's answer")]
struct MessageSaid {
    /// The message.
    message_id: Uuid,
}

/// A character's new location.
#[derive(ToSchema)]
#[expect(dead_code, reason = "as above")]
struct CharacterMoved {
    /// The character.
    character_id: Uuid,
    /// The new location.
    location: String,
    /// The character's new version.
    version: i64,
}

/// The result of using a skill.
#[derive(ToSchema)]
#[expect(dead_code, reason = "as above")]
struct SkillUsed {
    #[serde(flatten)]
    #[schema(inline)]
    outcome: ResolvedOutcome,
    /// The character or NPC on whom the skill was used, if one was named.
    target_id: Option<Uuid>,
}

/// A tool's result, as a turn's record keeps it.
fn call(tool: &'static str, arguments: Value, result: &Value) -> ToolCall {
    ToolCall {
        id: "call_1".to_owned(),
        name: tool.to_owned(),
        arguments,
        status: CallStatus::Succeeded,
        result: Some(result.clone()),
        error: None,
    }
}
