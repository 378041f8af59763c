//! Entity documents: whole imports like the others, with the same bounds.

use edge::tenants::TenantLimits;
use serde_json::{Value, json};

use crate::support::{Prepared, Server, counts};

const IMPORT: &str = "/v1/campaigns/port-town/import/seed";

#[tokio::test(flavor = "multi_thread")]
async fn memories_come_with_those_who_remember() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let memories = json!({ "player_alice": ["Pays late.", "Pays late.", "Sings."], "nobody": ["x"] });
    let documents = json!({ "npcs": [{ "ID": "gil", "Name": "Gil", "MemoriesAboutPlayers": memories }],
        "owners": [{ "ID": "sea", "Name": "The sea", "MonitoredAspect": "location", "AssociatedID": "sea",
            "MemoriesAboutPlayers": { "player_alice": ["Swims."] } }] });
    let report = acme.post(IMPORT, documents.clone()).await.expect(200).body;
    assert_eq!(
        (&report["memories_created"], report["warnings"].as_array().unwrap().len()),
        (&json!(3), 1),
        "{report:#}"
    );
    assert_eq!(world.get("/npcs/gil/memories").await.expect(200).items().len(), 2);
    assert_eq!(world.get("/owners/sea/memories").await.expect(200).items()[0]["text"], "Swims.");
    let before = counts(&server).await;
    let again = acme.post(IMPORT, documents).await.expect(200).body;
    assert_eq!((&again["memories_created"], &again["counts"]["unchanged"]), (&json!(0), &json!(2)));
    assert_eq!(counts(&server).await, before);
    // Others remember nothing, and memories are texts.
    let held = json!({ "player_alice": ["x"] });
    let on = |kind: &str, mut document: Value, held: Value| {
        document["memories_about_players"] = held;
        json!({ kind: [document] })
    };
    let lore = json!({ "slug": "l", "title": "L", "scope": "global", "content": "L." });
    for (documents, pointer) in [
        (on("lore", lore, held.clone()), "/lore/0/memories_about_players"),
        (on("players", json!({ "name": "Ann" }), held), "/players/0/memories_about_players"),
        (on("npcs", json!({ "name": "Ann" }), json!([])), "/npcs/0/memories_about_players"),
        (
            on("npcs", json!({ "name": "Ann" }), json!({ "player_alice": "x" })),
            "/npcs/0/memories_about_players/player_alice",
        ),
        (
            on("npcs", json!({ "name": "Ann" }), json!({ "player_alice": ["x", " "] })),
            "/npcs/0/memories_about_players/player_alice/1",
        ),
        (json!({ "npcs": [{ "name": "Ann" }, { "name": "Ann" }] }), "/npcs/1/slug"),
        (json!({ "npcs": [{ "name": "Ann", "level": {}, "race": 7 }] }), "/npcs/0/race"),
    ] {
        let answer = acme.post(IMPORT, documents).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{}", answer.text);
    }
    assert_eq!(counts(&server).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_document_leave_the_rest_as_it_is() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let whole =
        json!([{ "name": "Gil", "stats": { "armor_class": 12, "hp": 5, "max_hp": 9 }, "own": { "a": 1, "b": 2 } }]);
    acme.post(IMPORT, json!({ "npcs": whole })).await.expect(200);
    let part = json!([{ "name": "Gil", "stats": { "hp": 7 }, "own": { "b": 3 } }]);
    assert_eq!(acme.post(IMPORT, json!({ "npcs": part })).await.expect(200).body["counts"]["updated"], 1);
    let gil = world.get("/npcs/gil").await.expect(200).body;
    assert_eq!((&gil["stats"]["hp"], &gil["stats"]["max_hp"]), (&json!(7), &json!(9)));
    assert_eq!(gil["extensions"], json!({ "own": { "a": 1, "b": 3 } }));
    // A limit holds for all ways in.
    let limits = json!(TenantLimits { rows_per_kind: 6, ..TenantLimits::unlimited() });
    let sql = "UPDATE tenant SET limits = $2 WHERE tenant_id = $1";
    sqlx::query(sql).bind(acme.tenant).bind(limits).execute(&mut server.owner().await).await.unwrap();
    let more: Vec<_> = (0..6).map(|n| json!({ "name": format!("More {n}") })).collect();
    let acme = acme.with_scopes(&edge::caller::Scope::ALL).await;
    acme.post(IMPORT, json!({ "npcs": more })).await.problem(429, "quota_exceeded");
    world.get("/npcs/more_0").await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_rows_cost_few_statements() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start(&model).await;
    let statements = async || child.counter("tavernkeep_db_statements_total").await;
    let lore: Vec<_> = (0..500)
        .map(|n| {
            json!({ "slug": format!("l{n}"), "title": "L", "scope": "global", "content": "L.", "secret": true,
            "known_by": ["innkeeper_bob"] })
        })
        .collect();
    let npcs: Vec<_> = (0..500)
        .map(|n| {
            json!({ "slug": format!("n{n}"), "name": "N", "owner_ids": ["town_council_owner"],
            "memories_about_players": { "player_alice": [format!("Memory {n}")] } })
        })
        .collect();
    let documents = json!({ "npcs": npcs, "lore": lore });
    for wanted in ["created", "unchanged"] {
        let before = statements().await;
        let report = child.post("/import/seed", documents.clone()).await.unwrap().expect(200).body;
        let spent = statements().await - before;
        assert_eq!(report["counts"][wanted], 1000, "{:#}", report["counts"]);
        assert!(spent <= 24, "{wanted}: {spent} statements");
    }
    // A card whose book names the NPC in every entry.
    let entries: Vec<_> =
        (0..500).map(|n| json!({ "keys": [format!("k{n}")], "content": format!("C{n}"), "extensions": {} })).collect();
    let card = json!({ "spec": "chara_card_v2", "spec_version": "2.0",
        "data": { "name": "Ann", "description": "x", "character_book": { "entries": entries } } });
    let before = statements().await;
    let report = child.post("/import/character-card", card).await.unwrap().expect(200).body;
    let spent = statements().await - before;
    assert_eq!(report["counts"]["created"], 501);
    assert!(spent <= 24, "{spent} statements");
}
