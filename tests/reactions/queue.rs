//! The queue: one crossing is one reaction, on however many servers; nothing is lost; nobody waits for a model or for another campaign.

use std::time::Duration;

use futures_util::future::join_all;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{act, asked, ended, reactions, replies, script, settings, threshold, to, town, triggered};
use crate::support::{Prepared, SWEEPS, Server, World, until};

/// A hundred actions at once on two servers cross the threshold once.
#[tokio::test(flavor = "multi_thread")]
async fn one_crossing_is_one_reaction() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 100).await;
    let second = Server::on(server.db.clone(), &[]).await;
    let there = tenant.at(&second);
    server.model.set_script(Script::always(Reply::text("Enough!")));
    second.model.set_script(Script::always(Reply::text("Enough!")));
    let all = (0..100).map(|n| {
        let client = if n % 2 == 0 { &tenant } else { &there };
        let body = json!({ "player_id": "player_alice", "type": "move" });
        let path = world.path("/actions");
        async move { crate::support::patiently(|| client.post(&path, body.clone())).await.expect(202) }
    });
    let answers = join_all(all).await;
    let crossings: usize = answers.iter().map(|answer| triggered(answer).len()).sum();
    assert_eq!(crossings, 1);
    ended(&world, "done", 1).await;
    assert_eq!(reactions(&world, "").await.len(), 1);
    assert_eq!(server.model.request_count() + second.model.request_count(), 1);
    assert_eq!(reactions(&world, "").await[0]["actions"], 100);
    assert_eq!(replies(&world).await.len(), 1);
    second.stop().await;
}

/// The same with two processes.
#[tokio::test(flavor = "multi_thread")]
async fn one_crossing_of_two_processes_is_one_reaction() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let processes = [prepared.start(&model).await, prepared.start(&model).await];
    for (path, body) in [
        ("/characters/player_alice", json!({ "location": "town_square" })),
        ("/npcs/innkeeper_bob", json!({ "location": "town_square", "reaction_threshold": 100 })),
        ("/owners/town_council_owner", json!({ "reaction_threshold": 1000 })),
    ] {
        let changed = processes[0].request(reqwest::Method::PATCH, path).json(&body).send().await.unwrap();
        assert_eq!(changed.status(), 200, "{path}");
    }
    model.set_script(Script::always(Reply::text("Enough!")));
    let all = (0..100).map(|n| {
        let process = &processes[n % 2];
        let move_on = || async {
            process.post("/actions", json!({ "player_id": "player_alice", "type": "move" })).await.unwrap()
        };
        crate::support::patiently(move_on)
    });
    let crossings: usize = join_all(all).await.into_iter().map(|answer| triggered(&answer.expect(202)).len()).sum();
    assert_eq!(crossings, 1);
    until("the reaction", async || processes[1].get("/reactions?status=done").await.expect(200).items().len() == 1)
        .await;
    let reactions = processes[0].get("/reactions").await.expect(200);
    assert_eq!((reactions.items().len(), &reactions.items()[0]["actions"]), (1, &json!(100)), "{}", reactions.text);
    assert_eq!(model.request_count(), 1);
}

/// During the cooldown actions count; at its end there is one reaction, if it is still enough.
#[tokio::test(flavor = "multi_thread")]
async fn a_cooldown_ends_with_one_reaction() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 5).await;
    settings(&world, json!({ "reaction_cooldown_seconds": 2 })).await;
    server.model.set_script(Script::always(Reply::text("Hm.")));
    assert_eq!(triggered(&act(&world, "talk", json!({})).await.expect(202)), ["innkeeper_bob"]);
    for _ in 0..4 {
        assert_eq!(triggered(&act(&world, "talk", json!({})).await.expect(202)), Vec::<String>::new());
    }
    let standing = world.get("/significance?entity_id=innkeeper_bob").await.expect(200);
    assert!(standing.items()[0]["due_at"].is_string(), "{}", standing.text);
    ended(&world, "done", 2).await;
    let last = reactions(&world, "").await.pop().unwrap();
    assert_eq!((&last["actions"], &last["score"]), (&json!(4), &json!(20.0)));
}

