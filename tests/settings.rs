//! What operators set, and how a database is found.

use std::{cell::RefCell, collections::HashSet, process::Stdio, str::FromStr, time::Duration};

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, postgres::PgConnectOptions};
use tavernkeep::{
    config::Config,
    settings::{self, Setting},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpStream, UnixListener},
    process::Command,
};

use crate::support::{Database, Prepared, SECRET, operator, program, until};

fn read(env: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    Config::read(&|name| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
}

fn all() -> impl Iterator<Item = &'static Setting> {
    settings::ALL.iter().flat_map(|group| group.settings)
}

/// What the program prints with these arguments, each run of white space as one space, and its exit status.
async fn printed(arguments: &[&str], env: &[(&str, &str)]) -> (String, Option<i32>) {
    let mut program = Command::new(program("tavernkeep"));
    let done = program.args(arguments).env_clear().envs(env.iter().copied()).stdin(Stdio::null()).output();
    let done = tokio::time::timeout(Duration::from_secs(60), done).await.expect("it ends").unwrap();
    let text = [done.stdout, done.stderr].concat();
    (String::from_utf8(text).unwrap().split_whitespace().collect::<Vec<_>>().join(" "), done.status.code())
}

/// The server reads what is listed, and nothing else.
#[test]
fn the_list_of_settings_is_whole() {
    let asked = RefCell::new(HashSet::new());
    // With these, the variables of a model are read, too.
    let model = [("LLM_API_ENDPOINT", "http://127.0.0.1:8089/v1"), ("LLM_MODEL_NAME", "mock")];
    let config = Config::read(&|variable| {
        asked.borrow_mut().insert(variable.to_owned());
        model.iter().find(|(known, _)| *known == variable).map(|(_, value)| (*value).to_owned())
    })
    .unwrap();
    let mut asked: Vec<_> = asked.into_inner().into_iter().collect();
    let mut listed: Vec<_> = all().map(|setting| setting.variable).collect();
    asked.sort();
    listed.sort_unstable();
    assert_eq!(asked, listed);
    // Defaults that others than the server have, too.
    let own = llm::LlmSettings::default();
    assert_eq!(config.llm.connect_timeout, own.connect_timeout);
    assert_eq!(config.llm.first_token_timeout, own.first_token_timeout);
    assert_eq!(config.llm.total_timeout, own.total_timeout);
    assert_eq!((config.llm.retries, config.llm.output_tokens_max), (own.retries, own.output_tokens_max));
    assert_eq!(config.database_wait, db::pool::BEGIN_WAIT);
    // A default says what an empty variable means.
    for setting in all().filter(|setting| !setting.default.is_empty()) {
        assert!(read(&[(setting.variable, setting.default)]).is_ok(), "{setting:?}");
        assert!(read(&[(setting.variable, " ")]).is_ok(), "{setting:?}");
    }
}

/// `serve --help` explains each setting. Secrets are not options, because other users of the machine see those.
#[tokio::test]
async fn help_lists_every_setting() {
    let (help, code) =
        printed(&["serve", "--help"], &[("TAVERNKEEP_SECRET_KEY", SECRET), ("LLM_MODEL_NAME", "mine")]).await;
    assert_eq!(code, Some(0));
    assert!(!help.contains(SECRET) && !help.contains("mine"), "the environment's values are not shown: {help}");
    for setting in all() {
        assert!(help.contains(setting.variable) && help.contains(setting.meaning), "{setting:?}\n{help}");
        let option = format!("--{} <", setting.option());
        assert_eq!(help.contains(&option), !setting.is_secret, "{setting:?}\n{help}");
        let default = format!("[env: {}] [default: {}]", setting.variable, setting.default);
        assert!(setting.default.is_empty() || help.contains(&default), "{setting:?}\n{help}");
    }
    let secrets: Vec<_> = all().filter(|setting| setting.is_secret).map(|setting| setting.variable).collect();
    let may_be_secret = |setting: &&Setting| {
        ["KEY", "PASSWORD", "TOKEN", "SECRET", "DATABASE_URL"].iter().any(|word| setting.variable.ends_with(word))
    };
    assert_eq!(secrets, all().filter(may_be_secret).map(|setting| setting.variable).collect::<Vec<_>>());
    let (help, _) = printed(&["--help"], &[]).await;
    assert!(help.contains("tavernkeep serve --help"), "{help}");
}

/// The table of the manual is the list.
#[test]
fn the_manual_lists_every_setting() {
    let mut table = String::new();
    for group in settings::ALL {
        table.push_str(&format!(
            "\n**{}**\n\n| Variable | Option | Default | Meaning |\n|---|---|---|---|\n",
            group.heading
        ));
        for setting in group.settings {
            let option = if setting.is_secret { String::new() } else { format!("`--{}`", setting.option()) };
            let default = if setting.default.is_empty() { String::new() } else { format!("`{}`", setting.default) };
            let meaning = setting.meaning.replace('<', "&lt;").replace('>', "&gt;");
            table.push_str(&format!("| `{}` | {option} | {default} | {meaning} |\n", setting.variable));
        }
    }
    let manual = include_str!("../docs/operations.md");
    assert!(manual.contains(&table), "docs/operations.md needs this table:\n{table}");
}

