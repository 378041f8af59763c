//! The editor in a real browser: with script, and without.

use edge::users::Role;
use serde_json::json;

use super::{EMAIL, looks::barriers, sign_in};
use crate::support::{
    Server,
    browser::{Browser, Look},
};

const HOSTILE: &str = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>&amp;'\"";

#[tokio::test(flavor = "multi_thread")]
async fn a_worldbuilder_works_with_script() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    let Some(browser) = Browser::open().await else { return };
    sign_in(&browser, &server, EMAIL, "not the password").await;
    browser.sees("[role=alert]", "The email or the password is wrong.").await;
    assert_eq!(barriers(&browser).await, Vec::<String>::new());
    assert_eq!(browser.value("#email").await, EMAIL);
    browser.write("#password", &password).await;
    browser.click("main button").await;
    browser.sees("h1", "Campaigns").await;
    browser.goto(&format!("{}/admin/c/port-town/npcs", server.url)).await;
    // A search changes the rows alone, and the address with them.
    browser.js("document.querySelector('h1').dataset.kept = 'yes'").await;
    browser.write("#q", "bob").await;
    browser.until("one row", "return document.querySelectorAll('tbody tr').length === 1").await;
    browser.until("the address", "return location.search.includes('q=bob')").await;
    assert_eq!(
        browser.js("return [document.querySelector('h1').dataset.kept, document.activeElement.id]").await,
        json!(["yes", "q"])
    );
    // By keys: the help, a new one, saving.
    browser.js("document.activeElement.blur()").await;
    let press = |keys: &'static str| format!("dispatchEvent(new KeyboardEvent('keydown', {keys}))");
    browser.js(&press("{ key: '?', bubbles: true }")).await;
    browser.sees("dialog", "save the form").await;
    browser.sees("dialog", "New NPC").await;
    browser.click("dialog button").await;
    browser.until("closed", "return !document.querySelector('dialog')").await;
    browser.js(&press("{ key: 'n', bubbles: true }")).await;
    browser.sees("h1", "New NPC").await;
    browser.write("#name", HOSTILE).await;
    browser.write("#description", HOSTILE).await;
    browser.js(&press("{ key: 's', ctrlKey: true, bubbles: true, cancelable: true }")).await;
    browser.sees("[role=status]", "The NPC was created").await;
    assert_eq!(browser.text("h1").await, HOSTILE);
    assert_eq!(browser.text("#about .prose").await, HOSTILE);
    browser.js(&press("{ key: 'e', bubbles: true }")).await;
    browser.sees("h1", "Edit").await;
    assert_eq!(browser.value("#description").await, HOSTILE);
    let made = world.get("/npcs?sort=-created_at").await.items()[0].clone();
    assert_eq!((&made["name"], &made["description"]), (&json!(HOSTILE), &json!(HOSTILE)));
    // Somebody else changes it meanwhile.
    let path = format!("/npcs/{}", made["id"].as_str().unwrap());
    world.patch(&path, json!({ "disposition": "theirs" })).await.expect(200);
    browser.write("#disposition", "mine").await;
    browser.click(".buttons button").await;
    browser.sees("h1", "Merge").await;
    browser.sees(".theirs-text", "theirs").await;
    assert_eq!(browser.value("#disposition").await, "mine");
    assert_eq!(barriers(&browser).await, Vec::<String>::new());
    assert_eq!(world.get(&path).await.body["disposition"], "theirs");
    browser.click(".buttons button").await;
    browser.sees("[role=status]", "was saved").await;
    assert_eq!(world.get(&path).await.body["disposition"], "mine");
    browser.click("a.danger").await;
    browser.click("button.danger").await;
    browser.sees("[role=status]", "was deleted").await;
    assert_eq!(browser.js("return document.title.includes('broken')").await, false);
    assert_eq!(browser.js("return document.querySelectorAll('img, main script').length").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worldbuilder_works_without_script() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    let Some(browser) = Browser::open_as(Look::NoScript).await else { return };
    sign_in(&browser, &server, EMAIL, &password).await;
    browser.reads("h1", "Campaigns").await;
    browser.goto(&format!("{}/admin/c/port-town/characters", server.url)).await;
    browser.click("a.button").await;
    browser.write("#name", "Zed").await;
    browser.write("#level", "0").await;
    browser.click(".buttons button").await;
    browser.reads("#level-error", "1").await;
    browser.write("#level", "2").await;
    browser.click(".buttons button").await;
    browser.reads("[role=status]", "The character was created.").await;
    browser.click("a.button").await;
    browser.write("#player_name", "Mara").await;
    browser.click(".buttons button").await;
    browser.reads("[role=status]", "The character was saved.").await;
    let zed = world.get("/characters/zed").await.body;
    assert_eq!((&zed["level"], &zed["player_name"]), (&json!(2), &json!("Mara")));
    browser.goto(&format!("{}/admin/c/port-town/characters?q=zed", server.url)).await;
    browser.click("tbody a").await;
    browser.click("a.danger").await;
    browser.click("button.danger").await;
    browser.reads("[role=status]", "The character Zed was deleted.").await;
    world.get("/characters/zed").await.problem(404, "not_found");
    browser.click("header form button").await;
    browser.reads("h1", "Sign in").await;
}
