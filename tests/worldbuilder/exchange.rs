//! A file is looked at, its report read, and only then is anything written.

use edge::users::Role;
use serde_json::json;

use super::{go, is_sound, picture, signed_in};
use crate::support::{Server, browser::file, counts};

const HOSTILE: &str = "<script>window.pwned = 1</script><img src=x onerror=\"window.pwned = 1\">";

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_looked_at_before_it_is_imported() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let Some(browser) = signed_in(&acme, Role::Editor).await else { return };
    go(&browser, &acme, "exchange").await;
    picture(&browser, "exchange").await;
    let card = file("maren.json", include_bytes!("../interchange/golden/card.json"));
    browser.upload("#file", &card).await;
    browser.click("form[enctype] button").await;
    browser.sees("main", "Nothing has been written yet.").await;
    browser.sees("main", "a character card (V3)").await;
    browser.sees("main", "Maren Tidewater").await;
    is_sound(&browser).await;
    picture(&browser, "exchange-card").await;
    world.get("/npcs/maren_tidewater").await.problem(404, "not_found");
    let before = counts(&server).await;
    // Leaving it leaves nothing.
    browser.click("form.buttons a").await;
    browser.sees("h1", "Import and export").await;
    assert_eq!(counts(&server).await, before);
    // Again, and this time for good.
    browser.upload("#file", &card).await;
    browser.click("form[enctype] button").await;
    browser.sees("main", "Nothing has been written yet.").await;
    browser.click("form.buttons button").await;
    browser.sees(".done", "maren.json was imported: 3 created").await;
    world.get("/npcs/maren_tidewater").await.expect(200);
    // A lorebook that means no good is words on a page.
    let book = json!({ "name": HOSTILE, "entries": { "0": { "key": ["x"], "comment": HOSTILE, "content": HOSTILE, HOSTILE: HOSTILE, "position": 4 } } });
    let book = file("book.json", book.to_string().as_bytes());
    go(&browser, &acme, "exchange").await;
    browser.upload("#file", &book).await;
    browser.click("form[enctype] button").await;
    browser.sees("main", "a SillyTavern lorebook").await;
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })").await;
    browser.sees("main", "<script>window.pwned = 1</script>").await;
    is_sound(&browser).await;
    picture(&browser, "exchange-book").await;
    // What cannot be read is said beside the form.
    go(&browser, &acme, "exchange").await;
    browser.upload("#file", &file("broken.png", b"\x89PNG\r\n\x1a\nbroken")).await;
    browser.click("form[enctype] button").await;
    browser.sees(".alert", "broken.png cannot be imported. The PNG cannot be read").await;
    picture(&browser, "exchange-broken").await;
    // A phone.
    browser.resize(500, 900).await;
    go(&browser, &acme, "exchange").await;
    is_sound(&browser).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_goes_out_and_comes_back_and_viewers_only_read() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let Some(browser) = signed_in(&acme, Role::Editor).await else { return };
    go(&browser, &acme, "exchange").await;
    let links = "return fetch(document.querySelector('.downloads a').href).then((r) => r.text())";
    let document = browser.js(links).await.as_str().unwrap().to_owned();
    assert_eq!(document, world.get("/export").await.text);
    let mut changed: serde_json::Value = serde_json::from_str(&document).unwrap();
    changed["lore"][0]["content"] = json!("Changed outside.");
    browser.upload("#file", &file("port-town.json", changed.to_string().as_bytes())).await;
    browser.click("form[enctype] button").await;
    browser.sees("main", "a campaign document").await;
    picture(&browser, "exchange-campaign").await;
    browser.until("nothing new", "return document.querySelector('.counts b')?.innerText === '0'").await;
    browser.click("form.buttons button").await;
    browser.sees(".done", "0 created, 1 changed").await;
    let card = "return fetch('/admin/c/port-town/exchange/card?npc=innkeeper_bob&as=png').then((r) => r.headers.get('content-type'))";
    assert_eq!(browser.js(card).await, "image/png");
    drop(browser);
    let other = server.tenant("other").await;
    other.world().await;
    server.user(other.tenant, "viewer@example.org", Role::Viewer).await;
    let Some(browser) = crate::support::browser::Browser::open().await else { return };
    browser.goto(&format!("{}/admin", server.url)).await;
    browser.write("#email", "viewer@example.org").await;
    browser.write("#password", super::PASSWORD).await;
    browser.click("main button").await;
    browser.sees("header", "Sign out").await;
    go(&browser, &other, "exchange").await;
    browser.sees("h1", "Import and export").await;
    assert_eq!((browser.count("input[type=file]").await, browser.count("a[href$='campaign.json']").await), (0, 0));
}
