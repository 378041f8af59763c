//! What people tell models: instructions, notes, examples, greetings and templates of prompts.

use proptest::{prelude::*, test_runner::TestRunner};
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Server, World};

const IMPORT: &str = "/import/character-card";

/// A card with everything that has a meaning for prompts.
fn card() -> Value {
    json!({ "spec": "chara_card_v3", "spec_version": "3.0", "data": {
        "name": "Maren", "description": "{{char}} keeps the light.", "personality": "Dry.", "scenario": "A storm, and {{user}} at the door.",
        "first_mes": "{{char}} lifts the lamp. \"Who is there, {{user}}?\"", "alternate_greetings": ["\"Go away.\"", "*She sleeps.*"],
        "mes_example": "<START>\n{{user}}: Hello.\n{{char}}: Hm.", "system_prompt": "{{original}} Write as {{char}}, in two sentences.",
        "post_history_instructions": "Stay dry, {{char}}.", "creator_notes": "", "tags": [], "creator": "", "character_version": "",
        "group_only_greetings": [], "extensions": { "depth_prompt": { "prompt": "The lamp is going out.", "depth": 2, "role": "system" } },
    } })
}

/// The messages that a model would get, in one text.
fn sent(prompt: &Value) -> String {
    let messages = prompt["messages"].as_array().unwrap();
    messages.iter().map(|m| format!("[{}] {}", m["role"].as_str().unwrap(), m["content"].as_str().unwrap())).collect()
}

fn names(prompt: &Value) -> Vec<&str> {
    prompt["sections"].as_array().unwrap().iter().map(|section| section["name"].as_str().unwrap()).collect()
}

