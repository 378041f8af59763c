//! The events of a turn. They come from the log of the server that runs it, or else from the database or, if the turn was not
//! streamed, from its record. The last event, how the turn ended, always comes from its record.

use std::{borrow::Cow, collections::HashMap, time::Duration};

use actix_web::{
    HttpResponse,
    web::{self, BytesMut},
};
use futures_util::{StreamExt, stream};
use serde_json::{json, value::RawValue};
use sqlx::postgres::PgRow;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use uuid::Uuid;

use super::{
    kind::TurnKind,
    live::{
        CALL, Called, Delivery, Item, Live, NUMBERS_PER_RUN, Position, RESULT, Resulted, STARTED, TEXT, raw, unheard,
    },
    trace,
    view::{CallError, TurnView},
    words::{self, Words},
};
use crate::{
    state::Ai,
    tools::{self, Tool},
};
use base::{
    error::{Code, Error, Result},
    metrics,
    stored::{Columns, readable},
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        resource::{Ref, campaign_id},
        sse,
    },
    limits::Permit,
};

/// The shortest time between two pieces of text. Models write in smaller pieces than anybody reads, and each would be a packet of
/// its own.
const PACE: Duration = Duration::from_millis(20);
/// How long a listener may stay connected before it has to reconnect.
const HEARD_FOR: Duration = Duration::from_secs(600);
const COME_BACK_AFTER: Duration = Duration::from_secs(1);
/// The most listeners of one tenant on one server.
const LISTENERS_MAX: u32 = 2000;
/// The end of the last event's id.
const END: &str = ".end";

/// Somebody who follows a turn.
pub struct Listener {
    app: web::Data<Ai>,
    caller: Caller,
    turn: Uuid,
    at: Position,
    live: Option<(std::sync::Arc<Live>, watch::Receiver<()>)>,
    /// News of a turn whose log is not in this process.
    further: watch::Receiver<String>,
    over: bool,
    /// Whether the player gets only the beginning and the end: a reaction is heard when its reply is delivered.
    is_silent: bool,
    /// The kind of the turn.
    kind: Option<TurnKind>,
    /// The tools of the announced calls, for listeners who may not see all results; None for an unknown one.
    tools: HashMap<String, Option<&'static Tool>>,
    /// Nothing is sent before this time.
    resumes: Instant,
    until: Instant,
    _permit: Permit,
}

/// What a listener gets next.
pub enum Heard {
    /// Events in order, at least one. Nothing follows an event with `is_last`.
    Events(Vec<Event>),
    /// No events for a while.
    Silence,
    /// No further events.
    Over,
}

/// An event of a turn.
pub struct Event {
    pub id: String,
    pub is_last: bool,
    pub name: &'static str,
    pub data: Box<serde_json::value::RawValue>,
}

impl Listener {
    /// Follows a turn from `at` on. The caller must be allowed to.
    ///
    /// # Errors
    /// `rate_limited` if the tenant already has too many listeners.
    pub fn new(app: web::Data<Ai>, caller: &Caller, turn: Uuid, at: Position) -> Result<Self> {
        let permit = app.limits.listeners.take(caller.tenant_id(), LISTENERS_MAX, "listeners")?;
        metrics::TURN_LISTENERS.inc();
        let live = app.running.live(turn).map(|live| (live.clone(), live.subscribe()));
        Ok(Self {
            caller: caller.clone(),
            turn,
            at,
            live,
            further: app.running.follow(caller.tenant_id(), turn),
            over: false,
            is_silent: false,
            kind: None,
            tools: HashMap::new(),
            resumes: Instant::now(),
            until: Instant::now() + HEARD_FOR,
            _permit: permit,
            app,
        })
    }

    /// The next events. Waits at most for the time of a heartbeat.
    ///
    /// # Errors
    /// Database errors.
    pub async fn next(&mut self) -> Result<Heard> {
        let silent_at = Instant::now() + sse::HEARTBEAT;
        loop {
            if self.over || Instant::now() >= self.until || !self.app.keys.is_live(&self.caller).await? {
                return Ok(Heard::Over);
            }
            let told = match &mut self.live {
                Some((live, news)) => {
                    sleep_until(self.resumes).await;
                    news.mark_unchanged();
                    let (told, ended) = live.since(&mut self.at);
                    self.kind = live.kind();
                    if told.is_empty() && !ended {
                        match timeout(silent_at - Instant::now(), news.changed()).await {
                            Ok(_) => continue,
                            Err(_) => return Ok(Heard::Silence),
                        }
                    }
                    if ended {
                        self.live = None;
                    }
                    if told.is_empty() {
                        continue;
                    }
                    told
                }
                None => {
                    // Marked before the rows are read, so that later news wakes this up again.
                    self.further.mark_unchanged();
                    Box::pin(self.recorded()).await?
                }
            };
            let is_for_them = |told: &Delivery| !self.is_silent || !matches!(told.name, TEXT | CALL | RESULT);
            let told: Vec<Delivery> = told.into_iter().filter(is_for_them).collect();
            if told.is_empty() && self.live.is_some() {
                continue;
            }
            if !told.is_empty() {
                // Asked again: events may have come while this waited.
                if !self.app.keys.is_live(&self.caller).await? {
                    return Ok(Heard::Over);
                }
                if told.iter().any(|told| told.name == TEXT) {
                    self.resumes = Instant::now() + PACE;
                }
                let events: Vec<Event> = told.into_iter().filter_map(|told| self.event(told)).collect();
                if events.is_empty() {
                    continue;
                }
                return Ok(Heard::Events(events));
            }
            if self.app.is_stopping() {
                return Ok(Heard::Over);
            }
            match timeout(silent_at - Instant::now(), self.further.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Ok(Heard::Over),
                Err(_) => return Ok(Heard::Silence),
            }
        }
    }

