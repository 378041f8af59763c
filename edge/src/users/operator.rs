//! The operator's commands for accounts. Every connection is the schema owner's.
//!
//! The operator can create accounts with a password, but can never add an existing account to a tenant directly:
//! somebody else chose its password, and may not be the person whom the operator means. Such an account is invited like
//! any other.

use sqlx::{Connection, PgConnection, postgres::PgRow};
use uuid::Uuid;

use super::{
    Role, email,
    links::{self, Asked},
    service::{has_other_owner, last_owner},
};
use crate::passwords;
use base::stored::Columns;
use base::{
    clock,
    error::{Code, Error, Result},
};

/// The user whom the operator wants in a tenant.
pub struct UserRequest<'a> {
    pub tenant: Uuid,
    pub email: &'a str,
    pub name: Option<&'a str>,
    pub role: Role,
    /// The password of a new account; generated if there is none.
    pub password: Option<&'a str>,
    /// Whether somebody without an account is only invited and chooses the password themselves.
    pub invite: bool,
}

/// The result.
pub enum Brought {
    /// A new account was created, with this password.
    Made { id: Uuid, password: String },
    /// They already belonged to the tenant, and now have the role.
    Changed { id: Uuid },
    /// They were invited, with the link of this path.
    Invited { path: String },
}

/// Adds somebody to a tenant, in one transaction.
///
/// # Errors
/// `validation_failed` for an invalid email, `conflict` if the last owner would get another role.
pub async fn bring(db: &mut PgConnection, wanted: &UserRequest<'_>) -> Result<Brought> {
    if email::check(wanted.email, &()).is_err() {
        return Err(Error::new(Code::ValidationFailed, format!("`{}` is not an email address.", wanted.email)));
    }
    let mut tx = db.begin().await?;
    let found = sqlx::query(
        "SELECT u.id, m.role FROM app_user u LEFT JOIN membership m ON m.user_id = u.id AND m.tenant_id = $2 \
         WHERE u.email_folded = $1",
    )
    .bind(email::fold(wanted.email))
    .bind(wanted.tenant)
    .fetch_optional(&mut *tx)
    .await?;
    let brought = match found {
        Some(row) if row.read::<Option<String>>("role")?.is_some() => {
            let id = row.read("id")?;
            change_role(&mut tx, wanted, id).await?;
            Brought::Changed { id }
        }
        None if !wanted.invite => make(&mut tx, wanted).await?,
        _ => invite(&mut tx, wanted).await?,
    };
    tx.commit().await?;
    Ok(brought)
}

async fn make(db: &mut PgConnection, wanted: &UserRequest<'_>) -> Result<Brought> {
    let (id, password) = (clock::id(), wanted.password.map_or_else(passwords::generate, ToOwned::to_owned));
    sqlx::query("INSERT INTO app_user (id, email, email_folded, name, password_hash) VALUES ($1, $2, $3, $4, $5)")
        .bind(id)
        .bind(wanted.email)
        .bind(email::fold(wanted.email))
        .bind(wanted.name.unwrap_or_else(|| email::name_of(wanted.email)))
        .bind(passwords::hash(&password)?)
        .execute(&mut *db)
        .await?;
    sqlx::query("INSERT INTO membership (tenant_id, user_id, role) VALUES ($1, $2, $3)")
        .bind(wanted.tenant)
        .bind(id)
        .bind(wanted.role.as_str())
        .execute(&mut *db)
        .await?;
    sqlx::query("DELETE FROM invitation WHERE tenant_id = $1 AND email_folded = $2 AND used_at IS NULL")
        .bind(wanted.tenant)
        .bind(email::fold(wanted.email))
        .execute(db)
        .await?;
    Ok(Brought::Made { id, password })
}

async fn invite(db: &mut PgConnection, wanted: &UserRequest<'_>) -> Result<Brought> {
    sqlx::query("SELECT set_config('app.tenant_id', $1::text, true)").bind(wanted.tenant).execute(&mut *db).await?;
    let name = wanted.name.unwrap_or_else(|| email::name_of(wanted.email));
    let asked = Asked { email: wanted.email, name, role: wanted.role, by: None };
    let (_, path) = links::invite(db, &asked).await?;
    Ok(Brought::Invited { path })
}

/// Changes a member's role. Locks the tenant's memberships like an administrator's change.
async fn change_role(db: &mut PgConnection, wanted: &UserRequest<'_>, id: Uuid) -> Result<()> {
    let held = sqlx::query("SELECT user_id, role FROM membership WHERE tenant_id = $1 FOR NO KEY UPDATE")
        .bind(wanted.tenant)
        .fetch_all(&mut *db)
        .await?;
    let is_owner =
        |row: &PgRow| Ok(row.read::<Uuid>("user_id")? == id && row.read::<&str>("role")? == Role::Owner.as_str());
    let is_owner = held.iter().map(is_owner).collect::<Result<Vec<bool>>>()?.contains(&true);
    if is_owner && wanted.role != Role::Owner && !has_other_owner(&mut *db, wanted.tenant, id).await? {
        return Err(last_owner());
    }
    // A password reset that the tenant made was meant for the old role.
    sqlx::query("DELETE FROM password_reset WHERE user_id = $1 AND tenant_id IS NOT NULL")
        .bind(id)
        .execute(&mut *db)
        .await?;
    sqlx::query("UPDATE membership SET role = $3 WHERE tenant_id = $1 AND user_id = $2")
        .bind(wanted.tenant)
        .bind(id)
        .bind(wanted.role.as_str())
        .execute(db)
        .await?;
    Ok(())
}

/// Sets an account's password and ends its sessions, unless the account already has this password.
///
/// # Errors
/// `not_found`.
pub async fn keep_password(db: &mut PgConnection, address: &str, password: &str) -> Result<()> {
    let mut tx = db.begin().await?;
    let row = sqlx::query("SELECT id, password_hash FROM app_user WHERE email_folded = $1 FOR NO KEY UPDATE")
        .bind(email::fold(address))
        .fetch_optional(&mut *tx)
        .await?
        .ok_or_else(|| Error::not_found("user"))?;
    if passwords::is_it(password, row.read("password_hash")?) {
        return Ok(());
    }
    let id: Uuid = row.read("id")?;
    sqlx::query("UPDATE app_user SET password_hash = $2, updated_at = now() WHERE id = $1")
        .bind(id)
        .bind(passwords::hash(password)?)
        .execute(&mut *tx)
        .await?;
    for forgotten in ["DELETE FROM editor_session WHERE user_id = $1", "DELETE FROM password_reset WHERE user_id = $1"]
    {
        sqlx::query(forgotten).bind(id).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(())
}

/// Removes an account's second factor and ends its sessions.
///
/// # Errors
/// `not_found`.
pub async fn reset_second_factor(db: &mut PgConnection, address: &str) -> Result<()> {
    let mut tx = db.begin().await?;
    let row = sqlx::query(
        "UPDATE app_user SET totp_secret = NULL, totp_pending = NULL, updated_at = now() WHERE email_folded = $1 \
         RETURNING id",
    )
    .bind(email::fold(address))
    .fetch_optional(&mut *tx)
    .await?
    .ok_or_else(|| Error::not_found("user"))?;
    let id: Uuid = row.read("id")?;
    for forgotten in ["DELETE FROM recovery_code WHERE user_id = $1", "DELETE FROM editor_session WHERE user_id = $1"] {
        sqlx::query(forgotten).bind(id).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(())
}
