//! Any text as JSON: it is read or rejected without a panic, and a value that was read is equal after writing and
//! reading it again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use base::json;

fuzz_target!(|text: &str| {
    if let Ok(value) = json::read("The text", text) {
        let written = value.to_string();
        assert_eq!(json::read("The text", &written).unwrap(), value);
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
    }
});