/// A model that fails is asked again; what fails too often is dead, and a game master ends it or tries it once more.
#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_tried_again_and_then_dead() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 5).await;
    server.model.set_script(Script::replies([Reply::status(400)]).then(rehearsal::Then::RepeatLast));
    let done = act(&world, "talk", json!({})).await.expect(202);
    let turn = done.body["triggered"][0]["turn_id"].as_str().unwrap().to_owned();
    until("a failed attempt", async || reactions(&world, "").await[0]["error"].is_object()).await;
    // The database says that it was tried often enough.
    let mut db = server.owner().await;
    sqlx::query("UPDATE reaction SET tries = 2, due_at = now()").execute(&mut db).await.unwrap();
    ended(&world, "dead", 1).await;
    let dead = reactions(&world, "&status=dead").await.remove(0);
    assert_eq!((&dead["error"]["code"], &dead["turn_id"]), (&json!("llm_unavailable"), &json!(turn)));
    let standing = world.get("/significance?entity_id=innkeeper_bob").await.expect(200);
    assert_eq!(standing.items()[0]["last_reaction"]["status"], "dead");
    assert!(replies(&world).await.is_empty());

    let at = format!("/reactions/{}", dead["id"].as_str().unwrap());
    server.model.set_script(Script::always(Reply::text("At last.")));
    assert_eq!(world.post(&format!("{at}/end"), json!({})).await.expect(200).body["status"], "cancelled");
    world.post(&format!("{at}/end"), json!({})).await.problem(409, "conflict");
    // The provider is left alone for a while after its failures, so wait for the reaction, however often it is postponed.
    world.post(&format!("{at}/retry"), json!({})).await.expect(200);
    until("the reaction", async || {
        let now = world.get(&at).await.expect(200).body;
        if ["dead", "waiting"].contains(&now["status"].as_str().unwrap()) && now["tries"] == 3 {
            world.post(&format!("{at}/retry"), json!({})).await;
        }
        sqlx::query("UPDATE reaction SET due_at = now() WHERE state = 'queued'")
            .execute(&mut server.owner().await)
            .await
            .unwrap();
        now["status"] == "done"
    })
    .await;
    assert_eq!(replies(&world).await[0]["narrative"], "At last.");
    assert_eq!(world.get(&format!("/turns/{turn}")).await.expect(200).body["status"], "succeeded");
}

/// A slow model keeps no player waiting, and one campaign's reactions do not hold up another's.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_somebody_elses_reactions() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    let other = town(World::make(&tenant, "other-town").await).await;
    settings(&world, json!({ "reaction_cooldown_seconds": 0 })).await;
    for n in 0..20 {
        let npc = json!({ "slug": format!("npc_{n}"), "name": format!("Npc {n}"), "location": "town_square", "reaction_threshold": 1 });
        world.post("/npcs", npc).await.expect(201);
    }
    threshold(&other, "npcs/innkeeper_bob", 1).await;
    let held = |n: u32| to("SLOW", Reply::text(format!("Slow {n}.")).held());
    server.model.set_script(script(vec![held(1), to("noticed_actions", Reply::text("Quick."))]));
    let done = act(&world, "say", json!({ "text": "SLOW" })).await.expect(202);
    assert_eq!(triggered(&done).len(), 20);
    until("as many as a campaign may have", async || reactions(&world, "&status=running").await.len() == 4).await;
    // Meanwhile players play, and the other campaign's people react.
    act(&world, "look", json!({})).await.expect(202);
    world.get("/npcs").await.expect(200);
    assert_eq!(triggered(&act(&other, "say", json!({})).await.expect(202)), ["innkeeper_bob"]);
    ended(&other, "done", 1).await;
    assert_eq!(reactions(&world, "&status=running").await.len(), 4, "no more than a campaign may have at once");
    server.model.let_go(20);
    until("all of them", async || {
        server.model.let_go(20);
        reactions(&world, "&status=done").await.len() == 20
    })
    .await;
}

