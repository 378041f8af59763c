//! The second factor: codes from an authenticator app (TOTP, RFC 6238), and recovery codes in case the app is lost.
//!
//! The server encrypts the app's secret before it stores it, and hashes recovery codes. A code works once; the database
//! decides that (`code_take`). Somebody who has only entered the password has half a session ([`Half`]).

use rand::Rng;
use sha2::{Digest, Sha256};
use totp_rs::{Builder, Secret as Shared, Totp};
use uuid::Uuid;

use super::sessions::{SESSION_SECONDS, Secret};
use crate::passwords;
use base::{
    clock,
    error::{Error, Result},
    secrets::Secrets,
    stored::Columns,
};
use db::pool::Pool;

const ISSUER: &str = "Tavernkeep";
const RECOVERY_CODES: usize = 10;

/// A matching code that has not been used yet.
pub enum Code {
    /// A code from the app, by its time step.
    Step(i64),
    /// The hash of a possible recovery code.
    Recovery(Vec<u8>),
}

impl Code {
    fn parts(&self) -> (Option<i64>, Option<&[u8]>) {
        match self {
            Self::Step(step) => (Some(*step), None),
            Self::Recovery(hash) => (None, Some(hash)),
        }
    }
}

fn generator(shared: Shared, address: &str) -> Result<Totp> {
    let generator =
        Builder::new().with_secret(shared).with_account_name(address.replace(':', "_")).with_issuer(Some(ISSUER));
    generator.build().map_err(|error| Error::internal(error.to_string()))
}

fn unsealed(secrets: &Secrets, user: Uuid, sealed: &[u8]) -> Result<Shared> {
    let text = secrets.open(user, sealed)?;
    Shared::try_from_base32(text).map_err(|error| Error::internal(error.to_string()))
}

/// A new secret, encrypted for an account.
///
/// # Errors
/// `internal` if it cannot be encrypted.
pub fn generate(secrets: &Secrets, user: Uuid) -> Result<Vec<u8>> {
    let mut bytes = [0u8; 20];
    rand::rng().fill_bytes(&mut bytes);
    secrets.seal(user, &Shared::new_stack(bytes).to_base32())
}

/// What the authenticator app needs: the secret to type, and a link to open.
///
/// # Errors
/// `internal` if it was encrypted with a server secret that is no longer configured.
pub fn setup_details(secrets: &Secrets, user: Uuid, sealed: &[u8], address: &str) -> Result<(String, String)> {
    let shared = unsealed(secrets, user, sealed)?;
    let text = shared.to_base32();
    let url = generator(shared, address)?.to_url().map_err(|error| Error::internal(error.to_string()))?;
    let groups: Vec<_> = text.as_bytes().chunks(4).map(String::from_utf8_lossy).collect();
    Ok((groups.join(" "), url))
}

/// Parses a code: a valid code of the app, or a possible recovery code. None if it is neither.
///
/// # Errors
/// As for [`setup_details`].
pub fn read(secrets: &Secrets, user: Uuid, sealed: &[u8], written: &str) -> Result<Option<Code>> {
    let bare: String =
        written.chars().filter(char::is_ascii_alphanumeric).take(64).collect::<String>().to_ascii_lowercase();
    if bare.len() != 6 {
        return Ok((bare.len() == 20).then(|| Code::Recovery(hashed(user, &bare))));
    }
    let now = u64::try_from(clock::now().unix_timestamp()).unwrap_or_default();
    let step = generator(unsealed(secrets, user, sealed)?, "account")?.check(&bare, now);
    Ok(step.and_then(|step| i64::try_from(step).ok()).map(Code::Step))
}

fn hashed(user: Uuid, code: &str) -> Vec<u8> {
    Sha256::new().chain_update(b"tavernkeep recovery\0").chain_update(user).chain_update(code).finalize().to_vec()
}

/// New recovery codes of an account, and their hashes for the database. Each is as strong as a generated password.
#[must_use]
pub fn recovery_codes(user: Uuid) -> (Vec<String>, Vec<Vec<u8>>) {
    let codes: Vec<String> = (0..RECOVERY_CODES).map(|_| passwords::generate()).collect();
    let hashes = codes.iter().map(|code| hashed(user, &code.replace('-', ""))).collect();
    (codes, hashes)
}

/// Somebody who entered the password and still has to enter a code.
pub struct Half {
    pub user: Uuid,
    /// The folded address.
    pub account: String,
    pub sealed: Vec<u8>,
}

