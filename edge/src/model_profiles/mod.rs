//! `/v1/models`: the model profiles of a tenant. Each says which endpoint and model to ask, and how.
//!
//! A profile's key and the values of its headers are stored encrypted. No answer contains the key. Which profile answers is decided in
//! [`crate::models`].

pub mod http;
pub mod probe;
pub mod references;
pub mod service;
