//! Tool calls of a turn and through `POST …/tools/{name}`: who may call what, and what one bad call costs the others.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{learnt, remember, statuses};
use crate::support::{Server, World, fenced};

fn arguments(words: &str) -> Value {
    json!({ "player_id": "player_alice", "memory_string": words })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_call_does_not_hold_up_the_others() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([
        remember("First.")
            .with_tool("NPC_fly", arguments("x"))
            .with_tool("OWNER_memorize", arguments("not mine to call"))
            .with_tool("NPC_memorize", "{\"player_id\": \"player_alice\", ")
            .with_tool("NPC_memorize", json!({ "player_id": "player_alice" }))
            .with_tool("NPC_memorize", json!({ "player_id": "nobody", "memory_string": "x" }))
            .with_tool(
                "NPC_memorize",
                json!({ "player_id": "player_alice", "memory_string": "x", "npc_id": "harbour_ilse" }),
            )
            .with_tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": 5 }))
            .with_tool("NPC_memorize", arguments(&"x".repeat(2001)))
            .with_tool("NPC_memorize", arguments("Last.")),
        Reply::text("Done."),
    ]));
    let turn = world.bob("player_alice", "I pay.").await.expect(200);
    assert_eq!(turn.body["status"], "succeeded");
    let expected =
        ["succeeded", "rejected", "rejected", "failed", "failed", "failed", "failed", "failed", "failed", "succeeded"];
    assert_eq!(statuses(&turn), expected, "{}", turn.text);
    let codes: Vec<_> = (1..9).map(|i| turn.body["tool_calls"][i]["error"]["code"].as_str().unwrap()).collect();
    assert_eq!(codes[..3], ["unknown_tool", "not_available", "invalid_json"]);
    assert!(codes[3..].iter().all(|c| *c == "validation_failed"), "{codes:?}");
    assert_eq!(learnt(&world).await, ["First.", "Last."]);
    assert!(world.memories("npcs/harbour_ilse", "player_alice").await.is_empty());
    // The model is told of each call what came of it, under the call's id.
    let requests = server.model.requests();
    assert_eq!(requests.len(), 2);
    let told = requests[1]["messages"].as_array().unwrap();
    let results: Vec<_> = told.iter().filter(|m| m["role"] == "tool").collect();
    assert_eq!(results.len(), 10);
    for (call, result) in turn.body["tool_calls"].as_array().unwrap().iter().zip(results) {
        assert_eq!(call["id"], result["tool_call_id"]);
        let content: Value = fenced(result["content"].as_str().unwrap());
        assert_eq!(content["error"]["code"], call["error"]["code"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_text_mode_a_bad_call_goes_back_to_the_model() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let calls = json!([
        { "tool_name": "NPC_memorize", "parameters": arguments("Kept.") },
        { "tool_name": "NPC_fly", "parameters": {} },
    ]);
    server.model.set_script(Script::replies([
        Reply::text(format!("<response><narrative>One.</narrative><tools>{calls}</tools></response>")),
        Reply::text("<response><narrative>Two.</narrative></response>"),
    ]));
    let body = json!({ "player_id": "player_alice", "action": "Fly!", "reply_mode": "xml" });
    let turn = world.post("/npcs/innkeeper_bob/turns", body).await.expect(200);
    assert_eq!(statuses(&turn), ["succeeded", "rejected"]);
    assert_eq!(turn.body["narrative"], "One.\n\nTwo.");
    assert_eq!(learnt(&world).await, ["Kept."]);
    let requests = server.model.requests();
    let last = requests[1]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    assert!(last["content"].as_str().unwrap().contains("unknown_tool"), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loop_ends_at_its_limit_with_each_call_run_once() {
    let server = Server::start_with(&[("TAVERNKEEP_TURN_STEPS_MAX", "3")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies(["one", "two", "three", "four"].map(|w| remember(w).with_text(w))));
    let turn = world.bob("player_alice", "Go on.").await.expect(200);
    assert_eq!(turn.body["status"], "limit_reached");
    assert_eq!(turn.body["usage"]["llm_calls"], 3);
    assert_eq!(statuses(&turn), ["succeeded"; 3]);
    assert_eq!(learnt(&world).await, ["one", "two", "three"]);
    assert_eq!(turn.body["narrative"], "one\n\ntwo\n\nthree");
    assert_eq!(world.get(&format!("/turns/{}", turn.id())).await.expect(200).body["status"], "limit_reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_player_may_be_named_by_id_slug_or_alias() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let alice = world.get("/characters/player_alice").await.expect(200).id();
    server.model.set_script(Script::replies([
        Reply::tool("NPC_memorize", json!({ "player_id": alice, "memory_string": "by id" }))
            .with_tool("NPC_memorize", json!({ "entity_id": "player_alice", "memory_string": "by alias" }))
            .with_tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "by slug" })),
        Reply::text("Noted."),
    ]));
    let turn = world.bob("player_alice", "Remember!").await.expect(200);
    assert_eq!(statuses(&turn), ["succeeded"; 3], "{}", turn.text);
    assert_eq!(learnt(&world).await, ["by id", "by alias", "by slug"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_listed_with_their_schemas() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let listed = world.get("/tools").await.expect(200);
    let mut names: Vec<_> = listed.items().iter().map(|t| t["function"]["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    for name in ["NPC_memorize", "OWNER_memorize", "OWNER_memorize_dependables"] {
        let tool = listed.items().iter().find(|t| t["function"]["name"] == name).unwrap();
        assert_eq!(tool["type"], "function");
        let parameters = &tool["function"]["parameters"];
        assert_eq!(parameters["type"], "object");
        assert_eq!(parameters["required"], json!(["player_id", "memory_string"]), "{name}");
        assert_eq!(parameters["additionalProperties"], false);
    }
    names.dedup();
    assert_eq!(names.len(), listed.items().len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frontend_calls_a_tool_as_its_actor() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let as_actor = |kind: &str, id: &str, words: &str| json!({ "actor": { "type": kind, "id": id }, "arguments": arguments(words) });
    let done = world.post("/tools/NPC_memorize", as_actor("npc", "innkeeper_bob", "By hand.")).await.expect(200);
    assert_eq!(done.body["tool"], "NPC_memorize");
    assert_eq!(done.body["status"], "succeeded");
    assert!(done.body["call_id"].is_string());
    let id = done.body["result"]["memory_id"].as_str().unwrap();
    let memory = world.get(&format!("/memories/{id}")).await.expect(200).body;
    assert_eq!((memory["text"].as_str(), memory["source"].as_str()), (Some("By hand."), Some("personal")));
    assert_eq!(memory["turn_id"], Value::Null);

    // Who may not: another kind, one that lacks the tool, people.
    world.patch("/npcs/harbour_ilse", json!({ "available_tools": [] })).await.expect(200);
    for (tool, kind, id) in [
        ("NPC_memorize", "owner", "town_council_owner"),
        ("OWNER_memorize", "npc", "innkeeper_bob"),
        ("NPC_memorize", "npc", "harbour_ilse"),
        ("NPC_memorize", "character", "player_alice"),
        ("NPC_memorize", "gm", "gm"),
    ] {
        world.post(&format!("/tools/{tool}"), as_actor(kind, id, "x")).await.problem(403, "forbidden");
    }
    world.post("/tools/NPC_fly", as_actor("npc", "innkeeper_bob", "x")).await.problem(404, "not_found");
    let nobody =
        world.post("/tools/NPC_memorize", as_actor("npc", "nobody", "x")).await.problem(422, "validation_failed");
    assert_eq!(nobody.pointers(), ["/actor/id"]);
    let missing =
        json!({ "actor": { "type": "npc", "id": "innkeeper_bob" }, "arguments": { "player_id": "player_alice" } });
    let missing = world.post("/tools/NPC_memorize", missing).await.problem(422, "validation_failed");
    assert_eq!(missing.pointers(), ["/arguments/memory_string"]);
    let nobody = json!({ "actor": { "type": "npc", "id": "innkeeper_bob" }, "arguments": { "player_id": "x", "memory_string": "x" } });
    let nobody = world.post("/tools/NPC_memorize", nobody).await.problem(422, "validation_failed");
    assert_eq!(nobody.pointers(), ["/arguments/player_id"]);
    let actorless = world
        .post("/tools/NPC_memorize", json!({ "arguments": arguments("x") }))
        .await
        .problem(422, "validation_failed");
    assert_eq!(actorless.pointers(), ["/actor"]);
    assert_eq!(learnt(&world).await, ["By hand."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_called_once_per_key_and_within_its_world() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let call = json!({ "actor": { "type": "npc", "id": "innkeeper_bob" }, "arguments": arguments("Once.") });
    let path = world.path("/tools/NPC_memorize");
    let first = tenant.post_with_key(&path, "k1", call.clone()).await.expect(200);
    let again = tenant.post_with_key(&path, "k1", call.clone()).await.expect(200);
    assert_eq!(first.body, again.body);
    assert_eq!(again.header("idempotency-replayed"), "true");
    tenant.post_with_key(&path, "k1", json!({ "arguments": {} })).await.problem(422, "idempotency_key_reused");
    assert_eq!(learnt(&world).await, ["Once."]);
    // An actor of another campaign or tenant is nobody here.
    let other = World::make(&tenant, "elsewhere").await;
    let bob = other.get("/npcs/innkeeper_bob").await.expect(200).id();
    let foreign = json!({ "actor": { "type": "npc", "id": bob }, "arguments": arguments("x") });
    assert_eq!(
        world.post("/tools/NPC_memorize", foreign).await.problem(422, "validation_failed").pointers(),
        ["/actor/id"]
    );
    let stranger = server.tenant("rival").await;
    stranger.post(&path, call).await.problem(404, "not_found");
}

/// While a batch of calls holds its turn, nobody can renew the turn's lease. A long batch must not leave one that has expired: the
/// sweeper would take the turn for abandoned as soon as the batch is committed.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_batch_renews_the_lease_of_its_turn() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut db = server.owner().await;
    // Each memory takes a while, and at the commit the lease is written down. Before that it expires, as if it had taken longer.
    sqlx::raw_sql(
        "CREATE TABLE lease_at_commit (seconds_left float8); GRANT ALL ON lease_at_commit TO tavernkeep_app;
         CREATE FUNCTION is_slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             PERFORM pg_sleep(2);
             UPDATE turn SET lease_until = now() - interval '1 minute';
             RETURN NULL;
         END $$;
         CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO lease_at_commit SELECT extract(epoch FROM lease_until - clock_timestamp()) FROM turn;
             RETURN NULL;
         END $$;
         CREATE TRIGGER is_slow AFTER INSERT ON memory FOR EACH ROW EXECUTE FUNCTION is_slow();
         CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON memory INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit();",
    )
    .execute(&mut db)
    .await
    .unwrap();
    let three =
        remember("One.").with_tool("NPC_memorize", arguments("Two.")).with_tool("NPC_memorize", arguments("Three."));
    server.model.set_script(Script::replies([three, Reply::text("Done.")]));
    let turn = world.bob("player_alice", "I pay.").await.expect(200);
    assert_eq!((&turn.body["status"], learnt(&world).await.len()), (&json!("succeeded"), 3));
    let left: Vec<f64> =
        sqlx::query_scalar("SELECT seconds_left FROM lease_at_commit").fetch_all(&mut db).await.unwrap();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left.iter().all(|seconds| *seconds > 10.0), "{left:?}");
}
