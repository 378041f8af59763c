//! Files that mean no good: refused with a reason, soon, and nothing is left of them.

use std::io::Write;

use serde_json::json;

use super::{files, says, send};
use crate::support::{Server, counts};

fn damaged(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = files::picture("chara", &files::card());
    change(&mut bytes);
    bytes
}

fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// A picture with another chunk before its end.
pub fn with_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut bytes = world::interchange::png::picture([1; 32], &[]);
    let end = bytes.split_off(bytes.len() - 12);
    bytes.extend(chunk(kind, data));
    bytes.extend(end);
    bytes
}

pub fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let covered = [kind.as_slice(), data].concat();
    let mut sum = flate2::Crc::new();
    sum.update(&covered);
    let length = u32::try_from(data.len()).unwrap().to_be_bytes();
    [&length[..], &covered, &sum.sum().to_be_bytes()].concat()
}

/// A text chunk of a card, packed.
fn packed(text: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::ZlibEncoder::new(b"chara\0\0".to_vec(), flate2::Compression::best());
    out.write_all(text).unwrap();
    with_chunk(b"zTXt", &out.finish().unwrap())
}

/// A picture that says it is this wide and high.
fn sized(width: u32, height: u32) -> Vec<u8> {
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[1, 3, 0, 0, 0]].concat();
    damaged(|bytes| {
        bytes.splice(8..33, chunk(b"IHDR", &header));
    })
}

