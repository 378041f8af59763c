//! Writes, finds and deletes memories, for the API, the editor and the AI tools.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{GAME_TIME_CHARS_MAX, MemoryView, TEXT_CHARS_MAX, subject::Subject};
use base::{
    clock,
    error::{Code, Error, Result},
    search,
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::{http::etag::Expected, limits::check_rows};

/// A memory with the slugs of its holder and player.
pub const SELECT: &str = "SELECT m.*, c.slug AS player_slug, a.slug AS holder_slug FROM memory m \
    LEFT JOIN character c ON c.tenant_id = m.tenant_id AND c.id = m.subject_id \
    LEFT JOIN actor_slug a ON a.tenant_id = m.tenant_id AND a.actor_id = m.holder_id";

/// A memory to write.
pub struct NewMemory<'a> {
    pub campaign: Uuid,
    /// `npc` or `owner`.
    pub holder_type: &'static str,
    pub holder: Uuid,
    pub player: Subject,
    pub text: &'a str,
    pub game_time: GameTime<'a>,
    pub is_pinned: bool,
    /// `personal`, `private` or `editor`.
    pub source: &'static str,
    pub author: Option<Uuid>,
    pub turn: Option<Uuid>,
}

/// When a new memory happened in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GameTime<'a> {
    /// At the campaign's present game time.
    Now,
    /// At this time, or at no particular one.
    At(Option<&'a str>),
}

/// Checks a memory's text and removes the spaces around it.
///
/// # Errors
/// `validation_failed` at `pointer` if nothing is left or it is too long.
pub fn text<'a>(text: &'a str, pointer: &str) -> Result<&'a str> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Error::invalid(pointer, "invalid_value", "must not be blank"));
    }
    if text.chars().count() > TEXT_CHARS_MAX {
        return Err(Error::invalid(pointer, "too_long", format!("must have at most {TEXT_CHARS_MAX} characters")));
    }
    Ok(text)
}

/// Checks the time at which a memory happened, and puts it on one line. None if nothing is left.
///
/// # Errors
/// `validation_failed` at `pointer` if it is too long.
pub fn game_time(time: Option<&str>, pointer: &str) -> Result<Option<String>> {
    let time = time.map(single_spaced).filter(|time| !time.is_empty());
    if time.as_ref().is_some_and(|time| time.chars().count() > GAME_TIME_CHARS_MAX) {
        let message = format!("must have at most {GAME_TIME_CHARS_MAX} characters");
        return Err(Error::invalid(pointer, "too_long", message));
    }
    Ok(time)
}

fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A campaign's game time as new memories have it: on one line, as much of it as fits.
#[must_use]
pub fn game_time_now(of_campaign: &str) -> String {
    let line: String = single_spaced(of_campaign).chars().take(GAME_TIME_CHARS_MAX).collect();
    line.trim_end().to_owned()
}

/// The same in SQL, with all white space of Unicode. `$1` is the tenant, `$3` the campaign.
fn time_now() -> String {
    const SPACES: &str = r"[\s\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+";
    format!(
        "(SELECT nullif(rtrim(left(btrim(regexp_replace(c.game_time, '{SPACES}', ' ', 'g')), {GAME_TIME_CHARS_MAX})), '') \
          FROM campaign c WHERE c.tenant_id = $1 AND c.id = $3)"
    )
}

/// The statement that writes a memory, as [`run`] binds it, if `condition` is true.
fn insertion(condition: &str) -> String {
    format!(
        "INSERT INTO memory (tenant_id, id, campaign_id, holder_type, holder_id, subject_id, text, folded_text, source, author, \
                             turn_id, pinned, game_time) \
         SELECT $1::uuid, $2::uuid, $3::uuid, $4::text, $5::uuid, $6::uuid, $7::text, $8::text, $9::text, $10::uuid, $11::uuid, \
                $12::bool, CASE WHEN $13::bool THEN {} ELSE $14::text END \
         WHERE {condition} RETURNING id",
        time_now()
    )
}

/// Writes one memory. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn insert(tx: &TenantTx, new: &NewMemory<'_>) -> Result<Uuid> {
    run(tx, insertion("true"), new).await?.ok_or_else(|| Error::internal("a memory was not written"))
}

