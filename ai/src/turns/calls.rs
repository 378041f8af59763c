//! Runs a batch of tool calls in one transaction, after checking which tools the entity has. Each call gets its result. A call that
//! has to ask a session's frontend splits its batch: the calls before it are committed, the frontend is asked, and the batch goes
//! on.

use std::{collections::HashMap, ops::Range};

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    live::Item,
    running::Asker,
    view::{CallError, CallStatus, ToolCall},
};
use crate::{
    frontends::{
        question::{Heard, Question},
        whereabouts::Frontend,
    },
    state::Ai,
    tools::{
        self, Earlier, Effects, Grant, Hand, Hold, Tool, Work, paid,
        shorten::{ARGUMENTS_BYTES_KEPT, Allowance, shorten},
        spec::{ActorKind, Asking, ToolCx},
    },
};
use base::{
    error::{Code, Error, Result},
    metrics,
};
use db::{
    retry::{PAID, Tries},
    tenancy::Actor,
};
use edge::http::held;
use llm::reply::ProposedCall;
use world::{
    owners::influence::Prices,
    playing::{Playing, Reader},
};

/// Who makes the calls, and with which tools.
pub struct Hands<'a> {
    pub campaign: Uuid,
    pub kind: ActorKind,
    /// The nil id stands for the game master.
    pub entity: Uuid,
    pub player: Option<(Uuid, &'a str)>,
    pub tools: Vec<Grant>,
    /// The prices that an owner pays.
    pub prices: Prices,
    /// The session in which the calls happen.
    pub session: Option<&'a Playing>,
    /// Dice rolled by hand for this turn.
    pub hand: Option<&'a Hand>,
    /// What earlier attempts at the turn rolled.
    pub earlier: Option<&'a Earlier>,
    /// The most rows of one kind that the tenant may have. 0 means no limit.
    pub rows_max: u64,
    /// How many rows the turn has changed, and how many it may change.
    pub effects: Effects,
}

/// A checked call: the tool and its arguments, or why it will not run.
enum Checked {
    Run(&'static Tool, Value),
    Refused(CallStatus, CallError),
}

fn refuse(status: CallStatus, code: &str, message: String) -> Checked {
    Checked::Refused(status, CallError { code: code.to_owned(), message })
}

fn check(hands: &Hands<'_>, call: &ProposedCall) -> Checked {
    let known = tools::find(&call.name);
    let Some(grant) = known.and_then(|tool| hands.tools.iter().find(|grant| grant.tool.name == tool.name)) else {
        return if known.is_some() {
            refuse(CallStatus::Rejected, "not_available", format!("You do not have the tool `{}`.", clean(&call.name)))
        } else {
            refuse(CallStatus::Rejected, "unknown_tool", format!("There is no tool `{}`.", clean(&call.name)))
        };
    };
    match &call.arguments {
        Ok(arguments) => match grant.arguments(tools::called_as(&call.name, arguments.clone())) {
            Ok(arguments) => Checked::Run(grant.tool, arguments),
            Err(error) => Checked::Refused(CallStatus::Failed, CallError::from(&error)),
        },
        Err(why) => refuse(CallStatus::Failed, "invalid_json", format!("The arguments are not JSON: {why}")),
    }
}

/// Checks a reply's calls. If one of them is a call to an exclusive tool, rejects the others.
fn check_all(hands: &Hands<'_>, calls: &[ProposedCall]) -> Vec<Checked> {
    let is_exclusive = |call: &ProposedCall| {
        let tool = tools::find(&call.name);
        tool.is_some_and(|tool| hands.tools.iter().any(|grant| grant.is_exclusive && grant.tool.name == tool.name))
    };
    let alone = calls.iter().position(is_exclusive);
    let one = |(n, call): (usize, &ProposedCall)| match alone {
        Some(alone) if alone != n => {
            let with = calls.get(alone).map_or_else(String::new, |call| clean(&call.name));
            let message = format!("`{with}` must be the only call of a reply. Make this call in another one.");
            refuse(CallStatus::Rejected, "exclusive_tool", message)
        }
        _ => check(hands, call),
    };
    calls.iter().enumerate().map(one).collect()
}

/// A name that a model wrote, short enough for a log or an error.
fn clean(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(64).collect()
}

/// Runs a reply's calls for a turn, after the calls in `before`, and commits them together. Before a call that has to ask the
/// session's frontend, the earlier calls are committed. A failing call does not stop the others.
///
/// # Errors
/// `conflict` if the turn is no longer this server's or was cancelled; database errors.
pub async fn execute(
    app: &Ai,
    actor: &Actor,
    turn: Uuid,
    hands: &Hands<'_>,
    calls: &[ProposedCall],
    before: &[ToolCall],
    asker: &Asker,
) -> Result<Vec<ToolCall>> {
    let mut batch = Batch { app, actor, turn, hands, checked: check_all(hands, calls), heard: Vec::new() };
    batch.heard.resize_with(calls.len(), || None);
    let named = |i: usize, call: &ProposedCall| {
        let id = call.id.clone().unwrap_or_else(|| format!("call_{}", before.len() + i + 1));
        (id, clean(&call.name), shorten(call.arguments.clone().unwrap_or(Value::Null), ARGUMENTS_BYTES_KEPT))
    };
    if let Some(live) = &asker.live {
        for (i, call) in calls.iter().enumerate() {
            let (id, name, arguments) = named(i, call);
            live.tell(Item::call(&id, &name, &arguments));
        }
    }
    let frontend = batch.frontend().await?;
    let mut allowance = Allowance::after(before.iter().filter_map(|call| call.result.as_ref()));
    let mut done: Vec<ToolCall> = Vec::with_capacity(calls.len());
    while done.len() < calls.len() {
        let begin = done.len();
        if let Some(frontend) = &frontend {
            batch.ask(frontend, begin, &asker.cancel).await?;
        }
        let end = match &frontend {
            Some(Frontend::Here(_) | Frontend::There { .. }) => {
                (begin + 1..calls.len()).find(|i| batch.question(*i, false).is_some()).unwrap_or(calls.len())
            }
            _ => calls.len(),
        };
        // Before the batch is committed, because others see it then.
        asker.acts();
        let results = batch.run(begin..end).await?;
        for ((i, call), result) in calls.iter().enumerate().skip(begin).zip(results) {
            let result = result.map(|result| result.map(|value| allowance.fit(value)));
            let call = batch.finished_call(i, named(i, call), result);
            asker.live.iter().for_each(|live| live.tell(Item::result(&call)));
            done.push(call);
        }
    }
    Ok(done)
}

type Results = Vec<Option<Result<Value, CallError>>>;

enum Attempt {
    Committed(Results),
    Broke(usize, CallError),
}

/// The calls of a reply, in progress.
struct Batch<'a> {
    app: &'a Ai,
    actor: &'a Actor,
    turn: Uuid,
    hands: &'a Hands<'a>,
    checked: Vec<Checked>,
    /// The answer of the session's frontend to each call, received before the call runs.
    heard: Vec<Option<Heard>>,
}

