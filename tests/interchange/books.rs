//! Lorebooks in and out.

use serde_json::{Value, json};

use super::{files, says};
use crate::support::{Server, World, counts};

const IMPORT: &str = "/v1/campaigns/port-town/import/lorebook";

#[tokio::test(flavor = "multi_thread")]
async fn a_world_info_becomes_lore_and_comes_back() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let before = counts(&server).await;
    acme.post(&format!("{IMPORT}?dry_run=true"), files::world_info()).await.expect(200);
    assert_eq!(counts(&server).await, before);
    let report = acme.post(IMPORT, files::world_info()).await.expect(200).body;
    assert_eq!((&report["format"], &report["counts"]["created"]), (&json!("sillytavern"), &json!(3)), "{report:#}");
    for (path, what) in [
        ("/entries/*/content", "kept"),
        ("/entries/*/comment", "mapped"),
        ("/entries/*/position", "approximated"),
        ("/entries/*/probability", "approximated"),
        ("/entries/*/sticky", "approximated"),
        ("/entries/*/preventRecursion", "kept"),
        ("/entries/*/from_tomorrow", "kept"),
        ("/entries/*", "dropped"),
        ("/extensions", "kept"),
    ] {
        assert!(says(&report, path, what), "{what} {path}: {report:#}");
    }
    let harbour = world.get("/lore/the_harbour_2").await.expect(200).body;
    assert_eq!(harbour["keys"], json!(["harbour", "dragon", "drugon"]));
    assert_eq!(
        (&harbour["logic"], &harbour["priority"], &harbour["scan_depth"], &harbour["tags"]),
        (&json!("not_any"), &json!(120), &json!(5), &json!(["Tides"]))
    );
    let sea = world.get("/lore/the_sea_is_cold").await.expect(200).body;
    assert_eq!((&sea["activation"], &sea["enabled"]), (&json!("always"), &json!(false)));
    assert_eq!(world.get("/lore/only_a_pattern").await.expect(200).body["enabled"], false);
    // What is lost names the entries that lose it.
    let dropped = report["fields"].as_array().unwrap().iter().find(|f| f["path"] == "/entries/*/position").unwrap();
    assert_eq!((&dropped["count"], &dropped["titles"]), (&json!(1), &json!(["The harbour"])), "{dropped:#}");
    // A second time changes nothing, though a name was taken.
    let before = counts(&server).await;
    let again = acme.post(IMPORT, files::world_info()).await.expect(200).body;
    assert_eq!(again["counts"], json!({ "created": 0, "updated": 0, "unchanged": 3 }), "{again:#}");
    assert_eq!(counts(&server).await, before);
    // All lore, read here again, is what is here.
    let all = world.get("/lorebook.json").await.expect(200).body;
    assert_eq!(all["entries"].as_object().unwrap().len(), 7);
    let here = acme.post(IMPORT, all).await.expect(200).body;
    assert_eq!(here["counts"], json!({ "created": 0, "updated": 0, "unchanged": 7 }), "{here:#}");
    // And back: each entry as it was, what was changed here as it is now.
    world.patch("/lore/the_sea_is_cold", json!({ "content": "The sea is warm.", "enabled": true })).await.expect(200);
    let book = world.get("/lorebook.json?book=tides").await.expect(200).body;
    assert_eq!((&book["name"], &book["extensions"]), (&json!("Tides"), &json!({ "theme": "sea" })));
    let find = |book: &Value, uid: u64| {
        book["entries"].as_object().unwrap().values().find(|e| e["uid"] == uid).unwrap().clone()
    };
    for uid in [0, 2] {
        for (name, value) in find(&files::world_info(), uid).as_object().unwrap() {
            assert_eq!(&find(&book, uid)[name], value, "{uid} {name}");
        }
    }
    assert_eq!((&find(&book, 1)["content"], &find(&book, 1)["disable"]), (&json!("The sea is warm."), &json!(false)));
    world.get("/lorebook.json?book=none").await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_books_of_other_programs_are_read_and_their_fields_come_back() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let novel = json!({ "lorebookVersion": 5, "settings": { "orderByKeyLocations": false }, "categories": [], "entries": [{
        "id": "a-b-c", "displayName": "Gulls", "text": "Gulls steal.", "keys": ["gull"], "enabled": true, "forceActivation": false,
        "searchRange": 1000, "contextConfig": { "budgetPriority": 400, "prefix": "" }, "loreBiasGroups": [] }] });
    let books = [
        ("novelai", novel.clone(), "gulls"),
        (
            "agnai",
            json!({ "kind": "memory", "name": "x", "entries": [{ "name": "Nets", "entry": "Nets dry.", "keywords": ["net"], "weight": 3, "priority": 1, "enabled": true }] }),
            "nets",
        ),
        (
            "risu",
            json!({ "type": "risu", "data": [{ "key": "rope,line", "secondkey": "", "comment": "Ropes", "content": "Ropes rot.", "alwaysActive": false, "selective": false, "insertorder": 9 }] }),
            "ropes",
        ),
        (
            "ai_dungeon",
            json!([{ "keys": "crab, claw", "value": "Crabs pinch.", "title": "Crabs", "type": "race", "description": "a note" }]),
            "crabs",
        ),
        (
            "character_book",
            json!({ "spec": "lorebook_v3", "data": { "entries": [{ "keys": ["sh(ip|oal)"], "content": "Ships sink.", "name": "Ships", "enabled": true, "insertion_order": 3, "use_regex": true, "extensions": {} }] } }),
            "ships",
        ),
    ];
    for (format, book, slug) in books {
        let report = acme.post(IMPORT, book).await.expect(200).body;
        assert_eq!((&report["format"], &report["counts"]["created"]), (&json!(format), &json!(1)), "{report:#}");
        let lore = world.get(&format!("/lore/{slug}")).await.expect(200).body;
        assert_eq!((&lore["activation"], &lore["enabled"]), (&json!("keyword"), &json!(true)), "{lore:#}");
    }
    assert_eq!(world.get("/lore/ships").await.body["keys"], json!(["ship", "shoal"]));
    let book = world.get("/lorebook.json").await.expect(200).body;
    let gulls = book["entries"].as_object().unwrap().values().find(|e| e["comment"] == "Gulls").unwrap();
    assert_eq!(
        gulls["extensions"]["tavernkeep"]["source"]["entry"]["contextConfig"],
        novel["entries"][0]["contextConfig"]
    );
    assert_eq!((&gulls["content"], &gulls["order"]), (&json!("Gulls steal."), &json!(400)));
}

