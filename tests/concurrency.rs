//! Many at once: nothing is lost, nothing waits for ever, and the journal has no gap.

use std::sync::Arc;

use edge::caller::access::TABLE;
use futures_util::future::join_all;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor};
use tokio::sync::Barrier;

use crate::support::{Rows, Server, World, patiently};

/// Every change of the campaign; fails if a number is missing or met twice.
async fn dense_journal(world: &World<'_>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let page = world.get(&format!("/changes?after={}&limit=200", all.len())).await.expect(200);
        all.extend(page.items().iter().cloned());
        if page.body["has_more"] == false {
            break;
        }
    }
    for (n, change) in all.iter().enumerate() {
        assert_eq!(change["seq"].as_u64(), Some(n as u64 + 1));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_memories_at_once_are_twenty_memories() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let barrier = Arc::new(Barrier::new(20));
    let calls = (0..20).map(|n| {
        let (world, barrier) = (&world, barrier.clone());
        async move {
            let call = json!({ "actor": { "type": "npc", "id": "innkeeper_bob" },
                "arguments": { "player_id": "player_alice", "memory_string": format!("Note {n}.") } });
            barrier.wait().await;
            patiently(|| world.post("/tools/NPC_memorize", call.clone())).await.expect(200)
        }
    });
    join_all(calls).await;
    let mut memories = world.memories("npcs/innkeeper_bob", "player_alice").await.split_off(1);
    memories.sort();
    let mut expected: Vec<_> = (0..20).map(|n| format!("Note {n}.")).collect();
    expected.sort();
    assert_eq!(memories, expected);
    dense_journal(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_npcs_answer_at_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for n in 0..20 {
        let npc = json!({ "slug": format!("npc_{n}"), "name": format!("Npc {n}"), "available_tools": ["NPC_memorize"],
            "owner_ids": ["town_council_owner"] });
        world.post("/npcs", npc).await.expect(201);
    }
    // The rehearsal model remembers who pays, by itself.
    let turns = (0..20).map(|n| {
        let (world, tenant) = (&world, &tenant);
        async move {
            for tip in 0..3 {
                let (npc, action) = (format!("npc_{n}"), format!("I pay {n} coins and a tip of {tip}."));
                let turn = patiently(|| tenant.npc_turn(&world.slug, &npc, "player_alice", &action)).await.expect(200);
                assert_eq!(turn.body["tool_calls"][0]["status"], "succeeded");
            }
        }
    });
    join_all(turns).await;
    let changes = dense_journal(&world).await;
    let count = |table: &str| changes.iter().filter(|c| c["table"] == table && c["origin"] == "turn").count();
    assert_eq!((count("memory"), count("message")), (60, 120));
    for n in 0..20 {
        let memories = world.memories(&format!("npcs/npc_{n}"), "player_alice").await;
        assert_eq!(memories.len(), 3);
        assert!(memories.iter().all(|m| m.contains(&format!("{n} coins"))), "{memories:?}");
    }
}

/// Writers that touch the same rows and heads from all sides: nobody is told of a deadlock.
#[tokio::test(flavor = "multi_thread")]
async fn broadcasts_and_edits_do_not_wait_for_each_other_for_ever() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("", json!({ "settings": { "memories_about_others": true } })).await.expect(200);
    for n in 0..6 {
        let npc = json!({ "slug": format!("npc_{n}"), "name": format!("Npc {n}"), "available_tools": ["NPC_memorize"],
            "owner_ids": ["town_council_owner"] });
        world.post("/npcs", npc).await.expect(201);
    }
    // Two memories in either order, so that batches meet head on.
    let pair = |first: &str, second: &str, word: &str| {
        Reply::tool("NPC_memorize", json!({ "player_id": first, "memory_string": format!("One, {word}") }))
            .with_tool("NPC_memorize", json!({ "player_id": second, "memory_string": format!("Two, {word}") }))
    };
    let step =
        |first: &str, second: &str, word: &str| rehearsal::Step::from(pair(first, second, word)).when_contains(word);
    let mut steps = Vec::new();
    for n in 0..12 {
        steps.push(step("player_alice", "player_mallory", &format!("forth {n}!")));
        steps.push(step("player_mallory", "player_alice", &format!("back {n}!")));
    }
    steps.push(rehearsal::Step::from(Reply::text("Done.")).sticky());
    server.model.set_script(Script::replies(steps));
    world.free_of_charge().await;
    let turns = async |player: &'static str, word: &'static str| {
        for n in 0..12 {
            let words = format!("{word} {n}!");
            let turn = patiently(|| world.bob(player, &words)).await.expect(200);
            for call in turn.body["tool_calls"].as_array().unwrap() {
                assert_eq!(call["status"], "succeeded", "{call}");
            }
        }
    };
    let broadcasts = async |player: &'static str| {
        for _ in 0..12 {
            let call = json!({ "actor": { "type": "owner", "id": "town_council_owner" },
                "arguments": { "player_id": player, "memory_string": "An ally." } });
            let told = patiently(|| world.post("/tools/OWNER_memorize_dependables", call.clone())).await.expect(200);
            let id = told.body["result"]["broadcast_id"].as_str().unwrap().to_owned();
            let path = format!("/broadcasts/{id}");
            patiently(|| world.delete(&path)).await.expect(204);
        }
    };
    let moves = async |slug: &'static str, order: [&'static str; 2]| {
        for n in 0..12 {
            let lore = json!({ "scope": "zone", "associated_id": order[n % 2] });
            let (entry, npc) = (format!("/lore/{slug}"), format!("/npcs/npc_{}", n % 6));
            patiently(|| world.patch(&entry, lore.clone())).await.expect(200);
            patiently(|| world.patch(&npc, json!({ "location": order[n % 2] }))).await.expect(200);
        }
    };
    tokio::join!(
        turns("player_alice", "forth"),
        turns("player_mallory", "back"),
        broadcasts("player_alice"),
        broadcasts("player_mallory"),
        moves("the_square", ["harbour", "town_square"]),
        moves("the_harbour", ["town_square", "harbour"]),
    );
    dense_journal(&world).await;
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.len(), 1 + 24);
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_mallory").await.len(), 24);
    assert!(world.memories("npcs/npc_0", "player_alice").await.is_empty());
}

