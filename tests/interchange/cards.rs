//! Character cards in and out.

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use serde_json::{Value, json};
use world::interchange::png;

use super::{files, says, send};
use crate::support::{Server, World, counts};

const IMPORT: &str = "/v1/campaigns/port-town/import/character-card";

#[tokio::test(flavor = "multi_thread")]
async fn a_card_becomes_an_npc_and_its_book_what_only_it_knows() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let before = counts(&server).await;
    let dry = acme.post(&format!("{IMPORT}?dry_run=true"), files::card()).await.expect(200);
    assert_eq!(counts(&server).await, before);
    let report = acme.post(IMPORT, files::card()).await.expect(200).body;
    assert_eq!((&report["counts"], &report["fields"]), (&dry.body["counts"], &dry.body["fields"]));
    assert_eq!(report["format"], "character_card_v3");
    let npc = world.get("/npcs/maren_tidewater").await.expect(200).body;
    assert_eq!(npc["description"], "Maren keeps the lighthouse. She watches the player with a pale eye.");
    assert!(npc["example_dialogue"].as_str().unwrap().starts_with("<START>\n{{user}}: Good evening."), "{npc:#}");
    for (path, what) in [
        ("/data/name", "kept"),
        ("/data/description", "approximated"),
        ("/data/personality", "mapped"),
        ("/data/system_prompt", "mapped"),
        ("/data/first_mes", "mapped"),
        ("/data/scenario", "kept"),
        ("/data/assets", "approximated"),
        ("/data/a_field_of_tomorrow", "kept"),
        ("/data/extensions/someone/else", "kept"),
        ("/data/character_book/entries/*/keys", "mapped"),
        ("/data/character_book/entries/*/extensions/theirs", "kept"),
    ] {
        assert!(says(&report, path, what), "{what} {path}: {report:#}");
    }
    let lore = world.get("/lore/the_lamp").await.expect(200).body;
    assert_eq!((&lore["secret"], &lore["known_by"]), (&json!(true), &json!([npc["id"]])));
    assert_eq!(
        (&lore["keys"], &lore["logic"], &lore["scan_depth"]),
        (&json!(["lamp", "light"]), &json!("and_all"), &json!(3))
    );
    assert_eq!(lore["content"], "The lamp burns whale oil that Maren buys at night.");
    // She knows it, Bob does not, and the card's orders reach nobody.
    let prompt = world.prompt("maren_tidewater", "player_alice", "The lamp needs oil, and light.").await;
    assert!(prompt["messages"].to_string().contains("whale oil"), "{prompt:#}");
    assert!(!prompt["messages"].to_string().contains("pirate"));
    let bob = world.prompt("innkeeper_bob", "player_alice", "The lamp needs oil, and light.").await;
    assert!(!bob["messages"].to_string().contains("whale oil"));
    // What no card says: what it remembers with, which is told; and what it says that no model is told.
    assert_eq!(npc["available_tools"], json!(["NPC_memorize"]));
    assert!(says(&report, "/data/*", "approximated"), "{report:#}");
    let tools = json!({ "available_tools": ["roll_dice"] });
    world.patch("/npcs/maren_tidewater", tools).await.expect(200);
    // A second time changes nothing.
    let before = counts(&server).await;
    let again = acme.post(IMPORT, files::card()).await.expect(200).body;
    assert_eq!(again["counts"], json!({ "created": 0, "updated": 0, "unchanged": 3 }), "{again:#}");
    assert_eq!(counts(&server).await, before);
}

