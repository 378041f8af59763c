//! The users of a tenant.

use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, postgres::PgRow};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Role, passwords};
use crate::{
    app::App,
    auth::Caller,
    error::{Code, Error, Result},
    http::{
        Reply,
        body::typed,
        etag::Expected,
        idempotency::IdempotencyKey,
        paging::{Items, NoFilter, Page, pattern},
        patch as merge_patch, validate,
    },
    tenancy::TenantTx,
};

/// A user as a tenant's administrators see one.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct UserView {
    pub id: Uuid,
    pub email: String,
    pub name: String,
    pub role: Role,
    /// Whether they belong to other tenants too: then name and password are theirs alone to change.
    pub is_shared: bool,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    pub last_sign_in_at: Option<OffsetDateTime>,
    pub version: i64,
    /// The password that was made for a new user; only in the answer that makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

impl UserView {
    /// The answer to who makes it.
    ///
    /// # Errors
    /// `internal` if it cannot be written as JSON.
    pub(super) fn made(&self) -> Result<Reply> {
        Reply::created(format!("/v1/users/{}", self.id), self.version, self)
    }

    fn of(row: &PgRow) -> Self {
        let role: String = row.get("role");
        Self {
            id: row.get("id"),
            email: row.get("email"),
            name: row.get("name"),
            role: Role::parse(&role).unwrap_or(Role::Viewer),
            is_shared: row.get::<i64, _>("tenants") > 1,
            created_at: row.get("created_at"),
            updated_at: row.get("updated_at"),
            last_sign_in_at: row.get("last_sign_in_at"),
            version: row.get("version"),
            password: None,
        }
    }
}

/// A new user.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct UserInput {
    #[garde(custom(is_email))]
    pub email: String,
    /// The part of the email before the @ unless given.
    #[garde(custom(validate::opt_line))]
    #[serde(default)]
    pub name: Option<String>,
    pub role: Role,
    /// 10 to 128 characters; one is made and shown once unless given.
    #[serde(default)]
    pub password: Option<String>,
}

/// What can be changed of a user.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct UserChange {
    #[garde(custom(validate::line))]
    pub name: String,
    pub role: Role,
    /// A new password, which ends every session of theirs.
    #[serde(default)]
    pub password: Option<String>,
}

/// Something that mail could be sent to: one @ with something on both sides, no spaces.
pub fn is_email(value: &str, _: &()) -> garde::Result {
    let fits = value.chars().count() <= 254
        && !value.chars().any(|c| c.is_whitespace() || c.is_control())
        && value
            .split_once('@')
            .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'));
    if fits { Ok(()) } else { Err(garde::Error::new("must be an email address")) }
}

/// A new user, checked and with a hash.
struct NewUser {
    id: Uuid,
    email: String,
    name: String,
    role: Role,
    hash: String,
}

/// A page of the tenant's users.
///
/// # Errors
/// `bad_request` for another order than that of creation.
pub async fn list(tx: &TenantTx, page: &Page<NoFilter>) -> Result<Items<UserView>> {
    let (sign, order) = if page.by_creation()? { ("<", "DESC") } else { (">", "ASC") };
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT * FROM tenant_users(NULL) AS u WHERE ($1::uuid IS NULL OR id {sign} $1) \
         AND ($3::text IS NULL OR email ILIKE $3 OR name ILIKE $3) AND ($4::timestamptz IS NULL OR updated_at >= $4) \
         ORDER BY id {order} LIMIT $2"
    )))
    .bind(page.after.as_ref().map(|after| after.id))
    .bind(i64::try_from(page.limit + 1).unwrap_or(201))
    .bind(page.q.as_deref().map(pattern))
    .bind(page.updated_since)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    Ok(page.finish(rows.iter().map(UserView::of).collect(), |user| (user.id, None)))
}

