//! The address of a model and the key for it.
//!
//! A [`Secret`] must never be printed, serialised or compared in a message. [`Secret::expose`] is only for the header.

use std::fmt;
use std::sync::Arc;

use std::time::Duration;

use async_openai::config::OpenAIConfig;
use http::{HeaderName, HeaderValue};
use url::Url;

use super::guard::{EndpointRefused, parse_url};
use super::parameters::{OutputLimit, Parameters};

/// A provider's API key. Printing it gives `***`; it has no `Display` and cannot be serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a key without the whitespace around it. A newline at the end of a mounted file is common.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(Arc::from(text.as_ref().trim()))
    }

    /// The key itself. Only for the `Authorization` header and for encryption at rest.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is no key. A key of whitespace alone counts as none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// How a model is asked. What is `None` is the operator's.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    pub parameters: Parameters,
    /// The name under which the endpoint takes the output limit.
    pub output_limit: OutputLimit,
    /// Whether the endpoint cannot stream. Then answers are asked for as a whole.
    pub cannot_stream: bool,
    /// Whether the endpoint refuses to count tokens in streams.
    pub cannot_count_streams: bool,
    /// Tokens of the model's context window, if they are known. The output limit leaves room for the prompt.
    pub context_tokens: Option<u32>,
    /// Further headers of each request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub first_token_timeout: Option<Duration>,
    pub total_timeout: Option<Duration>,
    /// Whose calls these are. Each has breakers of its own, so that short timeouts or wrong headers of one block no other's calls.
    pub caller: String,
}

/// One model at one OpenAI-compatible address.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The base, such as `https://api.example.com/v1`, or the full `…/chat/completions` address. A query is kept.
    pub base_url: Url,
    /// Sent as a bearer token, only to this endpoint. With `None`, no `Authorization` header is sent.
    pub api_key: Option<Secret>,
    /// The provider's name for the model.
    pub model: String,
    /// Whether the operator set it and not a tenant. If so, it may be http, loopback or private.
    pub trusted: bool,
    pub options: Arc<CallOptions>,
}

impl Endpoint {
    /// An endpoint that the operator set.
    ///
    /// # Errors
    /// If `url` is not an http(s) address, or has user info or a fragment.
    pub fn trusted(url: &str, api_key: Option<Secret>, model: impl Into<String>) -> Result<Self, EndpointRefused> {
        let (base_url, model) = (base_of(parse_url(url)?), model.into());
        Ok(Self { base_url, api_key, model, trusted: true, options: Arc::default() })
    }

    /// An endpoint that a tenant set. [`super::LlmClient::complete`] checks it against the operator's rules at each call.
    ///
    /// # Errors
    /// The errors of [`Endpoint::trusted`].
    pub fn untrusted(url: &str, api_key: Option<Secret>, model: impl Into<String>) -> Result<Self, EndpointRefused> {
        Ok(Self { trusted: false, ..Self::trusted(url, api_key, model)? })
    }

    /// Whether two addresses mean the same endpoint, so that the same key may be sent there: the same scheme, host, port and path,
    /// however they are written. Invalid addresses are only the same if they are identical.
    #[must_use]
    pub fn is_same(one: &str, other: &str) -> bool {
        match (parse_url(one), parse_url(other)) {
            (Ok(one), Ok(other)) => base_of(one) == base_of(other),
            _ => one == other,
        }
    }

    /// The key to send, if there is one.
    pub(super) fn key(&self) -> Option<&Secret> {
        self.api_key.as_ref().filter(|key| !key.is_empty())
    }

    /// The library's configuration for this endpoint, from a template without anything from the environment.
    pub(super) fn configure(&self, template: &OpenAIConfig) -> Result<OpenAIConfig, EndpointRefused> {
        let mut base = base_of(self.base_url.clone());
        base.set_query(None);
        let config = template.clone().with_api_base(base.as_str().trim_end_matches('/'));
        let Some(key) = self.key() else {
            return Ok(config);
        };
        // The library panics if the key is not a valid header value.
        HeaderValue::from_str(key.expose()).map_err(|_| EndpointRefused::Key)?;
        Ok(config.with_api_key(key.expose()))
    }
}

/// Removes a trailing slash and `/chat/completions`, so that both spellings of an endpoint become the same.
pub(super) fn base_of(mut url: Url) -> Url {
    let path = url.path().trim_end_matches('/');
    let base = path.strip_suffix("/chat/completions").unwrap_or(path).trim_end_matches('/');
    if base.len() != url.path().len() {
        let base = base.to_owned();
        url.set_path(&base);
    }
    url
}
