//! Taking a turn back: every effect or none, as forward writes, and out of the conversation.

use base::clock;
use std::collections::BTreeMap;

use edge::caller::Scope;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Answer, Server, World};

const BOB: &str = "npcs/innkeeper_bob";

fn remember(tool: &str, words: &str) -> Reply {
    Reply::tool(tool, json!({ "player_id": "player_alice", "memory_string": words }))
}

async fn undo(world: &World<'_>, turn: &Answer) -> Answer {
    world.post(&format!("/turns/{}/undo", turn.id()), json!({})).await
}

/// Everything that is in the campaign's journal.
async fn journal(world: &World<'_>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let after = all.last().map_or(0, |c| c["seq"].as_i64().unwrap());
        let page = world.get(&format!("/changes?after={after}&limit=200")).await.expect(200);
        all.extend(page.items().iter().cloned());
        if page.body["has_more"] == false {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undone_turn_leaves_nothing_but_its_record() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("", json!({ "settings": { "memories_about_others": true } })).await.expect(200);
    let base = async || world.prompt("innkeeper_bob", "player_alice", "Hello").await["messages"].clone();
    let before = base().await;
    let memories = world.memories(BOB, "player_alice").await;
    let two = remember("NPC_memorize", "One.")
        .with_tool("NPC_memorize", json!({ "player_id": "player_mallory", "memory_string": "Two." }));
    server.model.set_script(Script::replies([two, Reply::text("Noted, canary.")]));
    let turn = world.bob("player_alice", "I pay, canary.").await.expect(200);
    assert!(base().await.to_string().contains("canary"));
    let undone = undo(&world, &turn).await.expect(200);
    assert_eq!(undone.body["turn_id"], turn.body["id"]);
    assert_eq!(undone.body["changes_reverted"], 4);
    assert_eq!(base().await, before, "the next prompt is as if the turn had not been");
    assert_eq!(world.memories(BOB, "player_alice").await, memories);
    assert!(world.memories(BOB, "player_mallory").await.is_empty());
    assert!(world.get("/messages").await.expect(200).items().is_empty());
    let record = world.get(&format!("/turns/{}", turn.id())).await.expect(200).body;
    assert!(record["undone_at"].is_string());
    assert_eq!((record["status"].as_str(), record["narrative"].as_str()), (Some("succeeded"), Some("Noted, canary.")));
    undo(&world, &turn).await.problem(409, "conflict");
    // The conversation goes on from before.
    server.model.set_script(Script::always(Reply::text("Welcome.")));
    world.bob("player_alice", "Hello").await.expect(200);
    let sent = server.model.requests().pop().unwrap();
    assert_eq!(sent["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broadcast_is_undone_for_everyone() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for n in 0..5 {
        let npc = json!({ "slug": format!("guard_{n}"), "name": "Guard", "owner_ids": ["town_council_owner"] });
        world.post("/npcs", npc).await.expect(201);
    }
    server.model.set_script(Script::replies([
        remember("OWNER_memorize_dependables", "An ally.")
            .with_tool("OWNER_memorize", json!({ "player_id": "player_alice", "memory_string": "Own." })),
        Reply::text("So be it."),
    ]));
    let turn = tenant.owner_turn(&world.slug, "town_council_owner", "player_alice", "I help.").await.expect(200);
    assert_eq!(turn.body["tool_calls"][0]["result"]["count"], 6);
    // One of them is gone by now: what is not there needs no undoing.
    world.delete("/npcs/guard_3").await.expect(204);
    undo(&world, &turn).await.expect(200);
    for n in [0, 1, 2, 4] {
        assert!(world.memories(&format!("npcs/guard_{n}"), "player_alice").await.is_empty());
    }
    assert_eq!(world.memories(BOB, "player_alice").await.len(), 1);
    assert_eq!(world.memories("owners/town_council_owner", "player_alice").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_since_stops_an_undo_whole() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([
        remember("NPC_memorize", "One.")
            .with_tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "Two." }))
            .with_tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "Three." })),
        Reply::text("Noted."),
    ]));
    let turn = world.bob("player_alice", "I pay.").await.expect(200);
    let id = |n: usize| turn.body["tool_calls"][n]["result"]["memory_id"].as_str().unwrap().to_owned();
    world.patch(&format!("/memories/{}", id(1)), json!({ "text": "By a person." })).await.expect(200);
    world.delete(&format!("/memories/{}", id(2))).await.expect(204);
    let length = journal(&world).await.len();
    let refused = undo(&world, &turn).await.problem(409, "undo_conflict");
    assert_eq!(refused.pointers(), [format!("/memory/{}", id(1))], "the changed row; a deleted one is undone already");
    assert_eq!(refused.body["errors"][0]["code"], "changed_since");
    assert_eq!(world.memories(BOB, "player_alice").await[1..], ["One.", "By a person."]);
    assert_eq!(world.get("/messages").await.expect(200).items().len(), 2);
    assert_eq!(world.get(&format!("/turns/{}", turn.id())).await.expect(200).body["undone_at"], Value::Null);
    assert_eq!(journal(&world).await.len(), length, "nothing was written");
    // Put back as it was, it can be undone. The version has risen; the content counts.
    world.patch(&format!("/memories/{}", id(1)), json!({ "text": "Two." })).await.expect(200);
    undo(&world, &turn).await.expect(200);
    assert_eq!(world.memories(BOB, "player_alice").await.len(), 1);
}

