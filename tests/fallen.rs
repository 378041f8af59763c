//! The dead and the unconscious outside of a fight: they do not answer, do not notice what happens, and their players say and do nothing
//! in character.

use entity::{character, npc};
use rehearsal::{Reply, Script};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use serde_json::{Value, json};

use crate::support::{Client, Server, World, until};
use db::tenancy::TenantTx;
use world::fallen::Fallen;

/// Alice and Bob at one place.
async fn together<'a>(acme: &'a Client<'a>) -> World<'a> {
    let world = acme.world().await;
    world.patch("/characters/player_alice", json!({ "location": "town_square" })).await.expect(200);
    let bob = json!({ "location": "town_square", "reaction_threshold": 1, "greetings": ["Welcome."], "stats": { "hp": 8, "max_hp": 8 } });
    world.patch("/npcs/innkeeper_bob", bob).await.expect(200);
    world
}

async fn bob_has(world: &World<'_>, hp: i64) {
    world.patch("/npcs/innkeeper_bob", json!({ "stats": { "hp": hp, "max_hp": 8 } })).await.expect(200);
}

async fn bob_is(world: &World<'_>, conditions: Value) {
    world.patch("/npcs/innkeeper_bob", json!({ "conditions": conditions })).await.expect(200);
}

async fn alice_has(world: &World<'_>, sheet: Value) {
    world.patch("/characters/player_alice", sheet).await.expect(200);
}

async fn attack(world: &World<'_>) -> Vec<Value> {
    let action = json!({ "player_id": "player_alice", "type": "attack", "targets": ["innkeeper_bob"] });
    world.post("/actions", action).await.expect(202).body["triggered"].as_array().unwrap().clone()
}

/// How many actions Bob has noticed.
async fn scores(world: &World<'_>) -> usize {
    let scores = world.get("/npcs/innkeeper_bob/scores").await.expect(200);
    scores.items().iter().map(|score| usize::try_from(score["actions_waiting"].as_u64().unwrap()).unwrap()).sum()
}

fn dead() -> Value {
    json!({ "hp": 0, "death_saves": { "successes": 0, "failures": 3 } })
}

