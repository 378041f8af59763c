//! Turns with many effects, and turns that cannot be taken back: each ends by itself or by an operator, and is in nobody's way.

use ai::turns::store::sweep;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::support::{Answer, Prepared, SWEEPS, Server, World, operator, until};

/// NPCs that answer to the town's council, beside the innkeeper.
const GUARDS: i64 = 500;

/// Makes the guards, in every campaign there is; a transaction each, as the server has it. Telling them something costs nothing.
async fn guards(db: &mut PgConnection) {
    let free = "UPDATE campaign SET settings = settings || '{\"tool_prices\": {\"OWNER_memorize\": 0, \"OWNER_memorize_dependables\": 0}}'";
    sqlx::query(free).execute(&mut *db).await.unwrap();
    let campaigns: Vec<uuid::Uuid> = sqlx::query_scalar("SELECT id FROM campaign").fetch_all(&mut *db).await.unwrap();
    for campaign in campaigns {
        sqlx::query(
            "INSERT INTO npc (tenant_id, id, campaign_id, slug, name, description, personality_prompt, owner_ids, available_tools, stats, \
                 conditions, effects, disposition, inventory, reaction_threshold) \
             SELECT tenant_id, uuid7(), campaign_id, 'guard_' || n, 'Guard', '', '', owner_ids, '[]', stats, conditions, effects, \
                 disposition, inventory, reaction_threshold FROM npc, generate_series(1, $1) n \
             WHERE slug = 'innkeeper_bob' AND campaign_id = $2",
        )
        .bind(GUARDS)
        .bind(campaign)
        .execute(&mut *db)
        .await
        .unwrap();
    }
}

/// The council tells everyone something, so many times in one reply.
fn broadcasts(times: usize) -> Reply {
    let tell = |n: usize| json!({ "player_id": "player_alice", "memory_string": format!("She pays, {n}.") });
    (1..times).fold(Reply::tool("OWNER_memorize_dependables", tell(0)), |reply, n| {
        reply.with_tool("OWNER_memorize_dependables", tell(n))
    })
}

fn remember(words: &str) -> Reply {
    Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": words }))
}

async fn council(world: &World<'_>) -> Answer {
    world.client.owner_turn(&world.slug, "town_council_owner", "player_alice", "I help.").await
}

async fn number(db: &mut PgConnection, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(db).await.unwrap()
}

async fn memories(db: &mut PgConnection) -> i64 {
    number(db, "SELECT count(*) FROM memory").await
}

/// Rows of the journal that the turns of a database wrote, and those that took them back.
async fn given_and_taken(db: &mut PgConnection) -> (i64, i64) {
    let own = number(db, "SELECT count(*) FROM journal WHERE turn_id IS NOT NULL AND origin <> 'revert'").await;
    (own, number(db, "SELECT count(*) FROM journal WHERE origin = 'revert'").await)
}

/// Deleting a memory with the word `Poison` fails, as `state`.
async fn poison(db: &mut PgConnection, state: &str) {
    let function = format!(
        "CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'poisoned' USING ERRCODE = '{state}'; END $$"
    );
    sqlx::query(AssertSqlSafe(function)).execute(&mut *db).await.unwrap();
    sqlx::query(
        "CREATE TRIGGER poison BEFORE DELETE ON memory FOR EACH ROW WHEN (OLD.text = 'Poison.') EXECUTE FUNCTION poison()",
    )
    .execute(db)
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_effects_are_taken_back_in_steps() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut db = server.owner().await;
    guards(&mut db).await;
    let before = memories(&mut db).await;
    // A model that fails after 16,032 memories.
    server.model.set_script(Script::replies([broadcasts(32), Reply::status(500)]));
    let failed = council(&world).await.problem(502, "llm_unavailable");
    let path = format!("/turns/{}", failed.body["turn_id"].as_str().unwrap());
    until("the end", || async { world.get(&path).await.expect(200).body["status"] == "failed" }).await;
    let record = world.get(&path).await.expect(200).body;
    assert_eq!(record["error"]["code"], "llm_unavailable");
    assert_eq!((&record["revert_conflicts"], record.get("reverting")), (&json!([]), None));
    assert_eq!(memories(&mut db).await, before);
    let effects = 32 * (GUARDS + 1);
    assert_eq!(given_and_taken(&mut db).await, (effects, effects), "each once");
    // One that is cancelled.
    server.model.set_script(Script::replies([broadcasts(4), Reply::hang()]));
    let cancel = async {
        until("the broadcasts", || async { memories(&mut server.owner().await).await == before + 4 * (GUARDS + 1) })
            .await;
        let running = world.get("/turns?status=running").await.expect(200);
        let id = running.items()[0]["id"].as_str().unwrap().to_owned();
        world.post(&format!("/turns/{id}/cancel"), json!({})).await.expect(202);
        id
    };
    let (turn, id) = tokio::join!(council(&world), cancel);
    assert_eq!(turn.expect(200).body["status"], "cancelled");
    let path = format!("/turns/{id}");
    until("the end", || async { world.get(&path).await.expect(200).body["status"] == "cancelled" }).await;
    assert_eq!(memories(&mut db).await, before);
    // The place is free.
    server.model.set_script(Script::always(Reply::text("So be it.")));
    council(&world).await.expect(200);
}

