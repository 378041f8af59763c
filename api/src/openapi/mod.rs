//! What the OpenAPI document says beside what each route says of itself: whose it is, credentials, arguments of commands, merge
//! patches, and the headers that routes take and answer by the conventions of `http`, once for all of them.
//!
//! utoipa writes what types and handlers say. What is the same of all routes is written after it, each by one pass over the
//! document: here what needs utoipa's types, in the modules below what is easier said of JSON. No pass changes what goes over
//! the wire; a pass that has to know one route or schema has a table for it.

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

use crate::{
    campaigns::Campaigns,
    characters::Characters,
    commands,
    encounters::Encounters,
    http::{bounds, resource::Resource},
    lore::LoreEntries,
    npcs::Npcs,
    owners::Owners,
    scenes::Scenes,
    sessions::described::SessionEvent,
    tools,
};

/// Completes the document that routes were put together to.
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
    refer(schemas);
    headers(api);
}

/// The document with what is said of JSON.
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
    shapes::complete(&mut document);
    words::describe(&mut document);
    sorts::say(&mut document);
    examples::give(&mut document);
    tags::list(&mut document);
    document
}

/// A list's items come written out: names their schema instead.
fn refer(schemas: &mut BTreeMap<String, RefOr<Schema>>) {
    let known: BTreeSet<String> = schemas.keys().cloned().collect();
    for (name, schema) in schemas {
        if let Some(one) = name.strip_prefix("Items_").filter(|one| known.contains(*one))
            && let RefOr::T(Schema::Object(list)) = schema
            && let Some(RefOr::T(Schema::Array(items))) = list.properties.get_mut("items")
        {
            items.items = ArrayItems::RefOrSchema(Box::new(Ref::from_schema_name(one).into()));
        }
    }
}

/// A row's members are all there, also those that are null. What a player's token does not see of a kind need not be there.
fn hide<R: Resource<View: ToSchema>>(schemas: &mut BTreeMap<String, RefOr<Schema>>) {
    require(&R::View::name(), R::HIDDEN_FROM_PLAYERS, schemas);
}

/// The same of views that are no resources, each with what is there only sometimes.
const WHOLE: &[(&str, &[&str])] = &[("MemoryView", &[]), ("Message", &[]), ("Session", &[]), ("KeyView", &["key"])];

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
        // A schema in JSON is one of OpenAPI's; what could not be read as one would be missing, and a test would say so.
        if let Ok(schema) = serde_json::from_value::<RefOr<Schema>>(command.schema().clone()) {
            components.schemas.insert(format!("Arguments.{}", command.name), schema);
        }
    }
    let answers =
        tools::REGISTRY.iter().map(tools::Tool::answer).chain(commands::REGISTRY.iter().map(commands::Command::answer));
    components.schemas.extend(answers.flatten());
    // What requests are made of has its limits from the routes that take it: an event is put in by [`finish`].
    components.schemas.extend(tools::schemas::<SessionEvent>().into_iter().skip(1));
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    api.servers = Some(vec![utoipa::openapi::Server::new("/")]);
}

/// Gives each JSON merge patch a schema of its own, in which nothing is required and `null` takes away what need not be there;
/// returns those schemas by name.
fn patches(api: &mut OpenApi) -> Vec<(String, RefOr<Schema>)> {
    let known = api.components.clone().unwrap_or_default().schemas;
    let mut patches = Vec::new();
    let patched = api.paths.paths.values_mut().filter_map(|path| path.patch.as_mut());
    for body in patched.filter_map(|operation| operation.request_body.as_mut()) {
        let RefOr::T(body) = body else { continue };
        let Some(RefOr::T(content)) = body.content.get_mut("application/merge-patch+json") else { continue };
        let Some(RefOr::Ref(reference)) = &mut content.schema else { continue };
        let name = reference.ref_location.rsplit('/').next().unwrap_or_default().to_owned();
        if let Some(RefOr::T(Schema::Object(whole))) = known.get(&name) {
            let patch = format!("{name}.Patch");
            reference.ref_location = format!("#/components/schemas/{patch}");
            let mut schema = whole.clone();
            let required = std::mem::take(&mut schema.required);
            schema.properties.iter_mut().filter(|(name, _)| !required.contains(name)).for_each(|(_, s)| or_null(s));
            patches.push((patch, RefOr::T(Schema::Object(schema))));
        }
    }
    patches
}

