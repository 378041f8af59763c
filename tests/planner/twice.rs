//! The same words again: the same plan within 30 seconds, the same result under the same key; and no more than a player may.

use std::time::Duration;

use edge::{tenant_settings::service::set_limits, tenants::TenantLimits};
use futures_util::future::join_all;
use rehearsal::{Reply, Script};
use serde_json::json;
use tavernkeep::config::Config;

use super::{act, history, plans, rolls, tenant};
use crate::support::{Server, until};

#[tokio::test(flavor = "multi_thread")]
async fn the_same_words_ask_once() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let other = tenant(&server, "other").await;
    let world = acme.world().await;
    let theirs = other.world().await;
    plans(&server, json!({ "command": "roll", "args": { "expr": "1d20" } }));
    assert_eq!(act(&world, "luck").await.expect(200).body["cached"], false);
    let again = act(&world, " luck ").await.expect(200).body;
    assert_eq!((&again["cached"], &again["outcome"]), (&json!(true), &json!("executed")), "{again}");
    assert_eq!((server.model.request_count(), rolls(&world).await, history(&world).await.len()), (1, 2, 4));
    let turn = world.get(&format!("/turns/{}", again["turn_id"].as_str().unwrap())).await.expect(200).body;
    assert_eq!((&turn["usage"]["llm_calls"], &turn["planned"]["cached"]), (&json!(0), &json!(true)));
    // Other words, another player, another scene, another tenant: another plan.
    let scene =
        world.post("/scenes", json!({ "slug": "cellar", "name": "Cellar", "channel": "c-1" })).await.expect(201).id();
    for (n, (world, player, text, scene)) in [
        (&world, "player_alice", "Luck", None),
        (&world, "player_mallory", "luck", None),
        (&world, "player_alice", "luck", Some("cellar")),
        (&theirs, "player_alice", "luck", None),
    ]
    .into_iter()
    .enumerate()
    {
        let body = json!({ "player_id": player, "message": text, "scene_id": scene });
        let answer = world.post("/act", body).await.expect(200).body;
        assert_eq!((&answer["cached"], server.model.request_count()), (&json!(false), n + 2), "{answer}");
    }
    // A channel is its scene, by whichever name; a new one gets a scene.
    let by_channel = json!({ "player_id": "player_alice", "message": "luck", "channel": "c-1" });
    assert_eq!(world.post("/act", by_channel).await.expect(200).body["cached"], true);
    let new = json!({ "player_id": "player_alice", "message": "luck", "channel": "c-2" });
    assert_eq!(world.post("/act", new).await.expect(200).body["cached"], false);
    assert_eq!(world.get("/scenes?q=c-2").await.expect(200).items().len(), 1);
    let said = world.get(&format!("/messages?scene_id={scene}")).await.expect(200);
    assert_eq!(said.items().len(), 4, "words and rolls of two plans");
    let wrong = json!({ "player_id": "player_alice", "message": "luck", "scene_id": "cellar", "channel": "c-2" });
    world.post("/act", wrong).await.problem(422, "validation_failed");
    // A cached plan passes the gates again: the campaign allows less now.
    world.patch("", json!({ "settings": { "planner_commands": ["ooc"] } })).await.expect(200);
    let refused = act(&world, "luck").await.expect(200).body;
    assert_eq!((&refused["reason"], &refused["cached"]), (&json!("allowlist"), &json!(true)), "{refused}");
}

