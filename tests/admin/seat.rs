//! The game master's table: by plain forms, and in a real Chromium.

use edge::users::Role;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{EMAIL, Visitor, field, looks::barriers, sign_in, words};
use crate::{
    play::{Guest, sit_down, token},
    support::{Client, Server, World, browser::Browser, until},
};

const TABLE: &str = "/admin/c/port-town/table";
const ALICE: &str = "player_alice";
const MALLORY: &str = "player_mallory";

/// The newest message.
async fn newest(world: &World<'_>) -> Value {
    world.get("/messages?sort=-created_at&limit=1").await.expect(200).items()[0].clone()
}

/// What a player reads at the table.
async fn reads(server: &Server, tenant: &Client<'_>, player: &str) -> String {
    let guest = Guest::seated(server, &token(tenant, player).await).await;
    guest.send(guest.http().get(format!("{}/play/port-town", server.url)).header("cookie", guest.cookie())).await.text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_game_master_speaks_as_the_narrator_and_as_npcs_and_reads_everything() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let say = format!("{TABLE}/say");
    let said = mara.post(&say, &[("text", " The lantern <flickers>. ")]).await.expect(303);
    assert_eq!(said.header("location"), TABLE);
    let message = newest(&world).await;
    assert_eq!(
        (&message["author"], &message["speaker"]["name"], &message["content"], &message["turn_id"]),
        (&json!("gm"), &json!("Narrator"), &json!("The lantern <flickers>."), &Value::Null)
    );
    mara.post(&say, &[("as", "innkeeper_bob"), ("to", ALICE), ("text", "The cellar.")]).await.expect(303);
    let message = newest(&world).await;
    let alice = world.get("/characters/player_alice").await.expect(200).id();
    assert_eq!((&message["speaker"]["name"], &message["whisper_to"]), (&json!("Innkeeper Bob"), &json!([alice])));
    // By a command, as players whisper, and with dice for nobody else.
    mara.post(&say, &[("text", "/w Mallory: Run.")]).await.expect(303);
    mara.post(&say, &[("text", "/r 1d1+41"), ("to", ALICE)]).await.expect(303);
    let rolled = newest(&world).await;
    assert_eq!((&rolled["roll"]["total"], &rolled["whisper_to"]), (&json!(42), &json!([alice])));
    mara.post(&format!("{TABLE}/roll"), &[("formula", "1d1+6"), ("blind", "1")]).await.expect(303);
    let rolled = newest(&world).await;
    assert_eq!(
        (&rolled["roll"]["total"], &rolled["blind"], &rolled["author"]),
        (&json!(7), &json!(true), &json!("gm"))
    );
    mara.post(&say, &[("text", "/r 1d1+8"), ("blind", "1")]).await.expect(303);
    assert_eq!(newest(&world).await["blind"], true, "a typed roll is secret, too");
    // A whisper of players to each other.
    let secret = json!({ "content": "Trust nobody.", "author": "player", "player_id": MALLORY, "whisper_to": [ALICE],
        "speaker": { "name": "Mallory" } });
    world.post("/messages", secret).await.expect(201);
    let page = mara.get(TABLE).await.expect(200).text;
    for seen in
        ["The lantern &#60;flickers&#62;.", "The cellar.", "Run.", "Trust nobody.", "only game masters see this"]
    {
        assert!(page.contains(seen), "{seen}: {page}");
    }
    assert!(words(&page).contains("Mallory whispers to Alice"), "{}", words(&page));
    let alice_reads = reads(&server, &tenant, ALICE).await;
    assert!(alice_reads.contains("The cellar.") && alice_reads.contains("Trust nobody."), "{alice_reads}");
    assert!(!alice_reads.contains("Run.") && !alice_reads.contains("<strong>7</strong>"), "{alice_reads}");
    // An NPC's conversation has none of it.
    let prompt = world.prompt("innkeeper_bob", ALICE, "I listen.").await.to_string();
    assert!(!prompt.contains("The cellar.") && !prompt.contains("flickers"), "{prompt}");
}

