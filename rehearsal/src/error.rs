//! Errors in the form that OpenAI-compatible clients read: `{"error":{"message","type","param","code"}}`.
//!
//! There is one type for all errors, so that no handler writes an error body by hand. Messages are for developers. They
//! must never contain a whole prompt.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde::Serialize;

/// The maximum length of a message, in characters, because a parser's message may quote the request.
const MESSAGE_CHARS_MAX: usize = 400;

/// An error answer.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    message: String,
    param: Option<&'static str>,
    code: Option<&'static str>,
}

#[derive(Serialize)]
struct Body<'a> {
    error: Detail<'a>,
}

#[derive(Serialize)]
struct Detail<'a> {
    message: &'a str,
    r#type: &'static str,
    param: Option<&'static str>,
    code: Option<&'static str>,
}

impl ApiError {
    /// A 400 about one parameter.
    pub(crate) fn invalid(param: &'static str, message: impl Into<String>) -> Self {
        Self { param: Some(param), ..Self::new(StatusCode::BAD_REQUEST, message) }
    }

    /// An error with any status, without a parameter or code.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, code: None }
    }

    /// Adds a machine-readable code.
    pub(crate) fn with_code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// The body as JSON.
    pub(crate) fn body(&self) -> Vec<u8> {
        let message: String = self.message.chars().take(MESSAGE_CHARS_MAX).collect();
        let body =
            Body { error: Detail { message: &message, r#type: kind(self.status), param: self.param, code: self.code } };
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// The whole answer.
    pub(crate) fn response(&self) -> HttpResponse {
        HttpResponse::build(self.status).content_type("application/json").body(self.body())
    }
}

/// OpenAI's `type` for a status.
fn kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500..=599 => "server_error",
        _ => "invalid_request_error",
    }
}
