//! Any text as a query, with a cursor in it: it is parsed or rejected without a panic, and a parsed one is within its
//! limits.

#![no_main]

use libfuzzer_sys::fuzz_target;
use edge::http::paging::{parameters, NoFilter, Page};

fuzz_target!(|query: &str| {
    let _ = parameters(query);
    if let Ok(page) = Page::<NoFilter>::parse(query) {
        assert!((1..=200).contains(&page.limit));
        assert!(page.q.is_none_or(|q| q.chars().count() <= 200));
    }
});