/// One user of the tenant, by id or email.
///
/// # Errors
/// `not_found`.
pub async fn get(tx: &TenantTx, x: &str) -> Result<UserView> {
    let row = sqlx::query("SELECT * FROM tenant_users($1) AS u WHERE $1 IS NOT NULL OR lower(email) = lower($2)")
        .bind(Uuid::try_parse(x).ok())
        .bind(x)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    row.as_ref().map(UserView::of).ok_or_else(|| Error::not_found("user"))
}

/// Holds the tenant's memberships, and reads one.
///
/// # Errors
/// `not_found`.
async fn hold(tx: &TenantTx, x: &str) -> Result<UserView> {
    sqlx::query("SELECT tenant_users_hold()").execute(&mut *tx.connection().await).await?;
    get(tx, x).await
}

/// Makes a user of the caller's tenant. A password that was made is in what is given back, and nowhere else: none if the form
/// `once` was sent before.
///
/// # Errors
/// `validation_failed`, `conflict` if the email is somebody's already.
pub async fn create(
    app: &App,
    caller: &Caller,
    input: UserInput,
    once: Option<&IdempotencyKey>,
) -> Result<Option<UserView>> {
    validate::check(&input)?;
    may_give(caller, input.role)?;
    let UserInput { email, name, role, password } = input;
    let (password, made) = match password {
        Some(password) => (password, None),
        None => {
            let made = passwords::generate();
            (made.clone(), Some(made))
        }
    };
    passwords::check("/password", &password, &email)?;
    // Hashing takes long: before the transaction.
    let hash = app.passwords.hash(password).await?;
    let name = name.unwrap_or_else(|| name_of(&email).to_owned());
    let new = NewUser { id: Uuid::now_v7(), email, name, role, hash };
    let tx = TenantTx::write(&app.pool, &caller.actor()).await?;
    if let Some(once) = once
        && once.claim(&tx).await?.is_some()
    {
        return Ok(None);
    }
    let view = add(&tx, &new).await?;
    if let Some(once) = once {
        once.store(&tx, &view.made()?).await?;
    }
    tx.commit().await?;
    Ok(Some(UserView { password: made, ..view }))
}

/// Changes a user of the caller's tenant by a merge patch.
///
/// # Errors
/// `not_found`, `precondition_failed`, `validation_failed`, and those of [`change`].
pub async fn update(app: &App, caller: &Caller, expected: &Expected, x: &str, patch: &Value) -> Result<UserView> {
    const READ_ONLY: [&str; 7] = ["id", "email", "is_shared", "created_at", "updated_at", "last_sign_in_at", "version"];
    let read = |user: &UserView| -> Result<UserChange> {
        let shown = serde_json::to_value(user).map_err(Error::internal)?;
        let wanted: UserChange = typed(merge_patch::apply(shown, patch.clone(), &READ_ONLY)?)?;
        validate::check(&wanted)?;
        Ok(wanted)
    };
    // What it will be is checked, and a password hashed, before anything is held.
    let seen = get(&TenantTx::read(&app.pool, caller.tenant_id()).await?, x).await?;
    expected.check(seen.version)?;
    // Whoever sets a password can be that user.
    may_give(caller, seen.role)?;
    may_give(caller, read(&seen)?.role)?;
    let hash = match read(&seen)?.password {
        None => None,
        Some(password) => {
            passwords::check("/password", &password, &seen.email)?;
            Some(app.passwords.hash(password).await?)
        }
    };
    let tx = TenantTx::write(&app.pool, &caller.actor()).await?;
    let user = hold(&tx, x).await?;
    expected.check(user.version)?;
    // Somebody may have made them another while the password was hashed.
    let wanted = read(&user)?;
    may_give(caller, user.role)?;
    may_give(caller, wanted.role)?;
    let view = change(&tx, &user, &wanted, hash.as_deref()).await?;
    tx.commit().await?;
    Ok(view)
}

/// Takes a user out of the caller's tenant.
///
/// # Errors
/// `not_found`, `precondition_failed`, `conflict` for the last owner.
pub async fn leave(app: &App, caller: &Caller, expected: &Expected, x: &str) -> Result<UserView> {
    let tx = TenantTx::write(&app.pool, &caller.actor()).await?;
    let user = leave_in(&tx, caller, expected, x).await?;
    tx.commit().await?;
    Ok(user)
}