    /// An event in the form in which this listener may see it. Withholds what [`Words`] says. A call that cannot be read is left out.
    fn event(&mut self, mut told: Delivery) -> Option<Event> {
        if !self.caller.sees_secrets() {
            told.data = match told.name {
                CALL => self.narrowed_call(&told.data)?,
                RESULT => self.narrowed_result(&told.data)?,
                _ => told.data,
            };
        }
        let is_last = !matches!(told.name, STARTED | TEXT | CALL | RESULT);
        let Position { seq, offset } = told.at;
        let id = match offset {
            Some(offset) => format!("{}:{seq}.{offset}", self.turn),
            None if is_last => format!("{}:{seq}{END}", self.turn),
            None => format!("{}:{seq}", self.turn),
        };
        Some(Event { id, is_last, name: told.name, data: told.data })
    }

    /// A call as this listener may see it.
    fn narrowed_call(&mut self, data: &RawValue) -> Option<Box<RawValue>> {
        let mut call: Called<'_> = readable(serde_json::from_str(data.get()).map_err(Error::internal))?;
        let tool = tools::find(&call.name);
        Words::of_listener(&self.caller, self.kind).narrow_arguments(tool, call.arguments.to_mut());
        let narrowed = raw(&call);
        self.tools.insert(call.id.into_owned(), tool);
        Some(narrowed)
    }

    /// The same for the result of a call.
    fn narrowed_result(&self, data: &RawValue) -> Option<Box<RawValue>> {
        let Resulted { id, status, result, error } =
            readable(serde_json::from_str(data.get()).map_err(Error::internal))?;
        let (mut result, mut error) = (result.map(Cow::into_owned), error.map(Cow::into_owned));
        let tool = self.tools.get(&*id).copied().flatten();
        Words::of_listener(&self.caller, self.kind).narrow_result(tool, &mut result, error.as_mut());
        Some(raw(&Resulted { id, status, result: result.map(Cow::Owned), error: error.map(Cow::Owned) }))
    }

    /// The events in the database. One statement.
    async fn recorded(&mut self) -> Result<Vec<Delivery>> {
        let tx = TenantTx::read(&self.app.pool, self.caller.tenant_id()).await?;
        let row = sqlx::query(
            "SELECT id, kind, trigger, told_as, status, campaign_id, entity_id, player_id, parent_turn_id, created_at, undone_at, runs_before, error, turn_is_unheard(tenant_id, id) AS is_unheard, CASE WHEN status NOT IN ('queued', 'running') THEN record -> 'view' END AS view, \
                (SELECT coalesce(json_agg(json_build_array(e.seq, e.name, e.data) ORDER BY e.seq), '[]') FROM turn_event e \
                 WHERE e.tenant_id = $1 AND e.turn_id = $2 AND e.seq >= $3) AS told \
             FROM turn WHERE tenant_id = $1 AND id = $2",
        )
        .bind(self.caller.tenant_id())
        .bind(self.turn)
        .bind(i32::try_from(self.at.seq).unwrap_or(i32::MAX))
        .fetch_optional(&mut *tx.connection().await)
        .await?;
        drop(tx);
        self.kind = row.as_ref().and_then(|row| TurnKind::named(row.read("kind").ok()?));
        let Some(row) = row else {
            // The turn was deleted with its campaign.
            self.over = true;
            self.at = Position { seq: self.at.seq + 1, offset: None };
            let data = raw(&json!({ "turn_id": self.turn }));
            return Ok(vec![Delivery { at: self.at, name: "turn.cancelled", data }]);
        };
        let saved: Vec<(usize, String, String)> = row.read_json("told")?;
        let status: &str = row.read("status")?;
        let ended = !matches!(status, "queued" | "running");
        let first = saved.first().map_or_else(|| first_of(&row), |(seq, ..)| Ok(*seq))?;
        let mut items: Vec<Item> =
            saved.into_iter().filter_map(|(_, name, data)| Some(Item { name: event_name(&name)?, data })).collect();
        let view = (ended || items.is_empty()).then(|| readable(trace::view_of_row(&row))).flatten();
        if items.is_empty() && status != "queued" {
            // The turn was not streamed, or has only begun.
            items = of_record(self.turn, view.as_ref());
        }
        let mut told = unheard(&items, first, &mut self.at);
        if ended {
            self.at = Position { seq: self.at.seq + 1, offset: None };
            let (name, data) = self.end(&row, view)?;
            told.push(Delivery { at: self.at, name, data: raw(&data) });
            self.over = true;
        }
        Ok(told)
    }

