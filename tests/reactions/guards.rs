//! What must not go wrong around reactions: places, players' tokens, limits, locks, deletions, and AI that is switched off.

use edge::{tenant_settings::service::set_limits, tenants::TenantLimits};
use rehearsal::{Reply, Script};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use super::{act, ended, reactions, replies, settings, threshold, town, triggered};
use crate::{
    bridge::Socket,
    support::{Client, Server, World, until},
};

async fn alice<'a>(world: &World<'a>) -> Client<'a> {
    let claims = json!({ "campaign": world.slug, "player_id": "player_alice", "scopes": ["play", "read"] });
    world.client.token(claims).await
}

/// What an NPC says after its cooldown is heard at the location of the last action, as any of its replies.
#[tokio::test(flavor = "multi_thread")]
async fn a_reaction_that_waited_has_a_place() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 5).await;
    settings(&world, json!({ "reaction_cooldown_seconds": 1 })).await;
    server.model.set_script(Script::always(Reply::text("Hm.")));
    act(&world, "talk", json!({})).await.expect(202);
    act(&world, "talk", json!({})).await.expect(202);
    ended(&world, "done", 2).await;
    let waiting = replies(&world).await;
    assert_eq!(waiting.len(), 2);
    assert!(waiting.iter().all(|reply| reply["conditions"]["location"] == "town_square"), "{waiting:?}");
    world.patch("/characters/player_alice", json!({ "location": "harbour" })).await.expect(200);
    assert!(replies(&world).await.is_empty());
}

/// One action that is enough by itself does not wait for the end of a cooldown, and is not forgotten while a reaction runs.
#[tokio::test(flavor = "multi_thread")]
async fn an_immediate_action_does_not_wait_for_the_cooldown() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    world
        .patch("/npcs/innkeeper_bob", json!({ "reaction_threshold": null, "immediate_threshold": 10 }))
        .await
        .expect(200);
    server.model.set_script(Script::always(Reply::text("Hm.")));
    let at_bob = json!({ "targets": ["innkeeper_bob"] });
    let attack = async || triggered(&act(&world, "attack", at_bob.clone()).await.expect(202));
    // No sum leads to a reaction, and the rehearsal knows it.
    act(&world, "steal", at_bob.clone()).await.expect(202);
    act(&world, "steal", at_bob.clone()).await.expect(202);
    let actions: Vec<Value> = ["steal", "attack", "attack"]
        .map(|kind| json!({ "player_id": "player_alice", "type": kind, "targets": ["innkeeper_bob"] }))
        .to_vec();
    let rehearsal = world.post("/significance/rehearse", json!({ "actions": actions })).await.expect(200);
    let of_bob = |n: usize| {
        let concerned = rehearsal.body["actions"][n]["concerned"].as_array().unwrap();
        concerned.iter().find(|one| one["entity"]["slug"] == "innkeeper_bob").unwrap().clone()
    };
    assert_eq!((&of_bob(0)["reacts"], &of_bob(0)["threshold"]), (&json!(false), &Value::Null), "{}", rehearsal.text);
    assert_eq!((&of_bob(1)["reacts"], &of_bob(2)["reacts"]), (&json!(true), &json!(true)), "{}", rehearsal.text);
    assert_eq!(attack().await, ["innkeeper_bob"]);
    ended(&world, "done", 1).await;
    assert_eq!(reactions(&world, "").await[0]["actions"], 3);
    assert_eq!(attack().await, ["innkeeper_bob"]);
    ended(&world, "done", 2).await;
    server.model.set_script(Script::always(Reply::text("Hm.").held()));
    assert_eq!(attack().await, ["innkeeper_bob"]);
    until("the model", async || server.model.request_count() == 3).await;
    assert_eq!(attack().await, Vec::<String>::new());
    act(&world, "look", at_bob.clone()).await.expect(202);
    server.model.set_script(Script::always(Reply::text("Hm.")));
    server.model.let_go(1);
    ended(&world, "done", 4).await;
}

