//! Player links: who makes them, how long they last, and that nobody is thrown out while one works.

use base::{clock, secrets::Secrets};
use edge::caller::{Scope, jwt::Claims};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};
use uuid::Uuid;

use super::{ALICE, Guest, MALLORY, says, token};
use crate::support::{Answer, Client, Server, browser::Browser, until};

/// What stands after the `#` of a link.
fn secret_of(link: &Value) -> &str {
    let url = link["url"].as_str().unwrap_or_else(|| panic!("{link}"));
    url.split_once("/play/port-town#").unwrap().1
}

async fn make(client: &Client<'_>, body: Value) -> Answer {
    client.post("/v1/campaigns/port-town/player-links", body).await
}

async fn listed(client: &Client<'_>) -> Vec<Value> {
    client.get("/v1/campaigns/port-town/player-links").await.expect(200).items().to_vec()
}

fn age(answer: &Answer) -> i64 {
    let (_, age) = answer.header("set-cookie").split_once("Max-Age=").unwrap();
    age.split(';').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_lasts_until_it_is_revoked() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let made = make(&tenant, json!({ "player_id": ALICE, "name": " Ann’s phone " })).await.expect(201);
    assert_eq!(made.header("location"), {
        let campaign = world.get("").await.body["id"].as_str().unwrap().to_owned();
        format!("/v1/campaigns/{campaign}/player-links/{}", made.id())
    });
    let link = made.body.clone();
    assert!(link["url"].as_str().unwrap().starts_with(&format!("{}/play/port-town#pl_", server.url)), "{link}");
    assert_eq!(
        (&link["player_slug"], &link["name"], &link["expires_at"], &link["last_used_at"]),
        (&json!(ALICE), &json!("Ann’s phone"), &Value::Null, &Value::Null)
    );
    assert_eq!(world.get(&format!("/player-links/{}", made.id())).await.expect(200).body, link);
    assert_eq!(listed(&tenant).await, std::slice::from_ref(&link));
    let guest = Guest::seated(&server, secret_of(&link)).await;
    assert!(guest.page().await.contains("<title>Alice"));
    assert!(listed(&tenant).await[0]["last_used_at"].is_string());
    // It is no credential of the API, nor does it open another table.
    tenant.with_credential(secret_of(&link)).get("/v1/campaigns/port-town").await.problem(401, "unauthenticated");
    assert_eq!(guest.enter("elsewhere", secret_of(&link)).await.status, 404);
    // An open table says so within five seconds, although nothing happens there.
    let request = server.anonymous().request(Method::GET, "/play/port-town/live?after=0");
    let mut stream = request.header("cookie", &guest.cookie).send().await.unwrap();
    let first = stream.chunk().await.unwrap().expect("what there is");
    let mut told = String::from_utf8_lossy(&first).into_owned();
    world.delete(&format!("/player-links/{}", made.id())).await.expect(204);
    let over = async {
        while let Some(chunk) = stream.chunk().await.unwrap() {
            told.push_str(&String::from_utf8_lossy(&chunk));
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(5), over).await.expect("within five seconds");
    assert!(told.contains("event: over") && told.contains("Your visit is over"), "{told}");
    assert!(guest.page().await.contains("Join the table"));
    assert_eq!(guest.enter("port-town", secret_of(&link)).await.status, 401);
    assert!(listed(&tenant).await.is_empty());
    world.delete(&format!("/player-links/{}", made.id())).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_made_by_whoever_may_play() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (body, pointer) in [
        (json!({ "player_id": "nobody" }), "/player_id"),
        (json!({ "player_id": "innkeeper_bob" }), "/player_id"),
        (json!({ "player_id": "" }), "/player_id"),
        (json!({ "name": "Ann" }), "/player_id"),
        (json!({ "player_id": ALICE, "name": "a\nb" }), "/name"),
        (json!({ "player_id": ALICE, "name": "a".repeat(201) }), "/name"),
        (json!({ "player_id": ALICE, "expires_at": "tomorrow" }), "/expires_at"),
        (json!({ "player_id": ALICE, "expires_at": "2020-01-01T00:00:00Z" }), "/expires_at"),
        (json!({ "player_id": ALICE, "expires_at": "9999-01-01T00:00:00Z" }), "/expires_at"),
        (json!({ "player_id": ALICE, "url": "https://example.org" }), "/url"),
    ] {
        let refused = make(&tenant, body.clone()).await.problem(422, "validation_failed");
        assert_eq!(refused.pointers(), [pointer], "{body}");
    }
    assert!(listed(&tenant).await.is_empty());
    let player = tenant.token(json!({ "scopes": ["read", "play"], "campaign": "port-town", "player_id": ALICE })).await;
    let reader = tenant.with_scopes(&[Scope::Read, Scope::Write, Scope::Gm]).await;
    for client in [&player, &reader] {
        make(client, json!({ "player_id": ALICE })).await.problem(403, "forbidden");
        client.get("/v1/campaigns/port-town/player-links").await.problem(403, "forbidden");
    }
    let host = tenant.with_scopes(&[Scope::Play]).await;
    let link = make(&host, json!({ "player_id": ALICE })).await.expect(201).body;
    // Another tenant has neither the link nor the campaign.
    let other = server.tenant("other").await;
    other.world().await;
    assert!(listed(&other).await.is_empty());
    let path = format!("/player-links/{}", link["id"].as_str().unwrap());
    other.delete(&format!("/v1/campaigns/port-town{path}")).await.problem(404, "not_found");
    world.get(&path).await.expect(200);
    let copy = world.post("/fork", json!({ "slug": "copy" })).await.expect(201);
    assert_eq!(copy.body["slug"], "copy");
    assert!(tenant.get("/v1/campaigns/copy/player-links").await.expect(200).items().is_empty(), "a fork has none");
    tenant.get(&format!("/v1/campaigns/copy{path}")).await.problem(404, "not_found");
    let document = world.get("/export").await.expect(200).text;
    assert!(!document.contains("pl_") && !document.contains("player_link"), "nor has a document");
}

/// A request that is sent again makes no second link, and neither its answer nor anything that is stored has the link.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_stored_only_encrypted() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let send = async || {
        let request = tenant.request(Method::POST, "/v1/campaigns/port-town/player-links");
        tenant.send(request.header("idempotency-key", "once").json(&json!({ "player_id": ALICE }))).await.expect(201)
    };
    let (first, again) = (send().await, send().await);
    assert_eq!((first.id(), again.header("idempotency-replayed")), (again.id(), "true"));
    assert_eq!(again.body["url"], Value::Null);
    assert_eq!(listed(&tenant).await, std::slice::from_ref(&first.body));
    let secret = secret_of(&first.body).trim_start_matches("pl_").to_owned();
    let mut db = server.owner().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace",
    )
    .fetch_all(&mut db)
    .await
    .unwrap();
    assert!(tables.iter().any(|table| table == "player_link"));
    for table in tables {
        let found = format!("SELECT count(*) FROM {table} t WHERE position($1 IN t::text) > 0");
        let found: i64 = sqlx::query_scalar(AssertSqlSafe(found)).bind(&secret).fetch_one(&mut db).await.unwrap();
        assert_eq!(found, 0, "{table}");
    }
    // What an earlier secret of the server encrypted can no longer be shown, and still works.
    let earlier = Secrets::parse("another secret that is forty characters long").unwrap();
    let sealed = earlier.seal(tenant.tenant, secret_of(&first.body)).unwrap();
    sqlx::query("UPDATE player_link SET sealed = $1").bind(sealed).execute(&mut db).await.unwrap();
    assert_eq!(listed(&tenant).await[0]["url"], Value::Null);
    assert!(Guest::seated(&server, secret_of(&first.body)).await.page().await.contains("<title>Alice"));
}

