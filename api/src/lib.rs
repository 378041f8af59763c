//! Tavernkeep: the game-master backend for AI tabletop play. This crate is the program: its command line, its settings,
//! the server with all routes, maintenance, and the OpenAPI document.
//!
//! What it does is in the crates below: `pages`, `ai`, `world`, `edge`.

pub mod app;
pub mod cli;
pub mod config;
pub mod database;
pub mod demo;
pub mod docs;
pub mod life;
pub mod log;
pub mod openapi;
pub mod ops;
pub mod routes;
pub mod server;
pub mod settings;
