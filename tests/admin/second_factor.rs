//! A second factor: set up, asked for, lost, and required.

use base::clock;
use edge::users::Role;
use futures_util::future::join_all;
use serde_json::json;
use totp_rs::{Builder, Secret};

use super::{EMAIL, Visitor, form, looks::barriers};
use crate::support::{Server, browser::Browser};

/// A generator of somebody's codes.
struct Generator(totp_rs::Totp);

impl Generator {
    fn of(secret: &str) -> Self {
        let secret = Secret::try_from_base32(secret.replace(' ', "")).unwrap();
        Self(Builder::new().with_secret(secret).build().unwrap())
    }

    /// The code of now, or so many steps later.
    fn code(&self, steps: i64) -> String {
        self.0.generate(u64::try_from(clock::now().unix_timestamp() + 30 * steps).unwrap()).to_string()
    }
}

fn between(page: &str, before: &str, after: &str) -> String {
    page.split_once(before).unwrap_or_else(|| panic!("no {before}: {page}")).1.split(after).next().unwrap().to_owned()
}

/// A second factor as it was set up.
struct SetUp {
    generator: Generator,
    /// The code that confirmed it, and so is used.
    code: String,
    recovery: Vec<String>,
}

async fn set_up(visitor: &mut Visitor, password: &str) -> SetUp {
    let page = visitor.post("/admin/account/second-factor", &[("password", password)]).await.expect(200).text;
    assert!(page.contains("otpauth://totp/"), "{page}");
    let generator = Generator::of(&between(&page, "<code class=\"secret\">", "<"));
    let code = generator.code(0);
    let page = visitor.post("/admin/account/second-factor/confirm", &[("code", &code)]).await.expect(200).text;
    let list = between(&page, "<ul class=\"codes\">", "</ul>");
    let recovery: Vec<String> =
        list.split("<code>").skip(1).map(|rest| rest.split('<').next().unwrap().to_owned()).collect();
    assert_eq!(recovery.len(), 10);
    SetUp { generator, code, recovery }
}

/// As if time had gone on: codes of before are not used yet.
async fn later(server: &Server) {
    sqlx::query("UPDATE app_user SET totp_step = 0").execute(&mut server.owner().await).await.unwrap();
}

