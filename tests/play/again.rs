//! What a player does with an answer, in a real browser and by plain forms: trying it again, letting it go on, stopping it.

use rehearsal::{Reply, Script};
use serde_json::json;

use super::{ALICE, Guest, MALLORY, says, sit_down, token};
use crate::support::{Server, World, browser::Browser};

const AGAIN: &str = "#said .retry:not([hidden]) form[action$='/again'] button";

/// The texts of the log, in order.
async fn log(browser: &Browser) -> Vec<String> {
    let texts = "return [...document.querySelectorAll('#said article:not([data-pending]) > p:not(.alert)')].map((p) => p.textContent)";
    serde_json::from_value(browser.js(texts).await).unwrap()
}

async fn is_log(browser: &Browser, lines: &[&str]) {
    let lines = json!(lines);
    let is_so = format!(
        "return JSON.stringify([...document.querySelectorAll('#said article:not([data-pending]) > p:not(.alert)')].map((p) => p.textContent)) === '{lines}' \
         && !document.querySelector('.pale, [data-pending]')"
    );
    browser.until(format!("the log {lines}"), is_so).await;
}

/// Alice has asked Bob, and has his answer. Then others speak.
async fn asked(world: &World<'_>) {
    world.client.server.model.set_script(Script::replies([Reply::text("First."), Reply::text("For Mallory.")]));
    world.bob(ALICE, "I ask about the harbour.").await.expect(200);
    world.bob(MALLORY, "I order ale.").await.expect(200);
    says(world, json!({ "content": "Silence." })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_attempt_comes_into_the_place_of_the_former() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    asked(&world).await;
    let (Some(browser), Some(mallory)) = (sit_down(&tenant, ALICE).await, sit_down(&tenant, MALLORY).await) else {
        return;
    };
    let before = ["I ask about the harbour.", "First.", "I order ale.", "For Mallory.", "Silence."];
    assert_eq!(log(&browser).await, before);
    assert_eq!((browser.count(AGAIN).await, mallory.count(AGAIN).await), (1, 1), "each for the own conversation");
    server.model.set_script(Script::always(Reply::text("Second.").held()));
    browser.click(AGAIN).await;
    // The question stands, the former answer is pale, and the next one is announced beside it under the right name.
    browser.sees("#said .pending", "Innkeeper Bob").await;
    for page in [&browser, &mallory] {
        page.until("the former to be pale", "return document.querySelector('.message.ai.pale')").await;
        assert_eq!(log(page).await, before);
    }
    assert_eq!(browser.text(".pale + .pending b").await, "Innkeeper Bob");
    let is_hidden = format!("return document.querySelector(\"{AGAIN}\").offsetParent === null");
    assert_eq!(browser.js(&is_hidden).await, true, "the button is hidden with what is pale");
    server.model.let_go(1);
    let after = ["I ask about the harbour.", "Second.", "I order ale.", "For Mallory.", "Silence."];
    is_log(&browser, &after).await;
    is_log(&mallory, &after).await;
    browser.sees("#said .retry", "2 of 2").await;
    // Who comes later reads it there, too; the API lists what was written last at the end.
    mallory.goto(&format!("{}/play/port-town", server.url)).await;
    is_log(&mallory, &after).await;
    let guest = Guest::seated(&server, &token(&tenant, MALLORY).await).await;
    for path in ["story", "story.html", "story.md"] {
        let page = guest.get(&format!("/play/port-town/{path}")).await.expect(200).text;
        let places: Vec<_> = after.iter().map(|line| page.find(line)).collect();
        assert!(places.is_sorted() && places.iter().all(Option::is_some), "{path}: {page}");
    }
    let newest = world.get("/messages?sort=-created_at&limit=1").await.expect(200);
    assert_eq!(newest.items()[0]["content"], "Second.");
    mallory.goto(&format!("{}/play/port-town", server.url)).await;
    is_log(&mallory, &after).await;
    // Choosing the former one puts it into the same place.
    browser.click("#said button[aria-label='Previous attempt']").await;
    is_log(&browser, &before).await;
    is_log(&mallory, &before).await;
    browser.sees("#said .retry", "1 of 2").await;
    assert_eq!(browser.text("#alert").await, "");
}

/// An attempt that fails, or that is stopped, leaves the former one.
#[tokio::test(flavor = "multi_thread")]
async fn the_former_answer_is_back_if_the_attempt_comes_to_nothing() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    asked(&world).await;
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    let before = log(&browser).await;
    server.model.set_script(Script::always(Reply::status(500)));
    browser.click(AGAIN).await;
    browser.sees("#said .pending .alert", "There was no answer.").await;
    browser.until("the former one", "return !document.querySelector('.pale')").await;
    assert_eq!((log(&browser).await, browser.value("#text").await.as_str()), (before.clone(), ""));
    // Stopped in the middle of a word.
    let slow = Reply::text("Let me think about it for a while.").delta_chars(4).chunk_bytes(150).chunk_delay_ms(1000);
    server.model.set_script(Script::always(slow));
    browser.click(AGAIN).await;
    browser.until("one attempt", "return document.querySelectorAll('#said .pending').length === 1").await;
    browser.sees("#said .pending .coming", "Let").await;
    browser.click("#said .stop button").await;
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    is_log(&browser, &before).await;
    assert_eq!((browser.text("#alert").await.as_str(), browser.count(AGAIN).await), ("", 1));
    // A question that is stopped is back in the field.
    server.model.set_script(Script::always(Reply::text("Never.").held()));
    browser.choose("#to", "innkeeper_bob").await;
    browser.write("#text", "And the mill?").await;
    browser.click(".say button").await;
    browser.click("#pending .stop button").await;
    browser.until("the words", "return document.getElementById('text').value === 'And the mill?'").await;
    browser.until("nothing pending", "return !document.querySelector('[data-pending]')").await;
    is_log(&browser, &before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_goes_on_in_a_line_of_its_own() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    asked(&world).await;
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    server.model.set_script(Script::always(Reply::text("And more.").held()));
    browser.click("#said .retry:not([hidden]) form[action$='/continue'] button").await;
    browser.sees("#pending .pending", "Innkeeper Bob").await;
    server.model.let_go(1);
    let lines = ["I ask about the harbour.", "First.", "I order ale.", "For Mallory.", "Silence.", "And more."];
    is_log(&browser, &lines).await;
    assert_eq!(browser.count(AGAIN).await, 1, "of this conversation, the last answer alone");
    assert_eq!(browser.count("#said article:last-child .retry:not([hidden])").await, 1);
    browser.goto(&format!("{}/play/port-town", server.url)).await;
    is_log(&browser, &lines).await;
    // What is undone makes the answer before it the last one.
    let turn = world.get("/turns?sort=-created_at&limit=1").await.expect(200).items()[0]["id"].clone();
    world.post(&format!("/turns/{}/undo", turn.as_str().unwrap()), json!({})).await.expect(200);
    is_log(&browser, &lines[..5]).await;
    assert_eq!(browser.count(AGAIN).await, 1);
}

/// By plain forms. A button that comes too late, or is another's, says so and changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn buttons_work_without_a_script_and_late_ones_are_refused() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    asked(&world).await;
    let turns = world.get("/turns?sort=created_at").await.expect(200);
    let of = |n: usize| turns.items()[n]["id"].as_str().unwrap().to_owned();
    let (own, others) = (of(0), of(1));
    let guest = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let press = async |turn: &str, what: &str| {
        guest.send(guest.form(&format!("/play/port-town/turns/{turn}/{what}"), &[])).await
    };
    let page = guest.page().await;
    assert!(page.contains(&format!("/turns/{own}/continue")) && !page.contains(&format!("/turns/{others}/")), "{page}");
    server.model.set_script(Script::always(Reply::text("More.")));
    assert_eq!(press(&own, "continue").await.expect(303).header("location"), "/play/port-town");
    super::forms::shows(&guest, "More.").await;
    for (turn, what, status) in [
        (&own, "again", 409),
        (&own, "continue", 409),
        (&own, "stop", 409),
        (&others, "again", 404),
        (&others, "stop", 404),
        (&others, "choose", 404),
        (&"nonsense".to_owned(), "again", 404),
    ] {
        let refused = press(turn, what).await.expect(status);
        assert!(refused.text.contains("class=\"alert\"") || status == 404, "{what}: {}", refused.text);
    }
    let messages = world.get("/messages").await.expect(200);
    assert_eq!(messages.items().iter().filter(|m| m["author"] == "ai").count(), 3);
}

