//! The truth of the schema: forward-only, hand-written migrations.
//!
//! - [`tenant_table`] is the one way to make a table that holds a tenant's rows.
//! - [`m0001_world`] is the first schema; its functions are in `sql/`. [`m0002_dice`] adds the seeds of fair dice,
//!   [`m0003_encounters`] encounters, [`m0004_sessions`] the sessions of frontends, [`m0005_fork`] forks of campaigns,
//!   [`m0006_bridge`] connections of frontends,
//!   [`m0007_streams`] what turns tell while they run, [`m0008_planner`] the planner, [`m0009_editor_users`] users of the editor and
//!   their sessions, [`m0010_editing`] bulk edits and links of lore,
//!   [`m0011_interchange`] files that wait to be imported, [`m0012_hardening`] counters of dice that are
//!   spent by themselves, [`m0014_accounts`] invitations and resets, [`m0015_second_factor`] a second factor of accounts,
//!   [`m0016_erasure`] erasures of players and users, [`m0017_retention`] what is kept no longer,
//!   [`m0018_own_sessions`] where one is signed in, [`m0019_reverts`] turns that are taken back in steps,
//!   [`m0020_signs_of_life`] how servers say that they live, [`m0021_removal`] the deletion of campaigns in steps,
//!   [`m0022_steadiness`] what several at once do not break, [`m0028_influence`] what owners spend and what they change,
//!   [`m0030_models`] model profiles, [`m0031_own_models`] models of NPCs and owners and what usage is counted by.
//!
//! Never edit a migration that has been released, and never derive a schema from entities. To change the schema add
//! `m000N_title.rs` and name it in [`Migrator`].

pub mod m0001_world;
pub mod m0002_dice;
pub mod m0003_encounters;
pub mod m0004_sessions;
pub mod m0005_fork;
pub mod m0006_bridge;
pub mod m0007_streams;
pub mod m0008_planner;
pub mod m0009_editor_users;
pub mod m0010_editing;
pub mod m0011_interchange;
pub mod m0012_hardening;
pub mod m0014_accounts;
pub mod m0015_second_factor;
pub mod m0016_erasure;
pub mod m0017_retention;
pub mod m0018_own_sessions;
pub mod m0019_reverts;
pub mod m0020_signs_of_life;
pub mod m0021_removal;
pub mod m0022_steadiness;
pub mod m0025_readiness;
pub mod m0026_turns;
pub mod m0027_reactions;
pub mod m0028_influence;
pub mod m0029_claims;
pub mod m0030_models;
pub mod m0031_own_models;
mod m0032_instructions;
mod m0033_alternatives;
mod m0034_anchors;
mod m0035_folded;
mod m0036_ledger;
pub mod tenant_table;

pub use sea_orm_migration::MigratorTrait;
use sea_orm_migration::{MigrationTrait, async_trait};

/// Runs the migrations in order.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_world::Migration),
            Box::new(m0002_dice::Migration),
            Box::new(m0003_encounters::Migration),
            Box::new(m0004_sessions::Migration),
            Box::new(m0005_fork::Migration),
            Box::new(m0006_bridge::Migration),
            Box::new(m0007_streams::Migration),
            Box::new(m0008_planner::Migration),
            Box::new(m0009_editor_users::Migration),
            Box::new(m0010_editing::Migration),
            Box::new(m0011_interchange::Migration),
            Box::new(m0012_hardening::Migration),
            Box::new(m0014_accounts::Migration),
            Box::new(m0015_second_factor::Migration),
            Box::new(m0016_erasure::Migration),
            Box::new(m0017_retention::Migration),
            Box::new(m0018_own_sessions::Migration),
            Box::new(m0019_reverts::Migration),
            Box::new(m0020_signs_of_life::Migration),
            Box::new(m0021_removal::Migration),
            Box::new(m0022_steadiness::Migration),
            Box::new(m0025_readiness::Migration),
            Box::new(m0026_turns::Migration),
            Box::new(m0027_reactions::Migration),
            Box::new(m0028_influence::Migration),
            Box::new(m0029_claims::Migration),
            Box::new(m0030_models::Migration),
            Box::new(m0031_own_models::Migration),
            Box::new(m0032_instructions::Migration),
            Box::new(m0033_alternatives::Migration),
            Box::new(m0034_anchors::Migration),
            Box::new(m0035_folded::Migration),
            Box::new(m0036_ledger::Migration),
        ]
    }
}
