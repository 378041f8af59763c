//! Answers that are tried again: `regenerate`, `continue`, `choose`, and the correction of a narrative.
//!
//! Alternatives are turns with the same `parent_turn_id`, and that turn itself. One of them is chosen, and only its messages and effects
//! are in the world. To try again, the chosen turn is set aside first, so that the new attempt reads the world without its effects. If the
//! attempt fails, or its server dies, the turn's effects are applied again: by the request that asked, or else by the sweeper.

mod choose;
pub mod http;
mod stored;

use actix_web::web;
use serde_json::Value;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

pub use choose::{Attempts, attempts_at, choose_one, correct_one};

use super::{
    answer,
    job::{Again, Job, Way},
    running::Asker,
    store::{self, Failure, NewTurn, Opened, Place},
    subject::Subject,
    view::{Status, TurnView},
};
use crate::{
    prompt::turn::GOES_ON,
    state::Ai,
    tools::{self, Earlier},
    turns::store::settle::settle,
};
use base::{
    clock,
    error::{Code, Error, Result},
    stored::Columns,
};
use db::{
    retry::{self, BRIEF},
    tenancy::TenantTx,
};
use edge::{
    caller::Caller,
    http::{
        StoredAnswer, Written, answered,
        idempotency::IdempotencyKey,
        resource::{Ref, campaign_id},
    },
};
use stored::{Answer, Lock, set_aside};

/// The most alternatives of one answer.
const ALTERNATIVES_MAX: usize = 20;
/// The most attempts, with those that failed.
const ATTEMPTS_MAX: usize = 200;
/// After this time the sweeper looks whether the attempt still runs for which a turn was set aside.
const SETTLED_AFTER: &str = "30 seconds";

/// The outcome of setting a turn aside.
enum Aside {
    /// The attempt has a row and the conversation's place, under this id.
    Begun(Uuid),
    /// The same request ran before.
    Replay(StoredAnswer),
}

/// Sets the turn aside, runs the attempt, and applies the turn again if the attempt does not answer.
async fn attempt(
    app: &Ai,
    caller: &Caller,
    campaign: &str,
    job: Job,
    again: Again,
    asker: &Asker,
) -> Result<Written<TurnView>> {
    let begun = match retry::repeat(BRIEF, async || begin(app, caller, campaign, &job, &again).await).await? {
        Aside::Begun(id) => id,
        Aside::Replay(stored) => return Ok(Written::Before(stored)),
    };
    let result = answer::react(app, caller, &job, asker, Place::Queued(begun)).await;
    if let Err(error) = &result {
        // An attempt that ran has ended already.
        let failure = Failure {
            status: Status::Failed,
            code: error.code.as_str(),
            message: &error.detail,
            record: None,
            calls: &[],
        };
        let failed = store::fail(&app.pool, &caller.actor(), begun, app.running.instance, &failure).await;
        if let Err(error) = failed {
            tracing::error!(turn_id = %begun, %error, "could not close a turn that did not begin; the sweeper will");
        }
    }
    if let Err(error) = retry::repeat(BRIEF, async || settle(&app.pool, &caller.actor(), again.of).await).await {
        tracing::warn!(turn_id = %again.of, %error, "could not apply a turn again whose other attempt failed; the sweeper will");
    }
    result
}

/// Sets the turn aside and gives its place in the conversation to the attempt, in one transaction.
async fn begin(app: &Ai, caller: &Caller, campaign: &str, job: &Job, again: &Again) -> Result<Aside> {
    let tx = TenantTx::write(&app.pool, &caller.actor()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(campaign)).await?;
    let answer = Answer::find(&tx, caller, campaign, again.of, Lock::Yes).await?;
    set_aside(&tx, &caller.actor(), answer.id).await?;
    tx.act_as(&caller.actor()).await?;
    let subject = Subject { kind: job.kind.into(), campaign, entity: answer.entity, player: Some(answer.player) };
    let new = NewTurn {
        mode: job.mode.unwrap_or(answer.mode),
        trigger: job.trigger(),
        on_failure: job.on_failure,
        key: job.key.as_ref(),
        parent: Some(again.parent),
        ..NewTurn::new(again.id, subject, &job.action, caller, app.running.instance)
    };
    let id = match store::open(&tx, &new).await? {
        Opened::Runs(id) => id,
        Opened::Replay(stored) => return Ok(Aside::Replay(stored)),
    };
    let sql = format!(
        "UPDATE turn SET awaits = $3, awaits_until = now() + interval '{SETTLED_AFTER}' WHERE tenant_id = $1 AND id = $2"
    );
    sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(again.of)
        .bind(id)
        .execute(&mut *tx.connection().await)
        .await?;
    tx.commit().await?;
    Ok(Aside::Begun(id))
}

/// What is wished for another attempt.
#[derive(Default)]
pub struct Wished {
    pub model: Option<String>,
    pub hint: Option<String>,
    pub reroll: bool,
}

