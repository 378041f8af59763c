//! What a player does, in a real browser.

use rehearsal::{Reply, Script};
use serde_json::json;

use super::{ALICE, sit_down};
use crate::support::{Server, until};

const TALE: &str = "The harbour? Nobody goes there after dark, says Bob, not since the Seagull sank.";

#[tokio::test(flavor = "multi_thread")]
async fn a_player_sits_down_talks_and_leaves() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    assert_eq!(browser.url().await, format!("{}/play/port-town", server.url), "the token is gone from the address bar");
    assert!(browser.text("#sheet").await.contains("Alice"));
    assert_eq!(browser.js("return document.cookie").await, "", "no script reads the visit");

    let slow = Reply::text(TALE).delta_chars(4).chunk_bytes(150).chunk_delay_ms(150);
    server.model.set_script(Script::replies([slow, Reply::text("At once.")]));
    browser.choose("#to", "innkeeper_bob").await;
    browser.write("#text", "I ask about the harbour.").await;
    browser.click(".say button").await;
    browser.sees("#pending", "The harbour?").await;
    assert!(!browser.text("#pending").await.contains("sank."), "it comes in pieces");
    assert_eq!(browser.value("#text").await, "", "what was sent is gone from the field");
    browser.sees("#said", "sank.").await;
    browser.until("nothing pending", "return !document.querySelector('#pending article')").await;
    let text = browser.text("#log").await;
    assert_eq!((text.matches(TALE).count(), text.matches("I ask about the harbour.").count()), (1, 1), "{text}");

    // One that is over before the browser has heard that it began. Enter sends.
    browser.write("#text", "Again?\n").await;
    browser.sees("#said", "At once.").await;
    browser.until("nothing pending", "return !document.querySelector('#pending article')").await;
    assert_eq!(browser.text("#log").await.matches("At once.").count(), 1);

    // To everyone: no model is asked.
    let asked = server.model.requests().len();
    browser.choose("#to", "").await;
    browser.write("#text", "Good night.").await;
    browser.click(".say button").await;
    browser.sees("#said", "Good night.").await;
    assert_eq!(server.model.requests().len(), asked);
    assert_eq!(browser.text("#alert").await, "");

    browser.click(".play header button").await;
    browser.until("the question", "return document.getElementById('leave')").await;
    browser.click("#leave button").await;
    browser.until("the door", "return document.getElementById('enter')").await;
    browser.goto(&format!("{}/play/port-town", server.url)).await;
    assert_eq!(browser.count("#log").await, 0, "the visit is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_is_greeted_and_tries_an_answer_again() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("/npcs/innkeeper_bob", json!({ "greetings": ["Welcome, {{user}}."] })).await.expect(200);
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    assert!(!browser.js("return document.getElementById('meet').hidden").await.as_bool().unwrap());
    browser.click("#meet button").await;
    browser.sees("#said", "Welcome, Alice.").await;
    browser.until("greeted once", "return document.getElementById('meet').hidden").await;
    server.model.set_script(Script::replies([Reply::text("First."), Reply::text("Second.")]));
    browser.write("#text", "I ask about the harbour.").await;
    browser.click(".say button").await;
    browser.sees("#said", "First.").await;
    browser.click("#said article:last-child .retry form[action$='/again'] button").await;
    browser.sees("#said", "Second.").await;
    browser
        .until("the first to be gone", "return !document.querySelector('#said').textContent.includes('First.')")
        .await;
    browser.sees("#said article:last-child", "2 of 2").await;
    browser.click("#said article:last-child button[aria-label='Previous attempt']").await;
    browser.sees("#said article:last-child", "First.").await;
    browser.sees("#said article:last-child", "1 of 2").await;
    let text = browser.text("#said").await;
    assert_eq!((text.matches("I ask about the harbour.").count(), text.contains("Second.")), (1, false), "{text}");
    assert_eq!(browser.text("#alert").await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_rolls_dice() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    browser.write("#formula", "2d6+").await;
    browser.click(".roll button").await;
    browser.until("an alert", "return document.querySelector('#alert .alert')").await;
    assert_eq!(browser.value("#formula").await, "2d6+", "what was wrong stays to be mended");
    assert_eq!(browser.count("#said article").await, 0);
    browser.write("#formula", "2d20kh1 + 3").await;
    browser.click(".roll button").await;
    browser.until("the dice", "return document.querySelectorAll('#said .die').length === 2").await;
    assert_eq!((browser.text("#alert").await.as_str(), browser.count("#said .die.dropped").await), ("", 1));
    let kept = world.get("/messages").await.expect(200);
    let total = kept.items()[0]["roll"]["total"].to_string();
    assert_eq!(browser.text("#said .dice strong").await, total);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_fails_says_so_and_gives_the_words_back() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    server.model.set_script(Script::replies([Reply::status(500), Reply::text("Now I hear you.")]));
    browser.choose("#to", "innkeeper_bob").await;
    browser.write("#text", "Can you hear me?").await;
    browser.click(".say button").await;
    browser.sees("#pending .alert", "There was no answer.").await;
    browser.until("the words", "return document.getElementById('text').value === 'Can you hear me?'").await;
    assert_eq!(browser.count("#said article").await, 0);
    assert_eq!(browser.count(".coming").await, 0, "nothing is waited for");
    browser.click(".say button").await;
    browser.sees("#said", "Now I hear you.").await;
    assert_eq!(browser.count("#pending article").await, 0, "what failed has been said again");
    // What cannot begin is said where the player writes, and the words stay.
    let slow = Reply::text("Hm.").held();
    server.model.set_script(Script::always(slow));
    let asked = server.model.request_count();
    let (_, ()) = tokio::join!(world.bob(ALICE, "First."), async {
        until("the question", async || server.model.request_count() > asked).await;
        browser.write("#text", "Second.").await;
        browser.click(".say button").await;
        browser.until("an alert", "return document.querySelector('#alert .alert')").await;
        assert_eq!(browser.value("#text").await, "Second.");
        server.model.let_go(1);
    });
}

/// Emphasis and quotes are marked while they come and afterwards, and no markup of a model or a player survives.
#[tokio::test(flavor = "multi_thread")]
async fn marks_are_shown_and_markup_is_not() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    let tale = "*He* **nods** <b>slowly</b>.\n\n\"Sit.\" ![x](http://e.test/x.png) And so on.";
    let slow = Reply::text(tale).delta_chars(3).chunk_bytes(150).chunk_delay_ms(100);
    server.model.set_script(Script::always(slow));
    browser.choose("#to", "innkeeper_bob").await;
    browser.write("#text", "*I bow.* \"Ale!\"").await;
    browser.click(".say button").await;
    browser.sees("#pending .coming em", "He").await;
    assert_eq!(browser.text("#pending .words em").await, "I bow.");
    browser.sees("#said .message.ai .quote", "\"Sit.\"").await;
    assert_eq!(browser.text("#said .message.player .quote").await, "\"Ale!\"");
    let paragraphs = browser.text("#said .message.ai").await;
    assert!(
        paragraphs.contains("He nods <b>slowly</b>.") && paragraphs.contains("![x](http://e.test/x.png)"),
        "{paragraphs}"
    );
    assert_eq!(
        (browser.count("#said .message.ai > p").await, browser.count("#log img, #log .message p b").await),
        (2, 0)
    );
}
