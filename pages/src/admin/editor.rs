//! The extractors of the pages' handlers. They prove that somebody is signed in and may see the page, and that one of
//! our pages sent the form.

use std::{future::Future, pin::Pin};

use actix_web::{
    FromRequest, HttpMessage, HttpRequest, HttpResponse,
    cookie::{Cookie, SameSite, time::Duration},
    dev::Payload,
    http::StatusCode,
    web,
};
use askama::Template;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use entity::campaign;

use super::{
    answer::{html, is_htmx, see},
    page::Page,
    pending_form,
    render_blocks::RenderBlocks,
    submitted::{Sent, Submitted, not_of_this_visit},
    words,
};
use crate::model::{self, Model};
use ai::state::Ai;
use base::{
    error::{Code, Error, Result},
    request_id::RequestId,
};
use db::tenancy::TenantTx;
use edge::{
    caller::{Caller, CallerParts, Scope},
    http::resource::{self, Ref, campaign_id},
    limits::Class,
    users::{
        Role,
        sessions::{self, SESSION_SECONDS, Secret, User},
    },
};
use world::{campaigns::Campaigns, journal};

/// The cookie with the message about the last action, for the next page.
pub(super) const MESSAGE_COOKIE: &str = "tavernkeep_message";
/// How that message begins if it says why something was not done.
pub(super) const REFUSAL: char = '!';

/// A signed-in user at a page that they may use, with the form that they sent.
pub struct Editor {
    pub app: web::Data<Ai>,
    pub request: HttpRequest,
    pub user: User,
    pub tenant_name: String,
    pub role: Role,
    /// Which model answers, if that is known.
    pub(super) model: Option<Model>,
    /// For the services this is the same as an API key with the role's scopes. The journal records the user.
    pub caller: Caller,
    /// The submitted form; its token is checked.
    pub form: Submitted,
    pub(super) secret: Secret,
}

/// The same in a campaign that exists and belongs to the tenant.
pub struct InCampaign {
    editor: Editor,
    pub campaign: campaign::Model,
}

impl std::ops::Deref for InCampaign {
    type Target = Editor;
    fn deref(&self) -> &Editor {
        &self.editor
    }
}

impl FromRequest for Editor {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move { Self::prove(request, &mut payload).await })
    }
}

impl FromRequest for InCampaign {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let editor = Editor::prove(request, &mut payload).await?;
            let tx = editor.read().await?;
            let campaign =
                resource::find::<Campaigns>(&tx, &editor.caller, None, &Ref::parse(editor.path("c"))).await?;
            drop(tx);
            let model = model::of(&editor.app, &editor.caller.tenant, Some(&campaign)).await;
            Ok(Self { editor: Editor { model, ..editor }, campaign })
        })
    }
}

impl Editor {
    async fn prove(request: HttpRequest, payload: &mut Payload) -> Result<Self> {
        let page = Page::of(&request).ok_or_else(|| Error::not_found("page"))?;
        // No name contains a NUL character, and PostgreSQL does not accept one in a query.
        if request.uri().path().contains("%00") {
            return Err(Error::not_found("page"));
        }
        let app = app_of(&request)?;
        let Some((secret, user)) = who(&app, &request).await? else {
            pending_form::leave(&request, payload).await;
            return Err(Error::new(Code::Unauthenticated, "Sign in."));
        };
        let nowhere =
            || Error::new(Code::Forbidden, "You no longer belong to any tenant. Ask the person who invited you.");
        let place = user.place.clone().ok_or_else(nowhere)?;
        if place.tenant.settings.second_factor_required && !user.has_second_factor && !page.is_own_account() {
            return Err(Error::new(
                Code::SecondFactorNeeded,
                "This tenant requires a second factor. Set one up in your account.",
            ));
        }
        let caller = Caller::new(CallerParts {
            tenant: place.tenant,
            key: None,
            user: Some(user.id),
            key_prefix: String::new(),
            scopes: place.role.scopes(),
            campaign: None,
            player: None,
            is_token: false,
            token_until: None,
            visit: None,
            link: None,
            request: RequestId::of(&request),
        });
        let rate = app.limits.check(&caller.tenant, Class::Requests);
        request.extensions_mut().insert(rate);
        rate.allowed("requests")?;
        app.admission.belongs_to(caller.tenant_id(), request.path())?;
        if !page.scopes().all(|scope| caller.scopes.has(scope)) {
            let why = format!(
                "The role {} may not use this page. Ask an administrator for another role.",
                words::role(place.role)
            );
            return Err(Error::new(Code::Forbidden, why));
        }
        let form = match Submitted::sent(&request, payload, Some(&secret), page.holds).await? {
            Sent::Now(form) => form,
            Sent::FromEarlier(form) => {
                pending_form::set_aside(&request, &form);
                return Err(not_of_this_visit());
            }
        };
        let model = model::of(&app, &caller.tenant, None).await;
        Ok(Self { app, request, user, tenant_name: place.tenant_name, role: place.role, model, caller, form, secret })
    }