#[tokio::test(flavor = "multi_thread")]
async fn who_died_in_a_fight_stays_silent_until_somebody_brings_them_back() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = together(&acme).await;
    server.model.set_script(Script::always(Reply::text("Well met.")));
    let before = world.bob("player_alice", "Hello.").await.expect(200).id();
    let fight = json!({ "participants": [
        { "id": "alice", "character_id": "player_alice", "initiative": 20 }, { "id": "bob", "npc_id": "innkeeper_bob", "is_enemy": true, "initiative": 1 } ] });
    let fight = world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    let harm = json!({ "action": "damage", "target_id": "bob", "amount": 100 });
    world.post(&format!("/encounters/{fight}/actions"), harm).await.expect(200);
    // The fight is a simulation until it is committed.
    world.bob("player_alice", "Still there?").await.expect(200);
    world.post(&format!("/encounters/{fight}/end"), json!({ "outcome": "victory" })).await.expect(200);
    world.post(&format!("/encounters/{fight}/commit"), json!({})).await.expect(200);
    let asked = server.model.requests().len();
    let refused = world.bob("player_alice", "Hello again.").await.problem(409, "dead");
    assert_eq!(refused.body["detail"], "Innkeeper Bob is dead and does not answer.");
    let last = world
        .get("/turns?kind=npc&limit=200")
        .await
        .expect(200)
        .items()
        .iter()
        .map(|turn| turn["id"].as_str().unwrap().to_owned())
        .max()
        .unwrap();
    for rest in ["regenerate", "continue"] {
        world.post(&format!("/turns/{last}/{rest}"), json!({})).await.problem(409, "dead");
    }
    world.post("/npcs/innkeeper_bob/greet", json!({ "player_id": "player_mallory" })).await.problem(409, "dead");
    assert_eq!(attack(&world).await, Vec::<Value>::new(), "the dead notice nothing");
    assert_eq!(scores(&world).await, 0);
    assert_eq!(server.model.requests().len(), asked, "nobody was asked");
    // His owners still reach him, and what he did before can be undone.
    world.free_of_charge().await;
    let told = json!({ "actor": { "type": "owner", "id": "town_council_owner" }, "player_id": "player_alice", "arguments": { "player_id": "player_alice", "memory_string": "Mourn him." } });
    world.post("/tools/OWNER_memorize_dependables", told).await.expect(200);
    world.post(&format!("/turns/{last}/undo"), json!({})).await.expect(200);
    world.post(&format!("/turns/{before}/undo"), json!({})).await.expect(200);
    bob_has(&world, 1).await;
    world.bob("player_alice", "You are back!").await.expect(200);
    assert_eq!(attack(&world).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_unconscious_sleep_and_the_dead_speak_only_where_they_may() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = together(&acme).await;
    server.model.set_script(Script::always(Reply::text("Hm.")));
    // Nobody reacts, but actions count.
    world.patch("/npcs/innkeeper_bob", json!({ "reaction_threshold": 100_000 })).await.expect(200);
    let hello = async || world.bob("player_alice", "Hello.").await;
    let mut noticed = 0;
    hello().await.expect(200);
    // Each change is seen at once, although the prompt is cached.
    for (conditions, code) in [
        (json!([{ "name": "Unconscious" }]), Some("unconscious")),
        (json!([{ "name": "poisoned" }]), None),
        (json!([{ "name": "exhaustion", "level": 6 }]), Some("dead")),
        (json!([{ "name": "exhaustion", "level": 5 }]), None),
        (json!([]), None),
    ] {
        bob_is(&world, conditions.clone()).await;
        match code {
            Some(code) => _ = hello().await.problem(409, code),
            None => _ = hello().await.expect(200),
        }
        attack(&world).await;
        noticed += usize::from(code.is_none());
        assert_eq!(scores(&world).await, noticed, "{conditions}");
    }
    bob_has(&world, 0).await;
    hello().await.problem(409, "dead");
    world.patch("", json!({ "settings": { "dead_speak": true } })).await.expect(200);
    hello().await.expect(200);
    let request = server.model.requests().pop().unwrap();
    let last = request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
    assert!(last.contains("\nInnkeeper Bob is dead.\n"), "{last}");
    // Unconscious at 0 hit points is not dead, and sleep is never lifted by the setting.
    bob_is(&world, json!([{ "name": "unconscious" }])).await;
    hello().await.problem(409, "unconscious");
    world.patch("", json!({ "settings": { "dead_speak": "yes" } })).await.problem(422, "validation_failed");
    // A sheet without hit points is for talking alone.
    bob_is(&world, json!([])).await;
    world.patch("/npcs/innkeeper_bob", json!({ "stats": { "hp": 0, "max_hp": 0 } })).await.expect(200);
    world.patch("", json!({ "settings": { "dead_speak": null } })).await.expect(200);
    hello().await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_characters_player_speaks_out_of_character_alone() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = together(&acme).await;
    world.free_of_charge().await;
    server.model.set_script(Script::always(Reply::text("Hm.")));
    let token =
        acme.token(json!({ "scopes": ["read", "play"], "campaign": world.slug, "player_id": "player_alice" })).await;
    let path = |rest: &str| world.path(rest);
    let key = "once-and-again";
    let said = json!({ "player_id": "player_alice", "action": "I was here." });
    let first = token.post_with_key(&path("/npcs/innkeeper_bob/turns"), key, said.clone()).await.expect(200);
    for (sheet, code) in [(dead(), "dead"), (json!({ "hp": 0 }), "unconscious")] {
        alice_has(&world, json!({ "hp": 5 })).await;
        alice_has(&world, sheet).await;
        let asked = server.model.requests().len();
        let deeds = [
            ("/npcs/innkeeper_bob/turns", json!({ "player_id": "player_alice", "action": "Help me." })),
            ("/owners/town_council_owner/turns", json!({ "player_id": "player_alice", "action": "Help me." })),
            ("/act", json!({ "player_id": "player_alice", "message": "I stand up." })),
            ("/pray", json!({ "player_id": "player_alice", "message": "Save me." })),
            ("/commands/roll", json!({ "player_id": "player_alice", "arguments": { "expr": "1d20" } })),
            ("/commands/do", json!({ "player_id": "player_alice", "arguments": { "message": "I stand up." } })),
            (
                "/commands/check",
                json!({ "player_id": "player_alice", "arguments": { "skill": "athletics", "dc": 10 } }),
            ),
            ("/rules/resolve", json!({ "player_id": "player_alice", "action": "I climb." })),
        ];
        for caller in [&token, &acme] {
            for (route, body) in &deeds {
                let refused = caller.post(&path(route), body.clone()).await.problem(409, code);
                assert!(refused.body["detail"].as_str().unwrap().starts_with("Alice is "), "{route}: {}", refused.text);
            }
        }
        assert_eq!(server.model.requests().len(), asked, "nobody was asked");
        let ooc = json!({ "player_id": "player_alice", "arguments": { "message": "Well, that was quick." } });
        token.post(&path("/commands/ooc"), ooc).await.expect(200);
        token
            .post(&path("/commands/sheet.show"), json!({ "player_id": "player_alice", "arguments": {} }))
            .await
            .expect(200);
        // What was done before is answered as it was.
        let again = token.post_with_key(&path("/npcs/innkeeper_bob/turns"), key, said.clone()).await.expect(200);
        assert_eq!(again.body["id"], first.body["id"]);
    }
    // A campaign may let the dead speak, but nobody talks in their sleep.
    world.patch("", json!({ "settings": { "dead_speak": true } })).await.expect(200);
    token
        .post(&path("/commands/roll"), json!({ "player_id": "player_alice", "arguments": { "expr": "1d20" } }))
        .await
        .problem(409, "unconscious");
    alice_has(&world, dead()).await;
    token
        .post(&path("/commands/roll"), json!({ "player_id": "player_alice", "arguments": { "expr": "1d20" } }))
        .await
        .expect(200);
    token.post(&path("/act"), json!({ "player_id": "player_alice", "message": "Boo." })).await.expect(200);
    world.patch("", json!({ "settings": { "dead_speak": null } })).await.expect(200);
    // Hit points bring back, and the saves against death begin anew.
    alice_has(&world, json!({ "hp": 3 })).await;
    let sheet = world.get("/characters/player_alice").await.expect(200).body;
    assert_eq!(sheet["death_saves"], json!({ "successes": 0, "failures": 0 }));
    token
        .post(&path("/npcs/innkeeper_bob/turns"), json!({ "player_id": "player_alice", "action": "I live!" }))
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fight_decides_about_its_own_dead() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = together(&acme).await;
    let fight = json!({ "participants": [
        { "id": "alice", "character_id": "player_alice", "initiative": 20 }, { "id": "bob", "npc_id": "innkeeper_bob", "is_enemy": true, "initiative": 1 } ] });
    world.post("/encounters", fight).await.expect(201);
    alice_has(&world, dead()).await;
    let roll = json!({ "player_id": "player_alice", "arguments": { "expr": "1d20" } });
    world.post("/commands/roll", roll).await.expect(200);
    world.post("/rules/resolve", json!({ "player_id": "player_alice", "action": "I strike Bob." })).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reaction_that_waits_for_the_dead_is_cancelled() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = together(&acme).await;
    world.patch("", json!({ "settings": { "reactions_at_once_max": 1 } })).await.expect(200);
    world
        .patch(
            "/npcs/harbour_ilse",
            json!({ "location": "town_square", "reaction_threshold": 1, "stats": { "hp": 5, "max_hp": 5 } }),
        )
        .await
        .expect(200);
    server.model.set_script(Script::always(Reply::text("Hm.").held()));
    let action = json!({ "player_id": "player_alice", "type": "attack", "targets": ["innkeeper_bob", "harbour_ilse"] });
    assert_eq!(world.post("/actions", action).await.expect(202).body["triggered"].as_array().unwrap().len(), 2);
    until("one reacts", async || server.model.requests().len() == 1).await;
    let reactions = world.get("/reactions?limit=200").await.expect(200);
    let waits = reactions.items().iter().find(|r| r["status"] != "running").unwrap()["entity"]["slug"]
        .as_str()
        .unwrap()
        .to_owned();
    world.patch(&format!("/npcs/{waits}"), json!({ "stats": { "hp": 0, "max_hp": 8 } })).await.expect(200);
    server.model.let_go(1);
    until("both have ended", async || {
        let reactions = world.get("/reactions?limit=200").await.expect(200);
        reactions.items().iter().all(|r| r["status"] == if r["entity"]["slug"] == waits { "cancelled" } else { "done" })
    })
    .await;
    assert_eq!(server.model.requests().len(), 1);
}

