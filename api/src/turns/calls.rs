//! A batch of tool calls: checked against what the entity has, run in one transaction, each with its result.

use std::collections::HashMap;

use serde_json::Value;
use uuid::Uuid;

use super::{
    CallError, CallStatus, ToolCall,
    live::{Item, Live},
};
use crate::{
    app::App,
    error::{Code, Error, Result},
    llm::reply::ProposedCall,
    messages::service::Reader,
    ops::metrics,
    sessions::service::Playing,
    tenancy::{Actor, TenantTx},
    tools::{self, ActorKind, Hand, Tool, ToolCx},
};

/// Who calls, and with which tools.
pub struct Hands<'a> {
    pub campaign: Uuid,
    pub kind: ActorKind,
    /// The nil id for the game master.
    pub entity: Uuid,
    pub player: Option<(Uuid, &'a str)>,
    pub tools: Vec<&'static Tool>,
    /// The session it happens in.
    pub session: Option<&'a Playing>,
    /// Dice rolled by hand for this turn.
    pub hand: Option<&'a Hand>,
}

/// A call that was looked at: what it is, or why it will not run.
enum Checked {
    Run(&'static Tool, Value),
    Refused(CallStatus, CallError),
}

fn refuse(status: CallStatus, code: &str, message: String) -> Checked {
    Checked::Refused(status, CallError { code: code.to_owned(), message })
}

fn check(hands: &Hands<'_>, call: &ProposedCall) -> Checked {
    let known = tools::find(&call.name);
    let Some(tool) = known.filter(|tool| hands.tools.iter().any(|t| t.name == tool.name)) else {
        return if known.is_some() {
            refuse(CallStatus::Rejected, "not_available", format!("You do not have the tool `{}`.", clean(&call.name)))
        } else {
            refuse(CallStatus::Rejected, "unknown_tool", format!("There is no tool `{}`.", clean(&call.name)))
        };
    };
    match &call.arguments {
        Ok(arguments) => Checked::Run(tool, arguments.clone()),
        Err(why) => refuse(CallStatus::Failed, "invalid_json", format!("The arguments are not JSON: {why}")),
    }
}

/// A name a model wrote, short enough for a log or an error.
fn clean(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(64).collect()
}

/// Runs a reply's calls for a turn and commits them together. A call that fails does not hold up the others.
///
/// # Errors
/// `conflict` if the turn is no longer this server's; those of the database.
pub async fn execute(
    app: &App,
    actor: &Actor,
    turn: Uuid,
    hands: &Hands<'_>,
    calls: &[ProposedCall],
    first: usize,
    live: Option<&Live>,
) -> Result<Vec<ToolCall>> {
    let checked: Vec<Checked> = calls.iter().map(|c| check(hands, c)).collect();
    let named = |i: usize, call: &ProposedCall| {
        let id = call.id.clone().unwrap_or_else(|| format!("call_{}", first + i + 1));
        (id, clean(&call.name), call.arguments.clone().unwrap_or(Value::Null))
    };
    if let Some(live) = live {
        for (i, call) in calls.iter().enumerate() {
            let (id, name, arguments) = named(i, call);
            live.tell(Item::call(&id, &name, &arguments));
        }
    }
    let mut broken: HashMap<usize, CallError> = HashMap::new();
    let results = loop {
        match attempt(app, actor, turn, hands, &checked, &broken).await? {
            Attempt::Committed(results) => break results,
            // A statement failed and took its transaction with it: again, without that call.
            Attempt::Broke(index, error) => {
                broken.insert(index, error);
            }
        }
    };
    let done = calls.iter().zip(checked).zip(results).enumerate().map(|(i, ((call, checked), result))| {
        let (status, result, error) = match (checked, result) {
            (_, Some(Ok(value))) => (CallStatus::Succeeded, Some(value), None),
            (_, Some(Err(error))) => (CallStatus::Failed, None, Some(error)),
            (Checked::Refused(status, error), None) => (status, None, Some(error)),
            (Checked::Run(..), None) => (CallStatus::Failed, None, broken.remove(&i)),
        };
        let known = tools::find(&call.name).map_or("unknown", |t| t.name);
        let outcome = match status {
            CallStatus::Succeeded => "succeeded",
            CallStatus::Failed => "failed",
            CallStatus::Rejected => "rejected",
        };
        metrics::TOOL_CALLS.with_label_values(&[known, outcome]).inc();
        let (id, name, arguments) = named(i, call);
        ToolCall { id, name, arguments, status, result, error }
    });
    let done: Vec<ToolCall> = done.collect();
    if let Some(live) = live {
        done.iter().for_each(|call| live.tell(Item::result(call)));
    }
    Ok(done)
}

type Results = Vec<Option<Result<Value, CallError>>>;

enum Attempt {
    Committed(Results),
    Broke(usize, CallError),
}

/// One batch, tried again when it met another transaction and lost.
async fn attempt(
    app: &App,
    actor: &Actor,
    turn: Uuid,
    hands: &Hands<'_>,
    checked: &[Checked],
    broken: &HashMap<usize, CallError>,
) -> Result<Attempt> {
    let runs = checked.iter().enumerate().any(|(i, c)| matches!(c, Checked::Run(..)) && !broken.contains_key(&i));
    if !runs {
        return Ok(Attempt::Committed((0..checked.len()).map(|_| None).collect()));
    }
    let mut attempts_left = 3;
    loop {
        let last = attempts_left == 1;
        match attempt_once(app, actor, turn, hands, checked, broken, last).await {
            Err(error) if error.is_transient() && !last => attempts_left -= 1,
            result => return result,
        }
    }
}

async fn attempt_once(
    app: &App,
    actor: &Actor,
    turn: Uuid,
    hands: &Hands<'_>,
    checked: &[Checked],
    broken: &HashMap<usize, CallError>,
    last: bool,
) -> Result<Attempt> {
    let mut results: Results = (0..checked.len()).map(|_| None).collect();
    hands.hand.inspect(|hand| hand.begin());
    let tx = TenantTx::hold_turn(&app.pool, actor, turn, app.running.instance).await?;
    let cx = ToolCx {
        tx: &tx,
        campaign: hands.campaign,
        kind: hands.kind,
        entity: hands.entity,
        player: hands.player,
        session: hands.session,
        reader: hands.session.map_or(Reader::GM, Playing::reader),
        turn: Some(turn),
        key: None,
        dice: None,
        hand: hands.hand,
        preview: false,
        apply: false,
    };
    for (i, checked) in checked.iter().enumerate().filter(|(i, _)| !broken.contains_key(i)) {
        let Checked::Run(tool, arguments) = checked else { continue };
        match tool.run(&cx, arguments.clone()).await {
            Ok(value) => results[i] = Some(Ok(value)),
            Err(error) if error.cause().is_none() => results[i] = Some(Err(told(&error))),
            Err(error) if error.code == Code::Unavailable || (error.is_transient() && !last) => return Err(error),
            Err(error) => return Ok(Attempt::Broke(i, told(&error))),
        }
    }
    tx.commit().await?;
    hands.hand.inspect(|hand| hand.keep());
    Ok(Attempt::Committed(results))
}

/// An error as the model is told it.
fn told(error: &Error) -> CallError {
    CallError { code: error.code.as_str().to_owned(), message: error.detail.clone() }
}
