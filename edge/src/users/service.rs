//! A tenant's users, for its administrators.
//!
//! An administrator invites users, changes their roles and removes them. Nothing here sets a password: an account
//! belongs to the person with its address, who opens it with one-time links (`links`).

use db::tenancy;
use garde::Validate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgExecutor, postgres::PgRow};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Role, email, links};
use crate::{
    caller::Caller,
    http::{
        Answer, Written, bounds,
        etag::Expected,
        idempotency::IdempotencyKey,
        paging::{Items, NoFilter, Page, contains, pattern},
        patch as merge_patch, validate,
    },
    state::Edge,
};
use base::{
    error::{Code, Error, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;

/// A user as a tenant's administrators see them.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct UserView {
    pub id: Uuid,
    pub email: String,
    pub name: String,
    pub role: Role,
    pub status: UserStatus,
    /// Whether the user also belongs to other tenants. If so, only the user can change the name.
    pub is_shared: bool,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    pub last_sign_in_at: Option<OffsetDateTime>,
    pub version: i64,
    /// When the invitation expires.
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<OffsetDateTime>,
    /// The link of an invitation. It works once. Only the response that creates it contains it. Give it only to the
    /// invited person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// Whether a user has accepted the invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UserStatus {
    /// They belong to the tenant.
    Active,
    /// They have not accepted their invitation yet.
    Invited,
}

impl UserView {
    fn of(row: &PgRow) -> Result<Self> {
        let role: String = row.read("role")?;
        Ok(Self {
            id: row.read("id")?,
            email: row.read("email")?,
            name: row.read("name")?,
            role: Role::parse(&role).unwrap_or(Role::Viewer),
            is_shared: row.read::<i64>("tenants")? > 1,
            created_at: row.read("created_at")?,
            updated_at: row.read("updated_at")?,
            last_sign_in_at: row.read("last_sign_in_at")?,
            version: row.read("version")?,
            status: if row.read::<&str>("status")? == "invited" { UserStatus::Invited } else { UserStatus::Active },
            expires_at: row.read("expires_at")?,
            link: None,
        })
    }
}

/// The person to invite.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct UserInput {
    /// The address in ASCII: one @, a name before it and a host after it.
    #[garde(custom(email::check))]
    pub email: String,
    /// Their name in the invitation. The default is the part of the email before the @. People without an account can
    /// choose another name when they accept.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub name: Option<String>,
    pub role: Role,
}

/// The members of a user that can be changed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct UserChange {
    #[garde(custom(validate::line))]
    #[schema(min_length = 1)]
    pub name: String,
    pub role: Role,
}

/// A page of the tenant's users.
///
/// # Errors
/// `bad_request` for an order other than by creation.
pub async fn list(tx: &TenantTx, page: &Page<NoFilter>) -> Result<Items<UserView>> {
    let (sign, order) = if page.by_creation()? { ("<", "DESC") } else { (">", "ASC") };
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT * FROM tenant_people(NULL, NULL) AS u WHERE ($1::uuid IS NULL OR id {sign} $1) \
         AND {} AND ($4::timestamptz IS NULL OR updated_at >= $4) \
         ORDER BY id {order} LIMIT $2",
        contains(3, &["email", "name"])
    )))
    .bind(page.after.as_ref().map(|after| after.id))
    .bind(i64::try_from(page.limit + 1).unwrap_or(201))
    .bind(page.q.as_deref().map(pattern))
    .bind(page.updated_since)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    Ok(page.finish(stored::each(&rows, UserView::of), page.has_more(&rows), |user| (user.id, None)))
}

/// One user of the tenant, or an open invitation, by id or email.
///
/// # Errors
/// `not_found`.
pub async fn get(tx: &TenantTx, x: &str) -> Result<UserView> {
    find(tx, x).await?.ok_or_else(|| Error::not_found("user"))
}

async fn find(tx: &TenantTx, x: &str) -> Result<Option<UserView>> {
    let id = Uuid::try_parse(x).ok();
    let row = sqlx::query("SELECT * FROM tenant_people($1, $2) ORDER BY status LIMIT 1")
        .bind(id)
        .bind(id.is_none().then(|| email::fold(x)))
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    row.as_ref().map(UserView::of).transpose()
}

