//! What `q` finds: texts and names are found however they are typed, and texts without spaces in the middle of a sentence.

use base::search::stored;
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::{Value, json};
use sqlx::Row;

use crate::support::{Server, World, patiently, until};

/// The slugs, or else the texts, of what a list finds.
async fn found(world: &World<'_>, list: &str, q: &str) -> Vec<String> {
    let path = url::form_urlencoded::Serializer::new(format!("{list}?")).append_pair("q", q).finish();
    let answer = world.get(&path).await.expect(200);
    let name = |item: &Value| {
        ["slug", "text", "content", "action"].iter().find_map(|m| item[*m].as_str()).unwrap_or_default().to_owned()
    };
    let mut names: Vec<String> = answer.items().iter().map(name).collect();
    names.sort();
    names
}

fn entry(slug: &str, title: &str, content: &str) -> Value {
    json!({ "slug": slug, "title": title, "scope": "global", "content": content })
}

async fn remember(world: &World<'_>, text: &str) {
    let body = json!({ "player_id": "player_alice", "text": text });
    world.post("/npcs/innkeeper_bob/memories", body).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_without_spaces_are_found_in_the_middle_of_a_sentence() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (slug, title, content) in [
        ("tower", "塔", "白竜は北の塔に住んでいる。"),
        ("sales", "今月の売上", "Nothing yet."),
        // The same pairs of letters, in another order.
        ("south", "南", "の塔は古い。北の門、塔に登る。"),
        ("hero", "이야기", "옛날에 용사가 왔다."),
        ("temple", "วัด", "มังกรอยู่ในวัดเก่า"),
        ("mixed", "Guide", "The dragon 白竜 guards the gate."),
    ] {
        world.post("/lore", entry(slug, title, content)).await.expect(201);
    }
    for (q, expected) in [
        ("北の塔", &["tower"][..]),
        ("北の塔に", &["tower"]),
        ("塔", &["south", "tower"]),
        ("北", &["south", "tower"]),
        ("塔に", &["south", "tower"]),
        ("売上", &["sales"]),
        ("용사", &["hero"]),
        ("용사 왔다", &["hero"]),
        ("사가", &["hero"]),
        ("ในวัด", &["temple"]),
        ("白竜", &["mixed", "tower"]),
        ("白竜 dragon", &["mixed"]),
        ("dragon白竜", &["mixed"]),
        ("\"dragon 白竜\"", &["mixed"]),
        ("\"白竜 dragon\"", &[]),
        ("白竜 -dragon", &["tower"]),
        ("塔 -北の塔", &["south"]),
        ("-白竜 gate", &[]),
        ("-塔 -白竜 -용사 -売上", &["temple", "the_adventurers", "the_harbour", "the_reach", "the_square"]),
        ("売上 or 용사", &["hero", "sales"]),
        ("東の塔", &[]),
        ("竜白", &[]),
    ] {
        assert_eq!(found(&world, "/lore", q).await, expected, "{q}");
    }
    remember(&world, "彼女は北の塔の鍵を持っている。").await;
    remember(&world, "그는 용사를 믿지 않는다.").await;
    assert_eq!(found(&world, "/memories", "塔の鍵").await, ["彼女は北の塔の鍵を持っている。"]);
    assert_eq!(found(&world, "/memories", "용사").await, ["그는 용사를 믿지 않는다."]);
    assert!(found(&world, "/memories", "南の塔").await.is_empty());
    let call = json!({ "arguments": { "query": "北の塔" }, "actor": { "type": "gm" } });
    let called = world.post("/tools/search_lore", call).await.expect(200);
    assert_eq!(called.body["result"]["entries"][0]["slug"], "tower", "{}", called.text);
}

/// Each pair is two ways to type the same.
const TYPED: [(&str, &str); 9] = [
    ("Zoë", "Zoe\u{308}"),
    ("ΟΔΥΣΣΕΥΣ", "Οδυσσευς"),
    ("Hauptstraße", "HAUPTSTRASSE"),
    ("İstanbul", "istanbul"),
    ("Dragon’s Rest", "dragon's rest"),
    ("Port–Town", "port-town"),
    ("Ｆｕｌｌ", "full"),
    ("co\u{ad}operate", "cooperate"),
    ("Ångström", "A\u{30a}NGSTRO\u{308}M"),
];

