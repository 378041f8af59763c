//! API keys: `tk_<8 characters>_<43 characters>`. Only a hash of each is stored.
//!
//! A key's record is read through a definer function, because the tenant is not known yet. It is cached for half a
//! second, so a revocation takes effect within a second. The secret part is compared in constant time.

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
use crate::tenants::Tenant;
use base::{
    clock,
    error::{Error, Result},
    stored::Columns,
};
use db::{
    pool::Pool,
    retry::{self, BRIEF},
    tenancy::{self, Actor, TenantTx},
};

const STANDS: &str = "SELECT token_stands($1, $2, $3, $4, $5) AS stands";
const END_VISIT: &str = "SELECT end_visit($1, $2, $3, $4)";

/// How long a cached record is used.
pub const FRESH: Duration = Duration::from_millis(500);
const RECORDS_MAX: u64 = 10_000;

/// The stored record of a key, with the current state of its tenant.
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

/// A new key: its prefix, its hash, and the whole key, which is shown once.
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

    /// A key that an operator chose, if it has the right form.
    #[must_use]
    pub fn of(key: &str) -> Option<Self> {
        let prefix = prefix_of(key)?.to_owned();
        Some(Self { prefix, key: key.to_owned(), hash: hash(key) })
    }
}

/// The prefix of a text that has the form of a key.
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

/// The cached records of keys.
pub struct Keys {
    pool: Pool,
    records: Cache<String, Option<Arc<KeyRecord>>>,
    /// Whether the character and the visit of a token still exist.
    standing: Cache<Narrowing, bool>,
}

/// What a token depends on besides its key: the tenant's character, and the visit to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Narrowing {
    pub tenant: Uuid,
    pub player: Option<Uuid>,
    pub visit: Option<Uuid>,
    pub link: Option<Uuid>,
}

impl Narrowing {
    fn of(caller: &Caller) -> Self {
        Self { tenant: caller.tenant_id(), player: caller.player, visit: caller.visit, link: caller.link }
    }
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
        // This future is large and every request awaits it. Boxing keeps it out of their own futures.
        Box::pin(loading).await.map_err(|shared: Arc<Error>| shared.for_another())
    }

    /// Whether a caller's key or token is still valid, as of half a second ago. For work that continues long after its
    /// request began.
    ///
    /// # Errors
    /// `unavailable` when the database cannot be asked.
    pub async fn is_live(&self, caller: &Caller) -> Result<bool> {
        if caller.token_until.is_some_and(|until| until <= clock::now().unix_timestamp()) {
            return Ok(false);
        }
        Ok(self.record(&caller.key_prefix).await?.is_some_and(|record| record.is_live())
            && self.stands(Narrowing::of(caller)).await?)
    }

    /// Whether a token's character still exists, its visit has not ended and the visit's link works, as of half a second ago.
    ///
    /// # Errors
    /// `unavailable` when the database cannot be asked.
    pub(crate) async fn stands(&self, narrowing: Narrowing) -> Result<bool> {
        let Narrowing { tenant, player, visit, link } = narrowing;
        if player.is_none() && visit.is_none() {
            return Ok(true);
        }
        if let Some(known) = self.standing.get(&narrowing).await {
            return Ok(known);
        }
        let ask = async {
            let actor = Actor::system(tenant);
            let asked = tenancy::call(&self.pool, &actor, STANDS, |q| q.bind(player).bind(visit).bind(link)).await?;
            asked.read::<bool>("stands")
        };
        let asking = self.standing.try_get_with(narrowing, ask);
        Box::pin(asking).await.map_err(|shared: Arc<Error>| shared.for_another())
    }

    /// Ends a visit: at once on this server, within half a second on others. `until` is when it would have ended
    /// anyway.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn end_visit(&self, caller: &Caller, visit: Uuid, until: OffsetDateTime) -> Result<()> {
        tenancy::call(&self.pool, &caller.actor(), END_VISIT, |q| q.bind(visit).bind(until)).await?;
        self.standing.invalidate_all();
        Ok(())
    }

    /// Empties the caches, so that this server sees a change at once. Other replicas see it when their records expire.
    pub fn forget(&self) {
        self.records.invalidate_all();
        self.standing.invalidate_all();
    }

    async fn ask(&self, prefix: &str) -> Result<Option<PgRow>> {
        let query = sqlx::query("SELECT * FROM auth_key($1)").bind(prefix);
        Ok(query.fetch_optional(&mut *self.pool.acquire().await?).await?)
    }

    async fn load(&self, prefix: &str) -> Result<Option<Arc<KeyRecord>>> {
        let row = retry::repeat(BRIEF, async || self.ask(prefix).await).await?;
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

/// Whether a caller's key and link are still valid, according to the database.
///
/// # Errors
/// Those of the database.
pub async fn lives(tx: &TenantTx, caller: &Caller) -> Result<bool> {
    let row = sqlx::query(
        "SELECT revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) AND ($3::uuid IS NULL OR EXISTS ( \
             SELECT FROM player_link l WHERE l.tenant_id = $1 AND l.id = $3 AND l.revoked_at IS NULL \
               AND (l.expires_at IS NULL OR l.expires_at > now()))) AS lives \
         FROM api_key WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(caller.key)
    .bind(caller.link)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map_or(Ok(false), |row| row.read("lives"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_the_letters_of_base64_and_no_others() {
        let key = |last: &str| format!("tk_abcdefgh_{}{last}", &"aZ09-_".repeat(7));
        for good in ["_", "-", "z", "7"] {
            assert_eq!(prefix_of(&key(good)), Some("abcdefgh"), "{good}");
        }
        for bad in ["!", "+", "/", "=", ".", " ", "", "aa"] {
            assert_eq!(prefix_of(&key(bad)), None, "{bad}");
        }
    }
}
