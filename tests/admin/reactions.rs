//! Reactions in the editor: the queue with a dead one, the scores of an NPC and an owner, and the rehearsal of actions.

use edge::users::Role;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{Visitor, words};
use crate::support::{Server, World, until};

const AT: &str = "/admin/c/port-town";

/// Alice and Bob in the town square, with a hostile name, and thresholds that only Bob's reaches.
async fn town(world: &World<'_>) {
    world.patch("/characters/player_alice", json!({ "location": "Town Square" })).await.expect(200);
    let bob = json!({ "name": "<b>Bob</b>", "location": "town-square", "reaction_threshold": 7 });
    world.patch("/npcs/innkeeper_bob", bob).await.expect(200);
    world.patch("/owners/town_council_owner", json!({ "reaction_threshold": 1000 })).await.expect(200);
}

async fn act(world: &World<'_>, kind: &str) {
    let body = json!({ "player_id": "player_alice", "type": kind, "text": "<script>alert(1)</script>" });
    world.post("/actions", body).await.expect(202);
}

async fn one(world: &World<'_>) -> Value {
    world.get("/reactions").await.expect(200).items()[0].clone()
}

/// A reaction of Bob that failed too often.
async fn dead(server: &Server, world: &World<'_>) -> Value {
    server.model.set_script(Script::replies([Reply::status(400)]).then(rehearsal::Then::RepeatLast));
    act(world, "attack").await;
    until("a failed attempt", async || one(world).await["error"].is_object()).await;
    let often = "UPDATE reaction SET tries = 2, due_at = now() WHERE state = 'queued'";
    until("a dead reaction", async || {
        sqlx::query(often).execute(&mut server.owner().await).await.unwrap();
        one(world).await["status"] == "dead"
    })
    .await;
    one(world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_reaction_is_ended_and_tried_again() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    town(&world).await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let list = format!("{AT}/reactions");
    let page = mara.get(&list).await.expect(200).text;
    assert!(page.contains("There are no reactions yet.") && page.contains(&format!("href=\"{list}\"")), "{page}");
    let reaction = dead(&server, &world).await;
    let (id, turn) = (reaction["id"].as_str().unwrap(), reaction["turn_id"].as_str().unwrap());
    let page = mara.get(&list).await.expect(200).text;
    assert!(page.contains("&#60;b&#62;Bob") && !page.contains("<b>Bob"), "{page}");
    assert!(page.contains("<h2>Dead</h2>") && page.contains(&format!("{AT}/turns/{turn}")), "{page}");
    assert!(words(&page).contains("1 action 10"), "{page}");
    assert!(page.contains(&format!("{list}/{id}/end")) && page.contains(&format!("{list}/{id}/retry")), "{page}");
    // Filters.
    for (query, is_there) in [
        ("status=dead", true),
        ("status=done", false),
        ("entity_id=innkeeper_bob&player_id=player_alice&status=", true),
        ("entity_id=&player_id=player_mallory", false),
        ("entity_id=nobody", false),
    ] {
        let page = mara.get(&format!("{list}?{query}")).await.expect(200).text;
        assert_eq!(page.contains(&format!("turns/{turn}")), is_there, "{query}");
        assert_eq!(page.contains("No reactions found."), !is_there, "{query}");
    }
    // Ended, once however often the form is sent; and tried again.
    assert_eq!(mara.post(&format!("{list}/{id}/end"), &[]).await.expect(303).header("location"), list);
    assert_eq!(one(&world).await["status"], "cancelled");
    mara.post(&format!("{list}/{id}/end"), &[]).await.expect(303);
    let page = mara.get(&list).await.expect(200).text;
    assert!(page.contains("<h2>Ended</h2>") && !page.contains("<h2>Dead</h2>"), "{page}");
    server.model.set_script(Script::always(Reply::text("At last.")));
    let back = mara.post(&format!("{list}/{id}/retry"), &[("back", "entity")]).await.expect(303);
    let bob = world.get("/npcs/innkeeper_bob").await.expect(200).id();
    assert_eq!(back.header("location"), format!("{AT}/npcs/{bob}/reactions"));
    assert!(matches!(one(&world).await["status"].as_str().unwrap(), "waiting" | "running" | "done"));
    mara.post(&format!("{list}/{bob}/retry"), &[]).await.expect(404);
    mara.post(&format!("{list}/x/end"), &[]).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_an_npc_and_an_owner_shows_scores() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    town(&world).await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let npc = mara.get(&format!("{AT}/npcs/innkeeper_bob/reactions")).await.expect(200).text;
    assert!(npc.contains("No action of a character has concerned") && !npc.contains("Influence"), "{npc}");
    for kind in ["move", "look", "say", "move"] {
        act(&world, kind).await;
    }
    let npc = mara.get(&format!("{AT}/npcs/innkeeper_bob/reactions")).await.expect(200).text;
    assert!(npc.contains("<meter min=\"0\" max=\"7\" value=\"4\" aria-label=\"4 of 7\">"), "{npc}");
    assert!(words(&npc).contains("Alice 4 of 7 4 – – –") && !npc.contains("<b>Bob"), "{npc}");
    server.model.set_script(Script::always(Reply::text("You again!")));
    act(&world, "talk").await;
    until("the reaction", async || one(&world).await["status"] == "done").await;
    let npc = words(&mara.get(&format!("{AT}/npcs/innkeeper_bob/reactions")).await.expect(200).text);
    assert!(npc.contains("Alice 0 of 7 0 in ") && npc.contains("Last reaction To whom Alice State done"), "{npc}");
    assert!(npc.contains("5 actions with a score of 9"), "{npc}");
    let influence = json!({ "influence": { "current": 12.5, "max": 50, "regen_per_hour": 0 } });
    world.patch("/owners/town_council_owner", influence).await.expect(200);
    let owner = words(&mara.get(&format!("{AT}/owners/town_council_owner/reactions")).await.expect(200).text);
    assert!(owner.contains("12.5 of 50, 0 regained per hour") && owner.contains("9 of 1000"), "{owner}");
    // The form knows the threshold, and the page leads there.
    let bob = world.get("/npcs/innkeeper_bob").await.expect(200);
    let (path, version) = (format!("{AT}/npcs/{}", bob.id()), bob.body["version"].to_string());
    let page = mara.get(&path).await.expect(200).text;
    assert!(page.contains(&format!("href=\"{path}/reactions\"")), "{page}");
    let form = mara.get(&format!("{path}/edit")).await.expect(200).text;
    assert_eq!(super::field(&form, "reaction_threshold"), "7");
    mara.post(&path, &[("name", "Bob"), ("version", &version), ("reaction_threshold", "12")]).await.expect(303);
    assert_eq!(world.get("/npcs/innkeeper_bob").await.body["reaction_threshold"], 12);
    let settings = mara.get(&format!("{AT}/edit")).await.expect(200).text;
    assert!(settings.contains("significance_scores") && settings.contains("report_actions"), "{settings}");
}

const EXAMPLE: &str =
    "move\nlook\nsay: <i>Good evening.</i>\n\nmove @ Town Square\ntalk innkeeper_bob: A room, please.\nmove @ nowhere";

#[tokio::test(flavor = "multi_thread")]
async fn actions_are_rehearsed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    town(&world).await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let at = format!("{AT}/rehearsal");
    let form = mara.get(&at).await.expect(200).text;
    assert!(words(&form).contains("talk 5") && form.contains("value=\"player_alice\" selected"), "{form}");
    let play = async |actions: &str, more: &[(&str, &str)]| {
        let mut fields = vec![("player", "player_alice"), ("actions", actions)];
        fields.extend(more);
        mara.post(&at, &fields).await
    };
    let page = play(EXAMPLE, &[]).await.expect(200).text;
    let result = words(page.split_once("id=\"result\"").unwrap().1);
    assert!(result.contains("reacts after action 5."), "{result}");
    for row in [
        "is at the location 3 → 4 of 7 4 is less than the threshold 7.",
        "5. talk innkeeper_bob: A room, please. 5 &#60;b&#62;Bob&#60;/b&#62; is a target 4 → 9 of 7 reacts 9 reaches the threshold 7.",
        "watches over the location 4 → 9 of 1000 9 is less",
        "6. move @ nowhere 1 Nobody is concerned.",
    ] {
        assert!(result.contains(row), "{row}: {result}");
    }
    assert!(page.contains("&#60;i&#62;Good") && !page.contains("<i>") && !page.contains("<b>Bob"), "{page}");
    assert_eq!((one_or_none(&world).await, server.model.request_count()), (0, 0));
    // With what is there already, it is enough earlier.
    act(&world, "talk").await;
    let page = play("say", &[("from_present", "1")]).await.expect(200).text;
    assert!(words(&page).contains("5 → 7 of 7 reacts") && page.contains("value=\"1\" checked"), "{page}");
    // What is wrong is told with its line, and what was written stays.
    for (actions, says) in [
        ("look\ndance", "Line 2: “dance”: this campaign has no such type."),
        ("look\n\ntalk nobody, innkeeper_bob", "Line 3, “nobody”: There is no such character, NPC or owner"),
        ("talk <u>x", "Line 1, “&#60;u&#62;x”: There is no such"),
        ("", "Write at least one action."),
    ] {
        let page = play(actions, &[]).await.expect(422).text;
        assert!(page.contains(says) && !page.contains("id=\"result\"") && !page.contains("<u>"), "{says}: {page}");
        assert!(page.contains("aria-invalid=\"true\""), "{page}");
    }
    let page = mara.post(&at, &[("player", "nobody"), ("actions", "look")]).await.expect(422).text;
    assert!(page.contains("no such character in this campaign"), "{page}");
}

async fn one_or_none(world: &World<'_>) -> usize {
    world.get("/reactions").await.expect(200).items().len() + world.get("/significance").await.expect(200).items().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn viewers_see_no_reactions() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mut vera = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    for page in ["reactions", "rehearsal", "npcs/innkeeper_bob/reactions", "owners/town_council_owner/reactions"] {
        vera.get(&format!("{AT}/{page}")).await.expect(403);
    }
    vera.post(&format!("{AT}/rehearsal"), &[("player", "player_alice"), ("actions", "look")]).await.expect(403);
    let npc = vera.get(&format!("{AT}/npcs/innkeeper_bob")).await.expect(200).text;
    assert!(!npc.contains("/reactions") && !npc.contains("/rehearsal"), "{npc}");
}
