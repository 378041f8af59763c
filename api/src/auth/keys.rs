//! API keys: `tk_<8 characters>_<43 characters>`, of which only a hash is stored.
//!
//! A key's record is looked up through a definer function (nobody's tenant is known yet) and kept for half a second, so
//! that a revocation takes effect within one. The secret part is compared in constant time.

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use moka::future::Cache;
use rand::Rng;
use sha2::{Digest, Sha256};
use sqlx::postgres::PgRow;
use subtle::ConstantTimeEq;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Caller, Scope, Scopes};
use crate::{
    clock,
    error::{Error, Result},
    pool::Pool,
    retry::{BRIEF, Tries},
    stored::Columns,
    tenancy::{self, Actor, TenantTx},
    tenants::Tenant,
};

const STANDS: &str = "SELECT token_stands($1, $2, $3, $4) AS stands";
const END_VISIT: &str = "SELECT end_visit($1, $2, $3, $4)";

/// How long what is known of a key is taken for true.
pub const FRESH: Duration = Duration::from_millis(500);
const RECORDS_MAX: u64 = 10_000;

/// What is stored of a key, with its tenant as of now.
pub struct KeyRecord {
    pub id: Uuid,
    pub tenant: Arc<Tenant>,
    pub scopes: Scopes,
    hash: Vec<u8>,
    expires_at: Option<OffsetDateTime>,
    revoked_at: Option<OffsetDateTime>,
}

impl KeyRecord {
    /// Whether the key may be used now.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| at > clock::now())
    }

    /// Whether `key` is this key.
    #[must_use]
    pub fn is(&self, key: &str) -> bool {
        hash(key).ct_eq(&self.hash).into()
    }
}

/// A new key: its prefix and the whole, to be shown once.
pub struct NewKey {
    pub prefix: String,
    pub key: String,
    pub hash: Vec<u8>,
}

impl NewKey {
    /// A key of 256 random bits.
    #[must_use]
    pub fn generate() -> Self {
        const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
        let mut rng = rand::rng();
        let mut secret = [0u8; 32];
        rng.fill_bytes(&mut secret);
        let mut name = [0u8; 8];
        rng.fill_bytes(&mut name);
        let prefix: String = name.iter().map(|b| char::from(LETTERS[usize::from(*b) % LETTERS.len()])).collect();
        Self::of(&format!("tk_{prefix}_{}", BASE64_URL_SAFE_NO_PAD.encode(secret))).unwrap_or_else(Self::generate)
    }

    /// A key an operator chose, if it has the form of one.
    #[must_use]
    pub fn of(key: &str) -> Option<Self> {
        let prefix = prefix_of(key)?.to_owned();
        Some(Self { prefix, key: key.to_owned(), hash: hash(key) })
    }
}

/// The prefix of something that has the form of a key.
#[must_use]
pub fn prefix_of(key: &str) -> Option<&str> {
    let (prefix, secret) = key.strip_prefix("tk_")?.split_at_checked(8)?;
    let secret = secret.strip_prefix('_')?;
    let fits = prefix.bytes().all(|b| b.is_ascii_alphanumeric())
        && secret.len() == 43
        && secret.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    fits.then_some(prefix)
}

fn hash(key: &str) -> Vec<u8> {
    Sha256::digest(key.as_bytes()).to_vec()
}

/// The records of keys in use.
pub struct Keys {
    pool: Pool,
    records: Cache<String, Option<Arc<KeyRecord>>>,
    /// Whether what a token is narrowed to is still there.
    standing: Cache<Narrowing, bool>,
}

/// What a token hangs on beside its key: the tenant's character, and the visit to the table that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Narrowing {
    tenant: Uuid,
    player: Option<Uuid>,
    visit: Option<Uuid>,
}

