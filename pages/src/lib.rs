//! The pages that the server draws: the editor for worldbuilders and the table for players.
//!
//! Pages call services and never a route. They have no SQL.

pub mod admin;
pub mod play;
