//! Query parameters with values that nobody means well: every GET of the document, every parameter, and none is a fault of ours.

use base::clock;
use futures_util::{StreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};
use time::{Duration, UtcOffset};

use crate::support::{Rows, Server};

/// Values as they stand in a query string.
const NASTY: &[&str] = &[
    "",
    "0",
    "-0",
    "-1",
    "1.5",
    "1e309",
    "-1e309",
    "NaN",
    "inf",
    "201",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
    "0001-01-01",
    "0000-01-01",
    "-0001-01-01",
    "%2B999999-12-31",
    "9999-12-31",
    "10000-01-01",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-23:59",
    "9999-12-31T23:59:60Z",
    "0000-01-01T00:00:00%2B23:59",
    "0001-01-01T00:00:00%2B23:59",
    "9999-12-31T23:59:59.999999999Z",
    "2026-02-30",
    "%00",
    "a%00b",
    "%FF%FE",
    "%C0%AF",
    "%ED%A0%80",
    "%F0%9F%8E%B2",
    "%E2%80%AE%E2%80%8B",
    "%F4%90%80%80",
    "'%3B--",
    "%25",
    "%25%25%5C",
    "%5C",
    "_",
    "%26a%3Db",
    "%0D%0Ax%3A%20y",
    "null",
    "true",
    "%5B%5D",
    "%7B%7D",
    "-",
    "--created_at",
    "created_at%2Cname",
    "..%2F..%2F",
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "eyJ2IjoiMSIsImkiOiJ4IiwiZiI6IiJ9",
    "%28%28%28%28",
    "*",
    "%3A*",
    "a%26%21%7C",
    "%22%22",
    "<b>",
];

/// Parameters that many lists have, also where the document names none.
const COMMON: &[&str] = &["limit", "cursor", "q", "updated_since", "sort", "after", "from", "to", "nobody_knows_this"];

#[tokio::test(flavor = "multi_thread")]
async fn no_value_of_a_query_parameter_is_a_fault_of_ours() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "x").await;
    let long = "%C3%A4".repeat(1500);
    let mut asked: Vec<String> = Vec::new();
    let mut operations = 0;
    let document = serde_json::to_value(tavernkeep::routes::document()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        if item.get("get").is_none() || !path.starts_with("/v1/") || path.ends_with("/bridge") {
            continue;
        }
        operations += 1;
        let parameters = item["get"]["parameters"].as_array().into_iter().flatten().map(|parameter| {
            let place = parameter["$ref"].as_str().map(|place| place.trim_start_matches('#'));
            place.map_or(parameter, |place| document.pointer(place).unwrap())
        });
        let named = parameters.filter(|parameter| parameter["in"] == "query");
        let mut names: Vec<&str> = named.map(|parameter| parameter["name"].as_str().unwrap()).collect();
        let place = rows.path(path);
        // Some routes need a parameter.
        let (place, needed) = place.split_once('?').unwrap_or((&place, ""));
        for name in &names {
            let needed = if needed.starts_with(&format!("{name}=")) { "" } else { needed };
            let with = |query: String| format!("{place}?{query}{}{needed}", if needed.is_empty() { "" } else { "&" });
            asked.extend(NASTY.iter().map(|value| with(format!("{name}={value}"))));
            asked.push(with(format!("{name}={long}")));
            asked.push(with(format!("{name}=1&{name}=2")));
            asked.push(with((*name).to_owned()));
        }
        // What the document does not name.
        names.clear();
        for name in COMMON {
            asked.extend(
                ["", "-1", "9999-12-31", "%00", "99999999999999999999"].map(|value| format!("{place}?{name}={value}")),
            );
        }
        // Spans of time that end before they begin, and all there is.
        asked.push(format!("{place}?from=9999-12-31&to=0001-01-01"));
        asked.push(format!("{place}?from=0001-01-01&to=9999-12-31"));
    }
    assert!(operations > 40, "{operations} operations");
    let tenant = &tenant;
    let faults: Vec<String> = stream::iter(asked)
        .map(async |path| match tenant.request(Method::GET, &path).send().await {
            // The rest of a stream is not waited for.
            Ok(answer) if answer.status() == 400 || answer.status() == 422 => {
                let text = answer.text().await.unwrap_or_default();
                let problem: Value = serde_json::from_str(&text).unwrap_or_default();
                let asked = path.split_once('?').unwrap().1;
                let named = problem["errors"].as_array().into_iter().flatten().any(|error| {
                    let name = error["pointer"].as_str().unwrap_or_default().trim_start_matches('/');
                    asked.split('&').any(|one| one.split('=').next() == Some(name))
                });
                (!named).then(|| format!("{path} does not name what it refuses: {text}"))
            }
            Ok(answer) if answer.status().as_u16() < 500 => None,
            Ok(answer) => Some(format!("{path}: {} {}", answer.status(), answer.text().await.unwrap_or_default())),
            Err(error) => Some(format!("{path}: {error}")),
        })
        .buffer_unordered(8)
        .filter_map(async |fault| fault)
        .collect()
        .await;
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults[..faults.len().min(40)].join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_up_to_the_last_day_there_is() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.bob("player_alice", "Hello.").await.expect(200);
    for to in ["9999-12-31", "9999-12-31T23:59:59.999999Z"] {
        let usage = tenant.get(&format!("/v1/usage?from=0001-01-01&to={to}")).await.expect(200);
        assert_eq!(usage.items().len(), 1, "{}", usage.text);
    }
    tenant.get("/v1/usage?to=9999-12-31T23:59:59-23:59").await.problem(400, "bad_request");
    tenant.get("/v1/npcs").await.problem(404, "not_found");
}