/// Begins half a session and ends what the browser had before. None if the verified password was changed meanwhile.
///
/// # Errors
/// Database errors.
pub async fn begin_half(pool: &Pool, user: Uuid, password_hash: &str, before: &Secret) -> Result<Option<Secret>> {
    let secret = Secret::generate();
    let row = sqlx::query("SELECT half_begin($1, $2, $3, $4) AS has_begun")
        .bind(user)
        .bind(secret.hash())
        .bind(before.hash())
        .bind(password_hash)
        .fetch_one(&mut *pool.acquire().await?)
        .await?;
    Ok(row.read::<bool>("has_begun")?.then_some(secret))
}

/// The holder of half a session.
///
/// # Errors
/// Database errors.
pub async fn half(pool: &Pool, secret: &Secret) -> Result<Option<Half>> {
    let row = sqlx::query("SELECT * FROM half_of($1)")
        .bind(secret.hash())
        .fetch_optional(&mut *pool.acquire().await?)
        .await?;
    let half = |row: sqlx::postgres::PgRow| {
        Ok(Half { user: row.read("user_id")?, account: row.read("email_folded")?, sealed: row.read("totp_secret")? })
    };
    row.map(half).transpose()
}

/// Replaces half a session by a whole one if the code is accepted.
///
/// # Errors
/// Database errors.
pub async fn finish(pool: &Pool, half: &Secret, code: &Code) -> Result<Option<Secret>> {
    let (secret, (step, recovery)) = (Secret::generate(), code.parts());
    let row = sqlx::query("SELECT half_finish($1, $2, $3, $4, $5) AS has_begun")
        .bind(half.hash())
        .bind(step)
        .bind(recovery)
        .bind(secret.hash())
        .bind(SESSION_SECONDS)
        .fetch_one(&mut *pool.acquire().await?)
        .await?;
    Ok(row.read::<bool>("has_begun")?.then_some(secret))
}

/// The second factor of the signed-in user.
pub struct Factor {
    pub user: Uuid,
    pub sealed: Option<Vec<u8>>,
    /// A new secret that was not confirmed by a code yet.
    pub pending: Option<Vec<u8>>,
    pub codes_left: i64,
}

/// The second factor of a session's user.
///
/// # Errors
/// Database errors; `unauthenticated` without a session.
pub async fn own(pool: &Pool, session: &Secret) -> Result<Factor> {
    let row = sqlx::query("SELECT * FROM second_factor_of($1)")
        .bind(session.hash())
        .fetch_optional(&mut *pool.acquire().await?)
        .await?;
    let row = row.ok_or_else(|| Error::new(base::error::Code::Unauthenticated, "Sign in."))?;
    Ok(Factor {
        user: row.read("user_id")?,
        sealed: row.read("totp_secret")?,
        pending: row.read("totp_pending")?,
        codes_left: row.read("codes_left")?,
    })
}

/// Stores a new secret until a code confirms it. False if there already is a second factor.
///
/// # Errors
/// Database errors.
pub async fn begin(pool: &Pool, session: &Secret, sealed: &[u8]) -> Result<bool> {
    let row = sqlx::query("SELECT second_factor_begin($1, $2) AS done")
        .bind(session.hash())
        .bind(sealed)
        .fetch_one(&mut *pool.acquire().await?)
        .await?;
    row.read("done")
}

/// Turns the second factor on. False if the secret is no longer the pending one.
///
/// # Errors
/// Database errors.
pub async fn confirm(pool: &Pool, session: &Secret, sealed: &[u8], step: i64, codes: &[Vec<u8>]) -> Result<bool> {
    let row = sqlx::query("SELECT second_factor_confirm($1, $2, $3, $4) AS done")
        .bind(session.hash())
        .bind(sealed)
        .bind(step)
        .bind(codes)
        .fetch_one(&mut *pool.acquire().await?)
        .await?;
    row.read("done")
}

/// Removes the second factor. False if the code was not accepted.
///
/// # Errors
/// Database errors.
pub async fn remove(pool: &Pool, session: &Secret, code: &Code) -> Result<bool> {
    let (step, recovery) = code.parts();
    let row = sqlx::query("SELECT second_factor_remove($1, $2, $3) AS done")
        .bind(session.hash())
        .bind(step)
        .bind(recovery)
        .fetch_one(&mut *pool.acquire().await?)
        .await?;
    row.read("done")
}