async fn show(visitor: &mut Visitor, code: &str) -> crate::support::Answer {
    let answer = visitor.post("/admin/sign-in/code", &[("code", code), ("next", "/admin/campaigns")]).await;
    visitor.keep(&answer);
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn the_password_alone_is_half_of_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let (mut mara, mut there) = (Visitor::at(&server), Visitor::at(&server));
    mara.sign_in(EMAIL, &password).await.expect(303);
    there.sign_in(EMAIL, &password).await.expect(303);
    mara.post("/admin/account/second-factor", &[("password", "another")]).await.expect(422);
    mara.post("/admin/account/second-factor/confirm", &[("code", "000000")]).await.expect(422);
    let SetUp { generator, code: used, .. } = set_up(&mut mara, &password).await;
    assert_eq!(there.get("/admin/campaigns").await.status, 303, "a session of the password alone goes on");
    mara.get("/admin/campaigns").await.expect(200);
    // The secret is sealed, the codes are hashed.
    let row = "SELECT to_jsonb(u)::text || (SELECT string_agg(encode(hash, 'escape'), '') FROM recovery_code) FROM app_user u";
    let stored: String = sqlx::query_scalar(row).fetch_one(&mut server.owner().await).await.unwrap();
    assert!(!stored.contains(&generator.0.secret().to_base32()), "{stored}");

    let mut guest = Visitor::at(&server);
    let asked = guest.sign_in(EMAIL, &password).await.expect(200);
    assert!(asked.text.contains("Your code"), "{}", asked.text);
    // Half a session is none: no page, no form, no invitation knows it.
    for path in ["/admin/campaigns", "/admin/account", "/admin/tenants"] {
        assert_eq!(guest.get(path).await.status, 303, "{path}");
    }
    guest.post("/admin/account/password", &[("password", &password)]).await.expect(401);
    show(&mut guest, "not a code").await.expect(401);
    // The code that set it up was used.
    show(&mut guest, &used).await.expect(401);
    let code = generator.code(1);
    let entered = show(&mut guest, &code).await.expect(303);
    assert_eq!(entered.header("location"), "/admin/campaigns");
    guest.get("/admin/campaigns").await.expect(200);
    // Each code once, also in another browser.
    let mut again = Visitor::at(&server);
    again.sign_in(EMAIL, &password).await.expect(200);
    show(&mut again, &code).await.expect(401);
    assert_eq!(again.get("/admin/campaigns").await.status, 303);
    // The half that was used up begins nothing more.
    let stale = form(again.request("POST", "/admin/sign-in/code"), &[("code", "1")]);
    again.send(stale).await.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_good_once_for_many_at_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, &password).await.expect(303);
    let SetUp { generator, recovery, .. } = set_up(&mut mara, &password).await;
    for code in [generator.code(1), recovery[3].clone()] {
        let mut guests = Vec::new();
        for _ in 0..5 {
            let mut guest = Visitor::at(&server);
            guest.sign_in(EMAIL, &password).await.expect(200);
            guests.push(guest);
        }
        let tried = async |guest: &Visitor| guest.post("/admin/sign-in/code", &[("code", code.as_str())]).await.status;
        let statuses = join_all(guests.iter().map(tried)).await;
        assert_eq!(statuses.iter().filter(|status| **status == 303).count(), 1, "{statuses:?}");
        // A right one forgets the wrong ones before it.
        let mut guest = Visitor::at(&server);
        guest.sign_in(EMAIL, &password).await.expect(200);
        later(&server).await;
        show(&mut guest, &generator.code(0)).await.expect(303);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_codes_is_slow_wherever_it_is_done() {
    let server = Server::start_with(&[("TAVERNKEEP_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, &password).await.expect(303);
    let SetUp { generator, .. } = set_up(&mut mara, &password).await;
    let mut statuses = Vec::new();
    for n in 0..6 {
        let mut thief = Visitor::at(&server);
        // Knowing the password does not begin the count anew, nor does another address.
        thief.sign_in(EMAIL, &password).await.expect(200);
        let token = thief.token();
        let guess = form(thief.request("POST", "/admin/sign-in/code"), &[("form_token", &token), ("code", "000000")]);
        statuses.push(thief.send(guess.header("x-forwarded-for", format!("203.0.113.{n}"))).await.status);
    }
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429]);
    let mut late = Visitor::at(&server);
    late.sign_in(EMAIL, &password).await.expect(200);
    let refused = show(&mut late, &generator.code(1)).await.expect(429);
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_lost_the_generator_has_recovery_codes_and_an_operator() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, &password).await.expect(303);
    let SetUp { generator, recovery, .. } = set_up(&mut mara, &password).await;
    let mut guest = Visitor::at(&server);
    guest.sign_in(EMAIL, &password).await.expect(200);
    show(&mut guest, &recovery[0].to_uppercase()).await.expect(303);
    assert!(guest.get("/admin/account").await.expect(200).text.contains("Recovery codes left: 9."));
    let mut again = Visitor::at(&server);
    again.sign_in(EMAIL, &password).await.expect(200);
    show(&mut again, &recovery[0]).await.expect(401);
    // A new password by a link leaves the second factor.
    let mut db = server.owner().await;
    let link = edge::users::links::reset_by_operator(&mut db, EMAIL).await.unwrap();
    again.choose_password(&link, "a wagon of mulberries").await.expect(303);
    show(&mut again, &recovery[1]).await.expect(401);
    assert!(again.sign_in(EMAIL, "a wagon of mulberries").await.expect(200).text.contains("Your code"));
    show(&mut again, &recovery[1]).await.expect(303);
    // It is taken away by who knows both.
    let remove = "/admin/account/second-factor/remove";
    again.post(remove, &[("password", "another"), ("code", &recovery[2])]).await.expect(422);
    again.post(remove, &[("password", "a wagon of mulberries"), ("code", "000000")]).await.expect(422);
    later(&server).await;
    again.post(remove, &[("password", "a wagon of mulberries"), ("code", &generator.code(0))]).await.expect(303);
    let mut plain = Visitor::at(&server);
    plain.sign_in(EMAIL, "a wagon of mulberries").await.expect(303);
    // Or by the operator.
    set_up(&mut plain, "a wagon of mulberries").await;
    edge::users::operator::reset_second_factor(&mut db, "MARA@example.org").await.unwrap();
    assert_eq!(plain.get("/admin/campaigns").await.status, 303);
    plain.sign_in(EMAIL, "a wagon of mulberries").await.expect(303);
    assert!(edge::users::operator::reset_second_factor(&mut db, "nobody@example.org").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_can_ask_it_of_its_users() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let other = server.tenant("other").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    server.user(other.tenant, EMAIL, Role::Editor).await;
    let mut mara = Visitor::at(&server);
    mara.sign_in(EMAIL, &password).await.expect(303);
    tenant.patch("/v1/tenant", json!({ "settings": { "second_factor_required": true } })).await.expect(200);
    // At once, in the session that is there: pages and forms lead to the account, and do nothing.
    for path in ["/admin/campaigns", "/admin", "/admin/c/port-town/npcs"] {
        assert_eq!(mara.get(path).await.expect(303).header("location"), "/admin/account", "{path}");
    }
    mara.post("/admin/c/port-town/npcs", &[("name", "Zed")]).await.expect(303);
    assert!(tenant.get("/v1/campaigns/port-town/npcs?q=Zed").await.items().is_empty());
    assert!(mara.get("/admin/account").await.expect(200).text.contains("<bdi>acme</bdi> requires a second factor"));
    // Another tenant does not.
    mara.post("/admin/tenants", &[("tenant", &other.tenant.to_string())]).await.expect(303);
    mara.get("/admin/campaigns").await.expect(200);
    mara.post("/admin/tenants", &[("tenant", &tenant.tenant.to_string())]).await.expect(303);
    set_up(&mut mara, &password).await;
    mara.get("/admin/c/port-town/npcs").await.expect(200);
    // Keys are no users.
    tenant.get("/v1/campaigns").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_factor_in_a_real_browser() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Owner).await;
    let Some(browser) = Browser::open().await else { return };
    super::sign_in(&browser, &server, EMAIL, &password).await;
    browser.sees("h1", "Campaigns").await;
    browser.goto(&format!("{}/admin/account", server.url)).await;
    browser.write("#factor-password", &password).await;
    browser.click("form[action$='second-factor'] button").await;
    browser.sees("main", "The code that the app shows now").await;
    let generator = Generator::of(&browser.text("code.secret").await);
    assert_eq!(barriers(&browser).await, Vec::<String>::new());
    browser.write("#factor-code", &generator.code(0)).await;
    browser.click("form[action$='confirm'] button").await;
    browser.sees("[role=status]", "Keep these recovery codes").await;
    assert_eq!(browser.count(".codes code").await, 10);
    browser.sees("main", "Recovery codes left: 10.").await;
    assert_eq!(barriers(&browser).await, Vec::<String>::new());
    drop(browser);
    let Some(browser) = Browser::open().await else { return };
    super::sign_in(&browser, &server, EMAIL, &password).await;
    browser.sees("h1", "Your code").await;
    assert_eq!(barriers(&browser).await, Vec::<String>::new());
    browser.write("#code", "000000").await;
    browser.click("main button").await;
    browser.sees("[role=alert]", "This code is wrong").await;
    browser.write("#code", &generator.code(1)).await;
    browser.click("main button").await;
    browser.sees("h1", "Campaigns").await;
}
