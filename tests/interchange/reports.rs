//! Reports of imports, long lists in documents, and what comes back in files of other formats.

use serde_json::{Value, json};

use super::{files, says};
use crate::support::Server;

const BOOK: &str = "/v1/campaigns/port-town/import/lorebook";
const CARD: &str = "/v1/campaigns/port-town/import/character-card";

/// Rows are written a few hundred at a time, whatever their kind.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_has_every_memory_and_message_however_many_there_are() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let texts = |kind: &str| (0..450).map(|n| format!("{kind} {n}")).collect::<Vec<_>>();
    let memories: Vec<_> = texts("Memory").into_iter().map(|text| json!({ "holder": { "type": "npc", "slug": "bob" }, "player": "ann", "source": "personal", "text": text })).collect();
    let messages: Vec<_> = texts("Message")
        .into_iter()
        .map(|text| json!({ "author": "player", "speaker": { "name": "Ann" }, "content": text }))
        .collect();
    let document = json!({ "format": "tavernkeep.campaign", "version": 1, "campaign": { "slug": "c", "name": "C" },
        "characters": [{ "slug": "ann", "name": "Ann" }], "npcs": [{ "slug": "bob", "name": "Bob" }],
        "memories": memories, "messages": messages });
    acme.post("/v1/campaigns/import", document).await.expect(200);
    let written = acme.get("/v1/campaigns/c/export").await.expect(200).body;
    let read = |list: &str, member: &str| -> Vec<String> {
        written[list].as_array().unwrap().iter().map(|row| row[member].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(read("memories", "text"), texts("Memory"));
    assert_eq!(read("messages", "content"), texts("Message"));
}

/// Rows are read a few hundred at a time, and an error counts them from the first of the list.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_names_its_row_in_a_long_list() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    type MakeRow = fn(usize) -> Value;
    let lists: [(&str, MakeRow); 3] = [
        ("lore", |n| json!({ "slug": format!("l{n}"), "title": "L", "scope": "global", "content": "L." })),
        (
            "memories",
            |n| json!({ "holder": { "type": "npc", "slug": "bob" }, "player": "ann", "source": "personal", "text": format!("M{n}") }),
        ),
        ("messages", |n| json!({ "author": "player", "speaker": { "name": "Ann" }, "content": format!("M{n}") })),
    ];
    for (list, row) in lists {
        let mut rows: Vec<Value> = (0..1235).map(row).collect();
        rows[1234]["odd"] = json!(1);
        let document = json!({ "format": "tavernkeep.campaign", "version": 1, "campaign": { "slug": "c", "name": "C" },
            "characters": [{ "slug": "ann", "name": "Ann" }], "npcs": [{ "slug": "bob", "name": "Bob" }], list: rows });
        let refused = acme.post("/v1/campaigns/import", document).await.problem(422, "validation_failed");
        assert_eq!(refused.pointers(), [format!("/{list}/1234/odd")]);
    }
}

/// A model may answer without words; people say something.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_ai_may_have_said_nothing() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    for (author, fits) in [("ai", true), ("player", false), ("gm", false)] {
        let said = json!([{ "author": author, "speaker": { "name": "Bob" }, "content": "" }]);
        let document = json!({ "format": "tavernkeep.campaign", "version": 1, "campaign": { "slug": author, "name": "C" }, "messages": said });
        let answer = acme.post("/v1/campaigns/import", document).await;
        assert_eq!(answer.status, if fits { 200 } else { 422 }, "{author}: {}", answer.text);
        assert!(fits || answer.pointers() == ["/messages/0/content"], "{author}: {}", answer.text);
    }
}

/// A report that calls everything lost is no use: what is filled in is not unknown, what is used is not unused, and what counts counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_complains_of_nothing_that_is_right() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    acme.world().await;
    let report = acme.post(CARD, files::card()).await.expect(200).body;
    for field in report["fields"].as_array().unwrap() {
        let path = field["path"].as_str().unwrap();
        assert!(!path.contains("{{char}}") && !path.contains("{{user}}"), "{field:#}");
        let is_used = ["name", "description", "personality", "mes_example"]
            .map(|name| format!("/data/{name}"))
            .contains(&path.to_owned());
        assert!(!is_used || field["to"] != "extensions", "{field:#}");
    }
    let report = acme.post(BOOK, files::world_info()).await.expect(200).body;
    assert!(says(&report, "/entries/*/disable", "mapped"), "{report:#}");
    assert!(!says(&report, "/entries/*/keysecondary", "approximated"), "{report:#}");
}

/// What an entry has only in its own format comes back in every other.
#[tokio::test(flavor = "multi_thread")]
async fn what_one_format_says_survives_the_others() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    acme.post(BOOK, files::world_info()).await.expect(200);
    let agnai = json!({ "kind": "memory", "name": "x", "entries": [{ "name": "Nets", "entry": "Nets dry.", "keywords": ["net"], "weight": 3, "priority": 1, "enabled": true }] });
    acme.post(BOOK, agnai).await.expect(200);
    for slug in ["the_harbour_2", "nets"] {
        world
            .patch(&format!("/lore/{slug}"), json!({ "secret": true, "known_by": ["innkeeper_bob"] }))
            .await
            .expect(200);
    }
    let card = world.get("/npcs/innkeeper_bob/card.json").await.expect(200).body;
    let entry = |name: &str| {
        let entries = card["data"]["character_book"]["entries"].as_array().unwrap();
        entries.iter().find(|entry| entry["comment"] == name).unwrap()["extensions"].clone()
    };
    assert_eq!(entry("The harbour")["position"], 4, "{card:#}");
    assert_eq!(entry("Nets")["tavernkeep"]["source"]["entry"]["weight"], 3, "{card:#}");
    // Before and after the character are 0 and 1 in a world info.
    let placed = |name: &str, position: &str| json!({ "keys": ["k"], "content": "x", "name": name, "enabled": true, "insertion_order": 1, "position": position, "extensions": {}, "use_regex": false });
    let book = json!({ "spec": "lorebook_v3", "data": { "entries": [placed("Before", "before_char"), placed("After", "after_char")] } });
    acme.post(BOOK, book).await.expect(200);
    let info = world.get("/lorebook.json").await.expect(200).body;
    let of = |name: &str| info["entries"].as_object().unwrap().values().find(|entry| entry["comment"] == name).unwrap();
    assert_eq!((&of("Before")["position"], &of("After")["position"]), (&json!(0), &json!(1)));
}

/// Who knows an entry is in the file if there is something to know, and only then.
#[tokio::test(flavor = "multi_thread")]
async fn who_knows_an_entry_goes_out_with_it() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    for (title, more) in [
        ("Open", json!({})),
        ("Told", json!({ "known_by": ["innkeeper_bob"] })),
        ("Secret", json!({ "secret": true })),
        ("Shared", json!({ "secret": true, "known_by": ["innkeeper_bob"] })),
    ] {
        let mut entry = json!({ "title": title, "scope": "global", "content": "x" });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.post("/lore", entry).await.expect(201);
    }
    let info = world.get("/lorebook.json").await.expect(200).body;
    for (title, known) in [
        ("Open", None),
        ("Told", Some(json!(["innkeeper_bob"]))),
        ("Secret", Some(json!([]))),
        ("Shared", Some(json!(["innkeeper_bob"]))),
    ] {
        let entry = info["entries"].as_object().unwrap().values().find(|entry| entry["comment"] == title).unwrap();
        assert_eq!(entry["extensions"]["tavernkeep"].get("known_by"), known.as_ref(), "{entry:#}");
    }
}
