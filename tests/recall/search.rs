//! `GET …/memories/search`: what it finds, for whom, and that it is never out of date.

use edge::{caller::Scope, users::Role};
use reqwest::Method;
use serde_json::{Value, json};
use world::memory::recall::{Corpus, evaluate::PLAY_LOG};

use super::{BOB, HORSE, many, noted};
use crate::support::{Answer, Server, World};

async fn search(world: &World<'_>, q: &str, more: &str) -> Answer {
    let q: String = url::form_urlencoded::byte_serialize(q.as_bytes()).collect();
    world.get(&format!("/memories/search?q={q}{more}")).await
}

pub async fn found(world: &World<'_>, q: &str, more: &str) -> Vec<String> {
    let answer = search(world, q, more).await.expect(200);
    assert_eq!(answer.body["next_cursor"], Value::Null);
    answer.items().iter().map(|memory| memory["text"].as_str().unwrap().to_owned()).collect()
}

/// Those that have the word that was searched for. Others may be found for what stands beside them.
async fn having(world: &World<'_>, word: &str, more: &str) -> Vec<String> {
    let mut texts = found(world, word, more).await;
    texts.retain(|text| text.to_lowercase().contains(word));
    texts
}

#[tokio::test(flavor = "multi_thread")]
async fn what_matters_is_found_in_three_languages() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (text, _, _) in HORSE {
        noted(&world, BOB, "player_alice", text).await;
        many(&server, &world, BOB, 20, "Alice drank cider number # and sang about the harbour.").await;
    }
    for (text, question, shared) in HORSE {
        for more in [
            "&holder_id=innkeeper_bob&player_id=player_alice",
            "&holder_id=innkeeper_bob",
            "&player_id=player_alice",
            "",
        ] {
            let answer = search(&world, question, more).await.expect(200);
            let best = &answer.items()[0];
            assert_eq!(best["text"], text, "{more}");
            let words: Vec<_> = best["words"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
            // The index knows no misspelt words, the ranking does.
            let is_shared = words.iter().any(|word| word.contains(shared) || shared.contains(word));
            assert!(is_shared, "{words:?}");
            assert!(answer.items().len() <= 10);
            let score = |memory: &Value, part: &str| (memory["score"][part].as_f64().unwrap() * 1000.0).round();
            for memory in answer.items() {
                assert_eq!(score(memory, "own") + score(memory, "near"), score(memory, "total"), "{memory}");
                assert!(score(memory, "total") > 0.0);
            }
            let totals: Vec<_> = answer.items().iter().map(|memory| -score(memory, "total")).collect();
            assert!(totals.is_sorted(), "{totals:?}");
        }
    }
    let best = search(&world, HORSE[0].1, "&holder_id=innkeeper_bob").await.expect(200).items()[0].clone();
    assert_eq!(best["words"], json!(["hors", "left"]), "Alyce is another name than Alice");
    let one = "&holder_id=innkeeper_bob&limit=1";
    assert_eq!(found(&world, "horse", one).await, [HORSE[0].0]);
    assert_eq!(found(&world, "cider", "&holder_id=innkeeper_bob&limit=50").await.len(), 50);
    // The newest of equals.
    assert!(found(&world, "number 20", one).await[0].contains("number 20 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_cannot_be_is_refused_and_one_for_nobody_is_empty() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    noted(&world, BOB, "player_alice", "The 🐴 of Alice is grey, a b c.").await;
    for blank in ["", "%20%20", "%09", "%E3%80%80"] {
        let answer = world.get(&format!("/memories/search?q={blank}")).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/q"]);
    }
    assert_eq!(world.get("/memories/search").await.problem(422, "validation_failed").pointers(), ["/q"]);
    assert_eq!(search(&world, &"x".repeat(501), "").await.problem(422, "validation_failed").pointers(), ["/q"]);
    for wrong in ["&limit=0", "&limit=51", "&limit=x", "&cursor=x", "&sort=name", "&q=twice"] {
        search(&world, "horse", wrong).await.problem(400, "bad_request");
    }
    let bob = "&holder_id=innkeeper_bob";
    for nobody in [
        "&holder_id=nobody",
        "&player_id=nobody",
        "&holder_id=player_alice",
        "&player_id=innkeeper_bob",
        "&holder_id=",
        "&player_id=",
    ] {
        assert_eq!(found(&world, "grey", nobody).await, [""; 0], "{nobody}");
    }
    assert_eq!(found(&world, "grey", "&holder_id=harbour_ilse").await, [""; 0]);
    for (q, is_found) in [
        ("🐴", false),
        ("...", false),
        ("the", true),
        ("b", true),
        ("'\"; DROP TABLE memory --", false),
        ("& | ! <-> :*", false),
        ("-grey", true),
        ("grey or or OR", true),
    ] {
        for more in [bob, ""] {
            assert_eq!(!found(&world, q, more).await.is_empty(), is_found, "{q}{more}");
        }
    }
    for long in ["x".repeat(500), "馬".repeat(500), "grey ".repeat(100), "a b ".repeat(125), "é".repeat(500)] {
        for more in [bob, ""] {
            search(&world, &long, more).await.expect(200);
        }
    }
    // Words as the world stores them, with their marks.
    noted(&world, BOB, "player_mallory", "Élodie mag Äpfel.").await;
    for q in ["élodie", "Äpfel", "ÉLODIE!"] {
        assert_eq!(found(&world, q, "").await, ["Élodie mag Äpfel."], "{q}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_finds_what_they_may_not_read() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let others = server.tenant("other").await;
    let other_world = others.world().await;
    noted(&world, BOB, "player_alice", "Alice hid the emerald.").await;
    noted(&world, BOB, "player_mallory", "Mallory wants the emerald.").await;
    noted(&world, "/owners/town_council_owner/memories", "player_alice", "Alice owes an emerald.").await;
    for more in ["", "&holder_id=innkeeper_bob"] {
        assert_eq!(having(&other_world, "emerald", more).await, [""; 0]);
    }
    let alice =
        tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice", "scopes": ["read", "play"] })).await;
    let hers = World { client: &alice, slug: world.slug.clone() };
    for more in ["", "&holder_id=innkeeper_bob", "&player_id=player_alice"] {
        let found = having(&hers, "emerald", more).await;
        assert!(!found.is_empty() && found.iter().all(|text| text.starts_with("Alice")), "{more}: {found:?}");
    }
    assert_eq!(found(&hers, "emerald", "&player_id=player_mallory").await, [""; 0]);
    assert_eq!(having(&hers, "emerald", "&holder_id=town_council_owner").await, ["Alice owes an emerald."]);
    // What others may read moves no score of hers.
    let score = async |world: &World<'_>, more: &str| {
        search(world, "emerald", more).await.expect(200).items()[0]["score"].clone()
    };
    let before = score(&hers, "&holder_id=innkeeper_bob").await;
    for n in 0..5 {
        noted(&world, BOB, "player_mallory", &format!("Mallory asks for the emerald, {n}.")).await;
    }
    assert_eq!(score(&hers, "&holder_id=innkeeper_bob").await, before);
    let blind = tenant.with_scopes(&[Scope::Play]).await;
    let path = world.path("/memories/search?q=emerald");
    blind.send(blind.request(Method::GET, &path)).await.problem(403, "forbidden");
}

/// Every way in which memories change shows at once, on the server that knows them already and on another.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_is_never_out_of_date() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let replica = Server::on(server.db.clone(), &[]).await;
    let there = tenant.at(&replica);
    let elsewhere = World { client: &there, slug: world.slug.clone() };
    let places =
        ["&holder_id=innkeeper_bob&player_id=player_alice", "&holder_id=innkeeper_bob", "&player_id=player_alice", ""];
    let check = async |expected: &[&str]| {
        for world in [&world, &elsewhere] {
            for place in places {
                let mut texts = having(world, "horses", place).await;
                texts.sort();
                assert_eq!(texts, expected, "{place}");
            }
        }
    };
    let first = noted(&world, BOB, "player_alice", "One of her horses is grey.").await;
    check(&["One of her horses is grey."]).await;
    let second = noted(&world, BOB, "player_alice", "Horses frighten her.").await;
    check(&["Horses frighten her.", "One of her horses is grey."]).await;
    world.patch(&format!("/memories/{first}"), json!({ "text": "Her horses are black." })).await.expect(200);
    check(&["Her horses are black.", "Horses frighten her."]).await;
    world.patch(&format!("/memories/{first}"), json!({ "pinned": true, "game_time": "market day" })).await.expect(200);
    check(&["Her horses are black.", "Horses frighten her."]).await;
    for place in &places[..2] {
        assert_eq!(found(&elsewhere, "market", place).await.first().map(String::as_str), Some("Her horses are black."));
    }
    world.delete(&format!("/memories/{second}")).await.expect(204);
    check(&["Her horses are black."]).await;
    world.post(&format!("/memories/{first}/move"), json!({ "player_id": "player_mallory" })).await.expect(200);
    assert_eq!(having(&elsewhere, "horses", places[0]).await, [""; 0]);
    assert_eq!(having(&elsewhere, "horses", places[1]).await, ["Her horses are black."]);
    world.post(&format!("/memories/{first}/move"), json!({ "player_id": "player_alice" })).await.expect(200);
    check(&["Her horses are black."]).await;
    // The holder goes, and comes back.
    let bob = format!("/npcs/{}", world.get("/npcs/innkeeper_bob").await.expect(200).id());
    world.delete(&bob).await.expect(204);
    check(&[]).await;
    let gone = world.get(&format!("{bob}/revisions")).await.expect(200).items()[0]["seq"].clone();
    world.post(&format!("{bob}/revisions/{gone}/restore"), json!({})).await.expect(200);
    check(&["Her horses are black."]).await;
}

/// A holder with more memories than are chosen from: the pinned ones and the newest count.
#[tokio::test(flavor = "multi_thread")]
async fn the_newest_are_searched_and_all_that_are_pinned() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let lost = noted(&world, BOB, "player_alice", "The oldest secret is a lantern.").await;
    let kept = noted(&world, BOB, "player_alice", "The second secret is a candle.").await;
    many(&server, &world, BOB, 2200, &format!("# {}", "x".repeat(1990))).await;
    noted(&world, BOB, "player_alice", "The newest secret is a torch.").await;
    let pair = "&holder_id=innkeeper_bob&player_id=player_alice";
    assert_eq!(found(&world, "torch", pair).await[0], "The newest secret is a torch.");
    assert_eq!(found(&world, "lantern candle", pair).await, [""; 0]);
    world.patch(&format!("/memories/{kept}"), json!({ "pinned": true })).await.expect(200);
    assert_eq!(found(&world, "lantern candle", pair).await[0], "The second secret is a candle.");
    // Who names no holder finds it by the index.
    assert_eq!(found(&world, "lantern", "").await, ["The oldest secret is a lantern."]);
    world.delete(&format!("/memories/{lost}")).await.expect(204);
    assert_eq!(found(&world, "lantern", "").await, [""; 0]);
}

/// Without a holder, frequent words do not hide a rare one.
#[tokio::test(flavor = "multi_thread")]
async fn rare_words_come_first() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    noted(&world, BOB, "player_alice", "An emerald.").await;
    for word in ["asked", "about", "cider", "harbour", "market"] {
        many(&server, &world, BOB, 700, &format!("Somebody {word} number #.")).await;
    }
    let question = "asked about the cider, the harbour, the market and an emerald";
    assert_eq!(found(&world, question, "&limit=1").await, ["An emerald."]);
}