/// All or nothing, looked at first and then done in steps.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_turn_is_undone() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut db = server.owner().await;
    guards(&mut db).await;
    let before = memories(&mut db).await;
    server.model.set_script(Script::replies([broadcasts(4), Reply::text("So be it.")]));
    let turn = council(&world).await.expect(200);
    let path = format!("/turns/{}", turn.id());
    let undo = world.path(&format!("{path}/undo"));
    let written = memories(&mut db).await;
    assert_eq!(written, before + 4 * (GUARDS + 1));
    let heard = world.get("/npcs/guard_7/memories?player_id=player_alice").await.expect(200);
    let memory = format!("/memories/{}", heard.items()[0]["id"].as_str().unwrap());
    let words = heard.items()[0]["text"].clone();
    world.patch(&memory, json!({ "text": "By a person." })).await.expect(200);
    let seqs = "SELECT max(seq) FROM journal";
    let journal = number(&mut db, seqs).await;
    let refused = tenant.post_with_key(&undo, "k", json!({})).await.problem(409, "undo_conflict");
    assert_eq!(refused.pointers(), [memory.replace("/memories", "/memory")]);
    assert_eq!((memories(&mut db).await, number(&mut db, seqs).await), (written, journal), "nothing was written");
    assert_eq!(world.get(&path).await.expect(200).body.get("reverting"), None);
    // Put back as it was, nothing stands in the way.
    world.patch(&memory, json!({ "text": words })).await.expect(200);
    let undoing = tenant.post_with_key(&undo, "k", json!({})).await.expect(202);
    assert_eq!((&undoing.body["status"], &undoing.body["changes"]), (&json!("undoing"), &json!(4 * (GUARDS + 1) + 2)));
    let again = tenant.post_with_key(&undo, "k", json!({})).await.expect(202);
    assert_eq!(again.body, undoing.body);
    until("the end", || async { world.get(&path).await.expect(200).body["undone_at"].is_string() }).await;
    let record = world.get(&path).await.expect(200).body;
    assert_eq!((&record["status"], &record["revert_conflicts"]), (&json!("succeeded"), &Value::Null));
    assert_eq!(memories(&mut db).await, before);
    assert!(world.get("/messages").await.expect(200).items().is_empty());
    tenant.post(&undo, json!({})).await.problem(409, "conflict");
}

