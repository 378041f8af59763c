//! The one test binary. Files are named after what they test: mostly the URLs. Everything real: PostgreSQL, HTTP, the
//! rehearsal model over a socket. Each test has a database of its own, cloned from a migrated template, and connects as
//! the role that row security binds.
#![cfg(test)]

mod access;
mod admin;
mod architecture;
mod auth;
mod bad_input;
mod bridge;
mod catalogue;
mod concurrency;
mod connections;
mod conventions;
mod crash;
mod dice;
mod editing;
mod embedded_postgres;
mod encounters;
mod examples;
mod feed;
mod fork;
mod idempotency;
mod interchange;
mod journal;
mod limits;
mod llm_client;
mod llm_reply;
mod monitoring;
mod narrowed;
mod openapi;
mod planner;
mod play;
mod prompt;
mod prompt_cache;
mod rehearsal;
mod round_trips;
mod rules;
mod rules_turn;
mod scenarios;
mod sessions;
mod smoke;
mod streams;
mod support;
mod turns;
mod undo;
mod worldbuilder;
