//! What comes to the table by itself, in a real browser.

use rehearsal::{Reply, Script};
use serde_json::json;

use super::{ALICE, Guest, MALLORY, open_link, says, sit_down, token};
use crate::support::{Prepared, Server, browser::Browser};

#[tokio::test(flavor = "multi_thread")]
async fn what_others_say_appears_and_what_is_taken_back_goes() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mallory = Guest::seated(&server, &token(&tenant, MALLORY).await).await;
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    mallory.send(mallory.form("/play/port-town/say", &[("text", "I open the door.")])).await.expect(303);
    browser.sees("#said", "I open the door.").await;
    says(&world, json!({ "content": "Whisper to Mallory.", "whisper_to": [MALLORY] })).await;
    says(&world, json!({ "content": "A secret roll.", "blind": true })).await;
    says(&world, json!({ "content": "Only you hear this.", "whisper_to": [ALICE], "speaker": { "name": "Maya" } }))
        .await;
    says(&world, json!({ "content": "It creaks.", "speaker": { "name": "Maya" } })).await;
    browser.sees("#said", "It creaks.").await;
    browser.sees("#said", "Only you hear this.").await;
    let html = browser.html().await;
    assert!(!html.contains("Whisper to Mallory.") && !html.contains("A secret roll."), "{html}");
    // Another player's turn, and what is left of it after it was undone.
    server.model.set_script(Script::always(Reply::text("Who are you?")));
    let turn = world.bob(MALLORY, "I greet Bob.").await.expect(200).id();
    browser.sees("#said", "Who are you?").await;
    world.post(&format!("/turns/{turn}/undo"), json!({})).await.expect(200);
    browser.until("it is gone", "return !document.body.innerText.includes('Who are you?')").await;
    assert!(!browser.text("#said").await.contains("I greet Bob."));
    assert!(browser.text("#said").await.contains("It creaks."));
}

/// A corrected answer takes the place of what was read before. So does a message in which words were erased.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_corrected_changes_at_open_tables() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::always(Reply::text("Who are yuo?")));
    let turn = world.bob(ALICE, "I greet Bob.").await.expect(200).id();
    says(&world, json!({ "content": "Mallory looks up.", "speaker": { "name": "Maya" } })).await;
    says(&world, json!({ "content": "Mallory is a spy.", "whisper_to": ["gm"] })).await;
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    browser.sees("#said", "Who are yuo?").await;
    world.patch(&format!("/turns/{turn}"), json!({ "narrative": "Who are <b>you</b>?" })).await.expect(200);
    browser.sees("#said", "Who are <b>you</b>?").await;
    // 202 if it is not done at once.
    let erased = world.delete("/characters/player_mallory?erase=true").await;
    assert!(matches!(erased.status, 202 | 204), "{}", erased.text);
    browser.sees("#said", "[erased] looks up.").await;
    let said = browser.text("#said").await;
    assert!(!said.contains("yuo") && !said.contains("Mallory") && !said.contains("spy"), "{said}");
    let (answer, looks) = (said.find("Who are").unwrap(), said.find("looks up").unwrap());
    assert!(answer < looks, "each stays at its place: {said}");
    // The buttons of the answer stay, and what comes later comes after it, once.
    assert!(browser.html().await.contains(&format!("/play/port-town/turns/{turn}/again")));
    says(&world, json!({ "content": "Silence." })).await;
    browser.sees("#said", "Silence.").await;
    let said = browser.text("#said").await;
    assert!(said.find("looks up").unwrap() < said.find("Silence.").unwrap(), "{said}");
    assert_eq!((said.matches("Who are").count(), said.matches("looks up").count()), (1, 1), "{said}");
}

