//! Any Markdown from worldbuilders as HTML: the result never contains a script, an event handler or an image from
//! elsewhere.

#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;

#[path = "../../pages/src/admin/markdown.rs"]
mod markdown;

fuzz_target!(|text: &str| {
    let html = markdown::render(text, &HashMap::new()).to_ascii_lowercase();
    for tag in ["<script", "<img", "<iframe", "<style", "<object", "<svg"] {
        assert!(!html.contains(tag), "{tag}");
    }
});
