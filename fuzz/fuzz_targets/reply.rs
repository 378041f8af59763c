//! Any text as a model's reply: it is parsed in every dialect, whole or piece by piece, without a panic and within
//! bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use llm::{ReplyMode, reply};

fuzz_target!(|text: &str| {
    let read = reply::parse_text(text);
    assert!(read.narrative.len() <= reply::NARRATIVE_BYTES_MAX);
    assert!(read.calls.len() <= reply::CALLS_PER_REPLY_MAX);
    for mode in [ReplyMode::Native, ReplyMode::Xml] {
        let mut partial = reply::Partial::new(mode);
        text.split_inclusive(' ').for_each(|piece| drop(partial.push(piece)));
    }
    for takes_calls in [false, true] {
        let mut aside = reply::Aside::new(takes_calls, false);
        text.split_inclusive(' ').for_each(|piece| drop(aside.push(piece)));
        aside.finish();
    }
});
