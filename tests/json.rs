//! What is sent as JSON comes back as it was, or is refused: numbers, objects given as lists, bodies that were forgotten.

use edge::caller::access::TABLE;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::support::{Answer, Rows, Server, World, counts};

/// A place where anybody's JSON is kept: how it is sent, and where it is read again.
struct Door {
    method: Method,
    path: &'static str,
    body: fn(&Value) -> Value,
    /// Where the answer, or a read of it, shows what was sent; none if the answer to `path` itself does.
    read: Option<&'static str>,
    at: &'static str,
}

fn doors() -> Vec<Door> {
    let keys = |value: &Value| json!({ "extensions": { "x": value } });
    let mut doors: Vec<Door> =
        ["/characters/player_alice", "/npcs/innkeeper_bob", "/owners/town_council_owner", "/lore/the_reach"]
            .map(|path| Door { method: Method::PATCH, path, body: keys, read: Some(path), at: "/extensions/x" })
            .into();
    doors.push(Door { method: Method::PATCH, path: "", body: keys, read: Some(""), at: "/extensions/x" });
    doors.push(Door {
        method: Method::POST,
        path: "/messages",
        body: |value| json!({ "content": "A message.", "extensions": { "x": value } }),
        read: None,
        at: "/extensions/x",
    });
    doors
}

async fn send(world: &World<'_>, door: &Door, value: &Value) -> Answer {
    let request = world.client.request(door.method.clone(), &world.path(door.path));
    world.client.send_odd(request.json(&(door.body)(value))).await
}

/// The text of a body in which a number stands that no `Value` can hold.
fn with_number(door: &Door, number: &str) -> String {
    (door.body)(&json!("THE NUMBER")).to_string().replace("\"THE NUMBER\"", number)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_cannot_come_back_is_refused_at_every_door() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let before = counts(&server).await;
    for door in doors() {
        for number in [
            "1.7976931348623157e308",
            "-1.7976931348623157e308",
            "1e21",
            "18446744073709551616",
            "-9223372036854775809",
            "-9223372036854775809e10",
            "123456789012345678901234567890",
            "5e-324",
            "1e-200",
        ] {
            let request = tenant.request(door.method.clone(), &world.path(door.path));
            let request = request.header("content-type", "application/json").body(with_number(&door, number));
            let answer = tenant.send_odd(request).await.problem(422, "validation_failed");
            assert_eq!(answer.body["errors"][0]["code"], "invalid_number", "{number}: {}", answer.text);
            assert_eq!(answer.pointers(), [door.at], "{number}");
        }
    }
    // Files and lists of events are read by the same rules.
    let poison = "1.7976931348623157e308";
    for (path, body) in [
        (
            "/import/lorebook",
            json!({ "entries": { "0": { "uid": 0, "key": ["a"], "content": "b", "extensions": { "n": "N" } } } }),
        ),
        (
            "/import/character-card",
            json!({ "spec": "chara_card_v2", "spec_version": "2.0", "data": { "name": "New", "extensions": { "n": "N" } } }),
        ),
        (
            "/import/seed",
            json!({ "Lore": [{ "ID": "new", "Title": "New", "Scope": "global", "Content": "N", "Other": "N" }] }),
        ),
        ("/sessions", json!({ "client_id": "c", "world_state": { "game_settings": { "n": "N" } } })),
        ("/tools/roll_dice", json!({ "arguments": { "formula": "1d20", "n": "N" }, "actor": { "type": "gm" } })),
    ] {
        let request = tenant.request(Method::POST, &world.path(path)).header("content-type", "application/json");
        let answer = tenant.send_odd(request.body(body.to_string().replace("\"N\"", poison))).await;
        assert_eq!(answer.status, 422, "{path}: {}", answer.text);
    }
    assert_eq!(counts(&server).await, before);
}

