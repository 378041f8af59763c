//! What an action counts for, for whom, and when it is enough.

use rehearsal::Reply;
use serde_json::json;

use super::{act, asked, ended, reactions, replies, script, settings, threshold, to, town, triggered};
use crate::support::Server;

/// The worked example: threshold 7; move 1, look 0, say 2, move 1 make 4; talk 5 makes 9.
#[tokio::test(flavor = "multi_thread")]
async fn five_actions_make_one_reaction() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 7).await;
    server.model.set_script(script(vec![to("noticed_actions", Reply::text("You again!"))]));
    for kind in ["move", "look", "say", "move"] {
        let done = act(&world, kind, json!({ "text": format!("She does {kind}.") })).await.expect(202);
        assert_eq!(triggered(&done), Vec::<String>::new());
    }
    let standing = world.get("/significance?entity_id=innkeeper_bob").await.expect(200);
    assert_eq!((&standing.items()[0]["score"], &standing.items()[0]["threshold"]), (&json!(4.0), &json!(7)));
    let done =
        act(&world, "talk", json!({ "targets": ["innkeeper_bob"], "text": "A room, please." })).await.expect(202);
    assert_eq!(triggered(&done), ["innkeeper_bob"]);
    let turn = done.body["triggered"][0]["turn_id"].as_str().unwrap().to_owned();
    // The turn is there at once, whether it waits, runs or has ended.
    world.get(&format!("/turns/{turn}")).await.expect(200);
    ended(&world, "done", 1).await;

    let told = asked(&server).pop().unwrap();
    let lines = [
        "1. move at Town Square: She does move.",
        "2. look",
        "3. say",
        "4. move",
        "5. talk → innkeeper_bob at Town Square: A room, please.",
    ];
    for line in lines {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert!(told.contains("Nobody has asked you."), "{told}");
    let heard = replies(&world).await;
    assert_eq!((&heard[0]["narrative"], &heard[0]["entity"]["slug"]), (&json!("You again!"), &json!("innkeeper_bob")));
    assert_eq!(heard[0]["conditions"]["location"], "town_square");
    let standing = world.get("/significance?entity_id=innkeeper_bob&player_id=player_alice").await.expect(200);
    let bob = &standing.items()[0];
    assert_eq!(
        (&bob["score"], &bob["actions"], &bob["last_reaction"]["status"]),
        (&json!(0.0), &json!(0), &json!("done"))
    );
    assert_eq!(bob["last_reaction"]["turn_id"], json!(turn));
    let turn = world.get(&format!("/turns/{turn}")).await.expect(200).body;
    assert_eq!((&turn["status"], &turn["trigger"]), (&json!("succeeded"), &json!("reaction")));
    assert_eq!(done.body["triggered"][0]["status"], "queued");
}

/// The scores of one entity, for each character, newest last.
#[tokio::test(flavor = "multi_thread")]
async fn an_entity_has_a_score_for_each_character() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 7).await;
    threshold(&world, "owners/town_council_owner", 100).await;
    server.model.set_script(script(vec![to("noticed_actions", Reply::text("Hm."))]));
    assert!(world.get("/npcs/innkeeper_bob/scores").await.expect(200).items().is_empty());
    act(&world, "say", json!({})).await.expect(202);
    let scores = world.get("/npcs/innkeeper_bob/scores").await.expect(200);
    let alice = &scores.items()[0];
    assert_eq!(
        (&alice["player_slug"], &alice["score"], &alice["actions_waiting"]),
        (&json!("player_alice"), &json!(2.0), &json!(1))
    );
    assert!(alice["last_action_at"].is_string(), "{alice}");
    assert_eq!((&alice["last_reaction_at"], &alice["cooldown_until"]), (&json!(null), &json!(null)));
    act(&world, "attack", json!({})).await.expect(202);
    ended(&world, "done", 1).await;
    let scores = world.get("/npcs/innkeeper_bob/scores").await.expect(200);
    let alice = &scores.items()[0];
    assert_eq!((&alice["score"], &alice["actions_waiting"]), (&json!(0.0), &json!(0)));
    assert!(alice["last_reaction_at"].is_string() && alice["cooldown_until"].is_string(), "{alice}");
    let council = world.get("/owners/town_council_owner/scores").await.expect(200);
    assert_eq!(council.items()[0]["score"], 12.0);
    world.get("/npcs/nobody/scores").await.expect(404);
    world.get("/npcs/town_council_owner/scores").await.expect(404);
    let reader = tenant.token(json!({ "campaign": world.slug, "scopes": ["read", "play"] })).await;
    reader.get(&world.path("/npcs/innkeeper_bob/scores")).await.problem(403, "forbidden");
}

