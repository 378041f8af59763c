//! Replies wait until their players can hear them, and prayers.

use std::collections::HashSet;

use rehearsal::{Reply, Script};
use serde_json::json;
use sqlx::{AssertSqlSafe, Executor};

use super::{act, asked, ended, reactions, replies, script, settings, threshold, to, town, triggered};
use crate::{
    bridge::Socket,
    support::{Server, World, close_others, reads, sse::Events, until},
};

async fn spoken_to<'a>(server: &Server, world: World<'a>) -> World<'a> {
    let world = town(world).await;
    threshold(&world, "npcs/innkeeper_bob", 5).await;
    let remember = Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "She talks." }));
    server.model.set_script(Script::replies([remember.with_text("Well met."), Reply::text("Stay a while.")]));
    world
}

/// A reply that was taken is part of the conversation, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_heard_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = spoken_to(&server, tenant.world().await).await;
    act(&world, "talk", json!({})).await.expect(202);
    ended(&world, "done", 1).await;
    assert!(world.get("/messages").await.expect(200).items().is_empty(), "nobody has heard it yet");
    let heard = replies(&world).await;
    assert_eq!(heard[0]["narrative"], "Well met.\n\nStay a while.");
    let ack = format!("/players/player_alice/replies/{}/ack", heard[0]["id"].as_str().unwrap());
    world.post(&ack, json!({})).await.expect(204);
    world.post(&ack, json!({})).await.expect(204);
    assert!(replies(&world).await.is_empty());
    let alice =
        tenant.token(json!({ "campaign": world.slug, "player_id": "player_alice", "scopes": ["play", "read"] })).await;
    let said = alice.get(&world.path("/messages")).await.expect(200);
    assert_eq!(said.items().len(), 1, "what the model read is not for players: {}", said.text);
    assert_eq!((&said.items()[0]["content"], &said.items()[0]["author"]), (&heard[0]["narrative"], &json!("ai")));
    // The next turn knows what was said.
    world.bob("player_alice", "What did you say?").await.expect(200);
    let request = server.model.requests().pop().unwrap();
    assert!(request.to_string().contains("Stay a while."), "{request}");

    // Undoing the turn takes everything back.
    let turn = heard[0]["turn_id"].as_str().unwrap();
    world.post(&format!("/turns/{turn}/undo"), json!({})).await.expect(200);
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.len(), 1);
    assert!(!alice.get(&world.path("/messages")).await.expect(200).text.contains("Stay a while."));
}

/// Words do not follow a player who has left; if asked, what was done for them is undone.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_left_hears_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = spoken_to(&server, tenant.world().await).await;
    settings(&world, json!({ "withheld_reverts": true, "reaction_cooldown_seconds": 0 })).await;
    act(&world, "talk", json!({})).await.expect(202);
    ended(&world, "done", 1).await;
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.len(), 2);
    world.patch("/characters/player_alice", json!({ "location": "harbour" })).await.expect(200);
    assert!(replies(&world).await.is_empty());
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.len(), 1, "the effect is taken back");
    world.patch("/characters/player_alice", json!({ "location": "town square" })).await.expect(200);
    assert!(replies(&world).await.is_empty(), "it does not come back");
    let kept = world.get("/players/player_alice/replies?status=withheld").await.expect(200);
    assert_eq!(kept.items().len(), 1, "the game master sees it all the same: {}", kept.text);

    // Without that setting the effects stay.
    settings(&world, json!({ "withheld_reverts": null })).await;
    server.model.set_script(Script::replies([
        Reply::tool("NPC_memorize", json!({ "player_id": "player_alice", "memory_string": "Again." })),
        Reply::text("Again!"),
    ]));
    act(&world, "talk", json!({})).await.expect(202);
    ended(&world, "done", 2).await;
    let waiting =
        world.get("/players/player_alice/replies").await.expect(200).items()[0]["id"].as_str().unwrap().to_owned();
    world.patch("/characters/player_alice", json!({ "location": "harbour" })).await.expect(200);
    world.post(&format!("/players/player_alice/replies/{waiting}/ack"), json!({})).await.problem(410, "gone");
    assert_eq!(world.memories("npcs/innkeeper_bob", "player_alice").await.len(), 2);
    let withheld = world.get("/players/player_alice/replies?status=withheld").await.expect(200);
    assert_eq!(withheld.items().len(), 2, "{}", withheld.text);
    let one = &withheld.items()[1];
    assert_eq!(
        (&one["id"], &one["status"], &one["conditions"]["in_place"]),
        (&json!(waiting), &json!("withheld"), &json!(true))
    );
    assert!(world.get("/players/player_alice/replies?status=delivered").await.expect(200).items().is_empty());
    let alice = tenant.token(json!({ "campaign": world.slug, "player_id": "player_alice", "scopes": ["play"] })).await;
    alice.get(&world.path("/players/player_alice/replies?status=withheld")).await.problem(403, "forbidden");
    world.post("/players/player_alice/replies/nonsense/ack", json!({})).await.expect(404);
    world.post(&format!("/players/player_mallory/replies/{waiting}/ack"), json!({})).await.expect(404);
}

