//! The caller's own tenant: its settings, its limits, and what it used.
//!
//! The provider's key is write-only: [`service`] encrypts it, and no answer contains it.

pub mod change;
pub mod http;
pub mod service;
pub mod usage;