/// Targets, those who are there, and the owners of place, race, profession and the target's faction; nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn an_action_concerns_who_is_near_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    let owner = |slug: &str, aspect: &str, of: &str| json!({ "slug": slug, "name": slug, "monitored_aspect": aspect, "associated_id": of, "reaction_threshold": 1 });
    for one in [
        owner("of_humans", "race", "Human"),
        owner("of_elves", "race", "elf"),
        owner("of_adventurers", "profession", "ADVENTURER"),
        owner("of_thieves", "faction", "Thieves' Guild"),
        owner("of_the_harbour", "location", "Harbour"),
        owner("of_the_sewer", "location", "Sewer"),
        owner("of_rats", "race", "Rat"),
        owner("of_ratcatchers", "profession", "ratcatcher"),
        owner("of_the_watch", "faction", "Night Watch"),
    ] {
        world.post("/owners", one).await.expect(201);
    }
    let rat = json!({ "slug": "rat", "name": "Rat", "location": "sewer", "race": "rat", "profession": "Ratcatcher",
        "faction": "thieves guild", "reaction_threshold": 1 });
    world.post("/npcs", rat).await.expect(201);
    for entity in ["npcs/innkeeper_bob", "npcs/harbour_ilse", "owners/town_council_owner"] {
        threshold(&world, entity, 1).await;
    }
    world.patch("/characters/player_alice", json!({ "faction": "night-watch" })).await.expect(200);
    let done = act(&world, "say", json!({})).await.expect(202);
    let mut all = triggered(&done);
    all.sort();
    assert_eq!(all, ["innkeeper_bob", "of_adventurers", "of_humans", "of_the_watch", "town_council_owner"]);
    settings(&world, json!({ "reaction_cooldown_seconds": 0 })).await;
    ended(&world, "done", 5).await;
    let done = act(&world, "say", json!({ "targets": ["rat"], "location": "HARBOUR" })).await.expect(202);
    let mut all = triggered(&done);
    all.sort();
    // The cooldown of those who had a reaction still holds.
    let new = ["harbour_ilse", "of_ratcatchers", "of_rats", "of_the_harbour", "of_the_sewer", "of_thieves", "rat"];
    assert_eq!(all, new);
}