#[tokio::test]
async fn all_mistakes_are_told_by_the_names_that_were_used() {
    let env =
        [("TAVERNKEEP_WORKERS", "many"), ("TAVERNKEEP_BIND", "nowhere"), ("RUST_LOG", "tavernkeep=much=too=much")];
    let (said, code) =
        printed(&["serve", "--bind", "somewhere", "--database-connections-max", "1", "--public-url=ftp://x"], &env)
            .await;
    assert_eq!(code, Some(2));
    for mistake in [
        "tavernkeep: --bind must be an address",
        "tavernkeep: --database-connections-max must be a number, 2 to 1000",
        "tavernkeep: --public-url must be an address such as https://tavern.example.org",
        "tavernkeep: TAVERNKEEP_WORKERS must be a number",
        "tavernkeep: RUST_LOG must be",
    ] {
        assert!(said.contains(mistake), "{mistake}\n{said}");
    }
    assert!(!said.contains("TAVERNKEEP_BIND"), "the option counts: {said}");
    for wrong in [
        "https://a.example/tavern",
        "a.example",
        "https://",
        "https://me@a.example",
        "http://a.example/?x=1",
        "https://a.example/#x",
    ] {
        assert!(read(&[("TAVERNKEEP_PUBLIC_URL", wrong)]).is_err(), "{wrong}");
    }
    // One sentence for each mistake, also where a number has limits.
    for (variable, wrong) in [
        ("TAVERNKEEP_TURNS_MAX", "many"),
        ("TAVERNKEEP_TURNS_MAX", "0"),
        ("TAVERNKEEP_BODIES_MIB", "lots"),
        ("TAVERNKEEP_WORKERS", "0"),
        ("TAVERNKEEP_REQUESTS_MAX", "0"),
        ("TAVERNKEEP_TURN_STEPS_MAX", "33"),
        ("TAVERNKEEP_SWEEP_MS", "49"),
        ("LLM_RETRIES", "11"),
        ("LLM_TIMEOUT_MS", "3600001"),
    ] {
        let mistakes = read(&[(variable, wrong)]).err().unwrap_or_default();
        assert!(mistakes.len() == 1 && mistakes[0].starts_with(variable), "{variable}={wrong}: {mistakes:?}");
    }
    let config = read(&[("TAVERNKEEP_PUBLIC_URL", "https://a.example:8443/\n")]).unwrap();
    assert_eq!(config.public_url.as_deref(), Some("https://a.example:8443"));
    // A secret is no option.
    let (said, code) = printed(&["serve", "--llm-api-key", "sk-1"], &[]).await;
    assert!(code == Some(2) && said.contains("unexpected argument '--llm-api-key'"), "{said}");
}

/// Links that commands print lead to the server, wherever it listens.
#[tokio::test(flavor = "multi_thread")]
async fn commands_print_the_servers_address() {
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let (done, _) = operator(&prepared.db.url, &["demo"]).await;
    assert!(done);
    let link = async |env: &[(&str, &str)]| {
        let env = [&[("DATABASE_URL", prepared.db.url.as_str()), ("TAVERNKEEP_SECRET_KEY", SECRET)], env].concat();
        printed(&["play-link"], &env).await.0
    };
    assert!(link(&[("TAVERNKEEP_BIND", "[::]:9000")]).await.starts_with("http://[::1]:9000/play/"), "no server runs");
    let child = prepared.start_with(&model, &[("TAVERNKEEP_BIND", "0.0.0.0:0")]).await;
    assert!(child.url().starts_with("http://127.0.0.1:"), "{}", child.url());
    let (told, token) = {
        let link = link(&[]).await;
        let (page, token) = link.split_once('#').unwrap();
        (page.to_owned(), token.to_owned())
    };
    assert!(told.starts_with(child.url()), "{told} is not at {}", child.url());
    assert_eq!(reqwest::get(&told).await.unwrap().status(), 200);
    assert!(!token.is_empty());
    let public = link(&[("TAVERNKEEP_PUBLIC_URL", "https://tavern.example.org/")]).await;
    assert!(public.starts_with("https://tavern.example.org/play/"), "{public}");
    // Somebody else who may connect to the database is not believed.
    let mut owner = PgConnection::connect(&prepared.db.url).await.unwrap();
    let guest = format!("tkt_{}_{}_guest", std::process::id(), prepared.db.number);
    owner.execute(AssertSqlSafe(format!("CREATE ROLE {guest} LOGIN PASSWORD 'guest'"))).await.unwrap();
    let options = PgConnectOptions::from_str(&prepared.db.url).unwrap().username(&guest).password("guest");
    let other = options.application_name("tavernkeep: http://evil.example").connect().await.unwrap();
    assert!(link(&[]).await.starts_with(child.url()));
    other.close().await.unwrap();
    owner.execute(AssertSqlSafe(format!("DROP ROLE {guest}"))).await.unwrap();
    drop(child);
    // An address that is too long to be told is left out, and the one where it listens is told.
    let long = format!("https://{}.example.org", "a".repeat(60));
    let child = prepared.start_with(&model, &[("TAVERNKEEP_PUBLIC_URL", long.as_str())]).await;
    assert_eq!(child.url(), long);
    assert!(link(&[]).await.starts_with("http://127.0.0.1:"));
    drop(child);
    // Where people reach it is what the server itself prints, and its commands with it.
    let child = prepared.start_with(&model, &[("TAVERNKEEP_PUBLIC_URL", "https://tavern.example.org")]).await;
    assert_eq!(child.url(), "https://tavern.example.org");
    assert!(link(&[]).await.starts_with("https://tavern.example.org/play/"));
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

/// Blank variables and options count as not set.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_blank_is_not_set() {
    let (said, _) = printed(&["doctor", "--data-dir", " "], &[("TAVERNKEEP_DATA_DIR", "/nowhere/at/all")]).await;
    assert!(said.contains("/nowhere/at/all"), "{said}");
    let prepared = Prepared::new().await;
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let child = prepared.start_with(&model, &[("RUST_LOG", "")]).await;
    until("a line of the log", async || child.log().contains("\"level\":\"INFO\"")).await;
}
