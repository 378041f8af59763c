//! What other programs write, each in its own way.

use std::io::Write;

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::ZlibEncoder};
use serde_json::{Value, json};
use world::interchange::png;

use super::{files, says, send};
use crate::support::{Server, World};

const CARD: &str = "/v1/campaigns/port-town/import/character-card";
const BOOK: &str = "/v1/campaigns/port-town/import/lorebook";

fn card(data: Value) -> Value {
    let mut card = json!({ "spec": "chara_card_v2", "spec_version": "2.0", "data": {
        "name": "Alice", "description": "A thief.", "personality": "", "first_mes": "", "mes_example": "", "scenario": "" } });
    card["data"].as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
    card
}

/// How many NPCs of this name there are.
async fn named(world: &World<'_>, name: &str) -> usize {
    world.get(&format!("/npcs?q={name}&limit=200")).await.expect(200).items().len()
}

/// Cards without a creator may be of different people who only share a name.
#[tokio::test(flavor = "multi_thread")]
async fn cards_of_one_name_without_a_creator_are_different_people() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let before = named(&world, "Alice").await;
    let others = [
        json!({}),
        json!({ "description": "A queen." }),
        json!({ "first_mes": "Hush." }),
        json!({ "creator": " ", "personality": "Sly." }),
        json!({ "scenario": "A storm.", "character_book": { "entries": [{ "keys": ["gull"], "content": "Gulls steal." }] } }),
    ];
    for (n, data) in others.iter().enumerate() {
        let made = acme.post(CARD, card(data.clone())).await.expect(200).body;
        assert_eq!(made["counts"]["created"], if n == 4 { 2 } else { 1 }, "{data}: {made:#}");
    }
    assert_eq!(named(&world, "Alice").await - before, others.len());
    // What is empty is not there, for each program in its own way.
    for data in [json!({ "scenario": null }), json!({ "personality": " " })] {
        let again = acme.post(CARD, card(data.clone())).await.expect(200).body;
        assert_eq!(again["counts"]["created"], 0, "{data}: {again:#}");
    }
    // An NPC that was edited here stays as it is, and each file is known again, also as a picture.
    let first = world.get("/npcs?q=Alice&sort=created_at").await.items()[before].clone();
    let path = format!("/npcs/{}", first["id"].as_str().unwrap());
    world.patch(&path, json!({ "description": "Edited here." })).await.expect(200);
    acme.post(CARD, card(json!({ "description": "A baker." }))).await.expect(200);
    assert_eq!(world.get(&path).await.body["description"], "Edited here.");
    for data in &others[1..] {
        // What is said about the card does not make another character.
        let mut data = data.clone();
        data["tags"] = json!(["x"]);
        data["system_prompt"] = json!("Be brief.");
        let again = acme.post(CARD, card(data.clone())).await.expect(200).body;
        assert_eq!(again["counts"]["created"], 0, "{data}: {again:#}");
        let picture = files::picture("chara", &card(data.clone()));
        let again = send(&acme, CARD, "image/png", picture).await.expect(200).body;
        assert_eq!(again["counts"]["created"], 0, "{data}: {again:#}");
    }
    assert_eq!(named(&world, "Alice").await - before, others.len() + 1);
}

