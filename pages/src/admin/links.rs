//! The pages of one-time links: an invitation to a tenant, or a password reset.
//!
//! Opening the page does not use up the link. People without an account set a name and a password. People with an
//! account accept in their own session, which only their password can begin. Nothing here gives anybody access to an
//! existing account.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use askama::Template;

use super::{
    answer::{html, see},
    editor::{app_of, keep_secret, secret_of},
    sign_in::Stranger,
    submitted::TOKEN_FIELD,
};
use ai::state::Ai;
use base::error::{Code, Error, Result};
use edge::{
    http::validate,
    passwords,
    users::{
        email,
        links::{self, Invitation},
        sessions::{self, Secret, User},
    },
};

/// What the holder of an invitation can do.
enum Way {
    /// This address has no account: they can create one.
    Join,
    /// They are signed in with the invited account.
    Accept,
    /// They are signed in with another account.
    Leave { email: String },
    /// They have to sign in first.
    SignIn,
}

#[derive(Template)]
#[template(path = "admin/invitation.html")]
struct InvitationPage<'a> {
    token_field: &'static str,
    token: String,
    path: &'a str,
    asked: &'a Invitation,
    way: Way,
    name: &'a str,
    problem: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "admin/reset.html")]
struct ResetPage<'a> {
    token_field: &'static str,
    token: String,
    path: &'a str,
    email: &'a str,
    problem: Option<&'a str>,
}

fn no_longer_good() -> Error {
    let why =
        "This link was used, withdrawn or replaced, or it has expired. Ask the person who gave it to you for another.";
    Error::new(Code::Gone, why)
}

fn link_of(request: &HttpRequest) -> Result<Secret> {
    Secret::parse(request.match_info().get("x").unwrap_or_default()).ok_or_else(no_longer_good)
}

fn page(request: &HttpRequest, status: StatusCode, secret: &Secret, page: &impl Template) -> Result<HttpResponse> {
    let mut answer = html(status, page.render().map_err(Error::internal)?);
    answer.add_cookie(&keep_secret(request, Some(secret))).map_err(|e| Error::internal(e.to_string()))?;
    Ok(answer)
}

async fn signed_in(app: &Ai, request: &HttpRequest) -> Result<Option<(Secret, User)>> {
    let Some(secret) = secret_of(request) else { return Ok(None) };
    Ok(sessions::user(&app.pool, &secret).await?.map(|user| (secret, user)))
}

async fn find_invitation(app: &Ai, link: &Secret) -> Result<Invitation> {
    links::invitation(&app.pool, link).await?.ok_or_else(no_longer_good)
}

/// The invitation's page, for the present state of its holder.
async fn invitation_page(
    app: &Ai,
    request: &HttpRequest,
    asked: &Invitation,
    (name, problem): (&str, Option<&str>),
) -> Result<HttpResponse> {
    let user = signed_in(app, request).await?;
    let way = match &user {
        None if asked.has_account => Way::SignIn,
        None => Way::Join,
        Some((_, user)) if email::fold(&user.email) == asked.folded => Way::Accept,
        Some((_, user)) => Way::Leave { email: user.email.clone() },
    };
    let secret = user.map(|(secret, _)| secret).or_else(|| secret_of(request)).unwrap_or_else(Secret::generate);
    let status = if problem.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let token = secret.form_token();
    let shown = InvitationPage { token_field: TOKEN_FIELD, token, path: request.path(), asked, way, name, problem };
    page(request, status, &secret, &shown)
}

/// The page of an invitation.
pub async fn invitation(request: HttpRequest, _: Stranger) -> Result<HttpResponse> {
    let app = app_of(&request)?;
    let asked = find_invitation(&app, &link_of(&request)?).await?;
    invitation_page(&app, &request, &asked, (&asked.name, None)).await
}

/// Joins the tenant with a new account, or with the account that is signed in.
pub async fn accept(request: HttpRequest, stranger: Stranger) -> Result<HttpResponse> {
    let (app, link) = (app_of(&request)?, link_of(&request)?);
    let asked = find_invitation(&app, &link).await?;
    let user = signed_in(&app, &request).await?;
    match user {
        Some((session, user)) if email::fold(&user.email) == asked.folded => {
            if !links::accept(&app.pool, &link, &session).await? {
                return Err(no_longer_good());
            }
            Ok(see("/admin/campaigns"))
        }
        None if !asked.has_account => joined(&app, &request, &stranger, &link, &asked).await,
        _ => invitation_page(&app, &request, &asked, (&asked.name, None)).await,
    }
}

/// Creates an account and signs it in.
async fn joined(
    app: &web::Data<Ai>,
    request: &HttpRequest,
    stranger: &Stranger,
    link: &Secret,
    asked: &Invitation,
) -> Result<HttpResponse> {
    let (name, password) = (stranger.form.text("name").trim(), stranger.form.text("new_password"));
    let wrong = match validate::line(name, &()) {
        Err(error) => Some(format!("The name {error}.")),
        Ok(()) => wrong_password(stranger, &asked.email),
    };
    if let Some(wrong) = wrong {
        return invitation_page(app, request, asked, (name, Some(&wrong))).await;
    }
    let hash = app.passwords.hash(password.to_owned()).await?;
    let user = links::accept_new(&app.pool, link, name, &hash).await?.ok_or_else(no_longer_good)?;
    let session = sessions::begin(&app.pool, user, &hash, stranger.secret.as_ref()).await?;
    let mut answer = see("/admin/campaigns");
    if let Some(session) = session {
        answer.add_cookie(&keep_secret(request, Some(&session))).map_err(|e| Error::internal(e.to_string()))?;
    }
    Ok(answer)
}

/// The error of a new password.
fn wrong_password(stranger: &Stranger, address: &str) -> Option<String> {
    let password = stranger.form.text("new_password");
    if password != stranger.form.text("again") {
        return Some("The two passwords differ.".to_owned());
    }
    let checked = passwords::check("/new_password", password, address);
    checked.err().and_then(|error| error.errors.first().map(|wrong| wrong.message.clone()))
}

fn reset_shown(request: &HttpRequest, stranger: &Stranger, email: &str, problem: Option<&str>) -> Result<HttpResponse> {
    let secret = stranger.secret.clone().unwrap_or_else(Secret::generate);
    let status = if problem.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let token = secret.form_token();
    let shown = ResetPage { token_field: TOKEN_FIELD, token, path: request.path(), email, problem };
    page(request, status, &secret, &shown)
}

/// The page of a password reset.
pub async fn reset(request: HttpRequest, stranger: Stranger) -> Result<HttpResponse> {
    let app = app_of(&request)?;
    let email = links::reset_of(&app.pool, &link_of(&request)?).await?.ok_or_else(no_longer_good)?;
    reset_shown(&request, &stranger, &email, None)
}

/// Sets the new password. This signs nobody in.
pub async fn set_password(request: HttpRequest, stranger: Stranger) -> Result<HttpResponse> {
    let (app, link) = (app_of(&request)?, link_of(&request)?);
    let email = links::reset_of(&app.pool, &link).await?.ok_or_else(no_longer_good)?;
    if let Some(wrong) = wrong_password(&stranger, &email) {
        return reset_shown(&request, &stranger, &email, Some(&wrong));
    }
    let hash = app.passwords.hash(stranger.form.text("new_password").to_owned()).await?;
    if !links::use_reset(&app.pool, &link, &hash).await? {
        return Err(no_longer_good());
    }
    Ok(see("/admin/sign-in"))
}
