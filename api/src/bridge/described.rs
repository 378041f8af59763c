//! What frames carry, as types: `bridge.schema.json` is written of these and of what the OpenAPI document describes already. The frames
//! themselves are read and put together elsewhere; tests hold them to the schema.
//!
//! To add a frame: its line in `openapi/frames.rs`, and what it carries here if nothing else does.
#![expect(dead_code, reason = "they describe frames that are read and put together elsewhere")]

use entity::{
    message::{Author, Type},
    session::{Dice, Role},
    shapes::Speaker,
};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{error::FieldError, sessions::events::EventResult};

/// Who connects.
#[derive(ToSchema)]
pub(crate) struct ConnectData {
    /// The frontend's own name, which survives a reload.
    #[schema(min_length = 1, max_length = 64)]
    client_id: String,
    /// An API key or an access token with the scope `play` or `gm`.
    #[schema(min_length = 1)]
    token: String,
    /// The session it expects to find under its name.
    session_id: Option<Uuid>,
    /// What its AI is; what is left out stays as it is.
    #[schema(inline)]
    role: Option<Role>,
    /// Who rolls for its AI.
    #[schema(inline)]
    dice: Option<Dice>,
    /// The character that a `player` plays, by id or slug.
    player_id: Option<String>,
    /// The frontend's channel, whose scene it plays in.
    #[schema(max_length = 200)]
    channel: Option<String>,
    /// What it says of its world, at most 4 KiB.
    world_info: Option<Value>,
    /// What it says of its user, at most 4 KiB.
    user_info: Option<Value>,
}

/// The connection is there.
#[derive(ToSchema)]
pub(crate) struct ConnectedData {
    /// The frontend's own name.
    client_id: String,
    /// Its session.
    session_id: Uuid,
    /// The campaign.
    campaign_id: Uuid,
    /// This connection.
    connection_id: Uuid,
    /// What its AI is.
    #[schema(inline)]
    role: Role,
    /// Who rolls for its AI.
    #[schema(inline)]
    dice: Dice,
    /// The character that it plays.
    #[schema(required = true)]
    player_id: Option<Uuid>,
    /// The version of the frames: `1.0`.
    protocol_version: String,
    /// The server's time.
    #[schema(value_type = String, format = DateTime)]
    server_time: OffsetDateTime,
    /// Seconds between the server's pings.
    ping_seconds: u64,
    /// How much may be sent.
    #[schema(inline)]
    limits: ConnectionLimits,
    /// A sentence for people.
    message: String,
}

/// How much a connection may send.
#[derive(ToSchema)]
pub(crate) struct ConnectionLimits {
    /// Bytes of a frame.
    frame_bytes: u64,
    /// Bytes of a frame with a world state.
    world_state_bytes: u64,
    /// Frames a minute.
    frames_per_minute: u64,
}

/// The server is there.
#[derive(ToSchema)]
pub(crate) struct PongData {
    /// The server's time.
    #[schema(value_type = String, format = DateTime)]
    server_time: OffsetDateTime,
}

/// What became of an event.
#[derive(ToSchema)]
pub(crate) struct AckData {
    /// One entry: a frame is one event.
    results: Vec<EventResult>,
}

/// What is to be rolled.
#[derive(ToSchema)]
pub(crate) struct ExecuteRollData {
    /// The rolls, to be answered in this order.
    #[schema(inline)]
    rolls: Vec<RollAsked>,
}

/// A roll that the frontend is asked for.
#[derive(ToSchema)]
pub(crate) struct RollAsked {
    /// The formula, in Foundry's language.
    formula: String,
    /// What it is for.
    #[schema(required = true)]
    flavor: Option<String>,
}

/// What was rolled.
#[derive(ToSchema)]
pub(crate) struct RollResultData {
    /// One result for each roll, in their order.
    #[schema(inline)]
    results: Vec<RollReported>,
}

/// A roll as the frontend reports it.
#[derive(ToSchema)]
pub(crate) struct RollReported {
    /// The formula that was rolled.
    formula: Option<String>,
    /// What it came to.
    total: Option<f64>,
    /// The dice in the order they fell: each die, or each term with its dice.
    #[schema(inline)]
    dice: Option<Vec<DieReported>>,
    /// Whether it could be rolled; true unless it says otherwise.
    success: Option<bool>,
    /// Why it could not.
    error: Option<Value>,
}

/// A die, or the dice of a term.
#[derive(ToSchema)]
pub(crate) struct DieReported {
    /// Its sides; `f` for Fate dice, `c` for coins.
    faces: Option<Value>,
    /// `fate` or `coin`, for dice that have no numbers.
    kind: Option<String>,
    /// What it shows.
    value: Option<i64>,
    /// What the dice of a term show: numbers, or `{result}`.
    results: Option<Vec<Value>>,
}

/// Something that cannot be done.
#[derive(ToSchema)]
pub(crate) struct FrontendErrorData {
    /// Why, in a sentence that the AI is told.
    error: Option<String>,
    /// The same, of frontends that call it so.
    message: Option<String>,
    /// The frontend's own word for it.
    error_code: Option<String>,
}

/// What is wrong.
#[derive(ToSchema)]
pub(crate) struct ServerErrorData {
    /// One of `/problems`, or `AUTH_REQUIRED`.
    code: String,
    /// What kind of error it is.
    error: String,
    /// What is wrong and what to do about it.
    message: String,
    /// Each value that is wrong, with a pointer into the frame.
    errors: Option<Vec<FieldError>>,
    /// Seconds to wait.
    retry_after_seconds: Option<u64>,
}

/// What was said.
#[derive(ToSchema)]
pub(crate) struct SaidData {
    /// The message.
    #[schema(inline)]
    message: MessageShown,
}

/// A message as frontends are sent it.
#[derive(ToSchema)]
pub(crate) struct MessageShown {
    /// Its id.
    id: Uuid,
    /// The session it was said in.
    #[schema(required = true)]
    session_id: Option<Uuid>,
    /// What kind it is.
    #[schema(inline)]
    r#type: Type,
    /// Who speaks.
    speaker: Speaker,
    /// The text.
    content: String,
    /// Who wrote it.
    #[schema(inline)]
    author: Author,
    /// What the roll is for.
    #[schema(required = true)]
    flavor: Option<String>,
    /// The roll.
    #[schema(required = true)]
    roll: Option<Value>,
    /// The player character whose words they are.
    #[schema(required = true)]
    player_id: Option<Uuid>,
    /// Who may read it; everyone if empty.
    whisper_to: Vec<String>,
    /// Whether only the game master sees the roll.
    blind: bool,
    /// The turn it was said in.
    #[schema(required = true)]
    turn_id: Option<Uuid>,
    /// When it was said.
    #[schema(value_type = String, format = DateTime)]
    created_at: OffsetDateTime,
}

/// A message that is gone.
#[derive(ToSchema)]
pub(crate) struct MessageGone {
    /// Its id.
    id: Uuid,
}
