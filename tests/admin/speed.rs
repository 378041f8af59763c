//! Pages of a large world are as quick as those of a small one.

use std::time::{Duration, Instant};

use edge::users::Role;
use pages::admin::PAGES;
use sqlx::Executor;

use super::{Visitor, is_stream};
use crate::support::{Rows, Server};

const SERVER_TIME_MAX: Duration = Duration::from_millis(50);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures time, so it is run by hand: `./dev test admin::speed -- --ignored --nocapture`"]
async fn every_page_of_a_large_world_is_quick() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "large").await;
    let mut db = server.owner().await;
    for statement in [
        "ALTER TABLE lore DISABLE TRIGGER USER",
        "ALTER TABLE memory DISABLE TRIGGER USER",
        "INSERT INTO lore (tenant_id, id, campaign_id, slug, title, scope, associated_key, content, tags, priority, enabled, secret, \
            known_by, activation, keys, secondary_keys, logic, scan_depth, ai_lock, tokens) \
         SELECT tenant_id, uuid7(), campaign_id, 'l' || n, 'Entry ' || n, 'global', '', repeat('The sea is cold. ', 20), '[]', 0, true, \
            false, '{}', 'keyword', '[\"sea\"]', '[]', 'and_any', 4, false, 100 \
         FROM lore, generate_series(1, 10000) AS n WHERE slug = 'the_reach'",
        "INSERT INTO memory (tenant_id, id, campaign_id, holder_type, holder_id, subject_id, text, source) \
         SELECT n.tenant_id, uuid7(), n.campaign_id, 'npc', n.id, c.id, 'I remember number ' || i, 'personal' \
         FROM npc n JOIN character c ON c.slug = 'player_alice', generate_series(1, 100000) AS i WHERE n.slug = 'innkeeper_bob'",
        "ALTER TABLE lore ENABLE TRIGGER USER",
        "ALTER TABLE memory ENABLE TRIGGER USER",
        "ANALYZE",
    ] {
        db.execute(statement).await.unwrap();
    }
    let owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let mut slow = Vec::new();
    // A download of the whole world is no page.
    for page in
        PAGES.iter().filter(|page| page.method == "GET" && !page.path.ends_with(".json") && !is_stream(page.path))
    {
        let path = rows.path(&format!("/admin{}", page.path));
        let mut best = Duration::MAX;
        for _ in 0..4 {
            let begun = Instant::now();
            let shown = owner.send(owner.request("GET", &path)).await;
            assert!(shown.status < 500, "{path}: {}", shown.status);
            best = best.min(begun.elapsed());
        }
        println!("{:>6.1} ms  {}", best.as_secs_f64() * 1000.0, page.path);
        if best > SERVER_TIME_MAX {
            slow.push((page.path, best));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}
