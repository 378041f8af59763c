//! Asks a session's frontend, wherever it is connected. The result is an answer, an error, or that no frontend is connected.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    connected::Frontends,
    frames::Frame,
    hub::Connection,
    mail,
    question::{Answer, Asked, Failure, Heard, Question},
    waiting::Pending,
    whereabouts::Frontend,
};
use base::{clock, error::Result, metrics};
use db::tenancy::{Actor, TenantTx};
use world::{playing::Playing, sessions::combat};

/// The most open questions to one frontend.
const WAITING_MAX: usize = 64;

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

impl Connection {
    /// Asks this frontend and waits for its answer.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn ask(&self, asked: Asked, data: &Value, patience: Duration) -> Answer {
        let id = clock::id();
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
        let patience = app.patience(*asked);
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
