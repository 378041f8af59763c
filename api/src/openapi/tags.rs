//! The groups of operations in the document, each with a description, in reading order.

use serde_json::{Value, json};

const TAGS: &[(&str, &str)] = &[
    ("service", "The state of the server and the description of its API. No credential is needed."),
    ("auth", "API keys, and the short-lived access tokens that they are exchanged for."),
    ("tenant", "The tenant's settings, what it has used, and the erasure of people's words."),
    ("models", "Model profiles: which endpoints and models answer, and how they are asked."),
    ("users", "The people who sign in to the editor."),
    ("campaigns", "Campaigns, their forks, and the journal of all changes."),
    ("characters", "Player characters with their sheets."),
    ("npcs", "Characters that the AI speaks for."),
    (
        "owners",
        "Groups and institutions with their own AI. Each watches over a location, a race, a profession or a faction.",
    ),
    ("lore", "Texts about the world that can go into prompts, and who may know them."),
    ("scenes", "Places where messages are written, and what is in them."),
    ("player-links", "Links with which people without an account play a character in a browser."),
    ("messages", "What was said and rolled at the table."),
    ("memories", "What NPCs and owners remember, and what was told to many of them at once."),
    ("encounters", "Fights: starting them, acting in them, ending them, and committing the result to the campaign."),
    ("rules", "The rules of SRD 5.1: rests, checks that a model chooses, tables."),
    ("dice", "Rolls in Foundry's dice syntax, with fair dice that anybody can verify."),
    ("commands", "What a player can ask for, by name or in plain words."),
    ("tools", "What the AI of an NPC or owner can call. A frontend can call the same tools in its place."),
    ("turns", "Turns of the AI: starting, following, cancelling and undoing them."),
    (
        "significance",
        "What characters do, how much their actions matter to NPCs and owners, and how these react by themselves: reactions, prayers, replies.",
    ),
    ("prompts", "The prompt that a model would receive, without calling the model."),
    ("sessions", "Frontends at the table: what they report, and what changed since the AI's last turn."),
    ("imports", "Campaigns, character cards and lorebooks as files."),
];

/// Adds the groups to the document.
pub fn list(document: &mut Value) {
    document["tags"] = TAGS.iter().map(|(name, says)| json!({ "name": name, "description": says })).collect();
}
