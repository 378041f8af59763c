//! Joining and leaving the table: a player link, or a player's token, is exchanged for a cookie.

use std::{fmt, future::Future, pin::Pin};

use actix_web::{
    FromRequest, HttpMessage, HttpRequest, HttpResponse, ResponseError,
    cookie::{Cookie, SameSite, time::Duration},
    dev::Payload,
    http::StatusCode,
    web,
};
use askama::Template;
use serde::Deserialize;
use uuid::Uuid;

use super::answer::{Filled, alert, alert_in, filled, is_htmx, page_or_alert, rendered, table_of};
use ai::state::Ai;
use base::{
    clock,
    error::{Code, Error, Result},
    metrics,
    request_id::RequestId,
};
use db::tenancy::TenantTx;
use edge::{
    auth::gate::{caller_of, caller_with},
    caller::{
        Caller, Scope,
        jwt::{Claims, Narrowed, VISIT_SECONDS},
        keys,
        links::LinkSecret,
    },
    http::{
        forms::from_our_page,
        page::html,
        resource::{Ref, campaign_id},
    },
    limits::Class,
};

const COOKIE: &str = "tavernkeep_play";

/// A player at the table.
pub(super) struct Visitor {
    pub caller: Caller,
    pub player: Uuid,
    claims: Claims,
}

impl Visitor {
    /// The visitor with these claims, if they are a player's and still hold.
    async fn of(app: &Ai, claims: Claims, request: RequestId) -> Result<Option<Self>> {
        let caller = caller_with(app, claims.clone(), request).await?;
        Ok(caller.and_then(|caller| {
            let player = player_of(&caller)?;
            Some(Self { caller, player, claims })
        }))
    }

    /// Whether the visit still holds. Ends the transaction.
    ///
    /// # Errors
    /// Database errors.
    pub async fn may_stay(&self, app: &Ai, tx: TenantTx) -> Result<bool> {
        let lives = keys::lives(&tx, &self.caller).await?;
        drop(tx);
        Ok(lives && app.keys.is_live(&self.caller).await?)
    }

    /// The cookie of the same visit from now on, if the one that was sent is old.
    ///
    /// # Errors
    /// `internal` if it cannot be signed.
    pub fn renewal(&self, app: &Ai, request: &HttpRequest) -> Result<Option<Cookie<'static>>> {
        if !self.claims.is_old() {
            return Ok(None);
        }
        signed(app, request, &self.claims.clone().renewed()).map(Some)
    }
}

/// Somebody at the table, or why they are not.
pub(super) type Seating = std::result::Result<Visitor, Unseated>;

/// Answers somebody at the table, or says that they are not there.
pub(super) async fn seated_at(
    seating: Seating,
    request: &HttpRequest,
    work: impl AsyncFnOnce(Visitor) -> Result<HttpResponse>,
) -> HttpResponse {
    match seating {
        Ok(visitor) => page_or_alert(request, work(visitor).await),
        Err(unseated) => unseated.page(""),
    }
}

/// The character that a credential plays, if it may be at a table.
fn player_of(caller: &Caller) -> Option<Uuid> {
    caller.player.filter(|_| caller.campaign.is_some() && caller.scopes.has(Scope::Play))
}

/// Why somebody is not at the table. It is answered as a page, or as a message for the page that asked.
#[derive(Debug)]
pub(super) struct Unseated {
    pub error: Error,
    link: String,
    is_htmx: bool,
}

/// The page of somebody whose visit is over.
#[derive(Template)]
#[template(path = "play/over.html")]
struct Over<'a> {
    link: &'a str,
    /// What they have just written.
    text: &'a str,
}

impl Unseated {
    /// The answer. `text` is what they have just written.
    #[must_use]
    pub fn page(&self, text: &str) -> HttpResponse {
        if self.error.code != Code::Unauthenticated || self.is_htmx {
            return alert_in(self.is_htmx, &self.link, &self.error);
        }
        let link = self.link.trim_start_matches("/play/");
        match (Over { link, text }).render() {
            Ok(page) => html(StatusCode::UNAUTHORIZED, page),
            Err(_) => alert_in(self.is_htmx, &self.link, &self.error),
        }
    }
}

impl fmt::Display for Unseated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl ResponseError for Unseated {
    fn status_code(&self) -> StatusCode {
        self.error.status_code()
    }

    fn error_response(&self) -> HttpResponse {
        self.page("")
    }
}

pub(super) fn no_visit() -> Error {
    Error::new(
        Code::Unauthenticated,
        "Your visit is over. Open your player link again. What you wrote stays in its field.",
    )
}

impl FromRequest for Visitor {
    type Error = Unseated;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Self, Unseated>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let seated = seated(&request).await;
            seated.map_err(|error| Unseated { error, link: table_of(&request), is_htmx: is_htmx(&request) })
        })
    }
}