/// The same in a transaction of the caller's.
///
/// # Errors
/// As for [`leave`].
pub async fn leave_in(tx: &TenantTx, caller: &Caller, expected: &Expected, x: &str) -> Result<UserView> {
    let user = hold(tx, x).await?;
    expected.check(user.version)?;
    may_give(caller, user.role)?;
    remove(tx, &user).await?;
    Ok(user)
}

/// Nobody makes a user, or becomes one, who may do more than they.
fn may_give(caller: &Caller, role: Role) -> Result<()> {
    if role.scopes().iter().all(|scope| caller.scopes.has(scope)) {
        return Ok(());
    }
    let detail = format!("You do not have all the scopes of the role `{}`.", role.as_str());
    Err(Error::new(Code::Forbidden, detail))
}

/// Adds a user to the tenant.
async fn add(tx: &TenantTx, new: &NewUser) -> Result<UserView> {
    let added = sqlx::query("SELECT tenant_user_add($1, $2, $3, $4, $5)")
        .bind(new.id)
        .bind(&new.email)
        .bind(&new.name)
        .bind(&new.hash)
        .bind(new.role.as_str())
        .execute(&mut *tx.connection().await)
        .await
        .map_err(Error::from);
    match added {
        Err(error) if error.broke("app_user_email_key") => {
            // An account that is there was given its password by somebody else: only an operator brings it here.
            let detail = "There is a user with this email. Somebody of another tenant is added by the operator: \
                `tavernkeep user create`.";
            Err(Error::new(Code::Conflict, detail))
        }
        Err(error) => Err(error),
        Ok(_) => get(tx, &new.id.to_string()).await,
    }
}

/// Changes a user whose row is held.
///
/// # Errors
/// `forbidden` for what is the user's alone, `conflict` for the last owner.
async fn change(tx: &TenantTx, user: &UserView, change: &UserChange, hash: Option<&str>) -> Result<UserView> {
    if user.is_shared && (change.name != user.name || hash.is_some()) {
        let detail = "This user belongs to other tenants too: name and password are theirs to change.";
        return Err(Error::new(Code::Forbidden, detail));
    }
    if change.role != Role::Owner {
        another_owner_stays(tx, user).await?;
    }
    sqlx::query("SELECT tenant_user_change($1, $2, $3, $4)")
        .bind(user.id)
        .bind(&change.name)
        .bind(change.role.as_str())
        .bind(hash)
        .execute(&mut *tx.connection().await)
        .await?;
    get(tx, &user.id.to_string()).await
}

/// Takes a user whose row is held out of the tenant; who belongs nowhere any more is forgotten.
///
/// # Errors
/// `conflict` for the last owner.
async fn remove(tx: &TenantTx, user: &UserView) -> Result<()> {
    another_owner_stays(tx, user).await?;
    sqlx::query("SELECT tenant_user_remove($1)").bind(user.id).execute(&mut *tx.connection().await).await?;
    Ok(())
}

/// A tenant's last owner stays one.
async fn another_owner_stays(tx: &TenantTx, user: &UserView) -> Result<()> {
    if user.role != Role::Owner || has_other_owner(&mut *tx.connection().await, tx.tenant(), user.id).await? {
        return Ok(());
    }
    Err(last_owner())
}

async fn has_other_owner(db: &mut PgConnection, tenant: Uuid, user: Uuid) -> Result<bool> {
    let row = sqlx::query(
        "SELECT EXISTS (SELECT 1 FROM membership WHERE tenant_id = $1 AND role = 'owner' AND user_id <> $2) AS yes",
    )
    .bind(tenant)
    .bind(user)
    .fetch_one(db)
    .await?;
    Ok(row.get("yes"))
}

fn last_owner() -> Error {
    Error::new(Code::Conflict, "This is the last owner. Make another one first.")
}

