//! A form that is sent after the session has ended is not lost.

use edge::users::Role;

use super::{EMAIL, Visitor, field, form, forms::fields_of, sign_in};
use crate::support::{Server, browser::Browser};

const CAMPAIGN: &str = "/admin/c/port-town";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_outlives_the_session() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, &password).await.expect(303);
    let path = format!("{CAMPAIGN}/npcs");
    let end = async || {
        sqlx::query("DELETE FROM editor_session").execute(&mut server.owner().await).await.unwrap();
    };
    end().await;
    let written = [("name", "Zoe"), ("description", "She said \"no\".\nTwice & again.")];
    let page = mara.post(&path, &written).await;
    mara.keep(&page);
    let page = page.expect(401).text;
    assert!(page.contains("are not saved yet") && !page.contains("Zoe"), "{page}");
    // A wrong password loses nothing either.
    let mut kept = vec![("kept".to_owned(), field(&page, "kept")), ("kept_path".to_owned(), field(&page, "kept_path"))];
    for (word, status) in [("wrong", 401), (password.as_str(), 200)] {
        let mut fields = vec![("email", EMAIL), ("password", word)];
        fields.extend(kept.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let answer = mara.post("/admin/sign-in", &fields).await;
        mara.keep(&answer);
        let page = answer.expect(status).text;
        if status == 401 {
            assert_eq!(field(&page, "kept"), kept[0].1);
        } else {
            assert!(page.contains(&format!("action=\"{path}\"")) && page.contains("not saved yet"), "{page}");
            kept = fields_of(&page);
        }
    }
    world.get("/npcs/zoe").await.expect(404);
    let fields: Vec<(&str, &str)> = kept.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    mara.send(form(mara.request("POST", &path), &fields)).await.expect(303);
    assert_eq!(world.get("/npcs/zoe").await.expect(200).body["description"], "She said \"no\".\nTwice & again.");
    // Nothing of another site is carried.
    end().await;
    let foreign = form(mara.request("POST", &path), &written).header("origin", "https://evil.example");
    assert!(!mara.send(foreign).await.text.contains("name=\"kept\""));
}

/// Sends a form after the session has ended, signs in with what the sign-in form carries, and gives the page after it.
async fn signed_in_again(mara: &mut Visitor, password: &str, path: &str, fields: &[(&str, &str)]) -> String {
    let page = mara.post(path, fields).await;
    mara.keep(&page);
    let page = page.expect(401).text;
    let mut sent =
        vec![("email", EMAIL.to_owned()), ("kept", field(&page, "kept")), ("kept_path", field(&page, "kept_path"))];
    // A wrong password loses nothing.
    for (word, status) in [("wrong", 401), (password, 200)] {
        sent.push(("password", word.to_owned()));
        let fields: Vec<(&str, &str)> = sent.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = mara.post("/admin/sign-in", &fields).await;
        mara.keep(&answer);
        let page = answer.expect(status).text;
        if status == 200 {
            return page;
        }
        sent.pop();
    }
    unreachable!("the right password was sent")
}

/// Whatever its size, up to what the field allows.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_text_outlives_the_session() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, &password).await.expect(303);
    let path = format!("{CAMPAIGN}/lore");
    for (n, (letter, count)) in
        [("\u{416}", 12_000), ("\u{416}", 100_000), ("\u{9f8d}", 100_000), ("\u{1f409}", 100_000), ("\"", 100_000)]
            .iter()
            .enumerate()
    {
        sqlx::query("DELETE FROM editor_session").execute(&mut server.owner().await).await.unwrap();
        let (title, content) = (format!("Long {n}"), letter.repeat(*count));
        let written = [("title", title.as_str()), ("content", content.as_str()), ("scope", "global")];
        let page = signed_in_again(&mut mara, &password, &path, &written).await;
        let kept = fields_of(&page);
        let fields: Vec<(&str, &str)> = kept.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        mara.send(form(mara.request("POST", &path), &fields)).await.expect(303);
        let made = world.get(&format!("/lore/long_{n}")).await.expect(200);
        assert_eq!(made.body["content"].as_str().map(str::len), Some(content.len()), "{letter}");
        assert_eq!(made.body["content"], content.as_str());
    }
    // What no field could hold is not carried, and this is said.
    sqlx::query("DELETE FROM editor_session").execute(&mut server.owner().await).await.unwrap();
    let page = mara.post(&path, &[("content", &"x".repeat(2_200_000))]).await.expect(401).text;
    assert!(page.contains("larger than any that can be saved") && !page.contains("name=\"kept\""), "{page}");
    // The sign-in form has a limit, too.
    let refused = mara.post("/admin/sign-in", &[("kept", &"x".repeat(3_000_000))]).await;
    assert_eq!(refused.status, 413);
}