/// Locks the tenant's memberships and reads one.
///
/// # Errors
/// `not_found`.
async fn hold(tx: &TenantTx, x: &str) -> Result<UserView> {
    sqlx::query("SELECT tenant_users_hold()").execute(&mut *tx.connection().await).await?;
    get(tx, x).await
}

/// Invites somebody to the caller's tenant, and replaces their open invitation. Only the returned view contains the
/// path of the link. If the request is repeated under the same key (`once`), it gets the first answer without the link. The result
/// does not reveal whether the address has an account.
///
/// # Errors
/// `validation_failed`, `conflict` if they already belong to the tenant, `forbidden` for a role with more scopes than the caller.
pub async fn invite(
    app: &Edge,
    caller: &Caller,
    input: UserInput,
    once: Option<&IdempotencyKey>,
) -> Result<Written<UserView>> {
    validate::check(&input)?;
    may_give(caller, input.role)?;
    let name = input.name.unwrap_or_else(|| email::name_of(&input.email).to_owned());
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        if let Some(once) = once
            && let Some(stored) = once.claim(tx).await?
        {
            return Ok(Written::Before(stored));
        }
        if let Some(invited) = find(tx, &input.email).await?.filter(|user| user.status == UserStatus::Invited) {
            may_give(caller, invited.role)?;
        }
        let asked = links::Asked { email: input.email.trim(), name: &name, role: input.role, by: caller.author() };
        let (id, path) = links::invite(&mut *tx.connection().await, &asked).await?;
        let view = get(tx, &id.to_string()).await?;
        let answer = Answer::created(format!("/v1/users/{id}"), view.version, view);
        if let Some(once) = once {
            once.store(tx, &answer).await?;
        }
        Ok(answer.map(|view| UserView { link: Some(path), ..view }).into())
    })
    .await
}

/// A password reset.
#[derive(Serialize, ToSchema)]
pub struct ResetView {
    /// The link. It works once and for a day. Only the first response contains it. Give it only to this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// Creates a link with which a user of the caller's tenant sets a new password. Only the returned view contains its path. If the
/// request is repeated under the same key (`once`), it gets the first answer without the link.
///
/// # Errors
/// `not_found`, `conflict` for somebody who is only invited, `forbidden` for a user with more scopes than the caller or
/// who also belongs to another tenant.
pub async fn reset(app: &Edge, caller: &Caller, x: &str, once: Option<&IdempotencyKey>) -> Result<Written<ResetView>> {
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        if let Some(once) = once
            && let Some(stored) = once.claim(tx).await?
        {
            return Ok(Written::Before(stored));
        }
        let user = hold(tx, x).await?;
        must_have_come(&user)?;
        may_give(caller, user.role)?;
        let path = links::reset(&mut *tx.connection().await, user.id).await?.ok_or_else(|| {
            let detail =
                "This user also belongs to other tenants. Only the operator can reset them (`tavernkeep user reset`).";
            Error::new(Code::Forbidden, detail)
        })?;
        if let Some(once) = once {
            once.store(tx, &Answer::ok(ResetView { link: None })).await?;
        }
        Ok(Answer::ok(ResetView { link: Some(path) }).into())
    })
    .await
}

fn must_have_come(user: &UserView) -> Result<()> {
    match user.status {
        UserStatus::Active => Ok(()),
        UserStatus::Invited => {
            let detail = "They have not accepted their invitation yet. Withdraw it, or invite them again to get another \
                link.";
            Err(Error::new(Code::Conflict, detail))
        }
    }
}

