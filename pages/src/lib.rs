//! The pages that the server draws: the editor for worldbuilders and the table for players.
//!
//! Pages call services and never a route. They have no SQL.

// Templates are shared with the crate above, where these paths begin with the crate's name.
extern crate self as pages;

pub mod admin;
pub mod assets;
mod emblem;
mod fight;
mod marks;
pub mod model;
pub mod play;
mod sheet;
mod table;
