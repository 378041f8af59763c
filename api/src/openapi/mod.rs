//! Completes the OpenAPI document with what routes do not declare themselves: general information, credentials,
//! arguments of commands, merge patches, and the headers that all routes share.
//!
//! utoipa generates the document from types and handlers. Afterwards each pass over the document adds something that
//! concerns many routes. Passes that need utoipa's types are in this file; those that are easier to write on JSON are
//! in the modules below. No pass changes what the server actually sends. A pass that needs to know particular routes or
//! schemas has a table of them.

mod answers;
pub mod credentials;
pub mod document;
mod examples;
pub mod frames;
pub mod names;
pub mod shapes;
mod sorts;
mod streams;
mod tags;
pub mod unions;
mod values;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};

use utoipa::openapi::{
    ContactBuilder, InfoBuilder, LicenseBuilder, OpenApi, Ref, RefOr, Response, Schema,
    header::{Header, HeaderBuilder},
    path::{Operation, Parameter, ParameterBuilder, ParameterIn},
    schema::{ArrayItems, Components, Object, OneOfBuilder, SchemaType, Type},
    security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};
use utoipa::{PartialSchema, ToSchema};

use ai::{commands, tools};
use edge::http::{bounds, resource::Resource, schema::mend};
use world::{
    campaigns::Campaigns, characters::Characters, encounters::Encounters, lore::LoreEntries, npcs::Npcs,
    owners::Owners, scenes::Scenes, sessions::described::SessionEvent,
};

/// Completes the document with utoipa's types.
pub fn complete(api: &mut OpenApi) {
    describe(api);
    api.components.get_or_insert_default().schemas.values_mut().for_each(mend);
    bounds::declare(api);
    for (name, schema) in patches(api) {
        api.components.get_or_insert_default().schemas.insert(name, schema);
    }
    let schemas = &mut api.components.get_or_insert_default().schemas;
    hide::<Campaigns>(schemas);
    hide::<Characters>(schemas);
    hide::<Encounters>(schemas);
    hide::<LoreEntries>(schemas);
    hide::<Npcs>(schemas);
    hide::<Owners>(schemas);
    hide::<Scenes>(schemas);
    WHOLE.iter().for_each(|(name, but)| require(name, but, schemas));
    let pages: Vec<_> = schemas.keys().filter(|name| name.starts_with(PAGE)).cloned().collect();
    pages.iter().for_each(|name| require(name, &[], schemas));
    refer(schemas);
    headers(api);
}

/// Completes the document as JSON.
#[must_use]
pub fn finish(mut document: serde_json::Value) -> serde_json::Value {
    let mut event = SessionEvent::schema();
    mend(&mut event);
    if let (Some(schemas), Ok(event)) = (document::schemas(&mut document), serde_json::to_value(event)) {
        schemas.insert(SessionEvent::name().into_owned(), event);
    }
    answers::describe(&mut document);
    names::give(&mut document);
    values::list(&mut document);
    unions::name(&mut document);
    credentials::ask(&mut document);
    shapes::decided(&mut document);
    shapes::results(&mut document);
    shapes::complete(&mut document);
    words::describe(&mut document);
    sorts::say(&mut document);
    examples::give(&mut document);
    tags::list(&mut document);
    document
}

/// utoipa writes the items of a list inline. Refers to their schema instead.
fn refer(schemas: &mut BTreeMap<String, RefOr<Schema>>) {
    let known: BTreeSet<String> = schemas.keys().cloned().collect();
    for (name, schema) in schemas {
        if let Some(one) = name.strip_prefix(PAGE).filter(|one| known.contains(*one))
            && let RefOr::T(Schema::Object(list)) = schema
            && let Some(RefOr::T(Schema::Array(items))) = list.properties.get_mut("items")
        {
            items.items = ArrayItems::RefOrSchema(Box::new(Ref::from_schema_name(one).into()));
        }
    }
}

/// A row always has all its members, also those that are null. Only members that are hidden from players may be
/// missing.
fn hide<R: Resource<View: ToSchema>>(schemas: &mut BTreeMap<String, RefOr<Schema>>) {
    require(&R::View::name(), R::HIDDEN_FROM_PLAYERS, schemas);
}

