//! The way of a card: imported, accepted, greeted by it, answered, tried again with another profile, chosen among; in the browser.

use edge::users::Role;
use rehearsal::{Reply, Script};
use serde_json::json;

use super::{go, is_sound, picture, signed_in};
use crate::support::Server;

fn says(text: &str, memory: &str) -> Reply {
    Reply::text(text).with_tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": memory }))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_tried_again_until_it_is_right() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let profile = json!({ "slug": "warm", "name": "Warm", "parameters": { "temperature": 1.5 } });
    acme.post("/v1/models", profile).await.expect(201);
    server.model.set_script(Script::replies([
        says("First.", "one"),
        Reply::text(""),
        says("Second.", "two"),
        Reply::text(""),
        says("Third.", "three"),
        Reply::text(""),
        Reply::text("And more."),
    ]));
    let first = world.bob("player_alice", "I knock.").await.expect(200).id();
    let Some(browser) = signed_in(&acme, Role::Editor).await else { return };
    for (answer, model) in [("Second.", "warm"), ("Third.", "")] {
        if answer == "Second." {
            go(&browser, &acme, &format!("turns/{first}")).await;
        }
        browser.js("document.querySelector('#again').open = true").await;
        browser.choose("#model", model).await;
        browser.write("#hint", "Shorter.").await;
        browser.click("#again form[action$='/again'] button").await;
        browser.sees("#narrative", answer).await;
    }
    browser.sees(".attempts", "3").await;
    picture(&browser, "attempts").await;
    is_sound(&browser).await;
    browser.click(".attempts a:nth-of-type(2)").await;
    browser.sees("#narrative", "Second.").await;
    browser.sees(".title", "not chosen").await;
    browser.click(".attempts button").await;
    browser.sees(".done", "This answer is chosen now.").await;
    let memories = world.memories("npcs/innkeeper_bob", "player_alice").await;
    assert_eq!(memories.last().unwrap(), "two");
    assert!(!memories.iter().any(|memory| memory == "one" || memory == "three"), "{memories:?}");
    browser.js("document.querySelector('#again').open = true").await;
    browser.write("#corrected", "Second, corrected.").await;
    browser.click("#again form[action$='/correct'] button").await;
    browser.sees("#narrative", "Second, corrected.").await;
    browser.sees(".title", "corrected").await;
    browser.js("document.querySelector('#again').open = true").await;
    browser.click("#again form[action$='/continue'] button").await;
    browser.sees("#narrative", "And more.").await;
}