/// Ending a reaction that waits gives its score back; ending one that runs stops it.
#[tokio::test(flavor = "multi_thread")]
async fn a_reaction_is_ended_before_it_runs_and_while_it_runs() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 5).await;
    server.model.set_script(Script::always(Reply::text("Hm.").held()));
    // The first runs, so the second, of another player, waits.
    settings(&world, json!({ "reactions_at_once_max": 1 })).await;
    world.patch("/characters/player_mallory", json!({ "location": "town square" })).await.expect(200);
    let first = act(&world, "talk", json!({})).await.expect(202);
    until("the model", async || server.model.request_count() == 1).await;
    let talk = json!({ "player_id": "player_mallory", "type": "talk" });
    world.post("/actions", talk.clone()).await.expect(202);
    let waiting = reactions(&world, "&status=waiting").await.remove(0);
    let at = format!("/reactions/{}", waiting["id"].as_str().unwrap());
    let ended_one = world.post(&format!("{at}/end"), json!({})).await.expect(200);
    assert_eq!(ended_one.body["status"], "cancelled", "{}", ended_one.text);
    let scores = world.get("/npcs/innkeeper_bob/scores").await.expect(200);
    let of_mallory = scores.items().iter().find(|one| one["player_slug"] == "player_mallory").unwrap().clone();
    assert_eq!((&of_mallory["score"], &of_mallory["actions_waiting"]), (&json!(5.0), &json!(1)), "{of_mallory}");
    // Its actions count again, so it cannot be tried again.
    world.post(&format!("{at}/retry"), json!({})).await.problem(409, "conflict");

    let running = reactions(&world, "&status=running").await.remove(0);
    assert_eq!(running["turn_id"], first.body["triggered"][0]["turn_id"]);
    world.post(&format!("/reactions/{}/end", running["id"].as_str().unwrap()), json!({})).await.expect(200);
    ended(&world, "cancelled", 2).await;
    let scores = world.get("/npcs/innkeeper_bob/scores").await.expect(200);
    let of_alice = scores.items().iter().find(|one| one["player_slug"] == "player_alice").unwrap().clone();
    assert_eq!(of_alice["score"], 0.0, "{of_alice}");
    // The next action tells of all.
    server.model.set_script(Script::always(Reply::text("Hm.")));
    world.post("/actions", talk).await.expect(202);
    ended(&world, "done", 1).await;
    let asked = server.model.requests().last().unwrap()["messages"].to_string();
    assert!(asked.contains("1. talk") && asked.contains("2. talk"), "{asked}");
}

