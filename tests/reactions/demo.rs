//! The demo town with the rehearsal model's own persona: who answers a player who talks, steals and prays.

use serde_json::{Value, json};

use super::{ended, reactions, triggered};
use crate::support::{Answer, DEMO_KEY, Server, World};

const TAM: &str = "tam_underbough";

async fn goes(world: &World<'_>, place: &str) {
    world.patch(&format!("/characters/{TAM}"), json!({ "location": place })).await.expect(200);
}

async fn does(world: &World<'_>, kind: &str, more: Value) -> Answer {
    let mut body = json!({ "player_id": TAM, "type": kind });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.post("/actions", body).await.expect(202)
}

/// Who has something to say to the player.
async fn speakers(world: &World<'_>) -> Vec<String> {
    let replies = world.get(&format!("/players/{TAM}/replies")).await.expect(200);
    let mut all: Vec<String> =
        replies.items().iter().map(|reply| reply["entity"]["slug"].as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_innkeeper_and_the_council_answer_and_nobody_else() {
    let server = Server::with_demo().await;
    let client = server.anonymous().with_credential(DEMO_KEY);
    let world = World { client: &client, slug: "port-town".to_owned() };
    let none: Vec<String> = Vec::new();

    goes(&world, "gilded_gull").await;
    let turn = json!({ "player_id": TAM, "action": "Good evening, Bob." });
    let words = world.post("/npcs/innkeeper_bob/turns", turn).await.expect(200).body["narrative"].to_string();
    assert!(!words.contains("told"), "{words}");
    let talk = json!({ "targets": ["innkeeper_bob"], "text": "Tam asks for news." });
    assert_eq!(triggered(&does(&world, "talk", talk.clone()).await), none);
    assert_eq!(triggered(&does(&world, "talk", talk).await), ["innkeeper_bob"]);
    ended(&world, "done", 1).await;
    assert_eq!(speakers(&world).await, ["innkeeper_bob"]);

    goes(&world, "town_square").await;
    let theft = json!({ "text": "Tam steals a purse from a stall." });
    assert_eq!(triggered(&does(&world, "steal", theft.clone()).await), none);
    assert_eq!(triggered(&does(&world, "steal", theft).await), ["town_council_owner"]);
    ended(&world, "done", 2).await;
    let prayer = json!({ "player_id": TAM, "message": "Let the watch look away." });
    let prayed = world.post("/pray", prayer).await.expect(202);
    assert_eq!(triggered(&prayed), ["town_council_owner"]);
    ended(&world, "done", 3).await;
    // The innkeeper is in another place now, so his words were dropped.
    assert_eq!(speakers(&world).await, ["town_council_owner", "town_council_owner"]);
    assert_eq!(reactions(&world, "").await.len(), 3);

    // The council told its people, and the innkeeper's next words show it.
    goes(&world, "gilded_gull").await;
    let memories = world.memories("npcs/innkeeper_bob", TAM).await;
    assert!(memories.iter().any(|text| text.contains("steals a purse")), "{memories:?}");
    let turn = json!({ "player_id": TAM, "action": "Good evening, Bob." });
    let words = world.post("/npcs/innkeeper_bob/turns", turn).await.expect(200).body["narrative"].to_string();
    assert!(words.contains("told"), "{words}");
    let body = json!({ "player_id": TAM, "action": "Good evening, Bob." });
    let prompt = world.post("/npcs/innkeeper_bob/prompt", body).await.expect(200).text;
    assert!(prompt.contains("[told by those you answer to]"), "{prompt}");
    // Where the harbourmaster stands, nobody was asked to react.
    let scores = world.get(&format!("/significance?player_id={TAM}")).await.expect(200);
    let known: Vec<_> = scores.items().iter().map(|score| score["entity"]["slug"].as_str().unwrap()).collect();
    assert!(!known.contains(&"harbourmaster_ilse"), "{known:?}");
}