impl Batch<'_> {
    /// The question of a call for the session's frontend.
    fn question(&self, i: usize, has_dice: bool) -> Option<Question> {
        let (Some(session), Some(Checked::Run(tool, arguments))) = (self.hands.session, self.checked.get(i)) else {
            return None;
        };
        tool.asks(&Asking { session, has_dice }, arguments)
    }

    /// The frontend, if some call has to ask it.
    async fn frontend(&self) -> Result<Option<Frontend>> {
        match self.hands.session {
            Some(session) if (0..self.checked.len()).any(|i| self.question(i, false).is_some()) => {
                Frontend::of(&self.app.frontends, self.actor.tenant, session).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Asks the question of the first call of a part. If no frontend is connected, all calls are told so.
    async fn ask(&mut self, frontend: &Frontend, begin: usize, cancel: &CancellationToken) -> Result<()> {
        let Some(session) = self.hands.session else { return Ok(()) };
        if let Frontend::Nowhere { left } = frontend {
            self.heard.iter_mut().for_each(|heard| *heard = Some(Heard::Nobody { left: *left }));
            return Ok(());
        }
        let has_dice = self.hands.hand.is_some_and(|hand| !hand.left().is_empty());
        let Some(question) = self.question(begin, has_dice) else { return Ok(()) };
        let heard = tokio::select! {
            heard = frontend.ask(&self.app.frontends, self.actor, session, &question) => heard?,
            () = cancel.cancelled() => return Err(Error::new(Code::Conflict, "The turn was cancelled.")),
        };
        if let Some(slot) = self.heard.get_mut(begin) {
            *slot = Some(heard);
        }
        Ok(())
    }

    /// Runs a part of the calls in one transaction.
    async fn run(&self, part: Range<usize>) -> Result<Results> {
        let mut broken: HashMap<usize, CallError> = HashMap::new();
        loop {
            match self.attempt(&part, &broken).await? {
                Attempt::Committed(mut results) => {
                    for (i, result) in part.clone().zip(&mut results) {
                        *result = result.take().or_else(|| broken.remove(&i).map(Err));
                    }
                    return Ok(results);
                }
                // A statement failed and aborted the transaction. Try again without that call.
                Attempt::Broke(index, error) => {
                    broken.insert(index, error);
                }
            }
        }
    }

    /// Runs one part, and retries while the failure is temporary.
    async fn attempt(&self, part: &Range<usize>, broken: &HashMap<usize, CallError>) -> Result<Attempt> {
        let runs = |i: usize| matches!(self.checked.get(i), Some(Checked::Run(..))) && !broken.contains_key(&i);
        if !part.clone().any(runs) {
            return Ok(Attempt::Committed(part.clone().map(|_| None).collect()));
        }
        let mut tries = Tries::with(PAID);
        loop {
            match self.attempt_once(part, broken, tries.is_last()).await {
                Err(error) if tries.wait_to_retry(&error).await => {}
                result => {
                    // The results are announced while the turn runs.
                    held::released().await;
                    return result;
                }
            }
        }
    }

    async fn attempt_once(
        &self,
        part: &Range<usize>,
        broken: &HashMap<usize, CallError>,
        last: bool,
    ) -> Result<Attempt> {
        let hands = self.hands;
        hands.hand.inspect(|hand| hand.begin());
        hands.earlier.inspect(|earlier| earlier.begin());
        hands.effects.begin();
        let hold = Hold { turn: self.turn, instance: self.app.running.instance };
        let work = Work::new(&self.app.pool, self.actor, hands.campaign, Some(hold));
        let mut results: Results = Vec::with_capacity(part.len());
        for i in part.clone() {
            let Some(Checked::Run(tool, arguments)) = self.checked.get(i).filter(|_| !broken.contains_key(&i)) else {
                results.push(None);
                continue;
            };
            let cx = self.context(&work, i);
            let price = paid::price(&hands.prices, hands.kind, tool);
            if let Err(error) = hands.effects.take(1 + u64::from(price > 0.0)) {
                results.push(Some(Err(CallError::from(&error))));
                continue;
            }
            hands.earlier.inspect(|earlier| earlier.calls(tool.name, arguments));
            match paid::run(&cx, tool, arguments.clone(), price).await {
                Ok(value) => results.push(Some(Ok(value))),
                Err(error) if work.is_broken() => return Err(error),
                Err(error) if error.cause().is_none() => results.push(Some(Err(CallError::from(&error)))),
                Err(error) if error.code == Code::Unavailable || (error.is_transient() && !last) => return Err(error),
                Err(error) => return Ok(Attempt::Broke(i, CallError::from(&error))),
            }
        }
        work.commit().await?;
        hands.hand.inspect(|hand| hand.keep());
        hands.earlier.inspect(|earlier| earlier.keep());
        hands.effects.keep();
        Ok(Attempt::Committed(results))
    }

    /// A call with its result.
    fn finished_call(
        &self,
        i: usize,
        named: (String, String, Value),
        result: Option<Result<Value, CallError>>,
    ) -> ToolCall {
        let (status, result, error) = match (self.checked.get(i), result) {
            (_, Some(Ok(value))) => (CallStatus::Succeeded, Some(value), None),
            (Some(Checked::Refused(status, error)), None) => (*status, None, Some(error.clone())),
            (_, Some(Err(error))) => (CallStatus::of_error(&error.code), None, Some(error)),
            (_, None) => (CallStatus::Failed, None, None),
        };
        let (id, name, arguments) = named;
        let known = tools::find(&name).map_or("unknown", |t| t.name);
        metrics::TOOL_CALLS.with_label_values(&[known, status.as_str()]).inc();
        ToolCall { id, name, arguments, status, result, error }
    }

    fn context<'c>(&'c self, work: &'c Work<'c>, i: usize) -> ToolCx<'c> {
        let hands = self.hands;
        ToolCx {
            work,
            corpora: &self.app.prompts.corpora,
            campaign: hands.campaign,
            kind: hands.kind,
            entity: hands.entity,
            player: hands.player,
            session: hands.session,
            reader: hands.session.map_or(Reader::GM, Playing::reader),
            turn: Some(self.turn),
            is_command: false,
            key: None,
            dice: None,
            heard: self.heard.get(i).and_then(Option::as_ref),
            hand: hands.hand,
            earlier: hands.earlier,
            preview: false,
            apply: false,
            rows_max: hands.rows_max,
            effects: Some(&hands.effects),
        }
    }
}
