//! What frames carry, as types. `bridge.schema.json` is generated from these types and from those that the OpenAPI document
//! describes. The frames themselves are read and built elsewhere; tests compare them with the schema.
//!
//! To add a frame, add its line in `openapi/frames.rs`, and a type here if its data has no type yet.
#![expect(dead_code, reason = "they describe frames that are read and built elsewhere")]

use entity::{
    message::{Author, Type},
    session::{Dice, Role},
    shapes::Speaker,
};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use base::error::FieldError;
use world::sessions::events::EventResult;

/// A frontend's request to connect.
#[derive(ToSchema)]
pub struct ConnectData {
    /// The frontend's name for itself, which stays the same after a reload.
    #[schema(min_length = 1, max_length = 64)]
    client_id: String,
    /// An API key or an access token with the scope `play` or `gm`.
    #[schema(min_length = 1)]
    token: String,
    /// The session that the frontend expects for its name.
    session_id: Option<Uuid>,
    /// The role of the session's AI. Without it, the session keeps its role.
    #[schema(inline)]
    role: Option<Role>,
    /// Who rolls for the session's AI.
    #[schema(inline)]
    dice: Option<Dice>,
    /// The character that a session with the role `player` plays, by id or slug.
    player_id: Option<String>,
    /// The frontend's channel. The session plays in this channel's scene.
    #[schema(max_length = 200)]
    channel: Option<String>,
    /// Information about the frontend's world, at most 4 KiB.
    world_info: Option<Value>,
    /// Information about the frontend's user, at most 4 KiB.
    user_info: Option<Value>,
}

/// The answer to `connect`.
#[derive(ToSchema)]
pub struct ConnectedData {
    /// The frontend's name for itself.
    client_id: String,
    /// The session.
    session_id: Uuid,
    /// The campaign.
    campaign_id: Uuid,
    /// This connection.
    connection_id: Uuid,
    /// The role of the session's AI.
    #[schema(inline)]
    role: Role,
    /// Who rolls for the session's AI.
    #[schema(inline)]
    dice: Dice,
    /// The character that the session plays.
    #[schema(required = true)]
    player_id: Option<Uuid>,
    /// The version of the protocol: `1.0`.
    protocol_version: String,
    /// The server's time.
    #[schema(value_type = String, format = DateTime)]
    server_time: OffsetDateTime,
    /// Seconds between the server's pings.
    ping_seconds: u64,
    /// How much the frontend may send.
    #[schema(inline)]
    limits: ConnectionLimits,
    /// A sentence for people.
    message: String,
}

/// How much a frontend may send over one connection.
#[derive(ToSchema)]
pub struct ConnectionLimits {
    /// The most bytes of a frame.
    frame_bytes: u64,
    /// The most bytes of a frame with a world state.
    world_state_bytes: u64,
    /// The most frames per minute.
    frames_per_minute: u64,
}

/// The answer to `ping`.
#[derive(ToSchema)]
pub struct PongData {
    /// The server's time.
    #[schema(value_type = String, format = DateTime)]
    server_time: OffsetDateTime,
}

/// What happened to the event.
#[derive(ToSchema)]
pub struct AckData {
    /// One entry, since a frame is one event.
    results: Vec<EventResult>,
}

/// A request to roll.
#[derive(ToSchema)]
pub struct ExecuteRollData {
    /// The rolls. Answer them in this order.
    #[schema(inline)]
    rolls: Vec<RollAsked>,
}

/// A roll that the frontend is asked to make.
#[derive(ToSchema)]
pub struct RollAsked {
    /// The formula, in Foundry's syntax.
    formula: String,
    /// What the roll is for.
    #[schema(required = true)]
    flavor: Option<String>,
}

/// The results of the rolls.
#[derive(ToSchema)]
pub struct RollResultData {
    /// One result for each roll, in the same order.
    #[schema(inline)]
    results: Vec<RollReported>,
}

/// A roll as the frontend reports it.
#[derive(ToSchema)]
pub struct RollReported {
    /// The formula that was rolled.
    formula: Option<String>,
    /// The total.
    total: Option<f64>,
    /// The dice in the order in which they fell. Each entry is one die, or one term with its dice.
    #[schema(inline)]
    dice: Option<Vec<DieReported>>,
    /// Whether the frontend could roll. Defaults to true.
    success: Option<bool>,
    /// Why the frontend could not roll.
    error: Option<Value>,
}

/// One die, or the dice of one term.
#[derive(ToSchema)]
pub struct DieReported {
    /// The number of sides; `f` for Fate dice, `c` for coins.
    faces: Option<Value>,
    /// `fate` or `coin`, for dice without numbers.
    kind: Option<String>,
    /// The value that the die shows.
    value: Option<i64>,
    /// The values that the dice of a term show: numbers, or `{result}`.
    results: Option<Vec<Value>>,
}

/// Says that the frontend cannot do what the server asked.
#[derive(ToSchema)]
pub struct FrontendErrorData {
    /// Why, in a sentence that the AI reads.
    error: Option<String>,
    /// The same as `error`, for frontends that use this name.
    message: Option<String>,
    /// The frontend's own error code.
    error_code: Option<String>,
}

/// An error.
#[derive(ToSchema)]
pub struct ServerErrorData {
    /// A code from `/problems`, or `AUTH_REQUIRED`.
    code: String,
    /// The title of the code.
    error: String,
    /// What is wrong, and what to do about it.
    message: String,
    /// The invalid values, each with a pointer into the frame.
    errors: Option<Vec<FieldError>>,
    /// How many seconds to wait.
    retry_after_seconds: Option<u64>,
}

/// A message as it is now.
#[derive(ToSchema)]
pub struct SaidData {
    /// The message.
    #[schema(inline)]
    message: MessageShown,
}

/// A message as the server sends it to frontends.
#[derive(ToSchema)]
pub struct MessageShown {
    /// The message's id.
    id: Uuid,
    /// The session in which it was written.
    #[schema(required = true)]
    session_id: Option<Uuid>,
    /// The type of message.
    #[schema(inline)]
    r#type: Type,
    /// The speaker.
    speaker: Speaker,
    /// The text.
    content: String,
    /// The author.
    #[schema(inline)]
    author: Author,
    /// What the roll is for.
    #[schema(required = true)]
    flavor: Option<String>,
    /// The roll.
    #[schema(required = true)]
    roll: Option<Value>,
    /// The player character who said it.
    #[schema(required = true)]
    player_id: Option<Uuid>,
    /// Who may read the message. Everyone may if the list is empty.
    whisper_to: Vec<String>,
    /// Whether only the game master sees the roll.
    blind: bool,
    /// The turn that wrote the message.
    #[schema(required = true)]
    turn_id: Option<Uuid>,
    /// When the message was written.
    #[schema(value_type = String, format = DateTime)]
    created_at: OffsetDateTime,
}

/// A deleted message.
#[derive(ToSchema)]
pub struct MessageGone {
    /// The message's id.
    id: Uuid,
}
