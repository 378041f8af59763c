//! What every layer builds on: errors, time, secrets, JSON, metrics, token counts. It knows no tenant, no table and no route.

pub mod clock;
pub mod error;
pub mod fold;
pub mod hex;
pub mod json;
pub mod metrics;
pub mod rate;
pub mod request_id;
pub mod search;
pub mod secrets;
pub mod shares;
pub mod stored;
pub mod text;
pub mod threads;
pub mod tokens;
pub mod variants;
pub mod watched;