/// Lets a schema be `null`, too.
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

/// Objects that are written out as the parts of another, each of which takes no members of the others, and enums whose description
/// or default is put beside them as an object, are what nothing can be: makes each of them one schema.
pub fn mend(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => object.properties.values_mut().for_each(mend),
        Schema::OneOf(any) => any.items.iter_mut().for_each(mend),
        Schema::AnyOf(any) => any.items.iter_mut().for_each(mend),
        Schema::AllOf(all) => {
            all.items.iter_mut().for_each(mend);
            if let Some(mut whole) = joined(&all.items) {
                whole.description = all.description.take().or(whole.description);
                *schema = Schema::Object(whole);
            }
        }
        _ => {}
    }
}

/// The parts as one, if all of them are written out.
fn joined(parts: &[RefOr<Schema>]) -> Option<Object> {
    let mut whole: Option<Object> = None;
    for part in parts {
        let RefOr::T(Schema::Object(part)) = part else { return None };
        let Some(whole) = &mut whole else {
            whole = Some(part.clone());
            continue;
        };
        whole.properties.extend(part.properties.clone());
        whole.required.extend_from_slice(&part.required);
        whole.description = part.description.clone().or(whole.description.take());
        whole.default = part.default.clone().or(whole.default.take());
    }
    whole
}

/// A header that a request may have.
struct Taken {
    name: &'static str,
    says: &'static str,
}

const IDEMPOTENCY_KEY: Taken = Taken {
    name: "Idempotency-Key",
    says: "Does the work once: within 24 hours the same key and body are answered with what was answered before, a key of another \
           body is 422, one whose work goes on 409.",
};
const IF_MATCH: Taken =
    Taken { name: "If-Match", says: "The ETag that was seen: 412 if the resource has another by now." };
const IF_NONE_MATCH: Taken = Taken { name: "If-None-Match", says: "The ETag that is known: 304 if it is still that." };

/// Headers of answers, and what they say.
const ETAG: &str = "ETag";
const LOCATION: &str = "Location";
const REPLAYED: &str = "Idempotency-Replayed";
const RETRY_AFTER: &str = "Retry-After";
const ALWAYS: [&str; 3] = ["RateLimit", "RateLimit-Policy", "X-Request-Id"];
const ANSWERED: &[(&str, &str)] = &[
    (ETAG, "The version of what is answered, for `If-Match` and `If-None-Match`."),
    (LOCATION, "Where what was made, or asked for, is."),
    (REPLAYED, "`true`: the answer was given before, to the same `Idempotency-Key`."),
    (RETRY_AFTER, "Seconds; with 429 and 503."),
    ("RateLimit", "What is left of the limit, and in how many seconds there is more (IETF draft, structured fields)."),
    ("RateLimit-Policy", "The limit (IETF draft, structured fields)."),
    ("X-Request-Id", "The request's own, or one that was made for it."),
];

/// Says which headers each route takes and answers.
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
                    if path.ends_with("/restore") {
                        take(operation, &IF_MATCH);
                    }
                }
                "PATCH" | "DELETE" => take(operation, &IF_MATCH),
                // Where a session stands changes without its version.
                "GET" if by_version && !path.ends_with("/sessions/{x}") => {
                    take(operation, &IF_NONE_MATCH);
                    let known = Response::new("It is what `If-None-Match` names.");
                    operation.responses.responses.entry("304".to_owned()).or_insert(RefOr::T(known));
                }
                _ => {}
            }
            answer(operation, method, by_version);
        }
    }
}

/// Whether a path is that of one resource, which has a version.
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

/// A problem has a media type of its own, and what events say is no one text.
fn say_media(status: &str, response: &mut Response) {
    if status == "default"
        && let Some(problem) = response.content.shift_remove("application/json")
    {
        response.content.insert("application/problem+json".to_owned(), problem);
    }
    if let Some(RefOr::T(events)) = response.content.get_mut("text/event-stream") {
        events.schema = None;
    }
}

/// Names the headers of each answer of a route.
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
