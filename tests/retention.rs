//! Retention: what is promised to be forgotten is in no table afterwards, and what is younger stays.

use edge::users::Role;
use rehearsal::{Reply, Script};
use serde_json::json;
use sqlx::{AssertSqlSafe, Executor, PgConnection, Row};
use tavernkeep::ops::maintenance;

use crate::support::{Server, reads};

/// The tables in which a word stands.
async fn tables_with(db: &mut PgConnection, word: &str) -> Vec<String> {
    let tables = sqlx::query("SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace ORDER BY 1")
        .fetch_all(&mut *db)
        .await
        .unwrap();
    let mut found = Vec::new();
    for table in tables {
        let table: String = table.get(0);
        let bodies = if table == "idempotency" { "|| coalesce(encode(t.body, 'escape'), '')" } else { "" };
        let sql = AssertSqlSafe(format!("SELECT count(*) FROM \"{table}\" t WHERE to_jsonb(t)::text {bodies} LIKE $1"));
        let count: i64 = sqlx::query(sql).bind(format!("%{word}%")).fetch_one(&mut *db).await.unwrap().get(0);
        if count > 0 {
            found.push(table);
        }
    }
    found
}

/// A turn's record, what it told, its answer under its key and its action go together; the transcript stays.
#[tokio::test(flavor = "multi_thread")]
async fn traces_and_answers_are_forgotten_in_time() {
    let server = Server::start_with(&[("TAVERNKEEP_TURN_RETENTION_DAYS", "30")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut db = server.owner().await;
    for (word, days) in [("oldmarkerone", 31), ("youngmarker", 29)] {
        server.model.set_script(Script::always(Reply::text(format!("So, {word}."))));
        let path = world.path("/npcs/innkeeper_bob/turns");
        let turn = json!({ "player_id": "player_alice", "action": format!("About {word}") });
        let id = tenant.post_with_key(&path, word, turn).await.expect(200).id();
        let age = format!("now() - interval '{days} days'");
        db.execute(AssertSqlSafe(format!("UPDATE turn SET created_at = {age} WHERE id = '{id}'"))).await.unwrap();
    }
    let before = tables_with(&mut db, "oldmarkerone").await;
    assert!(
        ["idempotency", "journal", "message", "turn"].iter().all(|table| before.contains(&(*table).to_owned())),
        "{before:?}"
    );
    maintenance::prune(&server.app).await.unwrap();
    assert!(!tables_with(&mut db, "oldmarkerone").await.contains(&"turn".to_owned()));
    assert!(tables_with(&mut db, "youngmarker").await.contains(&"turn".to_owned()));
    assert!(
        tables_with(&mut db, "oldmarkerone").await.contains(&"idempotency".to_owned()),
        "a key is younger than a day"
    );
    db.execute("UPDATE idempotency SET created_at = now() - interval '25 hours' WHERE key = 'oldmarkerone'")
        .await
        .unwrap();
    maintenance::prune(&server.app).await.unwrap();
    assert_eq!(tables_with(&mut db, "oldmarkerone").await, ["journal", "message"]);
    assert!(tables_with(&mut db, "youngmarker").await.contains(&"idempotency".to_owned()));
}

/// More rows than a portion holds go in one round, and none that is younger.
#[tokio::test(flavor = "multi_thread")]
async fn the_journal_is_forgotten_whole_however_much_it_is() {
    let server = Server::start_with(&[("TAVERNKEEP_JOURNAL_RETENTION_DAYS", "30")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut db = server.owner().await;
    let lore = json!({ "slug": "secret", "title": "Secret", "scope": "global", "content": "oldmarkertwo" });
    world.post("/lore", lore).await.expect(201);
    world.delete("/lore/secret").await.expect(204);
    assert_eq!(tables_with(&mut db, "oldmarkertwo").await, ["journal"]);
    db.execute("UPDATE journal SET at = now() - interval '31 days'").await.unwrap();
    db.execute(
        "INSERT INTO journal (tenant_id, campaign_id, seq, at, table_name, row_id, op, after, origin, closes) \
         SELECT c.tenant_id, c.id, 1000 + n, now() - interval '40 days', 'lore', uuid7(), 'insert', '{\"content\": \"oldmarkerthree\"}', 'api', false \
         FROM campaign c, generate_series(1, 11000) AS n; UPDATE feed_head SET seq = 12000",
    )
    .await
    .unwrap();
    world
        .post("/lore", json!({ "slug": "new", "title": "New", "scope": "global", "content": "youngmarker" }))
        .await
        .expect(201);
    maintenance::prune(&server.app).await.unwrap();
    for word in ["oldmarkertwo", "oldmarkerthree"] {
        assert!(tables_with(&mut db, word).await.is_empty(), "{word} is left");
    }
    assert!(tables_with(&mut db, "youngmarker").await.contains(&"journal".to_owned()));
    world.get("/changes?after=0").await.problem(410, "gone");
}

/// A campaign's history, which nobody can read any more, goes with it.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_deleted_campaign_stays() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    tenant.post("/v1/campaigns", json!({ "slug": "other", "name": "youngmarker" })).await.expect(201);
    let mut db = server.owner().await;
    let lore = json!({ "slug": "secret", "title": "Secret", "scope": "zone", "associated_id": "oldmarkerfour", "content": "oldmarkerfour" });
    world.post("/lore", lore).await.expect(201);
    tenant.delete(&world.path("")).await.expect(204);
    // Its rows go by themselves, the campaign's own at last.
    for _ in 0..2400 {
        if sqlx::query("SELECT FROM campaign_removal").fetch_all(&mut db).await.unwrap().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(tables_with(&mut db, "oldmarkerfour").await, ["journal", "version_head"]);
    maintenance::prune(&server.app).await.unwrap();
    assert!(tables_with(&mut db, "oldmarkerfour").await.is_empty());
    assert!(tables_with(&mut db, "youngmarker").await.contains(&"journal".to_owned()));
    assert_eq!(tenant.get("/v1/campaigns/other/changes?after=0").await.expect(200).items().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_the_editor_and_usage_are_forgotten_in_time() {
    let server = Server::start_with(&[("TAVERNKEEP_USAGE_RETENTION_DAYS", "100")]).await;
    let tenant = server.tenant("acme").await;
    server.user(tenant.tenant, "mara@example.org", Role::Editor).await;
    let mut db = server.owner().await;
    db.execute(
        "INSERT INTO editor_session (hash, user_id, seen_at, expires_at) \
         SELECT decode(v.hash, 'hex'), u.id, now() - v.seen, now() + v.ends FROM app_user u, (VALUES \
             ('01', interval '13 hours', interval '1 day'), ('02', interval '1 hour', interval '-1 minute'), \
             ('03', interval '1 hour', interval '1 day')) AS v (hash, seen, ends)",
    )
    .await
    .unwrap();
    db.execute(
        "INSERT INTO usage_entry (tenant_id, id, campaign_id, kind, model, llm_calls, prompt_tokens, cached_tokens, completion_tokens, created_at) \
         SELECT t.id, uuid7(), t.id, 'npc', 'days' || d, 1, 1, 0, 1, now() - d * interval '1 day' FROM tenant t, unnest(ARRAY[99, 101]) AS d",
    )
    .await
    .unwrap();
    maintenance::prune(&server.app).await.unwrap();
    let kept: Vec<String> = sqlx::query("SELECT encode(hash, 'hex') AS hash FROM editor_session")
        .fetch_all(&mut db)
        .await
        .unwrap()
        .iter()
        .map(|r| r.get(0))
        .collect();
    assert_eq!(kept, ["03"]);
    let kept: Vec<String> = sqlx::query("SELECT model FROM usage_entry")
        .fetch_all(&mut db)
        .await
        .unwrap()
        .iter()
        .map(|r| r.get(0))
        .collect();
    assert_eq!(kept, ["days99"]);
}

/// Pruning reads what it deletes, and little else, however much there is.
#[tokio::test(flavor = "multi_thread")]
async fn pruning_does_not_read_what_stays() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.bob("player_alice", "Hello.").await.expect(200);
    let turn = json!({ "player_id": "player_alice", "action": "Hello." });
    tenant.post_with_key(&world.path("/npcs/innkeeper_bob/turns"), "key", turn).await.expect(200);
    let mut db = server.owner().await;
    // Ten rows of each kind are old, four thousand are not.
    let many = |table: &str, id: &str, age: &str| {
        format!(
            "INSERT INTO {table} SELECT r.* FROM generate_series(1, 4000) AS n, (SELECT * FROM {table} ORDER BY {age} LIMIT 1) t, \
             jsonb_populate_record(NULL::{table}, to_jsonb(t) || jsonb_build_object('{age}', \
                 CASE WHEN n <= 10 THEN now() - interval '4000 days' ELSE now() END, {id})) r"
        )
    };
    for sql in [
        "UPDATE journal SET seq = seq + 1000000".to_owned(),
        "UPDATE feed_head SET seq = seq + 1000000".to_owned(),
        many("journal", "'seq', n", "at"),
        many(
            "turn",
            "'id', (lpad(to_hex(1000 * extract(epoch FROM CASE WHEN n <= 10 THEN now() - interval '4000 days' ELSE now() END)::bigint), 12, '0') \
            || lpad(to_hex(n), 20, '0'))::uuid",
            "created_at",
        ),
        many("idempotency", "'id', uuid7(), 'key', 'k' || n, 'turn_id', NULL", "created_at"),
    ] {
        db.execute(AssertSqlSafe(sql)).await.unwrap();
    }
    db.execute("ANALYZE").await.unwrap();
    for (table, statement) in [
        ("journal", "SELECT prune_journal(interval '365 days', 5000)"),
        ("turn", "SELECT prune_system(interval '365 days', interval '1 day', 5000)"),
        ("idempotency", "SELECT prune_system(interval '365 days', interval '1 day', 5000)"),
    ] {
        let (scans, read) = reads(&mut db, table).await;
        let gone: i64 = sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(&mut db).await.unwrap();
        let (scans, read) = (reads(&mut db, table).await.0 - scans, reads(&mut db, table).await.1 - read);
        assert_eq!(gone, if table == "idempotency" { 0 } else { 10 }, "{table}");
        assert_eq!(scans, 0, "{table} was read whole");
        assert!(read < 2000, "{read} rows of {table} were read");
    }
    for table in ["journal", "turn", "idempotency"] {
        let old = AssertSqlSafe(format!(
            "SELECT count(*) FROM {table} WHERE {} < now() - interval '365 days'",
            if table == "journal" { "at" } else { "created_at" }
        ));
        let old: i64 = sqlx::query_scalar(old).fetch_one(&mut db).await.unwrap();
        assert_eq!(old, 0, "{table}");
    }
}
