//! Editing lore and memories: many entries at once, what a row was before, links, what is there, and memories moved about.

mod bulk;
mod links;
mod lists;
mod memories;
mod memory_rows;
mod patterns;
mod revisions;

use serde_json::{Value, json};

use crate::support::{Answer, Server, World};

/// Entries written straight into the table: `count` of them, `entry_00000` and on.
pub async fn entries(server: &Server, world: &World<'_>, count: i32, content: &str) {
    let campaign: uuid::Uuid = world.get("").await.expect(200).id().parse().unwrap();
    let mut db = server.owner().await;
    sqlx::query(
        "INSERT INTO lore (tenant_id, campaign_id, id, slug, title, scope, associated_id, associated_key, content, tags, \
             priority, enabled, secret, known_by, activation, keys, secondary_keys, logic, scan_depth, ai_lock, tokens) \
         SELECT $1, $2, uuid7(), 'entry_' || lpad(n::text, 5, '0'), 'Entry ' || n, \
             CASE WHEN n % 2 = 0 THEN 'global' ELSE 'zone' END, CASE WHEN n % 2 = 1 THEN 'harbour' END, \
             CASE WHEN n % 2 = 1 THEN 'harbour' ELSE '' END, $4 || ' ' || n, '[\"old\"]', n, true, false, '{}', 'always', \
             '[]', '[]', 'and_any', 2, false, 10 \
         FROM generate_series(0, $3 - 1) AS n",
    )
    .bind(world.client.tenant)
    .bind(campaign)
    .bind(count)
    .bind(content)
    .execute(&mut db)
    .await
    .unwrap();
}

async fn bulk(world: &World<'_>, body: Value) -> Answer {
    world.post("/lore/bulk", body).await
}

async fn entry(world: &World<'_>, slug: &str) -> Value {
    world.get(&format!("/lore/{slug}")).await.expect(200).body
}

fn global(title: &str, content: &str) -> Value {
    json!({ "title": title, "scope": "global", "content": content })
}