/// Changes a user of the caller's tenant with a merge patch.
///
/// # Errors
/// `not_found`, `precondition_failed`, `validation_failed`, and those of [`change`].
pub async fn update(app: &Edge, caller: &Caller, expected: &Expected, x: &str, patch: &Value) -> Result<UserView> {
    const READ_ONLY: [&str; 10] = [
        "id",
        "email",
        "status",
        "is_shared",
        "created_at",
        "updated_at",
        "last_sign_in_at",
        "version",
        "expires_at",
        "link",
    ];
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        let user = hold(tx, x).await?;
        expected.check(user.version)?;
        let shown = serde_json::to_value(&user).map_err(Error::internal)?;
        let wanted: UserChange = bounds::read(merge_patch::apply(shown, patch.clone(), &READ_ONLY)?)?;
        validate::check(&wanted)?;
        must_have_come(&user)?;
        may_give(caller, user.role)?;
        may_give(caller, wanted.role)?;
        change(tx, &user, &wanted).await
    })
    .await
}

/// Removes a user from the caller's tenant, or withdraws an invitation.
///
/// # Errors
/// `not_found`, `precondition_failed`, `conflict` for the last owner.
pub async fn leave(app: &Edge, caller: &Caller, expected: &Expected, x: &str) -> Result<UserView> {
    tenancy::write(&app.pool, caller.actor(), async |tx| leave_in(tx, caller, expected, x).await).await
}

/// The same in the caller's transaction.
///
/// # Errors
/// As for [`leave`].
pub async fn leave_in(tx: &TenantTx, caller: &Caller, expected: &Expected, x: &str) -> Result<UserView> {
    let user = hold(tx, x).await?;
    expected.check(user.version)?;
    may_give(caller, user.role)?;
    match user.status {
        UserStatus::Active => remove(tx, &user).await?,
        UserStatus::Invited => links::withdraw(&mut *tx.connection().await, user.id).await?,
    }
    Ok(user)
}

/// Nobody may create, change or become a user with more scopes than they have.
fn may_give(caller: &Caller, role: Role) -> Result<()> {
    if role.scopes().iter().all(|scope| caller.scopes.has(scope)) {
        return Ok(());
    }
    let detail = format!("You do not have all the scopes of the role `{}`.", role.as_str());
    Err(Error::new(Code::Forbidden, detail))
}

/// Changes a user whose row is locked.
///
/// # Errors
/// `forbidden` for what only the user may change, `conflict` for the last owner.
async fn change(tx: &TenantTx, user: &UserView, change: &UserChange) -> Result<UserView> {
    if user.is_shared && change.name != user.name {
        let detail = "This user also belongs to other tenants. Only they can change their name.";
        return Err(Error::new(Code::Forbidden, detail));
    }
    if change.role != Role::Owner {
        another_owner_stays(tx, user).await?;
    }
    sqlx::query("SELECT tenant_user_change($1, $2, $3)")
        .bind(user.id)
        .bind(&change.name)
        .bind(change.role.as_str())
        .execute(&mut *tx.connection().await)
        .await?;
    get(tx, &user.id.to_string()).await
}

/// Removes a user whose row is locked from the tenant. If they belong to no other tenant, their account is deleted.
///
/// # Errors
/// `conflict` for the last owner.
async fn remove(tx: &TenantTx, user: &UserView) -> Result<()> {
    another_owner_stays(tx, user).await?;
    sqlx::query("SELECT tenant_user_remove($1)").bind(user.id).execute(&mut *tx.connection().await).await?;
    Ok(())
}

/// A tenant's last owner must stay an owner.
async fn another_owner_stays(tx: &TenantTx, user: &UserView) -> Result<()> {
    if user.role != Role::Owner || has_other_owner(&mut *tx.connection().await, tx.tenant(), user.id).await? {
        return Ok(());
    }
    Err(last_owner())
}

pub(super) async fn has_other_owner(db: impl PgExecutor<'_>, tenant: Uuid, user: Uuid) -> Result<bool> {
    let row = sqlx::query(
        "SELECT EXISTS (SELECT 1 FROM membership WHERE tenant_id = $1 AND role = 'owner' AND user_id <> $2) AS yes",
    )
    .bind(tenant)
    .bind(user)
    .fetch_one(db)
    .await?;
    row.read("yes")
}

pub(super) fn last_owner() -> Error {
    Error::new(Code::Conflict, "This is the tenant's last owner. Make somebody else an owner first.")
}
