//! The pictures of `docs/editor.md`, made of the demo by `./dev screenshots`.

use std::{fs, path::Path};

use serde_json::json;
use tavernkeep::demo;

use super::sign_in;
use crate::support::{
    Server,
    browser::{Browser, Look},
};

const BYTES_MAX: usize = 150 * 1024;
const PASSWORD: &str = "only for the pictures";

async fn keep(browser: &Browser, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
    fs::create_dir_all(&folder).unwrap();
    let png = browser.screenshot().await;
    assert!(png.len() <= BYTES_MAX, "{name} has {} bytes", png.len());
    fs::write(folder.join(format!("{name}.png")), png).unwrap();
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
    browser.resize(1100, 820).await;
    sign_in(&browser, &server, demo::EMAIL, PASSWORD).await;
    browser.sees("h1", "Campaigns").await;
    let town = format!("{}/admin/c/port-town", server.url);
    browser.goto(&town).await;
    keep(&browser, "overview").await;
    browser.goto(&format!("{town}/npcs?q=bob")).await;
    browser.click("tbody a").await;
    browser.sees("h1", "Innkeeper Bob").await;
    keep(&browser, "npc").await;
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
    browser.goto(&format!("{town}/characters")).await;
    keep(&browser, "phone").await;
}