/// Whether an entry is told at all, and whether it is told always, as each program says it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_off_or_always_on_elsewhere_is_so_here() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let agnai = |name: &str, enabled: bool| json!({ "name": name, "entry": "x", "keywords": ["k"], "weight": 1, "enabled": enabled });
    let novel = |name: &str, enabled: bool, always: bool| json!({ "displayName": name, "text": "x", "keys": ["k"], "enabled": enabled, "forceActivation": always });
    let risu =
        |name: &str, always: bool| json!({ "key": "k", "comment": name, "content": "x", "alwaysActive": always });
    let info = |name: &str, off: bool, always: bool| json!({ "key": ["k"], "comment": name, "content": "x", "disable": off, "constant": always });
    for book in [
        json!({ "kind": "memory", "entries": [agnai("agnai on", true), agnai("agnai off", false)] }),
        json!({ "lorebookVersion": 5, "entries": [novel("novel on", true, false), novel("novel off", false, false), novel("novel always", true, true)] }),
        json!({ "type": "risu", "data": [risu("risu on", false), risu("risu always", true)] }),
        json!({ "entries": { "0": info("tavern on", false, false), "1": info("tavern off", true, false), "2": info("tavern always", false, true) } }),
    ] {
        acme.post(IMPORT, book).await.expect(200);
    }
    let mut wrong = Vec::new();
    for (slug, enabled, activation) in [
        ("agnai_on", true, "keyword"),
        ("agnai_off", false, "keyword"),
        ("novel_on", true, "keyword"),
        ("novel_off", false, "keyword"),
        ("novel_always", true, "always"),
        ("risu_on", true, "keyword"),
        ("risu_always", true, "always"),
        ("tavern_on", true, "keyword"),
        ("tavern_off", false, "keyword"),
        ("tavern_always", true, "always"),
    ] {
        let lore = world.get(&format!("/lore/{slug}")).await.expect(200).body;
        if (&lore["enabled"], &lore["activation"]) != (&json!(enabled), &json!(activation)) {
            wrong.push(format!("{slug}: {} {}", lore["enabled"], lore["activation"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// How second keys count has a number in files: that number both ways, in world infos and in the books of cards.
#[tokio::test(flavor = "multi_thread")]
async fn the_logic_of_second_keys_has_its_number() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let logics = [("and_any", 0), ("not_all", 1), ("not_any", 2), ("and_all", 3)];
    for (logic, number) in logics {
        let ours = json!({ "slug": logic, "title": logic, "scope": "global", "content": "x", "activation": "keyword", "keys": ["k"],
            "secondary_keys": ["s"], "logic": logic, "secret": true, "known_by": ["innkeeper_bob"] });
        world.post("/lore", ours).await.expect(201);
        let theirs = json!({ "key": ["k"], "keysecondary": ["s"], "comment": format!("read {number}"), "content": "x", "selectiveLogic": number });
        acme.post(&format!("{IMPORT}?name={logic}"), json!({ "entries": { "0": theirs } })).await.expect(200);
        assert_eq!(world.get(&format!("/lore/read_{number}")).await.expect(200).body["logic"], logic);
    }
    let info = world.get("/lorebook.json").await.expect(200).body;
    let card = world.get("/npcs/innkeeper_bob/card.json").await.expect(200).body;
    for (logic, number) in logics {
        let of = |entry: &&Value| entry["comment"] == logic || entry["name"] == logic;
        let written = info["entries"].as_object().unwrap().values().find(of).unwrap();
        assert_eq!((&written["selectiveLogic"], &written["selective"]), (&json!(number), &json!(true)), "{logic}");
        let entry = card["data"]["character_book"]["entries"].as_array().unwrap().iter().find(of).unwrap();
        let extensions = entry["extensions"].as_object().unwrap();
        assert_eq!(extensions.get("selectiveLogic").map_or(0, |n| n.as_i64().unwrap()), number, "{entry:#}");
    }
}

/// What an entry says of its own waking, in the lines before its text.
#[tokio::test(flavor = "multi_thread")]
async fn decorators_wake_and_silence_entries() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    for (slug, content, keys, enabled, activation) in [
        ("woken", "@@activate\nText.", json!(["k"]), true, "always"),
        ("woken_without_keys", "@@activate\nText.", json!([]), true, "always"),
        ("silenced", "@@dont_activate\nText.", json!(["k"]), false, "keyword"),
        ("both", "@@activate\n@@dont_activate\nText.", json!(["k"]), true, "always"),
        ("none", "Text.", json!(["k"]), true, "keyword"),
    ] {
        let entry = json!({ "key": keys, "comment": slug, "content": content });
        acme.post(&format!("{IMPORT}?name={slug}"), json!({ "entries": { "0": entry } })).await.expect(200);
        let lore = world.get(&format!("/lore/{slug}")).await.expect(200).body;
        assert_eq!(
            (&lore["content"], &lore["enabled"], &lore["activation"]),
            (&json!("Text."), &json!(enabled), &json!(activation)),
            "{slug}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_left_out_for_those_who_do_not_see_them() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    world
        .post("/lore", json!({ "title": "Hidden", "scope": "global", "content": "Canary.", "secret": true }))
        .await
        .expect(201);
    let reader = acme.with_scopes(&[edge::caller::Scope::Read]).await;
    assert!(!reader.get("/v1/campaigns/port-town/lorebook.json").await.expect(200).text.contains("Canary"));
    let book = world.get("/lorebook.json").await.expect(200);
    assert!(book.text.contains("Canary"));
    // Who does not see a secret cannot write over it, learn its id, or make it public, by any way in.
    let writer = acme.with_scopes(&[edge::caller::Scope::Read, edge::caller::Scope::Write]).await;
    let hidden = world.get("/lore/hidden").await.expect(200).body;
    let claim = |ours: Value| json!({ "entries": { "0": { "uid": 0, "key": ["k"], "comment": "Mine", "content": "Mine.", "extensions": { "tavernkeep": ours } } } });
    let own = |ours: Value| writer.post(IMPORT, claim(ours));
    let report = own(json!({ "slug": "hidden", "secret": false })).await.expect(200);
    assert!(!report.text.contains(hidden["id"].as_str().unwrap()), "{}", report.text);
    assert_eq!(report.body["items"][0]["slug"], "mine");
    let report = own(json!({ "slug": "hidden", "id": hidden["id"], "secret": false })).await.expect(200);
    assert_eq!(
        (&report.body["counts"]["unchanged"], &report.body["items"]),
        (&json!(1), &json!([])),
        "{}",
        report.text
    );
    let seed = json!([{ "slug": "hidden", "title": "Mine", "scope": "global", "content": "Mine.", "secret": false }]);
    let answer = writer.post("/v1/campaigns/port-town/import/seed", seed).await.problem(409, "slug_taken");
    assert!(!answer.text.contains(hidden["id"].as_str().unwrap()), "{}", answer.text);
    assert_eq!(world.get("/lore/hidden").await.expect(200).body, hidden);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_file_of_a_row_writes_over_it() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let reach = world.get("/lore/the_reach").await.expect(200).body;
    // A stranger's file may claim any slug; it has it if it is free.
    let stranger = |slug: &str| {
        json!({ "entries": { "0": { "uid": 7, "key": ["k"], "comment": "Theirs", "content": "Theirs.",
            "extensions": { "tavernkeep": { "slug": slug } } } } })
    };
    let report = acme.post(IMPORT, stranger("the_reach")).await.expect(200).body;
    assert_eq!(report["items"][0]["slug"], "theirs", "{report:#}");
    assert_eq!(world.get("/lore/the_reach").await.expect(200).body, reach);
    let again = acme.post(IMPORT, stranger("the_reach")).await.expect(200).body;
    assert_eq!(again["counts"], json!({ "created": 0, "updated": 0, "unchanged": 1 }), "{again:#}");
    // Our own file is known here, under whatever slug the row has by now; elsewhere it makes a row and is known from then on.
    let mut book = world.get("/lorebook.json").await.expect(200).body;
    let entries = book["entries"].as_object_mut().unwrap();
    entries.retain(|_, entry| entry["extensions"]["tavernkeep"]["slug"] == "the_reach");
    entries.values_mut().for_each(|entry| entry["content"] = json!("Warmer."));
    world.patch("/lore/the_reach", json!({ "slug": "the_sea" })).await.expect(200);
    let report = acme.post(IMPORT, book.clone()).await.expect(200).body;
    assert_eq!((&report["items"][0]["slug"], &report["items"][0]["action"]), (&json!("the_sea"), &json!("updated")));
    assert_eq!(world.get("/lore/the_sea").await.expect(200).body["content"], "Warmer.");
    let other = server.tenant("other").await;
    other.world().await;
    for (slug, action) in [("the_reach_2", "created"), ("the_reach_2", "unchanged")] {
        let report = other.post(IMPORT, book.clone()).await.expect(200).body;
        assert_eq!((&report["items"][0]["slug"], &report["items"][0]["action"]), (&json!(slug), &json!(action)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_made_up_around_those_that_the_file_gives() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    acme.world().await;
    let entry = |title: &str, ours: Value| json!({ "key": ["k"], "comment": title, "content": title, "extensions": { "tavernkeep": ours } });
    let book =
        json!({ "entries": { "0": entry("The fog", json!({})), "1": entry("Other", json!({ "slug": "the_fog" })) } });
    let report = acme.post(IMPORT, book).await.expect(200).body;
    let slugs: Vec<_> = report["items"].as_array().unwrap().iter().map(|item| item["slug"].clone()).collect();
    assert_eq!(slugs, ["the_fog_2", "the_fog"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_keeps_with_the_campaign_is_left_alone() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    for own in [json!([1]), json!("x"), Value::Null] {
        world.patch("", json!({ "extensions": { "lorebooks": own } })).await.expect(200);
        acme.post(IMPORT, files::world_info()).await.expect(200);
        let extensions = world.get("").await.expect(200).body["extensions"].clone();
        assert!(own.is_null() || extensions == json!({ "lorebooks": own }), "{extensions}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lorebook_comes_in_pieces_and_one_that_is_too_large_not_at_all() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    crate::editing::entries(&server, &world, 9_996, "x").await;
    let book = world.get("/lorebook.json").await.expect(200);
    assert_eq!(book.header("transfer-encoding"), "chunked");
    assert_eq!(book.body["entries"].as_object().unwrap().len(), 10_000);
    world.post("/lore", json!({ "title": "One more", "scope": "global", "content": "x" })).await.expect(201);
    world.get("/lorebook.json").await.problem(413, "payload_too_large");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_says_nothing_is_not_reported_and_losses_name_their_entries() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    acme.world().await;
    let quiet = json!({ "key": ["x"], "content": "A text.", "comment": "Quiet", "cooldown": 0, "delay": 0, "sticky": 0,
        "delayUntilRecursion": false, "ignoreBudget": null, "probability": 100 });
    let report = acme.post(&format!("{IMPORT}?name=quiet"), json!({ "entries": [quiet] })).await.expect(200).body;
    let known = ["/entries/*/content", "/entries/*/key", "/entries/*/comment"];
    let others = report["fields"].as_array().unwrap().iter().filter(|f| !known.contains(&f["path"].as_str().unwrap()));
    assert_eq!(others.count(), 0, "{report:#}");
    let entries: Vec<Value> = (0..7)
        .map(|n| json!({ "key": ["x"], "content": "A text.", "comment": format!("Loud {n}"), "delayUntilRecursion": 2, "matchWholeWords": false }))
        .collect();
    let report = acme.post(&format!("{IMPORT}?name=loud"), json!({ "entries": entries })).await.expect(200).body;
    for path in ["/entries/*/delayUntilRecursion", "/entries/*/matchWholeWords"] {
        assert!(says(&report, path, "approximated"), "{path}: {report:#}");
        let field = report["fields"].as_array().unwrap().iter().find(|f| f["path"] == path).unwrap();
        assert_eq!(field["titles"], json!(["Loud 0", "Loud 1", "Loud 2", "Loud 3", "Loud 4"]));
        assert_eq!(field["count"], 7);
    }
}

/// The lines of a report that say this of a field.
fn of<'a>(report: &'a Value, path: &str) -> &'a Value {
    let found =
        report["fields"].as_array().unwrap().iter().find(|f| f["path"] == path && f["outcome"] == "approximated");
    found.unwrap_or_else(|| panic!("nothing of {path}: {report:#}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_made_of_an_entry_here_stays_when_its_book_comes_again() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    acme.post(IMPORT, files::world_info()).await.expect(200);
    // What no file says: whom it concerns, who knows it, its tags.
    let own = json!({ "scope": "zone", "associated_id": "harbour", "tags": ["mine"], "secret": true, "known_by": ["innkeeper_bob"] });
    world.patch("/lore/the_harbour_2", own.clone()).await.expect(200);
    let was = world.get("/lore/the_harbour_2").await.body;
    let report = acme.post(IMPORT, files::world_info()).await.expect(200).body;
    assert_eq!(report["counts"], json!({ "created": 0, "updated": 0, "unchanged": 3 }), "{report:#}");
    assert_eq!(world.get("/lore/the_harbour_2").await.body, was);
    // What it does say is written over, and the report names it and whose work it was.
    world.patch("/lore/the_harbour_2", json!({ "content": "Mine.", "priority": 7 })).await.expect(200);
    let mut newer = files::world_info();
    let sea = newer["entries"]["1"]["content"].as_str().unwrap().to_owned();
    newer["entries"]["1"]["content"] = json!(format!("{sea}\n\nAnd deep."));
    let path = format!("{IMPORT}?dry_run=true");
    for (path, is_edited) in [(path.as_str(), true), (IMPORT, true), (IMPORT, false)] {
        let report = acme.post(path, newer.clone()).await.expect(200).body;
        let item =
            |slug: &str| report["items"].as_array().unwrap().iter().find(|item| item["slug"] == slug).unwrap().clone();
        if is_edited {
            let items = report["items"].as_array().unwrap();
            let actions: Vec<_> = items.iter().map(|item| item["action"].as_str().unwrap()).collect();
            assert_eq!(actions, ["updated", "updated", "unchanged"], "{report:#}");
            assert_eq!((&items[0]["label"], &items[0]["edited_here"]), (&json!("The harbour"), &json!(true)));
            assert_eq!(items[0]["changes"], json!(["content", "priority"]));
            assert_eq!(item("the_sea_is_cold")["edited_here"], false);
        } else {
            assert_eq!(report["counts"]["unchanged"], 3, "{report:#}");
        }
    }
    let now = world.get("/lore/the_harbour_2").await.body;
    assert_eq!(
        (&now["scope"], &now["known_by"], &now["priority"]),
        (&was["scope"], &was["known_by"], &was["priority"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_or_text_that_is_another_here_and_a_macro_that_there_is_not_are_reported() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let long = "x".repeat(201);
    let entry = json!({ "uid": 0, "comment": long, "key": [long, "ok"], "order": 5.5, "scanDepth": 1000,
        "content": "@@activate_only_after 3\n@@dont_activate_after_match\nIt is {{time}}, {{roll:d6}} and {{getvar::x}} for {{user}}." });
    let report = acme.post(&format!("{IMPORT}?name=odd"), json!({ "entries": { "0": entry } })).await.expect(200).body;
    for path in [
        "/entries/*/comment",
        "/entries/*/key",
        "/entries/*/order",
        "/entries/*/scanDepth",
        "/entries/*/content @@activate_only_after",
        "/entries/*/content @@dont_activate_after_match",
        "/entries/*/content {{time}}",
        "/entries/*/content {{roll}}",
        "/entries/*/content {{getvar}}",
    ] {
        assert_eq!(of(&report, path)["count"], 1);
    }
    let lore = world.get("/lore?q=getvar").await.items().first().unwrap().clone();
    assert_eq!((&lore["priority"], &lore["scan_depth"]), (&json!(6), &json!(100)));
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_are_written_have_numbers_of_their_own() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    acme.post(IMPORT, files::world_info()).await.expect(200);
    // A second book has the same numbers, and one whose numbers are all the same.
    acme.post(&format!("{IMPORT}?name=second"), files::world_info()).await.expect(200);
    let twice = json!({ "scan_depth": 6, "entries": [
        { "uid": 1, "key": ["a"], "comment": "A", "content": "A." }, { "uid": 1, "key": ["b"], "comment": "B", "content": "B." }] });
    acme.post(&format!("{IMPORT}?name=twice"), twice).await.expect(200);
    for path in ["/lorebook.json", "/lorebook.json?book=twice"] {
        let book = world.get(path).await.expect(200).body;
        let entries = book["entries"].as_object().unwrap();
        let mut uids: Vec<u64> = entries.values().map(|entry| entry["uid"].as_u64().unwrap()).collect();
        assert!(entries.iter().all(|(key, entry)| key.parse().ok() == entry["uid"].as_u64()), "{book:#}");
        uids.sort_unstable();
        uids.dedup();
        assert_eq!(uids.len(), entries.len(), "{book:#}");
    }
    // Elsewhere the depth that the book gave is the entries' still, and they go out as they did here.
    let book = world.get("/lorebook.json?book=twice").await.expect(200).body;
    let other = server.tenant("other").await;
    let there = other.world().await;
    other.post(&format!("{IMPORT}?name=twice"), book.clone()).await.expect(200);
    assert_eq!(there.get("/lore/a").await.expect(200).body["scan_depth"], 6);
    let here = acme.post(IMPORT, book).await.expect(200).body;
    assert_eq!(here["counts"]["unchanged"], 2, "{here:#}");
    // What was made of the card's number in between is not what it is known by.
    let all = there.get("/lorebook.json").await.expect(200).body;
    let a = all["entries"].as_object().unwrap().values().find(|entry| entry["comment"] == "A").unwrap();
    assert_eq!(a["extensions"]["tavernkeep"]["scan_depth"], 6, "{a:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_is_too_long_is_cut_and_says_so() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let entry = json!({ "uid": 0, "comment": "Long", "key": ["k"], "content": "{{user}} goes on. ".repeat(8_000) });
    let report = acme.post(&format!("{IMPORT}?name=long"), json!({ "entries": { "0": entry } })).await.expect(200).body;
    assert_eq!(of(&report, "/entries/*/content")["reason"], "cut off after 100000 characters");
    assert!(says(&report, "/entries/*/content", "dropped"), "{report:#}");
    assert_eq!(world.get("/lore/long").await.expect(200).body["content"].as_str().unwrap().chars().count(), 100_000);
    let again = acme.get("/v1/campaigns/port-town/lorebook.json?book=long").await.expect(200).body;
    assert_eq!(again["entries"]["0"]["comment"], "Long");
}

/// A book of world info of these entries, numbered in order.
fn tides(mut entries: Value) -> Value {
    let mut numbered = serde_json::Map::new();
    for (n, entry) in entries.as_array_mut().unwrap().iter_mut().enumerate() {
        entry.as_object_mut().unwrap().entry("uid").or_insert_with(|| json!(n));
        numbered.insert(n.to_string(), entry.take());
    }
    json!({ "name": "Tides", "entries": numbered })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_with_another_title_is_found_by_its_number() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let entry =
        |uid: u64, title: &str| json!({ "uid": uid, "comment": title, "content": format!("Of {uid}."), "key": ["k"] });
    let book = |a: Value, b: Value| tides(json!([a, b]));
    acme.post(IMPORT, book(entry(7, "Seven"), entry(8, "Eight"))).await.expect(200);
    let report = acme.post(IMPORT, book(entry(8, "Eight"), entry(7, "The seventh"))).await.expect(200).body;
    assert_eq!(report["counts"], json!({ "created": 0, "updated": 1, "unchanged": 1 }), "{report:#}");
    assert_eq!(world.get("/lore/seven").await.expect(200).body["title"], "The seventh");
    let again = acme.post(IMPORT, book(entry(8, "Eight"), entry(7, "The seventh"))).await.expect(200).body;
    assert_eq!(again["counts"], json!({ "created": 0, "updated": 0, "unchanged": 2 }), "{again:#}");
    // Two of a number are told apart by their titles, as ever.
    let twins = acme.post(IMPORT, book(entry(9, "Nine"), entry(9, "Also nine"))).await.expect(200).body;
    assert_eq!(twins["counts"]["created"], 2, "{twins:#}");
}

/// Elsewhere an entry can also be activated by what a card says. Here only messages are searched, and the report says so.
#[tokio::test(flavor = "multi_thread")]
async fn what_else_would_be_searched_is_told_and_kept() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    for (n, flag) in [
        "matchPersonaDescription",
        "matchCharacterDescription",
        "matchCharacterPersonality",
        "matchCharacterDepthPrompt",
        "matchScenario",
        "matchCreatorNotes",
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/entries/*/{flag}");
        let entry = |is: bool| {
            tides(json!([{ "uid": n, "comment": format!("Gull {n}"), "content": "Words.", "key": ["gull"], flag: is }]))
        };
        let quiet = acme.post(&format!("{IMPORT}?dry_run=true"), entry(false)).await.expect(200).body;
        assert!(!says(&quiet, &path, "approximated"), "{flag}: {quiet:#}");
        let report = acme.post(IMPORT, entry(true)).await.expect(200).body;
        assert!(says(&report, &path, "approximated"), "{flag}: {report:#}");
        let book = world.get("/lorebook.json").await.expect(200).body;
        let comes_out = book["entries"].as_object().unwrap().values().any(|e| e[flag] == true);
        assert!(comes_out, "{flag} is not in the export: {book:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn selective_a_depth_of_none_and_activate_are_what_their_sources_mean() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let own = |title: &str, more: Value| {
        let mut entry = json!({ "comment": title, "content": "Words.", "key": ["gull"], "keysecondary": ["cliff"] });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    };
    let book = tides(json!([
        own("a usual", json!({})),
        own("b unselective", json!({ "selective": false })),
        own("c blind", json!({ "scanDepth": 0, "keysecondary": [] })),
        own("d constant", json!({ "scanDepth": 0, "constant": true })),
        own("e woken", json!({ "key": [], "content": "@@activate\nWords." })),
        own("f both", json!({ "key": [], "content": "@@dont_activate\n@@activate\nWords." })),
        own("g off", json!({ "key": [], "content": "@@activate\nWords.", "disable": true })),
        own(
            "h fallback",
            json!({ "keysecondary": [], "content": "@@odd\n@@@additional_keys a, b\n@@additional_keys c\nWords." })
        ),
        own("i ignores", json!({ "ignoreBudget": true })),
    ]));
    let report = acme.post(IMPORT, book).await.expect(200).body;
    for (path, to) in [
        ("/entries/*/keysecondary", "extensions"),
        ("/entries/*/scanDepth", "enabled"),
        ("/entries/*/ignoreBudget", "extensions"),
    ] {
        let line = report["fields"].as_array().unwrap().iter().find(|f| f["path"] == path && f["to"] == to);
        assert_eq!(line.unwrap_or(&Value::Null)["outcome"], "approximated", "{path}: {report:#}");
    }
    let lore = async |slug: &str| {
        let l = world.get(&format!("/lore/{slug}")).await.expect(200).body;
        json!([l["activation"], l["enabled"], l["secondary_keys"]])
    };
    assert_eq!(lore("a_usual").await, json!(["keyword", true, ["cliff"]]));
    assert_eq!(lore("b_unselective").await, json!(["keyword", true, []]));
    assert_eq!(lore("c_blind").await, json!(["keyword", false, []]));
    assert_eq!(lore("d_constant").await, json!(["always", true, ["cliff"]]));
    assert_eq!(lore("e_woken").await, json!(["always", true, ["cliff"]]));
    assert_eq!(lore("f_both").await, json!(["always", true, ["cliff"]]));
    assert_eq!(lore("g_off").await, json!(["always", false, ["cliff"]]));
    assert_eq!(lore("h_fallback").await, json!(["keyword", true, ["a", "b", "c"]]));
    // Where nothing says that an entry is selective, a card's book and Risu's mean that it is not.
    for (name, book) in [
        (
            "v3",
            json!({ "spec": "lorebook_v3", "data": { "name": "V3", "extensions": {}, "entries": [
            { "keys": ["k"], "secondary_keys": ["s"], "content": "x", "comment": "v3 plain", "enabled": true, "insertion_order": 1, "extensions": {}, "use_regex": false },
            { "keys": ["k"], "secondary_keys": ["s"], "content": "x", "comment": "v3 selective", "selective": true, "enabled": true, "insertion_order": 1, "extensions": {}, "use_regex": false }] } }),
        ),
        (
            "risu",
            json!({ "type": "risu", "name": "Risu", "data": [
            { "key": "k", "secondkey": "s", "content": "x", "comment": "risu plain", "insertorder": 1 },
            { "key": "k", "secondkey": "s", "content": "x", "comment": "risu selective", "selective": true, "insertorder": 1 }] }),
        ),
    ] {
        acme.post(IMPORT, book).await.expect(200);
        assert_eq!(lore(&format!("{name}_plain")).await[2], json!([]), "{name}");
        assert_eq!(lore(&format!("{name}_selective")).await[2], json!(["s"]), "{name}");
    }
    // What comes out is what it is here.
    let all = world.get("/lorebook.json").await.expect(200).body;
    let here = acme.post(IMPORT, all).await.expect(200).body;
    assert_eq!((&here["counts"]["created"], &here["counts"]["updated"]), (&json!(0), &json!(0)), "{here:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_called_kept_is_kept() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let mut large = tides(json!([{ "comment": "A", "content": "x", "key": ["k"] }]));
    large["theme"] = json!("sea".repeat(2000));
    let report = acme.post(IMPORT, large).await.expect(200).body;
    assert!(says(&report, "/theme", "dropped") && !says(&report, "/theme", "kept"), "{report:#}");
    let full = json!({ "extensions": { "mine": "x".repeat(40_000) } });
    world.patch("", full).await.expect(200);
    let mut small = tides(json!([{ "comment": "A", "content": "x", "key": ["k"] }]));
    small["theme"] = json!("sea");
    let report = acme.post(IMPORT, small).await.expect(200).body;
    assert!(report["warnings"].to_string().contains("not kept"), "{report:#}");
    // What NovelAI says of places and budgets is told.
    let novel = json!({ "lorebookVersion": 5, "entries": [{ "id": "n", "displayName": "N", "text": "x", "keys": ["n"],
        "contextConfig": { "budgetPriority": 300, "prefix": "***\n", "suffix": "\n", "tokenBudget": 100, "insertionPosition": -1 } }] });
    let report = acme.post(IMPORT, novel).await.expect(200).body;
    for name in ["prefix", "tokenBudget"] {
        assert!(says(&report, &format!("/entries/*/contextConfig/{name}"), "approximated"), "{name}: {report:#}");
    }
    assert!(!report["fields"].to_string().contains("contextConfig/suffix"), "{report:#}");
    let back = world.get("/lorebook.json").await.expect(200).text;
    assert!(back.contains("***"), "it is given back");
}

/// Some programs write the entries of one format into the frame of another, or both into one entry.
#[tokio::test(flavor = "multi_thread")]
async fn books_that_mix_formats_are_read() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let cards = json!({ "keys": ["lamp"], "secondary_keys": ["oil"], "selective": true, "content": "Whale oil.", "comment": "Lamp",
        "enabled": true, "insertion_order": 7 });
    let silly = json!({ "key": ["mill"], "keysecondary": [], "content": "It grinds.", "comment": "Mill", "disable": false, "order": 8 });
    let both = json!({ "key": [], "keys": ["well", "water"], "content": "It is deep.", "comment": "Well", "order": 9, "disable": true });
    for (n, book) in [
        json!({ "entries": { "0": cards, "1": silly, "2": both } }),
        json!({ "entries": [cards, silly, both] }),
        json!({ "spec": "lorebook_v3", "data": { "entries": [cards, silly, both] } }),
    ]
    .into_iter()
    .enumerate()
    {
        let world = World::make(&acme, &format!("town-{n}")).await;
        world.post("/import/lorebook", book).await.expect(200);
        let lore = world.get("/lore?limit=200&sort=-created_at").await.expect(200);
        let newest = |title: &str| lore.items().iter().find(|entry| entry["title"] == title).unwrap();
        let (lamp, mill, well) = (newest("Lamp"), newest("Mill"), newest("Well"));
        assert_eq!((&lamp["keys"], &lamp["secondary_keys"]), (&json!(["lamp"]), &json!(["oil"])), "{n}");
        assert_eq!((&lamp["priority"], &mill["priority"]), (&json!(7), &json!(8)), "{n}");
        assert_eq!((&mill["keys"], &mill["enabled"]), (&json!(["mill"]), &json!(true)), "{n}");
        assert_eq!(
            (&well["keys"], &well["enabled"], &well["activation"]),
            (&json!(["well", "water"]), &json!(false), &json!("keyword")),
            "{n}"
        );
    }
}
