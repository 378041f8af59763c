//! The direction of dependencies: crates stand in layers, and the rooms of a crate (the modules at its root) stand in an
//! order. Each crate and each room may use only what is listed before it.
//!
//! To add a room, add its name after the rooms that it uses. If there is no such place, something in it belongs lower. A file of a room
//! may have a place of its own: list it by its path.

mod circles;
mod counts;
mod handlers;
mod paths;
mod ratchet;
mod shown;

use std::{collections::BTreeSet, path::Path, process::Command};

use circles::{Files, circles, described};
use paths::{Source, Used, sources};
use serde_json::Value;

/// The crates from bottom to top, each with its rooms from bottom to top. A file that stands apart from its room is listed by its path.
const LAYERS: &[(&str, &[&str])] = &[
    (
        "base",
        &[
            "clock",
            "metrics",
            "rate",
            "error",
            "fold",
            "hex",
            "text",
            "json",
            "request_id",
            "secrets",
            "shares",
            "stored",
            "search",
            "threads",
            "tokens",
            "variants",
            "watched",
        ],
    ),
    ("rules", &["dice", "srd", "sheet", "resolve", "encounter"]),
    (
        "entity",
        &[
            "id",
            "json",
            "kind",
            "shapes",
            "campaign",
            "character",
            "encounter",
            "lore",
            "memory",
            "message",
            "npc",
            "owner",
            "scene",
            "session",
        ],
    ),
    ("migration", &["m*"]),
    (
        "llm",
        &[
            "guard",
            "parameters",
            "endpoint",
            "error",
            "breaker",
            "retry",
            "settings",
            "http_clients",
            "usage",
            "window",
            "echo",
            "habits",
            "completion",
            "lossy",
            "reply",
            "documents",
            "decode",
            "growing",
            "sink",
            "request",
            "transport",
            "listing",
            "client",
        ],
    ),
    ("pgcluster", &["error", "binaries", "place", "state", "cluster", "process"]),
    (
        "rehearsal",
        &[
            "error",
            "feed",
            "lines",
            "prefix_cache",
            "recorder",
            "reply",
            "builders",
            "completion",
            "schema",
            "script",
            "cursor",
            "stream",
            "wire",
            "check",
            "prompt",
            "scene",
            "known",
            "master",
            "referee",
            "planner",
            "persona",
            "state",
            "http",
            "server",
        ],
    ),
    ("db", &["url", "link", "pool", "feeds", "retry", "tenancy"]),
    (
        "edge",
        &[
            "admission",
            "client",
            "connections",
            "panics",
            "passwords",
            "patterns",
            "tenants",
            "caller",
            "limits",
            "models",
            "origins",
            "state",
            "http",
            "auth",
            "model_profiles",
            "tenant_settings",
            "users",
        ],
    ),
    (
        "world",
        &[
            "tools",
            "actors",
            "player_links",
            "paused",
            "guidance",
            "significance",
            "dice",
            "erasure",
            "characters",
            "memory",
            "npcs",
            "owners",
            "playing",
            "journal",
            "audit",
            "campaigns",
            "edits",
            "lore",
            "revisions",
            "rules",
            "scenes",
            "messages::prompt_text",
            "interchange",
            "messages",
            "encounters",
            "fallen",
            "sessions",
            "table",
            "seat",
            "overview",
            "around",
            "sample",
        ],
    ),
    (
        "ai",
        &[
            "fair_cache",
            "corpora",
            "frontends",
            "tools",
            "prompt",
            // What the state of the crate holds.
            "turns::clean",
            "turns::kind",
            "turns::subject",
            "turns::view",
            "turns::live",
            "turns::steady",
            "turns::running",
            "turns::gm::role",
            "turns::gm::lore",
            "turns::gm::lasting",
            "turns::gm::session_prompts",
            "planner::plan",
            "planner::memory",
            "state",
            // What needs the state.
            "tools::http",
            "prompt::search",
            "prompt::preview",
            "prompt::http",
            "turns",
            "reactions",
            "bridge",
            "commands",
            "planner",
        ],
    ),
    ("pages", &["assets", "emblem", "fight", "marks", "model", "sheet", "table", "admin", "play"]),
    (
        "tavernkeep",
        &[
            "settings", "log", "config", "life", "database", "app", "demo", "openapi", "docs", "ops", "routes",
            "server", "cli",
        ],
    ),
];

