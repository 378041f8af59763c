//! Signing in and out, and what keeps others out.

use edge::{caller::Scope, tenant_settings::service::set_limits, tenants::TenantLimits, users::Role};
use serde_json::json;

use super::{EMAIL, Visitor, field, form, somebody_waits};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn who_knows_the_password_comes_in_and_goes() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    let mut mara = Visitor::at(&server);
    // From the server's name to the form, and after it to the page that was wanted.
    assert_eq!(mara.get("/").await.expect(303).header("location"), "/admin");
    assert_eq!(mara.get("/admin").await.expect(303).header("location"), "/admin/sign-in");
    let sent = mara.get("/admin/campaigns?q=x").await.expect(303);
    assert_eq!(sent.header("location"), "/admin/sign-in?next=%2Fadmin%2Fcampaigns%3Fq%3Dx");
    let door = mara.get(sent.header("location")).await.expect(200);
    assert!(door.text.contains(r#"name="next" value="/admin/campaigns?q=x""#), "{}", door.text);
    for part in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(door.header("set-cookie").contains(part), "{}", door.header("set-cookie"));
    }
    let before = mara.cookie.clone();
    let fields = [("email", "MARA@Example.org"), ("password", password.as_str()), ("next", "/admin/campaigns?q=x")];
    let entered = mara.post("/admin/sign-in", &fields).await.expect(303);
    assert_eq!(entered.header("location"), "/admin/campaigns?q=x");
    mara.keep(&entered);
    assert_ne!(mara.cookie, before, "a secret planted before would still be good");
    let page = mara.get("/admin/campaigns").await.expect(200);
    assert!(page.text.contains("mara") && page.text.contains("editor"), "{}", page.text);
    for (name, part) in [
        ("content-security-policy", "default-src 'none'"),
        ("content-security-policy", "frame-ancestors 'none'"),
        ("referrer-policy", "same-origin"),
        ("cache-control", "no-store"),
        ("vary", "HX-Request"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert!(page.header(name).contains(part), "{name}: {}", page.header(name));
    }
    assert!(!page.header("content-security-policy").contains("unsafe"));
    // Signed out, the cookie is worth nothing, wherever it was copied to.
    let copied = mara.cookie.clone();
    let left = mara.post("/admin/sign-out", &[]).await.expect(303);
    assert!(left.header("set-cookie").contains("Max-Age=0"));
    mara.cookie = copied;
    assert_eq!(mara.get("/admin/campaigns").await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_everywhere_ends_every_session_and_a_new_password_the_others() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Viewer).await;
    let (mut here, mut there) = (Visitor::at(&server), Visitor::at(&server));
    for visitor in [&mut here, &mut there] {
        visitor.sign_in(EMAIL, &password).await.expect(303);
        visitor.get("/admin/campaigns").await.expect(200);
    }
    for (fields, why) in [
        (
            [("password", "wrong"), ("new_password", "mulberry wagon 7"), ("again", "mulberry wagon 7")],
            "The old password is wrong.",
        ),
        (
            [("password", password.as_str()), ("new_password", "mulberry wagon 7"), ("again", "mulberry")],
            "The two new passwords differ.",
        ),
        ([("password", password.as_str()), ("new_password", "short"), ("again", "short")], "10 to 128 characters"),
        ([("password", password.as_str()), ("new_password", "mara12345678"), ("again", "mara12345678")], "too easy"),
    ] {
        let refused = here.post("/admin/account/password", &fields).await.expect(422);
        assert!(refused.text.contains(why), "{why}: {}", refused.text);
    }
    let account = here.get("/admin/account").await.expect(200).text;
    assert_eq!((account.matches("Signed in ").count(), account.matches("(this one)").count()), (2, 1), "{account}");
    let fields = [("password", password.as_str()), ("new_password", "mulberry wagon 7"), ("again", "mulberry wagon 7")];
    here.post("/admin/account/password", &fields).await.expect(303);
    here.get("/admin/campaigns").await.expect(200);
    assert_eq!(there.get("/admin/campaigns").await.status, 303, "the other session goes on");
    there.sign_in(EMAIL, &password).await.expect(401);
    there.sign_in(EMAIL, "mulberry wagon 7").await.expect(303);
    // One of them can be ended by itself; nobody else's can.
    let stranger = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let account = here.get("/admin/account").await.expect(200).text;
    let other = field(&account, "session");
    stranger.post("/admin/account/sessions/end", &[("session", &other)]).await.expect(404);
    there.get("/admin/campaigns").await.expect(200);
    here.post("/admin/account/sessions/end", &[("session", &other)]).await.expect(303);
    assert_eq!(there.get("/admin/campaigns").await.status, 303, "the ended session goes on");
    here.get("/admin/campaigns").await.expect(200);
    there.sign_in(EMAIL, "mulberry wagon 7").await.expect(303);
    let left = here.post("/admin/sign-out", &[("everywhere", "true")]).await.expect(303);
    assert_eq!(left.header("clear-site-data"), "\"cache\", \"storage\"");
    assert_eq!(there.get("/admin/campaigns").await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_is_slow_and_tells_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Viewer).await;
    let mut guesser = Visitor::at(&server);
    let known = guesser.sign_in(EMAIL, "not the password").await.expect(401);
    let unknown = guesser.sign_in("nobody@example.org", "not the password").await.expect(401);
    let without = |text: &str, email: &str| text.replace(email, "").replace(&guesser_token(text), "");
    assert_eq!(without(&known.text, EMAIL), without(&unknown.text, "nobody@example.org"));
    // Five tries of an account from here, known or not; the right password waits as well, and another account does not.
    for email in [EMAIL, "nobody@example.org"] {
        for _ in 0..4 {
            guesser.sign_in(email, "not the password").await.expect(401);
        }
        let refused = guesser.sign_in(email, &password).await.expect(429);
        assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
        assert!(refused.text.contains("Too many attempts"), "{}", refused.text);
    }
    let other = server.user(tenant.tenant, "other@example.org", Role::Viewer).await;
    guesser.sign_in("other@example.org", &other).await.expect(303);
}

fn guesser_token(text: &str) -> String {
    super::field(text, "form_token")
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_of_other_sites_are_refused() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mara = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let (path, new) = ("/admin/c/port-town/npcs", [("name", "Zed")]);
    let token = mara.token();
    let whole = [("form_token", token.as_str()), ("name", "Zed")];
    // No token, somebody else's, one of before signing in; a form that a browser says comes from elsewhere.
    let others = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await.token();
    let wrong = [("form_token", others.as_str()), ("name", "Zed")];
    for request in [
        form(mara.request("POST", path), &new),
        form(mara.request("POST", path), &wrong),
        form(mara.request("POST", path), &whole).header("sec-fetch-site", "cross-site"),
        form(mara.request("POST", path), &whole).header("sec-fetch-site", "same-site"),
        form(mara.request("POST", path), &whole).header("origin", "https://evil.example"),
        mara.request("POST", path).header("content-type", "text/plain").body(format!("form_token={others}&name=Zed")),
        mara.request("POST", path),
    ] {
        let refused = mara.send(request).await.expect(403);
        assert!(refused.text.contains("<!DOCTYPE html>"), "{}", refused.text);
    }
    let request = mara.request("POST", path).header("x-form-token", &others).header("hx-request", "true");
    let refused = mara.send(form(request, &new)).await.expect(403);
    assert!(!refused.text.contains("<!DOCTYPE html>") && refused.text.contains("class=\"alert\""), "{}", refused.text);
    assert_eq!(tenant.get("/v1/campaigns/port-town/npcs?q=Zed").await.items().len(), 0);
    // Ours, by field or by htmx's header.
    mara.post(path, &new).await.expect(303);
    let request = mara.request("POST", path).header("x-form-token", &token).header("hx-request", "true");
    let made = mara.send(form(request, &[("name", "Zed again")])).await.expect(200);
    assert!(made.header("hx-redirect").starts_with("/admin/c/port-town/npcs/"));
    // Also at the door: nobody is signed in as somebody else.
    let stranger = Visitor::at(&server);
    let refused = stranger.post("/admin/sign-in", &[("email", EMAIL), ("password", "x")]).await;
    assert_eq!(refused.status, 403);
    // Nothing is changed by GET.
    for path in ["/admin/sign-out", "/admin/account/password"] {
        assert_eq!(mara.send(mara.request("GET", path)).await.status, 405);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_sent_to_another_site() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Viewer).await;
    for next in [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/admin\\evil",
        "javascript:alert(1)",
        "/play/x",
        "",
    ] {
        let mut mara = Visitor::at(&server);
        mara.get("/admin/sign-in").await;
        let fields = [("email", EMAIL), ("password", password.as_str()), ("next", next)];
        assert_eq!(mara.post("/admin/sign-in", &fields).await.expect(303).header("location"), "/admin", "{next}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_tls_the_cookie_is_the_hosts_alone() {
    let server = Server::start().await;
    let visitor = Visitor::at(&server);
    let door = visitor.send(visitor.request("GET", "/admin/sign-in").header("x-forwarded-proto", "https")).await;
    let cookie = door.header("set-cookie");
    assert!(
        cookie.starts_with("__Host-tavernkeep=") && cookie.contains("Secure") && cookie.contains("Path=/;"),
        "{cookie}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_end_by_themselves() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    let mut db = server.owner().await;
    for (end, is_over) in [
        ("UPDATE editor_session SET seen_at = now() - interval '11 hours'", false),
        ("UPDATE editor_session SET seen_at = now() - interval '13 hours'", true),
        ("UPDATE editor_session SET seen_at = now(), expires_at = now() - interval '1 second'", true),
    ] {
        sqlx::query(end).execute(&mut db).await.unwrap();
        assert_eq!(mara.get("/admin/campaigns").await.status == 303, is_over, "{end}");
    }
    // What is stored cannot be sent: neither cookie nor password.
    let kept: Vec<(Vec<u8>,)> = sqlx::query_as("SELECT hash FROM editor_session").fetch_all(&mut db).await.unwrap();
    assert!(kept.iter().all(|(hash,)| hash.len() == 32));
    let hashes: Vec<(String,)> = sqlx::query_as("SELECT password_hash FROM app_user").fetch_all(&mut db).await.unwrap();
    assert!(hashes.iter().all(|(hash,)| hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$")), "{hashes:?}");
}

/// What the command line answers, as JSON; or what it complains of.
async fn command(server: &Server, arguments: &[&str]) -> Result<serde_json::Value, String> {
    let mut binary = std::env::current_exe().unwrap();
    binary.pop();
    binary.pop();
    binary.push("tavernkeep");
    let output = tokio::process::Command::new(binary)
        .args(arguments)
        .arg("--json")
        .env_clear()
        .env("DATABASE_URL", &server.db.url)
        .output()
        .await
        .unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    if output.status.success() { Ok(serde_json::from_slice(&output.stdout).unwrap()) } else { Err(complaint) }
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_make_users_and_set_passwords() {
    let server = Server::start().await;
    server.tenant("acme").await;
    server.tenant("other").await;
    let create = |tenant: &'static str, role: &'static str| {
        ["user", "create", "--tenant", tenant, "--email", EMAIL, "--role", role]
    };
    let made = command(&server, &create("acme", "editor")).await.unwrap();
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, made["password"].as_str().unwrap()).await.expect(303);
    mara.get("/admin/campaigns/new").await.expect(200);
    // There already: another role at once, another tenant when she opens the link.
    let again = command(&server, &create("acme", "viewer")).await.unwrap();
    assert_eq!((&again["id"], again["password"].is_null()), (&made["id"], true));
    mara.get("/admin/campaigns/new").await.expect(403);
    let asked = command(&server, &create("other", "viewer")).await.unwrap();
    assert!(asked["password"].is_null() && asked["id"].is_null(), "{asked}");
    assert!(!mara.get("/admin/tenants").await.expect(200).text.contains("other"));
    mara.post(asked["link"].as_str().unwrap(), &[]).await.expect(303);
    assert!(mara.get("/admin/tenants").await.expect(200).text.contains("other"));
    // Who is only to be invited chooses the password.
    let invited = ["user", "create", "--tenant", "acme", "--email", "new@example.org", "--invite"];
    let invited = command(&server, &invited).await.unwrap();
    assert!(invited["password"].is_null() && invited["link"].as_str().unwrap().starts_with("/admin/invitation/"));
    // A link to reset her ends her sessions when it is used, and not before.
    let reset = command(&server, &["user", "reset", "--email", "MARA@example.org"]).await.unwrap();
    mara.get("/admin/campaigns").await.expect(200);
    let chosen = [("new_password", "a wagon of mulberries"), ("again", "a wagon of mulberries")];
    mara.post(reset["link"].as_str().unwrap(), &chosen).await.expect(303);
    assert_eq!(mara.get("/admin/campaigns").await.status, 303);
    mara.sign_in(EMAIL, "a wagon of mulberries").await.expect(303);
    let set = command(&server, &["user", "password", "--email", EMAIL]).await.unwrap();
    assert_eq!(mara.get("/admin/campaigns").await.status, 303);
    mara.sign_in(EMAIL, set["password"].as_str().unwrap()).await.expect(303);
    command(&server, &["user", "create", "--tenant", "other", "--email", "boss@example.org", "--role", "owner"])
        .await
        .unwrap();
    for (arguments, why) in [
        (&create("acme", "king")[..], "is not a role"),
        (&create("nowhere", "viewer")[..], "no such tenant"),
        (&["user", "create", "--tenant", "acme", "--email", "x"][..], "not an email address"),
        (&["user", "create", "--tenant", "acme", "--email", "x@y", "--password", "short"][..], "10 to 128"),
        (&["user", "password", "--email", "nobody@example.org"][..], "no such user"),
        (&["user", "reset", "--email", "nobody@example.org"][..], "no such user"),
        (&["user", "create", "--tenant", "acme", "--email", "m\u{0130}ra@example.org"][..], "not an email address"),
        // The last owner stays one, and nobody half made is left.
        (&["user", "create", "--tenant", "other", "--email", "boss@example.org", "--role", "viewer"][..], "last owner"),
    ] {
        let complaint = command(&server, arguments).await.unwrap_err();
        assert!(complaint.contains(why), "{complaint}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_password_begins_no_session_after_a_new_one() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Viewer).await;
    let mut mara = Visitor::at(&server);
    mara.get("/admin/sign-in").await.expect(200);
    // The new password is written while the old one is being verified.
    let mut db = server.owner().await;
    sqlx::raw_sql("BEGIN; UPDATE app_user SET password_hash = 'another'").execute(&mut db).await.unwrap();
    let fields = [("email", EMAIL), ("password", password.as_str())];
    let (answer, ()) = tokio::join!(mara.post("/admin/sign-in", &fields), async {
        somebody_waits(&server).await;
        sqlx::raw_sql("DELETE FROM editor_session; COMMIT").execute(&mut db).await.unwrap();
    });
    assert_eq!(answer.status, 401, "{}", answer.text);
    let sessions: i64 = sqlx::query_scalar("SELECT count(*) FROM editor_session").fetch_one(&mut db).await.unwrap();
    assert_eq!(sessions, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_changes_a_user_who_became_more_than_they() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    server.user(tenant.tenant, "boss@example.org", Role::Owner).await;
    server.user(tenant.tenant, EMAIL, Role::Viewer).await;
    let clerk = tenant.with_scopes(&[Scope::Admin, Scope::Read]).await;
    let path = format!("/v1/users/{EMAIL}");
    let before = clerk.post(&format!("{path}/reset"), json!({})).await.expect(200).body["link"].clone();
    // She becomes an owner while the clerk changes her.
    let mut db = server.owner().await;
    let promote = "BEGIN; UPDATE membership SET role = 'owner' WHERE user_id = (SELECT id FROM app_user WHERE email = 'mara@example.org')";
    sqlx::raw_sql(promote).execute(&mut db).await.unwrap();
    let reset = format!("{path}/reset");
    let (answer, ()) = tokio::join!(clerk.post(&reset, json!({})), async {
        somebody_waits(&server).await;
        sqlx::raw_sql("COMMIT").execute(&mut db).await.unwrap();
    });
    answer.problem(403, "forbidden");
    clerk.patch(&path, json!({ "name": "Mine" })).await.problem(403, "forbidden");
    // What was made for the viewer does not open the owner's account.
    tenant.patch(&path, json!({ "role": "viewer" })).await.expect(200);
    tenant.patch(&path, json!({ "role": "owner" })).await.expect(200);
    let mut visitor = Visitor::at(&server);
    visitor.get("/admin/sign-in").await;
    let link = before.as_str().unwrap().strip_prefix(&server.url).unwrap().to_owned();
    let chosen = [("new_password", "a wagon of mulberries"), ("again", "a wagon of mulberries")];
    visitor.post(&link, &chosen).await.expect(410);
    visitor.sign_in(EMAIL, "a wagon of mulberries").await.expect(401);
}

/// Who clicks too often is asked to wait, as whoever calls the API too often is; others of another tenant are not.
#[tokio::test(flavor = "multi_thread")]
async fn pages_count_as_requests_of_their_tenant() {
    let server = Server::start().await;
    let (acme, other) = (server.tenant("acme").await, server.tenant("other").await);
    let limits = TenantLimits { requests_per_minute: 5, ..TenantLimits::unlimited() };
    set_limits(&mut server.owner().await, acme.tenant, &limits).await.unwrap();
    let mut mara = Visitor::signed_in(&server, acme.tenant, Role::Owner).await;
    let mut zoe = Visitor::signed_in(&server, other.tenant, Role::Owner).await;
    let mut shown = 0;
    let refused = loop {
        let page = mara.get("/admin/users").await;
        zoe.get("/admin/users").await.expect(200);
        match page.status {
            200 => shown += 1,
            _ => break page.expect(429),
        }
        assert!(shown < 100, "nobody is asked to wait");
    };
    assert!(shown >= 4, "{shown} pages");
    assert!((1..=60).contains(&refused.header("retry-after").parse::<u64>().unwrap()));
    // The same allowance as the API's.
    acme.get("/v1/campaigns").await.problem(429, "rate_limited");
}
