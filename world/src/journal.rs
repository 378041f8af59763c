//! The journal as clients read it: every change to a campaign's world, in commit order.
//!
//! Triggers write its rows (see `migration/src/sql/journal.sql`); this module only reads them.

use std::time::Duration;

use actix_web::{
    HttpResponse,
    web::{self, Bytes, BytesMut},
};
use entity::session::Role;
use futures_util::{StreamExt, future::LocalBoxFuture, stream};
use serde::Serialize;
use sqlx::{AssertSqlSafe, postgres::PgRow};
use time::OffsetDateTime;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::playing::Reader;
use base::{
    error::{Code, Error, Result},
    stored::{self, Columns},
};
use db::{
    retry::{Tries, UNASKED},
    tenancy::TenantTx,
};
use edge::{
    caller::{Caller, keys},
    http::{
        budget, paging,
        resource::{Ref, campaign_id},
        sse,
    },
    state::Edge,
};

/// How often a stream checks that its credential is still valid.
const LOOK_AGAIN: Duration = Duration::from_secs(4);
/// How long one stream of changes lasts.
const FOLLOWED_FOR: Duration = Duration::from_secs(600);
const COME_BACK_AFTER: Duration = Duration::from_secs(1);
/// Changes read at a time.
const FOLLOWED_ROWS: i64 = 100;
/// The most changes that are searched at a time for those that the caller may read.
const LOOKED_THROUGH: i64 = 5000;

/// One change of one row.
#[derive(Debug, Serialize, ToSchema)]
pub struct Change {
    /// The position in this campaign's feed: rising without gaps, in commit order.
    pub seq: i64,
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    pub schema_version: i32,
    pub table: String,
    pub id: Uuid,
    /// `insert`, `update` or `delete`.
    pub op: String,
    pub before: Option<serde_json::Value>,
    pub after: Option<serde_json::Value>,
    /// `api`, `turn`, `import`, `fork`, `revert` or `system`.
    pub origin: String,
    /// The API key that made the change.
    pub actor: Option<Uuid>,
    /// The user of the editor who made the change.
    pub user_id: Option<Uuid>,
    pub turn_id: Option<Uuid>,
    pub request_id: Option<String>,
    /// When words in the change were erased. `before` and `after` are then no longer complete.
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub redacted_at: Option<OffsetDateTime>,
}

/// A page of the journal.
#[derive(Debug, Serialize, ToSchema)]
pub struct Changes {
    pub items: Vec<Change>,
    /// Pass as `after` for the next page.
    pub next_after: i64,
    pub has_more: bool,
}

/// Columns for internal bookkeeping, which are never shown outside.
const HIDDEN: [&str; 18] = [
    "tenant_id",
    "seq",
    "search",
    "folded_text",
    "folded_title",
    "folded_content",
    "folded_tags",
    "folded_keys",
    "folded_secondary_keys",
    "associated_key",
    "location_key",
    "prompt_text",
    "window_start",
    "told_as",
    "event",
    "influence_at",
    "removed_at",
    "messages",
];

/// Columns that mean nothing to a person who reads what changed.
const BOOKKEEPING: [&str; 5] = ["id", "campaign_id", "version", "updated_at", "created_at"];

/// The changes after `after`. A game master gets all of them, others only the messages that they may read.
///
/// # Errors
/// `gone` if some of them have been pruned, `not_found` for the campaign.
pub async fn changes(app: &Edge, caller: &Caller, c: &str, after: i64, limit: i64) -> Result<Changes> {
    if !(1..=200).contains(&limit) {
        return Err(paging::bad("limit", "must be from 1 to 200"));
    }
    if after < 0 {
        return Err(paging::bad("after", "must be 0 or more"));
    }
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(c)).await?;
    Ok(page(&tx, caller, campaign, after, limit).await?.read())
}

/// A page of the journal as PostgreSQL sent it. Its JSON takes far more memory once it is read, so that is done last.
struct Page {
    rows: Vec<PgRow>,
    after: i64,
    limit: usize,
    /// Up to where the journal was searched, if not for a number of rows only.
    end: Option<i64>,
    /// Whether it was searched to its end, or for a number of rows only.
    is_all: bool,
}

impl Page {
    fn read(self) -> Changes {
        let Self { rows, after, limit, end, is_all } = self;
        let mut items = stored::each(rows.iter().take(limit), change);
        let is_cut = budget::keep(&mut items) | budget::is_cut(&rows) | (rows.len() > limit);
        let next_after = match (end, items.last()) {
            (Some(end), _) if !is_cut => end.max(after),
            (_, last) => last.map_or(after, |c| c.seq),
        };
        Changes { next_after, has_more: is_cut || !is_all, items }
    }
}