/// What a corpus may hold at most fits into the cache.
#[test]
fn the_largest_corpus_fits_into_the_cache() {
    let worlds = PLAY_LOG.map(|log| serde_json::from_str::<Value>(log).unwrap());
    let rows = worlds.iter().flat_map(|log| log["worlds"][0]["rows"].as_array().unwrap());
    let texts: Vec<&str> = rows.map(|row| row["text"].as_str().unwrap()).collect();
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for n in 0..20_000 {
        let text = format!("{} {n} {}", texts[n % texts.len()], texts[(n * 7 + 1) % texts.len()]);
        bytes += text.len();
        if bytes > 3 * 1024 * 1024 {
            break;
        }
        rows.push(crate::recall::memory(i64::try_from(n).unwrap(), &text));
    }
    let corpus = Corpus::of(rows);
    assert!(
        corpus.len() > 12_000 && corpus.bytes() < 32 * 1024 * 1024,
        "{} rows, {} bytes",
        corpus.len(),
        corpus.bytes()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editor_shows_the_best_matches_of_a_holder() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    noted(&world, BOB, "player_alice", HORSE[0].0).await;
    many(&server, &world, BOB, 5, "Alice sang <b>#</b>.").await;
    noted(&world, "/npcs/harbour_ilse/memories", "player_alice", "Alice bought a horse.").await;
    let mut mara = crate::admin::Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    let list = "/admin/c/port-town/memories";
    let page = mara.get(&format!("{list}?q=gray+hors&holder_id=innkeeper_bob")).await.expect(200).text;
    assert!(page.contains("grey horse") && page.contains("shares <bdi>") && page.contains("best matches"), "{page}");
    assert!(!page.contains("bought a horse") && !page.contains("<b>1"), "{page}");
    for (more, is_found) in [
        ("&player_id=player_alice", true),
        ("&player_id=player_mallory", false),
        ("&player_id=nobody", false),
        ("&source=editor", true),
        ("&source=personal", false),
        // In another order, the words decide.
        ("&sort=-created_at", false),
    ] {
        let page = mara.get(&format!("{list}?q=gray+hors&holder_id=innkeeper_bob{more}")).await.expect(200).text;
        assert_eq!(page.contains("grey horse"), is_found, "{more}: {page}");
        assert!(is_found || page.contains("No memories found."), "{page}");
    }
    assert!(mara.get(&format!("{list}?q=horse")).await.expect(200).text.contains("bought a horse"));
}
