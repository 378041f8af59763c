//! How every page looks: without barriers, in light and dark, on a desk and on a phone, with nothing the policy forbids.

use serde_json::{Value, json};
use tavernkeep::{admin::PAGES, users::Role};

use super::{EMAIL, is_file, sign_in};
use crate::support::{
    Rows, Server,
    browser::{Browser, Look},
};

const AXE: &str = include_str!("../vendor/axe.min.js");
/// Bytes of the first page with everything that it loads, as they are sent.
const FIRST_PAGE_BYTES_MAX: u64 = 60 * 1024;

/// What axe finds on the page that is shown, as `rule: elements`.
pub async fn barriers(browser: &Browser) -> Vec<String> {
    let found = browser
        .js(&format!(
            "{AXE}; return axe.run({{ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }})\
             .then((found) => found.violations.map((v) => `${{v.id}}: ${{v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')}}`))"
        ))
        .await;
    found.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
}

async fn look_at_every_page(look: Look) {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "A name that is quite long, with <b>marks</b> & quotes \"in it\"").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let Some(browser) = Browser::open_as(look).await else { return };
    browser.goto(&format!("{}/admin/sign-in", server.url)).await;
    let mut wrong: Vec<String> = barriers(&browser).await.into_iter().map(|b| format!("sign-in: {b}")).collect();
    sign_in(&browser, &server, EMAIL, &password).await;
    browser.sees("h1", "Campaigns").await;
    for page in PAGES.iter().filter(|page| page.method == "GET" && !matches!(page.path, "" | "/" | "/sign-in")) {
        if is_file(page.path) {
            continue;
        }
        let path = rows.path(&format!("/admin{}", page.path));
        browser.goto(&format!("{}{path}", server.url)).await;
        // Everything that is folded is looked at as well.
        browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })").await;
        wrong.extend(barriers(&browser).await.into_iter().map(|b| format!("{}: {b}", page.path)));
        if look == Look::Dark {
            let ground = browser.js("return getComputedStyle(document.body).backgroundColor").await;
            assert_eq!(ground, json!("rgb(26, 23, 20)"), "it is not dark");
        } else {
            browser.resize(500, 850).await;
            let over =
                browser.js("return document.documentElement.scrollWidth - document.documentElement.clientWidth").await;
            if over.as_i64().unwrap() > 0 {
                wrong.push(format!("{}: {over} pixels wider than a phone", page.path));
            }
            browser.resize(1200, 900).await;
        }
    }
    // The keys' help is a part of every page.
    browser.js("document.getElementById('keys-button').click()").await;
    wrong.extend(barriers(&browser).await.into_iter().map(|b| format!("help: {b}")));
    assert_eq!(wrong, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_has_barriers_in_light() {
    look_at_every_page(Look::Light).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_has_barriers_in_dark() {
    look_at_every_page(Look::Dark).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_page_is_small_and_does_not_jump() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let Some(browser) = Browser::open().await else { return };
    sign_in(&browser, &server, EMAIL, &password).await;
    browser.sees("h1", "Campaigns").await;
    browser.goto(&format!("{}/admin/c/port-town/npcs", server.url)).await;
    let sizes = browser
        .js("return performance.getEntries().filter((e) => e.encodedBodySize !== undefined).map((e) => [e.name, e.encodedBodySize])")
        .await;
    let sum: u64 = sizes.as_array().unwrap().iter().map(|size| size[1].as_u64().unwrap()).sum();
    assert!(sum > 10_000 && sum <= FIRST_PAGE_BYTES_MAX, "{sum} bytes: {sizes}");
    let asset = server
        .anonymous()
        .request(reqwest::Method::GET, "/static/htmx.min.js")
        .header("accept-encoding", "gzip;q=1.0, br");
    assert_eq!(server.anonymous().send(asset).await.expect(200).header("content-encoding"), "gzip");
    // A swap of the rows leaves what is around them where it was.
    let places =
        "return ['h1', '.search', '#rows'].map((css) => document.querySelector(css).getBoundingClientRect().top)";
    let before: Value = browser.js(places).await;
    browser.write("#q", "bob").await;
    browser.until("one row", "return document.querySelectorAll('tbody tr').length === 1").await;
    assert_eq!(browser.js(places).await, before);
}
