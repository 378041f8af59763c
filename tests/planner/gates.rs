//! What a plan has to pass; what does not pass changes nothing and is told in words of ours.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{act, always, history, plans, rolls, tenant};
use crate::support::{Server, until};

/// Refused for this reason, quietly, with nothing of the model's.
#[track_caller]
fn refused(answer: &Value, reason: &str, secret: &str) {
    assert_eq!((&answer["outcome"], &answer["reason"]), (&json!("rejected"), &json!(reason)), "{answer}");
    assert_eq!((&answer["visibility"], answer.get("plan")), (&json!("ephemeral"), None), "{answer}");
    assert!(answer["result"].is_null() && !answer.to_string().contains(secret), "{answer}");
    assert!(!answer["message"].as_str().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gate_refuses_what_it_should() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let other = tenant(&server, "other").await;
    let world = acme.world().await;
    other
        .world()
        .await
        .post("/characters", json!({ "slug": "foreign_hero", "name": "Foreign Hero" }))
        .await
        .expect(201);
    let long = "x".repeat(17 * 1024);
    for (n, (plan, reason, codes)) in [
        (json!({ "command": "bananas", "rationale": "SECRET" }), "allowlist", vec![]),
        (json!({ "command": "ROLL", "args": { "expr": "1d20" }, "rationale": "SECRET" }), "allowlist", vec![]),
        (json!({ "command": "roll_dice", "args": { "rolls": [] } }), "allowlist", vec![]),
        (
            json!({ "command": "NPC_memorize", "args": { "player_id": "player_alice", "memory_string": "SECRET" } }),
            "allowlist",
            vec![],
        ),
        (json!({ "command": "move", "args": { "location": "SECRET" } }), "allowlist", vec![]),
        (json!({ "command": "sheet.show", "subcommand": "show" }), "allowlist", vec![]),
        (json!({ "command": "check", "args": { "ability": "SECRET", "dc": 10 } }), "predicate", vec!["known_ability"]),
        (
            json!({ "command": "check", "args": { "ability": "luck", "dc": 41 } }),
            "predicate",
            vec!["known_ability", "dc_in_bounds"],
        ),
        (json!({ "command": "check", "args": { "ability": "str", "dc": "0" } }), "predicate", vec!["dc_in_bounds"]),
        (json!({ "command": "check", "args": { "ability": "str", "dc": -3 } }), "predicate", vec!["dc_in_bounds"]),
        (
            json!({ "command": "check", "args": { "ability": "str", "dc": 9, "actor": "player_mallory" } }),
            "predicate",
            vec!["actor_exists"],
        ),
        (
            json!({ "command": "check", "args": { "ability": "str", "dc": 9, "actor": "SECRET" } }),
            "predicate",
            vec!["actor_exists"],
        ),
        (
            json!({ "command": "roll", "args": { "expr": "1d20", "target": "foreign_hero" } }),
            "predicate",
            vec!["target_exists"],
        ),
        (json!({ "command": "sheet.show", "args": { "name": "foreign_hero" } }), "predicate", vec!["target_exists"]),
        (json!({ "command": "sheet.show", "args": { "name": "innkeeper_bob" } }), "predicate", vec!["target_exists"]),
        (json!({ "command": "roll", "args": { "expr": "SECRET" } }), "arg_validation", vec![]),
        (json!({ "command": "roll", "args": { "expr": "1d20+@secret.value" } }), "arg_validation", vec![]),
        (json!({ "command": "roll", "args": { "expr": 20 } }), "arg_validation", vec![]),
        (json!({ "command": "roll", "args": { "expr": "1d20", "seed": 7 } }), "arg_validation", vec![]),
        (json!({ "command": "roll" }), "arg_validation", vec![]),
        (json!({ "command": "check", "args": { "dc": 10 } }), "arg_validation", vec![]),
        (json!({ "command": "check", "args": { "skill": "luck", "dc": 10 } }), "arg_validation", vec![]),
        (json!({ "command": "check", "args": { "skill": "stealth", "dc": [10] } }), "arg_validation", vec![]),
        (json!({ "command": "ooc", "args": { "message": "\u{0}" } }), "arg_validation", vec![]),
        (json!({ "command": "sheet.create", "args": { "name": "Aria", "level": 99 } }), "arg_validation", vec![]),
        (
            json!({ "command": "sheet.create", "args": { "name": "Aria", "hp": 999 , "max_hp": 1 } }),
            "arg_validation",
            vec![],
        ),
        (
            json!({ "command": "sheet.create", "args": { "name": "Aria", "inventory": [long] } }),
            "arg_validation",
            vec![],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        plans(&server, plan.clone());
        let answer = act(&world, &format!("words {n}")).await.expect(200).body;
        refused(&answer, reason, "SECRET");
        let failed: Vec<&str> =
            answer["failed_predicates"].as_array().into_iter().flatten().map(|f| f["code"].as_str().unwrap()).collect();
        assert_eq!(failed, codes, "{plan}");
    }
    assert_eq!(rolls(&world).await, 0);
    assert_eq!(world.get("/characters").await.expect(200).items().len(), 2);
    // Every text is in the history, and nothing but the texts.
    assert!(history(&world).await.iter().all(|said| said.starts_with("words ")));
    // An actor that is the player is what a model may say.
    plans(&server, json!({ "command": "check", "args": { "ability": "str", "dc": "9", "actor": "Alice" } }));
    assert_eq!(act(&world, "as myself").await.expect(200).body["outcome"], "executed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_may_say_that_nothing_fits() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = acme.world().await;
    for (n, (command, message, told)) in [
        ("error", json!("Hit points\u{202e} change\n\n in the <b>game</b>."), "Hit points change in the <b>game</b>."),
        ("none", Value::Null, "There is no command for that."),
        ("error", json!(["x"]), "There is no command for that."),
    ]
    .into_iter()
    .enumerate()
    {
        plans(&server, json!({ "command": command, "args": { "message": message } }));
        let answer = act(&world, &format!("set hp {n}")).await.expect(200).body;
        assert_eq!((&answer["reason"], &answer["message"]), (&json!("unsupported"), &json!(told)), "{answer}");
    }
    plans(&server, json!({ "command": "error", "args": { "message": "é".repeat(5000) } }));
    let answer = act(&world, "long").await.expect(200).body;
    assert_eq!(answer["message"].as_str().unwrap().chars().count(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsure_plan_asks() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = acme.world().await;
    plans(&server, json!({ "command": "check", "args": { "skill": "stealth", "dc": "15" }, "confidence": 0.49 }));
    let answer = act(&world, "quiet now").await.expect(200).body;
    assert_eq!(
        (&answer["outcome"], &answer["visibility"]),
        (&json!("needs_clarification"), &json!("ephemeral")),
        "{answer}"
    );
    let options = answer["options"].as_array().unwrap();
    assert_eq!(options.len(), 3, "{answer}");
    assert_eq!(
        options[0],
        json!({ "command": "check", "args": { "skill": "stealth", "dc": 15 }, "label": "Check stealth, DC 15" })
    );
    assert_eq!(options[1]["args"], json!({ "message": "quiet now" }));
    assert_eq!((rolls(&world).await, history(&world).await), (0, vec!["quiet now".to_owned()]));
    // Each can be given as it is.
    for option in options.iter().filter(|o| o["command"] != "do") {
        let body = json!({ "player_id": "player_alice", "arguments": option["args"] });
        world.post(&format!("/commands/{}", option["command"].as_str().unwrap()), body).await.expect(200);
    }
    // Half sure is sure enough, and an unsure plan that does not fit is refused like any other.
    plans(&server, json!({ "command": "ooc", "args": { "message": "x" }, "confidence": 0.5 }));
    assert_eq!(act(&world, "half").await.expect(200).body["outcome"], "executed");
    plans(&server, json!({ "command": "delete", "confidence": 0.1 }));
    assert_eq!(act(&world, "delete").await.expect(200).body["reason"], "allowlist");
}

/// Whoever is deleted while a text is planned is not there to act.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_gone_by_then_does_nothing() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = acme.world().await;
    for (n, plan) in [
        json!({ "command": "roll", "args": { "expr": "1d20" } }),
        json!({ "command": "check", "args": { "skill": "stealth", "dc": 10 } }),
        json!({ "command": "sheet.show", "args": {} }),
        json!({ "command": "ooc", "args": { "message": "Other words." } }),
        json!({ "command": "do", "args": { "message": "I wave." } }),
    ]
    .into_iter()
    .enumerate()
    {
        let slug = format!("guest_{n}");
        world.post("/characters", json!({ "slug": slug, "name": "Guest" })).await.expect(201);
        let asked = server.model.request_count();
        server.model.set_script(Script::always(Reply::text(plan.to_string()).held()));
        let leave = async {
            until("the question", async || server.model.request_count() > asked).await;
            world.delete(&format!("/characters/{slug}")).await.expect(204);
            server.model.let_go(1);
        };
        let text = json!({ "player_id": slug, "message": "Something." });
        let (answer, ()) = tokio::join!(world.post("/act", text), leave);
        let answer = answer.expect(200).body;
        refused(&answer, "predicate", "Say which");
        assert_eq!(answer["failed_predicates"][0]["code"], "actor_exists", "{plan}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_leaves_nothing_but_its_turn() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = acme.world().await;
    plans(&server, json!({ "command": "roll", "args": { "expr": "1d20" }, "confidence": 0.2 }));
    let body = json!({ "player_id": "player_alice", "message": "roll", "dry_run": true });
    let answer = world.post("/act", body.clone()).await.expect(200).body;
    assert_eq!((&answer["outcome"], &answer["plan"]["confidence"]), (&json!("planned"), &json!(0.2)), "{answer}");
    assert_eq!((rolls(&world).await, history(&world).await.len()), (0, 0));
    assert!(answer["turn_id"].is_string());
    // A channel that is not known gets no scene by a trial.
    let before = world.get("/changes?after=0&limit=200").await.expect(200).items().len();
    let elsewhere = json!({ "player_id": "player_alice", "message": "roll", "dry_run": true, "channel": "new-room" });
    assert_eq!(world.post("/act", elsewhere).await.expect(200).body["outcome"], "planned");
    assert_eq!(world.get("/scenes").await.expect(200).items().len(), 0);
    assert_eq!(world.get("/changes?after=0&limit=200").await.expect(200).items().len(), before);
    always(&server, "I would rather not.");
    server.app.planner.forget(world.client.tenant);
    assert_eq!(world.post("/act", body).await.expect(200).body["reason"], "parse");
}
