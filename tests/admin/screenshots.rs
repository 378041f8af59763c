//! The pictures of the README and `docs/editor.md`, made of the demo by `./dev screenshots`.

use std::{fs, path::Path};

use serde_json::json;
use tavernkeep::demo;

use super::sign_in;
use crate::support::{
    Client, Server,
    browser::{Browser, Look},
};

const BYTES_MAX: usize = 280 * 1024;
const PASSWORD: &str = "only for the pictures";

async fn keep(browser: &Browser, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
    fs::create_dir_all(&folder).unwrap();
    let png = browser.screenshot().await;
    assert!(png.len() <= BYTES_MAX, "{name} has {} bytes", png.len());
    fs::write(folder.join(format!("{name}.png")), png).unwrap();
}

/// Whether the typefaces are there.
const FONTS: &str = "return document.fonts.status === 'loaded' && document.fonts.check('1rem Alegreya')";

/// An evening at the table, on a desk in the light and on a phone in the dark.
async fn table(server: &Server, client: &Client<'_>) {
    for said in [
        "I shake the rain from my cloak and ask for something hot.",
        "Is it true that the lighthouse went dark last night?",
        "I leave a silver coin on the bar, for the story.",
    ] {
        client.npc_turn(demo::CAMPAIGN, "innkeeper_bob", demo::PLAYER, said).await.expect(200);
    }
    let narrowed = json!({ "scopes": ["read", "play"], "campaign": demo::CAMPAIGN, "player_id": demo::PLAYER });
    let token = client.token(narrowed).await.credential;
    for (look, size, name) in [(Look::Light, (1280, 860), "table"), (Look::Dark, (500, 900), "table-phone")] {
        let browser = Browser::open_as(look).await.unwrap();
        browser.resize(size.0, size.1).await;
        browser.goto(&format!("{}/play/{}#{token}", server.url, demo::CAMPAIGN)).await;
        browser.sees("#said", "silver coin").await;
        if look == Look::Light {
            browser.write("#formula", "1d20+5").await;
            browser.click(".roll button").await;
            browser.until("the roll", "return document.querySelector('#said .dice')").await;
        }
        browser.until("the fonts", FONTS).await;
        keep(&browser, name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes docs/images: ./dev screenshots"]
async fn make() {
    let server = Server::start().await;
    let fixed = demo::Fixed {
        password: Some(PASSWORD),
        api_key: Some("tk_pictures_0123456789012345678901234567890123456789012"),
    };
    demo::ensure(&server.db.url, server.pool(), &fixed).await.unwrap();
    let client = server.anonymous().with_credential(fixed.api_key.unwrap());
    let browser = Browser::open().await.expect("a browser");
    browser.resize(1280, 860).await;
    browser.goto(&format!("{}/admin/sign-in", server.url)).await;
    browser.until("the fonts", FONTS).await;
    keep(&browser, "sign-in").await;
    table(&server, &client).await;
    sign_in(&browser, &server, demo::EMAIL, PASSWORD).await;
    browser.sees("h1", "Campaigns").await;
    let town = format!("{}/admin/c/port-town", server.url);
    browser.goto(&town).await;
    keep(&browser, "overview").await;
    browser.goto(&format!("{town}/npcs?q=bob")).await;
    browser.click("tbody a").await;
    browser.sees("h1", "Innkeeper Bob").await;
    keep(&browser, "npc").await;
    browser.goto(&format!("{town}/characters/lirien_vale")).await;
    browser.sees("h1", "Lirien Vale").await;
    keep(&browser, "character").await;
    browser.goto(&format!("{town}/npcs/innkeeper_bob/edit")).await;
    // Somebody else was quicker.
    let change = json!({ "disposition": "worried about the fog" });
    client.patch("/v1/campaigns/port-town/npcs/innkeeper_bob", change).await.expect(200);
    browser.write("#disposition", "friendly to regulars").await;
    browser.click(".buttons button").await;
    browser.sees(".theirs-text", "worried").await;
    keep(&browser, "conflict").await;
    browser.click(".buttons button").await;
    browser.sees("[role=status]", "was saved").await;
    browser.goto(&format!("{town}/audit?table=npc&op=update")).await;
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })").await;
    keep(&browser, "audit").await;
    let browser = Browser::open_as(Look::Dark).await.unwrap();
    browser.resize(500, 900).await;
    sign_in(&browser, &server, demo::EMAIL, PASSWORD).await;
    browser.sees("h1", "Campaigns").await;
    browser.goto(&format!("{town}/characters/lirien_vale")).await;
    keep(&browser, "phone").await;
}
