//! The editor: pages for worldbuilders, rendered on the server. It uses the services of the slices and has no SQL of its own.
//!
//! - [`PAGES`] lists every page and every form: its method, its path, the scope that it requires, and its handler. A
//!   page that is not in the list does not exist. A role is a set of scopes (`users::Role`), so a page requires the
//!   scope that the API's route requires.
//! - [`Editor`] and [`InCampaign`] are proofs. A handler that takes one knows that somebody is signed in and has the
//!   page's scope. If a form was sent, it also knows that one of our pages sent it (CSRF), and finds its fields in
//!   `editor.form`. Both extractors read the body, so a handler takes exactly one of them.
//! - [`Frame`] surrounds every page: navigation, the signed-in user, and a message about the last action.
//!   [`Editor::show`] renders the whole page. For htmx it renders only the block that was asked for, at the same URL.
//! - [`form`] builds fields with their hints and errors from a list (show it with
//!   `{% include "admin/fields.html" %}`). [`world_form`] has list, form, conflict and deletion for a kind of row. [`ask`]
//!   asks before something is deleted. [`saving`] writes a form over a row, and [`merge`] merges two concurrent edits.
//!   [`query`] and [`words`] read addresses and values.
//!
//! Everything works without JavaScript: the browser POSTs a form, and the server answers with a redirect and a message
//! ([`Editor::redirect`]), or with the page and its errors (`422`). htmx, `static/editor.js` and `static/lists.js` only
//! save reloads. Pages contain no inline script or style.
//!
//! # How to add a page
//!
//! 1. Write a file `admin/things.rs` with a template struct and its handlers:
//!    ```text
//!    #[derive(Template)]
//!    #[template(path = "admin/things.html", blocks = ["main", "rows"])]
//!    struct ThingsPage { frame: Frame, things: Vec<Thing> }
//!    render_blocks!(ThingsPage: as_main, "rows" => as_rows);
//!
//!    pub async fn list(at: InCampaign) -> Result<HttpResponse> {
//!        let tx = at.read().await?;                      // a TenantTx for the slice's service
//!        let things = things::service::list(&tx, at.campaign.id.0).await?;
//!        at.show(&ThingsPage { frame: at.frame("Things", Tab::Lore), things })
//!    }
//!
//!    pub async fn create(at: InCampaign) -> Result<HttpResponse> {
//!        let name = at.form.text("name");                // the form is read and its token checked
//!        …                                               // call a service; `form::Errors` puts its errors at the fields
//!        Ok(at.redirect(&at.url("things"), "The thing was created."))
//!    }
//!    ```
//! 2. Write `templates/admin/things.html`: `{% extends "admin/layout.html" %}`, and `{% block main %}` with the
//!    page. To load one block, give an element the block's name as its id and use `hx-target="#rows"`: the same URL
//!    then returns only that block. Every `<form method="post">` contains `{{ frame.token()|safe }}`. `data-key="e"` on
//!    a link, button or field gives it a keyboard shortcut, which the help on `?` then lists.
//! 3. Add its lines to [`PAGES`]. An item in the navigation is a [`Tab`] with a line in `frame.rs`.
//! 4. `tests/admin/` opens every page of the list as every role, in light and dark, and finds what you forgot.

mod account;
mod ask;
mod audit;
mod broadcasts;
mod campaigns;
mod characters;
pub mod diff;
mod editor;
mod encounters;
mod erase;
mod exchange;
pub mod form;
mod frame;
mod history;
mod home;
mod in_the_way;
mod keys;
mod lab;
mod links;
pub mod list;
mod lore;
mod markdown;
mod memories;
mod merge;
mod models;
mod npcs;
mod options;
mod owners;
mod pending_form;
pub mod query;
mod reactions;
mod saving;
mod scenes;
mod second_factor;
mod settings;
mod sign_in;
mod submitted;
mod turn;
mod turns;
mod usage;
mod users;
pub mod words;
pub mod world_form;

use actix_web::{
    HttpMessage, HttpRequest, HttpResponse, Route,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{Method, StatusCode, header::HeaderValue},
    middleware::{Next, from_fn},
    web,
};
use askama::Template;

pub use editor::{Editor, InCampaign};
pub use frame::{Frame, RenderBlocks, Tab};
pub use submitted::Holds;

