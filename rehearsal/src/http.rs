//! The routes, and the processing of a chat request: parse, check, decide, answer.
//!
//! Handlers must never panic on any body, and never await while they hold a lock. A new route is a function and a line
//! in `routes`.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, RETRY_AFTER};
use actix_web::web::{self, Data, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::completion::{Call, Completion, Text};
use crate::cursor::Decision;
use crate::error::ApiError;
use crate::feed::{Delivery, Feed, Segment};
use crate::reply::{Reply, RetryAfter};
use crate::script::Script;
use crate::state::State;
use crate::stream::{self, Cut};
use crate::wire::ChatRequest;
use crate::{check, persona};

/// The maximum size of a request body: 16 MiB.
const BODY_BYTES_MAX: usize = 16 * 1_024 * 1_024;
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";

/// All routes.
pub(crate) fn routes(config: &mut ServiceConfig) {
    let resource = |path| web::resource(path).default_service(web::to(unknown));
    config
        .app_data(web::PayloadConfig::new(BODY_BYTES_MAX))
        .service(resource("/v1/chat/completions").route(web::post().to(chat)))
        .service(resource("/v1/models").route(web::get().to(models)))
        .service(resource("/rehearsal/script").route(web::put().to(put_script)))
        .service(
            resource("/rehearsal/requests").route(web::get().to(requests)).route(web::delete().to(delete_requests)),
        )
        .default_service(web::to(unknown));
}

async fn unknown(request: HttpRequest) -> HttpResponse {
    let message = format!("Unknown request URL: {} {}.", request.method(), request.path());
    ApiError::new(StatusCode::NOT_FOUND, message).with_code("unknown_url").response()
}

async fn models() -> HttpResponse {
    let model = json!({"id": "rehearsal", "object": "model", "created": 0, "owned_by": "rehearsal"});
    HttpResponse::Ok().json(json!({"object": "list", "data": [model]}))
}

async fn put_script(state: Data<State>, body: Result<String, actix_web::Error>) -> HttpResponse {
    let body = match body {
        Ok(body) => body,
        Err(error) => return unreadable(&error).response(),
    };
    match Script::from_json(&body) {
        Ok(script) => {
            state.set_script(script);
            HttpResponse::NoContent().finish()
        }
        Err(error) => ApiError::new(StatusCode::BAD_REQUEST, error.to_string()).with_code("invalid_script").response(),
    }
}

async fn requests(state: Data<State>) -> HttpResponse {
    let items = state.recorder().bodies();
    HttpResponse::Ok().json(json!({"count": state.count(), "items": items}))
}

async fn delete_requests(state: Data<State>) -> HttpResponse {
    state.recorder().clear();
    HttpResponse::NoContent().finish()
}

async fn chat(state: Data<State>, request: HttpRequest, body: Result<Bytes, actix_web::Error>) -> HttpResponse {
    state.count_one();
    let answer = match body {
        Ok(body) => {
            state.record(&request, &body);
            prepare(&state, &body)
        }
        Err(error) => Err(unreadable(&error)),
    };
    match answer {
        Ok(Answer::Now(response)) => response,
        Ok(Answer::Later { held, wait, response }) => {
            if held {
                state.wait_for_release().await;
            }
            sleep(wait).await;
            response
        }
        Ok(Answer::Never) => std::future::pending().await,
        Err(error) => error.response(),
    }
}

fn unreadable(error: &actix_web::Error) -> ApiError {
    let status = error.as_response_error().status_code();
    ApiError::new(status, "The body could not be read, or is larger than 16 MiB.")
}

/// A response, and when to send it.
enum Answer {
    Now(HttpResponse),
    Later { held: bool, wait: Duration, response: HttpResponse },
    Never,
}

/// The part of processing a chat request that takes no time.
fn prepare(state: &State, body: &[u8]) -> Result<Answer, ApiError> {
    let request: ChatRequest<'_> = serde_json::from_slice(body).map_err(|error| {
        let message = format!("We could not parse the JSON body of your request: {error}");
        ApiError::new(StatusCode::BAD_REQUEST, message)
    })?;
    check::request(&request)?;
    let last_user = request.last_user_text();
    match state.decide(&last_user, request.model()) {
        Decision::Persona => {
            let response = complete(state, &request, &last_user, &Reply::default());
            Ok(Answer::Now(response))
        }
        Decision::Reply(reply) => Ok(scripted(state, &request, &last_user, &reply)),
        Decision::Exhausted => {
            let message = "The script has no step left that applies to this request.";
            Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, message).with_code("script_exhausted"))
        }
    }
}