#[tokio::test(flavor = "multi_thread")]
async fn it_does_not_matter_how_something_is_typed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut db = server.owner().await;
    for (n, pair) in TYPED.into_iter().enumerate() {
        for (way, (text, q)) in [pair, (pair.1, pair.0)].into_iter().enumerate() {
            let slug = format!("e{n}_{way}");
            let content = format!("Once {text} was far.");
            world.post("/lore", entry(&slug, "Tale", &content)).await.expect(201);
            world.post("/npcs", json!({ "slug": slug, "name": text })).await.expect(201);
            remember(&world, &content).await;
            let said = json!({ "type": "chat", "content": content, "speaker": { "name": "Ann" }, "author": "gm" });
            world.post("/messages", said).await.expect(201);
            assert!(found(&world, "/lore", q).await.contains(&slug), "lore {text:?} by {q:?}");
            assert!(found(&world, "/npcs", q).await.contains(&slug), "NPC {text:?} by {q:?}");
            assert!(found(&world, "/memories", q).await.contains(&content), "memory {text:?} by {q:?}");
            assert!(found(&world, "/messages", q).await.contains(&content), "message {text:?} by {q:?}");
            // What SQL makes of a text is what we make of it.
            let sql = sqlx::AssertSqlSafe(format!("SELECT {} FROM (SELECT $1::text AS t) x", base::fold::sql("t")));
            let folded: String = sqlx::query(sql).bind(text).fetch_one(&mut db).await.unwrap().get(0);
            assert_eq!(folded, base::fold::fold(text), "{text:?}");
        }
    }
    world.bob("player_alice", "I ask for Zoe\u{308}.").await.expect(200);
    assert_eq!(found(&world, "/turns", "zoë").await.len(), 1);
    tenant.post("/v1/api-keys", json!({ "name": "Zoe\u{308}’s tablet", "scopes": ["read"] })).await.expect(201);
    let path = url::form_urlencoded::Serializer::new("/v1/api-keys?".to_owned()).append_pair("q", "zoë's").finish();
    assert_eq!(tenant.get(&path).await.expect(200).items().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_the_same_however_they_are_typed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.post("/lore", entry("zoe", "Zoë’s Rest", "An inn.")).await.expect(201);
    let text = "[[Zoe\u{308}'s  Rest]], [[ZOË’S REST#Cellar|below]] and [[Zoë’s Rest 2]].";
    world.post("/lore", entry("guide", "Guide", text)).await.expect(201);
    let links = world.get("/lore/guide/links").await.expect(200).body;
    let slugs: Vec<&Value> = links["links"].as_array().unwrap().iter().map(|link| &link["slug"]).collect();
    assert_eq!(slugs, [&json!("zoe"), &json!("zoe"), &Value::Null]);
    assert_eq!(world.get("/lore/zoe/links").await.expect(200).body["backlinks_total"], 1);
    world.patch("/lore/zoe", json!({ "title": "The Rest" })).await.expect(200);
    world.post("/lore/zoe/mend-links", json!({ "from": "Zoë's Rest" })).await.expect(200);
    let mended = world.get("/lore/guide").await.expect(200).body;
    assert_eq!(mended["content"], "[[The Rest]], [[The Rest#Cellar|below]] and [[Zoë’s Rest 2]].");
    assert_eq!(world.get("/lore/zoe/links").await.expect(200).body["backlinks_total"], 1);
}