/// What the holder of a memory remembers about the player in the same words, as a subquery. Bound as [`run`] does. It looks at the newest
/// 20,000.
const KNOWN: &str = "known AS (SELECT n.id FROM ( \
    SELECT m.id, m.text, m.folded_text FROM memory m WHERE m.tenant_id = $1 AND m.holder_id = $5 AND m.subject_id = $6 \
    ORDER BY m.seq DESC LIMIT 20000) n \
    WHERE coalesce(n.folded_text, lower(n.text COLLATE \"C\")) = coalesce($8, lower($7 COLLATE \"C\")) LIMIT 1)";

/// Writes one memory if the tenant may have another row, unless its holder remembers the same about the player, word for word. Then
/// that memory's id is returned. Takes one statement, and one for the limit.
///
/// # Errors
/// `quota_exceeded`.
pub async fn remember(tx: &TenantTx, rows_max: u64, new: &NewMemory<'_>) -> Result<Uuid> {
    let full = match check_rows(tx, rows_max, "memory").await {
        Ok(()) => None,
        Err(error) if error.code == Code::QuotaExceeded => Some(error),
        Err(error) => return Err(error),
    };
    let insertion = insertion(&format!("{} AND NOT EXISTS (SELECT FROM known)", full.is_none()));
    let sql = format!("WITH {KNOWN}, made AS ({insertion}) SELECT id FROM known UNION ALL SELECT id FROM made");
    let id = run(tx, sql, new).await?;
    id.ok_or_else(|| full.unwrap_or_else(|| Error::internal("a memory was not written")))
}

/// Runs [`insertion`], or a statement around it. Returns the memory's id.
async fn run(tx: &TenantTx, sql: String, new: &NewMemory<'_>) -> Result<Option<Uuid>> {
    let (is_now, game_time) = match new.game_time {
        GameTime::Now => (true, None),
        GameTime::At(time) => (false, time),
    };
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(clock::id())
        .bind(new.campaign)
        .bind(new.holder_type)
        .bind(new.holder)
        .bind(new.player.id())
        .bind(new.text)
        .bind(search::stored(new.text))
        .bind(new.source)
        .bind(new.author)
        .bind(new.turn)
        .bind(new.is_pinned)
        .bind(is_now)
        .bind(game_time)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    row.map(|row| row.read("id")).transpose()
}

/// Writes one memory for each NPC that depends on the owner now, at the campaign's present game time and not pinned. Of `new`, the campaign, the
/// player, the text, the author and the turn count. Takes one statement, so either all are written or none.
///
/// # Errors
/// Those of the database.
pub async fn broadcast(tx: &TenantTx, owner: Uuid, new: &NewMemory<'_>) -> Result<(Uuid, Vec<Uuid>)> {
    let id = clock::id();
    let sql = format!(
        "INSERT INTO memory (tenant_id, id, campaign_id, holder_type, holder_id, subject_id, text, folded_text, source, author, \
                             turn_id, broadcast_id, game_time) \
         SELECT $1, uuid7(), $3, 'npc', o.npc_id, $4, $5, $6, 'broadcast', $7, $8, $9, {} \
         FROM npc_owner o WHERE o.tenant_id = $1 AND o.owner_id = $2 ORDER BY o.npc_id RETURNING holder_id",
        time_now()
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(owner)
        .bind(new.campaign)
        .bind(new.player.id())
        .bind(new.text)
        .bind(search::stored(new.text))
        .bind(new.author)
        .bind(new.turn)
        .bind(id)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    Ok((id, rows.iter().map(|row| row.read("holder_id")).collect::<Result<_>>()?))
}

/// Counting memories stops here. A larger number would not matter to anybody.
pub const COUNTED_MAX: u64 = 1000;

/// How many memories an actor has or is the subject of, up to [`COUNTED_MAX`] and one. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn of_actor(tx: &TenantTx, actor: Uuid) -> Result<u64> {
    let row = sqlx::query(
        "SELECT count(*) AS n FROM ( \
             (SELECT FROM memory WHERE tenant_id = $1 AND holder_id = $2 LIMIT $3) UNION ALL \
             (SELECT FROM memory WHERE tenant_id = $1 AND subject_id = $2 AND holder_id <> $2 LIMIT $3) LIMIT $3) counted",
    )
    .bind(tx.tenant())
    .bind(actor)
    .bind(i64::try_from(COUNTED_MAX + 1).unwrap_or(i64::MAX))
    .fetch_one(&mut *tx.connection().await)
    .await?;
    Ok(row.read::<i64>("n")?.unsigned_abs())
}