/// A player's token reports what its character does where it stands, cannot stop who reacts, and reads their words when it hears them.
#[tokio::test(flavor = "multi_thread")]
async fn a_player_cannot_look_behind_a_reaction() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 5).await;
    server.model.set_script(Script::always(Reply::text("Between us.").held()));
    let alice = alice(&world).await;
    let report = |more: Value| {
        let mut body = json!({ "player_id": "player_alice", "type": "talk" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let path = world.path("/actions");
    alice.post(&path, report(json!({ "location": "harbour" }))).await.problem(422, "validation_failed");
    assert!(world.get("/significance").await.expect(200).items().is_empty());
    let done = alice.post(&path, report(json!({ "location": "Town-Square" }))).await.expect(202);
    let turn = world.path(&format!("/turns/{}", done.body["triggered"][0]["turn_id"].as_str().unwrap()));
    alice.post(&format!("{turn}/cancel"), json!({})).await.problem(403, "forbidden");
    until("the model", async || server.model.request_count() == 1).await;
    server.model.let_go(1);
    ended(&world, "done", 1).await;
    let unheard = alice.get(&turn).await.expect(200);
    assert_eq!(unheard.body["status"], "succeeded");
    assert!(!unheard.text.contains("Between us."), "{}", unheard.text);
    let request = alice.request(reqwest::Method::GET, &format!("{turn}/events"));
    let events = request.send().await.unwrap().text().await.unwrap();
    assert!(events.contains("turn.completed") && !events.contains("Between us."), "{events}");
    assert!(tenant.get(&turn).await.expect(200).text.contains("Between us."), "the game master reads it");

    let reply = alice.get(&world.path("/players/player_alice/replies")).await.expect(200).items()[0]["id"].clone();
    let ack = world.path(&format!("/players/player_alice/replies/{}/ack", reply.as_str().unwrap()));
    alice.post(&ack, json!({})).await.expect(204);
    assert!(alice.get(&turn).await.expect(200).text.contains("Between us."));
}

/// However slow the model is for those who react, players find room for their own turns.
#[tokio::test(flavor = "multi_thread")]
async fn reactions_leave_room_for_players() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let few = TenantLimits { concurrent_turns: 2, ..TenantLimits::default() };
    set_limits(&mut server.owner().await, tenant.tenant, &few).await.unwrap();
    let world = town(tenant.world().await).await;
    for n in 0..4 {
        let npc = json!({ "slug": format!("npc_{n}"), "name": format!("Npc {n}"), "location": "town_square", "reaction_threshold": 1 });
        world.post("/npcs", npc).await.expect(201);
    }
    server.model.set_script(Script::always(Reply::text("Slow.").held()));
    act(&world, "say", json!({})).await.expect(202);
    until("the first reaction", async || server.model.request_count() == 1).await;
    // Another one would take the last place.
    act(&world, "say", json!({})).await.expect(202);
    assert_eq!(reactions(&world, "&status=running").await.len(), 1);
    server.model.set_script(Script::always(Reply::text("At once.")));
    world.bob("player_mallory", "Good evening.").await.expect(200);
    server.model.let_go(1);
    ended(&world, "done", 4).await;
}

/// Who changes one reaction, for however long, does not hold up the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_reaction_holds_up_no_other() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    let other = town(World::make(&tenant, "other-town").await).await;
    threshold(&world, "npcs/innkeeper_bob", 1).await;
    threshold(&other, "npcs/innkeeper_bob", 1).await;
    tenant.patch("/v1/tenant", json!({ "settings": { "features": { "llm": false } } })).await.expect(200);
    act(&world, "say", json!({})).await.expect(202);
    let mut db = PgConnection::connect(&server.db.url).await.unwrap();
    let put_off =
        "SELECT EXISTS (SELECT FROM reaction WHERE state = 'queued' AND due_at > now() + interval '20 seconds')";
    until("it was put off", async || sqlx::query_scalar(put_off).fetch_one(&mut db).await.unwrap()).await;
    let mut tx = db.begin().await.unwrap();
    sqlx::query("UPDATE reaction SET due_at = now()").execute(&mut *tx).await.unwrap();
    // The worker looks again when this is committed, not in a minute.
    sqlx::query("SELECT pg_notify('tavernkeep_reactions', '')").execute(&mut *tx).await.unwrap();
    server.model.set_script(Script::always(Reply::text("Hm.")));
    tenant.patch("/v1/tenant", json!({ "settings": { "features": { "llm": true } } })).await.expect(200);
    act(&other, "say", json!({})).await.expect(202);
    ended(&other, "done", 1).await;
    assert!(reactions(&world, "&status=done").await.is_empty());
    // AI that was switched off has cancelled nothing.
    tx.commit().await.unwrap();
    ended(&world, "done", 1).await;
}