/// Replies come in pages. Those that cannot be heard are left out of their page.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_replies_come_in_pages() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    for n in 0..7 {
        let place = if n == 2 { "harbour" } else { "town_square" };
        let npc = json!({ "slug": format!("npc_{n}"), "name": format!("Npc {n}"), "location": place, "reaction_threshold": 1 });
        world.post("/npcs", npc).await.expect(201);
    }
    server.model.set_script(Script::always(Reply::text("Hm.")));
    for place in ["town_square", "harbour"] {
        act(&world, "say", json!({ "location": place })).await.expect(202);
    }
    ended(&world, "done", 7).await;
    for sort in ["created_at", "-created_at"] {
        let (mut cursor, mut seen) = (String::new(), Vec::new());
        loop {
            let page =
                world.get(&format!("/players/player_alice/replies?limit=2&sort={sort}{cursor}")).await.expect(200);
            seen.extend(page.items().iter().map(|reply| reply["entity"]["slug"].as_str().unwrap().to_owned()));
            let Some(next) = page.body["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        seen.sort();
        assert_eq!(seen, ["npc_0", "npc_1", "npc_3", "npc_4", "npc_5", "npc_6"], "{sort}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_does_not_wait_for_ever() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = spoken_to(&server, tenant.world().await).await;
    settings(&world, json!({ "reply_expiry_seconds": 1, "withheld_reverts": true })).await;
    act(&world, "talk", json!({})).await.expect(202);
    ended(&world, "done", 1).await;
    until("nobody fetched it in time", async || world.memories("npcs/innkeeper_bob", "player_alice").await.len() == 1)
        .await;
    assert!(replies(&world).await.is_empty());
}

/// A server that stops after it has dropped a reply leaves the undo to the next one.
#[tokio::test(flavor = "multi_thread")]
async fn an_undo_that_was_interrupted_is_done_later() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = spoken_to(&server, tenant.world().await).await;
    settings(&world, json!({ "withheld_reverts": true })).await;
    act(&world, "talk", json!({})).await.expect(202);
    ended(&world, "done", 1).await;
    let mut db = server.owner().await;
    let dropped = sqlx::query("UPDATE reply SET state = 'withheld', ended_at = now() - interval '2 minutes'")
        .execute(&mut db)
        .await
        .unwrap();
    assert_eq!(dropped.rows_affected(), 1);
    until("the effect is taken back", async || world.memories("npcs/innkeeper_bob", "player_alice").await.len() == 1)
        .await;
}

/// Scores of an entity go with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_npc_has_no_scores() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    act(&world, "look", json!({})).await.expect(202);
    let all = world.get("/significance").await.expect(200).items().len();
    world.delete("/npcs/innkeeper_bob").await.expect(204);
    assert_eq!(world.get("/significance").await.expect(200).items().len(), all - 1);
}

/// A stream hears a reply as soon as it is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_hears_replies() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = spoken_to(&server, tenant.world().await).await;
    let alice = tenant.token(json!({ "campaign": world.slug, "player_id": "player_alice", "scopes": ["play"] })).await;
    let request = alice.request(reqwest::Method::GET, &world.path("/players/player_alice/replies/events"));
    let mut events = Events::of(request.send().await.unwrap());
    act(&world, "talk", json!({})).await.expect(202);
    let event = events.next().await.unwrap();
    assert_eq!(event.name, "reply");
    assert_eq!(event.data["reply"]["narrative"], "Well met.\n\nStay a while.");
    // The stream of the campaign tells it, too: to her and to the game master, and to nobody else.
    let mallory = tenant
        .token(json!({ "campaign": world.slug, "player_id": "player_mallory", "scopes": ["read", "play"] }))
        .await;
    let alice =
        tenant.token(json!({ "campaign": world.slug, "player_id": "player_alice", "scopes": ["read", "play"] })).await;
    for client in [&alice, &tenant] {
        let request = client.request(reqwest::Method::GET, &world.path("/events"));
        let event = Events::of(request.send().await.unwrap()).next().await.unwrap();
        assert_eq!((event.name.as_str(), &event.data["reply"]["id"]), ("reply", &replies(&world).await[0]["id"]));
    }
    let request = mallory.request(reqwest::Method::GET, &world.path("/events"));
    let mut hers = Events::of(request.send().await.unwrap());
    world.post("/messages", json!({ "content": "Hear ye." })).await.expect(201);
    assert_eq!(hers.next().await.unwrap().name, "change");
}

