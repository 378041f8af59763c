//! Any text as a model's reply: it is read in every dialect without a panic, whole or piece by piece, and stays bounded.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tavernkeep::llm::{ReplyMode, reply};

fuzz_target!(|text: &str| {
    let read = reply::parse_text(text);
    assert!(read.narrative.len() <= reply::NARRATIVE_BYTES_MAX);
    assert!(read.calls.len() <= reply::CALLS_PER_REPLY_MAX);
    for mode in [ReplyMode::Native, ReplyMode::Xml] {
        let mut partial = reply::Partial::new(mode);
        text.split_inclusive(' ').for_each(|piece| drop(partial.push(piece)));
    }
    let _ = reply::without_thinking(text);
});
