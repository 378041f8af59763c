//! Signing in and out.

use actix_web::{
    FromRequest, HttpRequest, HttpResponse,
    dev::Payload,
    http::{
        StatusCode,
        header::{HeaderName, HeaderValue},
    },
    web,
};
use askama::Template;

use super::{
    answer::{html, is_htmx, see},
    editor::{app_of, keep_secret, secret_of},
    pending_form::{self, PendingForm, PendingFormPage},
    query::given,
    submitted::{Holds, Sent, Submitted, TOKEN_FIELD, not_of_this_visit, too_large},
};
use base::{
    error::{Code, Error, Result},
    metrics,
};
use edge::users::{
    email, second_factor,
    sessions::{self, Secret},
};

#[derive(Template)]
#[template(path = "admin/sign-in.html")]
struct SignInPage<'a> {
    token_field: &'static str,
    token: String,
    email: &'a str,
    next: &'a str,
    problem: Option<&'a str>,
    /// A form that was sent after the session had ended.
    kept: &'a PendingForm,
}

/// Somebody who is not signed in, with the form that they sent. The browser holds a secret from the first page on.
/// Signing in replaces that secret.
pub struct Stranger {
    pub(super) secret: Option<Secret>,
    pub(super) form: Submitted,
}

impl FromRequest for Stranger {
    type Error = Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let secret = secret_of(&request);
            let signs_in = request.path().starts_with("/admin/sign-in");
            let holds = if signs_in { Holds::Carried } else { Holds::Little };
            match Submitted::sent(&request, &mut payload, secret.as_ref(), holds).await? {
                Sent::Now(form) => {
                    // Only the form that it carries may be large.
                    let own =
                        form.fields().filter(|(name, _)| *name != "kept").map(|(name, value)| name.len() + value.len());
                    if own.sum::<usize>() > Holds::Little.bytes_max() {
                        return Err(too_large(Holds::Little.bytes_max()));
                    }
                    Ok(Self { secret, form })
                }
                // Somebody with several tabs has signed in in another one.
                Sent::FromEarlier(form) => {
                    if signs_in && form.get("kept").is_some() {
                        pending_form::set_aside(&request, &form);
                    }
                    Err(not_of_this_visit())
                }
            }
        })
    }
}

/// The sign-in form.
pub async fn page(request: HttpRequest, stranger: Stranger) -> Result<HttpResponse> {
    let next = given(request.query_string(), "next");
    let secret = stranger.secret.unwrap_or_else(Secret::generate);
    sign_in_page(&request, StatusCode::OK, &secret, (&next, ""), None, &PendingForm::default())
}

fn sign_in_page(
    request: &HttpRequest,
    status: StatusCode,
    secret: &Secret,
    (next, email): (&str, &str),
    problem: Option<&str>,
    kept: &PendingForm,
) -> Result<HttpResponse> {
    let token = secret.form_token();
    let page = SignInPage { token_field: TOKEN_FIELD, token, email, next: own_path(next), problem, kept };
    let mut answer = html(status, page.render().map_err(Error::internal)?);
    answer.add_cookie(&keep_secret(request, Some(secret))).map_err(|e| Error::internal(e.to_string()))?;
    Ok(answer)
}

/// Where to go after signing in: a page of the editor, never another site.
fn own_path(next: &str) -> &str {
    let is_ours = next.starts_with("/admin/") && next.len() <= 2000 && !next.contains(['\\', '\r', '\n']);
    if is_ours { next } else { "/admin" }
}

const WRONG: &str = "The email or the password is wrong.";