impl Keys {
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self {
            pool,
            records: Cache::builder().max_capacity(RECORDS_MAX).time_to_live(FRESH).build(),
            standing: Cache::builder().max_capacity(RECORDS_MAX).time_to_live(FRESH).build(),
        }
    }

    /// The record of a prefix, at most half a second old.
    ///
    /// # Errors
    /// `unavailable` when the database cannot be asked.
    pub async fn record(&self, prefix: &str) -> Result<Option<Arc<KeyRecord>>> {
        if let Some(known) = self.records.get(prefix).await {
            return Ok(known);
        }
        let loading = self.records.try_get_with_by_ref(prefix, async { self.load(prefix).await });
        // Large, and waited for within every request: kept out of what each of them holds.
        Box::pin(loading).await.map_err(|shared: Arc<Error>| Error::new(shared.code, shared.detail.clone()))
    }

    /// Whether a caller's key or token lives, as of half a second ago: for what goes on long after its request was let in.
    ///
    /// # Errors
    /// `unavailable` when the database cannot be asked.
    pub async fn is_live(&self, caller: &Caller) -> Result<bool> {
        if caller.token_until.is_some_and(|until| until <= clock::now().unix_timestamp()) {
            return Ok(false);
        }
        Ok(self.record(&caller.key_prefix).await?.is_some_and(|record| record.is_live())
            && self.stands(caller.tenant_id(), caller.player, caller.visit).await?)
    }

    /// Whether the character that a token plays is still there, and the visit that it is has not ended, as of half a second ago.
    ///
    /// # Errors
    /// `unavailable` when the database cannot be asked.
    pub async fn stands(&self, tenant: Uuid, player: Option<Uuid>, visit: Option<Uuid>) -> Result<bool> {
        if player.is_none() && visit.is_none() {
            return Ok(true);
        }
        let narrowing = Narrowing { tenant, player, visit };
        if let Some(known) = self.standing.get(&narrowing).await {
            return Ok(known);
        }
        let ask = async {
            let actor = Actor::system(tenant);
            let asked = tenancy::call(&self.pool, &actor, STANDS, |q| q.bind(player).bind(visit)).await?;
            asked.read::<bool>("stands")
        };
        let asking = self.standing.try_get_with(narrowing, ask);
        Box::pin(asking).await.map_err(|shared: Arc<Error>| Error::new(shared.code, shared.detail.clone()))
    }

    /// Ends a visit, here at once and elsewhere within half a second. `until` is when it would have ended by itself.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn end_visit(&self, caller: &Caller, visit: Uuid, until: OffsetDateTime) -> Result<()> {
        tenancy::call(&self.pool, &caller.actor(), END_VISIT, |q| q.bind(visit).bind(until)).await?;
        self.standing.invalidate_all();
        Ok(())
    }

    /// Forgets all records, so that a change made here is seen here at once; other replicas see it as their records age.
    pub fn forget(&self) {
        self.records.invalidate_all();
        self.standing.invalidate_all();
    }

    async fn ask(&self, prefix: &str) -> Result<Option<PgRow>> {
        let query = sqlx::query("SELECT * FROM auth_key($1)").bind(prefix);
        Ok(query.fetch_optional(&mut *self.pool.acquire().await?).await?)
    }

    async fn load(&self, prefix: &str) -> Result<Option<Arc<KeyRecord>>> {
        let mut tries = Tries::with(BRIEF);
        let row = loop {
            match self.ask(prefix).await {
                Err(error) if tries.again(&error).await => {}
                asked => break asked?,
            }
        };
        let Some(row) = row else { return Ok(None) };
        let names: Vec<String> = row.read("scopes")?;
        Ok(Some(Arc::new(KeyRecord {
            id: row.read("key_id")?,
            scopes: names.iter().filter_map(|n| Scope::parse(n)).collect(),
            hash: row.read("hash")?,
            expires_at: row.read("expires_at")?,
            revoked_at: row.read("revoked_at")?,
            tenant: Arc::new(Tenant::from_row(&row)?),
        })))
    }
}

/// Whether a key still lives, asked of the database.
///
/// # Errors
/// Those of the database.
pub async fn lives(tx: &TenantTx, key: Uuid) -> Result<bool> {
    let row = sqlx::query(
        "SELECT revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) AS lives FROM api_key \
         WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(key)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map_or(Ok(false), |row| row.read("lives"))
}
