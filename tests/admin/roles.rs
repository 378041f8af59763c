//! Every page and form of the editor for every role: a list, not memory.

use edge::users::Role;
use pages::admin::PAGES;
use reqwest::header::HeaderValue;

use super::{Visitor, form, is_file, is_stream};
use crate::support::{Rows, Server, counts};

const CANARY: &str = "canary-e41c77";
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");
/// What nobody is signed in for.
const OPEN: &[&str] = &["/sign-in", "/sign-in/code", "/sign-out", "/invitation/{x}", "/reset/{x}"];

fn path_of(rows: &Rows, pattern: &str) -> String {
    let path = rows.path(&format!("/admin{pattern}"));
    match pattern.rsplit('/').next() {
        Some("card") => format!("{path}?npc=innkeeper_bob&as=json"),
        Some("request.json") => format!("{path}?entity=npc:innkeeper_bob&player=player_alice"),
        _ => path,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_for_whom_the_list_says() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, CANARY).await;
    let other = server.tenant("other").await;
    let mut stranger = Visitor::at(&server);
    stranger.get("/admin/sign-in").await;
    let foreigner = Visitor::signed_in(&server, other.tenant, Role::Owner).await;
    let mut visitors = Vec::new();
    for role in Role::ALL {
        visitors.push((role, Visitor::signed_in(&server, tenant.tenant, role).await));
    }
    let before = counts(&server).await;
    for page in PAGES.iter().filter(|page| !OPEN.contains(&page.path)) {
        let path = path_of(&rows, page.path);
        let name = format!("{} {path}", page.method);
        // Nobody: to the door.
        let answer = match page.method {
            "GET" => stranger.get(&path).await,
            _ => stranger.post(&path, &[]).await,
        };
        if page.method == "GET" {
            assert!(answer.expect(303).header("location").starts_with("/admin/sign-in"), "{name}");
        } else {
            // A form is carried there.
            let door = answer.expect(401).text;
            assert!(door.contains("action=\"/admin/sign-in\"") && !door.contains(CANARY), "{name}: {door}");
        }
        // Another tenant's owner: absent.
        if page.path.contains('{') {
            let request = foreigner.request(page.method, &path);
            let token = foreigner.token();
            let request =
                if page.method == "GET" { request } else { form(request, &[("form_token", &token), ("version", "1")]) };
            let answer = foreigner.send(request).await.expect(404);
            assert!(!answer.text.contains(CANARY), "{name}");
        }
        for (role, visitor) in &visitors {
            let may = page.scopes().all(|scope| role.scopes().has(scope));
            let name = format!("{name} as {}", role.as_str());
            if may && is_stream(page.path) {
                let response = visitor.request("GET", &path).header("cookie", &visitor.cookie).send().await.unwrap();
                assert_eq!((response.status().as_u16(), &response.headers()["content-type"]), (200, &STREAM), "{name}");
            } else if page.method == "GET" {
                let answer = visitor.send(visitor.request("GET", &path)).await;
                let expected = if !may {
                    403
                } else if matches!(page.path, "" | "/") {
                    303
                } else {
                    200
                };
                assert_eq!(answer.status, expected, "{name}: {}", answer.text);
                if may && is_file(page.path) {
                    let kind = match page.path.rsplit(['.', '/']).next().unwrap() {
                        "svg" => "image/svg+xml",
                        "md" => "text/markdown; charset=utf-8",
                        "html" | "lines" => "text/html; charset=utf-8",
                        _ => "application/json",
                    };
                    assert_eq!(answer.header("content-type"), kind, "{name}");
                } else if may && expected == 200 {
                    assert!(answer.text.contains("<main id=\"main\""), "{name}");
                    let forms = answer.text.matches("method=\"post\"").count();
                    assert_eq!(
                        answer.text.matches("name=\"form_token\"").count(),
                        forms,
                        "{name}: a form without its token"
                    );
                } else {
                    assert!(!answer.text.contains(CANARY), "{name}");
                }
            } else {
                // Without a token nothing is done for anybody, nor without the scope.
                let answer = visitor.send(form(visitor.request("POST", &path), &[("version", "1")])).await.expect(403);
                assert_eq!(answer.text.contains("may not use this page"), !may, "{name}: {}", answer.text);
            }
        }
    }
    assert_eq!(counts(&server).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_with_nothing_in_them_break_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, CANARY).await;
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    for page in PAGES.iter().filter(|page| page.method == "POST" && page.path != "/sign-out") {
        // A form may have ended the session.
        if owner.get("/admin/campaigns").await.status != 200 {
            owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
        }
        let path = path_of(&rows, page.path);
        for fields in [
            &[][..],
            &[("version", "1"), ("version", "x"), ("name", ""), ("form_id", "\u{1F9CC}")],
            &[("version", "-1"), ("name", "\0")],
        ] {
            let answer = owner.post(&path, fields).await;
            assert!(answer.status < 500, "{path}: {} {}", answer.status, answer.text);
            assert!(!answer.text.contains("application/problem+json"));
        }
        let noise = owner.request("POST", &path).header("content-type", "multipart/form-data").body("--x");
        assert!(owner.send(noise).await.status < 500, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_with_nonsense_in_them_break_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, CANARY).await;
    let owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    for page in PAGES.iter().filter(|page| page.method == "GET" && !is_file(page.path) && !is_stream(page.path)) {
        let path = path_of(&rows, page.path);
        for query in
            ["cursor=x", "sort=x", "q=%00", "q=%FF", "before=x&row=x", "limit=9999", "from=x&group_by=x", "next=%0d%0a"]
        {
            let answer = owner.send(owner.request("GET", &format!("{path}?{query}"))).await;
            assert!(answer.status < 500, "{path}?{query}: {} {}", answer.status, answer.text);
            if answer.status != 303 {
                assert!(answer.header("content-type").starts_with("text/html"), "{path}?{query}");
            }
        }
    }
    for path in [
        "/admin/nope",
        "/admin/c/port-town/nope",
        "/admin/c/%00",
        "/admin/c/%FF/npcs",
        "/admin/c/port-town/npcs/%3Cscript%3E",
    ] {
        let answer = owner.send(owner.request("GET", path)).await;
        assert!(matches!(answer.status, 400 | 404), "{path}: {}", answer.status);
        assert!(!answer.text.contains("<script>"), "{path}");
    }
}