/// Signs in.
pub async fn enter(request: HttpRequest, stranger: Stranger) -> Result<HttpResponse> {
    let app = app_of(&request)?;
    let Some(before) = stranger.secret else { return Err(Error::new(Code::Forbidden, "Reload the page.")) };
    let (address, next) = (stranger.form.text("email").trim(), stranger.form.text("next"));
    let password = stranger.form.text("password").to_owned();
    let kept = PendingForm::carried(stranger.form.text("kept_path"), stranger.form.text("kept"));
    let refuse = |status, why: &str| sign_in_page(&request, status, &before, (next, address), Some(why), &kept);
    // Old accounts may have an address that a new account may not.
    if !address.contains('@') || address.len() > 1024 || password.is_empty() || password.len() > 1024 {
        return refuse(StatusCode::UNPROCESSABLE_ENTITY, "Enter your email and your password.");
    }
    let folded = email::fold(address);
    let attempt = match app.limits.sign_ins.password(app.client(&request), &folded).await {
        Ok(attempt) => attempt,
        Err(error) => {
            metrics::SIGN_INS.with_label_values(&["throttled"]).inc();
            let mut answer = refuse(StatusCode::TOO_MANY_REQUESTS, &error.detail)?;
            let seconds = error.retry_after_seconds.unwrap_or(1);
            answer.headers_mut().insert(actix_web::http::header::RETRY_AFTER, seconds.into());
            return Ok(answer);
        }
    };
    let account = sessions::account(&app.pool, &folded).await?;
    let hash = account.as_ref().map(|account| account.password_hash.clone());
    let is_right = app.passwords.is(password, hash).await?;
    let Some(account) = account.filter(|_| is_right) else {
        attempt.wrong();
        metrics::SIGN_INS.with_label_values(&["refused"]).inc();
        return refuse(StatusCode::UNAUTHORIZED, WRONG);
    };
    attempt.right();
    let (user, hash) = (account.user, account.password_hash.as_str());
    // If the password was changed meanwhile, the old one must not begin a session.
    let begun = match account.has_second_factor {
        true => second_factor::begin_half(&app.pool, user, hash, &before).await?,
        false => sessions::begin(&app.pool, user, hash, Some(&before)).await?,
    };
    let Some(secret) = begun else {
        metrics::SIGN_INS.with_label_values(&["refused"]).inc();
        return refuse(StatusCode::UNAUTHORIZED, WRONG);
    };
    match account.has_second_factor {
        true => code_page(&request, StatusCode::OK, &secret, next, None, &kept),
        false => entered(&request, &secret, next, &kept),
    }
}

/// Redirects somebody who has signed in completely to the page that they wanted.
fn entered(request: &HttpRequest, secret: &Secret, next: &str, kept: &PendingForm) -> Result<HttpResponse> {
    metrics::SIGN_INS.with_label_values(&["done"]).inc();
    let mut answer = match kept.read() {
        None => see(own_path(next)),
        Some(fields) => {
            let page = PendingFormPage {
                heading: "You are signed in again",
                path: own_path(&kept.path),
                next: own_path(next),
                token_field: TOKEN_FIELD,
                token: secret.form_token(),
                kept: fields,
            };
            html(StatusCode::OK, page.html()?)
        }
    };
    answer.add_cookie(&keep_secret(request, Some(secret))).map_err(|e| Error::internal(e.to_string()))?;
    Ok(answer)
}

#[derive(Template)]
#[template(path = "admin/sign-in-code.html")]
struct CodePage<'a> {
    token_field: &'static str,
    token: String,
    next: &'a str,
    problem: Option<&'a str>,
    kept: &'a PendingForm,
}

fn code_page(
    request: &HttpRequest,
    status: StatusCode,
    half: &Secret,
    next: &str,
    problem: Option<&str>,
    kept: &PendingForm,
) -> Result<HttpResponse> {
    let token = half.form_token();
    let page = CodePage { token_field: TOKEN_FIELD, token, next: own_path(next), problem, kept };
    let mut answer = html(status, page.render().map_err(Error::internal)?);
    answer.add_cookie(&keep_secret(request, Some(half))).map_err(|e| Error::internal(e.to_string()))?;
    Ok(answer)
}

