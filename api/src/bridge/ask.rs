//! Asking a session's frontend, wherever it is connected, and what comes of it: an answer, an error, or nobody to ask.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{frames::Frame, hub::Connection, mail};
use crate::{
    app::App,
    error::{Code, Error, Result},
    ops::metrics,
    sessions::{combat, service::Playing},
    tenancy::{Actor, TenantTx},
};

/// How long a frontend may take to tell of its fights.
const REFRESH_PATIENCE: Duration = Duration::from_secs(2);
/// Questions to one frontend at a time.
const WAITING_MAX: usize = 64;
/// Characters of a frontend's own words that are passed on.
const WORDS_CHARS_MAX: usize = 300;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// To roll dice: answered by `roll_result`.
    ExecuteRoll,
    /// To tell of its fights: answered by `combat_state`, which is taken in before the answer counts.
    CombatStateRefresh,
}

impl Asked {
    /// The frame's type.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Asked::ExecuteRoll => "execute_roll",
            Asked::CombatStateRefresh => "combat_state_refresh",
        }
    }

    /// How long an answer may take.
    #[must_use]
    pub fn patience(self, app: &App) -> Duration {
        match self {
            Asked::ExecuteRoll => app.config.bridge.roll_timeout,
            Asked::CombatStateRefresh => REFRESH_PATIENCE,
        }
    }
}

/// A question that a tool has.
#[derive(Clone, Debug)]
pub struct Question {
    pub asked: Asked,
    pub data: Value,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    Silent,
    Gone,
    /// The frontend's own words.
    Refused(String),
}

impl Failure {
    fn outcome(&self) -> &'static str {
        match self {
            Failure::Silent => "silent",
            Failure::Gone => "gone",
            Failure::Refused(_) => "refused",
        }
    }

    /// The same as an error for the model or the client whose tool asked.
    fn error(self, patience: Duration) -> Error {
        match self {
            Failure::Silent => Error::new(
                Code::FrontendTimeout,
                format!("The frontend did not answer within {} seconds.", patience.as_secs_f32()),
            ),
            Failure::Gone => Error::new(
                Code::FrontendFailed,
                "The frontend left before it answered. While none is connected the server rolls.",
            ),
            Failure::Refused(words) => {
                Error::new(Code::FrontendFailed, format!("The frontend could not do it: {words}"))
            }
        }
    }
}

/// What a frontend answered.
pub type Answer = Result<Value, Failure>;

/// What came of a tool's question.
#[derive(Debug)]
pub enum Heard {
    /// No frontend is connected; whether one was.
    Nobody {
        left: bool,
    },
    /// There was nothing to ask for.
    Idle,
    Told(Value),
    Failed(Error),
}

/// What a tool that is called by itself asks, and what comes of it; none if it asks nothing. No transaction may be open.
///
/// # Errors
/// Those of the database.
pub async fn before(app: &App, actor: &Actor, session: &Playing, question: Option<Question>) -> Result<Option<Heard>> {
    let Some(question) = question else { return Ok(None) };
    let frontend = Frontend::of(app, actor.tenant, session).await?;
    Ok(Some(frontend.ask(app, actor, session, &question).await?))
}

/// Who waits for answers of a connection.
#[derive(Default)]
pub struct Waiting(Mutex<HashMap<Uuid, (Asked, oneshot::Sender<Answer>)>>);

impl Waiting {
    fn all(&self) -> MutexGuard<'_, HashMap<Uuid, (Asked, oneshot::Sender<Answer>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody waits for this.
    #[must_use]
    pub fn expects(&self, request_id: Option<&str>, asked: Asked) -> bool {
        let id = request_id.and_then(|id| Uuid::try_parse(id).ok());
        id.is_some_and(|id| self.all().get(&id).is_some_and(|(what, _)| *what == asked))
    }

    /// Passes on an answer. One that nobody waits for, or to another question, is ignored; whether it was taken.
    pub fn answer(&self, request_id: Option<&str>, asked: Asked, answer: Answer) -> bool {
        self.take(request_id, Some(asked)).is_some_and(|waits| waits.send(answer).is_ok())
    }

