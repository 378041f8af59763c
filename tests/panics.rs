//! A panic of one request is an error of that request, and nobody else's.

use std::net::TcpListener;

use actix_web::{App, HttpServer, middleware::from_fn, web};
use edge::{http::observe::observe, panics};

async fn breaks() -> String {
    let nothing: Vec<u8> = Vec::new();
    // What it says is for the log.
    assert!(!nothing.is_empty(), "a secret of the server");
    String::new()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_a_500_with_a_request_id_and_the_server_goes_on() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = HttpServer::new(|| {
        App::new()
            .route("/breaks", web::get().to(breaks))
            .route("/works", web::get().to(async || "well"))
            .wrap(from_fn(observe))
    });
    let server = server.workers(1).disable_signals().listen(listener).unwrap().run();
    let handle = server.handle();
    tokio::spawn(server);
    let before = base::metrics::PANICS.get();
    let client = reqwest::Client::new();
    for n in 1..=3 {
        let answer =
            client.get(format!("{url}/breaks")).header("x-request-id", format!("mine-{n}")).send().await.unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        let text = answer.text().await.unwrap();
        assert_eq!((status.as_u16(), &headers["content-type"]), (500, &"application/problem+json".parse().unwrap()));
        let problem: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((problem["code"].as_str(), problem["status"].as_u64()), (Some("internal"), Some(500)), "{text}");
        assert_eq!(problem["request_id"], format!("mine-{n}"));
        assert_eq!(headers["x-request-id"], format!("mine-{n}"));
        for header in ["ratelimit", "ratelimit-policy", "x-content-type-options", "cache-control"] {
            assert!(headers.contains_key(header), "{header}");
        }
        assert!(!text.contains("secret"), "{text}");
        let works = client.get(format!("{url}/works")).send().await.unwrap();
        assert_eq!((works.status().as_u16(), works.text().await.unwrap()), (200, "well".to_owned()));
    }
    assert_eq!(base::metrics::PANICS.get() - before, 3);
    assert!(panics::caught("nothing", async { 1 }).await.is_ok());
    handle.stop(false).await;
}