fn scripted(state: &State, request: &ChatRequest<'_>, last_user: &str, reply: &Reply) -> Answer {
    if reply.hang {
        return Answer::Never;
    }
    let response = if reply.close {
        HttpResponse::Ok().body(Feed::broken())
    } else if reply.is_plain() {
        plain(reply, request.stream == Some(true))
    } else {
        complete(state, request, last_user, reply)
    };
    match (reply.held, reply.delay_ms.unwrap_or(0)) {
        (false, 0) => Answer::Now(response),
        (held, delay) => Answer::Later { held, wait: Duration::from_millis(delay), response },
    }
}

/// A response with a status or raw body from the script.
fn plain(reply: &Reply, streamed: bool) -> HttpResponse {
    let status = reply.status.and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.unwrap_or(StatusCode::OK);
    let (content_type, body) = match (&reply.raw_body, &reply.body) {
        (Some(raw), _) if streamed && status.is_success() => (EVENTS, raw.clone().into_bytes()),
        (Some(raw), _) => (JSON, raw.clone().into_bytes()),
        (None, Some(Value::String(text))) => ("text/plain; charset=utf-8", text.clone().into_bytes()),
        (None, Some(body)) => (JSON, body.to_string().into_bytes()),
        (None, None) => (JSON, ApiError::new(status, "This error is scripted.").body()),
    };
    let mut response = HttpResponse::build(status);
    response.content_type(content_type);
    match &reply.retry_after {
        None => {}
        Some(RetryAfter::Seconds(seconds)) => {
            response.insert_header((RETRY_AFTER, seconds.to_string()));
        }
        Some(RetryAfter::Text(text)) => {
            response.insert_header((RETRY_AFTER, text.as_str()));
        }
    }
    let feed = Feed::new(vec![Segment::once(body)], delivery(reply), false);
    response.body(feed)
}

/// A completion from the script, or else from the persona.
fn complete(state: &State, request: &ChatRequest<'_>, last_user: &str, reply: &Reply) -> HttpResponse {
    let envelope = state.envelope(request);
    let mut completion = if reply.is_completion() {
        completion_of(reply)
    } else {
        persona::answer(request, last_user, envelope.fingerprint, envelope.times)
    };
    completion.finish_reason.clone_from(&reply.finish_reason);
    completion.usage = reply.usage.clone().unwrap_or_default();
    let delivery = delivery(reply);
    let streamed = request.stream == Some(true);
    let segments = if streamed {
        let options = request.stream_options.as_ref();
        let cut = Cut {
            include_usage: options.is_some_and(|options| options.include_usage),
            delta_chars: reply.delta_chars,
            separate: delivery.between.is_some() && delivery.piece_bytes.is_none(),
        };
        stream::events(&completion, &envelope, &cut)
    } else {
        completion.json(&envelope)
    };
    let mut response = HttpResponse::Ok();
    response.content_type(if streamed { EVENTS } else { JSON });
    if streamed {
        response.insert_header((CACHE_CONTROL, "no-cache"));
    }
    match segments.as_slice() {
        [only] if delivery.is_plain() && only.times == 1 => response.body(only.unit.clone()),
        _ => response.body(Feed::new(segments, delivery, streamed)),
    }
}

/// The completion that a reply contains.
fn completion_of(reply: &Reply) -> Completion {
    let text = match (reply.repeat_bytes, &reply.text) {
        (Some(bytes), phrase) => Text::repeated(phrase.as_deref(), bytes),
        (None, Some(text)) => Text::Whole(text.clone()),
        (None, None) => Text::None,
    };
    let calls = reply.tool_calls.iter().map(|call| Call {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: match &call.arguments {
            Value::Null => "{}".to_owned(),
            Value::String(raw) => raw.clone(),
            arguments => arguments.to_string(),
        },
    });
    let mut completion = Completion::new(text, calls.collect());
    completion.refusal.clone_from(&reply.refusal);
    completion
}

fn delivery(reply: &Reply) -> Delivery {
    let wait = |delay: Option<u64>| delay.filter(|delay| *delay > 0).map(Duration::from_millis);
    Delivery {
        before: wait(reply.body_delay_ms),
        between: wait(reply.chunk_delay_ms),
        piece_bytes: reply.chunk_bytes,
        break_after: reply.truncate_after_bytes,
    }
}