/// A visit goes on as long as the table is opened now and then, whatever its link says of an end.
#[tokio::test(flavor = "multi_thread")]
async fn a_visit_is_renewed_while_the_table_is_open() {
    const HOUR: i64 = 3600;
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let link = make(&tenant, json!({ "player_id": ALICE })).await.expect(201).body;
    let entered = Guest::at(&server).enter("port-town", secret_of(&link)).await.expect(303);
    assert_eq!(age(&entered), 12 * HOUR);
    let mut guest = Guest::seated(&server, secret_of(&link)).await;
    assert_eq!(guest.get("/play/port-town").await.expect(200).header("set-cookie"), "", "a young visit is not renewed");
    // The same visit, an hour and a bit later.
    let older =
        |claims: Claims, by: i64| Claims { iat: claims.iat - by, nbf: claims.nbf - by, exp: claims.exp - by, ..claims };
    let held = |guest: &Guest| guest.cookie.split_once('=').unwrap().1.to_owned();
    let claims = server.app.tokens.check_visit(&held(&guest)).unwrap();
    let set = |claims: &Claims| format!("tavernkeep_play={}", server.app.tokens.sign(claims).unwrap());
    guest.cookie = set(&older(claims.clone(), HOUR + 60));
    for path in ["/play/port-town", "/play/port-town/live?after=0"] {
        let request = server.anonymous().request(Method::GET, path).header("cookie", &guest.cookie);
        let answer = request.send().await.unwrap();
        let cookie =
            answer.headers().get("set-cookie").unwrap_or_else(|| panic!("{path}")).to_str().unwrap().to_owned();
        for part in ["HttpOnly", "SameSite=Lax", "Path=/play/port-town;", &format!("Max-Age={}", 12 * HOUR)] {
            assert!(format!("{cookie};").contains(part), "{path}: {cookie}");
        }
        let renewed = server.app.tokens.check_visit(cookie.split(['=', ';']).nth(1).unwrap()).unwrap();
        assert_eq!((renewed.jti, renewed.link), (claims.jti, claims.link), "it is the same visit");
    }
    // Whoever leaves with an old cookie ends the visit of the new one.
    let newer = Guest { http: guest.http.clone(), base: guest.base.clone(), cookie: set(&claims) };
    guest.send(guest.form("/play/port-town/leave", &[])).await.expect(303);
    assert!(newer.page().await.contains("Join the table"));
    // Twelve hours without the table are the end.
    let guest = Guest::seated(&server, secret_of(&link)).await;
    let claims = server.app.tokens.check_visit(&held(&guest)).unwrap();
    let late = Guest { cookie: set(&older(claims, 12 * HOUR + 60)), ..guest };
    assert!(late.page().await.contains("Join the table"));
    // An end is an end, of a link as of a token.
    let end = clock::later(clock::now(), Duration::minutes(30));
    let short =
        make(&tenant, json!({ "player_id": ALICE, "expires_at": end.format(&Rfc3339).unwrap() })).await.expect(201);
    for credential in [secret_of(&short.body).to_owned(), token(&tenant, ALICE).await] {
        let guest = Guest::seated(&server, &credential).await;
        let claims = server.app.tokens.check_visit(&held(&guest)).unwrap();
        let until = claims.until.expect("it has an end");
        assert!(until <= end.unix_timestamp() && claims.exp == until);
        let renewed = Claims { iat: claims.iat - 2 * HOUR, ..claims }.renewed();
        assert_eq!(renewed.exp, until, "no visit is renewed beyond it");
    }
}

