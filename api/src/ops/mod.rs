//! Operation: health, metrics, liveness and background tasks.

pub mod health;
pub mod maintenance;