/// Thousands of actions: each counts, and who reacts is told of the newest.
#[tokio::test(flavor = "multi_thread")]
async fn a_storm_is_counted() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 10_000).await;
    threshold(&world, "owners/town_council_owner", 1_000_000).await;
    server.model.set_script(Script::always(Reply::text("Peace!")));
    // The first 9,900 in the database itself, by the function that every report calls.
    let mut db = server.owner().await;
    let storm = "WITH a AS (SELECT c.tenant_id, jsonb_build_object('campaign_id', c.id, 'player_id', p.id, 'type', 'move', 'score', 1, \
            'targets', '[]'::jsonb, 'target_ids', '[]'::jsonb, 'location', 'Town Square', 'location_key', 'town_square', 'spellings', '[]'::jsonb, \
            'factions', '[]'::jsonb, 'source', 'report', 'cooldown_seconds', 60, 'per_day', 0, \
            'concerned_max', 200, 'kept_max', 50, 'text', 'Step.') AS doc \
          FROM campaign c JOIN character p ON p.campaign_id = c.id AND p.slug = 'player_alice') \
        SELECT count(*) FROM a, generate_series(1, 100) AS n, LATERAL report_action(a.tenant_id, a.doc || jsonb_build_object('id', uuid7(), 'n', n)) r";
    for _ in 0..99 {
        sqlx::query(storm).execute(&mut db).await.unwrap();
    }
    let kept: i64 =
        sqlx::query_scalar("SELECT count(*) FROM action_concern WHERE reaction_id IS NULL GROUP BY entity_id LIMIT 1")
            .fetch_one(&mut db)
            .await
            .unwrap();
    assert!((50..66).contains(&kept), "{kept} are kept, and a reaction needs only the newest 50");
    let body = json!({ "player_id": "player_alice", "type": "move", "text": "Step." });
    let path = world.path("/actions");
    let all = (0..100).map(|_| crate::support::patiently(|| tenant.post(&path, body.clone())));
    let crossings: usize = join_all(all).await.into_iter().map(|answer| triggered(&answer.expect(202)).len()).sum();
    assert_eq!(crossings, 1);
    ended(&world, "done", 1).await;
    assert_eq!(reactions(&world, "").await[0]["actions"], 10_000);
    let told = asked(&server).pop().unwrap();
    assert!(told.contains("(9950 earlier actions are left out)"), "{told}");
}

/// Actions together, actions alone and prayers of a player, all at once: each counts, and none waits for another in a circle.
#[tokio::test(flavor = "multi_thread")]
async fn reports_of_a_player_do_not_get_in_each_others_way() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    settings(&world, json!({ "reaction_cooldown_seconds": 0 })).await;
    for n in 0..6 {
        let npc = json!({ "slug": format!("npc_{n}"), "name": format!("Npc {n}"), "location": format!("room {}", n % 2), "reaction_threshold": 7 });
        world.post("/npcs", npc).await.expect(201);
    }
    threshold(&world, "owners/town_council_owner", 1_000_000).await;
    server.model.set_script(Script::always(Reply::text("Hm.")));
    let at = |rooms: [u8; 4]| rooms.map(|room| json!({ "type": "say", "location": format!("room {room}") }));
    let body = |n: usize| match n % 4 {
        0 => ("/actions", json!({ "player_id": "player_alice", "actions": at([0, 1, 0, 1]) })),
        1 => ("/actions", json!({ "player_id": "player_alice", "actions": at([1, 0, 1, 0]) })),
        2 => ("/actions", json!({ "player_id": "player_alice", "type": "say", "location": "room 0" })),
        _ => ("/pray", json!({ "player_id": "player_alice", "message": "Hear me." })),
    };
    let all = (0..40).map(async |n| {
        let (path, body) = body(n);
        world.post(path, body).await
    });
    let answers = join_all(all).await;
    assert!(answers.into_iter().all(|answer| answer.status == 202), "none was refused");
    let counted: i64 = sqlx::query_scalar("SELECT count(*) FROM player_action WHERE type = 'say'")
        .fetch_one(&mut server.owner().await)
        .await
        .unwrap();
    assert_eq!(counted, 10 * 4 + 10 * 4 + 10);
}

