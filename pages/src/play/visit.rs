//! Joining and leaving the table: a link's token is exchanged for a cookie.

use std::{future::Future, pin::Pin};

use actix_web::{
    FromRequest, HttpMessage, HttpRequest, HttpResponse,
    cookie::{Cookie, SameSite, time::Duration},
    dev::Payload,
    web,
};
use serde::Deserialize;
use time::OffsetDateTime;
use uuid::Uuid;

use super::answer::{Filled, alert, filled, page_or_alert, table_of};
use ai::state::Ai;
use base::{
    clock,
    error::{Code, Error, Result},
    request_id::RequestId,
};
use db::tenancy::TenantTx;
use edge::{
    auth::gate::{caller_of, caller_with},
    caller::{
        Caller, Scope,
        jwt::{Claims, Narrowed},
    },
    http::{
        forms::from_our_page,
        resource::{Ref, campaign_id},
    },
    limits::Class,
};

const COOKIE: &str = "tavernkeep_play";
/// The longest visit. It is shorter if its token or its key expires sooner.
const VISIT_SECONDS: i64 = 12 * 3600;

/// A player at the table.
pub struct Visitor {
    pub caller: Caller,
    pub player: Uuid,
}

impl Visitor {
    /// The player of a credential, if it is a player's.
    fn of(caller: Caller) -> Option<Self> {
        let player = caller.player.filter(|_| caller.campaign.is_some() && caller.scopes.has(Scope::Play))?;
        Some(Self { caller, player })
    }
}

fn no_visit() -> Error {
    Error::new(
        Code::Unauthenticated,
        "You have not joined this table, or your visit is over. Open your player link again.",
    )
}

impl FromRequest for Visitor {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let app = app_of(&request)?;
            let cookie = request.cookie(COOKIE).ok_or_else(no_visit)?;
            let claims = app.tokens.check_visit(cookie.value()).ok_or_else(no_visit)?;
            let caller = caller_with(&app, claims, request_id(&request)).await?;
            let visitor = caller.and_then(Visitor::of).ok_or_else(no_visit)?;
            let rate = app.limits.check(&visitor.caller.tenant, Class::Requests);
            request.extensions_mut().insert(rate);
            rate.allowed("requests")?;
            app.admission.belongs_to(visitor.caller.tenant_id(), request.path())?;
            Ok(visitor)
        })
    }
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

/// Exchanges a player's token for a visit.
pub async fn enter(request: HttpRequest, campaign: web::Path<String>, form: Filled<Enter>) -> HttpResponse {
    page_or_alert(&request, entered(&request, &campaign, form).await)
}

async fn entered(request: &HttpRequest, campaign: &str, form: Filled<Enter>) -> Result<HttpResponse> {
    from_our_page(request)?;
    let Enter { token } = filled(form)?;
    let app = app_of(request)?;
    let caller = caller_of(&app, token.trim(), request_id(request)).await?;
    let peer = app.client(request);
    let Some(Visitor { caller, player }) = caller.and_then(Visitor::of) else {
        app.limits.check_failure(peer).allowed("failed sign-ins")?;
        let why = "This is not a player link, or it has expired: a link is valid for an hour. Ask your game master for another.";
        return Err(Error::new(Code::Unauthenticated, why));
    };
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let id = campaign_id(&tx, &caller, &Ref::parse(campaign)).await?;
    let scopes = [Scope::Read, Scope::Play].into_iter().filter(|scope| caller.scopes.has(*scope));
    let scope = scopes.map(Scope::as_str).collect::<Vec<_>>().join(" ");
    let narrowed = Narrowed { scope, campaign: Some(id), player: Some(player) };
    let seconds = lasts(&caller);
    let visit = app.tokens.sign(&Claims::of_visit(&caller.key_prefix, caller.tenant_id(), narrowed, seconds))?;
    Ok(HttpResponse::SeeOther()
        .insert_header(("location", table_of(request)))
        .cookie(cookie(request, visit, seconds))
        .finish())
}

/// How long a visit lasts: never longer than the token that it was exchanged for.
fn lasts(caller: &Caller) -> i64 {
    let left = caller.token_until.map_or(0, |until| until.saturating_sub(clock::now().unix_timestamp()));
    left.clamp(0, VISIT_SECONDS)
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
    let until = clock::later(OffsetDateTime::UNIX_EPOCH, time::Duration::seconds(claims.exp));
    match caller_with(&app, claims, request_id(request)).await? {
        Some(caller) => app.keys.end_visit(&caller, visit, until).await,
        None => Ok(()),
    }
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
