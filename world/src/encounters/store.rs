//! The rows of an encounter: read under a lock, written in one statement.
//!
//! The state is stored as an older state and the events since then. An action rewrites only those few events; after
//! [`TAIL_EVENTS_MAX`] events it rewrites the state, too.

use rules::{
    encounter::{Encounter, Event, Participant},
    resolve::Outcome,
};
use serde::Serialize;
use sqlx::{postgres::PgRow, types::Json};
use uuid::Uuid;

use super::{
    eyes::Eyes,
    log::{self, ActionReport},
    news::Before,
};
use crate::messages::service::NewMessage;
use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::http::resource::Ref;

/// The number of events after which the state is rewritten.
const TAIL_EVENTS_MAX: usize = 64;

/// A stored encounter.
#[derive(Clone)]
pub struct Stored {
    pub id: Uuid,
    pub campaign: Uuid,
    pub version: i64,
    /// The number of actions so far.
    pub seq: i64,
    pub hidden: bool,
    /// Whether the server reports attacks or other deeds as actions.
    pub deeds_count: bool,
    /// The current state.
    pub now: Encounter,
    /// The name and notes, which clients edit without an action.
    pub name: String,
    pub notes: Option<String>,
    tail: Vec<Event>,
}

impl Stored {
    pub(super) fn of(row: &PgRow) -> Result<Self> {
        let mut now: Encounter = serde_json::from_str(row.read("state")?).map_err(Error::internal)?;
        let tail: Vec<Event> = serde_json::from_str(row.read("tail")?).map_err(Error::internal)?;
        now.apply_all(&tail);
        Ok(Self {
            id: row.read("id")?,
            campaign: row.read("campaign_id")?,
            version: row.read("version")?,
            seq: row.read("seq")?,
            hidden: row.read("hidden")?,
            deeds_count: row.read("deeds_count")?,
            name: row.read("name")?,
            notes: row.read("notes")?,
            now,
            tail,
        })
    }
}

/// Where to look for an encounter.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The campaign, by id or slug, and the one campaign of a restricted token.
    pub campaign: &'a Ref,
    pub only: Option<Uuid>,
}

macro_rules! select {
    ($condition:literal) => {
        concat!(
            "SELECT e.id, e.campaign_id, e.version, e.name, e.notes, e.hidden, e.updated_at, s.seq, s.state::text AS state, \
             s.tail::text AS tail, coalesce(c.settings #>> '{report_actions,encounters}' = 'true', false) AS deeds_count \
             FROM encounter e JOIN encounter_state s ON s.tenant_id = e.tenant_id AND s.encounter_id = e.id \
             JOIN campaign c ON c.tenant_id = e.tenant_id AND c.id = e.campaign_id WHERE e.tenant_id = $1 AND ",
            $condition
        )
    };
}
const READ: &str = select!("e.id = $2 AND (c.id = $3 OR c.slug = $4) AND ($5::uuid IS NULL OR c.id = $5)");
const LOCK: &str =
    select!("e.id = $2 AND (c.id = $3 OR c.slug = $4) AND ($5::uuid IS NULL OR c.id = $5) FOR NO KEY UPDATE OF e, s");
/// The active encounters of a campaign, newest first.
pub(super) const ACTIVE: &str =
    select!("e.campaign_id = $2 AND e.status = 'active' AND NOT e.hidden ORDER BY e.id DESC LIMIT $3");

/// Reads an encounter. With `lock`, nobody else can act in it until the transaction ends. One statement.
///
/// # Errors
/// `not_found`.
pub async fn read(tx: &TenantTx, place: Place<'_>, id: &str, lock: bool) -> Result<Stored> {
    let missing = || Error::not_found("encounter");
    let id = Uuid::try_parse(id).map_err(|_| missing())?;
    let (campaign, slug) = match place.campaign {
        Ref::Id(id) => (Some(*id), None),
        Ref::Slug(slug) => (None, Some(slug.as_str())),
    };
    let row = sqlx::query(if lock { LOCK } else { READ })
        .bind(tx.tenant())
        .bind(id)
        .bind(campaign)
        .bind(slug)
        .bind(place.only)
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(missing)?;
    Stored::of(&row)
}

