//! A file as a request body: limited in size, with the client's idempotency key bound to it.

use actix_web::{FromRequest, HttpRequest, dev::Payload, http::header, web};
use futures_util::future::LocalBoxFuture;
use sha2::{Digest, Sha256};

use base::error::{Code, Error, Result};
use edge::http::{body, idempotency::IdempotencyKey};

/// The accepted media types. The actual format is recognised by the first bytes.
const TYPES: &[&str] = &["application/json", "application/octet-stream", "application/zip", "image/apng", "image/png"];

/// A file from a request.
pub struct File {
    pub bytes: web::Bytes,
    pub idempotency: Option<IdempotencyKey>,
}

impl FromRequest for File {
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let bytes = body::read(&request, &mut payload).await?.freeze();
            let media = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
            let essence = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            if !TYPES.contains(&essence.as_str()) {
                let detail = format!("Send the file itself as one of {}.", TYPES.join(", "));
                return Err(Error::new(Code::UnsupportedMediaType, detail));
            }
            if bytes.is_empty() {
                return Err(Error::new(Code::BadRequest, "The file is empty."));
            }
            let idempotency = IdempotencyKey::from_request(&request, &Sha256::digest(&bytes))?;
            Ok(Self { bytes, idempotency })
        })
    }
}
