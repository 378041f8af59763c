//! Readers meet anything: damaged files, and JSON of any shape in any place. They read or refuse, and what was read can be written.

use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};
use world::interchange::{book, card, report::Losses, service};

use super::files;

/// Reads bytes as everything there is, and writes what was read.
fn all(bytes: &[u8]) {
    if let Ok(read) = card::read(bytes, &mut Losses::default()) {
        let lore: Vec<_> = read.book.into_iter().flat_map(|book| book.entries).map(|entry| entry.lore).collect();
        let written = card::write(&read.npc, &read.owners, &lore);
        let picture = card::picture(&written).unwrap();
        card::read(&picture, &mut Losses::default()).expect("a card of ours is read again");
    }
    if let Ok(read) = book::read(bytes, &mut Losses::default()) {
        let mut uids = book::write::Uids::default();
        for entry in &read.entries {
            let _ = book::write::world_info_entry(&entry.lore, "", &mut uids);
            let _ = book::write::card_entry(&entry.lore, "", &mut uids);
        }
    }
    let _ = service::guess("c", None, bytes);
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|n| json!(n)),
        "[ -~äß漢\\{\\}@/|()\\[\\]*+?\n]{0,24}".prop_map(Value::from),
        Just(json!("{{char}} {{random:a,b}} {{")),
        Just(json!("@@activate\n@@scan_depth x\ntext")),
        Just(json!("/(a|b)c?/i")),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec(("[a-z]{1,6}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Puts a value at a place of a document, whichever that number means.
fn put(document: &mut Value, place: usize, value: Value) {
    let mut pointers = Vec::new();
    walk(document, &mut String::new(), &mut pointers);
    let pointer = &pointers[place % pointers.len()];
    *document.pointer_mut(pointer).unwrap() = value;
}

fn walk(value: &Value, at: &mut String, found: &mut Vec<String>) {
    found.push(at.clone());
    let length = at.len();
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                at.push_str(&format!("/{}", name.replace('~', "~0").replace('/', "~1")));
                walk(member, at, found);
                at.truncate(length);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                at.push_str(&format!("/{i}"));
                walk(item, at, found);
                at.truncate(length);
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn json_of_any_shape_in_any_place(is_card in any::<bool>(), changes in vec((any::<usize>(), anything()), 1..4)) {
        let mut document = if is_card { files::card() } else { files::world_info() };
        for (place, value) in changes {
            put(&mut document, place, value);
        }
        all(document.to_string().as_bytes());
    }

    #[test]
    fn damaged_bytes(is_picture in any::<bool>(), changes in vec((any::<usize>(), any::<u8>()), 1..6), cut in any::<usize>()) {
        let mut bytes = if is_picture { files::picture("chara", &files::card()) } else { files::card().to_string().into_bytes() };
        for (place, byte) in changes {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        if cut % 3 == 0 {
            let cut = cut % bytes.len();
            bytes.truncate(cut);
        }
        all(&bytes);
    }
}