/// A record that takes part.
pub struct Member {
    pub participant: String,
    /// `character` or `npc`.
    pub kind: &'static str,
    pub record: Uuid,
    pub version: i64,
}

fn text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(Error::internal)
}

/// An encounter's row shows what somebody sees who plays nobody in it.
const ANYBODY: Eyes = Eyes::Player(None);

/// Whose turn it is, for lists.
fn current(it: &Encounter) -> Option<&str> {
    it.current().filter(|p| ANYBODY.knows(it, p)).map(|p| p.id.as_str())
}

/// The number of participants, for lists.
fn count(it: &Encounter) -> i32 {
    number(it.participants().iter().filter(|p| ANYBODY.knows(it, p)).count())
}

/// Inserts a new encounter and tells its beginning in the campaign's log. One statement. Returns the version.
///
/// # Errors
/// Database errors.
pub async fn insert(tx: &TenantTx, campaign: Uuid, id: Uuid, it: &Encounter, members: &[Member]) -> Result<i64> {
    let state = text(it)?;
    let row = sqlx::query(
        "WITH e AS (INSERT INTO encounter (tenant_id, id, campaign_id, name, status, round, turn, current_participant_id, \
                participant_count) VALUES ($1, $2, $3, $4, 'active', $5, $6, $7, $8) RETURNING tenant_id, id, version), \
              s AS (INSERT INTO encounter_state (tenant_id, encounter_id, beginning, state, tail) \
                SELECT tenant_id, id, $9::json, $9::json, '[]' FROM e), \
              m AS (INSERT INTO encounter_member (tenant_id, encounter_id, participant_id, kind, record_id, version) \
                SELECT e.tenant_id, e.id, n.* FROM e, unnest($10::text[], $11::text[], $12::uuid[], $13::bigint[]) AS n) \
         SELECT version, write_messages($1, $3, $14) AS told FROM e",
    )
    .bind(tx.tenant())
    .bind(id)
    .bind(campaign)
    .bind(it.name().unwrap_or_default())
    .bind(number(it.round()))
    .bind(number(ANYBODY.turn(it)))
    .bind(current(it))
    .bind(count(it))
    .bind(state)
    .bind(members.iter().map(|m| m.participant.as_str()).collect::<Vec<_>>())
    .bind(members.iter().map(|m| m.kind).collect::<Vec<_>>())
    .bind(members.iter().map(|m| m.record).collect::<Vec<_>>())
    .bind(members.iter().map(|m| m.version).collect::<Vec<_>>())
    .bind(Json(log::beginning(it)))
    .fetch_one(&mut *tx.connection().await)
    .await?;
    row.read("version")
}

/// The wire name of a rules enum's value.
fn word(value: impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned))
}

fn number(value: impl TryInto<i32>) -> i32 {
    value.try_into().unwrap_or(i32::MAX)
}

/// What is written along with the events.
pub struct LogEntry<'a> {
    /// The requested action, for the log.
    pub action: String,
    pub turn: Option<Uuid>,
    pub notes: Option<&'a str>,
    /// Whether to hide the encounter from lists and reads.
    pub hide: bool,
    pub members: &'a [Member],
    /// The participant that leaves.
    pub leaver: Option<&'a str>,
    /// The kind of action, and the weapon or spell that was used, for the campaign's log.
    pub kind: &'a str,
    pub with: Option<&'a str>,
    pub outcomes: &'a [Outcome],
}

impl<'a> LogEntry<'a> {
    /// An entry with nothing else.
    #[must_use]
    pub fn of(action: String, kind: &'a str, turn: Option<Uuid>) -> Self {
        Self { action, turn, notes: None, hide: false, members: &[], leaver: None, kind, with: None, outcomes: &[] }
    }
}

