//! Every schema of a request in `openapi.yaml` says how large its values may be, and a request is held to it.

use std::collections::BTreeSet;

use edge::http::bounds::{BYTES_WORD, Limit, OTHERWISE};
use reqwest::Method;
use serde_json::{Map, Value, json};
use tavernkeep::routes;

use crate::support::Server;

/// A value somewhere in a request: which limit it needs, and what its schema says.
struct Place {
    /// `NpcInput/inventory`, `NpcInput/owner_ids[]`.
    name: String,
    word: &'static str,
    max: Option<u64>,
}

struct Walk<'a> {
    schemas: &'a Value,
    seen: BTreeSet<String>,
    places: Vec<Place>,
    /// Each number, and whether its schema says the least and the largest.
    numbers: Vec<(String, bool)>,
}

impl Walk<'_> {
    fn note(&mut self, name: &str, word: &'static str, schema: &Value) {
        self.places.push(Place { name: name.to_owned(), word, max: schema[word].as_u64() });
    }

    fn schema(&mut self, name: &str, schema: &Value) {
        if let Some(reference) = schema["$ref"].as_str() {
            let named = reference.rsplit('/').next().unwrap();
            if self.seen.insert(named.to_owned()) {
                self.schema(named, &self.schemas[named]);
            }
            return;
        }
        if schema["enum"].is_array() || !schema["const"].is_null() {
            return;
        }
        let parts = ["oneOf", "anyOf", "allOf"].map(|word| schema[word].as_array().into_iter().flatten());
        let mut has_parts = false;
        for part in parts.into_iter().flatten() {
            has_parts = true;
            self.schema(name, part);
        }
        let is =
            |kind: &str| schema["type"] == kind || schema["type"].as_array().is_some_and(|t| t.contains(&json!(kind)));
        if schema["type"].is_null() && !has_parts {
            self.note(name, BYTES_WORD, schema);
        }
        if is("string") && !["uuid", "date-time", "date"].iter().any(|format| schema["format"] == *format) {
            self.note(name, "maxLength", schema);
        }
        if is("integer") || is("number") {
            self.numbers.push((name.to_owned(), schema["minimum"].is_number() && schema["maximum"].is_number()));
        }
        if is("array") {
            self.note(name, "maxItems", schema);
            match schema["items"]["type"].is_null() && schema["items"].as_object().is_some_and(Map::is_empty) {
                true => self.note(name, BYTES_WORD, schema),
                false => self.schema(&format!("{name}[]"), &schema["items"]),
            }
        }
        if is("object") {
            self.object(name, schema);
        }
    }

    fn object(&mut self, name: &str, schema: &Value) {
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        for (member, of) in &properties {
            self.schema(&format!("{name}/{member}"), of);
        }
        match &schema["additionalProperties"] {
            Value::Bool(false) => {}
            Value::Object(of) if of.is_empty() => self.note(name, BYTES_WORD, schema),
            Value::Object(of) => {
                self.note(name, "maxProperties", schema);
                self.schema(&format!("{name}{{}}"), &Value::Object(of.clone()));
            }
            Value::Bool(true) => self.note(name, BYTES_WORD, schema),
            _ if properties.is_empty() => self.note(name, BYTES_WORD, schema),
            _ => {}
        }
    }
}

fn document() -> Value {
    serde_json::to_value(routes::document()).unwrap()
}

/// Each operation that takes a body: method, path and the schemas of its body.
fn bodies(api: &Value) -> Vec<(String, String, Vec<&Value>)> {
    let mut found = Vec::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if let Some(content) = operation["requestBody"]["content"].as_object() {
                let schemas = content.values().map(|media| &media["schema"]).collect();
                found.push((method.clone(), path.clone(), schemas));
            }
        }
    }
    found
}

fn walked(api: &Value) -> Walk<'_> {
    let schemas = &api["components"]["schemas"];
    let mut walk = Walk { schemas, seen: BTreeSet::new(), places: Vec::new(), numbers: Vec::new() };
    for (method, path, schemas) in bodies(api) {
        schemas.iter().for_each(|schema| walk.schema(&format!("{method} {path}"), schema));
    }
    walk
}

