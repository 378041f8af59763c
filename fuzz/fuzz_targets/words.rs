//! Any text as various short inputs: times, email addresses, model endpoints, keys, and text within a fence.

#![no_main]

use libfuzzer_sys::fuzz_target;
use base::clock;
use llm::Endpoint;
use ai::prompt::fence;
use edge::{caller::keys, users::email};

fuzz_target!(|text: &str| {
    if let Some(time) = clock::parse(text) {
        let _ = clock::later(time, time::Duration::MAX);
    }
    let _ = clock::parse_day(text);
    assert_eq!(email::fold(&email::fold(text)), email::fold(text));
    let _ = email::check(text, &());
    let _ = keys::prefix_of(text);
    let _ = Endpoint::untrusted(text, None, "model");
    let mut fenced = String::new();
    fence::put(&mut fenced, "lore", &[("title", text)], text);
    assert_eq!(fenced.matches("</lore>").count(), 1);
    assert_eq!(fenced.matches("<lore").count(), 1);
});