/// A card as it comes back, without what is ours.
async fn back(world: &World<'_>, npc: &str) -> Value {
    let mut card = world.get(&format!("/npcs/{npc}/card.json")).await.expect(200).body;
    card["data"]["extensions"].as_object_mut().unwrap().remove("tavernkeep");
    for entry in card["data"]["character_book"]["entries"].as_array_mut().into_iter().flatten() {
        entry["extensions"].as_object_mut().unwrap().remove("tavernkeep");
    }
    card
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_changed_comes_back_as_it_was() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    acme.post(IMPORT, files::card()).await.expect(200);
    let (was, is) = (files::card(), back(&world, "maren_tidewater").await);
    for (name, value) in was["data"].as_object().unwrap() {
        if name != "character_book" {
            assert_eq!(&is["data"][name], value, "{name}");
        }
    }
    assert_eq!(is["chat"], was["chat"]);
    let (was, is) = (&was["data"]["character_book"], &is["data"]["character_book"]);
    for (name, value) in was.as_object().unwrap() {
        if name != "entries" {
            assert_eq!(&is[name], value, "{name}");
        }
    }
    for (was, is) in was["entries"].as_array().unwrap().iter().zip(is["entries"].as_array().unwrap()) {
        for (name, value) in was.as_object().unwrap() {
            assert_eq!(&is[name], value, "{name} of {is:#}");
        }
    }
    // What was changed is what it is now.
    world.patch("/npcs/maren_tidewater", json!({ "personality_prompt": "Merry." })).await.expect(200);
    world.patch("/lore/the_lamp", json!({ "keys": ["lamp"], "content": "It is out." })).await.expect(200);
    let card = back(&world, "maren_tidewater").await;
    assert_eq!(card["data"]["personality"], "Merry.");
    assert_eq!(card["data"]["mes_example"], files::card()["data"]["mes_example"]);
    assert_eq!(card["data"]["description"], files::card()["data"]["description"]);
    let lamp = &card["data"]["character_book"]["entries"][0];
    assert_eq!(
        (&lamp["keys"], &lamp["content"], &lamp["unknown"]),
        (&json!(["lamp"]), &json!("It is out."), &json!([1]))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_npc_of_ours_goes_out_as_a_picture_and_comes_back_whole() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    world.patch("/npcs/innkeeper_bob", json!({ "race": "human", "stats": { "armor_class": 13, "hp": 9, "max_hp": 9 }, "inventory": [{ "name": "mug" }],
        "disposition": "jolly", "available_tools": ["NPC_memorize"] })).await.expect(200);
    let secret = json!({ "title": "The cellar", "scope": "zone", "associated_id": "inn", "content": "Smugglers.", "secret": true,
        "known_by": ["innkeeper_bob"], "activation": "keyword", "keys": ["cellar"], "tags": ["plot"], "ai_lock": true });
    world.post("/lore", secret).await.expect(201);
    let response =
        acme.request(reqwest::Method::GET, &world.path("/npcs/innkeeper_bob/card.png")).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "image/png");
    let bytes = response.bytes().await.unwrap().to_vec();
    // Programs that know V2 alone read one of its texts, the others the other.
    let texts = png::texts(&bytes, |_| true).unwrap();
    assert!(!texts.has_damaged && !texts.is_damaged_elsewhere);
    let specs: Vec<_> = texts
        .sound
        .iter()
        .map(|(keyword, text)| {
            let card: Value = serde_json::from_slice(&STANDARD.decode(text.read().unwrap()).unwrap()).unwrap();
            assert_eq!(card["data"]["name"], "Innkeeper Bob", "{keyword}");
            (keyword.as_str(), card["spec"].as_str().unwrap().to_owned())
        })
        .collect();
    assert_eq!(specs, [("chara", "chara_card_v2".to_owned()), ("ccv3", "chara_card_v3".to_owned())]);
    // Here it is what is there already.
    let here = send(&acme, IMPORT, "image/png", bytes.clone()).await.expect(200).body;
    assert_eq!(here["counts"], json!({ "created": 0, "updated": 0, "unchanged": 2 }), "{here:#}");
    // Elsewhere it is made anew, beside whoever has its name, and is the one who knows its secrets.
    let third = server.tenant("third").await;
    let taken = third.world().await;
    for action in ["created", "unchanged"] {
        let report = send(&third, IMPORT, "image/png", bytes.clone()).await.expect(200).body;
        assert_eq!(
            (&report["items"][0]["slug"], &report["items"][0]["action"]),
            (&json!("innkeeper_bob_2"), &json!(action))
        );
    }
    let bob = taken.get("/npcs/innkeeper_bob_2").await.expect(200).body;
    assert_eq!(taken.get("/lore/the_cellar").await.expect(200).body["known_by"], json!([bob["id"]]));
    assert_ne!(taken.get("/npcs/innkeeper_bob").await.expect(200).body["disposition"], "jolly");
    let other = server.tenant("other").await;
    other.post("/v1/campaigns", json!({ "slug": "port-town", "name": "Elsewhere" })).await.expect(201);
    let there = send(&other, IMPORT, "image/png", bytes).await.expect(200).body;
    assert_eq!(there["counts"], json!({ "created": 2, "updated": 0, "unchanged": 0 }), "{there:#}");
    assert_eq!(
        there["warnings"],
        json!(["There is no owner `town_council_owner` here, so the NPC is imported without it."])
    );
    let mut npcs = Vec::new();
    for client in [&acme, &other] {
        let mut npc = client.get("/v1/campaigns/port-town/npcs/innkeeper_bob").await.expect(200).body;
        for name in
            ["id", "campaign_id", "owner_ids", "version", "created_at", "updated_at", "extensions", "external_ref"]
        {
            npc.as_object_mut().unwrap().remove(name);
        }
        npcs.push(npc);
    }
    assert_eq!(npcs[0], npcs[1]);
    let cellar = other.get("/v1/campaigns/port-town/lore/the_cellar").await.expect(200).body;
    assert_eq!(
        (&cellar["scope"], &cellar["associated_id"], &cellar["tags"], &cellar["ai_lock"]),
        (&json!("zone"), &json!("inn"), &json!(["plot"]), &json!(true))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_envelope_is_opened() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let flat = json!({ "name": "Old Tom", "description": "A sailor.", "personality": "", "scenario": "", "first_mes": "Ahoy.", "mes_example": "" });
    assert_eq!(acme.post(IMPORT, flat).await.expect(200).body["format"], "character_card_v1");
    let mut older = files::card();
    older["spec"] = json!("chara_card_v2");
    older["data"]["name"] = json!("In a chunk");
    for (keyword, name) in [("chara", "in_a_chunk"), ("CCV3", "in_a_chunk")] {
        send(&acme, IMPORT, "application/octet-stream", files::picture(keyword, &older)).await.expect(200);
        world.get(&format!("/npcs/{name}")).await.expect(200);
    }
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    archive.start_file("card.json", options).unwrap();
    let mut card = files::card();
    card["data"]["name"] = json!("In a zip");
    std::io::Write::write_all(&mut archive, card.to_string().as_bytes()).unwrap();
    archive.start_file("assets/icon/images/main.png", options).unwrap();
    let bytes = archive.finish().unwrap().into_inner();
    let report = send(&acme, IMPORT, "application/zip", bytes).await.expect(200).body;
    assert!(says(&report, "assets/*", "dropped"), "{report:#}");
    world.get("/npcs/in_a_zip").await.expect(200);
    // Somebody else's NPC of the same name is left alone.
    let mut bob = files::card();
    bob["data"]["name"] = json!("Innkeeper Bob");
    acme.post(IMPORT, bob).await.expect(200);
    assert_eq!(
        world.get("/npcs/innkeeper_bob").await.expect(200).body["description"],
        "A jovial innkeeper with a booming laugh."
    );
    world.get("/npcs/innkeeper_bob_2").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn cards_of_one_name_from_different_authors_stay_two() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let card = |creator: &str, fact: &str| {
        json!({ "spec": "chara_card_v2", "spec_version": "2.0", "data": { "name": "Wren", "description": fact, "creator": creator,
            "character_book": { "name": "Of Wren", "entries": [{ "id": 1, "keys": ["k"], "content": fact, "comment": "Fact" }] } } })
    };
    let import = "/v1/campaigns/port-town/import/character-card";
    for (creator, fact, created) in [("ann", "A thief.", 2), ("ben", "A nun.", 2), ("ann", "An old thief.", 0)] {
        let report = acme.post(import, card(creator, fact)).await.expect(200).body;
        assert_eq!(report["counts"]["created"], created, "{creator}: {report:#}");
    }
    let said = |npc: &Value| npc["description"].clone();
    assert_eq!(said(&world.get("/npcs/wren").await.expect(200).body), "An old thief.");
    assert_eq!(said(&world.get("/npcs/wren_2").await.expect(200).body), "A nun.");
    // They are two in another campaign as well, when they come from here.
    let other = server.tenant("other").await;
    let there = other.world().await;
    for slug in ["wren", "wren_2"] {
        let card = world.get(&format!("/npcs/{slug}/card.json")).await.expect(200).body;
        other.post(import, card).await.expect(200);
    }
    assert_eq!(said(&there.get("/npcs/wren").await.expect(200).body), "An old thief.");
    assert_eq!(said(&there.get("/npcs/wren_2").await.expect(200).body), "A nun.");
    // The picture of a card has no place here, which the report says.
    let picture = acme.request(reqwest::Method::GET, &world.path("/npcs/wren/card.png")).send().await.unwrap();
    let picture = picture.bytes().await.unwrap();
    let report = super::send(&other, import, "image/png", picture.to_vec()).await.expect(200).body;
    assert!(super::says(&report, "picture", "dropped"), "{report:#}");
}

/// A card with nulls where strings belong, as some sites write them.
fn with_nulls() -> Value {
    json!({ "spec": "chara_card_v2", "spec_version": "2.0", "data": {
        "name": "Mira", "description": "Keeper of the light.", "personality": "stern", "scenario": null, "first_mes": "Hello.",
        "mes_example": null, "creator_notes": null, "system_prompt": null, "post_history_instructions": null,
        "alternate_greetings": null, "tags": null, "creator": "anon", "character_version": null, "character_book": null,
        "extensions": null, "nickname": null, "x_other": null } })
}

#[tokio::test(flavor = "multi_thread")]
async fn nulls_are_never_exported_again() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    acme.post(IMPORT, with_nulls()).await.expect(200);
    let again = acme.post(IMPORT, with_nulls()).await.expect(200).body;
    assert_eq!(again["counts"], json!({ "created": 0, "updated": 0, "unchanged": 1 }), "{again:#}");
    let card = world.get("/npcs/mira/card.json").await.expect(200).body;
    let data = card["data"].as_object().unwrap();
    assert!(data.values().all(|value| !value.is_null()), "{card:#}");
    for name in
        ["scenario", "mes_example", "creator_notes", "system_prompt", "post_history_instructions", "character_version"]
    {
        assert_eq!(data[name], "", "{name}");
    }
    for name in ["alternate_greetings", "tags", "group_only_greetings"] {
        assert_eq!(data[name], json!([]), "{name}");
    }
    assert_eq!((&data["creator"], &data["first_mes"]), (&json!("anon"), &json!("Hello.")));
    assert_eq!(data["extensions"]["tavernkeep"]["slug"], "mira");
    // What went out comes back to the same NPC.
    let back = acme.post(IMPORT, card.clone()).await.expect(200).body;
    assert_eq!(back["counts"], json!({ "created": 0, "updated": 0, "unchanged": 1 }), "{back:#}");
    // Somebody else's program may write nulls into it.
    let mut theirs = card;
    theirs["data"]["tags"] = Value::Null;
    let back = acme.post(IMPORT, theirs).await.expect(200).body;
    assert_eq!(back["counts"], json!({ "created": 0, "updated": 0, "unchanged": 1 }), "{back:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn older_names_of_members_are_read() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let card = json!({ "char_name": "Mira", "char_persona": "{{CHAR}} keeps the lighthouse. <START>", "char_greeting": "Hello.",
        "world_scenario": "A storm.", "example_dialogue": "{{user}}: Hi.\n{{char}}: Who goes there?" });
    let report = acme.post(IMPORT, card.clone()).await.expect(200).body;
    assert_eq!(report["format"], "character_card_v1");
    for name in ["char_name", "char_persona", "char_greeting", "world_scenario", "example_dialogue"] {
        assert!(says(&report, &format!("/{name}"), "mapped"), "{name}: {report:#}");
    }
    let npc = world.get("/npcs/mira").await.expect(200).body;
    assert_eq!(npc["personality_prompt"].as_str().unwrap().trim(), "Mira keeps the lighthouse.");
    assert_eq!((&npc["scenario"], &npc["greetings"]), (&json!("A storm."), &json!(["Hello."])));
    assert_eq!(npc["example_dialogue"], card["example_dialogue"]);
    let again = acme.post(IMPORT, card).await.expect(200).body;
    assert_eq!(again["counts"]["unchanged"], 1, "{again:#}");
    // Some cards have both names; and some call it something else again.
    let both = json!({ "name": "Ada", "char_name": "Ada", "description": "A smith.", "char_persona": "Gruff.", "personality": "" });
    acme.post(IMPORT, both).await.expect(200);
    let npc = world.get("/npcs/ada").await.expect(200).body;
    assert_eq!((&npc["description"], &npc["personality_prompt"]), (&json!("A smith."), &json!("Gruff.")));
    let other = json!({ "name": "Ida", "context": "Ida sells fish.", "greeting": "Fish!", "example_dialogue": "" });
    acme.post(IMPORT, other).await.expect(200);
    let npc = world.get("/npcs/ida").await.expect(200).body;
    assert_eq!((&npc["description"], &npc["greetings"]), (&json!("Ida sells fish."), &json!(["Fish!"])));
    let nameless = acme.post(IMPORT, json!({ "char_persona": "Somebody." })).await.problem(422, "validation_failed");
    assert_eq!(nameless.pointers(), ["/name"]);
}

