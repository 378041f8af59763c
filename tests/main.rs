//! The one test binary. Files are named after what they test: mostly the URLs. Everything real: PostgreSQL, HTTP, the
//! rehearsal model over a socket. Each test has a database of its own, cloned from a migrated template, and connects as
//! the role that row security binds.
#![cfg(test)]
#![expect(clippy::too_many_lines, reason = "a scenario is a story and is told in one piece")]
#![expect(clippy::disallowed_methods, reason = "a test may fail loudly on a row that it cannot read")]

mod access;
mod admin;
mod architecture;
mod auth;
mod bad_input;
mod bounds;
mod bridge;
mod catalogue;
mod concurrency;
mod connections;
mod conventions;
mod costs;
mod crash;
mod dice;
mod editing;
mod embedded_postgres;
mod encounters;
mod endpoints;
mod erasure;
mod examples;
mod faults;
mod feed;
mod fights_by_words;
mod fork;
mod idempotency;
mod influence;
mod injections;
mod instructions;
mod interchange;
mod journal;
mod json;
mod limits;
mod llm_client;
mod llm_reply;
mod models;
mod monitoring;
mod named;
mod narrowed;
mod openapi;
mod overload;
mod panics;
mod patterns;
mod planner;
mod play;
mod prompt;
mod prompt_cache;
mod query_values;
mod reactions;
mod rehearsal;
mod removal;
mod retention;
mod retry;
mod reverts;
mod round_trips;
mod rules;
mod rules_turn;
mod scenarios;
mod schema;
mod search;
mod security;
mod sessions;
mod silence;
mod smoke;
mod standing;
mod stored;
mod streams;
mod support;
mod texts;
mod turns;
mod undo;
mod worldbuilder;
