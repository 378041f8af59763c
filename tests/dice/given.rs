//! Dice that somebody rolled by hand, dice of a seed of one's own, and who may choose them.

use edge::caller::Scope;
use serde_json::{Value, json};

use super::{one, values};
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn given_dice_are_consumed_in_order_over_all_rolls() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rolls = json!([{ "formula": "1d20 + 5" }, { "formula": "oops" }, { "formula": "2d6kh" }]);
    let answer = tenant.post("/v1/dice/roll", json!({ "rolls": rolls, "dice": [15, 6, 2] })).await.expect(200);
    assert_eq!(answer.body["source"], "manual");
    let totals: Vec<_> = answer.body["results"].as_array().unwrap().iter().map(|r| r["total"].clone()).collect();
    assert_eq!(totals, [json!(20), Value::Null, json!(6)]);
    for member in ["seed_id", "counter"] {
        assert_eq!((answer.body.get(member), answer.body["results"][0].get(member)), (None, None));
    }
    for (dice, words) in [
        (json!([15, 6]), "one more is needed"),
        (json!([]), "one more is needed"),
        (json!([21, 6, 2]), "shows 21"),
        (json!([15, 7, 2]), "shows 7"),
        (json!([0, 6, 2]), "shows 0"),
        (json!([15, 6, 2, 1]), "left over"),
        (json!(vec![1; 1001]), "At most 1000"),
    ] {
        let refused = tenant.post("/v1/dice/roll", json!({ "rolls": rolls, "dice": dice })).await;
        let refused = refused.problem(422, "invalid_dice");
        assert!(refused.body["detail"].as_str().unwrap().contains(words), "{}", refused.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_of_ones_own_rolls_the_same_again() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let first = one(&tenant, "20d100", json!({ "seed": 7 })).await;
    assert_eq!(values(&first), values(&one(&tenant, "20d100", json!({ "seed": 7 })).await));
    assert_ne!(values(&first), values(&one(&tenant, "20d100", json!({ "seed": 8 })).await));
    let body = json!({ "rolls": [{ "formula": "1d6" }, { "formula": "1d6" }], "seed": u64::MAX });
    let answer = tenant.post("/v1/dice/roll", body).await.expect(200);
    assert_eq!((&answer.body["source"], answer.body.get("seed_id")), (&json!("seeded"), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_game_masters_choose_their_dice() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let player = tenant.with_scopes(&[Scope::Play, Scope::Read]).await;
    let alice = tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice" })).await;
    let rolls = json!([{ "formula": "1d6" }]);
    for client in [&player, &alice] {
        client.post("/v1/dice/roll", json!({ "rolls": rolls, "dice": [6] })).await.problem(403, "forbidden");
        client.post("/v1/dice/roll", json!({ "rolls": rolls, "seed": 6 })).await.problem(403, "forbidden");
        client.post("/v1/dice/roll", json!({ "rolls": rolls })).await.expect(200);
        client.post("/v1/dice/analyze", json!({ "formula": "1d6" })).await.expect(200);
    }
    let reader = tenant.with_scopes(&[Scope::Read]).await;
    reader.post("/v1/dice/roll", json!({ "rolls": rolls })).await.problem(403, "forbidden");
    // Rolls are counted by where their dice came from.
    let metrics = server.anonymous().get("/metrics").await.expect(200).text;
    assert!(metrics.contains("tavernkeep_dice_rolls_total{source=\"server\"}"), "{metrics}");
}
