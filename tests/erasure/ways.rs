//! Who may erase, how it is asked for, and what becomes of one that was interrupted.

use base::clock;
use edge::caller::Scope;
use serde_json::json;
use sqlx::Row;
use uuid::Uuid;

use super::{CONFESSION, NAME, PLAYER, SLUG, STORY, assert_gone, done, erase, erased, found, person};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn it_asks_for_gm_and_admin_and_the_version_that_was_seen() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = person(&world).await;
    let path = world.path(&format!("/characters/{id}?erase=true"));
    for scopes in [&[Scope::Read, Scope::Write, Scope::Gm][..], &[Scope::Read, Scope::Write, Scope::Admin]] {
        tenant.with_scopes(scopes).await.delete(&path).await.problem(403, "forbidden");
    }
    let player = tenant.token(json!({ "campaign": world.slug, "player_id": SLUG })).await;
    player.delete(&path).await.problem(403, "forbidden");
    let narrowed = tenant.token(json!({ "campaign": world.slug })).await;
    narrowed.delete(&path).await.problem(403, "forbidden");
    let stale = tenant.request(reqwest::Method::DELETE, &path).header("if-match", "\"v9\"");
    tenant.send(stale).await.problem(412, "precondition_failed");
    world.delete(&format!("/characters/{id}?erase=yes")).await.problem(400, "bad_request");
    erase(&world, &id, "&also=x").await.problem(400, "bad_request");
    let other = server.tenant("other").await;
    other.delete(&path).await.problem(404, "not_found");
    assert!(!found(&server, &[NAME]).await.is_empty(), "a refusal erased something");

    erased(&world, &id, "").await;
    // The same again is done already; a name is nobody's any more.
    erased(&world, &id, "").await;
    erase(&world, SLUG, "").await.problem(404, "not_found");
    erase(&world, &clock::id().to_string(), "").await.problem(404, "not_found");
    let row = sqlx::query("SELECT id, words FROM erasure").fetch_one(&mut server.owner().await).await.unwrap();
    assert!(row.get::<Vec<String>, _>("words").is_empty());
    let path = format!("/v1/erasures/{}", row.get::<Uuid, _>("id"));
    let view = tenant.get(&path).await.expect(200);
    assert_eq!((view.body["status"].as_str(), view.body["kind"].as_str()), (Some("done"), Some("character")));
    assert!(view.body["rows"].as_i64().unwrap() > 0);
    other.get(&path).await.problem(404, "not_found");
    tenant.with_scopes(&[Scope::Admin]).await.get(&path).await.problem(403, "forbidden");
    tenant.get("/v1/erasures/nothing").await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_words_go_too_and_words_within_words_stay() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    person(&world).await;
    let lore = json!({ "slug": "names", "title": "Names", "scope": "global", "content": "Zeph and Quilly, not Zephyr; ZEPH's, zeph_a." });
    let id = world.post("/lore", lore).await.expect(201).id();
    erased(&world, SLUG, "&also=Zeph,Quilly").await;
    let content = world.get(&format!("/lore/{id}")).await.expect(200).body["content"].clone();
    assert_eq!(content, "[erased] and [erased], not Zephyr; [erased]'s, [erased]_a.");
}

/// A server that stops in between leaves it to whichever runs next.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_interrupted_is_carried_on() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = person(&world).await;
    let said = json!({ "type": "chat", "content": CONFESSION, "speaker": { "name": NAME }, "player_id": SLUG, "author": "player" });
    world.post("/messages", said).await.expect(201);
    // As a server leaves it that dies after a few steps.
    let erasure = clock::id();
    sqlx::query(
        "INSERT INTO erasure (tenant_id, id, kind, campaign_ids, subject_ids, words, place) \
         SELECT tenant_id, $1, 'character', ARRAY[campaign_id], ARRAY[id], ARRAY[name, slug, player_name, $3], 2 FROM character WHERE id::text = $2",
    )
    .bind(erasure)
    .bind(&id)
    .bind(STORY)
    .execute(&mut server.owner().await)
    .await
    .unwrap();
    done(&tenant, &format!("/v1/erasures/{erasure}")).await;
    assert_gone(&server, &[NAME, PLAYER, CONFESSION, STORY]).await;
    world.get(&format!("/characters/{id}")).await.problem(404, "not_found");
    let metrics = tenant.send_odd(server.anonymous().request(reqwest::Method::GET, "/metrics")).await;
    assert!(metrics.text.contains("erasures_total"), "no metric tells of it");
}

/// The operator erases from the command line, beside a server that runs; it waits until nothing is left.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_erases_too() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    person(&world).await;
    tenant.post("/v1/users", json!({ "email": "mara@example.org", "role": "viewer" })).await.expect(201);
    let run = async |arguments: &[&str]| {
        let mut binary = std::env::current_exe().unwrap();
        binary.pop();
        binary.pop();
        binary.push("tavernkeep");
        let done = tokio::process::Command::new(binary)
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("DATABASE_URL", &server.db.url)
            .env("TAVERNKEEP_SECRET_KEY", crate::support::SECRET)
            .env("RUST_LOG", "error")
            .output();
        let done = done.await.unwrap();
        (done.status.success(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
    };
    let whom = ["erase", "character", "--tenant", "acme", "--campaign", &world.slug, "--character"];
    let (ok, said) = run(&[&whom[..], &["nobody"]].concat()).await;
    assert!(!ok, "{said}");
    let (ok, said) = run(&[&whom[..], &[SLUG, "--forks", "--json"]].concat()).await;
    assert!(ok && said.contains("\"done\""), "{said}");
    let (ok, said) = run(&["erase", "user", "--tenant", "acme", "--email", "mara@example.org"]).await;
    assert!(ok && said.starts_with("Erased. "), "{said}");
    assert_gone(&server, &[NAME, PLAYER, SLUG, "mara@example.org"]).await;
}
