//! The seeds of fair streams: taking counters, listing and revealing.
//!
//! A stream has one seed in use. Its counter is the position of its last roll and only rises. The server seed of a seed
//! in use is never shown; only [`SeedView::of`] decides that.

use rand::RngExt;
use rules::dice::{FairSeed, commitment};
use serde::Serialize;
use sqlx::{AssertSqlSafe, postgres::PgRow};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    ahead::{self, Ahead, Claim},
    spent::{self, Looked},
    taken::Taken,
};
use base::{
    clock,
    error::{Code, Error, Result},
    hex::hex,
    stored::Columns,
};
use db::tenancy::{self, Call, TenantTx};
use edge::http::paging::{Items, NoFilter, Page, contains, pattern};

/// A seed of a fair stream, as clients see it.
#[derive(Debug, Serialize, ToSchema)]
pub struct SeedView {
    pub id: Uuid,
    /// The SHA-256 of the server seed in lower-case hexadecimal. It is shown from the beginning.
    pub commitment: String,
    /// Chosen by the players, or random.
    pub client_seed: String,
    /// The position of the last roll; 0 before the first.
    pub counter: i64,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When the seed was rotated; null while it is in use.
    #[serde(with = "time::serde::rfc3339::option")]
    pub revealed_at: Option<OffsetDateTime>,
    /// 32 bytes in lower-case hexadecimal. Present only once the seed is revealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_seed: Option<String>,
}

impl SeedView {
    fn of(row: &PgRow) -> Result<Self> {
        let server_seed = secret(row)?;
        let revealed_at: Option<OffsetDateTime> = row.read("revealed_at")?;
        Ok(Self {
            id: row.read("id")?,
            commitment: commitment(&server_seed),
            client_seed: row.read("client_seed")?,
            counter: row.read("counter")?,
            created_at: row.read("created_at")?,
            revealed_at,
            server_seed: revealed_at.map(|_| hex(&server_seed)),
        })
    }
}

/// A revealed seed.
pub struct Revealed {
    pub server_seed: [u8; 32],
    pub client_seed: String,
    /// The position of the last roll.
    pub counter: i64,
}

const TAKE: &str = "SELECT * FROM take_dice($1, $2, $3, $4, $5, $6, $7)";

const COLUMNS: &str = "id, server_seed, client_seed, counter, created_at, revealed_at";

fn secret(row: &PgRow) -> Result<[u8; 32]> {
    let bytes: Vec<u8> = row.read("server_seed")?;
    bytes.as_slice().try_into().map_err(Error::internal)
}

fn fresh_secret() -> [u8; 32] {
    let mut fresh = [0; 32];
    rand::rng().fill(&mut fresh);
    fresh
}

fn fresh_client_seed() -> String {
    rand::rng().sample_iter(rand::distr::Alphanumeric).take(16).map(char::from).collect()
}

/// How to take counters.
#[derive(Clone, Copy)]
pub enum Taking<'a> {
    /// In a transaction with other work. If the transaction fails, the counters are spent all the same.
    Within(&'a TenantTx),
    /// Before a transaction begins.
    Ahead(&'a Ahead<'a>),
}

impl Taking<'_> {
    fn tenant(self) -> Uuid {
        match self {
            Self::Within(tx) => tx.tenant(),
            Self::Ahead(ahead) => ahead.actor.tenant,
        }
    }
}

/// Takes the next `rolls` counters of a campaign's stream. Creates a seed if the stream was never used. One round trip, or
/// none.
///
/// # Errors
/// Database errors.
pub async fn take(taking: Taking<'_>, campaign: Option<Uuid>, rolls: u32) -> Result<Taken> {
    if let Taking::Ahead(ahead) = taking
        && let Some(taken) = ahead.hope(campaign, rolls)
    {
        return Ok(taken);
    }
    let mut row = raise(taking, campaign, i64::from(rolls)).await?;
    let (id, mut last): (Uuid, i64) = (row.read("id")?, row.read("counter")?);
    if let Some(looked) = spent::floor(id).filter(|looked| *looked > last - i64::from(rolls)) {
        row = raise(taking, campaign, i64::from(rolls) + (looked - last).max(0)).await?;
        last = row.read("counter")?;
    }
    let seed = FairSeed::new(&secret(&row)?, row.read("client_seed")?);
    let taken = Taken { id, seed, first: last - i64::from(rolls) + 1, last };
    if let Taking::Within(tx) = taking {
        tx.bind_fate(Box::new(Looked::new(tx.pool(), tx.tenant(), id, last)));
    }
    ahead::stands((taking.tenant(), campaign), &taken);
    Ok(taken)
}

async fn raise(taking: Taking<'_>, campaign: Option<Uuid>, by: i64) -> Result<PgRow> {
    let bind = |q: Call<'static>| {
        q.bind(clock::id()).bind(campaign).bind(Vec::from(fresh_secret())).bind(fresh_client_seed()).bind(by)
    };
    match taking {
        Taking::Within(tx) => {
            let q = sqlx::query(TAKE).bind(tx.tenant()).bind(None::<String>);
            Ok(bind(q).fetch_one(&mut *tx.connection().await).await?)
        }
        // If the answer was lost, the counters may have been taken, but nobody uses them. So retrying is safe.
        Taking::Ahead(ahead) => {
            tenancy::call(ahead.pool, ahead.actor, TAKE, bind).await.map_err(|error| error.settled())
        }
    }
}

