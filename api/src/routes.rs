//! Every route, as a table of contents. `edge/src/caller/access.rs` says which scope each route requires.

use actix_web::{
    dev::{HttpServiceFactory, ServiceFactory, ServiceRequest},
    middleware::from_fn,
    web,
};
use serde_json::Value;
use utoipa::openapi::{OpenApi, RefOr, Schema};
use utoipa_actix_web::{AppExt as _, OpenApiFactory};

use crate::{docs, openapi, ops::health};
use ai::{bridge, commands, planner, prompt, reactions, tools, turns};
use base::error::{Error, Result};
use edge::{
    auth::{self, gate::gate},
    model_profiles, tenant_settings, users,
};
use world::{
    campaigns, characters, dice, encounters, erasure, interchange, lore, memory, messages, npcs, owners, rules, scenes,
    sessions, significance,
};

/// Registers all routes.
pub fn configure(config: &mut web::ServiceConfig) {
    open(&mut *config);
    config.service(v1(web::scope(V1)).wrap(from_fn(gate)));
}

/// The OpenAPI document of all routes.
#[must_use]
pub fn document() -> OpenApi {
    let (_, mut api) = actix_web::App::new()
        .into_utoipa_app()
        .configure(|config| {
            open(&mut *config);
            config.service(v1(utoipa_actix_web::scope::scope(V1)));
        })
        .split_for_parts();
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
    let mut schemas = Schemas(Vec::new());
    open(&mut schemas);
    v1(&mut schemas);
    schemas.0
}

/// Where routes are registered: in the server, or in a builder that also writes the OpenAPI document. That takes memory for
/// the whole document, so the server's threads do not use it.
trait Routes: Sized {
    fn service(self, route: impl HttpServiceFactory + OpenApiFactory + 'static) -> Self;
}

/// A registered handler.
trait Endpoint: ServiceFactory<ServiceRequest, Config = (), Error = actix_web::Error, InitError = ()> {}

impl<T: ServiceFactory<ServiceRequest, Config = (), Error = actix_web::Error, InitError = ()>> Endpoint for T {}

impl<T: Endpoint> Routes for actix_web::Scope<T> {
    fn service(self, route: impl HttpServiceFactory + OpenApiFactory + 'static) -> Self {
        self.service(route)
    }
}

impl Routes for &mut web::ServiceConfig {
    fn service(self, route: impl HttpServiceFactory + OpenApiFactory + 'static) -> Self {
        self.service(route)
    }
}

impl<T: Endpoint> Routes for utoipa_actix_web::scope::Scope<T> {
    fn service(self, route: impl HttpServiceFactory + OpenApiFactory + 'static) -> Self {
        self.service(route)
    }
}

impl Routes for &mut utoipa_actix_web::service_config::ServiceConfig<'_> {
    fn service(self, route: impl HttpServiceFactory + OpenApiFactory + 'static) -> Self {
        self.service(route)
    }
}

struct Schemas(Vec<(String, RefOr<Schema>)>);

impl Routes for &mut Schemas {
    fn service(self, route: impl HttpServiceFactory + OpenApiFactory + 'static) -> Self {
        route.schemas(&mut self.0);
        self
    }
}

/// For operators and visitors, without a credential.
fn open(routes: impl Routes) {
    routes
        .service(health::healthz)
        .service(health::readyz)
        .service(health::scrape)
        .service(docs::openapi)
        .service(docs::docs)
        .service(docs::problem);
}

const V1: &str = "/v1";

