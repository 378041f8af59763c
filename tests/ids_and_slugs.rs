//! A row is named by its id or its slug, also in the filters of lists.

use serde_json::json;

use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn filters_take_ids_and_slugs() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let scene = world.post("/scenes", json!({ "slug": "quay", "name": "The Quay" })).await.expect(201).id();
    let owner = world.get("/owners/town_council_owner").await.expect(200).id();
    let npc = json!({ "slug": "clerk", "name": "The Clerk", "owner_ids": ["town_council_owner"] });
    world.post("/npcs", npc).await.expect(201);
    let said = json!({ "player_id": "player_alice", "scene_id": "quay", "content": "A gull!" });
    world.post("/messages", said).await.expect(201);
    world.bob("player_alice", "Good morning.").await.expect(200);
    let alice = world.get("/characters/player_alice").await.expect(200).id();
    let bob = world.get("/npcs/innkeeper_bob").await.expect(200).id();

    // Another campaign's rows of the same names are others.
    tenant.post("/v1/campaigns", json!({ "slug": "inland", "name": "Inland" })).await.expect(201);
    for (list, filter, id, slug) in [
        ("messages", "player_id", &alice, "player_alice"),
        ("messages", "entity_id", &bob, "innkeeper_bob"),
        ("messages", "scene_id", &scene, "quay"),
        ("npcs", "owner_id", &owner, "town_council_owner"),
        ("turns", "entity_id", &bob, "innkeeper_bob"),
        ("turns", "player_id", &alice, "player_alice"),
    ] {
        let of = async |value: &str| world.get(&format!("/{list}?{filter}={value}")).await.expect(200).items().clone();
        let by_id = of(id).await;
        assert!(!by_id.is_empty(), "{list} by {filter}");
        assert_eq!(of(slug).await, by_id, "{list} by {filter}");
        assert!(of("nobody").await.is_empty(), "{list} by {filter}");
        let elsewhere = tenant.get(&format!("/v1/campaigns/inland/{list}?{filter}={slug}")).await.expect(200);
        assert!(elsewhere.items().is_empty(), "{list} by {filter}");
    }
}