/// Takes counters that are already in use.
///
/// # Errors
/// A transient conflict ([`Error::is_transient`]) if the stream's counter has moved on; database errors.
pub async fn claim(tx: &TenantTx, claim: &Claim) -> Result<()> {
    let q = sqlx::query("SELECT claim_dice($1, $2, $3, $4)").bind(tx.tenant());
    bind_claim(q, Some(claim)).execute(&mut *tx.connection().await).await?;
    Ok(())
}

/// Binds a claim to the parameters that `claim_dice` takes after the tenant, for use in other statements.
pub fn bind_claim<'q>(q: Call<'q>, claim: Option<&Claim>) -> Call<'q> {
    q.bind(claim.map(|c| c.seed)).bind(claim.map(|c| c.before)).bind(claim.map(|c| c.after))
}

/// Whether a campaign's stream, or the tenant's own, has a seed in use, so that there is a commitment to show.
///
/// # Errors
/// Database errors.
pub async fn in_use(tx: &TenantTx, campaign: Option<Uuid>) -> Result<bool> {
    let found = sqlx::query(
        "SELECT 1 FROM dice_seed WHERE tenant_id = $1 AND campaign_id IS NOT DISTINCT FROM $2 AND revealed_at IS NULL",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    Ok(found.is_some())
}

/// Begins a stream unless it has begun.
///
/// # Errors
/// Database errors.
pub async fn begin(tx: &TenantTx, campaign: Option<Uuid>, client_seed: Option<&str>) -> Result<Option<SeedView>> {
    let sql = format!(
        "INSERT INTO dice_seed (tenant_id, id, campaign_id, server_seed, client_seed) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (tenant_id, campaign_id) WHERE revealed_at IS NULL DO NOTHING RETURNING {COLUMNS}"
    );
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(clock::id())
        .bind(campaign)
        .bind(&fresh_secret()[..])
        .bind(client_seed.map_or_else(fresh_client_seed, ToOwned::to_owned))
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    row.as_ref().map(SeedView::of).transpose()
}

/// Reveals the seed in use, if there is one, and begins another.
///
/// # Errors
/// `conflict` if somebody else rotated the seed at the same moment.
pub async fn rotate(
    tx: &TenantTx,
    campaign: Option<Uuid>,
    client_seed: Option<&str>,
) -> Result<(Option<SeedView>, SeedView)> {
    let sql = format!(
        "UPDATE dice_seed SET revealed_at = now() \
         WHERE tenant_id = $1 AND campaign_id IS NOT DISTINCT FROM $2 AND revealed_at IS NULL RETURNING {COLUMNS}"
    );
    let old = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    let old = old.as_ref().map(SeedView::of).transpose()?;
    let new = begin(tx, campaign, client_seed).await?;
    let new = new.ok_or_else(|| Error::new(Code::Conflict, "Somebody else rotated the seed at the same moment."))?;
    Ok((old, new))
}

/// A page of a stream's seeds.
///
/// # Errors
/// `bad_request` for an order other than by creation.
pub async fn list(tx: &TenantTx, campaign: Option<Uuid>, page: &Page<NoFilter>) -> Result<Items<SeedView>> {
    let (sign, order) = if page.by_creation()? { ("<", "DESC") } else { (">", "ASC") };
    let sql = format!(
        "SELECT {COLUMNS} FROM dice_seed WHERE tenant_id = $1 AND campaign_id IS NOT DISTINCT FROM $2 \
           AND ($3::uuid IS NULL OR id {sign} $3) AND ($4::timestamptz IS NULL OR coalesce(revealed_at, created_at) >= $4) \
           AND {} ORDER BY id {order} LIMIT $6",
        contains(5, &["client_seed"])
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(page.after.as_ref().map(|a| a.id))
        .bind(page.updated_since)
        .bind(page.q.as_deref().map(pattern))
        .bind(i64::try_from(page.limit + 1).unwrap_or(201))
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let rows = rows.iter().map(SeedView::of).collect::<Result<Vec<_>>>()?;
    Ok(page.finish(rows, false, |seed| (seed.id, None)))
}

/// A revealed seed of the tenant; with `only`, of that campaign.
///
/// # Errors
/// `not_found`; `conflict` while it is in use.
pub async fn revealed(tx: &TenantTx, id: Uuid, only: Option<Uuid>) -> Result<Revealed> {
    let row = sqlx::query(
        "SELECT server_seed, client_seed, counter, revealed_at IS NOT NULL AS revealed FROM dice_seed \
         WHERE tenant_id = $1 AND id = $2 AND ($3::uuid IS NULL OR campaign_id = $3)",
    )
    .bind(tx.tenant())
    .bind(id)
    .bind(only)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("seed"))?;
    if !row.read::<bool>("revealed")? {
        let why = "This seed is still in use, so it is secret. Rotate it first, then verify its rolls.";
        return Err(Error::new(Code::Conflict, why));
    }
    Ok(Revealed { server_seed: secret(&row)?, client_seed: row.read("client_seed")?, counter: row.read("counter")? })
}
