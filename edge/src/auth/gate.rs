//! The middleware in front of every `/v1` route. It checks the credential, the request limit, the token's campaign, the
//! player and the scope, in this order.

use actix_web::{
    HttpMessage,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header,
    middleware::Next,
    web,
};

use crate::caller::{
    Caller, CallerParts, Scope, Scopes,
    access::{self, Player, Reach},
    jwt::Claims,
    keys,
};
use crate::{limits::Class, state::Edge};
use base::{
    error::{Code, Error, Result},
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
    match admit(&request).await {
        Ok(()) => next.call(request).await.map(ServiceResponse::map_into_boxed_body),
        Err(error) => Ok(request.error_response(error)),
    }
}

async fn admit(request: &ServiceRequest) -> Result<()> {
    // The path as actix matches it with the routes.
    let path = request.match_info().as_str();
    let Some(wanted) = access::fitting(request.method().as_str(), path) else {
        return Err(access::no_route(request.request()));
    };
    request.extensions_mut().insert(wanted);
    if wanted.in_first_frame {
        return Ok(());
    }
    let app = request.app_data::<web::Data<Edge>>().cloned().ok_or_else(|| Error::internal("no application state"))?;
    let caller = match authenticate(&app, request).await {
        Ok(caller) => caller,
        Err(error) if error.code == Code::Unauthenticated => return Err(throttle_failures(&app, request, error)),
        Err(error) => return Err(error),
    };
    let rate = app.limits.check(&caller.tenant, Class::Requests);
    request.extensions_mut().insert(rate);
    request.extensions_mut().insert(caller.clone());
    rate.allowed("requests")?;
    app.admission.belongs_to(caller.tenant_id(), path)?;
    if caller.is_narrowed() && wanted.reach == Reach::Tenant {
        return Err(Error::new(Code::Forbidden, "This token is for one campaign only."));
    }
    if caller.is_player() && wanted.player == Player::Never {
        return Err(Error::new(Code::Forbidden, "A player's token cannot do this."));
    }
    if let Some(scope) = wanted.lacking(caller.scopes) {
        return Err(Error::new(Code::Forbidden, format!("This needs the scope `{}`.", scope.as_str())));
    }
    // No name contains a NUL character, and PostgreSQL rejects queries with one.
    if request.uri().path().contains("%00") {
        return Err(Error::not_found("page"));
    }
    Ok(())
}

/// Limits failed credentials per address, so that guessing is slow.
fn throttle_failures(app: &Edge, request: &ServiceRequest, error: Error) -> Error {
    let rate = app.limits.check_failure(app.client(request.request()));
    request.extensions_mut().insert(rate);
    rate.allowed("failed sign-ins").err().unwrap_or(error)
}

async fn authenticate(app: &Edge, request: &ServiceRequest) -> Result<Caller> {
    let refuse = |why: &str| Error::new(Code::Unauthenticated, why);
    let header = request.headers().get(header::AUTHORIZATION).ok_or_else(|| refuse("Send a credential."))?;
    let credential = header
        .to_str()
        .ok()
        .and_then(|h| h.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, credential)| credential.trim())
        .ok_or_else(|| refuse("Send `Authorization: Bearer` and a key or token."))?;
    let request_id = request.extensions().get::<RequestId>().cloned().unwrap_or_else(RequestId::generate);
    caller_of(app, credential, request_id)
        .await?
        .ok_or_else(|| refuse("The credential is unknown, expired or revoked."))
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
    if record.is_none() || !app.keys.stands(claims.tid, claims.player, claims.jti).await? {
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
            visit: claims.jti,
            request,
        })
    }))
}
