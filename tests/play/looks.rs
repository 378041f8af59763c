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
    for (width, height) in [(1200, 900), (1024, 700), (500, 850)] {
        browser.resize(width, height).await;
        browser.goto(&format!("{}/play/port-town", server.url)).await;
        let fits = browser.js(sizes).await;
        assert_eq!(fits, json!([true, true, true, true, true]), "{width} x {height}");
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

/// A phone: the composer is at the thumb, the words fill the screen, and everything else is one tap away.
#[tokio::test(flavor = "multi_thread")]
async fn a_phone_shows_one_thing_at_a_time() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    browser.narrow(Some(360)).await;
    let shown = "return ['.log', '.composer', '#sheet', '#fights', '#here'].map((css) => document.querySelector(css).checkVisibility())";
    assert_eq!(browser.js(shown).await, json!([true, true, false, false, false]));
    let fills = "const [log, composer] = ['.log', '.composer'].map((css) => document.querySelector(css).getBoundingClientRect()); \
        return [log.height > innerHeight * 0.4, innerHeight - composer.bottom < 16, document.documentElement.scrollWidth <= innerWidth]";
    assert_eq!(browser.js(fills).await, json!([true, true, true]));
    browser.sees("label[for='view-sheet']", "100/100").await;
    world.patch("/characters/player_alice", json!({ "hp": 41 })).await.expect(200);
    browser.sees("label[for='view-sheet']", "41/100").await;
    assert_eq!(browser.js("return document.querySelector('[for=view-fights]').checkVisibility()").await, json!(false));
    let participants = json!([{ "id": "alice", "character_id": ALICE, "initiative": 12 }]);
    let fight = json!({ "name": "On the pier", "participants": participants });
    let id = world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    let hurt = json!({ "action": "damage", "target_id": "alice", "amount": 9 });
    world.post(&format!("/encounters/{id}/actions"), hurt).await.expect(200);
    browser.sees("label[for='view-sheet']", "32/100").await;
    browser.sees("#fights", "On the pier").await;
    for (view, seen) in [
        ("view-sheet", json!([false, false, true, false, false])),
        ("view-here", json!([false, false, false, false, true])),
        ("view-fights", json!([true, false, false, true, false])),
        ("view-talk", json!([true, true, false, false, false])),
    ] {
        browser.click(&format!("label[for='{view}']")).await;
        assert_eq!(browser.js(shown).await, seen, "{view}");
    }
    browser.narrow(None).await;
    assert_eq!(browser.js(shown).await, json!([true, true, true, true, true]));
    // Who was looking at the fight when it ended can talk again.
    browser.narrow(Some(360)).await;
    browser.click("label[for='view-fights']").await;
    world.post(&format!("/encounters/{id}/end"), json!({ "outcome": "fled" })).await.expect(200);
    browser.until("the end", "return !document.querySelector('#fights h2')").await;
    assert_eq!(browser.js(shown).await, json!([true, true, false, false, false]));
    browser.narrow(None).await;
}
