//! A fight at the table in a browser.

use serde_json::json;

use super::{advance, brawling, participant, tenant, town, turn_of};
use crate::{
    play::{Guest, sit_down, token},
    support::Server,
};

const ALICE: &str = "player_alice";

#[tokio::test(flavor = "multi_thread")]
async fn a_form_fights_without_a_script() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let id = brawling(&world).await;
    let guest = Guest::seated(&server, &token(&acme, ALICE).await).await;
    let page = guest.get("/play/port-town").await.expect(200).text;
    assert!(page.contains("<option value=\"*\" selected>") && !page.contains("Killer"), "{page}");
    let does = async |text: &str| guest.send(guest.form("/play/port-town/say", &[("to", "*"), ("text", text)])).await;
    let unclear = does("I attack the thug").await.expect(200);
    assert!(unclear.text.contains("Whom do you mean: Thug 1 or Thug 2?"), "{}", unclear.text);
    does("I attack thug 2").await.expect(303);
    assert_eq!(participant(&world, &id, "alice").await["statistics"]["attacks_made"], 1);
    let spent = does("I attack thug 2 again").await.expect(200);
    assert!(spent.text.contains("no action left"), "{}", spent.text);
    does("I end my turn").await.expect(303);
    assert_eq!(turn_of(&world, &id).await, "mallory");
    let early = does("I attack the dog").await.expect(200);
    assert!(early.text.contains("It is Mallory&#39;s turn."), "{}", early.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_fights_in_a_browser() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    let Some(browser) = sit_down(&acme, ALICE).await else { return };
    assert_eq!(browser.value("#to").await, "innkeeper_bob");
    let fight = json!({ "name": "On the pier", "participants": [
        { "id": "alice", "character_id": ALICE, "initiative": 20 }, super::foe("thug", "Thug", 10) ] });
    let id = super::begin(&world, fight).await;
    browser.sees("#said", "A fight begins: Alice against Thug.").await;
    browser.until("the game is written to", "return document.getElementById('to').value === '*'").await;
    browser.write("#text", "I attack the thug").await;
    browser.click(".say button").await;
    browser.sees("#said", "Alice attacks Thug with Longsword").await;
    assert_eq!(participant(&world, &id, "alice").await["statistics"]["attacks_made"], 1);
    browser.write("#text", "I attack the thug once more").await;
    browser.click(".say button").await;
    browser.sees("#log", "no action left").await;
    browser.write("#text", "I end my turn").await;
    browser.click(".say button").await;
    browser.sees("#fights li[aria-current]", "Thug").await;
    browser.sees("#said", "It is Thug's turn.").await;
    advance(&world, &id).await;
    browser.sees("#fights li[aria-current]", "Alice").await;
    assert!(!browser.html().await.contains("932177"));
    let picture = browser.screenshot().await;
    assert_eq!(picture[..4], *b"\x89PNG");
    // Whom one may write to follows the character.
    world.patch("/characters/player_alice", json!({ "location": "harbour" })).await.expect(200);
    browser.until("Ilse is offered", "return document.querySelector('#to option[value=harbour_ilse]')").await;
    assert_eq!(browser.value("#to").await, "*", "what was chosen stays chosen");
}
