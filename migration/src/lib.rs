//! The schema of the database. Each table and each function is defined once, in the file of its topic:
//!
//! | `sql/…` | |
//! |---|---|
//! | `roles` | the server's role; `make_tenant_table`, which gives a table its row security, grants and triggers; ids |
//! | `tenants` `accounts` | tenants and their keys; users of the editor |
//! | `journal` `heads` | the journal of the world; versions of what prompts are built from |
//! | `world` `lore` `memory` `messages` | campaigns, characters, owners, NPCs; lore; memories; scenes and messages |
//! | `table` | who may be at the table in a browser: links of players, visits |
//! | `sessions` `bridge` | sessions of frontends; their connections |
//! | `turns` `reverts` `reactions` `usage` | turns; how they are reverted; turns that nobody asked for; models and what they cost |
//! | `servers` `idempotency` | which servers are alive; requests that are sent again |
//! | `edits` `dice` `encounters` | bulk edits and imports; seeds of dice; fights |
//! | `fork` `removal` `erasure` | copying a campaign, deleting one, erasing a person |
//! | `grants` | which functions the server may call |
//!
//! Never derive a schema from entities. Until the first release the files of [`m0001_schema`] are edited in place; a database that was made
//! from earlier files is not migrated. Afterwards never edit a released file: to change the schema add `m000N_title.rs`, name it in
//! [`Migrator`], revoke its new functions from PUBLIC, and grant them to `tavernkeep_app`. `tests/schema.rs` shows what a change does to the schema.

pub mod m0001_schema;

pub use sea_orm_migration::MigratorTrait;
use sea_orm_migration::{MigrationTrait, async_trait};

/// Runs the migrations in order.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(m0001_schema::Migration)]
    }
}
