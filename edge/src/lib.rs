//! The edge: what stands between the network and the world. It has the frame of HTTP (bodies, pages, patches, ETags,
//! idempotency, problem documents), credentials and scopes, limits and admission, tenants and users.
//!
//! It knows only two tables of a campaign: that of characters, because a token can be restricted to one, and that of
//! the slugs that paths name. `tests/architecture.rs` lists the order of these modules.

pub mod admission;
pub mod auth;
pub mod caller;
pub mod client;
pub mod connections;
pub mod http;
pub mod limits;
pub mod model_profiles;
pub mod models;
pub mod origins;
pub mod panics;
pub mod passwords;
pub mod patterns;
pub mod state;
pub mod tenant_settings;
pub mod tenants;
pub mod users;
