//! The files that pages load, and the page for an address that leads nowhere.

use std::collections::BTreeSet;

use crate::support::Server;

/// Bytes of all fonts that any page may load.
const FONTS_BYTES_MAX: usize = 120 * 1024;
const A_YEAR: &str = "public, max-age=31536000, immutable";
const FIVE_MINUTES: &str = "public, max-age=300";

/// What a page or a stylesheet names below `/static/`.
fn named(text: &str) -> BTreeSet<&str> {
    text.match_indices("/static/").filter_map(|(at, _)| text[at..].split(['"', '#']).next()).collect()
}

/// Pages name files by what is in them, so that browsers keep a file for a year and never an old one.
#[tokio::test(flavor = "multi_thread")]
async fn files_are_kept_for_a_year_by_a_name_of_their_own() {
    let server = Server::start().await;
    let visitor = server.anonymous();
    let page = visitor.get("/admin/sign-in").await.expect(200).text;
    let style = named(&page).into_iter().find(|path| path.ends_with(".css")).unwrap();
    let css = visitor.get(style).await.expect(200).text;
    let files: BTreeSet<&str> = named(&page).into_iter().chain(named(&css)).collect();
    let mut fonts_bytes = 0;
    for file in &files {
        let asked = visitor.request(reqwest::Method::GET, file).header("accept-encoding", "identity");
        let kept = visitor.send(asked).await.expect(200);
        assert_eq!(kept.header("cache-control"), A_YEAR, "{file}");
        assert_eq!(kept.header("x-content-type-options"), "nosniff", "{file}");
        if kept.header("content-type") == "font/woff2" {
            fonts_bytes += kept.header("content-length").parse::<usize>().unwrap();
        }
    }
    assert!((50_000..=FONTS_BYTES_MAX).contains(&fonts_bytes), "{fonts_bytes} bytes of fonts");
    for face in css.split("@font-face").skip(1).filter(|face| face.split('}').next().unwrap().contains("url(")) {
        assert!(face.contains("font-display: swap"), "a font holds back the first paint: {face}");
    }
    // Another version's page, and whoever knows only a name, gets the file of today.
    for file in ["/static/tavernkeep.css", "/static/tavernkeep.0123456789ab.css", "/static/icon.svg", "/favicon.ico"] {
        assert_eq!(visitor.get(file).await.expect(200).header("cache-control"), FIVE_MINUTES, "{file}");
    }
    for file in
        ["/static/tavernkeep.0123456789xy.css", "/static/tavernkeep.css.", "/static/other.css", "/static/tavernkeep."]
    {
        visitor.get(file).await.problem(404, "not_found");
    }
    // Files are compressed for whoever takes that, and only then.
    for (accepts, sent) in [("gzip;q=1.0, br", "gzip"), ("gzip;q=0", ""), ("br", "")] {
        let asked = visitor.request(reqwest::Method::GET, style).header("accept-encoding", accepts);
        assert_eq!(visitor.send(asked).await.expect(200).header("content-encoding"), sent, "{accepts}");
    }
    let head = visitor.send(visitor.request(reqwest::Method::HEAD, style)).await.expect(200);
    assert_eq!((head.header("cache-control"), head.text.as_str()), (A_YEAR, ""));
}

/// An address that leads nowhere gets a page in a browser, and a problem anywhere else.
#[tokio::test(flavor = "multi_thread")]
async fn nowhere_is_a_page_for_browsers() {
    let server = Server::start().await;
    let visitor = server.anonymous();
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let asked = |path: &str, accepts: &str| visitor.request(reqwest::Method::GET, path).header("accept", accepts);
    let page = visitor.send(asked("/nowhere", browser)).await.expect(404);
    assert!(page.header("content-type").starts_with("text/html"));
    assert!(page.header("content-security-policy").contains("default-src 'none'"));
    assert!(page.text.contains("There is no such page") && page.text.contains("/static/tavernkeep."));
    for (path, accepts) in [("/v1/nowhere", browser), ("/nowhere", "*/*"), ("/nowhere", "application/json")] {
        visitor.send(asked(path, accepts)).await.problem(404, "not_found");
    }
}
