//! The same through the tools, by frontends and in turns.

use serde_json::{Value, json};

use super::{duel, dungeon, hp};
use edge::caller::Scope;

use crate::support::{Server, World};

async fn manage(world: &World<'_>, arguments: Value) -> Value {
    world.post("/tools/manage_encounter", json!({ "arguments": arguments })).await.expect(200).body["result"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_story_by_tools() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let mut begin = duel();
    begin["operation"] = json!("create");
    let id = manage(&world, begin).await["encounter_id"].clone();
    let listed = manage(&world, json!({ "operation": "list" })).await;
    assert_eq!(listed["encounters"][0]["encounter_id"], id);
    assert_eq!(
        (&listed["encounters"][0]["participant_count"], &listed["encounters"][0]["round"]),
        (&json!(2), &json!(1))
    );

    let joined = json!({ "operation": "add_participant", "encounter_id": id, "participant": { "id": "late", "hp": 4, "max_hp": 4 } });
    assert_eq!(manage(&world, joined).await["participants"].as_array().unwrap().len(), 3);
    let act = async |arguments: Value, actor: Value| {
        world.post("/tools/encounter_action", json!({ "arguments": arguments, "actor": actor })).await
    };
    let (gm, fenric) = (json!({ "type": "gm" }), json!({ "type": "character", "id": "fenric" }));
    let hurt = json!({ "encounter_id": id, "action": "damage", "target_id": "fenric", "amount": 5 });
    act(hurt.clone(), gm.clone()).await.expect(200);
    act(hurt, fenric.clone()).await.problem(403, "forbidden");
    let dodged = act(json!({ "encounter_id": id, "action": "dodge" }), fenric.clone()).await.expect(200).body;
    assert!(!dodged["result"]["events"].as_array().unwrap().is_empty());
    act(json!({ "encounter_id": id, "action": "dodge", "nonsense": 1 }), fenric)
        .await
        .problem(422, "validation_failed");
    act(json!({ "action": "dodge" }), gm).await.problem(422, "validation_failed");

    let told = manage(&world, json!({ "operation": "get", "encounter_id": id, "verbosity": "summary" })).await;
    assert_eq!(told["participants"][0]["hp"], 23);
    let ended = manage(
        &world,
        json!({ "operation": "end", "encounter_id": id, "outcome": "negotiated", "notes": "They talked." }),
    )
    .await;
    assert_eq!((&ended["outcome"], &ended["commit_required"]), (&json!("negotiated"), &json!(true)));
    let dry = manage(&world, json!({ "operation": "commit", "encounter_id": id, "dry_run": true })).await;
    assert_eq!((hp(&world, "fenric").await, &dry["committed"][0]["changes"]["hp"]["final"]), (28, &json!(23)));
    manage(&world, json!({ "operation": "commit", "encounter_id": id })).await;
    assert_eq!(hp(&world, "fenric").await, 23);
    assert_eq!(manage(&world, json!({ "operation": "commit", "encounter_id": id })).await["committed"], json!([]));

    for (arguments, pointer) in [
        (json!({ "operation": "destroy" }), "/arguments/operation"),
        (json!({ "operation": "get" }), "/arguments/encounter_id"),
        (json!({ "operation": "get", "encounter_id": id, "outcome": "fled" }), "/arguments/outcome"),
        (json!({ "operation": "end", "encounter_id": id, "outcome": "won" }), "/arguments/outcome"),
    ] {
        let answer = world
            .post("/tools/manage_encounter", json!({ "arguments": arguments }))
            .await
            .problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{}", answer.text);
    }
}

/// A resolver called with an encounter: who takes part stands as it says there, and what changes, changes there.
#[tokio::test(flavor = "multi_thread")]
async fn resolvers_may_happen_in_an_encounter() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = super::begin(&world, duel()).await;
    let call = async |tool: &str, arguments: Value, dice: Value| {
        let mut body = json!({ "arguments": arguments, "actor": { "type": "character", "id": "fenric" } });
        if !dice.is_null() {
            body["dice"] = dice;
        }
        body["arguments"]["encounter_id"] = json!(id);
        world.post(&format!("/tools/{tool}"), body).await
    };
    let hit = call("resolve_attack", json!({ "weapon": "Longsword", "target": "Orc" }), json!([15, 6]))
        .await
        .expect(200)
        .body;
    assert_eq!((&hit["result"]["outcome"], &hit["result"]["round"]), (&json!("hit"), &json!(1)), "{hit}");
    assert_eq!(super::participant(&world, &id, "orc").await["hp"], 6);
    call("resolve_attack", json!({ "weapon": "Longsword", "target": "Orc" }), Value::Null)
        .await
        .problem(409, "no_action_left");
    let stranger =
        call("resolve_attack", json!({ "weapon": "Longsword", "target": "goblin" }), Value::Null).await.expect(200);
    assert_eq!(stranger.body["result"]["impossible"], true, "who takes no part cannot be hit: {}", stranger.text);

    // A condition of the fight counts, though the record has none.
    super::act(
        &world,
        &id,
        json!({ "action": "add_condition", "target_id": "fenric", "condition": "poisoned", "rounds": 2 }),
    )
    .await
    .expect(200);
    let check =
        call("resolve_skill_check", json!({ "skill": "athletics", "dc": 10 }), json!([15, 2])).await.expect(200).body;
    assert_eq!(
        (&check["result"]["advantage"], &check["result"]["success"]),
        (&json!("disadvantage"), &json!(false)),
        "{check}"
    );
    let burnt =
        call("apply_damage", json!({ "target": "fenric", "parts": [{ "amount": 4, "type": "fire" }] }), Value::Null)
            .await;
    assert_eq!(burnt.expect(200).body["result"]["effects"][0]["applied"], true);
    assert_eq!(super::participant(&world, &id, "fenric").await["hp"], 24);
    assert_eq!(hp(&world, "fenric").await, 28);
    super::end(&world, &id).await;
    call("resolve_skill_check", json!({ "skill": "athletics", "dc": 10 }), Value::Null)
        .await
        .problem(409, "encounter_already_ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fights_that_go_on() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let get = async |arguments: Value| world.post("/tools/get_encounter", json!({ "arguments": arguments })).await;
    let none = get(json!({})).await.expect(200).body["result"].clone();
    assert_eq!(none, json!({ "in_combat": false, "message": "No active encounter" }));
    let id = super::begin(&world, duel()).await;
    let one = get(json!({})).await.expect(200).body["result"].clone();
    assert_eq!((&one["in_combat"], &one["combat_id"], &one["turn"]), (&json!(true), &json!(id), &json!(1)));
    let fenric = &one["combatants"][0];
    assert_eq!(
        (&fenric["is_player"], &fenric["is_current_turn"], &fenric["hp"]),
        (&json!(true), &json!(true), &json!(28))
    );
    assert_eq!((&one["combatants"][1]["is_player"], one["combatants"][1].get("character_id")), (&json!(false), None));
    let second = super::begin(&world, duel()).await;
    let both = get(json!({})).await.expect(200).body["result"].clone();
    assert_eq!((&both["active_count"], both["encounters"].as_array().unwrap().len()), (&json!(2), 2));
    assert_eq!(get(json!({ "encounter_id": second })).await.expect(200).body["result"]["combat_id"], json!(second));
    // A fight that cannot be read takes no other with it.
    let third = super::begin(&world, duel()).await;
    let damage = "UPDATE encounter_state SET state = '{\"n\": 1e400}' WHERE encounter_id = $1::uuid";
    let changed = sqlx::query(damage).bind(&third).execute(&mut server.owner().await).await.unwrap();
    assert_eq!(changed.rows_affected(), 1);
    assert_eq!(get(json!({})).await.expect(200).body["result"], both);
    super::end(&world, &second).await;
    get(json!({ "encounter_id": second })).await.problem(404, "not_found");
}

/// A resolver in a fight leads to what an action would lead to.
#[tokio::test(flavor = "multi_thread")]
async fn what_resolvers_change_in_a_fight_has_its_consequences() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = super::begin(&world, duel()).await;
    let call = async |tool: &str, mut arguments: Value, dice: Value| {
        arguments["encounter_id"] = json!(id);
        let mut body = json!({ "arguments": arguments, "actor": { "type": "character", "id": "fenric" } });
        if !dice.is_null() {
            body["dice"] = dice;
        }
        world.post(&format!("/tools/{tool}"), body).await
    };
    // Damage is credited, and a concentration is tried.
    super::act(
        &world,
        &id,
        json!({ "action": "add_condition", "participant_id": "fenric", "target_id": "orc", "condition": "frightened",
        "duration": "concentration" }),
    )
    .await
    .expect(200);
    call("apply_damage", json!({ "target": "orc", "parts": [{ "amount": 4, "type": "fire" }] }), Value::Null)
        .await
        .expect(200);
    assert_eq!(super::participant(&world, &id, "fenric").await["statistics"]["damage_dealt"], 4);
    let shaken =
        call("apply_damage", json!({ "target": "fenric", "parts": [{ "amount": 4, "type": "fire" }] }), json!([1]))
            .await;
    assert_eq!(shaken.expect(200).body["result"]["followed_by"][0]["success"], false);
    assert_eq!(super::participant(&world, &id, "orc").await["conditions"], json!([]));
    // One death saving throw a turn.
    super::hurt(&world, &id, "fenric", 24).await;
    call("resolve_death_save", json!({}), json!([5])).await.expect(200);
    call("resolve_death_save", json!({}), json!([5])).await.problem(409, "no_action_left");
    let said = world.get("/messages?sort=-created_at&limit=1").await.expect(200).items()[0]["content"].clone();
    assert_eq!(
        said,
        "Fenric: death saving throw 5 (5 + 0), failure. Fenric's death saves: 0 of 3 successes, 1 of 3 failures."
    );
    // The old names.
    let old = json!({ "arguments": { "participants": [{ "id": "a", "hp": 3, "max_hp": 3 }] } });
    let begun = world.post("/tools/create_encounter", old).await.expect(200).body["result"]["encounter_id"].clone();
    let old = json!({ "arguments": { "encounter_id": begun } });
    let refused = world.post("/tools/end_encounter", old).await.problem(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/arguments/outcome"]);
    let old = json!({ "arguments": { "encounter_id": begun, "outcome": "fled" } });
    assert_eq!(world.post("/tools/end_encounter", old).await.expect(200).body["result"]["outcome"], "fled");
    world.post("/tools/manage_encounter", json!({ "arguments": {} })).await.problem(422, "validation_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn some_things_are_a_game_masters_to_say() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = dungeon(&tenant).await;
    let id = super::begin(&world, duel()).await;
    let table = tenant.with_scopes(&[Scope::Read, Scope::Play, Scope::Tools]).await;
    let one = json!([{ "id": "a", "hp": 3, "max_hp": 3 }]);
    table.post(&world.path("/encounters"), json!({ "participants": one, "seed": 5 })).await.problem(403, "forbidden");
    let tool = json!({ "arguments": { "operation": "create", "participants": one, "seed": 5 } });
    table.post(&world.path("/tools/manage_encounter"), tool).await.problem(422, "validation_failed");
    let over =
        json!({ "arguments": { "encounter_id": id, "action": "dash", "participant_id": "orc", "override": true } });
    table.post(&world.path("/tools/encounter_action"), over).await.problem(422, "validation_failed");
    let over = json!({ "action": "dash", "participant_id": "orc", "override": true });
    table.post(&world.path(&format!("/encounters/{id}/actions")), over).await.problem(403, "forbidden");
    let both = json!({ "participants": one, "seed": 5, "dice": [3] });
    world.post("/encounters", both).await.problem(422, "validation_failed");
}