/// A link ends with its own end, its key, its character and its campaign.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_ends_with_what_it_hangs_on() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut db = server.owner().await;
    let seated = async |player: &str| {
        let link = make(&tenant, json!({ "player_id": player })).await.expect(201).body;
        (Guest::seated(&server, secret_of(&link)).await, link)
    };
    let over = async |guest: &Guest, link: &Value| {
        until("the visit's end", async || guest.page().await.contains("Join the table")).await;
        guest.enter("port-town", secret_of(link)).await.status
    };
    let (ended, link) = seated(ALICE).await;
    let end = "UPDATE player_link SET expires_at = now() - interval '1 second' WHERE id = $1::uuid";
    sqlx::query(end).bind(link["id"].as_str()).execute(&mut db).await.unwrap();
    assert_eq!(over(&ended, &link).await, 401);
    assert_eq!(listed(&tenant).await.len(), 1, "its maker sees that it has ended");
    // What has ended for a month is forgotten when the next link is made.
    let end = "UPDATE player_link SET expires_at = now() - interval '31 days' WHERE id = $1::uuid";
    sqlx::query(end).bind(link["id"].as_str()).execute(&mut db).await.unwrap();
    let (deleted, link) = seated(MALLORY).await;
    assert_eq!(
        listed(&tenant).await,
        [world.get(&format!("/player-links/{}", link["id"].as_str().unwrap())).await.body]
    );
    world.delete("/characters/player_mallory").await.expect(204);
    assert_eq!(over(&deleted, &link).await, 401);
    assert!(listed(&tenant).await.is_empty());
    let (keyless, link) = seated(ALICE).await;
    let key = "UPDATE api_key SET revoked_at = now() WHERE id = (SELECT key_id FROM player_link WHERE id = $1::uuid)";
    let other = tenant.with_scopes(&Scope::ALL).await;
    sqlx::query(key).bind(link["id"].as_str()).execute(&mut db).await.unwrap();
    assert_eq!(over(&keyless, &link).await, 401);
    until("the key's end", async || other.get("/v1/campaigns/port-town/player-links").await.items().is_empty()).await;
    let link = make(&other, json!({ "player_id": ALICE })).await.expect(201).body;
    let guest = Guest::seated(&server, secret_of(&link)).await;
    other.delete("/v1/campaigns/port-town").await.expect(204);
    assert_eq!(over(&guest, &link).await, 401);
    // Nothing stays behind that would refuse the deletion.
    until("the campaign's end", async || {
        let left: i64 =
            sqlx::query_scalar("SELECT count(*) FROM player_link").fetch_one(&mut server.owner().await).await.unwrap();
        left == 0
    })
    .await;
}