/// What cannot be said is not said to somebody else instead.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_said_says_why_and_nothing_is_said() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let before = world.get("/messages").await.expect(200).items().len();
    for (path, fields, why) in [
        ("say", &[("text", "  ")][..], "Write something"),
        ("say", &[("text", &"x".repeat(4_001))], "in at most 4000 characters"),
        ("say", &[("text", "Psst."), ("to", "nobody_here")], "nothing was sent"),
        ("say", &[("text", "Psst."), ("as", "nobody_here")], "nothing was sent"),
        ("say", &[("text", "/w Zorro Psst.")], "Your whisper was not sent. You can whisper to Alice"),
        ("say", &[("text", "/w Alice")], "Write your message after the name"),
        ("say", &[("text", "/r 1d")], "faces"),
        ("roll", &[("formula", "")], "formula"),
        ("roll", &[("die", "1d20"), ("to", "nobody_here")], "nothing was sent"),
    ] {
        let refused = mara.post(&format!("{TABLE}/{path}"), fields).await.expect(303);
        mara.keep(&refused);
        let cookie = refused.header("set-cookie").split(';').next().unwrap().to_owned();
        let page = mara.send(mara.request("GET", TABLE).header("cookie", cookie)).await.expect(200).text;
        let (_, rest) =
            page.split_once("<p class=\"alert\" role=\"alert\"").unwrap_or_else(|| panic!("{fields:?}: {page}"));
        let told = rest.split("</p>").next().unwrap();
        assert!(told.contains(why), "{fields:?}: {told}");
    }
    assert_eq!(world.get("/messages").await.expect(200).items().len(), before);
    let viewer = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    viewer.post(&format!("{TABLE}/say"), &[("text", "Hello.")]).await.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_corrected_and_struck_as_they_were_seen() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    server.model.set_script(Script::always(Reply::text("Who are yuo?")));
    let turn = world.bob(ALICE, "I knock.").await.expect(200).id();
    let answer = newest(&world).await["id"].as_str().unwrap().to_owned();
    let path = format!("{TABLE}/messages/{answer}");
    let form = mara.get(&path).await.expect(200).text;
    assert_eq!(field(&form, "text"), "Who are yuo?");
    let version = field(&form, "version");
    mara.post(&format!("{path}/correct"), &[("version", &version), ("text", "Who are you?")]).await.expect(303);
    let told = world.get(&format!("/turns/{turn}")).await.expect(200);
    assert_eq!(
        (&told.body["narrative"], &newest(&world).await["content"]),
        (&json!("Who are you?"), &json!("Who are you?"))
    );
    // Somebody else's form is late, and changes nothing.
    for late in ["correct", "strike"] {
        let refused =
            mara.post(&format!("{path}/{late}"), &[("version", &version), ("text", "Go away.")]).await.expect(303);
        assert!(refused.header("set-cookie").starts_with("tavernkeep_message=!"), "{late}");
    }
    assert_eq!(newest(&world).await["content"], "Who are you?");
    let line = world.post("/messages", json!({ "content": "A ghost." })).await.expect(201).id();
    let path = format!("{TABLE}/messages/{line}");
    mara.post(&format!("{path}/correct"), &[("version", "1"), ("text", " A guest. ")]).await.expect(303);
    assert_eq!(newest(&world).await["content"], "A guest.");
    mara.post(&format!("{path}/strike"), &[("version", "2")]).await.expect(303);
    world.get(&format!("/messages/{line}")).await.expect(404);
    mara.get(&path).await.expect(404);
    for gone in ["correct", "strike"] {
        let refused = mara.post(&format!("{path}/{gone}"), &[("version", "2"), ("text", "x")]).await.expect(303);
        assert!(refused.header("set-cookie").starts_with("tavernkeep_message=!"), "{gone}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hit_points_conditions_and_places_change_by_click() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    world.patch("/characters/player_alice", json!({ "hp": 20, "max_hp": 20 })).await.expect(200);
    world.patch("/npcs/innkeeper_bob", json!({ "stats": { "hp": 9, "max_hp": 9 } })).await.expect(200);
    let change = format!("{TABLE}/change");
    let who = "characters/player_alice";
    for (fields, why) in [
        (&[("do", "damage"), ("amount", "5")][..], ""),
        (&[("do", "heal"), ("amount", "2")], ""),
        (&[("do", "temp_hp"), ("amount", "4")], ""),
        (&[("do", "add_condition"), ("condition", "prone")], ""),
        (&[("do", "move"), ("place", "Town Square")], ""),
        (&[("do", "damage"), ("amount", "many")], "!"),
        (&[("do", "damage"), ("amount", "-3")], "!"),
        (&[("do", "add_condition"), ("condition", "sleepy")], "!"),
        (&[("remove", "blinded")], "!"),
        (&[("do", "dance")], "!"),
    ] {
        let mut all = vec![("who", who)];
        all.extend(fields);
        let done = mara.post(&change, &all).await.expect(303);
        assert!(done.header("set-cookie").starts_with(&format!("tavernkeep_message={why}")), "{fields:?}");
        assert_eq!(done.header("set-cookie").starts_with("tavernkeep_message=!"), why == "!", "{fields:?}");
    }
    let alice = world.get("/characters/player_alice").await.expect(200).body;
    assert_eq!((&alice["hp"], &alice["temp_hp"], &alice["location"]), (&json!(17), &json!(4), &json!("Town Square")));
    assert_eq!(alice["conditions"][0]["name"], "prone");
    mara.post(&change, &[("who", who), ("remove", "prone")]).await.expect(303);
    mara.post(&change, &[("who", "npcs/innkeeper_bob"), ("do", "damage"), ("amount", "4")]).await.expect(303);
    mara.post(&change, &[("who", "npcs/innkeeper_bob"), ("do", "move"), ("place", "")]).await.expect(303);
    assert_eq!(world.get("/characters/player_alice").await.expect(200).body["conditions"], json!([]));
    // The table reads what changes for a character, and nothing of NPCs.
    let told = reads(&server, &tenant, ALICE).await;
    assert!(told.contains("Alice takes 5 damage") && !told.contains("Innkeeper Bob takes"), "{told}");
    let bob = world.get("/npcs/innkeeper_bob").await.expect(200).body;
    assert_eq!((&bob["stats"]["hp"], &bob["location"]), (&json!(5), &Value::Null));
    for nobody in ["characters/nobody", "lore/the_reach", ""] {
        mara.post(&change, &[("who", nobody), ("do", "heal"), ("amount", "1")]).await.expect(404);
    }
    // A form that is sent twice does its work once.
    let form = mara.get(&format!("{change}?who={who}")).await.expect(200).text;
    let twice = [("who", who), ("do", "damage"), ("amount", "3"), ("form_id", &field(&form, "form_id"))];
    for _ in 0..2 {
        mara.post(&change, &twice).await.expect(303);
    }
    let alice = world.get("/characters/player_alice").await.expect(200).body;
    assert_eq!((&alice["hp"], &alice["temp_hp"]), (&json!(17), &json!(1)));
    // In a fight, the fight has them, and the sheet is written when it is committed.
    let fight = json!({ "participants": [{ "character_id": ALICE, "id": "alice" }, { "id": "orc", "hp": 5, "max_hp": 5, "is_enemy": true }] });
    let fight = world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    mara.post(&change, &[("who", who), ("do", "damage"), ("amount", "6")]).await.expect(303);
    let told = world.get(&format!("/encounters/{fight}?verbosity=detailed")).await.expect(200);
    let own = told.body["participants"].as_array().unwrap().iter().find(|p| p["id"] == "alice").unwrap().clone();
    assert_eq!(own["hp"], 12);
    assert_eq!(world.get("/characters/player_alice").await.expect(200).body["hp"], 17);
    let form = words(&mara.get(&format!("{change}?who={who}")).await.expect(200).text);
    assert!(form.contains("12 of 20 hit points") && form.contains("in the fight"), "{form}");
    // By the place in the fight, which the orc has as well.
    let in_fight = |id: &str| format!("fighters/{fight}/{id}");
    mara.post(&change, &[("who", &in_fight("alice")), ("do", "damage"), ("amount", "1")]).await.expect(303);
    mara.post(&change, &[("who", &in_fight("orc")), ("do", "add_condition"), ("condition", "prone")]).await.expect(303);
    let form = words(&mara.get(&format!("{change}?who={}", in_fight("alice"))).await.expect(200).text);
    assert!(form.contains("11 of 20 hit points") && form.contains("Move there"), "{form}");
    let form = words(&mara.get(&format!("{change}?who={}", in_fight("orc"))).await.expect(200).text);
    assert!(form.contains("5 of 5 hit points") && form.contains("No longer prone"), "{form}");
    assert!(!form.contains("Move there") && !form.contains("The sheet"), "{form}");
    for wrong in ["ghost", "", "../../x", "<b>"] {
        mara.post(&change, &[("who", &in_fight(wrong)), ("do", "heal"), ("amount", "1")]).await.expect(404);
    }
    for wrong in ["fighters/", "fighters/1/orc", &format!("fighters/{ALICE}/orc")] {
        mara.get(&format!("{change}?who={wrong}")).await.expect(404);
    }
    mara.post(&change, &[("who", &in_fight("orc")), ("do", "move"), ("place", "Pier")]).await.expect(303);
    mara.post(&change, &[("who", &in_fight("orc")), ("do", "leave")]).await.expect(303);
    mara.get(&format!("{change}?who={}", in_fight("orc"))).await.expect(404);
    let table = words(&mara.get(TABLE).await.expect(200).text);
    assert!(table.contains("Alice in a fight"), "{table}");
    world.post(&format!("/encounters/{fight}/end"), json!({ "outcome": "fled" })).await.expect(200);
    let late = mara.post(&change, &[("who", &in_fight("alice")), ("do", "damage"), ("amount", "1")]).await;
    late.expect(404);
}

/// The table in a browser, as its game master sees it.
async fn at_the_table(server: &Server, tenant: &Client<'_>, email: &str) -> Option<Browser> {
    let password = server.user(tenant.tenant, email, Role::Editor).await;
    let browser = Browser::open().await?;
    sign_in(&browser, server, email, &password).await;
    browser.sees("h1", "Campaigns").await;
    browser.goto(&format!("{}{TABLE}", server.url)).await;
    browser.sees("#here", "Alice").await;
    Some(browser)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_comes_to_the_game_masters_by_itself() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("/characters/player_alice", json!({ "hp": 20, "max_hp": 20 })).await.expect(200);
    let Some(mara) = at_the_table(&server, &tenant, EMAIL).await else { return };
    let Some(ines) = at_the_table(&server, &tenant, "ines@example.org").await else { return };
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    alice.send(alice.form("/play/port-town/say", &[("text", "I open the door.")])).await.expect(303);
    mara.sees("#said", "I open the door.").await;
    // As an NPC to one player, chosen by clicks. The choice outlives what comes and goes.
    mara.click("#here a[href$='npcs/innkeeper_bob']").await;
    mara.sees("#change", "Speak as Innkeeper Bob").await;
    mara.click("#change a[data-as]").await;
    mara.choose("#to", ALICE).await;
    world.post("/npcs", json!({ "slug": "ada", "name": "Ada" })).await.expect(201);
    mara.sees("#as", "Ada").await;
    mara.write("#text", "The cellar, at midnight.").await;
    mara.click(".say button").await;
    ines.sees("#said", "The cellar, at midnight.").await;
    let message = newest(&world).await;
    assert_eq!(
        (&message["speaker"]["name"], message["whisper_to"].as_array().unwrap().len()),
        (&json!("Innkeeper Bob"), 1)
    );
    assert_eq!(mara.value("#text").await, "");
    assert_eq!(mara.value("#to").await, ALICE);
    // One changes hit points, the other sees it, in the list and in an open form.
    ines.click("#here a[href$='characters/player_alice']").await;
    ines.sees("#change", "20 of 20 hit points").await;
    mara.click("#here a[href$='characters/player_alice']").await;
    mara.sees("#change", "Whisper to Alice").await;
    mara.write("#amount", "7").await;
    mara.click("#change button[value=damage]").await;
    mara.sees("#change", "13 of 20 hit points").await;
    ines.sees("#here", "13/20").await;
    ines.sees("#change", "13 of 20 hit points").await;
    // A line is corrected and struck at its place.
    mara.click("#said article:first-of-type .mend").await;
    mara.sees(".mending", "Strike it").await;
    mara.write(".mending textarea", "I open the gate.").await;
    mara.click(".mending [action$=correct] button:not(.danger)").await;
    ines.sees("#said", "I open the gate.").await;
    ines.click("#said article:first-of-type .mend").await;
    ines.sees(".mending", "Strike it").await;
    ines.click(".mending button.danger").await;
    mara.until("the line is gone", "return !document.body.innerText.includes('I open the gate.')").await;
    assert_eq!(barriers(&mara).await, Vec::<String>::new());
    for width in [320, 390, 820, 1280] {
        mara.resize(width, 900).await;
        let wide = mara.js("return document.documentElement.scrollWidth > innerWidth").await;
        assert_eq!(wide, json!(false), "{width} px");
    }
    assert_eq!((mara.text("#alert").await, ines.text("#alert").await), (String::new(), String::new()));
}

/// The fight stands beside the talk. A button that comes too late says so in the colour of a refusal.
#[tokio::test(flavor = "multi_thread")]
async fn the_fight_is_led_at_the_table() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let Some(mara) = at_the_table(&server, &tenant, EMAIL).await else { return };
    let fight = json!({ "name": "The pier", "participants": [
        { "id": "alice", "character_id": ALICE, "initiative": 20 },
        { "id": "orc", "name": "Orc", "hp": 70, "max_hp": 70, "is_enemy": true, "initiative": 9 },
    ] });
    let id = world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    mara.sees("#fights .whose", "It is Alice's turn").await;
    let press = |label: &str| {
        format!(
            "[...document.querySelectorAll('.fight button')].find((b) => b.textContent.startsWith('{label}')).click()"
        )
    };
    mara.js(&press("End turn")).await;
    mara.sees("#fights .whose", "It is Orc's turn").await;
    mara.sees("#said", "It is Orc's turn.").await;
    // Also somebody who is nobody outside of the fight is changed by a click.
    mara.click(".fight .enemy b a").await;
    mara.sees("#change", "70 of 70 hit points").await;
    mara.write("#amount", "9").await;
    mara.click("#change [value=damage]").await;
    mara.sees("#change", "61 of 70 hit points").await;
    mara.sees("#fights .enemy .state", "61/70").await;
    mara.click("#change [value=conceal]").await;
    mara.sees("#change", "hidden from players").await;
    mara.sees("#fights .enemy", "hidden").await;
    assert_eq!(barriers(&mara).await, Vec::<String>::new());
    assert_eq!(mara.url().await, format!("{}{TABLE}", server.url));
    // The page does not know yet that the fight is over: a button of before.
    let button = mara.js("return document.querySelector('.fight').outerHTML").await;
    world.post(&format!("/encounters/{id}/end"), json!({ "outcome": "fled" })).await.expect(200);
    mara.until("the fight is gone", "return !document.querySelector('.fight')").await;
    mara.js(&format!(
        "const fights = document.getElementById('fights'); fights.innerHTML = {button}; htmx.process(fights); {}",
        press("End turn")
    ))
    .await;
    mara.sees("#alert .alert", "ended").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_no_longer_see_the_table_is_told() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let Some(mara) = at_the_table(&server, &tenant, EMAIL).await else { return };
    tenant.patch(&format!("/v1/users/{EMAIL}"), json!({ "role": "viewer" })).await.expect(200);
    world.post("/messages", json!({ "content": "Too late." })).await.expect(201);
    mara.sees("#over", "You can no longer see this table.").await;
    assert!(!mara.html().await.contains("Too late."));
}

