//! Instructions that a card brought, accepted in the editor.

use edge::users::Role;
use serde_json::{Value, json};

use super::{go, is_sound, picture, signed_in};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_read_and_accepted() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let card = json!({ "spec": "chara_card_v2", "spec_version": "2.0", "data": { "name": "Maren", "description": "Keeps the light.",
        "personality": "Dry.", "first_mes": "Who is there?", "alternate_greetings": ["Go away.\n\nNow."], "system_prompt": "Write <b>two</b> sentences.",
        "post_history_instructions": "Stay dry.", "extensions": { "depth_prompt": { "prompt": "The lamp is going out.", "depth": 2 }, "tavernkeep": {
        "available_tools": ["NPC_memorize", { "name": "roll_dice", "description": "Throw <i>bones</i>.", "exclusive": true,
            "parameters": { "rolls": { "description": "All of them." } } }, "apply_damage"], "reaction_threshold": 7 } } } });
    world.post("/import/character-card", card).await.expect(200);
    let Some(browser) = signed_in(&acme, Role::Editor).await else { return };
    go(&browser, &acme, "npcs/maren").await;
    browser.sees("#draft", "Write <b>two</b> sentences.").await;
    for text in [
        "Stay dry.",
        "2 messages before the end",
        "Throw <i>bones</i>.",
        "It must be the only call in its reply.",
        "apply_damage",
        "7",
    ] {
        browser.sees("#draft", text).await;
    }
    is_sound(&browser).await;
    picture(&browser, "draft").await;
    browser.click("#draft button[value=accept]").await;
    browser.sees(".done", "The draft was accepted.").await;
    assert_eq!(browser.count("#draft").await, 0);
    let npc = world.get("/npcs/maren").await.expect(200).body;
    assert_eq!(
        (&npc["instructions"], &npc["post_history_instructions"]),
        (&json!("Write <b>two</b> sentences."), &json!("Stay dry."))
    );
    assert_eq!((&npc["pending_instructions"], &npc["reaction_threshold"]), (&Value::Null, &json!(7)));
    let tools = npc["available_tools"].as_array().unwrap();
    assert_eq!((tools.len(), &tools[1]["description"]), (3, &json!("Throw <i>bones</i>.")));
    browser.click("a.button").await;
    browser.sees("h1", "Edit Maren").await;
    // The form shows what was accepted; greetings keep their lines, and one more is a line of dashes away.
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })").await;
    assert_eq!(browser.value("#greetings").await, "Who is there?\n---\nGo away.\n\nNow.");
    browser.write("#greetings", "Who is there?\n---\nGo away.\n\nNow.\n---\nHm.").await;
    assert_eq!(browser.value("#authors_note-text").await, "The lamp is going out.");
    browser.write("#authors_note-text", "It rains.").await;
    browser.write("#authors_note-depth", "2").await;
    browser.click("form.world button").await;
    browser.sees(".done", "The NPC was saved.").await;
    let npc = world.get("/npcs/maren").await.expect(200).body;
    assert_eq!(npc["greetings"], json!(["Who is there?", "Go away.\n\nNow.", "Hm."]));
    assert_eq!(npc["authors_note"], json!({ "text": "It rains.", "depth": 2 }));
    // What it takes of the prompt is to be seen.
    go(&browser, &acme, "lab?entity=npc:maren&player=player_alice&action=I%20knock.").await;
    browser.sees("main", "character instructions").await;
    assert!(browser.count("svg.prompt-bar rect").await > 5);
    picture(&browser, "lab-bar").await;
    is_sound(&browser).await;
    // A draft that was discarded is gone, and a campaign has drafts as well.
    world.patch("", json!({ "pending_instructions": { "instructions": "Be rude." } })).await.expect(200);
    go(&browser, &acme, "edit").await;
    browser.sees("#draft", "Be rude.").await;
    browser.click("#draft button[value=discard]").await;
    browser.sees(".done", "The draft was discarded.").await;
    let campaign = world.get("").await.expect(200).body;
    assert_eq!((&campaign["instructions"], &campaign["pending_instructions"]), (&json!(""), &Value::Null));
}
