//! A user of the editor.

use edge::users::Role;
use serde_json::json;
use uuid::Uuid;

use super::{assert_gone, finished, found};
use crate::support::Server;

const EMAIL: &str = "philippa.wintergreen@example.org";
const NAME: &str = "Philippa Wintergreen";

#[tokio::test(flavor = "multi_thread")]
async fn a_users_name_and_address_leave_every_table() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let made = tenant
        .post_with_key("/v1/users", "u1", json!({ "email": EMAIL, "name": NAME, "role": "editor" }))
        .await
        .expect(201);
    let id = made.id();
    tenant.get(&format!("/v1/users/{EMAIL}")).await.expect(200);
    let body = json!({ "slug": "moss", "name": "Moss", "player_name": NAME, "player_user": id });
    let moss = world.post("/characters", body).await.expect(201).id();
    world.patch("/npcs/harbour_ilse", json!({ "description": format!("Ask {NAME}, {EMAIL}.") })).await.expect(200);
    tenant.post("/v1/api-keys", json!({ "name": format!("{NAME}'s tablet"), "scopes": ["read"] })).await.expect(201);
    sqlx::query("UPDATE journal SET user_id = $1 WHERE table_name = 'lore'")
        .bind(uuid::Uuid::parse_str(&id).unwrap())
        .execute(&mut server.owner().await)
        .await
        .unwrap();
    assert!(found(&server, &[NAME, EMAIL]).await.len() > 4);
    finished(&tenant, tenant.delete(&format!("/v1/users/{id}?erase=true")).await).await;
    assert_gone(&server, &[NAME, EMAIL, "philippa"]).await;
    let changes = world.get("/changes?after=0&limit=200").await.expect(200);
    assert!(!changes.text.contains(&id), "the journal says who it was");
    let moss = world.get(&format!("/characters/{moss}")).await.expect(200);
    assert!(moss.body["player_name"].is_null() && moss.body["player_user"].is_null(), "{}", moss.text);
    assert_eq!(moss.body["name"], "Moss");
    // Once more is the same; another is nobody.
    finished(&tenant, tenant.delete(&format!("/v1/users/{id}?erase=true")).await).await;
    tenant.delete(&format!("/v1/users/{EMAIL}?erase=true")).await.problem(404, "not_found");
    tenant
        .post_with_key("/v1/users", "u1", json!({ "email": EMAIL, "name": NAME, "role": "editor" }))
        .await
        .problem(410, "gone");
}

/// Whoever belongs to another tenant too keeps their account there; this tenant knows nothing of them any more.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_other_tenants_stays_theirs() {
    let server = Server::start().await;
    let (acme, other) = (server.tenant("acme").await, server.tenant("other").await);
    server.user(acme.tenant, EMAIL, Role::Editor).await;
    let mut db = server.owner().await;
    let named =
        sqlx::query_scalar("UPDATE app_user SET name = $2 WHERE email = $1 RETURNING id").bind(EMAIL).bind(NAME);
    let id: Uuid = named.fetch_one(&mut db).await.unwrap();
    sqlx::query("INSERT INTO membership (tenant_id, user_id, role) VALUES ($1, $2, 'editor')")
        .bind(other.tenant)
        .bind(id)
        .execute(&mut db)
        .await
        .unwrap();
    let world = acme.world().await;
    world.patch("/npcs/harbour_ilse", json!({ "description": format!("Ask {NAME}.") })).await.expect(200);
    finished(&acme, acme.delete(&format!("/v1/users/{id}?erase=true")).await).await;
    let left = found(&server, &[NAME, EMAIL]).await;
    assert!(left.iter().all(|place| place.contains(" in app_user: ")), "{left:#?}");
    assert_eq!(other.get(&format!("/v1/users/{EMAIL}")).await.expect(200).body["name"], NAME);
    acme.get(&format!("/v1/users/{EMAIL}")).await.problem(404, "not_found");
}

/// A name that was made of the address may be any word; a world's words are not taken for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_made_of_the_address_takes_no_words_from_the_world() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id =
        tenant.post("/v1/users", json!({ "email": "jovial@example.org", "role": "viewer" })).await.expect(201).id();
    finished(&tenant, tenant.delete(&format!("/v1/users/{id}?erase=true")).await).await;
    assert_gone(&server, &["jovial@example.org"]).await;
    let bob = world.get("/npcs/innkeeper_bob").await.expect(200);
    assert_eq!(bob.body["description"], "A jovial innkeeper with a booming laugh.");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_owner_stays() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let id = tenant.get(&format!("/v1/users/{EMAIL}")).await.expect(200).id();
    tenant.delete(&format!("/v1/users/{id}?erase=true")).await.problem(409, "conflict");
    tenant.delete(&format!("/v1/users/{id}?erase=true&forks=true")).await.problem(400, "bad_request");
    tenant.get(&format!("/v1/users/{id}")).await.expect(200);
}
