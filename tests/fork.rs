//! Forks: a copy is the world as it was, whole, and from then on its own.

mod fights;
mod past;
mod picture;
mod refusals;
mod together;
mod walk;

use serde_json::{Value, json};

use crate::support::{Answer, World};

/// A fork of the world.
async fn fork<'a>(world: &World<'a>, body: Value) -> World<'a> {
    let made = world.post("/fork", body).await.expect(201);
    World { client: world.client, slug: made.id() }
}

/// The world as it was after a turn.
async fn fork_at<'a>(world: &World<'a>, turn: &str) -> World<'a> {
    fork(world, json!({ "at_turn": turn })).await
}

async fn undo(world: &World<'_>, turn: &str) -> Answer {
    world.post(&format!("/turns/{turn}/undo"), json!({})).await
}
