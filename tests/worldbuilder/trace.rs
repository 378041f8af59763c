//! A turn's trace, the way back, and a copy from there; and the whole way of somebody who never saw it.

use edge::users::Role;
use rehearsal::{Reply, Script};
use serde_json::json;

use super::{go, is_sound, picture, signed_in};
use crate::support::{Server, browser::file};

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_read_undone_and_forked() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let Some(browser) = signed_in(&acme, Role::Editor).await else { return };
    let memory = json!({ "player_id": "player_alice", "memory_string": "Pays <b>well</b>." });
    server.model.set_script(Script::replies([
        Reply::tool("NPC_memorize", memory.clone()),
        Reply::text("<script>window.pwned = 1</script> Thanks."),
    ]));
    let turn = world.bob("player_alice", "I pay <i>twice</i>.").await.expect(200).id();
    go(&browser, &acme, "turns").await;
    browser.click("tbody a").await;
    browser.sees("h1", "Innkeeper Bob for Alice").await;
    browser.sees("#narrative", "<script>window.pwned = 1</script> Thanks.").await;
    browser.sees("#calls", "NPC_memorize").await;
    browser.sees("main", "I pay <i>twice</i>.").await;
    browser.sees("main", "Model calls: 2").await;
    browser.sees("main", "Changes in the journal").await;
    browser.sees("main", "The Reach").await;
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })").await;
    is_sound(&browser).await;
    picture(&browser, "turn").await;
    browser.resize(500, 900).await;
    is_sound(&browser).await;
    browser.resize(1200, 900).await;
    // Somebody corrects the memory: what came after stands in the way, and is named.
    let found = world.get("/npcs/innkeeper_bob/memories?player_id=player_alice&sort=-created_at").await.expect(200);
    let id = found.items()[0]["id"].as_str().unwrap().to_owned();
    world.patch(&format!("/memories/{id}"), json!({ "text": "Pays well, once." })).await.expect(200);
    browser.click("form[action$='/undo'] button").await;
    browser.sees("#conflicts a", "Pays well, once.").await;
    browser.sees("#conflicts", "1 change came after the turn").await;
    picture(&browser, "turn-conflict").await;
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.len(), 2);
    browser.click("button[name=rest]").await;
    browser.sees(".done", "except for rows that were changed since").await;
    let kept = ["Initial impression: Seems friendly.", "Pays well, once."];
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await, kept);
    // A copy of the world after the turn, in which it is still as the turn left it.
    browser.click("form[action$='/fork'] button").await;
    browser.sees(".done", "This is the fork").await;
    // A turn that nobody touched since goes back whole.
    server.model.set_script(Script::replies([Reply::tool("NPC_memorize", memory), Reply::text("Again?")]));
    let second = world.bob("player_alice", "I pay again.").await.expect(200).id();
    assert_ne!(turn, second);
    go(&browser, &acme, &format!("turns/{second}")).await;
    browser.click("form[action$='/undo'] button").await;
    browser.sees(".done", "The turn was undone").await;
    browser.sees(".title", "undone").await;
    assert_eq!(browser.count("form[action$='/undo']").await, 0);
    // What is gone is not led to.
    browser.sees("#calls", "NPC_memorize").await;
    assert_eq!(browser.count("#calls a").await, 0);
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_lorebook_to_an_undone_turn() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let Some(browser) = signed_in(&acme, Role::Editor).await else { return };
    for (name, bytes) in [
        ("tides.json", &include_bytes!("../interchange/golden/world-info.json")[..]),
        ("maren.json", &include_bytes!("../interchange/golden/card.json")[..]),
    ] {
        go(&browser, &acme, "npcs").await;
        browser
            .js("[...document.querySelectorAll('.rail a')].find((a) => a.innerText === 'Import, export').click()")
            .await;
        browser.sees("h1", "Import and export").await;
        browser.upload("#file", &file(name, bytes)).await;
        browser.click("form[enctype] button").await;
        browser.sees("main", "Nothing has been written yet.").await;
        browser.click("form.buttons button").await;
        browser.sees(".done", "was imported").await;
    }
    // An entry is edited: what would change is looked at first, then it is saved.
    go(&browser, &acme, "lore/the_lamp").await;
    browser.write("#content", "The lamp burns whale oil, and whoever keeps it dreams of whales.").await;
    browser.click("#entry button[formaction]").await;
    browser.sees("#draft", "This comparison saves nothing.").await;
    picture(&browser, "walk-draft").await;
    let lamp = world.get("/lore/the_lamp").await.expect(200);
    assert!(lamp.body["content"].as_str().unwrap().contains("buys at night"), "{}", lamp.text);
    go(&browser, &acme, "lore/the_lamp").await;
    browser.write("#content", "The lamp burns whale oil, and whoever keeps it dreams of whales.").await;
    browser.click("#entry .buttons button:not([formaction])").await;
    browser.until("saved", "return document.querySelector('.done, #saved')?.innerText.length > 0").await;
    // The lab says why the lamp is in: she is asked about it.
    go(&browser, &acme, "lab").await;
    browser.choose("#entity", "npc:maren_tidewater").await;
    browser.choose("#player", "player_alice").await;
    browser.write("#action", "Does the lamp burn oil by this light?").await;
    browser.click(".lab button").await;
    browser.sees("table", "The lamp").await;
    browser.sees("mark", "lamp").await;
    browser.sees("#lore", "activated by keywords").await;
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })").await;
    browser.sees("main", "dreams of whales").await;
    // She has no tool to remember with until she is given one.
    world.patch("/npcs/maren_tidewater", json!({ "available_tools": ["NPC_memorize"] })).await.expect(200);
    let memory = json!({ "player_id": "player_alice", "memory_string": "Asks about my lamp." });
    server.model.set_script(Script::replies([Reply::tool("NPC_memorize", memory), Reply::text("Whale oil.")]));
    browser.click("button[formaction$='/turn']").await;
    browser.sees("#narrative", "Whale oil.").await;
    browser.sees("#calls", "open the memory").await;
    let turn = browser.url().await;
    // The memory is read.
    browser.click("#calls a").await;
    browser.until("the memory", "return document.body.innerText.includes('Asks about my lamp.') || [...document.querySelectorAll('textarea')].some((t) => t.value.includes('Asks about my lamp.'))").await;
    picture(&browser, "walk-memory").await;
    browser.goto(&turn).await;
    browser.click("form[action$='/undo'] button").await;
    browser.sees(".done", "The turn was undone").await;
    assert!(world.memories("npcs/maren_tidewater", "player_alice").await.is_empty());
}
