//! What streams of events tell, as types: server-sent events have a name and data; a frame of the bridge has both as members.
#![expect(dead_code, reason = "they describe events that are written where something happens")]

use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::turns::{CallStatus, TurnView};

/// Something that a turn tells: `event` is the name of a server-sent event, `data` what it carries.
#[derive(ToSchema)]
#[expect(clippy::large_enum_variant, reason = "no value of it is ever made")]
#[serde(tag = "event", content = "data")]
pub enum TurnEvent {
    /// The turn runs.
    #[serde(rename = "turn.started")]
    Started(#[schema(inline)] TurnNamed),
    /// More of the narrative.
    #[serde(rename = "text.delta")]
    Text(#[schema(inline)] TextDelta),
    /// A tool is called.
    #[serde(rename = "tool.call")]
    Call(#[schema(inline)] ToolCalled),
    /// What came of a call.
    #[serde(rename = "tool.result")]
    Result(#[schema(inline)] ToolAnswered),
    /// The turn is over; this is what the whole answer would have been.
    #[serde(rename = "turn.completed")]
    Completed(#[schema(inline)] TurnDone),
    /// The turn failed; what it did is taken back.
    #[serde(rename = "turn.failed")]
    Failed(#[schema(inline)] TurnFailure),
    /// The turn was cancelled; what it did is taken back.
    #[serde(rename = "turn.cancelled")]
    Cancelled(#[schema(inline)] TurnNamed),
}

/// Which turn.
#[derive(ToSchema)]
pub struct TurnNamed {
    /// The turn's id.
    turn_id: Uuid,
}

/// A piece of text.
#[derive(ToSchema)]
pub struct TextDelta {
    /// The piece; all of them joined are the narrative.
    text: String,
}

/// A call.
#[derive(ToSchema)]
pub struct ToolCalled {
    /// The call's id in its turn.
    id: String,
    /// The tool's name.
    name: String,
    /// What the model gave it.
    #[schema(value_type = Object)]
    arguments: Value,
}

/// What came of a call.
#[derive(ToSchema)]
pub struct ToolAnswered {
    /// The call's id in its turn.
    id: String,
    /// What became of the call.
    status: CallStatus,
    /// What the tool found; not told to everyone.
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
    /// Why it did not succeed.
    #[schema(inline)]
    error: Option<EventError>,
}

/// What went wrong.
#[derive(ToSchema)]
pub struct EventError {
    /// One of `/problems`.
    code: String,
    /// What happened, in a sentence.
    message: String,
}

/// A whole turn.
#[derive(ToSchema)]
pub struct TurnDone {
    /// The turn, as its own route answers it.
    turn: TurnView,
}

/// A turn that failed.
#[derive(ToSchema)]
pub struct TurnFailure {
    /// The turn's id.
    turn_id: Uuid,
    /// Why.
    #[schema(inline)]
    error: EventError,
}