/// A page of the journal. Two statements, or three for a caller who may not read everything.
async fn page(tx: &TenantTx, caller: &Caller, campaign: Uuid, after: i64, limit: i64) -> Result<Page> {
    // Search up to `end`. The page skips changes that the caller may not read.
    let (end, is_all, shown) = match caller.sees_secrets() {
        true => (None, true, "true".to_owned()),
        false => {
            let (last, _) = head(tx, campaign).await?;
            let end = last.min(after.saturating_add(LOOKED_THROUGH));
            (Some(end), end == last, is_message_for(caller))
        }
    };
    let sql = format!(
        "SELECT * FROM journal WHERE tenant_id = $1 AND campaign_id = $2 AND seq > $3 AND ($5::bigint IS NULL OR seq <= $5) \
         AND ({shown} OR $6::uuid IS NULL AND false) ORDER BY seq LIMIT $4"
    );
    let rows = sqlx::query(AssertSqlSafe(budget::within(&sql, ["before", "after"])))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(after)
        .bind(limit + 1)
        .bind(end)
        .bind(caller.player)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    // Read this after the rows, so that pruning in the meantime is noticed.
    let (_, pruned) = head(tx, campaign).await?;
    if after < pruned {
        return Err(Error::new(
            Code::Gone,
            format!("The journal up to {pruned} has been pruned; read the current state first."),
        ));
    }
    Ok(Page { rows, after, limit: usize::try_from(limit).unwrap_or(200), end, is_all })
}

/// SQL for whether a journal row is a created or deleted message that the caller may read. `$6` is the caller's character.
fn is_message_for(caller: &Caller) -> String {
    let field = |name: &str| match name {
        "whisper_to" => "coalesce(after, before) -> 'whisper_to'".to_owned(),
        name => format!("(coalesce(after, before) ->> '{name}')"),
    };
    let reader = Reader { role: Role::Player, player: caller.player };
    format!("table_name = 'message' AND coalesce({}, false)", reader.sees(field, "$6"))
}

/// The position where a campaign's feed ends, and the position up to which it is pruned.
///
/// # Errors
/// Database errors.
pub async fn head(tx: &TenantTx, campaign: Uuid) -> Result<(i64, i64)> {
    let row = sqlx::query("SELECT seq, pruned_seq FROM feed_head WHERE tenant_id = $1 AND campaign_id = $2")
        .bind(tx.tenant())
        .bind(campaign)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    row.map_or(Ok((0, 0)), |row| Ok((row.read("seq")?, row.read("pruned_seq")?)))
}

/// What a stream of a campaign's changes sends beside them: asked at the beginning and after each change, until there is nothing.
pub trait Beside {
    /// The next events.
    fn next(&mut self, campaign: Uuid) -> LocalBoxFuture<'_, Result<Bytes>>;
}

/// Follows a campaign: sends the changes after `after`, or from now on, as server-sent events whose ids are the changes'
/// numbers. The stream ends after [`FOLLOWED_FOR`], when the credential is revoked, or when the server stops. The client
/// then reconnects with its last id.
///
/// # Errors
/// `gone` if some of the changes have been pruned, `not_found` for the campaign, `rate_limited`.
pub async fn follow(
    app: web::Data<Edge>,
    caller: Caller,
    c: &str,
    after: Option<i64>,
    beside: Option<Box<dyn Beside>>,
) -> Result<HttpResponse> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(c)).await?;
    let feed = (caller.tenant_id(), campaign);
    let end = app.feeds.watch(feed)?;
    let after = match after {
        Some(after) => after,
        None => head(&tx, campaign).await?.0,
    };
    // Report pruned changes as an error before the stream begins.
    page(&tx, &caller, campaign, after, 1).await?;
    drop(tx);
    let until = Instant::now() + FOLLOWED_FOR;
    let follower = Follower { app, caller, campaign, after, end, until, beside };
    let events = stream::unfold(Some(follower), async |follower| {
        let mut follower = follower?;
        match follower.next_if_it_can_be_had().await {
            Ok(Some(bytes)) => Some((Ok(bytes), Some(follower))),
            Ok(None) => Some((Ok(sse::come_back_after(COME_BACK_AFTER)), None)),
            Err(error) => {
                tracing::info!(%error, "a stream of changes ended");
                Some((Ok(sse::come_back_after(COME_BACK_AFTER)), None))
            }
        }
    });
    Ok(sse::answer(events.boxed_local()))
}

/// The state of one stream of changes.
struct Follower {
    app: web::Data<Edge>,
    caller: Caller,
    campaign: Uuid,
    after: i64,
    end: watch::Receiver<i64>,
    until: Instant,
    beside: Option<Box<dyn Beside>>,
}