/// The same in a browser, as one without script sends forms.
#[tokio::test(flavor = "multi_thread")]
async fn a_browser_gives_a_long_text_back() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    let Some(browser) = Browser::open().await else { return };
    sign_in(&browser, &server, EMAIL, &password).await;
    browser.sees("h1", "Campaigns").await;
    browser.goto(&format!("{}{CAMPAIGN}/lore/new", server.url)).await;
    browser.write("#title", "A long night").await;
    browser.js("document.querySelector('#content').value = '\u{416}'.repeat(12000)").await;
    sqlx::query("DELETE FROM editor_session").execute(&mut server.owner().await).await.unwrap();
    browser.js("HTMLFormElement.prototype.submit.call(document.querySelector('#content').form)").await;
    browser.sees("[role=alert]", "your changes are not saved yet").await;
    browser.write("#email", EMAIL).await;
    browser.write("#password", &password).await;
    browser.click("main button").await;
    browser.sees("h1", "You are signed in again").await;
    browser.click("main button").await;
    browser.sees("[role=status]", "was created").await;
    let made = world.get("/lore/a_long_night").await.expect(200);
    assert_eq!(made.body["content"].as_str().map(|text| text.chars().count()), Some(12_000));
}

/// Secrets and files are left out, and the rest is kept.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_and_files_are_not_carried() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, &password).await.expect(303);
    let end = async || {
        sqlx::query("DELETE FROM editor_session").execute(&mut server.owner().await).await.unwrap();
    };
    end().await;
    let written = [("name", "Large"), ("api_key", "sk-hidden"), ("model", "large-1")];
    let page = signed_in_again(&mut mara, &password, "/admin/models/new", &written).await;
    assert!(page.contains("keys in it were left out") && page.contains("large-1"), "{page}");
    assert!(!page.contains("sk-hidden") && !page.contains("api_key"), "{page}");
    end().await;
    // The wish to remove a key is no secret. A recovery code is.
    let written = [("name", "Large"), ("api_key", ""), ("api_key_gone", "true")];
    let page = signed_in_again(&mut mara, &password, "/admin/models/large", &written).await;
    assert!(page.contains("name=\"api_key_gone\"") && !page.contains("were left out"), "{page}");
    end().await;
    let written = [("password", "old one"), ("code", "RECOVERY-1")];
    let page = mara.post("/admin/account/second-factor/remove", &written).await.expect(401).text;
    assert!(page.contains("enter your passwords or keys again") && !page.contains("RECOVERY"), "{page}");
    let written = [("password", "old one"), ("new_password", "a new one")];
    let page = mara.post("/admin/account/password", &written).await.expect(401).text;
    assert!(page.contains("enter your passwords or keys again") && !page.contains("new one"), "{page}");
    assert!(!page.contains("name=\"kept\""), "{page}");
    let file = "--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"t.json\"\r\n\r\n{}\r\n--x--\r\n";
    let request = mara.request("POST", &format!("{CAMPAIGN}/exchange/look")).body(file);
    let request = request.header("content-type", "multipart/form-data; boundary=x");
    let page = mara.send(request).await.expect(401).text;
    assert!(page.contains("choose your file again"), "{page}");
}

