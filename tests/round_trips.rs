//! How many statements things cost. Metrics are a process's own, so a child is measured.

use std::time::Duration;

use rehearsal::{Reply, Script};
use serde_json::json;
use sqlx::Connection as _;

use crate::{
    bridge::Socket,
    support::{Child, Prepared, until},
};

async fn statements(child: &Child) -> u64 {
    child.counter("tavernkeep_db_statements_total").await
}

async fn asked(model: &rehearsal::Rehearsal, times: usize) {
    until(&format!("question {times}"), async || model.request_count() >= times).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_costs_few_statements() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start(&model).await;
    // Warm: names, prompt, connections.
    model.set_script(Script::always(Reply::text("Hm.")));
    for _ in 0..2 {
        child.turn("innkeeper_bob", "Hello.", None).await.unwrap().expect(200);
    }
    // Without tools: before the model, and after it.
    model.set_script(Script::replies([Reply::text("Hm.").held()]));
    let (before, calls) = (statements(&child).await, model.request_count());
    let turn = tokio::spawn(child.turn("innkeeper_bob", "Hello.", None));
    asked(&model, calls + 1).await;
    let asking = statements(&child).await;
    model.let_go(1);
    let turn = turn.await.unwrap().unwrap().expect(200);
    let after = statements(&child).await;
    assert_eq!(turn.body["prompt"]["cache"], "hit");
    assert_eq!((asking - before, after - asking), (1, 1), "statements before the model, and to commit");

    // With one memory: the batch on its own.
    let memory = json!({ "player_id": "player_alice", "memory_string": "Pays." });
    model.set_script(Script::replies([Reply::tool("NPC_memorize", memory).held(), Reply::text("Thanks.").held()]));
    let calls = model.request_count();
    let turn = tokio::spawn(child.turn("innkeeper_bob", "I pay.", None));
    asked(&model, calls + 1).await;
    let first = statements(&child).await;
    model.let_go(1);
    asked(&model, calls + 2).await;
    let second = statements(&child).await;
    model.let_go(1);
    turn.await.unwrap().unwrap().expect(200);
    let last = statements(&child).await;
    assert!(second - first <= 3, "{} statements for a batch", second - first);
    assert_eq!(last - second, 1, "statements to commit");

    // A key costs nothing before the model, and little when it is replayed.
    model.set_script(Script::replies([Reply::text("Hm."), Reply::text("Hm.").held()]));
    child.turn("innkeeper_bob", "Hello.", None).await.unwrap().expect(200);
    let (before, calls) = (statements(&child).await, model.request_count());
    let turn = tokio::spawn(child.turn("innkeeper_bob", "Hello.", Some("k")));
    asked(&model, calls + 1).await;
    assert_eq!(statements(&child).await - before, 1);
    model.let_go(1);
    turn.await.unwrap().unwrap().expect(200);
    let before = statements(&child).await;
    let replay = child.turn("innkeeper_bob", "Hello.", Some("k")).await.unwrap().expect(200);
    assert_eq!(replay.header("idempotency-replayed"), "true");
    assert!(statements(&child).await - before <= 4);
}

