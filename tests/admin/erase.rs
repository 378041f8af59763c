//! Erasing somebody in the editor: a question, a word to write, and nobody is left.

use edge::users::Role;

use super::{EMAIL, Visitor, field};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_erases_a_character_and_a_user() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let mut editor = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let id = world.get("/characters/player_mallory").await.expect(200).id();
    let path = format!("/admin/c/{}/characters/{id}", world.slug);
    assert!(owner.get(&path).await.expect(200).text.contains(&format!("href=\"{path}/erase\"")));
    assert!(!editor.get(&path).await.expect(200).text.contains("/erase\""));
    editor.get(&format!("{path}/erase")).await.expect(403);
    editor.post(&format!("{path}/erase"), &[("repeat", "player_mallory")]).await.expect(403);

    let ask = owner.get(&format!("{path}/erase")).await.expect(200).text;
    assert!(ask.contains("Erase Mallory?") && ask.contains("forked"), "{ask}");
    let version = field(&ask, "version");
    let form = |word: &'static str| vec![("repeat", word), ("version", version.as_str())];
    let wrong = owner.post(&format!("{path}/erase"), &form("mallory")).await.expect(422);
    assert!(wrong.text.contains("Type player_mallory to erase it."), "{}", wrong.text);
    owner.post(&format!("{path}/erase"), &[("repeat", "player_mallory"), ("version", "99")]).await.expect(409);
    world.get(&format!("/characters/{id}")).await.expect(200);
    owner.post(&format!("{path}/erase"), &form("player_mallory")).await.expect(303);
    tenant.get(&format!("/v1/erasures/{}", server.erasure_of(&id).await)).await.expect(200);

    server.user(tenant.tenant, EMAIL, Role::Viewer).await;
    let mara = tenant.get(&format!("/v1/users/{EMAIL}")).await.expect(200).id();
    let path = format!("/admin/users/{mara}");
    assert!(owner.get(&path).await.expect(200).text.contains(&format!("href=\"{path}/erase\"")));
    owner.get(&format!("{path}/erase")).await.expect(200);
    owner.post(&format!("{path}/erase"), &[("repeat", "nobody"), ("version", "1")]).await.expect(422);
    owner.post(&format!("{path}/erase"), &[("repeat", EMAIL), ("version", "1")]).await.expect(303);
    tenant.get(&format!("/v1/users/{mara}")).await.problem(404, "not_found");
}
