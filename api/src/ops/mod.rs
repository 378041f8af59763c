//! What operators see: health, metrics, shutdown and the tasks that run by themselves.

pub mod health;
pub mod life;
pub mod maintenance;
pub mod metrics;
