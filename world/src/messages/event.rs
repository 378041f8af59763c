//! Events of the world: system messages of the log which, for a day, prompts also tell to those whom they concern.

use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::service::{EventMark, NewMessage};
use base::{clock, error::Result, stored::Columns};
use db::tenancy::TenantTx;
use entity::message::{Author, Type};

/// For how long prompts tell an event.
const LASTS: Duration = Duration::hours(24);
/// The most events that a prompt tells, the newest ones.
const TOLD_MAX: i64 = 10;

/// An event as a prompt tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub text: String,
    pub until: OffsetDateTime,
}

/// The message of an event that begins now. `audience` has the keys of the scopes that it concerns, and ids.
#[must_use]
pub fn message(speaker: &str, text: String, audience: Vec<String>) -> NewMessage {
    NewMessage {
        kind: Type::System,
        event: Some(EventMark { until: clock::later(clock::now(), LASTS), audience }),
        ..NewMessage::chat(Author::System, speaker, text)
    }
}

/// The events that concern one of `audience` and have not ended, the oldest first. One statement.
///
/// # Errors
/// Database errors.
pub async fn told_to(tx: &TenantTx, campaign: Uuid, audience: &[String]) -> Result<Vec<Event>> {
    let rows = sqlx::query(
        "SELECT content, (event ->> 'until')::timestamptz AS until FROM message \
         WHERE tenant_id = $1 AND campaign_id = $2 AND event IS NOT NULL AND created_at > now() - interval '25 hours' \
         AND (event ->> 'until')::timestamptz > now() AND event -> 'audience' ?| $3 ORDER BY created_at DESC, seq DESC LIMIT $4",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(audience)
    .bind(TOLD_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter().rev().map(|row| Ok(Event { text: row.read("content")?, until: row.read("until")? })).collect()
}
