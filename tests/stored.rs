//! What is stored may be older than the code, or damaged: it is read without panics, and what cannot be read costs itself alone.

use serde_json::json;
use sqlx::AssertSqlSafe;

use crate::support::Server;

/// A number that PostgreSQL keeps and that nobody reads as a double.
const POISON: &str = r#"{"n": 1e400}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_costs_itself_and_not_its_list() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for n in 0..3 {
        let message = json!({ "content": format!("Message {n}."), "extensions": { "n": n } });
        world.post("/messages", message).await.expect(201);
        world.post("/scenes", json!({ "name": format!("Scene {n}") })).await.expect(201);
        world
            .post("/lore", json!({ "title": format!("Entry {n}"), "scope": "global", "content": "Text." }))
            .await
            .expect(201);
    }
    let mut db = server.owner().await;
    for (table, column, of) in [
        ("message", "extensions", "content = 'Message 1.'"),
        ("scene", "extensions", "name = 'Scene 1'"),
        ("lore", "extensions", "title = 'Entry 1'"),
        ("character", "extensions", "slug = 'player_mallory'"),
    ] {
        let sql = format!("UPDATE {table} SET {column} = '{POISON}' WHERE {of}");
        let changed = sqlx::query(AssertSqlSafe(sql)).execute(&mut db).await.unwrap();
        assert_eq!(changed.rows_affected(), 1, "{table}");
    }
    for (list, others) in [("/messages", 2), ("/scenes", 2), ("/characters", 1)] {
        for limit in [1, 2, 200] {
            // Page by page: whatever page the bad row is on, those behind it are found.
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            for _ in 0..10 {
                let page = world.get(&format!("{list}?limit={limit}{cursor}")).await.expect(200);
                seen.extend(page.items().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
                match page.body["next_cursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
            assert_eq!(seen.len(), others, "{list} by {limit}");
        }
    }
    // By itself it is an error that says no more than others, and the server goes on.
    let mallory = world.get("/characters/player_mallory").await.problem(500, "internal");
    assert_eq!(mallory.body["detail"], "An unexpected error occurred.");
    world.get("/characters/player_alice").await.expect(200);
    world.get("/changes?after=0&limit=200").await.expect(200);
    let metrics = server.anonymous().get("/metrics").await.expect(200).text;
    let unreadable = metrics.lines().find(|line| line.starts_with("tavernkeep_db_rows_unreadable_total")).unwrap();
    assert!(!unreadable.ends_with(" 0"), "{unreadable}");
}
