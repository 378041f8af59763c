//! Frames: JSON objects `{type, data?, request_id?, timestamp?}` in text messages, in both directions.

use serde_json::{Map, Value, json};
use time::format_description::well_known::Rfc3339;

use base::{
    clock,
    error::{Code, Error, Result},
    json,
};
use world::sessions::world_state;

/// The version of the frames described in `docs/bridge.md`.
pub const PROTOCOL_VERSION: &str = "1.0";
/// The most bytes of a message with a world state: REST's own limit for world states, plus the rest of the frame.
pub const MESSAGE_BYTES_MAX: usize = world_state::BYTES_MAX + 64 * 1024;
/// The most bytes of any other message.
pub const BYTES_MAX: usize = 64 * 1024;
const REQUEST_ID_CHARS_MAX: usize = 100;

/// The types of frames from frontends, as metrics name them. All events count as `event`.
pub const IN: &[&str] = &["connect", "ping", "roll_result", "combat_state", "error", "turn_request", "event"];

/// A received frame.
#[derive(Debug)]
pub struct Incoming {
    pub kind: String,
    pub request_id: Option<String>,
    /// The content of `data`. For `connect`, other members count as well.
    pub data: Value,
    /// All members except `data`.
    pub members: Map<String, Value>,
}

impl Incoming {
    /// Reads a message.
    ///
    /// # Errors
    /// `bad_request`, `payload_too_large`, `validation_failed`, with the frame's `request_id` if that could be read.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        let bad = |why: String| Error::new(Code::BadRequest, why);
        let none = |error| Unreadable { error, request_id: None };
        let mut read = json::parse(text).map_err(|e| none(json::refused("The frame", &e)))?;
        json::clean(&mut read);
        let Value::Object(members) = read else { return Err(none(bad("A frame must be a JSON object.".to_owned()))) };
        let request_id = match members.get("request_id") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) if id.chars().count() <= REQUEST_ID_CHARS_MAX => Some(id.clone()),
            Some(_) => {
                let error =
                    bad(format!("A `request_id` must be a string of at most {REQUEST_ID_CHARS_MAX} characters."));
                return Err(Unreadable { error, request_id: None });
            }
        };
        Self::of(members, request_id.clone(), text.len()).map_err(|error| Unreadable { error, request_id })
    }

    fn of(mut members: Map<String, Value>, request_id: Option<String>, bytes: usize) -> Result<Self> {
        let Some(Value::String(kind)) = members.get("type").cloned() else {
            return Err(Error::new(Code::BadRequest, "A frame needs a `type`."));
        };
        if bytes > BYTES_MAX && !matches!(kind.as_str(), "world_state" | "world_state_sync") {
            let detail = format!("A frame may have at most {BYTES_MAX} bytes, a world state {MESSAGE_BYTES_MAX}.");
            return Err(Error::new(Code::PayloadTooLarge, detail));
        }
        let data = members.remove("data").unwrap_or(Value::Null);
        let mut read = Self { kind, request_id, data, members };
        json::sound(&mut read.data, &mut "/data".to_owned())?;
        Ok(read)
    }
}

/// A message that is not a valid frame.
#[derive(Debug)]
pub struct Unreadable {
    pub error: Error,
    pub request_id: Option<String>,
}

/// A frame to send.
#[derive(Debug)]
pub struct Frame {
    pub kind: &'static str,
    pub text: String,
}

impl Frame {
    /// A frame with data.
    #[must_use]
    pub fn new(kind: &'static str, request_id: Option<&str>, data: &Value) -> Self {
        let mut frame = json!({ "type": kind, "data": data, "timestamp": now() });
        if let (Some(id), Some(members)) = (request_id, frame.as_object_mut()) {
            members.insert("request_id".to_owned(), id.into());
        }
        Self { kind, text: frame.to_string() }
    }

    /// An error frame.
    #[must_use]
    pub fn error(error: &Error, request_id: Option<&str>) -> Self {
        let code = if error.code == Code::Unauthenticated { "AUTH_REQUIRED" } else { error.code.as_str() };
        let mut data = json!({ "code": code, "error": error.code.title(), "message": error.detail });
        if let Some(members) = data.as_object_mut() {
            if !error.errors.is_empty() {
                members.insert("errors".to_owned(), json!(error.errors));
            }
            if let Some(seconds) = error.retry_after_seconds {
                members.insert("retry_after_seconds".to_owned(), seconds.into());
            }
        }
        Self::new("error", request_id, &data)
    }
}

/// The current time in the format of frames.
#[must_use]
pub fn now() -> String {
    clock::now().format(&Rfc3339).unwrap_or_default()
}