use base::error::{Code, Error};
use edge::{
    caller::Scope::{self, Admin, Gm, Play, Read, Write},
    http::router::{Pattern, Router},
    patterns::Row,
};
use world::{characters::Characters, lore::LoreEntries, npcs::Npcs, owners::Owners, scenes::Scenes};

/// A page or a form's address.
pub struct Page {
    pub method: &'static str,
    /// The pattern of its path, below `/admin`.
    pub path: &'static str,
    /// None if anybody, or any user, may open the page; the handler's extractor decides which.
    pub scope: Option<Scope>,
    /// A second required scope, for a page that does two things at once.
    pub also: Option<Scope>,
    /// The largest form that the page accepts.
    pub holds: Holds,
    route: fn() -> Route,
}

const fn get(path: &'static str, scope: Scope, route: fn() -> Route) -> Page {
    Page { method: "GET", path, scope: Some(scope), also: None, holds: Holds::Fields, route }
}

const fn post(path: &'static str, scope: Scope, route: fn() -> Route) -> Page {
    Page { method: "POST", path, scope: Some(scope), also: None, holds: Holds::Fields, route }
}

const fn open(method: &'static str, path: &'static str, route: fn() -> Route) -> Page {
    Page { method, path, scope: None, also: None, holds: Holds::Little, route }
}

impl Page {
    const fn and(self, scope: Scope) -> Self {
        Self { also: Some(scope), ..self }
    }

    const fn with_a_file(self) -> Self {
        Self { holds: Holds::File, ..self }
    }

    /// Whether this page belongs to the user's own account. Users who still have to set up a second factor may open
    /// only these pages.
    fn is_own_account(&self) -> bool {
        self.path.starts_with("/account") || self.path == "/tenants"
    }

    /// All scopes that the page requires.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        self.scope.into_iter().chain(self.also)
    }
}