/// `kill -9` between two steps; two servers then go on at once, and take nothing back twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_steps_is_gone_on_with() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let mut db = PgConnection::connect(&prepared.db.url).await.unwrap();
    guards(&mut db).await;
    let before = memories(&mut db).await;
    let quick = [&SWEEPS[..], &[("LLM_RETRIES", "0")]].concat();
    let mut child = prepared.start_with(&model, &quick).await;
    model.set_script(Script::replies([broadcasts(32), Reply::status(500)]));
    let body = json!({ "player_id": "player_alice", "action": "I help." });
    let turn = tokio::spawn(child.post("/owners/town_council_owner/turns", body));
    until("the second step", || async {
        number(
            &mut PgConnection::connect(&prepared.db.url).await.unwrap(),
            "SELECT coalesce(max(revert_done), 0)::bigint FROM turn",
        )
        .await
            > 500
    })
    .await;
    child.kill().await;
    drop(turn.await.unwrap());
    // In one statement: PostgreSQL may still commit a step that the server sent before it died.
    let (done, taken, reason): (i64, i64, String) = sqlx::query_as(
        "SELECT revert_done::bigint, (SELECT count(*) FROM journal WHERE origin = 'revert' AND table_name = 'memory'), \
           error ->> 'code' FROM turn",
    )
    .fetch_one(&mut db)
    .await
    .unwrap();
    assert!(done < 32 * (GUARDS + 1), "it was in the middle");
    assert_eq!(taken, done, "what is done is written");
    let (first, second) = tokio::join!(prepared.start_with(&model, &quick), prepared.start_with(&model, &quick));
    until("the end", || async { first.get("/turns").await.expect(200).items()[0]["status"] == "failed" }).await;
    assert_eq!(memories(&mut db).await, before);
    let effects = 32 * (GUARDS + 1);
    assert_eq!(given_and_taken(&mut db).await, (effects, effects), "each once");
    let error = second.get("/turns").await.expect(200).items()[0]["error"].clone();
    assert_eq!(error["code"], reason, "the crash is not what the turn failed with");
}

