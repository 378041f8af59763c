//! The groups of operations, with a sentence each, in the order in which a reader meets them.

use serde_json::{Value, json};

const TAGS: &[(&str, &str)] = &[
    ("service", "Whether the server works, and its own description; asked without a credential."),
    ("auth", "API keys, and the short-lived access tokens that they are exchanged for."),
    ("tenant", "The tenant's settings, what it has used, and the erasure of people's words."),
    ("users", "The people who sign in to the editor."),
    ("campaigns", "Worlds: each campaign, its copies, and the journal of everything that changes in it."),
    ("characters", "Player characters with their sheets."),
    ("npcs", "Characters that an AI plays."),
    ("owners", "AI entities that watch over a place, a people, a profession or a faction."),
    ("lore", "What is known of the world, entry by entry, and who may know it."),
    ("scenes", "Places where something happens, and what stands in them."),
    ("messages", "What was said and rolled at the table."),
    ("memories", "What NPCs and owners remember, and what was told to many of them at once."),
    ("encounters", "Fights: begun, acted in, ended, and written into the records of those who took part."),
    ("rules", "The rules of SRD 5.1 at work: rests, checks that a model chooses, tables."),
    ("dice", "Rolls in Foundry's language from fair, verifiable streams."),
    ("commands", "What a player may ask for, by name or in plain words."),
    ("tools", "What an AI entity may call; a frontend may call it in its place."),
    ("turns", "One answer of an AI entity with everything it did: started, followed, cancelled, undone."),
    ("prompts", "What a model would be sent, without sending it."),
    ("sessions", "Frontends at the table: what they report, and what changed since the AI's last turn."),
    ("imports", "Campaigns, character cards and lorebooks as files."),
];

/// Lists the groups.
pub fn list(document: &mut Value) {
    document["tags"] = TAGS.iter().map(|(name, says)| json!({ "name": name, "description": says })).collect();
}
