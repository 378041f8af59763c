//! What a plan has to pass before anything is done: the allowlist, the predicates, the command's own arguments.
//!
//! Nothing of a model's is trusted before the allowlist, and nothing it wrote is shown to a player by a gate that refuses it.

use std::borrow::Cow;

use rules::srd::Ability;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::Reason;
use crate::{
    app::App,
    auth::Caller,
    commands::{Command, REGISTRY, arguments::coerce},
    error::{Code, Error, Result},
    json,
    rules::cast::{Named, Who, named_all},
    tenancy::TenantTx,
};

/// Difficulty classes that make sense.
const DC: std::ops::RangeInclusive<i64> = 1..=40;

/// Which commands a plan may choose, by their places in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Allowed(u32);

impl Allowed {
    /// The commands that a tenant, a campaign and a caller's scopes leave. What a campaign sets and nobody can read allows none.
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

    /// Those that fit.
    #[must_use]
    pub fn only(fits: impl Fn(&Command) -> bool) -> Self {
        let bits = REGISTRY.iter().enumerate().filter(|(_, command)| fits(command)).map(|(at, _)| 1 << at);
        Self(bits.fold(0, |all, bit: u32| all | bit))
    }

    /// In the order of the registry.
    pub fn commands(self) -> impl Iterator<Item = &'static Command> {
        REGISTRY.iter().enumerate().filter(move |(at, _)| self.0 & 1 << at != 0).map(|(_, command)| command)
    }

    /// The command of a name, if it is one of these.
    #[must_use]
    pub fn command(self, name: &str) -> Option<&'static Command> {
        self.commands().find(|command| command.name == name)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A predicate that a plan does not meet, or why a fight does not let it happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FailedPredicate {
    /// `known_ability`, `dc_in_bounds`, `actor_exists` or `target_exists`; in a fight also `not_your_turn`, `no_action_left`,
    /// `not_dying` and `encounter_already_ended`.
    pub code: &'static str,
    pub message: Cow<'static, str>,
}

impl FailedPredicate {
    const ABILITY: Self = Self {
        code: "known_ability",
        message: Cow::Borrowed("Abilities are strength, dexterity, constitution, intelligence, wisdom and charisma."),
    };
    const DC: Self = Self { code: "dc_in_bounds", message: Cow::Borrowed("A difficulty class is from 1 to 40.") };
    /// The character who acts is not there, or not the player's.
    pub const ACTOR: Self = Self {
        code: "actor_exists",
        message: Cow::Borrowed("The character who is to act is not there, or not yours."),
    };
    const TARGET: Self = Self { code: "target_exists", message: Cow::Borrowed("Nobody of that name is there.") };

    /// What a fight has to be asked instead.
    #[must_use]
    pub fn unclear(why: String) -> Self {
        Self { code: "target_exists", message: Cow::Owned(why) }
    }

    /// That a fight refuses it; none for other errors.
    #[must_use]
    pub fn of_fight(error: &Error) -> Option<Self> {
        let is_of_fight =
            matches!(error.code, Code::NotYourTurn | Code::NoActionLeft | Code::NotDying | Code::EncounterAlreadyEnded);
        is_of_fight.then(|| Self { code: error.code.as_str(), message: Cow::Owned(error.detail.clone()) })
    }
}

/// Why a plan is refused.
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

/// Who acts, and where: what names in a plan are looked up in.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    pub app: &'a App,
    pub tenant: Uuid,
    pub campaign: Uuid,
    pub player: Uuid,
}

/// Arguments that passed: as the command takes them.
///
/// # Errors
/// Those of the database; inside, why the plan is refused.
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

/// What needs no look-up.
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

/// Whether whom the plan names is there; a name of the player, which no command takes, is left out. Nothing is asked of the
/// database if nobody is named.
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

/// Arguments as the command takes them, if they fit.
///
/// # Errors
/// `arg_validation`.
pub fn fitting(command: &Command, args: Map<String, Value>) -> std::result::Result<Value, Refused> {
    let mut args = Value::Object(args);
    coerce(command.schema(), &mut args);
    let is_unsound = json::sound(&args, &mut String::new()).is_err();
    match command.check(&args) {
        Ok(()) if !is_unsound => Ok(args),
        _ => Err(Reason::ArgValidation.into()),
    }
}
