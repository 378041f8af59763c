//! How it looks: a desktop's table fits the screen, a phone's does not run over its edge.

use serde_json::json;

use super::{ALICE, says, sit_down};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn the_table_fits_the_screen() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for n in 0..40 {
        let text = format!("{n}: {} {}", "The rain goes on.".repeat(n % 5), "x".repeat(n * 5));
        says(&world, json!({ "content": text, "speaker": { "name": "Maya" } })).await;
    }
    let fight = json!({ "name": "On the pier", "participants": [
        { "id": "alice", "character_id": ALICE, "initiative": 12 },
        { "id": "orc", "name": "A goblin with a very long name indeed", "hp": 7, "max_hp": 7, "armor_class": 13, "is_enemy": true, "initiative": 19 },
    ] });
    world.post("/encounters", fight).await.expect(201);
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    let sizes = "const root = document.documentElement, log = document.getElementById('log'); \
        return [root.scrollHeight <= innerHeight, root.scrollWidth <= innerWidth, \
            document.querySelector('.roll').getBoundingClientRect().bottom <= innerHeight, \
            log.scrollHeight - log.scrollTop - log.clientHeight < 2, log.clientHeight > 150]";
    for (width, height, fits_whole) in [(1200, 900, true), (1024, 700, true), (500, 850, false)] {
        browser.resize(width, height).await;
        browser.goto(&format!("{}/play/port-town", server.url)).await;
        let fits = browser.js(sizes).await;
        assert_eq!(fits, json!([fits_whole, true, true, true, true]), "{width} x {height}");
    }
    // What comes does not move away what is being read further up.
    browser.resize(1200, 900).await;
    browser.js("document.getElementById('log').scrollTop = 0").await;
    browser.until("scrolled", "return document.getElementById('log').scrollTop === 0").await;
    browser
        .js("window.drawn = 0; const count = () => { if (++window.drawn < 6) requestAnimationFrame(count) }; count()")
        .await;
    browser.until("drawn", "return window.drawn >= 6").await;
    says(&world, json!({ "content": "One more." })).await;
    browser.sees("#said", "One more.").await;
    assert_eq!(browser.js("return document.getElementById('log').scrollTop").await, 0);
    assert_eq!(browser.screenshot().await[..4], *b"\x89PNG");
}
