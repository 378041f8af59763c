//! The checks that a plan has to pass before anything is done: the allowlist, the predicates, the command's own arguments.
//!
//! Nothing from a model is trusted before the allowlist. A gate that rejects a plan never shows a player what the model wrote.

use std::borrow::Cow;

use rules::srd::Ability;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::Reason;
use crate::{
    commands::{Command, REGISTRY},
    state::Ai,
    tools::as_meant,
};
use base::{
    error::{Code, Error, Result},
    json,
};
use db::tenancy::TenantTx;
use edge::caller::Caller;
use world::rules::cast::{Named, Who, named_all};

/// Valid difficulty classes.
const DC: std::ops::RangeInclusive<i64> = 1..=40;

/// The commands that a plan may choose, as bits by their places in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Allowed(u32);

impl Allowed {
    /// The commands that the tenant, the campaign and the caller's scopes allow. An unreadable campaign setting allows none.
    #[must_use]
    pub fn of(caller: &Caller, campaign: Option<&Value>) -> Self {
        let tenant = caller.tenant.settings.features.planner_commands.as_deref();
        let by_tenant =
            |command: &Command| tenant.map_or(command.planned, |names| names.iter().any(|name| name == command.name));
        let by_campaign = |command: &Command| match campaign {
            None | Some(Value::Null) => true,
            Some(Value::Array(names)) => names.iter().any(|name| name == command.name),
            Some(_) => false,
        };
        Self::only(|command| by_tenant(command) && by_campaign(command) && command.allowed(caller).is_ok())
    }

    /// The commands that fit.
    #[must_use]
    pub fn only(fits: impl Fn(&Command) -> bool) -> Self {
        let bits = REGISTRY.iter().enumerate().filter(|(_, command)| fits(command)).map(|(at, _)| 1 << at);
        Self(bits.fold(0, |all, bit: u32| all | bit))
    }

    /// The allowed commands, in the order of the registry.
    pub fn commands(self) -> impl Iterator<Item = &'static Command> {
        REGISTRY.iter().enumerate().filter(move |(at, _)| self.0 & 1 << at != 0).map(|(_, command)| command)
    }

    /// The command with this name, if it is allowed.
    #[must_use]
    pub fn command(self, name: &str) -> Option<&'static Command> {
        self.commands().find(|command| command.name == name)
    }

    /// Whether no command is allowed.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A predicate that a plan does not meet, or the reason why a fight does not allow the action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FailedPredicate {
    /// `known_ability`, `dc_in_bounds`, `actor_exists` or `target_exists`; in a fight also `not_your_turn`, `no_action_left`,
    /// `not_dying`, `encounter_already_ended` and `encounter_not_ended`.
    pub code: &'static str,
    pub message: Cow<'static, str>,
}

impl FailedPredicate {
    const ABILITY: Self = Self {
        code: "known_ability",
        message: Cow::Borrowed(
            "The ability must be strength, dexterity, constitution, intelligence, wisdom or charisma.",
        ),
    };
    const DC: Self =
        Self { code: "dc_in_bounds", message: Cow::Borrowed("The difficulty class must be from 1 to 40.") };
    /// The acting character does not exist, or is not the player's.
    pub const ACTOR: Self =
        Self { code: "actor_exists", message: Cow::Borrowed("The acting character does not exist, or is not yours.") };
    const TARGET: Self = Self { code: "target_exists", message: Cow::Borrowed("Nobody by that name is there.") };

    /// The fight needs to know who is meant.
    #[must_use]
    pub fn unclear(why: String) -> Self {
        Self { code: "target_exists", message: Cow::Owned(why) }
    }

    /// The reason why a fight does not allow it; None for other errors.
    #[must_use]
    pub fn of_fight(error: &Error) -> Option<Self> {
        let is_of_fight = matches!(
            error.code,
            Code::NotYourTurn
                | Code::NoActionLeft
                | Code::NotDying
                | Code::EncounterAlreadyEnded
                | Code::EncounterNotEnded
        );
        is_of_fight.then(|| Self { code: error.code.as_str(), message: Cow::Owned(error.detail.clone()) })
    }
}

