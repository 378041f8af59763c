//! Answers that are tried again, chosen among, continued and corrected.

use rehearsal::{Reply, Script};
use reqwest::Method;
use serde_json::{Value, json};

use super::always;
use crate::support::{Answer, Server, World, until};

fn says(text: &str, memory: &str) -> Reply {
    Reply::text(text).with_tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": memory }))
}

async fn again(world: &World<'_>, turn: &str, body: Value) -> Answer {
    world.post(&format!("/turns/{turn}/regenerate"), body).await
}

async fn choose(world: &World<'_>, turn: &str) -> Answer {
    world.post(&format!("/turns/{turn}/choose"), json!({})).await
}

/// What Bob remembers about Alice besides what he began with.
async fn memories(world: &World<'_>) -> Vec<String> {
    let all = world.memories("npcs/innkeeper_bob", "player_alice").await;
    all.into_iter().filter(|text| !text.starts_with("Initial")).collect()
}

/// The words of the conversation, oldest first.
async fn said(world: &World<'_>) -> Vec<String> {
    let answer = world.get("/messages?sort=created_at&limit=200").await.expect(200);
    answer.items().iter().map(|m| m["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_alternative_is_in_the_world() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    acme.post("/v1/models", json!({ "slug": "warm", "name": "Warm", "parameters": { "temperature": 1.5 } }))
        .await
        .expect(201);
    server.model.set_script(Script::replies([
        says("First.", "one"),
        Reply::text(""),
        says("Second.", "two"),
        Reply::text(""),
        says("Third.", "three"),
        Reply::text(""),
    ]));
    let first = world.bob("player_alice", "I knock.").await.expect(200).id();
    assert_eq!(memories(&world).await, ["one"]);
    let second = again(&world, &first, json!({ "model": "warm", "hint": "Shorter, please." })).await.expect(200);
    assert_eq!((&second.body["narrative"], &second.body["parent_turn_id"]), (&json!("Second."), &json!(first)));
    let second = second.id();
    assert_eq!(memories(&world).await, ["two"]);
    assert_eq!(said(&world).await, ["I knock.", "Second."]);
    // The model read the same conversation, and neither the first answer nor what it remembered.
    let requests = server.model.requests();
    let (before, after) = (requests[0].clone(), requests[2].clone());
    assert_eq!(before["messages"].as_array().unwrap().len(), after["messages"].as_array().unwrap().len());
    assert_eq!((&before["temperature"], &after["temperature"]), (&Value::Null, &json!(1.5)));
    let text = after["messages"].to_string();
    assert!(
        text.contains("<wish>\\nShorter, please.") && !text.contains("First.") && !text.contains("- one"),
        "{text}"
    );
    let third = again(&world, &second, json!({})).await.expect(200).id();
    assert_eq!(memories(&world).await, ["three"]);
    let record = world.get(&format!("/turns/{third}")).await.expect(200).body;
    assert_eq!(record["alternatives"], json!([first, second, third]));
    assert_eq!((&record["chosen"], &record["parent_turn_id"]), (&json!(true), &json!(first)));
    let record = world.get(&format!("/turns/{first}")).await.expect(200).body;
    assert_eq!(
        (&record["chosen"], &record["parent_turn_id"], &record["undone_at"]),
        (&json!(false), &Value::Null, &Value::Null)
    );
    // The second is chosen, and its memory alone remains.
    let chosen = choose(&world, &second).await.expect(200).body;
    assert_eq!((&chosen["id"], &chosen["chosen"]), (&json!(second), &json!(true)));
    assert_eq!(
        (memories(&world).await, said(&world).await),
        (vec!["two".to_owned()], vec!["I knock.".to_owned(), "Second.".to_owned()])
    );
    choose(&world, &second).await.expect(200);
    choose(&world, &first).await.expect(200);
    choose(&world, &third).await.expect(200);
    choose(&world, &second).await.expect(200);
    assert_eq!(memories(&world).await, ["two"]);
    // The next prompt has what is chosen, and nothing else.
    server.model.set_script(Script::replies([Reply::text("Next.")]));
    world.bob("player_alice", "I sit down.").await.expect(200);
    let text = server.model.requests().pop().unwrap()["messages"].to_string();
    assert!(text.contains("Second.") && text.contains("- two"), "{text}");
    for gone in ["First.", "Third.", "- one", "- three", "Shorter"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
    // Nothing changes behind the back of what was said since.
    choose(&world, &third).await.problem(409, "conflict");
    again(&world, &second, json!({})).await.problem(409, "conflict");
    world.post(&format!("/turns/{third}/undo"), json!({})).await.problem(409, "conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_fails_leaves_everything_as_it_was() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    server.model.set_script(Script::replies([
        says("First.", "one"),
        Reply::text(""),
        Reply::status(500),
        Reply::status(500),
        Reply::status(500),
    ]));
    let first = world.bob("player_alice", "I knock.").await.expect(200).id();
    let failed = again(&world, &first, json!({})).await.problem(502, "llm_unavailable");
    assert_ne!(failed.body["turn_id"], json!(first));
    assert_eq!(
        (memories(&world).await, said(&world).await),
        (vec!["one".to_owned()], vec!["I knock.".to_owned(), "First.".to_owned()])
    );
    let record = world.get(&format!("/turns/{first}")).await.expect(200).body;
    assert_eq!((&record["chosen"], &record["alternatives"]), (&json!(true), &json!([])));
    // Refused before it began: an unknown profile, a limit, somebody else's changes.
    assert_eq!(
        again(&world, &first, json!({ "model": "nobody" })).await.problem(422, "validation_failed").pointers(),
        ["/model"]
    );
    let memory = world.get("/npcs/innkeeper_bob/memories?player_id=player_alice&limit=200").await.expect(200);
    let id = memory.items().iter().find(|m| m["text"] == "one").unwrap()["id"].as_str().unwrap().to_owned();
    world.patch(&format!("/memories/{id}"), json!({ "text": "one, corrected" })).await.expect(200);
    again(&world, &first, json!({})).await.problem(409, "undo_conflict");
    assert_eq!((memories(&world).await, said(&world).await.len()), (vec!["one, corrected".to_owned()], 2));
    world.patch(&format!("/memories/{id}"), json!({ "text": "one" })).await.expect(200);
    // A turn that failed, that was undone or that is no answer cannot be tried again.
    let failed = failed.body["turn_id"].as_str().unwrap().to_owned();
    again(&world, &failed, json!({})).await.problem(409, "conflict");
    choose(&world, &failed).await.problem(409, "conflict");
    world.post(&format!("/turns/{first}/undo"), json!({})).await.expect(200);
    again(&world, &first, json!({})).await.problem(409, "conflict");
    again(&world, "01970000-0000-7000-8000-000000000001", json!({})).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_in_an_attempt_gives_the_answer_back() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    server.model.set_script(Script::replies([says("First.", "one"), Reply::text("")]));
    let first = world.bob("player_alice", "I knock.").await.expect(200).id();
    server.model.set_script(always(Reply::hang()));
    let path = world.path(&format!("/turns/{first}/regenerate"));
    let request = acme.request(reqwest::Method::POST, &path).json(&json!({})).header("Prefer", "respond-async");
    let attempt = acme.send(request).await.expect(202).body["turn_id"].as_str().unwrap().to_owned();
    until("the first answer to be set aside", async || memories(&world).await.is_empty()).await;
    // Meanwhile nobody may try or choose.
    again(&world, &first, json!({})).await.problem(409, "conflict");
    choose(&world, &first).await.problem(409, "turn_in_progress");
    world.bob("player_alice", "I shout.").await.problem(409, "turn_in_progress");
    // As if its server had died: nobody waits for the attempt any more, and it is swept.
    world.post(&format!("/turns/{attempt}/cancel"), json!({})).await.expect(202);
    until("the first answer to be back", async || memories(&world).await == ["one"]).await;
    let mut db = server.owner().await;
    sqlx::query("UPDATE turn SET awaits = gen_random_uuid(), awaits_until = now() - interval '1 minute', chosen = false WHERE id = $1::uuid")
        .bind(&first)
        .execute(&mut db)
        .await
        .unwrap();
    until("the sweeper to settle it", async || {
        world.get(&format!("/turns/{first}")).await.expect(200).body["chosen"] == json!(true)
    })
    .await;
    assert_eq!(
        (memories(&world).await, said(&world).await),
        (vec!["one".to_owned()], vec!["I knock.".to_owned(), "First.".to_owned()])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_rolled_stays_rolled() {
    // One result among a million, so that two rolls are not the same by chance.
    const MILLION: &str = "(1d1000 - 1) * 1000 + 1d1000";
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    world.patch("/npcs/innkeeper_bob", json!({ "available_tools": ["roll_dice"] })).await.expect(200);
    let roll = |formula: &str| Reply::text("").with_tool("roll_dice", json!({ "rolls": [{ "formula": formula }] }));
    let total = |answer: &Answer| answer.body["tool_calls"][0]["result"]["results"][0]["total"].clone();
    server.model.set_script(Script::replies([
        roll(MILLION),
        Reply::text("First."),
        roll(MILLION),
        Reply::text("Second."),
        roll("2d1000"),
        Reply::text("Third."),
        roll(MILLION),
        Reply::text("Fourth."),
    ]));
    let first = world.bob("player_alice", "I bet.").await.expect(200);
    let second = again(&world, &first.id(), json!({})).await.expect(200);
    assert_eq!(total(&first), total(&second));
    let third = again(&world, &second.id(), json!({})).await.expect(200);
    assert_eq!(third.body["tool_calls"][0]["status"], "succeeded");
    // Only a game master has them rolled anew.
    let player =
        acme.token(json!({ "scopes": ["read", "play"], "campaign": "port-town", "player_id": "player_alice" })).await;
    let path = world.path(&format!("/turns/{}/regenerate", third.id()));
    player.post(&path, json!({ "reroll": true })).await.problem(403, "forbidden");
    player.post(&path, json!({ "model": "x" })).await.problem(403, "forbidden");
    let fourth = again(&world, &third.id(), json!({ "reroll": true })).await.expect(200);
    assert_ne!(total(&first), total(&fourth));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_goes_on_and_is_corrected() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    server.model.set_script(Script::replies([
        says("The bill is", "asked"),
        Reply::text(""),
        Reply::text("five silver."),
    ]));
    let first = world.bob("player_alice", "I ask for the bill.").await.expect(200).id();
    let more = world.post(&format!("/turns/{first}/continue"), json!({})).await.expect(200);
    assert_eq!((&more.body["narrative"], &more.body["status"]), (&json!("five silver."), &json!("succeeded")));
    let request = server.model.requests().pop().unwrap()["messages"].to_string();
    assert!(
        request.contains("Go on from where your last answer ended.") && request.contains("The bill is"),
        "{request}"
    );
    let player =
        acme.token(json!({ "scopes": ["read", "play"], "campaign": "port-town", "player_id": "player_alice" })).await;
    let heard = player.get("/v1/campaigns/port-town/messages?sort=created_at").await.expect(200);
    let heard: Vec<&str> = heard.items().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(heard, ["I ask for the bill.", "The bill is", "five silver."]);
    // Corrected, it reads so in the next prompt; the trace keeps the model's words.
    let path = format!("/turns/{}", more.id());
    world.patch(&path, json!({ "narrative": " " })).await.problem(422, "validation_failed");
    world.patch(&path, json!({ "status": "failed" })).await.problem(422, "validation_failed");
    player.patch(&world.path(&path), json!({ "narrative": "Nothing." })).await.problem(403, "forbidden");
    let tag = world.get(&path).await.expect(200).header("etag").to_owned();
    let corrected = world.patch(&path, json!({ "narrative": "five gold." })).await.expect(200);
    assert_eq!(corrected.body["narrative"], "five gold.");
    assert!(
        corrected.body["edited_at"].is_string() && corrected.body["trace"]["llm_calls"][0]["text"] == "five silver."
    );
    let request = acme.request(reqwest::Method::PATCH, &world.path(&path)).header("If-Match", tag);
    let request = request.header("Content-Type", "application/merge-patch+json").body("{\"narrative\":\"Late.\"}");
    acme.send(request).await.problem(412, "precondition_failed");
    server.model.set_script(always(Reply::text("Thanks.")));
    world.bob("player_alice", "I pay.").await.expect(200);
    let request = server.model.requests().pop().unwrap()["messages"].to_string();
    assert!(request.contains("five gold.") && !request.contains("five silver."), "{request}");
    // A correction goes with its turn.
    let turns = world.get("/turns?kind=npc&limit=1&sort=-created_at").await.expect(200);
    let last = turns.items()[0]["id"].as_str().unwrap().to_owned();
    for turn in [last, more.id(), first] {
        world.post(&format!("/turns/{turn}/undo"), json!({})).await.expect(200);
    }
    assert!(said(&world).await.is_empty() && memories(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_greeting_has_alternatives_without_a_model() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    world.patch("/npcs/innkeeper_bob", json!({ "greetings": ["Welcome.", "You again?"] })).await.expect(200);
    let first = world.post("/npcs/innkeeper_bob/greet", json!({ "player_id": "player_alice" })).await.expect(200).id();
    let second = again(&world, &first, json!({})).await.expect(200);
    assert_eq!(second.body["narrative"], "You again?");
    again(&world, &second.id(), json!({})).await.problem(409, "conflict");
    assert_eq!(said(&world).await.last().unwrap(), "You again?");
    choose(&world, &first).await.expect(200);
    assert_eq!(said(&world).await.last().unwrap(), "Welcome.");
    assert_eq!(server.model.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_is_one_attempt() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    server.model.set_script(Script::replies([
        says("First.", "one"),
        Reply::text(""),
        says("Second.", "two"),
        Reply::text(""),
        Reply::text("More."),
    ]));
    let first = world.bob("player_alice", "I knock.").await.expect(200).id();
    let path = world.path(&format!("/turns/{first}/regenerate"));
    let made = acme.post_with_key(&path, "k1", json!({})).await.expect(200);
    let same = acme.post_with_key(&path, "k1", json!({})).await.expect(200);
    assert_eq!((made.id(), same.header("idempotency-replayed")), (same.id(), "true"));
    assert_eq!(memories(&world).await, ["two"]);
    let path = world.path(&format!("/turns/{first}/choose"));
    acme.post_with_key(&path, "k2", json!({})).await.expect(200);
    acme.post_with_key(&path, "k2", json!({})).await.expect(200);
    assert_eq!(memories(&world).await, ["one"]);
    let path = world.path(&format!("/turns/{first}/continue"));
    let made = acme.post_with_key(&path, "k3", json!({})).await.expect(200);
    let same = acme.post_with_key(&path, "k3", json!({})).await.expect(200);
    assert_eq!((made.id(), same.header("idempotency-replayed")), (same.id(), "true"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_is_answered_as_the_client_wishes() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let token = json!({ "scopes": ["read", "play"], "campaign": world.slug, "player_id": "player_alice" });
    let alice = acme.token(token).await;
    let calls = || Reply::text("").with_tool("NPC_get_actor_details", json!({ "actor_id": "player_alice" }));
    for way in ["regenerate", "continue"] {
        server.model.set_script(Script::replies([Reply::text("First."), calls(), Reply::text("Second.")]));
        let first = world.bob("player_alice", "I knock.").await.expect(200).id();
        let path = world.path(&format!("/turns/{first}/{way}"));
        let made = alice.post_with_key(&path, way, json!({})).await.expect(200);
        assert_eq!(made.body["narrative"], "Second.");
        // A player reads no more of a stored answer than of a new one.
        let same = alice.post_with_key(&path, way, json!({})).await.expect(200);
        assert_eq!(same.body, made.body, "{way}");
        let later = alice.request(Method::POST, &path).header("idempotency-key", way).header("prefer", "respond-async");
        let later = alice.send(later.json(&json!({}))).await.expect(202);
        assert_eq!((&later.body["turn_id"], &later.body["status"]), (&made.body["id"], &json!("succeeded")), "{way}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_attempt_failed_is_one_attempt_more() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    server.model.set_script(Script::replies([
        says("First.", "one"),
        Reply::text(""),
        Reply::status(500),
        says("Second.", "two"),
        Reply::text(""),
    ]));
    let first = world.bob("player_alice", "I knock.").await.expect(200).id();
    let path = world.path(&format!("/turns/{first}/regenerate"));
    acme.post_with_key(&path, "k1", json!({})).await.problem(502, "llm_unavailable");
    assert_eq!(memories(&world).await, ["one"]);
    let made = acme.post_with_key(&path, "k1", json!({})).await.expect(200);
    assert_eq!(
        (memories(&world).await, said(&world).await),
        (vec!["two".to_owned()], vec!["I knock.".to_owned(), "Second.".to_owned()])
    );
    let record = world.get(&format!("/turns/{first}")).await.expect(200).body;
    assert_eq!((&record["alternatives"], &record["chosen"]), (&json!([first, made.id()]), &json!(false)));
    // What was undone is not chosen behind what came later.
    world.post(&format!("/turns/{}/undo", made.id()), json!({})).await.expect(200);
    choose(&world, &first).await.expect(200);
    assert_eq!(memories(&world).await, ["one"]);
    world.post(&format!("/turns/{first}/undo"), json!({})).await.expect(200);
    server.model.set_script(always(Reply::text("Later.")));
    world.bob("player_alice", "I wait.").await.expect(200);
    choose(&world, &first).await.problem(409, "conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_player_said_stays_unsaid_in_another_attempt() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    server.model.set_script(Script::replies([Reply::text("The bill is"), Reply::text("five."), Reply::text("six.")]));
    let first = world.bob("player_alice", "I ask for the bill.").await.expect(200).id();
    let more = world.post(&format!("/turns/{first}/continue"), json!({})).await.expect(200).id();
    again(&world, &more, json!({})).await.expect(200);
    let request = server.model.requests().pop().unwrap()["messages"].to_string();
    assert!(request.contains("Go on from where your last answer ended.") && !request.contains("five."), "{request}");
    let player =
        acme.token(json!({ "scopes": ["read", "play"], "campaign": "port-town", "player_id": "player_alice" })).await;
    let heard = player.get("/v1/campaigns/port-town/messages?sort=created_at").await.expect(200);
    let heard: Vec<&str> = heard.items().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(heard, ["I ask for the bill.", "The bill is", "six."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_at_a_corrected_turn_ends_with_the_turn() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    server.model.set_script(always(Reply::text("Aye.")));
    let first = world.bob("player_alice", "I knock.").await.expect(200).id();
    world.bob("player_alice", "I sit.").await.expect(200);
    world.patch(&format!("/turns/{first}"), json!({ "narrative": "No." })).await.expect(200);
    acme.post("/v1/campaigns/port-town/fork", json!({ "slug": "copy", "at_turn": first })).await.expect(201);
    let messages = acme.get("/v1/campaigns/copy/messages?sort=created_at").await.expect(200);
    let texts: Vec<&str> = messages.items().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["I knock.", "Aye."]);
}

/// An attempt is on every screen as soon as it has answered, a moment before the other stops awaiting it. Whoever is quick may choose already.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_quick_may_choose_as_soon_as_an_attempt_has_answered() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    server.model.set_script(Script::replies([Reply::text("First."), Reply::text("Second.")]));
    let first = world.bob("player_alice", "I knock.").await.expect(200).id();
    let second = again(&world, &first, json!({})).await.expect(200).id();
    let awaits = async |status: &str| {
        let sql = "UPDATE turn SET awaits = $1::uuid, awaits_until = now() + interval '1 hour' WHERE id = $2::uuid";
        let mut db = server.owner().await;
        sqlx::query(sql).bind(&second).bind(&first).execute(&mut db).await.unwrap();
        sqlx::query("UPDATE turn SET status = $1 WHERE id = $2::uuid")
            .bind(status)
            .bind(&second)
            .execute(&mut db)
            .await
            .unwrap();
    };
    awaits("running").await;
    choose(&world, &first).await.problem(409, "turn_in_progress");
    awaits("succeeded").await;
    choose(&world, &first).await.expect(200);
    assert_eq!(said(&world).await, ["I knock.", "First."]);
    choose(&world, &second).await.expect(200);
    assert_eq!(said(&world).await, ["I knock.", "Second."]);
}