/// Whether a line of a table, `Schema/member` with `*` for any, names a place.
fn names(at: &str, place: &str) -> bool {
    let (schema, member) = at.split_once('/').unwrap();
    let (own, way) = place.split_once('/').unwrap_or((place, ""));
    (schema == "*" || schema == own.trim_end_matches(".Patch"))
        && (member == "*" || way.rsplit('/').next() == Some(member))
}

#[test]
fn every_value_of_a_request_has_a_limit() {
    let api = document();
    let places = walked(&api).places;
    assert!(places.len() > 400, "{}", places.len());
    let without: Vec<_> = places
        .iter()
        .filter(|place| place.max.is_none())
        .map(|place| format!("{} {}", place.name, place.word))
        .collect();
    assert!(without.is_empty(), "no limit in openapi.yaml: {without:#?}");
}

#[test]
fn every_line_of_the_table_is_some_value_s_limit() {
    let api = document();
    let places = walked(&api).places;
    for (at, limit) in OTHERWISE.iter().filter(|(at, _)| *at != "import") {
        let (word, max) = match *limit {
            Limit::Chars(max) => ("maxLength", max),
            Limit::Items(max) => ("maxItems", max),
            Limit::Members(max) => ("maxProperties", max),
            Limit::Bytes(max) => (BYTES_WORD, max),
        };
        let is_here = |place: &Place| names(at, &place.name);
        let is_used = places.iter().any(|place| is_here(place) && place.word == word && place.max == Some(max as u64));
        // An array's bytes stand beside its entries.
        let is_beside = word == BYTES_WORD && places.iter().any(|place| is_here(place) && place.word == "maxItems");
        assert!(is_used || is_beside, "{at} {limit:?} is nothing's limit");
    }
}

/// Numbers that have no least or no largest value, with the reason. All of them fit into their format.
const ENDLESS: &[(&str, &str)] = &[
    ("*/dice[]", "a die shows at most what it has faces"),
    ("*/character-card[]", "bytes of a file"),
    ("*/seed", "any 64 bits"),
    ("VerifyInput/counter", "any place in a stream of dice"),
    ("ContextInput/turn_key", "a name, which may be a number"),
    ("PriorityChange/*", "what it leads to has to be a priority"),
    // Sheets and stat blocks are stored as they are given; the rules cope with any number.
    ("Stats/*", "stored as given"),
    ("StatBlockAbilities/*", "stored as given"),
    ("NpcAttack/*", "stored as given"),
    ("EncounterAttackInput/reach_ft", "stored as given"),
    ("Condition/*", "stored as given"),
    ("Effect/*", "stored as given"),
    ("DeathSaves/*", "stored as given"),
    ("HitDice/*", "stored as given"),
    ("Weapon/*", "stored as given"),
    ("Range/*", "stored as given"),
    ("Spell/*", "stored as given"),
    ("Feature/level", "stored as given"),
    // Frontends measure in their own units.
    ("SceneToken/*", "a place on a frontend's map"),
    ("Dimensions/*", "a size on a frontend's map"),
    ("Light/*", "a place on a frontend's map"),
    ("Note/*", "a place on a frontend's map"),
    ("Token/*", "a place on a frontend's map"),
    // Fights.
    ("HazardInput/dc", "any difficulty"),
    ("ParticipantInput/initiative", "what is beyond a million counts as a million"),
    ("ParticipantInput/initiative_bonus", "what is beyond a million counts as a million"),
    ("ConditionDetailInput/rounds_remaining", "a condition may outlast the fight"),
];

#[test]
fn every_number_of_a_request_has_a_range() {
    let api = document();
    let numbers = walked(&api).numbers;
    assert!(numbers.len() > 80, "{}", numbers.len());
    let is_endless = |name: &str| ENDLESS.iter().any(|(at, _)| names(at, name));
    let without: Vec<_> =
        numbers.iter().filter(|(name, has)| !has && !is_endless(name)).map(|(name, _)| name).collect();
    assert!(without.is_empty(), "no `minimum` and `maximum` in openapi.yaml: {without:#?}");
    for (at, _) in ENDLESS {
        assert!(numbers.iter().any(|(name, has)| !has && names(at, name)), "{at} names no number");
    }
}

