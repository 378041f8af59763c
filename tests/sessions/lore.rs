//! Lore that a session's AI is told: the world's, that of the place, what words woke; and whose secrets are whose.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::Session;
use crate::support::{Server, World};

/// Lore of the place, of words and of secrets.
async fn write(world: &World<'_>) {
    for entry in [
        json!({ "slug": "drowned_bell", "title": "The bell", "scope": "global", "content": "It rings under water.",
            "activation": "keyword", "keys": ["bell"] }),
        json!({ "slug": "kraken", "title": "The kraken", "scope": "creature", "associated_id": "kraken",
            "content": "It sleeps below the quay.", "activation": "keyword", "keys": ["kraken"], "secret": true }),
        json!({ "slug": "smugglers", "title": "Smugglers", "scope": "zone", "associated_id": "harbour",
            "content": "They own the harbour master.", "secret": true, "known_by": ["player_mallory"] }),
        json!({ "slug": "the_heir", "title": "The heir", "scope": "global", "content": "Alice is the heir.", "secret": true }),
    ] {
        world.post("/lore", entry).await.expect(201);
    }
    world.post("/scenes", json!({ "name": "At the quay", "location": "Harbour", "active": true })).await.expect(201);
}

async fn ask(session: &Session<'_>, instruction: &str) -> Value {
    let model = &session.world.client.server.model;
    model.set_script(Script::replies([Reply::text(format!("Done: {}.", instruction.len()))]));
    session.post("/turns", json!({ "instruction": instruction })).await.expect(200).body
}

/// Why an entry of lore is in the prompt or not.
fn reason<'a>(lore: &'a Value, slug: &str) -> Option<(bool, &'a str)> {
    let entry = lore.as_array().unwrap().iter().find(|l| l["slug"] == slug)?;
    Some((entry["included"].as_bool().unwrap(), entry["reason"].as_str().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_game_master_knows_the_place_the_secrets_and_what_is_spoken_of() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    write(&world).await;
    let session = Session::open(&world, "vtt").await;
    session.chat("What was that BELL?").await;
    let preview = session.post("/prompt", json!({})).await.expect(200).body;
    assert_eq!(reason(&preview["lore"], "the_heir"), Some((true, "scope global")));
    assert_eq!(reason(&preview["lore"], "the_harbour"), Some((true, "scope zone harbour")));
    assert_eq!(reason(&preview["lore"], "smugglers"), Some((true, "scope zone harbour")));
    assert_eq!(reason(&preview["lore"], "drowned_bell"), Some((true, "keyword: activated this turn, any scope")));
    assert_eq!((reason(&preview["lore"], "kraken"), reason(&preview["lore"], "the_square")), (None, None));

    let first = ask(&session, "Go on.").await;
    let told = session.last_told();
    assert!(told.contains("World State Overview:"), "{told}");
    assert!(told.contains("title=\"Smugglers\" secret=\"true\"") && told.contains("rings under water"), "{told}");
    assert!(!told.contains("No blades"), "{told}");
    let trace = world.get(&format!("/turns/{}", first["id"].as_str().unwrap())).await.expect(200).body;
    assert_eq!(
        reason(&trace["trace"]["lore"], "drowned_bell"),
        Some((true, "keyword: activated this turn, any scope"))
    );

    // What was told stands in the conversation; what is new comes at its end.
    let second = ask(&session, "The kraken wakes.").await;
    let told = session.last_told();
    assert!(
        told.contains("below the quay") && !told.contains("rings under water") && !told.contains("Smugglers"),
        "{told}"
    );
    let trace = world.get(&format!("/turns/{}", second["id"].as_str().unwrap())).await.expect(200).body;
    let why = reason(&trace["trace"]["lore"], "smugglers");
    assert_eq!(why, Some((true, "scope zone harbour, told in an earlier turn that is still in the history")));
    world.patch("/lore/smugglers", json!({ "content": "They own the whole town." })).await.expect(200);
    world.patch("/scenes/at_the_quay", json!({ "location": "Town Square" })).await.expect(200);
    ask(&session, "Go on.").await;
    assert!(session.last_told().contains("No blades") && !session.last_told().contains("whole town"));
    world.patch("/scenes/at_the_quay", json!({ "location": "harbour" })).await.expect(200);
    ask(&session, "Go on.").await;
    assert!(session.last_told().contains("whole town"), "an entry that changed is told again");
    // All the while nothing that was sent before moved.
    let sent: Vec<_> = server.model.requests().iter().map(|r| r["messages"].as_array().unwrap().clone()).collect();
    for pair in sent.windows(2) {
        assert_eq!(pair[0][..], pair[1][..pair[0].len()]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_knows_what_its_character_may() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    write(&world).await;
    for (player, knows) in [("player_alice", false), ("player_mallory", true)] {
        let body = json!({ "client_id": player, "role": "player", "player_id": player });
        let session = Session::with(&world, body).await;
        ask(&session, "A bell and a kraken.").await;
        let sent = server.model.requests().pop().unwrap().to_string();
        assert!(sent.contains("A chain closes it") && sent.contains("rings under water"), "{sent}");
        assert_eq!(sent.contains("They own the harbour master."), knows, "{sent}");
        assert_eq!(sent.contains("They sign the book"), !knows, "the adventurers' lore is Alice's");
        assert!(
            !sent.contains("below the quay") && !sent.contains("is the heir") && !sent.contains("secret=\\\""),
            "{sent}"
        );
        let preview = session.post("/prompt", json!({})).await.expect(200).body;
        assert_eq!(reason(&preview["lore"], "the_heir"), Some((false, "secret: not in known_by")));
    }
    // An assistant helps the game master.
    let helper = Session::with(&world, json!({ "client_id": "h", "role": "assistant" })).await;
    ask(&helper, "A kraken?").await;
    let sent = server.model.requests().pop().unwrap().to_string();
    assert!(sent.contains("below the quay") && sent.contains("is the heir"), "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lore_keeps_to_its_budgets() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    write(&world).await;
    let budgets = json!({ "settings": { "prompt_budgets": { "global_lore": 30, "scoped_lore": 40, "turn": 0 } } });
    world.patch("", budgets).await.expect(200);
    let session = Session::open(&world, "vtt").await;
    let preview = session.post("/prompt", json!({ "action": "A bell." })).await.expect(200).body;
    let included = |slug: &str| reason(&preview["lore"], slug).unwrap().0;
    assert!(included("the_reach") && !included("the_heir"), "{}", preview["lore"]);
    assert!(included("the_harbour") && !included("smugglers") && !included("drowned_bell"), "{}", preview["lore"]);
    let cut = |name: &str| {
        let sections = preview["sections"].as_array().unwrap();
        sections.iter().find(|s| s["name"] == name).unwrap()["cut"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(cut("scoped_lore"), "1 entry did not fit into 40 tokens");
    // Nor was lore of creatures and items looked at.
    let turn = "1 keyword entry did not fit into 0 tokens; the other keyword entries were not checked";
    assert_eq!(cut("turn"), turn);
}

/// Where everything fits, nothing is said to be left out.
#[tokio::test(flavor = "multi_thread")]
async fn what_fits_is_not_called_cut() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    write(&world).await;
    let session = Session::open(&world, "vtt").await;
    let preview = session.post("/prompt", json!({ "action": "A bell." })).await.expect(200).body;
    for section in preview["sections"].as_array().unwrap() {
        assert_eq!(section["cut"].as_str().unwrap_or_default(), "", "{section:#}");
    }
}