    /// The frontend cannot do what it was asked.
    pub fn refuse(&self, request_id: Option<&str>, words: &str) -> bool {
        let words: String = words.chars().filter(|c| !c.is_control()).take(WORDS_CHARS_MAX).collect();
        self.take(request_id, None).is_some_and(|waits| waits.send(Err(Failure::Refused(words))).is_ok())
    }

    fn take(&self, request_id: Option<&str>, asked: Option<Asked>) -> Option<oneshot::Sender<Answer>> {
        let id = Uuid::try_parse(request_id?).ok()?;
        let mut all = self.all();
        if asked.is_some_and(|asked| all.get(&id).is_some_and(|(what, _)| *what != asked)) {
            return None;
        }
        all.remove(&id).map(|(_, waits)| waits)
    }

    /// Nobody will answer any more.
    pub fn forget_all(&self) {
        self.all().clear();
    }
}

/// Takes a question back when nobody waits for it any more.
struct Pending<'a>(&'a Waiting, Uuid);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.all().remove(&self.1);
    }
}

impl Connection {
    /// Asks this frontend and waits for its answer.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn ask(&self, asked: Asked, data: &Value, patience: Duration) -> Answer {
        let id = Uuid::now_v7();
        let (sender, answer) = oneshot::channel();
        {
            let mut all = self.waiting.all();
            if all.len() >= WAITING_MAX {
                return Err(Failure::Refused("too many questions wait for it".to_owned()));
            }
            all.insert(id, (asked, sender));
        }
        let _pending = Pending(&self.waiting, id);
        self.outbox.send(Frame::new(asked.as_str(), Some(&id.to_string()), data));
        tokio::select! {
            biased;
            answer = answer => answer.unwrap_or(Err(Failure::Gone)),
            () = self.outbox.ended() => Err(Failure::Gone),
            () = tokio::time::sleep(patience) => Err(Failure::Silent),
        }
    }
}

/// Where a session's frontend is.
pub enum Frontend {
    Here(Arc<Connection>),
    /// Connected to another server.
    There {
        instance: i64,
        connection: Uuid,
    },
    /// Not connected; whether it was.
    Nowhere {
        left: bool,
    },
}

impl Frontend {
    /// Finds a session's frontend. Nothing is read if it is connected to this server, else one row.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn of(app: &App, tenant: Uuid, session: &Playing) -> Result<Self> {
        if let Some(here) = app.bridge.find(tenant, session.campaign, session.id) {
            return Ok(Self::Here(here));
        }
        let tx = TenantTx::read(&app.pool, tenant).await?;
        mail::find(&tx, session.id, app.running.instance).await
    }

    /// Asks it. No transaction may be open.
    ///
    /// # Errors
    /// Those of the database; that the frontend failed is no error here.
    pub async fn ask(&self, app: &App, actor: &Actor, session: &Playing, question: &Question) -> Result<Heard> {
        let Question { asked, data } = question;
        if let Self::Nowhere { left } = self {
            return Ok(Heard::Nobody { left: *left });
        }
        if *asked == Asked::CombatStateRefresh {
            let tx = TenantTx::read(&app.pool, actor.tenant).await?;
            if !combat::is_told_of(&tx, session.id).await? {
                return Ok(Heard::Idle);
            }
        }
        let patience = asked.patience(app);
        let answer = match self {
            Self::Here(connection) => connection.ask(*asked, data, patience).await,
            Self::There { instance, connection } => {
                mail::ask(app, actor, session, (*instance, *connection), *asked, data).await?
            }
            Self::Nowhere { .. } => Err(Failure::Gone),
        };
        let outcome = answer.as_ref().map_or_else(Failure::outcome, |_| "answered");
        metrics::BRIDGE_REQUESTS.with_label_values(&[asked.as_str(), outcome]).inc();
        Ok(match answer {
            Ok(value) => Heard::Told(value),
            Err(failure) => Heard::Failed(failure.error(patience)),
        })
    }
}
