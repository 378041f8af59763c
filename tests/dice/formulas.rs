//! What a formula comes to, and what is said of one that comes to nothing.

use serde_json::{Value, json};

use super::{one, roll, values};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn every_die_is_reported() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let body =
        json!({ "rolls": [{ "formula": "4d6kh3 + 2 # vigour", "flavor": "Strength" }, { "formula": "2d8[fire]" }] });
    let answer = tenant.post("/v1/dice/roll", body).await.expect(200);
    assert_eq!((&answer.body["count"], &answer.body["source"]), (&json!(2), &json!("server")));
    assert_eq!(answer.body.get("dice_unused"), None);
    let [first, second] = &answer.body["results"].as_array().unwrap()[..] else { panic!("{}", answer.text) };
    assert_eq!((&first["formula"], &first["flavor"]), (&json!("4d6kh3 + 2 # vigour"), &json!("Strength")));
    assert_eq!((&first["success"], &second["success"]), (&json!(true), &json!(true)));
    let dice = first["dice"].as_array().unwrap();
    assert_eq!(dice.len(), 4);
    assert!(dice.iter().all(|d| d["faces"] == 6 && (1..=6).contains(&d["value"].as_i64().unwrap())));
    let kept: i64 = dice.iter().filter(|d| d["kept"] == true).map(|d| d["value"].as_i64().unwrap()).sum();
    assert_eq!(dice.iter().filter(|d| d["kept"] == true).count(), 3);
    assert_eq!(first["total"], kept + 2);
    assert_eq!((&second["flavor"], &second["flavors"][0]["text"]), (&Value::Null, &json!("fire")));
    assert_eq!(second["flavors"][0]["total"], second["total"]);
    let time = first["timestamp"].as_str().unwrap();
    base::clock::parse(time).unwrap();
    assert!(time.ends_with('Z'));
}

