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
        "disposition": "jolly" })).await.expect(200);
    let secret = json!({ "title": "The cellar", "scope": "zone", "associated_id": "inn", "content": "Smugglers.", "secret": true,
        "known_by": ["innkeeper_bob"], "activation": "keyword", "keys": ["cellar"], "tags": ["plot"], "ai_lock": true });
    world.post("/lore", secret).await.expect(201);
    let response =
        acme.request(reqwest::Method::GET, &world.path("/npcs/innkeeper_bob/card.png")).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "image/png");
    let bytes = response.bytes().await.unwrap().to_vec();
    // Programs that know V2 alone read one of its texts, the others the other.
    let texts = png::texts(&bytes, |_| true).unwrap();
    let specs: Vec<_> = texts
        .iter()
        .map(|(keyword, text)| {
            let card: Value = serde_json::from_slice(&STANDARD.decode(text).unwrap()).unwrap();
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
