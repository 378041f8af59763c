//! Erasure: a player's and a user's words leave every table. The whole database is looked through for them afterwards, as a dump
//! shows it.

mod characters;
mod places;
mod users;
mod ways;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgConnection, Row};

use crate::support::{Client, Server, World, until};

/// Words that nobody else would write.
const NAME: &str = "Zephyrine Quillfeather";
const SLUG: &str = "zephyrine";
const PLAYER: &str = "Oswaldine Tammerick";
const CONFESSION: &str = "I buried the heptagonal locket under grandmother's birch";
const STORY: &str = "Raised by lamplighters on the quays of Umberhollow, she never forgave the tide";

/// Everything that is kept: every row of every table as text.
async fn kept(db: &mut PgConnection) -> Vec<(String, String)> {
    let tables = sqlx::query(
        "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace",
    )
    .fetch_all(&mut *db)
    .await
    .unwrap();
    let mut all = Vec::new();
    for table in tables {
        let table: String = table.get(0);
        let bodies = if table == "idempotency" { "|| coalesce(encode(t.body, 'escape'), '')" } else { "" };
        let sql = AssertSqlSafe(format!("SELECT to_jsonb(t)::text {bodies} FROM \"{table}\" t"));
        let rows = sqlx::query(sql).fetch_all(&mut *db).await.unwrap();
        all.extend(rows.iter().map(|row| (table.clone(), row.get::<String, _>(0))));
    }
    all
}

/// Where words stand, whatever their case.
async fn found(server: &Server, words: &[&str]) -> Vec<String> {
    let rows = kept(&mut server.owner().await).await;
    let mut places: Vec<String> = Vec::new();
    for word in words {
        let word = word.to_lowercase();
        places.extend(
            rows.iter()
                .filter(|(_, row)| row.to_lowercase().contains(&word))
                .map(|(table, row)| format!("{word} in {table}: {row}")),
        );
    }
    places
}

/// Nothing is left of these words, neither for a look at every table nor in a dump, if there is a program that makes one.
async fn assert_gone(server: &Server, words: &[&str]) {
    let left = found(server, words).await;
    assert!(left.is_empty(), "{} places are left: {:#?}", left.len(), left.iter().take(5).collect::<Vec<_>>());
    let Ok(dump) = tokio::process::Command::new("pg_dump").arg(&server.db.url).output().await else { return };
    if !dump.status.success() {
        // An older program than the server makes none.
        return;
    }
    let dump = String::from_utf8_lossy(&dump.stdout).to_lowercase();
    for word in words {
        assert!(!dump.contains(&word.to_lowercase()), "a dump says {word}");
    }
}

/// A person in a campaign of others.
fn sheet() -> Value {
    json!({ "slug": SLUG, "name": NAME, "player_name": PLAYER, "race": "human", "profession": "Rogue", "hp": 20, "max_hp": 20,
        "location": "starting_room", "weapons": [{ "name": "Dagger" }], "extensions": { "story": STORY }, "external_ref": format!("sheet-{SLUG}") })
}

async fn person(world: &World<'_>) -> String {
    world.post("/characters", sheet()).await.expect(201).id()
}

/// Erases somebody, however long that takes.
async fn erased(world: &World<'_>, x: &str, rest: &str) {
    finished(world.client, erase(world, x, rest).await).await;
}

/// Waits for the erasure that an answer is about.
async fn finished(client: &Client<'_>, answer: crate::support::Answer) {
    match answer.status {
        202 => {
            assert_eq!(answer.body["status"], "running");
            done(client, answer.header("location")).await;
        }
        _ => drop(answer.expect(204)),
    }
}

async fn erase(world: &World<'_>, x: &str, rest: &str) -> crate::support::Answer {
    world.delete(&format!("/characters/{x}?erase=true{rest}")).await
}

/// Waits until an erasure that was begun is done.
async fn done(client: &Client<'_>, path: &str) {
    until("the end of the erasure", || async { client.get(path).await.expect(200).body["status"] == "done" }).await;
}