/// The overview and the page of a fight show what happens, and what is open and typed there stays.
#[tokio::test(flavor = "multi_thread")]
async fn the_overview_and_a_fight_follow_what_happens() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let Some(mara) = at_the_table(&server, &tenant, EMAIL).await else { return };
    mara.goto(&format!("{}/admin/c/port-town", server.url)).await;
    mara.sees("#words", "Nobody has spoken yet").await;
    world.post("/messages", json!({ "content": "A bell rings." })).await.expect(201);
    mara.sees("#words", "A bell rings.").await;
    let fight = json!({ "name": "The pier", "participants": [
        { "id": "alice", "character_id": ALICE, "initiative": 20 },
        { "id": "orc", "name": "Orc", "hp": 70, "max_hp": 70, "is_enemy": true, "initiative": 9 },
    ] });
    let id = world.post("/encounters", fight).await.expect(201).body["encounter_id"].as_str().unwrap().to_owned();
    mara.sees("#fights", "It is Alice's turn").await;
    // Twice: what was replaced goes on following.
    world.post("/messages", json!({ "content": "Silence." })).await.expect(201);
    mara.sees("#words", "Silence.").await;
    mara.goto(&format!("{}/admin/c/port-town/encounters/{id}", server.url)).await;
    mara.sees(".whose", "It is Alice's turn").await;
    mara.js("document.getElementById('of-orc').open = true; document.getElementById('amount-orc').value = '12'").await;
    let actions = format!("/encounters/{id}/actions");
    world.post(&actions, json!({ "action": "advance_turn" })).await.expect(200);
    mara.sees(".whose", "It is Orc's turn").await;
    mara.until(
        "what was typed is there",
        "return document.getElementById('of-orc').open && document.getElementById('amount-orc').value === '12'",
    )
    .await;
    world.post(&actions, json!({ "action": "damage", "target_id": "orc", "amount": 5 })).await.expect(200);
    mara.sees("#of-orc summary", "65 of 70").await;
    world.post(&format!("/encounters/{id}/end"), json!({ "outcome": "fled" })).await.expect(200);
    mara.sees("#now", "Ended in round 1: Somebody fled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn players_roll_what_a_game_master_asks_for_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let ask = format!("{TABLE}/ask");
    mara.post(&ask, &[("of", "skill stealth"), ("advantage", "advantage"), ("dc", "1")]).await.expect(303);
    let asked = newest(&world).await;
    assert_eq!(
        (&asked["author"], &asked["content"], &asked["roll"]),
        (
            &json!("system"),
            &json!("The game master asks everybody to roll: stealth check with advantage against 1."),
            &json!({ "asked": { "of": "skill stealth", "advantage": "advantage", "dc": 1 } })
        )
    );
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let mallory = Guest::seated(&server, &token(&tenant, MALLORY).await).await;
    let button = format!("name=\"asked\" value=\"{}\"", asked["id"].as_str().unwrap());
    assert!(reads(&server, &tenant, ALICE).await.contains(&button));
    let roll = |guest: &Guest, id: &str| guest.form("/play/port-town/check", &[("of", "skill stealth"), ("asked", id)]);
    let id = asked["id"].as_str().unwrap().to_owned();
    alice.send(roll(&alice, &id)).await.expect(303);
    let rolled = newest(&world).await;
    assert_eq!(
        (&rolled["type"], &rolled["roll"]["asked"], rolled["whisper_to"].as_array().unwrap().len()),
        (&json!("roll"), &json!(id), 0)
    );
    let total = rolled["roll"]["total"].as_i64().unwrap();
    let (result, by) = if total >= 1 { ("success", total - 1) } else { ("failure", 1 - total) };
    let by = if by == 0 { String::new() } else { format!(" by {by}") };
    assert_eq!(rolled["roll"]["outcome"], format!("{result}{by} against 1"));
    assert_eq!(rolled["roll"]["dice"].as_array().unwrap().len(), 2, "with advantage: {rolled}");
    // Once, and without a button from then on; the others still can.
    let again = alice.send(roll(&alice, &id)).await.expect(409);
    assert!(again.text.contains("You have rolled this already."), "{}", again.text);
    assert!(!reads(&server, &tenant, ALICE).await.contains(&button));
    assert!(reads(&server, &tenant, MALLORY).await.contains(&button));
    mallory.send(roll(&mallory, &id)).await.expect(303);
    // To one alone, without a difficulty: only the game master sees the result.
    mara.post(&ask, &[("of", "save wisdom"), ("who", ALICE)]).await.expect(303);
    let secret = newest(&world).await;
    assert_eq!(secret["content"], "The game master asks Alice to roll: Wisdom saving throw.");
    let id = secret["id"].as_str().unwrap().to_owned();
    let refused = mallory.send(roll(&mallory, &id)).await.expect(409);
    assert!(refused.text.contains("Nobody asks you for this roll any more."), "{}", refused.text);
    alice.send(roll(&alice, &id)).await.expect(303);
    let rolled = newest(&world).await;
    assert_eq!((&rolled["flavor"], &rolled["whisper_to"]), (&json!("Wisdom Saving Throw"), &json!(["gm"])));
    assert!(rolled["roll"].get("outcome").is_none(), "{rolled}");
    // A line that is struck asks for nothing; what is no request of a game master neither.
    mara.post(&ask, &[("of", "ability strength")]).await.expect(303);
    let struck = newest(&world).await;
    world.delete(&format!("/messages/{}", struck["id"].as_str().unwrap())).await.expect(204);
    let forged = json!({ "content": "Roll!", "author": "player", "player_id": MALLORY, "roll": { "asked": { "of": "skill stealth" } } });
    let forged = world.post("/messages", forged).await.expect(201).id();
    for id in [struck["id"].as_str().unwrap(), &forged] {
        alice.send(roll(&alice, id)).await.expect(409);
    }
    for (fields, why) in [
        (&[("of", "skill flying")][..], "Choose an ability"),
        (&[("of", "skill stealth"), ("dc", "hard")], "Write a whole number"),
        (&[("of", "skill stealth"), ("dc", "-5")], "from 0 to 100"),
        (&[("of", "skill stealth"), ("who", "nobody_here")], "nobody was asked"),
    ] {
        let refused = mara.post(&ask, fields).await.expect(303);
        let page = mara
            .send(mara.request("GET", TABLE).header("cookie", refused.header("set-cookie").split(';').next().unwrap()))
            .await;
        assert!(page.text.contains(why), "{fields:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_npc_remembers_what_a_game_master_says_as_it_if_told_to() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let say = format!("{TABLE}/say");
    let words = "I will hide you in the cellar.";
    mara.post(&say, &[("as", "innkeeper_bob"), ("text", "Good evening.")]).await.expect(303);
    mara.post(&say, &[("as", "innkeeper_bob"), ("text", words), ("remember", ALICE)]).await.expect(303);
    let memories = world.get("/npcs/innkeeper_bob/memories?player_id=player_alice").await.expect(200);
    let own: Vec<&Value> = memories.items().iter().filter(|memory| memory["source"] == "editor").collect();
    let [memory] = own.as_slice() else { panic!("{}", memories.text) };
    assert_eq!(memory["text"], words);
    // The narrator has no memory, and nothing is said then.
    let before = newest(&world).await["id"].clone();
    for fields in [
        &[("text", "It rains."), ("remember", ALICE)][..],
        &[("as", "innkeeper_bob"), ("text", "Psst."), ("remember", "nobody_here")],
    ] {
        let refused = mara.post(&say, fields).await.expect(303);
        assert!(refused.header("set-cookie").starts_with("tavernkeep_message=!"), "{fields:?}");
    }
    assert_eq!(newest(&world).await["id"], before);
}

/// The pause is seen at all tables at once, and what was asked for is rolled by a click.
#[tokio::test(flavor = "multi_thread")]
async fn pauses_and_requests_come_to_the_players_by_themselves() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let Some(mara) = at_the_table(&server, &tenant, EMAIL).await else { return };
    let Some(alice) = sit_down(&tenant, ALICE).await else { return };
    mara.click("#paused button").await;
    mara.sees("#paused", "The AI is paused.").await;
    alice.sees("#paused", "The game master has paused the AI").await;
    alice.sees("#to", "Innkeeper Bob (does not answer now)").await;
    mara.click("#paused button").await;
    alice.until("the pause is over", "return document.getElementById('paused').innerText === ''").await;
    mara.click("#here a[href$='npcs/innkeeper_bob']").await;
    mara.sees("#change", "Pause its AI").await;
    mara.click("#change-now [action$=pause] button").await;
    mara.sees("#change", "Let its AI go on").await;
    mara.sees("#paused", "Paused: Innkeeper Bob").await;
    alice.sees("#here", "does not answer now").await;
    assert_eq!(world.get("").await.expect(200).body["settings"]["ai_paused"]["entities"], json!(["innkeeper_bob"]));
    mara.click("#change-now [action$=pause] button").await;
    mara.sees("#change", "Pause its AI").await;
    assert_eq!(world.get("").await.expect(200).body["settings"].get("ai_paused"), None);
    mara.click(".more-ways summary").await;
    mara.choose("#of", "skill perception").await;
    mara.write("#dc", "12").await;
    mara.click(".asking button").await;
    alice.sees("#said", "The game master asks everybody to roll: perception check against 12.").await;
    alice.click("#said .asked button").await;
    mara.sees("#said", "against 12").await;
    alice
        .until(
            "it is rolled",
            "return document.querySelector('#said .rolled') && !document.querySelector('#said .asked')",
        )
        .await;
    assert_eq!(barriers(&mara).await, Vec::<String>::new());
    assert_eq!((mara.text("#alert").await, alice.text("#alert").await), (String::new(), String::new()));
}

/// An NPC answers a player's line when a game master says so, also while the AI is paused, and the answer is seen as it comes.
#[tokio::test(flavor = "multi_thread")]
async fn an_npc_answers_when_a_game_master_says_so() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("", json!({ "settings": { "ai_paused": { "all": true } } })).await.expect(200);
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    // To an NPC whose AI is paused: its game master hears it.
    let say = [("to", "innkeeper_bob"), ("text", "Who rang the bell?")];
    let told = alice.send(alice.form("/play/port-town/say", &say)).await.expect(200).text;
    assert!(told.contains("Innkeeper Bob does not answer now"), "{told}");
    server.model.set_script(Script::always(Reply::text("Nobody we know.")));
    let Some(mara) = at_the_table(&server, &tenant, EMAIL).await else { return };
    mara.click("#said article:last-of-type .mend").await;
    mara.sees(".mending", "Answer now").await;
    mara.choose(".mending select", "innkeeper_bob").await;
    mara.click(".mending [action$=answer] button").await;
    mara.sees("#said", "Nobody we know.").await;
    mara.until(
        "it is there once",
        "return !document.querySelector('[data-pending]') && !document.querySelector('.mending')",
    )
    .await;
    assert_eq!(mara.text("#log").await.matches("Who rang the bell?").count(), 1);
    assert!(reads(&server, &tenant, ALICE).await.contains("Nobody we know."));
    // Nobody answers it twice.
    let line =
        world.get("/messages?sort=-created_at&limit=2").await.expect(200).items()[1]["id"].as_str().unwrap().to_owned();
    let editor = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let late =
        editor.post(&format!("{TABLE}/answer"), &[("message", &line), ("npc", "innkeeper_bob")]).await.expect(303);
    assert!(late.header("set-cookie").starts_with("tavernkeep_message=!"));
    assert_eq!(mara.text("#alert").await, "");
}

