//! Lore that wakes by keywords: which words wake it, where they are looked for, and that it stays where it woke.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{all, cut, included, lore, reason, section};
use crate::support::{Server, World};

async fn keyword(world: &World<'_>, slug: &str, keys: Value, more: Value) {
    let mut entry = json!({ "activation": "keyword", "keys": keys });
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    lore(world, slug, entry).await;
}

async fn wakes(world: &World<'_>, slug: &str, action: &str) -> bool {
    let prompt = world.prompt("innkeeper_bob", "player_alice", action).await;
    let woken = included(&prompt).contains(&slug);
    assert_eq!(section(&prompt, "turn").contains(&format!("Canary of {slug}.")), woken, "{action}");
    assert_eq!(all(&prompt).contains(&format!("Canary of {slug}.")), woken, "{action}");
    woken
}

#[tokio::test(flavor = "multi_thread")]
async fn primary_keys_are_whole_words_in_any_case() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let keys = json!(["Art", "dragon's hoard", "Ægir", "Éclair", "ὈΔΥΣΣΕΎΣ", "R2-D2", " mead "]);
    keyword(&world, "k", keys, json!({})).await;
    for (action, expected) in [
        ("I love art.", true),
        ("ART!", true),
        ("\u{201c}art\u{201d}", true),
        ("art", true),
        ("The party starts.", false),
        ("Artful.", false),
        ("Is the dragon's hoard near?", true),
        ("Is the dragon's hoards near?", false),
        ("the dragon hoard", false),
        ("ÆGIR calls", true),
        ("éclair, please", true),
        ("ÉCLAIRS", false),
        ("ὀδυσσεύς?", true),
        ("Call r2-d2 here", true),
        ("mead", true),
        ("Nothing here.", false),
    ] {
        assert_eq!(wakes(&world, "k", action).await, expected, "{action}");
    }
}

/// However somebody's keyboard writes a key, it is the same key.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_found_as_people_type_them() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (slug, key, actions) in [
        ("composed", "Zo\u{eb}", &["Where is Zoe\u{308}?", "ZO\u{cb}!", "Zoe\u{308}'s"][..]),
        ("decomposed", "Zoe\u{308}", &["Where is Zo\u{eb}?"]),
        ("apostrophe", "Mal'akar", &["Tell me about Mal\u{2019}akar.", "MAL\u{2bc}AKAR", "Mal'akar"]),
        ("curly", "Ann\u{2019}s Rest", &["Tell me about Ann's Rest.", "ann\u{2018}s rest"]),
        ("dash", "R2-D2", &["Call R2\u{2011}D2", "r2\u{2013}d2", "R2\u{2010}D2"]),
        ("dotted", "\u{130}zmir", &["izmir", "IZMIR", "\u{130}ZM\u{130}R"]),
        ("sharp", "Stra\u{df}e", &["STRASSE", "strasse", "STRA\u{1e9e}E"]),
        ("sigma", "\u{39f}\u{394}\u{39f}\u{3a3}", &["\u{3bf}\u{3b4}\u{3bf}\u{3c2}", "\u{3bf}\u{3b4}\u{3bf}\u{3c3}"]),
        (
            "korean",
            "\u{c6a9}\u{c0ac}",
            &["저는 용사가 되고 싶어요.", "용사를 찾아요.", "용사", "\u{110b}\u{116d}\u{11bc}\u{1109}\u{1161}가"],
        ),
        ("latin", "CLASSPATH", &["CLASSPATH에서"]),
        ("wide", "elf", &["\u{ff25}\u{ff2c}\u{ff26}"]),
        ("soft", "dragon", &["dra\u{ad}gon"]),
    ] {
        keyword(&world, slug, json!([key]), json!({})).await;
        for action in actions {
            assert!(wakes(&world, slug, action).await, "{key}: {action}");
        }
    }
    assert!(!wakes(&world, "apostrophe", "Malakar").await);
}

