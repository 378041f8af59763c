//! Dice over HTTP: formulas good and bad, dice given by hand, statistics, and fair dice that anybody can check.

mod ahead;
mod fair;
mod formulas;
mod given;
mod spent;
mod tool;

use serde_json::{Value, json};

use crate::support::{Answer, Client};

/// Rolls these formulas in the tenant's own stream.
async fn roll(client: &Client<'_>, formulas: &[&str]) -> Answer {
    let rolls: Vec<Value> = formulas.iter().map(|f| json!({ "formula": f })).collect();
    client.post("/v1/dice/roll", json!({ "rolls": rolls })).await
}

/// The one result of a roll of one formula with these members beside it.
async fn one(client: &Client<'_>, formula: &str, more: Value) -> Value {
    let mut body = json!({ "rolls": [{ "formula": formula }] });
    for (member, value) in more.as_object().unwrap() {
        body[member] = value.clone();
    }
    client.post("/v1/dice/roll", body).await.expect(200).body["results"][0].clone()
}

/// What the dice of a result show.
fn values(result: &Value) -> Vec<i64> {
    result["dice"].as_array().unwrap().iter().map(|die| die["value"].as_i64().unwrap()).collect()
}