/// Whoever edits at the same time with the version they know: one wins, the others are told.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_conditional_edits_wins() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let path = world.path("/lore/the_reach");
    let etag = tenant.get(&path).await.expect(200).header("etag").to_owned();
    let (tenant, path, etag) = (&tenant, path.as_str(), etag.as_str());
    let edits = (0..10).map(|n| {
        let edit = move || {
            let request = tenant.request(reqwest::Method::PATCH, path).header("if-match", etag);
            tenant.send(request.json(&json!({ "content": format!("Edit {n}.") })))
        };
        patiently(edit)
    });
    let answers = join_all(edits).await;
    assert_eq!(answers.iter().filter(|a| a.status == 200).count(), 1);
    assert!(answers.iter().all(|a| a.status == 200 || a.body["code"] == "precondition_failed"));
    let winner = answers.iter().find(|a| a.status == 200).unwrap();
    assert_eq!(tenant.get(path).await.expect(200).body["content"], winner.body["content"]);
}

/// Whoever inserts a row that refers to another one locks the other's key until the end of the transaction. No change of the other row
/// waits for that: if it did, two transactions could wait for each other.
#[tokio::test(flavor = "multi_thread")]
async fn a_reference_to_a_row_holds_up_no_change_of_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "canary").await;
    server.model.set_script(Script::always(Reply::text("Hm.")));
    let mut holder = server.owner().await;
    let referred = "SELECT DISTINCT confrelid::regclass::text FROM pg_constraint WHERE contype = 'f' ORDER BY 1";
    let tables: Vec<String> = sqlx::query_scalar(referred).fetch_all(&mut holder).await.unwrap();
    assert!(tables.len() > 5, "{tables:?}");
    holder.execute("BEGIN").await.unwrap();
    for table in tables {
        holder.execute(AssertSqlSafe(format!("SELECT FROM {table} FOR KEY SHARE"))).await.unwrap();
    }
    let mut changes = 0;
    for route in TABLE.iter().filter(|route| !matches!(route.method, "GET" | "DELETE")) {
        let answer = rows.send(&tenant, route).await;
        assert_ne!(answer.status, 503, "{} {} waits: {}", route.method, route.path, answer.text);
        changes += usize::from(answer.status < 300);
    }
    assert!(changes > 40, "only {changes} changes were made");
}

/// A character moves and acts at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_and_a_reported_action_do_not_wait_for_each_other() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("", json!({ "settings": { "report_actions": { "moves": true } } })).await.expect(200);
    let owner =
        json!({ "slug": "of_humans", "name": "Of Humans", "monitored_aspect": "race", "associated_id": "human" });
    world.post("/owners", owner).await.expect(201);
    let barrier = Arc::new(Barrier::new(8));
    let calls = (0..8).map(|n| {
        let (world, barrier) = (&world, barrier.clone());
        async move {
            barrier.wait().await;
            for step in 0..20 {
                if n % 2 == 0 {
                    let to = json!({ "location": format!("place_{n}_{step}") });
                    world.patch("/characters/player_alice", to).await.expect(200);
                } else {
                    let act = json!({ "player_id": "player_alice", "type": "say", "text": "Hm." });
                    world.post("/actions", act).await.expect(202);
                }
            }
        }
    });
    join_all(calls).await;
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let deadlocks: i64 = sqlx::query_scalar(deadlocks).fetch_one(&mut server.owner().await).await.unwrap();
    assert_eq!(deadlocks, 0);
}