/// Many scripts write no spaces: there a key is found wherever it stands.
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_scripts_without_spaces() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    keyword(&world, "k", json!(["龍", "ドラゴン", "มังกร", "Elf", "용"]), json!({})).await;
    for (action, expected) in [
        ("黒龍が来る", true),
        ("あのドラゴンはどこ", true),
        ("เห็นมังกรไหม", true),
        ("これはElfです", true),
        ("Elfen", false),
        ("용 한 마리", true),
        ("사용", false),
        ("虎が来る", false),
    ] {
        assert_eq!(wakes(&world, "k", action).await, expected, "{action}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secondary_keys_qualify() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for logic in ["and_any", "and_all", "not_any", "not_all"] {
        keyword(&world, logic, json!(["dragon"]), json!({ "secondary_keys": ["Red", "old"], "logic": logic })).await;
    }
    keyword(&world, "plain", json!(["dragon", "wyrm"]), json!({})).await;
    for (action, expected) in [
        ("a dragon", &["not_all", "not_any", "plain"][..]),
        ("a red dragon", &["and_any", "not_all", "plain"]),
        ("an OLD dragon", &["and_any", "not_all", "plain"]),
        ("a red and old dragon", &["and_all", "and_any", "plain"]),
        ("a hundred golden dragons", &[]),
        ("a bored dragon", &["not_all", "not_any", "plain"]),
        ("a red wyrm", &["plain"]),
        ("red and old", &[]),
    ] {
        let prompt = world.prompt("innkeeper_bob", "player_alice", action).await;
        let woken: Vec<_> = included(&prompt).into_iter().filter(|s| !s.starts_with("the_")).collect();
        assert_eq!(woken, expected, "{action}");
    }
}

/// What nearly woke says what held it back, and not that no key was met.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_back_says_why() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for logic in ["and_any", "and_all", "not_any", "not_all"] {
        keyword(&world, logic, json!(["dragon"]), json!({ "secondary_keys": ["red", "old"], "logic": logic })).await;
    }
    keyword(&world, "secret", json!(["dragon"]), json!({ "secret": true })).await;
    keyword(&world, "shallow", json!(["pearl"]), json!({ "scan_depth": 1 })).await;
    keyword(&world, "asleep", json!(["griffin"]), json!({ "secret": true })).await;
    server.model.set_script(Script::replies([Reply::text("Hm.")]));
    world.bob("player_alice", "A pearl!").await.expect(200);
    for (action, expected) in [
        (
            "a dragon",
            &[
                ("and_any", "keyword: a key was met, but none of its secondary keys was"),
                ("and_all", "keyword: a key was met, but not all of its secondary keys were"),
                ("secret", "secret: a key was met, but it is not in known_by"),
                ("shallow", "keyword: a key was met, but further back than scan_depth 1"),
                ("asleep", "keyword: none of its keys was met"),
            ][..],
        ),
        (
            "a red and old dragon",
            &[
                ("not_any", "keyword: a key was met, but so was one of its secondary keys"),
                ("not_all", "keyword: a key was met, but so were all of its secondary keys"),
            ],
        ),
    ] {
        let prompt = world.prompt("innkeeper_bob", "player_alice", action).await;
        for (slug, why) in expected {
            assert_eq!(reason(&prompt, slug), *why, "{slug}");
        }
    }
    // The turn's record has them as well.
    server.model.set_script(Script::replies([Reply::text("Hm.")]));
    let turn = world.bob("player_alice", "a dragon").await.expect(200).id();
    let trace = world.get(&format!("/turns/{turn}")).await.expect(200).body;
    let lore = trace["trace"]["lore"].as_array().unwrap();
    let held = lore.iter().find(|entry| entry["slug"] == "secret").unwrap();
    assert_eq!(held["reason"], "secret: a key was met, but it is not in known_by");
}