/// `<START>` stands between dialogues for programs. No model reads it.
#[tokio::test(flavor = "multi_thread")]
async fn separators_of_examples_reach_no_prompt() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    for (name, example, wanted) in [
        (
            "Mira",
            "<START>\n{{user}}: Hi.\n{{char}}: Who goes there?\n<START>\n",
            "\nAlice: Hi.\nMira: Who goes there?\n<",
        ),
        ("Ada", "<start>\n{{USER}}: One.\n<Start>\n<START>\n<BOT>: Two.", "\nAlice: One.\n---\nAda: Two.\n<"),
        ("Ida", "<START>", ""),
        ("Ela", " <START>\n<START> ", ""),
    ] {
        let card = json!({ "spec": "chara_card_v2", "spec_version": "2.0", "data": { "name": name, "description": "Keeper.",
            "personality": "stern", "mes_example": example, "alternate_greetings": [], "tags": [], "extensions": {} } });
        acme.post(IMPORT, card).await.expect(200);
        let slug = name.to_lowercase();
        let prompt = world.prompt(&slug, "player_alice", "Hello.").await;
        let text: String =
            prompt["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect();
        assert!(!text.to_lowercase().contains("<start>"), "{text}");
        let told = text.split_once("<example_dialogue>").map_or("", |(_, told)| told);
        match wanted {
            // The rules of the prompt name the element.
            "" => assert!(!text.contains("</example_dialogue>"), "{text}"),
            wanted => assert!(told.contains(wanted) || text.contains(wanted), "{text}"),
        }
        let back = world.get(&format!("/npcs/{slug}/card.json")).await.expect(200).body;
        assert_eq!(back["data"]["mes_example"], example, "it is exported as it was");
    }
}