/// The same for other views, each with the members that may be missing.
const WHOLE: &[(&str, &[&str])] = &[
    ("BroadcastView", &[]),
    ("BulkEntry", &[]),
    ("BulkReport", &[]),
    ("Change", &["redacted_at"]),
    ("Erasure", &[]),
    ("Hearer", &[]),
    ("HolderView", &[]),
    ("Imported", &[]),
    ("KeyView", &["key"]),
    ("Link", &[]),
    ("MemoryView", &[]),
    ("Message", &[]),
    ("PlanView", &[]),
    ("Reverting", &[]),
    ("Revision", &["redacted_at"]),
    ("Revisions", &[]),
    ("Rotated", &[]),
    ("SeedView", &["server_seed"]),
    ("Session", &[]),
    ("State", &[]),
    ("Statistics", &[]),
    ("Stretch", &[]),
    ("Undone", &[]),
    // Usage is summed up by what the request asks for.
    ("UsageRow", &["day", "campaign_id", "kind", "profile", "model", "task", "player_id"]),
    ("UserView", &["expires_at", "link"]),
    ("Verified", &[]),
];

/// The beginning of the name of a page of a list. Its cursor is always there; on the last page it is null.
const PAGE: &str = "Items_";

fn require(name: &str, but: &[&str], schemas: &mut BTreeMap<String, RefOr<Schema>>) {
    if let Some(RefOr::T(Schema::Object(view))) = schemas.get_mut(name) {
        view.required = view.properties.keys().filter(|member| !but.contains(&member.as_str())).cloned().collect();
    }
}

fn describe(api: &mut OpenApi) {
    api.info = InfoBuilder::new()
        .title("Tavernkeep")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("The game-master backend for AI tabletop play: worlds, rules, AI turns."))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()))
        .contact(Some(ContactBuilder::new().name(Some("The Tavernkeep authors")).build()))
        .build();
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key `tk_…` or an access token from `/v1/auth/token`."))
        .build();
    let components = api.components.get_or_insert_default();
    components.schemas.insert("TurnEvent".to_owned(), <streams::TurnEvent as PartialSchema>::schema());
    for command in commands::REGISTRY {
        // The command's schema is already an OpenAPI schema. If it could not be read as one it would be missing, and a
        // test would fail.
        if let Ok(schema) = serde_json::from_value::<RefOr<Schema>>(command.schema().clone()) {
            components.schemas.insert(format!("Arguments.{}", command.name), schema);
        }
    }
    let answers =
        tools::REGISTRY.iter().map(tools::Tool::answer).chain(commands::REGISTRY.iter().map(commands::Command::answer));
    components.schemas.extend(answers.flatten());
    // The limits of request schemas come from the routes. `SessionEvent` itself is inserted by [`finish`].
    components.schemas.extend(tools::spec::schemas::<SessionEvent>().into_iter().skip(1));
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    api.servers = Some(vec![utoipa::openapi::Server::new("/")]);
}

/// What every body of a PATCH is.
const PATCH: &str = "A JSON merge patch (RFC 7396). `Content-Type: application/json` is accepted too.";

/// Gives each JSON merge patch its own schema. Returns these schemas by name.
fn patches(api: &mut OpenApi) -> BTreeMap<String, RefOr<Schema>> {
    let known = api.components.clone().unwrap_or_default().schemas;
    let mut patches = BTreeMap::new();
    let patched = api.paths.paths.values_mut().filter_map(|path| path.patch.as_mut());
    for body in patched.filter_map(|operation| operation.request_body.as_mut()) {
        let RefOr::T(body) = body else { continue };
        let Some(RefOr::T(content)) = body.content.get_mut("application/merge-patch+json") else { continue };
        body.description = Some(PATCH.to_owned());
        if let Some(schema) = &mut content.schema {
            patch(schema, &known, &mut patches);
        }
    }
    patches
}