/// However much changed since a page was made, all of it comes, and a message that was corrected meanwhile comes as both: a page may have
/// it from before. A message whose player was deleted says what it said, and does not come again.
#[tokio::test(flavor = "multi_thread")]
async fn what_changed_before_a_stream_began_comes_whole() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mallory = Guest::seated(&server, &token(&tenant, MALLORY).await).await;
    world.post("/characters", json!({ "slug": "dora", "name": "Dora" })).await.expect(201);
    let quiet = says(&world, json!({ "content": "I am here.", "player_id": "dora" })).await;
    server.model.set_script(Script::always(Reply::text("Who are yuo?")));
    let turn = world.bob(ALICE, "I greet Bob.").await.expect(200).id();
    world.patch(&format!("/turns/{turn}"), json!({ "narrative": "Who are you?" })).await.expect(200);
    world.delete("/characters/dora").await.expect(204);
    for n in 0..60 {
        says(&world, json!({ "content": format!("Message {n}.") })).await;
    }
    let page =
        mallory.http.get(format!("{}/play/port-town/live?after=0", server.url)).header("cookie", &mallory.cookie);
    let mut page = page.send().await.unwrap();
    let mut read = String::new();
    while !read.contains("Message 59.") {
        read.push_str(&String::from_utf8_lossy(&page.chunk().await.unwrap().expect("the stream goes on")));
    }
    let events = events_of(&read);
    let count = |start: &str, words: &str| {
        events.iter().filter(|(_, data)| data.starts_with(start) && data.contains(words)).count()
    };
    for n in 0..60 {
        assert_eq!(count("<article id=", &format!("Message {n}.")), 1, "{n}");
    }
    assert_eq!((count("<article id=", "Who are you?"), count("<article hx-swap-oob", "Who are you?")), (1, 1));
    assert_eq!((count("<article id=", &quiet), count("<article hx-swap-oob", &quiet)), (1, 0));
}

