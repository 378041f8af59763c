//! Cards and books of our own making, as other programs write them.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use world::interchange::png;

/// A card of V3 with something in every field.
pub fn card() -> Value {
    serde_json::from_str(include_str!("golden/card.json")).unwrap()
}

/// A card in a picture, in the text chunk of that name.
pub fn picture(keyword: &str, card: &Value) -> Vec<u8> {
    png::picture([7; 32], &[(keyword, STANDARD.encode(card.to_string()).as_bytes())])
}

/// A world info of SillyTavern.
pub fn world_info() -> Value {
    serde_json::from_str(include_str!("golden/world-info.json")).unwrap()
}