/// A picture whose chunk of this kind, and with these first bytes, has a wrong checksum.
fn with_wrong_checksum(picture: &[u8], kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut picture = picture.to_vec();
    let begin = [kind.as_slice(), data].concat();
    let at = picture.windows(begin.len()).position(|bytes| bytes == begin).unwrap();
    let length = u32::from_be_bytes(picture[at - 4..at].try_into().unwrap());
    let crc = at + 4 + usize::try_from(length).unwrap();
    picture[crc] ^= 0xff;
    picture
}

#[tokio::test(flavor = "multi_thread")]
async fn checksums_matter_where_the_card_is() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let response =
        acme.request(reqwest::Method::GET, &world.path("/npcs/innkeeper_bob/card.png")).send().await.unwrap();
    let sound = response.bytes().await.unwrap().to_vec();
    let mut edited = sound.clone();
    let end = edited.split_off(edited.len() - 12);
    let text = b"tEXtSoftware\0old editor";
    edited.extend([&u32::try_from(text.len() - 4).unwrap().to_be_bytes()[..], text, &[0; 4], &end].concat());
    for (name, picture) in [
        ("another text", edited),
        ("the pixels", with_wrong_checksum(&sound, b"IDAT", b"")),
        ("the palette", with_wrong_checksum(&sound, b"PLTE", b"")),
        ("one of two cards", with_wrong_checksum(&sound, b"tEXt", b"ccv3")),
        ("the other", with_wrong_checksum(&sound, b"tEXt", b"chara")),
    ] {
        let report = send(&acme, IMPORT, "image/png", picture).await.expect(200).body;
        assert_eq!(report["items"][0]["slug"], "innkeeper_bob", "{name}");
        let told = report["fields"]
            .as_array()
            .unwrap()
            .iter()
            .any(|field| field["reason"].as_str().is_some_and(|why| why.contains("checksum")));
        assert!(told, "{name}: {report:#}");
    }
    let neither = with_wrong_checksum(&with_wrong_checksum(&sound, b"tEXt", b"ccv3"), b"tEXt", b"chara");
    let refused = send(&acme, IMPORT, "image/png", neither).await.problem(422, "validation_failed");
    assert!(refused.text.contains("checksum"), "{}", refused.text);
}
