//! Turns whose last words meet a database that goes away, and reads that meet it.

use std::time::Duration;

use rehearsal::{Reply, Script};
use serde_json::json;
use sqlx::Executor;

use super::{MOMENTS, billed, cuttable, remember, says, told, turns, until};
use crate::support::{Server, cut::Moment};

#[tokio::test(flavor = "multi_thread")]
async fn an_entitys_answer_is_there_once() {
    let (server, cutter) = cuttable().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (n, moment) in (1..).zip(MOMENTS) {
        let word = format!("Marigolds {n}");
        says(&server, [Reply::text(word.clone())]);
        cutter.at(&word, moment, 1);
        let turn = tenant.npc_turn("port-town", "innkeeper_bob", "player_alice", "Hello.").await.expect(200);
        assert_eq!(turn.body["narrative"], word.as_str(), "{moment:?}");
        assert_eq!((cutter.cuts(), told(&world, &word).await), (1, 1), "{moment:?}");
        let calls = server.model.request_count() as u64;
        assert_eq!((calls, billed(&tenant).await), (n, n), "{moment:?}: one call of the model, billed once");
    }
    assert!(turns(&world).await.iter().all(|turn| turn["status"] == "succeeded"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_has_ended_has_left_its_place() {
    let (server, cutter) = cuttable().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    says(&server, [Reply::text("Marigolds."), Reply::text("Primroses.")]);
    // The server does not hear that the first turn's end is stored, and everybody else can read it.
    cutter.at("Marigolds.", Moment::Held, 1);
    let first = world.bob("player_alice", "Hello.");
    let second = async {
        until("the end", || async { turns(&world).await.iter().any(|turn| turn["status"] == "succeeded") }).await;
        let second = world.bob("player_alice", "And?").await;
        cutter.let_through();
        second.expect(200)
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.expect(200).body["narrative"], "Marigolds.");
    assert_eq!(second.body["narrative"], "Primroses.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sessions_answer_and_its_roll_are_there_once() {
    let (server, cutter) = cuttable().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = world.post("/sessions", json!({ "client_id": "t", "role": "gm" })).await.expect(201).id();
    for (n, moment) in (1..).zip(MOMENTS) {
        // What is said by a tool, what is rolled, and the last words: each is cut off.
        for word in ["Primrose", "Foxglove"] {
            let (first, last) = (format!("Primrose {n} {word}"), format!("Foxglove {n} {word}"));
            let say = Reply::tool("post_message", json!({ "type": "ic", "content": first }));
            let roll = Reply::tool("roll_dice", json!({ "rolls": [{ "formula": "1d20" }] }));
            says(&server, [say, roll, Reply::text(last.clone())]);
            cutter.at(&format!("{word} {n} {word}"), moment, 1);
            let turn = world.post(&format!("/sessions/{session}/turns"), json!({})).await.expect(200);
            let at = format!("{moment:?} at {word}: {}", turn.text);
            assert_eq!((turn.body["status"].as_str(), cutter.cuts()), (Some("succeeded"), 1), "{at}");
            assert_eq!((told(&world, &first).await, told(&world, &last).await), (1, 1), "{at}");
        }
    }
    assert_eq!((server.model.request_count(), billed(&tenant).await), (12, 12));
    let counter = world.get("/dice/seeds").await.expect(200).items()[0]["counter"].as_i64();
    assert_eq!(counter, Some(4), "no number was skipped: what was rolled was not looked at twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rules_turn_and_a_planned_command_are_there_once() {
    let (server, cutter) = cuttable().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (n, moment) in (1..).zip(MOMENTS) {
        let word = format!("Thistle {n}");
        says(&server, [Reply::tool("mark_no_check", json!({ "reason": word }))]);
        cutter.at(&word, moment, 1);
        let body = json!({ "player_id": "player_alice", "action": "I look around." });
        world.post("/rules/resolve", body).await.expect(200);
        assert_eq!(cutter.cuts(), 1, "{moment:?}");

        let plan = json!({ "command": "roll", "args": { "expr": "1d20" } });
        says(&server, [Reply::text(plan.to_string())]);
        cutter.at("\"outcome\":\"executed\"", moment, 1);
        let body = json!({ "player_id": "player_alice", "message": format!("I roll, {n}.") });
        let act = world.post("/act", body).await.expect(200);
        assert_eq!((act.body["outcome"].as_str(), cutter.cuts()), (Some("executed"), 1), "{moment:?}: {}", act.text);
        let counter = world.get("/dice/seeds").await.expect(200).items()[0]["counter"].as_i64();
        assert_eq!(act.body["result"]["counter"].as_i64(), counter, "{moment:?}: these dice, and no others");
    }
    assert_eq!((server.model.request_count(), billed(&tenant).await), (4, 4));
    assert_eq!(turns(&world).await.iter().filter(|turn| turn["status"] == "succeeded").count(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commands_effect_is_there_once() {
    let (server, cutter) = cuttable().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (n, moment) in (1..).zip(MOMENTS) {
        let plan = json!({ "command": "sheet.create", "args": { "name": format!("Nell {n}") } });
        says(&server, [Reply::text(plan.to_string())]);
        cutter.at("COMMIT\0", moment, 1);
        let body = json!({ "player_id": "player_alice", "message": format!("A new one: Nell {n}.") });
        let act = world.post("/act", body).await.expect(200);
        assert_eq!((act.body["outcome"].as_str(), cutter.cuts()), (Some("executed"), 1), "{moment:?}: {}", act.text);
        let made = world.get(&format!("/characters?q=Nell%20{n}")).await.expect(200);
        assert_eq!(made.items().len(), 1, "{moment:?}: {}", made.text);
        assert_eq!((server.model.request_count(), billed(&tenant).await), (n, n as u64));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_tools_is_done_once() {
    let (server, cutter) = cuttable().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (n, moment) in (1..).zip(MOMENTS) {
        says(&server, [remember(&format!("Note {n}.")).held(), Reply::text("Noted.")]);
        let cut = async {
            until("the call", async || server.model.request_count() == 2 * n - 1).await;
            // The beginning is committed while the model is asked.
            until("the turn is there", async || {
                let running = "SELECT count(*) FROM turn WHERE status = 'running'";
                sqlx::query_scalar::<_, i64>(running).fetch_one(&mut server.owner().await).await.unwrap() == 1
            })
            .await;
            cutter.at("COMMIT\0", moment, 1);
            server.model.let_go(1);
        };
        let turn = tenant.npc_turn("port-town", "innkeeper_bob", "player_alice", "Note this.");
        let (turn, ()) = tokio::join!(turn, cut);
        turn.expect(200);
        assert_eq!((cutter.cuts(), server.model.request_count()), (1, 2 * n), "{moment:?}");
    }
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await[1..], ["Note 1.", "Note 2."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_connection_ended_while_the_model_answers() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    says(&server, [remember("Kept.").held(), Reply::text("Thanks.").held()]);
    let turn = tenant.npc_turn("port-town", "innkeeper_bob", "player_alice", "I pay.");
    let ended = async {
        // With them goes the sign of life, and somebody looks for turns whose server is gone.
        for calls in [1, 2] {
            until("the call", async || server.model.request_count() == calls).await;
            let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
            server.owner().await.execute(end).await.unwrap();
            server.model.let_go(1);
        }
    };
    let (turn, ()) = tokio::join!(turn, ended);
    assert_eq!(turn.expect(200).body["narrative"], "Thanks.");
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await[1..], ["Kept."]);
    assert_eq!((server.model.request_count(), billed(&tenant).await), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_for_seconds_costs_no_answer() {
    let (server, cutter) = cuttable().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    says(&server, [Reply::text("Still here.").held()]);
    let turn = tenant.npc_turn("port-town", "innkeeper_bob", "player_alice", "Hello?");
    let outage = async {
        until("the call", async || server.model.request_count() == 1).await;
        cutter.refuse(true);
        server.model.let_go(1);
        tokio::time::sleep(Duration::from_secs(4)).await;
        cutter.refuse(false);
    };
    let (turn, ()) = tokio::join!(turn, outage);
    assert_eq!(turn.expect(200).body["narrative"], "Still here.");
    assert_eq!((server.model.request_count(), told(&world, "Still here.").await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_others_are_in_the_way_of_is_tried_again() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    // Each end fails three times: twice by what PostgreSQL says of conflicts, once by a statement that it ended.
    for statement in [
        "CREATE SEQUENCE met; GRANT USAGE ON met TO tavernkeep_app",
        "CREATE FUNCTION meets() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ DECLARE n bigint := nextval('met') % 4; BEGIN
             IF n = 1 THEN RAISE EXCEPTION 'Deadlock entdeckt' USING ERRCODE = '40P01'; END IF;
             IF n = 2 THEN RAISE EXCEPTION 'konnte Zugriff nicht serialisieren' USING ERRCODE = '40P01'; END IF;
             IF n = 3 THEN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); END IF;
             RETURN NEW; END $$",
        "CREATE TRIGGER meets BEFORE UPDATE ON turn FOR EACH ROW WHEN (NEW.status = 'succeeded') EXECUTE FUNCTION meets()",
    ] {
        server.owner().await.execute(statement).await.unwrap();
    }
    says(&server, [Reply::text("First.")]);
    let turn = tenant.npc_turn("port-town", "innkeeper_bob", "player_alice", "One.").await.expect(200);
    assert_eq!((turn.body["narrative"].as_str(), told(&world, "First.").await), (Some("First."), 1));
    says(&server, [Reply::tool("mark_no_check", json!({ "reason": "Nothing." }))]);
    let body = json!({ "player_id": "player_alice", "action": "I look around." });
    world.post("/rules/resolve", body).await.expect(200);
    assert_eq!((server.model.request_count(), billed(&tenant).await), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_fails_has_its_calls_billed() {
    let (server, cutter) = cuttable().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([remember("Never."), Reply::status(403)]));
    cutter.at("llm_unavailable", Moment::Before, 2);
    let failed = tenant.npc_turn("port-town", "innkeeper_bob", "player_alice", "Hello.").await;
    assert_eq!((failed.status, cutter.cuts()), (502, 2), "{}", failed.text);
    assert_eq!((billed(&tenant).await, turns(&world).await[0]["status"].as_str()), (1, Some("failed")));
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.len(), 1, "what it did is taken back");
}

/// Reads take no transaction, so nothing else finds out first that their connection is dead.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_skips_connections_that_were_ended() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut owner = server.owner().await;
    for round in 0..5 {
        for path in ["/npcs/innkeeper_bob", "/npcs"] {
            world.get(path).await.expect(200);
            let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
            owner.execute(end).await.unwrap();
            let read = world.get(path).await;
            assert_eq!(read.status, 200, "{path}, round {round}: {}", read.text);
        }
    }
}
