//! Any text as a frame of the bridge: it is parsed or rejected without a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ai::frontends::frames::Incoming;

fuzz_target!(|text: &str| {
    match Incoming::read(text) {
        Ok(frame) => assert!(!frame.members.contains_key("data")),
        Err(unreadable) => assert!(unreadable.error.code.status() < 500),
    }
});
