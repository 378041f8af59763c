//! Any bytes as the body of an endpoint's answer: it is read without a panic, within bounds, and the same however it is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|given: (&[u8], u8)| {
    let (body, piece_bytes) = given;
    let whole = llm::read_recorded(body, body.len());
    let pieces = llm::read_recorded(body, piece_bytes.into());
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => {
            assert_eq!((whole.text, &whole.tool_calls), (pieces.text, &pieces.tool_calls));
            assert!(whole.tool_calls.len() <= 256);
        }
        (Err(whole), Err(pieces)) => assert_eq!(whole, pieces),
        (whole, pieces) => panic!("{whole:?} or {pieces:?}"),
    }
});