/// The nickname is what a character is called in its texts: in all of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_card_has_one_name_in_all_sections() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let data = json!({ "name": "Alice Thornwood", "nickname": "Ali", "creator": "anon", "description": "{{char}} describes.",
        "personality": "{{char}} is dry.", "scenario": "{{char}} waits.", "first_mes": "{{char}} greets.",
        "mes_example": "<START>\n{{char}}: Hm.", "system_prompt": "Play {{char}}.", "post_history_instructions": "Stay {{char}}.",
        "character_book": { "entries": [{ "keys": ["gull"], "content": "{{char}} hates gulls.", "constant": true }] } });
    acme.post(CARD, card(data.clone())).await.expect(200);
    let npc = world.get("/npcs/alice_thornwood").await.expect(200).body;
    assert_eq!((&npc["name"], &npc["description"]), (&json!("Alice Thornwood"), &json!("Ali describes.")));
    world.post("/npcs/alice_thornwood/instructions/accept", json!({})).await.expect(200);
    let shown = async |slug: &str| {
        let prompt = world.prompt(slug, "player_mallory", "A gull!").await;
        prompt["messages"].to_string()
    };
    let text = shown("alice_thornwood").await;
    for said in
        ["Ali describes.", "Ali is dry.", "Ali waits.", "Ali: Hm.", "Play Ali.", "Stay Ali.", "Ali hates gulls."]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("Thornwood"), "{text}");
    let greeted = world.post("/npcs/alice_thornwood/greet", json!({ "player_id": "player_mallory" })).await.expect(200);
    assert_eq!(greeted.body["narrative"], "Ali greets.");
    // It goes out with both names, and comes back as it was.
    let out = world.get("/npcs/alice_thornwood/card.json").await.expect(200).body;
    assert_eq!((&out["data"]["name"], &out["data"]["nickname"]), (&json!("Alice Thornwood"), &json!("Ali")));
    assert_eq!(out["data"]["description"], "{{char}} describes.");
    let kept = async || world.get("/npcs/alice_thornwood").await.body;
    let before = kept().await;
    let back = acme.post(CARD, out.clone()).await.expect(200).body;
    assert_eq!(back["counts"]["created"], 0, "{back:#}");
    let data = "/extensions/character_card/data";
    assert_eq!(kept().await.pointer(data), before.pointer(data), "{back:#}");
    // Who was renamed here is called by the new name.
    world.patch("/npcs/alice_thornwood", json!({ "name": "Nell" })).await.expect(200);
    let text = shown("alice_thornwood").await;
    assert!(text.contains("Nell waits.") && text.contains("Play Nell."), "{text}");
    let out = world.get("/npcs/alice_thornwood/card.json").await.expect(200).body;
    assert_eq!((&out["data"]["name"], out["data"].get("nickname")), (&json!("Nell"), None));
}

/// A PNG with a card in an `iTXt` chunk.
fn international(card: &Value, is_packed: bool, language: &str) -> Vec<u8> {
    let text = STANDARD.encode(card.to_string());
    let mut chunk = b"chara\0".to_vec();
    chunk.extend([u8::from(is_packed), 0]);
    chunk.extend(format!("{language}\0caractère\0").bytes());
    if is_packed {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        chunk.extend(packed.finish().unwrap());
    } else {
        chunk.extend(text.bytes());
    }
    super::hostile::with_chunk(b"iTXt", &chunk)
}

#[tokio::test(flavor = "multi_thread")]
async fn cards_are_found_in_international_texts() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    for (n, (is_packed, language)) in
        [(false, ""), (true, ""), (false, "fr"), (true, "zh-Hant")].into_iter().enumerate()
    {
        let name = format!("Zoë {n}");
        let picture = international(&card(json!({ "name": name, "creator": "anon" })), is_packed, language);
        send(&acme, CARD, "image/png", picture).await.expect(200);
        assert_eq!(named(&world, &format!("Zo%C3%AB%20{n}")).await, 1, "{name}");
    }
    for (what, chunk) in [
        ("no text", &b"chara\0\0\0en\0"[..]),
        ("no flags", b"chara\0"),
        ("packed in an unknown way", b"chara\0\x01\x07\0\0xyz"),
        ("packed badly", b"chara\0\x01\0\0\0xyz"),
    ] {
        let bad = super::hostile::with_chunk(b"iTXt", chunk);
        send(&acme, CARD, "image/png", bad).await.problem(422, "validation_failed");
        let bytes = super::hostile::with_chunk(b"iTXt", chunk);
        let texts = png::texts(&bytes, |_| true).unwrap();
        assert!(texts.sound[0].1.read().is_err(), "{what}");
    }
}

/// A picture of 32 MiB may hold thousands of texts that unpack to 16 MiB each. Only the card is unpacked.
#[tokio::test(flavor = "multi_thread")]
async fn a_picture_of_many_packed_texts_is_no_bomb() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    acme.world().await;
    let mut packed = ZlibEncoder::new(b"chara\0\0".to_vec(), Compression::best());
    packed.write_all(&vec![b'A'; 16 * 1024 * 1024]).unwrap();
    let packed = packed.finish().unwrap();
    let mut bomb = png::picture([1; 32], &[]);
    let end = bomb.split_off(bomb.len() - 12);
    while bomb.len() + packed.len() < 31 * 1024 * 1024 {
        bomb.extend(super::hostile::chunk(b"zTXt", &packed));
    }
    bomb.extend(end);
    let begun = std::time::Instant::now();
    send(&acme, CARD, "image/png", bomb).await.problem(400, "bad_request");
    // Unpacking all of them takes minutes.
    assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
    // A sound `ccv3` is enough, whatever the other is.
    let mut picture = files::picture("ccv3", &card(json!({ "name": "Sound", "creator": "anon" })));
    let end = picture.split_off(picture.len() - 12);
    picture.extend(super::hostile::chunk(b"zTXt", b"chara\0\0xyz"));
    picture.extend(end);
    send(&acme, CARD, "image/png", picture).await.expect(200);
}