/// Whatever is sent without a visit is answered by a page, never by JSON, and what was written stands on it.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_written_is_lost_with_a_visit() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let stranger = Guest::at(&server);
    let id = clock::id();
    let turn = format!("/play/port-town/turns/{id}");
    let on_answers = ["again", "choose", "continue", "stop"].map(|what| format!("{turn}/{what}"));
    let act = format!("/play/port-town/fights/{id}/act");
    for (path, field) in [
        ("/play/port-town/say", ("text", "I <b>draw</b> my sword & wait.")),
        ("/play/port-town/roll", ("formula", "1d20")),
        ("/play/port-town/check", ("of", "skill stealth")),
        ("/play/port-town/meet", ("to", "innkeeper_bob")),
        (&on_answers[0], ("", "")),
        (&on_answers[1], ("", "")),
        (&on_answers[2], ("", "")),
        (&on_answers[3], ("", "")),
        (&act, ("action", "{}")),
    ] {
        let answer = stranger.send(stranger.form(path, &[field])).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (401, "text/html; charset=utf-8"),
            "{path}: {}",
            answer.text
        );
        assert!(
            answer.text.contains("<h1>Your visit is over</h1>") && answer.text.contains("id=\"enter\""),
            "{}",
            answer.text
        );
        assert_eq!(answer.text.contains("I &#60;b&#62;draw&#60;/b&#62; my sword &#38; wait."), path.ends_with("/say"));
        // In a page with a script it is a message of that page, and what was written is still in its field.
        let inside = stranger.send(stranger.form(path, &[field]).header("hx-request", "true")).await;
        assert_eq!(inside.status, 401, "{path}");
        assert!(
            inside.text.starts_with("<p class=\"alert\"") && inside.text.contains("Your visit is over"),
            "{}",
            inside.text
        );
    }
    let listening = stranger.get(&turn).await;
    assert_eq!((listening.status, listening.header("content-type")), (401, "text/html; charset=utf-8"));
    // Another site's words are not even shown.
    let foreign = stranger.form("/play/port-town/say", &[("text", "Theirs")]).header("sec-fetch-site", "cross-site");
    let foreign = stranger.send(foreign).await;
    assert!(foreign.status == 403 && !foreign.text.contains("Theirs"), "{}", foreign.text);
    assert_eq!(stranger.get("/play/port-town/leave").await.status, 401);
    // Who leaves is asked.
    let guest = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let asked = guest.get("/play/port-town/leave").await.expect(200).text;
    assert!(asked.contains("Leave the table?") && asked.contains("action=\"/play/port-town/leave\""), "{asked}");
    assert!(guest.page().await.contains("<title>Alice"), "asking ends nothing");
}

