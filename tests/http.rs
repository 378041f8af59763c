//! HTTP as browsers, monitors and proxies use it: HEAD and OPTIONS everywhere, CORS on every answer, and clients that ask before they
//! send a body.

use std::time::Duration;

use actix_web::{App, HttpServer, middleware::from_fn, web};
use edge::{
    caller::{
        Scope,
        access::{BODY_BYTES_MAX, FILE_BYTES_MAX, TABLE},
    },
    http::observe::observe,
    origins::READ_EVERY,
};
use futures_util::future::join_all;
use reqwest::{Method, header::HeaderMap, redirect::Policy};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::support::{Client, Rows, Server, until};

const PATIENCE: Duration = Duration::from_secs(60);
const PAGE: &str = "https://game.example";

/// Paths that need no credential, and what GET answers there.
const OPEN: [(&str, u16); 14] = [
    ("/", 303),
    ("/healthz", 200),
    ("/readyz", 200),
    ("/metrics", 200),
    ("/openapi.yaml", 200),
    ("/docs", 200),
    ("/problems/not_found", 200),
    ("/problems/no_such_code", 404),
    ("/favicon.ico", 200),
    ("/static/no-such-file", 404),
    ("/nowhere", 404),
    ("/admin/sign-in", 200),
    ("/admin/nowhere", 404),
    ("/play/port-town", 200),
];