/// Every page and every form of the editor.
#[rustfmt::skip]
pub const PAGES: &[Page] = &[
    // Signing in and out.
    open("GET",  "", || web::get().to(campaigns::index)),
    open("GET",  "/", || web::get().to(campaigns::index)),
    open("GET",  "/sign-in", || web::get().to(sign_in::page)),
    open("POST", "/sign-in", || web::post().to(sign_in::enter)),
    open("POST", "/sign-in/code", || web::post().to(sign_in::enter_code)),
    open("POST", "/sign-out", || web::post().to(sign_in::leave)),
    open("GET",  "/invitation/{x}", || web::get().to(links::invitation)),
    open("POST", "/invitation/{x}", || web::post().to(links::accept)),
    open("GET",  "/reset/{x}", || web::get().to(links::reset)),
    open("POST", "/reset/{x}", || web::post().to(links::set_password)),

    // The user's own account.
    open("GET",  "/account", || web::get().to(account::page)),
    open("POST", "/account/password", || web::post().to(account::set_password)),
    open("POST", "/account/sessions/end", || web::post().to(account::end_session)),
    open("POST", "/account/second-factor", || web::post().to(second_factor::begin)),
    open("POST", "/account/second-factor/confirm", || web::post().to(second_factor::confirm)),
    open("POST", "/account/second-factor/remove", || web::post().to(second_factor::remove)),
    open("GET",  "/tenants", || web::get().to(account::tenants)),
    open("POST", "/tenants", || web::post().to(account::choose)),

    // The tenant.
    get ("/keys", Admin, || web::get().to(keys::list)),
    post("/keys", Admin, || web::post().to(keys::create)),
    get ("/keys/{x}/revoke", Admin, || web::get().to(keys::ask)),
    post("/keys/{x}/revoke", Admin, || web::post().to(keys::revoke)),
    get ("/users", Admin, || web::get().to(users::list)),
    post("/users", Admin, || web::post().to(users::create)),
    get ("/users/{x}", Admin, || web::get().to(users::page)),
    post("/users/{x}", Admin, || web::post().to(users::save)),
    post("/users/{x}/link", Admin, || web::post().to(users::link)),
    get ("/users/{x}/remove", Admin, || web::get().to(users::ask)),
    post("/users/{x}/remove", Admin, || web::post().to(users::remove)),
    get ("/users/{x}/erase", Admin, || web::get().to(erase::ask_user)).and(Gm),
    post("/users/{x}/erase", Admin, || web::post().to(erase::erase_user)).and(Gm),
    get ("/models", Admin, || web::get().to(models::list)),
    get ("/models/new", Admin, || web::get().to(models::new)),
    post("/models/new", Admin, || web::post().to(models::create)),
    get ("/models/{x}", Admin, || web::get().to(models::page)),
    post("/models/{x}", Admin, || web::post().to(models::save)),
    post("/models/{x}/test", Admin, || web::post().to(models::test)).and(Gm),
    get ("/models/{x}/delete", Admin, || web::get().to(models::ask)),
    post("/models/{x}/delete", Admin, || web::post().to(models::delete)),
    get ("/usage", Admin, || web::get().to(usage::page)),
    get ("/settings", Admin, || web::get().to(settings::page)),
    post("/settings", Admin, || web::post().to(settings::save)),

    // Campaigns.
    get ("/campaigns", Read, || web::get().to(campaigns::list)),
    post("/campaigns", Write, || web::post().to(campaigns::create)),
    get ("/campaigns/new", Write, || web::get().to(campaigns::new)),
    get ("/c/{c}", Read, || web::get().to(home::page)),
    get ("/c/{c}/edit", Write, || web::get().to(campaigns::edit)),
    post("/c/{c}/edit", Write, || web::post().to(campaigns::save)),
    post("/c/{c}/instructions", Write, || web::post().to(campaigns::decide)),
    get ("/c/{c}/delete", Write, || web::get().to(campaigns::ask)),
    post("/c/{c}/delete", Write, || web::post().to(campaigns::delete)),
    get ("/c/{c}/audit", Admin, || web::get().to(audit::page)),

    // Lore.
    get ("/c/{c}/lore", Read, || web::get().to(lore::list::page)),
    post("/c/{c}/lore", Write, || web::post().to(lore::edit::create)),
    get ("/c/{c}/lore/new", Write, || web::get().to(lore::edit::new)),
    post("/c/{c}/lore/preview", Write, || web::post().to(lore::edit::preview)),
    get ("/c/{c}/lore/tags", Read, || web::get().to(lore::list::tags)),
    get ("/c/{c}/lore/names", Read, || web::get().to(lore::list::names)),
    get ("/c/{c}/lore/tidy", Read, || web::get().to(lore::list::tidy)),
    get ("/c/{c}/lore/bulk", Write, || web::get().to(lore::bulk::page)),
    post("/c/{c}/lore/bulk", Write, || web::post().to(lore::bulk::run)),
    get ("/c/{c}/lore/bulk/{x}", Write, || web::get().to(lore::bulk::step)),
    post("/c/{c}/lore/bulk/{x}/undo", Write, || web::post().to(lore::bulk::undo)),
    get ("/c/{c}/lore/{x}", Read, || web::get().to(lore::edit::page)),
    post("/c/{c}/lore/{x}", Write, || web::post().to(lore::edit::save)),
    get ("/c/{c}/lore/{x}/history", Gm, || web::get().to(history::page::<LoreEntries>)),
    post("/c/{c}/lore/{x}/history/{seq}", Write, || web::post().to(history::restore::<LoreEntries>)).and(Gm),
    post("/c/{c}/lore/{x}/duplicate", Write, || web::post().to(lore::edit::duplicate)),
    post("/c/{c}/lore/{x}/mend", Write, || web::post().to(lore::edit::mend)),
    get ("/c/{c}/lore/{x}/delete", Write, || web::get().to(world_form::ask::<LoreEntries>)),
    post("/c/{c}/lore/{x}/delete", Write, || web::post().to(world_form::delete::<LoreEntries>)),

    // Memories.
    get ("/c/{c}/memories", Read, || web::get().to(memories::list)),
    post("/c/{c}/memories", Write, || web::post().to(memories::create)),
    get ("/c/{c}/memories/new", Write, || web::get().to(memories::new)),
    get ("/c/{c}/memories/actors", Read, || web::get().to(memories::actors)),
    get ("/c/{c}/memories/broadcasts", Read, || web::get().to(broadcasts::list)),
    get ("/c/{c}/memories/broadcasts/{x}/retract", Write, || web::get().to(broadcasts::ask)),
    post("/c/{c}/memories/broadcasts/{x}/retract", Write, || web::post().to(broadcasts::retract)),
    get ("/c/{c}/memories/deleted", Gm, || web::get().to(memories::deleted)),
    get ("/c/{c}/memories/{x}/history", Gm, || web::get().to(memories::history)),
    post("/c/{c}/memories/{x}/history/{seq}", Write, || web::post().to(memories::restore)).and(Gm),
    get ("/c/{c}/memories/{x}", Read, || web::get().to(memories::page)),
    post("/c/{c}/memories/{x}", Write, || web::post().to(memories::save)),
    post("/c/{c}/memories/{x}/move", Write, || web::post().to(memories::relocate)),
    get ("/c/{c}/memories/{x}/delete", Write, || web::get().to(memories::ask)),
    post("/c/{c}/memories/{x}/delete", Write, || web::post().to(memories::delete)),

    // NPCs.
    get ("/c/{c}/npcs", Read, || web::get().to(world_form::list::<Npcs>)),
    post("/c/{c}/npcs", Write, || web::post().to(world_form::create::<Npcs>)),
    get ("/c/{c}/npcs/new", Write, || web::get().to(world_form::new::<Npcs>)),
    get ("/c/{c}/npcs/deleted", Gm, || web::get().to(history::deleted::<Npcs>)),
    get ("/c/{c}/npcs/{x}", Read, || web::get().to(world_form::edit::<Npcs>)),
    post("/c/{c}/npcs/{x}", Write, || web::post().to(world_form::save::<Npcs>)),
    get ("/c/{c}/npcs/{x}/delete", Write, || web::get().to(world_form::ask::<Npcs>)),
    post("/c/{c}/npcs/{x}/delete", Write, || web::post().to(world_form::delete::<Npcs>)),
    post("/c/{c}/npcs/{x}/instructions", Write, || web::post().to(world_form::decide::<Npcs>)),
    get ("/c/{c}/npcs/{x}/reactions", Gm, || web::get().to(reactions::of::page::<Npcs>)),
    get ("/c/{c}/npcs/{x}/history", Gm, || web::get().to(history::page::<Npcs>)),
    post("/c/{c}/npcs/{x}/history/{seq}", Write, || web::post().to(history::restore::<Npcs>)).and(Gm),

    // Owners.
    get ("/c/{c}/owners", Read, || web::get().to(world_form::list::<Owners>)),
    post("/c/{c}/owners", Write, || web::post().to(world_form::create::<Owners>)),
    get ("/c/{c}/owners/new", Write, || web::get().to(world_form::new::<Owners>)),
    get ("/c/{c}/owners/deleted", Gm, || web::get().to(history::deleted::<Owners>)),
    get ("/c/{c}/owners/{x}", Read, || web::get().to(world_form::edit::<Owners>)),
    post("/c/{c}/owners/{x}", Write, || web::post().to(world_form::save::<Owners>)),
    get ("/c/{c}/owners/{x}/delete", Write, || web::get().to(world_form::ask::<Owners>)),
    post("/c/{c}/owners/{x}/delete", Write, || web::post().to(world_form::delete::<Owners>)),
    post("/c/{c}/owners/{x}/instructions", Write, || web::post().to(world_form::decide::<Owners>)),
    get ("/c/{c}/owners/{x}/reactions", Gm, || web::get().to(reactions::of::page::<Owners>)),
    get ("/c/{c}/owners/{x}/history", Gm, || web::get().to(history::page::<Owners>)),
    post("/c/{c}/owners/{x}/history/{seq}", Write, || web::post().to(history::restore::<Owners>)).and(Gm),

    // Characters.
    get ("/c/{c}/characters", Read, || web::get().to(world_form::list::<Characters>)),
    post("/c/{c}/characters", Write, || web::post().to(world_form::create::<Characters>)),
    get ("/c/{c}/characters/new", Write, || web::get().to(world_form::new::<Characters>)),
    get ("/c/{c}/characters/deleted", Gm, || web::get().to(history::deleted::<Characters>)),
    get ("/c/{c}/characters/{x}", Read, || web::get().to(world_form::edit::<Characters>)),
    post("/c/{c}/characters/{x}", Write, || web::post().to(world_form::save::<Characters>)),
    get ("/c/{c}/characters/{x}/delete", Write, || web::get().to(world_form::ask::<Characters>)),
    post("/c/{c}/characters/{x}/delete", Write, || web::post().to(world_form::delete::<Characters>)),
    get ("/c/{c}/characters/{x}/erase", Admin, || web::get().to(erase::ask_character)).and(Gm),
    post("/c/{c}/characters/{x}/erase", Admin, || web::post().to(erase::erase_character)).and(Gm),
    get ("/c/{c}/characters/{x}/history", Gm, || web::get().to(history::page::<Characters>)),
    post("/c/{c}/characters/{x}/history/{seq}", Write, || web::post().to(history::restore::<Characters>)).and(Gm),

    // Scenes.
    get ("/c/{c}/scenes", Read, || web::get().to(world_form::list::<Scenes>)),
    post("/c/{c}/scenes", Write, || web::post().to(world_form::create::<Scenes>)),
    get ("/c/{c}/scenes/new", Write, || web::get().to(world_form::new::<Scenes>)),
    get ("/c/{c}/scenes/deleted", Gm, || web::get().to(history::deleted::<Scenes>)),
    get ("/c/{c}/scenes/{x}", Read, || web::get().to(world_form::edit::<Scenes>)),
    post("/c/{c}/scenes/{x}", Write, || web::post().to(world_form::save::<Scenes>)),
    get ("/c/{c}/scenes/{x}/delete", Write, || web::get().to(world_form::ask::<Scenes>)),
    post("/c/{c}/scenes/{x}/delete", Write, || web::post().to(world_form::delete::<Scenes>)),
    get ("/c/{c}/scenes/{x}/history", Gm, || web::get().to(history::page::<Scenes>)),
    post("/c/{c}/scenes/{x}/history/{seq}", Write, || web::post().to(history::restore::<Scenes>)).and(Gm),

    // Encounters and turns.
    get ("/c/{c}/encounters", Read, || web::get().to(encounters::list)),
    get ("/c/{c}/encounters/{x}", Read, || web::get().to(encounters::page)),
    get ("/c/{c}/turns", Read, || web::get().to(turns::list)),

    // Reactions, and the rehearsal of actions.
    get ("/c/{c}/reactions", Gm, || web::get().to(reactions::list)),
    post("/c/{c}/reactions/{x}/end", Gm, || web::post().to(reactions::end)),
    post("/c/{c}/reactions/{x}/retry", Gm, || web::post().to(reactions::retry)),
    get ("/c/{c}/scores", Gm, || web::get().to(reactions::scores::page)),
    get ("/c/{c}/rehearsal", Gm, || web::get().to(reactions::rehearsal::page)),
    post("/c/{c}/rehearsal", Gm, || web::post().to(reactions::rehearsal::play)),

    // Import and export.
    get ("/c/{c}/exchange", Read, || web::get().to(exchange::page)),
    post("/c/{c}/exchange/look", Write, || web::post().to(exchange::look)).with_a_file(),
    post("/c/{c}/exchange/confirm", Write, || web::post().to(exchange::confirm)),
    get ("/c/{c}/exchange/campaign.json", Read, || web::get().to(exchange::campaign)).and(Gm),
    get ("/c/{c}/exchange/lorebook.json", Read, || web::get().to(exchange::lorebook)),
    get ("/c/{c}/exchange/card", Read, || web::get().to(exchange::card)),

    // The prompt lab.
    get ("/c/{c}/lab", Gm, || web::get().to(lab::page)),
    get ("/c/{c}/lab/request.json", Gm, || web::get().to(lab::request)),
    post("/c/{c}/lab", Gm, || web::post().to(lab::compare)),
    post("/c/{c}/lab/ask", Gm, || web::post().to(lab::ask)),
    post("/c/{c}/lab/turn", Gm, || web::post().to(lab::take)).and(Play),

    // A turn.
    get ("/c/{c}/turns/{x}", Read, || web::get().to(turn::page)),
    post("/c/{c}/turns/{x}/again", Gm, || web::post().to(turn::try_again)).and(Play),
    post("/c/{c}/turns/{x}/continue", Gm, || web::post().to(turn::go_on)).and(Play),
    post("/c/{c}/turns/{x}/choose", Gm, || web::post().to(turn::choose)).and(Play),
    post("/c/{c}/turns/{x}/correct", Gm, || web::post().to(turn::correct)),
    post("/c/{c}/turns/{x}/undo", Gm, || web::post().to(turn::undo)),
    post("/c/{c}/turns/{x}/fork", Write, || web::post().to(turn::fork)).and(Gm),
];

