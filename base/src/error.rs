//! The server's one error type: what went wrong, as a stable code, and what the caller can do about it.
//!
//! The code alone decides status, title and log level. Causes go to the log, never into the body. To add a code, add a
//! line to `codes!` and, if the database raises it, an arm to [`Error::from_database`].

use std::borrow::Cow;

use actix_web::{HttpResponse, ResponseError, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::rate::Rate;

macro_rules! codes {
    ($($name:ident $status:literal $code:literal $title:literal $help:literal;)+) => {
        /// Stable error codes: `code` in the body, and the page `/problems/{code}`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($name),+ }

        impl Code {
            /// All codes.
            pub const ALL: &[Code] = &[$(Code::$name),+];
            /// The code as it is sent.
            #[must_use] pub fn as_str(self) -> &'static str { match self { $(Code::$name => $code),+ } }
            /// The HTTP status of this code.
            #[must_use] pub fn status(self) -> u16 { match self { $(Code::$name => $status),+ } }
            /// A short sentence, the same for every occurrence of the code.
            #[must_use] pub fn title(self) -> &'static str { match self { $(Code::$name => $title),+ } }
            /// What a client can do about it, for the code's page.
            #[must_use] pub fn help(self) -> &'static str { match self { $(Code::$name => $help),+ } }
        }
    };
}

codes! {
    BadRequest 400 "bad_request" "The request is malformed" "Send well-formed JSON in UTF-8 and only the query parameters that the route names.";
    Unauthenticated 401 "unauthenticated" "A credential is needed" "Send `Authorization: Bearer` with an API key or an access token that is neither expired nor revoked.";
    Forbidden 403 "forbidden" "The credential does not allow this" "Use a key with the scope that the detail names, or act as the player for whom the token was made.";
    SecondFactorNeeded 403 "second_factor_needed" "A second factor is needed" "Set up a second factor on your account page.";
    NotInDomain 403 "not_in_domain" "This is outside the owner's domain" "Choose something in the owner's domain: NPCs that list it in `owner_ids`, its location, and players who are there or have its race, profession or faction.";
    NotFound 404 "not_found" "There is no such thing" "Check the id or slug. The answer is the same for things that belong to somebody else.";
    MethodNotAllowed 405 "method_not_allowed" "The method is not allowed here" "Use one of the methods in the Allow header.";
    RequestTimeout 408 "request_timeout" "The request took too long to arrive" "Send the whole body at once, over a connection that is fast enough.";
    Conflict 409 "conflict" "The request conflicts with the current state" "Read the current state and send the request again.";
    TurnInProgress 409 "turn_in_progress" "A turn is in progress" "Wait for the turn to end, cancel it, or send `on_busy: queue`.";
    EncounterNotEnded 409 "encounter_not_ended" "The encounter has not ended" "End the encounter first.";
    EncounterAlreadyEnded 409 "encounter_already_ended" "The encounter has ended" "Start another encounter.";
    NotYourTurn 409 "not_your_turn" "It is another participant's turn" "Wait for the turn, or advance it.";
    NoActionLeft 409 "no_action_left" "Nothing is left to do this turn" "End the turn.";
    NotDying 409 "not_dying" "The participant is not dying" "Death saves are rolled at 0 hit points only.";
    Dead 409 "dead" "The dead neither talk nor act" "Hit points above 0 bring somebody back to life. The campaign's setting `dead_speak` lets the dead talk and act. Players can always talk out of character.";
    Unconscious 409 "unconscious" "The unconscious neither talk nor act" "Wait until they wake: with hit points above 0 and without the condition `unconscious`. Players can always talk out of character.";
    Paused 409 "paused" "A game master has paused the AI" "Wait until it goes on. What is asked for in the editor is answered all the same.";
    SlugTaken 409 "slug_taken" "The slug is taken" "Choose another slug; characters, NPCs and owners of a campaign share one namespace.";
    InsufficientInfluence 409 "insufficient_influence" "The owner has too little influence" "Wait until the owner's influence has grown, raise it, or lower the price in the campaign's `tool_prices`.";
    NotEnough 409 "not_enough" "The owner has too little of it" "Take less of the resource, or add to it first.";
    Locked 409 "locked" "AI tools must not change this" "Clear its `ai_lock`, or change it by hand.";
    Referenced 409 "referenced" "Something still refers to this" "Remove the reference first.";
    UndoConflict 409 "undo_conflict" "A row has changed since" "Look at `errors`: each names a row that someone changed after the turn. Nothing was undone.";
    IdempotencyInFlight 409 "idempotency_in_flight" "The first request with this key is still running" "Wait and send the same request again.";
    Gone 410 "gone" "This is no longer available" "Read the current state. Older changes have been pruned or erased.";
    PreconditionFailed 412 "precondition_failed" "The ETag is stale" "Read the resource again and apply your change to its current version.";
    PayloadTooLarge 413 "payload_too_large" "The body is too large" "Send less; the detail names the limit in bytes.";
    UnsupportedMediaType 415 "unsupported_media_type" "The media type is not supported" "Send `application/json` without a content encoding.";
    ValidationFailed 422 "validation_failed" "The request breaks a rule" "Each entry of `errors` points to a value and says what is wrong with it.";
    PromptTooLarge 422 "prompt_too_large" "The prompt does not fit into the model's context" "Shorten what is never left out, such as instructions, personalities and the player's words, or choose a model with a larger context. `needed` and `context` say how many tokens the prompt needs and the model has.";
    InvalidFormula 422 "invalid_formula" "The dice formula is invalid" "The detail says where and what was expected.";
    InvalidDice 422 "invalid_dice" "The given dice do not match the roll" "Give exactly the dice that the roll needs, each with a value that its die can show.";
    IdempotencyKeyReused 422 "idempotency_key_reused" "The key was used for another request" "Use a new Idempotency-Key for a different body.";
    RateLimited 429 "rate_limited" "Too many requests" "Wait for the seconds in Retry-After.";
    QuotaExceeded 429 "quota_exceeded" "A quota is used up" "Wait for the seconds in Retry-After or ask the operator for more.";
    Internal 500 "internal" "Something went wrong on our side" "Try again; if it persists, give the operator the request id.";
    FrontendFailed 502 "frontend_failed" "The frontend failed" "The detail says why. While no frontend is connected, the server rolls itself.";
    LlmUnavailable 502 "llm_unavailable" "The model cannot be reached" "Try again with the same Idempotency-Key; check the model's endpoint and key.";
    Unavailable 503 "unavailable" "The service is not ready" "Wait for the seconds in Retry-After.";
    FeatureDisabled 503 "feature_disabled" "The feature is switched off" "Ask the tenant's administrator to switch it on.";
    FrontendTimeout 504 "frontend_timeout" "The frontend did not answer in time" "Check the frontend, or let the server roll with `dice: server`.";
    LlmTimeout 504 "llm_timeout" "The model did not answer in time" "Try again with the same Idempotency-Key.";
}

/// One broken rule: where, which rule, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// A JSON pointer into the request body, or the name of a query parameter.
    pub pointer: String,
    pub code: Cow<'static, str>,
    pub message: String,
}

