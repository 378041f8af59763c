//! What is for owners: keys, users, settings, usage, the audit; and `/v1/users`.

use edge::{caller::Scope, users::Role};
use serde_json::json;

use super::{EMAIL, Visitor, field};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_made_shown_once_and_revoked() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    owner.post("/admin/keys", &[("name", "bot")]).await.expect(422);
    owner.post("/admin/keys", &[("name", "bot"), ("scope", "read"), ("days", "x")]).await.expect(422);
    let made =
        owner.post("/admin/keys", &[("name", "<i>bot</i>"), ("scope", "read"), ("days", "30")]).await.expect(200).text;
    let key = made.split_once("class=\"secret\">").unwrap().1.split('<').next().unwrap().to_owned();
    let bot = tenant.with_credential(&key);
    bot.get("/v1/campaigns").await.expect(200);
    bot.get("/v1/users").await.problem(403, "forbidden");
    let list = owner.get("/admin/keys").await.expect(200).text;
    assert!(!list.contains(&key) && !list.contains("<i>bot"), "{list}");
    let id = list.split_once("/admin/keys/").unwrap().1.split('/').next().unwrap().to_owned();
    let ask = owner.get(&format!("/admin/keys/{id}/revoke")).await.expect(200).text;
    assert!(ask.contains("Revoke tk_") && ask.contains("&#60;i&#62;bot"), "{ask}");
    let late = owner.post(&format!("/admin/keys/{id}/revoke"), &[("version", "7")]).await.expect(409).text;
    assert!(late.contains("Somebody changed this key") && field(&late, "version") == "1", "{late}");
    bot.get("/v1/campaigns").await.expect(200);
    owner.post(&format!("/admin/keys/{id}/revoke"), &[("version", "1")]).await.expect(303);
    bot.get("/v1/campaigns").await.problem(401, "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_made_changed_and_removed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let made = owner.post("/admin/users", &[("email", EMAIL), ("role", "viewer")]).await.expect(200).text;
    let shown = |page: &str| page.split_once("class=\"secret\">").unwrap().1.split('<').next().unwrap().to_owned();
    let link = shown(&made).strip_prefix(&server.url).unwrap().to_owned();
    assert!(owner.get("/admin/users").await.text.contains("invited until"));
    let mut mara = Visitor::at(&server);
    assert!(mara.get(&link).await.expect(200).text.contains("Join <bdi>acme</bdi>"));
    let chosen = [("name", "Mara"), ("new_password", "a wagon of mulberries"), ("again", "a wagon of mulberries")];
    let come = mara.post(&link, &chosen).await.expect(303);
    mara.keep(&come);
    mara.post("/admin/campaigns", &[("name", "X")]).await.expect(403);
    owner.post("/admin/users", &[("email", "no email"), ("role", "viewer")]).await.expect(422);
    let twice = owner.post("/admin/users", &[("email", "MARA@example.org"), ("role", "owner")]).await.expect(422);
    assert!(twice.text.contains("already belongs to the tenant"), "{}", twice.text);
    let id = tenant.get(&format!("/v1/users/{EMAIL}")).await.expect(200).id();
    let path = format!("/admin/users/{id}");
    let change = |version: &'static str| vec![("name", "Mara"), ("role", "editor"), ("version", version)];
    owner.post(&path, &change("7")).await.expect(409);
    owner.post(&path, &change("1")).await.expect(303);
    // At once, in the session that is there.
    mara.post("/admin/campaigns", &[("name", "X")]).await.expect(303);
    // A password is only ever set by who holds its link.
    let mut fields = change("2");
    fields.push(("password", "another fine password"));
    owner.post(&path, &fields).await.expect(303);
    mara.get("/admin/campaigns").await.expect(200);
    let made = owner.post(&format!("{path}/link"), &[]).await.expect(200).text;
    let link = shown(&made).strip_prefix(&server.url).unwrap().to_owned();
    let chosen = [("new_password", "mulberries by the wagon"), ("again", "mulberries by the wagon")];
    mara.post(&link, &chosen).await.expect(303);
    assert_eq!(mara.get("/admin/campaigns").await.status, 303, "an old password's session goes on");
    mara.sign_in(EMAIL, "another fine password").await.expect(401);
    mara.sign_in(EMAIL, "mulberries by the wagon").await.expect(303);
    assert!(owner.get(&path).await.text.contains(&format!("href=\"{path}/remove\"")));
    let ask = owner.get(&format!("{path}/remove")).await.expect(200).text;
    assert!(ask.contains("Remove Mara?") && field(&ask, "version") == "3", "{ask}");
    owner.post(&format!("{path}/remove"), &[("version", "3")]).await.expect(303);
    assert_eq!(mara.get("/admin/campaigns").await.status, 303);
    mara.sign_in(EMAIL, "mulberries by the wagon").await.expect(401);
    // What she wrote stays, under her id.
    let journal = tenant.get("/v1/campaigns/x/changes?after=0").await.expect(200);
    assert_eq!(journal.items()[0]["user_id"], id.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn users_over_rest() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let made = tenant.post("/v1/users", json!({ "email": EMAIL, "role": "owner" })).await.expect(201);
    assert_eq!(made.header("location"), format!("/v1/users/{}", made.id()));
    assert_eq!((&made.body["name"], &made.body["is_shared"]), (&json!("mara"), &json!(false)));
    assert_eq!(made.body["status"], "invited");
    let got = tenant.get(made.header("location")).await.expect(200);
    assert!(got.body.get("link").is_none() && got.body["expires_at"].is_string(), "{}", got.text);
    tenant.patch(made.header("location"), json!({ "role": "viewer" })).await.problem(409, "conflict");
    tenant.post(&format!("{}/reset", made.header("location")), json!({})).await.problem(409, "conflict");
    tenant.delete(made.header("location")).await.expect(204);
    tenant.get(made.header("location")).await.problem(404, "not_found");
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    Visitor::at(&server).sign_in(EMAIL, &password).await.expect(303);
    let got = tenant.get(&format!("/v1/users/{EMAIL}")).await.expect(200);
    assert_eq!((&got.body["status"], got.body["last_sign_in_at"].is_null()), (&json!("active"), false));
    assert_eq!(tenant.get("/v1/users?q=MARA").await.items().len(), 1);
    assert_eq!(tenant.get("/v1/users?q=nobody").await.items().len(), 0);
    let path = format!("/v1/users/{}", got.id());
    for (body, pointer) in [
        (json!({ "email": "x", "role": "viewer" }), "/email"),
        (json!({ "email": "x@y", "role": "king" }), "/role"),
        (json!({ "email": "m\u{0130}ra@example.org", "role": "viewer" }), "/email"),
        (json!({ "email": "mara@ex\u{e4}mple.org", "role": "viewer" }), "/email"),
        (json!({ "email": "x@y", "role": "viewer", "password": "a fine long password" }), "/password"),
        (json!({ "email": "x@y", "role": "viewer", "tenant_id": tenant.tenant }), "/tenant_id"),
        (json!({ "role": "viewer" }), "/email"),
    ] {
        assert_eq!(tenant.post("/v1/users", body).await.problem(422, "validation_failed").pointers(), [pointer]);
    }
    for body in [
        json!({ "email": "other@example.org" }),
        json!({ "is_shared": true }),
        json!({ "version": 9 }),
        json!({ "status": "invited" }),
        json!({ "password": "a fine long password" }),
    ] {
        tenant.patch(&path, body).await.problem(422, "validation_failed");
    }
    // The last owner stays one.
    tenant.patch(&path, json!({ "role": "viewer" })).await.problem(409, "conflict");
    tenant.delete(&path).await.problem(409, "conflict");
    server.user(tenant.tenant, "second@example.org", Role::Owner).await;
    let stale =
        tenant.request(reqwest::Method::PATCH, &path).header("if-match", "\"v9\"").json(&json!({ "role": "viewer" }));
    tenant.send(stale).await.problem(412, "precondition_failed");
    assert_eq!(
        tenant.patch(&path, json!({ "role": "viewer", "name": "Mara" })).await.expect(200).body["role"],
        "viewer"
    );
    tenant.delete(&path).await.expect(204);
    tenant.get(&path).await.problem(404, "not_found");
    // Nobody gives what they do not have.
    let clerk = tenant.with_scopes(&[Scope::Admin]).await;
    let wanted = json!({ "email": "x@example.org", "role": "owner" });
    clerk.post("/v1/users", wanted).await.problem(403, "forbidden");
    clerk.post("/v1/users/second@example.org/reset", json!({})).await.problem(403, "forbidden");
    let third = tenant.post("/v1/users", json!({ "email": "third@example.org", "role": "owner" })).await.expect(201);
    clerk.delete(third.header("location")).await.problem(403, "forbidden");
    let lower = json!({ "email": "third@example.org", "role": "viewer" });
    clerk.post("/v1/users", lower).await.problem(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_two_tenants_is_its_owners_alone() {
    let server = Server::start().await;
    let (acme, other) = (server.tenant("acme").await, server.tenant("other").await);
    let password = server.user(acme.tenant, EMAIL, Role::Viewer).await;
    // Another tenant cannot take it in by itself, nor see it.
    other.get(&format!("/v1/users/{EMAIL}")).await.problem(404, "not_found");
    server.user(other.tenant, EMAIL, Role::Owner).await;
    let path = format!("/v1/users/{EMAIL}");
    assert_eq!(other.get(&path).await.expect(200).body["is_shared"], true);
    acme.patch(&path, json!({ "name": "Mallory" })).await.problem(403, "forbidden");
    acme.post(&format!("{path}/reset"), json!({})).await.problem(403, "forbidden");
    acme.patch(&path, json!({ "role": "editor" })).await.expect(200);
    assert_eq!(other.get(&path).await.body["role"], "owner");
    // She goes from one to the other.
    acme.post("/v1/campaigns", json!({ "name": "Of Acme" })).await.expect(201);
    other.post("/v1/campaigns", json!({ "name": "Of the other" })).await.expect(201);
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, &password).await.expect(303);
    let sees = |text: &str| (text.contains("Of Acme"), text.contains("Of the other"));
    assert_eq!(sees(&mara.get("/admin/campaigns").await.text), (true, false));
    mara.post("/admin/tenants", &[("tenant", &other.tenant.to_string())]).await.expect(303);
    assert_eq!(sees(&mara.get("/admin/campaigns").await.text), (false, true));
    let third = server.tenant("third").await;
    mara.post("/admin/tenants", &[("tenant", &third.tenant.to_string())]).await.expect(404);
    // Removed from one, she is at the other.
    server.user(other.tenant, "boss@example.org", Role::Owner).await;
    other.delete(&path).await.expect(204);
    assert_eq!(sees(&mara.get("/admin/campaigns").await.text), (true, false));
    acme.delete(&path).await.expect(204);
    assert_eq!(mara.get("/admin/campaigns").await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_saved_and_secrets_stay_secret() {
    let server = Server::start_with(&[("LLM_MODELS_ALLOWED", "gpt-x")]).await;
    let tenant = server.tenant("acme").await;
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let page = owner.get("/admin/settings").await.expect(200).text;
    let version = field(&page, "version");
    let fields = [
        ("name", "Acme & Co"),
        ("settings-features-llm", "true"),
        ("settings-llm-model", "gpt-x"),
        ("settings-llm-prices", r#"{"prompt": 1, "cached": 1, "completion": 2}"#),
        ("settings-turn_retention_days", "7"),
        ("origins", "https://a.example\nhttps://b.example"),
        ("llm_api_key", "sk-canary-77"),
        ("version", version.as_str()),
    ];
    owner.post("/admin/settings", &fields).await.expect(303);
    let stored = tenant.get("/v1/tenant").await.expect(200).body;
    assert_eq!((&stored["name"], &stored["has_llm_api_key"]), (&json!("Acme & Co"), &json!(true)));
    assert_eq!(
        stored["settings"]["features"],
        json!({ "llm": true, "llm_visible": false, "planner": false, "planner_fallback": "message" })
    );
    assert_eq!(stored["settings"]["llm"]["prices"]["completion"], 2);
    assert_eq!(stored["origins"], json!(["https://a.example", "https://b.example"]));
    let page = owner.get("/admin/settings").await.expect(200).text;
    assert!(!page.contains("sk-canary-77") && page.contains("A key is stored"), "{page}");
    owner.post("/admin/settings", &fields).await.expect(409);
    let version = field(&page, "version");
    let wrong = [
        ("name", "Acme"),
        ("origins", "nowhere"),
        ("settings-turn_retention_days", "0"),
        ("version", version.as_str()),
    ];
    let refused = owner.post("/admin/settings", &wrong).await.expect(422).text;
    assert!(
        refused.contains("id=\"origins-error\"") && refused.contains("id=\"settings-turn_retention_days-error\""),
        "{refused}"
    );
    let gone = [("name", "Acme"), ("llm_api_key_gone", "true"), ("version", version.as_str())];
    owner.post("/admin/settings", &gone).await.expect(303);
    assert_eq!(tenant.get("/v1/tenant").await.body["has_llm_api_key"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_says_who_did_what() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, "a password nobody guesses").await.expect(303);
    world.patch("/npcs/innkeeper_bob", json!({ "disposition": "grim" })).await.expect(200);
    let bob = world.get("/npcs/innkeeper_bob").await.body;
    mara.post("/admin/c/port-town/npcs", &[("name", "<b>Zed</b>"), ("form_id", "1")]).await.expect(303);
    let all = mara.get("/admin/c/port-town/audit").await.expect(200).text;
    for part in [
        "<b dir=\"auto\">mara</b> created npc",
        "&#60;b&#62;Zed&#60;/b&#62;",
        "<b dir=\"auto\">test</b> changed npc",
        "<del dir=\"auto\">neutral</del><ins dir=\"auto\">grim</ins>",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let id = bob["id"].as_str().unwrap();
    for (query, holds, lacks) in [
        ("table=npc&op=insert".to_owned(), "Zed", "grim"),
        ("table=lore".to_owned(), "The Reach", "Zed"),
        (format!("row={id}"), "grim", "Zed"),
        ("origin=turn".to_owned(), "No changes found", "Zed"),
    ] {
        let page = mara.get(&format!("/admin/c/port-town/audit?{query}")).await.expect(200).text;
        assert!(page.contains(holds) && !page.contains(lacks), "{query}: {page}");
    }
    let me = tenant.get(&format!("/v1/users/{EMAIL}")).await.id();
    let own = mara.get(&format!("/admin/c/port-town/audit?actor={me}")).await.expect(200).text;
    assert!(own.contains("Zed") && !own.contains("grim"), "{own}");
    // It goes on behind the first page.
    for n in 0..60 {
        world.post("/npcs", json!({ "name": format!("N{n}") })).await.expect(201);
    }
    let first = mara.get("/admin/c/port-town/audit?op=insert").await.text;
    let next = first.split_once("rel=\"next\" href=\"").unwrap().1.split('"').next().unwrap().replace("&#38;", "&");
    let second = mara.get(&next).await.expect(200).text;
    assert!(first.contains("N59") && second.contains("Zed") && !second.contains("N59"), "{next}");
}
