//! Where a character is: with this the table begins.

use serde_json::json;

use super::{ALICE, Guest, says, sit_down, token};
use crate::{
    admin::words,
    support::{Server, World},
};

/// The part of a page that describes the location.
fn location(page: &str) -> &str {
    let (_, rest) = page.split_once("<details id=\"location\"").unwrap_or_else(|| panic!("{page}"));
    rest.split_once("</details>").unwrap().0
}

/// The names below each heading of the panel.
fn panel(page: &str) -> Vec<(String, Vec<String>)> {
    let (_, rest) = page.split_once("<section id=\"here\"").unwrap();
    let panel = rest.split_once("</section>").unwrap().0;
    let name = |link: &str| link.split_once("dir=\"auto\">").unwrap().1.split_once("</span>").unwrap().0.to_owned();
    let group = |text: &str| {
        let (heading, people) = text[2..].split_once("</h").unwrap();
        (heading.to_owned(), people.split("<a ").skip(1).map(name).collect())
    };
    panel.split("<h").skip(1).map(group).collect()
}

async fn tells(world: &World<'_>, title: &str, content: &str, rest: serde_json::Value) {
    let mut entry = json!({ "title": title, "scope": "zone", "associated_id": "Town Square", "content": content });
    entry.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    world.post("/lore", entry).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_begins_with_the_location() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let page = alice.page().await;
    let shown = words(location(&page)).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(shown, "Starting Room Here: Mallory Look around Listen Find a way out");
    assert!(
        location(&page).starts_with(" class=\"location\"") && page.contains("sse-swap=\"location\" open>"),
        "{page}"
    );
    let group = |heading: &str, names: &[&str]| {
        (heading.to_owned(), names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(panel(&page), [group("Who is here", &["Mallory"]), group("Others", &["Innkeeper Bob"])]);
    assert!(page.contains("<optgroup label=\"Others\"><option value=\"innkeeper_bob\" selected>"), "{page}");

    // Of what everybody may know about the place, its most important text is told.
    let evil = "<img src=http://e.test/x.png>";
    world.patch("/characters/player_alice", json!({ "location": "Town Square" })).await.expect(200);
    world
        .patch("/npcs/harbour_ilse", json!({ "location": "town-square", "greetings": ["Hm."], "name": evil }))
        .await
        .expect(200);
    let told = format!("# A place\n\n![](http://e.test) {{{{user}}}} *knows* it. {evil}\n\nMore.");
    tells(&world, "The stones", &told, json!({ "priority": 7 })).await;
    tells(&world, "The vault", "A vault is below.", json!({ "priority": 9, "secret": true })).await;
    tells(&world, "The war", "It burns.", json!({ "priority": 8, "enabled": false })).await;
    let page = alice.page().await;
    let shown = location(&page);
    assert!(shown.contains("<b dir=\"auto\">Town Square</b>"), "as it is written: {shown}");
    assert!(shown.contains("<p dir=\"auto\">Alice knows it.") && !shown.contains("More."), "{shown}");
    assert!(!page.contains("<img src") && !page.contains("vault") && !page.contains("It burns"), "{page}");
    assert!(shown.contains("Get to know &#60;img") && !shown.contains("Innkeeper Bob"), "{shown}");
    assert_eq!(
        panel(&page).iter().map(|(heading, names)| (heading.as_str(), names.len())).collect::<Vec<_>>(),
        [("Who is here", 1), ("Others", 1), ("Other characters of the game", 1)]
    );
    // Without a script, what one could do is a link that fills in the fields.
    let (_, link) = shown.split_once("href=\"").unwrap();
    let link = link.split_once('"').unwrap().0.replace("&#38;", "&");
    let filled = alice.get(&link).await.expect(200).text;
    assert!(filled.contains("<option value=\"harbour_ilse\" data-greets=\"1\" selected>"), "{link}: {filled}");
    assert!(filled.contains("Good day. Who are you?</textarea>"), "{filled}");
    let filled = alice.get("/play/port-town?to=&text=%3C%2Ftextarea%3E").await.expect(200).text;
    assert!(filled.contains("&#60;/textarea&#62;</textarea>"), "{filled}");
    assert!(!filled.contains("\" selected>"), "everyone at the table: {filled}");

    // Nobody can ask the dead.
    let (stats, alive) = (json!({ "hp": 0, "max_hp": 7 }), json!({ "hp": 7, "max_hp": 7 }));
    world.patch("/npcs/harbour_ilse", json!({ "stats": stats })).await.expect(200);
    let page = alice.page().await;
    assert!(!location(&page).contains("Get to know") && page.contains("does not answer now"), "{page}");
    world.patch("/npcs/harbour_ilse", json!({ "stats": alive, "location": null })).await.expect(200);

    // Who is nowhere begins with the world. Whoever fights has other things to do, and a paused AI cannot be asked.
    world
        .patch(
            "",
            json!({ "description": "A *cold* coast.", "settings": { "ai_paused": { "entities": ["innkeeper_bob"] } } }),
        )
        .await
        .expect(200);
    world.patch("/characters/player_alice", json!({ "location": null })).await.expect(200);
    let page = alice.page().await;
    assert!(
        location(&page).contains("A cold coast.") && location(&page).contains(">port-town</b></summary>"),
        "{page}"
    );
    assert!(location(&page).contains("Get to know") && !location(&page).contains("Innkeeper Bob"), "{page}");
    assert_eq!(panel(&page)[0].0, "People", "{page}");
    let fight = json!({ "participants": [{ "id": "alice", "character_id": ALICE, "initiative": 12 }] });
    world.post("/encounters", fight).await.expect(201);
    let page = alice.page().await;
    assert!(!location(&page).contains("class=\"offers\"") && !page.contains("sse-swap=\"location\" open>"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_location_follows_the_character() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    browser.sees("#location", "Starting Room").await;
    world.patch("/characters/player_alice", json!({ "location": "town_square" })).await.expect(200);
    browser.sees("#location", "No blades in the square.").await;
    world.patch("/lore/the_square", json!({ "content": "Blades everywhere." })).await.expect(200);
    browser.sees("#location", "Blades everywhere.").await;
    world.patch("/npcs/harbour_ilse", json!({ "location": "town_square" })).await.expect(200);
    browser.sees("#location", "Here: Ilse").await;
    // What one could do is written, not done, and takes the place only of what was offered.
    browser.click("#location [data-to='harbour_ilse']").await;
    assert_eq!(browser.value("#text").await, "What is new?");
    browser.click("#location li:last-child a").await;
    let offered = browser.value("#text").await;
    assert!(offered.contains("listen"), "{offered}");
    assert_ne!(browser.value("#to").await, "harbour_ilse");
    browser.click("#here [data-to='innkeeper_bob']").await;
    assert_eq!(browser.value("#text").await, offered, "who is chosen afterwards is asked the same");
    browser.write("#text", "I knock.").await;
    browser.click("#location [data-to='harbour_ilse']").await;
    let kept = (browser.value("#text").await, browser.value("#to").await);
    assert_eq!(kept, ("I knock.".to_owned(), "harbour_ilse".to_owned()));
    // It is open where somebody comes to, and closed by the first words and in a fight.
    let open = |is: bool| {
        browser.until(format!("open: {is}"), format!("return document.getElementById('location').open === {is}"))
    };
    browser.click("#location summary").await;
    open(false).await;
    world.patch("/characters/player_alice", json!({ "location": "harbour" })).await.expect(200);
    browser.sees("#location", "Harbour").await;
    open(true).await;
    // What has not changed is not shown again.
    browser.js("document.querySelector('#location a').focus(); window.offer = document.activeElement").await;
    world.patch("/npcs/innkeeper_bob", json!({ "name": "Bob" })).await.expect(200);
    browser.sees("#here", "Bob").await;
    assert_eq!(browser.js("return document.activeElement === window.offer").await, true);
    let fight = json!({ "participants": [{ "id": "alice", "character_id": ALICE, "initiative": 12 }] });
    world.post("/encounters", fight).await.expect(201);
    open(false).await;
    says(&world, json!({ "content": "It rains." })).await;
    browser.sees("#said", "It rains.").await;
    browser.until("the fight and the rain", "return document.querySelectorAll('#said article').length === 2").await;
}
