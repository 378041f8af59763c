//! What operators watch: every series is described, and the dashboard and the alerts name only series there are.

use std::{collections::BTreeSet, fs, path::Path};

use crate::support::Server;

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

/// Words of letters, digits and underscores.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

/// The series, as they are registered.
fn series() -> BTreeSet<String> {
    let source = file("base/src/metrics.rs");
    let made = source.split("LazyLock::new(||").skip(1);
    made.map(|rest| rest.split('"').nth(1).unwrap().trim_start_matches("tavernkeep_").to_owned()).collect()
}

#[test]
fn every_series_is_described() {
    let document = file("docs/operations.md");
    let described: BTreeSet<&str> = words(&document).collect();
    let series = series();
    assert!(series.len() > 20, "{series:?}");
    for name in &series {
        let short = name.split_once('_').map_or(name.as_str(), |(_, rest)| rest);
        let abbreviated = document.contains(&format!("`_{short}"));
        assert!(described.contains(name.as_str()) || abbreviated, "docs/operations.md says nothing of {name}");
    }
}

#[test]
fn the_dashboard_and_the_alerts_name_series_there_are() {
    let series = series();
    for path in ["docs/monitoring/dashboard.json", "docs/monitoring/alerts.yaml"] {
        let text = file(path);
        let named: BTreeSet<&str> = words(&text).filter_map(|word| word.strip_prefix("tavernkeep_")).collect();
        assert!(named.len() > 5, "{path}");
        for name in named {
            let name = name.trim_end_matches("_bucket");
            assert!(series.contains(name), "{path} names {name}, which there is not");
        }
    }
    serde_json::from_str::<serde_json::Value>(&file("docs/monitoring/dashboard.json")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_ready_when_its_migrations_are_made() {
    let server = Server::start().await;
    let nobody = server.anonymous();
    nobody.get("/readyz").await.expect(200);
    let mut db = server.owner().await;
    let newest: String = sqlx::query_scalar(
        "DELETE FROM seaql_migrations WHERE version = (SELECT max(version) FROM seaql_migrations) RETURNING version",
    )
    .fetch_one(&mut db)
    .await
    .unwrap();
    let refused = nobody.get("/readyz").await.problem(503, "unavailable");
    assert!(refused.text.contains("tavernkeep migrate"), "{}", refused.text);
    nobody.get("/healthz").await.expect(200);
    // A newer server's migrations are in nobody's way.
    for version in [newest.as_str(), "m9999_later"] {
        sqlx::query("INSERT INTO seaql_migrations (version, applied_at) VALUES ($1, 0)")
            .bind(version)
            .execute(&mut db)
            .await
            .unwrap();
    }
    nobody.get("/readyz").await.expect(200);
}
