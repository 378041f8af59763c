//! How every page looks: without barriers, in light and dark, on a desk and on a phone, with nothing the policy forbids.

use edge::users::Role;
use pages::admin::PAGES;
use serde_json::{Value, json};

use super::{EMAIL, Visitor, is_file, is_stream, sign_in};
use crate::support::{
    Rows, Server,
    browser::{Browser, Look},
    patiently,
};

const AXE: &str = include_str!("../vendor/axe.min.js");
/// Axe reports nothing about elements that are as they should be. It would find a selector for each of them.
const LITTLE: &str = "resultTypes: ['violations'], selectors: false, preload: false, iframes: false";
/// Bytes of the first page with everything that it loads except for fonts, as they are sent.
const FIRST_PAGE_BYTES_MAX: u64 = 60 * 1024;
/// The narrowest screen, in CSS pixels.
const NARROW: u32 = 320;

/// All rules, and those whose findings depend on the colours.
const ALL: &str = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']";
const COLOURS: &str = "{ type: 'rule', values: ['color-contrast', 'link-in-text-block'] }";

/// What axe finds on the page that is shown, as `rule: elements`.
pub async fn barriers(browser: &Browser) -> Vec<String> {
    broken(browser, ALL).await
}

/// What axe finds in the colours of the page that is shown: a page in other colours has no other barriers.
pub async fn bad_colours(browser: &Browser) -> Vec<String> {
    broken(browser, COLOURS).await
}

async fn broken(browser: &Browser, rules: &str) -> Vec<String> {
    // A page needs it once.
    if browser.js("return typeof axe").await == "undefined" {
        browser.js(AXE).await;
    }
    let found = browser
        .js(&format!(
            "return axe.run({{ runOnly: {rules}, {LITTLE} }})\
             .then((found) => found.violations.map((v) => `${{v.id}}: ${{v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')}}`))"
        ))
        .await;
    found.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
}