/// What fails or succeeds without dice is told once, too.
#[tokio::test(flavor = "multi_thread")]
async fn what_needs_no_dice_is_asked_for_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world
        .patch("/characters/player_alice", json!({ "conditions": [{ "name": "restrained" }, { "name": "petrified" }] }))
        .await
        .expect(200);
    let mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    mara.post(&format!("{TABLE}/ask"), &[("of", "save strength")]).await.expect(303);
    let id = newest(&world).await["id"].as_str().unwrap().to_owned();
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let roll = || alice.send(alice.form("/play/port-town/check", &[("of", "save strength"), ("asked", &id)]));
    roll().await.expect(303);
    assert!(newest(&world).await["content"].as_str().unwrap().ends_with("it fails without a roll."));
    roll().await.expect(409);
}

/// What players can do with an answer, a game master can do for them, and sees it in place.
#[tokio::test(flavor = "multi_thread")]
async fn answers_are_tried_again_go_on_and_stop_at_the_table() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    server.model.set_script(Script::replies(["First.", "Second.", "Third."].map(Reply::text)));
    let first = world.bob(ALICE, "I knock.").await.expect(200).id();
    let press = |turn: &str, what: &str| format!("{TABLE}/turns/{turn}/{what}");
    for what in ["again", "choose", "continue", "stop"] {
        let viewer = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
        viewer.post(&press(&first, what), &[]).await.expect(403);
    }
    let page = mara.get(TABLE).await.expect(200).text;
    let buttons = page.split_once("class=\"retry\"").expect("buttons").1.split("</div>").next().unwrap();
    assert!(buttons.contains("Try again") && buttons.contains("name=\"form_token\""), "{buttons}");
    mara.post(&press(&first, "again"), &[]).await.expect(303);
    let is_newest = async |words: &str| {
        let messages = world.get("/messages?sort=-created_at&limit=1").await.expect(200);
        messages.items().first().is_some_and(|message| message["content"] == words)
    };
    until("the second", async || is_newest("Second.").await).await;
    mara.post(&press(&first, "choose"), &[]).await.expect(303);
    assert_eq!(newest(&world).await["content"], "First.");
    mara.post(&press(&first, "continue"), &[]).await.expect(303);
    until("the third", async || is_newest("Third.").await).await;
    // Late: the conversation has gone on, and the turn has ended.
    for what in ["again", "continue", "stop"] {
        let late = mara.post(&press(&first, what), &[]).await.expect(303);
        assert!(late.header("set-cookie").starts_with("tavernkeep_message=!"), "{what}");
    }
    mara.post(&press("nonsense", "again"), &[]).await.expect(404);
    server.model.set_script(Script::always(Reply::text("Never.").held()));
    let asked = server.model.request_count();
    let (answer, ()) = tokio::join!(world.bob(ALICE, "I wait."), async {
        until("the question", async || server.model.request_count() > asked).await;
        let running = world.get("/turns?sort=-created_at&limit=1").await.expect(200).items()[0]["id"].clone();
        mara.post(&press(running.as_str().unwrap(), "stop"), &[]).await.expect(303);
    });
    assert_eq!(answer.expect(200).body["status"], "cancelled");
    assert_eq!(newest(&world).await["content"], "Third.");
}