fn told(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

/// An answer's status, and what HEAD has in common with GET.
async fn looked(client: &Client<'_>, method: Method, path: &str) -> (u16, Vec<String>) {
    let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    let mut request = http.request(method, format!("{}{path}", client.server.url));
    if !client.credential.is_empty() {
        request = request.bearer_auth(&client.credential);
    }
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let common = ["etag", "content-type", "content-length", "cache-control", "location", "allow", "www-authenticate"];
    (status, common.iter().map(|name| format!("{name}: {}", told(&headers, name))).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn head_is_get_without_the_body() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "canary").await;
    let nobody = server.anonymous();
    let mut paths: Vec<(&Client<'_>, String)> = OPEN.iter().map(|(path, _)| (&nobody, (*path).to_owned())).collect();
    paths.push((&nobody, "/v1/campaigns".to_owned()));
    paths.push((&tenant, "/v1/campaigns/none".to_owned()));
    let gets = TABLE.iter().filter(|access| access.method == "GET");
    paths.extend(gets.map(|access| (&tenant, rows.path(access.path))));
    let mut tagged = 0;
    for (client, path) in paths {
        let both = async || (looked(client, Method::GET, &path).await, looked(client, Method::HEAD, &path).await);
        let (mut get, mut head) = both().await;
        // An export that was read to its end may not have ended yet for the server: that of the GET, or of the path before.
        until("the export before", async || {
            let is_busy = (get.0 == 409) != (head.0 == 409);
            if is_busy {
                (get, head) = both().await;
            }
            !is_busy
        })
        .await;
        if path == "/metrics" {
            // They go on counting.
            get.1.retain(|header| !header.starts_with("content-length"));
            head.1.retain(|header| !header.starts_with("content-length"));
        }
        assert_eq!((get.0, &get.1), (head.0, &head.1), "{path}");
        tagged += usize::from(get.1[0].len() > "etag: ".len());
    }
    assert!(tagged > 10, "{tagged} answers with an ETag");
    for (path, status) in OPEN {
        assert_eq!(looked(&nobody, Method::HEAD, path).await.0, status, "{path}");
    }
    // What is known already has not changed.
    let known = tenant.request(Method::HEAD, "/v1/campaigns/port-town").header("if-none-match", "*");
    assert_eq!(tenant.send_odd(known).await.status, 304);
}

/// Sends bytes over a connection and reads until `text` has come. Nothing else may come before.
async fn exchange(socket: &mut TcpStream, sent: &str, text: &str) -> String {
    socket.write_all(sent.as_bytes()).await.unwrap();
    let mut seen = String::new();
    while !seen.contains(text) {
        let mut bytes = [0; 4096];
        let n = timeout(PATIENCE, socket.read(&mut bytes)).await.expect("an answer").unwrap();
        assert!(n > 0, "closed after {seen:?}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
    }
    seen
}

async fn connected(server: &Server) -> TcpStream {
    TcpStream::connect(server.url.strip_prefix("http://").unwrap()).await.unwrap()
}

/// After the head of an answer to HEAD, the next answer begins: also after a stream, which GET would hold open.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_follows_the_head() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mut socket = connected(&server).await;
    let common = format!("host: x\r\nauthorization: Bearer {}\r\n", tenant.credential);
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let ours = [("/v1/campaigns/port-town", 200), ("/v1/campaigns/port-town/events", 200), ("/v1/campaigns/none", 404)];
    for (path, status) in OPEN.into_iter().chain(ours) {
        let head = exchange(&mut socket, &format!("HEAD {path} HTTP/1.1\r\n{common}\r\n"), "\r\n\r\n").await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")) && head.ends_with("\r\n\r\n"), "{path}: {head}");
        let get = exchange(&mut socket, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", "}").await;
        assert!(get.starts_with("HTTP/1.1 200"), "{path}: {get}");
    }
    let bridge = format!("HEAD /v1/campaigns/port-town/bridge HTTP/1.1\r\n{common}{upgrade}\r\n");
    let answer = exchange(&mut connected(&server).await, &bridge, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    // As a load balancer asks that knows HTTP 1.0 only.
    for method in ["OPTIONS", "HEAD"] {
        let answer = exchange(&mut connected(&server).await, &format!("{method} / HTTP/1.0\r\n\r\n"), "\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.0 204") || answer.starts_with("HTTP/1.0 303"), "{method}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_names_its_methods() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, "canary").await;
    let nobody = server.anonymous();
    let pages = [
        ("/", "GET, HEAD, OPTIONS"),
        ("/healthz", "GET, HEAD, OPTIONS"),
        ("/readyz", "GET, HEAD, OPTIONS"),
        ("/metrics", "GET, HEAD, OPTIONS"),
        ("/openapi.yaml", "GET, HEAD, OPTIONS"),
        ("/docs", "GET, HEAD, OPTIONS"),
        ("/problems/not_found", "GET, HEAD, OPTIONS"),
        ("/favicon.ico", "GET, HEAD, OPTIONS"),
        ("/static/htmx.js", "GET, HEAD, OPTIONS"),
        ("/admin", "GET, HEAD, OPTIONS"),
        ("/admin/sign-in", "GET, HEAD, POST, OPTIONS"),
        ("/admin/sign-out", "POST, OPTIONS"),
        ("/play/port-town", "GET, HEAD, OPTIONS"),
        ("/play/port-town/say", "POST, OPTIONS"),
    ];
    let mut all: Vec<(String, String)> =
        pages.iter().map(|(path, allowed)| ((*path).to_owned(), (*allowed).to_owned())).collect();
    for access in TABLE {
        // `/v1/campaigns/import` may name a campaign, too.
        let path = rows.path(access.path);
        let methods = TABLE.iter().filter(|other| other.fits(&path)).map(|other| other.method);
        let with_head = methods.map(|method| if method == "GET" { "GET, HEAD" } else { method });
        let allowed = format!("{}, OPTIONS", with_head.collect::<Vec<_>>().join(", "));
        all.push((path, allowed));
    }
    for (path, allowed) in all {
        let options = nobody.send_odd(nobody.request(Method::OPTIONS, &path)).await.expect(204);
        assert_eq!((options.header("allow"), options.text.as_str()), (allowed.as_str(), ""), "{path}");
        for method in ["PUT", "DELETE", "TRACE", "PROPFIND"].iter().filter(|method| !allowed.contains(**method)) {
            let asked = nobody.request(Method::from_bytes(method.as_bytes()).unwrap(), &path);
            let refused = nobody.send_odd(asked).await.expect(405);
            assert_eq!(refused.header("allow"), allowed, "{method} {path}");
        }
    }
    for path in ["/nowhere", "/v1/nowhere", "/v1", "/admin/nowhere", "/play", "/problems", "/static/"] {
        nobody.send_odd(nobody.request(Method::OPTIONS, path)).await.expect(404);
        nobody.send_odd(nobody.request(Method::DELETE, path)).await.expect(404);
    }
}

/// Who may read an answer, as a browser sees it.
async fn read_by(client: &Client<'_>, request: reqwest::RequestBuilder, origin: &str) -> (u16, String) {
    let answer = client.send_odd(request.header("origin", origin)).await;
    let allowed = answer.header("access-control-allow-origin").to_owned();
    if !allowed.is_empty() {
        assert_eq!(allowed, origin);
        assert!(answer.header("vary").contains("Origin"), "{}", answer.header("vary"));
        assert_eq!(answer.header("access-control-allow-credentials"), "");
    }
    (answer.status, allowed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_can_read_why_it_was_refused() {
    let server = Server::start_with(&[("TAVERNKEEP_REQUESTS_MAX", "64")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    tenant.patch("/v1/tenant", json!({ "origins": [PAGE] })).await.expect(200);
    let reader = tenant.with_scopes(&[Scope::Read]).await;
    let nobody = server.anonymous();
    let player = tenant.token(json!({ "player_id": "player_alice", "campaign": "port-town" })).await;
    let long = "x".repeat(BODY_BYTES_MAX + 1);
    let json = |client: &Client<'_>, method: Method, path: &str, body: String| {
        client.request(method, path).header("content-type", "application/json").body(body)
    };
    let cases: Vec<(&str, &Client<'_>, reqwest::RequestBuilder, u16)> = vec![
        ("no credential", &nobody, nobody.request(Method::GET, "/v1/campaigns/port-town"), 401),
        ("an ended token", &nobody, nobody.request(Method::GET, "/v1/campaigns").bearer_auth("gone"), 401),
        ("an unknown path", &nobody, nobody.request(Method::GET, "/v1/nowhere"), 404),
        ("an unknown path at the root", &nobody, nobody.request(Method::GET, "/nowhere"), 404),
        ("a wrong method", &nobody, nobody.request(Method::DELETE, "/v1/campaigns"), 405),
        ("a wrong method of an open path", &nobody, nobody.request(Method::DELETE, "/healthz"), 405),
        ("an open path", &nobody, nobody.request(Method::GET, "/openapi.yaml"), 200),
        ("an error's page", &nobody, nobody.request(Method::GET, "/problems/not_found"), 200),
        ("no scope", &reader, json(&reader, Method::POST, "/v1/campaigns", "{}".to_owned()), 403),
        ("not for players", &player, player.request(Method::GET, "/v1/models"), 403),
        ("an unknown campaign", &tenant, tenant.request(Method::GET, "/v1/campaigns/none"), 404),
        ("no JSON", &tenant, json(&tenant, Method::POST, "/v1/campaigns", "{".to_owned()), 400),
        ("invalid", &tenant, json(&tenant, Method::POST, "/v1/campaigns", "{}".to_owned()), 422),
        ("too large", &tenant, json(&tenant, Method::POST, "/v1/campaigns", long), 413),
        ("a media type", &tenant, tenant.request(Method::POST, "/v1/campaigns").body("x"), 415),
        ("not changed", &tenant, tenant.request(Method::GET, &world.path("")).header("if-none-match", "*"), 304),
        ("stale", &tenant, tenant.request(Method::DELETE, &world.path("")).header("if-match", "\"v99\""), 412),
        ("the head alone", &nobody, nobody.request(Method::HEAD, "/v1/campaigns"), 401),
        ("the methods", &nobody, nobody.request(Method::OPTIONS, "/v1/campaigns"), 204),
    ];
    for (what, client, request, status) in cases {
        let foreign = request.try_clone().unwrap();
        assert_eq!(read_by(client, request, PAGE).await, (status, PAGE.to_owned()), "{what}");
        assert_eq!(read_by(client, foreign, "https://evil.example").await, (status, String::new()), "{what}");
    }
    // A browser asks before it sends anything to a path, also to one that does not exist.
    for path in ["/v1/campaigns", "/v1/nowhere", "/nowhere", "/healthz"] {
        let asked = || {
            let asked = nobody.request(Method::OPTIONS, path).header("access-control-request-method", "PATCH");
            asked.header("access-control-request-headers", "authorization")
        };
        assert_eq!(read_by(&nobody, asked(), PAGE).await, (204, PAGE.to_owned()), "{path}");
        assert_eq!(read_by(&nobody, asked(), "https://evil.example").await, (204, String::new()), "{path}");
    }
    // The pages of this server are for nobody else, nor is what operators read.
    for path in [
        "/admin",
        "/admin/sign-in",
        "/%61dmin/sign-in",
        "/admin/nowhere",
        "/play/port-town",
        "/static/htmx.js",
        "/favicon.ico",
        "/metrics",
        "/readyz",
    ] {
        assert_eq!(read_by(&nobody, nobody.request(Method::GET, path), PAGE).await.1, "", "{path}");
    }
    // Too many at once, and too many in a minute.
    let many = join_all((0..300).map(|_| read_by(&tenant, tenant.request(Method::GET, "/v1/campaigns"), PAGE))).await;
    assert!(many.iter().all(|(_, allowed)| allowed == PAGE), "{many:?}");
    assert!(many.iter().any(|(status, _)| *status == 503), "{many:?}");
    let limits = "UPDATE tenant SET limits = limits || '{\"requests_per_minute\": 1}' WHERE tenant_id = $1";
    sqlx::query(limits).bind(tenant.tenant).execute(&mut server.owner().await).await.unwrap();
    let refused = async || {
        let (status, allowed) = read_by(&tenant, tenant.request(Method::GET, "/v1/campaigns"), PAGE).await;
        assert_eq!(allowed, PAGE);
        status == 429
    };
    until("the limit", refused).await;
    let guessed = async || {
        let guess = nobody.request(Method::GET, "/v1/campaigns").bearer_auth("guess");
        let (status, allowed) = read_by(&nobody, guess, PAGE).await;
        assert_eq!(allowed, PAGE);
        status == 429
    };
    until("the limit of guesses", guessed).await;
}

/// The list is in memory: the server needs no database to let a page read that there is none.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_can_read_that_the_server_is_in_trouble() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.patch("/v1/tenant", json!({ "origins": [PAGE] })).await.expect(200);
    let app = server.app.clone();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let breaks = async || -> String { panic!("on purpose") };
    let other = HttpServer::new(move || {
        let app = app.clone();
        App::new()
            .configure(|config| app.register(config))
            .route("/breaks", web::get().to(breaks))
            .wrap(from_fn(observe))
    });
    let other = other.workers(1).disable_signals().listen(listener).unwrap().run();
    let handle = other.handle();
    tokio::spawn(other);
    for (origin, allowed) in [(PAGE, PAGE), ("https://evil.example", "")] {
        let answer = reqwest::Client::new().get(format!("{url}/breaks")).header("origin", origin).send().await.unwrap();
        assert_eq!(answer.status(), 500);
        assert_eq!(told(answer.headers(), "access-control-allow-origin"), allowed);
        assert!(told(answer.headers(), "vary").contains("Origin"));
    }
    handle.stop(false).await;
    server.app.pool.close();
    let nobody = server.anonymous();
    let unknown = nobody.request(Method::GET, "/v1/campaigns").bearer_auth(format!("tk_aaaaaaaa_{}", "a".repeat(43)));
    let (status, allowed) = read_by(&nobody, unknown, PAGE).await;
    assert!(status >= 500 && allowed == PAGE, "{status} {allowed}");
    let asked = nobody.request(Method::OPTIONS, "/v1/campaigns").header("access-control-request-method", "GET");
    assert_eq!(read_by(&nobody, asked, PAGE).await, (204, PAGE.to_owned()));
}

/// Another server learns of an origin by itself.
#[tokio::test(flavor = "multi_thread")]
async fn servers_learn_of_each_others_origins() {
    let first = Server::start().await;
    let second = Server::on(first.db.clone(), &[]).await;
    let tenant = first.tenant("acme").await;
    let nobody = second.anonymous();
    let allowed = async || read_by(&nobody, nobody.request(Method::GET, "/nowhere"), PAGE).await.1;
    assert_eq!(allowed().await, "");
    tenant.patch("/v1/tenant", json!({ "origins": [PAGE] })).await.expect(200);
    timeout(READ_EVERY * 6, until("the origin", async || allowed().await == PAGE)).await.unwrap();
    tenant.patch("/v1/tenant", json!({ "origins": [] })).await.expect(200);
    timeout(READ_EVERY * 6, until("the end of the origin", async || allowed().await.is_empty())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_order_mark_means_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let send = async |method: Method, path: &str, body: String| {
        let request = tenant.request(method, path).header("content-type", "application/json").body(body);
        tenant.send(request).await
    };
    let made = send(Method::POST, "/v1/campaigns", "\u{feff}{\"name\":\"Marked\"}".to_owned()).await.expect(201);
    assert_eq!(made.body["name"], "Marked");
    let path = made.header("location").to_owned();
    let changed = send(Method::PATCH, &path, "\u{feff}{\"name\":\"Again\"}".to_owned()).await.expect(200);
    assert_eq!(changed.body["name"], "Again");
    let book = json!({ "entries": { "0": { "uid": 0, "key": ["x"], "comment": "Marked", "content": "x" } } });
    send(Method::POST, &world.path("/import/lorebook"), format!("\u{feff}{book}")).await.expect(200);
    let one = send(Method::POST, "/v1/campaigns", "\u{feff}\u{feff}{\"name\":\"Twice\"}".to_owned()).await;
    one.problem(400, "bad_request");
    send(Method::POST, "/v1/campaigns", "\u{feff}".to_owned()).await.problem(400, "bad_request");
}

/// A head that asks before its body is sent.
fn head(method: &str, path: &str, headers: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n{headers}\r\n"
    )
}

/// The status of an answer to a head that asks before it sends its body, whether the server asked for the body, and the problem's code.
async fn asked(server: &Server, method: &str, path: &str, headers: &str, length: usize) -> (u16, bool, String) {
    let mut socket = connected(server).await;
    let first = exchange(&mut socket, &head(method, path, headers, length), "\r\n\r\n").await;
    let status: u16 = first.split(' ').nth(1).unwrap().parse().unwrap();
    if status == 100 {
        let body = format!("{{\"name\":\"Asked first\"{}}}", " ".repeat(length - "{\"name\":\"Asked first\"}".len()));
        let then = exchange(&mut socket, &body, "\r\n\r\n").await;
        return (then.split(' ').nth(1).unwrap().parse().unwrap(), true, String::new());
    }
    if method == "HEAD" {
        return (status, false, String::new());
    }
    let body = if first.ends_with('}') { String::new() } else { exchange(&mut socket, "", "}").await };
    let whole = first + &body;
    let problem: Value = serde_json::from_str(&whole[whole.find('{').unwrap()..=whole.rfind('}').unwrap()]).unwrap();
    for header in [
        "x-request-id: mine",
        "ratelimit:",
        "x-content-type-options: nosniff",
        "content-type: application/problem+json",
    ] {
        assert!(whole.to_lowercase().contains(header), "{header}: {whole}");
    }
    assert_eq!((problem["status"].as_u64(), problem["request_id"].as_str()), (Some(u64::from(status)), Some("mine")));
    (status, false, problem["code"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_first_learns_at_once_what_is_known() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let reader = tenant.with_scopes(&[Scope::Read]).await;
    let player = {
        tenant.world().await;
        tenant.token(json!({ "player_id": "player_alice", "campaign": "port-town" })).await
    };
    let by = |client: &Client<'_>| format!("x-request-id: mine\r\nauthorization: Bearer {}\r\n", client.credential);
    let nobody = "x-request-id: mine\r\n".to_owned();
    for (method, path, headers, length, status, code) in [
        ("POST", "/v1/campaigns", nobody.clone(), 200, 401, "unauthenticated"),
        ("POST", "/v1/campaigns", format!("{nobody}authorization: Bearer gone\r\n"), 200, 401, "unauthenticated"),
        ("POST", "/v1/campaigns", by(&reader), 200, 403, "forbidden"),
        ("POST", "/v1/campaigns", by(&player), 200, 403, "forbidden"),
        ("POST", "/v1/campaigns", by(&tenant), BODY_BYTES_MAX + 1, 413, "payload_too_large"),
        ("POST", "/v1/campaigns/import", by(&tenant), FILE_BYTES_MAX + 1, 413, "payload_too_large"),
        ("PUT", "/v1/campaigns", by(&tenant), 200, 405, "method_not_allowed"),
        ("POST", "/v1/nowhere", by(&tenant), 200, 404, "not_found"),
        ("HEAD", "/v1/nowhere", by(&tenant), 200, 404, "not_found"),
        ("HEAD", "/v1/campaigns", nobody.clone(), 200, 401, "unauthenticated"),
    ] {
        let answer = asked(&server, method, path, &headers, length).await;
        let code = if method == "HEAD" { "" } else { code };
        assert_eq!(answer, (status, false, code.to_owned()), "{method} {path}");
    }
    for (path, length, status) in [
        ("/v1/campaigns", 200, 201),
        ("/v1/campaigns", BODY_BYTES_MAX, 201),
        ("/v1/campaigns/import", BODY_BYTES_MAX + 1, 422),
    ] {
        assert_eq!(asked(&server, "POST", path, &by(&tenant), length).await, (status, true, String::new()), "{path}");
    }
    // What is refused counts, and so do guesses.
    for (headers, limit) in
        [(by(&reader), "requests"), (format!("{nobody}authorization: Bearer guess\r\n"), "failed-sign-ins")]
    {
        let limits = "UPDATE tenant SET limits = limits || '{\"requests_per_minute\": 100}' WHERE tenant_id = $1";
        sqlx::query(limits).bind(tenant.tenant).execute(&mut server.owner().await).await.unwrap();
        let limited = async || {
            let head = head("POST", "/v1/campaigns", &headers, 200);
            let answer = exchange(&mut connected(&server).await, &head, "}").await;
            let is_limited = answer.starts_with("HTTP/1.1 429");
            assert!(!is_limited || answer.contains(&format!("ratelimit: \"{limit}\";r=0")), "{answer}");
            is_limited
        };
        until("the limit", limited).await;
    }
    // Who waits in vain sends no body: the next request is one of its own.
    let chunked =
        "POST /v1/campaigns HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n";
    let answer = exchange(&mut connected(&server).await, chunked, "}").await.to_lowercase();
    assert!(answer.starts_with("http/1.1 4") && answer.contains("connection: close"), "{answer}");
}