/// A location in letters outside of ASCII is the same however it is written.
#[tokio::test(flavor = "multi_thread")]
async fn places_are_compared_in_every_script() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    for (slug, location) in [("a", "Größe Straße"), ("b", "GRÖSSE-STRASSE"), ("c", "東の市場"), ("d", "Grosse Strasse")]
    {
        let npc = json!({ "slug": slug, "name": slug, "location": location, "reaction_threshold": 1 });
        world.post("/npcs", npc).await.expect(201);
    }
    let mut near = triggered(&act(&world, "say", json!({ "location": "größe straße" })).await.expect(202));
    near.sort();
    assert_eq!(near, ["a", "b", "d"]);
    assert_eq!(triggered(&act(&world, "say", json!({ "location": "東の市場" })).await.expect(202)), ["c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_says_what_counts() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 100).await;
    act(&world, "dig", json!({})).await.problem(422, "validation_failed");
    settings(&world, json!({ "significance_scores": { "dig": 12.5, "look": 99 } })).await;
    for path in ["/npcs/innkeeper_bob", "/owners/town_council_owner"] {
        world.patch(path, json!({ "immediate_threshold": 99 })).await.expect(200);
    }
    assert_eq!(triggered(&act(&world, "dig", json!({})).await.expect(202)), Vec::<String>::new());
    settings(&world, json!({ "report_actions": { "moves": null, "commands": true } })).await;
    let standing = world.get("/significance?entity_id=innkeeper_bob").await.expect(200);
    assert_eq!(standing.items()[0]["score"], 12.5);
    let mut at_once = triggered(&act(&world, "look", json!({})).await.expect(202));
    at_once.sort();
    assert_eq!(at_once, ["innkeeper_bob", "town_council_owner"], "one large action is enough");
    for (wrong, pointer) in [
        (json!({ "significance_scores": { "steal": -1 } }), "/settings/significance_scores/steal"),
        (json!({ "significance_scores": { "steal": "much" } }), "/settings/significance_scores/steal"),
        (json!({ "significance_scores": { "Steal!": 1 } }), "/settings/significance_scores/Steal!"),
        (json!({ "reaction_cooldown_seconds": -1 }), "/settings/reaction_cooldown_seconds"),
        (json!({ "reaction_cooldown_seconds": 90000 }), "/settings/reaction_cooldown_seconds"),
        (json!({ "reply_expiry_seconds": 0 }), "/settings/reply_expiry_seconds"),
        (json!({ "report_actions": { "dance": true } }), "/settings/report_actions/dance"),
        (json!({ "significance_scores": { "steal": 1001 } }), "/settings/significance_scores/steal"),
        (json!({ "reactions_at_once_max": 0 }), "/settings/reactions_at_once_max"),
        (json!({ "report_actions": { "moves": "yes" } }), "/settings/report_actions/moves"),
    ] {
        let answer = world.patch("", json!({ "settings": wrong })).await.expect(422);
        assert_eq!(answer.pointers(), [pointer], "{}", answer.text);
    }
}

/// What is wrong is said, and counts nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_report_counts_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 1).await;
    let long = "x".repeat(2001);
    for (body, pointer) in [
        (json!({ "player_id": "player_alice", "type": "dance" }), "/type"),
        (json!({ "player_id": "nobody", "type": "say" }), "/player_id"),
        (json!({ "player_id": "innkeeper_bob", "type": "say" }), "/player_id"),
        (json!({ "player_id": "player_alice", "type": "say", "targets": ["innkeeper_bob", "nobody"] }), "/targets/1"),
        (json!({ "player_id": "player_alice", "type": "say", "text": long }), "/text"),
        (json!({ "player_id": "player_alice", "type": "say", "location": "a\nb" }), "/location"),
        (json!({ "player_id": "player_alice" }), "/type"),
        (json!({ "player_id": "player_alice", "type": "say", "score": 5 }), "/score"),
    ] {
        let answer = world.post("/actions", body).await.expect(422);
        assert_eq!(answer.pointers(), [pointer], "{}", answer.text);
    }
    world
        .client
        .post("/v1/campaigns/elsewhere/actions", json!({ "player_id": "player_alice", "type": "say" }))
        .await
        .expect(404);
    assert!(world.get("/significance").await.expect(200).items().is_empty());
    assert!(reactions(&world, "").await.is_empty());

    // A player's token reports its own character and nobody else's, and sees no scores.
    let alice = tenant.token(json!({ "campaign": world.slug, "player_id": "player_alice", "scopes": ["play"] })).await;
    let of = |player: &str| json!({ "player_id": player, "type": "look" });
    alice.post(&world.path("/actions"), of("player_mallory")).await.problem(403, "forbidden");
    alice.post(&world.path("/actions"), of("player_alice")).await.expect(202);
    alice.get(&world.path("/significance")).await.problem(403, "forbidden");
    alice.get(&world.path("/players/player_mallory/replies")).await.problem(403, "forbidden");
    alice.get(&world.path("/players/player_alice/replies")).await.expect(200);
    let other = server.tenant("globex").await;
    other.post(&world.path("/actions"), of("player_alice")).await.expect(404);
}