/// An action that leads to no reaction: its names, and the count.
#[tokio::test(flavor = "multi_thread")]
async fn an_action_costs_two_statements() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start(&model).await;
    let look =
        json!({ "player_id": "player_alice", "type": "look", "targets": ["innkeeper_bob"], "location": "town_square" });
    child.post("/actions", look.clone()).await.unwrap().expect(202);
    let before = statements(&child).await;
    child.post("/actions", look).await.unwrap().expect(202);
    assert_eq!(statements(&child).await - before, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_command_costs_two() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start(&model).await;
    sqlx::query("UPDATE tenant SET limits = limits || '{\"planner_per_player_per_minute\": 0}'")
        .execute(&mut sqlx::PgConnection::connect(&prepared.db.url).await.unwrap())
        .await
        .unwrap();
    let plan = |plan: serde_json::Value| Script::always(Reply::text(plan.to_string()).held());
    let roll = json!({ "command": "roll", "args": { "expr": "1d20" } });
    let check = json!({ "command": "check", "args": { "skill": "stealth", "dc": 15 } });
    let say = |text: &str| json!({ "player_id": "player_alice", "message": text });
    // Warm: the player's name, the dice's seed, connections.
    model.set_script(plan(roll.clone()));
    model.let_go(1);
    child.post("/act", say("warm")).await.unwrap().expect(200);
    let mut found = Vec::new();
    for (what, plan_of, before_model, after) in [
        ("a roll: the end with its message and its dice", roll, 1, 1),
        ("a check: its fight, if there is one, and the sheet as well", check, 1, 4),
        ("what is refused: the record", json!({ "command": "bananas" }), 1, 1),
    ] {
        model.set_script(plan(plan_of));
        let (before, calls) = (statements(&child).await, model.request_count());
        let turn = tokio::spawn(child.post("/act", say(what)));
        asked(&model, calls + 1).await;
        let asking = statements(&child).await;
        model.let_go(1);
        turn.await.unwrap().unwrap().expect(200);
        let cost = (asking - before, statements(&child).await - asking);
        if cost != (before_model, after) {
            found.push((what, cost));
        }
    }
    let before = statements(&child).await;
    let cached = child.post("/act", say("a roll: the end with its message and its dice")).await.unwrap().expect(200);
    assert_eq!((cached.body["cached"].as_bool(), statements(&child).await - before), (Some(true), 2));
    assert!(found.is_empty(), "other statements than they should cost: {found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_costs_one_or_two() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start(&model).await;
    child.turn("innkeeper_bob", "I pay.", None).await.unwrap().expect(200);
    child.get("/npcs").await.expect(200);
    let memory = child.get("/memories").await.expect(200).items()[0]["id"].as_str().unwrap().to_owned();
    let mut found = Vec::new();
    for (path, most) in [
        ("/npcs/innkeeper_bob", 1),
        ("/characters/player_alice", 1),
        ("/owners/town_council_owner", 1),
        ("/lore/the_reach", 1),
        ("/npcs", 2),
        ("/characters", 2),
        ("/lore?scope=zone", 2),
        ("/memories", 2),
        ("/messages", 2),
        ("/turns", 2),
        (&format!("/memories/{memory}"), 2),
    ] {
        let before = statements(&child).await;
        child.get(path).await.expect(200);
        let cost = statements(&child).await - before;
        if cost > most {
            found.push((path.to_owned(), cost));
        }
    }
    assert!(found.is_empty(), "more statements than they should cost: {found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_in_a_fight_costs_three() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start(&model).await;
    let fight = json!({ "participants": [{ "id": "alice", "character_id": "player_alice", "initiative": 20 },
        { "id": "orc", "hp": 500, "max_hp": 500, "armor_class": 1, "is_enemy": true, "initiative": 1 }] });
    let before = statements(&child).await;
    let id = child.post("/encounters", fight).await.unwrap().expect(201).id();
    assert!(statements(&child).await - before <= 4, "to begin: campaign, records, rows");
    let actions = format!("/encounters/{id}/actions");
    // The fair stream's first roll also makes its seed.
    let attack = json!({ "action": "attack", "target_id": "orc", "weapon": "Unarmed Strike" });
    child.post(&actions, attack.clone()).await.unwrap().expect(200);
    child.post(&actions, json!({ "action": "advance_turn" })).await.unwrap().expect(200);
    let before = statements(&child).await;
    child.post(&actions, json!({ "action": "advance_turn" })).await.unwrap().expect(200);
    assert_eq!(statements(&child).await - before, 2, "read and hold it, write it");
    let before = statements(&child).await;
    let hit = child.post(&actions, attack).await.unwrap().expect(200);
    assert_eq!(hit.body["source"], "server", "{}", hit.text);
    assert_eq!(statements(&child).await - before, 3, "read and hold it, take a roll, write it");
    let before = statements(&child).await;
    child.get(&format!("/encounters/{id}")).await.expect(200);
    assert_eq!(statements(&child).await - before, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_costs_the_same_for_any_world() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start(&model).await;
    let turn = child.turn("innkeeper_bob", "Hello.", None).await.unwrap().expect(200).id();
    for round in 0..2 {
        for (body, most) in [
            (json!({ "at_turn": turn, "name": "Twin", "slug": format!("twin-{round}") }), 6),
            (json!({ "at_turn": turn }), 8),
            (json!({}), 7),
        ] {
            let before = statements(&child).await;
            child.post("/fork", body).await.unwrap().expect(201);
            assert_eq!(statements(&child).await - before, most, "place twice, campaign, turn, name, slug, copy, view");
        }
        for n in 0..30 {
            let lore = json!({ "title": format!("Lore {round} {n}"), "scope": "global", "content": "x" });
            child.post("/lore", lore).await.unwrap().expect(201);
        }
    }
}

/// A session of a game master's; its id.
async fn session(child: &Child, name: &str) -> String {
    let body = json!({ "client_id": name, "role": "gm", "dice": "server" });
    child.post("/sessions", body).await.unwrap().expect(201).id()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sessions_turn_costs_few_statements() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start(&model).await;
    let session = format!("/sessions/{}", session(&child, "table").await);
    let turns = format!("{session}/turns");
    let roll = json!({ "rolls": [{ "formula": "1d20+5" }] });
    let said = json!({ "events": [{ "type": "chat_message", "data": { "content": "Is anyone there?" } }] });
    let mut found = Vec::new();
    // Statements until the last model call, and from then on: a first roll is two, a roll one, words at the table are one to be
    // counted; a stream is saved twice and its end is read.
    for (what, speaks, steps, stream, until, after) in [
        ("the first, with the tenant's models, an overview and lore that is not kept yet", false, 1, false, 15, 1),
        ("whole", false, 1, false, 1, 1),
        ("streamed", false, 1, true, 1, 4),
        ("a first roll", false, 2, false, 3, 1),
        ("whole with a roll", false, 2, false, 2, 1),
        ("streamed with a roll", false, 2, true, 2, 4),
        ("whole after words", true, 1, false, 2, 1),
        ("whole after a roll", false, 1, false, 1, 1),
    ] {
        if speaks {
            child.post(&format!("{session}/events"), said.clone()).await.unwrap().expect(200);
        }
        let rolls = (1..steps).map(|_| Reply::tool("roll_dice", roll.clone()));
        model.set_script(Script::replies(rolls.chain([Reply::text("The bell rings.").held()])));
        let (before, calls) = (statements(&child).await, model.request_count());
        let turn = tokio::spawn(child.post(&turns, json!({ "stream": stream })));
        asked(&model, calls + steps).await;
        let asking = statements(&child).await;
        model.let_go(1);
        turn.await.unwrap().unwrap().expect(200);
        let cost = (asking - before, statements(&child).await - asking);
        if cost.0 > until || cost.1 > after {
            found.push((what, cost));
        }
    }
    assert!(found.is_empty(), "more statements than they should cost: {found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hearing_a_turn_costs_three() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start(&model).await;
    let turn = child.turn("innkeeper_bob", "Hello.", None).await.unwrap().expect(200).id();
    child.get("/npcs").await.expect(200);
    let before = statements(&child).await;
    let told = child.get(&format!("/turns/{turn}/events")).await.expect(200);
    assert!(told.text.contains("turn.completed"), "{}", told.text);
    assert_eq!(statements(&child).await - before, 3, "its campaign, whether it is theirs, and what it told");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bridge_costs_what_its_events_cost() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start(&model).await;
    let more = json!({ "role": "gm", "dice": "frontend" });
    let (mut socket, connected) = Socket::connect(child.url(), &prepared.credential, more).await;
    let session = connected["session_id"].as_str().unwrap().to_owned();
    let mut found = Vec::new();
    for (n, data) in [
        ("chat_message", json!({ "content": "Is anyone there?", "speaker": { "name": "Ann" } })),
        ("dice_roll", json!({ "formula": "1d20", "total": 9, "results": [9], "speaker": { "name": "Ann" } })),
        ("token_moved", json!({ "token_id": "t1", "x": 1, "y": 2 })),
    ] {
        let before = statements(&child).await;
        socket.send(json!({ "type": n, "request_id": n, "data": data })).await;
        socket.next_of("ack").await;
        found.push((n, statements(&child).await - before));
    }
    let call =
        json!({ "arguments": { "rolls": [{ "formula": "1d20" }] }, "session_id": session, "actor": { "type": "gm" } });
    let before = statements(&child).await;
    let rolling = tokio::spawn(child.post("/tools/roll_dice", call));
    socket.roll(json!([{ "formula": "1d20", "total": 7, "dice": [{ "faces": 20, "value": 7 }] }])).await;
    let rolled = rolling.await.unwrap().unwrap().expect(200);
    assert_eq!(rolled.body["result"]["source"], "frontend", "{}", rolled.text);
    found.push(("roll", statements(&child).await - before));
    let before = statements(&child).await;
    let fights = json!({ "arguments": {}, "session_id": session, "actor": { "type": "gm" } });
    child.post("/tools/get_encounter", fights).await.unwrap().expect(200);
    found.push(("get_encounter", statements(&child).await - before));
    let before = statements(&child).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    found.push(("a second of waiting", statements(&child).await - before));
    let costs = [
        ("chat_message", 2),
        ("dice_roll", 2),
        ("token_moved", 2),
        ("roll", 5),
        ("get_encounter", 8),
        // What the roll said is pushed when the journal is read next.
        ("a second of waiting", 1),
    ];
    // Once in half a second the key is looked at as well.
    let dear: Vec<_> = found.iter().zip(costs).filter(|((_, cost), (_, most))| *cost > most + 1).collect();
    assert!(dear.is_empty(), "more statements than they should cost: {dear:?}");
}

/// A turn adds to the ledger of its tenant's usage. Long ledgers must not make that slower, also with a plan from when it was short.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_ledger_costs_a_turn_nothing() {
    let prepared = Prepared::new().await;
    let mut db = sqlx::PgConnection::connect(&prepared.db.url).await.unwrap();
    let one = "SELECT count_usage(tenant_id, id, 'npc', NULL, NULL, jsonb_build_array(jsonb_build_object('id', gen_random_uuid(), 'profile', \
               'main', 'task', 'npc', 'model', 'm', 'llm_calls', 1, 'prompt_tokens', 1, 'cached_tokens', 0, 'completion_tokens', 1))) \
               FROM campaign LIMIT 1";
    let tenant = "SELECT set_config('app.tenant_id', id::text, false) FROM tenant";
    for setting in ["SET enable_seqscan = off", "SET jit = off", tenant] {
        sqlx::query(setting).execute(&mut db).await.unwrap();
    }
    let read = async |db: &mut sqlx::PgConnection| {
        let explain = sqlx::AssertSqlSafe(format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {one}"));
        let plan: serde_json::Value = sqlx::query_scalar(explain).fetch_one(db).await.unwrap();
        plan[0]["Plan"]["Shared Hit Blocks"].as_u64().unwrap()
    };
    for _ in 0..20 {
        sqlx::query(one).execute(&mut db).await.unwrap();
    }
    let short = read(&mut db).await;
    let more = "INSERT INTO usage_entry (tenant_id, id, campaign_id, kind, profile, task, model, llm_calls, prompt_tokens, cached_tokens, \
                completion_tokens) SELECT tenant_id, gen_random_uuid(), id, 'npc', 'main', 'npc', 'm', 1, 1, 0, 1 \
                FROM (SELECT * FROM campaign LIMIT 1) c, generate_series(1, 5000)";
    sqlx::query(more).execute(&mut db).await.unwrap();
    let long = read(&mut db).await;
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM usage_entry").fetch_one(&mut db).await.unwrap();
    assert!(rows > 5000, "{rows} rows in the ledger");
    assert!(long <= short + 20, "{long} pages instead of {short}");
}
