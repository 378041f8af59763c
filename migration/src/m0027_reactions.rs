//! What characters do, whom it concerns, and how NPCs and owners react by themselves: scores, the queue of reactions, and replies that
//! wait for their players.

use sea_orm_migration::prelude::*;

use crate::tenant_table::{Kind, TenantTable, reference};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        for statement in PLACES {
            db.execute_unprepared(statement).await?;
        }
        for statement in TABLES.iter().flat_map(TenantTable::statements) {
            db.execute_unprepared(&statement).await?;
        }
        for statement in include_str!("sql/reactions.sql").split("-- ;;") {
            db.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// Keys of locations, as the server's `scope_key` makes them for names in ASCII. Other names have none: the server compares their
/// spellings. Owners are found by what they watch over.
const PLACES: &[&str] = &[
    "ALTER TABLE npc ADD COLUMN location_key text GENERATED ALWAYS AS (CASE WHEN octet_length(location) = char_length(location) \
         THEN nullif(trim(BOTH '_' FROM regexp_replace(lower(location COLLATE \"C\"), '[^a-z0-9]+', '_', 'g')), '') END) STORED",
    "CREATE INDEX npc_location_key ON npc (tenant_id, campaign_id, location_key, id)",
    "CREATE INDEX npc_location_without_key ON npc (tenant_id, campaign_id, location, id) WHERE location_key IS NULL AND location IS NOT NULL",
    "CREATE INDEX owner_watch ON owner (tenant_id, campaign_id, monitored_aspect, associated_key, id)",
];

const CASCADE: &str = "ON DELETE CASCADE";

const TABLES: &[TenantTable] = &[
    // What a character did. `score` is what its type counted for at that time.
    TenantTable {
        name: "player_action",
        kind: Kind::System,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, player_id uuid NOT NULL, type text NOT NULL, score numeric(13, 3) NOT NULL, \
            targets jsonb NOT NULL, location text, text text, source text NOT NULL",
        references: &[reference("campaign_id", "campaign", CASCADE), reference("player_id", "character", CASCADE)],
        indexes: &[
            "CREATE INDEX player_action_list ON player_action (tenant_id, campaign_id, id)",
            "CREATE INDEX player_action_player ON player_action (tenant_id, player_id, id)",
            "CREATE INDEX player_action_age ON player_action USING brin (created_at)",
        ],
    },
    // Whom an action concerned, and the reaction that was told of it.
    TenantTable {
        name: "action_concern",
        kind: Kind::System,
        key: "entity_id, player_id, action_id",
        columns: "entity_id uuid NOT NULL, player_id uuid NOT NULL, action_id uuid NOT NULL, campaign_id uuid NOT NULL, \
            reason text NOT NULL, reaction_id uuid",
        references: &[reference("action_id", "player_action", CASCADE)],
        indexes: &[
            "CREATE INDEX action_concern_action ON action_concern (tenant_id, action_id)",
            "CREATE INDEX action_concern_open ON action_concern (tenant_id, entity_id, player_id, action_id) WHERE reaction_id IS NULL",
            "CREATE INDEX action_concern_campaign ON action_concern (tenant_id, campaign_id)",
            "CREATE INDEX action_concern_reaction ON action_concern (tenant_id, reaction_id, action_id) WHERE reaction_id IS NOT NULL",
        ],
    },
    // How much a character's actions have mattered to an entity since its last reaction. `at_once`: one of them reached the immediate
    // threshold. `location_key`: where the last one happened. `due_at`: when to look again.
    TenantTable {
        name: "significance",
        kind: Kind::System,
        key: "entity_id, player_id",
        columns: "entity_id uuid NOT NULL, player_id uuid NOT NULL, id uuid NOT NULL, campaign_id uuid NOT NULL, entity_kind text NOT NULL, \
            score numeric(13, 3) NOT NULL, actions int NOT NULL, at_once boolean NOT NULL DEFAULT false, location_key text, \
            cooldown_until timestamptz, due_at timestamptz",
        references: &[reference("campaign_id", "campaign", CASCADE), reference("player_id", "character", CASCADE)],
        indexes: &[
            "CREATE INDEX significance_list ON significance (tenant_id, campaign_id, id)",
            "CREATE INDEX significance_player ON significance (tenant_id, player_id)",
            "CREATE INDEX significance_due ON significance (due_at) WHERE due_at IS NOT NULL",
            "CREATE INDEX significance_due_of_campaign ON significance (tenant_id, campaign_id, due_at) WHERE due_at IS NOT NULL",
        ],
    },
    // The queue. `state`: queued, running, done, dead (tried too often), cancelled.
    TenantTable {
        name: "reaction",
        kind: Kind::System,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, kind text NOT NULL, entity_kind text NOT NULL, entity_id uuid NOT NULL, \
            player_id uuid NOT NULL, state text NOT NULL, score numeric(13, 3) NOT NULL, actions int NOT NULL, message text, location_key text, \
            turn_id uuid NOT NULL, due_at timestamptz NOT NULL, lease_until timestamptz, instance bigint, tries int NOT NULL, error jsonb, \
            finished_at timestamptz",
        references: &[reference("campaign_id", "campaign", CASCADE), reference("player_id", "character", CASCADE)],
        indexes: &[
            "CREATE INDEX reaction_list ON reaction (tenant_id, campaign_id, id)",
            "CREATE INDEX reaction_player ON reaction (tenant_id, player_id)",
            "CREATE INDEX reaction_turn ON reaction (tenant_id, turn_id)",
            "CREATE INDEX reaction_under_way ON reaction (tenant_id, entity_id, player_id) WHERE state IN ('queued', 'running')",
            "CREATE INDEX reaction_due ON reaction (due_at) WHERE state = 'queued'",
            "CREATE INDEX reaction_leases ON reaction (lease_until) WHERE state = 'running'",
            "CREATE INDEX reaction_dead ON reaction (tenant_id, campaign_id, id) WHERE state = 'dead'",
            "CREATE INDEX reaction_age ON reaction USING brin (created_at)",
            "CREATE INDEX reaction_waiting ON reaction (tenant_id, campaign_id, due_at, id) WHERE state = 'queued'",
        ],
    },
    // How many reactions a campaign had on a day (UTC). The nil campaign counts all of the tenant's.
    TenantTable {
        name: "reaction_day",
        kind: Kind::System,
        key: "campaign_id, day",
        columns: "campaign_id uuid NOT NULL, day date NOT NULL, reactions bigint NOT NULL",
        references: &[],
        indexes: &[],
    },
    // What an entity says to a player by itself. It waits until the player can hear it. `messages` are written when it is delivered.
    // `reverts`: its turn is to be undone if it is dropped. False once that is done.
    TenantTable {
        name: "reply",
        kind: Kind::World,
        key: "id",
        columns: "id uuid NOT NULL, campaign_id uuid NOT NULL, reaction_id uuid NOT NULL, player_id uuid NOT NULL, entity_kind text NOT NULL, \
            entity_id uuid NOT NULL, turn_id uuid NOT NULL, narrative text NOT NULL, messages jsonb NOT NULL, location_key text, \
            reverts boolean NOT NULL, state text NOT NULL, expires_at timestamptz NOT NULL, ended_at timestamptz",
        references: &[reference("campaign_id", "campaign", CASCADE), reference("player_id", "character", CASCADE)],
        indexes: &[
            "CREATE INDEX reply_list ON reply (tenant_id, campaign_id, id)",
            "CREATE INDEX reply_waiting ON reply (tenant_id, player_id, id) WHERE state = 'pending'",
            "CREATE INDEX reply_player ON reply (tenant_id, player_id)",
            "CREATE INDEX reply_turn ON reply (tenant_id, turn_id)",
            "CREATE INDEX reply_expiry ON reply (expires_at) WHERE state = 'pending'",
            "CREATE INDEX reply_age ON reply (ended_at) WHERE ended_at IS NOT NULL",
            "CREATE INDEX reply_undo ON reply (ended_at) WHERE state IN ('expired', 'withheld') AND reverts",
        ],
    },
];