/// What an NPC says by itself comes to the table, and is then part of what was said.
#[tokio::test(flavor = "multi_thread")]
async fn replies_come_to_the_table() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("/characters/player_alice", json!({ "location": "town_square" })).await.expect(200);
    world.patch("/npcs/innkeeper_bob", json!({ "location": "town_square", "reaction_threshold": 5 })).await.expect(200);
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    server.model.set_script(Script::always(Reply::text("I saw that!")));
    world.post("/actions", json!({ "player_id": ALICE, "type": "talk", "text": "She waves." })).await.expect(202);
    browser.sees("#said", "I saw that!").await;
    assert!(!browser.html().await.contains("She waves."), "what the model was told is not for players");
    assert!(world.get("/players/player_alice/replies").await.expect(200).items().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fight_and_the_own_sheet_are_kept_up_to_date() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    assert!(browser.text("#sheet").await.contains("100 of 100"), "{}", browser.text("#sheet").await);
    world
        .patch("/characters/player_alice", json!({ "hp": 41, "conditions": [{ "name": "poisoned" }] }))
        .await
        .expect(200);
    browser.sees("#sheet", "41 of 100").await;
    browser.sees("#sheet", "poisoned").await;
    assert_eq!(browser.count("#fights h2").await, 0);
    let fight = json!({ "name": "On the pier", "participants": [
        { "id": "alice", "character_id": ALICE, "initiative": 12 },
        { "id": "orc", "name": "Orc", "hp": 773131, "max_hp": 779373, "armor_class": 13, "is_enemy": true, "initiative": 19 },
    ] });
    let id = world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    browser.sees("#fights", "On the pier").await;
    browser.sees("#fights li[aria-current]", "Orc").await;
    assert!(browser.text("#fights .fight li:last-child").await.contains("Alice"), "by initiative");
    let actions = format!("/encounters/{id}/actions");
    world.post(&actions, json!({ "action": "advance_turn" })).await.expect(200);
    browser.sees("#fights li[aria-current]", "Alice").await;
    world.post(&actions, json!({ "action": "damage", "target_id": "alice", "amount": 9 })).await.expect(200);
    browser.sees("#fights", "32/100").await;
    world.post(&actions, json!({ "action": "damage", "target_id": "orc", "amount": 100 })).await.expect(200);
    world
        .post(&actions, json!({ "action": "add_condition", "target_id": "orc", "condition": "prone" }))
        .await
        .expect(200);
    browser.sees("#fights li.enemy", "prone").await;
    let reloaded = Guest::seated(&server, &token(&tenant, ALICE).await).await.page().await;
    for html in [browser.html().await, reloaded] {
        // Long enough that no id has them in it by chance.
        for secret in ["773131", "779373", "773031"] {
            assert!(!html.contains(secret), "an enemy's hit points are nobody's business: {html}");
        }
    }
    world.post(&format!("/encounters/{id}/end"), json!({ "outcome": "fled" })).await.expect(200);
    browser.until("the fight is over", "return !document.querySelector('#fights h2')").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_stays_text() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let evil = "<script>window.hurt=1</script><img src=x onerror=window.hurt=1>{{7*7}}<b hx-get=/play/x hx-trigger=load>\"'</p></article>";
    world.patch("/characters/player_alice", json!({ "name": evil, "race": evil, "location": evil })).await.expect(200);
    world.patch("/npcs/innkeeper_bob", json!({ "name": evil })).await.expect(200);
    world
        .post("/lore", json!({ "title": evil, "scope": "global", "content": evil, "activation": "always" }))
        .await
        .expect(201);
    world.patch("", json!({ "name": evil })).await.expect(200);
    says(&world, json!({ "content": evil, "speaker": { "name": evil } })).await;
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    let slow = Reply::text(format!("{evil} data: x\n\nevent: over\r\rSo says the NPC.")).delta_chars(3);
    server.model.set_script(Script::always(slow));
    browser.choose("#to", "innkeeper_bob").await;
    browser.write("#text", evil).await;
    browser.click(".say button").await;
    browser.sees("#said", "So says the NPC.").await;
    browser.until("nothing pending", "return !document.querySelector('#pending article')").await;
    says(&world, json!({ "content": format!("{evil} live"), "speaker": { "name": evil } })).await;
    world
        .patch("/characters/player_alice", json!({ "hp": 5, "conditions": [{ "name": "prone", "source": evil }] }))
        .await
        .expect(200);
    let fight = json!({ "name": evil, "participants": [
        { "id": "alice", "character_id": ALICE, "initiative": 12 },
        { "id": "orc", "name": evil, "hp": 7, "max_hp": 7, "armor_class": 13, "is_enemy": true, "initiative": 19 },
    ] });
    world.post("/encounters", fight).await.expect(201);
    browser.sees("#said", "live").await;
    browser.sees("#sheet", "5 of").await;
    browser.until("the fight", "return document.querySelector('#fights h2')").await;
    assert_eq!(browser.js("return window.hurt ?? null").await, json!(null));
    assert_eq!(browser.count("img, main script, #log b b, [onerror], b[hx-get]").await, 0, "{}", browser.html().await);
    for place in ["#said", "#sheet", "#fights", "header h1"] {
        assert!(browser.text(place).await.contains("<img src=x onerror=window.hurt=1>{{7*7}}<b hx-get"), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_comes_back_without_double_messages() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let Some(browser) = Browser::open().await else { return };
    let mut first = prepared.start(&model).await;
    let address = first.url().strip_prefix("http://").unwrap().to_owned();
    let body = json!({ "scopes": ["read", "play"], "campaign": "port-town", "player_id": ALICE });
    let token = reqwest::Client::new().post(format!("{}/v1/auth/token", first.url())).bearer_auth(&prepared.credential);
    let token: serde_json::Value = token.json(&body).send().await.unwrap().json().await.unwrap();
    browser.goto(&format!("{}/play/port-town#{}", first.url(), token["access_token"].as_str().unwrap())).await;
    browser.until("the table", "return document.getElementById('log')").await;
    first.post("/messages", json!({ "content": "Before." })).await.unwrap().expect(201);
    browser.sees("#said", "Before.").await;
    let said_lost = "return !document.getElementById('connection').hidden";
    assert_eq!(browser.js(said_lost).await, json!(false));
    first.terminate().await;
    assert!(first.stopped().await);
    browser.until("the lost connection is said", said_lost).await;
    browser.write("#text", "Is anybody there?").await;
    browser.click(".say button").await;
    browser.sees("#alert", "cannot be reached").await;
    assert_eq!(browser.value("#text").await, "Is anybody there?");
    let again = prepared.start_with(&model, &[("RUST_LOG", "error"), ("TAVERNKEEP_BIND", &address)]).await;
    again.post("/messages", json!({ "content": "After." })).await.unwrap().expect(201);
    browser.sees("#said", "After.").await;
    browser.until("it is no longer said", format!("return !({})", said_lost.trim_start_matches("return "))).await;
    assert_eq!(browser.text("#said").await.matches("Before.").count(), 1);
    again.post("/messages", json!({ "content": "And on." })).await.unwrap().expect(201);
    browser.sees("#said", "And on.").await;
    let said = browser.text("#said").await;
    assert_eq!((said.matches("After.").count(), said.matches("And on.").count()), (1, 1), "{said}");
    browser.choose("#to", "").await;
    browser.click(".say button").await;
    browser.sees("#said", "Is anybody there?").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visit_that_ends_says_so() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let Some(browser) = Browser::open().await else { return };
    let host = tenant.with_scopes(&[edge::caller::Scope::Read, edge::caller::Scope::Play]).await;
    open_link(&browser, &host, ALICE).await;
    let keys = tenant.get("/v1/api-keys").await.expect(200);
    let prefix = &host.credential[3..11];
    let key = keys.items().iter().find(|key| key["prefix"].as_str().unwrap().contains(prefix)).unwrap();
    tenant.delete(&format!("/v1/api-keys/{}", key["id"].as_str().unwrap())).await.expect(204);
    says(&world, json!({ "content": "Not for you." })).await;
    browser.sees("#alert", "Your visit is over.").await;
    assert!(!browser.html().await.contains("Not for you."));
    // Nor is there a seat for somebody who is no more.
    open_link(&browser, &tenant, MALLORY).await;
    browser.sees("#sheet", "Mallory").await;
    world.delete("/characters/player_mallory").await.expect(204);
    browser.sees("#alert", "Your visit is over.").await;
    let page = format!("{}/play/port-town", server.url);
    browser.goto(&page).await;
    browser.until("the door", "return document.getElementById('enter')").await;
}

/// The names and data of the events in a stream, read as WHATWG HTML says: CR, LF and CR LF end lines.
fn events_of(stream: &str) -> Vec<(String, String)> {
    let lines = stream.replace("\r\n", "\n").replace('\r', "\n");
    let field = |event: &str, name: &str| {
        let values = event.split('\n').filter_map(|line| line.strip_prefix(name));
        values.map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned()).collect::<Vec<_>>().join("\n")
    };
    lines.split("\n\n").map(|event| (field(event, "event:"), field(event, "data:"))).collect()
}

/// What some reader takes for the end of a line, besides LF.
const ENDINGS: [char; 8] = ['\r', '\u{85}', '\u{2028}', '\u{2029}', '\u{b}', '\u{c}', '\u{1c}', '\u{1e}'];

/// No text ends an event or begins one, however its lines end: also one that was stored before texts were checked.
#[tokio::test(flavor = "multi_thread")]
async fn no_text_becomes_an_event() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mallory = Guest::seated(&server, &token(&tenant, MALLORY).await).await;
    let mut db = server.owner().await;
    let mut words = Vec::new();
    let endings = ENDINGS.map(String::from).into_iter().chain(["\r\n".to_owned(), "\n".to_owned()]);
    for (n, end) in endings.enumerate() {
        let content = format!("Alpha{n}{end}{end}event: over{end}data: Go away{n}.{end}{end}id: 7{end}Bravo{n}");
        let id = says(&world, json!({ "content": format!("placeholder {n}") })).await;
        let older = "UPDATE message SET content = $2 WHERE id = $1::uuid";
        sqlx::query(older).bind(&id).bind(&content).execute(&mut db).await.unwrap();
        words.extend([format!("Alpha{n}"), format!("Go away{n}."), format!("Bravo{n}")]);
    }
    let page =
        mallory.http.get(format!("{}/play/port-town/live?after=0", server.url)).header("cookie", &mallory.cookie);
    let mut page = page.send().await.unwrap();
    assert_eq!(page.status(), 200);
    // What a player can say today.
    let alice = tenant.token(json!({ "campaign": "port-town", "player_id": ALICE })).await;
    let said =
        json!({ "player_id": ALICE, "arguments": { "message": "Charlie\rDelta\r\revent: over\rdata: Off.\r\rEcho" } });
    alice.post("/v1/campaigns/port-town/commands/ooc", said).await.expect(200);
    words.extend(["Charlie", "Delta", "Off.", "Echo"].map(str::to_owned));
    let mut read = String::new();
    while !read.contains("Echo") {
        read.push_str(&String::from_utf8_lossy(&page.chunk().await.unwrap().expect("the stream goes on")));
    }
    let events = events_of(&read);
    assert!(events.iter().all(|(name, _)| name != "over"), "{read}");
    for word in &words {
        assert!(events.iter().any(|(_, data)| data.contains(word.as_str())), "{word} is in no event: {read}");
    }
    let begins = |text: &str| events.iter().any(|(_, data)| data.trim_start().starts_with(text));
    assert!(!begins("Go away") && !begins("Off."), "{read}");
    assert!(!read.contains(ENDINGS), "readers that end lines in more places find other events: {read:?}");
    // The streams of clients are JSON.
    let changes = tenant.request(reqwest::Method::GET, "/v1/campaigns/port-town/events");
    let mut changes = changes.header("last-event-id", "0").send().await.unwrap();
    let mut read = String::new();
    while !read.contains("Echo") {
        read.push_str(&String::from_utf8_lossy(&changes.chunk().await.unwrap().expect("the stream goes on")));
    }
    assert!(!read.contains(ENDINGS), "{read:?}");
    assert!(read.contains("\\u2028") && read.contains("\\u0085"), "{read}");
}
