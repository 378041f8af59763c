//! Whether the books balance: what the ledger says against what the tables hold, and the tables against the journal.

use sqlx::{AssertSqlSafe, PgConnection};
use world::campaigns::fork::TABLES;

use super::{
    stage::Stage,
    work::{Ledger, Work},
};

/// More memory than this no server holds after a fault.
const MEMORY_BYTES_MAX: u64 = 300 << 20;

async fn count(db: &mut PgConnection, statement: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(statement.to_owned())).fetch_one(db).await.unwrap()
}

/// Ends the work and checks everything that was promised.
pub async fn balance(stage: &Stage, work: Work) {
    let party = work.settle(stage).await;
    let ledger = std::mem::take(&mut *party.ledger.lock().unwrap());
    let mut db = stage.cluster.superuser().await;
    nothing_runs(&mut db).await;
    memories(&mut db, &ledger).await;
    turns(&mut db, &ledger).await;
    rows(&mut db, &ledger).await;
    journal(&mut db).await;
    for (memory, log) in stage.servers() {
        assert!(memory < MEMORY_BYTES_MAX, "{} MiB", memory >> 20);
        assert!(!log.contains("panicked"), "{log}");
    }
    assert!(ledger.strange.is_empty(), "answers outside of the contract: {:#?}", ledger.strange);
    eprintln!(
        "kept: {} memories, {} turns, {} edits, {} campaigns; slowest answer {:.1} s",
        ledger.memories.len(),
        ledger.turns.len(),
        ledger.edits.values().map(|(_, version)| version - 1).sum::<i64>(),
        ledger.campaigns.len(),
        ledger.slowest.as_secs_f32()
    );
}