fn shrunk(name: &str, size: usize) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in [("card.json", files::card().to_string().into_bytes()), (name, vec![0; size])] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(&bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_mean_no_good_are_refused_with_a_reason() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    acme.world().await;
    let before = counts(&server).await;
    let bomb = zipped(&[("card.json", &vec![b' '; 20 * 1024 * 1024])]);
    let many: Vec<_> = (0..2100).map(|n| format!("assets/{n}")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|n| (n.as_str(), &b""[..])).collect();
    let card = files::card().to_string();
    let mut deep = "[".repeat(100_000);
    deep.push_str(&"]".repeat(100_000));
    let values = format!("{{\"name\":\"x\",\"description\":\"\",\"y\":[{}0]}}", "0,".repeat(1_100_000));
    let length = |bytes: &mut Vec<u8>, value: u32| bytes[8..12].copy_from_slice(&value.to_be_bytes());
    let cases: Vec<(&str, Vec<u8>, u16, &str)> = vec![
        ("a wrong checksum", damaged(|b| b[40] ^= 1), 422, "checksum"),
        ("cut short", damaged(|b| b.truncate(200)), 422, "middle of a chunk"),
        ("a chunk longer than the file", damaged(|b| length(b, 0x7fff_fff0)), 422, "middle of a chunk"),
        ("a length out of range", damaged(|b| length(b, u32::MAX)), 422, "out of range"),
        ("no card in it", world::interchange::png::picture([1; 32], &[]), 422, "no text chunk"),
        ("no base64", world::interchange::png::picture([1; 32], &[("chara", b"%%%")]), 422, "not base64"),
        ("a picture without an end", sized(60_000, 60_000), 422, "60000 by 60000 pixels"),
        ("a picture of nothing", sized(0, 1), 422, "0 by 1 pixels"),
        ("a packed text that is too large", packed(&vec![b'A'; 200 << 20]), 422, "too large"),
        ("a packed text that is none", with_chunk(b"zTXt", b"chara\0\0xyz"), 422, "cannot be unpacked"),
        ("a packed text of another way", with_chunk(b"zTXt", b"chara\0\x01xyz"), 422, "unknown way"),
        ("an asset that is a bomb", shrunk("assets/icon.png", 40 << 20), 422, "assets/icon.png"),
        ("a zip bomb", bomb, 422, "more than 8388608 bytes"),
        ("a path out", zipped(&[("card.json", card.as_bytes()), ("../../etc/passwd", b"x")]), 422, "leads out"),
        ("a path from the root", zipped(&[("/card.json", card.as_bytes())]), 422, "leads out"),
        ("an archive without a card", zipped(&[("other.json", b"{}")]), 422, "card.json"),
        ("too many entries", zipped(&many), 422, "entries"),
        // They are counted before the directory is read, which has no end here.
        (
            "too many entries without an end",
            zipped(&many)[..zipped(&many).len() - 22].to_vec(),
            422,
            "more than 2000 entries",
        ),
        ("no zip after all", b"PK\x03\x04 and nothing".to_vec(), 422, "archive"),
        ("depth", deep.into_bytes(), 400, "64 levels deep"),
        ("too many values", values.into_bytes(), 400, "1000000 values"),
        ("a key twice", br#"{"name":"a","description":"x","name":"b"}"#.to_vec(), 400, "`name` occurs twice"),
        ("no UTF-8", b"{\"name\":\"\xff\"}".to_vec(), 400, "not UTF-8"),
        ("a name of control characters", br#"{"name":"\u0000\u0007","description":"x"}"#.to_vec(), 422, "/name"),
        ("no JSON", b"hello".to_vec(), 400, "not valid JSON"),
        ("no card", b"{}".to_vec(), 422, "not a character card"),
        ("no name", br#"{"description":"x"}"#.to_vec(), 422, "/name"),
        ("nothing", Vec::new(), 400, "empty"),
    ];
    for (what, bytes, status, reason) in cases {
        let answer =
            send(&acme, "/v1/campaigns/port-town/import/character-card", "application/octet-stream", bytes).await;
        assert_eq!(answer.status, status, "{what}: {}", answer.text);
        assert_eq!(answer.header("content-type"), "application/problem+json", "{what}");
        assert!(answer.text.contains(reason), "{what}: {}", answer.text);
    }
    for book in
        [json!({ "entries": {} }), json!({ "entries": 7 }), json!({ "entries": { "0": 1 } }), json!("x"), json!({})]
    {
        acme.post("/v1/campaigns/port-town/import/lorebook", book).await.problem(422, "validation_failed");
    }
    send(&acme, "/v1/campaigns/port-town/import/lorebook", "text/html", b"{}".to_vec())
        .await
        .problem(415, "unsupported_media_type");
    let big = vec![b' '; 32 * 1024 * 1024 + 1];
    send(&acme, "/v1/campaigns/import", "application/json", big).await.problem(413, "payload_too_large");
    assert_eq!(counts(&server).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_texts_and_wild_patterns_are_brought_within_bounds() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let mut card = files::card();
    card["data"]["description"] = json!("ü".repeat(50_000));
    card["data"]["creator_notes"] = json!("n".repeat(80_000));
    card["data"]["name"] = json!("A\u{7}long\nname".to_owned() + &" x".repeat(300));
    let report = acme.post("/v1/campaigns/port-town/import/character-card", card).await.expect(200).body;
    assert!(says(&report, "/data/description", "approximated"), "{report:#}");
    assert!(says(&report, "/data/creator_notes", "dropped"), "{report:#}");
    let keys: Vec<_> = (0..500)
        .map(|n| format!("key {n}"))
        .chain(["/(a|b){1,9999}/".into(), "/((((x)+)+)+)+/".into(), format!("/{}/", "(".repeat(5000))])
        .collect();
    let book = json!({ "entries": { "0": { "key": keys, "content": "@@scan_depth 3\n@@exclude_keys night,fog\n@@unheard of\nText {{", "order": 1e19 } } });
    let report = acme.post("/v1/campaigns/port-town/import/lorebook?name=wild", book).await.expect(200).body;
    let lore = world.get(&format!("/lore/{}", report["items"][0]["slug"].as_str().unwrap())).await.expect(200).body;
    assert_eq!(lore["keys"].as_array().unwrap().len(), 100);
    assert_eq!(
        (&lore["scan_depth"], &lore["logic"], &lore["secondary_keys"]),
        (&json!(3), &json!("not_any"), &json!(["night", "fog"]))
    );
    assert_eq!((&lore["content"], &lore["priority"]), (&json!("Text {{"), &json!(1_000_000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn macros_are_filled_in_once_and_not_beyond_the_length() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let mut card = files::card();
    card["data"]["name"] = json!("A<bot>{{char}}B");
    card["data"]["description"] = json!("<char>".repeat(50_000));
    card["data"]["nickname"] = json!("");
    card["data"]["personality"] = json!("I am {{char}}.");
    let path = "/v1/campaigns/port-town/import/character-card";
    let report = acme.post(path, card.clone()).await.expect(200).body;
    assert!(says(&report, "/data/description", "approximated"), "{report:#}");
    let npc = world.get(&format!("/npcs/{}", report["items"][0]["slug"].as_str().unwrap())).await.expect(200).body;
    let description = npc["description"].as_str().unwrap();
    assert_eq!(description.chars().count(), 20_000);
    assert!(description.starts_with("A<bot>{{char}}BA<bot>{{char}}B"), "what was put in was read again");
    assert!(npc["personality_prompt"].as_str().unwrap().starts_with("I am A<bot>{{char}}B."), "{npc:#}");
    // Entries that are small each can be much together.
    card["data"]["name"] = json!("<bot>".repeat(40));
    let entries: Vec<_> = (0..1000)
        .map(|n| json!({ "keys": [format!("k{n}")], "content": "<bot>".repeat(600), "extensions": {} }))
        .collect();
    card["data"]["character_book"] = json!({ "entries": entries });
    let answer = acme.post(path, card).await.problem(422, "validation_failed");
    assert!(answer.text.contains("With its macros filled in"), "{}", answer.text);
}
