//! A campaign that is deleted and made again under its slug: nothing that was kept of the old one is in the way of the new one.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Answer, Client, Server, World};

/// Every door that finds its way by a campaign's slug and keeps something of it.
async fn doors(client: &Client<'_>, world: &World<'_>, session: &str) -> Vec<(&'static str, Answer)> {
    let script = |reply: Reply| client.server.model.set_script(Script::always(reply));
    let action = json!({ "player_id": "player_alice", "action": "Hello." });
    let queued = json!({ "player_id": "player_alice", "action": "Hello.", "on_busy": "queue" });
    let mut answers = Vec::new();
    for (door, path, body, reply) in [
        ("npc", "/npcs/innkeeper_bob/turns".to_owned(), action.clone(), Reply::text("Hm.")),
        ("npc, queued", "/npcs/innkeeper_bob/turns".to_owned(), queued, Reply::text("Hm.")),
        ("owner", "/owners/town_council_owner/turns".to_owned(), action.clone(), Reply::text("Hm.")),
        ("gm", format!("/sessions/{session}/turns"), json!({}), Reply::text("Hm.")),
        (
            "rules",
            "/rules/resolve".to_owned(),
            json!({ "player_id": "player_alice", "action": "I climb.", "dice": [12] }),
            Reply::tool("resolve_skill_check", json!({ "skill": "athletics", "dc": 10 })),
        ),
        (
            "act",
            "/act".to_owned(),
            json!({ "player_id": "player_alice", "message": "I roll." }),
            Reply::text(json!({ "command": "roll", "args": { "expr": "1d20" } }).to_string()),
        ),
        ("prompt", "/npcs/innkeeper_bob/prompt".to_owned(), action, Reply::text("")),
    ] {
        script(reply);
        answers.push((door, client.post(&world.path(&path), body).await));
    }
    answers
}

async fn opened(world: &World<'_>) -> String {
    world.post("/sessions", json!({ "client_id": "vtt", "role": "gm" })).await.expect(201).id()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_made_again_under_its_slug_is_a_new_one() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let mut db = server.owner().await;
    let unlimited = "UPDATE tenant SET limits = limits || '{\"planner_per_player_per_minute\": 0}'";
    sqlx::query(unlimited).execute(&mut db).await.unwrap();
    let world = tenant.world().await;
    let session = opened(&world).await;
    // Twice: what is kept is used.
    for _ in 0..2 {
        for (door, answer) in doors(&tenant, &world, &session).await {
            assert_eq!(answer.status, 200, "{door}: {}", answer.text);
        }
    }
    let is_gone = async |when: &str| {
        for (door, answer) in doors(&tenant, &world, &session).await {
            assert_eq!(
                (answer.status, &answer.body["code"]),
                (404, &Value::from("not_found")),
                "{door} {when}: {}",
                answer.text
            );
        }
    };
    world.delete("").await.expect(204);
    is_gone("at once").await;
    // And when the last of its rows is gone.
    for _ in 0..2400 {
        let left = sqlx::query("SELECT FROM campaign").fetch_all(&mut db).await.unwrap();
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    is_gone("later").await;
    let again = tenant.world().await;
    let session = opened(&again).await;
    for _ in 0..2 {
        for (door, answer) in doors(&tenant, &again, &session).await {
            assert_eq!(answer.status, 200, "{door}, again: {}", answer.text);
        }
    }
}
