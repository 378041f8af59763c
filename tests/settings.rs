//! What operators set, and how a database is found.

use std::{process::Stdio, str::FromStr, time::Duration};

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, postgres::PgConnectOptions};
use tavernkeep::config::Config;
use tokio::{
    io::copy_bidirectional,
    net::{TcpStream, UnixListener},
    process::Command,
};

use crate::support::{Database, Prepared, operator, program};

fn read(env: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    Config::read(&|name| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
}

/// A value that came from a file ends with that file's newline.
#[test]
fn one_newline_at_the_end_of_a_value_means_nothing() {
    let config = read(&[
        ("TAVERNKEEP_BIND", "127.0.0.1:9000\n"),
        ("TAVERNKEEP_DATA_DIR", "/srv/data\n"),
        ("TAVERNKEEP_METRICS_TOKEN", "scrape-me\n"),
        ("TAVERNKEEP_DEMO_PASSWORD", "a long password\r\n"),
        ("DATABASE_URL", "postgres://keeper@db.example/tavern\n"),
        ("LLM_API_ENDPOINT", "http://127.0.0.1:8089/v1\n"),
        ("LLM_API_KEY", "sk-1\n"),
        ("LLM_MODEL_NAME", "mock\n"),
        ("LLM_MODELS_ALLOWED", "mock, other\n"),
        ("LLM_REPLY_MODE", "xml\n"),
    ])
    .unwrap();
    assert_eq!(config.bind.port(), 9000);
    assert_eq!(config.data_dir.to_str(), Some("/srv/data"));
    assert_eq!(config.metrics_token.as_deref(), Some("scrape-me"));
    assert_eq!(config.demo_password.as_deref(), Some("a long password"));
    assert_eq!(config.database_url.as_deref(), Some("postgres://keeper@db.example/tavern"));
    assert_eq!(
        (config.llm_label(), &config.models_allowed[..]),
        ("mock", &["mock".to_owned(), "other".to_owned()][..])
    );
    // Not more than one, and nothing else: these may be meant.
    let config = read(&[("TAVERNKEEP_METRICS_TOKEN", " two\n\n"), ("TAVERNKEEP_DEMO_PASSWORD", "  spaces  ")]).unwrap();
    assert_eq!(config.metrics_token.as_deref(), Some(" two\n"));
    assert_eq!(config.demo_password.as_deref(), Some("  spaces  "));
    // A value of nothing else is no value.
    assert!(read(&[("LLM_API_ENDPOINT", "\n"), ("DATABASE_URL", "\r\n")]).unwrap().database_url.is_none());
}

#[test]
fn urls_of_databases_may_be_as_libpq_writes_them() {
    for (given, user, host, port, name) in [
        ("postgres://keeper@/tavern?host=/run/pg", "keeper", "/run/pg", 5432, "tavern"),
        ("postgresql://keeper@/tavern?host=%2Frun%2Fpg&port=5433", "keeper", "/run/pg", 5433, "tavern"),
        ("postgres://keeper:secret@:5433/tavern?host=/run/pg", "keeper", "/run/pg", 5433, "tavern"),
        ("postgres://keep%40er:a%2Bb+c&d@/tavern?host=/run/pg", "keep@er", "/run/pg", 5432, "tavern"),
        ("postgres://keeper@/tavern?host=db.example", "keeper", "db.example", 5432, "tavern"),
        ("postgres://keeper@?host=/run/pg&dbname=tavern", "keeper", "/run/pg", 5432, "tavern"),
        ("postgres:///tavern?host=/run/pg&user=keeper", "keeper", "/run/pg", 5432, "tavern"),
        ("postgres://keeper@%2Frun%2Fpg/tavern", "keeper", "/run/pg", 5432, "tavern"),
        ("postgres://keeper:secret@db.example:5433/tavern", "keeper", "db.example", 5433, "tavern"),
    ] {
        let options = PgConnectOptions::from_str(&db::url::read(given).unwrap()).unwrap();
        let socket = options.get_socket().map(|dir| dir.to_str().unwrap());
        let found = (options.get_username(), socket.unwrap_or(options.get_host()), options.get_port());
        assert_eq!((found, options.get_database()), ((user, host, port), Some(name)), "{given}");
    }
    for (wrong, word) in [
        ("mysql://x/y", "must begin with postgres://"),
        ("postgres", "must begin with postgres://"),
        ("postgres:/x", "must begin with postgres://"),
        ("postgres://secret@h:port/x", "is not a URL of PostgreSQL"),
        ("postgres://secret@/x?port=many", "is not a URL of PostgreSQL"),
    ] {
        let mistakes = read(&[("DATABASE_URL", wrong)]).err().unwrap();
        assert!(mistakes[0].starts_with(&format!("DATABASE_URL {word}")), "{mistakes:?}");
        assert!(!mistakes[0].contains("secret"), "{mistakes:?}");
    }
}

/// A database behind a socket file, as Debian's packages have it.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_reached_by_its_socket_file() {
    let prepared = Prepared::new().await;
    let options = PgConnectOptions::from_str(&prepared.db.url).unwrap();
    let dir = std::env::temp_dir().join(format!("tavernkeep-socket-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let listener = UnixListener::bind(dir.join(".s.PGSQL.5499")).unwrap();
    let server = (options.get_host().to_owned(), options.get_port());
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let server = server.clone();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(server).await.unwrap();
                let _ = copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    let (user, name) = (options.get_username(), options.get_database().unwrap());
    let url = format!("postgres://{user}@/{name}?host={}&port=5499", dir.display());
    let (done, _) = operator(&url, &["migrate"]).await;
    assert!(done);
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start_with(&model, &[("DATABASE_URL", &url)]).await;
    assert_eq!(child.get("").await.status, 200);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Everything that connects says why it cannot go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_path_without_public_is_refused_in_words() {
    let db = Database::create().await;
    let mut owner = PgConnection::connect(&db.url).await.unwrap();
    owner.execute("CREATE SCHEMA other").await.unwrap();
    let name = PgConnectOptions::from_str(&db.url).unwrap().get_database().unwrap().to_owned();
    for path in ["other", "other, public", "''", "nowhere"] {
        let set = format!("ALTER DATABASE \"{name}\" SET search_path = {path}");
        owner.execute(AssertSqlSafe(set)).await.unwrap();
        for arguments in [&["serve"][..], &["migrate"], &["demo"], &["tenant", "create", "--slug", "x", "--name", "x"]]
        {
            let done = Command::new(program("tavernkeep"))
                .args(arguments)
                .env_clear()
                .env("DATABASE_URL", &db.url)
                .env("TAVERNKEEP_SECRET_KEY", "0123456789abcdef0123456789abcdef")
                .stdin(Stdio::null())
                .output();
            let done = tokio::time::timeout(Duration::from_secs(60), done).await.expect("it ends").unwrap();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(!done.status.success(), "{path} {arguments:?}: {said}");
            for word in ["search_path", "`public`", "ALTER ROLE"] {
                assert!(said.contains(word), "{path} {arguments:?}: {said}");
            }
        }
    }
    // The role that the server logs in as has a path of its own.
    owner.execute(AssertSqlSafe(format!("ALTER DATABASE \"{name}\" RESET search_path"))).await.unwrap();
    let guest = format!("tkt_{}_{}_path", std::process::id(), db.number);
    for set in [
        format!("CREATE ROLE {guest} LOGIN PASSWORD 'guest' IN ROLE tavernkeep_app"),
        format!("ALTER ROLE {guest} IN DATABASE \"{name}\" SET search_path = other"),
    ] {
        owner.execute(AssertSqlSafe(set)).await.unwrap();
    }
    let url = PgConnectOptions::from_str(&db.url).unwrap().username(&guest).password("guest").to_url_lossy();
    let done = Command::new(program("tavernkeep"))
        .arg("serve")
        .env_clear()
        .env("DATABASE_URL", url.as_str())
        .env("MIGRATION_DATABASE_URL", &db.url)
        .env("TAVERNKEEP_SECRET_KEY", "0123456789abcdef0123456789abcdef")
        .stdin(Stdio::null())
        .output();
    let done = tokio::time::timeout(Duration::from_secs(60), done).await.expect("it ends").unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains(&format!("ALTER ROLE {guest} SET search_path")), "{said}");
    owner.execute(AssertSqlSafe(format!("DROP ROLE {guest}"))).await.unwrap();
    owner.execute(AssertSqlSafe(format!("ALTER DATABASE \"{name}\" SET search_path = other"))).await.unwrap();
    let (_, findings) = operator(&db.url, &["doctor"]).await;
    assert!(findings.to_string().contains("search_path"), "{findings}");
    owner.execute(AssertSqlSafe(format!("ALTER DATABASE \"{name}\" RESET search_path"))).await.unwrap();
    let (done, _) = operator(&db.url, &["migrate"]).await;
    assert!(done);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_ignores_the_newline_of_a_secret_file() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options { record_requests_max: 10, ..Default::default() }).await.unwrap();
    let env = [("LLM_MODEL_NAME", "mock\n"), ("TAVERNKEEP_METRICS_TOKEN", "scrape-me\n"), ("RUST_LOG", "info\n")];
    let child = prepared.start_with(&model, &env).await;
    let scraped = reqwest::Client::new().get(format!("{}/metrics", child.url())).bearer_auth("scrape-me");
    assert_eq!(scraped.send().await.unwrap().status(), 200);
    let turn = child.turn("innkeeper_bob", "Good evening.", None).await.unwrap();
    assert_eq!(turn.status, 200, "{}", turn.text);
    assert_eq!(model.requests().last().unwrap()["model"], "mock");
}