/// A character that is deleted takes its reactions along, and leaves no turn that an erasure would wait for.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_character_leaves_no_turn_behind() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 1).await;
    tenant.patch("/v1/tenant", json!({ "settings": { "features": { "llm": false } } })).await.expect(200);
    act(&world, "say", json!({})).await.expect(202);
    world.delete("/characters/player_alice").await.expect(204);
    let turns = world.get("/turns").await.expect(200);
    assert!(turns.items().iter().all(|turn| turn["status"] == "cancelled"), "{}", turns.text);
    // A turn that waits for somebody else has read nothing, so an erasure does not wait for it.
    world.patch("/characters/player_mallory", json!({ "location": "Town Square" })).await.expect(200);
    let say = json!({ "player_id": "player_mallory", "type": "say" });
    world.post("/actions", say).await.expect(202);
    let visitor = json!({ "slug": "visitor", "name": "Visitor" });
    world.post("/characters", visitor).await.expect(201);
    let erased = world.delete("/characters/visitor?erase=true").await;
    if erased.status == 202 {
        let path = erased.header("location").to_owned();
        until("the erasure", async || tenant.get(&path).await.expect(200).body["status"] == "done").await;
    }
    assert_eq!(reactions(&world, "&status=waiting").await.len(), 1);
}

/// A reaction whose NPC is gone is not tried again, and a report that names somebody deleted counts nothing.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_deleted_does_not_react() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 5).await;
    server.model.set_script(Script::always(Reply::status(400)));
    act(&world, "talk", json!({})).await.expect(202);
    until("a failed attempt", async || reactions(&world, "").await[0]["error"].is_object()).await;
    let id = reactions(&world, "").await[0]["id"].as_str().unwrap().to_owned();
    world.post(&format!("/reactions/{id}/end"), json!({})).await.expect(200);
    world.delete("/npcs/innkeeper_bob").await.expect(204);
    world.post(&format!("/reactions/{id}/retry"), json!({})).await.problem(410, "gone");
    let before = world.get("/significance").await.expect(200).items().clone();
    let refused = act(&world, "talk", json!({ "targets": ["innkeeper_bob"] })).await.problem(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/targets/0"]);
    assert_eq!(world.get("/significance").await.expect(200).items(), &before);
}

/// When today's reactions are used up, scores wait for the next day.
#[tokio::test(flavor = "multi_thread")]
async fn a_day_has_so_many_reactions() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 5).await;
    settings(&world, json!({ "reaction_cooldown_seconds": 0, "reactions_per_day_max": 1 })).await;
    server.model.set_script(Script::always(Reply::text("Hm.")));
    assert_eq!(triggered(&act(&world, "talk", json!({})).await.expect(202)).len(), 1);
    ended(&world, "done", 1).await;
    assert!(triggered(&act(&world, "talk", json!({})).await.expect(202)).is_empty());
    let standing = world.get("/significance?entity_id=innkeeper_bob").await.expect(200).items()[0].clone();
    assert_eq!((&standing["score"], standing["due_at"].is_string()), (&json!(5.0), true), "{standing}");
    // The next day comes.
    let mut db = server.owner().await;
    let morning = "WITH day AS (UPDATE reaction_day SET day = day - 1) UPDATE significance SET due_at = now() WHERE due_at IS NOT NULL";
    sqlx::query(morning).execute(&mut db).await.unwrap();
    ended(&world, "done", 2).await;
    // The tenant's own limit holds for all of its campaigns.
    settings(&world, json!({ "reactions_per_day_max": 100 })).await;
    let one = TenantLimits { reactions_per_day: 1, ..TenantLimits::default() };
    set_limits(&mut db, tenant.tenant, &one).await.unwrap();
    assert!(triggered(&act(&world, "talk", json!({})).await.expect(202)).is_empty());
}

/// A reaction that takes longer than a lease keeps it.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_reaction_keeps_its_lease() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 1).await;
    server.model.set_script(Script::always(Reply::text("At last.").held()));
    act(&world, "say", json!({})).await.expect(202);
    until("the model", async || server.model.request_count() == 1).await;
    let mut db = server.owner().await;
    sqlx::query("UPDATE reaction SET lease_until = now() + interval '1 second'").execute(&mut db).await.unwrap();
    until("the renewed lease", async || {
        let row = sqlx::query_scalar::<_, bool>("SELECT lease_until > now() + interval '10 seconds' FROM reaction");
        row.fetch_one(&mut server.owner().await).await.unwrap()
    })
    .await;
    server.model.let_go(1);
    ended(&world, "done", 1).await;
    assert_eq!((server.model.request_count(), &reactions(&world, "").await[0]["tries"]), (1, &json!(1)));
}