/// Where users without a second factor are sent if their tenant requires one.
const ACCOUNT: &str = "/admin/account";

/// Finds the page of a request.
fn page_of(request: &HttpRequest) -> Option<&'static Page> {
    let extensions = request.extensions();
    let Pattern(pattern) = extensions.get()?;
    let path = pattern.strip_prefix("/admin")?;
    PAGES.iter().find(|page| page.method == request.method().as_str() && page.path == path)
}

/// Registers the pages.
pub fn configure(config: &mut web::ServiceConfig) {
    let pages = PAGES.iter().map(|page| {
        let pattern = format!("/admin{}", page.path).into();
        Row { method: page.method, pattern, value: (page.route)() }
    });
    let scope = web::scope("/admin").default_service(Router::new(pages));
    config.service(scope.wrap(from_fn(errors_as_pages)));
}

/// Redirects visitors of `/` to the editor.
pub async fn front_door() -> HttpResponse {
    see("/admin")
}

/// Redirects a browser.
fn see(path: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header(("location", path)).insert_header(("cache-control", "no-store")).finish()
}

/// A page with its security headers. Blocks have the same URL as the page, so caches must tell them apart.
fn html(status: StatusCode, body: String) -> HttpResponse {
    let mut answer = edge::http::reply::html(status, body);
    let vary = HeaderValue::from_static("HX-Request, HX-Target");
    answer.headers_mut().insert(actix_web::http::header::VARY, vary);
    answer
}

