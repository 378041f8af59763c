//! The direction of dependencies: what may know of what.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A folder or file of `api/src`, and what it must not use.
const FORBIDDEN: &[(&str, &[&str])] = &[
    // The frame of HTTP knows no kind of the world.
    (
        "http",
        &[
            "crate::npcs",
            "crate::owners",
            "crate::lore",
            "crate::memory",
            "crate::characters",
            "crate::turns",
            "crate::campaigns",
        ],
    ),
    // Prompts are made of rows, not of requests, and call no model.
    ("prompt", &["crate::turns", "crate::models", "crate::campaigns", "LlmClient"]),
    // Tools use services.
    (
        "tools",
        &["::http::list", "crate::turns", "crate::commands", "crate::planner", "crate::npcs::", "crate::owners::"],
    ),
    // Turns know nothing of who asked for them; a command does not know whether it was planned.
    ("turns", &["crate::planner", "crate::commands"]),
    ("commands", &["crate::planner"]),
    // What reads a model's plan knows nothing but JSON.
    ("planner/plan.rs", &["crate::", "super::"]),
    ("limits", &["crate::turns", "crate::prompt"]),
    // The editor uses services; the database is theirs.
    ("admin", &["sqlx", "sea_orm"]),
];

/// Only these may reach tables without a tenant's transaction: definer functions, the operator's command line.
const MAY_USE_THE_POOL: &[&str] = &[
    "app.rs",
    "auth/keys.rs",
    "bridge/mail.rs",
    "campaigns/removal.rs",
    "cli",
    "database.rs",
    "demo",
    "ops",
    "tenants/service.rs",
    "turns/elsewhere.rs",
    "turns/store/sweep.rs",
    "users/links.rs",
    "users/second_factor.rs",
    "users/sessions.rs",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found
}

fn api() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/src")
}

#[test]
fn rooms_do_not_know_what_is_above_them() {
    for (room, forbidden) in FORBIDDEN {
        let place = api().join(room);
        let files = if place.is_dir() { sources(&place) } else { vec![place] };
        assert!(!files.is_empty(), "{room} is gone: mend this table");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for name in *forbidden {
                let used = text.lines().filter(|l| !l.trim_start().starts_with("//")).any(|l| l.contains(name));
                assert!(!used, "{} must not use {name}", file.display());
            }
        }
    }
}

#[test]
fn the_editor_calls_services_and_no_slices_routes() {
    for file in sources(&api().join("admin")) {
        let text = fs::read_to_string(&file).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            // `crate::http` is what all routes share; within `use crate::{…}` it stands at the first level.
            let indent = line.len() - line.trim_start().len();
            let named = line.trim_start();
            let is_nested =
                indent >= 8 && named.starts_with("http::") && (named.ends_with(',') || named.ends_with('{'));
            let is_slices = line.replace("crate::http::", "").replace("actix_web::http::", "").contains("::http::");
            let is_call = named.contains('(');
            assert!((!is_nested || is_call) && !is_slices, "{}: {line}", file.display());
        }
    }
}

#[test]
fn only_tenant_transactions_touch_tables() {
    for file in sources(&api()) {
        let inside = file.strip_prefix(api()).unwrap().to_string_lossy().into_owned();
        if MAY_USE_THE_POOL.iter().any(|allowed| inside.starts_with(allowed)) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for name in ["pool.acquire()", "PgConnection::connect", "Link::open"] {
            assert!(!text.contains(name), "{inside} goes around TenantTx: {name}");
        }
    }
}

#[test]
fn pure_crates_stay_pure() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (member, forbidden) in [
        ("base", &["db", "entity", "llm", "migration", "pgcluster", "rules", "tavernkeep"][..]),
        ("db", &["entity", "llm", "migration", "pgcluster", "rules", "tavernkeep", "actix"]),
        ("llm", &["db", "entity", "migration", "pgcluster", "rules", "tavernkeep", "actix", "sqlx", "sea-orm"]),
        ("pgcluster", &["base", "db", "entity", "llm", "migration", "rules", "tavernkeep", "actix"]),
        ("rules", &["tokio", "sea-orm", "actix", "sqlx", "getrandom", "tavernkeep"]),
        ("entity", &["tokio", "actix", "tavernkeep", "migration"]),
        ("migration", &["actix", "tavernkeep", "entity"]),
        ("rehearsal", &["tavernkeep", "entity", "sea-orm", "sqlx"]),
    ] {
        let manifest = fs::read_to_string(root.join(member).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        for name in forbidden {
            let used = dependencies.lines().any(|l| l.split(['.', ' ', '=']).next() == Some(name));
            assert!(!used, "{member} must not depend on {name}");
        }
    }
}
