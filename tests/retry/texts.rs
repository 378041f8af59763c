//! Long texts and much lore keep nobody else waiting; what of a conversation cannot be read costs itself alone.

use std::sync::atomic::{AtomicBool, Ordering};

use edge::users::Role;
use futures_util::future::join;
use rehearsal::Reply;
use serde_json::json;
use sqlx::Executor;

use super::says;
use crate::{admin::Visitor, support::Server};

/// A text that takes long to count: no word of it is a known one.
fn long(chars: usize) -> String {
    (0..chars).map(|n| char::from_u32(0x4e00 + (n as u32 * 7919) % 0x5000).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn others_are_answered_while_a_long_text_is_counted() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let text = long(99_000);
    // On a server of one thread, which answers one or two while it still receives the text.
    let mut most = 0;
    for _ in 0..10 {
        let is_counted = AtomicBool::new(false);
        let counted = async {
            mara.post("/admin/c/port-town/lore/preview", &[("content", &text)]).await.expect(200);
            is_counted.store(true, Ordering::Relaxed);
        };
        let asked = async {
            let mut answered = 0;
            while !is_counted.load(Ordering::Relaxed) {
                world.get("/npcs/innkeeper_bob").await.expect(200);
                answered += 1;
            }
            answered
        };
        most = most.max(join(counted, asked).await.1);
        if most > 5 {
            return;
        }
    }
    panic!("at most {most} were answered meanwhile");
}

#[tokio::test(flavor = "multi_thread")]
async fn lore_that_does_not_fit_is_not_looked_at() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    // One entry fills all there is room for; a thousand more wait for the same word.
    let filler = "Stone upon stone. ".repeat(2000);
    for n in 0..40 {
        let lore = json!({ "slug": format!("stone_{n}"), "title": format!("Stone {n}"), "scope": "global", "activation": "keyword",
            "keys": ["stone"], "content": if n == 0 { filler.clone() } else { format!("A stone, number {n}.") }, "priority": 100 - n });
        world.post("/lore", lore).await.expect(201);
    }
    let shown = world.prompt("innkeeper_bob", "player_alice", "What of the stone?").await;
    let turn = shown["sections"].as_array().unwrap().iter().find(|s| s["name"] == "turn").unwrap();
    let told = turn["text"].as_str().unwrap().matches("<lore entry=").count();
    assert!((1..40).contains(&told), "{told}: what fits is told");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_cannot_be_read_costs_its_exchange_alone() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    for n in 1..=3 {
        says(&server, [Reply::text(format!("Answer {n}."))]);
        tenant.npc_turn("port-town", "innkeeper_bob", "player_alice", &format!("Question {n}.")).await.expect(200);
    }
    // A column that a message never lacks, as an older server may have left it.
    let mut db = server.owner().await;
    for statement in [
        "ALTER TABLE message DISABLE TRIGGER USER",
        "ALTER TABLE message ALTER tokens DROP NOT NULL",
        "UPDATE message SET tokens = NULL WHERE content = 'Question 2.'",
    ] {
        db.execute(statement).await.unwrap();
    }
    server.app.prompts.base.forget(tenant.tenant, |_, _| true);
    let before = unreadable(&tenant).await;
    says(&server, [Reply::text("Answer 4.")]);
    tenant.npc_turn("port-town", "innkeeper_bob", "player_alice", "Question 4.").await.expect(200);
    let seen = server.model.requests().last().unwrap()["messages"].to_string();
    assert!(seen.contains("Answer 1.") && seen.contains("Answer 3.") && !seen.contains("Question 2."), "{seen}");
    assert!(unreadable(&tenant).await > before, "it is counted");
}

async fn unreadable(client: &crate::support::Client<'_>) -> u64 {
    let metrics = client.send_odd(client.request(reqwest::Method::GET, "/metrics")).await.text;
    let line = metrics.lines().find_map(|line| line.strip_prefix("tavernkeep_db_rows_unreadable_total "));
    line.map_or(0, |count| count.parse::<f64>().unwrap() as u64)
}
