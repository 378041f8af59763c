//! Tavernkeep: the game-master backend for AI tabletop play. This file is the table of contents.

// How the program is put together.
pub mod admin;
pub mod admission;
pub mod app;
pub mod cli;
pub mod config;
pub mod connections;
pub mod database;
pub mod demo;
pub mod openapi;
pub mod ops;
pub mod panics;
pub mod play;
pub mod routes;

// What every request uses.
pub mod auth;
pub mod http;
pub mod limits;
pub mod users;

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

// AI and its frontends.
pub mod bridge;
pub mod commands;
pub mod models;
pub mod planner;
pub mod prompt;
pub mod tools;
pub mod turns;
