//! Tavernkeep: the game-master backend for AI tabletop play. This file is the table of contents.

// The frame: how the program is put together.
pub mod admin;
pub mod admission;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod connections;
pub mod database;
pub mod demo;
pub mod embedded_postgres;
pub mod error;
pub mod feeds;
pub mod link;
pub mod openapi;
pub mod ops;
pub mod panics;
pub mod play;
pub mod pool;
pub mod routes;
pub mod secrets;
mod threads;

// What every request passes.
pub mod auth;
pub mod http;
pub mod json;
pub mod limits;
pub mod retry;
pub mod stored;
pub mod tenancy;
pub mod users;
pub mod watched;

// The world.
pub mod actors;
pub mod audit;
pub mod campaigns;
pub mod characters;
pub mod dice;
pub mod edits;
pub mod encounters;
pub mod erasure;
pub mod interchange;
pub mod journal;
pub mod lore;
pub mod memory;
pub mod messages;
pub mod npcs;
pub mod owners;
pub mod revisions;
pub mod rules;
pub mod scenes;
pub mod sessions;
pub mod tenants;

// AI, and those it speaks with.
pub mod bridge;
pub mod commands;
pub mod llm;
pub mod models;
pub mod planner;
pub mod prompt;
pub mod tools;
pub mod turns;