#[tokio::test(flavor = "multi_thread")]
async fn scan_depth_says_how_far_back_to_look() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for depth in [0, 1, 2, 3, 4, 5] {
        keyword(&world, &format!("d{depth}"), json!(["pearl"]), json!({ "scan_depth": depth })).await;
        keyword(&world, &format!("q{depth}"), json!(["quoth"]), json!({ "scan_depth": depth })).await;
    }
    // Mallory's turn first, so that what one player hears could wake something for the other.
    server.model.set_script(Script::replies([Reply::text("Hm.")]));
    world.bob("player_mallory", "Nothing.").await.expect(200);
    // Back from the next action: 2 the second answer, 3 the second action, 4 the first answer with its word.
    server.model.set_script(Script::replies([Reply::text("Nevermore, quoth he."), Reply::text("Hm.")]));
    world.bob("player_alice", "I sing.").await.expect(200);
    world.bob("player_alice", "I dance.").await.expect(200);
    let prompt = world.prompt("innkeeper_bob", "player_alice", "I rest.").await;
    let woken: Vec<_> = included(&prompt).into_iter().filter(|s| s.starts_with('q')).collect();
    assert_eq!(woken, ["q4", "q5"], "action, answer 2, action 2, answer 1");
    assert!(included(&prompt).iter().all(|s| !s.starts_with('d')));
    let prompt = world.prompt("innkeeper_bob", "player_alice", "A pearl!").await;
    let woken: Vec<_> = included(&prompt).into_iter().filter(|s| s.starts_with('d')).collect();
    assert_eq!(woken, ["d0", "d1", "d2", "d3", "d4", "d5"], "the action is always looked at");
    // What one player heard wakes nothing for another.
    let other = world.prompt("innkeeper_bob", "player_mallory", "I rest.").await;
    assert!(included(&other).iter().all(|s| s.starts_with("the_")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_woke_stays_where_it_woke() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    keyword(&world, "ale", json!(["ale"]), json!({})).await;
    server.model.set_script(Script::always(Reply::text("Hm.")));
    let first = world.bob("player_alice", "An ale!").await.expect(200);
    let record = world.get(&format!("/turns/{}", first.id())).await.expect(200);
    assert!(record.body["trace"]["turn_text"].as_str().unwrap().contains("Canary of ale."));
    for action in ["Another ale!", "I wait.", "And one more ale."] {
        let prompt = world.prompt("innkeeper_bob", "player_alice", action).await;
        assert!(!section(&prompt, "turn").contains("Canary"), "it is in the history already");
        assert_eq!(all(&prompt).matches("Canary of ale.").count(), 1);
        world.bob("player_alice", action).await.expect(200);
    }
    let prompt = world.prompt("innkeeper_bob", "player_alice", "Ale.").await;
    assert!(reason(&prompt, "ale").contains("earlier turn"), "{}", reason(&prompt, "ale"));
    // An edit does not reach back, and the next time it wakes as it is now.
    world.patch("/lore/ale", json!({ "content": "It was watered." })).await.expect(200);
    let prompt = world.prompt("innkeeper_bob", "player_alice", "I wait.").await;
    assert!(all(&prompt).contains("Canary of ale.") && !all(&prompt).contains("watered"));
    let prompt = world.prompt("innkeeper_bob", "player_alice", "Ale!").await;
    assert!(section(&prompt, "turn").contains("It was watered."));
    assert!(section(&prompt, "history").contains("Canary of ale."));
    // All requests were of one growing conversation.
    let requests = server.model.requests();
    for pair in requests.windows(2) {
        let (before, after) = (pair[0]["messages"].as_array().unwrap(), pair[1]["messages"].as_array().unwrap());
        assert_eq!(before[..], after[..before.len()]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keyword_lore_has_the_turns_budget() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    super::budgets(&world, json!({ "turn": 200 })).await;
    for (slug, priority) in [("low", 0), ("high", 9), ("middle", 5), ("tie", 5)] {
        let content = format!("Canary of {slug}. {}", "word ".repeat(50));
        keyword(&world, slug, json!(["ale"]), json!({ "priority": priority, "content": content })).await;
    }
    let prompt = world.prompt("innkeeper_bob", "player_alice", "Ale!").await;
    let woken: Vec<_> = included(&prompt).into_iter().filter(|s| !s.starts_with("the_")).collect();
    assert_eq!(woken, ["high", "middle"], "by priority, then age");
    assert!(cut(&prompt, "turn").starts_with('2'), "{}", cut(&prompt, "turn"));
    assert!(reason(&prompt, "tie").starts_with("budget") && reason(&prompt, "low").starts_with("budget"));
    let turn = world.bob("player_alice", "Ale!").await.expect(200);
    let trace = &world.get(&format!("/turns/{}", turn.id())).await.expect(200).body["trace"];
    assert!(trace["cut"].to_string().contains("turn"), "{trace}");
}
