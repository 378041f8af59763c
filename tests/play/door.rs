//! Who may sit down, and for how long.

use edge::caller::Scope;
use reqwest::Method;
use serde_json::json;

use super::{ALICE, Guest, MALLORY, token};
use crate::support::{Server, World, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_link_opens_its_own_table_and_no_other() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    World::make(&tenant, "elsewhere").await;
    let other = server.tenant("other").await;
    other.world().await;
    let stranger = Guest::at(&server);
    for path in ["/play/port-town", "/play/no-such-place", "/play/%3Cb%3E"] {
        let door = stranger.get(path).await.expect(200).text;
        assert!(door.contains("Join the table") && !door.contains("<b>"), "{door}");
    }
    for (path, fields) in [("say", ("text", "Hello")), ("roll", ("formula", "1d20"))] {
        let answer = stranger.send(stranger.form(&format!("/play/port-town/{path}"), &[fields])).await;
        assert_eq!(answer.status, 401, "{}", answer.text);
    }
    let alice = token(&tenant, ALICE).await;
    // A key, a token that is no player's or may not play, somebody else's table, nothing at all.
    let broad = tenant.token(json!({ "scopes": ["read", "play"], "campaign": "port-town" })).await.credential;
    let reader = json!({ "scopes": ["read"], "campaign": "port-town", "player_id": ALICE });
    let reader = tenant.token(reader).await.credential;
    for (campaign, credential, status) in [
        ("port-town", tenant.credential.as_str(), 401),
        ("port-town", &broad, 401),
        ("port-town", &reader, 401),
        ("port-town", &format!("{alice}x"), 401),
        ("port-town", "", 401),
        ("elsewhere", &alice, 404),
        ("no-such-place", &alice, 404),
    ] {
        let answer = stranger.enter(campaign, credential).await;
        assert_eq!(answer.status, status, "{campaign}: {}", answer.text);
        assert_eq!(answer.header("set-cookie"), "");
        assert!(answer.text.contains("role=\"alert\"") && answer.text.contains("<!DOCTYPE html>"), "{}", answer.text);
    }
    let guest = Guest::seated(&server, &alice).await;
    assert!(guest.page().await.contains("<title>Alice · port-town</title>"));
    // A cookie is good for its table alone, also where it is sent to another.
    for path in ["/play/elsewhere", "/play/no-such-place"] {
        assert!(guest.get(path).await.expect(200).text.contains("Join the table"));
    }
    let there = guest.send(guest.form("/play/elsewhere/say", &[("text", "Hello")])).await;
    assert_eq!(there.status, 404, "{}", there.text);
    // The same slug at another tenant is another table.
    let theirs = Guest::seated(&server, &token(&other, MALLORY).await).await;
    let said = theirs.send(theirs.form("/play/port-town/say", &[("text", "Not for you")])).await;
    assert_eq!((said.status, said.header("location")), (303, "/play/port-town"));
    assert!(theirs.page().await.contains("Not for you"));
    assert!(!guest.page().await.contains("Not for you"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visit_is_kept_safe() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let stranger = Guest::at(&server);
    let entered = stranger.enter("port-town", &token(&tenant, ALICE).await).await.expect(303);
    let cookie = entered.header("set-cookie");
    for part in ["HttpOnly", "SameSite=Lax", "Path=/play/port-town"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let (_, age) = cookie.split_once("Max-Age=").unwrap();
    let age: i64 = age.split(';').next().unwrap().parse().unwrap();
    assert!((1..=900).contains(&age), "no longer than the token: {cookie}");
    assert!(!cookie.contains("Secure"), "it is plain HTTP here");
    // What it holds opens the table and nothing else.
    let held = cookie.split(['=', ';']).nth(1).unwrap();
    tenant.with_credential(held).get("/v1/campaigns/port-town").await.problem(401, "unauthenticated");
    assert_eq!(stranger.enter("port-town", held).await.status, 401);
    let guest = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    for path in ["/play/port-town", "/play/no-such-place", "/play/port-town/turns/00000000-0000-0000-0000-000000000000"]
    {
        let page = guest.get(path).await;
        let policy = page.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"));
        assert_eq!((page.header("cache-control"), page.header("referrer-policy")), ("no-store", "same-origin"));
        assert!(
            !page.text.contains("<style") && !page.text.contains("style=") && !page.text.contains(" on"),
            "{}",
            page.text
        );
    }
    let text = guest.page().await;
    let script = text.matches("<script").count();
    assert_eq!((script, text.matches("<script src=\"/static/").count()), (4, 4), "no script in the page");
    // The cookie is no credential of the API.
    let api = guest.get("/v1/campaigns/port-town").await;
    assert_eq!(api.status, 401);
    let left = guest.send(guest.form("/play/port-town/leave", &[])).await.expect(303);
    assert!(left.header("set-cookie").contains("tavernkeep_play=;") && left.header("set-cookie").contains("Max-Age=0"));
    for path in ["/play/%0d%0ax:y/leave", "/play/..%2f..%2f/leave", "/play//evil.example/leave"] {
        let answer = stranger.send(stranger.form(path, &[])).await;
        let location = answer.header("location").to_owned();
        assert!(answer.status == 404 || location.starts_with("/play/"), "{path}: {} {location}", answer.status);
        assert_eq!(answer.header("x"), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visit_lives_no_longer_than_its_token_and_ends_when_one_leaves() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let body = json!({ "scopes": ["read", "play"], "campaign": "port-town", "player_id": ALICE, "ttl_seconds": 60 });
    let short = tenant.token(body).await.credential;
    let entered = Guest::at(&server).enter("port-town", &short).await.expect(303);
    let age = entered.header("set-cookie").split_once("Max-Age=").unwrap().1.split(';').next().unwrap().to_owned();
    assert!(age.parse::<i64>().unwrap() <= 60, "{age}");
    let link = token(&tenant, ALICE).await;
    let (leaver, stays) = (Guest::seated(&server, &link).await, Guest::seated(&server, &link).await);
    assert!(leaver.page().await.contains("<title>Alice"));
    leaver.send(leaver.form("/play/port-town/leave", &[])).await.expect(303);
    // Whoever has kept the cookie has nothing any more.
    assert!(leaver.page().await.contains("Join the table"));
    let said = leaver.send(leaver.form("/play/port-town/say", &[("text", "Still here?")])).await;
    assert_eq!(said.status, 401, "{}", said.text);
    leaver.send(leaver.form("/play/port-town/leave", &[])).await.expect(303);
    // Another visit of the same player goes on, and the link is good for one more.
    assert!(stays.page().await.contains("<title>Alice"));
    assert!(Guest::seated(&server, &link).await.page().await.contains("<title>Alice"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visit_ends_with_its_key() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let host = tenant.with_scopes(&[Scope::Read, Scope::Play]).await;
    let guest = Guest::seated(&server, &token(&host, ALICE).await).await;
    let live = || {
        let request = server.anonymous().request(Method::GET, "/play/port-town/live?after=0");
        request.header("cookie", &guest.cookie)
    };
    let mut stream = live().send().await.unwrap();
    let keys = tenant.get("/v1/api-keys").await.expect(200);
    let prefix = &host.credential[3..11];
    let key = keys.items().iter().find(|key| key["prefix"].as_str().unwrap().contains(prefix)).unwrap();
    tenant.delete(&format!("/v1/api-keys/{}", key["id"].as_str().unwrap())).await.expect(204);
    // Something happens, and the stream looks at its key before it tells.
    super::says(&World { client: &tenant, slug: "port-town".to_owned() }, json!({ "content": "Secret." })).await;
    let mut told = String::new();
    while let Some(chunk) =
        tokio::time::timeout(std::time::Duration::from_secs(120), stream.chunk()).await.unwrap().unwrap()
    {
        told.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(told.contains("event: over") && told.contains("Your visit is over"), "{told}");
    assert!(!told.contains("Secret."), "{told}");
    let again = live().send().await.unwrap();
    assert_eq!(again.status(), 200, "a reader of streams is told the same, and comes back no more");
    assert!(again.text().await.unwrap().starts_with("event: over"));
    until("the visit's end", async || guest.page().await.contains("Join the table")).await;
    let said = guest.send(guest.form("/play/port-town/say", &[("text", "Hello")])).await;
    assert_eq!(said.status, 401, "{}", said.text);
}