/// Applies events to an encounter that the transaction has locked, writes them, and tells them in the campaign's log. One
/// statement. Returns the messages.
///
/// # Errors
/// Database errors.
pub async fn append(
    tx: &TenantTx,
    it: &mut Stored,
    events: Vec<Event>,
    entry: &LogEntry<'_>,
) -> Result<Vec<NewMessage>> {
    let before = Before::of(&it.now);
    let then = it.now.clone();
    it.now.apply_all(&events);
    let messages = log::action(&ActionReport {
        name: &it.name,
        then: &then,
        now: &it.now,
        events: &events,
        action: entry.kind,
        with: entry.with,
        outcomes: entry.outcomes,
    });
    let news = before.until(&it.now, it.seq + 1);
    let logged = text(&events)?;
    it.tail.extend(events);
    let anew = it.tail.len() > TAIL_EVENTS_MAX;
    if anew {
        it.tail.clear();
    }
    let row = sqlx::query(
        "WITH log AS (INSERT INTO encounter_log (tenant_id, encounter_id, seq, action, events, turn_id, told) \
                VALUES ($1, $2, $3, $4::json, $5::json, $6, $24)), \
              s AS (UPDATE encounter_state SET seq = $3, state = coalesce($7::json, state), tail = $8::json \
                WHERE tenant_id = $1 AND encounter_id = $2), \
              m AS (INSERT INTO encounter_member (tenant_id, encounter_id, participant_id, kind, record_id, version) \
                SELECT $1, $2, n.* FROM unnest($9::text[], $10::text[], $11::uuid[], $12::bigint[]) AS n \
                ON CONFLICT (tenant_id, encounter_id, participant_id) DO UPDATE SET has_left = false, since_at = now()), \
              l AS (UPDATE encounter_member SET has_left = true, since_at = now() \
                WHERE tenant_id = $1 AND encounter_id = $2 AND participant_id = $25), \
              e AS (UPDATE encounter SET status = $13, round = $14, turn = $15, current_participant_id = $16, participant_count = $17, \
                outcome = $18, notes = coalesce($19, notes), hidden = hidden OR $20, last_action = $21 \
                WHERE tenant_id = $1 AND id = $2 RETURNING version) \
         SELECT version, write_messages($1, $22, $23) AS told FROM e",
    )
    .bind(tx.tenant())
    .bind(it.id)
    .bind(it.seq + 1)
    .bind(&entry.action)
    .bind(logged)
    .bind(entry.turn)
    .bind(if anew { Some(text(&it.now)?) } else { None })
    .bind(text(&it.tail)?)
    .bind(entry.members.iter().map(|m| m.participant.as_str()).collect::<Vec<_>>())
    .bind(entry.members.iter().map(|m| m.kind).collect::<Vec<_>>())
    .bind(entry.members.iter().map(|m| m.record).collect::<Vec<_>>())
    .bind(entry.members.iter().map(|m| m.version).collect::<Vec<_>>())
    .bind(word(it.now.status()))
    .bind(number(it.now.round()))
    .bind(number(ANYBODY.turn(&it.now)))
    .bind(current(&it.now))
    .bind(count(&it.now))
    .bind(word(it.now.outcome()))
    .bind(entry.notes)
    .bind(entry.hide)
    .bind(serde_json::to_value(news).map_err(Error::internal)?)
    .bind(it.campaign)
    .bind(Json(&messages))
    .bind(messages.iter().map(|message| message.id).collect::<Vec<_>>())
    .bind(entry.leaver)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    it.seq += 1;
    it.version = row.read("version")?;
    it.hidden |= entry.hide;
    Ok(messages)
}