/// Any JSON: numbers of every size, texts of every sign, lists and objects within each other.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-1e6..1e6).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Whether two values are the same JSON: 100 and 100.0 are one number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// What a merge patch leaves of a value where there was nothing: members that are null are taken away (RFC 7396).
fn merged(value: &Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), merged(v))).collect::<Map<_, _>>(),
        ),
        other => other.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_accepted_reads_back_equal() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut runner = TestRunner::new(Config { cases: 0, ..Config::default() });
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..60 {
        let value = any_json().new_tree(&mut runner).unwrap().current();
        for door in doors() {
            // A patch merges with what is there.
            if let (Method::PATCH, Some(member)) = (door.method.clone(), door.at.rsplit_once('/')) {
                let cleared = json!({ member.0.trim_start_matches('/'): { member.1: null } });
                world.patch(door.path, cleared).await.expect(200);
            }
            let answer = send(&world, &door, &value).await;
            if answer.status == 422 {
                refused += 1;
                continue;
            }
            assert!((200..300).contains(&answer.status), "{value}: {}", answer.text);
            accepted += 1;
            let path = door.read.map_or_else(|| format!("/messages/{}", answer.id()), ToOwned::to_owned);
            let read = if door.read.is_some() { world.get(&path).await.expect(200) } else { answer };
            let kept = read.body.pointer(door.at).unwrap_or(&Value::Null);
            let sent = if door.method == Method::PATCH { merged(&value) } else { value.clone() };
            assert!(same(kept, &sent), "round {round}, {}: sent {sent}, kept {kept}", door.path);
        }
    }
    assert!(accepted > 50 && refused > 50, "{accepted} accepted, {refused} refused");
    for path in ["/export", "/messages?limit=200", "/changes?after=0&limit=200", "/characters", "/npcs", "/lore"] {
        world.get(path).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_stands_twice_is_refused() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    for body in [r#"{"name": "a", "name": "b"}"#, r#"{"name": "a", "extensions": {"x": {"y": 1, "y": 2}}}"#] {
        let request = tenant.request(Method::POST, "/v1/campaigns").header("content-type", "application/json");
        let answer = tenant.send_odd(request.body(body)).await.problem(400, "bad_request");
        assert!(answer.text.contains("occurs twice"), "{}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_body_is_never_taken_for_an_empty_one() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "x").await;
    let described = serde_json::to_value(tavernkeep::routes::document()).unwrap();
    let before = counts(&server).await;
    let mut asked = 0;
    for route in TABLE.iter().filter(|route| route.method != "GET" && route.method != "DELETE") {
        let pointer = |path: &str| path.replace('~', "~0").replace('/', "~1");
        let operation =
            described.pointer(&format!("/paths/{}/{}", pointer(route.path), route.method.to_ascii_lowercase()));
        let takes_body = operation.is_some_and(|operation| operation.get("requestBody").is_some());
        if !takes_body || route.path.contains("/import") {
            continue;
        }
        asked += 1;
        let required = operation.and_then(|o| o.pointer("/requestBody/required")).and_then(Value::as_bool);
        assert_eq!(required, Some(true), "{} {} says that its body may be left out", route.method, route.path);
        let request = tenant.request(route.method.parse().unwrap(), &rows.path(route.path));
        let answer = tenant.send_odd(request.header("content-type", "application/json")).await;
        assert_eq!(
            (answer.status, answer.body["code"].as_str()),
            (400, Some("bad_request")),
            "{} {}: {}",
            route.method,
            route.path,
            answer.text
        );
    }
    assert!(asked > 40, "{asked} operations take a body");
    assert_eq!(counts(&server).await, before);
}

/// Every object within a body as the list of what its members hold, one at a time.
fn with_lists(body: &Value) -> Vec<(String, Value)> {
    fn objects(value: &Value, pointer: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                found.push(pointer.to_owned());
                members.iter().for_each(|(key, value)| objects(value, &format!("{pointer}/{key}"), found));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(i, item)| objects(item, &format!("{pointer}/{i}"), found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    objects(body, "", &mut found);
    let listed = |pointer: String| {
        let mut changed = body.clone();
        let place = changed.pointer_mut(&pointer)?;
        *place = place.as_object()?.values().cloned().collect();
        Some((pointer, changed))
    };
    found.into_iter().filter_map(listed).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_never_read_from_a_list() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "x").await;
    let campaign = format!("/v1/campaigns/{}", rows.campaign);
    let mut bodies: Vec<(Method, String, Value)> = TABLE
        .iter()
        .filter(|route| matches!(route.method, "POST" | "PUT" | "PATCH") && !route.path.contains("/import"))
        .map(|route| (route.method.parse().unwrap(), rows.path(route.path), rows.body(route)))
        .collect();
    let more = [
        (
            "PATCH",
            "/v1/tenant",
            json!({ "settings": { "features": { "llm": true, "llm_visible": true, "planner": true } } }),
        ),
        ("PATCH", "/v1/tenant", json!({ "settings": { "llm": { "reply_mode": "native" } } })),
        (
            "POST",
            "characters",
            json!({ "name": "A", "abilities": { "strength": 10, "dexterity": 10, "constitution": 10, "intelligence": 10, "wisdom": 10, "charisma": 10 } }),
        ),
        ("POST", "characters", json!({ "name": "A", "features": [{ "name": "Sneak Attack", "level": 1 }] })),
        (
            "POST",
            "characters",
            json!({ "name": "A", "weapons": [{ "name": "Club", "dice": "1d4", "damage_type": "bludgeoning", "ability": "str", "range": { "normal": 20, "long": 60 } }] }),
        ),
        (
            "POST",
            "characters",
            json!({ "name": "A", "spells": [{ "name": "Fire Bolt", "level": 0 }], "spell_slots": { "1": { "max": 2, "remaining": 2 } } }),
        ),
        (
            "POST",
            "characters",
            json!({ "name": "A", "resources": [{ "name": "Ki", "max": 2, "remaining": 2 }], "hit_dice": { "die": 8, "max": 1, "remaining": 1 } }),
        ),
        (
            "POST",
            "characters",
            json!({ "name": "A", "conditions": [{ "name": "prone" }], "effects": [{ "name": "Bless" }] }),
        ),
        (
            "POST",
            "npcs",
            json!({ "name": "A", "stats": { "armor_class": 10, "hp": 5, "max_hp": 5, "attacks": [{ "name": "Bite", "bonus": 3, "damage": "1d4", "damage_type": "piercing" }] } }),
        ),
        ("POST", "npcs", json!({ "name": "A", "available_tools": [{ "name": "NPC_memorize", "description": "x" }] })),
        (
            "POST",
            "owners",
            json!({ "name": "A", "monitored_aspect": "race", "associated_id": "elf", "influence": { "max": 10, "regen_per_hour": 1 } }),
        ),
        ("POST", "scenes", json!({ "name": "A", "tokens": [{ "id": "t", "name": "T", "x": 1, "y": 2 }] })),
        ("POST", "messages", json!({ "content": "A", "speaker": { "name": "B" } })),
        (
            "POST",
            "encounters",
            json!({ "participants": [{ "id": "a", "hp": 1, "max_hp": 1, "position": { "x": 0, "y": 0 } }] }),
        ),
        ("POST", "/v1/dice/roll", json!({ "rolls": [{ "formula": "1d20", "flavor": "x" }] })),
    ];
    bodies.extend(more.map(|(method, path, body)| {
        let path = if path.starts_with('/') { path.to_owned() } else { format!("{campaign}/{path}") };
        (method.parse().unwrap(), path, body)
    }));
    let mut sent = 0;
    for (method, path, body) in bodies {
        // What is free JSON may be a list.
        for (pointer, changed) in with_lists(&body).into_iter().filter(|(pointer, _)| pointer != "/data") {
            let answer = tenant.send_odd(tenant.request(method.clone(), &path).json(&changed)).await;
            assert!(
                (400..500).contains(&answer.status),
                "{method} {path}: a list at {pointer} was accepted: {changed}\n{} {}",
                answer.status,
                answer.text
            );
            sent += 1;
        }
    }
    assert!(sent > 80, "{sent} bodies were sent");
}