/// What went wrong. Build it with [`Error::new`] or one of the shorthands.
#[derive(Debug)]
pub struct Error(Box<Parts>);

/// The details of an error.
#[derive(Debug)]
pub struct Parts {
    pub code: Code,
    pub detail: String,
    pub errors: Vec<FieldError>,
    pub retry_after_seconds: Option<u64>,
    pub turn_id: Option<Uuid>,
    /// The entity and player that were already busy with a turn. Not part of the body.
    pub place: Option<(Uuid, Option<Uuid>)>,
    pub allow: Option<String>,
    /// The limit that rejected the call, for the headers.
    pub limit: Option<Rate>,
    /// The prompt that is too large.
    pub too_large: Option<TooLarge>,
    /// Whether it is unknown if the failed transaction was committed.
    in_doubt: bool,
    /// Whether a second try would not meet the same error.
    passes: bool,
    /// Whether the database could not be reached, if the cause does not say so.
    is_away: bool,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// How much too large a prompt is, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TooLarge {
    /// What the prompt needs at least, with room for an answer.
    pub needed: u32,
    /// The size of the model's context.
    pub context: u32,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl std::ops::Deref for Error {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl std::ops::DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.0
    }
}

impl Error {
    /// An error with a detail for the caller.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let retry_after_seconds = matches!(code.status(), 429 | 503).then_some(1);
        let detail = detail.into();
        Self(Box::new(Parts {
            code,
            detail,
            errors: Vec::new(),
            retry_after_seconds,
            turn_id: None,
            place: None,
            allow: None,
            limit: None,
            too_large: None,
            in_doubt: false,
            passes: false,
            is_away: false,
            cause: None,
        }))
    }

    /// A 404. The answer is the same whether the thing does not exist or belongs to somebody else.
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("There is no such {what} here."))
    }

    /// A 422 for a prompt that the context of `model` cannot hold.
    #[must_use]
    pub fn prompt_too_large(model: &str, size: TooLarge) -> Self {
        let TooLarge { needed, context } = size;
        let detail = format!(
            "The prompt and a short answer need at least {needed} tokens, but the context of the model `{model}` has {context}."
        );
        let mut error = Self::new(Code::PromptTooLarge, detail);
        error.too_large = Some(size);
        error
    }

    /// A 422 for one value.
    pub fn invalid(pointer: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Self::validation(vec![FieldError { pointer: pointer.into(), code: code.into(), message: message.into() }])
    }

    /// A 422 for several values.
    pub fn validation(errors: Vec<FieldError>) -> Self {
        let mut error = Self::new(Code::ValidationFailed, detail_of(&errors));
        error.errors = errors;
        error
    }

    /// Rewrites the pointers, including the one in the detail, for a document that is nested in the request.
    #[must_use]
    pub fn with_pointers(mut self, moved: impl Fn(&str) -> String) -> Self {
        let tells_first = self.detail == detail_of(&self.errors);
        self.errors.iter_mut().for_each(|e| e.pointer = moved(&e.pointer));
        if tells_first {
            self.detail = detail_of(&self.errors);
        }
        self
    }

    /// Rewrites the pointers for a document that is nested at `pointer` in the request.
    #[must_use]
    pub fn below(self, pointer: &str) -> Self {
        self.with_pointers(|own| format!("{pointer}{own}"))
    }

    /// A 500 with a cause for the log.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::new(Code::Internal, "An unexpected error occurred.").with_cause(cause)
    }

    #[must_use]
    pub fn with_cause(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_seconds = Some(seconds.max(1));
        self
    }

    #[must_use]
    pub fn by_limit(mut self, limit: Rate) -> Self {
        self.limit = Some(limit);
        self
    }

    #[must_use]
    pub fn for_turn(mut self, turn: Uuid) -> Self {
        self.turn_id = Some(turn);
        self
    }

    /// This error for another caller, who waited for the same work. Whether retrying may help is kept.
    #[must_use]
    pub fn for_another(&self) -> Self {
        let mut error = Self::new(self.code, self.detail.clone());
        error.retry_after_seconds = self.retry_after_seconds;
        error.passes = self.is_transient();
        error.is_away = self.is_outage();
        error.too_large = self.too_large;
        error.cause = self.cause.as_ref().map(|cause| cause.to_string().into());
        error
    }

    /// The cause, for the log.
    #[must_use]
    pub fn cause(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.cause.as_deref()
    }

    /// The database's error, if it is one.
    fn of_database(&self) -> Option<&sqlx::Error> {
        self.cause.as_deref().and_then(|c| c.downcast_ref::<sqlx::Error>())
    }

    /// The five characters of PostgreSQL's error code (`SQLSTATE`).
    #[must_use]
    pub fn sqlstate(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.of_database().and_then(sqlx::Error::as_database_error).and_then(|d| d.code())
    }

    /// Whether the transaction may succeed if retried: after a serialization failure, a deadlock, a lock timeout
    /// (behind somebody else's deadlock), or because another transaction took the same derived slug or channel.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.passes || self.sqlstate().is_some_and(|c| matches!(&*c, "40001" | "40P01" | "55P03"))
    }

    /// Whether the database could not be reached: no connection in time, a lost connection, or a server that is starting or
    /// stopping.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        self.is_away || self.of_database().is_some_and(is_outage)
    }

    /// Whether it is unknown if the transaction was committed, because the answer was lost. Do not retry it before that is
    /// known.
    #[must_use]
    pub fn in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Marks an error of a `COMMIT`: if the connection was lost, the transaction may still have been committed.
    #[must_use]
    pub fn of_commit(mut self) -> Self {
        self.in_doubt = self.is_outage();
        self
    }

    /// Removes that mark: nothing was committed, or retrying does no harm.
    #[must_use]
    pub fn settled(mut self) -> Self {
        self.in_doubt = false;
        self
    }

    /// Marks a slug conflict as transient if the slug was derived from a name: a retry finds the next free slug.
    #[must_use]
    pub fn of_derived_slug(mut self) -> Self {
        self.passes |= self.code == Code::SlugTaken;
        self
    }

    /// Marks an error that a second try would not meet.
    #[must_use]
    pub fn will_pass(mut self) -> Self {
        self.passes = true;
        self
    }

    /// Turns a broken foreign key of a `DELETE` into `referenced`.
    #[must_use]
    pub fn of_delete(self) -> Self {
        if self.sqlstate().is_none_or(|state| state != "23503") {
            return self;
        }
        let mut error = Self::new(Code::Referenced, "Something still refers to this.");
        error.0.cause = self.0.cause;
        error
    }

    /// Whether the unique constraint of this name was broken.
    #[must_use]
    pub fn broke(&self, constraint: &str) -> bool {
        self.of_database().and_then(sqlx::Error::as_database_error).and_then(sqlx::error::DatabaseError::constraint)
            == Some(constraint)
    }

    fn from_database(cause: sqlx::Error) -> Self {
        let error = match &cause {
            sqlx::Error::PoolTimedOut => {
                Self::new(Code::Unavailable, "All connections to the database are in use. Try again.").retry_after(1)
            }
            sqlx::Error::PoolClosed | sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => {
                Self::new(Code::Unavailable, "The database cannot be reached right now.").retry_after(2)
            }
            sqlx::Error::Database(e) => {
                let state = e.code().unwrap_or_default();
                Self::from_sqlstate(&state, e.constraint().unwrap_or_default())
            }
            // A row that should exist is missing. Code that expects a missing row asks for an optional one.
            _ => Self::new(Code::Internal, "An unexpected error occurred."),
        };
        error.with_cause(cause)
    }

    /// Decides by codes and names only, because the language of PostgreSQL's messages depends on its settings.
    fn from_sqlstate(state: &str, constraint: &str) -> Self {
        match state {
            "23505" if constraint.contains("slug") => Self::new(Code::SlugTaken, "This slug is taken."),
            "23505" if constraint == "turn_one_at_a_time" => {
                Self::new(Code::TurnInProgress, "This entity is already answering this player.")
            }
            "23505" if constraint == "turn_one_at_a_time_in_session" => {
                Self::new(Code::TurnInProgress, "This session is already having a turn.")
            }
            "23505" => Self::new(Code::Conflict, format!("Another row has the same {}.", column_of(constraint))),
            // For a DELETE this means the opposite direction: see `of_delete`.
            "23503" => Self::invalid(
                format!("/{}", column_of(constraint)),
                "unknown_reference",
                "There is no such row in this campaign.",
            ),
            "23001" => Self::new(Code::Referenced, "Something still refers to this."),
            "22021" | "22P05" => Self::invalid("", "invalid_text", "Text may not hold NUL characters."),
            "40001" | "40P01" => Self::new(Code::Conflict, "Another change came first. Try again."),
            "TK001" => Self::new(Code::Conflict, "The turn was cancelled or taken over."),
            "57014" | "55P03" | "25P03" => {
                Self::new(Code::Unavailable, "The database is too busy. Try again.").retry_after(1)
            }
            s if is_away(s) || s.starts_with("53") => {
                Self::new(Code::Unavailable, "The database cannot be reached right now.").retry_after(2)
            }
            _ => Self::new(Code::Internal, "An unexpected error occurred."),
        }
    }
}

