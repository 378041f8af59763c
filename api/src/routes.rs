//! Every route, as a table of contents. `edge/src/caller/access.rs` says which scope each route requires.

use actix_web::{FromRequest, Handler, Responder, Route, middleware::from_fn, web};
use serde_json::Value;
use utoipa::openapi::{Components, OpenApi, OpenApiBuilder, Paths, RefOr, Schema, path::HttpMethod};
use utoipa_actix_web::OpenApiFactory;

use crate::{docs, openapi, ops};
use ai::{bridge, commands, planner, prompt, reactions, tools, turns};
use base::error::{Error, Result};
use edge::{
    auth::{self, gate::gate},
    http::router::Router,
    model_profiles,
    patterns::Row,
    tenant_settings, users,
};
use world::{
    campaigns, characters, dice, encounters, erasure, interchange, lore, memory, messages, npcs, owners, player_links,
    rules, scenes, sessions, significance,
};

/// Registers all routes of the API, and answers for all other paths outside of `/v1` with `others`.
pub fn configure(config: &mut web::ServiceConfig, others: Vec<Row<Route>>) {
    let mut rows = Rows(Vec::new());
    v1(&mut rows);
    config.service(web::scope("/v1").default_service(Router::new(rows.0)).wrap(from_fn(gate)));
    let mut at_root = Rows(others);
    open(&mut at_root);
    config.default_service(Router::new(at_root.0).elsewhere(web::to(docs::elsewhere)));
}

/// The OpenAPI document of all routes.
#[must_use]
pub fn document() -> OpenApi {
    let Described { paths, schemas } = Described::all();
    let mut components = Components::new();
    components.schemas.extend(schemas);
    let mut api = OpenApiBuilder::new().paths(paths).components(Some(components)).build();
    openapi::complete(&mut api);
    api
}

/// The document as it is published, with what it says about JSON in general: see [`openapi::finish`].
///
/// # Errors
/// `internal` if the document cannot be written.
pub fn published() -> Result<Value> {
    let mut document = serde_json::to_value(document()).map(openapi::finish).map_err(Error::internal)?;
    openapi::shapes::prune(&mut document);
    Ok(document)
}

/// The published document as YAML.
///
/// # Errors
/// `internal` if it cannot be written.
pub fn published_yaml() -> Result<String> {
    yaml(&published()?)
}

/// A document as YAML.
///
/// # Errors
/// `internal` if it cannot be written.
pub fn yaml(document: &Value) -> Result<String> {
    yaml_serde::to_string(document).map_err(Error::internal)
}

/// The JSON Schema of the bridge's frames.
///
/// # Errors
/// `internal` if it cannot be written.
pub fn frames() -> Result<Value> {
    let mut api = document();
    openapi::frames::add(&mut api);
    let document = serde_json::to_value(api).map(openapi::finish).map_err(Error::internal)?;
    Ok(openapi::frames::schema(&document))
}

/// The schemas that routes refer to, by their names in the document. Two types with the same name would overwrite each
/// other.
#[must_use]
pub fn schemas() -> Vec<(String, RefOr<Schema>)> {
    Described::all().schemas
}

/// Where routes are registered: in the server, or in the OpenAPI document.
trait Routes {
    /// Adds a route, as `utoipa::path` describes it, and its handler.
    fn add<D, H, A>(&mut self, route: D, handler: H)
    where
        D: utoipa::Path + OpenApiFactory,
        H: Handler<A, Output: Responder + 'static>,
        A: FromRequest + 'static;
}

/// Adds handlers, each with the description that `utoipa::path` has made of it.
macro_rules! add {
    ($to:ident: $($first:ident $(:: $next:ident)*),* $(,)?) => {
        $(add!(@ $to, [] $first $(:: $next)*);)*
    };
    (@ $to:ident, [$($module:tt)*] $handler:ident) => {
        pastey::paste! { $to.add($($module)* [<__path_ $handler>], $($module)* $handler) }
    };
    (@ $to:ident, [$($module:tt)*] $next:ident :: $($rest:tt)+) => {
        add!(@ $to, [$($module)* $next ::] $($rest)+)
    };
}

/// The routes as the server finds them.
struct Rows(Vec<Row<Route>>);

impl Routes for Rows {
    fn add<D, H, A>(&mut self, _: D, handler: H)
    where
        D: utoipa::Path + OpenApiFactory,
        H: Handler<A, Output: Responder + 'static>,
        A: FromRequest + 'static,
    {
        for method in D::methods() {
            let row = Row { method: method_name(&method), pattern: D::path().into(), value: web::to(handler.clone()) };
            self.0.push(row);
        }
    }
}

const fn method_name(method: &HttpMethod) -> &'static str {
    match method {
        HttpMethod::Get => "GET",
        HttpMethod::Post => "POST",
        HttpMethod::Put => "PUT",
        HttpMethod::Delete => "DELETE",
        HttpMethod::Options => "OPTIONS",
        HttpMethod::Head => "HEAD",
        HttpMethod::Patch => "PATCH",
        HttpMethod::Trace => "TRACE",
    }
}

/// What the OpenAPI document says of the routes. It takes memory, so the server has it only while somebody asks.
#[derive(Default)]
struct Described {
    paths: Paths,
    schemas: Vec<(String, RefOr<Schema>)>,
}

impl Described {
    fn all() -> Self {
        let mut described = Self::default();
        open(&mut described);
        v1(&mut described);
        described
    }
}

impl Routes for Described {
    fn add<D, H, A>(&mut self, route: D, _: H)
    where
        D: utoipa::Path + OpenApiFactory,
        H: Handler<A, Output: Responder + 'static>,
        A: FromRequest + 'static,
    {
        self.paths.merge(route.paths());
        route.schemas(&mut self.schemas);
    }
}