/// What is one more than a member's schema allows; none if the member has no such limit.
fn over(schema: &Value) -> Option<Value> {
    let max = |word: &str| schema[word].as_u64().and_then(|max| usize::try_from(max).ok());
    if let Some(bytes) = max(BYTES_WORD).filter(|bytes| *bytes < 1024 * 1024) {
        return Some(if schema["type"] == "array" { super::list(bytes + 1) } else { super::free(bytes + 1) });
    }
    if let Some(items) = max("maxItems") {
        return Some(json!(vec![0; items + 1]));
    }
    max("maxLength").map(|chars| "ä".repeat(chars + 1).into())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_its_limit_is_refused_with_its_pointer() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let api = document();
    let mut tried = 0;
    for (method, path, schemas) in bodies(&api) {
        // A patch is held to the limits of what it leads to: `sent` has those.
        let Some(name) = schemas.iter().find_map(|s| s["$ref"].as_str()?.rsplit('/').next()) else { continue };
        if method == "patch" {
            continue;
        }
        let url = path.replace("{c}", "nowhere").replace("{x}", "00000000-0000-7000-8000-000000000000");
        let schema = &api["components"]["schemas"][name];
        for (member, of) in schema["properties"].as_object().into_iter().flatten() {
            let Some(value) = over(of) else { continue };
            let request = tenant.request(Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(), &url);
            let answer = tenant.send(request.json(&json!({ (member.as_str()): value }))).await;
            let pointer = format!("/{member}");
            assert_eq!(answer.status, 422, "{method} {path} {member}: {}", answer.text);
            assert!(answer.pointers().contains(&pointer.as_str()), "{method} {path} {member}: {}", answer.text);
            tried += 1;
        }
    }
    assert!(tried > 150, "{tried}");
}