fn finding<'a>(told: &'a Value, check: &str) -> &'a Value {
    told["findings"].as_array().unwrap().iter().find(|finding| finding["check"] == check).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_taken_back_is_in_nobodys_way() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let (acme, rival) = (server.tenant("acme").await, server.tenant("rival").await);
    let (world, other) = (acme.world().await, rival.world().await);
    let mut db = server.owner().await;
    // What another moment may mend is never set aside.
    poison(&mut db, "55P03").await;
    server.model.set_script(Script::replies([remember("Poison."), Reply::status(500)]));
    let failed = world.bob("player_alice", "I pay.").await.problem(502, "llm_unavailable");
    let id = failed.body["turn_id"].as_str().unwrap().to_owned();
    let record = world.get(&format!("/turns/{id}")).await.expect(200).body;
    assert_eq!((&record["status"], &record["reverting"]["into"]), (&json!("running"), &json!("failed")));
    assert!(record["reverting"]["tries"].as_i64().unwrap() > 0 && record["reverting"]["next_try_at"].is_string());
    assert!(record["reverting"]["last_error"].as_str().unwrap().contains("poisoned"), "{record}");
    // Beside it a turn of another tenant, whose server is gone.
    server.model.set_script(Script::replies([remember("Healthy."), Reply::hang()]));
    let hanging = other.bob("player_alice", "I pay.");
    let swept = async {
        let healthy = "SELECT count(*) FROM memory WHERE text = 'Healthy.'";
        until("the memory", || async { number(&mut server.owner().await, healthy).await == 1 }).await;
        sqlx::query("UPDATE turn SET lease_until = now() - interval '1 day', revert_try_at = now() - interval '1 day'")
            .execute(&mut server.owner().await)
            .await
            .unwrap();
        sweep(server.pool(), &server.app.running).await.unwrap();
        until("the end", || async { number(&mut server.owner().await, healthy).await == 0 }).await;
        let turns = other.get("/turns").await.expect(200);
        assert_eq!(turns.items()[0]["status"], "failed");
        server.model.set_script(Script::always(Reply::text("Welcome.")));
        // The server that only seemed to be gone finds out with its next sign of life.
        until("the place", || async { other.bob("player_alice", "Again.").await.status == 200 }).await;
    };
    // Whoever waited for it is let go.
    tokio::join!(hanging, swept);
    // Its own entity is busy, and others of its tenant are not.
    sqlx::query("UPDATE turn SET revert_try_at = now() - interval '1 day'").execute(&mut db).await.unwrap();
    world.bob("player_alice", "And now?").await.problem(409, "turn_in_progress");
    acme.npc_turn(&world.slug, "harbour_ilse", "player_alice", "And you?").await.expect(200);
    let (is_well, told) = operator(&server.db.url, &["doctor"]).await;
    assert!(!is_well);
    let turns = finding(&told, "turns");
    assert_eq!(turns["details"][0]["turn_id"].as_str(), Some(id.as_str()), "{told}");
    assert!(turns["details"][0]["last_error"].as_str().unwrap().contains("poisoned"), "{told}");
    for check in ["database", "schema", "role", "row_security", "erasures"] {
        assert_eq!(finding(&told, check)["needs_a_person"], false, "{told}");
    }
    assert!(server.anonymous().get("/metrics").await.text.contains("tavernkeep_turns_reverting"));
    // An operator ends it; what is left is named.
    assert!(!operator(&server.db.url, &["turn", "end", &id]).await.0, "it cannot be taken back now either");
    let (is_done, told) = operator(&server.db.url, &["turn", "end", &id, "--keep"]).await;
    assert!(is_done, "{told}");
    assert_eq!((&told["status"], &told["left"]), (&json!("failed"), &json!(1)));
    let record = world.get(&format!("/turns/{id}")).await.expect(200).body;
    assert_eq!((&record["status"], &record["error"]["code"]), (&json!("failed"), &json!("llm_unavailable")));
    assert_eq!(record["revert_conflicts"][0]["reason"], "kept");
    assert!(!operator(&server.db.url, &["turn", "end", &id, "--keep"]).await.0, "it has ended");
    world.bob("player_alice", "And now?").await.expect(200);
    let (is_well, told) = operator(&server.db.url, &["doctor"]).await;
    assert!(is_well, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_fails_again_and_again_is_set_aside() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut db = server.owner().await;
    poison(&mut db, "P0001").await;
    let three = remember("One.")
        .with_tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "Poison." }))
        .with_tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "Three." }));
    server.model.set_script(Script::replies([three, Reply::status(500)]));
    let failed = world.bob("player_alice", "I pay.").await.problem(502, "llm_unavailable");
    let path = format!("/turns/{}", failed.body["turn_id"].as_str().unwrap());
    // Without waiting as long as servers do.
    until("the end", || async {
        let mut db = server.owner().await;
        sqlx::query("UPDATE turn SET revert_try_at = now() - interval '1 second' WHERE revert_try_at IS NOT NULL")
            .execute(&mut db)
            .await
            .unwrap();
        sweep(server.pool(), &server.app.running).await.unwrap();
        world.get(&path).await.expect(200).body["status"] == "failed"
    })
    .await;
    let record = world.get(&path).await.expect(200).body;
    let conflicts = record["revert_conflicts"].as_array().unwrap();
    assert_eq!((conflicts.len(), &conflicts[0]["reason"]), (1, &json!("failed")), "{record}");
    assert_eq!(number(&mut db, "SELECT count(*) FROM memory WHERE text IN ('One.', 'Three.')").await, 0);
    assert_eq!(number(&mut db, "SELECT count(*) FROM memory WHERE text = 'Poison.'").await, 1);
}

/// A server starts whatever waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_starts_beside_what_cannot_be_taken_back() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let mut db = PgConnection::connect(&prepared.db.url).await.unwrap();
    poison(&mut db, "XX000").await;
    let mut child = prepared.start(&model).await;
    model.set_script(Script::replies([remember("Poison."), Reply::hang()]));
    let turn = tokio::spawn(child.turn("innkeeper_bob", "I pay.", Some("k")));
    until("the memory", || async {
        let mut db = PgConnection::connect(&prepared.db.url).await.unwrap();
        number(&mut db, "SELECT count(*) FROM memory WHERE text = 'Poison.'").await == 1
    })
    .await;
    child.kill().await;
    drop(turn.await.unwrap());
    let child = prepared.start(&model).await;
    until("a try", || async { child.get("/turns").await.expect(200).items()[0]["reverting"]["tries"] != Value::Null })
        .await;
    let again = child.turn("innkeeper_bob", "I pay.", Some("k")).await.unwrap();
    assert_eq!((again.status, again.body["code"].as_str()), (409, Some("idempotency_in_flight")), "{}", again.text);
    model.set_script(Script::always(Reply::text("Welcome.")));
    child.turn("harbour_ilse", "And you?", None).await.unwrap().expect(200);
}

