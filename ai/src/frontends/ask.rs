//! //! Asks a session's frontend, wherever it is connected. The result is an answer, an error, or that no frontend is connected.

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

use super::connected::Frontends;
use super::{frames::Frame, hub::Connection, mail};
use base::{
    error::{Code, Error, Result},
    metrics,
};
use db::tenancy::{Actor, TenantTx};
use world::{playing::Playing, sessions::combat};

/// How long a frontend may take to report its fights.
const REFRESH_PATIENCE: Duration = Duration::from_secs(2);
/// The most open questions to one frontend.
const WAITING_MAX: usize = 64;
/// The most characters of a frontend's own error text that are passed on.
const WORDS_CHARS_MAX: usize = 300;

/// What the server asks of a frontend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// To roll dice. The answer is `roll_result`.
    ExecuteRoll,
    /// To report its fights. The answer is `combat_state`, which is stored before it counts as an answer.
    CombatStateRefresh,
}

impl Asked {
    /// The type of the frame.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Asked::ExecuteRoll => "execute_roll",
            Asked::CombatStateRefresh => "combat_state_refresh",
        }
    }

    /// How long the frontend may take to answer.
    #[must_use]
    pub fn patience(self, app: &Frontends) -> Duration {
        match self {
            Asked::ExecuteRoll => app.settings.roll_timeout,
            Asked::CombatStateRefresh => REFRESH_PATIENCE,
        }
    }
}

/// A tool's question to the frontend.
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
    /// The frontend's own error text.
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

    /// The same as an error for the model or the client that called the tool.
    fn error(self, patience: Duration) -> Error {
        match self {
            Failure::Silent => Error::new(
                Code::FrontendTimeout,
                format!("The frontend did not answer within {} seconds.", patience.as_secs_f32()),
            ),
            Failure::Gone => Error::new(
                Code::FrontendFailed,
                "The frontend disconnected before it answered. While no frontend is connected, the server rolls.",
            ),
            Failure::Refused(words) => {
                Error::new(Code::FrontendFailed, format!("The frontend could not do it: {words}"))
            }
        }
    }
}

/// A frontend's answer.
pub type Answer = Result<Value, Failure>;

/// The result of a tool's question.
#[derive(Debug)]
pub enum Heard {
    /// No frontend is connected. `left` says whether one was.
    Nobody {
        left: bool,
    },
    /// There was nothing to ask about.
    Idle,
    Told(Value),
    Failed(Error),
}

/// Asks the question of a tool that is called outside of a turn. Returns None if the tool asks nothing. No transaction may be open.
///
/// # Errors
/// Database errors.
pub async fn before(
    app: &Frontends,
    actor: &Actor,
    session: &Playing,
    question: Option<Question>,
) -> Result<Option<Heard>> {
    let Some(question) = question else { return Ok(None) };
    let frontend = Frontend::of(app, actor.tenant, session).await?;
    Ok(Some(frontend.ask(app, actor, session, &question).await?))
}

/// The questions that wait for an answer from a connection.
#[derive(Default)]
pub struct Waiting(Mutex<HashMap<Uuid, (Asked, oneshot::Sender<Answer>)>>);

impl Waiting {
    fn all(&self) -> MutexGuard<'_, HashMap<Uuid, (Asked, oneshot::Sender<Answer>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a question with this id and type is waiting.
    #[must_use]
    pub fn expects(&self, request_id: Option<&str>, asked: Asked) -> bool {
        let id = request_id.and_then(|id| Uuid::try_parse(id).ok());
        id.is_some_and(|id| self.all().get(&id).is_some_and(|(what, _)| *what == asked))
    }

    /// Passes on an answer and returns whether it was used. Ignores answers that do not match a waiting question.
    pub fn answer(&self, request_id: Option<&str>, asked: Asked, answer: Answer) -> bool {
        self.take(request_id, Some(asked)).is_some_and(|waits| waits.send(answer).is_ok())
    }

    /// Passes on that the frontend could not do what it was asked.
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

    /// Drops all questions, because no answer will come.
    pub fn forget_all(&self) {
        self.all().clear();
    }
}

/// Forgets a question when its asker stops waiting.
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
    /// Why there is no answer.
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
    /// Not connected. `left` says whether it was.
    Nowhere {
        left: bool,
    },
}

impl Frontend {
    /// Finds a session's frontend. Reads one row, or nothing if the frontend is connected to this server.
    ///
    /// # Errors
    /// Database errors.
    pub async fn of(app: &Frontends, tenant: Uuid, session: &Playing) -> Result<Self> {
        if let Some(here) = app.hub.find(tenant, session.campaign, session.id) {
            return Ok(Self::Here(here));
        }
        let tx = TenantTx::read(&app.edge.pool, tenant).await?;
        mail::find(&tx, session.id, app.instance).await
    }

    /// Asks the frontend. No transaction may be open.
    ///
    /// # Errors
    /// Database errors. A failure of the frontend is not an error here.
    pub async fn ask(&self, app: &Frontends, actor: &Actor, session: &Playing, question: &Question) -> Result<Heard> {
        let Question { asked, data } = question;
        if let Self::Nowhere { left } = self {
            return Ok(Heard::Nobody { left: *left });
        }
        if *asked == Asked::CombatStateRefresh {
            let tx = TenantTx::read(&app.edge.pool, actor.tenant).await?;
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
