//! What people write in a script that runs from right to left is shown in that direction, on every page and in every field.

use edge::users::Role;
use pages::admin::PAGES;
use serde_json::json;

use super::{EMAIL, is_file, is_stream, sign_in};
use crate::{
    play::open_link,
    support::{Rows, Server, browser::Browser},
};

/// "The old lighthouse" in Hebrew.
const TEXT: &str = "המגדלור הישן";

const CAMPAIGN: &str = "/v1/campaigns/port-town";

/// Where such a text stands on the page that is shown without a direction of its own, or with one that also turns the words around it;
/// and in how many places it stands as it should.
const ASTRAY: &str = "
    const people = /[\\u0590-\\u05ff]/, letters = /[a-z\\u0590-\\u05ff]/i, astray = [];
    let right = 0;
    document.querySelectorAll('details').forEach((details) => { details.open = true; });
    const words = (of) => {
        const all = document.createTreeWalker(of, NodeFilter.SHOW_TEXT), found = [];
        while (all.nextNode()) found.push(all.currentNode);
        return found;
    };
    for (const text of words(document.body)) {
        const holder = text.parentElement;
        if (!people.test(text.data) || holder.closest('option, textarea')) continue;
        const whole = holder.closest('[dir=auto], bdi');
        const isPiece = whole?.closest('.words, .prose-html');
        const others = whole && !isPiece ? words(whole).filter((other) => letters.test(other.data) && other.parentElement.closest('[dir], bdi') === whole) : [];
        whole && others.length < 2 ? right++ : astray.push(holder.outerHTML.slice(0, 160));
    }
    for (const field of document.querySelectorAll('input:not([type=hidden]), textarea')) {
        if (!people.test(field.value) || field.type === 'checkbox') continue;
        field.dir === 'auto' ? right++ : astray.push(field.outerHTML.slice(0, 160));
    }
    return [right, astray];";

#[tokio::test(flavor = "multi_thread")]
async fn texts_run_in_their_own_direction() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, TEXT).await;
    for (path, member) in [
        ("", "name"),
        ("/characters/player_alice", "name"),
        ("/npcs/innkeeper_bob", "name"),
        ("/owners/town_council_owner", "name"),
        ("/lore/the_reach", "title"),
    ] {
        tenant.patch(&format!("{CAMPAIGN}{path}"), json!({ member: TEXT })).await.expect(200);
    }
    tenant.patch(&format!("{CAMPAIGN}/lore/the_reach"), json!({ "tags": [TEXT], "keys": [TEXT] })).await.expect(200);
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let Some(browser) = Browser::open().await else { return };
    sign_in(&browser, &server, EMAIL, &password).await;
    browser.sees("h1", "Campaigns").await;
    let mut astray = Vec::new();
    let pages = PAGES.iter().filter(|page| page.method == "GET" && !matches!(page.path, "" | "/" | "/sign-in"));
    for page in pages.filter(|page| !is_file(page.path) && !is_stream(page.path)) {
        browser.goto(&format!("{}{}", server.url, rows.path(&format!("/admin{}", page.path)))).await;
        let found = browser.js(ASTRAY).await;
        // The tenant's name is on every page, except for the one that anybody may open.
        assert!(found[0].as_u64().unwrap() > 0 || page.path.starts_with("/reset/"), "{} is not itself", page.path);
        astray.extend(found[1].as_array().unwrap().iter().map(|place| format!("{}: {place}", page.path)));
    }
    assert_eq!(astray, Vec::<String>::new());
    // What the attribute is for: the line begins at the right.
    browser.goto(&format!("{}/admin/c/port-town/npcs/innkeeper_bob", server.url)).await;
    let styles = "const style = (css) => getComputedStyle(document.querySelector(css)); return [style('h1').direction, style('.prose').unicodeBidi]";
    assert_eq!(browser.js(styles).await, json!(["rtl", "plaintext"]));
    open_link(&browser, &tenant, "player_alice").await;
    browser.sees("#sheet", TEXT).await;
    let found = browser.js(ASTRAY).await;
    assert_eq!(found[1], json!([]), "at the table");
    assert!(found[0].as_u64().unwrap() > 5, "{found}");
    assert_eq!(browser.js("return document.querySelector('#text').dir").await, "auto");
}