    /// A part of the path, such as `{c}` or `{x}`.
    #[must_use]
    pub fn path(&self, name: &str) -> &str {
        self.request.match_info().get(name).unwrap_or_default()
    }

    /// Whether the user's role has a scope. Pages hide what the user may not do.
    #[must_use]
    pub fn may(&self, scope: Scope) -> bool {
        self.caller.scopes.has(scope)
    }

    /// The full URL of a path.
    #[must_use]
    pub fn whole_url(&self, path: &str) -> String {
        self.app.address(&self.request) + path
    }

    /// A transaction that reads the tenant's rows.
    ///
    /// # Errors
    /// `unavailable`.
    pub async fn read(&self) -> Result<TenantTx> {
        TenantTx::read(&self.app.pool, self.caller.tenant_id()).await
    }

    /// Renders a page, or the block of it that htmx asks for.
    ///
    /// # Errors
    /// `internal` if it cannot be rendered.
    pub fn show(&self, page: &impl RenderBlocks) -> Result<HttpResponse> {
        self.show_with(StatusCode::OK, page)
    }

    /// The same for a form that has errors (`422`).
    ///
    /// # Errors
    /// `internal` if it cannot be rendered.
    pub fn show_again(&self, page: &impl RenderBlocks) -> Result<HttpResponse> {
        self.show_with(StatusCode::UNPROCESSABLE_ENTITY, page)
    }

    /// The same with another status.
    ///
    /// # Errors
    /// `internal` if it cannot be rendered.
    pub fn show_with(&self, status: StatusCode, page: &impl RenderBlocks) -> Result<HttpResponse> {
        if is_htmx(&self.request) {
            let target = self.request.headers().get("hx-target").and_then(|v| v.to_str().ok()).unwrap_or_default();
            return Ok(html(status, page.block(target).map_err(Error::internal)?));
        }
        let mut answer = html(status, page.render().map_err(Error::internal)?);
        if self.request.cookie(MESSAGE_COOKIE).is_some() {
            // The message was shown once.
            let gone = cookie(&self.request, MESSAGE_COOKIE, String::new(), "/admin", 0);
            answer.add_cookie(&gone).map_err(|e| Error::internal(e.to_string()))?;
        }
        Ok(answer)
    }

    /// Renders a fragment for htmx requests that need nothing else.
    ///
    /// # Errors
    /// `internal` if it cannot be rendered.
    pub fn piece(&self, piece: &impl Template) -> Result<HttpResponse> {
        Ok(html(StatusCode::OK, piece.render().map_err(Error::internal)?))
    }

    /// Redirects the browser, with a message about what was done.
    #[must_use]
    pub fn redirect(&self, path: &str, message: &str) -> HttpResponse {
        self.redirect_with(path, &BASE64_URL_SAFE_NO_PAD.encode(message))
    }

    /// Redirects the browser, with the reason why something was not done.
    #[must_use]
    pub fn refuse(&self, path: &str, why: &str) -> HttpResponse {
        self.redirect_with(path, &format!("{REFUSAL}{}", BASE64_URL_SAFE_NO_PAD.encode(why)))
    }

    fn redirect_with(&self, path: &str, message: &str) -> HttpResponse {
        let mut answer = if is_htmx(&self.request) {
            HttpResponse::Ok()
                .insert_header(("hx-redirect", path))
                .insert_header(("cache-control", "no-store"))
                .finish()
        } else {
            see(path)
        };
        let message = cookie(&self.request, MESSAGE_COOKIE, message.to_owned(), "/admin", 60);
        // Without its message the redirect is still right.
        let _ = answer.add_cookie(&message);
        answer
    }
}

/// What proves, while a page follows what changes, that its user may still see it.
pub(super) struct Proof {
    app: web::Data<Ai>,
    caller: Caller,
    campaign: Ref,
    secret: Secret,
    page: &'static Page,
}

