//! Spending: the server's prices, in order while affordable, never below zero, and back with an undo.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{COUNCIL, call, done, fund, has, outcomes, prepare, rejected, remember, told, turn, undo};
use crate::support::{Server, World};

#[tokio::test(flavor = "multi_thread")]
async fn influence_is_spent_in_order_while_there_is_enough() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    prepare(&world, 32.0).await;
    let event = ("trigger_world_event", json!({ "title": "Flood", "description": "Water." }));
    let tell = ("OWNER_memorize_dependables", json!({ "player_id": "player_alice", "memory_string": "Watch her." }));
    let calls = [remember("One."), event, tell, remember("Two."), remember("Three.")];
    let paid = turn(&world, &calls).await;
    let mut expected = done(5);
    expected[1] = rejected("insufficient_influence");
    expected[4] = rejected("insufficient_influence");
    assert_eq!(outcomes(&paid), expected, "{}", paid.text);
    assert_eq!(has(&world).await, 2.0);
    assert_eq!(
        paid.body["tool_calls"][1]["error"]["message"],
        "`trigger_world_event` costs 35 influence, and you have 27."
    );
    assert!(!world.get("/messages").await.expect(200).text.contains("Flood"));
    undo(&world, &paid).await;
    assert_eq!(has(&world).await, 32.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_gives_back_what_was_spent_and_keeps_what_has_grown() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    prepare(&world, 10.0).await;
    // Ten hours ago, with five an hour: there are 60 now.
    let past = "UPDATE owner SET influence_regen_per_hour = 5, influence_at = now() - interval '10 hours'";
    sqlx::query(past).execute(&mut server.owner().await).await.unwrap();
    let first = turn(&world, &[remember("One.")]).await;
    assert_eq!(outcomes(&first), done(1));
    assert!((54.9..56.0).contains(&has(&world).await), "{}", has(&world).await);
    // Another turn spends after it; both can be undone, in any order.
    let second = turn(&world, &[remember("Two.")]).await;
    assert!((49.9..51.0).contains(&has(&world).await));
    undo(&world, &first).await;
    assert!((54.9..56.0).contains(&has(&world).await), "{}", has(&world).await);
    undo(&world, &second).await;
    assert!((59.9..61.0).contains(&has(&world).await), "{}", has(&world).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_call_costs_nothing_and_a_failed_turn_gives_everything_back() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    prepare(&world, 50.0).await;
    let failed = turn(
        &world,
        &[
            ("OWNER_memorize", json!({ "player_id": "nobody", "memory_string": "x" })),
            ("OWNER_memorize", json!({ "player_id": "player_alice", "memory_string": 5 })),
            ("modify_resource", json!({ "name": "gold", "change": -1 })),
            remember("Kept."),
        ],
    )
    .await;
    let statuses: Vec<_> = outcomes(&failed).into_iter().map(|(status, _)| status).collect();
    assert_eq!(statuses, ["failed", "failed", "failed", "succeeded"], "{}", failed.text);
    assert_eq!(has(&world).await, 45.0);
    // The model goes away after the calls.
    let (tool, given) = remember("Lost.");
    server.model.set_script(Script::replies([Reply::tool(tool, given), Reply::status(401)]));
    let lost = tenant.owner_turn(&world.slug, "town_council_owner", "player_alice", "Again.").await;
    assert_eq!(lost.status, 502, "{}", lost.text);
    assert_eq!(has(&world).await, 45.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_never_spend_more_than_there_is() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    prepare(&world, 33.0).await;
    let call = |n: usize| {
        let given = json!({ "player_id": "player_alice", "memory_string": format!("Word {n}.") });
        world.post("/tools/OWNER_memorize", body(given))
    };
    let answers = futures_util::future::join_all((0..12).map(call)).await;
    let told: Vec<_> = answers.into_iter().map(|answer| answer.expect(200).body).collect();
    let refused: Vec<_> = told.iter().filter(|told| told["status"] == "rejected").collect();
    assert!(refused.iter().all(|told| told["error"]["code"] == "insufficient_influence"), "{refused:?}");
    assert_eq!(told.len() - refused.len(), 6);
    assert_eq!(has(&world).await, 3.0);
    assert_eq!(world.memories("owners/town_council_owner", "player_alice").await.len(), 1 + 6);
}

fn body(arguments: Value) -> Value {
    json!({ "actor": { "type": "owner", "id": "town_council_owner" }, "arguments": arguments })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_sets_prices_and_npcs_pay_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    prepare(&world, 10.0).await;
    let settings = |prices: Value| json!({ "settings": { "tool_prices": prices } });
    for (prices, pointer) in [
        (json!({ "OWNER_fly": 1 }), "/settings/tool_prices/OWNER_fly"),
        (json!({ "OWNER_memorize": -1 }), "/settings/tool_prices/OWNER_memorize"),
        (json!({ "OWNER_memorize": 1_001 }), "/settings/tool_prices/OWNER_memorize"),
        (json!({ "OWNER_memorize": "5" }), "/settings/tool_prices/OWNER_memorize"),
    ] {
        let refused = world.patch("", settings(prices)).await.problem(422, "validation_failed");
        assert_eq!(refused.pointers(), [pointer]);
    }
    world
        .patch("", settings(json!({ "OWNER_memorize": 7.5, "NPC_memorize": 99, "send_message": 0 })))
        .await
        .expect(200);
    assert_eq!(call(&world, "OWNER_memorize", remember("x").1).await["status"], "succeeded");
    assert_eq!(has(&world).await, 2.5);
    let free = call(&world, "send_message", json!({ "target_id": "player_alice", "message": "Hello." })).await;
    assert_eq!(free["status"], "succeeded", "{free}");
    assert_eq!(has(&world).await, 2.5);
    server.model.set_script(Script::replies([
        Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "Free." })),
        Reply::text("Noted."),
    ]));
    let bob = world.bob("player_alice", "Hello.").await.expect(200);
    assert_eq!(bob.body["tool_calls"][0]["status"], "succeeded", "{}", bob.text);
    // Null sets the default again.
    world.patch("", settings(json!({ "OWNER_memorize": null }))).await.expect(200);
    fund(&world, 5.0).await;
    assert_eq!(call(&world, "OWNER_memorize", remember("y").1).await["status"], "succeeded");
    assert_eq!(has(&world).await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_told_what_it_has_and_its_prompt_stays_cached() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    prepare(&world, 40.0).await;
    let heard = told(&world, "owners/town_council_owner").await;
    assert!(
        heard.contains("<influence current=\"40\" max=\"100\">") && heard.contains("spawn_entity costs 40"),
        "{heard}"
    );
    assert!(!told(&world, "npcs/innkeeper_bob").await.contains("<influence"));
    let whisper = ("send_message", json!({ "target_id": "player_alice", "message": "Hello." }));
    turn(&world, std::slice::from_ref(&whisper)).await;
    let before = server.model.requests().len();
    let next = turn(&world, &[whisper]).await;
    assert_eq!(next.body["prompt"]["cache"], "hit", "{}", next.text);
    let asked = server.model.requests()[before]["messages"].to_string();
    assert!(asked.contains("current=\\\"30\\\""), "{asked}");
    assert_eq!(has(&world).await, 20.0);
    assert_eq!(world.get(COUNCIL).await.expect(200).body["influence"]["max"], 100.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_pays_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world: World<'_> = tenant.world().await;
    prepare(&world, 50.0).await;
    let path = world.path("/tools/OWNER_memorize");
    for _ in 0..3 {
        tenant.post_with_key(&path, "once", body(remember("Once.").1)).await.expect(200);
    }
    assert_eq!(has(&world).await, 45.0);
}

/// Undoing a turn with a call that failed gives back what was spent, and nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_call_is_no_source_of_influence() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    prepare(&world, 50.0).await;
    let failed = turn(&world, &[("modify_resource", json!({ "name": "gold", "change": -1 })), remember("Kept.")]).await;
    assert_eq!(outcomes(&failed)[0].0, "failed", "{}", failed.text);
    fund(&world, 3.0).await;
    undo(&world, &failed).await;
    assert_eq!(has(&world).await, 8.0);
}

/// A tool that only changes something cannot be previewed, and charges nothing for trying.
#[tokio::test(flavor = "multi_thread")]
async fn what_only_changes_something_has_no_preview() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    prepare(&world, 50.0).await;
    let mut call = body(remember("Seen.").1);
    call["preview"] = json!(true);
    let refused = world.post("/tools/OWNER_memorize", call).await.problem(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/preview"]);
    assert_eq!(has(&world).await, 50.0);
    assert_eq!(world.memories("owners/town_council_owner", "player_alice").await.len(), 1);
}
