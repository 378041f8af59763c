//! `Idempotency-Key`: once, whatever the network does.

use std::collections::BTreeSet;

use edge::caller::{Scope, access::TABLE};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Answer, Rows, Server, counts, until};

#[tokio::test(flavor = "multi_thread")]
async fn every_post_is_replayed_under_its_key() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "x").await;
    for route in TABLE.iter().filter(|r| r.method == "POST") {
        let (path, mut body) = (rows.path(route.path), rows.body(route));
        // What needs the last answer of a conversation has tests of its own.
        if ["/cancel", "/regenerate", "/continue", "/choose"].iter().any(|end| route.path.ends_with(end)) {
            continue;
        }
        if let Some(entity) = path.strip_suffix("/greet") {
            tenant.patch(entity, json!({ "greetings": ["Welcome."] })).await.expect(200);
            body["player_id"] = json!(rows.mallory);
        }
        if let Some((npc, _)) = path.split_once("/instructions/") {
            let draft = json!({ "pending_instructions": { "instructions": "Be brief." } });
            tenant.patch(npc, draft).await.expect(200);
        }
        let first = tenant.post_with_key(&path, "once", body.clone()).await;
        assert!(first.status < 300, "{path}: {}", first.text);
        assert_eq!(first.header("idempotency-replayed"), "");
        let before = counts(&server).await;
        let again = tenant.post_with_key(&path, "once", body.clone()).await;
        let mut shown = first.body.clone();
        // What is shown once is not shown again.
        for (path, secret) in [("/v1/api-keys", "key"), ("/v1/users", "link"), ("/v1/users/{x}/reset", "link")] {
            if route.path == path {
                assert!(shown.as_object_mut().unwrap().remove(secret).is_some());
            }
        }
        if route.path == "/v1/campaigns/{c}/player-links" {
            assert!(shown["url"].take().is_string());
        }
        // A token's seconds go on running.
        let fixed = |mut body: Value| {
            body.as_object_mut().into_iter().for_each(|members| drop(members.remove("expires_in")));
            body
        };
        assert_eq!((again.status, fixed(again.body.clone())), (first.status, fixed(shown)), "{path}");
        assert_eq!(again.header("idempotency-replayed"), "true", "{path}");
        for header in ["etag", "location", "content-type"] {
            assert_eq!(again.header(header), first.header(header), "{path}: {header}");
        }
        // The same key in quotes, as a structured field, is the same key.
        let quoted = tenant.post_with_key(&path, "\"once\"", body.clone()).await;
        let is_same = fixed(quoted.body.clone()) == fixed(again.body.clone());
        assert!(quoted.header("idempotency-replayed") == "true" && is_same, "{path}: {} {}", quoted.text, again.text);
        let other: Value = serde_json::from_str(
            &body.to_string().replace("New", "Other").replace("wave", "bow").replace("1d20 + 3", "1d20 + 4"),
        )
        .unwrap();
        if other != body {
            tenant.post_with_key(&path, "once", other).await.problem(422, "idempotency_key_reused");
        }
        assert_eq!(counts(&server).await, before, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_given_again_and_not_kept() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let asked = json!({ "scopes": ["read"], "ttl_seconds": 600 });
    let first = tenant.post_with_key("/v1/auth/token", "once", asked.clone()).await.expect(200);
    let token = first.body["access_token"].as_str().unwrap();
    // Until a token of now would be another: they tell the second they were made in.
    until("another second", async || {
        tenant.post("/v1/auth/token", asked.clone()).await.expect(200).body["access_token"] != token
    })
    .await;
    let again = tenant.post_with_key("/v1/auth/token", "once", asked.clone()).await.expect(200);
    assert_eq!(
        (again.header("idempotency-replayed"), &again.body["access_token"]),
        ("true", &first.body["access_token"])
    );
    let left = |answer: &Answer| answer.body["expires_in"].as_i64().unwrap();
    assert!(
        left(&first) == 600 && (1..600).contains(&left(&again)),
        "it says how long it lasts from now: {}",
        again.text
    );
    tenant.with_credential(token).get("/v1/campaigns").await.expect(200);
    // Without a key, or with another, it is a token of its own: it begins later.
    let another = tenant.post("/v1/auth/token", asked.clone()).await.expect(200);
    assert_ne!(another.body["access_token"], token);
    let kept: Vec<u8> =
        sqlx::query_scalar("SELECT body FROM idempotency").fetch_one(&mut server.owner().await).await.unwrap();
    assert!(!String::from_utf8(kept).unwrap().contains(token));
    // One that has ended is made anew.
    let mut db = server.owner().await;
    let kept: Vec<u8> = sqlx::query_scalar("SELECT body FROM idempotency").fetch_one(&mut db).await.unwrap();
    let mut claims: Value = serde_json::from_slice(&kept).unwrap();
    for name in ["iat", "exp"] {
        claims[name] = json!(claims[name].as_i64().unwrap() - 10_000);
    }
    sqlx::query("UPDATE idempotency SET body = $1")
        .bind(claims.to_string().into_bytes())
        .execute(&mut db)
        .await
        .unwrap();
    let anew = tenant.post_with_key("/v1/auth/token", "once", asked.clone()).await.expect(200);
    assert_eq!(left(&anew), 600);
    tenant.with_credential(anew.body["access_token"].as_str().unwrap()).get("/v1/campaigns").await.expect(200);
    // What another key of the tenant was given is not this one's.
    let other = tenant.with_scopes(&Scope::ALL).await;
    other.post_with_key("/v1/auth/token", "once", asked).await.problem(422, "idempotency_key_reused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_its_route_and_tenant() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let other = server.tenant("other").await;
    let (world, theirs) = (acme.world().await, other.world().await);
    let body = json!({ "name": "Twin" });
    let first = acme.post_with_key(&world.path("/npcs"), "k", body.clone()).await.expect(201);
    let elsewhere = acme.post_with_key(&world.path("/scenes"), "k", body.clone()).await.expect(201);
    let foreign = other.post_with_key(&theirs.path("/npcs"), "k", body.clone()).await.expect(201);
    assert_eq!(elsewhere.header("idempotency-replayed"), "");
    assert_eq!(foreign.header("idempotency-replayed"), "");
    assert_ne!(first.id(), foreign.id());
    // Another key of the same tenant is the same caller.
    let colleague = acme.with_scopes(&edge::caller::Scope::ALL).await;
    let again = colleague.post_with_key(&world.path("/npcs"), "k", body.clone()).await.expect(201);
    assert_eq!(again.id(), first.id());
    let fresh = acme.post_with_key(&world.path("/npcs"), "k2", body).await.expect(201);
    assert_ne!(fresh.id(), first.id());
}

/// Who may not make a request is told nothing of what was answered to it: the tokens of one key do not share idempotency keys.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_never_reaches_what_was_answered_to_somebody_who_may_do_more() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let session = json!({ "client_id": "table", "role": "player", "player_id": "player_alice" });
    let session = world.post("/sessions", session).await.expect(201).id();
    let narrowed = |player: &str, scopes: &[&str]| {
        acme.token(json!({ "scopes": scopes, "campaign": "port-town", "player_id": player }))
    };
    let (alice, mallory) =
        (narrowed("player_alice", &["read", "play"]).await, narrowed("player_mallory", &["read", "play"]).await);
    let (renewed, narrower) =
        (narrowed("player_alice", &["play", "read"]).await, narrowed("player_alice", &["play"]).await);
    let as_alice = |member: &str, value: Value| json!({ "player_id": "player_alice", member: value });
    for (path, body, without_a_key) in [
        ("/commands/sheet.show".to_owned(), as_alice("arguments", json!({})), 403),
        ("/commands/roll".to_owned(), as_alice("arguments", json!({ "expr": "1d20" })), 403),
        ("/commands/check".to_owned(), as_alice("arguments", json!({ "skill": "stealth", "dc": 10 })), 403),
        ("/commands/do".to_owned(), as_alice("arguments", json!({ "message": "I wave." })), 403),
        ("/act".to_owned(), as_alice("message", json!("I wave.")), 403),
        ("/rules/resolve".to_owned(), as_alice("action", json!("I wave.")), 403),
        ("/npcs/innkeeper_bob/turns".to_owned(), as_alice("action", json!("I wave.")), 403),
        (
            format!("/sessions/{session}/events"),
            json!({ "events": [{ "type": "chat_message", "data": { "content": "Psst." } }] }),
            404,
        ),
    ] {
        let path = world.path(&path);
        let first = alice.post_with_key(&path, "k", body.clone()).await.expect(200);
        let other = mallory.post_with_key(&path, "k", body.clone()).await.expect(without_a_key);
        assert_eq!(other.header("idempotency-replayed"), "", "{path}: {}", other.text);
        // Scopes are no namespace: whoever is given others while waiting for an answer must not do the work twice.
        let status = if path.ends_with("sheet.show") { 403 } else { 422 };
        narrower.post_with_key(&path, "k", body.clone()).await.expect(status);
        let again = renewed.post_with_key(&path, "k", body).await.expect(200);
        assert_eq!((again.header("idempotency-replayed"), &again.text), ("true", &first.text), "{path}");
    }
    // Nor does a campaign's token reach another campaign's.
    let elsewhere = acme.post("/v1/campaigns", json!({ "name": "Elsewhere" })).await.expect(201).id();
    let elsewhere = acme.token(json!({ "campaign": elsewhere })).await;
    acme.post_with_key(&world.path("/npcs"), "k", json!({ "name": "New" })).await.expect(201);
    elsewhere.post_with_key(&world.path("/npcs"), "k", json!({ "name": "New" })).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_at_once_make_one_row() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let path = world.path("/npcs");
    let answers = join_all((0..32).map(|_| tenant.post_with_key(&path, "herd", json!({ "name": "One" })))).await;
    let made: BTreeSet<String> = answers.iter().filter(|a| a.status == 201).map(|a| a.id()).collect();
    assert_eq!(made.len(), 1, "{made:?}");
    let first = answers.iter().filter(|a| a.status == 201 && a.header("idempotency-replayed").is_empty()).count();
    assert_eq!(first, 1);
    for answer in answers.into_iter().filter(|a| a.status != 201) {
        answer.problem(409, "idempotency_in_flight");
    }
    assert_eq!(world.get("/npcs?q=One").await.expect(200).items().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_not_kept() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let path = world.path("/npcs");
    let body = json!({ "slug": "harbour_ilse", "name": "Ilse" });
    tenant.post_with_key(&path, "k", body.clone()).await.problem(409, "slug_taken");
    world.delete("/npcs/harbour_ilse").await.expect(204);
    let made = tenant.post_with_key(&path, "k", body).await.expect(201);
    assert_eq!(made.header("idempotency-replayed"), "");
    // Nor is a body that was wrong: the corrected one is another.
    tenant.post_with_key(&path, "k3", json!({ "name": "" })).await.problem(422, "validation_failed");
    tenant.post_with_key(&path, "k3", json!({ "name": "Now" })).await.expect(201);
    tenant
        .post_with_key(&world.path("/messages"), "k4", json!({ "content": "x", "player_id": "no" }))
        .await
        .expect(422);
    assert_eq!(counts(&server).await["idempotency"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_outlives_the_server_that_took_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (path, credential) = (world.path("/npcs"), tenant.credential.clone());
    let first = tenant.post_with_key(&path, "k", json!({ "name": "One" })).await.expect(201);
    let server = Server::on(server.stop().await, &[]).await;
    let again = server.anonymous().with_credential(&credential);
    let again = again.post_with_key(&path, "k", json!({ "name": "One" })).await.expect(201);
    assert_eq!((again.header("idempotency-replayed"), &again.text), ("true", &first.text));
}

/// What a server of an older version stored is sent as it is, also if this one would write it in another order.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_an_older_version_is_sent_as_it_was_stored() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let path = tenant.world().await.path("/npcs");
    let mut body = tenant.post_with_key(&path, "k", json!({ "name": "One" })).await.expect(201).body;
    body["description"] = json!("From an older version.");
    let body = body.to_string();
    let stored = "UPDATE idempotency SET body = convert_to($1, 'UTF8'), headers = $2 WHERE key = 'k'";
    let headers = json!({ "status": 201, "location": "/v1/npcs/old_one", "etag": "\"v7\"" });
    let changed = sqlx::query(stored).bind(&body).bind(headers).execute(&mut server.owner().await).await.unwrap();
    assert_eq!(changed.rows_affected(), 1);
    let again = tenant.post_with_key(&path, "k", json!({ "name": "One" })).await.expect(201);
    assert_eq!(again.text, body);
    let headers = ["location", "etag", "idempotency-replayed"].map(|name| again.header(name));
    assert_eq!(headers, ["/v1/npcs/old_one", "\"v7\"", "true"]);
}

/// Two replicas that get the same request at once make one row between them.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_keys() {
    let one = Server::start().await;
    let two = Server::on(one.db.clone(), &[]).await;
    let tenant = one.tenant("acme").await;
    let path = tenant.world().await.path("/npcs");
    let elsewhere = two.anonymous().with_credential(&tenant.credential);
    let body = json!({ "name": "One" });
    let answers = join_all((0..8).map(|i| {
        let client = if i % 2 == 0 { &tenant } else { &elsewhere };
        client.post_with_key(&path, "k", body.clone())
    }))
    .await;
    let made: BTreeSet<String> = answers.iter().filter(|a| a.status == 201).map(|a| a.id()).collect();
    assert_eq!(made.len(), 1, "{made:?}");
    assert!(answers.iter().all(|a| a.status == 201 || a.body["code"] == "idempotency_in_flight"));
    assert_eq!(elsewhere.get(&format!("{path}?q=One")).await.expect(200).items().len(), 1);
}
