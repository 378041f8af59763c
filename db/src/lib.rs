//! The way to PostgreSQL: connections with a time limit, the pool, transactions within one tenant, retries, and feeds of changes.
//! It knows no table of the world.

pub mod feeds;
pub mod link;
pub mod pool;
pub mod retry;
pub mod tenancy;
pub mod url;
