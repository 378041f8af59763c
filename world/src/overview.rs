//! What a campaign's overview shows: how much there is, who is where, what was said last, and what needs a person.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::messages::visible::{VisibleMessage, Which, reader_of, visible_messages};
use base::{
    error::Result,
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::{caller::Caller, http::resource::scope_key};

/// Counting stops here. Nobody needs larger numbers exactly, and counting takes time.
pub const COUNTED_MAX: i64 = 10_000;

/// What is counted: the label, the path in the editor, the table.
const KINDS: [(&str, &str, &str); 8] = [
    ("Lore", "lore", "lore"),
    ("Memories", "memories", "memory"),
    ("NPCs", "npcs", "npc"),
    ("Owners", "owners", "owner"),
    ("Characters", "characters", "character"),
    ("Scenes", "scenes", "scene"),
    ("Encounters", "encounters", "encounter"),
    ("Turns", "turns", "turn"),
];

/// How many rows of each kind the caller may see, up to [`COUNTED_MAX`] and one. Takes one round trip.
///
/// # Errors
/// Those of the database.
pub async fn counts(tx: &TenantTx, caller: &Caller, campaign: Uuid) -> Result<Vec<(&'static str, &'static str, i64)>> {
    let counts = KINDS.map(|(.., table)| {
        let and = if table == "lore" && !caller.sees_secrets() { "AND NOT secret" } else { "" };
        format!(
            "(SELECT count(*) FROM (SELECT 1 FROM {table} WHERE tenant_id = $1 AND campaign_id = $2 {and} \
              LIMIT {COUNTED_MAX} + 1) AS c)"
        )
    });
    let row = sqlx::query(AssertSqlSafe(format!("SELECT ARRAY[{}] AS counts", counts.join(", "))))
        .bind(tx.tenant())
        .bind(campaign)
        .fetch_one(&mut *tx.connection().await)
        .await?;
    let counts: Vec<i64> = row.read("counts")?;
    Ok(KINDS.iter().zip(counts).map(|((label, path, _), n)| (*label, *path, n)).collect())
}

/// The most residents of each kind that are looked at for [`places`], and the most places that it returns.
const RESIDENTS_MAX: i64 = 60;
const PLACES_MAX: usize = 8;
/// The most messages of [`last_words`].
const WORDS_MAX: i64 = 6;
/// How many of the newest turns [`attention`] and [`was_played`] look at.
const TURNS_MAX: i64 = 200;
/// The most drafts that [`attention`] names.
const DRAFTS_MAX: i64 = 4;

/// A place, and who is there.
pub struct Whereabouts {
    /// As it is written for the first of them.
    pub location: String,
    pub people: Vec<Resident>,
}

/// A character or an NPC.
pub struct Resident {
    /// The path of its kind in the editor: `characters` or `npcs`.
    pub kind: String,
    pub slug: String,
    pub name: String,
}

/// Who is where, places with characters first, and whether others are somewhere, too. Takes one round trip.
///
/// # Errors
/// Those of the database.
pub async fn places(tx: &TenantTx, campaign: Uuid) -> Result<(Vec<Whereabouts>, bool)> {
    let of = |kind: &str, table: &str| {
        format!(
            "(SELECT '{kind}' AS kind, slug, name, location, id FROM {table} WHERE tenant_id = $1 AND campaign_id = $2 \
              AND location <> '' ORDER BY id LIMIT {RESIDENTS_MAX})"
        )
    };
    let rows = sqlx::query(AssertSqlSafe(format!(
        "{} UNION ALL {} ORDER BY kind, id",
        of("characters", "character"),
        of("npcs", "npc")
    )))
    .bind(tx.tenant())
    .bind(campaign)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let resident = |row: &sqlx::postgres::PgRow| {
        let person = Resident { kind: row.read("kind")?, slug: row.read("slug")?, name: row.read("name")? };
        Ok((row.read::<String>("location")?, person))
    };
    let mut places: Vec<(String, Whereabouts)> = Vec::new();
    for (location, person) in stored::each(&rows, resident) {
        let key = scope_key(&location);
        match places.iter_mut().find(|(known, _)| *known == key) {
            Some((_, place)) => place.people.push(person),
            None => places.push((key, Whereabouts { location, people: vec![person] })),
        }
    }
    let residents_max = usize::try_from(RESIDENTS_MAX).unwrap_or(usize::MAX);
    let of = |kind| places.iter().flat_map(|(_, place)| &place.people).filter(|person| person.kind == kind).count();
    let is_cut = places.len() > PLACES_MAX || of("characters") == residents_max || of("npcs") == residents_max;
    Ok((places.into_iter().map(|(_, place)| place).take(PLACES_MAX).collect(), is_cut))
}

/// What was said last, oldest first, as the caller may read it. Takes one round trip.
///
/// # Errors
/// Those of the database.
pub async fn last_words(tx: &TenantTx, caller: &Caller, campaign: Uuid) -> Result<Vec<VisibleMessage>> {
    visible_messages(tx, campaign, reader_of(caller), Which::Newest(WORDS_MAX)).await
}

/// What waits for a person.
pub struct Attention {
    /// Reactions that failed too often.
    pub dead_reactions: i64,
    /// Failed turns of the last day, among the newest [`TURNS_MAX`].
    pub failed_turns: i64,
    /// NPCs and owners with a draft that nobody has accepted yet.
    pub drafts: Vec<Resident>,
}

/// What waits for a person. Takes two round trips.
///
/// # Errors
/// Those of the database.
pub async fn attention(tx: &TenantTx, campaign: Uuid) -> Result<Attention> {
    let row = sqlx::query(AssertSqlSafe(format!(
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM reaction WHERE tenant_id = $1 AND campaign_id = $2 AND state = 'dead' \
                   LIMIT {COUNTED_MAX} + 1) AS r) AS dead, \
           (SELECT count(*) FROM (SELECT status, created_at FROM turn WHERE tenant_id = $1 AND campaign_id = $2 \
                   ORDER BY seq DESC LIMIT {TURNS_MAX}) AS t WHERE status = 'failed' AND created_at > now() - interval '1 day') AS failed"
    )))
    .bind(tx.tenant())
    .bind(campaign)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    let of = |kind: &str, table: &str| {
        format!(
            "(SELECT '{kind}' AS kind, slug, name FROM {table} WHERE tenant_id = $1 AND campaign_id = $2 \
              AND pending_instructions IS NOT NULL ORDER BY id LIMIT {DRAFTS_MAX})"
        )
    };
    let rows = sqlx::query(AssertSqlSafe(format!("{} UNION ALL {}", of("npcs", "npc"), of("owners", "owner"))))
        .bind(tx.tenant())
        .bind(campaign)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let resident = |row: &sqlx::postgres::PgRow| {
        Ok(Resident { kind: row.read("kind")?, slug: row.read("slug")?, name: row.read("name")? })
    };
    Ok(Attention {
        dead_reactions: row.read("dead")?,
        failed_turns: row.read("failed")?,
        drafts: stored::each(&rows, resident),
    })
}

/// Whether one of the newest [`TURNS_MAX`] turns was a program's or a player's: one that no user of the editor asked for. One round trip.
///
/// # Errors
/// Those of the database.
pub async fn was_played(tx: &TenantTx, campaign: Uuid) -> Result<bool> {
    // A turn names a user or a key in the same column.
    let sql = format!(
        "SELECT EXISTS (SELECT FROM (SELECT key_id FROM turn WHERE tenant_id = $1 AND campaign_id = $2 \
           ORDER BY seq DESC LIMIT {TURNS_MAX}) AS t JOIN api_key k ON k.tenant_id = $1 AND k.id = t.key_id) AS played"
    );
    let found =
        sqlx::query(AssertSqlSafe(sql)).bind(tx.tenant()).bind(campaign).fetch_one(&mut *tx.connection().await).await?;
    found.read("played")
}
