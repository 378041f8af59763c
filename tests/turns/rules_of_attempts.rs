//! What nobody gets by trying again: other dice, an answer that a game master took back, what cannot be paid, or an outcome that is not so.

use edge::{tenant_settings::service::set_limits, tenants::TenantLimits};
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{learnt, remember, turns};
use crate::support::{Answer, Client, Server, World, until};

const COUNCIL: &str = "/owners/town_council_owner";

async fn alice<'a>(acme: &Client<'a>) -> Client<'a> {
    acme.token(json!({ "scopes": ["read", "play"], "campaign": "port-town", "player_id": "player_alice" })).await
}

fn of(turn: &str, way: &str) -> String {
    format!("/v1/campaigns/port-town/turns/{turn}/{way}")
}

async fn again(client: &Client<'_>, turn: &str) -> Answer {
    client.post(&of(turn, "regenerate"), json!({})).await
}

async fn choose(client: &Client<'_>, turn: &str) -> Answer {
    client.post(&of(turn, "choose"), json!({})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_game_master_undid_no_player_brings_back() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let alice = alice(&acme).await;
    let replies = [remember("one"), Reply::text("First."), remember("two"), Reply::text("Second.")];
    server.model.set_script(Script::replies(replies.into_iter().chain([Reply::text("Third.")])));
    let first = world.bob("player_alice", "I knock.").await.expect(200).id();
    let second = again(&alice, &first).await.expect(200).id();
    // An attempt that is chosen, another one, and the first of all: each is undone once, and the others are tried.
    acme.post(&of(&second, "undo"), json!({})).await.expect(200);
    for turn in [&first, &second] {
        for way in ["choose", "regenerate", "continue"] {
            alice.post(&of(turn, way), json!({})).await.problem(409, "conflict");
        }
    }
    assert!(learnt(&world).await.is_empty());
    // A game master can bring an attempt back, and then the player can try again.
    choose(&acme, &first).await.expect(200);
    assert_eq!(learnt(&world).await, ["one"]);
    choose(&alice, &second).await.problem(409, "conflict");
    let third = again(&alice, &first).await.expect(200).id();
    choose(&alice, &first).await.expect(200);
    acme.post(&of(&first, "undo"), json!({})).await.expect(200);
    choose(&alice, &third).await.problem(409, "conflict");
    let pages = acme.get(&format!("/v1/campaigns/port-town/turns/{third}")).await.expect(200).body;
    assert_eq!((&pages["chosen"], learnt(&world).await.len()), (&json!(false), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_of_a_formula_gets_other_dice() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let alice = alice(&acme).await;
    world.patch("/npcs/innkeeper_bob", json!({ "available_tools": ["roll_dice"] })).await.expect(200);
    let roll = |formula: &str| {
        [Reply::text("").with_tool("roll_dice", json!({ "rolls": [{ "formula": formula }] })), Reply::text("So.")]
    };
    let rolled = |answer: &Answer| {
        let result = answer.body["tool_calls"][0]["result"]["results"][0].clone();
        assert_eq!(result["success"], true, "{}", answer.text);
        result
    };
    // Of a million faces, two dice are never the same by chance.
    server.model.set_script(Script::replies(roll("1d1000000")));
    let first = world.bob("player_alice", "I bet.").await.expect(200);
    let value = rolled(&first)["dice"][0]["value"].clone();
    assert!(rolled(&first)["counter"].is_number(), "{}", first.text);
    let mut last = first.id();
    let spellings =
        [" 1d1000000", "1D1000000", "d1000000", "1d1000000 # x", "1d1000000[fire]", "1d1000000 + 0", "(1d1000000)*1"];
    for formula in spellings {
        server.model.set_script(Script::replies(roll(formula)));
        let answer = again(&alice, &last).await.expect(200);
        let result = rolled(&answer);
        assert_eq!((&result["dice"][0]["value"], &result["total"]), (&value, &value), "{formula}");
        assert!(result["counter"].is_null(), "{formula} cannot be verified: {result}");
        last = answer.id();
    }
    // A second die is new, once; and dice of other faces are others.
    let mut new = None;
    for formula in ["2d1000000kh", "d1000000 - 1d1000000"] {
        server.model.set_script(Script::replies(roll(formula)));
        let answer = again(&alice, &last).await.expect(200);
        let dice = rolled(&answer)["dice"].clone();
        assert_eq!(dice[0]["value"], value, "{formula}");
        assert_eq!(*new.get_or_insert(dice[1]["value"].clone()), dice[1]["value"], "{formula}");
        last = answer.id();
    }
    server.model.set_script(Script::replies(roll("1d999999")));
    let answer = again(&alice, &last).await.expect(200);
    assert!(rolled(&answer)["counter"].is_number() && rolled(&answer)["seed_id"].is_string(), "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_check_gets_another_die() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let alice = alice(&acme).await;
    let tools = json!(["resolve_skill_check", "resolve_ability_check", "resolve_saving_throw", "roll_dice"]);
    world.patch("/npcs/innkeeper_bob", json!({ "available_tools": tools })).await.expect(200);
    let calls = [
        ("resolve_skill_check", json!({ "skill": "stealth", "dc": 12 })),
        ("resolve_skill_check", json!({ "dc": "12", "skill": "stealth" })),
        ("resolve_skill_check", json!({ "skill": "stealth", "dc": 5 })),
        ("resolve_ability_check", json!({ "ability": "dex", "dc": 5 })),
        ("resolve_saving_throw", json!({ "ability": "wis", "dc": 5 })),
        ("resolve_skill_check", json!({ "skill": "perception", "dc": 5, "advantage": "advantage" })),
        ("roll_dice", json!({ "rolls": [{ "formula": "1d20 + 3" }] })),
    ];
    let mut first = None;
    let mut turn = String::new();
    for (tool, arguments) in calls {
        server
            .model
            .set_script(Script::replies([Reply::text("").with_tool(tool, arguments.clone()), Reply::text("So.")]));
        let answer = match &first {
            None => world.bob("player_alice", "I sneak.").await.expect(200),
            Some(_) => again(&alice, &turn).await.expect(200),
        };
        let result = &world.get(&format!("/turns/{}", answer.id())).await.expect(200).body["tool_calls"][0]["result"];
        let dice = if tool == "roll_dice" { &result["results"][0]["dice"] } else { &result["dice"] };
        let die = dice[0]["value"].as_u64().unwrap_or_else(|| panic!("{tool} {arguments}: {}", answer.text));
        assert_eq!(die, *first.get_or_insert(die), "{tool} {arguments}");
        turn = answer.id();
    }
    // A game master has them rolled anew, and then these stay as well.
    let reroll = acme.post(&of(&turn, "regenerate"), json!({ "reroll": true })).await.expect(200);
    assert_eq!(reroll.body["status"], "succeeded");
}

/// Gives the council its tools, and what it has of influence and grain.
async fn fund(world: &World<'_>, influence: f64, grain: f64) {
    let tools = json!(["modify_resource", "change_npc_stats", "change_npc_behavior", "OWNER_memorize"]);
    let influence = json!({ "current": influence, "max": 100, "regen_per_hour": 0 });
    world.patch(COUNCIL, json!({ "available_tools": tools, "influence": influence })).await.expect(200);
    let given = json!({ "name": "grain", "change": grain });
    let call = json!({ "actor": { "type": "owner", "id": "town_council_owner" }, "arguments": given });
    if grain > 0.0 {
        let done = world.post("/tools/modify_resource", call).await.expect(200).body;
        assert_eq!(done["status"], "succeeded", "{done}");
    }
}

/// What the council has of influence, and of grain.
async fn has(world: &World<'_>) -> (f64, f64) {
    let council = world.get(COUNCIL).await.expect(200).body;
    let grain = council["resources"].as_array().unwrap().iter().find(|r| r["name"] == "grain");
    (council["influence"]["current"].as_f64().unwrap(), grain.map_or(0.0, |grain| grain["amount"].as_f64().unwrap()))
}

/// Two attempts of the council: one that makes these calls, and one that only speaks, which is chosen.
async fn attempts(world: &World<'_>, calls: &[(&str, Value)]) -> (String, String) {
    let reply = calls.iter().fold(Reply::text(""), |reply, (tool, given)| reply.with_tool(*tool, given.clone()));
    world.client.server.model.set_script(Script::replies([reply, Reply::text("So be it."), Reply::text("No.")]));
    let turn = world.client.owner_turn(&world.slug, "town_council_owner", "player_alice", "I ask.").await.expect(200);
    let calls = turn.body["tool_calls"].as_array().unwrap();
    assert!(calls.iter().all(|call| call["status"] == "succeeded"), "{}", turn.text);
    let second = again(world.client, &turn.id()).await.expect(200).id();
    (turn.id(), second)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_cannot_be_paid_is_not_chosen() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let alice = alice(&acme).await;
    fund(&world, 100.0, 8.0).await;
    fund(&world, 100.0, 0.0).await;
    let feed = json!({ "name": "grain", "change": -5 });
    let (first, second) = attempts(&world, &[("modify_resource", feed)]).await;
    assert_eq!(has(&world).await, (100.0, 8.0));
    // Somebody spends what the first attempt had.
    for (influence, grain, column) in [(19.0, 0.0, "influence_current"), (100.0, -4.0, "resources")] {
        fund(&world, influence, grain).await;
        if grain < 0.0 {
            let call = json!({ "actor": { "type": "owner", "id": "town_council_owner" }, "arguments": { "name": "grain", "change": grain } });
            assert_eq!(world.post("/tools/modify_resource", call).await.expect(200).body["status"], "succeeded");
            fund(&world, influence, 0.0).await;
        }
        let before = has(&world).await;
        let refused = choose(&alice, &first).await.problem(409, "undo_conflict");
        assert_eq!(refused.body["errors"][0]["code"], "not_enough", "{}", refused.text);
        assert!(refused.text.contains(column), "{}", refused.text);
        assert_eq!(has(&world).await, before);
        let record = acme.get(&format!("/v1/campaigns/port-town/turns/{second}")).await.expect(200).body;
        assert_eq!(record["chosen"], true);
    }
    // With enough of both it can be chosen, and costs what it cost.
    let call = json!({ "actor": { "type": "owner", "id": "town_council_owner" }, "arguments": { "name": "grain", "change": 4 } });
    world.post("/tools/modify_resource", call).await.expect(200);
    fund(&world, 20.0, 0.0).await;
    choose(&alice, &first).await.expect(200);
    assert_eq!(has(&world).await, (0.0, 3.0));
    choose(&alice, &second).await.expect(200);
    assert_eq!(has(&world).await, (20.0, 8.0));
    // What has grown since counts, and is spent.
    let grown = "UPDATE owner SET influence_current = 10, influence_regen_per_hour = 60, influence_at = now() - interval '1 hour' \
        WHERE slug = 'town_council_owner'";
    sqlx::query(grown).execute(&mut server.owner().await).await.unwrap();
    choose(&alice, &first).await.expect(200);
    let (left, _) = has(&world).await;
    assert!((50.0..52.0).contains(&left), "70 less 20: {left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_choice_changes_no_row_that_was_locked_meanwhile() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let alice = alice(&acme).await;
    fund(&world, 100.0, 0.0).await;
    let stats = ("change_npc_stats", json!({ "npc_id": "innkeeper_bob", "changes": { "disposition": "hostile" } }));
    let memory = ("OWNER_memorize", json!({ "player_id": "player_alice", "memory_string": "She asked." }));
    let (first, second) = attempts(&world, &[stats, memory.clone()]).await;
    let lock = async |path: &str, locked: bool| world.patch(path, json!({ "ai_lock": locked })).await.expect(200);
    let bob = async || world.get("/npcs/innkeeper_bob").await.expect(200).body["disposition"].clone();
    let is_refused = async |turn: &str| {
        let before = bob().await;
        for client in [&alice, &acme] {
            let refused = choose(client, turn).await.problem(409, "undo_conflict");
            assert_eq!(refused.body["errors"][0]["code"], "locked", "{}", refused.text);
            assert!(refused.pointers()[0].starts_with("/npc/"), "{}", refused.text);
        }
        assert_eq!(bob().await, before);
    };
    lock("/npcs/innkeeper_bob", true).await;
    is_refused(&first).await;
    // Influence and memories are not the row.
    lock("/npcs/innkeeper_bob", false).await;
    lock(COUNCIL, true).await;
    choose(&alice, &first).await.expect(200);
    assert_eq!(bob().await, "hostile");
    // Nor does it go back while it is locked.
    lock("/npcs/innkeeper_bob", true).await;
    is_refused(&second).await;
    again(&alice, &first).await.problem(409, "undo_conflict");
    lock("/npcs/innkeeper_bob", false).await;
    choose(&alice, &second).await.expect(200);
    assert_eq!(bob().await, "neutral");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_of_many_rows_counts_as_many_requests() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let guards = "INSERT INTO npc (tenant_id, id, campaign_id, slug, name, description, personality_prompt, owner_ids, available_tools, stats, \
           conditions, effects, disposition, inventory) \
         SELECT tenant_id, uuid7(), campaign_id, 'guard_' || n, 'Guard', '', '', owner_ids, available_tools, stats, conditions, effects, \
           disposition, inventory FROM npc, generate_series(1, 99) n WHERE slug = 'innkeeper_bob'";
    sqlx::query(guards).execute(&mut server.owner().await).await.unwrap();
    world.patch(COUNCIL, json!({ "available_tools": ["OWNER_memorize_dependables"], "influence": { "current": 100, "max": 100, "regen_per_hour": 0 } }))
        .await
        .expect(200);
    let tell = ("OWNER_memorize_dependables", json!({ "player_id": "player_alice", "memory_string": "An ally." }));
    let (first, second) = attempts(&world, &[tell]).await;
    // What is spent comes back with time: of so few a minute, hardly one while a request is answered.
    let limits = TenantLimits { requests_per_minute: 80, ..TenantLimits::unlimited() };
    set_limits(&mut server.owner().await, acme.tenant, &limits).await.unwrap();
    server.app.keys.forget();
    let left = |answer: &Answer| -> i64 {
        let text =
            answer.header("ratelimit").split("r=").nth(1).unwrap_or_else(|| panic!("{}", answer.text)).to_owned();
        text.split(';').next().unwrap().parse().unwrap()
    };
    let before = left(&acme.get("/v1/campaigns").await.expect(200));
    let spent = before - left(&acme.post_with_key(&of(&first, "choose"), "a", json!({})).await.expect(200));
    assert!((10..=14).contains(&spent), "about a hundred rows: {spent} requests");
    // It costs the same each time, however often they were exchanged.
    choose(&acme, &second).await.expect(200);
    let before = left(&acme.get("/v1/campaigns").await.expect(200));
    let spent = before - left(&choose(&acme, &first).await.expect(200));
    assert!((10..=14).contains(&spent), "about a hundred rows again: {spent} requests");
    // A stored answer costs one request, and so does a choice that changes nothing.
    let before = left(&acme.get("/v1/campaigns").await.expect(200));
    acme.post_with_key(&of(&first, "choose"), "a", json!({})).await.expect(200);
    let spent = before - left(&choose(&acme, &first).await.expect(200));
    assert!(spent <= 2, "{spent}");
    let limits = TenantLimits { requests_per_minute: 30, ..TenantLimits::unlimited() };
    set_limits(&mut server.owner().await, acme.tenant, &limits).await.unwrap();
    server.app.keys.forget();
    let mut refused = None;
    for n in 0..10 {
        let answer = choose(&acme, [&second, &first][n % 2]).await;
        if answer.status != 200 {
            refused = Some((n, answer.problem(429, "rate_limited")));
            break;
        }
    }
    let (n, _) = refused.expect("ten choices of a hundred rows to be more than thirty requests");
    assert!((1..=4).contains(&n), "{n}");
}

/// A turn of Bob for Alice, by this client, that has done something and still speaks; its id.
async fn speaking(world: &World<'_>, client: &Client<'_>, path: &str) -> String {
    let server = world.client.server;
    server.model.set_script(Script::replies([remember("She lies."), Reply::text("You lie.").held()]));
    let known = turns(world).await.len();
    let asked = server.model.request_count();
    let turn = client.request(reqwest::Method::POST, path).header("prefer", "respond-async");
    let turn = client.send(turn.json(&json!({ "player_id": "player_alice", "action": "I lie." }))).await.expect(202);
    assert_eq!(turns(world).await.len(), known + 1);
    until("the second call", || async { server.model.request_count() == asked + 2 }).await;
    turn.body["turn_id"].as_str().unwrap().to_owned()
}

/// Cancels a turn, and waits until it has ended.
async fn cancelled(world: &World<'_>, client: &Client<'_>, turn: &str) {
    client.post(&of(turn, "cancel"), json!({})).await.expect(202);
    until("the turn to end", || async {
        let record = world.get(&format!("/turns/{turn}")).await.expect(200).body;
        record["status"] == "cancelled" && record["reverting"].is_null()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_stops_words_and_takes_nothing_back() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let alice = alice(&acme).await;
    let path = world.path("/npcs/innkeeper_bob/turns");
    let turn = speaking(&world, &alice, &path).await;
    assert_eq!(learnt(&world).await, ["She lies."]);
    cancelled(&world, &alice, &turn).await;
    assert_eq!(learnt(&world).await, ["She lies."]);
    assert!(world.get("/messages").await.expect(200).items().is_empty());
    let record = world.get(&format!("/turns/{turn}")).await.expect(200).body;
    assert_eq!((&record["on_failure"], &record["error"]["code"]), (&json!("keep"), &json!("cancelled")));
    // The game master takes it back.
    alice.post(&of(&turn, "undo"), json!({})).await.problem(403, "forbidden");
    acme.post(&of(&turn, "undo"), json!({})).await.expect(200);
    assert!(learnt(&world).await.is_empty());
    // One who may undo cancels as ever; so does a player before anything was done.
    let turn = speaking(&world, &alice, &path).await;
    cancelled(&world, &acme, &turn).await;
    assert!(learnt(&world).await.is_empty());
    acme.post(&of(&turn, "undo"), json!({})).await.problem(409, "conflict");
    // Who asks first decides, even if the turn has not ended when the other one asks.
    let turn = speaking(&world, &acme, &path).await;
    let asked = "UPDATE turn SET cancel_requested = true WHERE id = $1::uuid";
    sqlx::query(asked).bind(&turn).execute(&mut server.owner().await).await.unwrap();
    cancelled(&world, &alice, &turn).await;
    assert!(learnt(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_who_stops_another_attempt_has_the_former_answer() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let alice = alice(&acme).await;
    server.model.set_script(Script::replies([remember("one"), Reply::text("First.")]));
    let first = world.bob("player_alice", "I knock.").await.expect(200).id();
    server.model.set_script(Script::replies([remember("two"), Reply::text("Second.").held()]));
    let asked = server.model.request_count();
    let attempt = alice.request(reqwest::Method::POST, &of(&first, "regenerate")).header("prefer", "respond-async");
    let attempt = alice.send(attempt.json(&json!({}))).await.expect(202).body["turn_id"].as_str().unwrap().to_owned();
    until("the second call", || async { server.model.request_count() == asked + 2 }).await;
    assert_eq!(learnt(&world).await, ["two"]);
    cancelled(&world, &alice, &attempt).await;
    until("the first answer to be back", || async { learnt(&world).await == ["one"] }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_who_leaves_takes_nothing_back() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let alice = alice(&acme).await;
    // A client that waits for the whole answer, and leaves when it has seen elsewhere what came of it.
    for (client, ends) in [(&alice, "succeeded"), (&acme, "cancelled")] {
        server.model.set_script(Script::replies([remember("She lies."), Reply::text("You lie.").held()]));
        let asked = server.model.request_count();
        let request = client.request(reqwest::Method::POST, &world.path("/npcs/innkeeper_bob/turns"));
        let request = request.json(&json!({ "player_id": "player_alice", "action": "I lie." })).send();
        tokio::select! {
            answer = request => panic!("{answer:?}"),
            () = until("the second call", || async { server.model.request_count() == asked + 2 }) => {}
        }
        // The connection is closed; the server notices before the model answers, or not at all.
        if ends == "succeeded" {
            server.model.let_go(1);
        }
        let last = async || turns(&world).await.pop().unwrap();
        until("the turn to end", || async { last().await["status"] == ends }).await;
        let turn = last().await["id"].as_str().unwrap().to_owned();
        if ends == "succeeded" {
            assert_eq!(learnt(&world).await, ["She lies."]);
            acme.post(&of(&turn, "undo"), json!({})).await.expect(200);
        }
        until("the effects to be gone", || async { learnt(&world).await.is_empty() }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_is_decided_stays_without_its_words() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let alice = alice(&acme).await;
    let path = world.path("/commands/do");
    let body = json!({ "player_id": "player_alice", "arguments": { "message": "I sneak past." } });
    let said = async || world.get("/messages?limit=200").await.expect(200).items().len();
    for (client, stays) in [(&alice, true), (&acme, false)] {
        let (known, asked) = (said().await, server.model.request_count());
        let check = Reply::tool("resolve_skill_check", json!({ "skill": "stealth", "dc": 12 }));
        server.model.set_script(Script::replies([check, Reply::text("She sneaks.").held()]));
        let stop = async {
            until("the narrator", || async { server.model.request_count() == asked + 2 }).await;
            let running = world.get("/turns?status=running").await.expect(200);
            let turn = running.items()[0]["id"].as_str().unwrap().to_owned();
            client.post(&of(&turn, "cancel"), json!({})).await.expect(202);
            turn
        };
        let (answer, turn) = tokio::join!(alice.post(&path, body.clone()), stop);
        let record = world.get(&format!("/turns/{turn}")).await.expect(200).body;
        if stays {
            assert_eq!((answer.status, &record["status"]), (200, &json!("succeeded")), "{}", answer.text);
            assert!(record["narration"].is_null() && !record["narrative"].as_str().unwrap().is_empty(), "{record:#}");
            assert!(said().await > known);
        } else {
            assert_eq!((answer.status, &record["status"]), (409, &json!("cancelled")), "{}", answer.text);
            assert_eq!(said().await, known);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_sent_again_forgets_no_die() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let alice = alice(&acme).await;
    world.patch("/npcs/innkeeper_bob", json!({ "available_tools": ["roll_dice"] })).await.expect(200);
    let roll = || Reply::text("").with_tool("roll_dice", json!({ "rolls": [{ "formula": "1d1000000" }] }));
    server.model.set_script(Script::replies([Reply::text("First.")]));
    let first = world.bob("player_alice", "I bet.").await.expect(200).id();
    let path = of(&first, "regenerate");
    // An attempt that rolled and is cancelled; then one under the same key that is cancelled before it rolled.
    let mut seen = Vec::new();
    for replies in [vec![roll(), Reply::text("So.").held()], vec![Reply::text("So.").held()]] {
        let (asked, calls) = (server.model.request_count(), replies.len());
        server.model.set_script(Script::replies(replies));
        let request = alice
            .request(reqwest::Method::POST, &path)
            .header("idempotency-key", "k")
            .header("prefer", "respond-async");
        let attempt =
            alice.send(request.json(&json!({}))).await.expect(202).body["turn_id"].as_str().unwrap().to_owned();
        until("the last call", || async { server.model.request_count() == asked + calls }).await;
        cancelled(&world, &alice, &attempt).await;
        until("the first answer to be back", || async {
            world.get(&format!("/turns/{first}")).await.expect(200).body["chosen"] == true
        })
        .await;
        seen.push(world.get(&format!("/turns/{attempt}")).await.expect(200).body);
    }
    assert_ne!(seen[0]["id"], seen[1]["id"], "the key of a cancelled turn begins another turn");
    let die = seen[0]["tool_calls"][0]["result"]["results"][0]["dice"][0]["value"].clone();
    assert!(die.is_number(), "{:#}", seen[0]);
    server.model.set_script(Script::replies([roll(), Reply::text("So.")]));
    let last = again(&alice, &first).await.expect(200);
    assert_eq!(last.body["tool_calls"][0]["result"]["results"][0]["dice"][0]["value"], die);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_server_kept_can_be_undone() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let alice = alice(&acme).await;
    let turn = speaking(&world, &alice, &world.path("/npcs/innkeeper_bob/turns")).await;
    // A player cancels it through another server, and its own server dies before it hears of that.
    let dead = "UPDATE turn SET stop_requested = true, on_failure = 'keep', instance = instance + 1000, \
        lease_until = now() - interval '1 second' WHERE id = $1::uuid";
    sqlx::query(dead).bind(&turn).execute(&mut server.owner().await).await.unwrap();
    ai::turns::store::sweep(server.pool(), &server.app.running).await.unwrap();
    let record = async || world.get(&format!("/turns/{turn}")).await.expect(200).body;
    until("the turn to end", || async { record().await["status"] == "failed" }).await;
    assert_eq!(learnt(&world).await, ["She lies."]);
    let undone = acme.post(&of(&turn, "undo"), json!({})).await.expect(200);
    assert_eq!(undone.body["changes_reverted"], 1);
    assert!(learnt(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_player_cancels_an_attempt_that_acted_in_a_fight() {
    let server = Server::start().await;
    let acme = server.tenant("acme").await;
    let world = acme.world().await;
    let alice = alice(&acme).await;
    let fists = json!({ "armor_class": 10, "hp": 9, "max_hp": 9, "attacks": [{ "name": "Fist", "bonus": 3, "damage": "1d4" }] });
    world
        .patch("/npcs/innkeeper_bob", json!({ "stats": fists, "available_tools": ["resolve_attack"] }))
        .await
        .expect(200);
    server.model.set_script(Script::replies([Reply::text("First.")]));
    let first = world.bob("player_alice", "I taunt him.").await.expect(200).id();
    let fight = json!({ "participants": [{ "npc_id": "innkeeper_bob", "initiative": 20, "is_enemy": true },
        { "character_id": "player_alice", "initiative": 10 }] });
    world.post("/encounters", fight).await.expect(201);
    let strike = Reply::tool("resolve_attack", json!({ "target": "Alice" }));
    server.model.set_script(Script::replies([strike, Reply::text("Take that.").held()]));
    let asked = server.model.request_count();
    let attempt = alice.request(reqwest::Method::POST, &of(&first, "regenerate")).header("prefer", "respond-async");
    let attempt = alice.send(attempt.json(&json!({}))).await.expect(202).body["turn_id"].as_str().unwrap().to_owned();
    until("the second call", || async { server.model.request_count() == asked + 2 }).await;
    alice.post(&of(&attempt, "cancel"), json!({})).await.problem(409, "conflict");
    server.model.let_go(1);
    let record = async || world.get(&format!("/turns/{attempt}")).await.expect(200).body;
    until("the attempt to end", || async { record().await["status"] == "succeeded" }).await;
    let call = record().await["tool_calls"][0].clone();
    assert_eq!(call["status"], "succeeded", "{call}");
    again(&alice, &attempt).await.problem(409, "conflict");
}