#[expect(clippy::too_many_lines, reason = "the list of routes; it reads best as one list")]
fn v1<R: Routes>(routes: R) -> R {
    routes
        // AI. Routes are tried one after the other, so the most frequent come first.
        .service(turns::http::npc)
        .service(turns::http::owner)
        .service(turns::http::greet_npc)
        .service(turns::http::greet_owner)
        .service(turns::gm::http::turn)
        .service(turns::rules::http::resolve)
        .service(prompt::http::npc)
        .service(prompt::http::owner)
        .service(turns::gm::http::preview)
        .service(turns::http::list)
        .service(turns::http::get)
        .service(turns::events::follow)
        .service(turns::http::cancel_turn)
        .service(turns::http::undo_turn)
        .service(turns::again::http::regenerate)
        .service(turns::again::http::go_on)
        .service(turns::again::http::choose)
        .service(turns::again::http::correct)
        // Players.
        .service(planner::http::act_as)
        .service(commands::http::command)
        .service(commands::http::list)
        .service(tools::http::list)
        .service(tools::http::call)
        // What frontends read most.
        .service(npcs::get)
        .service(npcs::list)
        .service(npcs::create)
        .service(npcs::patch)
        .service(npcs::delete)
        .service(npcs::revisions)
        .service(npcs::restore)
        .service(characters::get)
        .service(characters::list)
        .service(characters::create)
        .service(characters::patch)
        .service(characters::delete)
        .service(characters::revisions)
        .service(characters::restore)
        .service(messages::list)
        .service(messages::create)
        .service(messages::get)
        .service(messages::delete)
        // Reactions.
        .service(significance::http::report_action)
        .service(reactions::http::pray)
        .service(reactions::http::list_replies)
        .service(reactions::http::follow_replies)
        .service(reactions::http::acknowledge_reply)
        .service(reactions::http::acknowledge_players_reply)
        .service(significance::http::list_significance)
        .service(significance::http::rehearse_actions)
        .service(significance::http::list_reactions)
        .service(significance::http::get_reaction)
        .service(significance::http::end_reaction)
        .service(significance::http::retry_reaction)
        // Frontends.
        .service(bridge::http::bridge)
        .service(bridge::reports::post_events)
        .service(bridge::reports::put_world_state)
        .service(sessions::http::delta)
        .service(sessions::http::list)
        .service(sessions::http::create)
        .service(sessions::http::get)
        .service(sessions::http::patch)
        .service(sessions::http::delete)
        // Dice.
        .service(dice::http::roll)
        .service(dice::http::analyze)
        .service(dice::http::verify)
        .service(dice::http_seeds::list)
        .service(dice::http_seeds::rotate)
        .service(dice::http_seeds::list_own)
        .service(dice::http_seeds::rotate_own)
        // Fights.
        .service(encounters::http::act)
        .service(encounters::http::get)
        .service(encounters::http::create)
        .service(encounters::http::list)
        .service(encounters::http::patch)
        .service(encounters::http::delete)
        .service(encounters::http::join)
        .service(encounters::http::end)
        .service(encounters::http::commit_into_records)
        .service(rules::http::rest)
        .service(rules::http::srd)
        // The caller's own account.
        .service(auth::whoami::whoami)
        .service(auth::http::token)
        .service(auth::http::list_keys)
        .service(auth::http::create_key)
        .service(auth::http::get_key)
        .service(auth::http::patch_key)
        .service(auth::http::delete_key)
        .service(users::http::list)
        .service(users::http::create)
        .service(users::http::get)
        .service(users::http::patch)
        .service(erasure::http::delete_user)
        .service(users::http::reset)
        .service(erasure::http::get)
        .service(model_profiles::http::list)
        .service(model_profiles::http::create)
        .service(model_profiles::http::available)
        .service(model_profiles::http::test)
        .service(model_profiles::http::get)
        .service(model_profiles::http::patch)
        .service(model_profiles::http::delete)
        .service(tenant_settings::http::get)
        .service(tenant_settings::http::change)
        .service(tenant_settings::http::usage)
        // The world.
        // Must come before a campaign with the slug `import`.
        .service(interchange::http::import_campaign)
        .service(campaigns::http::list)
        .service(campaigns::http::create)
        .service(campaigns::http::get)
        .service(campaigns::http::patch)
        .service(campaigns::http::delete)
        .service(campaigns::fork::fork)
        .service(campaigns::http::changes)
        .service(campaigns::http::events)
        .service(interchange::http::import_seed)
        .service(interchange::http::export_campaign)
        .service(interchange::http::import_card)
        .service(interchange::http::import_lorebook)
        .service(interchange::http::card_json)
        .service(interchange::http::card_png)
        .service(interchange::http::lorebook)
        .service(owners::list)
        .service(owners::create)
        .service(owners::get)
        .service(owners::patch)
        .service(owners::delete)
        .service(owners::revisions)
        .service(owners::restore)
        .service(lore::list)
        .service(lore::create)
        .service(lore::get)
        .service(lore::patch)
        .service(lore::delete)
        .service(lore::revisions)
        .service(lore::restore)
        .service(lore::links::list)
        .service(lore::links::mend)
        .service(lore::overview::duplicate)
        .service(lore::overview::totals)
        .service(lore::overview::duplicates)
        .service(lore::bulk::http::bulk)
        .service(lore::bulk::http::undo)
        .service(scenes::list)
        .service(scenes::create)
        .service(scenes::get)
        .service(scenes::patch)
        .service(scenes::delete)
        .service(scenes::revisions)
        .service(scenes::restore)
        .service(memory::http::list_npc)
        .service(memory::http::create_npc)
        .service(memory::http::list_owner)
        .service(memory::http::create_owner)
        .service(memory::http::list_all)
        .service(memory::http::get)
        .service(memory::http::patch)
        .service(memory::http::delete)
        .service(memory::http::move_to)
        .service(memory::broadcasts::list)
        .service(memory::http::retract)
}
