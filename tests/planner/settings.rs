//! Switches and allowlists: who has a planner, and for which commands. All of it without a restart.

use ai::planner::request::SWITCH;
use edge::{caller::Scope, tenant_settings::service::switch};
use serde_json::{Value, json};

use super::{act, history, plans, rolls, tenant};
use crate::support::{Server, World, until};

fn roll() -> Value {
    json!({ "command": "roll", "args": { "expr": "1d20" } })
}

#[tokio::test(flavor = "multi_thread")]
async fn switches_act_at_once() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let other = tenant(&server, "other").await;
    let (world, theirs) = (acme.world().await, other.world().await);
    plans(&server, roll());
    for (feature, name) in [("planner", "planner"), ("llm", "llm")] {
        acme.patch("/v1/tenant", json!({ "features": { feature: false } })).await.expect(200);
        act(&world, name).await.problem(503, "feature_disabled");
        act(&theirs, name).await.expect(200);
        acme.patch("/v1/tenant", json!({ "features": { feature: true } })).await.expect(200);
        act(&world, name).await.expect(200);
    }
    // The switch is the first thing that is looked at.
    acme.patch("/v1/tenant", json!({ "features": { "planner": false } })).await.expect(200);
    act(&world, "").await.problem(503, "feature_disabled");
    acme.patch("/v1/tenant", json!({ "features": { "planner": true } })).await.expect(200);
    // Commands go on without a planner.
    let command = json!({ "player_id": "player_alice", "arguments": { "expr": "1d20" } });
    // The operator's is for everyone, and for every server.
    let second = Server::on(server.db.clone(), &[]).await;
    let elsewhere = second.anonymous().with_credential(&acme.credential);
    let text = json!({ "player_id": "player_alice", "message": "elsewhere" });
    second.model.set_script(rehearsal::Script::always(rehearsal::Reply::text(roll().to_string())));
    elsewhere.post(&world.path("/act"), text.clone()).await.expect(200);
    let mut db = server.owner().await;
    switch(&mut db, SWITCH, false).await.unwrap();
    for place in [&world, &World { client: &elsewhere, slug: world.slug.clone() }] {
        let sheet = json!({ "player_id": "player_alice", "message": "how many hit points have I?" });
        until("the switch", async || place.post("/act", sheet.clone()).await.status == 503).await;
    }
    act(&world, "off").await.problem(503, "feature_disabled");
    act(&theirs, "off").await.problem(503, "feature_disabled");
    elsewhere.post(&world.path("/act"), text.clone()).await.problem(503, "feature_disabled");
    world.post("/commands/roll", command).await.expect(200);
    switch(&mut db, SWITCH, true).await.unwrap();
    until("the switch", async || act(&world, "on").await.status == 200).await;
    until("the switch", async || elsewhere.post(&world.path("/act"), text.clone()).await.status == 200).await;
    assert!(!history(&world).await.contains(&"off".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_without_a_planner() {
    let server = Server::start_with(&[("FEATURE_PLANNER_ENABLED", "false")]).await;
    let acme = tenant(&server, "acme").await;
    let world = acme.world().await;
    switch(&mut server.owner().await, SWITCH, true).await.unwrap();
    act(&world, "anyone?").await.problem(503, "feature_disabled");
    assert_eq!(server.model.request_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_may_only_look() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = acme.world().await;
    acme.patch("/v1/tenant", json!({ "features": { "llm_visible": false } })).await.expect(200);
    plans(&server, roll());
    let shadow = act(&world, "luck").await.expect(200).body;
    assert_eq!(
        (&shadow["outcome"], &shadow["plan"]["command"], shadow.get("result")),
        (&json!("shadow"), &json!("roll"), None),
        "{shadow}"
    );
    assert_eq!((rolls(&world).await, history(&world).await), (0, vec!["luck".to_owned()]));
    let turn = world.get(&format!("/turns/{}", shadow["turn_id"].as_str().unwrap())).await.expect(200).body;
    assert_eq!(turn["planned"]["outcome"], "shadow");
    // A player does not see what would have been.
    let alice = json!({ "scopes": ["play"], "campaign": "port-town", "player_id": "player_alice" });
    let alice = acme.token(alice).await;
    let text = json!({ "player_id": "player_alice", "message": "luck" });
    let shadow = alice.post(&world.path("/act"), text).await.expect(200).body;
    assert_eq!((&shadow["outcome"], shadow.get("plan")), (&json!("shadow"), None));
    // A command that is given by itself is not the planner's; a deed is decided and not narrated.
    let deed = json!({ "player_id": "player_alice", "arguments": { "message": "I wave" } });
    server.model.set_script(rehearsal::Script::default());
    let done = world.post("/commands/do", deed).await.expect(200).body;
    assert_eq!(done["result"].get("narration"), None, "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_and_campaigns_narrow_what_may_be_planned() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let other = tenant(&server, "other").await;
    let (world, theirs) = (acme.world().await, other.world().await);
    let wrong = json!({ "features": { "planner_commands": ["roll", "bananas"] } });
    acme.patch("/v1/tenant", wrong).await.problem(422, "validation_failed");
    world.patch("", json!({ "settings": { "planner_commands": "roll" } })).await.problem(422, "validation_failed");
    world.patch("", json!({ "settings": { "planner_commands": ["bananas"] } })).await.problem(422, "validation_failed");
    for (settings, pointer) in [
        (json!({ "planner_comands": ["roll"] }), "/settings/planner_comands"),
        (json!({ "memories_about_others": "yes" }), "/settings/memories_about_others"),
        (json!({ "gm_encounters": 1 }), "/settings/gm_encounters"),
        (json!({ "prompt_budgets": { "memory": 900 } }), "/settings/prompt_budgets/memory"),
        (json!({ "prompt_budgets": { "memories": 200_001 } }), "/settings/prompt_budgets/memories"),
        (json!({ "prompt_budgets": { "memories": -1 } }), "/settings/prompt_budgets/memories"),
    ] {
        let changed = world.patch("", json!({ "settings": settings })).await.problem(422, "validation_failed");
        assert_eq!(changed.pointers(), [pointer]);
        let made = json!({ "name": "Elsewhere", "settings": settings });
        let made = acme.post("/v1/campaigns", made).await.problem(422, "validation_failed");
        assert_eq!(made.pointers(), [pointer]);
    }
    // What an earlier server took is in nobody's way, and goes when it is set to null.
    let old = "UPDATE campaign SET settings = '{\"theme\": \"dark\"}'";
    sqlx::Executor::execute(&mut server.owner().await, old).await.unwrap();
    world.patch("", json!({ "name": "Port Town" })).await.expect(200);
    let kept = world.get("").await.expect(200).body;
    assert_eq!(kept["settings"], json!({ "theme": "dark" }));
    let request = acme.request(reqwest::Method::PATCH, &world.path("")).json(&json!({ "settings": { "theme": null } }));
    let gone = acme.send_odd(request).await.expect(200).body;
    assert_eq!(gone["settings"], json!({}));
    acme.patch("/v1/tenant", json!({ "features": { "planner_commands": ["roll", "move"] } })).await.expect(200);
    let shown = acme.get("/v1/tenant").await.expect(200).body;
    assert_eq!(shown["settings"]["features"]["planner_commands"], json!(["roll", "move"]));
    let go = json!({ "command": "move", "args": { "location": "The Old Mill" } });
    plans(&server, go.clone());
    let moved = act(&world, "to the mill").await.expect(200).body;
    assert_eq!(
        (&moved["outcome"], &moved["result"]["location"]),
        (&json!("executed"), &json!("The Old Mill")),
        "{moved}"
    );
    assert_eq!(world.get("/characters/player_alice").await.expect(200).body["location"], "The Old Mill");
    assert_eq!(act(&theirs, "to the mill").await.expect(200).body["reason"], "allowlist");
    let seen = |at: usize| server.model.requests()[at]["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(seen(0).contains("- move:") && !seen(0).contains("- ooc:"));
    assert!(!seen(1).contains("- move:") && seen(1).contains("- ooc:"));
    // A campaign takes away and adds nothing.
    world.patch("", json!({ "settings": { "planner_commands": ["roll", "ooc"] } })).await.expect(200);
    assert_eq!(act(&world, "on to the mill").await.expect(200).body["reason"], "allowlist");
    plans(&server, roll());
    assert_eq!(act(&world, "luck").await.expect(200).body["outcome"], "executed");
    // With nothing left nobody is asked.
    world.patch("", json!({ "settings": { "planner_commands": [] } })).await.expect(200);
    let asked = server.model.request_count();
    assert_eq!(act(&world, "anything").await.expect(200).body["reason"], "allowlist");
    assert_eq!(server.model.request_count(), asked);
    // Nor is what nobody can read taken for permission.
    let broken = "UPDATE campaign SET settings = '{\"planner_commands\": {\"roll\": true}}'";
    sqlx::query(broken).execute(&mut server.owner().await).await.unwrap();
    assert_eq!(act(&world, "everything").await.expect(200).body["reason"], "allowlist");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_plan_for_whom() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let other = tenant(&server, "other").await;
    let world = acme.world().await;
    plans(&server, roll());
    let path = world.path("/act");
    let said = |player: &str, text: &str| json!({ "player_id": player, "message": text });
    acme.with_scopes(&[Scope::Read, Scope::Write, Scope::Gm])
        .await
        .post(&path, said("player_alice", "x"))
        .await
        .problem(403, "forbidden");
    let alice =
        acme.token(json!({ "scopes": ["read", "play"], "campaign": "port-town", "player_id": "player_alice" })).await;
    let mine = alice.post(&path, said("player_alice", "mine")).await.expect(200).body;
    assert_eq!(mine["outcome"], "executed");
    alice.post(&path, said("player_mallory", "hers")).await.problem(403, "forbidden");
    alice.post(&path, said("nobody", "his")).await.problem(422, "validation_failed");
    acme.post("/v1/campaigns/nowhere/act", said("player_alice", "x")).await.problem(404, "not_found");
    other.post(&path, said("player_alice", "x")).await.problem(404, "not_found");
    for body in [
        json!({ "player_id": "player_alice" }),
        said("player_alice", ""),
        said("player_alice", " \n "),
        said("player_alice", &"é".repeat(2001)),
        json!({ "player_id": "player_alice", "message": "x", "plan": {} }),
        json!({ "player_id": "player_alice", "message": "x", "scene_id": "nowhere" }),
        json!({ "player_id": "player_alice", "message": "a\u{0}b" }),
    ] {
        acme.post(&path, body).await.problem(422, "validation_failed");
    }
    acme.post(&path, said("player_alice", &"é".repeat(2000))).await.expect(200);
    assert_eq!(history(&world).await.len(), 4, "what was refused before it was planned is not in the history");
}