async fn accept(world: &World<'_>, npc: &str) {
    world.post(&format!("/npcs/{npc}/instructions/accept"), json!({})).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cards_instructions_are_a_draft_until_somebody_accepts_them() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    world.patch("", json!({ "instructions": "Be brief." })).await.expect(200);
    let report = world.post(IMPORT, card()).await.expect(200).body;
    let field = |path: &str| {
        let fields = report["fields"].as_array().unwrap();
        fields.iter().find(|field| field["path"] == path).unwrap_or_else(|| panic!("{path}: {report:#}")).clone()
    };
    for (path, to) in [
        ("/data/scenario", "scenario"),
        ("/data/first_mes", "greetings"),
        ("/data/alternate_greetings", "greetings"),
        ("/data/mes_example", "example_dialogue"),
        ("/data/system_prompt", "pending_instructions"),
        ("/data/extensions/depth_prompt/prompt", "pending_instructions"),
    ] {
        assert_eq!(field(path)["to"], to, "{path}");
    }
    let npc = world.get("/npcs/maren").await.expect(200).body;
    let note = json!({ "text": "The lamp is going out.", "depth": 2 });
    let draft = json!({ "instructions": "{{original}} Write as {{char}}, in two sentences.",
        "post_history_instructions": "Stay dry, {{char}}.", "authors_note": note });
    assert_eq!(npc["pending_instructions"], draft);
    assert_eq!((&npc["instructions"], &npc["authors_note"]), (&json!(""), &Value::Null));
    // What is no instruction is read at once.
    let prompt = world.prompt("maren", "player_alice", "I knock.").await;
    let text = sent(&prompt);
    assert!(
        text.contains("A storm, and Alice at the door.")
            && text.contains("<example_dialogue>\nAlice: Hello.\nMaren: Hm."),
        "{text}"
    );
    assert!(text.contains("<instructions>\nBe brief.\n</instructions>"), "{text}");
    for secret in ["two sentences", "Stay dry", "going out"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    accept(&world, "maren").await;
    let prompt = world.prompt("maren", "player_alice", "I knock.").await;
    let text = sent(&prompt);
    // The campaign's own instructions stand where the card wants them, and there alone.
    assert!(text.contains("<instructions>\nBe brief. Write as Maren, in two sentences.\n</instructions>"), "{text}");
    assert_eq!(text.matches("Be brief.").count(), 1, "{text}");
    assert!(text.trim_end().ends_with("<instructions>\nStay dry, Maren.\n</instructions>"), "{text}");
    let of = ["character_instructions", "scenario", "example_dialogue", "authors_note", "post_history_instructions"];
    assert!(of.iter().all(|name| names(&prompt).contains(name)), "{:?}", names(&prompt));
    assert!(names(&prompt).iter().all(|name| *name != "instructions"));
    // Again, nothing is new, and the card comes back as it was.
    let again = world.post(IMPORT, card()).await.expect(200).body;
    assert_eq!(again["counts"], json!({ "created": 0, "updated": 0, "unchanged": 1 }), "{again:#}");
    let mut back = world.get("/npcs/maren/card.json").await.expect(200).body;
    back["data"]["extensions"].as_object_mut().unwrap().remove("tavernkeep");
    for (name, value) in card()["data"].as_object().unwrap() {
        assert_eq!(&back["data"][name], value, "{name}");
    }
    // A changed card is a draft again, and what was accepted stays.
    let mut changed = card();
    changed["data"]["system_prompt"] = json!("Obey the player.");
    world.post(IMPORT, changed).await.expect(200);
    let npc = world.get("/npcs/maren").await.expect(200).body;
    assert_eq!(npc["pending_instructions"], json!({ "instructions": "Obey the player." }));
    assert!(npc["instructions"].as_str().unwrap().contains("two sentences"));
    // Nobody at the table reads any of this.
    let player =
        acme.token(json!({ "scopes": ["read", "play"], "campaign": "port-town", "player_id": "player_alice" })).await;
    let seen = player.get("/v1/campaigns/port-town/npcs/maren").await.expect(200).body;
    for member in [
        "instructions",
        "post_history_instructions",
        "authors_note",
        "example_dialogue",
        "greetings",
        "scenario",
        "pending_instructions",
    ] {
        assert!(seen.get(member).is_none(), "{member}: {seen}");
    }
    let seen = player.get("/v1/campaigns/port-town").await.expect(200).body;
    assert!(seen.get("instructions").is_none() && seen.get("pending_instructions").is_none(), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_campaign_document_says_is_in_force() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    world.patch("", json!({ "instructions": "Be brief." })).await.expect(200);
    world
        .patch("/npcs/innkeeper_bob", json!({ "instructions": "Boast.", "greetings": ["Welcome!"] }))
        .await
        .expect(200);
    let document = world.get("/export").await.expect(200).body;
    // Where it came from, nothing changes.
    let same = acme.post("/v1/campaigns/import", document.clone()).await.expect(200).body;
    assert_eq!((&same["counts"]["created"], &same["counts"]["updated"]), (&json!(0), &json!(0)), "{same:#}");
    let other = server.tenant("other").await;
    other.post("/v1/campaigns/import", document.clone()).await.expect(200);
    let campaign = other.get("/v1/campaigns/port-town").await.expect(200).body;
    assert_eq!((&campaign["instructions"], &campaign["pending_instructions"]), (&json!("Be brief."), &Value::Null));
    let bob = other.get("/v1/campaigns/port-town/npcs/innkeeper_bob").await.expect(200).body;
    assert_eq!((&bob["instructions"], &bob["pending_instructions"]), (&json!("Boast."), &Value::Null));
    assert_eq!(bob["greetings"], json!(["Welcome!"]));
    let again = other.post("/v1/campaigns/import", document).await.expect(200).body;
    assert_eq!((&again["counts"]["created"], &again["counts"]["updated"]), (&json!(0), &json!(0)), "{again:#}");
    // A fork is no file.
    acme.post("/v1/campaigns/port-town/fork", json!({ "slug": "copy" })).await.expect(201);
    let bob = acme.get("/v1/campaigns/copy/npcs/innkeeper_bob").await.expect(200).body;
    assert_eq!((&bob["instructions"], &bob["pending_instructions"]), (&json!("Boast."), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_greeting_opens_a_conversation_without_a_model() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    world.post(IMPORT, card()).await.expect(200);
    let greet = async |body: Value| world.post("/npcs/maren/greet", body).await;
    assert_eq!(
        greet(json!({ "player_id": "player_alice", "greeting": 3 })).await.problem(422, "validation_failed").pointers(),
        ["/greeting"]
    );
    greet(json!({ "player_id": "nobody" })).await.problem(422, "validation_failed");
    world.post("/npcs/innkeeper_bob/greet", json!({ "player_id": "player_alice" })).await.problem(409, "conflict");
    let turn = greet(json!({ "player_id": "player_alice" })).await.expect(200).body;
    assert_eq!(turn["narrative"], "Maren lifts the lamp. \"Who is there, Alice?\"");
    assert_eq!(
        (&turn["status"], &turn["trigger"], &turn["model"], &turn["usage"]["llm_calls"]),
        (&json!("succeeded"), &json!("greeting"), &json!(""), &json!(0))
    );
    assert_eq!(server.model.requests().len(), 0);
    greet(json!({ "player_id": "player_alice" })).await.problem(409, "conflict");
    // Another player is greeted too, with another greeting, and hears it as it comes.
    let request = acme.request(reqwest::Method::POST, &world.path("/npcs/maren/greet"));
    let body = json!({ "player_id": "player_mallory", "greeting": 1, "stream": true });
    let heard = request.json(&body).send().await.unwrap().text().await.unwrap();
    assert!(heard.contains("event: text.delta") && heard.contains("Go away."), "{heard}");
    // The model reads what the NPC said. The player has said nothing, and nobody sees otherwise.
    server.model.set_script(Script::replies([Reply::text("Hm.")]));
    world.post("/npcs/maren/turns", json!({ "player_id": "player_alice", "action": "I knock." })).await.expect(200);
    let request = server.model.requests().pop().unwrap();
    let roles: Vec<&str> =
        request["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert!(request["messages"][2]["content"].as_str().unwrap().starts_with("Maren lifts the lamp."));
    let player =
        acme.token(json!({ "scopes": ["read", "play"], "campaign": "port-town", "player_id": "player_alice" })).await;
    let said = player.get("/v1/campaigns/port-town/messages?sort=created_at").await.expect(200);
    let hers = said.items().iter().filter(|m| m["player_id"] == turn["player_id"]);
    let said: Vec<&str> = hers.map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["Maren lifts the lamp. \"Who is there, Alice?\"", "I knock.", "Hm."]);
    // Undone, the conversation can begin again.
    let turns = world.get("/turns?player_id=player_mallory").await.expect(200);
    let id = turns.items()[0]["id"].as_str().unwrap();
    world.post(&format!("/turns/{id}/undo"), json!({})).await.expect(200);
    greet(json!({ "player_id": "player_mallory", "greeting": 2 })).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn late_texts_are_read_once_and_break_no_prefix() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let late = json!({ "post_history_instructions": "{{random:Whisper.,Shout.,Sing.,Mumble.}}", "authors_note": { "text": "It rains.", "depth": 1 } });
    world.patch("/npcs/innkeeper_bob", late).await.expect(200);
    server.model.set_script(Script::replies((1..=4).map(|n| Reply::text(format!("Answer {n}.")))));
    for n in 1..=4 {
        world.bob("player_alice", &format!("Question {n}.")).await.expect(200);
    }
    let requests = server.model.requests();
    let texts: Vec<Vec<String>> = requests
        .iter()
        .map(|request| {
            request["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap().to_owned()).collect()
        })
        .collect();
    for (before, after) in texts.iter().zip(&texts[1..]) {
        assert_eq!(after.concat().matches("It rains.").count(), 1);
        // All messages but the last one, which has the late texts, come again byte for byte.
        assert_eq!(before[..before.len() - 1], after[..before.len() - 1]);
    }
    let ends: std::collections::HashSet<&str> =
        texts.iter().map(|texts| texts.last().unwrap().rsplit("<instructions>").next().unwrap()).collect();
    assert!(ends.iter().all(|end| end.contains("</instructions>") && !end.contains("random")), "{ends:?}");
    let turn = world.get("/turns?kind=npc").await.expect(200).items()[0].clone();
    let sections: Vec<&str> =
        turn["prompt"]["sections"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert!(sections.ends_with(&["turn", "authors_note", "post_history_instructions"]), "{sections:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_orders_leaves_out_and_cuts() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let plain = world.prompt("innkeeper_bob", "player_alice", "I knock.").await;
    let lore = json!({ "title": "Long", "scope": "global", "content": "The sea is cold and grey. ".repeat(300) });
    world.post("/lore", lore).await.expect(201);
    let section = |name: &str| json!({ "name": name });
    let template = |sections: Value| json!({ "settings": { "prompt_templates": { "npc": { "sections": sections } } } });
    for (sections, pointer) in [
        (json!([section("personality")]), "/settings/prompt_templates/npc/sections"),
        (json!([section("turn"), section("turn")]), "/settings/prompt_templates/npc/sections/1/name"),
        (
            json!([{ "name": "memories", "share": 101 }, section("turn")]),
            "/settings/prompt_templates/npc/sections/0/share",
        ),
    ] {
        assert_eq!(world.patch("", template(sections)).await.problem(422, "validation_failed").pointers(), [pointer]);
    }
    let unknown = json!({ "settings": { "prompt_templates": { "poet": { "sections": [section("turn")] } } } });
    world.patch("", unknown).await.problem(422, "validation_failed");
    let sections =
        json!([section("tools"), { "name": "global_lore", "cut": 1 }, section("personality"), section("turn")]);
    world.patch("", template(sections)).await.expect(200);
    let prompt = world.prompt("innkeeper_bob", "player_alice", "I knock.").await;
    assert_eq!(names(&prompt), ["engine_rules", "tools", "global_lore", "personality", "history", "turn"]);
    assert_eq!(prompt["messages"][0]["content"], plain["messages"][0]["content"]);
    assert!(sent(&prompt).contains("cold and grey") && !sent(&prompt).contains("Initial impression"));
    // A model with a small context: the lore gives way.
    let small =
        json!({ "slug": "small", "name": "Small", "context_tokens": 2600, "parameters": { "max_output_tokens": 300 } });
    acme.post("/v1/models", small).await.expect(201);
    world.patch("/npcs/innkeeper_bob", json!({ "model": "small" })).await.expect(200);
    let prompt = world.prompt("innkeeper_bob", "player_alice", "I knock.").await;
    assert!(!sent(&prompt).contains("cold and grey"), "{}", sent(&prompt));
    let lore = prompt["sections"].as_array().unwrap().iter().find(|section| section["name"] == "global_lore").unwrap();
    assert!(lore["cut"].as_str().unwrap().contains("left out to fit into the context of 2600 tokens"), "{lore}");
    // A larger context of the same profile is noticed.
    acme.patch("/v1/models/small", json!({ "context_tokens": 32000 })).await.expect(200);
    let prompt = world.prompt("innkeeper_bob", "player_alice", "I knock.").await;
    assert!(sent(&prompt).contains("cold and grey"));
    let gm = json!({ "settings": { "prompt_templates": { "gm": { "sections": [section("tools"), section("campaign"),
        section("history"), section("world_state_overview"), section("scoped_lore"), section("turn")] } } },
        "instructions": "No gore." });
    world.patch("", gm).await.expect(200);
    let session =
        world.post("/sessions", json!({ "client_id": "table", "role": "gm", "dice": "server" })).await.expect(201).id();
    let prompt = world.post(&format!("/sessions/{session}/prompt"), json!({})).await.expect(200).body;
    assert_eq!(names(&prompt)[..3], ["engine_rules", "tools", "campaign"]);
    let all = json!({ "settings": { "prompt_templates": null } });
    world.patch("", all).await.expect(200);
    let prompt = world.post(&format!("/sessions/{session}/prompt"), json!({})).await.expect(200).body;
    assert_eq!(names(&prompt)[..4], ["engine_rules", "instructions", "campaign", "global_lore"]);
    assert!(prompt["messages"][0]["content"].as_str().unwrap().contains("<instructions>\nNo gore."));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_instructions_is_pointed_to() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    for (patch, pointer) in [
        (json!({ "instructions": "Say {{char" }), "/instructions"),
        (json!({ "instructions": "x".repeat(20_001) }), "/instructions"),
        (json!({ "authors_note": { "text": "x", "depth": 101 } }), "/authors_note"),
        (json!({ "greetings": [" "] }), "/greetings"),
        (json!({ "greetings": vec!["x"; 51] }), "/greetings"),
        (json!({ "scenario": "{{" }), "/scenario"),
        (json!({ "pending_instructions": { "system": "x" } }), "/pending_instructions/system"),
    ] {
        let refused = world.patch("/npcs/innkeeper_bob", patch.clone()).await.problem(422, "validation_failed");
        assert_eq!(refused.pointers(), [pointer], "{patch}");
    }
    world.patch("", json!({ "instructions": "{{" })).await.problem(422, "validation_failed");
    // A card whose macros do not end is read all the same; only what cannot be kept is left out.
    let mut broken = card();
    broken["data"]["scenario"] = json!("A storm {{user");
    broken["data"]["system_prompt"] = json!("Write {{char");
    world.post(IMPORT, broken).await.expect(200);
    let npc = world.get("/npcs/maren").await.expect(200).body;
    assert_eq!((&npc["scenario"], &npc["pending_instructions"]["instructions"]), (&json!(""), &json!("Write {{char")));
    let back = world.get("/npcs/maren/card.json").await.expect(200).body;
    assert_eq!(back["data"]["scenario"], "A storm {{user");
}

/// The edits that lead to one state of a world, each of them by itself.
fn edits() -> Vec<(&'static str, Value)> {
    vec![
        ("", json!({ "instructions": "Be brief, {{user}}." })),
        ("/npcs/innkeeper_bob", json!({ "instructions": "{{original}} Boast." })),
        ("/npcs/innkeeper_bob", json!({ "scenario": "A {{random:warm,cold}} night." })),
        ("/npcs/innkeeper_bob", json!({ "example_dialogue": "{{char}}: {{pick::Aye::No}}!" })),
        ("/npcs/innkeeper_bob", json!({ "authors_note": { "text": "It rains.", "depth": 0 } })),
        ("/characters/player_alice", json!({ "name": "Alys" })),
        (
            "",
            json!({ "settings": { "prompt_templates": { "npc": { "sections": [
            { "name": "scenario" }, { "name": "character_instructions" }, { "name": "personality" }, { "name": "example_dialogue" },
            { "name": "memories" }, { "name": "history" }, { "name": "turn" } ] } } } }),
        ),
    ]
}

/// The prompt after the edits in this order, in a world that had none of them.
async fn prompt_after(world: &World<'_>, order: &[usize]) -> Value {
    let none = json!({ "instructions": "", "scenario": "", "example_dialogue": "", "authors_note": null });
    world.patch("/npcs/innkeeper_bob", none).await.expect(200);
    world.patch("", json!({ "instructions": "", "settings": { "prompt_templates": null } })).await.expect(200);
    world.patch("/characters/player_alice", json!({ "name": "Alice" })).await.expect(200);
    let edits = edits();
    for at in order {
        let (path, patch) = &edits[*at];
        world.patch(path, patch.clone()).await.expect(200);
        // Built in between, so that what is cached is an older state.
        world.prompt("innkeeper_bob", "player_alice", "I knock.").await;
    }
    let prompt = world.prompt("innkeeper_bob", "player_alice", "I knock.").await;
    json!({ "messages": prompt["messages"], "sections": prompt["sections"], "base_hash": prompt["base_hash"] })
}

#[test]
fn the_same_state_gives_the_same_bytes_whatever_led_there() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = runtime.block_on(Server::start());
    let tenant = runtime.block_on(server.tenant("acme"));
    let world = runtime.block_on(tenant.world());
    let all: Vec<usize> = (0..edits().len()).collect();
    let first = runtime.block_on(prompt_after(&world, &all));
    assert!(sent(&first).contains("Be brief, Alys. Boast."), "{first:#}");
    let config = ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config)
        .run(&Just(all).prop_shuffle(), |order| {
            prop_assert_eq!(runtime.block_on(prompt_after(&world, &order)), first.clone());
            Ok(())
        })
        .unwrap();
}
