//! Significance: how much a character's actions matter to NPCs and owners. When they matter enough, the NPC or owner
//! reacts by itself.
//!
//! - [`scores`] has the score of each type of action, and a campaign's settings for reactions.
//! - [`report`] stores an action and counts it; the database decides in the same statement who reacts
//!   (`migration/src/sql/reactions.sql`).
//! - [`of_entity`] lists the scores of one NPC or owner. [`standing`] shows scores, thresholds and reactions. [`rehearse`] shows who would react, and stores nothing.
//!
//! Nothing here asks a model. A reaction is a turn of the AI, which a background task runs (the crate `ai`).

pub mod http;
pub mod of_entity;
pub mod rehearse;
pub mod report;
pub mod scores;
pub mod standing;