/// Only these may reach tables without a tenant's transaction: definer functions, and the operator's command line.
const MAY_USE_THE_POOL: &[&str] = &[
    "pgcluster/src",
    "db/src",
    "edge/src/caller/keys.rs",
    "edge/src/caller/links.rs",
    "edge/src/origins.rs",
    "edge/src/tenant_settings/service.rs",
    "edge/src/users/links.rs",
    "edge/src/users/second_factor.rs",
    "edge/src/users/sessions.rs",
    "world/src/campaigns/removal.rs",
    "ai/src/frontends/mail.rs",
    "ai/src/reactions/replies.rs",
    "ai/src/reactions/work.rs",
    "ai/src/turns/elsewhere.rs",
    "ai/src/turns/store/sweep.rs",
    "api/src",
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The folder of a crate.
fn folder(name: &str) -> &str {
    if name == "tavernkeep" { "api" } else { name }
}

fn all_sources() -> Vec<Source> {
    LAYERS.iter().flat_map(|(name, _)| sources(root(), folder(name))).collect()
}

/// The place of a path inside a crate: that of its file, or else of its room.
fn place(rooms: &[&str], path: &[String]) -> Option<usize> {
    let is_in = |listed: &str| match listed.strip_suffix('*') {
        Some(start) => path[0].starts_with(start),
        None => listed.split("::").eq(path.iter().take(listed.split("::").count())),
    };
    let found = rooms.iter().enumerate().filter(|(_, listed)| is_in(listed));
    found.max_by_key(|(_, listed)| listed.split("::").count()).map(|(place, _)| place)
}

/// What a source uses although it stands above the source's own room.
fn upward(rooms: &[&str], source: &Source) -> Vec<String> {
    let Some(room) = source.module.first() else { return Vec::new() };
    let Some(own) = place(rooms, &source.module) else {
        return vec![format!("{}: the room `{room}` is not listed in LAYERS", source.path)];
    };
    let above = |used: &&Used| place(rooms, &used.path).is_some_and(|other| other > own);
    let inside = source.used.iter().filter(|used| used.is_inside);
    inside.filter(above).map(|used| format!("{}: crate::{}", source.path, used.path.join("::"))).collect()
}

#[test]
fn rooms_import_only_rooms_below_them() {
    let mut wrong = Vec::new();
    for (name, rooms) in LAYERS {
        for source in sources(root(), folder(name)) {
            wrong.extend(upward(rooms, &source));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_listed_room_exists() {
    for (name, rooms) in LAYERS {
        let found = sources(root(), folder(name)).into_iter().map(|source| source.module);
        let found: BTreeSet<Vec<String>> = found.filter(|module| !module.is_empty()).collect();
        for room in *rooms {
            assert!(found.iter().any(|one| place(&[room], one).is_some()), "{name} has no room `{room}`");
        }
    }
}

/// In whatever way an import is written, it is found.
#[test]
fn a_planted_upward_import_is_found() {
    let rooms = &["low", "high"];
    let planted = [
        "use crate::high::Thing;",
        "use crate::{\n    low::Other,\n    high::{self, Thing},\n};",
        "use crate::high as other;",
        "pub(crate) use super::high::Thing;",
        "use super::{low::Other, high};",
        "fn f() { use crate::high::Thing; }",
        "fn f() -> crate::high::Thing { crate::low::thing() }",
        "mod inner { use super::super::high::Thing; }",
        "fn f() { println!(\"{}\", crate::high::THING); }",
        "macro_rules! make { () => { $crate::high::Thing::new() } }",
        "#[serde(with = \"crate::high::text\")] struct A;",
    ];
    for text in planted {
        let source = Source::parse("low.rs", vec!["low".to_owned()], text);
        assert!(!upward(rooms, &source).is_empty(), "{text}");
        let source = Source::parse("high.rs", vec!["high".to_owned()], &text.replace("high", "low"));
        assert!(upward(rooms, &source).is_empty(), "{text}");
    }
}

/// A file that is listed by its path stands there, and not where its room stands.
#[test]
fn a_listed_file_stands_below_its_room() {
    let rooms = &["room::file", "middle", "room"];
    let at = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
    for (module, text, is_upward) in [
        ("room::file", "use super::other::Thing;", true),
        ("room::file", "use crate::room::Thing;", true),
        ("room::file", "use crate::middle::Thing;", true),
        ("middle", "use crate::room::{file::Thing, other::Thing};", true),
        ("middle", "use crate::room::file::Thing;", false),
        ("room::file::inner", "use super::super::file::Thing;", false),
        ("room::other", "use super::file::Thing;\nuse crate::middle::Thing;", false),
    ] {
        assert_eq!(upward(rooms, &Source::parse("", at(module), text)).is_empty(), !is_upward, "{module}: {text}");
    }
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let mut wrong = Vec::new();
    for (name, _) in LAYERS {
        let sources = sources(root(), folder(name));
        let uses = Files::new(&sources).uses();
        wrong.extend(circles(&uses).iter().map(|circle| described(&uses, circle)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn crates_depend_only_on_crates_below_them() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let asked = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let metadata: Value = serde_json::from_slice(&asked.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let layer = |name: &str| LAYERS.iter().position(|(listed, _)| *listed == name);
    for (own, (name, _)) in LAYERS.iter().enumerate() {
        let package = packages.iter().find(|package| package["name"] == **name).unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            let is_below = layer(used).is_none_or(|other| other < own);
            assert!(is_below || dependency["kind"] == "dev", "{name} must not depend on {used}");
        }
    }
}

/// What these crates must do without, besides the crates above them.
#[test]
fn pure_crates_stay_pure() {
    const DATABASE: &[&str] = &["sqlx", "sea_orm"];
    const HTTP: &[&str] = &["actix_web", "actix_http"];
    for (name, forbidden) in [
        ("rules", &[DATABASE, HTTP, &["tokio", "getrandom", "base"]][..]),
        ("entity", &[HTTP, &["tokio", "sqlx"]]),
        ("llm", &[DATABASE, HTTP, &["entity", "rules"]]),
        ("db", &[HTTP, &["entity", "rules", "llm"]]),
        ("pgcluster", &[HTTP, &["base"]]),
        ("rehearsal", &[DATABASE, &["entity", "db"]]),
        ("edge", &[&["rules"]]),
        ("world", &[&["llm", "rehearsal"]]),
    ] {
        for source in sources(root(), name) {
            let outside = source.used.iter().filter(|used| !used.is_inside);
            for used in outside {
                let is_forbidden = forbidden.iter().any(|names| names.contains(&used.path[0].as_str()));
                assert!(!is_forbidden, "{}: {}", source.path, used.path.join("::"));
            }
        }
    }
}

/// Pages call services: no SQL, and no route of another crate.
#[test]
fn pages_call_services() {
    for source in sources(root(), "pages") {
        for used in source.used.iter().filter(|used| !used.is_inside) {
            let path = used.path.join("::");
            assert!(!matches!(&*used.path[0], "sqlx" | "sea_orm"), "{}: {path}", source.path);
            let is_slice = matches!(&*used.path[0], "world" | "ai")
                || (used.path[0] == "edge" && used.path.get(1).is_some_and(|room| room != "http"));
            let is_route = is_slice && used.path.iter().skip(1).any(|part| part == "http");
            assert!(!is_route, "{}: {path}", source.path);
        }
    }
}

/// What reads a model's plan knows nothing but JSON.
#[test]
fn reading_a_plan_needs_nothing_of_ours() {
    let plan = sources(root(), "ai").into_iter().find(|source| source.path == "ai/src/planner/plan.rs").unwrap();
    let ours = |used: &&Used| used.is_inside || LAYERS.iter().any(|(name, _)| *name == used.path[0]);
    let found: Vec<_> = plan.used.iter().filter(ours).map(|used| used.path.join("::")).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn only_tenant_transactions_touch_tables() {
    for source in all_sources() {
        if MAY_USE_THE_POOL.iter().any(|allowed| source.path.starts_with(allowed)) {
            continue;
        }
        let opens = source.used.iter().map(|used| used.path.join("::"));
        let opens: Vec<_> =
            opens.filter(|path| path.ends_with("PgConnection::connect") || path.ends_with("Link::open")).collect();
        assert!(opens.is_empty() && !source.takes_from_pool, "{} goes around TenantTx: {opens:?}", source.path);
    }
}
