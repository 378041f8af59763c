//! The frame of every turn: it waits for its place, opens, does its work, and is ended if the work fails.
//!
//! To add a kind of turn, implement [`Open`] (how it begins) and [`Turn`] (its work, and its record if it fails), and call [`run`].

use tokio::time::Instant;
use uuid::Uuid;

use super::{
    cx::{Cx, Start},
    place::Permit,
    record::Recorded,
    running::Spot,
    store::{self, Failure},
    talk::Talk,
    view::{Status, TurnView},
};
use base::{
    clock::millis,
    error::{Code, Error, Result},
    metrics,
};
use db::retry;
use edge::http::{Made, StoredAnswer, Written};

/// A requested turn of some kind, before it runs.
pub(crate) trait Open {
    type Turn: Turn;

    /// Opens the turn: reads what it needs, takes its place, and claims its key. With `Place::Queue` it only stores that the turn
    /// waits. Nothing is written if this fails.
    ///
    /// What is large here is boxed, so that the turn's future holds nothing of it while a model writes.
    async fn open(&self, start: Start) -> Result<Opening<Self::Turn>>;
}

/// What came of opening a turn.
pub(crate) enum Opening<T> {
    Runs(Box<T>),
    /// The turn waits under this id, as requested.
    Waits(Uuid),
    /// The same request ran before.
    Replay(StoredAnswer),
}

/// A turn that runs.
pub(crate) trait Turn {
    /// What a client gets that waits for the turn.
    type Answer;

    /// Whether only one turn at a time may run for its subject.
    const HAS_PLACE: bool = true;

    fn talk(&self) -> &Talk<'_>;

    /// Does the work, commits the end of the turn, and returns the answer.
    async fn work(&mut self) -> Result<Made<Self::Answer>>;

    /// A turn that ends without success, and its record.
    fn failed(&self, status: Status, why: &Error) -> Result<Recorded>;

    /// What the client gets for a turn that ended without success. It is given the turn if it was cancelled, or else an error.
    fn told(&self, ended: Result<Made<TurnView>>) -> Result<Made<Self::Answer>>;

    /// Whether the prompt came unchanged from the cache, or the plan did.
    fn is_hit(&self) -> bool {
        false
    }
}

/// The answer of a turn, or the one that its key stores.
pub(crate) type Answered<O> = Written<<<O as Open>::Turn as Turn>::Answer>;

/// Runs a turn to its end.
///
/// # Errors
/// `turn_in_progress`; the errors of opening and of the work, with the turn's id.
#[tracing::instrument(level = "debug", name = "turn", skip_all, fields(turn_id))]
pub(crate) async fn run<O: Open>(cx: &Cx<'_>, mut permit: Permit<'_>, opener: &O) -> Result<Answered<O>> {
    let mut turn = loop {
        let place = permit.place();
        let start = Start { place, id: place.turn(), at: Instant::now() };
        match retry::repeat(place.patience(), async || opener.open(start).await).await {
            Ok(Opening::Runs(turn)) => break turn,
            Ok(Opening::Waits(turn)) => Box::pin(permit.has_row(turn)).await?,
            Ok(Opening::Replay(stored)) => return Ok(Written::Before(stored)),
            Err(error) => Box::pin(permit.again(error)).await?,
        }
    };
    let (id, tenant) = (turn.talk().id, cx.caller.tenant_id());
    tracing::Span::current().record("turn_id", tracing::field::display(id));
    let spot = O::Turn::HAS_PLACE.then(|| Spot::of(tenant, &turn.talk().subject));
    let _entered = cx.app.running.enter(id, cx.asker, tenant, spot);
    permit.runs();
    let result = match turn.work().await {
        Ok(answer) => Ok(answer),
        Err(error) => Box::pin(give_up(&*turn, error)).await,
    };
    log(turn.talk(), result.as_ref().err(), turn.is_hit());
    result.map(Written::Stored)
}

/// Ends a turn without success and reverts its effects.
async fn give_up<T: Turn>(turn: &T, error: Error) -> Result<Made<T::Answer>> {
    let talk = turn.talk();
    talk.save_told().await;
    if let Some(cause) = error.cause() {
        tracing::warn!(turn_id = %talk.id, code = error.code.as_str(), %cause, "a turn failed");
    }
    let is_cancelled = talk.asker.cancel.is_cancelled() || was_cancelled_elsewhere(talk, &error).await;
    let (status, code, message) = match is_cancelled {
        true => (Status::Cancelled, "cancelled", "The turn was cancelled."),
        false => (Status::Failed, error.code.as_str(), error.detail.as_ref()),
    };
    let (answer, record) = match turn.failed(status, &error) {
        Ok(Recorded { answer, record }) => (Ok(answer), Some(record)),
        Err(error) => (Err(error), None),
    };
    let failure = Failure { status, code, message, record, calls: &talk.llm_calls };
    let (pool, instance) = (&talk.app.pool, talk.app.running.instance);
    talk.app.running.ends(talk.id);
    if let Err(error) = store::fail(pool, &talk.caller.actor(), talk.id, instance, &failure).await {
        tracing::error!(turn_id = %talk.id, %error, "could not close a failed turn; the sweeper will");
    }
    metrics::TURNS.with_label_values(&[talk.subject.kind.as_str(), status.as_str()]).inc();
    turn.told(match is_cancelled {
        true => answer,
        false => Err(error.for_turn(talk.id)),
    })
}

/// Whether the turn was lost because somebody cancelled it through another replica.
async fn was_cancelled_elsewhere(talk: &Talk<'_>, error: &Error) -> bool {
    let asked = store::cancel_requested(&talk.app.pool, talk.caller.tenant_id(), talk.id);
    error.code == Code::Conflict && asked.await.unwrap_or(false)
}

/// Logs and counts that a turn ended.
fn log(talk: &Talk<'_>, error: Option<&Error>, cache_hit: bool) {
    let (kind, took) = (talk.subject.kind.as_str(), talk.started.elapsed());
    metrics::TURN_SECONDS.with_label_values(&[kind]).observe(took.as_secs_f64());
    let outcome = error.map_or("answered", |error| error.code.as_str());
    tracing::info!(
        request_id = %talk.caller.request, turn_id = %talk.id, kind, outcome, cache_hit,
        llm_calls = talk.usage.llm_calls, tool_calls = talk.tool_calls.len(), ms = millis(took), "turn ended"
    );
}