impl Proof {
    /// A transaction that reads the tenant's rows.
    ///
    /// # Errors
    /// `not_found` if the campaign is gone.
    pub async fn read(&self) -> Result<TenantTx> {
        let tx = TenantTx::read(&self.app.pool, self.caller.tenant_id()).await?;
        campaign_id(&tx, &self.caller, &self.campaign).await?;
        Ok(tx)
    }

    /// Whether the user is still signed in, in the same tenant and with a role that may use the page and see what it showed.
    ///
    /// # Errors
    /// Database errors.
    pub async fn holds(&self) -> Result<bool> {
        let user = sessions::user_looking_on(&self.app.pool, &self.secret).await?;
        let place = user.and_then(|user| user.place);
        Ok(place.is_some_and(|place| {
            let scopes = place.role.scopes();
            place.tenant.id == self.caller.tenant_id()
                && self.page.scopes().all(|scope| scopes.has(scope))
                && (!self.caller.sees_secrets() || scopes.has(Scope::Gm))
        }))
    }
}

impl InCampaign {
    /// What proves later that the user may still see this page.
    pub(super) fn proof(&self) -> Result<Proof> {
        Ok(Proof {
            app: self.app.clone(),
            caller: self.caller.clone(),
            campaign: Ref::Id(self.campaign.id.0),
            secret: self.secret.clone(),
            page: Page::of(&self.request).ok_or_else(|| Error::not_found("page"))?,
        })
    }

    /// Where a page follows what changes after now; none for users who may not. Read before what the page shows.
    ///
    /// # Errors
    /// Database errors.
    pub(super) async fn news(&self, tx: &TenantTx) -> Result<Option<String>> {
        if !self.may(Scope::Gm) || !self.may(Scope::Play) {
            return Ok(None);
        }
        let (seq, _) = journal::head(tx, self.campaign.id.0).await?;
        Ok(Some(format!("{}?after={seq}", self.url("table/live"))))
    }

    /// The path of a page of the campaign: `at.url("npcs/new")`.
    #[must_use]
    pub fn url(&self, rest: &str) -> String {
        campaign_url(&self.campaign, rest)
    }
}

/// A campaign's path contains its slug, which is safe in a path.
pub(super) fn campaign_url(campaign: &campaign::Model, rest: &str) -> String {
    let path = format!("/admin/c/{}", campaign.slug);
    if rest.is_empty() { path } else { format!("{path}/{rest}") }
}

/// The signed-in user, if there is one.
async fn who(app: &Ai, request: &HttpRequest) -> Result<Option<(Secret, User)>> {
    let Some(secret) = secret_of(request) else { return Ok(None) };
    Ok(sessions::user(&app.pool, &secret).await?.map(|user| (secret, user)))
}

pub(super) fn app_of(request: &HttpRequest) -> Result<web::Data<Ai>> {
    request.app_data::<web::Data<Ai>>().cloned().ok_or_else(|| Error::internal("no application state"))
}

fn is_secure(request: &HttpRequest) -> bool {
    request.connection_info().scheme() == "https"
}

/// With this prefix, over TLS, a browser keeps the cookie from every other host and path.
fn secret_cookie(request: &HttpRequest) -> &'static str {
    if is_secure(request) { "__Host-tavernkeep" } else { "tavernkeep" }
}

/// The secret that the browser holds.
pub(super) fn secret_of(request: &HttpRequest) -> Option<Secret> {
    request.cookie(secret_cookie(request)).and_then(|cookie| Secret::parse(cookie.value()))
}

/// A cookie with a secret for the browser. Without a secret, the cookie removes the old one.
pub(super) fn keep_secret(request: &HttpRequest, secret: Option<&Secret>) -> Cookie<'static> {
    let value = secret.map(|s| s.reveal().to_owned()).unwrap_or_default();
    let seconds = if secret.is_some() { i64::from(SESSION_SECONDS) } else { 0 };
    cookie(request, secret_cookie(request), value, "/", seconds)
}

fn cookie(
    request: &HttpRequest,
    name: &'static str,
    value: String,
    path: &'static str,
    seconds: i64,
) -> Cookie<'static> {
    Cookie::build(name, value)
        .path(path)
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(is_secure(request))
        .max_age(Duration::seconds(seconds))
        .finish()
}
