//! Any bytes as a character card, as a lorebook and as a file of any kind: they are read or rejected quickly and without a panic. A card
//! that was read can be written again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use world::interchange::{book, card, report::Losses, service};

fuzz_target!(|data: &[u8]| {
    if let Ok(read) = card::read(data, &mut Losses::default()) {
        let lore: Vec<_> = read.book.into_iter().flat_map(|book| book.entries).map(|entry| entry.lore).collect();
        let written = card::write(&read.npc, &read.owners, &lore);
        let picture = card::picture(&written).unwrap();
        // We can read our own pictures.
        card::read(&picture, &mut Losses::default()).unwrap();
    }
    if let Ok(read) = book::read(data, &mut Losses::default()) {
        let mut uids = book::write::Uids::default();
        for entry in &read.entries {
            let _ = book::write::world_info_entry(&entry.lore, "", &mut uids);
        }
    }
    let _ = service::guess("c", None, data);
});
