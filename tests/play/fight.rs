//! A fight and the sheet by buttons, in a real browser and by plain forms.

use serde_json::{Value, json};

use super::{ALICE, Guest, MALLORY, sit_down, token};
use crate::support::{Server, World, browser::Browser};

/// Alice with a longsword against an orc that she cannot kill at once, and a hidden one. Her turn is first.
async fn fight(world: &World<'_>) -> String {
    let armed = json!({ "abilities": { "strength": 16 }, "weapons": [{ "name": "Longsword" }], "weapon_proficiencies": ["martial"] });
    world.patch("/characters/player_alice", armed).await.expect(200);
    let claws = json!([{ "name": "Claws", "bonus": 4, "damage": "1d4", "damage_type": "slashing" }]);
    let fight = json!({ "name": "The pier by night", "participants": [
        { "id": "alice", "character_id": ALICE, "initiative": 20 },
        { "id": "orc", "name": "Orc", "hp": 70, "max_hp": 70, "armor_class": 5, "is_enemy": true, "initiative": 9, "attacks": claws },
        { "id": "lurker", "name": "The Lurker", "hp": 9, "max_hp": 9, "is_enemy": true, "initiative": 1, "hidden": true },
    ] });
    world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned()
}

/// Clicks the first button in the fight that begins with this label.
async fn press(browser: &Browser, label: &str) {
    let script = format!(
        "const button = [...document.querySelectorAll('.fight button')].find((b) => b.textContent.startsWith('{label}')); \
         button.click(); return true"
    );
    browser.js(&script).await;
}

