//! What a campaign has removed from the texts of models.

use ai::turns::clean::{Cleaner, CleaningRule, Removed};
use proptest::prelude::*;
use rehearsal::Reply;
use serde_json::{Value, json};

use super::always;
use crate::support::Server;

fn cleaner(rules: Value) -> Cleaner {
    let settings = serde_json::from_value(json!({ "clean_answers": rules })).unwrap();
    Cleaner::of(&settings, &["Innkeeper Bob"], "Alice Thornwood").unwrap()
}

fn all() -> Cleaner {
    cleaner(json!({ "markup": true, "player_lines": true, "role_prefixes": true, "unfinished_sentences": true }))
}

#[test]
fn each_rule_removes_what_it_says_and_nothing_else() {
    let markup = json!({ "markup": true });
    let players = json!({ "player_lines": true });
    let prefixes = json!({ "role_prefixes": true });
    let unfinished = json!({ "unfinished_sentences": true });
    for (rules, said, cleaned) in [
        (&markup, "Aye.<|im_end|>\n</memories>", "Aye."),
        (&markup, "<personality tone=\"dry\">Aye.</personality> [INST]Go[/INST]", "Aye. Go"),
        (&markup, "Aye.<think>He lies.</think> Sit. <MEMORIES>", "Aye. Sit."),
        (&markup, "Aye.<|im_start|>user", "Aye."),
        (&markup, "Aye.<｜end▁of▁sentence｜>", "Aye."),
        (&markup, "3 < 4 and [sic] <b>bold</b> <lorem>", "3 < 4 and [sic] <b>bold</b> <lorem>"),
        (&markup, "It costs <50 gold. <lore", "It costs <50 gold. <lore"),
        (&players, "Welcome.\n\nAlice: I pay.\nAnd I go.\n\nBob nods.", "Welcome.\n\nBob nods."),
        (&players, "**alice:** Hm.\nInnkeeper Bob: Aye.", "Innkeeper Bob: Aye."),
        (&players, "Alice (quietly): Hm.\n\nAye.", "Aye."),
        (&players, "Alice: Hm.\n\nAye.", "Aye."),
        (&players, "Alice is here: sit.", "Alice is here: sit."),
        (&players, "Alice Thornwood: Hm.\n\nAye.", "Aye."),
        (&players, "Thornwood: Hm.\n\nAye.", "Aye."),
        (&prefixes, "Innkeeper Bob: Aye.\n*Innkeeper Bob* (dry): No.", "Aye.\nNo."),
        (&prefixes, "Innkeeper Bob: *He nods.* Aye.", "*He nods.* Aye."),
        (&prefixes, "**Innkeeper Bob:** **Listen!**", "**Listen!**"),
        (&prefixes, "*Innkeeper Bob: he shrugs.*", "*Innkeeper Bob: he shrugs.*"),
        (&prefixes, "[innkeeper bob]: Aye.", "Aye."),
        (&prefixes, "Bob: Aye.\n**Innkeeper:** No.\nBob (dry): Well.", "Aye.\nNo.\nWell."),
        (&prefixes, "Innkeeper Bobby: Aye. Alice: No.", "Innkeeper Bobby: Aye. Alice: No."),
        (&unfinished, "It costs 3.5 gold. Then you", "It costs 3.5 gold."),
        (&unfinished, "\"Come in!\" he says. \"Or do", "\"Come in!\" he says."),
        (&unfinished, "*He nods.* And", "*He nods.*"),
        (&unfinished, "好的。然后", "好的。"),
        (&unfinished, "He says \"Aye\"", "He says \"Aye\""),
        (&unfinished, "no sentence at all", "no sentence at all"),
        (&unfinished, "Version 3.5 of", "Version 3.5 of"),
        (&unfinished, "Choose:\n1. Go north\n2. Go south", "Choose:\n1. Go north\n2. Go south"),
        (&unfinished, "Er nickt. „Komm herein.“", "Er nickt. „Komm herein.“"),
        (&unfinished, "Aye. 🍺", "Aye. 🍺"),
        (&unfinished, "My prices.\n- Ale 2 cp", "My prices.\n- Ale 2 cp"),
    ] {
        let (found, removed) = cleaner(rules.clone()).clean(said, false);
        assert_eq!((found.as_ref(), removed.is_empty()), (cleaned, said == cleaned), "{said}: {removed:?}");
    }
    // What would leave nothing leaves everything.
    assert_eq!(all().clean("Alice: I pay.", false).0, "Alice: I pay.");
    // A provider that cut the answer cut its last line.
    assert_eq!(all().clean("Aye.\n- Ale 2", true).0, "Aye.");
    // An NPC of the player's name keeps its words.
    let settings = serde_json::from_value(json!({ "clean_answers": { "player_lines": true } })).unwrap();
    assert_eq!(
        Cleaner::of(&settings, &["alice"], "Alice").unwrap().clean("Alice: Hm.\n\nAye.", false).0,
        "Alice: Hm.\n\nAye."
    );
    let settings = serde_json::from_value(json!({ "clean_answers": { "markup": false } })).unwrap();
    assert!(Cleaner::of(&settings, &["Bob"], "Alice").is_none());
}

