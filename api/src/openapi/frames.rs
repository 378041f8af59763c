//! Generates `bridge.schema.json`, the schema of the bridge's frames: the types in each direction and their data. Data
//! that the OpenAPI document also describes, such as events, turn requests and turn events, is taken from there.
//!
//! To add a frame, add a line in [`FROM_FRONTENDS`] or [`FROM_SERVER`]. A session event needs no line.

use serde_json::{Map, Value, json};
use utoipa::{
    ToSchema,
    openapi::{OpenApi, RefOr, Schema},
};

use super::{
    document::{Object, reference},
    names::camel,
};
use ai::bridge::described::{
    AckData, ConnectData, ConnectedData, ExecuteRollData, FrontendErrorData, MessageGone, PongData, RollResultData,
    SaidData, ServerErrorData,
};
use ai::reactions::replies::ReplyAnnounced;
use edge::http::schema::mend;
use world::sessions::events;

/// What a frame carries in `data`.
enum Data {
    /// Nothing, or an object whose members do not matter.
    Nothing,
    /// An optional schema, by name.
    Maybe(&'static str),
    /// A required schema, by name.
    Named(&'static str),
    /// A turn event with its id.
    TurnEvent,
    /// The data of a session event.
    Event(&'static str),
}
use Data::{Event, Maybe, Named, Nothing, TurnEvent};

/// Whether a frame has the id of the request that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Request {
    Maybe,
    Always,
    Never,
}

struct Frame<'a> {
    kind: &'static str,
    says: &'a str,
    data: Data,
    request: Request,
}

const fn frame<'a>(kind: &'static str, says: &'a str, data: Data, request: Request) -> Frame<'a> {
    Frame { kind, says, data, request }
}

/// What frontends send, besides `connect` and session events.
const FROM_FRONTENDS: &[Frame<'_>] = &[
    frame("ping", "Checks that the server is reachable.", Nothing, Request::Maybe),
    frame(
        "roll_result",
        "The result of the rolls that the server asked for.",
        Named("RollResultData"),
        Request::Always,
    ),
    frame(
        "error",
        "The frontend cannot do what the server asked for, or reports an error of its own.",
        Named("FrontendErrorData"),
        Request::Maybe,
    ),
    frame("turn_request", "Starts a turn of the session's AI.", Maybe("SessionTurnInput"), Request::Maybe),
    frame("chat_request", "Another name for `turn_request`.", Maybe("SessionTurnInput"), Request::Maybe),
    frame("world_state_sync", "Another name for `world_state`.", Event("world_state"), Request::Maybe),
    frame("combat_context", "Another name for `combat_state`.", Event("combat_state"), Request::Maybe),
];

/// What the server sends.
const FROM_SERVER: &[Frame<'_>] = &[
    frame("connected", "The connection is established.", Named("ConnectedData"), Request::Never),
    frame("ack", "The result of an event that had a `request_id`.", Named("AckData"), Request::Always),
    frame("pong", "The answer to `ping`.", Named("PongData"), Request::Maybe),
    frame(
        "execute_roll",
        "Asks for rolls. The frontend answers with `roll_result`.",
        Named("ExecuteRollData"),
        Request::Always,
    ),
    frame(
        "combat_state_refresh",
        "Asks for the state of the fight. The frontend answers with `combat_state`.",
        Nothing,
        Request::Always,
    ),
    frame("chat_message", "A person wrote a message elsewhere.", Named("SaidData"), Request::Never),
    frame("chat_response", "The AI wrote a message.", Named("SaidData"), Request::Never),
    frame(
        "reply",
        "An NPC or owner has something to say to a player who can hear it now. Acknowledge it once the player has seen it.",
        Named("ReplyAnnounced"),
        Request::Never,
    ),
    frame(
        "message_changed",
        "An answer was corrected, or words in a message were erased.",
        Named("SaidData"),
        Request::Never,
    ),
    frame("message_deleted", "A message was deleted.", Named("MessageGone"), Request::Never),
    frame(
        "world_state",
        "The world state that another frontend stored for this session.",
        Named("WorldState"),
        Request::Never,
    ),
    frame("turn_event", "An event of a turn that this connection started.", TurnEvent, Request::Maybe),
    frame("error", "The server rejected a frame, or ends the connection.", Named("ServerErrorData"), Request::Maybe),
];

/// Adds the schemas that only frames use to a document.
pub fn add(api: &mut OpenApi) {
    fn of<T: ToSchema>(all: &mut Vec<(String, RefOr<Schema>)>) {
        all.push((T::name().into_owned(), T::schema()));
        T::schemas(all);
    }
    let mut all = Vec::new();
    of::<ConnectData>(&mut all);
    of::<ConnectedData>(&mut all);
    of::<PongData>(&mut all);
    of::<AckData>(&mut all);
    of::<ExecuteRollData>(&mut all);
    of::<RollResultData>(&mut all);
    of::<FrontendErrorData>(&mut all);
    of::<ServerErrorData>(&mut all);
    of::<SaidData>(&mut all);
    of::<MessageGone>(&mut all);
    of::<ReplyAnnounced>(&mut all);
    let known = &mut api.components.get_or_insert_default().schemas;
    for (name, mut schema) in all {
        mend(&mut schema);
        known.entry(name).or_insert(schema);
    }
}

/// The schema of frames, from a document that was completed with [`add`].
#[must_use]
pub fn schema(document: &Value) -> Value {
    let known = &document["components"]["schemas"];
    let mut defs = Map::new();
    let connect = connect(&known["ConnectData"]);
    let events = events::KINDS.iter().map(|kind| {
        let says = &known[format!("SessionEvent{}", camel(kind))]["description"];
        frame_schema(&frame(kind, says.as_str().unwrap_or_default(), Event(kind), Request::Maybe), false, known)
    });
    let from_frontends = FROM_FRONTENDS.iter().map(|frame| frame_schema(frame, false, known));
    let from_frontends: Vec<_> =
        std::iter::once(("connect".to_owned(), connect)).chain(from_frontends).chain(events).collect();
    let from_server = FROM_SERVER.iter().map(|frame| frame_schema(frame, true, known)).collect();
    union("FrontendFrame", "A frame that a frontend sends.", from_frontends, &mut defs);
    union("ServerFrame", "A frame that the server sends.", from_server, &mut defs);
    let mut used = Object::new();
    collect(&Value::Object(defs.clone()), known, &mut used);
    defs.extend(used);
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:tavernkeep:bridge:1.0",
        "title": "Frames of Tavernkeep's bridge",
        "description": "Every text message of `GET /v1/campaigns/{campaign}/bridge` is one of these frames. docs/bridge.md describes when each is sent.",
        "oneOf": [reference("FrontendFrame"), reference("ServerFrame")],
        "$defs": defs,
    });
    let text = schema.to_string().replace("#/components/schemas/", "#/$defs/");
    serde_json::from_str(&text).unwrap_or(schema)
}