/// The server remembers what the names of a request stand for. It notices when they no longer do.
#[tokio::test(flavor = "multi_thread")]
async fn names_that_stand_for_something_else_are_looked_up_again() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = acme.world().await;
    plans(&server, json!({ "command": "roll", "args": { "expr": "1d20" } }));
    let body = json!({ "player_id": "player_alice", "message": "luck", "channel": "c-1" });
    let scene = async |slug: &str, channel: Option<&str>| {
        let body = json!({ "slug": slug, "name": slug, "channel": channel });
        world.post("/scenes", body).await.expect(201).id()
    };
    let said_in = async |scene: &str| world.get(&format!("/messages?scene_id={scene}")).await.expect(200).items().len();
    let cellar = scene("cellar", Some("c-1")).await;
    for _ in 0..2 {
        world.post("/act", body.clone()).await.expect(200);
    }
    assert_eq!(said_in(&cellar).await, 4);
    // The channel moves to another scene, which is deleted later. Then the channel gets a new one.
    world.patch("/scenes/cellar", json!({ "channel": null })).await.expect(200);
    let attic = scene("attic", Some("c-1")).await;
    world.post("/act", body.clone()).await.expect(200);
    assert_eq!((said_in(&cellar).await, said_in(&attic).await), (4, 2));
    world.delete("/scenes/attic").await.expect(204);
    world.post("/act", body.clone()).await.expect(200);
    let new = world.get("/scenes?q=c-1").await.expect(200).items()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!((said_in(&new).await, new == attic), (2, false));
    // A scene by its name: it is renamed, and another one gets the name.
    let named = json!({ "player_id": "player_alice", "message": "luck", "scene_id": "cellar" });
    world.post("/act", named.clone()).await.expect(200);
    world.patch("/scenes/cellar", json!({ "slug": "vault" })).await.expect(200);
    world.post("/act", named.clone()).await.problem(422, "validation_failed");
    let second = scene("cellar", None).await;
    world.post("/act", named).await.expect(200);
    assert_eq!((said_in(&cellar).await, said_in(&second).await), (6, 2));
    // What one token may use, another may not.
    let mallory = json!({ "scopes": ["play"], "campaign": "port-town", "player_id": "player_mallory" });
    acme.token(mallory).await.post(&world.path("/act"), body.clone()).await.problem(403, "forbidden");
    let elsewhere = acme.post("/v1/campaigns", json!({ "name": "Elsewhere" })).await.expect(201).id();
    let stranger = acme.token(json!({ "scopes": ["play"], "campaign": elsewhere })).await;
    for (player, scene) in [("player_alice", "cellar"), ("player_alice", "nowhere"), ("nobody", "cellar")] {
        let body = json!({ "player_id": player, "message": "luck", "scene_id": scene });
        stranger.post(&world.path("/act"), body).await.problem(404, "not_found");
    }
    // A character gets another name, a campaign another slug.
    world.patch("/characters/player_alice", json!({ "slug": "alice", "name": "Alicia" })).await.expect(200);
    world.post("/act", body.clone()).await.problem(422, "validation_failed");
    let alice = json!({ "player_id": "alice", "message": "luck", "channel": "c-1" });
    world.post("/act", alice.clone()).await.expect(200);
    let words = world.get(&format!("/messages?scene_id={new}&type=chat")).await.expect(200);
    assert_eq!(words.items().last().unwrap()["speaker"]["name"], "Alicia");
    // Another character gets the name that is remembered for the first, and with it the first's token's place.
    world.patch("/characters/player_mallory", json!({ "slug": "player_alice" })).await.expect(200);
    let first = json!({ "scopes": ["play"], "campaign": "port-town", "player_id": "player_alice" });
    let first = acme.token(first).await;
    let named = json!({ "player_id": "alice", "message": "luck", "channel": "c-1" });
    first.post(&world.path("/act"), named).await.problem(403, "forbidden");
    first.post(&world.path("/act"), body.clone()).await.expect(200);
    acme.patch(&world.path(""), json!({ "slug": "old-port" })).await.expect(200);
    acme.post(&world.path("/act"), alice.clone()).await.problem(404, "not_found");
    acme.post("/v1/campaigns/old-port/act", alice).await.expect(200);
}

