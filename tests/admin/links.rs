//! Invitations and resets: links that are good once, and accounts that nobody but their owners open.

use edge::users::Role;
use futures_util::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{EMAIL, Visitor};
use crate::support::{Client, Server, browser::Browser};

const PASSWORD: &str = "a wagon of mulberries";

/// The link of an invitation that a tenant's administrator made.
async fn invite(tenant: &Client<'_>, email: &str, role: &str) -> String {
    let made = tenant.post("/v1/users", json!({ "email": email, "role": role })).await.expect(201);
    assert_eq!(made.body["status"], "invited");
    made.body["link"].as_str().unwrap().strip_prefix(&tenant.server.url).unwrap().to_owned()
}

async fn reset(tenant: &Client<'_>, email: &str) -> String {
    let made = tenant.post(&format!("/v1/users/{email}/reset"), json!({})).await.expect(200);
    made.body["link"].as_str().unwrap().strip_prefix(&tenant.server.url).unwrap().to_owned()
}

/// The status of somebody at a tenant, or null.
async fn status(tenant: &Client<'_>, email: &str) -> Value {
    tenant.get(&format!("/v1/users/{email}")).await.body["status"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_invited_comes_with_a_password_of_their_own() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let link = invite(&tenant, EMAIL, "editor").await;
    let mut mara = Visitor::at(&server);
    // Looking uses nothing up, and mistakes neither.
    for _ in 0..3 {
        let page = mara.get(&link).await.expect(200);
        assert!(
            page.text.contains("Join <bdi>acme</bdi>") && page.header("cache-control").contains("no-store"),
            "{}",
            page.text
        );
    }
    for (fields, why) in [
        ([("name", ""), ("new_password", PASSWORD), ("again", PASSWORD)], "The name"),
        ([("name", "Mara"), ("new_password", PASSWORD), ("again", "another")], "The two passwords differ."),
        ([("name", "Mara"), ("new_password", "short"), ("again", "short")], "10 to 128"),
    ] {
        assert!(mara.post(&link, &fields).await.expect(422).text.contains(why), "{why}");
    }
    assert_eq!(status(&tenant, EMAIL).await, "invited");
    Visitor::at(&server).sign_in(EMAIL, PASSWORD).await.expect(401);
    mara.choose_password(&link, PASSWORD).await.expect(303);
    mara.get("/admin/campaigns/new").await.expect(200);
    assert_eq!(status(&tenant, EMAIL).await, "active");
    mara.get(&link).await.expect(410);
    let mut again = Visitor::at(&server);
    again.choose_password(&link, "another fine password").await.expect(410);
    again.sign_in(EMAIL, "another fine password").await.expect(401);
    again.sign_in(EMAIL, PASSWORD).await.expect(303);
    // Stored is a hash of the link, and the journal of idempotency knows none.
    let mut db = server.owner().await;
    let secret = link.rsplit('/').next().unwrap();
    let rows: Vec<String> =
        sqlx::query_scalar("SELECT to_jsonb(i)::text FROM invitation i").fetch_all(&mut db).await.unwrap();
    assert!(rows.iter().all(|row| !row.contains(secret)), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_made_an_account_first_gets_no_tenant_that_its_address_is_asked_to() {
    let server = Server::start().await;
    let (mallory, acme) = (server.tenant("mallory").await, server.tenant("acme").await);
    acme.world().await;
    // Mallory takes the address of somebody else, with a password that only Mallory knows, and stays signed in.
    let link = invite(&mallory, EMAIL, "owner").await;
    let mut thief = Visitor::at(&server);
    thief.choose_password(&link, "only mallory knows").await.expect(303);
    // The owner of the address is asked to Acme: over REST, in the editor, and by the operator.
    let owner = Visitor::signed_in(&server, acme.tenant, Role::Owner).await;
    let by_api = invite(&acme, EMAIL, "owner").await;
    owner.post("/admin/users", &[("email", EMAIL), ("role", "owner")]).await.expect(200);
    let wanted = edge::users::operator::UserRequest {
        tenant: acme.tenant,
        email: "MARA@example.ORG",
        name: None,
        role: Role::Owner,
        password: Some("the operator's choice"),
        invite: false,
    };
    let brought = edge::users::operator::bring(&mut server.owner().await, &wanted).await.unwrap();
    let edge::users::operator::Brought::Invited { path } = brought else { panic!("it was brought at once") };
    // Nothing of it reaches whoever knows the account's password.
    thief.get("/admin/campaigns").await.expect(200);
    assert!(!thief.get("/admin/tenants").await.expect(200).text.contains("acme"));
    let mut anew = Visitor::at(&server);
    anew.sign_in(EMAIL, "the operator's choice").await.expect(401);
    anew.sign_in(EMAIL, "only mallory knows").await.expect(303);
    assert!(!anew.get("/admin/tenants").await.expect(200).text.contains("acme"));
    assert_eq!(status(&acme, EMAIL).await, "invited");
    // Each link replaced the one before.
    anew.get(&by_api).await.expect(410);
    // The owner of the address cannot sign in; the operator's link gives the account to them, and takes it from the thief.
    let mut mara = Visitor::at(&server);
    assert!(mara.get(&path).await.expect(200).text.contains("Sign in with its password"));
    mara.post(&path, &[("name", "M"), ("new_password", PASSWORD), ("again", PASSWORD)]).await.expect(200);
    assert_eq!(status(&acme, EMAIL).await, "invited");
    let mut db = server.owner().await;
    let reset = edge::users::links::reset_by_operator(&mut db, EMAIL).await.unwrap();
    mara.choose_password(&reset, PASSWORD).await.expect(303);
    for visitor in [&mut thief, &mut anew] {
        assert_eq!(visitor.get("/admin/campaigns").await.status, 303);
    }
    mara.sign_in(EMAIL, PASSWORD).await.expect(303);
    mara.post(&path, &[]).await.expect(303);
    assert_eq!(status(&acme, EMAIL).await, "active");
    assert!(mara.get("/admin/campaigns").await.expect(200).text.contains("/admin/c/port-town"));
    thief.sign_in(EMAIL, "only mallory knows").await.expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_accepts_in_a_session_of_its_own() {
    let server = Server::start().await;
    let (home, acme) = (server.tenant("home").await, server.tenant("acme").await);
    let password = server.user(home.tenant, EMAIL, Role::Viewer).await;
    let link = invite(&acme, "MARA@EXAMPLE.ORG", "editor").await;
    // Neither a stranger nor another account can accept, and what is sent there gives no password.
    let mut stranger = Visitor::at(&server);
    stranger.choose_password(&link, PASSWORD).await.expect(200);
    let mut other = Visitor::signed_in(&server, home.tenant, Role::Owner).await;
    assert!(other.get(&link).await.expect(200).text.contains("You are signed in as owner-"));
    other.post(&link, &[]).await.expect(200);
    assert_eq!(status(&acme, EMAIL).await, "invited");
    Visitor::at(&server).sign_in(EMAIL, PASSWORD).await.expect(401);
    // Signing in leads back to the link; other sessions end when it is accepted.
    let (mut here, mut there) = (Visitor::at(&server), Visitor::at(&server));
    there.sign_in(EMAIL, &password).await.expect(303);
    here.get(&link).await.expect(200);
    let fields = [("email", EMAIL), ("password", password.as_str()), ("next", link.as_str())];
    let entered = here.post("/admin/sign-in", &fields).await.expect(303);
    assert_eq!(entered.header("location"), link);
    here.keep(&entered);
    assert!(here.get(&link).await.expect(200).text.contains("Accept"));
    // Without the form's token nothing is accepted.
    here.send(super::form(here.request("POST", &link), &[])).await.expect(403);
    here.post(&link, &[]).await.expect(303);
    assert_eq!(status(&acme, EMAIL).await, "active");
    assert!(
        here.get("/admin/campaigns/new").await.expect(200).text.contains("acme"),
        "she is at the tenant that asked"
    );
    assert_eq!(there.get("/admin/campaigns").await.status, 303, "a session of before goes on");
    here.post(&link, &[]).await.expect(410);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_good_once_for_sixteen_at_once() {
    let server = Server::start().await;
    let (home, acme) = (server.tenant("home").await, server.tenant("acme").await);
    let password = server.user(home.tenant, "home@example.org", Role::Viewer).await;
    let (new, known) = (invite(&acme, EMAIL, "viewer").await, invite(&acme, "home@example.org", "viewer").await);
    let reset = reset(&home, "home@example.org").await;
    let mut visitors = Vec::new();
    for _ in 0..16 {
        let mut visitor = Visitor::at(&server);
        visitor.get("/admin/sign-in").await;
        visitors.push(visitor);
    }
    let once = async |link: &str, visitors: &[Visitor]| {
        let tries = visitors.iter().enumerate().map(async |(n, visitor)| {
            let password = format!("{PASSWORD} {n}");
            let fields = [("name", "M"), ("new_password", password.as_str()), ("again", password.as_str())];
            visitor.post(link, &fields).await.status
        });
        let mut answers = join_all(tries).await;
        answers.sort_unstable();
        assert_eq!(answers.iter().filter(|status| **status == 303).count(), 1, "{answers:?}");
        assert!(answers.iter().all(|status| matches!(status, 200 | 303 | 409 | 410)), "{answers:?}");
    };
    once(&new, &visitors).await;
    // One browser, one session, one row each.
    let mut guest = Visitor::at(&server);
    guest.sign_in("home@example.org", &password).await.expect(303);
    let accepted = join_all((0..16).map(async |_| guest.post(&known, &[]).await.status)).await;
    assert_eq!(accepted.iter().filter(|status| **status == 303).count(), 1, "{accepted:?}");
    let mut db = server.owner().await;
    let members = "SELECT count(*) FROM membership WHERE tenant_id = $1";
    let members: i64 = sqlx::query_scalar(members).bind(acme.tenant).fetch_one(&mut db).await.unwrap();
    assert_eq!(members, 2);
    // The account is two tenants' by now: the link that one of them made is no longer good.
    assert_eq!(visitors[0].get(&reset).await.status, 410);
    let reset = edge::users::links::reset_by_operator(&mut db, "home@example.org").await.unwrap();
    once(&reset, &visitors).await;
    assert_eq!(guest.get("/admin/campaigns").await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_end() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let other = server.tenant("other").await;
    server.user(tenant.tenant, "known@example.org", Role::Viewer).await;
    let mut mara = Visitor::at(&server);
    let mut db = server.owner().await;
    let first = invite(&tenant, EMAIL, "owner").await;
    let second = invite(&tenant, EMAIL, "viewer").await;
    let elsewhere = invite(&other, EMAIL, "viewer").await;
    mara.get(&first).await.expect(410);
    mara.get(&second).await.expect(200);
    assert_eq!(tenant.get("/v1/users").await.items().len(), 2);
    // Another tenant can neither see nor withdraw it.
    let id = tenant.get(&format!("/v1/users/{EMAIL}")).await.expect(200).id();
    other.delete(&format!("/v1/users/{id}")).await.problem(404, "not_found");
    tenant.delete(&format!("/v1/users/{EMAIL}")).await.expect(204);
    mara.get(&second).await.expect(410);
    mara.choose_password(&second, PASSWORD).await.expect(410);
    // After a week.
    mara.get(&elsewhere).await.expect(200);
    sqlx::query("UPDATE invitation SET expires_at = now()").execute(&mut db).await.unwrap();
    mara.get(&elsewhere).await.expect(410);
    mara.choose_password(&elsewhere, PASSWORD).await.expect(410);
    assert!(other.get("/v1/users").await.items().is_empty());
    let days: f64 = sqlx::query_scalar(
        "SELECT (extract(epoch FROM expires_at - created_at) / 86400)::float8 FROM invitation WHERE id = $1",
    )
    .bind(tenant.post("/v1/users", json!({ "email": EMAIL, "role": "viewer" })).await.id().parse::<Uuid>().unwrap())
    .fetch_one(&mut db)
    .await
    .unwrap();
    assert!((days - 7.0).abs() < 0.01, "{days}");
    // So do resets: replaced, or after a day.
    let (old, new) = (reset(&tenant, "known@example.org").await, reset(&tenant, "known@example.org").await);
    mara.get(&old).await.expect(410);
    mara.get(&new).await.expect(200);
    sqlx::query("UPDATE password_reset SET expires_at = now()").execute(&mut db).await.unwrap();
    mara.choose_password(&new, PASSWORD).await.expect(410);
    for nonsense in ["/admin/reset/x", "/admin/invitation/x", &format!("/admin/reset/{}", "A".repeat(43))] {
        mara.get(nonsense).await.expect(410);
        mara.post(nonsense, &[]).await.expect(410);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_that_waits_while_the_account_joins_another_tenant_is_void() {
    let server = Server::start().await;
    let (home, acme) = (server.tenant("home").await, server.tenant("acme").await);
    let password = server.user(home.tenant, EMAIL, Role::Viewer).await;
    let link = invite(&acme, EMAIL, "owner").await;
    let reset = reset(&home, EMAIL).await;
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, &password).await.expect(303);
    // Both hold the account in turn: whichever is first, home's administrator is never in at Acme.
    let mut admin = Visitor::at(&server);
    admin.get("/admin/sign-in").await;
    let chosen = [("new_password", PASSWORD), ("again", PASSWORD)];
    let (_, used) = tokio::join!(mara.post(&link, &[]), admin.post(&reset, &chosen));
    let came = status(&acme, EMAIL).await == "active";
    assert!(!(came && used.status == 303), "an administrator of one tenant set the password of another's owner");
    admin.post(&reset, &chosen).await.expect(410);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_in_a_real_browser() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, "boss@example.org", Role::Owner).await;
    let Some(owner) = Browser::open().await else { return };
    super::sign_in(&owner, &server, "boss@example.org", &password).await;
    owner.sees("h1", "Campaigns").await;
    owner.goto(&format!("{}/admin/users", server.url)).await;
    owner.click("details summary").await;
    owner.write("#email", EMAIL).await;
    owner.choose("#role", "editor").await;
    owner.click("details button").await;
    owner.sees("[role=status]", "was invited").await;
    let link = owner.text(".secret").await;
    assert!(link.starts_with(&format!("{}/admin/invitation/", server.url)), "{link}");
    let Some(mara) = Browser::open().await else { return };
    mara.goto(&link).await;
    mara.sees("h1", "Join acme").await;
    assert_eq!(super::looks::barriers(&mara).await, Vec::<String>::new());
    mara.write("#name", "Mara").await;
    mara.write("#new_password", PASSWORD).await;
    mara.write("#again", PASSWORD).await;
    mara.click("main button").await;
    mara.sees("h1", "Campaigns").await;
    mara.sees("header", "Mara").await;
    owner.goto(&format!("{}/admin/users", server.url)).await;
    owner.sees("main", "Mara").await;
    mara.goto(&link).await;
    mara.sees("main", "Ask the person who gave it to you").await;
}