/// Whether htmx sent the request and puts the response into the page. When htmx restores a page from its history, it
/// needs the whole page.
fn is_htmx(request: &HttpRequest) -> bool {
    request.headers().contains_key("hx-request") && !request.headers().contains_key("hx-history-restore-request")
}

#[derive(Template)]
#[template(path = "admin/problem.html", blocks = ["alert"])]
struct ProblemPage<'a> {
    title: &'a str,
    message: &'a str,
    request_id: String,
}

/// Renders an error as a page, or as a fragment that htmx puts beside the form. Visitors who are not signed in are
/// redirected to the sign-in form.
async fn errors_as_pages<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> std::result::Result<ServiceResponse<BoxBody>, actix_web::Error> {
    // HEAD is handled as GET; the connection leaves out the body.
    if request.method() == Method::HEAD {
        request.head_mut().method = Method::GET;
    }
    let response = match next.call(request).await {
        Ok(response) => response.map_into_boxed_body(),
        Err(error) => return Err(error),
    };
    let Some(error) = response.response().error() else { return Ok(response) };
    let unknown;
    let error = match error.as_error::<Error>() {
        Some(error) => error,
        None => {
            unknown = Error::new(Code::BadRequest, "This address or form cannot be read.");
            &unknown
        }
    };
    let answer = refused(response.request(), error);
    Ok(response.into_response(answer))
}