#[tokio::test(flavor = "multi_thread")]
async fn totals_are_what_the_dice_say() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    for (formula, dice, total) in [
        ("1d20 + 5", json!([15]), json!(20)),
        ("2d20kh", json!([3, 17]), json!(17)),
        ("2d20kl", json!([3, 17]), json!(3)),
        ("1d6 / 4", json!([3]), json!(0.75)),
        ("-3d6", json!([1, 2, 3]), json!(-6)),
        ("1d6x", json!([6, 6, 2]), json!(14)),
        ("1d6r<3", json!([2, 5]), json!(5)),
        ("3d10cs>=7", json!([7, 1, 10]), json!(2)),
        ("4dF", json!([1, 2, 3, 3]), json!(1)),
        ("(1d4)d6", json!([2, 3, 4]), json!(7)),
        ("{1d20, 2d6}kh", json!([9, 6, 6]), json!(12)),
        ("\u{3000}1d20\u{2003}+ 1", json!([4]), json!(5)),
        ("floor(7 / 2)", json!([]), json!(3)),
    ] {
        let result = one(&tenant, formula, json!({ "dice": dice })).await;
        assert_eq!((&result["success"], &result["total"]), (&json!(true), &total), "{formula}: {result}");
    }
    let exploded = one(&tenant, "1d6x", json!({ "dice": [6, 2] })).await;
    assert_eq!((&exploded["dice"][0]["exploded"], values(&exploded)), (&json!(true), vec![6, 2]));
    let again = one(&tenant, "1d6r<3", json!({ "dice": [1, 2] })).await;
    let expected =
        json!([{ "faces": 6, "value": 1, "kept": false, "rerolled": true }, { "faces": 6, "value": 2, "kept": true }]);
    assert_eq!(again["dice"], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_formula_is_a_result_without_success() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let long = format!("1d20{}", " + 1".repeat(2500));
    let deep = format!("{}1{}", "(".repeat(200), ")".repeat(200));
    let bad = [
        "",
        "   ",
        "# only a comment",
        "200000d6",
        "1d0",
        "0d6",
        "d",
        "(1d6",
        "{1d6, 2",
        "1d6)",
        "max(1d6",
        "luck(1d6)",
        "MAX(1, 2)",
        "1 / 0",
        "1d6 / (1 - 1)",
        "1d6x>0",
        "1d6rr>0",
        "würfel",
        "🎲",
        "1d20 + 🍺",
        "１d６",
        "/r 1d20",
        "/roll 1d20",
        "\u{feff}1d20",
        "1d20adv",
        "4d6!",
        "2 d 10",
        ".5",
        "1d20 +",
        "1d6[a][b]",
        "1d6[fire",
        "@nobody",
        "1d20 + @",
        "$1",
        "1d1000000001",
        "(0 - 1)d6",
        "1.5d6",
        "1d6 1d6",
        "sqrt(0 - 1)",
        "1; DROP TABLE dice_seed",
        "__proto__",
        "eval(1)",
        &long,
        &deep,
    ];
    for formulas in bad.chunks(20) {
        let answer = roll(&tenant, formulas).await.expect(200);
        assert_eq!(answer.body["count"], formulas.len());
        for (formula, result) in formulas.iter().zip(answer.body["results"].as_array().unwrap()) {
            assert_eq!(
                (result["success"].as_bool(), &result["total"], &result["dice"]),
                (Some(false), &Value::Null, &json!([])),
                "{result}"
            );
            assert_eq!(result["formula"], *formula);
            assert_eq!(result["error"]["code"], "invalid_formula", "{result}");
            assert!(result["error"]["message"].as_str().unwrap().len() > 5, "{result}");
            assert!(result["error"]["position"].as_u64().unwrap() <= formula.chars().count() as u64, "{result}");
            assert!(result["timestamp"].is_string());
        }
    }
    // One bad formula does not spoil the others.
    let mixed = roll(&tenant, &["1d6", "1d6 +", "1d6"]).await.expect(200);
    let successes: Vec<_> = mixed.body["results"].as_array().unwrap().iter().map(|r| r["success"] == true).collect();
    assert_eq!(successes, [true, false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_says_where_and_what_instead() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let error = one(&tenant, "ä4d6!", json!({})).await["error"].clone();
    assert_eq!(error["position"], 0, "{error}");
    let error = one(&tenant, "4d6!", json!({})).await["error"].clone();
    assert_eq!(error["position"], 3, "{error}");
    assert!(error["hint"].as_str().unwrap().contains('x'), "{error}");
    let error = one(&tenant, "1d20 +", json!({})).await["error"].clone();
    assert!(error["expected"].is_string(), "{error}");
    let error = one(&tenant, "/r 1d20", json!({})).await["error"].clone();
    assert!(error["hint"].as_str().unwrap().contains("Leave the command out"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_no_rolls_are_refused() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let roll = json!({ "formula": "1d6" });
    for (body, pointer) in [
        (json!({}), "/rolls"),
        (json!({ "rolls": [] }), "/rolls"),
        (json!({ "rolls": vec![&roll; 21] }), "/rolls"),
        (json!({ "rolls": "1d6" }), "/rolls"),
        (json!({ "rolls": [{}] }), "/rolls/0/formula"),
        (json!({ "rolls": [roll, { "formula": 6 }] }), "/rolls/1/formula"),
        (json!({ "rolls": [{ "formula": "1d6", "times": 2 }] }), "/rolls/0/times"),
        (json!({ "rolls": [{ "formula": "1d6", "flavor": "x".repeat(201) }] }), "/rolls/0/flavor"),
        (json!({ "rolls": [roll], "dice": [-1] }), "/dice/0"),
        (json!({ "rolls": [roll], "seed": "x" }), "/seed"),
        (json!({ "rolls": [roll], "seed": 1, "dice": [1] }), "/seed"),
        (json!({ "rolls": [roll], "variables": [1] }), "/variables"),
        (json!({ "rolls": [{ "formula": "1d6", "flavor": "a\u{0}" }] }), "/rolls/0/flavor"),
        (json!({ "rolls": [roll], "times": 2 }), "/times"),
    ] {
        let answer = tenant.post("/v1/dice/roll", body).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{}", answer.text);
    }
    let most = tenant.post("/v1/dice/roll", json!({ "rolls": vec![&roll; 20] })).await.expect(200);
    assert_eq!(most.body["count"], 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_are_nested_or_dotted() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    for variables in [
        json!({ "abilities": { "dex": { "mod": 3 } } }),
        json!({ "abilities.dex.mod": 3 }),
        json!({ "abilities": { "dex.mod": 3.0 } }),
    ] {
        let result = one(&tenant, "1d1 + @abilities.dex.mod", json!({ "variables": variables })).await;
        assert_eq!(result["total"], 4, "{result}");
    }
    let unknown = one(&tenant, "1d1 + @abilities.str.mod", json!({ "variables": { "abilities": { "dex": 1 } } })).await;
    assert_eq!((&unknown["success"], &unknown["error"]["position"]), (&json!(false), &json!(6)), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_are_exact_or_say_that_they_are_not() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let analyze = async |body: Value| tenant.post("/v1/dice/analyze", body).await;
    let two = analyze(json!({ "formula": "2d6" })).await.expect(200).body;
    assert_eq!((&two["min"], &two["max"], &two["method"]), (&json!(2), &json!(12), &json!("exact")));
    assert!((two["mean"].as_f64().unwrap() - 7.0).abs() < 1e-9, "{two}");
    let distribution = two["distribution"].as_array().unwrap();
    assert_eq!((distribution.len(), &distribution[5][0]), (11, &json!(7)));
    assert!((distribution[5][1].as_f64().unwrap() - 1.0 / 6.0).abs() < 1e-12);
    assert!((two["standard_deviation"].as_f64().unwrap() - (35.0_f64 / 6.0).sqrt()).abs() < 1e-9);
    let endless = analyze(json!({ "formula": "1d6x" })).await.expect(200).body;
    assert_eq!((&endless["min"], &endless["max"]), (&json!(1), &Value::Null));
    let own = json!({ "formula": "1d20 + @prof", "variables": { "prof": 2 } });
    assert_eq!(analyze(own).await.expect(200).body["max"], 22);
    // A simulation gives the same answer twice.
    let hard = json!({ "formula": "40d6r<3x>4kh20 * 40d6r<3x>4kh20 + 100d100kl50dh7" });
    let once = analyze(hard.clone()).await.expect(200);
    assert_eq!((&once.body["method"], &once.text), (&json!("simulated"), &analyze(hard).await.expect(200).text));
    for (formula, place) in [
        ("1d20 +", "at character 6"),
        ("1d0", "at character 2"),
        ("", "at character 0"),
        ("1 / (1d6 - 1)", "at character 2"),
        ("@x", "at character 0"),
    ] {
        let answer = analyze(json!({ "formula": formula })).await.problem(422, "invalid_formula");
        assert_eq!(answer.pointers(), ["/formula"]);
        assert!(answer.body["detail"].as_str().unwrap().contains(place), "{}", answer.text);
        assert!(answer.body["errors"][0]["message"].as_str().unwrap().contains(place), "{}", answer.text);
    }
}

/// What Foundry gives a formula of a rogue's: more than any formula asks for.
fn roll_data() -> Value {
    json!({
        "abilities": { "dex": { "value": 18, "mod": 4, "proficient": true, "bonuses": { "check": "", "save": "" } } },
        "attributes": { "prof": 3, "hp": { "value": 31, "max": null }, "senses": ["darkvision"] },
        "details": { "biography": { "value": "<p>She fell.</p>".repeat(500) }, "level": 5 },
        "scale": { "rogue": { "sneak-attack": "3d6" }, "monk": { "die": "d6", "number": 2 }, "deep": "1d1 + @scale.rogue.sneak-attack" },
        "flags": { "a": { "b": { "c": { "d": { "e": { "f": { "g": { "h": { "i": [] } } } } } } } } },
        "classes": { "blood-hunter": { "levels": 2 } },
        "loop": "@loop + 1", "long": "1 + ".repeat(300), "open": "(1", "comment": "1 # two", "twice": 1, "is": true,
        "many": (0..2000).collect::<Vec<_>>(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn foundrys_roll_data_are_sent_as_they_are() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    for (formula, dice, total) in [
        ("1d6 + @abilities.dex.mod", json!([2]), json!(6)),
        ("1d6 + @scale.rogue.sneak-attack", json!([2, 3, 4, 5]), json!(14)),
        ("@scale.rogue.sneak-attack[sneak] + 1", json!([3, 4, 5]), json!(13)),
        ("(@scale.rogue.sneak-attack) * 2", json!([1, 1, 1]), json!(6)),
        ("@scale.monk.number@scale.monk.die", json!([5, 6]), json!(11)),
        ("2@scale.monk.die", json!([5, 6]), json!(11)),
        ("@scale.deep", json!([1, 1, 2, 3]), json!(7)),
        ("1d20 + @abilities.dex.bonuses.check", json!([9]), json!(9)),
        ("@classes.blood-hunter.levels", json!([]), json!(2)),
        ("@attributes.prof-1", json!([]), json!(2)),
        ("@scale.rogue.sneak-attack-@attributes.prof-1", json!([1, 2, 3]), json!(2)),
        ("-@classes.blood-hunter.levels", json!([]), json!(-2)),
        ("4d6kh@classes.blood-hunter.levels", json!([1, 2, 3, 4]), json!(7)),
        ("1d6 # @scale.rogue.sneak-attack", json!([2]), json!(2)),
    ] {
        let result = one(&tenant, formula, json!({ "dice": dice, "variables": roll_data() })).await;
        assert_eq!((&result["total"], &result["formula"]), (&total, &json!(formula)), "{result}");
    }
    for (formula, place, said) in [
        ("1 + @attributes.hp.max", 4, "@attributes.hp.max is neither"),
        ("@attributes.senses", 0, "neither a number nor a formula"),
        ("@abilities.dex", 0, "neither a number nor a formula"),
        ("@is", 0, "neither a number nor a formula"),
        ("2 * @loop", 4, "deep"),
        ("1+@long", 2, "too long"),
        ("1 + @open + 2", 4, "not a formula"),
        ("1 + @comment + 2", 4, "comment"),
        ("@details.biography.value", 0, "too long"),
        ("2@scale.rogue.sneak-attack", 1, ""),
        ("@scale.rogue.sneak-attack + @nobody", 28, "no @nobody"),
        ("@scale.rogue.sneak-attack +", 27, "incomplete"),
        ("@classes.blood-hunter.levels + @blood-hunter", 38, "hunter"),
    ] {
        let result = one(&tenant, formula, json!({ "variables": roll_data() })).await;
        assert_eq!((&result["success"], &result["error"]["position"]), (&json!(false), &json!(place)), "{result}");
        assert!(result["error"]["message"].as_str().unwrap().contains(said), "{result}");
    }
    let body = json!({ "formula": "@scale.rogue.sneak-attack", "variables": roll_data() });
    let statistics = tenant.post("/v1/dice/analyze", body).await.expect(200).body;
    assert_eq!((&statistics["min"], &statistics["max"]), (&json!(3), &json!(18)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_formula_with_nul_fails_alone() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let body = json!({ "rolls": [{ "formula": "1d1" }, { "formula": "1d1\u{0}" }, { "formula": "1d1 + @a\u{0}" }, { "formula": "1d1 + 1" }],
                       "variables": { "a\u{0}": "\u{0}", "a": "1\u{0}" } });
    for _ in 0..2 {
        // The answer is also kept, and given again.
        let request =
            tenant.request(reqwest::Method::POST, "/v1/dice/roll").header("idempotency-key", "nul").json(&body);
        let answer: Value = request.send().await.unwrap().error_for_status().unwrap().json().await.unwrap();
        let results = answer["results"].as_array().unwrap();
        let totals: Vec<_> = results.iter().map(|r| r["total"].clone()).collect();
        assert_eq!(totals, [json!(1), Value::Null, Value::Null, json!(2)], "{answer}");
        assert_eq!((&results[1]["formula"], &results[1]["error"]["position"]), (&json!("1d1\u{0}"), &json!(3)));
    }
    tenant.post("/v1/dice/analyze", json!({ "formula": "1d6\u{0}" })).await.problem(422, "validation_failed");
    let elsewhere = json!({ "rolls": [{ "formula": "1d6" }], "campaign": "a\u{0}" });
    let answer = tenant.post("/v1/dice/roll", elsewhere).await;
    assert!((400..500).contains(&answer.status), "{}", answer.text);
}