/// Both whole names and their parts, unless the other has them too. A word that is no name is none.
#[test]
fn names_are_known_by_their_parts() {
    let settings =
        serde_json::from_value(json!({ "clean_answers": { "player_lines": true, "role_prefixes": true } })).unwrap();
    for (speaker, player, said, cleaned) in [
        (
            &["Alice Thornwood", "Ali"][..],
            "Bob",
            "Ali: Hm.\nAlice: Hm.\nThornwood: Hm.\nAlice Thornwood: Hm.",
            "Hm.\nHm.\nHm.\nHm.",
        ),
        (&["Alice Thornwood"], "Bob Thornwood", "Thornwood: Hm.\nAlice: Aye.", "Thornwood: Hm.\nAye."),
        (&["Alice Thornwood"], "Bob Thornwood", "Aye.\n\nBob: Hm.", "Aye."),
        (&["The Keeper of Gulls"], "Bob", "Of: x\nThe: y\nKeeper: Hm.\nGulls: Aye.", "Of: x\nThe: y\nHm.\nAye."),
        (&["\"Red\" Rose, M."], "Bob", "Red: Hm.\nM.: x\nRose: Aye.", "Hm.\nM.: x\nAye."),
        (&["王 小明"], "Bob", "小明：好。", "好。"),
        // What is a whole name of one is no part of the other's.
        (&["Alice"], "Alice Thornwood", "Alice Thornwood: I go.\nAlice: Then go.", "Then go."),
        (&["Innkeeper Bob"], "Bob", "Aye.\n\nBob: Hm.\n\nInnkeeper: No.", "Aye.\n\nNo."),
    ] {
        let cleaner = Cleaner::of(&settings, speaker, player).unwrap();
        assert_eq!(cleaner.clean(said, false).0, cleaned, "{speaker:?} {player}");
    }
}

proptest! {
    #[test]
    fn any_text_is_cleaned_without_harm(said in "(Alice: |Innkeeper Bob: |<\\|im_end\\|>|</memories>|<lore |[^a]{0,4}|[.!?\"*\n]|\\PC{0,8}){0,30}") {
        let said = said.trim();
        let (once, removed) = all().clean(said, true);
        prop_assert!(said.is_empty() || !once.is_empty());
        // Nothing is added or moved.
        let mut all_said = said.chars();
        prop_assert!(once.chars().all(|kept| all_said.any(|c| c == kept)), "{said:?}: {once:?}");
        prop_assert_eq!(removed.is_empty(), once == said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_decides_what_is_removed_and_the_trace_tells() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let name = world.get("/npcs/innkeeper_bob").await.expect(200).body["name"].as_str().unwrap().to_owned();
    let said = format!("{name}: Welcome.\n\nAlice: I sit down.\n\nThe fire is warm.<|im_end|> And th");
    server.model.set_script(always(Reply::text(&said)));
    let turn = world.bob("player_alice", "Hello.").await.expect(200);
    assert_eq!(turn.body["narrative"], said, "nothing is removed unless the campaign says so");
    let rules = json!({ "markup": true, "player_lines": true, "role_prefixes": true, "unfinished_sentences": true });
    world.patch("", json!({ "settings": { "clean_answers": rules } })).await.expect(200);
    let turn = world.bob("player_alice", "Hello again.").await.expect(200);
    let cleaned = "Welcome.\n\nThe fire is warm.";
    assert_eq!(turn.body["narrative"], cleaned);
    let trace = world.get(&format!("/turns/{}", turn.id())).await.expect(200).body["trace"].clone();
    let removed: Vec<_> =
        trace["removed"].as_array().unwrap().iter().map(|one| one["rule"].as_str().unwrap()).collect();
    assert_eq!(removed, ["markup", "player_lines", "role_prefixes", "unfinished_sentences"], "{trace}");
    assert_eq!(trace["llm_calls"][0]["text"], said, "the record has what the model said");
    // What is read again is the cleaned text.
    let prompt = server.model.requests().pop().unwrap();
    assert!(prompt["messages"].to_string().contains("im_end"), "the exchange before the rules is as it was");
    world.bob("player_alice", "And now?").await.expect(200);
    let messages = server.model.requests().pop().unwrap()["messages"].to_string();
    assert_eq!(messages.matches("im_end").count(), 1, "{messages}");
    // A session's AI has no name; markup and an unfinished end go there too.
    let session = world.post("/sessions", json!({ "client_id": "vtt" })).await.expect(201).id();
    let told = world.post(&format!("/sessions/{session}/turns"), json!({ "instruction": "Go on." })).await.expect(200);
    assert_eq!(told.body["narrative"], format!("{name}: Welcome.\n\nAlice: I sit down.\n\nThe fire is warm."));
    // Null removes a rule, as it removes any member.
    world.patch("", json!({ "settings": { "clean_answers": { "markup": null } } })).await.expect(200);
    let settings = world.get("").await.expect(200).body["settings"]["clean_answers"].clone();
    assert_eq!((settings.get("markup"), &settings["player_lines"]), (None, &json!(true)));
    let unknown = json!({ "settings": { "clean_answers": { "curses": true } } });
    world.patch("", unknown).await.problem(422, "validation_failed");
}

/// Whatever a model says, the time grows with its length: a quadratic search would take minutes here.
#[test]
fn hostile_texts_are_cleaned_in_linear_time() {
    for piece in ["<|", "<", "[", "</lore ", "Alice (", "Innkeeper Bob", ". )", ".)", "\n", "<<"] {
        let said = piece.repeat(512 * 1024 / piece.len());
        let _ = all().clean(&said, true);
    }
}

#[test]
fn what_is_recorded_is_bounded() {
    let (_, removed) = all().clean(&format!("{}Aye.", "<|im_end|>".repeat(1000)), false);
    assert!(removed.len() == 12 && removed.iter().all(|one: &Removed| one.rule == CleaningRule::Markup));
    let (_, removed) = all().clean(&format!("Aye. {}", "x".repeat(10_000)), false);
    assert_eq!(removed[0].text.chars().count(), 500);
}