/// Several actions in one request count in order, all of them or none.
#[tokio::test(flavor = "multi_thread")]
async fn actions_are_reported_together() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 7).await;
    let many = |actions: serde_json::Value| json!({ "player_id": "player_alice", "actions": actions });
    let wrong = [
        (many(json!([{ "type": "say" }, { "type": "dance" }])), "/actions/1/type"),
        (
            many(json!([{ "type": "say" }, { "type": "say", "targets": ["innkeeper_bob", "nobody"] }])),
            "/actions/1/targets/1",
        ),
        (many(json!([{ "type": "say", "text": "x".repeat(2001) }])), "/actions/0/text"),
        (many(json!([])), "/actions"),
        (many(json!(vec![json!({ "type": "look" }); 51])), "/actions"),
        (json!({ "player_id": "player_alice", "type": "say", "actions": [{ "type": "say" }] }), "/actions"),
        (json!({ "player_id": "nobody", "actions": [{ "type": "say" }] }), "/player_id"),
    ];
    for (body, pointer) in wrong {
        let answer = world.post("/actions", body).await.expect(422);
        assert_eq!(answer.pointers(), [pointer], "{}", answer.text);
    }
    assert!(world.get("/significance").await.expect(200).items().is_empty());
    server.model.set_script(script(vec![to("noticed_actions", Reply::text("Hm."))]));
    let done = world.post("/actions", many(json!([{ "type": "move" }, { "type": "say" }, { "type": "talk" }]))).await;
    assert_eq!(triggered(&done.expect(202)), ["innkeeper_bob"]);
    ended(&world, "done", 1).await;
    let told = asked(&server).pop().unwrap();
    for line in ["1. move", "2. say", "3. talk"] {
        assert!(told.contains(line), "{line}: {told}");
    }
    // Where it happened is the character's own place, unless a game master says otherwise.
    let alice = tenant.token(json!({ "campaign": world.slug, "player_id": "player_alice", "scopes": ["play"] })).await;
    let far = json!({ "player_id": "player_alice", "type": "say", "location": "Harbour" });
    let answer = alice.post(&world.path("/actions"), far.clone()).await.expect(422);
    assert_eq!(answer.pointers(), ["/location"]);
    let near = json!({ "player_id": "player_alice", "type": "say", "location": "town square" });
    alice.post(&world.path("/actions"), near).await.expect(202);
    world.post("/actions", far).await.expect(202);
}

/// The same request with the same key counts once.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_counts_once_per_key() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    let body = json!({ "player_id": "player_alice", "type": "talk" });
    for _ in 0..3 {
        tenant.post_with_key(&world.path("/actions"), "once", body.clone()).await.expect(202);
    }
    let standing = world.get("/significance?entity_id=innkeeper_bob").await.expect(200);
    assert_eq!(standing.items()[0]["score"], 5.0);
}

/// A rehearsal tells who would react and why, and stores nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_rehearsal_stores_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    threshold(&world, "npcs/innkeeper_bob", 7).await;
    let action = |kind: &str| json!({ "player_id": "player_alice", "type": kind });
    let actions: Vec<_> = ["move", "look", "say", "move", "talk", "talk", "talk"].map(action).into();
    let rehearsed = world.post("/significance/rehearse", json!({ "actions": actions })).await.expect(200);
    let bob = |n: usize| {
        let all = rehearsed.body["actions"][n]["concerned"].as_array().unwrap();
        all.iter().find(|one| one["entity"]["slug"] == "innkeeper_bob").unwrap().clone()
    };
    assert_eq!((bob(3)["after"].clone(), bob(3)["reacts"].clone()), (json!(4.0), json!(false)));
    assert_eq!((bob(4)["after"].clone(), bob(4)["reacts"].clone()), (json!(9.0), json!(true)));
    assert_eq!((bob(6)["after"].clone(), bob(6)["reacts"].clone()), (json!(10.0), json!(false)));
    assert!(bob(6)["explanation"].as_str().unwrap().contains("cooldown"), "{}", bob(6));
    assert_eq!(bob(0)["reason"], "location");
    assert!(world.get("/significance").await.expect(200).items().is_empty());
    let wrong = json!({ "actions": [action("look"), action("dance")] });
    assert_eq!(world.post("/significance/rehearse", wrong).await.expect(422).pointers(), ["/actions/1/type"]);
    assert_eq!(server.model.request_count(), 0);
}