async fn seated(request: &HttpRequest) -> Result<Visitor> {
    let app = app_of(request)?;
    let cookie = request.cookie(COOKIE).ok_or_else(no_visit)?;
    let claims = app.tokens.check_visit(cookie.value()).ok_or_else(no_visit)?;
    let visitor = Visitor::of(&app, claims, request_id(request)).await?.ok_or_else(no_visit)?;
    let rate = app.limits.check(&visitor.caller.tenant, Class::Requests);
    request.extensions_mut().insert(rate);
    rate.allowed("requests")?;
    app.admission.belongs_to(visitor.caller.tenant_id(), request.path())?;
    Ok(visitor)
}

fn app_of(request: &HttpRequest) -> Result<web::Data<Ai>> {
    request.app_data::<web::Data<Ai>>().cloned().ok_or_else(|| Error::internal("no application state"))
}

fn request_id(request: &HttpRequest) -> RequestId {
    request.extensions().get::<RequestId>().cloned().unwrap_or_else(RequestId::generate)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enter {
    token: String,
}

/// Exchanges a player link's secret, or a player's token, for a visit.
pub async fn enter(request: HttpRequest, campaign: web::Path<String>, form: Filled<Enter>) -> HttpResponse {
    page_or_alert(&request, entered(&request, &campaign, form).await)
}

async fn entered(request: &HttpRequest, campaign: &str, form: Filled<Enter>) -> Result<HttpResponse> {
    from_our_page(request)?;
    let Enter { token } = filled(form)?;
    let app = app_of(request)?;
    let begun = match begun(&app, token.trim(), request_id(request)).await? {
        Some(claims) => Visitor::of(&app, claims, request_id(request)).await?,
        None => None,
    };
    let Some(Visitor { caller, claims, .. }) = begun else {
        app.limits.check_failure(app.client(request)).allowed("failed sign-ins")?;
        let why = "This is not a player link that works: it may have been revoked, or its time is over. Ask your game master for another.";
        return Err(Error::new(Code::Unauthenticated, why));
    };
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    campaign_id(&tx, &caller, &Ref::parse(campaign)).await?;
    metrics::VISITS.with_label_values(&[if claims.link.is_some() { "link" } else { "token" }]).inc();
    Ok(HttpResponse::SeeOther()
        .insert_header(("location", table_of(request)))
        .cookie(signed(&app, request, &claims)?)
        .finish())
}

/// The claims of a new visit by a link or a token. None if it is neither.
async fn begun(app: &Ai, credential: &str, request: RequestId) -> Result<Option<Claims>> {
    if let Some(link) = LinkSecret::parse(credential) {
        return link.visit(&app.pool).await;
    }
    let Some(caller) = caller_of(app, credential, request).await? else { return Ok(None) };
    let Some(player) = player_of(&caller) else { return Ok(None) };
    let scopes = [Scope::Read, Scope::Play].into_iter().filter(|scope| caller.scopes.has(*scope));
    let scope = scopes.map(Scope::as_str).collect::<Vec<_>>().join(" ");
    let narrowed = Narrowed { scope, campaign: caller.campaign, player: Some(player) };
    Ok(Some(Claims::of_visit(&caller.key_prefix, caller.tenant_id(), narrowed, None, caller.token_until)))
}

#[derive(Template)]
#[template(path = "play/leave.html")]
struct Leave<'a> {
    link: &'a str,
}

/// Asks whether to leave.
pub(super) async fn ask(visitor: Seating, request: HttpRequest, link: web::Path<String>) -> HttpResponse {
    seated_at(visitor, &request, async |_| rendered(&Leave { link: &link })).await
}

/// Ends a visit: its cookie no longer works, whoever has it.
pub async fn leave(request: HttpRequest) -> HttpResponse {
    if let Err(error) = left(&request).await {
        return alert(&request, &error);
    }
    HttpResponse::SeeOther()
        .insert_header(("location", table_of(&request)))
        .cookie(cookie(&request, String::new(), 0))
        .finish()
}

async fn left(request: &HttpRequest) -> Result<()> {
    from_our_page(request)?;
    let app = app_of(request)?;
    let claims = request.cookie(COOKIE).and_then(|cookie| app.tokens.check_visit(cookie.value()));
    let Some((claims, visit)) = claims.and_then(|claims| claims.jti.map(|visit| (claims, visit))) else {
        return Ok(());
    };
    // Longer than the newest cookie of this visit, which may not be the one that was sent.
    let until = clock::later(clock::now(), time::Duration::seconds(VISIT_SECONDS));
    match caller_with(&app, claims, request_id(request)).await? {
        Some(caller) => app.keys.end_visit(&caller, visit, until).await,
        None => Ok(()),
    }
}

fn signed(app: &Ai, request: &HttpRequest, claims: &Claims) -> Result<Cookie<'static>> {
    let seconds = claims.exp.saturating_sub(claims.iat).max(0);
    Ok(cookie(request, app.tokens.sign(claims)?, seconds))
}

/// A visit belongs to one table. At another table, the same browser may play somebody else.
fn cookie(request: &HttpRequest, value: String, seconds: i64) -> Cookie<'static> {
    Cookie::build(COOKIE, value)
        .path(table_of(request))
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(request.connection_info().scheme() == "https")
        .max_age(Duration::seconds(seconds))
        .finish()
}
