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

pub mod answer;
pub mod arguments;
mod check;
pub mod deed;
pub mod http;
mod ooc;
mod pray;
mod rest;
mod roll;
pub mod service;
mod sheet_create;
mod sheet_show;
pub mod spec;
mod travel;
mod use_skill;

use std::{collections::BTreeMap, sync::LazyLock};

use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};

use self::spec::{AtOnce, CommandCx, CommandOutcome, CommandSpec};
use crate::tools::{self, spec::Schemas};
use base::error::{Code, Error, Result};
use edge::caller::{Caller, Scope};

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
    pub for_fallen: bool,
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
        for_fallen: T::FOR_FALLEN,
        hint: T::HINT,
        schema: schema::<T>,
        answer: tools::spec::schemas::<T::Answer>,
        check: check::<T>,
        run: None,
    }
}

const fn at_once<T: AtOnce>() -> Command {
    fn run<'a, T: AtOnce>(cx: &'a CommandCx<'a>, given: Value) -> LocalBoxFuture<'a, Result<CommandOutcome>> {
        Box::pin(async move {
            let arguments = tools::arguments::read(given)?;
            T::check(&arguments)?;
            let done = T::run(cx, arguments).await?;
            let result = serde_json::to_value(&done.result).map_err(Error::internal)?;
            Ok(done.map(|_| result))
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
    at_once::<rest::Rest>(),
    at_once::<pray::Pray>(),
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