/// What a campaign has stored instead of a number is no error of others.
#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_is_no_number_stops_no_queue() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 1).await;
    server.model.set_script(Script::always(Reply::text("Hm.")));
    for odd in ["[3]", "\"many\"", "{}", "0", "1e300"] {
        sqlx::query("UPDATE campaign SET settings = settings || jsonb_build_object('reactions_at_once_max', $1::jsonb, 'reaction_cooldown_seconds', 0)")
            .bind(odd)
            .execute(&mut server.owner().await)
            .await
            .unwrap();
        let before = reactions(&world, "&status=done").await.len();
        act(&world, "say", json!({})).await.expect(202);
        until("the reaction", async || reactions(&world, "&status=done").await.len() == before + 1).await;
    }
}

/// A server dies while an NPC reacts: another server does it once.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_loses_nothing() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options { record_requests_max: 100, ..Default::default() }).await.unwrap();
    let mut child = prepared.start_with(&model, &SWEEPS).await;
    let remember = Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "Once." }));
    model.set_script(Script::replies([remember.clone(), Reply::hang()]));
    for (path, body) in [
        ("/characters/player_alice", json!({ "location": "town_square" })),
        ("/npcs/innkeeper_bob", json!({ "location": "town_square", "reaction_threshold": 1 })),
        ("/owners/town_council_owner", json!({ "reaction_threshold": 1000 })),
    ] {
        let changed = child.request(reqwest::Method::PATCH, path).json(&body).send().await.unwrap();
        assert_eq!(changed.status(), 200, "{path}");
    }
    child.post("/actions", json!({ "player_id": "player_alice", "type": "talk" })).await.unwrap().expect(202);
    until("the second call", async || model.request_count() == 2).await;
    child.kill().await;
    model.set_script(Script::replies([remember, Reply::text("Where was I?")]));
    let child = prepared.start_with(&model, &SWEEPS).await;
    until("the reaction", async || {
        let all = child.get("/reactions").await.expect(200);
        assert_eq!(all.items().len(), 1);
        all.items()[0]["status"] == "done"
    })
    .await;
    assert_eq!(child.memories("innkeeper_bob").await[1..], ["Once."], "what the dead server did is taken back");
    let heard: Vec<Value> = child.get("/players/player_alice/replies").await.expect(200).items().clone();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0]["narrative"], "Where was I?");
}

/// From the crossing to the model when there is nothing else to do.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_server_reacts_at_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 1).await;
    settings(&world, json!({ "reaction_cooldown_seconds": 0 })).await;
    server.model.set_script(Script::always(Reply::text("Yes?")));
    // It is woken up: without news it looks every 15 seconds only, so the ten would take 150. A slow machine may be slow at some of
    // them.
    let all = async {
        for n in 1..=10 {
            act(&world, "say", json!({})).await.expect(202);
            ended(&world, "done", n).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(100), all).await.expect("it is not woken up");
}

/// A turn that another server takes over ends in a conflict. Each attempt was paid for, so there are not many.
#[tokio::test(flavor = "multi_thread")]
async fn a_reaction_that_loses_its_turn_each_time_is_dead() {
    let server = Server::start_with(&SWEEPS).await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 5).await;
    server.model.set_script(Script::always(Reply::text("Hm.").held()));
    act(&world, "talk", json!({})).await.expect(202);
    let mut db = server.owner().await;
    for attempt in 1..=3_u32 {
        until("an attempt", async || server.model.request_count() >= attempt as usize).await;
        let lost = "UPDATE turn SET instance = instance + 1000, lease_until = now() - interval '1 second' WHERE status = 'running'";
        sqlx::query(lost).execute(&mut db).await.unwrap();
        server.model.let_go(1);
        until("the end of the attempt", async || {
            sqlx::query("UPDATE reaction SET due_at = now() WHERE state = 'queued'").execute(&mut db).await.unwrap();
            let now = reactions(&world, "").await.remove(0);
            now["status"] == "dead" || server.model.request_count() > attempt as usize
        })
        .await;
    }
    let dead = reactions(&world, "").await.remove(0);
    // If the server notices the loss first, the last attempt counts as lost.
    assert!(["conflict", "lost"].contains(&dead["error"]["code"].as_str().unwrap()), "{dead}");
    assert_eq!(dead["status"], "dead", "{dead}");
    assert_eq!(server.model.request_count(), 3);
}
