//! What no caller should send, and what the schemas say.

use ai::tools::REGISTRY;
use serde_json::{Value, json};

use super::{call, snapshot, table};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn bad_arguments_are_pointed_at() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let long = "x".repeat(201);
    for (tool, arguments, pointer) in [
        ("resolve_skill_check", json!({ "skill": "cooking", "dc": 10 }), "/skill"),
        ("resolve_skill_check", json!({ "skill": "stealth", "dc": 41 }), "/dc"),
        ("resolve_skill_check", json!({ "skill": "stealth", "dc": -1 }), "/dc"),
        ("resolve_skill_check", json!({ "skill": "stealth", "dc": 10.5 }), "/dc"),
        ("resolve_skill_check", json!({ "skill": "stealth", "dc": 99999999999_i64 }), "/dc"),
        ("resolve_skill_check", json!({ "skill": "stealth" }), "/dc"),
        ("resolve_skill_check", json!({ "skill": "stealth", "dc": 10, "luck": 1 }), "/luck"),
        ("resolve_skill_check", json!({ "skill": "stealth", "dc": 10, "advantage": "lucky" }), "/advantage"),
        ("resolve_skill_check", json!({ "skill": "stealth", "dc": 10, "cover": "tree" }), "/cover"),
        ("resolve_skill_check", json!({ "skill": "stealth", "dc": 10, "ability": "luck" }), "/ability"),
        ("resolve_skill_check", json!({ "skill": "stealth", "dc": 10, "encounter_id": "e1" }), "/encounter_id"),
        ("resolve_skill_check", json!({ "skill": "stealth", "dc": 10, "context": { "mood": 1 } }), "/context/mood"),
        (
            "resolve_skill_check",
            json!({ "skill": "stealth", "dc": 10, "context": { "distance_ft": -5 } }),
            "/context/distance_ft",
        ),
        ("resolve_ability_check", json!({ "ability": "luck", "dc": 10 }), "/ability"),
        ("resolve_saving_throw", json!({ "ability": "strengths", "dc": 10 }), "/ability"),
        (
            "resolve_saving_throw",
            json!({ "ability": "str", "dc": 10, "damage": { "dice": "many", "type": "fire" } }),
            "/damage/dice",
        ),
        (
            "resolve_saving_throw",
            json!({ "ability": "str", "dc": 10, "damage": { "dice": "1d6", "type": "spite" } }),
            "/damage/type",
        ),
        (
            "resolve_saving_throw",
            json!({ "ability": "str", "dc": 10, "damage": { "dice": "1d6", "on_save": "some" } }),
            "/damage/on_save",
        ),
        ("resolve_attack", json!({ "weapon": "dagger" }), "/target"),
        ("resolve_attack", json!({ "weapon": "dagger", "target": " " }), "/target"),
        ("resolve_attack", json!({ "weapon": long, "target": "ogre" }), "/weapon"),
        ("resolve_attack", json!({ "weapon": "dagger", "target": "ogre", "slot_level": 10 }), "/slot_level"),
        ("resolve_contest", json!({ "opponent": "ogre", "own": { "skill": "athletics" } }), "/theirs"),
        ("resolve_contest", json!({ "opponent": "ogre", "own": {}, "theirs": { "skill": "athletics" } }), "/own"),
        ("resolve_group_check", json!({ "participants": [], "skill": "stealth", "dc": 5 }), "/participants"),
        ("resolve_group_check", json!({ "participants": ["shade"], "dc": 5 }), "/skill"),
        ("apply_damage", json!({ "target": "ogre", "parts": [{ "amount": -1, "type": "fire" }] }), "/parts/0/amount"),
        ("apply_damage", json!({ "target": "ogre", "parts": [] }), "/parts"),
        ("apply_healing", json!({ "target": "ogre" }), "/amount"),
        ("apply_healing", json!({ "target": "ogre", "formula": "lots" }), "/formula"),
        ("resolve_fall", json!({ "distance_ft": 100001 }), "/distance_ft"),
        ("resolve_concentration", json!({}), "/damage"),
        ("take_rest", json!({ "type": "nap" }), "/type"),
        ("mark_impossible", json!({ "reason": "" }), "/reason"),
    ] {
        let answer = world.post(&format!("/tools/{tool}"), call("shade", arguments.clone())).await;
        let answer = answer.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [format!("/arguments{pointer}")], "{tool} {arguments}: {}", answer.text);
    }
    let unknown =
        world.post("/tools/resolve_skill_check", call("shade", json!({ "skill": "cooking", "dc": 10 }))).await;
    snapshot("unknown_skill", unknown.body["errors"][0]["message"].as_str().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_sheet_rolls_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = table(&tenant).await;
    let tools = [
        ("resolve_attack", json!({ "weapon": "dagger", "target": "ogre" })),
        ("resolve_skill_check", json!({ "skill": "stealth", "dc": 10 })),
        ("resolve_saving_throw", json!({ "ability": "dex", "dc": 10 })),
        ("resolve_death_save", json!({})),
        ("resolve_fall", json!({ "distance_ft": 10 })),
        ("roll_initiative", json!({})),
        ("take_rest", json!({ "type": "long" })),
    ];
    for (tool, arguments) in tools {
        for actor in [Value::Null, json!({ "type": "gm" })] {
            let body = json!({ "arguments": arguments, "actor": actor });
            let answer = world.post(&format!("/tools/{tool}"), body).await.problem(422, "validation_failed");
            assert_eq!(answer.pointers(), ["/actor"], "{tool}: {}", answer.text);
        }
    }
    let nobody =
        world.post("/tools/roll_initiative", call("nobody", json!({}))).await.problem(422, "validation_failed");
    assert_eq!(nobody.pointers(), ["/actor/id"]);
}

#[test]
fn schemas_say_what_everything_is() {
    for tool in REGISTRY {
        let schema = tool.schema();
        assert_eq!(
            (&schema["type"], &schema["additionalProperties"]),
            (&json!("object"), &json!(false)),
            "{}",
            tool.name
        );
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].as_str().is_some_and(|d| d.len() > 5), "{} {name}: {property}", tool.name);
            assert!(
                property.get("$ref").is_none() && property.get("type").is_some_and(|t| !t.is_null())
                    || property.get("anyOf").is_some(),
                "{} {name}: {property}",
                tool.name
            );
        }
        assert!(!tool.schema_text().contains("$ref"), "{}", tool.name);
    }
    let skill = &ai::tools::find("resolve_skill_check").unwrap().schema()["properties"];
    assert_eq!(skill["skill"]["enum"].as_array().unwrap().len(), 18);
    assert_eq!(skill["advantage"]["enum"], json!(["none", "advantage", "disadvantage"]));
    assert_eq!((&skill["dc"]["minimum"], &skill["dc"]["maximum"]), (&json!(0), &json!(40)));
    snapshot(
        "schema_of_a_saving_throw",
        &serde_json::to_string_pretty(ai::tools::find("resolve_saving_throw").unwrap().schema()).unwrap(),
    );
}
