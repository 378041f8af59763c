//! Fair dice: fixed before the first roll, worked out again afterwards.

use base::clock;
use std::collections::BTreeSet;

use edge::caller::Scope;
use futures_util::future::join_all;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::values;
use crate::support::{Answer, Client, Server, World};

const SEEDS: &str = "/v1/campaigns/port-town/dice/seeds";
const ROTATE: &str = "/v1/campaigns/port-town/dice/seeds/rotate";

async fn roll_in(client: &Client<'_>, campaign: &str, formulas: &[&str]) -> Answer {
    let rolls: Vec<Value> = formulas.iter().map(|f| json!({ "formula": f })).collect();
    client.post("/v1/dice/roll", json!({ "rolls": rolls, "campaign": campaign })).await
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commitment_is_shown_first_and_kept() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let shown = tenant.get(SEEDS).await.expect(200);
    assert_eq!(shown.items().len(), 1);
    let seed = shown.items()[0].clone();
    assert_eq!((&seed["counter"], &seed["revealed_at"], seed.get("server_seed")), (&json!(0), &Value::Null, None));
    assert_eq!(tenant.get(SEEDS).await.expect(200).items(), shown.items(), "a second look begins nothing");

    let rolled = roll_in(&tenant, "port-town", &["1d20", "2d6"]).await.expect(200);
    assert_eq!((&rolled.body["seed_id"], &rolled.body["counter"]), (&seed["id"], &json!(1)));
    let counters: Vec<_> = rolled.body["results"].as_array().unwrap().iter().map(|r| r["counter"].clone()).collect();
    assert_eq!(counters, [json!(1), json!(2)], "a roll is one formula");
    let rotated = tenant.post(ROTATE, json!({ "client_seed": "Würfel:glück🎲" })).await.expect(200).body;
    let (old, new) = (&rotated["revealed"], &rotated["current"]);
    assert_eq!((&old["id"], &old["commitment"], &old["counter"]), (&seed["id"], &seed["commitment"], &json!(2)));
    let secret = bytes(old["server_seed"].as_str().unwrap());
    let hash: String = Sha256::digest(&secret).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((secret.len(), seed["commitment"].as_str().unwrap()), (32, hash.as_str()));
    assert_eq!(
        (&new["client_seed"], &new["counter"], new.get("server_seed")),
        (&json!("Würfel:glück🎲"), &json!(0), None)
    );
    assert_ne!((&new["id"], &new["commitment"]), (&old["id"], &old["commitment"]));
    assert!(old["revealed_at"].as_str().unwrap() >= old["created_at"].as_str().unwrap());

    // The list shows both, by pages too.
    assert_eq!(tenant.get(SEEDS).await.expect(200).items(), &[old.clone(), new.clone()]);
    let newest = tenant.get(&format!("{SEEDS}?limit=1&sort=-created_at")).await.expect(200);
    assert_eq!(newest.items(), std::slice::from_ref(new));
    let next = newest.body["next_cursor"].as_str().unwrap();
    let next = tenant.get(&format!("{SEEDS}?limit=1&sort=-created_at&cursor={next}")).await.expect(200);
    assert_eq!((next.items(), &next.body["next_cursor"]), (&vec![old.clone()], &Value::Null));
    let rolled = roll_in(&tenant, "port-town", &["1d20"]).await.expect(200);
    assert_eq!((&rolled.body["seed_id"], &rolled.body["counter"]), (&new["id"], &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn past_rolls_are_worked_out_again() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let commitment = tenant.get(SEEDS).await.expect(200).items()[0]["commitment"].clone();
    roll_in(&tenant, "port-town", &["50d10"]).await.expect(200);
    let formulas = ["4d6kh3", "1d6 / 0", "20d6x + 4dF", "(1d4)d20r<5", "{2d10, 3d8}kh + @prof"];
    let rolls: Vec<Value> = formulas.iter().map(|f| json!({ "formula": f, "flavor": "again" })).collect();
    let body = json!({ "rolls": rolls, "campaign": "port-town", "variables": { "prof": 3 } });
    let past = tenant.post("/v1/dice/roll", body).await.expect(200).body;
    roll_in(&tenant, "port-town", &["1d20"]).await.expect(200);

    // While the seed is a secret, nobody learns anything.
    let named = json!({ "seed_id": past["seed_id"], "counter": past["counter"], "rolls": rolls, "variables": { "prof": 3 }, "commitment": commitment });
    tenant.post("/v1/dice/verify", named.clone()).await.problem(409, "conflict");
    let revealed = tenant.post(ROTATE, json!({})).await.expect(200).body["revealed"].clone();
    let given = json!({
        "server_seed": revealed["server_seed"], "client_seed": revealed["client_seed"], "counter": past["counter"],
        "rolls": rolls, "variables": { "prof": 3 }, "commitment": commitment,
    });
    for body in [named, given] {
        let verified = tenant.post("/v1/dice/verify", body).await.expect(200).body;
        assert_eq!((&verified["commitment"], &verified["commitment_matches"]), (&commitment, &json!(true)));
        for (then, now) in past["results"].as_array().unwrap().iter().zip(verified["results"].as_array().unwrap()) {
            for member in ["formula", "flavor", "success", "total", "dice", "counter", "error"] {
                assert_eq!(then[member], now[member], "{member}");
            }
        }
    }
    // One roll of several stands by itself.
    let alone = json!({ "seed_id": past["seed_id"], "counter": past["results"][3]["counter"], "formula": formulas[3] });
    let alone = tenant.post("/v1/dice/verify", alone).await.expect(200).body;
    assert_eq!(alone["results"][0]["dice"], past["results"][3]["dice"]);
    assert_eq!(alone["commitment_matches"], Value::Null);
}

/// The program of `docs/fair-dice.md` prints these for this seed.
#[tokio::test(flavor = "multi_thread")]
async fn verification_is_what_the_documents_say() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let seed: String = (0..32).map(|byte| format!("{byte:02X}")).collect();
    let mut body = json!({ "server_seed": seed, "client_seed": "tavern", "counter": 1, "formula": "1d20 + 3d6", "commitment": "00" });
    let verified = tenant.post("/v1/dice/verify", body.clone()).await.expect(200).body;
    assert_eq!(verified["commitment_matches"], false);
    assert_eq!(verified["commitment"], "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd");
    assert_eq!(values(&verified["results"][0]), [1, 2, 6, 1]);
    body["counter"] = json!(2);
    assert_ne!(tenant.post("/v1/dice/verify", body).await.expect(200).body["results"], verified["results"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn verification_needs_a_past_roll_and_its_seeds() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    World::make(&tenant, "inland").await;
    let past = roll_in(&tenant, "port-town", &["1d20"]).await.expect(200).body;
    world.post("/dice/seeds/rotate", json!({})).await.expect(200);
    let seed = past["seed_id"].clone();
    let (server_seed, rolls) = ("00".repeat(32), json!([{ "formula": "1d6" }]));
    for (body, pointer) in [
        (json!({ "counter": 1, "formula": "1d6" }), "/seed_id"),
        (json!({ "counter": 1, "formula": "1d6", "server_seed": server_seed }), "/seed_id"),
        (json!({ "counter": 1, "formula": "1d6", "seed_id": seed, "client_seed": "x" }), "/seed_id"),
        (json!({ "counter": 1, "seed_id": seed }), "/rolls"),
        (json!({ "counter": 1, "seed_id": seed, "formula": "1d6", "rolls": rolls }), "/rolls"),
        (json!({ "counter": 1, "seed_id": seed, "rolls": [] }), "/rolls"),
        (json!({ "counter": 0, "seed_id": seed, "formula": "1d6" }), "/counter"),
        (json!({ "counter": 2, "seed_id": seed, "formula": "1d6" }), "/counter"),
        (json!({ "counter": u64::MAX, "seed_id": seed, "formula": "1d6" }), "/counter"),
        (json!({ "seed_id": seed, "formula": "1d6" }), "/counter"),
        (json!({ "counter": 1, "formula": "1d6", "server_seed": "00", "client_seed": "x" }), "/server_seed"),
        (json!({ "counter": 1, "formula": "1d6", "server_seed": "+0".repeat(32), "client_seed": "x" }), "/server_seed"),
        (json!({ "counter": 1, "formula": "1d6", "server_seed": "é".repeat(32), "client_seed": "x" }), "/server_seed"),
    ] {
        let answer = tenant.post("/v1/dice/verify", body).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{}", answer.text);
    }
    let named = |id: Value| json!({ "seed_id": id, "counter": 1, "formula": "1d20" });
    tenant.post("/v1/dice/verify", named(seed.clone())).await.expect(200);
    // What is another's, or nobody's, is absent.
    tenant.post("/v1/dice/verify", named(json!(clock::id()))).await.problem(404, "not_found");
    let rival = server.tenant("rival").await;
    rival.post("/v1/dice/verify", named(seed.clone())).await.problem(404, "not_found");
    let inland = tenant.token(json!({ "campaign": "inland" })).await;
    inland.post("/v1/dice/verify", named(seed)).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_counter_is_used_twice() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let answers = join_all((0..20).map(|_| roll_in(&tenant, "port-town", &["1d20", "1d20", "oops"]))).await;
    let mut counters = BTreeSet::new();
    for answer in answers {
        for result in answer.expect(200).body["results"].as_array().unwrap() {
            assert!(counters.insert(result["counter"].as_i64().unwrap()), "used twice: {result}");
        }
    }
    assert_eq!(counters, (1..=60).collect());
    // Dice that are not the stream's leave it alone.
    let gm = json!({ "rolls": [{ "formula": "1d6" }], "campaign": "port-town", "dice": [3] });
    tenant.post("/v1/dice/roll", gm).await.expect(200);
    let gm = json!({ "rolls": [{ "formula": "1d6" }], "campaign": "port-town", "seed": 3 });
    tenant.post("/v1/dice/roll", gm).await.expect(200);
    assert_eq!(tenant.get(SEEDS).await.expect(200).items()[0]["counter"], 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn rolls_and_rotations_at_once_lose_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let rolls = join_all((0..16).map(|_| roll_in(&tenant, "port-town", &["1d20"])));
    let rotations = join_all((0..8).map(|_| tenant.post(ROTATE, json!({}))));
    let (rolls, rotations) = futures_util::future::join(rolls, rotations).await;
    let pairs: BTreeSet<_> = rolls
        .into_iter()
        .map(|r| r.expect(200).body)
        .map(|r| (r["seed_id"].as_str().unwrap().to_owned(), r["counter"].as_i64().unwrap()))
        .collect();
    assert_eq!(pairs.len(), 16);
    assert!(rotations.iter().any(|r| r.status == 200));
    assert!(rotations.iter().all(|r| r.status == 200 || r.body["code"] == "conflict"));
    let seeds = tenant.get(SEEDS).await.expect(200);
    assert_eq!(seeds.items().iter().filter(|s| s["revealed_at"].is_null()).count(), 1);
    assert_eq!(seeds.items().iter().map(|s| s["counter"].as_i64().unwrap()).sum::<i64>(), 16);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_does_not_roll_again() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let body = json!({ "rolls": [{ "formula": "20d100" }], "campaign": "port-town" });
    let first = tenant.post_with_key("/v1/dice/roll", "k", body.clone()).await.expect(200);
    let again = tenant.post_with_key("/v1/dice/roll", "k", body.clone()).await.expect(200);
    assert_eq!((first.text, again.header("idempotency-replayed")), (again.text.clone(), "true"));
    let other = json!({ "rolls": [{ "formula": "1d100" }], "campaign": "port-town" });
    tenant.post_with_key("/v1/dice/roll", "k", other).await.problem(422, "idempotency_key_reused");
    assert_eq!(tenant.get(SEEDS).await.expect(200).items()[0]["counter"], 1);
    let first = tenant.post_with_key(ROTATE, "r", json!({})).await.expect(200);
    assert_eq!(tenant.post_with_key(ROTATE, "r", json!({})).await.expect(200).text, first.text);
    assert_eq!(tenant.get(SEEDS).await.expect(200).items().len(), 2);
    // A request that fails takes no number.
    let bad = json!({ "rolls": [{ "formula": "1d20" }], "campaign": "port-town", "dice": [21] });
    tenant.post("/v1/dice/roll", bad).await.problem(422, "invalid_dice");
    assert_eq!(roll_in(&tenant, "port-town", &["1d20"]).await.expect(200).body["counter"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_campaign_has_a_stream_and_so_has_the_tenant() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rival = server.tenant("rival").await;
    tenant.world().await;
    World::make(&tenant, "inland").await;
    let id = tenant.get("/v1/campaigns/port-town").await.expect(200).id();
    let own = tenant.post("/v1/dice/roll", json!({ "rolls": [{ "formula": "1d6" }] })).await.expect(200).body;
    let port = roll_in(&tenant, "port-town", &["1d6"]).await.expect(200).body;
    let inland = roll_in(&tenant, "inland", &["1d6"]).await.expect(200).body;
    let seeds: BTreeSet<_> = [&own, &port, &inland].map(|r| r["seed_id"].as_str().unwrap()).into_iter().collect();
    assert_eq!(seeds.len(), 3);
    assert_eq!(roll_in(&tenant, &id, &["1d6"]).await.expect(200).body["seed_id"], port["seed_id"]);
    roll_in(&rival, "port-town", &["1d6"]).await.problem(404, "not_found");
    roll_in(&rival, &id, &["1d6"]).await.problem(404, "not_found");
    // The tenant's own stream is verified like the others.
    let listed = tenant.get("/v1/dice/seeds").await.expect(200);
    assert_eq!((listed.items().len(), &listed.items()[0]["id"]), (1, &own["seed_id"]));
    let rotated = tenant.post("/v1/dice/seeds/rotate", json!({})).await.expect(200).body;
    assert_eq!((&rotated["revealed"]["id"], &rotated["revealed"]["counter"]), (&own["seed_id"], &json!(1)));
    let again = json!({ "seed_id": own["seed_id"], "counter": 1, "formula": "1d6" });
    let again = tenant.post("/v1/dice/verify", again).await.expect(200).body;
    assert_eq!(again["results"][0]["dice"], own["results"][0]["dice"]);
    assert!(rival.get("/v1/dice/seeds").await.expect(200).items().iter().all(|s| s["counter"] == 0));
    assert_eq!(tenant.get(SEEDS).await.expect(200).items()[0]["revealed_at"], Value::Null);
    // A token for one campaign rolls there and nowhere else.
    for narrowed in [json!({ "campaign": "inland" }), json!({ "campaign": "inland", "player_id": "player_alice" })] {
        let token = tenant.token(narrowed).await;
        let rolled = token.post("/v1/dice/roll", json!({ "rolls": [{ "formula": "1d6" }] })).await.expect(200);
        assert_eq!(rolled.body["seed_id"], inland["seed_id"]);
        roll_in(&token, "inland", &["1d6"]).await.expect(200);
        roll_in(&token, "port-town", &["1d6"]).await.problem(404, "not_found");
        token.get("/v1/dice/seeds").await.problem(403, "forbidden");
        token.post("/v1/dice/seeds/rotate", json!({})).await.problem(403, "forbidden");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rotating_is_for_game_masters_and_client_seeds_can_be_read() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let others: Vec<_> = Scope::ALL.into_iter().filter(|s| *s != Scope::Gm).collect();
    tenant.with_scopes(&others).await.post(ROTATE, json!({})).await.problem(403, "forbidden");
    for bad in ["", " ", "a b", "a\nb", "\u{200b}", "\u{feff}", &"x".repeat(65)] {
        let answer = tenant.post(ROTATE, json!({ "client_seed": bad })).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/client_seed"]);
    }
    // Before the first roll there is nothing to reveal.
    let first = tenant.post(ROTATE, json!({ "client_seed": "x".repeat(64) })).await.expect(200).body;
    assert_eq!((&first["revealed"], &first["current"]["client_seed"]), (&Value::Null, &json!("x".repeat(64))));
    let second = tenant.post(ROTATE, json!({})).await.expect(200).body;
    assert_eq!(second["revealed"]["id"], first["current"]["id"]);
    assert_eq!(second["current"]["client_seed"].as_str().unwrap().len(), 16);
    // With the campaign go its seeds.
    tenant.delete("/v1/campaigns/port-town").await.expect(204);
    tenant.get(SEEDS).await.problem(404, "not_found");
}
