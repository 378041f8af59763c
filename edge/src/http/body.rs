//! Request bodies: limited in size, JSON, without NUL characters. An error points to what is wrong.

use std::{any::TypeId, time::Duration};

use actix_web::{
    FromRequest, HttpMessage, HttpRequest,
    dev::Payload,
    error::PayloadError,
    http::header::{self, HeaderMap},
    web,
};
use futures_util::{StreamExt, future::LocalBoxFuture};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{bounds, idempotency::IdempotencyKey};
use crate::{
    admission,
    caller::{
        Caller,
        access::{Access, BODY_BYTES_MAX},
    },
    connections::took_too_long,
    state::Edge,
};
use base::{
    error::{Code, Error, Result},
    json,
};

/// A JSON body read as `T`. It may be empty only if the route takes no body. With `NUL`, its strings may contain NUL
/// characters; such a route must not store them.
pub struct Body<T, const NUL: bool = false> {
    pub value: T,
    /// The client's `Idempotency-Key`, bound to this body.
    pub idempotency: Option<IdempotencyKey>,
}

/// The body of a route that takes none: it must be empty or `{}`.
#[derive(serde::Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoBody {}

impl<T, const NUL: bool> FromRequest for Body<T, NUL>
where
    T: DeserializeOwned + ToSchema + 'static,
{
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let bytes = read(&request, &mut payload).await?;
            let idempotency = IdempotencyKey::from_request(&request, &Sha256::digest(&bytes))?;
            let value = match bytes.is_empty() {
                // A forgotten body must not be taken for an empty object.
                true if TypeId::of::<T>() != TypeId::of::<NoBody>() => {
                    return Err(Error::new(Code::BadRequest, "This route needs a JSON body. An empty object is `{}`."));
                }
                true => Value::Object(serde_json::Map::default()),
                false => parse(&request, &bytes, NUL)?,
            };
            // The limits of a merge patch are checked on the patched document, by the caller.
            let value = match TypeId::of::<T>() == TypeId::of::<Value>() {
                true => bounds::typed(value)?,
                false => checked(value)?,
            };
            Ok(Self { value, idempotency })
        })
    }
}

/// The input that a JSON text in a form contains, with the checks of a body.
///
/// # Errors
/// `bad_request` if it is not JSON; `validation_failed` for a value that the schema does not allow.
pub fn from_text<T: DeserializeOwned + ToSchema + 'static>(what: &str, text: &str) -> Result<T> {
    checked(json::read(what, text)?)
}

fn checked<T: DeserializeOwned + ToSchema + 'static>(value: Value) -> Result<T> {
    // serde would read an array as a struct, its items in the order of the fields. We accept members by name only.
    if !value.is_object() {
        return Err(Error::invalid("", "invalid_value", "The body must be a JSON object."));
    }
    bounds::check::<T>(&value)?;
    bounds::typed(value)
}

/// Reads a body of at most as many bytes as its route accepts.
///
/// # Errors
/// - `payload_too_large`
/// - `unsupported_media_type` for an encoded body
/// - `bad_request` for a body that ends early
/// - `request_timeout` for a body that takes too long
/// - `unavailable` when the server has no room for it
pub async fn read(request: &HttpRequest, payload: &mut Payload) -> Result<web::BytesMut> {
    if request.headers().get(header::CONTENT_ENCODING).is_some_and(|e| e != "identity") {
        return Err(Error::new(Code::UnsupportedMediaType, "Send the body without a content encoding."));
    }
    let access = request.extensions().get::<&'static Access>().copied();
    let bytes_max = access.map_or(BODY_BYTES_MAX, |access| access.body_bytes_max);
    received(request, payload, bytes_max, || too_large(bytes_max)).await
}

/// The error for a body of more than `bytes_max` bytes.
#[must_use]
pub fn too_large(bytes_max: usize) -> Error {
    Error::new(Code::PayloadTooLarge, format!("The body of this route may have at most {bytes_max} bytes."))
}

/// The length of a body as its headers announce it.
#[must_use]
pub fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok())
}

/// How long we wait for the next part of a body before the request gives up its place until the rest has arrived.
const AT_HAND: Duration = Duration::from_millis(20);

/// Reads the bytes of a body and reserves room for them until the request is answered.
///
/// # Errors
/// As for [`read`]. `too_large` makes the error for a body of more than `bytes_max` bytes.
pub async fn received(
    request: &HttpRequest,
    payload: &mut Payload,
    bytes_max: usize,
    too_large: impl Fn() -> Error,
) -> Result<web::BytesMut> {
    let announced = announced(request.headers());
    if announced.is_some_and(|n| n > bytes_max) {
        return Err(too_large());
    }
    let app = request.app_data::<web::Data<Edge>>().cloned().ok_or_else(|| Error::internal("no application state"))?;
    let tenant = request.extensions().get::<Caller>().map(Caller::tenant_id);
    let mut room = app.admission.body(tenant);
    room.grow(announced.unwrap_or(0))?;
    let mut bytes = web::BytesMut::with_capacity(announced.unwrap_or(0).min(64 * 1024));
    let mut is_out = false;
    loop {
        let chunk = match timeout(AT_HAND, payload.next()).await {
            Ok(chunk) => chunk,
            Err(_) => {
                admission::step_out();
                is_out = true;
                payload.next().await
            }
        };
        let Some(chunk) = chunk else { break };
        let chunk = chunk.map_err(|e| broken(&e))?;
        if bytes.len() + chunk.len() > bytes_max {
            return Err(too_large());
        }
        room.grow(bytes.len() + chunk.len())?;
        bytes.extend_from_slice(&chunk);
    }
    if is_out {
        app.admission.come_back(request.method(), request.path(), tenant)?;
    }
    request.extensions_mut().insert(room);
    Ok(bytes)
}

/// Why a body could not be read to its end.
pub fn broken(error: &PayloadError) -> Error {
    if took_too_long(error) {
        return Error::new(Code::RequestTimeout, "The body did not arrive in time.");
    }
    Error::new(Code::BadRequest, "The body ended early.").with_cause(error.to_string())
}

fn parse(request: &HttpRequest, bytes: &[u8], nul: bool) -> Result<Value> {
    let media = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let essence = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence != "application/json" && essence != "application/merge-patch+json" {
        return Err(Error::new(Code::UnsupportedMediaType, "Send `Content-Type: application/json`."));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Error::new(Code::BadRequest, "The body is not UTF-8."))?;
    if nul { json::read_unkept("The body", text) } else { json::read("The body", text) }
}