/// The functions in the database and the rules say the same of every sheet.
#[tokio::test(flavor = "multi_thread")]
async fn the_database_and_the_rules_agree_about_who_has_fallen() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let conditions = [
        json!([]),
        json!([{ "name": "unconscious" }]),
        json!([{ "name": "Unconscious" }, { "name": "prone" }]),
        json!([{ "name": "exhaustion", "level": 6 }]),
        json!([{ "name": "Exhaustion", "level": 5 }]),
        json!([{ "name": "exhaustion" }, { "name": "unconscious" }]),
        json!([{ "name": "not unconscious" }]),
    ];
    let mut words = std::collections::HashMap::<String, usize>::new();
    for (n, conditions) in conditions.iter().enumerate() {
        for (hp, max_hp) in [(0, 0), (0, 8), (8, 8)] {
            let npc = json!({ "slug": format!("npc_{n}_{hp}_{max_hp}"), "name": "N", "stats": { "hp": hp, "max_hp": max_hp }, "conditions": conditions });
            world.post("/npcs", npc).await.expect(201);
            for (failures, successes) in [(0, 0), (2, 3), (3, 0)] {
                let character = json!({ "slug": format!("pc_{n}_{hp}_{max_hp}_{failures}"), "name": "C", "hp": hp, "max_hp": max_hp.max(1), "conditions": conditions,
                    "death_saves": { "failures": failures, "successes": successes } });
                world.post("/characters", character).await.expect(201);
            }
        }
    }
    let tx = TenantTx::read(server.pool(), acme.tenant).await.unwrap();
    for row in npc::Entity::find().filter(npc::Column::TenantId.eq(acme.tenant)).all(&tx).await.unwrap() {
        let sql = "SELECT npc_fallen(stats, conditions) FROM npc WHERE tenant_id = $1 AND id = $2";
        agree(&tx, acme.tenant, sql, row.id.0, Fallen::of_npc(&row), &mut words).await;
    }
    for row in character::Entity::find().filter(character::Column::TenantId.eq(acme.tenant)).all(&tx).await.unwrap() {
        let sql = "SELECT character_fallen(hp, max_hp, death_saves, conditions) FROM character WHERE tenant_id = $1 AND id = $2";
        agree(&tx, acme.tenant, sql, row.id.0, Fallen::of_character(&row), &mut words).await;
    }
    assert_eq!(words.len(), 3, "{words:?}");
}

async fn agree(
    tx: &TenantTx,
    tenant: uuid::Uuid,
    sql: &'static str,
    id: uuid::Uuid,
    rules: Option<Fallen>,
    words: &mut std::collections::HashMap<String, usize>,
) {
    let found: Option<String> =
        sqlx::query_scalar(sql).bind(tenant).bind(id).fetch_one(&mut *tx.connection().await).await.unwrap();
    let wanted = rules.map(|fallen| fallen.as_str().to_owned());
    assert_eq!(found, wanted, "{id}");
    *words.entry(found.unwrap_or_default()).or_default() += 1;
}