fn labels(page: &str) -> Vec<&str> {
    page.split("<button name=\"action\"").skip(1).filter_map(|b| b.split('>').nth(1)?.split('<').next()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_is_fought_by_buttons() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = fight(&world).await;
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    browser.sees(".whose", "It is your turn: an action, a bonus action, 30 feet to move.").await;
    // The title says so, and whoever wants to hear it hears it.
    let title = |title: &str| browser.until(title.to_owned(), format!("return document.title === {}", json!(title)));
    title("Your turn · Alice · port-town").await;
    browser.narrow(Some(320)).await;
    browser.sees("[for=view-fights]", "Your turn").await;
    assert_eq!(browser.js("return document.documentElement.scrollWidth <= innerWidth").await, true);
    browser.narrow(None).await;
    let counts = "window.heard = 0; const { start } = AudioScheduledSourceNode.prototype; \
        AudioScheduledSourceNode.prototype.start = function (...at) { window.heard += 1; return start.apply(this, at); }";
    browser.js(counts).await;
    browser.click("#sound").await;
    browser.until("a first sound", "return window.heard === 2").await;
    press(&browser, "Longsword").await;
    browser.sees("#said", "attacks Orc with Longsword").await;
    browser.sees(".whose", "It is your turn: a bonus action, 30 feet to move.").await;
    assert!(!browser.text("#fights").await.contains("Longsword"), "the action is used up");
    press(&browser, "End turn").await;
    browser.sees("#said", "It is Orc's turn.").await;
    browser.sees(".whose", "It is Orc's turn. The game master acts.").await;
    title("Alice · port-town").await;
    browser.narrow(Some(320)).await;
    browser.reads("[for=view-fights]", "Fight").await;
    browser.narrow(None).await;
    assert_eq!(browser.count(".fight button").await, 0);
    let actions = format!("/encounters/{id}/actions");
    world.post(&actions, json!({ "action": "attack", "target_id": "alice", "weapon": "Claws" })).await.expect(200);
    browser.sees("#said", "attacks Alice with Claws").await;
    for _ in 0..2 {
        world.post(&actions, json!({ "action": "advance_turn" })).await.expect(200);
    }
    browser.sees(".whose", "It is your turn").await;
    browser.sees(".fight h2", "round 2").await;
    title("Your turn · Alice · port-town").await;
    browser.until("a sound", "return window.heard === 4").await;
    assert_eq!(browser.js("return document.getElementById('sound').checked").await, true);
    browser.goto(&format!("{}/play/port-town", server.url)).await;
    browser.until("the choice", "return document.getElementById('sound').checked").await;
    assert_eq!(browser.text("#alert").await, "");
    assert!(!browser.html().await.contains("Lurker"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fight_goes_on_without_a_script_and_within_the_rules() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = fight(&world).await;
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let mallory = Guest::seated(&server, &token(&tenant, MALLORY).await).await;
    let page = alice.page().await;
    assert_eq!(labels(&page), ["Dodge", "Dash", "Disengage", "End turn", "Longsword", "Grapple", "Shove"], "{page}");
    assert_eq!(labels(&mallory.page().await), [] as [&str; 0], "who does not take part has nothing to do");
    let act = |guest: &Guest, action: Value| {
        guest.form(&format!("/play/port-town/fights/{id}/act"), &[("action", &action.to_string())])
    };
    let told = world.get("/messages").await.expect(200).items().len();
    for (action, status) in [
        (json!({ "action": "attack", "target_id": "orc", "weapon": "Longsword", "override": true }), 403),
        (json!({ "action": "attack", "target_id": "orc", "weapon": "Longsword", "preview": true }), 403),
        (json!({ "action": "attack", "target_id": "orc", "weapon": "Longsword", "dice": [20, 8] }), 403),
        (json!({ "action": "attack", "participant_id": "orc", "target_id": "alice" }), 403),
        (json!({ "action": "damage", "target_id": "orc", "amount": 70 }), 403),
        (json!({ "action": "attack", "target_id": "lurker", "weapon": "Longsword" }), 422),
        (json!({ "action": "attack", "target_id": "nobody", "weapon": "Longsword" }), 422),
        (json!({ "action": "fly" }), 422),
        (json!({ "action": "attack", "target_id": "orc", "weapon": "Long\u{0}sword" }), 422),
        (json!(["dodge"]), 422),
        (json!(7), 422),
    ] {
        let answer = alice.send(act(&alice, action.clone())).await;
        assert_eq!(answer.status, status, "{action}: {}", answer.text);
        assert!(answer.text.contains("Back to the table"), "{}", answer.text);
    }
    mallory.send(act(&mallory, json!({ "action": "dodge" }))).await.expect(403);
    alice
        .send(alice.form("/play/port-town/fights/nonsense/act", &[("action", "{\"action\":\"dodge\"}")]))
        .await
        .expect(404);
    let fights = world.get(&format!("/encounters/{id}")).await.expect(200);
    assert_eq!(fights.body["round"], 1);
    assert_eq!(world.get("/messages").await.expect(200).items().len(), told, "nothing was done");
    // What the rules do not allow is told to the player alone.
    let told = alice
        .send(act(&alice, json!({ "action": "attack", "target_id": "orc", "weapon": "Trident" })))
        .await
        .expect(200);
    assert!(told.text.contains("This is not possible: Alice has no weapon called"), "{}", told.text);
    let attack = json!({ "action": "attack", "target_id": "orc", "weapon": "Longsword" }).to_string();
    let fields = [("action", attack.as_str()), ("advantage", "advantage")];
    let done = alice.send(alice.form(&format!("/play/port-town/fights/{id}/act"), &fields)).await;
    assert_eq!(done.expect(303).header("location"), "/play/port-town?view=fights");
    let told = world.get("/messages?sort=-created_at&limit=1").await.expect(200);
    assert!(told.text.contains("(advantage: the higher of "), "{}", told.text);
    // The page of before has the button still.
    let late = alice.send(act(&alice, json!({ "action": "dodge" }))).await.expect(409);
    assert!(late.text.contains("no action left"), "{}", late.text);
    assert_eq!(labels(&alice.page().await), ["End turn"]);
    world.post(&format!("/encounters/{id}/end"), json!({ "outcome": "fled" })).await.expect(200);
    alice.send(act(&alice, json!({ "action": "advance_turn" }))).await.expect(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sheet_rolls_by_click() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let sheet = json!({ "abilities": { "strength": 16, "dexterity": 14 }, "weapons": [{ "name": "Longsword" }], "weapon_proficiencies": ["martial"],
        "skill_proficiencies": ["stealth"], "saving_throw_proficiencies": ["strength"] });
    world.patch("/characters/player_alice", sheet).await.expect(200);
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    browser.js("document.querySelector('#sheet details').open = true").await;
    for (of, flavor, formula) in [
        ("ability Strength", "Strength Check", "1d20+3"),
        ("save Strength", "Strength Saving Throw", "1d20+5"),
        ("skill Stealth", "Stealth Check", "1d20+4"),
        ("attack Longsword", "Longsword, to hit", "1d20+5"),
        ("damage Longsword", "Longsword, slashing damage", "1d8+3"),
    ] {
        browser.click(&format!("#sheet button[value='{of}']")).await;
        browser.sees("#said article:last-child .dice", flavor).await;
        let told = browser.text("#said article:last-child .dice").await;
        assert!(told.contains(formula), "{told}");
    }
    // Conditions count.
    world.patch("/characters/player_alice", json!({ "conditions": [{ "name": "poisoned" }] })).await.expect(200);
    browser.sees("#sheet", "poisoned").await;
    browser.click("#sheet button[value='ability Dexterity']").await;
    browser.sees("#said article:last-child .dice", "Dexterity Check").await;
    assert_eq!(browser.count("#said article:last-child .die").await, 2, "{}", browser.text("#said").await);
    assert_eq!(browser.count("#said article:last-child .die.dropped").await, 1);
    // What fails by itself needs no roll, and nobody learns of a difficulty.
    world.patch("/characters/player_alice", json!({ "conditions": [{ "name": "stunned" }] })).await.expect(200);
    browser.sees("#sheet", "stunned").await;
    browser.click("#sheet button[value='save Strength']").await;
    browser.sees("#said article:last-child", "Strength Saving Throw: it fails without a roll.").await;
    // With advantage or disadvantage, for one roll; who sees the rolls stays chosen.
    world.patch("/characters/player_alice", json!({ "conditions": [] })).await.expect(200);
    browser.until("no conditions", "return !document.querySelector('#sheet .states')").await;
    browser.choose(".how [name=advantage]", "advantage").await;
    browser.choose(".how [name=readers]", "gm").await;
    browser.click("#sheet button[value='attack Longsword']").await;
    browser.sees("#said article:last-child .dice code", "2d20kh+5").await;
    assert!(browser.text("#said article:last-child").await.contains("to the game master"));
    assert_eq!(browser.value(".how [name=advantage]").await, "none");
    browser.click("#sheet button[value='ability Strength']").await;
    browser.sees("#said article:last-child .dice code", "1d20+3").await;
    browser.choose(".how [name=advantage]", "disadvantage").await;
    browser.choose(".how [name=readers]", "blind").await;
    let said = browser.count("#said article").await;
    browser.js("document.querySelector('#sheet details').open = true").await;
    browser.click("#sheet button[value='skill Stealth']").await;
    browser.sees("#pending", "Only the game master sees what came of it.").await;
    assert_eq!(browser.count("#said article").await, said);
    let told = world.get("/messages?sort=-created_at&limit=1").await.expect(200).body["items"][0].clone();
    assert_eq!((&told["blind"], &told["roll"]["formula"]), (&json!(true), &json!("2d20kl+4")), "{told}");
    // Damage leaves the advantage to the attack. The choice of who sees rolls is one, also after the page is loaded again.
    browser.choose(".how [name=advantage]", "advantage").await;
    browser.click("#sheet button[value='damage Longsword']").await;
    browser.until("the roll", "return document.querySelectorAll('#pending .aside').length === 1").await;
    assert_eq!(browser.value(".how [name=advantage]").await, "advantage");
    assert_eq!(browser.value(".dice-tray [name=readers]").await, "blind");
    browser.goto(&format!("{}/play/port-town", server.url)).await;
    browser.until("the choice", "return document.querySelector('.how [name=readers]').value === 'blind'").await;
    browser.click(".dice-buttons button[value='1d12']").await;
    browser.sees("#pending", "Only the game master sees what came of it.").await;
    assert_eq!(browser.count("#said article").await, said);
    browser.choose(".dice-tray [name=readers]", "everybody").await;
    assert_eq!(browser.value(".how [name=readers]").await, "everybody");
    // In a fight the sheet is that of the fight, and attacks are the fight's.
    fight(&world).await;
    browser.until("the fight", "return document.querySelector('#fights h2')").await;
    browser.until("no attacks", "return !document.querySelector('#sheet button[value^=\"attack\"]')").await;
    // Dice by click, and dice among the words.
    browser.click(".dice-buttons button[value='1d12']").await;
    browser.sees("#said article:last-child .dice", "1d12").await;
    browser.choose("#to", "").await;
    browser.write("#text", "/R 2d1+4").await;
    browser.click(".say button").await;
    browser.sees("#said article:last-child .dice code", "2d1+4").await;
    assert_eq!(browser.text("#alert").await, "");
    let guest = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    for (name, value) in [("advantage", "both"), ("readers", "me"), ("advantage", "<b>")] {
        guest.send(guest.form("/play/port-town/check", &[("of", "ability Strength"), (name, value)])).await.expect(400);
        guest.send(guest.form("/play/port-town/roll", &[("formula", "1d4"), (name, value)])).await.expect(400);
    }
    for of in ["", "ability", "skill lockpicking", "attack Trident", "damage", "nonsense <b>"] {
        guest.send(guest.form("/play/port-town/check", &[("of", of)])).await.expect(422);
    }
    guest.send(guest.form("/play/port-town/say", &[("to", ""), ("text", "/roll")])).await.expect(422);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_here_is_one_click_away() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.post("/npcs", json!({ "name": "Maya", "slug": "maya" })).await.expect(201);
    world.post("/characters", json!({ "name": "Tom", "slug": "player_tom" })).await.expect(201);
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    browser.click("#here a[data-to='maya']").await;
    assert_eq!(browser.value("#to").await, "maya");
    browser.click("#here a[data-whisper='player_mallory']").await;
    assert_eq!(browser.value("#text").await, "/w player_mallory ");
    browser.write("#text", "/w player_mallory Meet me.").await;
    browser.click("#here a[data-whisper='player_tom']").await;
    assert_eq!(browser.value("#text").await, "/w player_tom Meet me.");
    browser.click("#here a[data-to='maya']").await;
    assert_eq!(
        browser.value("#text").await,
        "Meet me.",
        "what was for Tom alone is not whispered to him when it is for Maya"
    );
    // Who comes appears by itself, and whom one writes to stays chosen.
    world.post("/npcs", json!({ "name": "Old Tom", "slug": "tom" })).await.expect(201);
    browser.sees("#here", "Old Tom").await;
    assert_eq!(browser.value("#to").await, "maya");
    let guest = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let page = guest.get("/play/port-town?to=maya").await.expect(200).text;
    assert!(page.contains("<option value=\"maya\" selected>"), "{page}");
    let page = guest.get("/play/port-town?whisper=%3Cb%3E").await.expect(200).text;
    assert!(page.contains("/w &#60;b&#62; </textarea>"), "{page}");
}