/// A query finds what contains it, whatever the two are typed with, and next to nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_finds_a_text_if_their_folded_forms_say_so() {
    let server = Server::start().await;
    let mut db = server.owner().await;
    let letters = "[aAｅEëËäÄßsSﬁfiIİſσςΣÅｱ가각 *(\\\\’'–\\-“\"…#ǘẛạ]{1,9}";
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() });
    let mut any = |of: &str| proptest::string::string_regex(of).unwrap().new_tree(&mut runner).unwrap().current();
    let retyped = |text: &str| -> [String; 4] {
        use unicode_normalization::UnicodeNormalization;
        [
            text.to_uppercase(),
            text.nfd().collect(),
            text.nfkc().collect(),
            text.chars().flat_map(|c| [c, '\u{ad}']).collect(),
        ]
    };
    let (mut texts, mut patterns, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..400 {
        let (before, q, after, other) = (any(letters), any(letters), any(letters), any(letters));
        // Of so many that `ß` can stand for, not every way is tried.
        if base::fold::fold(&q).contains(&"s".repeat(7)) {
            continue;
        }
        for text in [&q, &other].into_iter().flat_map(|middle| retyped(&format!("{before} {middle} {after}"))) {
            // Letters at the ends may be parts of other ones: of an `ﬁ`, or before a mark.
            expected.push(base::fold::fold(&text).contains(&format!(" {} ", base::fold::fold(&q))));
            texts.push(text);
            patterns.push(base::variants::pattern(&format!(" {q} ")));
        }
    }
    let sql = "SELECT t ~ p FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS x (t, p, n) ORDER BY n";
    let rows = sqlx::query(sql).bind(&texts).bind(&patterns).fetch_all(&mut db).await.unwrap();
    for (n, row) in rows.iter().enumerate() {
        assert_eq!(row.get::<bool, _>(0), expected[n], "{:?} by {:?}", texts[n], patterns[n]);
    }
    assert!(expected.iter().filter(|found| **found).count() > 1000);
    // The longest queries, of what grows most, are read in an instant.
    for q in [
        "ﷺ".repeat(200),
        "ệ".repeat(200),
        "각".repeat(200),
        "ﬃ".repeat(200),
        "*".repeat(200),
        "s".repeat(200),
        ".".repeat(200),
        "1.ffi".repeat(40),
    ] {
        let sql = "SELECT 'x' ~ $1";
        let found: bool = sqlx::query(sql).bind(base::variants::pattern(&q)).fetch_one(&mut db).await.unwrap().get(0);
        assert!(!found);
    }
}