/// Books whose values have another type: what is stored of each, and what the report says of a value that says nothing.
#[tokio::test(flavor = "multi_thread")]
async fn values_in_another_form_mean_what_they_say() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let sillytavern = |entry: Value| json!({ "entries": { "0": entry } });
    let listed = |entry: Value| json!({ "entries": [entry] });
    let novelai = |entry: Value| json!({ "lorebookVersion": 5, "entries": [entry] });
    let risu = |entry: Value| json!({ "type": "risu", "data": [entry] });
    let base = json!({ "uid": 0, "key": ["x"], "comment": "Off", "content": "Secret." });
    let with = |mut base: Value, more: Value| {
        base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        base
    };
    let theirs = json!({ "keys": ["x"], "name": "Off", "content": "Secret.", "enabled": true, "insertion_order": 70 });
    let agnai = json!({ "keywords": ["x"], "name": "Off", "entry": "Secret.", "weight": 70, "enabled": true });
    let novel = json!({ "keys": ["x"], "displayName": "Off", "text": "Secret.", "enabled": true });
    let in_risu = json!({ "key": "x", "comment": "Off", "content": "Secret." });
    let cases: Vec<(Value, Value)> = vec![
        (
            sillytavern(with(base.clone(), json!({ "disable": 1, "order": "70" }))),
            json!({ "enabled": false, "priority": 70 }),
        ),
        (sillytavern(with(base.clone(), json!({ "disable": "true" }))), json!({ "enabled": false, "priority": 100 })),
        (
            sillytavern(with(base.clone(), json!({ "disable": "0", "order": " -5 " }))),
            json!({ "enabled": true, "priority": -5 }),
        ),
        (sillytavern(with(base.clone(), json!({ "constant": "yes" }))), json!({ "activation": "always" })),
        (sillytavern(with(base.clone(), json!({ "constant": 0 }))), json!({ "activation": "keyword" })),
        (sillytavern(with(base.clone(), json!({ "scanDepth": "7" }))), json!({ "scan_depth": 7 })),
        (
            sillytavern(with(base.clone(), json!({ "scanDepth": "", "order": "" }))),
            json!({ "scan_depth": 2, "priority": 100 }),
        ),
        (
            sillytavern(with(
                base.clone(),
                json!({ "keysecondary": ["y"], "selective": "1", "selectiveLogic": "3.0" }),
            )),
            json!({ "secondary_keys": ["y"], "logic": "and_all" }),
        ),
        (
            sillytavern(with(base.clone(), json!({ "keysecondary": ["y"], "selective": "off" }))),
            json!({ "secondary_keys": [] }),
        ),
        (
            sillytavern(with(base.clone(), json!({ "key": [1984, true, "x"], "comment": 7 }))),
            json!({ "keys": ["1984", "true", "x"], "title": "7" }),
        ),
        (
            listed(with(theirs.clone(), json!({ "enabled": 0, "insertion_order": "71" }))),
            json!({ "enabled": false, "priority": 71 }),
        ),
        (
            listed(with(theirs.clone(), json!({ "enabled": "true", "constant": 1 }))),
            json!({ "enabled": true, "activation": "always" }),
        ),
        (
            listed(with(agnai.clone(), json!({ "enabled": "false", "weight": "72" }))),
            json!({ "enabled": false, "priority": 72 }),
        ),
        (
            novelai(with(
                novel.clone(),
                json!({ "enabled": 0, "forceActivation": "true", "contextConfig": { "budgetPriority": "73" } }),
            )),
            json!({ "enabled": false, "activation": "always", "priority": 73 }),
        ),
        (
            risu(with(
                in_risu.clone(),
                json!({ "alwaysActive": 1, "insertorder": "74", "selective": "true", "secondkey": "y" }),
            )),
            json!({ "activation": "always", "priority": 74, "secondary_keys": ["y"] }),
        ),
    ];
    let stored = async |n: usize, mut book: Value| {
        book["name"] = json!(format!("Book {n}"));
        let report = acme.post(&format!("{BOOK}?name=book{n}"), book).await.expect(200).body;
        let slug = report["items"][0]["slug"].as_str().unwrap().to_owned();
        (report, world.get(&format!("/lore/{slug}")).await.expect(200).body)
    };
    for (n, (book, wanted)) in cases.into_iter().enumerate() {
        let (report, lore) = stored(n, book.clone()).await;
        for (name, value) in wanted.as_object().unwrap() {
            assert_eq!(&lore[name], value, "{name} of {book}: {report:#}");
        }
    }
    // What says nothing is in the report, under the file's own name.
    for (n, (book, path)) in [
        (sillytavern(with(base.clone(), json!({ "disable": "perhaps" }))), "/entries/*/disable"),
        (sillytavern(with(base.clone(), json!({ "disable": 2 }))), "/entries/*/disable"),
        (sillytavern(with(base.clone(), json!({ "constant": [] }))), "/entries/*/constant"),
        (sillytavern(with(base.clone(), json!({ "order": "first" }))), "/entries/*/order"),
        (sillytavern(with(base.clone(), json!({ "order": true }))), "/entries/*/order"),
        (sillytavern(with(base, json!({ "scanDepth": {} }))), "/entries/*/scanDepth"),
        (listed(with(theirs.clone(), json!({ "enabled": "perhaps" }))), "/entries/*/enabled"),
        (listed(with(theirs, json!({ "insertion_order": "last" }))), "/entries/*/insertion_order"),
        (listed(with(agnai, json!({ "weight": "heavy" }))), "/entries/*/weight"),
        (novelai(with(novel, json!({ "forceActivation": "maybe" }))), "/entries/*/forceActivation"),
        (risu(with(in_risu, json!({ "insertorder": "NaN" }))), "/data/*/insertorder"),
        (listed(json!({ "keys": ["x"], "name": "Off", "content": "Secret.", "use_regex": "perhaps" })), "/entries/*/use_regex"),
        (
            sillytavern(json!({ "key": ["x"], "keysecondary": ["y"], "content": "Secret.", "comment": "Off", "selectiveLogic": 7 })),
            "/entries/*/selectiveLogic",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (report, lore) = stored(100 + n, book.clone()).await;
        assert!(says(&report, path, "approximated"), "{path} of {book}: {report:#}");
        // The order of the other cases is the file's, or the usual one.
        let priority = if book.to_string().contains(":70") { 70 } else { 100 };
        assert_eq!((&lore["enabled"], &lore["priority"]), (&json!(true), &json!(priority)), "{book}");
    }
}

