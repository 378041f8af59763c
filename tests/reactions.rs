//! NPCs and owners that react by themselves: what counts for whom, when it is enough, one reaction for one crossing, the queue, replies
//! that wait for their players, and prayers.

mod automatic;
mod conditions;
mod demo;
mod guards;
mod queue;
mod scores;

use rehearsal::{Reply, Script, Step};
use serde_json::{Value, json};

use crate::support::{Answer, Server, World, until};

/// The world of [`World`] with Alice and Bob in the town square, and thresholds that nothing reaches unless a test sets them.
async fn town<'a>(world: World<'a>) -> World<'a> {
    world.patch("/characters/player_alice", json!({ "location": "Town Square" })).await.expect(200);
    world.patch("/characters/player_mallory", json!({ "location": "harbour" })).await.expect(200);
    world
        .patch("/npcs/innkeeper_bob", json!({ "location": "town-square", "reaction_threshold": 1000 }))
        .await
        .expect(200);
    world.patch("/npcs/harbour_ilse", json!({ "reaction_threshold": 1000 })).await.expect(200);
    world.patch("/owners/town_council_owner", json!({ "reaction_threshold": 1000 })).await.expect(200);
    world
}

async fn threshold(world: &World<'_>, entity: &str, score: i64) {
    world.patch(&format!("/{entity}"), json!({ "reaction_threshold": score })).await.expect(200);
}

async fn settings(world: &World<'_>, settings: Value) {
    world.patch("", json!({ "settings": settings })).await.expect(200);
}

/// Alice does something.
async fn act(world: &World<'_>, kind: &str, more: Value) -> Answer {
    let mut body = json!({ "player_id": "player_alice", "type": kind });
    body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    world.post("/actions", body).await
}

/// The slugs of those who react.
fn triggered(answer: &Answer) -> Vec<String> {
    let all = answer.body["triggered"].as_array().unwrap();
    all.iter().map(|one| one["entity"]["slug"].as_str().unwrap().to_owned()).collect()
}

/// The replies that Alice can hear.
async fn replies(world: &World<'_>) -> Vec<Value> {
    world.get("/players/player_alice/replies").await.expect(200).items().clone()
}

async fn reactions(world: &World<'_>, query: &str) -> Vec<Value> {
    world.get(&format!("/reactions?limit=200{query}")).await.expect(200).items().clone()
}

/// Waits until this many reactions have this state.
async fn ended(world: &World<'_>, state: &str, count: usize) {
    until(&format!("{count} reactions that are {state}"), async || {
        reactions(world, &format!("&status={state}")).await.len() == count
    })
    .await;
}

/// A reply for those who are told this.
fn to(words: &str, reply: Reply) -> Step {
    Step::from(reply).when_contains(words).sticky()
}

/// What the models were asked last, of each request.
fn asked(server: &Server) -> Vec<String> {
    let last = |request: &Value| {
        let messages = request["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].as_str().unwrap_or_default().to_owned()
    };
    server.model.requests().iter().map(last).collect()
}

fn script(steps: Vec<Step>) -> Script {
    Script::replies(steps)
}