/// One turn of each tenant before the second of any.
#[tokio::test(flavor = "multi_thread")]
async fn no_tenant_waits_for_all_of_anothers() {
    let server = Server::start().await;
    let (acme, rival) = (server.tenant("acme").await, server.tenant("rival").await);
    acme.world().await;
    rival.world().await;
    let mut db = server.owner().await;
    // Just after PostgreSQL was started, no server counts as gone.
    let is_up = "SELECT pg_postmaster_start_time() < now() - interval '11 seconds'";
    until("the database to be up", async || sqlx::query_scalar(is_up).fetch_one(&mut db).await.unwrap()).await;
    // Not to be swept before they are looked at: their time to be tried is over in one transaction alone.
    let mut tx = db.begin().await.unwrap();
    sqlx::query(
        "INSERT INTO turn (tenant_id, id, campaign_id, kind, status, entity_id, instance, lease_until, revert_tries) \
         SELECT c.tenant_id, uuid7(), c.id, 'planner', 'running', c.id, 0, now() - n * interval '1 minute', n % 2 \
         FROM campaign c, generate_series(1, CASE WHEN c.tenant_id = $1 THEN 200 ELSE 1 END) n",
    )
    .bind(acme.tenant)
    .execute(&mut *tx)
    .await
    .unwrap();
    let first: Vec<(uuid::Uuid, uuid::Uuid)> =
        sqlx::query_as("SELECT tenant_id, turn_id FROM orphaned_turns(2)").fetch_all(&mut *tx).await.unwrap();
    assert!(first.iter().any(|(tenant, _)| *tenant == rival.tenant), "{first:?}");
    tx.rollback().await.unwrap();
}

/// What a turn may change is counted before it is changed.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_effects_are_refused_before_they_are_there() {
    let server = Server::start_with(&[("TAVERNKEEP_TURN_EFFECTS_MAX", "1100")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut db = server.owner().await;
    guards(&mut db).await;
    let before = memories(&mut db).await;
    server.model.set_script(Script::replies([
        broadcasts(2),
        broadcasts(1).with_tool("OWNER_memorize", json!({ "player_id": "player_alice", "memory_string": "Own." })),
        Reply::text("So be it."),
    ]));
    let turn = council(&world).await.expect(200);
    let calls: Vec<_> = turn.body["tool_calls"].as_array().unwrap().iter().map(|c| &c["error"]["code"]).collect();
    assert_eq!(calls, [&Value::Null, &Value::Null, &json!("quota_exceeded"), &Value::Null], "{}", turn.text);
    assert_eq!(memories(&mut db).await, before + 2 * (GUARDS + 1) + 1);
}

/// What was forgotten cannot be taken back, and so the rest is not either.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_which_a_part_is_forgotten_is_not_undone() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut db = server.owner().await;
    let mut turns = Vec::new();
    for words in ["One.", "Two."] {
        server.model.set_script(Script::replies([remember(words), Reply::text("Noted.")]));
        turns.push(world.bob("player_alice", "I pay.").await.expect(200));
    }
    // All up to the first turn's memory; its messages are left.
    let upto = number(&mut db, "SELECT min(seq) FROM journal WHERE turn_id IS NOT NULL").await;
    sqlx::query("SELECT prune_journal(interval '0', $1)")
        .bind(i32::try_from(upto).unwrap())
        .execute(&mut db)
        .await
        .unwrap();
    assert_eq!(number(&mut db, "SELECT min(seq) FROM journal WHERE turn_id IS NOT NULL").await, upto + 1);
    let undo = async |turn: &Answer| world.post(&format!("/turns/{}/undo", turn.id()), json!({})).await;
    undo(&turns[0]).await.problem(410, "gone");
    assert_eq!(world.get("/messages").await.expect(200).items().len(), 4, "nothing of it was undone");
    assert_eq!(undo(&turns[1]).await.expect(200).body["changes_reverted"], 3);
}
