//! Any pattern and any text: the pattern is rejected, or it replaces within its limits of time and bytes, without a
//! panic.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use world::lore::bulk::replace::{Replace, Replacer};

fuzz_target!(|given: (&str, &str, &str, u8)| {
    let (find, with, text, flags) = given;
    let replace: Replace = serde_json::from_value(serde_json::json!({
        "find": find, "with": with, "regex": flags & 1 == 1, "ignore_case": flags & 2 == 2, "whole_word": flags & 4 == 4,
    }))
    .unwrap();
    let Ok(replacer) = Replacer::new(&replace, Duration::from_millis(200)) else { return };
    if let Ok(Some(replaced)) = replacer.run(text, 10_000) {
        assert!(replaced.len() <= 10_000);
    }
});