/// What cached prompts compare of conversations and memories.
async fn stamps(server: &Server) -> BTreeMap<String, i64> {
    let mut db = server.owner().await;
    let heads = sqlx::query_as("SELECT key, version FROM version_head WHERE key LIKE 'memory:%' OR key LIKE 'talk:%'");
    heads.fetch_all(&mut db).await.unwrap().into_iter().collect()
}

/// The journal keeps both the turn and its undoing; nothing is rewritten and no version goes back.
#[tokio::test(flavor = "multi_thread")]
async fn an_undo_is_written_forward() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([remember("NPC_memorize", "One."), Reply::text("Noted.")]));
    let turn = world.bob("player_alice", "I pay.").await.expect(200);
    let stamped = stamps(&server).await;
    let before = journal(&world).await;
    undo(&world, &turn).await.expect(200);
    let after = journal(&world).await;
    assert_eq!(after[..before.len()], before[..]);
    let reverts = &after[before.len()..];
    assert_eq!(reverts.len(), 3);
    for (n, change) in reverts.iter().enumerate() {
        assert_eq!((change["op"].as_str(), change["origin"].as_str()), (Some("delete"), Some("revert")));
        assert_eq!(change["turn_id"], turn.body["id"]);
        assert_eq!(change["seq"].as_i64().unwrap(), i64::try_from(before.len() + n + 1).unwrap());
    }
    // The other way round: newest first.
    assert_eq!(reverts[2]["table"], "memory");
    // The stamps that prompts compare have risen as well, each that the turn had raised.
    let now = stamps(&server).await;
    let risen: Vec<_> =
        now.iter().filter(|(key, version)| stamped.get(*key).is_some_and(|before| before < version)).collect();
    assert_eq!(risen.len(), 2, "conversation and memories: {stamped:?} {now:?}");
    assert!(now.iter().all(|(key, version)| stamped.get(key).is_some_and(|before| before <= version)));
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_may_be_undone_in_any_order() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut turns = Vec::new();
    for n in 0..4 {
        server.model.set_script(Script::replies([
            remember("NPC_memorize", &format!("Note {n}.")),
            Reply::text(format!("Answer {n}.")),
        ]));
        turns.push(world.bob("player_alice", &format!("Action {n}.")).await.expect(200));
    }
    undo(&world, &turns[1]).await.expect(200);
    undo(&world, &turns[3]).await.expect(200);
    let prompt = world.prompt("innkeeper_bob", "player_alice", "Hello").await["messages"].to_string();
    for (n, there) in [(0, true), (1, false), (2, true), (3, false)] {
        for words in ["Note", "Answer", "Action"] {
            assert_eq!(prompt.contains(&format!("{words} {n}.")), there, "{words} {n}");
        }
    }
    undo(&world, &turns[0]).await.expect(200);
    undo(&world, &turns[2]).await.expect(200);
    assert_eq!(world.memories(BOB, "player_alice").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_undo_what() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([remember("NPC_memorize", "One."), Reply::text("Noted.")]));
    let turn = world.bob("player_alice", "I pay.").await.expect(200);
    let path = world.path(&format!("/turns/{}/undo", turn.id()));
    let most = [Scope::Read, Scope::Write, Scope::Play, Scope::Tools, Scope::Admin];
    tenant.with_scopes(&most).await.post(&path, json!({})).await.problem(403, "forbidden");
    server.tenant("rival").await.post(&path, json!({})).await.problem(404, "not_found");
    let other = World::make(&tenant, "elsewhere").await;
    undo(&other, &turn).await.problem(404, "not_found");
    world.post(&format!("/turns/{}/undo", clock::id()), json!({})).await.problem(404, "not_found");
    // With a key, once: the second time is the first answer again.
    let gm = tenant.with_scopes(&[Scope::Gm]).await;
    let first = gm.post_with_key(&path, "k", json!({})).await.expect(200);
    let again = gm.post_with_key(&path, "k", json!({})).await.expect(200);
    assert_eq!(first.body, again.body);
    assert_eq!(again.header("idempotency-replayed"), "true");
    // What failed left nothing to undo.
    server.model.set_script(Script::replies([remember("NPC_memorize", "One."), Reply::status(500)]));
    let failed = world.bob("player_alice", "I pay.").await.problem(502, "llm_unavailable");
    let id = failed.body["turn_id"].as_str().unwrap();
    world.post(&format!("/turns/{id}/undo"), json!({})).await.problem(409, "conflict");
}

