//! The names of the models that an endpoint offers.

use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderMap, HeaderValue};
use reqwest::Client;
use serde_json::Value;
use tokio::time::timeout;

use super::endpoint::{Endpoint, base_of};
use super::error::{LlmError, TimeoutPhase, UnavailableKind, clean_detail};
use super::guard::EndpointRefused;

/// The most bytes of a list.
const LIST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most names that are read.
const NAMES_MAX: usize = 2000;
/// The most characters of a name.
const NAME_CHARS_MAX: usize = 200;

/// Asks for the list. Accepts `{"data": […]}`, `{"models": […]}` and a bare list.
pub(super) async fn list(http: &Client, endpoint: &Endpoint, wait: Duration) -> Result<Vec<String>, LlmError> {
    let late = |_| LlmError::Timeout { phase: TimeoutPhase::Total };
    let body = timeout(wait, read(http, endpoint)).await.map_err(late)??;
    let list: Value = serde_json::from_slice(&body).map_err(|_| bad_list("it is not JSON"))?;
    let entries = [list.get("data"), list.get("models"), Some(&list)].into_iter().flatten().find_map(Value::as_array);
    let entries = entries.ok_or_else(|| bad_list("it has no list of models"))?;
    let name = |entry: &Value| {
        let members = ["id", "name", "model"];
        let name = entry.as_str().or_else(|| members.iter().find_map(|member| entry.get(member)?.as_str()))?;
        let fits = !name.is_empty() && name.chars().count() <= NAME_CHARS_MAX && !name.chars().any(char::is_control);
        fits.then(|| name.to_owned())
    };
    let mut names: Vec<String> = entries.iter().filter_map(name).take(NAMES_MAX).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

async fn read(http: &Client, endpoint: &Endpoint) -> Result<Vec<u8>, LlmError> {
    let mut url = base_of(endpoint.base_url.clone());
    let path = format!("{}/models", url.path().trim_end_matches('/'));
    url.set_path(&path);
    let failed = |error: reqwest::Error| {
        let kind = if error.is_connect() { UnavailableKind::Connect } else { UnavailableKind::Dropped };
        // Tenants could use a description of the connection to map the network.
        let error = error.without_url();
        let detail = if endpoint.trusted { clean_detail(&error.to_string(), endpoint.key()) } else { String::new() };
        LlmError::unavailable(kind, detail)
    };
    let mut response = http.get(url).headers(headers(endpoint)?).send().await.map_err(failed)?;
    let status = response.status().as_u16();
    if status != 200 {
        return Err(LlmError::Unavailable {
            kind: UnavailableKind::Rejected,
            status: Some(status),
            detail: "it does not list its models".to_owned(),
            retry_after: None,
        });
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > LIST_BYTES_MAX {
            return Err(LlmError::TooLarge { limit_bytes: LIST_BYTES_MAX });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn headers(endpoint: &Endpoint) -> Result<HeaderMap, LlmError> {
    let mut headers: HeaderMap = endpoint.options.headers.iter().cloned().collect();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(key) = endpoint.key() {
        let bearer = HeaderValue::from_str(&format!("Bearer {}", key.expose()));
        let mut bearer = bearer.map_err(|_| EndpointRefused::Key)?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    Ok(headers)
}

fn bad_list(why: &str) -> LlmError {
    LlmError::BadReply { detail: why.to_owned() }
}