fn refused(request: &HttpRequest, error: &Error) -> HttpResponse {
    if error.code == Code::Unauthenticated {
        return sign_in::sent_there(request);
    }
    if error.code == Code::SecondFactorNeeded {
        return match is_htmx(request) {
            true => HttpResponse::Ok()
                .insert_header(("hx-redirect", ACCOUNT))
                .insert_header(("cache-control", "no-store"))
                .finish(),
            false => see(ACCOUNT),
        };
    }
    if error.code.status() >= 500 {
        let cause = error.cause().map(ToString::to_string);
        tracing::error!(code = error.code.as_str(), detail = %error.detail, cause, "a page failed");
    }
    let details: Vec<&str> = error.errors.iter().map(|field| field.message.as_str()).collect();
    let message = if details.is_empty() { error.detail.clone() } else { details.join(" ") };
    let request_id = base::request_id::RequestId::of(request).to_string();
    let page = ProblemPage { title: error.code.title(), message: &message, request_id };
    let body = if is_htmx(request) { page.as_alert().render() } else { page.render() };
    let status = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match body {
        Ok(body) => {
            let mut answer = html(status, body);
            if let Some(seconds) = error.retry_after_seconds {
                answer.headers_mut().insert(actix_web::http::header::RETRY_AFTER, seconds.into());
            }
            answer
        }
        Err(error) => {
            tracing::error!(%error, "cannot render an error page");
            HttpResponse::InternalServerError().finish()
        }
    }
}
