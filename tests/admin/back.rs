//! What was deleted comes back, for every kind; memories have a history; links that lead nowhere are seen; keys can be off.

use edge::users::Role;
use serde_json::json;

use super::{EMAIL, Visitor, sign_in};
use crate::support::{Server, browser::Browser};

/// The path of the last form of a page that is posted to a history.
fn way_back(page: &str) -> String {
    let action = page.split("action=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    action.filter(|path| path.contains("/history/")).last().unwrap_or_else(|| panic!("no way back: {page}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_comes_back() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let mut viewer = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    let scene = world.post("/scenes", json!({ "name": "Cellar" })).await.expect(201).id();
    let npc = world.post("/npcs", json!({ "name": "Old Tam" })).await.expect(201).id();
    let owner = json!({ "name": "Watch", "monitored_aspect": "location", "associated_id": "harbour" });
    let owner = world.post("/owners", owner).await.expect(201).id();
    let character = world.post("/characters", json!({ "name": "Wanderer" })).await.expect(201).id();
    for (kind, id, name) in [
        ("scenes", &scene, "Cellar"),
        ("npcs", &npc, "Old Tam"),
        ("owners", &owner, "Watch"),
        ("characters", &character, "Wanderer"),
    ] {
        let list = format!("/admin/c/port-town/{kind}");
        mara.post(&format!("{list}/{id}/delete"), &[("version", "1")]).await.expect(303);
        world.get(&format!("/{kind}/{id}")).await.expect(404);
        assert!(mara.get(&list).await.text.contains("/deleted\""));
        assert!(!viewer.get(&list).await.text.contains("/deleted\""));
        viewer.get(&format!("{list}/deleted")).await.expect(403);
        let page = mara.get(&format!("{list}/deleted")).await.expect(200).text;
        assert!(page.contains(name), "{page}");
        let sent = mara.post(&way_back(&page), &[]).await.expect(303);
        assert!(sent.header("location").ends_with(id.as_str()));
        assert_eq!(world.get(&format!("/{kind}/{id}")).await.expect(200).body["name"], name);
        assert!(mara.get(&format!("{list}/deleted")).await.text.contains("There are no deleted rows to restore"));
    }
}

/// A history of many changes has pages, down to the first change.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_goes_on_at_its_older_changes() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let id = world.post("/npcs", json!({ "name": "Old Tam" })).await.expect(201).id();
    for n in 1..=44 {
        world.patch(&format!("/npcs/{id}"), json!({ "faction": format!("guild{n}x") })).await.expect(200);
    }
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let (mut path, mut pages) = (format!("/admin/c/port-town/npcs/{id}/history"), Vec::new());
    loop {
        let page = mara.get(&path).await.expect(200).text;
        let next = page.split_once("rel=\"next\" href=\"").map(|(_, rest)| rest.split('"').next().unwrap().to_owned());
        pages.push(page);
        let Some(next) = next else { break };
        assert!(pages.len() < 10, "it never ends: {next}");
        path = next;
    }
    let sizes: Vec<usize> = pages.iter().map(|page| page.matches("<li><h2>").count()).collect();
    assert_eq!(sizes, [20, 20, 5]);
    for (at, words) in [(0, "<ins>guild44x"), (1, "<ins>guild24x"), (2, "created it")] {
        let of: Vec<usize> =
            pages.iter().enumerate().filter(|(_, page)| page.contains(words)).map(|(n, _)| n).collect();
        assert_eq!(of, [at], "{words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_have_a_history_and_come_back() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let npc = world.post("/npcs", json!({ "name": "Old Tam" })).await.expect(201).id();
    let memory = json!({ "player_id": "player_alice", "text": "She paid twice." });
    let id = world.post("/npcs/old_tam/memories", memory).await.expect(201).id();
    world.patch(&format!("/memories/{id}"), json!({ "text": "She paid once." })).await.expect(200);
    let path = format!("/admin/c/port-town/memories/{id}");
    let page = mara.get(&path).await.expect(200).text;
    assert!(page.contains("Old Tam (NPC)") && page.contains(&format!("{path}/history")), "{page}");
    let page = mara.get(&format!("{path}/history")).await.expect(200).text;
    assert!(page.contains("<del>twice</del>") || page.contains("twice"), "{page}");
    // A version that somebody else has left behind is refused, the present one is not.
    mara.post(&way_back(&page), &[("version", "1")]).await.expect(412);
    mara.post(&way_back(&page), &[("version", "2")]).await.expect(303);
    let text = async || world.get(&format!("/memories/{id}")).await.expect(200).body["text"].clone();
    assert_eq!(text().await, "She paid twice.");
    mara.post(&format!("{path}/delete"), &[("version", "3")]).await.expect(303);
    let page = mara.get("/admin/c/port-town/memories/deleted").await.expect(200).text;
    assert!(page.contains("She paid twice."), "{page}");
    mara.post(&way_back(&page), &[]).await.expect(303);
    assert_eq!(text().await, "She paid twice.");
    // Whose memory it was has to be there.
    mara.post(&format!("{path}/delete"), &[("version", "4")]).await.expect(303);
    world.delete(&format!("/npcs/{npc}")).await.expect(204);
    let refused = mara.post(&way_back(&page), &[]).await.expect(409);
    assert!(refused.text.contains("Restore them first"), "{}", refused.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_lead_nowhere_are_seen() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let mut viewer = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    let content = "# Head\n\nSee [[The Reach]], [[player_alice]] and [[Nowhere at all]].";
    let entry = json!({ "title": "Signpost", "scope": "global", "content": content });
    let id = world.post("/lore", entry).await.expect(201).id();
    let page = mara.get(&format!("/admin/c/port-town/lore/{id}")).await.expect(200).text;
    assert!(page.contains("<h3>Head</h3>") && page.matches("<h1").count() == 1, "{page}");
    assert!(page.contains("[[Nowhere at all]]</span>") && page.matches("class=\"broken\"").count() == 1, "{page}");
    let page = mara.get("/admin/c/port-town/lore/tidy").await.expect(200).text;
    assert!(page.contains("[[nowhere at all]]") && page.contains("Signpost"), "{page}");
    assert_eq!(page.matches("class=\"broken\"").count(), 1, "{page}");
    assert!(!viewer.get("/admin/c/port-town/lore/tidy").await.expect(200).text.contains("nowhere at all"));
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_names_campaigns_and_says_what_is_wrong() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("", json!({ "name": "The salt coast" })).await.expect(200);
    world.bob("player_alice", "Hello.").await.expect(200);
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let page = owner.get("/admin/usage?group_by=campaign").await.expect(200).text;
    assert!(page.contains("<th scope=\"row\" dir=\"auto\">The salt coast</th>"), "{page}");
    let page = owner.get("/admin/usage?from=2026-02-02&to=2026-02-01").await.expect(200).text;
    assert!(page.contains("must be before") && !page.contains("No model was called"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn single_keys_can_be_switched_off() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let Some(browser) = Browser::open().await else { return };
    sign_in(&browser, &server, EMAIL, &password).await;
    browser.sees("h1", "Campaigns").await;
    let at = |page: &str| format!("{}/admin/{page}", server.url);
    let press = "dispatchEvent(new KeyboardEvent('keydown', { key: 'j', bubbles: true })); \
                 return document.querySelectorAll('tr[aria-current]').length";
    browser.goto(&at("c/port-town/npcs")).await;
    assert_eq!(browser.js(press).await, 1);
    browser.goto(&at("account")).await;
    browser.click("#single-keys").await;
    browser.goto(&at("c/port-town/npcs")).await;
    assert_eq!(browser.js(press).await, 0);
    browser.click("#keys-button").await;
    browser.sees("dialog", "Your account has a switch that turns the shortcuts on again").await;
    browser.goto(&at("account")).await;
    assert_eq!(browser.js("return document.getElementById('single-keys').checked").await, false);
    // Offered names are those of the scope; who knows a secret is picked.
    browser.goto(&at("c/port-town/lore/the_reach")).await;
    browser.choose("#scope", "zone").await;
    browser.until("names", "return document.querySelectorAll('#names option').length > 0").await;
    let kinds = "return [...new Set([...document.querySelectorAll('#names option')].map((o) => o.innerText))]";
    assert_eq!(browser.js(kinds).await, json!(["zone"]));
    browser.write("#associated_id", "harbuor").await;
    browser.js("document.getElementById('associated_id').blur()").await;
    browser.sees("[data-unknown]", "has this name yet").await;
    browser.write("#known_by-add", "innkeeper_bob").await;
    browser.click(".adder button").await;
    assert_eq!(browser.value("#known_by").await.trim(), "innkeeper_bob");
}
