//! The pictures of the README and `docs/editor.md`, made of the demo by `./dev screenshots`.

use std::{fs, path::Path};

use serde_json::json;
use tavernkeep::demo;

use super::{sign_in, walk};
use crate::support::{
    DEMO_KEY, DEMO_PASSWORD, Server,
    browser::{Browser, Look},
};

const BYTES_MAX: usize = 280 * 1024;

async fn keep(browser: &Browser, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
    fs::create_dir_all(&folder).unwrap();
    let plain = "const sheet = new CSSStyleSheet(); sheet.replaceSync('* { scrollbar-width: none !important; }'); \
        document.adoptedStyleSheets = [sheet];";
    browser.js(plain).await;
    let png = browser.screenshot().await;
    assert!(png.len() <= BYTES_MAX, "{name} has {} bytes", png.len());
    fs::write(folder.join(format!("{name}.png")), png).unwrap();
}

/// Whether the typefaces are there.
const FONTS: &str = "return document.fonts.status === 'loaded' && document.fonts.check('1rem Alegreya')";

/// What was said before the walk, so that it does not begin in silence.
const SAID: [(&str, &str, &str); 4] = [
    (
        "gm",
        "Narrator",
        "Rain hangs over the harbour. Somebody has put out the lantern in the yard behind the inn, and it was not the wind.",
    ),
    (
        "player",
        "Lirien Vale",
        "\"Bob said the keeper walked into the sea. Bob did not say that somebody walked out of it.\"",
    ),
    ("gm", "Innkeeper Bob", "\"Miss, if I told every guest everything, who would stay for a second beer?\""),
    (
        "gm",
        "Narrator",
        "A small shape lets go of somebody's purse and reaches for a scimitar. Behind it a plank creaks: it is not alone.",
    ),
];

/// The first ten minutes in pictures, on a desk in the light and on a phone in the dark.
async fn first_ten_minutes() {
    for (look, width, names) in [
        (
            Look::Light,
            1280,
            &[("sign-in", "sign-in"), ("overview", "overview"), ("lab", "lab"), ("fight", "table")][..],
        ),
        (Look::Dark, 360, &[("fight", "fight-phone"), ("talk", "table-phone"), ("overview", "overview-phone")][..]),
    ] {
        let server = Server::with_demo().await;
        let client = server.anonymous().with_credential(DEMO_KEY);

        for (author, name, content) in SAID {
            client
                .post(
                    "/v1/campaigns/port-town/messages",
                    json!({ "author": author, "content": content, "speaker": { "name": name } }),
                )
                .await
                .expect(201);
        }
        walk::walk(&server, look, width, async |browser: &Browser, stop: &str| {
            if let Some((_, name)) = names.iter().find(|(at, _)| *at == stop) {
                browser.until("the fonts", FONTS).await;
                keep(browser, name).await;
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes docs/images: ./dev screenshots"]
async fn make() {
    first_ten_minutes().await;
    let server = Server::with_demo().await;
    let client = server.anonymous().with_credential(DEMO_KEY);
    let browser = Browser::open().await.expect("a browser");
    browser.resize(1280, 860).await;
    sign_in(&browser, &server, demo::EMAIL, DEMO_PASSWORD).await;
    browser.sees("h1", "Campaigns").await;
    let town = format!("{}/admin/c/port-town", server.url);
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
    sign_in(&browser, &server, demo::EMAIL, DEMO_PASSWORD).await;
    browser.sees("h1", "Campaigns").await;
    browser.goto(&format!("{town}/characters/lirien_vale")).await;
    keep(&browser, "phone").await;
}