impl Follower {
    /// [`Follower::next`], retried while the database is unavailable.
    async fn next_if_it_can_be_had(&mut self) -> Result<Option<Bytes>> {
        // The time starts at the first error. Until then the stream may have waited for hours.
        let mut tries = None;
        loop {
            match self.next().await {
                Err(error) if tries.get_or_insert_with(|| Tries::with(UNASKED)).wait_to_retry(&error).await => {}
                result => return result,
            }
        }
    }

    /// The bytes to send next; `None` when the stream is over.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let mut is_gone = false;
        loop {
            if self.app.is_stopping() || Instant::now() >= self.until {
                return Ok(None);
            }
            // Mark the end as seen before reading the rows, so that a later change wakes this task again.
            self.end.borrow_and_update();
            // Boxed, because most of the time there is nothing to read and the future should take no memory.
            let Some(page) = Box::pin(self.read()).await? else { return Ok(None) };
            if !page.items.is_empty() {
                let mut bytes = BytesMut::new();
                for change in &page.items {
                    sse::event(&mut bytes, "change", Some(&change.seq.to_string()), change)?;
                }
                self.after = page.next_after;
                return Ok(Some(bytes.freeze()));
            }
            self.after = page.next_after;
            if page.has_more {
                continue;
            }
            if is_gone {
                return Ok(None);
            }
            if let Some(beside) = &mut self.beside {
                let told = beside.next(self.campaign).await?;
                if !told.is_empty() {
                    return Ok(Some(told));
                }
            }
            if !self.campaign_is_there().await? {
                // It may have been deleted after the rows were read. Read once more, so that the stream tells of it.
                is_gone = true;
                continue;
            }
            let silent_at = Instant::now() + sse::HEARTBEAT;
            loop {
                match timeout(LOOK_AGAIN.min(silent_at - Instant::now()), self.end.changed()).await {
                    Ok(Ok(())) => break,
                    Ok(Err(_)) => return Ok(None),
                    Err(_) if !self.app.keys.is_live(&self.caller).await? => return Ok(None),
                    Err(_) if Instant::now() >= silent_at => return Ok(Some(sse::heartbeat())),
                    Err(_) => {}
                }
            }
        }
    }

    async fn campaign_is_there(&self) -> Result<bool> {
        let tx = TenantTx::read(&self.app.pool, self.caller.tenant_id()).await?;
        match campaign_id(&tx, &self.caller, &Ref::Id(self.campaign)).await {
            Ok(_) => Ok(true),
            Err(error) if error.code == Code::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The next changes; `None` if the credential has been revoked or has expired.
    async fn read(&self) -> Result<Option<Changes>> {
        let tx = TenantTx::read(&self.app.pool, self.caller.tenant_id()).await?;
        let page = page(&tx, &self.caller, self.campaign, self.after, FOLLOWED_ROWS).await?;
        // After the rows were read: a credential that is valid now was valid when they were committed.
        let lives = keys::lives(&tx, &self.caller).await?;
        drop(tx);
        // A token carries its own expiry, and may depend on a character or a visit.
        Ok((lives && self.app.keys.is_live(&self.caller).await?).then(|| page.read()))
    }
}

/// Whether a column is never shown outside.
fn is_hidden(column: &str) -> bool {
    HIDDEN.contains(&column)
}

/// Whether a column's change is shown to people.
#[must_use]
pub fn is_told(column: &str) -> bool {
    !is_hidden(column) && !BOOKKEEPING.contains(&column)
}

/// Writes a time as other answers do, with `Z` where the database's JSON has `+00:00`.
pub fn in_utc(column: &str, value: &mut serde_json::Value) {
    if let serde_json::Value::String(time) = value
        && column.ends_with("_at")
        && time.ends_with("+00:00")
    {
        time.replace_range(time.len() - "+00:00".len().., "Z");
    }
}

fn change(row: &PgRow) -> Result<Change> {
    let row_image = |name: &str| -> Result<_> {
        let mut value: Option<serde_json::Value> = row.read(name)?;
        if let Some(serde_json::Value::Object(members)) = &mut value {
            members.retain(|key, _| !is_hidden(key));
            members.iter_mut().for_each(|(column, value)| in_utc(column, value));
        }
        Ok(value)
    };
    Ok(Change {
        seq: row.read("seq")?,
        at: row.read("at")?,
        schema_version: row.read("schema_version")?,
        table: row.read("table_name")?,
        id: row.read("row_id")?,
        op: row.read("op")?,
        before: row_image("before")?,
        after: row_image("after")?,
        origin: row.read("origin")?,
        actor: row.read("key_id")?,
        user_id: row.read("user_id")?,
        turn_id: row.read("turn_id")?,
        request_id: row.read("request_id")?,
        redacted_at: row.read("redacted_at")?,
    })
}
