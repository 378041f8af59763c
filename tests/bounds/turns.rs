//! What a turn keeps is bounded, whatever its tools tell, and so is a list of such turns.

use ai::tools::shorten::{Allowance, NOTE, RESULT_BYTES_MAX, RESULT_BYTES_MIN, RESULTS_BYTES_MAX, shorten};
use edge::http::bounds::size;
use proptest::prelude::*;
use rehearsal::{Reply, Script};
use serde_json::{Map, Value, json};

use crate::support::Server;

const MIB: usize = 1024 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_of_many_calls_leaves_a_record_of_a_bounded_size() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for n in 0..50 {
        world.post("/messages", json!({ "content": format!("{n} {}", "ü".repeat(19_990)) })).await.expect(201);
    }
    let session = world.post("/sessions", json!({ "client_id": "vtt", "role": "gm" })).await.expect(201).id();
    let greedy =
        (0..32).fold(Reply::text("I read."), |reply, _| reply.with_tool("get_message_history", json!({ "count": 50 })));
    let mut turns = Vec::new();
    for _ in 0..6 {
        server.model.set_script(Script::replies([greedy.clone(), Reply::text("Done.")]));
        let turn = world.post(&format!("/sessions/{session}/turns"), json!({})).await.expect(200);
        assert!(turn.text.len() < MIB + MIB / 4, "{} bytes", turn.text.len());
        assert_eq!(turn.body["tool_calls"].as_array().unwrap().len(), 32);
        turns.push(turn);
    }
    let calls = turns[0].body["tool_calls"].as_array().unwrap();
    assert!(calls.iter().all(|call| call["status"] == "succeeded"));
    let first = &calls[0]["result"];
    let count = first["count"].as_u64().unwrap();
    assert!((1..50).contains(&count) && first[NOTE].is_string(), "{count}");
    let newest = first["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
    assert!(newest.starts_with("49 "), "the newest are told");
    // The model was told no more than is kept.
    let asked = server.model.requests().pop().unwrap().to_string().len();
    assert!(asked < 2 * MIB, "{asked} bytes");
    let record = world.get(&format!("/turns/{}", turns[0].id())).await.expect(200);
    assert!(record.text.len() < 2 * MIB + MIB / 4, "{} bytes", record.text.len());
    let page = world.get("/turns?limit=200").await.expect(200);
    assert!(page.text.len() < 4 * MIB + MIB + MIB / 4, "{} bytes", page.text.len());
    println!(
        "one such turn answers {} bytes, a page of {} {} bytes",
        turns[0].text.len(),
        page.items().len(),
        page.text.len()
    );
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("/turns?limit=200{cursor}")).await.expect(200);
        seen.extend(page.items().iter().map(|turn| turn["id"].as_str().unwrap().to_owned()));
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, turns.iter().map(|turn| turn.id()).collect::<Vec<_>>());
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,300}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 200, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,40}", inner, 0..20)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn what_fits_stays_and_what_does_not_becomes_short(value in anything(), max in 300_usize..4000) {
        let short = shorten(value.clone(), max);
        prop_assert!(size(&short) <= max);
        prop_assert_eq!(size(&value) <= max, short == value);
    }
}

#[test]
fn the_results_of_a_turn_share_an_allowance() {
    let large = json!({ "messages": vec!["m".repeat(1000); 2000] });
    let mut allowance = Allowance::after(std::iter::empty());
    let told: Vec<Value> = (0..100).map(|_| allowance.fit(large.clone())).collect();
    let bytes: usize = told.iter().map(size).sum();
    assert!(bytes <= RESULTS_BYTES_MAX + told.len() * RESULT_BYTES_MIN, "{bytes}");
    assert!(told.iter().all(|one| size(one) <= RESULT_BYTES_MAX && one.get(NOTE).is_some()));
    assert!(size(&told[0]) > 30 * 1024, "the first ones say most");
}