/// How many NPCs a broadcast of this owner would reach. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn dependents(tx: &TenantTx, owner: Uuid) -> Result<u64> {
    let row = sqlx::query("SELECT count(*) AS n FROM npc_owner WHERE tenant_id = $1 AND owner_id = $2")
        .bind(tx.tenant())
        .bind(owner)
        .fetch_one(&mut *tx.connection().await)
        .await?;
    Ok(row.read::<i64>("n")?.unsigned_abs())
}

/// Deletes every memory of a broadcast.
///
/// # Errors
/// `not_found` if it does not exist, or belongs to another campaign.
pub async fn retract(tx: &TenantTx, campaign: Uuid, broadcast: Uuid) -> Result<u64> {
    let done = sqlx::query("DELETE FROM memory WHERE tenant_id = $1 AND campaign_id = $2 AND broadcast_id = $3")
        .bind(tx.tenant())
        .bind(campaign)
        .bind(broadcast)
        .execute(&mut *tx.connection().await)
        .await?;
    if done.rows_affected() == 0 { Err(Error::not_found("broadcast")) } else { Ok(done.rows_affected()) }
}

/// The text of a broadcast, and how many NPCs remember it.
///
/// # Errors
/// `not_found`.
pub async fn broadcast_told(tx: &TenantTx, campaign: Uuid, broadcast: Uuid) -> Result<(String, i64)> {
    let row = sqlx::query(
        "SELECT (array_agg(text ORDER BY version, seq))[1] AS text, count(*) AS many FROM memory \
         WHERE tenant_id = $1 AND campaign_id = $2 AND broadcast_id = $3",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(broadcast)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    let text: Option<String> = row.read("text")?;
    Ok((text.ok_or_else(|| Error::not_found("broadcast"))?, row.read("many")?))
}

/// Finds a memory. With `player`, only if it is about that character.
///
/// # Errors
/// `not_found`.
pub async fn find(tx: &TenantTx, campaign: Uuid, id: Uuid, player: Option<Uuid>) -> Result<MemoryView> {
    let sql = format!(
        "{SELECT} WHERE m.tenant_id = $1 AND m.campaign_id = $2 AND m.id = $3 AND ($4::uuid IS NULL OR m.subject_id = $4)"
    );
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(id)
        .bind(player)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    MemoryView::of(&row.ok_or_else(|| Error::not_found("memory"))?)
}

/// Memories by their ids, in no particular order. Those that are gone are left out. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn of_ids(tx: &TenantTx, campaign: Uuid, ids: &[Uuid]) -> Result<Vec<MemoryView>> {
    let sql = format!("{SELECT} WHERE m.tenant_id = $1 AND m.campaign_id = $2 AND m.id = ANY ($3)");
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(ids)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    Ok(stored::each(&rows, MemoryView::of))
}

/// Those of the given memories that still exist. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn existing(tx: &TenantTx, campaign: Uuid, ids: &[Uuid]) -> Result<Vec<Uuid>> {
    let rows = sqlx::query("SELECT id FROM memory WHERE tenant_id = $1 AND campaign_id = $2 AND id = ANY ($3)")
        .bind(tx.tenant())
        .bind(campaign)
        .bind(ids)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    rows.iter().map(|row| row.read("id")).collect()
}

/// Locks a memory and checks its version. Takes two statements.
///
/// # Errors
/// `not_found`, `precondition_failed`.
pub async fn hold(tx: &TenantTx, campaign: Uuid, id: Uuid, expected: &Expected) -> Result<MemoryView> {
    sqlx::query("SELECT 1 FROM memory WHERE tenant_id = $1 AND campaign_id = $2 AND id = $3 FOR NO KEY UPDATE")
        .bind(tx.tenant())
        .bind(campaign)
        .bind(id)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    let view = find(tx, campaign, id, None).await?;
    expected.check(view.version)?;
    Ok(view)
}

/// Deletes a memory that the transaction has locked. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn remove(tx: &TenantTx, id: Uuid) -> Result<()> {
    sqlx::query("DELETE FROM memory WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(id)
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}

/// The kind and id of an NPC or owner, by id or slug. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn holder(tx: &TenantTx, campaign: Uuid, name: &str) -> Result<Option<(String, Uuid)>> {
    let row = sqlx::query(
        "SELECT kind, actor_id FROM actor_slug WHERE tenant_id = $1 AND campaign_id = $2 AND kind IN ('npc', 'owner') \
         AND (actor_id = $3 OR slug = $4)",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(Uuid::try_parse(name).ok())
    .bind(name)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map(|row| Ok((row.read("kind")?, row.read("actor_id")?))).transpose()
}
