//! Sessions: who is signed in to the editor. They are rows of the database, so that every replica knows them and can end them.
//!
//! A browser's cookie contains 256 random bits; the database has only their hash. A session ends after twelve hours
//! without a request, and after a week in any case. Signing in creates a new secret, so an attacker gains nothing from
//! planting one before.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use rand::Rng;
use sha2::{Digest, Sha256};
use sqlx::postgres::PgRow;
use subtle::ConstantTimeEq;
use time::OffsetDateTime;
use uuid::Uuid;

use super::Role;
pub use crate::caller::secret::Secret;
use crate::tenants::Tenant;
use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::pool::Pool;

/// A session ends after this time without a request.
pub const IDLE_SECONDS: i32 = 12 * 3600;
/// A session always ends after this time.
pub const SESSION_SECONDS: i32 = 7 * 24 * 3600;

impl Secret {
    /// The token that each form of this browser must send. Other sites cannot read it, and it does not reveal the
    /// secret. A random mask makes it different each time, so that the length of a compressed page reveals nothing
    /// about it.
    #[must_use]
    pub fn form_token(&self) -> String {
        let mut token = [0u8; 64];
        let (mask, masked) = token.split_at_mut(32);
        rand::rng().fill_bytes(mask);
        for ((out, bit), byte) in masked.iter_mut().zip(mask).zip(self.form_hash()) {
            *out = *bit ^ byte;
        }
        BASE64_URL_SAFE_NO_PAD.encode(token)
    }

    fn form_hash(&self) -> Vec<u8> {
        Sha256::new().chain_update(b"tavernkeep form\0").chain_update(self.reveal().as_bytes()).finalize().to_vec()
    }

    /// Whether a form's token belongs to this secret.
    #[must_use]
    pub fn matches_form_token(&self, form_token: &str) -> bool {
        let Ok(token) = BASE64_URL_SAFE_NO_PAD.decode(form_token) else { return false };
        let Some((mask, masked)) = token.split_at_checked(32) else { return false };
        let hash: Vec<u8> = mask.iter().zip(masked).map(|(bit, byte)| bit ^ byte).collect();
        masked.len() == 32 && bool::from(hash.ct_eq(&self.form_hash()))
    }
}

/// A signed-in user.
#[derive(Clone, Debug)]
pub struct User {
    pub id: Uuid,
    pub email: String,
    pub name: String,
    /// How many tenants they belong to.
    pub tenants: i64,
    pub has_second_factor: bool,
    /// Their current tenant and role; None if they no longer belong to any tenant.
    pub place: Option<Place>,
}

/// A user's tenant and role.
#[derive(Clone, Debug)]
pub struct Place {
    pub tenant: Arc<Tenant>,
    pub tenant_name: String,
    pub role: Role,
}

/// A tenant that a user may switch to.
pub struct Choice {
    pub tenant: Uuid,
    pub name: String,
    pub role: String,
}

impl User {
    fn of(row: &PgRow) -> Result<Self> {
        let role: Option<String> = row.read("role")?;
        let place = match role.as_deref().and_then(Role::parse) {
            None => None,
            Some(role) => {
                Some(Place { tenant: Arc::new(Tenant::from_row(row)?), tenant_name: row.read("tenant_name")?, role })
            }
        };
        Ok(Self {
            id: row.read("user_id")?,
            email: row.read("email")?,
            name: row.read("name")?,
            tenants: row.read("tenants")?,
            has_second_factor: row.read("has_second_factor")?,
            place,
        })
    }
}

/// The data of an account that signing in needs.
pub struct Account {
    pub user: Uuid,
    pub password_hash: String,
    pub has_second_factor: bool,
}

/// The account of a folded address. One round trip.
///
/// # Errors
/// Database errors.
pub async fn account(pool: &Pool, folded: &str) -> Result<Option<Account>> {
    let row = sqlx::query("SELECT * FROM user_for_sign_in($1)")
        .bind(folded)
        .fetch_optional(&mut *pool.acquire().await?)
        .await?;
    row.map(|row| {
        Ok(Account {
            user: row.read("user_id")?,
            password_hash: row.read("password_hash")?,
            has_second_factor: row.read("has_second_factor")?,
        })
    })
    .transpose()
}

/// Begins a session and ends what the browser had before. None if the verified `password_hash` is no longer the user's,
/// or if they now have a second factor.
///
/// # Errors
/// Database errors.
pub async fn begin(pool: &Pool, user: Uuid, password_hash: &str, before: Option<&Secret>) -> Result<Option<Secret>> {
    let secret = Secret::generate();
    let row = sqlx::query("SELECT session_begin($1, $2, $3, $4, $5) AS has_begun")
        .bind(user)
        .bind(secret.hash())
        .bind(before.map(Secret::hash))
        .bind(SESSION_SECONDS)
        .bind(password_hash)
        .fetch_one(&mut *pool.acquire().await?)
        .await?;
    Ok(row.read::<bool>("has_begun")?.then_some(secret))
}