    /// The event for the end of the turn. A completed turn that cannot be read ends as a failed one, so that nobody waits for it.
    fn end(&self, row: &PgRow, turn: Option<TurnView>) -> Result<(&'static str, serde_json::Value)> {
        let failed = |error: Option<CallError>| ("turn.failed", json!({ "turn_id": self.turn, "error": error }));
        Ok(match (row.read("status")?, turn) {
            ("failed", _) => failed(trace::read_part(row, "error")),
            ("cancelled", _) => ("turn.cancelled", json!({ "turn_id": self.turn })),
            (_, Some(mut turn)) => {
                trace::words(row, &self.caller)?.narrow(&mut turn);
                ("turn.completed", json!({ "turn": turn }))
            }
            (_, None) => failed(Some(CallError::from(&Error::internal("a turn that cannot be read")))),
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        metrics::TURN_LISTENERS.dec();
    }
}

fn event_name(name: &str) -> Option<&'static str> {
    [STARTED, TEXT, CALL, RESULT].into_iter().find(|known| *known == name)
}

/// The events that the turn would have sent.
fn of_record(turn: Uuid, view: Option<&TurnView>) -> Vec<Item> {
    let mut items = vec![Item::started(turn)];
    let Some(TurnView { tool_calls, narrative, .. }) = view else { return items };
    for call in tool_calls {
        items.push(Item::call(&call.id, &call.name, &call.arguments));
        items.push(Item::result(call));
    }
    if !narrative.is_empty() {
        items.push(Item { name: TEXT, data: narrative.clone() });
    }
    items
}

/// The number of the first event of a turn's last run.
fn first_of(row: &PgRow) -> Result<usize> {
    Ok(usize::try_from(row.read::<i32>("runs_before")?).unwrap_or_default() * NUMBERS_PER_RUN + 1)
}

/// The position of a client that reconnects with this id, for a turn whose events are numbered from `first`. None if the client has
/// received everything.
fn position(turn: Uuid, id: &str, first: usize) -> Result<Option<Position>> {
    let strange = || Error::new(Code::BadRequest, "`Last-Event-ID` must be the id of an event of this turn.");
    let place = id.strip_prefix(&turn.to_string()).and_then(|rest| rest.strip_prefix(':')).ok_or_else(strange)?;
    let number = |digits: &str| digits.parse::<u32>().map(|n| n as usize).map_err(|_| strange());
    if let Some(seq) = place.strip_suffix(END) {
        return number(seq).map(|seq| (seq < first).then_some(Position { seq, offset: None }));
    }
    let (seq, offset) = place.split_once('.').map_or((place, None), |(seq, offset)| (seq, Some(offset)));
    Ok(Some(Position { seq: number(seq)?, offset: offset.map(number).transpose()? }))
}

/// Streams the events of a listener.
pub fn answer(listener: Listener) -> HttpResponse {
    let events = stream::unfold(Some(listener), async |listener| {
        let mut listener = listener?;
        let mut bytes = BytesMut::new();
        let heard = match listener.next().await {
            Ok(Heard::Silence) => return Some((Ok(sse::heartbeat()), Some(listener))),
            Ok(Heard::Events(events)) => events,
            Ok(Heard::Over) => return Some((Ok(sse::come_back_after(COME_BACK_AFTER)), None)),
            Err(error) => {
                tracing::info!(%error, "lost a turn's listener");
                return Some((Ok(sse::come_back_after(COME_BACK_AFTER)), None));
            }
        };
        let is_over = heard.iter().any(|event| event.is_last);
        for event in &heard {
            if let Err(error) = sse::event(&mut bytes, event.name, Some(&event.id), &event.data) {
                return Some((Err(error), None));
            }
        }
        Some((Ok(bytes.freeze()), (!is_over).then_some(listener)))
    });
    sse::answer(events.boxed_local())
}

/// Follows a turn of a campaign, from the beginning or after the event `last`. None if the client has received everything.
///
/// # Errors
/// `not_found` for a turn that the caller may not see, `bad_request` for an invalid id, `rate_limited`.
pub async fn listener(
    app: web::Data<Ai>,
    caller: &Caller,
    c: &str,
    turn: Uuid,
    last: Option<&str>,
) -> Result<Option<Listener>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(c)).await?;
    let found = sqlx::query(
        "SELECT kind, runs_before, turn_is_unheard(tenant_id, id) AS is_unheard FROM turn \
         WHERE tenant_id = $1 AND campaign_id = $2 AND id = $3 AND ($4::uuid IS NULL OR player_id = $4)",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(turn)
    .bind(caller.player)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("turn"))?;
    words::may_hear(caller, found.read("kind")?)?;
    let first = first_of(&found)?;
    let is_silent = caller.is_player() && found.read("is_unheard")?;
    drop(tx);
    let Some(at) = last.map_or(Ok(Some(Position::default())), |id| position(turn, id, first))? else {
        return Ok(None);
    };
    let mut listener = Listener::new(app, caller, turn, at)?;
    listener.is_silent = is_silent;
    Ok(Some(listener))
}
