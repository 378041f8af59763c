//! Signing in and out.

use actix_web::{FromRequest, HttpRequest, HttpResponse, dev::Payload, http::StatusCode, web};
use askama::Template;

use super::{
    editor::{app_of, keep_secret, peer, secret_of},
    html, is_htmx,
    query::given,
    see,
    submitted::{Holds, Submitted, TOKEN_FIELD},
};
use crate::{
    error::{Code, Error, Result},
    ops::metrics,
    users::{
        service,
        sessions::{self, Secret},
    },
};

#[derive(Template)]
#[template(path = "admin/sign-in.html")]
struct SignInPage<'a> {
    token_field: &'static str,
    token: String,
    email: &'a str,
    next: &'a str,
    problem: Option<&'a str>,
}

/// Somebody who is not signed in, with the form that they sent. The browser holds a secret from the first page on, which signing
/// in replaces.
pub struct Stranger {
    secret: Option<Secret>,
    form: Submitted,
}

impl FromRequest for Stranger {
    type Error = Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let secret = secret_of(&request);
            let form = Submitted::read(&request, &mut payload, secret.as_ref(), Holds::Little).await?;
            Ok(Self { secret, form })
        })
    }
}

/// The form to sign in.
pub async fn page(request: HttpRequest, stranger: Stranger) -> Result<HttpResponse> {
    let next = given(request.query_string(), "next");
    let secret = stranger.secret.unwrap_or_else(Secret::generate);
    shown(&request, StatusCode::OK, &secret, (&next, ""), None)
}

fn shown(
    request: &HttpRequest,
    status: StatusCode,
    secret: &Secret,
    (next, email): (&str, &str),
    problem: Option<&str>,
) -> Result<HttpResponse> {
    let token = secret.form_token();
    let page = SignInPage { token_field: TOKEN_FIELD, token, email, next: own_path(next), problem };
    let mut answer = html(status, page.render().map_err(Error::internal)?);
    answer.add_cookie(&keep_secret(request, Some(secret))).map_err(|e| Error::internal(e.to_string()))?;
    Ok(answer)
}

/// Where to go after signing in: a page of the editor, never another site.
fn own_path(next: &str) -> &str {
    let is_ours = next.starts_with("/admin/") && next.len() <= 2000 && !next.contains(['\\', '\r', '\n']);
    if is_ours { next } else { "/admin" }
}

const WRONG: &str = "This email and password do not go together.";

/// Signs in.
pub async fn enter(request: HttpRequest, stranger: Stranger) -> Result<HttpResponse> {
    let app = app_of(&request)?;
    let Some(before) = stranger.secret else { return Err(Error::new(Code::Forbidden, "Load the page again.")) };
    let (email, next) = (stranger.form.text("email").trim(), stranger.form.text("next"));
    let password = stranger.form.text("password").to_owned();
    let refuse = |status, why: &str| shown(&request, status, &before, (next, email), Some(why));
    if service::is_email(email, &()).is_err() || password.is_empty() || password.len() > 1024 {
        return refuse(StatusCode::UNPROCESSABLE_ENTITY, "Write your email and your password.");
    }
    if let Err(error) = app.limits.check_sign_in(peer(&request), email) {
        metrics::SIGN_INS.with_label_values(&["throttled"]).inc();
        let mut answer = refuse(StatusCode::TOO_MANY_REQUESTS, &error.detail)?;
        let seconds = error.retry_after_seconds.unwrap_or(1);
        answer.headers_mut().insert(actix_web::http::header::RETRY_AFTER, seconds.into());
        return Ok(answer);
    }
    let account = sessions::account(&app.pool, email).await?;
    let hash = account.as_ref().map(|(_, hash)| hash.clone());
    let is_right = app.passwords.is(password, hash).await?;
    let Some((user, hash)) = account.filter(|_| is_right) else {
        metrics::SIGN_INS.with_label_values(&["refused"]).inc();
        return refuse(StatusCode::UNAUTHORIZED, WRONG);
    };
    // Whoever changed the password meanwhile ended all sessions that the old one began.
    let Some(secret) = sessions::begin(&app.pool, user, &hash, Some(&before)).await? else {
        metrics::SIGN_INS.with_label_values(&["refused"]).inc();
        return refuse(StatusCode::UNAUTHORIZED, WRONG);
    };
    metrics::SIGN_INS.with_label_values(&["done"]).inc();
    let mut answer = see(own_path(next));
    answer.add_cookie(&keep_secret(&request, Some(&secret))).map_err(|e| Error::internal(e.to_string()))?;
    Ok(answer)
}

/// Signs out: this browser, or with `everywhere` every browser of the user.
pub async fn leave(request: HttpRequest, stranger: Stranger, app: web::Data<crate::app::App>) -> Result<HttpResponse> {
    if let Some(secret) = &stranger.secret {
        sessions::end(&app.pool, secret, stranger.form.has("everywhere")).await?;
    }
    let mut answer = see("/admin/sign-in");
    answer.add_cookie(&keep_secret(&request, None)).map_err(|e| Error::internal(e.to_string()))?;
    Ok(answer)
}

#[derive(Template)]
#[template(path = "admin/signed-out.html")]
struct SignedOut<'a> {
    path: &'a str,
}

/// Sends somebody who is not signed in to the form, and then back to the page that they wanted to see. A page that sends what
/// somebody writes stays, and says so.
pub fn sent_there(request: &HttpRequest) -> HttpResponse {
    let is_htmx = is_htmx(request);
    let wanted = match is_htmx {
        true => shown_there(request),
        false => request.uri().path_and_query().filter(|_| request.method() == "GET").map(ToString::to_string),
    };
    let query = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(wanted.filter(|path| *path != "/admin").map(|path| ("next", path)))
        .finish();
    let path = if query.is_empty() { "/admin/sign-in".to_owned() } else { format!("/admin/sign-in?{query}") };
    if !is_htmx {
        return see(&path);
    }
    if request.method() == "GET" {
        return HttpResponse::Ok()
            .insert_header(("hx-redirect", path))
            .insert_header(("cache-control", "no-store"))
            .finish();
    }
    match (SignedOut { path: &path }).render() {
        Ok(piece) => html(StatusCode::UNAUTHORIZED, piece),
        Err(error) => {
            tracing::error!(%error, "a piece cannot be shown");
            HttpResponse::Unauthorized().finish()
        }
    }
}

/// The page that the browser shows while htmx asks.
fn shown_there(request: &HttpRequest) -> Option<String> {
    let shown = url::Url::parse(request.headers().get("hx-current-url")?.to_str().ok()?).ok()?;
    Some(shown.query().map_or_else(|| shown.path().to_owned(), |query| format!("{}?{query}", shown.path())))
}