/// For operators and visitors, without a credential.
fn open(to: &mut impl Routes) {
    add! { to:
        ops::http::healthz,
        ops::http::readyz,
        ops::http::scrape,
        docs::openapi,
        docs::docs,
        docs::problem,
    }
}

#[expect(clippy::too_many_lines, reason = "the list of routes; it reads best as one list")]
fn v1(to: &mut impl Routes) {
    add! { to:
        // AI.
        turns::http::npc,
        turns::http::owner,
        turns::http::greet_npc,
        turns::http::greet_owner,
        turns::gm::http::turn,
        turns::rules::http::resolve,
        prompt::http::npc,
        prompt::http::owner,
        // Before memories by their ids.
        prompt::http::search_memories,
        turns::gm::http::preview,
        turns::http::list,
        turns::http::get,
        turns::http::follow,
        turns::http::cancel_turn,
        turns::http::undo_turn,
        turns::again::http::regenerate,
        turns::again::http::go_on,
        turns::again::http::choose,
        turns::again::http::correct,
        // Players.
        planner::http::act_as,
        commands::http::command,
        commands::http::list,
        tools::http::list,
        tools::http::call,
        // Who plays, and what is said.
        npcs::http::get,
        npcs::http::list,
        npcs::http::create,
        npcs::http::patch,
        npcs::http::delete,
        npcs::http::accept,
        npcs::http::discard,
        npcs::http::revisions,
        npcs::http::restore,
        characters::http::get,
        characters::http::list,
        characters::http::create,
        characters::http::patch,
        characters::http::delete,
        characters::http::revisions,
        characters::http::restore,
        player_links::http::list,
        player_links::http::create,
        player_links::http::get,
        player_links::http::revoke,
        messages::http::list,
        messages::http::create,
        messages::http::get,
        messages::http::patch,
        messages::http::delete,
        // Reactions.
        significance::http::report_action,
        reactions::http::pray,
        reactions::http::list_replies,
        reactions::http::follow_replies,
        reactions::http::acknowledge_reply,
        reactions::http::acknowledge_players_reply,
        reactions::http::end_reaction,
        significance::http::list_significance,
        significance::http::list_npc_scores,
        significance::http::list_owner_scores,
        significance::http::rehearse_actions,
        significance::http::list_reactions,
        significance::http::get_reaction,
        significance::http::retry_reaction,
        // Frontends.
        bridge::http::bridge,
        bridge::http::post_events,
        bridge::http::put_world_state,
        sessions::http::delta,
        sessions::http::list,
        sessions::http::create,
        sessions::http::get,
        sessions::http::patch,
        sessions::http::delete,
        // Dice.
        dice::http::roll,
        dice::http::analyze,
        dice::http::verify,
        dice::http::list_seeds,
        dice::http::rotate_seed,
        dice::http::list_own_seeds,
        dice::http::rotate_own_seed,
        // Fights.
        encounters::http::act,
        encounters::http::get,
        encounters::http::create,
        encounters::http::list,
        encounters::http::patch,
        encounters::http::delete,
        encounters::http::join,
        encounters::http::leave,
        encounters::http::undo,
        encounters::http::end,
        encounters::http::commit_into_records,
        rules::http::rest,
        rules::http::srd,
        // The caller's own account.
        auth::http::whoami,
        auth::http::token,
        auth::http::list_keys,
        auth::http::create_key,
        auth::http::get_key,
        auth::http::patch_key,
        auth::http::delete_key,
        users::http::list,
        users::http::create,
        users::http::get,
        users::http::patch,
        erasure::http::delete_user,
        users::http::reset,
        erasure::http::get,
        model_profiles::http::list,
        model_profiles::http::create,
        model_profiles::http::available,
        model_profiles::http::test,
        model_profiles::http::get,
        model_profiles::http::patch,
        model_profiles::http::delete,
        tenant_settings::http::get,
        tenant_settings::http::change,
        tenant_settings::http::usage,
        // The world.
        interchange::http::import_campaign,
        campaigns::http::list,
        campaigns::http::create,
        campaigns::http::get,
        campaigns::http::patch,
        campaigns::http::delete,
        campaigns::http::fork,
        campaigns::http::changes,
        reactions::http::follow_changes,
        interchange::http::import_seed,
        interchange::http::export_campaign,
        interchange::http::import_card,
        interchange::http::import_lorebook,
        interchange::http::card_json,
        interchange::http::card_png,
        interchange::http::lorebook,
        owners::http::list,
        owners::http::create,
        owners::http::get,
        owners::http::patch,
        owners::http::delete,
        owners::http::revisions,
        owners::http::restore,
        lore::http::list,
        lore::http::create,
        lore::http::get,
        lore::http::patch,
        lore::http::delete,
        lore::http::revisions,
        lore::http::restore,
        lore::http::list_links,
        lore::http::mend_links,
        lore::http::duplicate,
        lore::http::totals,
        lore::http::duplicates,
        lore::bulk::http::bulk,
        lore::bulk::http::undo,
        scenes::http::list,
        scenes::http::create,
        scenes::http::get,
        scenes::http::patch,
        scenes::http::delete,
        scenes::http::revisions,
        scenes::http::restore,
        memory::http::list_npc,
        memory::http::create_npc,
        memory::http::list_owner,
        memory::http::create_owner,
        memory::http::list_all,
        memory::http::get,
        memory::http::patch,
        memory::http::delete,
        memory::http::move_to,
        memory::http::list_broadcasts,
        memory::http::retract,
    }
}
