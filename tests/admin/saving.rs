//! A page that saves what somebody writes, by itself and by its button: what was written is stored, or it is said that it is not.

use edge::users::Role;
use serde_json::json;

use super::{EMAIL, Visitor, field, form, forms::fields_of, sign_in, somebody_waits};
use crate::support::{Client, Server, browser::Browser};

/// From here on the server is not to be reached by requests whose address ends with this.
fn unplugged(path_end: &str) -> String {
    let end = json!(path_end);
    format!(
        "window.plugged = XMLHttpRequest.prototype.open;
         XMLHttpRequest.prototype.open = function (method, url, ...rest) {{
           return window.plugged.call(this, method, url.endsWith({end}) ? 'http://127.0.0.1:1/' : url, ...rest);
         }};"
    )
}

const PLUGGED: &str = "XMLHttpRequest.prototype.open = window.plugged; dispatchEvent(new Event('online'))";
/// Whether leaving the page is asked about.
const ASKS: &str = "const event = new Event('beforeunload', { cancelable: true }); dispatchEvent(event); return event.defaultPrevented";
const CTRL_S: &str =
    "dispatchEvent(new KeyboardEvent('keydown', { key: 's', ctrlKey: true, bubbles: true, cancelable: true }))";

/// Mara at the entry The Reach, and her password.
async fn at_the_reach(server: &Server, tenant: &Client<'_>) -> Option<(Browser, String)> {
    let world = tenant.world().await;
    let id = world.get("/lore/the_reach").await.id();
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    let browser = Browser::open().await?;
    sign_in(&browser, server, EMAIL, &password).await;
    browser.sees("h1", "Campaigns").await;
    browser.goto(&format!("{}/admin/c/port-town/lore/{id}", server.url)).await;
    Some((browser, password))
}

