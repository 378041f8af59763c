//! The middleware in front of every `/v1` route. It checks the credential, the request limit, the token's campaign, the
//! player and the scope, in this order.

use std::net::IpAddr;

use actix_web::{
    HttpMessage,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header::{self, HeaderMap},
    middleware::Next,
    web,
};

use crate::caller::{
    Caller, CallerParts, Scope, Scopes,
    access::{self, Access, Player, Reach},
    jwt::Claims,
    keys::{self, Narrowing},
};
use crate::{http::router::answer_without_route, limits::Class, state::Edge};
use base::{
    error::{Code, Error, Result},
    rate::Rate,
    request_id::RequestId,
};

/// Lets a request pass if its credential allows the route.
///
/// # Errors
/// Those of the inner service. A rejection is not an error but an answer.
pub async fn gate<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> std::result::Result<ServiceResponse<BoxBody>, actix_web::Error> {
    // The path as actix matches it with the routes.
    let path = request.match_info().as_str();
    let Some(wanted) = access::fitting(request.method().as_str(), path) else {
        let methods = access::methods(path);
        return Ok(answer_without_route(request, &methods));
    };
    match admit(&request, wanted).await {
        Ok(()) => next.call(request).await.map(ServiceResponse::map_into_boxed_body),
        Err(error) => Ok(request.error_response(error)),
    }
}

async fn admit(request: &ServiceRequest, wanted: &'static Access) -> Result<()> {
    request.extensions_mut().insert(wanted);
    if wanted.in_first_frame {
        return Ok(());
    }
    let app = request.app_data::<web::Data<Edge>>().cloned().ok_or_else(|| Error::internal("no application state"))?;
    let id = request.extensions().get::<RequestId>().cloned().unwrap_or_else(RequestId::generate);
    let client = app.client(request.request());
    let caller = match authenticate(&app, request.headers(), client, id).await {
        Ok(caller) => caller,
        Err(Stranger { error, rate }) => {
            if let Some(rate) = rate {
                request.extensions_mut().insert(rate);
            }
            return Err(error);
        }
    };
    let rate = app.limits.check(&caller.tenant, Class::Requests);
    request.extensions_mut().insert(rate);
    request.extensions_mut().insert(caller.clone());
    rate.allowed("requests")?;
    app.admission.belongs_to(caller.tenant_id(), request.match_info().as_str())?;
    allowed(&caller, wanted)?;
    // No name contains a NUL character, and PostgreSQL rejects queries with one.
    if request.uri().path().contains("%00") {
        return Err(Error::not_found("page"));
    }
    Ok(())
}

/// Whether a caller may use a route.
///
/// # Errors
/// `forbidden`.
pub fn allowed(caller: &Caller, wanted: &Access) -> Result<()> {
    if caller.is_narrowed() && wanted.reach == Reach::Tenant {
        return Err(Error::new(Code::Forbidden, "This token is for one campaign only."));
    }
    if caller.is_player() && wanted.player == Player::Never {
        return Err(Error::new(Code::Forbidden, "A player's token cannot do this."));
    }
    match wanted.lacking(caller.scopes) {
        Some(scope) => Err(Error::new(Code::Forbidden, format!("This needs the scope `{}`.", scope.as_str()))),
        None => Ok(()),
    }
}

/// Nobody whom the server knows sent a request.
pub struct Stranger {
    pub error: Error,
    /// How often its address may still fail.
    pub rate: Option<Rate>,
}

/// Who sent a request with these headers. Failures are limited per address, so that guessing is slow.
///
/// # Errors
/// `unauthenticated`, or `rate_limited` after too many failures; `unavailable` when the database cannot be asked.
pub async fn authenticate(
    app: &Edge,
    headers: &HeaderMap,
    client: IpAddr,
    id: RequestId,
) -> std::result::Result<Caller, Stranger> {
    known(app, headers, id).await.map_err(|error| {
        if error.code != Code::Unauthenticated {
            return Stranger { error, rate: None };
        }
        let rate = app.limits.check_failure(client);
        Stranger { error: rate.allowed("failed sign-ins").err().unwrap_or(error), rate: Some(rate) }
    })
}

async fn known(app: &Edge, headers: &HeaderMap, id: RequestId) -> Result<Caller> {
    let refuse = |why: &str| Error::new(Code::Unauthenticated, why);
    let header = headers.get(header::AUTHORIZATION).ok_or_else(|| refuse("Send a credential."))?;
    let credential = header
        .to_str()
        .ok()
        .and_then(|h| h.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, credential)| credential.trim())
        .ok_or_else(|| refuse("Send `Authorization: Bearer` and a key or token."))?;
    caller_of(app, credential, id).await?.ok_or_else(|| refuse("The credential is unknown, expired or revoked."))
}

/// The caller of a credential, if it is valid.
///
/// # Errors
/// `unavailable` when the database cannot be asked.
pub async fn caller_of(app: &Edge, credential: &str, request: RequestId) -> Result<Option<Caller>> {
    if let Some(prefix) = keys::prefix_of(credential) {
        let record = app.keys.record(prefix).await?.filter(|r| r.is_live() && r.is(credential));
        return Ok(record.map(|r| {
            Caller::new(CallerParts {
                tenant: r.tenant.clone(),
                key: Some(r.id),
                user: None,
                key_prefix: prefix.to_owned(),
                scopes: r.scopes,
                campaign: None,
                player: None,
                is_token: false,
                token_until: None,
                visit: None,
                link: None,
                request,
            })
        }));
    }
    match app.tokens.check(credential) {
        Some(claims) => caller_with(app, claims, request).await,
        None => Ok(None),
    }
}

/// The caller of a token's claims, if its key and its character still exist.
///
/// # Errors
/// `unavailable` when the database cannot be asked.
pub async fn caller_with(app: &Edge, claims: Claims, request: RequestId) -> Result<Option<Caller>> {
    let record = app.keys.record(&claims.sub).await?.filter(|r| r.is_live() && r.tenant.id == claims.tid);
    let Claims { tid: tenant, player, jti: visit, link, .. } = claims;
    if record.is_none() || !app.keys.stands(Narrowing { tenant, player, visit, link }).await? {
        return Ok(None);
    }
    Ok(record.map(|r| {
        let narrowed: Scopes = claims.scope.split(' ').filter_map(Scope::parse).collect();
        Caller::new(CallerParts {
            tenant: r.tenant.clone(),
            key: Some(r.id),
            user: None,
            key_prefix: claims.sub,
            scopes: r.scopes.intersect(narrowed),
            campaign: claims.campaign,
            player: claims.player,
            is_token: true,
            token_until: Some(claims.exp),
            visit,
            link,
            request,
        })
    }))
}