/// The `connect` frame. Its data may also stand beside `type`.
fn connect(data: &Value) -> Value {
    let mut frame = data.clone();
    frame["description"] =
        "The first frame: identifies the frontend. Everything except `type` may also be placed in `data`.".into();
    frame["properties"]["type"] =
        json!({ "type": "string", "enum": ["connect"], "description": "The type of the frame." });
    frame["required"] = json!(["type", "client_id", "token"]);
    frame
}

fn frame_schema(frame: &Frame<'_>, by_server: bool, known: &Value) -> (String, Value) {
    let mut members = Object::new();
    let mut required = vec!["type"];
    members.insert(
        "type".to_owned(),
        json!({ "type": "string", "enum": [frame.kind], "description": "The type of the frame." }),
    );
    let data = match frame.data {
        Nothing => {
            json!({ "type": ["object", "null"], "additionalProperties": true, "description": "Ignored." })
        }
        Maybe(name) => {
            json!({ "oneOf": [reference(name), { "type": "null" }], "description": "The data of the frame." })
        }
        Named(name) => reference(name),
        TurnEvent => json!({ "allOf": [reference("TurnEvent"), {
            "type": "object", "required": ["id"],
            "properties": { "id": { "type": "string", "description": "The event's id, for `Last-Event-ID`." } },
        }] }),
        Event(kind) => known[format!("SessionEvent{}", camel(kind))]["properties"]["data"].clone(),
    };
    let is_needed = !matches!(frame.data, Nothing | Maybe(_)) && !data.is_null();
    if !data.is_null() {
        members.insert("data".to_owned(), data);
    }
    if is_needed {
        required.push("data");
    }
    if frame.request != Request::Never {
        let says = "The id of the request that the frame belongs to. The answer has the same id.";
        members.insert("request_id".to_owned(), json!({ "type": "string", "maxLength": 100, "description": says }));
    }
    if frame.request == Request::Always {
        required.push("request_id");
    }
    members.insert("timestamp".to_owned(), json!({ "type": "string", "description": "When it was sent." }));
    if by_server {
        required.push("timestamp");
    }
    let schema = json!({ "type": "object", "description": frame.says, "required": required, "properties": members });
    (frame.kind.to_owned(), schema)
}

fn union(name: &str, says: &str, kinds: Vec<(String, Value)>, defs: &mut Object) {
    let (mut items, mut mapping) = (Vec::new(), Object::new());
    for (kind, schema) in kinds {
        let own = format!("{name}{}", camel(&kind));
        let to = reference(&own);
        mapping.insert(kind, to["$ref"].clone());
        items.push(to);
        defs.insert(own, schema);
    }
    let discriminator = json!({ "propertyName": "type", "mapping": mapping });
    defs.insert(name.to_owned(), json!({ "description": says, "oneOf": items, "discriminator": discriminator }));
}

/// Collects the schemas that `value` refers to, directly or through other schemas.
fn collect(value: &Value, known: &Value, used: &mut Object) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, known, used)),
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str).and_then(|place| place.rsplit('/').next());
            if let Some(name) = name
                && let Some(schema) = known.get(name)
                && !used.contains_key(name)
            {
                used.insert(name.to_owned(), schema.clone());
                collect(schema, known, used);
            }
            members.values().for_each(|member| collect(member, known, used));
        }
        _ => {}
    }
}