/// A failed turn that was to keep its effects has something to undo; and its key may then try again.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_turn_that_kept_its_effects_can_be_undone() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let path = world.path("/npcs/innkeeper_bob/turns");
    let body = json!({ "player_id": "player_alice", "action": "I pay.", "on_failure": "keep" });
    server.model.set_script(Script::replies([remember("NPC_memorize", "One."), Reply::status(500)]));
    let failed = tenant.post_with_key(&path, "k", body.clone()).await.problem(502, "llm_unavailable");
    assert_eq!(world.memories(BOB, "player_alice").await.len(), 2);
    let undo = format!("/turns/{}/undo", failed.body["turn_id"].as_str().unwrap());
    assert_eq!(world.post(&undo, json!({})).await.expect(200).body["changes_reverted"], 1);
    assert_eq!(world.memories(BOB, "player_alice").await.len(), 1);
    world.post(&undo, json!({})).await.problem(409, "conflict");
    server.model.set_script(Script::replies([remember("NPC_memorize", "Two."), Reply::text("Noted.")]));
    let done = tenant.post_with_key(&path, "k", body).await.expect(200);
    assert_eq!(done.body["id"], failed.body["turn_id"]);
    assert_eq!(world.get(&format!("/turns/{}", done.id())).await.expect(200).body["undone_at"], Value::Null);
    assert_eq!(world.post(&undo, json!({})).await.expect(200).body["changes_reverted"], 3);
    assert_eq!(world.memories(BOB, "player_alice").await.len(), 1);
}

/// A turn that still runs is cancelled, not undone; two undos at a time are one.
#[tokio::test(flavor = "multi_thread")]
async fn undoing_meets_others() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([Reply::text("Hm.").held()]));
    let early = async {
        let id = loop {
            let turns = world.get("/turns").await.expect(200);
            if let Some(turn) = turns.items().first() {
                break turn["id"].as_str().unwrap().to_owned();
            }
        };
        world.post(&format!("/turns/{id}/undo"), json!({})).await.problem(409, "turn_in_progress");
        server.model.let_go(1);
    };
    tokio::join!(world.bob("player_alice", "Hello"), early).0.expect(200);
    server.model.set_script(Script::replies([remember("NPC_memorize", "One."), Reply::text("Noted.")]));
    let turn = world.bob("player_alice", "I pay.").await.expect(200);
    let answers = futures_util::future::join_all((0..4).map(|_| undo(&world, &turn))).await;
    let mut statuses: Vec<_> = answers.iter().map(|a| a.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409]);
}

/// Somebody made by a turn who has memories or has spoken since does not go with it; somebody who has been deleted is gone.
#[tokio::test(flavor = "multi_thread")]
async fn who_was_made_and_is_remembered_stays() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let plan = json!({ "plan": { "command": "sheet.create", "args": { "name": "Aria" } } }).to_string();
    server.model.set_script(Script::always(Reply::text(plan)));
    let made = async || {
        let made =
            world.post("/act", json!({ "player_id": "player_alice", "message": "I make Aria." })).await.expect(200);
        assert_eq!(made.body["outcome"], "executed", "{}", made.text);
        format!("/turns/{}/undo", made.body["turn_id"].as_str().unwrap())
    };
    let undo = made().await;
    let memory = json!({ "player_id": "aria", "text": "Sings." });
    let memory = world.post(&format!("/{BOB}/memories"), memory).await.expect(201).id();
    let refused = world.post(&undo, json!({})).await.problem(409, "undo_conflict");
    assert_eq!(refused.body["errors"][0]["code"], "used_since");
    assert_eq!(world.memories(BOB, "aria").await, ["Sings."]);
    world.delete(&format!("/memories/{memory}")).await.expect(204);
    assert_eq!(world.post(&undo, json!({})).await.expect(200).body["changes_reverted"], 1);
    let undo = made().await;
    world.delete("/characters/aria").await.expect(204);
    assert_eq!(world.post(&undo, json!({})).await.expect(200).body["changes_reverted"], 0);
}
