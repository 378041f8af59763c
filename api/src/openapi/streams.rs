//! The events of event streams, as types. A server-sent event has a name and data; a frame of the bridge has both as
//! members.
#![expect(dead_code, reason = "these types only describe events; other code writes them")]

use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use ai::turns::view::{CallStatus, TurnView};

/// An event of a turn. `event` is the name of the server-sent event, `data` its content.
#[derive(ToSchema)]
#[expect(clippy::large_enum_variant, reason = "no value of it is ever made")]
#[serde(tag = "event", content = "data")]
pub enum TurnEvent {
    /// The turn has started.
    #[serde(rename = "turn.started")]
    Started(#[schema(inline)] TurnNamed),
    /// The next piece of the narrative.
    #[serde(rename = "text.delta")]
    Text(#[schema(inline)] TextDelta),
    /// The model calls a tool.
    #[serde(rename = "tool.call")]
    Call(#[schema(inline)] ToolCalled),
    /// The result of a tool call.
    #[serde(rename = "tool.result")]
    Result(#[schema(inline)] ToolAnswered),
    /// The turn is complete. For a turn of an NPC, an owner or a session, `turn` is what the answer would have been
    /// without streaming. What `POST …/act` would have answered is in the turn's `planned`. Of what `POST …/rules/resolve`
    /// would have answered, `raw` is the turn's `narrative`, and the rest is in its tool call.
    #[serde(rename = "turn.completed")]
    Completed(#[schema(inline)] TurnDone),
    /// The turn failed. Its changes are reverted.
    #[serde(rename = "turn.failed")]
    Failed(#[schema(inline)] TurnFailure),
    /// The turn was cancelled. Its changes are reverted.
    #[serde(rename = "turn.cancelled")]
    Cancelled(#[schema(inline)] TurnNamed),
}

/// The turn that an event is about.
#[derive(ToSchema)]
pub struct TurnNamed {
    /// The turn's id.
    turn_id: Uuid,
}

/// A piece of text.
#[derive(ToSchema)]
pub struct TextDelta {
    /// The piece. All pieces together are the narrative.
    text: String,
}

/// A tool call.
#[derive(ToSchema)]
pub struct ToolCalled {
    /// The call's id in its turn.
    id: String,
    /// The tool's name.
    name: String,
    /// The arguments that the model gave; null if they could not be parsed.
    arguments: Value,
}

/// The result of a tool call.
#[derive(ToSchema)]
pub struct ToolAnswered {
    /// The call's id in its turn.
    id: String,
    /// Whether the call succeeded.
    status: CallStatus,
    /// What the tool returned. Not sent to everyone.
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
    /// Why the call failed.
    #[schema(inline)]
    error: Option<EventError>,
}

/// What went wrong.
#[derive(ToSchema)]
pub struct EventError {
    /// One of `/problems`.
    code: String,
    /// What happened, in one sentence.
    message: String,
}

/// A complete turn.
#[derive(ToSchema)]
pub struct TurnDone {
    /// The turn, as its own route returns it.
    turn: TurnView,
}

/// A turn that failed.
#[derive(ToSchema)]
pub struct TurnFailure {
    /// The turn's id.
    turn_id: Uuid,
    /// Why the turn failed.
    #[schema(inline)]
    error: EventError,
}
