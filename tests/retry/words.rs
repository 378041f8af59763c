//! Words to look for: whatever somebody types, a list answers.

use edge::users::Role;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use serde_json::json;

use crate::{admin::Visitor, support::Server};

const ODD: &[&str] = &[
    "-town_square",
    "town_square",
    "-a_b -c_d",
    "a or",
    "or",
    "or or or",
    "-",
    "--",
    "- -",
    "\"",
    "\"\"",
    "\"a_b",
    "-\"a_b\" c",
    "'",
    "''",
    "it's",
    "it''s",
    "\\",
    "\\\\",
    "a\\",
    "\\'",
    "a:*",
    ":*",
    "a:A",
    "a:*b",
    "!",
    "!!a",
    "a & b",
    "a | b",
    "(a",
    "a)",
    "()",
    "<->",
    "a <-> b",
    "a <2> b",
    "%",
    "_",
    "%%",
    "\\%",
    "*",
    "?",
    "[a-z",
    "{",
    "$1",
    ";",
    "--x",
    "/*",
    "a\tb",
    "a\nb",
    "é-ü_ß",
    "日本語",
    "-日本",
    "👁️_x",
    "\u{200b}",
    "\u{202e}abc",
    "user@example.org",
    "http://a.b/c_d?e=f",
    "-http://a.b/c_d",
    "a.b-c_d/e",
    "1e5",
    "-1.5e-3_x",
    "a-b-c",
    "-a-b_c",
    "'a_b'",
    "\"a' b_c\"",
];

/// A word of what search strings are made of.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(ODD.to_vec()).prop_map(str::to_owned),
        "[a-z_'\"\\\\&|!():*<>@./ -]{1,12}",
        any::<char>().prop_filter("no NUL", |c| *c != '\0').prop_map(String::from),
    ]
}

fn words() -> impl Strategy<Value = String> {
    (prop::collection::vec(piece(), 1..6), prop::sample::select(vec!["", " ", "_", "-"]))
        .prop_map(|(pieces, joint)| pieces.join(joint).chars().take(200).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_answers_whatever_is_looked_for() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let c = "/v1/campaigns/port-town";
    let lists = [
        "/v1/campaigns",
        "/v1/users",
        "/v1/keys",
        &format!("{c}/npcs"),
        &format!("{c}/owners"),
        &format!("{c}/characters"),
        &format!("{c}/lore"),
        &format!("{c}/scenes"),
        &format!("{c}/messages"),
        &format!("{c}/turns"),
        &format!("{c}/sessions"),
        &format!("{c}/encounters"),
        &format!("{c}/npcs/innkeeper_bob/memories"),
        &format!("{c}/dice/seeds"),
        &format!("{c}/memories/broadcasts"),
    ]
    .map(str::to_owned);
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let pages = ["npcs", "owners", "characters", "lore", "scenes", "memories", "turns"]
        .map(|page| format!("/admin/c/port-town/{page}"));
    let mut runner = TestRunner::new(Config::default());
    let made = (0..120).map(|_| words().new_tree(&mut runner).unwrap().current());
    for q in ODD.iter().map(|q| (*q).to_owned()).chain(made) {
        let quoted: String = q.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for list in &lists {
            let answer = tenant.send_odd(tenant.request(reqwest::Method::GET, &format!("{list}?q={quoted}"))).await;
            // Some lists have no `q`; that is said, too.
            assert!(matches!(answer.status, 200 | 400 | 404), "{list} for {q:?}: {}", answer.text);
        }
        let call = json!({ "actor": { "type": "gm" }, "arguments": { "query": q } });
        let found = world.post("/tools/search_lore", call).await;
        assert!(matches!(found.status, 200 | 422), "search_lore for {q:?}: {}", found.text);
        for page in &pages {
            let answer = mara.get(&format!("{page}?q={quoted}")).await;
            assert!(matches!(answer.status, 200 | 400 | 422), "{page} for {q:?}: {}", answer.status);
        }
    }
    for list in &lists {
        for q in ["%00", "a%00b", &"x".repeat(201), &"%22".repeat(5000)] {
            let answer = tenant.send_odd(tenant.request(reqwest::Method::GET, &format!("{list}?q={q}"))).await;
            assert!((400..500).contains(&answer.status), "{list}: {}", answer.text);
        }
    }
}
