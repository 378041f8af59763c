//! Editing: steps of many changes that are undone as one, links between lore entries, lists of ten thousand entries.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable, reference};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in [STEP.statements(), LINK.statements()].concat() {
            db.execute_unprepared(&statement).await?;
        }
        let functions = include_str!("sql/editing.sql").split("-- ;;");
        for statement in functions.chain(FINISH.iter().copied()) {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// A change of many rows that is undone as one: its rows of the journal are those from `first_seq` to `last_seq`, which no
/// other transaction's stand between.
const STEP: TenantTable = TenantTable {
    name: "edit_step",
    kind: Kind::System,
    key: "id",
    columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, author uuid, what text NOT NULL, first_seq bigint NOT NULL, \
        last_seq bigint NOT NULL, rows int NOT NULL, undone_at timestamptz",
    references: &[reference("campaign_id", "campaign", "ON DELETE CASCADE")],
    indexes: &["CREATE INDEX edit_step_list ON edit_step (tenant_id, campaign_id, id)"],
};

/// What the `[[links]]` in an entry's content name, as `link_key` writes it. A trigger keeps it.
const LINK: TenantTable = TenantTable {
    name: "lore_link",
    kind: Kind::System,
    key: "lore_id, target",
    columns: "lore_id uuid NOT NULL, campaign_id uuid NOT NULL, target text NOT NULL",
    references: &[reference("lore_id", "lore", "ON DELETE CASCADE")],
    indexes: &["CREATE INDEX lore_link_target ON lore_link (tenant_id, campaign_id, target, lore_id)"],
};

const FINISH: &[&str] = &[
    "CREATE TRIGGER d_links AFTER INSERT OR UPDATE OF content ON lore FOR EACH ROW EXECUTE FUNCTION keep_lore_links()",
    "INSERT INTO lore_link (tenant_id, campaign_id, lore_id, target) \
     SELECT l.tenant_id, l.campaign_id, l.id, k FROM lore l, link_keys(l.content) AS k WHERE position('[[' IN l.content) > 0",
    "CREATE INDEX lore_title_key ON lore (tenant_id, campaign_id, link_key(title), id)",
    "CREATE INDEX lore_priority ON lore (tenant_id, campaign_id, priority, id)",
    "CREATE INDEX lore_tokens ON lore (tenant_id, campaign_id, tokens, id)",
    "CREATE INDEX lore_totals ON lore (tenant_id, campaign_id, scope, enabled, secret, activation) INCLUDE (tokens)",
    "CREATE INDEX lore_tags ON lore USING gin (tags jsonb_path_ops)",
    "CREATE INDEX memory_broadcasts ON memory (tenant_id, campaign_id, broadcast_id, id) WHERE broadcast_id IS NOT NULL",
    "CREATE INDEX journal_deleted ON journal (tenant_id, campaign_id, table_name, seq) WHERE op = 'delete'",
    "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION link_key(text), link_keys(text), keep_lore_links(), linked_names(uuid, text[]), \
     tagged_lore(text), revert_entry(journal), revert_step(uuid, bigint, bigint), \
     restore_revision(text, uuid, jsonb), prune_edit_steps(int) TO tavernkeep_app",
];
