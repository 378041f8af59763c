//! The prompt lab: what would be told, why, what an edit would change, what the model says; and nothing is written.

use edge::users::Role;
use rehearsal::{Reply, Script};
use serde_json::json;

use super::{go, is_sound, picture, signed_in};
use crate::support::{Server, counts};

#[tokio::test(flavor = "multi_thread")]
async fn it_shows_the_prompt_and_why_each_entry_is_in_or_out() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let lore = json!({ "title": "The lighthouse", "scope": "global", "content": "Its lamp <b>never</b> goes out.", "activation": "keyword",
        "keys": ["lighthouse"] });
    world.post("/lore", lore).await.expect(201);
    let Some(browser) = signed_in(&acme, Role::Editor).await else { return };
    go(&browser, &acme, "lab").await;
    browser.choose("#entity", "npc:innkeeper_bob").await;
    browser.choose("#player", "player_alice").await;
    browser.write("#action", "I ask about the harbour.").await;
    browser.click(".lab button").await;
    browser.sees("#why summary", "Other entries that are out").await;
    browser.js("document.querySelector('#why details').open = true").await;
    browser.sees("#why details", "keyword: none of its keys was met").await;
    browser.sees("#why details", "about the location harbour, which concerns nobody here").await;
    browser.write("#action", "I ask about the lighthouse.").await;
    browser.click(".lab button").await;
    browser.sees("#lore", "1 of them activated by keywords").await;
    browser.sees("mark", "lighthouse").await;
    browser.sees("main", "The prompt:").await;
    // A search of the entries says why each is in or out.
    browser.write("#find", "lighth").await;
    browser.until("one entry", "return document.querySelectorAll('#why tbody tr').length === 1").await;
    browser.sees("#why", "keyword: activated this turn, about everything").await;
    browser.write("#find", "harbour").await;
    browser.sees("#why", "about the location harbour").await;
    picture(&browser, "lab").await;
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })").await;
    browser.sees("main", "goes out.").await;
    // Word for word what the API says.
    let preview = world.prompt("innkeeper_bob", "player_alice", "I ask about the lighthouse.").await;
    let last = preview["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    let shown = browser.js("return [...document.querySelectorAll('details pre')].pop().textContent").await;
    assert_eq!(shown.as_str().unwrap().trim_end(), last.trim_end());
    is_sound(&browser).await;
    // Asked, the model answers and nothing is done.
    let memory = json!({ "player_id": "player_alice", "memory_string": "<i>Asks</i> about the light." });
    server
        .model
        .set_script(Script::replies([Reply::text("It burns, <b>always</b>.").with_tool("NPC_memorize", memory)]));
    let before = counts(&server).await;
    browser.click("button[formaction$='/ask']").await;
    browser.sees("#said", "It burns, <b>always</b>.").await;
    browser.sees("#said", "NPC_memorize").await;
    picture(&browser, "lab-said").await;
    let mut after = counts(&server).await;
    assert_eq!(after.insert("usage_entry".to_owned(), before["usage_entry"]), Some(before["usage_entry"] + 1));
    assert_eq!(after, before);
    is_sound(&browser).await;
    browser.resize(500, 900).await;
    is_sound(&browser).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_looked_at_before_it_is_saved() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    // A prompt that is held ready.
    world.bob("player_alice", "Good evening.").await.expect(200);
    let Some(browser) = signed_in(&acme, Role::Editor).await else { return };
    go(&browser, &acme, "lore/the_reach").await;
    let before = counts(&server).await;
    browser.write("#content", "The Reach is <u>warm</u> now.").await;
    browser.click("#entry button[formaction]").await;
    browser.sees("#draft", "This comparison saves nothing.").await;
    browser.sees("#draft", "global lore").await;
    browser.sees("#draft", "The Reach is a cold sea.").await;
    browser.sees("#draft", "warm").await;
    picture(&browser, "lab-draft").await;
    is_sound(&browser).await;
    browser.choose("#entity", "npc:innkeeper_bob").await;
    browser.click(".lab button").await;
    browser.sees("#draft", "Innkeeper Bob for Alice").await;
    // For somebody else, with the same edit.
    browser.choose("#entity", "npc:harbour_ilse").await;
    browser.click(".lab button").await;
    browser.sees("#draft", "warm").await;
    assert_eq!(counts(&server).await, before);
    assert_eq!(world.get("/lore/the_reach").await.body["content"], "The Reach is a cold sea.");
    // What the server holds ready was not touched by it.
    let preview = world.prompt("innkeeper_bob", "player_alice", "Hello").await;
    assert!(preview["messages"].to_string().contains("cold sea") && !preview["messages"].to_string().contains("warm"));
    // Back to the form with the edit, and once more here; then it is saved.
    browser.click("#draft button[formaction*=go_on]").await;
    browser.sees(".done", "These changes are not saved yet.").await;
    assert_eq!(browser.value("#content").await, "The Reach is <u>warm</u> now.");
    browser.click("#entry button[formaction]").await;
    browser.sees("#draft", "This comparison saves nothing.").await;
    browser.click("#draft button:not(.quiet)").await;
    browser.sees(".done", "The entry was saved.").await;
    assert_eq!(world.get("/lore/the_reach").await.body["content"], "The Reach is <u>warm</u> now.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_past_turn_stands_beside_what_it_would_be_now() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    world.bob("player_alice", "Good evening.").await.expect(200);
    world.patch("/lore/the_reach", json!({ "content": "The Reach is warm." })).await.expect(200);
    let Some(browser) = signed_in(&acme, Role::Editor).await else { return };
    go(&browser, &acme, "lab").await;
    browser.click("#again button").await;
    browser.sees("#past", "with the world as it is now").await;
    let changed = "return [...document.querySelectorAll('#past tr')].filter((row) => row.innerText.includes('changed')).map((row) => row.cells[0].innerText)";
    let changed = browser.js(changed).await;
    assert!(changed.as_array().unwrap().contains(&json!("global lore")), "{changed}");
    assert!(!changed.as_array().unwrap().contains(&json!("personality")), "{changed}");
    assert_eq!(browser.value("#action").await, "Good evening.");
    picture(&browser, "lab-past").await;
    is_sound(&browser).await;
}

/// What autosave has stored meanwhile is still a part of the edit that is compared.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_was_saved_by_itself_is_looked_at_too() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let Some(browser) = signed_in(&acme, Role::Editor).await else { return };
    go(&browser, &acme, "lore/the_reach").await;
    browser.write("#content", "The Reach is warm now.").await;
    browser.sees("#saved", "Saved").await;
    assert_eq!(world.get("/lore/the_reach").await.body["content"], "The Reach is warm now.");
    browser.click("#entry button[formaction]").await;
    browser.sees("#draft", "The Reach is a cold sea.").await;
    browser.sees("#draft", "The Reach is warm now.").await;
    assert_eq!(world.get("/lore/the_reach").await.body["content"], "The Reach is warm now.");
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_compared_with_parameters_that_are_not_saved() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    for slug in ["cold", "warm"] {
        let parameters = json!({ "temperature": 0.1, "seed": 7 });
        let profile = json!({ "slug": slug, "name": slug, "parameters": parameters });
        acme.post("/v1/models", profile).await.expect(201);
    }
    let Some(browser) = signed_in(&acme, Role::Editor).await else { return };
    go(&browser, &acme, "lab?entity=npc:innkeeper_bob&player=player_alice&action=I%20knock.").await;
    browser.js("document.querySelector('#trial').open = true").await;
    for value in ["", "cold", "warm"] {
        browser.click(&format!("input[name=profile][value='{value}']")).await;
    }
    browser.write("#parameters", "{\"temperature\": 9}").await;
    browser.click("button[formaction$='/ask']").await;
    browser.sees("main .alert", "must be from 0 to 2").await;
    assert_eq!(server.model.requests().len(), 0);
    browser.write("#parameters", "{\"temperature\": 1.25, \"seed\": null}").await;
    server.model.set_script(Script::replies([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]));
    let before = counts(&server).await;
    browser.click("button[formaction$='/ask']").await;
    browser.until("three answers", "return document.querySelectorAll('#said .side').length === 3").await;
    browser.sees("#said", "the usual model").await;
    for text in ["One.", "Two.", "Three.", "cold", "warm"] {
        browser.sees("#said", text).await;
    }
    picture(&browser, "lab-sides").await;
    is_sound(&browser).await;
    let requests = server.model.requests();
    assert!(
        requests.iter().all(|request| request["temperature"] == 1.25 && request.get("seed").is_none()),
        "{requests:?}"
    );
    let mut after = counts(&server).await;
    assert_eq!(after.insert("usage_entry".to_owned(), before["usage_entry"]), Some(before["usage_entry"] + 3));
    assert_eq!(after, before);
    assert_eq!(acme.get("/v1/models/warm").await.expect(200).body["parameters"]["temperature"], 0.1);
    // The request to copy is the one that a turn would send.
    let path = browser.js("return document.querySelector(\"a[href*='request.json']\").getAttribute('href')").await;
    browser.goto(&format!("{}{}", server.url, path.as_str().unwrap())).await;
    let copied = browser.js("return document.body.textContent").await;
    let copied: serde_json::Value = serde_json::from_str(copied.as_str().unwrap()).unwrap();
    server.model.set_script(Script::replies([Reply::text("Four.")]));
    world.bob("player_alice", "I knock.").await.expect(200);
    let mut sent = server.model.requests().pop().unwrap();
    sent.as_object_mut().unwrap().remove("prompt_cache_key");
    assert_eq!(copied, sent);
}