/// Why a plan is rejected.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    pub reason: Reason,
    pub failed: Vec<FailedPredicate>,
}

impl From<Reason> for Refused {
    fn from(reason: Reason) -> Self {
        Self { reason, failed: Vec::new() }
    }
}

impl From<Vec<FailedPredicate>> for Refused {
    fn from(failed: Vec<FailedPredicate>) -> Self {
        Self { reason: Reason::Predicate, failed }
    }
}

/// The acting character and the campaign, in which the plan's names are looked up.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    pub app: &'a Ai,
    pub tenant: Uuid,
    pub campaign: Uuid,
    pub player: Uuid,
}

/// Checks a plan, and returns its arguments in the form that the command takes.
///
/// # Errors
/// Database errors. The inner error says why the plan is rejected.
pub async fn pass(
    stage: Stage<'_>,
    command: &Command,
    mut args: Map<String, Value>,
) -> Result<std::result::Result<Value, Refused>> {
    let mut failed = plain(&args);
    failed.extend(named(stage, command, &mut args).await?);
    if !failed.is_empty() {
        return Ok(Err(failed.into()));
    }
    Ok(fitting(command, args))
}

/// The predicates that need no look-up.
#[must_use]
pub fn plain(args: &Map<String, Value>) -> Vec<FailedPredicate> {
    let mut failed = Vec::new();
    let unknown = |ability: &Value| ability.as_str().is_some_and(|name| Ability::named(name).is_none());
    if args.get("ability").is_some_and(unknown) {
        failed.push(FailedPredicate::ABILITY);
    }
    let dc = args.get("dc").and_then(|dc| match dc {
        Value::String(text) => text.trim().parse::<f64>().ok(),
        other => other.as_f64(),
    });
    if dc.is_some_and(|dc| !(*DC.start() as f64..=*DC.end() as f64).contains(&dc)) {
        failed.push(FailedPredicate::DC);
    }
    failed
}

/// Checks that everybody whom the plan names exists. Removes the player's own name, which no command takes. Does not ask the
/// database if the plan names nobody.
async fn named(stage: Stage<'_>, command: &Command, args: &mut Map<String, Value>) -> Result<Vec<FailedPredicate>> {
    let text = |value: &Value| value.as_str().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let actor = args.get("actor").and_then(text);
    let is_sheet = command.name == "sheet.show";
    let target = args.get(if is_sheet { "name" } else { "target" }).and_then(text);
    let names: Vec<&str> = [&actor, &target].into_iter().flatten().map(String::as_str).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let tx = TenantTx::read(&stage.app.pool, stage.tenant).await?;
    let mut found = named_all(&tx, stage.campaign, &names).await?.into_iter();
    let mut failed = Vec::new();
    if actor.is_some() {
        match found.next() {
            Some(Named::One(Who::Character(id))) if id == stage.player => {
                args.remove("actor");
            }
            _ => failed.push(FailedPredicate::ACTOR),
        }
    }
    if target.is_some() {
        match found.next() {
            Some(Named::One(Who::Character(_))) => {}
            Some(Named::One(_)) if !is_sheet => {}
            _ => failed.push(FailedPredicate::TARGET),
        }
    }
    Ok(failed)
}

/// The arguments in the form that the command takes, if they are valid.
///
/// # Errors
/// `arg_validation`.
pub fn fitting(command: &Command, args: Map<String, Value>) -> std::result::Result<Value, Refused> {
    let mut args = Value::Object(args);
    as_meant(command.schema(), &mut args);
    let is_unsound = json::sound(&mut args, &mut String::new()).is_err();
    match command.check(&args) {
        Ok(()) if !is_unsound => Ok(args),
        _ => Err(Reason::ArgValidation.into()),
    }
}