/// At the table of a game master the same commands work, and two more.
#[tokio::test(flavor = "multi_thread")]
async fn a_game_master_has_the_commands_too() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.post("/npcs", json!({ "slug": "innkeeper_ada", "name": "Innkeeper Ada" })).await.expect(201);
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let say = format!("{TABLE}/say");
    let alice = world.get("/characters/player_alice").await.expect(200).id();
    for (text, name, content, member, is) in [
        ("/as \"Innkeeper Bob\" Welcome.", "Innkeeper Bob", "Welcome.", "flavor", Value::Null),
        ("/as innkeeper_b /me nods.", "Innkeeper Bob", "nods.", "flavor", json!("emote")),
        ("/as innkeeper_a /w ali Psst.", "Innkeeper Ada", "Psst.", "whisper_to", json!([alice])),
        ("/desc It rains.", "Narrator", "It rains.", "author", json!("gm")),
        ("/ooc A break?", "Game Master", "A break?", "flavor", json!("ooc")),
        ("/gmroll 1d1 # luck", "Innkeeper Bob", "luck: 1d1 = 1", "whisper_to", json!(["gm"])),
        ("/blindroll 1d1", "Innkeeper Bob", "1d1 = 1", "blind", json!(true)),
    ] {
        mara.post(&say, &[("as", "innkeeper_bob"), ("text", text)]).await.expect(303);
        let message = newest(&world).await;
        assert_eq!(
            (&message["speaker"]["name"], &message["content"], &message[member]),
            (&json!(name), &json!(content), &is),
            "{text}"
        );
    }
    let before = world.get("/messages").await.expect(200).items().len();
    let refuses = async |text: &str| {
        let refused = mara.post(&say, &[("text", text)]).await.expect(303);
        assert!(refused.header("set-cookie").starts_with("tavernkeep_message=!"), "{text}");
    };
    for text in ["/as", "/as Zorro Hello.", "/as Innkeeper Hello.", "/as innkeeper_bob", "/desc", "/dance"] {
        refuses(text).await;
    }
    assert_eq!(world.get("/messages").await.expect(200).items().len(), before);
    let helped = mara.post(&say, &[("text", "/help")]).await.expect(303);
    let cookie = helped.header("set-cookie").split(';').next().unwrap().to_owned();
    mara.keep(&helped);
    let page = mara.send(mara.request("GET", TABLE).header("cookie", cookie)).await.expect(200).text;
    assert!(page.contains("/as NPC words: the NPC says it"), "{page}");
}
