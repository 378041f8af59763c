//! Operation: health, metrics, liveness and background tasks.

pub mod http;
pub mod maintenance;