#[test]
fn no_time_from_outside_is_beyond_the_end() {
    for text in ["9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59+23:59", "0000-01-01T00:00:00Z"] {
        let time = clock::parse(text).unwrap();
        assert_eq!(time.offset(), UtcOffset::UTC);
        for days in [1, -1, 1_000_000_000, -1_000_000_000] {
            let later = clock::later(time, Duration::days(days));
            assert_eq!(later >= time, days > 0, "{text} and {days} days");
        }
    }
    for text in ["9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00+23:59", "", "soon", "1"] {
        assert_eq!(clock::parse(text), None, "{text}");
    }
    assert!(clock::parse_day("9999-12-31").is_some());
    for text in ["10000-01-01", "9999-12-31T23:59:59-23:59", "2026-02-30", ""] {
        assert_eq!(clock::parse_day(text), None, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_of_other_methods_are_named_too() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let place = |rest: &str| format!("/v1/campaigns/{}{rest}", world.slug);
    for (method, path, name) in [
        (Method::POST, "/v1/campaigns/import?dry_run=perhaps".to_owned(), "dry_run"),
        (Method::POST, place("/import/lorebook?names=x"), "names"),
        (Method::POST, place("/import/character-card?dry_run="), "dry_run"),
        (Method::DELETE, place("/characters/player_alice?erase=perhaps"), "erase"),
        (Method::DELETE, place("/characters/player_alice?erase=true&also=a"), "also"),
        (Method::GET, place("/memories?source=dream"), "source"),
        (Method::GET, place("/memories?sort=priority"), "sort"),
        (Method::GET, "/v1/usage?from=2026-01-02&to=2026-01-01".to_owned(), "from"),
        (Method::GET, "/v1/usage?to=soon".to_owned(), "to"),
    ] {
        let request = tenant.request(method, &path).header("content-type", "application/json");
        let answer = request.body("{}").send().await.unwrap();
        let (status, problem): (_, Value) = (answer.status(), answer.json().await.unwrap());
        assert_eq!((status.as_u16(), &problem["errors"][0]["pointer"]), (400, &json!(name)), "{path}: {problem}");
    }
    let known = tenant.get(&place("/memories?source=editor")).await.expect(200);
    assert_eq!(known.items().len(), 0);
}
