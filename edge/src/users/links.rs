//! One-time links: an invitation to a tenant, and a password reset.
//!
//! The server sends no mail. Whoever has a link counts as the owner of its address. A link's secret is 256 random bits;
//! the database has only its hash. Opening a link does not use it up, because programs open links too. An existing
//! account accepts an invitation in its own session. Nobody else can give it a password or a membership.

use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Role, email, sessions::Secret};
use base::{
    clock,
    error::{Code, Error, Result},
    stored::Columns,
};
use db::pool::Pool;

/// How long an invitation is valid.
const INVITATION_SECONDS: i32 = 7 * 24 * 3600;
/// How long a password reset is valid.
const RESET_SECONDS: i32 = 24 * 3600;

/// Somebody who is invited to a tenant.
pub struct Asked<'a> {
    /// An address that was checked.
    pub email: &'a str,
    pub name: &'a str,
    pub role: Role,
    /// The user or key that invites; None for the operator.
    pub by: Option<Uuid>,
}

fn invitation_path(secret: &Secret) -> String {
    format!("/admin/invitation/{}", secret.reveal())
}

fn reset_path(secret: &Secret) -> String {
    format!("/admin/reset/{}", secret.reveal())
}

/// Invites somebody to the tenant of the connection's transaction, and replaces their open invitation. Returns the
/// invitation's id and the path of its link.
///
/// # Errors
/// `conflict` if they already belong to the tenant, `quota_exceeded` if too many invitations are open.
pub async fn invite(db: impl PgExecutor<'_>, asked: &Asked<'_>) -> Result<(Uuid, String)> {
    let (id, secret) = (clock::id(), Secret::generate());
    let row = sqlx::query("SELECT invitation_make($1, $2, $3, $4, $5, $6, $7, $8) AS came")
        .bind(id)
        .bind(secret.hash())
        .bind(asked.email)
        .bind(email::fold(asked.email))
        .bind(asked.name)
        .bind(asked.role.as_str())
        .bind(asked.by)
        .bind(INVITATION_SECONDS)
        .fetch_one(db)
        .await?;
    match row.read("came")? {
        "made" => Ok((id, invitation_path(&secret))),
        "member" => Err(Error::new(Code::Conflict, "Somebody with this email already belongs to the tenant.")),
        _ => Err(Error::new(Code::QuotaExceeded, "The limit of 1000 open invitations is reached. Withdraw some.")
            .retry_after(60)),
    }
}

/// Withdraws an open invitation of the transaction's tenant.
///
/// # Errors
/// Database errors.
pub async fn withdraw(db: impl PgExecutor<'_>, id: Uuid) -> Result<()> {
    sqlx::query("SELECT invitation_withdraw($1)").bind(id).execute(db).await?;
    Ok(())
}

/// A password reset for a user of the transaction's tenant. None if the account also belongs to another tenant.
///
/// # Errors
/// Database errors.
pub async fn reset(db: impl PgExecutor<'_>, user: Uuid) -> Result<Option<String>> {
    let secret = Secret::generate();
    let row = sqlx::query("SELECT reset_make($1, $2, $3) AS is_made")
        .bind(user)
        .bind(secret.hash())
        .bind(RESET_SECONDS)
        .fetch_one(db)
        .await?;
    Ok(row.read::<bool>("is_made")?.then(|| reset_path(&secret)))
}

/// A password reset for any account, for the operator. The connection is the schema owner's.
///
/// # Errors
/// `not_found`.
pub async fn reset_by_operator(db: &mut PgConnection, address: &str) -> Result<String> {
    let secret = Secret::generate();
    let made = sqlx::query(
        "INSERT INTO password_reset (user_id, hash, expires_at) \
         SELECT id, $2, now() + $3 * interval '1 second' FROM app_user WHERE email_folded = $1 \
         ON CONFLICT (user_id) DO UPDATE SET hash = excluded.hash, tenant_id = NULL, expires_at = excluded.expires_at",
    )
    .bind(email::fold(address))
    .bind(secret.hash())
    .bind(RESET_SECONDS)
    .execute(db)
    .await?;
    if made.rows_affected() == 1 { Ok(reset_path(&secret)) } else { Err(Error::not_found("user")) }
}

/// The invitation of a link.
pub struct Invitation {
    pub tenant_name: String,
    pub email: String,
    pub folded: String,
    pub name: String,
    pub role: Role,
    pub has_account: bool,
}

/// The invitation of a link that still works.
///
/// # Errors
/// Database errors.
pub async fn invitation(pool: &Pool, link: &Secret) -> Result<Option<Invitation>> {
    let row = sqlx::query("SELECT * FROM invitation_of($1)")
        .bind(link.hash())
        .fetch_optional(&mut *pool.acquire().await?)
        .await?;
    row.map(|row| {
        Ok(Invitation {
            tenant_name: row.read("tenant_name")?,
            email: row.read("email")?,
            folded: row.read("email_folded")?,
            name: row.read("name")?,
            role: Role::parse(row.read("role")?)
                .ok_or_else(|| Error::internal("an invitation with an unknown role"))?,
            has_account: row.read("has_account")?,
        })
    })
    .transpose()
}

/// Accepts an invitation with a new account and returns its id. None if the link no longer works.
///
/// # Errors
/// `conflict` if the address has an account now.
pub async fn accept_new(pool: &Pool, link: &Secret, name: &str, password_hash: &str) -> Result<Option<Uuid>> {
    let user = clock::id();
    let row = sqlx::query("SELECT invitation_accept_new($1, $2, $3, $4) AS has_come")
        .bind(link.hash())
        .bind(user)
        .bind(name)
        .bind(password_hash)
        .fetch_one(&mut *pool.acquire().await?)
        .await
        .map_err(Error::from);
    match row {
        Ok(row) => Ok(row.read::<bool>("has_come")?.then_some(user)),
        Err(error) if error.broke("app_user_folded_key") => {
            Err(Error::new(Code::Conflict, "This address has an account now. Open the link again and sign in."))
        }
        Err(error) => Err(error),
    }
}

/// Accepts an invitation with the account of a session. False if the link no longer works or belongs to another account.
///
/// # Errors
/// Database errors.
pub async fn accept(pool: &Pool, link: &Secret, session: &Secret) -> Result<bool> {
    let row = sqlx::query("SELECT invitation_accept($1, $2) AS has_come")
        .bind(link.hash())
        .bind(session.hash())
        .fetch_one(&mut *pool.acquire().await?)
        .await?;
    row.read("has_come")
}

/// The address of the account that a link resets, if the link still works.
///
/// # Errors
/// Database errors.
pub async fn reset_of(pool: &Pool, link: &Secret) -> Result<Option<String>> {
    let row =
        sqlx::query("SELECT * FROM reset_of($1)").bind(link.hash()).fetch_optional(&mut *pool.acquire().await?).await?;
    row.map(|row| row.read("email")).transpose()
}

/// Sets the password of a link's account and ends its sessions. False if the link no longer works.
///
/// # Errors
/// Database errors.
pub async fn use_reset(pool: &Pool, link: &Secret, password_hash: &str) -> Result<bool> {
    let row = sqlx::query("SELECT reset_use($1, $2) AS is_used")
        .bind(link.hash())
        .bind(password_hash)
        .fetch_one(&mut *pool.acquire().await?)
        .await?;
    row.read("is_used")
}
