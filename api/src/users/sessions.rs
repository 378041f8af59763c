//! Sessions: who is signed in to the editor, as rows of the database, so that every replica knows them and any can end them.
//!
//! A browser's cookie holds 256 random bits; the database knows their hash alone. A session ends after twelve hours without a
//! request, and after a week in any case. Signing in gives a new secret, so that one planted before is worth nothing.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use rand::Rng;
use sha2::{Digest, Sha256};
use sqlx::postgres::PgRow;
use subtle::ConstantTimeEq;
use time::OffsetDateTime;
use uuid::Uuid;

use super::Role;
use crate::{
    error::{Error, Result},
    pool::Pool,
    stored::Columns,
    tenants::Tenant,
};

/// Without a request for so long, a session ends.
pub const IDLE_SECONDS: i32 = 12 * 3600;
/// It ends after this time in any case.
pub const SESSION_SECONDS: i32 = 7 * 24 * 3600;

/// What a browser holds, before and while somebody is signed in.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// 256 random bits.
    #[must_use]
    pub fn generate() -> Self {
        let mut bytes = [0u8; 32];
        rand::rng().fill_bytes(&mut bytes);
        Self(BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }

    /// What a cookie holds, if it has the form of a secret.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == 43 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        fits.then(|| Self(text.to_owned()))
    }

    /// For the cookie alone.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub(super) fn hash(&self) -> Vec<u8> {
        Sha256::digest(self.0.as_bytes()).to_vec()
    }

    /// What a form of this browser's has to send along: another site cannot read it, and it does not give the secret away. It
    /// reads otherwise each time, behind random bits that stand before it, so that the length of a compressed page tells nothing
    /// of it.
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
        Sha256::new().chain_update(b"tavernkeep form\0").chain_update(self.0.as_bytes()).finalize().to_vec()
    }

    /// Whether a form's token is this browser's.
    #[must_use]
    pub fn made(&self, form_token: &str) -> bool {
        let Ok(token) = BASE64_URL_SAFE_NO_PAD.decode(form_token) else { return false };
        let Some((mask, masked)) = token.split_at_checked(32) else { return false };
        let hash: Vec<u8> = mask.iter().zip(masked).map(|(bit, byte)| bit ^ byte).collect();
        masked.len() == 32 && bool::from(hash.ct_eq(&self.form_hash()))
    }
}

/// Who is signed in.
#[derive(Clone, Debug)]
pub struct User {
    pub id: Uuid,
    pub email: String,
    pub name: String,
    /// To how many tenants they belong.
    pub tenants: i64,
    pub has_second_factor: bool,
    /// Where they are, and as what; none if they belong nowhere any more.
    pub place: Option<Place>,
}

/// A tenant as somebody who belongs to it.
#[derive(Clone, Debug)]
pub struct Place {
    pub tenant: Arc<Tenant>,
    pub tenant_name: String,
    pub role: Role,
}

/// A tenant that somebody may go to.
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

/// An account as signing in sees it.
pub struct Account {
    pub user: Uuid,
    pub password_hash: String,
    pub has_second_factor: bool,
}

/// The account of a folded address. One round trip.
///
/// # Errors
/// Those of the database.
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

/// Begins a session, in place of what the browser held before; none if `password_hash`, which was verified, is no longer the
/// user's, or if they have a second factor by now.
///
/// # Errors
/// Those of the database.
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

/// Who holds a session, if it lives. One round trip.
///
/// # Errors
/// Those of the database.
pub async fn user(pool: &Pool, secret: &Secret) -> Result<Option<User>> {
    let row = sqlx::query("SELECT * FROM session_of($1, $2)")
        .bind(secret.hash())
        .bind(IDLE_SECONDS)
        .fetch_optional(&mut *pool.acquire().await?)
        .await?;
    row.as_ref().map(User::of).transpose()
}

/// Where the holder of a session belongs.
///
/// # Errors
/// Those of the database.
pub async fn choices(pool: &Pool, secret: &Secret) -> Result<Vec<Choice>> {
    let rows = sqlx::query("SELECT * FROM session_tenants($1)")
        .bind(secret.hash())
        .fetch_all(&mut *pool.acquire().await?)
        .await?;
    rows.iter()
        .map(|r| Ok(Choice { tenant: r.read("tenant_id")?, name: r.read("name")?, role: r.read("role")? }))
        .collect()
}

/// Goes to another tenant.
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

/// Ends a session, or all of its user.
///
/// # Errors
/// Those of the database.
pub async fn end(pool: &Pool, secret: &Secret, everywhere: bool) -> Result<()> {
    sqlx::query("SELECT session_end($1, $2)")
        .bind(secret.hash())
        .bind(everywhere)
        .execute(&mut *pool.acquire().await?)
        .await?;
    Ok(())
}

/// Where somebody is signed in.
pub struct SignedIn {
    /// What [`end_named`] takes.
    pub name: String,
    pub began_at: OffsetDateTime,
    pub seen_at: OffsetDateTime,
    /// Whether it is the session that asks.
    pub is_this: bool,
}

/// The sessions of whoever holds this one, itself first. One round trip.
///
/// # Errors
/// Those of the database.
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

/// Ends one of the sessions of whoever holds this one.
///
/// # Errors
/// `not_found` if they have none of this name.
pub async fn end_named(pool: &Pool, secret: &Secret, name: &str) -> Result<()> {
    let row = sqlx::query("SELECT session_end_named($1, $2) AS done")
        .bind(secret.hash())
        .bind(name)
        .fetch_one(&mut *pool.acquire().await?)
        .await?;
    if row.read("done")? { Ok(()) } else { Err(Error::not_found("session")) }
}

/// The hash of the own password.
///
/// # Errors
/// Those of the database.
pub async fn own_password(pool: &Pool, secret: &Secret) -> Result<Option<String>> {
    let row = sqlx::query("SELECT session_password($1) AS hash")
        .bind(secret.hash())
        .fetch_one(&mut *pool.acquire().await?)
        .await?;
    row.read("hash")
}

/// Sets the own password; every other session of the user ends.
///
/// # Errors
/// Those of the database.
pub async fn set_own_password(pool: &Pool, secret: &Secret, hash: &str) -> Result<()> {
    sqlx::query("SELECT session_set_password($1, $2)")
        .bind(secret.hash())
        .bind(hash)
        .execute(&mut *pool.acquire().await?)
        .await?;
    Ok(())
}
