//! Who may copy what, and what cannot be copied: nothing stays behind then.

use base::clock;
use edge::{caller::Scope, tenants::TenantLimits};
use futures_util::future::join_all;
use rehearsal::{Reply, Script};
use serde_json::json;
use tavernkeep::ops::maintenance;
use world::campaigns::fork::TABLES;

use super::{
    fork_at,
    picture::{assert_same, now},
    undo,
};
use crate::support::{Server, World, counts};

async fn hello(world: &World<'_>) -> String {
    world.client.server.model.set_script(Script::always(Reply::text("Hm.")));
    world.bob("player_alice", "Hello.").await.expect(200).id()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_copy() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let path = world.path("/fork");
    server.tenant("rival").await.post(&path, json!({})).await.problem(404, "not_found");
    let rivals = server.tenant("third").await;
    let campaign = world.get("").await.expect(200).id();
    rivals.post(&format!("/v1/campaigns/{campaign}/fork"), json!({})).await.problem(404, "not_found");
    for scopes in [&[Scope::Read, Scope::Write, Scope::Play, Scope::Tools, Scope::Admin][..], &[Scope::Read, Scope::Gm]]
    {
        tenant.with_scopes(scopes).await.post(&path, json!({})).await.problem(403, "forbidden");
    }
    let token = tenant.token(json!({ "campaign": "port-town" })).await;
    token.post(&path, json!({})).await.problem(403, "forbidden");
    tenant.with_scopes(&[Scope::Write, Scope::Gm]).await.post(&path, json!({})).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_copied() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let elsewhere = World::make(&tenant, "elsewhere").await;
    let foreign = hello(&elsewhere).await;
    let before = counts(&server).await;
    for turn in [foreign, clock::id().to_string()] {
        let unknown = world.post("/fork", json!({ "at_turn": turn })).await.problem(422, "validation_failed");
        assert_eq!(
            (unknown.pointers(), &unknown.body["errors"][0]["code"]),
            (vec!["/at_turn"], &json!("unknown_reference"))
        );
    }
    for (body, pointer) in [
        (json!({ "at_turn": "yesterday" }), "/at_turn"),
        (json!({ "slug": "No Slug" }), "/slug"),
        (json!({ "name": "" }), "/name"),
        (json!({ "sessions": true }), ""),
    ] {
        let refused = world.post("/fork", body).await.problem(422, "validation_failed");
        assert!(refused.pointers()[0].starts_with(pointer), "{}", refused.text);
    }
    world.post("/fork", json!({ "slug": "elsewhere" })).await.problem(409, "slug_taken");
    assert_eq!(counts(&server).await, before);
    // A turn that still runs has no end yet.
    server.model.set_script(Script::replies([Reply::text("Hm.").held()]));
    let early = async {
        let id = loop {
            if let Some(turn) = world.get("/turns").await.expect(200).items().first() {
                break turn["id"].as_str().unwrap().to_owned();
            }
        };
        world.post("/fork", json!({ "at_turn": id })).await.problem(409, "conflict");
        server.model.let_go(1);
    };
    tokio::join!(world.bob("player_alice", "Hello"), early).0.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_turn_ended_when_it_was_taken_back() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let note = || Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "One." }));
    let path = world.path("/npcs/innkeeper_bob/turns");
    let mut ended = Vec::new();
    for mode in ["revert", "keep"] {
        let body = json!({ "player_id": "player_alice", "action": "I pay.", "on_failure": mode });
        server.model.set_script(Script::replies([note(), Reply::status(500)]));
        let failed = tenant.post_with_key(&path, mode, body).await.problem(502, "llm_unavailable");
        ended.push((failed.body["turn_id"].as_str().unwrap().to_owned(), now(&world).await));
        world.post("/lore", json!({ "title": "x", "scope": "global", "content": "x" })).await.expect(201);
    }
    // What kept its effects is undone later: as of then, they were there.
    undo(&world, &ended[1].0).await.expect(200);
    // A turn that wrote nothing at all.
    server.model.set_script(Script::replies([Reply::status(500)]));
    let failed = world.bob("player_alice", "I pay.").await.problem(502, "llm_unavailable");
    ended.push((failed.body["turn_id"].as_str().unwrap().to_owned(), now(&world).await));
    world.delete("/lore/the_reach").await.expect(204);
    for (turn, picture) in &ended {
        assert_same(&now(&fork_at(&world, turn).await).await, picture, turn);
    }
    // Tried again under its key, it ends anew.
    let body = json!({ "player_id": "player_alice", "action": "I pay.", "on_failure": "revert" });
    server.model.set_script(Script::replies([note(), Reply::text("Noted.")]));
    let done = tenant.post_with_key(&path, "revert", body).await.expect(200).id();
    assert_eq!(done, ended[0].0);
    let picture = now(&world).await;
    world.delete("/lore/the_square").await.expect(204);
    assert_same(&now(&fork_at(&world, &done).await).await, &picture, "tried again");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pruned_is_gone() {
    let server = Server::start_with(&[("TAVERNKEEP_JOURNAL_RETENTION_DAYS", "7")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let fight = json!({ "participants": [{ "id": "orc", "hp": 9, "max_hp": 9 }] });
    let fight = world.post("/encounters", fight).await.expect(201).id();
    let first = hello(&world).await;
    let seq = super::picture::feed(&world).await.len();
    world.delete(&format!("/encounters/{fight}")).await.expect(204);
    let second = hello(&world).await;
    let picture = now(&world).await;
    world.delete("/lore/the_reach").await.expect(204);
    let mut db = server.owner().await;
    let past = async |db: &mut sqlx::PgConnection| -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM encounter_past").fetch_one(db).await.unwrap()
    };
    // All that the first turn wrote, and nothing after it: its world can still be had.
    let old = "UPDATE journal SET at = at - interval '8 days' WHERE seq <= $1";
    sqlx::query(old).bind(seq as i64).execute(&mut db).await.unwrap();
    sqlx::query("UPDATE encounter_past SET until_at = until_at").execute(&mut db).await.unwrap();
    maintenance::prune(&server.app).await.unwrap();
    // The last row of the turn is gone, and with it the place where it ended.
    world.post("/fork", json!({ "at_turn": first })).await.problem(410, "gone");
    assert_eq!(past(&mut db).await, 1, "needed for as long as the journal knows when it went");
    assert_same(&now(&fork_at(&world, &second).await).await, &picture, "after the second turn");
    let old = "UPDATE journal SET at = at - interval '8 days' WHERE seq <= $1";
    sqlx::query(old).bind(seq as i64 + 1).execute(&mut db).await.unwrap();
    sqlx::query("UPDATE encounter_past SET until_at = until_at - interval '8 days'").execute(&mut db).await.unwrap();
    maintenance::prune(&server.app).await.unwrap();
    assert_eq!(past(&mut db).await, 0);
    assert_same(&now(&fork_at(&world, &second).await).await, &picture, "after the second turn");
    sqlx::query("UPDATE journal SET at = at - interval '8 days'").execute(&mut db).await.unwrap();
    maintenance::prune(&server.app).await.unwrap();
    world.post("/fork", json!({ "at_turn": second })).await.problem(410, "gone");
    // The present needs no journal.
    assert_same(&now(&super::fork(&world, json!({})).await).await, &now(&world).await, "the present");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_limit_of_rows_counts_copies() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let limits = |rows| TenantLimits { rows_per_kind: rows, ..TenantLimits::unlimited() };
    let mut db = server.owner().await;
    // Four entries of lore are the most of any kind.
    for (rows, fits) in [(7, false), (8, true)] {
        sqlx::query("UPDATE tenant SET limits = $2 WHERE tenant_id = $1")
            .bind(tenant.tenant)
            .bind(json!(limits(rows)))
            .execute(&mut db)
            .await
            .unwrap();
        let client = tenant.with_scopes(&Scope::ALL).await;
        let before = counts(&server).await;
        let answer = client.post(&world.path("/fork"), json!({})).await;
        if fits {
            answer.expect(201);
        } else {
            let refused = answer.problem(429, "quota_exceeded");
            assert!(refused.text.contains("7 rows of lore"), "{}", refused.text);
            assert_eq!(counts(&server).await, before, "nothing stays behind");
        }
    }
}

/// A table or a reference that is new has to be thought of: see `migration/src/sql/fork.sql`.
#[tokio::test(flavor = "multi_thread")]
async fn every_table_and_reference_of_the_world_is_known() {
    let server = Server::start().await;
    let mut db = server.owner().await;
    let mut tables: Vec<String> = sqlx::query_scalar(
        "SELECT table_name::text FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'extensions'",
    )
    .fetch_all(&mut db)
    .await
    .unwrap();
    // Sessions are of frontends, not of the world. Replies wait for players of this campaign.
    tables.retain(|table| table != "session" && table != "reply");
    tables.sort();
    let mut known = TABLES.to_vec();
    known.sort_unstable();
    assert_eq!(tables, known);
    let references: Vec<String> = sqlx::query_scalar(
        "SELECT table_name || '.' || column_name FROM information_schema.columns \
         WHERE table_schema = 'public' AND table_name = ANY ($1) AND udt_name IN ('uuid', '_uuid') AND is_generated = 'NEVER' \
           AND column_name NOT IN ('tenant_id', 'id', 'campaign_id') ORDER BY 1",
    )
    .bind(TABLES)
    .fetch_all(&mut db)
    .await
    .unwrap();
    let known = [
        "character.player_user",
        "lore.known_by",
        "memory.author",
        "memory.broadcast_id",
        "memory.holder_id",
        "memory.subject_id",
        "memory.turn_id",
        "message.entity_id",
        "message.player_id",
        "message.scene_id",
        "message.session_id",
        "message.turn_id",
        "npc.owner_ids",
    ];
    assert_eq!(references, known);
}

/// Each sees what the others made: slugs are found, and a limit is not passed by asking for much at once.
#[tokio::test(flavor = "multi_thread")]
async fn copies_made_at_once_know_of_each_other() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let lore = world.get("/lore").await.expect(200).items().len() as u64;
    sqlx::query("UPDATE tenant SET limits = $2 WHERE tenant_id = $1")
        .bind(tenant.tenant)
        .bind(json!(TenantLimits { rows_per_kind: lore * 4, ..TenantLimits::unlimited() }))
        .execute(&mut server.owner().await)
        .await
        .unwrap();
    let client = tenant.with_scopes(&Scope::ALL).await;
    let path = world.path("/fork");
    let answers = join_all((0..6).map(|_| client.post(&path, json!({})))).await;
    let (made, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|a| a.status == 201);
    let mut slugs: Vec<_> = made.iter().map(|a| a.body["slug"].as_str().unwrap()).collect();
    slugs.sort_unstable();
    assert_eq!(slugs, ["port-town-2", "port-town-3", "port-town-4"]);
    for answer in refused {
        answer.problem(429, "quota_exceeded");
    }
    // Somebody else's copies wait for nobody.
    let other = server.tenant("other").await;
    let theirs = other.world().await;
    theirs.post("/fork", json!({})).await.expect(201);
}