/// Resets an encounter that the transaction has locked to its state before the action `first`. One statement.
///
/// # Errors
/// Database errors.
pub(super) async fn put_back(tx: &TenantTx, id: Uuid, first: i64, then: &Encounter) -> Result<()> {
    let ids = |those: &[Participant]| those.iter().map(|p| p.id.clone()).collect::<Vec<_>>();
    sqlx::query(
        "WITH l AS (DELETE FROM encounter_log WHERE tenant_id = $1 AND encounter_id = $2 AND seq >= $3), \
              s AS (UPDATE encounter_state SET seq = $3 - 1, state = $4::json, tail = '[]' WHERE tenant_id = $1 AND encounter_id = $2), \
              m AS (DELETE FROM encounter_member WHERE tenant_id = $1 AND encounter_id = $2 AND participant_id <> ALL ($5 || $12)), \
              b AS (UPDATE encounter_member SET has_left = participant_id = ANY ($12), since_at = now() WHERE tenant_id = $1 \
                AND encounter_id = $2 AND participant_id = ANY ($5 || $12) AND has_left <> (participant_id = ANY ($12))) \
         UPDATE encounter SET status = $6, round = $7, turn = $8, current_participant_id = $9, participant_count = $10, \
                outcome = $11, hidden = false, last_action = CASE $3 WHEN 1 THEN '{}' ELSE jsonb_build_object('seq', $3 - 1) END, notes = CASE WHEN status = 'ended' AND $6 = 'active' THEN NULL ELSE notes END \
         WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(id)
    .bind(first)
    .bind(text(then)?)
    .bind(ids(then.participants()))
    .bind(word(then.status()))
    .bind(number(then.round()))
    .bind(number(ANYBODY.turn(then)))
    .bind(current(then))
    .bind(count(then))
    .bind(word(then.outcome()))
    .bind(ids(then.departed()))
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(())
}

/// An action in the log of an encounter.
pub(super) struct Logged {
    pub seq: i64,
    pub events: Vec<Event>,
    pub turn: Option<Uuid>,
    /// The messages that told it.
    told: Vec<Uuid>,
}

impl Logged {
    fn of(row: &PgRow) -> Result<Self> {
        let (seq, events, turn, told): (i64, String, Option<Uuid>, Vec<Uuid>) = row.read_all()?;
        Ok(Self { seq, events: serde_json::from_str(&events).map_err(Error::internal)?, turn, told })
    }
}

/// The beginning and the log of an encounter; `None` if there is none. Nobody else can act in it until the transaction ends. Two statements.
///
/// # Errors
/// Database errors.
pub(super) async fn history(tx: &TenantTx, id: Uuid) -> Result<Option<(Encounter, Vec<Logged>)>> {
    let state = sqlx::query(
        "SELECT s.beginning::text FROM encounter e \
         JOIN encounter_state s ON s.tenant_id = e.tenant_id AND s.encounter_id = e.id \
         WHERE e.tenant_id = $1 AND e.id = $2 FOR NO KEY UPDATE OF e, s",
    )
    .bind(tx.tenant())
    .bind(id)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    let Some(state) = state else { return Ok(None) };
    let (beginning,): (String,) = state.read_all()?;
    let log = sqlx::query(
        "SELECT seq, events::text, turn_id, told FROM encounter_log WHERE tenant_id = $1 AND encounter_id = $2 ORDER BY seq",
    )
    .bind(tx.tenant())
    .bind(id)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let log = log.iter().map(Logged::of).collect::<Result<_>>()?;
    Ok(Some((serde_json::from_str(&beginning).map_err(Error::internal)?, log)))
}

/// Deletes the messages that told an action which was taken back. One statement.
///
/// # Errors
/// Database errors.
pub(super) async fn untell(tx: &TenantTx, action: &Logged) -> Result<()> {
    sqlx::query("DELETE FROM message WHERE tenant_id = $1 AND id = ANY ($2)")
        .bind(tx.tenant())
        .bind(&action.told)
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}