/// The user of a session that has not ended. One round trip.
///
/// # Errors
/// Database errors.
pub async fn user(pool: &Pool, secret: &Secret) -> Result<Option<User>> {
    read(pool, secret, true).await
}

/// The same for a page that is open without anybody doing anything, so that it does not keep the session from ending.
///
/// # Errors
/// Database errors.
pub async fn user_looking_on(pool: &Pool, secret: &Secret) -> Result<Option<User>> {
    read(pool, secret, false).await
}

async fn read(pool: &Pool, secret: &Secret, is_active: bool) -> Result<Option<User>> {
    let row = sqlx::query("SELECT * FROM session_of($1, $2, $3)")
        .bind(secret.hash())
        .bind(IDLE_SECONDS)
        .bind(is_active)
        .fetch_optional(&mut *pool.acquire().await?)
        .await?;
    row.as_ref().map(User::of).transpose()
}

/// The tenants of a session's user.
///
/// # Errors
/// Database errors.
pub async fn choices(pool: &Pool, secret: &Secret) -> Result<Vec<Choice>> {
    let rows = sqlx::query("SELECT * FROM session_tenants($1)")
        .bind(secret.hash())
        .fetch_all(&mut *pool.acquire().await?)
        .await?;
    rows.iter()
        .map(|r| Ok(Choice { tenant: r.read("tenant_id")?, name: r.read("name")?, role: r.read("role")? }))
        .collect()
}

/// Switches to another tenant.
///
/// # Errors
/// `not_found` if the user does not belong there.
pub async fn choose(pool: &Pool, secret: &Secret, tenant: Uuid) -> Result<()> {
    let row = sqlx::query("SELECT session_choose($1, $2) AS done")
        .bind(secret.hash())
        .bind(tenant)
        .fetch_one(&mut *pool.acquire().await?)
        .await?;
    if row.read("done")? { Ok(()) } else { Err(Error::not_found("tenant")) }
}

/// Ends a session, or all sessions of its user.
///
/// # Errors
/// Database errors.
pub async fn end(pool: &Pool, secret: &Secret, everywhere: bool) -> Result<()> {
    sqlx::query("SELECT session_end($1, $2)")
        .bind(secret.hash())
        .bind(everywhere)
        .execute(&mut *pool.acquire().await?)
        .await?;
    Ok(())
}

/// One of a user's sessions.
pub struct SignedIn {
    /// The name for [`end_named`].
    pub name: String,
    pub began_at: OffsetDateTime,
    pub seen_at: OffsetDateTime,
    /// Whether this is the session of the request.
    pub is_this: bool,
}

/// All sessions of this session's user, this one first. One round trip.
///
/// # Errors
/// Database errors.
pub async fn list(pool: &Pool, secret: &Secret) -> Result<Vec<SignedIn>> {
    let rows = sqlx::query("SELECT * FROM session_list($1, $2)")
        .bind(secret.hash())
        .bind(IDLE_SECONDS)
        .fetch_all(&mut *pool.acquire().await?)
        .await?;
    let session = |row: &PgRow| {
        Ok(SignedIn {
            name: row.read("name")?,
            began_at: row.read("began_at")?,
            seen_at: row.read("seen_at")?,
            is_this: row.read("is_this")?,
        })
    };
    rows.iter().map(session).collect()
}

/// Ends one of the sessions of this session's user.
///
/// # Errors
/// `not_found` if they have no session with this name.
pub async fn end_named(pool: &Pool, secret: &Secret, name: &str) -> Result<()> {
    let row = sqlx::query("SELECT session_end_named($1, $2) AS done")
        .bind(secret.hash())
        .bind(name)
        .fetch_one(&mut *pool.acquire().await?)
        .await?;
    if row.read("done")? { Ok(()) } else { Err(Error::not_found("session")) }
}

/// The hash of the user's own password.
///
/// # Errors
/// Database errors.
pub async fn own_password(pool: &Pool, secret: &Secret) -> Result<Option<String>> {
    let row = sqlx::query("SELECT session_password($1) AS hash")
        .bind(secret.hash())
        .fetch_one(&mut *pool.acquire().await?)
        .await?;
    row.read("hash")
}

/// Sets the user's own password. All other sessions of the user end.
///
/// # Errors
/// Database errors.
pub async fn set_own_password(pool: &Pool, secret: &Secret, hash: &str) -> Result<()> {
    sqlx::query("SELECT session_set_password($1, $2)")
        .bind(secret.hash())
        .bind(hash)
        .execute(&mut *pool.acquire().await?)
        .await?;
    Ok(())
}