async fn content(tenant: &Client<'_>) -> String {
    let row = tenant.get("/v1/campaigns/port-town/lore/the_reach").await.expect(200).body;
    row["content"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn saving_by_key_leaves_one_where_one_is() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let Some((browser, _)) = at_the_reach(&server, &tenant).await else { return };
    browser.write("#content", "One.").await;
    browser.js("window.isSame = true; document.getElementById('content').setSelectionRange(2, 2)").await;
    // Again and again, also while the page saves by itself: nobody is in their own way.
    for text in ["Two.", "Three.", "Four."] {
        let write = format!(
            "const field = document.getElementById('content'); field.setRangeText({}, 0, field.value.length, 'start');
             field.setSelectionRange(2, 2); htmx.trigger('#entry', 'again'); {CTRL_S}; {CTRL_S}",
            json!(text)
        );
        browser.js(&write).await;
    }
    browser.sees("#saved .saved", "Saved").await;
    browser.until("kept", format!("return !(() => {{ {ASKS} }})()")).await;
    assert_eq!(content(&tenant).await, "Four.");
    let now = "return [window.isSame, document.activeElement.id, document.activeElement.selectionStart]";
    assert_eq!(browser.js(now).await, json!([true, "content", 2]));
    assert_eq!(browser.count("#saved .error, #alert .alert").await, 0);
    // What is wrong is said where "Saved" stood, and stays until it is mended.
    for (field, wrong, right) in [("#priority", "x", "3"), ("#title", " ", "The Reach")] {
        browser.write(field, wrong).await;
        browser.sees("#saved", "Not saved yet.").await;
        assert_eq!((browser.count("#saved .saved").await, browser.js(ASKS).await), (0, json!(true)));
        browser.write(field, right).await;
        browser.sees("#saved .saved", "Saved").await;
    }
    // A button that merely has the focus is not pressed.
    browser.write("#content", "Five.").await;
    browser.js("document.querySelector('button[formaction]').focus()").await;
    browser.until("kept", format!("return !(() => {{ {ASKS} }})()")).await;
    assert_eq!(content(&tenant).await, "Five.");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_did_not_reach_the_server_is_sent_again() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let Some((browser, _)) = at_the_reach(&server, &tenant).await else { return };
    let path = browser.js("return location.pathname").await.as_str().unwrap().to_owned();
    browser.write("#content", "First.").await;
    browser.sees("#saved .saved", "Saved").await;
    browser.js(&unplugged(&path)).await;
    browser.write("#content", "It is **second**.").await;
    browser.sees("#saved", "The server cannot be reached.").await;
    // Its preview came; it is not taken for saved.
    browser.sees("#preview strong", "second").await;
    assert_eq!((browser.count("#saved .saved").await, browser.js(ASKS).await), (0, json!(true)));
    browser.js(PLUGGED).await;
    browser.sees("#saved .saved", "Saved").await;
    assert_eq!((content(&tenant).await.as_str(), browser.js(ASKS).await), ("It is **second**.", json!(false)));
    // Also without being told that there is a network again.
    browser.js(&unplugged(&path)).await;
    browser.write("#content", "Third.").await;
    browser.sees("#saved", "The server cannot be reached.").await;
    browser.js("XMLHttpRequest.prototype.open = window.plugged").await;
    browser.sees("#saved .saved", "Saved").await;
    assert_eq!(content(&tenant).await, "Third.");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_signed_out_signs_in_and_goes_on() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let Some((browser, password)) = at_the_reach(&server, &tenant).await else { return };
    let path = browser.js("return location.pathname").await.as_str().unwrap().to_owned();
    let mut db = server.owner().await;
    sqlx::query("DELETE FROM editor_session").execute(&mut db).await.unwrap();
    browser.write("#content", "Still here.").await;
    browser.sees("#saved", "You are signed out").await;
    let way = browser.js("return new URL(document.querySelector('#saved a').href).searchParams.get('next')").await;
    assert_eq!((way, browser.value("#content").await), (json!(path), "Still here.".to_owned()));
    // As another tab does.
    let enter = format!(
        "return fetch('/admin/sign-in').then((answer) => answer.text()).then((text) => {{
           const page = new DOMParser().parseFromString(text, 'text/html');
           const form_token = page.querySelector('[name=form_token]').value;
           return fetch('/admin/sign-in', {{ method: 'POST', body: new URLSearchParams({{ form_token, email: {}, password: {} }}) }});
         }}).then((answer) => answer.ok)",
        json!(EMAIL),
        json!(password)
    );
    assert_eq!(browser.js(&enter).await, json!(true));
    browser.js("dispatchEvent(new Event('focus'))").await;
    browser.sees("#saved .saved", "Saved").await;
    assert_eq!(content(&tenant).await, "Still here.");
    // Where only the visit is another, nobody has to do anything.
    assert_eq!(browser.js(&enter).await, json!(true));
    browser.write("#content", "And on.").await;
    browser.until("kept", format!("return !(() => {{ {ASKS} }})()")).await;
    assert_eq!(content(&tenant).await, "And on.");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_meanwhile_is_made_anew() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    // Without script: the form again.
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let path = format!("/admin/c/port-town/lore/{}", world.get("/lore/the_square").await.id());
    let page = mara.get(&path).await.expect(200).text;
    let mut fields = fields_of(&page);
    fields.retain(|(name, _)| !matches!(name.as_str(), "form_token" | "content"));
    fields.push(("content".to_owned(), "Kept <b>here</b>".to_owned()));
    let fields: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    world.delete("/lore/the_square").await;
    let again = mara.post(&path, &fields).await.expect(404).text;
    assert!(again.contains("Somebody deleted this entry") && again.contains("Kept &#60;b&#62;here"), "{again}");
    let form_id = field(&again, "form_id");
    let anew: Vec<_> = fields.iter().copied().chain([("form_id", form_id.as_str())]).collect();
    mara.post("/admin/c/port-town/lore", &anew).await.expect(303);
    assert_eq!(world.get("/lore/the_square").await.expect(200).body["content"], "Kept <b>here</b>");
    // Who is signed out is sent back to where they were, and a page that sends what is written stays.
    let stranger = Visitor::at(&server);
    let sent = form(stranger.request("POST", &path), &[]).header("hx-request", "true");
    let shown = format!("{}{path}?x=1", server.url);
    let told = stranger.send(sent.header("hx-current-url", &shown)).await.expect(401);
    assert!(told.text.contains("next=%2Fadmin%2Fc%2Fport-town%2Flore%2F"), "{}", told.text);
    assert!(told.headers.get("hx-redirect").is_none());
    let asked = stranger.request("GET", "/admin/c/port-town/lore").header("hx-request", "true");
    let told = stranger.send(asked.header("hx-current-url", &shown)).await.expect(200);
    assert!(told.header("hx-redirect").ends_with("%3Fx%3D1"), "{}", told.header("hx-redirect"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_whose_entry_was_deleted_says_so() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let Some((browser, _)) = at_the_reach(&server, &tenant).await else { return };
    tenant.delete("/v1/campaigns/port-town/lore/the_reach").await;
    browser.write("#content", "Made anew.").await;
    browser.sees("#saved", "Somebody deleted this entry.").await;
    assert_eq!(browser.js(ASKS).await, json!(true));
    browser.click("#saved button").await;
    browser.sees("[role=status]", "The entry was created.").await;
    assert_eq!(content(&tenant).await, "Made anew.");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_on_to_the_lab_is_not_late_by_themselves() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let Some((browser, _)) = at_the_reach(&server, &tenant).await else { return };
    // The page saves by itself, and that is long on its way.
    let mut holder = server.owner().await;
    sqlx::query("BEGIN").execute(&mut holder).await.unwrap();
    sqlx::query("SELECT id FROM lore WHERE slug = 'the_reach' FOR UPDATE").execute(&mut holder).await.unwrap();
    browser.write("#content", "One.").await;
    somebody_waits(&server).await;
    browser.write("#content", "Two.").await;
    browser.js("document.querySelector('button[formaction*=lab]').click()").await;
    sqlx::query("ROLLBACK").execute(&mut holder).await.unwrap();
    browser.sees("#draft h2", "as it is in the form").await;
    browser.click("#draft button[form=lab]").await;
    browser.sees(".notes", "The entry was saved.").await;
    assert_eq!(content(&tenant).await, "Two.");
}