/// Turns the schema of an object into that of its merge patch: nothing is required, and `null` removes optional members. Objects within
/// it are patched member by member too.
fn patch(
    schema: &mut RefOr<Schema>,
    known: &BTreeMap<String, RefOr<Schema>>,
    patches: &mut BTreeMap<String, RefOr<Schema>>,
) {
    match schema {
        RefOr::T(Schema::Object(whole)) => {
            let required = std::mem::take(&mut whole.required);
            for (name, member) in &mut whole.properties {
                patch(member, known, patches);
                no_default(member);
                if !required.contains(name) {
                    or_null(member);
                }
            }
        }
        // An object that may be null. Unions of objects are replaced whole.
        RefOr::T(Schema::OneOf(either)) if either.items.len() == 2 => {
            either.items.iter_mut().for_each(|item| patch(item, known, patches));
        }
        RefOr::T(_) => {}
        RefOr::Ref(reference) => {
            let name = reference.ref_location.rsplit('/').next().unwrap_or_default();
            let Some(RefOr::T(Schema::Object(whole))) = known.get(name) else { return };
            if whole.properties.is_empty() {
                return;
            }
            let patched = format!("{name}.Patch");
            reference.ref_location = format!("#/components/schemas/{patched}");
            if !patches.contains_key(&patched) {
                // Schemas may contain themselves.
                let mut inner = RefOr::T(Schema::Object(whole.clone()));
                patches.insert(patched.clone(), inner.clone());
                patch(&mut inner, known, patches);
                patches.insert(patched, inner);
            }
        }
    }
}

/// Removes the default: what is absent from a patch stays as it is.
fn no_default(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::T(Schema::Object(value)) => value.default = None,
        RefOr::T(Schema::Array(list)) => list.default = None,
        RefOr::T(Schema::OneOf(either)) => either.default = None,
        _ => {}
    }
}

/// Lets a schema also be `null`.
fn or_null(schema: &mut RefOr<Schema>) {
    let also = |types: &mut SchemaType| {
        if let SchemaType::Type(one) = types {
            *types = SchemaType::Array(vec![one.clone(), Type::Null]);
        }
    };
    match schema {
        RefOr::T(Schema::Object(value)) => {
            also(&mut value.schema_type);
            value.enum_values.iter_mut().for_each(|values| values.push(serde_json::Value::Null));
        }
        RefOr::T(Schema::Array(list)) => also(&mut list.schema_type),
        RefOr::T(_) => {}
        RefOr::Ref(_) => {
            let either = OneOfBuilder::new().item(Object::with_type(Type::Null)).item(schema.clone());
            *schema = either.into();
        }
    }
}

/// A header that a request may have.
struct Taken {
    name: &'static str,
    says: &'static str,
}

const IDEMPOTENCY_KEY: Taken = Taken {
    name: "Idempotency-Key",
    says: "Makes a request safe to repeat. For 24 hours, a request with the same key and body gets the stored answer. The same key \
           with a different body is answered with 422. While the first request is still running, the answer is 409.",
};
const IF_MATCH: Taken = Taken {
    name: "If-Match",
    says: "The ETag that the client expects. If the resource has another, the answer is 412.",
};
const IF_NONE_MATCH: Taken =
    Taken { name: "If-None-Match", says: "The ETag that the client has. If it is current, the answer is 304." };

/// The headers of answers, with descriptions.
const ETAG: &str = "ETag";
const LOCATION: &str = "Location";
const REPLAYED: &str = "Idempotency-Replayed";
const RETRY_AFTER: &str = "Retry-After";
const ALWAYS: [&str; 3] = ["RateLimit", "RateLimit-Policy", "X-Request-Id"];
const ANSWERED: &[(&str, &str)] = &[
    (ETAG, "The version of the resource, for `If-Match` and `If-None-Match`."),
    (LOCATION, "The URL of what was created or started."),
    (REPLAYED, "`true` if this is the stored answer to an earlier request with the same `Idempotency-Key`."),
    (RETRY_AFTER, "The number of seconds to wait before the next attempt. Sent with 429 and 503."),
    (
        "RateLimit",
        "What is left of the rate limit, and in how many seconds it is full again (IETF draft, structured fields).",
    ),
    ("RateLimit-Policy", "The rate limit (IETF draft, structured fields)."),
    ("X-Request-Id", "The request's id: the one that the client sent, or a generated one."),
];

