//! A worldbuilder in a real Chromium: files in and out, the prompt lab, a turn's trace, and the whole way from one to the other.

mod again;
mod exchange;
mod instructions;
mod lab;
mod trace;

use edge::users::Role;

use crate::support::{Client, browser::Browser};

const EMAIL: &str = "wilma@example.org";
const PASSWORD: &str = "a password nobody guesses";

/// Somebody of this role, signed in; none if there is no browser on this machine.
async fn signed_in(tenant: &Client<'_>, role: Role) -> Option<Browser> {
    tenant.server.user(tenant.tenant, EMAIL, role).await;
    let browser = Browser::open().await?;
    browser.goto(&format!("{}/admin", tenant.server.url)).await;
    browser.write("#email", EMAIL).await;
    browser.write("#password", PASSWORD).await;
    browser.click("main button").await;
    browser.sees("header", "Sign out").await;
    Some(browser)
}

/// A page of the campaign.
async fn go(browser: &Browser, tenant: &Client<'_>, page: &str) {
    browser.goto(&format!("{}/admin/c/port-town/{page}", tenant.server.url)).await;
}

/// Keeps a picture where one is asked for.
async fn picture(browser: &Browser, name: &str) {
    if let Ok(folder) = std::env::var("TAVERNKEEP_PICTURES") {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(format!("{folder}/{name}.png"), browser.screenshot().await).unwrap();
    }
}

/// Nothing of what was written became markup, and nothing in the console complains.
async fn is_sound(browser: &Browser) {
    assert_eq!(
        browser
            .js("return window.pwned === undefined && document.querySelectorAll('main script, main img').length === 0")
            .await,
        true
    );
    assert_eq!(
        browser.js("return document.documentElement.scrollWidth <= innerWidth").await,
        true,
        "it runs over the edge"
    );
}
