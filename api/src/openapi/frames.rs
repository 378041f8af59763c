//! The schema of the bridge's frames, `bridge.schema.json`: which types there are in each direction, and what they carry. What is carried
//! is described where the OpenAPI document has it too: events, the requests of turns, what turns tell.
//!
//! To add a frame: its line in [`FROM_FRONTENDS`] or [`FROM_SERVER`]; an event of sessions needs none.

use serde_json::{Map, Value, json};
use utoipa::{
    ToSchema,
    openapi::{OpenApi, RefOr, Schema},
};

use super::{
    document::{Object, reference},
    mend,
    names::camel,
};
use crate::{
    bridge::described::{
        AckData, ConnectData, ConnectedData, ExecuteRollData, FrontendErrorData, MessageGone, PongData, RollResultData,
        SaidData, ServerErrorData,
    },
    sessions::events,
};

/// What a frame carries in `data`.
enum Data {
    /// Nothing, or an object without members that count.
    Nothing,
    /// A schema by its name; it may be left out.
    Maybe(&'static str),
    /// A schema by its name.
    Named(&'static str),
    /// An event of a turn with its id.
    TurnEvent,
    /// The data of an event of sessions.
    Event(&'static str),
}
use Data::{Event, Maybe, Named, Nothing, TurnEvent};

/// Whether a frame names the request it belongs to.
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

/// What frontends send beside `connect` and the events of sessions.
const FROM_FRONTENDS: &[Frame<'_>] = &[
    frame("ping", "Asks whether the server is there.", Nothing, Request::Maybe),
    frame("roll_result", "What was rolled, as the server asked.", Named("RollResultData"), Request::Always),
    frame(
        "error",
        "The frontend cannot do what it is asked, or reports an error of its own.",
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
    frame("connected", "The connection is there.", Named("ConnectedData"), Request::Never),
    frame("ack", "What became of an event that had a `request_id`.", Named("AckData"), Request::Always),
    frame("pong", "The answer to `ping`.", Named("PongData"), Request::Maybe),
    frame("execute_roll", "Asks for rolls; `roll_result` answers.", Named("ExecuteRollData"), Request::Always),
    frame("combat_state_refresh", "Asks how the fight stands; `combat_state` answers.", Nothing, Request::Always),
    frame("chat_message", "People said something elsewhere.", Named("SaidData"), Request::Never),
    frame("chat_response", "AI said something.", Named("SaidData"), Request::Never),
    frame("message_deleted", "A message was taken back.", Named("MessageGone"), Request::Never),
    frame("world_state", "The world that another client stored for this session.", Named("WorldState"), Request::Never),
    frame("turn_event", "What a turn tells that this connection asked for.", TurnEvent, Request::Maybe),
    frame(
        "error",
        "A frame that cannot be taken, or why the connection ends.",
        Named("ServerErrorData"),
        Request::Maybe,
    ),
];

/// Adds to a document what frames alone carry.
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
    let known = &mut api.components.get_or_insert_default().schemas;
    for (name, mut schema) in all {
        mend(&mut schema);
        known.entry(name).or_insert(schema);
    }
}

/// The schema of frames out of a document that was completed with [`add`].
#[must_use]
pub fn schema(document: &Value) -> Value {
    let known = &document["components"]["schemas"];
    let mut defs = Map::new();
    let connect = connect(&known["ConnectData"]);
    let events = events::KINDS.iter().map(|kind| {
        let says = &known[format!("SessionEvent{}", camel(kind))]["description"];
        written(&frame(kind, says.as_str().unwrap_or_default(), Event(kind), Request::Maybe), false, known)
    });
    let from_frontends = FROM_FRONTENDS.iter().map(|frame| written(frame, false, known));
    let from_frontends: Vec<_> =
        std::iter::once(("connect".to_owned(), connect)).chain(from_frontends).chain(events).collect();
    let from_server = FROM_SERVER.iter().map(|frame| written(frame, true, known)).collect();
    union("FrontendFrame", "A frame that a frontend sends.", from_frontends, &mut defs);
    union("ServerFrame", "A frame that the server sends.", from_server, &mut defs);
    let mut used = Object::new();
    collect(&Value::Object(defs.clone()), known, &mut used);
    defs.extend(used);
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:tavernkeep:bridge:1.0",
        "title": "Frames of Tavernkeep's bridge",
        "description": "Every text message of `GET /v1/campaigns/{campaign}/bridge` is one of these; docs/bridge.md tells when they are sent.",
        "oneOf": [reference("FrontendFrame"), reference("ServerFrame")],
        "$defs": defs,
    });
    let text = schema.to_string().replace("#/components/schemas/", "#/$defs/");
    serde_json::from_str(&text).unwrap_or(schema)
}

/// Whoever connects says so beside the type.
fn connect(data: &Value) -> Value {
    let mut frame = data.clone();
    frame["description"] = "The first frame: who connects. All but `type` may stand in `data` as well.".into();
    frame["properties"]["type"] = json!({ "type": "string", "enum": ["connect"], "description": "What kind it is." });
    frame["required"] = json!(["type", "client_id", "token"]);
    frame
}

fn written(frame: &Frame<'_>, by_server: bool, known: &Value) -> (String, Value) {
    let mut members = Object::new();
    let mut required = vec!["type"];
    members.insert(
        "type".to_owned(),
        json!({ "type": "string", "enum": [frame.kind], "description": "What kind it is." }),
    );
    let data = match frame.data {
        Nothing => {
            json!({ "type": ["object", "null"], "additionalProperties": true, "description": "Nothing that counts." })
        }
        Maybe(name) => json!({ "oneOf": [reference(name), { "type": "null" }], "description": "What it carries." }),
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
        let says = "The request it belongs to: the answer has the same.";
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

/// The schemas that `value` refers to, and those that they refer to.
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