/// After its time a plan is asked for again: 30 seconds, here a long time first and a short one then.
#[tokio::test(flavor = "multi_thread")]
async fn after_its_time_the_model_is_asked_again() {
    assert_eq!(Config::read(&|_| None).unwrap().ai.planner.plan_kept, Duration::from_secs(30));
    for (seconds, calls) in [("3600", 1), ("1", 2)] {
        let server = Server::start_with(&[("PLANNER_CACHE_SECONDS", seconds)]).await;
        let acme = tenant(&server, "acme").await;
        let world = acme.world().await;
        plans(&server, json!({ "command": "roll", "args": { "expr": "1d20" } }));
        act(&world, "luck").await.expect(200);
        if calls == 2 {
            until("another question", async || act(&world, "luck").await.expect(200).body["cached"] == false).await;
        } else {
            // Longer than the short time.
            tokio::time::sleep(Duration::from_millis(1200)).await;
            assert_eq!(act(&world, "luck").await.expect(200).body["cached"], true);
        }
        assert_eq!(server.model.request_count(), calls);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_one_asks() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = acme.world().await;
    let plan = json!({ "command": "roll", "args": { "expr": "1d20" } }).to_string();
    server.model.set_script(Script::always(Reply::text(plan).held()));
    let all = join_all((0..6).map(|_| act(&world, "luck")));
    // All of them are turns before the model has answered the first.
    let answers = async {
        until("six turns", async || world.get("/turns").await.expect(200).items().len() == 6).await;
        server.model.let_go(1);
    };
    let (answers, ()) = futures_util::future::join(all, answers).await;
    let cached = answers.into_iter().filter(|a| a.body["outcome"] == "executed" && a.body["cached"] == true).count();
    assert_eq!((cached, server.model.request_count(), rolls(&world).await), (5, 1, 6));
    // If the one who asked leaves, another asks.
    let body = json!({ "player_id": "player_alice", "message": "more luck" });
    let leaving = acme.request(reqwest::Method::POST, &world.path("/act")).json(&body);
    let leaving = tokio::spawn(leaving.send());
    until("the first question", async || server.model.request_count() == 2).await;
    let leaves = async {
        until("who stays", async || world.get("/turns").await.expect(200).items().len() == 8).await;
        leaving.abort();
        until("the second question", async || server.model.request_count() == 3).await;
        server.model.let_go(9);
    };
    let (stayed, ()) = futures_util::future::join(act(&world, "more luck"), leaves).await;
    assert_eq!(stayed.expect(200).body["outcome"], "executed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_rolls_once() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = acme.world().await;
    plans(&server, json!({ "command": "roll", "args": { "expr": "1d20" } }));
    let (path, body) = (world.path("/act"), json!({ "player_id": "player_alice", "message": "luck" }));
    let first = acme.post_with_key(&path, "k", body.clone()).await.expect(200);
    let again = acme.post_with_key(&path, "k", body.clone()).await.expect(200);
    assert_eq!((again.header("idempotency-replayed"), &again.text), ("true", &first.text));
    assert_eq!((rolls(&world).await, history(&world).await.len()), (1, 2));
    let other = json!({ "player_id": "player_alice", "message": "more luck" });
    acme.post_with_key(&path, "k", other).await.problem(422, "idempotency_key_reused");
    // What was refused is refused again without a question.
    plans(&server, json!({ "command": "bananas" }));
    let odd = json!({ "player_id": "player_alice", "message": "bananas" });
    let first = acme.post_with_key(&path, "k2", odd.clone()).await.expect(200);
    let asked = server.model.request_count();
    assert_eq!(acme.post_with_key(&path, "k2", odd).await.expect(200).text, first.text);
    assert_eq!(server.model.request_count(), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_plans_five_times_a_minute() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    plans(&server, json!({ "command": "ooc", "args": { "message": "x" } }));
    let path = world.path("/act");
    let said = |text: &str| json!({ "player_id": "player_alice", "message": text });
    for n in 0..4 {
        let first = acme.post_with_key(&path, &format!("{n}"), said(&format!("text {n}"))).await.expect(200);
        // What was answered before, or cannot be planned, takes nothing of the limit.
        let again = acme.post_with_key(&path, &format!("{n}"), said(&format!("text {n}"))).await.expect(200);
        assert_eq!((again.header("idempotency-replayed"), &again.text), ("true", &first.text));
        let body = json!({ "player_id": "player_alice", "message": "x", "scene_id": "nowhere" });
        world.post("/act", body).await.problem(422, "validation_failed");
    }
    let kept = acme.post_with_key(&path, "k", said("the fifth")).await.expect(200);
    let sixth = act(&world, "the sixth").await.problem(429, "rate_limited");
    assert!((1..=60).contains(&sixth.header("retry-after").parse::<u64>().unwrap()));
    assert!(sixth.header("ratelimit-policy").ends_with(", \"planner\";q=5;w=60"));
    assert!(sixth.header("ratelimit").contains(", \"planner\";r=0;t="));
    assert_eq!(server.model.request_count(), 5);
    assert!(!history(&world).await.contains(&"the sixth".to_owned()));
    // By id it is the same player. Another has texts of its own, and a lost answer may be asked for again.
    let alice = world.get("/characters/player_alice").await.expect(200).id();
    world.post("/act", json!({ "player_id": alice, "message": "seventh" })).await.problem(429, "rate_limited");
    world.post("/act", json!({ "player_id": "player_mallory", "message": "mine" })).await.expect(200);
    assert_eq!(acme.post_with_key(&path, "k", said("the fifth")).await.expect(200).text, kept.text);
    // The operator may set another limit.
    let many = TenantLimits { planner_per_player_per_minute: 100, ..TenantLimits::unlimited() };
    set_limits(&mut server.owner().await, acme.tenant, &many).await.unwrap();
    until("the new limit", async || act(&world, "now").await.status == 200).await;
}