/// Where a number is sent, the body with a hole for it, and the number's place in the document.
const NUMBERS: &[(&str, &str, &str)] = &[
    ("/v1/api-keys", r#"{ "name": "A", "scopes": ["read"], "expires_in_seconds": # }"#, "KeyInput/expires_in_seconds"),
    ("/characters", r#"{ "name": "A", "max_hp": # }"#, "CharacterInput/max_hp"),
    ("/characters", r#"{ "name": "A", "max_hp": 100000, "hp": # }"#, "CharacterInput/hp"),
    ("/characters", r#"{ "name": "A", "temp_hp": # }"#, "CharacterInput/temp_hp"),
    ("/characters", r#"{ "name": "A", "armor_class": # }"#, "CharacterInput/armor_class"),
    ("/characters", r#"{ "name": "A", "speed": # }"#, "CharacterInput/speed"),
    ("/characters", r#"{ "name": "A", "level": # }"#, "CharacterInput/level"),
    ("/characters", r#"{ "name": "A", "abilities": { "strength": # } }"#, "Abilities/strength"),
    ("/characters", r#"{ "name": "A", "abilities": { "charisma": # } }"#, "Abilities/charisma"),
    ("/characters", r#"{ "name": "A", "features": [{ "name": "B", "percentage": # }] }"#, "Feature/percentage"),
    (
        "/characters",
        r#"{ "name": "A", "spell_slots": { "1": { "max": 100, "remaining": # } } }"#,
        "SpellSlot/remaining",
    ),
    ("/characters", r#"{ "name": "A", "spell_slots": { "1": { "max": #, "remaining": 0 } } }"#, "SpellSlot/max"),
    ("/characters/player_alice/rest", r#"{ "type": "short", "hit_dice": # }"#, "RestInput/hit_dice"),
    ("/characters/player_alice/rest", r#"{ "type": "short", "recover_slots": [#] }"#, "RestInput/recover_slots[]"),
    ("/npcs", r#"{ "name": "A", "reaction_threshold": # }"#, "NpcInput/reaction_threshold"),
    ("/owners", r#"{ OWNER, "reaction_threshold": # }"#, "OwnerInput/reaction_threshold"),
    ("/owners", r#"{ OWNER, "influence": { "current": #, "max": 1000000 } }"#, "Influence/current"),
    ("/owners", r#"{ OWNER, "influence": { "current": 0, "max": # } }"#, "Influence/max"),
    ("/owners", r#"{ OWNER, "influence": { "regen_per_hour": # } }"#, "Influence/regen_per_hour"),
    ("/lore", r#"{ "title": "A", "scope": "global", "content": "B", "priority": # }"#, "LoreInput/priority"),
    ("/scenes", r#"{ "name": "A", "width": # }"#, "SceneInput/width"),
    ("/scenes", r#"{ "name": "A", "height": # }"#, "SceneInput/height"),
    ("/encounters", r#"{ PEOPLE, "terrain": { "width": # } }"#, "TerrainInput/width"),
    ("/encounters", r#"{ PEOPLE, "terrain": { "height": # } }"#, "TerrainInput/height"),
    ("/encounters", r#"{ "participants": [{ WHO, "max_hp": # }] }"#, "ParticipantInput/max_hp"),
    ("/encounters", r#"{ "participants": [{ WHO, "max_hp": 1000000, "hp": # }] }"#, "ParticipantInput/hp"),
    ("/encounters", r#"{ "participants": [{ WHO, "temp_hp": # }] }"#, "ParticipantInput/temp_hp"),
    ("/encounters", r#"{ "participants": [{ WHO, "armor_class": # }] }"#, "ParticipantInput/armor_class"),
    ("/encounters", r#"{ "participants": [{ WHO, "speed": # }] }"#, "ParticipantInput/speed"),
    ("/encounters", r#"{ "participants": [{ WHO, "attacks_per_action": # }] }"#, "ParticipantInput/attacks_per_action"),
    (
        "/encounters",
        r#"{ "participants": [{ WHO, "saving_throws": { "wisdom": # } }] }"#,
        "ParticipantInput/saving_throws{}",
    ),
    ("/encounters", r#"{ "participants": [{ WHO, "abilities": { "wisdom": # } }] }"#, "Abilities/wisdom"),
    (
        "/encounters",
        r#"{ "participants": [{ WHO, "attacks": [{ "name": "Bite", "damage": "1d6 piercing", "bonus": # }] }] }"#,
        "EncounterAttackInput/bonus",
    ),
    (
        "/encounters",
        r#"{ "participants": [{ WHO, "conditions": [{ "name": "frightened", "save_dc": #, "save_ability": "wisdom" }] }] }"#,
        "ConditionDetailInput/save_dc",
    ),
    (
        "/encounters",
        r#"{ "participants": [{ WHO, "conditions": [{ "name": "exhaustion", "level": # }] }] }"#,
        "ConditionDetailInput/level",
    ),
];

/// The schema at a place such as `RestInput/recover_slots[]`.
fn at<'a>(api: &'a Value, place: &str) -> &'a Value {
    let (schema, member) = place.split_once('/').unwrap();
    let of = &api["components"]["schemas"][schema]["properties"][member.trim_end_matches(['[', ']', '{', '}'])];
    match (member.ends_with("[]"), member.ends_with("{}")) {
        (true, _) => &of["items"],
        (_, true) => &of["additionalProperties"],
        _ => of,
    }
}

/// A body of [`NUMBERS`] with a number in its hole.
fn filled(body: &str, number: &Value) -> Value {
    let who = r#""id": "goblin", "name": "Goblin", "initiative": 1"#;
    let body = body.replace("PEOPLE", r#""participants": [{ WHO }]"#).replace("WHO", who);
    let owner = r#""name": "C", "monitored_aspect": "race", "associated_id": "elf""#;
    serde_json::from_str(&body.replace("OWNER", owner).replace('#', &number.to_string())).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_taken_as_far_as_the_document_says() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let api = document();
    let mut wrong = Vec::new();
    for (path, body, place) in NUMBERS {
        let path = if path.starts_with("/v1/") { (*path).to_owned() } else { world.path(path) };
        let schema = at(&api, place);
        let bounds =
            ["minimum", "maximum"].map(|word| schema[word].as_i64().unwrap_or_else(|| panic!("{place} has no {word}")));
        let [least, most] = bounds;
        for number in [least - 1, most + 1] {
            let answer = tenant.post(&path, filled(body, &number.into())).await;
            if answer.status != 422 {
                wrong.push(format!("{place}: {number} is answered with {}: {:.200}", answer.status, answer.text));
            }
        }
        // What is at its limit may have to fit to something else, but is no number that cannot be.
        if path.ends_with("/rest") {
            continue;
        }
        for number in bounds {
            let answer = tenant.post(&path, filled(body, &number.into())).await;
            if answer.status != 201 {
                wrong.push(format!("{place}: {number} is answered with {}: {:.200}", answer.status, answer.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
