//! Wrong passwords slow down whoever tries them, and nobody else.

use edge::users::Role;
use futures_util::future::join_all;

use super::{EMAIL, Visitor, form};
use crate::support::Server;

const PROXY: (&str, &str) = ("TAVERNKEEP_TRUSTED_PROXIES", "127.0.0.0/8, ::1");

/// The status of a try from an address, as a proxy tells it.
async fn tried(visitor: &Visitor, from: &str, email: &str, password: &str) -> u16 {
    let token = visitor.token();
    let fields = [("form_token", token.as_str()), ("email", email), ("password", password)];
    let request = form(visitor.request("POST", "/admin/sign-in"), &fields).header("x-forwarded-for", from);
    visitor.send(request).await.status
}

async fn at_the_door(server: &Server) -> Visitor {
    let mut visitor = Visitor::at(server);
    visitor.get("/admin/sign-in").await.expect(200);
    visitor
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_lock_nobody_out() {
    let server = Server::start_with(&[PROXY]).await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Viewer).await;
    let visitor = at_the_door(&server).await;
    // Many addresses, until each of them has to wait.
    for n in 1..=6 {
        let from = format!("203.0.113.{n}");
        let mut last = 0;
        for _ in 0..6 {
            last = tried(&visitor, &from, EMAIL, "not the password").await;
        }
        assert_eq!(last, 429);
        assert_eq!(tried(&visitor, &from, EMAIL, &password).await, 429);
    }
    // From where nobody failed the right password is let in at once.
    for from in ["198.51.100.7", "2001:db8::1"] {
        assert_eq!(tried(&visitor, from, EMAIL, &password).await, 303);
    }
    // A client's own words before the proxy's change nothing, and neighbours in a network of IPv6 are one.
    assert_eq!(tried(&visitor, "198.51.100.9, 203.0.113.1", EMAIL, &password).await, 429);
    for n in 1..=5 {
        assert_eq!(tried(&visitor, &format!("2001:db8:1::{n}"), EMAIL, "not the password").await, 401);
    }
    assert_eq!(tried(&visitor, "2001:db8:1::77", EMAIL, "not the password").await, 429);
    assert_eq!(tried(&visitor, "2001:db8:2::77", EMAIL, &password).await, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_believed_who_is_no_trusted_proxy() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Viewer).await;
    let visitor = at_the_door(&server).await;
    for n in 1..=5 {
        assert_eq!(tried(&visitor, &format!("203.0.113.{n}"), EMAIL, "not the password").await, 401);
    }
    assert_eq!(tried(&visitor, "203.0.113.99", EMAIL, &password).await, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_one_however_it_is_written() {
    let server = Server::start_with(&[PROXY]).await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, "Kim@example.org", Role::Viewer).await;
    let visitor = at_the_door(&server).await;
    for email in ["kim@example.org", "KIM@EXAMPLE.ORG", " kIm@example.org", "kim@EXAMPLE.org", "Kim@example.org"] {
        assert_eq!(tried(&visitor, "203.0.113.1", email, "not the password").await, 401, "{email}");
    }
    for email in ["kim@example.org", "KIM@example.ORG"] {
        assert_eq!(tried(&visitor, "203.0.113.1", email, &password).await, 429, "{email}");
    }
    // What only looks like it, or is folded to it elsewhere, is another account, which there is not.
    for email in ["K\u{130}m@example.org", "k\u{131}m@example.org", "\u{212A}im@example.org"] {
        assert_eq!(tried(&visitor, "203.0.113.2", email, &password).await, 401, "{email}");
    }
    assert_eq!(tried(&visitor, "203.0.113.2", "KIM@example.org", &password).await, 303);
    let folded: String =
        sqlx::query_scalar("SELECT email_folded FROM app_user").fetch_one(&mut server.owner().await).await.unwrap();
    assert_eq!(folded, "kim@example.org");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_are_no_more_than_many_in_turn() {
    let server = Server::start_with(&[PROXY]).await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Viewer).await;
    let visitor = at_the_door(&server).await;
    let right = join_all((0..16).map(|_| tried(&visitor, "203.0.113.1", EMAIL, &password))).await;
    assert_eq!(right, [303; 16]);
    let wrong = join_all((0..16).map(|_| tried(&visitor, "203.0.113.2", EMAIL, "not the password"))).await;
    assert_eq!(wrong.iter().filter(|status| **status == 401).count(), 5, "{wrong:?}");
    assert_eq!(wrong.iter().filter(|status| **status == 429).count(), 11, "{wrong:?}");
    assert_eq!(tried(&visitor, "203.0.113.1", EMAIL, &password).await, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_password_for_many_accounts_is_slow_too() {
    let server = Server::start_with(&[PROXY]).await;
    let tenant = server.tenant("acme").await;
    let password = server.user(tenant.tenant, EMAIL, Role::Viewer).await;
    let visitor = at_the_door(&server).await;
    for n in 0..110 {
        let status = tried(&visitor, "203.0.113.1", &format!("nobody{n}@example.org"), "summer and winter").await;
        if status == 429 {
            assert!(n >= 90, "{n}");
            assert_eq!(tried(&visitor, "203.0.113.2", EMAIL, &password).await, 303);
            return;
        }
        assert_eq!(status, 401);
    }
    panic!("it could be tried for ever");
}