/// What is set aside and comes back in no form is taken out of every page.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_without_words_leaves_nothing_pale() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    asked(&world).await;
    let Some(mallory) = sit_down(&tenant, MALLORY).await else { return };
    server.model.set_script(Script::always(Reply::text("").held()));
    let turn = world.get("/turns?sort=created_at&limit=1").await.expect(200).items()[0]["id"].clone();
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let again = format!("/play/port-town/turns/{}/again", turn.as_str().unwrap());
    alice.send(alice.form(&again, &[])).await.expect(303);
    mallory.until("the former to be pale", "return document.querySelector('.message.ai.pale')").await;
    server.model.let_go(1);
    crate::support::until("the attempt to end", async || {
        let attempts = world.get("/turns?sort=-created_at&limit=1").await.expect(200);
        attempts.items()[0]["parent_turn_id"] == turn && attempts.items()[0]["status"] != "running"
    })
    .await;
    // With what happens next.
    says(&world, json!({ "content": "A dog barks." })).await;
    mallory.sees("#said", "A dog barks.").await;
    says(&world, json!({ "content": "And another one." })).await;
    mallory.sees("#said", "And another one.").await;
    mallory.until("nothing pale", "return !document.querySelector('.pale')").await;
}

/// A connection that is lost in the middle of an answer begins it anew, with its marks.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_read_again_from_its_first_word() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    server.model.set_script(Script::always(Reply::text("*He nods.* Sit.").delta_chars(3)));
    let turn = world.bob(ALICE, "I knock.").await.expect(200).id();
    let path = format!("/play/port-town/turns/{turn}");
    let told = alice.get(&path).await.expect(200).text;
    assert!(told.contains("<em>He nods.</em>"), "{told}");
    let ids: Vec<&str> =
        told.lines().filter_map(|line| line.strip_prefix("id: ").or(line.strip_prefix("id:"))).collect();
    assert_eq!(ids.len(), 1, "only the end has an id: {told}");
    let over = alice.http().get(format!("{}{path}", server.url)).header("cookie", alice.cookie());
    let over = alice.send(over.header("last-event-id", ids[0].trim())).await;
    assert_eq!(over.status, 204, "who has heard the end comes back no more");
}
