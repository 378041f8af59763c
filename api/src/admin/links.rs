//! What a link that is good once leads to: an invitation to a tenant, or a new password.
//!
//! Looking uses nothing up. Whoever has no account sets a name and a password; whoever has one accepts in their own session, which
//! only their password began. Nothing here gives an account that is there away.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use askama::Template;

use super::{
    editor::{app_of, keep_secret, secret_of},
    html, see,
    sign_in::Stranger,
    submitted::TOKEN_FIELD,
};
use crate::{
    app::App,
    error::{Code, Error, Result},
    http::validate,
    users::{
        email,
        links::{self, Invitation},
        passwords,
        sessions::{self, Secret, User},
    },
};

/// What the holder of an invitation can do.
enum Way {
    /// They have no account of this address.
    Join,
    /// They are signed in with the account that is asked.
    Accept,
    /// They are signed in with another.
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
    let why = "This link was used, withdrawn or replaced, or is too old. Ask whoever gave it to you for another.";
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

async fn signed_in(app: &App, request: &HttpRequest) -> Result<Option<(Secret, User)>> {
    let Some(secret) = secret_of(request) else { return Ok(None) };
    Ok(sessions::user(&app.pool, &secret).await?.map(|user| (secret, user)))
}

async fn asked(app: &App, link: &Secret) -> Result<Invitation> {
    links::invitation(&app.pool, link).await?.ok_or_else(no_longer_good)
}

/// The invitation, as far as its holder has come.
async fn shown(
    app: &App,
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
    let asked = asked(&app, &link_of(&request)?).await?;
    shown(&app, &request, &asked, (&asked.name, None)).await
}

/// Comes to the tenant: with a new account, or with the one that is signed in.
pub async fn accept(request: HttpRequest, stranger: Stranger) -> Result<HttpResponse> {
    let (app, link) = (app_of(&request)?, link_of(&request)?);
    let asked = asked(&app, &link).await?;
    let user = signed_in(&app, &request).await?;
    match user {
        Some((session, user)) if email::fold(&user.email) == asked.folded => {
            if !links::accept(&app.pool, &link, &session).await? {
                return Err(no_longer_good());
            }
            Ok(see("/admin/campaigns"))
        }
        None if !asked.has_account => joined(&app, &request, &stranger, &link, &asked).await,
        _ => shown(&app, &request, &asked, (&asked.name, None)).await,
    }
}

/// A new account for who has none, signed in.
async fn joined(
    app: &web::Data<App>,
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
        return shown(app, request, asked, (name, Some(&wrong))).await;
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

/// What is wrong with a new password.
fn wrong_password(stranger: &Stranger, address: &str) -> Option<String> {
    let password = stranger.form.text("new_password");
    if password != stranger.form.text("again") {
        return Some("The password is not the same twice.".to_owned());
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

/// The page of a reset.
pub async fn reset(request: HttpRequest, stranger: Stranger) -> Result<HttpResponse> {
    let app = app_of(&request)?;
    let email = links::reset_of(&app.pool, &link_of(&request)?).await?.ok_or_else(no_longer_good)?;
    reset_shown(&request, &stranger, &email, None)
}

/// Sets the new password. Nobody is signed in by it.
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