/// In a browser: what was typed when the visit ended is in the field again once the link, or another one, is opened.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_is_there_again() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let Some(browser) = Browser::open().await else { return };
    let link = make(&tenant, json!({ "player_id": ALICE })).await.expect(201).body;
    browser.goto(link["url"].as_str().unwrap()).await;
    browser.until("the table", "return document.getElementById('log')").await;
    browser.write("#text", "I was about to say").await;
    world.delete(&format!("/player-links/{}", link["id"].as_str().unwrap())).await.expect(204);
    browser.sees("#alert", "Your visit is over.").await;
    // Typing on takes nothing away, and sending says why it did not work.
    browser.write("#text", "I was about to say this.").await;
    browser.choose("#to", "").await;
    browser.click(".say button").await;
    browser.sees("#alert", "What you wrote stays in its field.").await;
    assert_eq!(browser.value("#text").await, "I was about to say this.");
    let other = make(&tenant, json!({ "player_id": ALICE })).await.expect(201).body;
    browser.goto(other["url"].as_str().unwrap()).await;
    browser.until("the words", "return document.getElementById('text')?.value === 'I was about to say this.'").await;
    browser.choose("#to", "").await;
    browser.click(".say button").await;
    browser.sees("#said", "I was about to say this.").await;
    browser.until("the empty field", "return document.getElementById('text').value === ''").await;
    browser.goto(&format!("{}/play/port-town", server.url)).await;
    browser.until("the table", "return document.getElementById('log')").await;
    assert_eq!(browser.value("#text").await, "", "what was sent is not kept");
    says(&world, json!({ "content": "Go on." })).await;
    browser.sees("#said", "Go on.").await;
    // Leaving asks, and takes with it what was not sent.
    browser.write("#text", "A secret").await;
    browser.click("header form button").await;
    browser.until("the question", "return document.getElementById('leave')").await;
    browser.click("#leave button").await;
    browser.until("the door", "return document.getElementById('enter')").await;
    assert_eq!(
        browser.js("return Object.keys(localStorage).filter((key) => key.startsWith('unsent'))").await,
        json!([])
    );
}

/// Whoever comes back after half an hour reads what was said meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_back_reads_what_was_missed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let link = make(&tenant, json!({ "player_id": ALICE })).await.expect(201);
    let guest = Guest::seated(&server, secret_of(&link.body)).await;
    let mut db = server.owner().await;
    // Said before the pause.
    let early = says(&world, json!({ "content": "Before." })).await;
    sqlx::query("UPDATE message SET created_at = now() - interval '3 hours' WHERE id = $1")
        .bind(Uuid::try_parse(&early).unwrap())
        .execute(&mut db)
        .await
        .unwrap();
    for n in 0..3 {
        says(&world, json!({ "content": format!("Meanwhile {n}.") })).await;
    }
    says(&world, json!({ "content": "For Mallory.", "whisper_to": [MALLORY] })).await;
    let was_away = async |minutes: i32| {
        let sql = "UPDATE player_link SET last_used_at = now() - make_interval(mins => $1), away_since = NULL, back_at = NULL";
        sqlx::query(sql).bind(minutes).execute(&mut server.owner().await).await.unwrap();
        let is_back = async || {
            guest.page().await;
            let used = listed(&tenant).await[0]["last_used_at"].as_str().unwrap().to_owned();
            let used = OffsetDateTime::parse(&used, &Rfc3339).unwrap();
            used > clock::later(clock::now(), Duration::minutes(-1))
        };
        until("the link to be in use", is_back).await;
        guest.page().await
    };
    let marked = "<p class=\"session\">Since you were here</p>";
    let page = was_away(20).await;
    assert!(!page.contains("since you were here") && !page.contains(marked), "a short pause: {page}");
    let page = was_away(120).await;
    assert!(page.contains(">3 lines</a> since you were here"), "{page}");
    let (before, meanwhile) = page.split_once(marked).expect("where they begin");
    assert!(before.contains("Before.") && !before.contains("Meanwhile 0."), "{page}");
    assert!(meanwhile.contains("Meanwhile 0."), "{page}");
    let (_, path) = page.split_once("<p id=\"missed\"").unwrap().1.split_once("href=\"").unwrap();
    let story = guest.get(path.split_once('"').unwrap().0).await.expect(200).text;
    assert!(story.contains("Meanwhile 0.") && story.contains("Meanwhile 2.") && !story.contains("Before."), "{story}");
    assert_eq!(story.matches("class=\"line\"").count(), 3);
    // Also when the page is loaded again, and whatever is said since.
    guest.send(guest.form("/play/port-town/say", &[("text", "I am back.")])).await.expect(303);
    says(&world, json!({ "content": "Welcome." })).await;
    let page = guest.page().await;
    assert!(page.contains(">3 lines</a> since you were here") && page.contains("Welcome."), "{page}");
    // Whoever has been back for half an hour has read it.
    sqlx::query("UPDATE player_link SET back_at = now() - interval '31 minutes'").execute(&mut db).await.unwrap();
    let page = guest.page().await;
    assert!(!page.contains("since you were here") && !page.contains(marked), "{page}");
}