/// Turns whose answer nobody has are ended by their servers or the sweeper.
async fn nothing_runs(db: &mut PgConnection) {
    for _ in 0..600 {
        if count(db, "SELECT count(*) FROM turn WHERE status IN ('queued', 'running')").await == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("turns run on though nobody waits for them");
}

/// Each memory that was acknowledged is there once, and none besides.
async fn memories(db: &mut PgConnection, ledger: &Ledger) {
    let texts = "SELECT text FROM memory m JOIN campaign c ON c.id = m.campaign_id \
                 WHERE c.slug = 'port-town' AND text LIKE 'Mark %' ORDER BY text";
    let there: Vec<String> = sqlx::query_scalar(texts).fetch_all(db).await.unwrap();
    let mut wanted = ledger.memories.clone();
    wanted.sort();
    assert_eq!(there, wanted);
}

/// Each turn succeeded once, was said once, remembered once and paid once.
async fn turns(db: &mut PgConnection, ledger: &Ledger) {
    let turns: Vec<(String, String, i64, i64)> = sqlx::query_as(
        "SELECT t.id::text, t.status, (SELECT count(*) FROM message m WHERE m.turn_id = t.id), \
                (SELECT count(*) FROM memory m WHERE m.turn_id = t.id) \
         FROM turn t JOIN campaign c ON c.id = t.campaign_id WHERE c.slug = 'port-town'",
    )
    .fetch_all(&mut *db)
    .await
    .unwrap();
    for id in &ledger.told {
        assert!(turns.iter().any(|turn| turn.0 == *id), "a turn is gone that a client was told of");
    }
    // Whose 202 was lost runs as well, so what nobody was told of is not counted.
    let keyed: Vec<String> = sqlx::query_scalar("SELECT turn_id::text FROM idempotency WHERE turn_id IS NOT NULL")
        .fetch_all(&mut *db)
        .await
        .unwrap();
    let succeeded = turns.iter().filter(|turn| turn.1 == "succeeded" && keyed.contains(&turn.0)).count();
    assert_eq!(succeeded, ledger.turns.len(), "one turn for each key");
    for (action, id) in &ledger.turns {
        let turn = turns.iter().find(|turn| turn.0 == *id).unwrap_or_else(|| panic!("{action} is gone"));
        assert_eq!((turn.1.as_str(), turn.2), ("succeeded", 2), "{action}: {turn:?}");
        assert!(turn.3 <= 1, "{action} is remembered {} times", turn.3);
    }
    let orphans = "SELECT count(*) FROM memory m WHERE m.turn_id IS NOT NULL AND NOT EXISTS \
                   (SELECT FROM turn t WHERE t.id = m.turn_id AND t.status = 'succeeded') \
                   AND m.campaign_id = (SELECT id FROM campaign WHERE slug = 'port-town')";
    assert_eq!(count(db, orphans).await, 0, "a turn that failed left something");
    let replies = "SELECT count(*) FROM idempotency WHERE state = 'running'";
    assert_eq!(count(db, replies).await, 0, "a key is held for ever");
}

async fn rows(db: &mut PgConnection, ledger: &Ledger) {
    for (slug, (hp, version)) in &ledger.edits {
        let row = "SELECT r.hp::bigint, r.version FROM character r JOIN campaign c ON c.id = r.campaign_id \
                   WHERE c.slug = 'port-town' AND r.slug = $1";
        let now: (i64, i64) = sqlx::query_as(row).bind(slug).fetch_one(&mut *db).await.unwrap();
        assert_eq!(now, (*hp, *version), "{slug}: each change once");
    }
    let priorities = "SELECT DISTINCT l.priority::bigint FROM lore l JOIN campaign c ON c.id = l.campaign_id \
                      WHERE c.slug = 'port-town'";
    let priorities: Vec<i64> = sqlx::query_scalar(priorities).fetch_all(&mut *db).await.unwrap();
    assert_eq!(
        priorities,
        ledger.bulk_edits.last().copied().into_iter().collect::<Vec<_>>(),
        "a bulk edit is all there or not at all"
    );
    let mut campaigns: Vec<String> =
        sqlx::query_scalar("SELECT slug FROM campaign WHERE slug <> 'port-town'").fetch_all(&mut *db).await.unwrap();
    let mut wanted = ledger.campaigns.clone();
    campaigns.sort();
    wanted.sort();
    assert_eq!(campaigns, wanted, "each copy once");
    let whole = "SELECT count(*) FROM campaign c WHERE (SELECT count(*) FROM lore l WHERE l.campaign_id = c.id) <> \
                 (SELECT count(*) FROM lore l JOIN campaign p ON p.id = l.campaign_id AND p.slug = 'port-town')";
    assert_eq!(count(db, whole).await, 0, "a copy is whole");
}

/// The journal, folded, is the tables; its numbers have no hole.
async fn journal(db: &mut PgConnection) {
    for table in TABLES {
        let differ = format!(
            "SELECT count(*) FROM {table} r WHERE (SELECT j.after FROM journal j WHERE j.tenant_id = r.tenant_id \
             AND j.table_name = '{table}' AND j.row_id = r.id ORDER BY j.seq DESC LIMIT 1) IS DISTINCT FROM to_jsonb(r)"
        );
        assert_eq!(count(db, &differ).await, 0, "{table} is not what the journal says");
        let missing = format!(
            "SELECT count(*) FROM (SELECT DISTINCT ON (campaign_id, row_id) row_id, op FROM journal \
             WHERE table_name = '{table}' ORDER BY campaign_id, row_id, seq DESC) j \
             WHERE j.op <> 'delete' AND NOT EXISTS (SELECT FROM {table} r WHERE r.id = j.row_id)"
        );
        assert_eq!(count(db, &missing).await, 0, "{table} lost rows that the journal has");
    }
    let holes = "SELECT count(*) FROM feed_head h WHERE h.seq <> (SELECT count(*) FROM journal j \
                 WHERE j.tenant_id = h.tenant_id AND j.campaign_id = h.campaign_id) \
                 OR h.seq <> (SELECT max(j.seq) FROM journal j WHERE j.tenant_id = h.tenant_id AND j.campaign_id = h.campaign_id)";
    assert_eq!(count(db, holes).await, 0, "the journal has holes");
}