/// An owner answers one prayer of a player at a time.
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_answers_one_prayer_at_a_time() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    server.model.set_script(Script::always(Reply::text("I hear you.").held()));
    let prayer = json!({ "player_id": "player_alice", "message": "Hear me." });
    let all = futures_util::future::join_all((0..6).map(|_| world.post("/pray", prayer.clone()))).await;
    let asked: Vec<_> = all.into_iter().flat_map(|answer| triggered(&answer.expect(202))).collect();
    assert_eq!(asked, ["town_council_owner"]);
    let council = world.get("/owners/town_council_owner/scores").await.expect(200);
    assert!(council.items().is_empty(), "a prayer counts only for others: {}", council.text);
    let bob = world.get("/npcs/innkeeper_bob/scores").await.expect(200);
    assert_eq!(bob.items()[0]["score"], 48.0, "he noticed each");
    until("the model", async || server.model.request_count() == 1).await;
    server.model.let_go(1);
    ended(&world, "done", 1).await;
    server.model.set_script(Script::always(Reply::text("Again?")));
    assert_eq!(triggered(&world.post("/pray", prayer).await.expect(202)).len(), 1);
}

/// A frontend that connects later, or whose character comes back, is told what waits.
#[tokio::test(flavor = "multi_thread")]
async fn the_bridge_tells_what_waits() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 5).await;
    server.model.set_script(Script::always(Reply::text("Well met.")));
    act(&world, "talk", json!({})).await.expect(202);
    ended(&world, "done", 1).await;
    let token = alice(&world).await.credential.clone();
    let hello = json!({ "client_id": "hers", "role": "player" });
    let (mut hers, _) = Socket::connect(&server.url, &token, hello).await;
    assert_eq!(hers.next_of("reply").await["data"]["reply"]["narrative"], "Well met.");
    for (location, words) in [("harbour", None), ("Town Square", Some("Well met."))] {
        world.patch("/characters/player_alice", json!({ "location": location })).await.expect(200);
        if let Some(words) = words {
            assert_eq!(hers.next_of("reply").await["data"]["reply"]["narrative"], words);
        }
    }
}

/// Actions, reactions and replies are kept as long as turns are.
#[tokio::test(flavor = "multi_thread")]
async fn old_rows_are_forgotten() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 5).await;
    server.model.set_script(Script::always(Reply::text("Hm.")));
    act(&world, "talk", json!({})).await.expect(202);
    ended(&world, "done", 1).await;
    let reply = replies(&world).await[0]["id"].as_str().unwrap().to_owned();
    world.post(&format!("/replies/{reply}/ack"), json!({})).await.expect(204);
    // What concerns nobody is not stored at all.
    world
        .patch("/characters/player_mallory", json!({ "location": "desert", "race": "", "profession": "" }))
        .await
        .expect(200);
    world.post("/actions", json!({ "player_id": "player_mallory", "type": "say" })).await.expect(202);
    let mut db = server.owner().await;
    let rows = async |db: &mut PgConnection| -> Vec<i64> {
        let mut all = Vec::new();
        for table in ["player_action", "action_concern", "reaction", "reply"] {
            let count = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}")));
            all.push(count.fetch_one(&mut *db).await.unwrap());
        }
        all
    };
    let before = rows(&mut db).await;
    assert_eq!((before[0], before[2], before[3]), (1, 1, 1));
    for (age, left) in [("1 day", &before), ("-1 second", &vec![0; 4])] {
        for _ in 0..2 {
            sqlx::query("SELECT prune_reactions($1::text::interval, 5000)").bind(age).execute(&mut db).await.unwrap();
        }
        assert_eq!(&rows(&mut db).await, left, "{age}");
    }
}