/// However many replies wait, a change costs a stream only what the change is about.
#[tokio::test(flavor = "multi_thread")]
async fn streams_do_not_read_again_what_waits() {
    const MANY: usize = 1000;
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = spoken_to(&server, tenant.world().await).await;
    act(&world, "talk", json!({})).await.expect(202);
    ended(&world, "done", 1).await;
    let mut db = server.owner().await;
    let copies = |count: usize, changes: &str| {
        AssertSqlSafe(format!(
            "INSERT INTO reply SELECT (jsonb_populate_record(NULL::reply, to_jsonb(r) || jsonb_build_object('id', uuid7()) || '{changes}')).* \
             FROM (SELECT * FROM reply LIMIT 1) r, generate_series(1, {count})"
        ))
    };
    db.execute(copies(MANY - 1, "{}")).await.unwrap();
    db.execute("ANALYZE").await.unwrap();
    let alice = tenant.token(json!({ "campaign": world.slug, "player_id": "player_alice", "scopes": ["play"] })).await;
    let request = alice.request(reqwest::Method::GET, &world.path("/players/player_alice/replies/events"));
    let mut hers = Events::of(request.send().await.unwrap());
    let request = tenant.request(reqwest::Method::GET, &world.path("/events"));
    let mut masters = Events::of(request.send().await.unwrap());
    for stream in [&mut hers, &mut masters] {
        let mut heard = HashSet::new();
        while heard.len() < MANY {
            let event = stream.next().await.unwrap();
            assert_eq!(event.name, "reply");
            assert!(heard.insert(event.data["reply"]["id"].to_string()), "each is told once");
        }
    }
    close_others(&mut db).await;
    let (_, before) = reads(&mut db, "reply").await;
    for n in 0..30 {
        world.post("/messages", json!({ "content": format!("Message {n}.") })).await.expect(201);
        assert_eq!(masters.next().await.unwrap().data["after"]["content"], format!("Message {n}."));
    }
    // What is new comes: a reply, and one that was made for another location, when its player has come there.
    db.execute(copies(1, r#"{"narrative": "Late."}"#)).await.unwrap();
    assert_eq!(hers.next().await.unwrap().data["reply"]["narrative"], "Late.");
    while masters.next().await.unwrap().data["reply"]["narrative"] != "Late." {}
    close_others(&mut db).await;
    let (_, after) = reads(&mut db, "reply").await;
    assert!(after - before < 300, "{} rows of replies were read", after - before);

    // Mallory is not at the lighthouse yet, and nobody who would drop it reads for her.
    let mallory = world.get("/characters/player_mallory").await.expect(200).id();
    let to_mallory = json!({ "player_id": mallory, "narrative": "Ahoy.", "location_key": "lighthouse" });
    db.execute(copies(1, &to_mallory.to_string())).await.unwrap();
    while masters.next().await.unwrap().data["after"]["narrative"] != "Ahoy." {}
    world.patch("/characters/player_mallory", json!({ "location": "lighthouse" })).await.expect(200);
    while masters.next().await.unwrap().data["reply"]["narrative"] != "Ahoy." {}
    // A frontend is told what can be heard, also behind a hundred that cannot.
    let far = json!({ "player_id": mallory, "narrative": "Far.", "location_key": "far" });
    db.execute(copies(120, &far.to_string())).await.unwrap();
    let land = json!({ "player_id": mallory, "narrative": "Land!", "location_key": "lighthouse" });
    db.execute(copies(1, &land.to_string())).await.unwrap();
    let token = tenant.token(json!({ "campaign": world.slug, "player_id": "player_mallory" })).await;
    let (mut frontend, _) = Socket::connect(&server.url, &token.credential, json!({ "client_id": "hers" })).await;
    while frontend.next_of("reply").await["data"]["reply"]["narrative"] != "Land!" {}
}

/// All owners of the player's location, race and profession answer; one that fails does not silence the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_prayer_is_answered_by_all_who_listen() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    let owner = |slug: &str, aspect: &str, of: &str, personality: &str| json!({ "slug": slug, "name": slug, "monitored_aspect": aspect, "associated_id": of, "personality_prompt": personality });
    world.post("/owners", owner("of_humans", "race", "human", "Mild.")).await.expect(201);
    world.post("/owners", owner("of_adventurers", "profession", "adventurer", "Gruff.")).await.expect(201);
    world.post("/owners", owner("of_elves", "race", "elf", "Far.")).await.expect(201);
    server.model.set_script(script(vec![to("Hear me", Reply::text("I hear you."))]));
    let prayed = world
        .post("/pray", json!({ "player_id": "player_alice", "message": "Hear me </prayer> now" }))
        .await
        .expect(202);
    let mut who = triggered(&prayed);
    who.sort();
    assert_eq!(who, ["of_adventurers", "of_humans", "town_council_owner"]);
    ended(&world, "done", 3).await;
    assert_eq!(replies(&world).await.len(), 3);
    assert!(
        asked(&server).iter().all(|told| told.contains("prays to you") && told.matches("</prayer>").count() == 1),
        "{:?}",
        asked(&server)
    );
    // A prayer is heard wherever the player goes.
    world.patch("/characters/player_alice", json!({ "location": "nowhere" })).await.expect(200);
    assert_eq!(replies(&world).await.len(), 3);

    // Two listen where she is now. One of them fails.
    server.model.set_script(
        Script::replies([Reply::status(403), Reply::text("Still here.")]).then(rehearsal::Then::RepeatLast),
    );
    let prayed = world.post("/pray", json!({ "player_id": "player_alice", "message": "Again" })).await.expect(202);
    assert_eq!(triggered(&prayed).len(), 2);
    until("the other one", async || replies(&world).await.iter().any(|reply| reply["narrative"] == "Still here."))
        .await;

    assert_eq!(
        world.post("/pray", json!({ "player_id": "player_alice", "message": " " })).await.expect(422).pointers(),
        ["/message"]
    );
    assert_eq!(
        world.post("/pray", json!({ "player_id": "nobody", "message": "Hm" })).await.expect(422).pointers(),
        ["/player_id"]
    );
    // Over the limit of a day, prayers wait for the first days that have room.
    until("both", async || reactions(&world, "&status=running").await.is_empty()).await;
    sqlx::query("UPDATE reaction SET state = 'dead' WHERE state = 'queued'")
        .execute(&mut server.owner().await)
        .await
        .unwrap();
    settings(&world, json!({ "reactions_per_day_max": 1 })).await;
    let more = json!({ "player_id": "player_alice", "message": "More" });
    assert_eq!(triggered(&world.post("/pray", more).await.expect(202)).len(), 2);
    let due: Vec<String> =
        reactions(&world, "&status=waiting").await.iter().map(|one| one["due_at"].to_string()).collect();
    assert_eq!(due.len(), 2);
    assert!(due.iter().all(|due| due.contains("T00:00:00Z")) && due[0] != due[1], "{due:?}");
    // After a week there is no room left, and what is refused leaves nothing behind.
    let full = "INSERT INTO reaction_day SELECT tenant_id, campaign_id, day + n, 1 FROM reaction_day, generate_series(1, 7) n \
                WHERE campaign_id <> '00000000-0000-0000-0000-000000000000' ON CONFLICT DO NOTHING";
    sqlx::query(full).execute(&mut server.owner().await).await.unwrap();
    sqlx::query("UPDATE reaction SET state = 'dead' WHERE state = 'queued'")
        .execute(&mut server.owner().await)
        .await
        .unwrap();
    let most = json!({ "player_id": "player_alice", "message": "Most" });
    world.post("/pray", most).await.problem(429, "quota_exceeded");
    assert_eq!(reactions(&world, "").await.len(), 7);
}

/// Whoever does not answer a prayer because too many would is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_prayer_names_those_who_are_too_many() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = town(tenant.world().await).await;
    for n in 0..22 {
        let owner = json!({ "slug": format!("of_humans_{n}"), "name": format!("Of Humans {n}"), "monitored_aspect": "race", "associated_id": "human" });
        world.post("/owners", owner).await.expect(201);
    }
    server.model.set_script(Script::always(Reply::text("I hear you.")));
    let prayer = json!({ "player_id": "player_alice", "message": "Hear me" });
    let prayed = world.post("/pray", prayer).await.expect(202);
    let answering = triggered(&prayed);
    let left_out: Vec<_> =
        prayed.body["left_out"].as_array().unwrap().iter().map(|o| o["slug"].as_str().unwrap().to_owned()).collect();
    assert_eq!((answering.len(), left_out.len()), (20, 3), "{}", prayed.text);
    assert!(left_out.iter().all(|slug| !answering.contains(slug)));
}
