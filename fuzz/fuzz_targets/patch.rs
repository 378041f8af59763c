//! Any two values as a document and a merge patch: the result is what RFC 7396 says, and applying the patch again changes nothing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use base::json;
use edge::http::patch;

fuzz_target!(|texts: (&str, &str)| {
    let (Ok(document), Ok(change)) = (json::read("The text", texts.0), json::read("The text", texts.1)) else { return };
    let mut once: Value = document.clone();
    patch::merge(&mut once, change.clone());
    let mut twice = once.clone();
    patch::merge(&mut twice, change.clone());
    assert_eq!(once, twice);
    let _ = patch::apply(document, change, &["id"]);
});