/// Somebody signs in again in one tab, and saves what was written in another.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_an_earlier_session_loses_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, &password).await.expect(303);
    let (path, origin) = (format!("{CAMPAIGN}/npcs"), server.url.clone());
    let before = mara.token();
    mara.sign_in(EMAIL, &password).await.expect(303);
    let written = [("form_token", before.as_str()), ("name", "Zoe"), ("description", "Twice & again.")];
    let request = form(mara.request("POST", &path), &written).header("origin", &origin);
    let page = mara.send(request).await.expect(403).text;
    assert!(page.contains("You have signed in again") && page.contains("Twice &#38; again."), "{page}");
    world.get("/npcs/zoe").await.expect(404);
    let kept = fields_of(&page);
    let fields: Vec<(&str, &str)> = kept.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    mara.send(form(mara.request("POST", &path), &fields)).await.expect(303);
    assert_eq!(world.get("/npcs/zoe").await.expect(200).body["description"], "Twice & again.");
    // Another site's form is not shown, nor one without a token.
    for (fields, origin) in [(&written[..], "https://evil.example"), (&written[1..], origin.as_str())] {
        let request = form(mara.request("POST", &path), fields).header("origin", origin);
        let page = mara.send(request).await.expect(403).text;
        assert!(!page.contains("Twice"), "{page}");
    }
}

/// The address of a form says what it does, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_sent_again_to_its_whole_address() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, &password).await.expect(303);
    sqlx::query("DELETE FROM editor_session").execute(&mut server.owner().await).await.unwrap();
    let path = format!("{CAMPAIGN}/lore/the_reach?go_on=1");
    let page = signed_in_again(&mut mara, &password, &path, &[("title", "The Reach")]).await;
    assert!(page.contains(&format!("action=\"{path}\"")), "{page}");
    // A form of one button is one as well.
    sqlx::query("DELETE FROM editor_session").execute(&mut server.owner().await).await.unwrap();
    let path = format!("{CAMPAIGN}/lore/bulk/x/undo");
    let page = signed_in_again(&mut mara, &password, &path, &[]).await;
    assert!(page.contains("What you asked for is not done yet") && page.contains(&path), "{page}");
    // A form that no page has.
    sqlx::query("DELETE FROM editor_session").execute(&mut server.owner().await).await.unwrap();
    let many: Vec<(&str, &str)> = vec![("a", ""); 3000];
    let page = mara.post(&path, &many).await.expect(401).text;
    assert!(page.contains("larger than any that can be saved"), "{page}");
}

/// Two tabs are sent after the session has ended. Signing in in one of them must not lose the other.
#[tokio::test(flavor = "multi_thread")]
async fn every_tab_gets_its_form_back() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, &password).await.expect(303);
    sqlx::query("DELETE FROM editor_session").execute(&mut server.owner().await).await.unwrap();
    let path = format!("{CAMPAIGN}/npcs");
    let mut tabs = Vec::new();
    for name in ["Zoe", "Zed"] {
        let page = mara.post(&path, &[("name", name)]).await;
        mara.keep(&page);
        tabs.push(page.expect(401).text);
    }
    let mut asked = Vec::new();
    for tab in &tabs {
        let kept: Vec<(String, String)> =
            ["form_token", "kept", "kept_path"].map(|name| (name.to_owned(), field(tab, name))).into();
        let mut fields: Vec<(&str, &str)> = kept.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        fields.extend([("email", EMAIL), ("password", &password)]);
        let request = form(mara.request("POST", "/admin/sign-in"), &fields).header("origin", &server.url);
        let answer = mara.send(request).await;
        mara.keep(&answer);
        asked.push((answer.status, answer.text));
    }
    assert_eq!((asked[0].0, asked[1].0), (200, 403));
    for ((_, page), name) in asked.iter().zip(["Zoe", "Zed"]) {
        assert!(page.contains(&format!("value=\"{name}\"")) && page.contains(&format!("action=\"{path}\"")), "{page}");
    }
    assert!(asked[1].1.contains("You have signed in again"), "{}", asked[1].1);
}