/// Cards too: numbers as texts, texts as numbers, and books that are lists.
#[tokio::test(flavor = "multi_thread")]
async fn cards_in_another_form_are_read() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let made = acme.post(CARD, card(json!({ "name": "Empty", "character_book": [] }))).await.expect(200).body;
    assert_eq!(made["counts"]["created"], 1, "{made:#}");
    let entries = json!([{ "keys": ["gull"], "content": "Gulls steal.", "enabled": 1, "insertion_order": "12" }]);
    let made = acme.post(CARD, card(json!({ "name": "Listed", "character_book": entries }))).await.expect(200).body;
    assert_eq!(made["counts"]["created"], 2, "{made:#}");
    let odd = json!({ "name": 47, "creator": 7, "description": 1984, "tags": [1, "two"], "first_mes": 5,
        "extensions": { "depth_prompt": { "prompt": "Stay.", "depth": "9" } } });
    acme.post(CARD, card(odd)).await.expect(200);
    let npc = world.get("/npcs?q=47").await.expect(200).items()[0].clone();
    assert_eq!((&npc["name"], &npc["description"], &npc["greetings"]), (&json!("47"), &json!("1984"), &json!(["5"])));
    assert_eq!(npc["pending_instructions"]["authors_note"]["depth"], 9);
    let out = world.get(&format!("/npcs/{}/card.json", npc["slug"].as_str().unwrap())).await.expect(200).body;
    assert_eq!((&out["data"]["creator"], &out["data"]["tags"]), (&json!("7"), &json!(["1", "two"])));
    let vague = json!({ "name": "Vague", "extensions": { "depth_prompt": { "prompt": "Stay.", "depth": "deep" } } });
    let report = acme.post(CARD, card(vague)).await.expect(200).body;
    assert!(says(&report, "/data/extensions/depth_prompt/depth", "approximated"), "{report:#}");
    for wrong in [json!("none"), json!(7), json!(true)] {
        acme.post(CARD, card(json!({ "name": "Wrong", "character_book": wrong })))
            .await
            .problem(422, "validation_failed");
    }
}