/// Declares the headers that each route accepts and returns.
fn headers(api: &mut OpenApi) {
    let components = api.components.get_or_insert_default();
    define(components);
    for (path, item) in &mut api.paths.paths {
        let is_api = path.starts_with("/v1/");
        let by_version = is_versioned(path);
        let operations = [
            ("GET", &mut item.get),
            ("POST", &mut item.post),
            ("PUT", &mut item.put),
            ("PATCH", &mut item.patch),
            ("DELETE", &mut item.delete),
        ];
        for (method, operation) in operations.into_iter().filter_map(|(m, o)| Some((m, o.as_mut()?))) {
            match method {
                "POST" if is_api => {
                    take(operation, &IDEMPOTENCY_KEY);
                    let is_undo = path.ends_with("/encounters/{x}/undo");
                    if is_undo || path.ends_with("/restore") || path.contains("/instructions/") {
                        take(operation, &IF_MATCH);
                    }
                }
                "PATCH" | "DELETE" => take(operation, &IF_MATCH),
                // A session's state changes without its version.
                "GET" if by_version && !path.ends_with("/sessions/{x}") => {
                    take(operation, &IF_NONE_MATCH);
                    let known = Response::new("Nothing changed: `If-None-Match` names the current version.");
                    operation.responses.responses.entry("304".to_owned()).or_insert(RefOr::T(known));
                }
                _ => {}
            }
            answer(operation, method, by_version);
        }
    }
}

/// Whether a path names a single resource that has a version.
fn is_versioned(path: &str) -> bool {
    let is_one = path.ends_with("/{x}") || path == "/v1/campaigns/{c}" || path == "/v1/tenant";
    is_one && !path.starts_with("/v1/rules/")
}

fn define(components: &mut Components) {
    for Taken { name, says } in [IDEMPOTENCY_KEY, IF_MATCH, IF_NONE_MATCH] {
        let mut text = Object::with_type(Type::String);
        if name == IDEMPOTENCY_KEY.name {
            text.pattern = Some("^[!-~]([ -~]{0,253}[!-~])?$".to_owned());
        }
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .description(Some(says))
            .schema(Some(text));
        components.parameters.insert(name.to_owned(), RefOr::<Parameter>::T(parameter.build()));
    }
    for (name, says) in ANSWERED {
        let header = HeaderBuilder::new().schema(Some(Object::with_type(Type::String))).description(Some(*says));
        components.headers.insert((*name).to_owned(), RefOr::<Header>::T(header.build()));
    }
}

fn take(operation: &mut Operation, taken: &Taken) {
    let reference = Ref::new(format!("#/components/parameters/{}", taken.name));
    operation.parameters.get_or_insert_default().push(RefOr::Ref(reference));
}

/// The problem of an error has its own media type, and the events of a stream are not a single string.
fn say_media(status: &str, response: &mut Response) {
    let is_error = status == "default" || status.parse().is_ok_and(|status: u16| status >= 400);
    if is_error && let Some(problem) = response.content.shift_remove("application/json") {
        response.content.insert("application/problem+json".to_owned(), problem);
    }
    if let Some(RefOr::T(events)) = response.content.get_mut("text/event-stream") {
        events.schema = None;
    }
}

/// Declares the headers of each answer of a route.
fn answer(operation: &mut Operation, method: &str, by_version: bool) {
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        say_media(status, response);
        let mut names = ALWAYS.to_vec();
        match (method, status.as_str()) {
            (_, "default") => names.push(RETRY_AFTER),
            ("POST", _) => names.extend([ETAG, LOCATION, REPLAYED]),
            ("DELETE", "202") => names.push(LOCATION),
            ("GET" | "PATCH", "200" | "304") if by_version => names.push(ETAG),
            _ => {}
        }
        for name in names {
            let reference = Ref::new(format!("#/components/headers/{name}"));
            response.headers.insert(name.to_owned(), RefOr::Ref(reference));
        }
    }
}