/// What the operator asks for: somebody at a tenant.
pub struct Wanted<'a> {
    pub tenant: Uuid,
    pub email: &'a str,
    pub name: Option<&'a str>,
    pub role: Role,
    /// For a new account; one is made unless given.
    pub password: Option<&'a str>,
}

/// Brings somebody to a tenant, with a new account if there is none of this email; all of it or nothing. Gives the password of a
/// new account. For the operator: the connection is the schema owner's.
///
/// # Errors
/// `validation_failed` for an email or a password that is none, `conflict` for the last owner in another role.
pub async fn bring(db: &mut PgConnection, wanted: &Wanted<'_>) -> Result<(Uuid, Option<String>)> {
    if is_email(wanted.email, &()).is_err() {
        return Err(Error::new(Code::ValidationFailed, format!("`{}` is no email address.", wanted.email)));
    }
    let mut tx = db.begin().await?;
    let found = sqlx::query("SELECT id FROM app_user WHERE lower(email) = lower($1)")
        .bind(wanted.email)
        .fetch_optional(&mut *tx)
        .await?;
    let (id, password) = match found {
        Some(row) => (row.get("id"), None),
        None => {
            let password = wanted.password.map_or_else(passwords::generate, ToOwned::to_owned);
            let id = Uuid::now_v7();
            sqlx::query("INSERT INTO app_user (id, email, name, password_hash) VALUES ($1, $2, $3, $4)")
                .bind(id)
                .bind(wanted.email)
                .bind(wanted.name.unwrap_or_else(|| name_of(wanted.email)))
                .bind(passwords::hash(&password)?)
                .execute(&mut *tx)
                .await?;
            (id, Some(password))
        }
    };
    join(&mut tx, wanted, id).await?;
    tx.commit().await?;
    Ok((id, password))
}

/// Gives an account its role at a tenant, whose memberships are held meanwhile as an administrator's change holds them.
async fn join(db: &mut PgConnection, wanted: &Wanted<'_>, id: Uuid) -> Result<()> {
    let held = sqlx::query("SELECT user_id, role FROM membership WHERE tenant_id = $1 FOR UPDATE")
        .bind(wanted.tenant)
        .fetch_all(&mut *db)
        .await?;
    let is_owner = held
        .iter()
        .any(|row| row.get::<Uuid, _>("user_id") == id && row.get::<&str, _>("role") == Role::Owner.as_str());
    if is_owner && wanted.role != Role::Owner && !has_other_owner(&mut *db, wanted.tenant, id).await? {
        return Err(last_owner());
    }
    sqlx::query(
        "INSERT INTO membership (tenant_id, user_id, role) VALUES ($1, $2, $3) \
         ON CONFLICT (tenant_id, user_id) DO UPDATE SET role = excluded.role",
    )
    .bind(wanted.tenant)
    .bind(id)
    .bind(wanted.role.as_str())
    .execute(db)
    .await?;
    Ok(())
}

/// Makes a password an account's, if it is not already, and ends its sessions then. For the operator.
///
/// # Errors
/// `not_found`.
pub async fn keep_password(db: &mut PgConnection, email: &str, password: &str) -> Result<()> {
    let mut tx = db.begin().await?;
    let row = sqlx::query("SELECT id, password_hash FROM app_user WHERE lower(email) = lower($1) FOR UPDATE")
        .bind(email)
        .fetch_optional(&mut *tx)
        .await?
        .ok_or_else(|| Error::not_found("user"))?;
    if passwords::is_it(password, row.get("password_hash")) {
        return Ok(());
    }
    let id: Uuid = row.get("id");
    sqlx::query("UPDATE app_user SET password_hash = $2, updated_at = now() WHERE id = $1")
        .bind(id)
        .bind(passwords::hash(password)?)
        .execute(&mut *tx)
        .await?;
    sqlx::query("DELETE FROM editor_session WHERE user_id = $1").bind(id).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(())
}

/// What somebody is called until they say otherwise.
#[must_use]
pub fn name_of(email: &str) -> &str {
    email.split('@').next().unwrap_or(email)
}
