//! Streams: what turns told while they ran, for those who come back to hear the rest.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable, reference};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in TOLD.statements() {
            db.execute_unprepared(&statement).await?;
        }
        for statement in [
            TELL,
            "REVOKE ALL ON FUNCTION turn_tell FROM PUBLIC",
            "GRANT EXECUTE ON FUNCTION turn_tell TO tavernkeep_app",
        ] {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// Events in their order, text in pieces of about a quarter of a second. They go with the turn's record.
const TOLD: TenantTable = TenantTable {
    name: "turn_event",
    kind: Kind::System,
    key: "turn_id, seq",
    columns: "turn_id uuid NOT NULL, seq int NOT NULL, name text NOT NULL, data text NOT NULL",
    references: &[reference("turn_id", "turn", "ON DELETE CASCADE")],
    indexes: &[],
};

/// Writes a few events in one round trip. Whoever misses them after a crash of PostgreSQL still hears how the turn ended, so
/// the commit does not wait for the disk.
const TELL: &str = "
CREATE FUNCTION turn_tell(its_tenant uuid, who text, its_turn uuid, seqs int[], names text[], told text[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true)
        || set_config('synchronous_commit', 'off', true);
BEGIN
    INSERT INTO turn_event (tenant_id, turn_id, seq, name, data)
    SELECT its_tenant, its_turn, e.* FROM unnest(seqs, names, told) AS e
    ON CONFLICT (tenant_id, turn_id, seq) DO NOTHING;
END $$";
