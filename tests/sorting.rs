//! Names sort as people sort them: letters of any case and with any accent together, and 2 before 10.

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::support::{Server, World};

/// In order. What differs only in case or accents is told apart, too: small letters first, plain ones first.
const NAMES: [&str; 20] = [
    "2 crowns",
    "10 crowns",
    "alice",
    "Ålva",
    "bob",
    "Bob",
    "Café",
    "eclair",
    "Éclair",
    "éclair 2",
    "Eclair 10",
    "guard 1",
    "Guard 2",
    "GUARD 10",
    "Ömer",
    "Osgar",
    "Zed",
    "zoe",
    "Zoë",
    "李",
];

/// The path of a list, the member that is its rows' name, and the body of a row of this name.
type Kind = (&'static str, &'static str, fn(&str) -> Value);

/// The labels of a list, read in pages of this size.
async fn listed(world: &World<'_>, list: &str, sort: &str, label: &str, limit: usize) -> Vec<String> {
    let (mut labels, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("{list}?sort={sort}&limit={limit}{cursor}")).await.expect(200).body;
        let items = page["items"].as_array().unwrap();
        labels.extend(items.iter().map(|item| item[label].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return labels,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_sort_as_people_sort_them() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    acme.post("/v1/campaigns", json!({ "name": "Names", "slug": "names" })).await.expect(201);
    let world = World { client: &acme, slug: "names".to_owned() };
    let kinds: [Kind; 6] = [
        ("/characters", "name", |name| json!({ "name": name })),
        ("/npcs", "name", |name| json!({ "name": name, "location": "inn" })),
        ("/owners", "name", |name| json!({ "name": name, "monitored_aspect": "location", "associated_id": "inn" })),
        ("/scenes", "name", |name| json!({ "name": name })),
        ("/lore", "title", |title| json!({ "title": title, "content": "See [[The inn]].", "scope": "global" })),
        (
            "/encounters",
            "name",
            |name| json!({ "name": name, "participants": [{ "id": "goblin", "hp": 7, "max_hp": 7 }] }),
        ),
    ];
    for (list, label, body) in kinds {
        // Neither in order nor in that of their bytes.
        for n in 0..NAMES.len() {
            world.post(list, body(NAMES[n * 7 % NAMES.len()])).await.expect(201);
        }
        for limit in [3, 200] {
            let forward = listed(&world, list, label, label, limit).await;
            assert_eq!(forward, NAMES, "{list} by {limit}");
            let mut backward = listed(&world, list, &format!("-{label}"), label, limit).await;
            backward.reverse();
            assert_eq!(backward, NAMES, "{list} backward by {limit}");
        }
    }
    // Links to an entry are listed in this order, too.
    world.post("/lore", json!({ "title": "The inn", "content": "Warm.", "scope": "global" })).await.expect(201);
    let links = world.get("/lore/the_inn/links").await.expect(200).body;
    let titles: Vec<&str> =
        links["backlinks"].as_array().unwrap().iter().map(|link| link["title"].as_str().unwrap()).collect();
    assert_eq!(titles, NAMES);
}

/// A page of names is read from an index, wherever it begins.
#[tokio::test(flavor = "multi_thread")]
async fn names_are_sorted_by_an_index() {
    let server = Server::start().await;
    let mut db = server.owner().await;
    sqlx::query("SET enable_seqscan = off").execute(&mut db).await.unwrap();
    for (table, name) in [
        ("character", "name"),
        ("npc", "name"),
        ("owner", "name"),
        ("scene", "name"),
        ("encounter", "name"),
        ("lore", "title"),
    ] {
        let id = uuid::Uuid::nil();
        let asked = format!(
            "EXPLAIN SELECT * FROM \"{table}\" WHERE tenant_id = '{id}' AND campaign_id = '{id}' \
               AND ({name} COLLATE natural_order, id) > ('x'::text, '{id}') ORDER BY {name} COLLATE natural_order, id LIMIT 50"
        );
        let plan: Vec<String> = sqlx::query_scalar(AssertSqlSafe(asked)).fetch_all(&mut db).await.unwrap();
        let plan = plan.join("\n");
        let condition = format!("Index Cond: ((tenant_id = '{id}'::uuid) AND (campaign_id = '{id}'::uuid) AND (ROW");
        assert!(plan.contains(&format!("using {table}_{name}")) && plan.contains(&condition), "{plan}");
        assert!(!plan.contains("Sort"), "{plan}");
    }
}