/// [`Error::is_outage`], before an error of the database has become one of ours.
#[must_use]
pub fn is_outage(error: &sqlx::Error) -> bool {
    match error {
        // A connection that is cut during the handshake is reported as a protocol error.
        sqlx::Error::PoolTimedOut | sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(e) => e.code().is_some_and(|code| is_away(&code)),
        _ => false,
    }
}

/// Whether PostgreSQL says that it is unavailable: it is starting or stopping, a connection was lost, or there are too many.
fn is_away(state: &str) -> bool {
    state.starts_with("57P") || state.starts_with("08") || state == "53300"
}

/// The detail of a validation error: its first broken rule.
fn detail_of(errors: &[FieldError]) -> String {
    errors.first().map_or_else(String::new, |e| format!("{}: {}", e.pointer, e.message))
}

/// The column in a constraint's name, such as `npc_owner_owner_id_fkey` or `scene_channel_key`.
fn column_of(constraint: &str) -> &str {
    let name = constraint.strip_suffix("_fkey").or_else(|| constraint.strip_suffix("_key")).unwrap_or(constraint);
    ["player_id", "scene_id", "owner_id", "npc_id", "campaign_id", "character_id", "external_ref", "channel"]
        .into_iter()
        .find(|c| name.ends_with(c))
        .unwrap_or("value")
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.detail)
    }
}

