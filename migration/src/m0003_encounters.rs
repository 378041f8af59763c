//! Encounters: what everybody sees of one, its state and log, and the records that take part.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable, reference};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in TABLES.iter().flat_map(TenantTable::statements) {
            db.execute_unprepared(&statement).await?;
        }
        Ok(())
    }
}

const CASCADE: &str = "ON DELETE CASCADE";

const TABLES: &[TenantTable] = &[
    // Where a fight stands, for lists and the journal; every action raises its version. `last_action` is what the newest did to
    // those who fight: deltas find it in the journal.
    TenantTable {
        name: "encounter",
        kind: Kind::World,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, name text NOT NULL, status text NOT NULL, round int NOT NULL, \
            turn int NOT NULL, current_participant_id text, participant_count int NOT NULL, outcome text, notes text, \
            hidden boolean NOT NULL DEFAULT false, last_action jsonb NOT NULL DEFAULT '{}'",
        references: &[reference("campaign_id", "campaign", CASCADE)],
        indexes: &[
            "CREATE INDEX encounter_list ON encounter (tenant_id, campaign_id, id)",
            "CREATE INDEX encounter_active ON encounter (tenant_id, campaign_id, id) WHERE status = 'active'",
            "CREATE INDEX encounter_name ON encounter (tenant_id, campaign_id, name, id)",
            "CREATE INDEX encounter_updated ON encounter (tenant_id, campaign_id, updated_at, id)",
            "CREATE UNIQUE INDEX encounter_external_ref_key ON encounter (tenant_id, campaign_id, external_ref) \
             WHERE external_ref IS NOT NULL",
        ],
    },
    // The state after action `seq` is `state` with the events of `tail` folded in: most actions rewrite the short tail alone.
    TenantTable {
        name: "encounter_state",
        kind: Kind::System,
        key: "encounter_id",
        columns: "encounter_id uuid NOT NULL, beginning json NOT NULL, state json NOT NULL, tail json NOT NULL, \
            seq bigint NOT NULL DEFAULT 0",
        references: &[reference("encounter_id", "encounter", CASCADE)],
        indexes: &[],
    },
    // The log: one row an action. The events of all rows, folded onto the beginning, give the state.
    TenantTable {
        name: "encounter_log",
        kind: Kind::System,
        key: "encounter_id, seq",
        columns: "encounter_id uuid NOT NULL, seq bigint NOT NULL, action json NOT NULL, events json NOT NULL, turn_id uuid",
        references: &[reference("encounter_id", "encounter", CASCADE)],
        indexes: &["CREATE INDEX encounter_log_turn ON encounter_log (tenant_id, turn_id) WHERE turn_id IS NOT NULL"],
    },
    // Records that take part: their version when they joined, and the one commit each has.
    TenantTable {
        name: "encounter_member",
        kind: Kind::System,
        key: "encounter_id, participant_id",
        columns: "encounter_id uuid NOT NULL, participant_id text NOT NULL, kind text NOT NULL, record_id uuid NOT NULL, \
            version bigint NOT NULL, committed_at timestamptz, turn_id uuid",
        references: &[reference("encounter_id", "encounter", CASCADE)],
        indexes: &[
            "CREATE UNIQUE INDEX encounter_member_record ON encounter_member (tenant_id, record_id, encounter_id)",
            "CREATE INDEX encounter_member_turn ON encounter_member (tenant_id, turn_id) WHERE turn_id IS NOT NULL",
        ],
    },
];