/// Every text that is searched, with what is stored of it for searching, if that is not what it must be.
async fn wrongly_folded(server: &Server) -> Vec<String> {
    let sql = "SELECT title AS x, folded_title AS f FROM lore UNION ALL SELECT content, folded_content FROM lore \
        UNION ALL SELECT (SELECT string_agg(v, E'\\n' ORDER BY n) FROM jsonb_array_elements_text(list) WITH ORDINALITY AS e (v, n)), folded \
            FROM lore CROSS JOIN LATERAL (VALUES (tags, folded_tags), (keys, folded_keys), (secondary_keys, folded_secondary_keys)) \
            AS l (list, folded) \
        UNION ALL SELECT text, folded_text FROM memory";
    let rows = sqlx::query(sql).fetch_all(&mut server.owner().await).await.unwrap();
    let of = |row: &sqlx::postgres::PgRow| (row.get::<Option<String>, _>(0).unwrap_or_default(), row.get(1));
    let all: Vec<(String, Option<String>)> = rows.iter().map(of).collect();
    all.into_iter().filter(|(text, folded)| stored(text) != *folded).map(|(text, _)| text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_writing_keeps_what_is_searched() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.free_of_charge().await;
    let mut whole = entry("zoe", "Zoë", "She keeps “the key” of 北の塔.");
    for list in ["tags", "keys", "secondary_keys"] {
        whole[list] = json!(["Schlüssel", "plain", "鍵"]);
    }
    world.post("/lore", whole).await.expect(201);
    let right = async |what: &str| assert_eq!(wrongly_folded(&server).await, Vec::<String>::new(), "after {what}");
    right("creating").await;
    for (what, change) in [
        ("a patch", json!({ "title": "Zoë II", "content": "Plain.", "keys": ["Tür"] })),
        ("another", json!({ "title": "Zoe", "content": "„Nur“ ein Wort.", "keys": [] })),
    ] {
        world.patch("/lore/zoe", change).await.expect(200);
        right(what).await;
    }
    let revisions = world.get("/lore/zoe/revisions").await.expect(200);
    for revision in revisions.items() {
        world.post(&format!("/lore/zoe/revisions/{}/restore", revision["seq"]), json!({})).await.expect(200);
        right("a restored revision").await;
    }
    let replace = json!({ "ids": ["zoe"], "changes": { "tags": { "add": ["Größe"] },
        "replace": { "find": "the|Zoë", "with": "dië", "regex": true, "in": ["title", "content", "keys"] } } });
    let step = world.post("/lore/bulk", replace).await.expect(200).body;
    right("a bulk edit").await;
    world.post(&format!("/lore/bulk/{}/undo", step["step_id"].as_str().unwrap()), json!({})).await.expect(200);
    right("its undo").await;
    world.post("/lore/zoe/duplicate", json!({})).await.expect(201);
    right("a copy").await;
    let tools = json!({ "available_tools": ["OWNER_memorize", "OWNER_memorize_dependables"] });
    world.patch("/owners/town_council_owner", tools).await.expect(200);

    let said = json!({ "player_id": "player_alice", "text": "Sie mag Käse." });
    let memory = world.post("/npcs/innkeeper_bob/memories", said).await.expect(201).id();
    world.patch(&format!("/memories/{memory}"), json!({ "text": "Sie mag Öl." })).await.expect(200);
    right("a memory's patch").await;
    for (tool, actor) in [
        ("OWNER_memorize_dependables", json!({ "type": "owner", "id": "town_council_owner" })),
        ("OWNER_memorize", json!({ "type": "owner", "id": "town_council_owner" })),
        ("NPC_memorize", json!({ "type": "npc", "id": "innkeeper_bob" })),
    ] {
        let arguments = json!({ "player_id": "player_alice", "memory_string": "Sie ist “müde”." });
        world.post(&format!("/tools/{tool}"), json!({ "arguments": arguments, "actor": actor })).await.expect(200);
    }
    right("memories of tools").await;
    let document = json!({
        "Lore": [{ "ID": "zoe", "Title": "Zoë III", "Scope": "global", "Content": "Grün." },
                 { "ID": "new", "Title": "Neu – ja", "Scope": "global", "Content": "Blau, größer." }],
        "NPCs": [{ "ID": "innkeeper_bob", "Name": "Innkeeper Bob", "MemoriesAboutPlayers": { "player_alice": ["Später Gast."] } }],
    });
    world.post("/import/seed", document).await.expect(200);
    right("an import").await;
    let document = world.get("/export").await.expect(200).body;
    tenant.post("/v1/campaigns/import?slug=twin", document).await.expect(200);
    right("a whole document").await;
    world.post("/fork", json!({ "slug": "copy" })).await.expect(201);
    right("a fork").await;
    let id = world.get("/lore/new").await.expect(200).id();
    world.delete("/lore/new").await.expect(204);
    let last = world.get(&format!("/lore/{id}/revisions")).await.expect(200).items()[0]["seq"].clone();
    world.post(&format!("/lore/{id}/revisions/{last}/restore"), json!({})).await.expect(200);
    right("what comes back").await;
    world.post("/lore", entry("told", "Über Alice", "Die Tür von Alice: 北の塔。")).await.expect(201);
    let erased = world.delete("/characters/player_alice?erase=true").await;
    if erased.status == 202 {
        let path = erased.header("location").to_owned();
        until("the end of the erasure", || async { tenant.get(&path).await.expect(200).body["status"] == "done" })
            .await;
    }
    assert_eq!(world.get("/lore/told").await.expect(200).body["title"], "Über [erased]");
    right("an erasure").await;
    assert!(found(&world, "/lore", "の塔").await.contains(&"told".to_owned()));
}

/// What is written is found by any part of it that has no space, and nothing is too long or too odd to be stored.
#[tokio::test(flavor = "multi_thread")]
async fn any_part_of_a_text_without_spaces_finds_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let texts = proptest::collection::vec("[あ-んア-ヶ一-龠가-힣ก-ฮ]{1,12}", 1..8);
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() });
    for case in 0..16 {
        let words = texts.new_tree(&mut runner).unwrap().current();
        let slug = format!("case_{case}");
        world.post("/lore", entry(&slug, "Case", &words.join("、"))).await.expect(201);
        for word in &words {
            let letters: Vec<char> = word.chars().collect();
            let part: String = letters[letters.len() / 3..].iter().collect();
            assert!(found(&world, "/lore", &part).await.contains(&slug), "{part} in {words:?}");
        }
    }
    // The most different pairs that an entry can have, of the longest letters, and what grows when it is folded.
    let many = |first: u32, count: u32| -> String {
        (0..count).filter_map(|n| char::from_u32(first + n * 7919 % 40_000)).collect()
    };
    let ligatures: String =
        ('\u{3300}'..='\u{3357}').cycle().map(|c| if c == '\u{3310}' { '\u{fdfa}' } else { c }).take(200).collect();
    world.post("/lore", entry("ligatures", &ligatures, &format!("[[{ligatures}]]"))).await.expect(201);
    for (slug, content) in
        [("han", many(0x20000, 100_000)), ("words", many(0x1d400, 50_000)), ("grows", "\u{fdfa}".repeat(100_000))]
    {
        let kept: String = content.chars().flat_map(|c| [c, ' ']).take(100_000).collect();
        patiently(|| world.post("/lore", entry(slug, "Long", &content))).await.expect(201);
        let path = format!("/lore/{slug}");
        patiently(|| world.patch(&path, json!({ "content": kept }))).await.expect(200);
    }
}