impl std::error::Error for Error {}

impl From<sqlx::Error> for Error {
    fn from(cause: sqlx::Error) -> Self {
        Self::from_database(cause)
    }
}

impl From<sea_orm::DbErr> for Error {
    fn from(error: sea_orm::DbErr) -> Self {
        use sea_orm::{DbErr, RuntimeErr};
        match error {
            DbErr::Conn(RuntimeErr::SqlxError(e))
            | DbErr::Exec(RuntimeErr::SqlxError(e))
            | DbErr::Query(RuntimeErr::SqlxError(e)) => match std::sync::Arc::try_unwrap(e) {
                Ok(e) => Self::from_database(e),
                Err(shared) => Self::internal(shared.to_string()),
            },
            other => Self::internal(other),
        }
    }
}

/// The body of every error (RFC 9457).
#[derive(Serialize, ToSchema)]
pub struct Problem {
    /// `/problems/{code}`, a page that explains the code.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: &'static str,
    pub status: u16,
    pub detail: String,
    /// The stable code. Clients should decide by it.
    pub code: &'static str,
    pub request_id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<Uuid>,
    /// Of `prompt_too_large`: the tokens that the prompt needs at least, with room for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needed: Option<u32>,
    /// Of `prompt_too_large`: the size of the model's context in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
}

impl Problem {
    /// The body of the error that answers the request `request_id`.
    #[must_use]
    pub fn of(error: &Error, request_id: &str) -> Self {
        Self {
            kind: format!("/problems/{}", error.code.as_str()),
            title: error.code.title(),
            status: error.code.status(),
            detail: error.detail.clone(),
            code: error.code.as_str(),
            request_id: request_id.to_owned(),
            errors: error.errors.clone(),
            turn_id: error.turn_id,
            needed: error.too_large.map(|size| size.needed),
            context: error.too_large.map(|size| size.context),
        }
    }
}

/// actix renders an error before the middleware sees it. `http::observe` adds the body and headers.
impl ResponseError for Error {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::new(self.status_code())
    }
}

impl Rate {
    /// Checks that the call may proceed. `what` is what is counted, in the plural.
    ///
    /// # Errors
    /// `rate_limited` with the seconds to wait.
    pub fn allowed(&self, what: &str) -> Result<()> {
        match self.retry_after_seconds {
            None => Ok(()),
            Some(seconds) => {
                let detail = format!("The limit of {} {what} a minute is reached.", self.quota);
                Err(Error::new(Code::RateLimited, detail).retry_after(seconds).by_limit(*self))
            }
        }
    }
}
