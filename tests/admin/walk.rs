//! The first ten minutes as a newcomer walks them in a browser: read what this is, sign in, bring a card, ask her in the lab,
//! invite a player, and fight a round by buttons. On a desk in light colours, and on a phone in dark ones.

use serde_json::json;
use tavernkeep::demo;

use super::{
    looks::{bad_colours, barriers},
    sign_in,
};
use crate::support::{
    DEMO_PASSWORD, Server,
    browser::{Browser, Look, file},
};

const NAME: &str = "Sister Ottilie";

/// A character card as people share them, as a file.
fn card() -> String {
    let data = json!({
        "name": NAME, "description": "She keeps the hospice above the harbour, and counts candles when she worries.",
        "personality": "Warm, tired, never surprised.", "scenario": "The fair has filled every bed.",
        "first_mes": "\"Mind the step, {{user}}. Everybody does not.\"", "mes_example": "",
        "creator_notes": "", "system_prompt": "", "post_history_instructions": "", "alternate_greetings": [],
        "tags": [], "creator": "", "character_version": "", "extensions": {},
    });
    let card = json!({ "spec": "chara_card_v2", "spec_version": "2.0", "data": data });
    file("ottilie.json", card.to_string().as_bytes())
}

/// Clicks the first of these elements that has this text in it, as soon as it can be clicked.
pub async fn press(browser: &Browser, css: &str, text: &str) {
    let found = format!(
        "[...document.querySelectorAll({css:?})].find((it) => !it.disabled && it.innerText.includes({text:?}))"
    );
    browser.until(format!("{text:?} to press"), format!("return Boolean({found})")).await;
    browser.js(&format!("{found}.click()")).await;
}

/// Walks the way. `stop` is called with a name where one would stay and look.
pub async fn walk(server: &Server, look: Look, width: u32, stop: impl AsyncFn(&Browser, &str)) {
    let Some(browser) = Browser::open_as(look).await else { return };
    browser.narrow(Some(width)).await;
    browser.goto(&format!("{}/admin/sign-in", server.url)).await;
    browser.sees(".story", "it keeps your world, plays everybody in it, rolls the dice").await;
    stop(&browser, "sign-in").await;
    sign_in(&browser, server, demo::EMAIL, DEMO_PASSWORD).await;
    press(&browser, "main a", "Port Town").await;
    browser.sees(".model", "Rehearsal").await;
    stop(&browser, "overview").await;

    press(&browser, "#steps a", "Bring a book or a card").await;
    browser.upload("#file", &card()).await;
    press(&browser, "main button", "Preview the import").await;
    browser.sees("main", "Nothing has been written yet.").await;
    press(&browser, "main button", "Import it").await;
    browser.until("the import", "return document.querySelector('[role=status]')").await;
    browser.goto(&format!("{}/admin/c/port-town/npcs?q=ottilie", server.url)).await;
    press(&browser, "tbody a", NAME).await;
    browser.sees("h1", NAME).await;
    // What came with a file waits until somebody has read it.
    if browser.count("#draft").await == 1 {
        press(&browser, "#draft button", "Accept").await;
        browser.until("the draft to be accepted", "return !document.querySelector('#draft')").await;
    }
    stop(&browser, "npc").await;

    press(&browser, "main a", "prompt lab").await;
    browser.write("#action", "I ask her for a bed for the night.").await;
    press(&browser, "#lab button", "Ask the model without saving").await;
    browser.until("her answer", "return document.querySelector('#said .said')?.innerText.length > 20").await;
    stop(&browser, "lab").await;

    browser.goto(&format!("{}/admin/c/port-town", server.url)).await;
    press(&browser, "#steps a", "Invite a player").await;
    browser.choose("#player", "lirien_vale").await;
    press(&browser, "main button", "Make a link").await;
    browser.sees("[role=status]", "The link for Lirien Vale is ready").await;
    stop(&browser, "invite").await;
    let link = browser.js("return document.querySelector('a.secret').href").await.as_str().unwrap().to_owned();

    let player = Browser::open_as(look).await.unwrap();
    player.narrow(Some(width)).await;
    player.goto(&link).await;
    player.until("the table", "return document.getElementById('log')").await;
    press(&player, ".dice-buttons button", "d20").await;
    player.until("the roll", "return document.querySelector('#said .dice')").await;
    stop(&player, "talk").await;
    let is_phone = width < 500;
    if is_phone {
        player.click("label[for='view-fights']").await;
    }
    player.sees(".whose", "It is your turn").await;
    stop(&player, "fight").await;
    press(&player, ".fight .enemy button", "Fire Bolt").await;
    player.sees("#said", "Lirien Vale attacks Goblin Cutpurse with Fire Bolt").await;
    press(&player, ".fight button", "End turn").await;
    player.sees(".whose", "It is Brakka Stonehand's turn.").await;
    // The game master's window acts for everybody else, until the round is over.
    browser.goto(&format!("{}/admin/c/port-town", server.url)).await;
    for turn in 0.. {
        let whose = browser.text("#fights .whose, .fights .whose").await;
        let weapons = [("Brakka", "Battleaxe"), ("Goblin", "Scimitar"), ("Thug", "Club")];
        let Some((_, weapon)) = weapons.iter().find(|(name, _)| whose.contains(name)) else { break };
        assert!(turn < 3, "{whose}");
        // Nobody may be left to attack.
        if browser.text(".fight").await.contains(weapon) {
            press(&browser, ".fight button", weapon).await;
            browser.sees("[role=status]", &format!("with {weapon}")).await;
            stop(&browser, "game-master").await;
        }
        press(&browser, ".fight button", "End turn").await;
        let next = format!(
            "const now = document.querySelector('.fight .whose')?.innerText; return Boolean(now) && now !== {whose:?}"
        );
        browser.until("the next turn", next).await;
    }
    player.sees(".fight h2", "round 2").await;
    player.sees(".whose", "It is your turn").await;
    player.sees("#said", "Brakka Stonehand attacks").await;
    stop(&player, "round-2").await;
    if is_phone {
        player.click("label[for='view-sheet']").await;
        stop(&player, "sheet").await;
    }
    browser.narrow(None).await;
    player.narrow(None).await;
}

/// The stops where both looks are checked: the pages with most in them.
const BOTH_LOOKS: [&str; 5] = ["overview", "npc", "lab", "talk", "fight"];

/// Nothing on the way is a barrier, or wider than the screen. What differs between light and dark are colours, which need no way of
/// their own.
async fn walked(look: Look, width: u32) {
    let server = Server::with_demo().await;
    let other = if look == Look::Light { Look::Dark } else { Look::Light };
    walk(&server, look, width, async |browser: &Browser, name: &str| {
        assert_eq!(barriers(browser).await, Vec::<String>::new(), "{name}");
        let over = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(browser.js(over).await, json!(0), "{name} at {width}");
        if BOTH_LOOKS.contains(&name) {
            browser.look_at(other).await;
            assert_eq!(bad_colours(browser).await, Vec::<String>::new(), "{name} in {other:?}");
            browser.look_at(look).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_desk_in_the_light() {
    walked(Look::Light, 1280).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_phone_in_the_dark() {
    walked(Look::Dark, 360).await;
}