/// Checks the second factor.
pub async fn enter_code(request: HttpRequest, stranger: Stranger) -> Result<HttpResponse> {
    let app = app_of(&request)?;
    let Some(before) = stranger.secret else { return Err(Error::new(Code::Forbidden, "Reload the page.")) };
    let next = stranger.form.text("next");
    let kept = PendingForm::carried(stranger.form.text("kept_path"), stranger.form.text("kept"));
    let Some(half) = second_factor::half(&app.pool, &before).await? else {
        let why = "The sign-in took too long, or the password was changed. Sign in again.";
        return sign_in_page(&request, StatusCode::UNAUTHORIZED, &before, (next, ""), Some(why), &kept);
    };
    let attempt = match app.limits.sign_ins.code(&half.account).await {
        Ok(attempt) => attempt,
        Err(error) => {
            metrics::SIGN_INS.with_label_values(&["throttled"]).inc();
            let status = StatusCode::TOO_MANY_REQUESTS;
            let mut answer = code_page(&request, status, &before, next, Some(&error.detail), &kept)?;
            let seconds = error.retry_after_seconds.unwrap_or(1);
            answer.headers_mut().insert(actix_web::http::header::RETRY_AFTER, seconds.into());
            return Ok(answer);
        }
    };
    let session = match second_factor::read(&app.secrets, half.user, &half.sealed, stranger.form.text("code"))? {
        Some(code) => second_factor::finish(&app.pool, &before, &code).await?,
        None => None,
    };
    match session {
        Some(session) => {
            attempt.right();
            entered(&request, &session, next, &kept)
        }
        None => {
            attempt.wrong();
            metrics::SIGN_INS.with_label_values(&["refused"]).inc();
            let why = "This code is wrong, or was used already.";
            code_page(&request, StatusCode::UNAUTHORIZED, &before, next, Some(why), &kept)
        }
    }
}

/// Signs out this browser, or with `everywhere` every browser of the user.
pub async fn leave(request: HttpRequest, stranger: Stranger, app: web::Data<ai::state::Ai>) -> Result<HttpResponse> {
    if let Some(secret) = &stranger.secret {
        sessions::end(&app.pool, secret, stranger.form.has("everywhere")).await?;
    }
    let mut answer = see("/admin/sign-in");
    answer.add_cookie(&keep_secret(&request, None)).map_err(|e| Error::internal(e.to_string()))?;
    // The browser also clears its cache and storage.
    let everything = HeaderValue::from_static("\"cache\", \"storage\"");
    answer.headers_mut().insert(HeaderName::from_static("clear-site-data"), everything);
    Ok(answer)
}

#[derive(Template)]
#[template(path = "admin/signed-out.html")]
struct SignedOut<'a> {
    path: &'a str,
}

/// Redirects somebody who is not signed in to the sign-in form, and from there back to the page that they wanted. If
/// htmx sent a form, the page stays and shows a message.
pub fn sent_there(request: &HttpRequest) -> HttpResponse {
    let is_htmx = is_htmx(request);
    if let Some(kept) = pending_form::of(request) {
        return with_what_was_written(request, &kept).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot render the sign-in page");
            HttpResponse::Unauthorized().finish()
        });
    }
    let wanted = match is_htmx {
        true => current_page(request),
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
            tracing::error!(%error, "cannot render the signed-out notice");
            HttpResponse::Unauthorized().finish()
        }
    }
}

/// The sign-in form. It carries a submitted form that could not be saved.
fn with_what_was_written(request: &HttpRequest, kept: &PendingForm) -> Result<HttpResponse> {
    let secret = secret_of(request).unwrap_or_else(Secret::generate);
    sign_in_page(request, StatusCode::UNAUTHORIZED, &secret, (&shown_before(request), ""), Some(kept.notice), kept)
}

/// The page that a form was sent from.
fn shown_before(request: &HttpRequest) -> String {
    request.headers().get("referer").and_then(|v| v.to_str().ok()).and_then(path_of).unwrap_or_default()
}

/// Shows somebody who has signed in again since a page was loaded what they sent from it, to be sent again.
///
/// # Errors
/// `internal` if the page cannot be written.
pub(super) fn of_an_earlier_session(request: &HttpRequest, kept: &PendingForm) -> Result<HttpResponse> {
    let secret = secret_of(request).ok_or_else(|| Error::internal("a form of nobody was kept"))?;
    let next = shown_before(request);
    let page = PendingFormPage {
        heading: "You have signed in again since this page was opened",
        path: own_path(&kept.path),
        next: own_path(&next),
        token_field: TOKEN_FIELD,
        token: secret.form_token(),
        kept: kept.read().unwrap_or_default(),
    };
    Ok(html(StatusCode::FORBIDDEN, page.html()?))
}

/// The path and query of an address.
fn path_of(address: &str) -> Option<String> {
    let shown = url::Url::parse(address).ok()?;
    Some(shown.query().map_or_else(|| shown.path().to_owned(), |query| format!("{}?{query}", shown.path())))
}

/// The page that the browser shows while htmx sends a request.
fn current_page(request: &HttpRequest) -> Option<String> {
    path_of(request.headers().get("hx-current-url")?.to_str().ok()?)
}
