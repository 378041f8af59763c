//! What a client is told of a turn before it ends outlives a crash of PostgreSQL: its first transaction waits for the disk.

use rehearsal::Reply;
use serde_json::{Value, json};
use sqlx::Executor;

use super::always;
use crate::support::{Server, sse::Events};

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_was_told_of_is_on_the_disk() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let mut db = server.owner().await;
    db.execute("UPDATE tenant SET limits = limits || '{\"planner_per_player_per_minute\": 0}'").await.unwrap();
    let world = tenant.world().await;
    let session = world.post("/sessions", json!({ "client_id": "vtt", "role": "gm" })).await.expect(201).id();
    // How each turn's first transaction was committed; the trigger runs at its end. A transaction that found its prompt old has
    // taken its row away again by then, and the turn begins once more.
    db.execute(
        "CREATE TABLE commits (n serial, turn uuid, said text); \
         CREATE FUNCTION note_commit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
             INSERT INTO commits (turn, said) SELECT t.id, current_setting('synchronous_commit') FROM turn t WHERE t.id = NEW.id; \
             RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER noted AFTER INSERT ON turn DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_commit()",
    )
    .await
    .unwrap();
    let action = json!({ "player_id": "player_alice", "action": "Hello." });
    let roll = Reply::text(json!({ "command": "roll", "args": { "expr": "1d20" } }).to_string());
    let check = Reply::tool("resolve_skill_check", json!({ "skill": "athletics", "dc": 10 }));
    let mut asked = 0;
    for (path, body, reply) in [
        ("/npcs/innkeeper_bob/turns".to_owned(), action.clone(), Reply::text("Hm.")),
        ("/owners/town_council_owner/turns".to_owned(), action.clone(), Reply::text("Hm.")),
        (format!("/sessions/{session}/turns"), json!({}), Reply::text("Hm.")),
        ("/rules/resolve".to_owned(), json!({ "player_id": "player_alice", "action": "I climb." }), check),
        ("/act".to_owned(), json!({ "player_id": "player_alice", "message": "I roll." }), roll),
    ] {
        server.model.set_script(always(reply));
        // Cold and kept prompts open a turn in different ways, and a turn that may have to wait in another one.
        for (n, on_busy) in ["reject", "reject", "queue"].into_iter().enumerate() {
            let mut body = body.clone();
            if path.ends_with("turns") {
                body["on_busy"] = json!(on_busy);
            }
            for wish in ["whole", "later", "streamed"] {
                let mut request = tenant.request(reqwest::Method::POST, &world.path(&path));
                let mut body = body.clone();
                let field = if path == "/act" { "message" } else { "action" };
                if body.get(field).is_some() {
                    body[field] = json!(format!("{wish} {n}"));
                }
                match wish {
                    "later" => request = request.header("prefer", "respond-async"),
                    "streamed" => body["stream"] = json!(true),
                    _ => {}
                }
                if wish == "streamed" {
                    let heard = Events::open(request.json(&body), None).await.rest().await;
                    assert_eq!(heard[0].name, "turn.started", "{path}");
                } else {
                    let status = if wish == "later" { 202 } else { 200 };
                    let answer = tenant.send(request.json(&body)).await.expect(status);
                    if wish == "later" {
                        let turn = format!("/turns/{}", answer.body["turn_id"].as_str().unwrap());
                        super::until("its end", || async {
                            !["queued", "running"]
                                .map(Value::from)
                                .contains(&world.get(&turn).await.expect(200).body["status"])
                        })
                        .await;
                    }
                }
                asked += 1;
                let rows: Vec<String> =
                    sqlx::query_scalar("SELECT said FROM commits ORDER BY n").fetch_all(&mut db).await.unwrap();
                assert_eq!(rows.len(), asked, "{path} {wish}");
                let said = &rows[asked - 1];
                assert_eq!(said == "off", wish == "whole", "{path} {wish} {n}: {said}");
            }
        }
    }
}
