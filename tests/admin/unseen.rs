//! What a viewer's pages do not tell, as the API does not tell it to a key with `read`.

use edge::{caller::Scope, users::Role};
use serde_json::json;

use super::Visitor;
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn secret_lore_is_neither_named_nor_counted() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let before = world.get("/lore?limit=200").await.items().len();
    let secret =
        json!({ "title": "T", "scope": "faction", "associated_id": "Canary Cult", "content": "C", "secret": true });
    world.post("/lore", secret).await.expect(201);
    for (role, is_told) in [(Role::Editor, true), (Role::Viewer, false)] {
        let mut visitor = Visitor::signed_in(&server, tenant.tenant, role).await;
        let names = visitor.get("/admin/c/port-town/lore/names").await.expect(200).text;
        assert_eq!(names.contains("Canary Cult"), is_told, "{names}");
        let home = visitor.get("/admin/c/port-town").await.expect(200).text;
        let counts = home.split("<ul class=\"counts").nth(1).and_then(|rest| rest.split("</ul>").next()).unwrap();
        let counted = counts.split("/lore\"").nth(1).and_then(|rest| rest.split("</li>").next()).unwrap();
        let n = if is_told { before + 1 } else { before };
        assert!(counted.contains(&format!("<b>{n}</b>")), "{n}: {counted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn instructions_to_a_sessions_ai_stay_its_game_masters() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let session = world.post("/sessions", json!({ "client_id": "table" })).await.expect(201).id();
    let turn = json!({ "instruction": "The canary is the murderer." });
    world.post(&format!("/sessions/{session}/turns"), turn).await.expect(200);
    world.bob("player_alice", "I hum a canary's song.").await.expect(200);
    let turns = "/admin/c/port-town/turns";
    for (role, is_told) in [(Role::Editor, true), (Role::Viewer, false)] {
        let mut visitor = Visitor::signed_in(&server, tenant.tenant, role).await;
        let list = visitor.get(turns).await.expect(200).text;
        assert_eq!(list.contains("canary"), is_told, "{list}");
        assert_eq!(list.contains("type=\"search\""), is_told);
        let found = visitor.get(&format!("{turns}?q=murderer")).await;
        assert_eq!(found.status, if is_told { 200 } else { 403 }, "{}", found.text);
    }
    // Nor can a key feel for its words.
    let reader = tenant.with_scopes(&[Scope::Read]).await;
    assert_eq!(reader.get(&world.path("/turns")).await.expect(200).items().len(), 2);
    reader.get(&world.path("/turns?q=murderer")).await.problem(403, "forbidden");
    assert_eq!(world.get("/turns?q=murderer").await.expect(200).items().len(), 1);
}
