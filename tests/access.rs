//! Who may do what: every route of the table against every kind of credential that should not pass, and some that should.

use std::collections::BTreeSet;

use edge::caller::{
    Scope,
    access::{Access, Player, Reach, TABLE},
};
use rehearsal::{Reply, Script};
use reqwest::Method;
use serde_json::json;

use crate::support::{Client, Rows, Server, counts};

/// Routes without `/v1`, which ask for no credential.
const OPEN: &[&str] = &["/healthz", "/readyz", "/metrics", "/openapi.yaml", "/docs", "/problems/{code}"];
/// The same for everybody, although the path has a hole.
const SHARED: &[&str] = &["/v1/rules/srd/{x}"];
/// In every text that only its tenant may read.
const CANARY: &str = "canary-7f3ab1";

/// Routes that ask for their credential at the door. The others are `tests/bridge/connect.rs`'s affair.
fn routes() -> impl Iterator<Item = &'static Access> {
    TABLE.iter().filter(|r| !r.in_first_frame)
}

fn name(route: &Access) -> String {
    format!("{} {}", route.method, route.path)
}

#[test]
fn the_table_lists_every_route_and_no_other() {
    let api = tavernkeep::routes::document();
    let mut described = BTreeSet::new();
    let mut open = BTreeSet::new();
    for (path, item) in &api.paths.paths {
        let methods = [
            ("GET", &item.get),
            ("POST", &item.post),
            ("PUT", &item.put),
            ("PATCH", &item.patch),
            ("DELETE", &item.delete),
        ];
        for (method, _) in methods.into_iter().filter(|(_, operation)| operation.is_some()) {
            if path.starts_with("/v1/") {
                described.insert(format!("{method} {path}"));
            } else {
                open.insert(path.as_str());
            }
        }
    }
    let listed: BTreeSet<String> = TABLE.iter().map(name).collect();
    assert_eq!(listed.len(), TABLE.len(), "a route is listed twice");
    assert_eq!(listed.symmetric_difference(&described).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(open, OPEN.iter().copied().collect());
    let later: Vec<String> = TABLE.iter().filter(|r| r.in_first_frame).map(name).collect();
    assert_eq!(later, ["GET /v1/campaigns/{c}/bridge"]);
}

/// Else the gate could ask for what another route requires. Where a path fits two, they require the same.
#[test]
fn no_path_fits_two_routes_that_require_different_things() {
    let required = |r: &Access| (r.scope, r.also, r.or, r.reach, r.player, r.in_first_frame, r.body_bytes_max);
    for (n, a) in TABLE.iter().enumerate() {
        for b in TABLE[n + 1..].iter().filter(|b| b.method == a.method) {
            let fixed =
                |(a, b): (&str, &str)| if a.starts_with('{') { b.replace(['{', '}'], "") } else { a.to_owned() };
            let path = a.path.split('/').zip(b.path.split('/')).map(fixed).collect::<Vec<_>>().join("/");
            let is_both = a.fits(&path) && b.fits(&path);
            assert!(!is_both || required(a) == required(b), "{} {path} fits {} and {}", a.method, a.path, b.path);
        }
    }
}

/// A path is decoded before it finds its route. What the route requires must not depend on how it was written.
#[tokio::test(flavor = "multi_thread")]
async fn an_encoded_path_requires_what_its_route_requires() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let reader = acme.with_scopes(&[Scope::Read]).await;
    for path in ["/v1/campaigns/import", "/v1/campaigns/%69mport", "/%76%31/c%61mpaigns/import"] {
        let post = reader.request(Method::POST, path).json(&json!({}));
        reader.send_odd(post).await.problem(403, "forbidden");
    }
    let list = reader.send_odd(reader.request(Method::GET, "/v1/%63ampaigns")).await.expect(200);
    assert_eq!(list.items().len(), 0, "{}", list.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_credential_nothing_happens() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, CANARY).await;
    let before = counts(&server).await;
    for route in routes() {
        let answer = rows.send(&server.anonymous(), route).await.problem(401, "unauthenticated");
        assert!(answer.header("www-authenticate").starts_with("Bearer"), "{}", name(route));
        assert!(!answer.text.contains(CANARY), "{}", name(route));
    }
    let unknown = format!("tk_abcdefgh_{}", "x".repeat(43));
    let half = tenant.credential[..tenant.credential.len() - 1].to_owned();
    let other_case = tenant.credential.to_uppercase();
    for bad in [unknown.as_str(), half.as_str(), other_case.as_str(), "tk_", "x", "a.b.c", "é"] {
        tenant.with_credential(bad).get("/v1/campaigns").await.problem(401, "unauthenticated");
    }
    for header in
        ["", "Bearer", "Bearer ", "Basic dGs6eA==", &format!("Token {}", tenant.credential), &tenant.credential]
    {
        let request = server.anonymous().request(reqwest::Method::GET, "/v1/campaigns").header("authorization", header);
        server.anonymous().send(request).await.problem(401, "unauthenticated");
    }
    assert_eq!(counts(&server).await, before);
    for path in OPEN.iter().map(|p| p.replace("{code}", "not_found")) {
        server.anonymous().get(&path).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_without_the_scope_is_refused_and_one_with_only_the_scope_is_not() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, CANARY).await;
    let mut lacking = Vec::new();
    let mut having = Vec::new();
    for scope in Scope::ALL {
        let others: Vec<_> = Scope::ALL.into_iter().filter(|s| *s != scope).collect();
        lacking.push((scope, tenant.with_scopes(&others).await));
        having.push((scope, tenant.with_scopes(&[scope]).await));
    }
    let of = |list: &'_ [(Scope, Client<'_>)], scope: Scope| list.iter().position(|(s, _)| *s == scope).unwrap();
    let before = counts(&server).await;
    for route in routes() {
        for scope in route.scopes() {
            let neither;
            let client = match route.or {
                Some(or) => {
                    let others: Vec<_> = Scope::ALL.into_iter().filter(|s| *s != scope && *s != or).collect();
                    neither = tenant.token(json!({ "scopes": others })).await;
                    &neither
                }
                None => &lacking[of(&lacking, scope)].1,
            };
            let answer = rows.send(client, route).await.problem(403, "forbidden");
            let detail = answer.body["detail"].as_str().unwrap();
            assert!(detail.contains(scope.as_str()), "{}: {}", name(route), answer.text);
            assert!(!answer.text.contains(CANARY), "{}", name(route));
        }
    }
    assert_eq!(counts(&server).await, before);
    for route in routes() {
        let both;
        let client = match (route.scope, route.also) {
            (Some(scope), Some(also)) => {
                both = tenant.with_scopes(&[scope, also]).await;
                &both
            }
            (Some(scope), None) => &having[of(&having, scope)].1,
            (None, _) => &having[0].1,
        };
        // Not deletes, for what they delete is needed; nor keys and users, for nobody gives what they do not have.
        if route.method != "DELETE" && !route.path.contains("/api-keys") && !route.path.contains("/users") {
            let answer = rows.send(client, route).await;
            assert!(answer.status < 300 || answer.status == 409, "{}: {} {}", name(route), answer.status, answer.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_another_tenant_is_absent() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let rows = Rows::make(&acme, CANARY).await;
    let other = server.tenant("other").await;
    other.get("/v1/dice/seeds").await.expect(200);
    let before = counts(&server).await;
    for route in routes() {
        let in_path = route.path.contains('{') && !SHARED.contains(&route.path);
        if route.method == "GET" || in_path {
            let answer = rows.send(&other, route).await;
            assert_eq!(answer.status, if in_path { 404 } else { 200 }, "{}: {}", name(route), answer.text);
            assert!(!answer.text.contains(CANARY), "{}: {}", name(route), answer.text);
            if in_path && route.path.contains("{c}") {
                // The slug means nothing to others either.
                let by_slug = rows.path(route.path).replacen(&rows.campaign, "port-town", 1);
                other
                    .send(other.request(route.method.parse().unwrap(), &by_slug).json(&rows.body(route)))
                    .await
                    .expect(404);
            }
        }
    }
    assert_eq!(counts(&server).await, before);

    // Nor can another's rows be named from within one's own campaign.
    let own = other.world().await;
    for (path, body, pointer) in [
        (
            "/npcs",
            json!({ "name": "Spy", "owner_ids": [rows.path("/v1/owners/{x}").rsplit('/').next()] }),
            "/owner_ids/0",
        ),
        ("/npcs/innkeeper_bob/memories", json!({ "player_id": rows.alice, "text": "x" }), "/player_id"),
        ("/messages", json!({ "content": "x", "player_id": rows.alice }), "/player_id"),
        ("/messages", json!({ "content": "x", "whisper_to": ["gm", rows.alice] }), "/whisper_to/1"),
        (
            "/messages",
            json!({ "content": "x", "scene_id": rows.path("/v1/scenes/{x}").rsplit('/').next() }),
            "/scene_id",
        ),
        ("/npcs/innkeeper_bob/turns", json!({ "player_id": rows.alice, "action": "x" }), "/player_id"),
    ] {
        let answer = own.post(path, body).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{path}");
        assert_eq!(answer.body["errors"][0]["code"], "unknown_reference");
    }
    // And two campaigns of one tenant are as apart as two tenants.
    other.post("/v1/campaigns", json!({ "slug": "inland", "name": "Inland" })).await.expect(201);
    for (kind, slug) in [
        ("characters", "player_alice"),
        ("npcs", "innkeeper_bob"),
        ("owners", "town_council_owner"),
        ("lore", "the_reach"),
    ] {
        let id = own.get(&format!("/{kind}/{slug}")).await.expect(200).id();
        for name in [slug, id.as_str()] {
            other.get(&format!("/v1/campaigns/inland/{kind}/{name}")).await.problem(404, "not_found");
            other.delete(&format!("/v1/campaigns/inland/{kind}/{name}")).await.problem(404, "not_found");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_players_token_does_what_the_table_says() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, CANARY).await;
    let alice = tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice" })).await;
    let before = counts(&server).await;
    for route in routes() {
        match (route.player, route.method) {
            (Player::Never, _) => {
                rows.send(&alice, route).await.problem(403, "forbidden");
            }
            (Player::Filtered | Player::Own, "GET") => {
                rows.send(&alice, route).await.expect(200);
            }
            (Player::Filtered, _) => panic!("{}: a player would write what everyone may", name(route)),
            (Player::Own, _) => {}
        }
    }
    assert_eq!(counts(&server).await, before);

    // Only as herself.
    server.model.set_script(Script::replies([Reply::text("Welcome.")]));
    for (path, who) in [("npcs/innkeeper_bob", &rows.mallory), ("owners/town_council_owner", &rows.mallory)] {
        let body = json!({ "player_id": who, "action": "I am someone else." });
        let path = format!("/v1/campaigns/port-town/{path}/turns");
        alice.post(&path, body).await.problem(403, "forbidden");
    }
    assert_eq!(counts(&server).await["turn"], before["turn"]);
    let body = json!({ "player_id": rows.alice, "action": "Hello." });
    alice.post("/v1/campaigns/port-town/npcs/innkeeper_bob/turns", body).await.expect(200);
    // What she asked for she may read, without what the model was told.
    let turn = TABLE.iter().find(|r| r.method == "GET" && r.path.ends_with("/turns/{x}")).unwrap();
    let read = rows.send(&alice, turn).await.expect(200).body;
    assert!(read["narrative"].as_str().unwrap().contains(CANARY), "{read}");
    for hidden in ["prompt", "trace", "journal", "revert_conflicts"] {
        assert!(read.get(hidden).is_none(), "{read}");
    }
    // Another's turn cannot be cancelled, nor read: it is not there.
    let mallory = tenant.token(json!({ "campaign": rows.campaign, "player_id": rows.mallory })).await;
    rows.send(&mallory, turn).await.problem(404, "not_found");
    let cancel = TABLE.iter().find(|r| r.path.ends_with("/cancel")).unwrap();
    rows.send(&mallory, cancel).await.problem(404, "not_found");
    rows.send(&alice, cancel).await.problem(409, "conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_one_campaign_finds_no_other() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, CANARY).await;
    tenant.post("/v1/campaigns", json!({ "slug": "inland", "name": "Inland" })).await.expect(201);
    let inland = tenant.token(json!({ "campaign": "inland" })).await;
    let before = counts(&server).await;
    for route in routes().filter(|r| r.path.contains("{c}") && r.reach == Reach::Campaign) {
        let answer = rows.send(&inland, route).await.problem(404, "not_found");
        assert!(!answer.text.contains(CANARY), "{}", name(route));
    }
    let seen = inland.get("/v1/campaigns").await.expect(200);
    assert_eq!(seen.items().iter().map(|c| &c["slug"]).collect::<Vec<_>>(), ["inland"]);
    inland.post("/v1/campaigns", json!({ "name": "Third" })).await.problem(403, "forbidden");
    assert_eq!(counts(&server).await, before);
}

/// A prefix only finds a key. The rest of the key has to be right to its last character.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_prefix_with_another_secret_is_no_credential() {
    let server = Server::start().await;
    let (acme, other) = (server.tenant("acme").await, server.tenant("other").await);
    acme.get("/v1/campaigns").await.expect(200);
    let (prefix, secret) = acme.credential.split_at("tk_12345678_".len());
    let exchanged = |at: usize| {
        let letter = if secret.as_bytes()[at] == b'A' { "B" } else { "A" };
        format!("{prefix}{}{letter}{}", &secret[..at], &secret[at + 1..])
    };
    let theirs = format!("{prefix}{}", &other.credential[prefix.len()..]);
    for forged in [exchanged(0), exchanged(20), exchanged(42), theirs, format!("{prefix}{}", "x".repeat(43))] {
        let forger = acme.with_credential(&forged);
        forger.get("/v1/campaigns").await.problem(401, "unauthenticated");
        forger.post("/v1/auth/token", json!({})).await.problem(401, "unauthenticated");
    }
}