/// What is to follow an answer.
pub struct Following {
    /// The campaign's id or slug.
    pub campaign: String,
    /// The answer's turn.
    pub turn: Uuid,
    pub next: Next,
}

/// What follows.
pub enum Next {
    /// Another attempt at the answer.
    Attempt(Wished),
    /// The NPC or owner goes on from it.
    Continuation,
}

/// Starts what is to follow an answer, and gives the new turn's id as soon as it runs or waits.
///
/// # Errors
/// `conflict` with what stands in the way; why the turn did not begin.
pub async fn start(app: &web::Data<Ai>, caller: &Caller, wanted: Following) -> Result<Uuid> {
    let run = move |app, caller, asker| run(app, caller, asker, wanted, None);
    super::start::start(app, caller, true, run)?.turn().await
}

/// Runs what is to follow an answer.
///
/// # Errors
/// `conflict` with what stands in the way; the errors of a turn.
pub(super) async fn run(
    app: web::Data<Ai>,
    caller: Caller,
    asker: Asker,
    Following { campaign, turn, next }: Following,
    key: Option<IdempotencyKey>,
) -> Result<Written<TurnView>> {
    // Of a repeated request the answer is not the last one any more.
    if let Some(stored) = answered(&app, &caller, key.as_ref()).await? {
        return Ok(Written::Before(stored));
    }
    match next {
        Next::Attempt(wished) => {
            let (job, again) = prepare(&app, &caller, &campaign, turn, wished, key).await?;
            attempt(&app, &caller, &campaign, job, again, &asker).await
        }
        Next::Continuation => {
            let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
            let id = campaign_id(&tx, &caller, &Ref::parse(&campaign)).await?;
            let answer = Answer::find(&tx, &caller, id, turn, Lock::No).await?;
            drop(tx);
            let mut job = answer.job(&campaign, Way::Continuation, key);
            job.action = GOES_ON.to_owned();
            job.mechanics = None;
            job.question = None;
            answer::run(&app, &caller, &job, &asker).await
        }
    }
}

async fn prepare(
    app: &Ai,
    caller: &Caller,
    campaign: &str,
    turn: Uuid,
    wished: Wished,
    key: Option<IdempotencyKey>,
) -> Result<(Job, Again)> {
    if (wished.model.is_some() || wished.reroll) && !caller.sees_secrets() {
        let what = if wished.reroll { "reroll" } else { "model" };
        return Err(Error::new(Code::Forbidden, format!("`{what}` needs the scope `gm`.")));
    }
    let models = app.llm.of(&app.pool, &app.secrets, &caller.tenant).await?;
    let mut mode = None;
    if let Some(slug) = &wished.model {
        let choice = models.profile(slug).ok_or_else(|| {
            Error::invalid("/model", "unknown_reference", "There is no model profile with this slug.")
        })??;
        mode = Some(choice.mode);
    }
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let id = campaign_id(&tx, caller, &Ref::parse(campaign)).await?;
    let answer = Answer::find(&tx, caller, id, turn, Lock::No).await?;
    let root = answer.root();
    let rows = sqlx::query(
        "SELECT id, status IN ('succeeded', 'limit_reached') AS has_answered, record #> '{view,tool_calls}' AS calls FROM turn \
         WHERE tenant_id = $1 AND (id = $2 OR parent_turn_id = $2) ORDER BY seq LIMIT $3",
    )
    .bind(tx.tenant())
    .bind(root)
    .bind(i64::try_from(ATTEMPTS_MAX).unwrap_or(i64::MAX))
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let mut answered = 0;
    for row in &rows {
        answered += usize::from(row.read::<bool>("has_answered")?);
    }
    if answered >= ALTERNATIVES_MAX || rows.len() >= ATTEMPTS_MAX {
        let detail = format!("An answer has at most {ALTERNATIVES_MAX} alternatives.");
        return Err(Error::new(Code::Conflict, detail));
    }
    let mut earlier = Earlier::default();
    if !wished.reroll {
        for row in &rows {
            earlier.learn(&row.read::<Option<Value>>("calls")?.unwrap_or_default(), |name, arguments| {
                tools::find(name).into_iter().for_each(|tool| tools::as_meant(tool.schema(), arguments));
            });
        }
    }
    drop(tx);
    let again = Again {
        id: clock::id(),
        of: answer.id,
        parent: root,
        model: wished.model,
        hint: wished.hint.filter(|hint| !hint.trim().is_empty()),
        earlier,
        continues: answer.is_unprompted && answer.action == GOES_ON,
    };
    // Only a greeting has no action.
    let greeting = answer.action.is_empty().then_some(answered);
    if answer.is_unprompted && greeting.is_none() && !again.continues {
        return Err(Error::new(Code::Conflict, "A reaction or the answer to a prayer cannot be tried again."));
    }
    let mut job = answer.job(campaign, Way::Again(Box::new(again.clone()), greeting), key);
    job.mode = mode;
    Ok((job, again))
}