/// What is wrong with the page that is shown, in light and in dark colours and on a phone.
async fn wrong_with(browser: &Browser, page: &str) -> Vec<String> {
    let light = barriers(browser).await;
    browser.look_at(Look::Dark).await;
    let ground = browser.js("return getComputedStyle(document.body).backgroundColor").await;
    assert_eq!(ground, json!("rgb(15, 23, 24)"), "{page} is not dark");
    let dark = bad_colours(browser).await;
    browser.look_at(Look::Light).await;
    browser.narrow(Some(NARROW)).await;
    let over = browser.js("return document.documentElement.scrollWidth - document.documentElement.clientWidth").await;
    browser.narrow(None).await;
    let over = over.as_i64().filter(|over| *over > 0).map(|over| format!("{over} pixels wider than {NARROW}"));
    let all = light.into_iter().chain(dark.into_iter().map(|barrier| format!("in the dark: {barrier}"))).chain(over);
    all.map(|wrong| format!("{page}: {wrong}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_has_barriers_first_sixth() {
    no_page_has_barriers(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_has_barriers_second_sixth() {
    no_page_has_barriers(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_has_barriers_third_sixth() {
    no_page_has_barriers(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_has_barriers_fourth_sixth() {
    no_page_has_barriers(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_has_barriers_fifth_sixth() {
    no_page_has_barriers(4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_has_barriers_last_sixth() {
    no_page_has_barriers(5).await;
}

/// A sixth of all pages.
async fn no_page_has_barriers(part: usize) {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "A name that is quite long, with <b>marks</b> & quotes \"in it\"").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let Some(browser) = Browser::open().await else { return };
    let mut wrong = Vec::new();
    if part == 0 {
        browser.goto(&format!("{}/admin/sign-in", server.url)).await;
        wrong.extend(wrong_with(&browser, "sign-in").await);
    }
    sign_in(&browser, &server, EMAIL, &password).await;
    browser.sees("h1", "Campaigns").await;
    let pages = PAGES.iter().filter(|page| page.method == "GET" && !matches!(page.path, "" | "/" | "/sign-in"));
    for page in pages.filter(|page| !is_file(page.path) && !is_stream(page.path)).skip(part).step_by(6) {
        let path = rows.path(&format!("/admin{}", page.path));
        browser.goto(&format!("{}{path}", server.url)).await;
        // Everything that is folded is looked at as well.
        browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })").await;
        wrong.extend(wrong_with(&browser, page.path).await);
    }
    // The keys' help is the same on every page.
    if part == 5 {
        browser.js("document.getElementById('keys-button').click()").await;
        wrong.extend(wrong_with(&browser, "help").await);
    }
    assert_eq!(wrong, Vec::<String>::new());
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
        .js("return performance.getEntries().filter((e) => e.encodedBodySize !== undefined && !/\\.woff2$/.test(e.name)).map((e) => [e.name, e.encodedBodySize])")
        .await;
    let sum: u64 = sizes.as_array().unwrap().iter().map(|size| size[1].as_u64().unwrap()).sum();
    assert!(sum > 10_000 && sum <= FIRST_PAGE_BYTES_MAX, "{sum} bytes: {sizes}");
    // A swap of the rows leaves what is around them where it was.
    let places =
        "return ['h1', '.search', '#rows'].map((css) => document.querySelector(css).getBoundingClientRect().top)";
    let before: Value = browser.js(places).await;
    browser.write("#q", "bob").await;
    browser.until("one row", "return document.querySelectorAll('tbody tr').length === 1").await;
    assert_eq!(browser.js(places).await, before);
}

/// How far what is seen has moved since it was watched, as browsers count it; a page that is still coming in is not.
const SHIFTS: &str = "return window.shifts.reduce((sum, shift) => sum + shift.value, 0)";
const WATCH: &str = "window.shifts = []; new PerformanceObserver((list) => { for (const entry of list.getEntries()) \
    window.shifts.push({ value: entry.value, at: entry.sources.map((s) => s.node?.outerHTML?.slice(0, 80) ?? '') }); }) \
    .observe({ type: 'layout-shift' })";

/// What swaps moves nothing that is looked at, also where input would excuse it.
#[tokio::test(flavor = "multi_thread")]
async fn swaps_move_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for n in 0..120 {
        let entry =
            json!({ "title": format!("Entry {n}"), "scope": "global", "content": "Deep water.", "tags": ["deep"] });
        world.post("/lore", entry).await.expect(201);
    }
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let Some(browser) = Browser::open().await else { return };
    sign_in(&browser, &server, EMAIL, &password).await;
    browser.sees("h1", "Campaigns").await;
    let settled = async |what: &str| {
        // Nothing is on its way any more, what came has been drawn, and the observer was told of what moved by it.
        let drawn =
            "window.drawn = 0; const count = () => { if (++window.drawn < 6) requestAnimationFrame(count) }; count()";
        browser.js(drawn).await;
        let quiet =
            "return window.drawn >= 6 && !document.querySelector('.htmx-request, .htmx-swapping, .htmx-settling')";
        browser.until("all that comes", quiet).await;
        assert_eq!(browser.js(SHIFTS).await, json!(0), "{what}: {}", browser.js("return window.shifts").await);
    };
    // The preview grows below everything else.
    browser.goto(&format!("{}/admin/c/port-town/lore/the_reach", server.url)).await;
    browser.js(WATCH).await;
    let long = "# Deep\n\nThe Reach is a cold sea.\n\n".repeat(12);
    let fill = format!(
        "const field = document.getElementById('content'); field.value = {}; field.dispatchEvent(new Event('input', {{ bubbles: true }}))",
        json!(long)
    );
    browser.js(&fill).await;
    browser.until("a preview", "return document.querySelectorAll('#preview h3').length > 10").await;
    settled("preview").await;
    browser.sees("#saved", "Saved").await;
    settled("saved").await;
    // Rows of a list, by its filters and its pages.
    browser.goto(&format!("{}/admin/c/port-town/lore", server.url)).await;
    browser.js(WATCH).await;
    browser.js("const q = document.getElementById('q'); q.value = 'reach'; q.dispatchEvent(new Event('input', { bubbles: true })); q.dispatchEvent(new Event('change', { bubbles: true }))").await;
    browser
        .until("one row", "return document.querySelectorAll('tbody tr[data-row], table.lore tbody tr').length === 1")
        .await;
    settled("filters").await;
    // What went wrong is told over the page.
    browser.js("document.body.dispatchEvent(new Event('htmx:sendError'))").await;
    browser.sees("#alert", "cannot be reached").await;
    settled("an alert").await;
    // There and back, with what was ticked.
    browser.resize(1280, 900).await;
    browser.goto(&format!("{}/admin/c/port-town/lore", server.url)).await;
    browser.js(WATCH).await;
    browser.click("tbody input[name=ids]").await;
    browser.sees("[name=chosen]", "Edit 1 selected").await;
    let top = "return document.querySelector('table.lore').getBoundingClientRect().top";
    let with_ticks = browser.js(top).await;
    browser.click("[data-untick]").await;
    assert_eq!(browser.js(top).await, with_ticks, "the first tick moves the list");
    browser.click("tbody input[name=ids]").await;
    settled("the first tick").await;
    browser.click("a[rel=next]").await;
    browser.sees(".more", "Previous page").await;
    browser.js(WATCH).await;
    settled("paging").await;
    browser.sees("[name=chosen]", "Edit 1 selected").await;
    browser.click("tbody input[name=ids]").await;
    browser.sees("[name=chosen]", "Edit 2 selected").await;
    browser.click("a[rel=prev]").await;
    browser.until("the first page", "return !location.search.includes('cursor=')").await;
    assert_eq!(browser.count("tbody input[name=ids]:checked").await, 1);
    browser.click("[name=chosen]").await;
    browser.sees("main", "2 entries.").await;
}

/// What Tab goes to is seen: no field lies wholly under the bar at the foot of a form.
#[tokio::test(flavor = "multi_thread")]
async fn what_tab_goes_to_is_seen() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let Some(browser) = Browser::open().await else { return };
    sign_in(&browser, &server, EMAIL, &password).await;
    browser.sees("h1", "Campaigns").await;
    for (width, height) in [(1200, 700), (500, 800)] {
        browser.resize(width, height).await;
        for page in ["lore/the_reach", "npcs/innkeeper_bob/edit", "lore/bulk?all=1"] {
            browser.goto(&format!("{}/admin/c/port-town/{page}", server.url)).await;
            let hidden = browser
                .js("const bar = document.querySelector('.world .buttons'); const hidden = []; \
                     for (const field of document.querySelectorAll('form.world :is(input:not([type=hidden]), select, textarea)')) { \
                       if (bar.contains(field) || !field.checkVisibility()) continue; field.focus(); \
                       const place = field.getBoundingClientRect(); \
                       if (place.top >= bar.getBoundingClientRect().top) hidden.push(field.name); } return hidden")
                .await;
            assert_eq!(hidden, json!([]), "{page} at {width}");
            let bar = browser.js("return document.querySelector('.world .buttons').offsetHeight").await;
            let bar_max = if width < 600 { 70 } else { 100 };
            assert!(bar.as_i64().unwrap() < bar_max, "{page} at {width}: the bar is {bar} high");
        }
    }
}

/// The lab of a large book is as small as any first page, as a proxy would compress it.
#[tokio::test(flavor = "multi_thread")]
async fn the_lab_of_a_large_book_is_small() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mut db = server.owner().await;
    sqlx::Executor::execute(
        &mut db,
        "INSERT INTO lore (tenant_id, id, campaign_id, slug, title, scope, associated_key, content, tags, priority, enabled, secret, \
            known_by, activation, keys, secondary_keys, logic, scan_depth, ai_lock, tokens) \
         SELECT tenant_id, uuid7(), campaign_id, 'l' || n, 'Entry ' || md5(n::text), 'global', '', repeat(md5(n::text) || ' ', 20), '[]', 0, true, \
            n % 5 = 0, '{}', 'keyword', jsonb_build_array('sea', md5('key' || n)), '[]', 'and_any', 4, false, 100 \
         FROM lore, generate_series(1, 10000) AS n WHERE slug = 'the_reach'",
    )
    .await
    .unwrap();
    let visitor = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    for action in ["I+look.", "The+sea."] {
        let path = format!("/admin/c/port-town/lab?entity=npc:innkeeper_bob&player=player_alice&action={action}");
        let page = patiently(|| visitor.send(visitor.request("GET", &path))).await.expect(200).text;
        let sent = compressed(&page);
        println!("{path}: {} bytes, {sent} compressed", page.len());
        assert!(page.contains("Other entries that are out"), "{page}");
        assert!(
            sent + 25 * 1024 <= usize::try_from(FIRST_PAGE_BYTES_MAX).unwrap(),
            "{sent} beside the script and style"
        );
    }
}

/// Bytes as gzip leaves them.
fn compressed(text: &str) -> usize {
    use std::io::Write;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap().len()
}

/// A page's head is that of its GET, without a body.
#[tokio::test(flavor = "multi_thread")]
async fn pages_have_heads() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let visitor = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let head = visitor.send(visitor.request("HEAD", "/admin/c/port-town/lore")).await.expect(200);
    assert!(head.text.is_empty() && head.header("content-type").starts_with("text/html"));
    visitor.send(visitor.request("HEAD", "/admin/c/port-town/lore/nothing")).await.expect(404);
}
