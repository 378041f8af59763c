//! A fight from its beginning to the sheets, led in the editor.

use edge::users::Role;
use serde_json::{Value, json};

use super::{EMAIL, Visitor, looks::barriers, sign_in};
use crate::support::{Server, World, browser::Browser};

const NEW: &str = "/admin/c/port-town/encounters/new";

/// The fight as the API shows it.
async fn fight(world: &World<'_>, path: &str) -> Value {
    let id = path.rsplit('/').next().unwrap();
    world.get(&format!("/encounters/{id}?verbosity=detailed")).await.expect(200).body
}

fn names(fight: &Value) -> Vec<&str> {
    let mut names: Vec<&str> =
        fight["participants"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names
}

fn one<'a>(fight: &'a Value, name: &str) -> &'a Value {
    fight["participants"].as_array().unwrap().iter().find(|p| p["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

async fn begun(owner: &mut Visitor, fields: &[(&str, &str)]) -> String {
    owner.post(NEW, fields).await.expect(303).header("location").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn people_creatures_and_whoever_is_described_take_part() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let page = owner.get(NEW).await.expect(200).text;
    for offered in ["Alice", "Innkeeper Bob", "Goblin (SRD)", "challenge 1/4, 7 hit points"] {
        assert!(page.contains(offered), "{offered}: {page}");
    }
    let path = begun(
        &mut owner,
        &[
            ("name", "On the <quay>"),
            ("party", "player_alice"),
            ("who-0-who", "innkeeper bob"),
            ("who-0-side", "party"),
            ("who-1-who", "GOBLIN"),
            ("who-1-count", "× 3"),
            ("who-2-who", "Ogre (SRD)"),
            ("who-2-side", "hidden"),
            ("who-3-who", "harbour_ilse"),
            ("who-3-count", "2"),
            ("hand-0-name", "Rat King"),
            ("hand-0-hp", "20"),
            ("hand-0-armor_class", "12"),
            ("hand-0-initiative_bonus", "3"),
            ("hand-0-attack", "Bite"),
            ("hand-0-bonus", "4"),
            ("hand-0-damage", "1d6+2"),
            ("hand-0-damage_type", "piercing"),
        ],
    )
    .await;
    let made = fight(&world, &path).await;
    assert_eq!(
        names(&made),
        ["Alice", "Goblin 1", "Goblin 2", "Goblin 3", "Ilse 1", "Ilse 2", "Innkeeper Bob", "Ogre", "Rat King"]
    );
    assert_eq!((&made["name"], &made["hidden"]), (&json!("On the <quay>"), &json!(["ogre"])));
    assert_eq!(
        (&one(&made, "Goblin 2")["is_enemy"], &one(&made, "Innkeeper Bob")["is_enemy"]),
        (&json!(true), &json!(false))
    );
    assert!(one(&made, "Innkeeper Bob")["npc_id"].is_string() && one(&made, "Ilse 1").get("npc_id").is_none());
    assert_eq!((&one(&made, "Rat King")["hp"], &one(&made, "Rat King")["initiative_bonus"]), (&json!(20), &json!(3)));
    let page = owner.get(&path).await.expect(200).text;
    assert!(page.contains("On the &#60;quay&#62;") && !page.contains("<quay>"));

    // More come later, with numbers of their own; whoever is there is not offered again.
    let join = format!("{path}/join");
    assert!(
        !page.contains("name=\"party\" value=\"player_alice\"")
            && page.contains("name=\"party\" value=\"player_mallory\"")
    );
    owner
        .post(&join, &[("who-0-who", "goblin"), ("who-0-side", "party"), ("party", "player_mallory")])
        .await
        .expect(303);
    let now = fight(&world, &path).await;
    assert_eq!((names(&now).len(), &one(&now, "Goblin 4")["is_enemy"]), (11, &json!(false)));
    let again = owner.post(&join, &[("party", "player_alice")]).await.expect(422).text;
    assert!(again.contains("player_alice already takes part."), "{again}");
    assert_eq!(fight(&world, &path).await["version"], now["version"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_said_and_begins_no_fight() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for slug in ["guard_east", "guard_west"] {
        world.post("/npcs", json!({ "slug": slug, "name": "Watchman" })).await.expect(201);
    }
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    for (fields, why) in [
        (vec![], "Choose somebody who takes part."),
        (
            vec![("who-0-who", "Zorg <i>")],
            "Nobody in this campaign and no creature of the SRD is called “Zorg &#60;i&#62;”.",
        ),
        (
            vec![("who-0-who", "watchman")],
            "Several people are called “watchman”. Write the slug: guard_east or guard_west.",
        ),
        (vec![("who-0-who", "Alice"), ("who-0-count", "2")], "There is only one Alice."),
        (vec![("who-0-who", "goblin"), ("who-0-count", "13")], "goblin: how many must be 1 to 12."),
        (vec![("party", "player_alice"), ("who-0-who", "alice")], "player_alice already takes part."),
        (vec![("hand-0-hp", "7")], "Somebody described by hand has no name."),
        (vec![("hand-0-name", "Rat"), ("hand-0-hp", "many")], "Rat: hit points must be a whole number."),
        (vec![("hand-0-name", "Rat"), ("hand-0-hp", "0")], "Rat: max hp must be 1 to 1000000."),
        (
            vec![("hand-0-name", "Rat"), ("hand-0-attack", "Bite"), ("hand-0-damage", "lots")],
            "Rat: attacks must be a sum of dice",
        ),
    ] {
        let page = owner.post(NEW, &fields).await.expect(422).text;
        assert!(page.contains(why), "{why}: {page}");
        // What was written is still there.
        for (name, value) in fields.iter().filter(|(name, _)| *name != "party") {
            let kept = value.replace('<', "&#60;").replace('>', "&#62;");
            assert!(page.contains(&format!("name=\"{name}\" value=\"{kept}\"")), "{name}: {page}");
        }
    }
    assert!(world.get("/encounters?include_ended=true").await.items().is_empty());
    let many: Vec<(String, &str)> =
        (0..18).flat_map(|n| [(format!("who-{n}-who"), "goblin"), (format!("who-{n}-count"), "12")]).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let page = owner.post(NEW, &many).await.expect(422).text;
    assert!(page.contains("A fight can have at most 200 participants."));
    // A form that is sent twice begins one fight.
    let fields = [("form_id", "0192"), ("who-0-who", "goblin")];
    let first = begun(&mut owner, &fields).await;
    assert!(first.contains("/encounters/"));
    assert_eq!(begun(&mut owner, &fields).await, "/admin/c/port-town/encounters");
    assert_eq!(world.get("/encounters").await.items().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fight_is_led_to_its_end_and_written_to_the_sheets() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let path = begun(&mut owner, &[("party", "player_alice"), ("who-0-who", "goblin"), ("who-0-count", "2")]).await;
    let act = format!("{path}/act");
    let id = |fight: &Value, name: &str| one(fight, name)["id"].as_str().unwrap().to_owned();
    let start = fight(&world, &path).await;
    let (alice, goblin) = (id(&start, "Alice"), id(&start, "Goblin 1"));

    // By the game master's word.
    for fields in [
        vec![("target_id", alice.as_str()), ("amount", "30"), ("do", "damage")],
        vec![("target_id", &alice), ("amount", "4"), ("do", "heal")],
        vec![("target_id", &alice), ("condition", "poisoned"), ("do", "add_condition")],
        vec![("target_id", &alice), ("condition", "prone"), ("do", "add_condition")],
        vec![("target_id", &alice), ("remove", "prone"), ("do", "damage")],
        vec![("target_id", &goblin), ("do", "conceal")],
        vec![("target_id", &goblin), ("do", "reveal")],
    ] {
        owner.post(&act, &fields).await.expect(303);
    }
    let now = fight(&world, &path).await;
    assert_eq!((&one(&now, "Alice")["hp"], &now["hidden"]), (&json!(74), &Value::Null));
    assert_eq!(one(&now, "Alice")["conditions"].as_array().unwrap().len(), 1);
    // A field that was left empty, and somebody who is not there, change nothing.
    for fields in [
        vec![("target_id", alice.as_str()), ("do", "damage")],
        vec![("target_id", "nobody"), ("amount", "1"), ("do", "heal")],
    ] {
        owner.post(&act, &fields).await.expect(303);
        assert_eq!(fight(&world, &path).await["version"], now["version"]);
    }

    // A double click does its work once.
    let twice = [("form_id", "0193"), ("target_id", goblin.as_str()), ("amount", "2"), ("do", "damage")];
    for _ in 0..2 {
        owner.post(&act, &twice).await.expect(303);
    }
    assert_eq!(one(&fight(&world, &path).await, "Goblin 1")["hp"], 5);

    // The newest action is taken back, once.
    owner.post(&act, &[("target_id", &goblin), ("amount", "60"), ("do", "damage")]).await.expect(303);
    let version = fight(&world, &path).await["version"].to_string();
    let undo = format!("{path}/undo");
    for _ in 0..2 {
        owner.post(&undo, &[("version", &version)]).await.expect(303);
    }
    let back = fight(&world, &path).await;
    assert_eq!((&one(&back, "Goblin 1")["hp"], &one(&back, "Alice")["hp"]), (&json!(5), &json!(74)));

    // One goblin leaves, the other falls: the table says so, and whoever leads may go on.
    owner.post(&format!("{path}/remove"), &[("participant", &id(&back, "Goblin 2"))]).await.expect(303);
    owner.post(&format!("{path}/remove"), &[("participant", &id(&back, "Goblin 2"))]).await.expect(303);
    assert_eq!(names(&fight(&world, &path).await), ["Alice", "Goblin 1"]);
    assert!(!owner.get(&path).await.text.contains("No enemy is standing."));
    owner.post(&act, &[("target_id", &goblin), ("amount", "60"), ("do", "damage")]).await.expect(303);
    let page = owner.get(&path).await.expect(200).text;
    assert!(page.contains("No enemy is standing.") && page.contains("End: victory"), "{page}");
    let page = owner.get(&format!("{path}?go_on=1")).await.expect(200).text;
    assert!(page.contains("No enemy is standing.") && !page.contains("End: victory"), "{page}");
    let goes_on = [("go_on", "1"), ("target_id", alice.as_str()), ("amount", "1"), ("do", "temp_hp")];
    assert_eq!(owner.post(&act, &goes_on).await.expect(303).header("location"), format!("{path}?go_on=1"));
    let mut viewer = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    let read = viewer.get(&path).await.expect(200).text;
    assert!(read.contains("The game master can end the fight.") && !read.contains("End the fight"), "{read}");

    // The end, what it did, and the sheets: written once.
    owner.post(&format!("{path}/commit"), &[]).await.expect(303);
    owner.post(&format!("{path}/end"), &[("outcome", "nonsense")]).await.expect(303);
    assert_eq!(fight(&world, &path).await["status"], "active");
    owner.post(&format!("{path}/end"), &[("outcome", "victory"), ("notes", "The quay is safe.")]).await.expect(303);
    let page = owner.get(&path).await.expect(200).text;
    for said in [
        "<b>Victory</b>",
        "The quay is safe.",
        "Hit points: 100 → 74",
        "Now poisoned",
        "not written yet",
        "Write it to the sheets",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    let hp = async || world.get("/characters/player_alice").await.body["hp"].clone();
    assert_eq!(hp().await, 100);
    let read = viewer.get(&path).await.expect(200).text;
    assert!(
        read.contains("Hit points: 100 → 74")
            && !read.contains("Write it to the sheets")
            && !read.contains("The quay is safe.")
    );
    for _ in 0..2 {
        owner.post(&format!("{path}/commit"), &[]).await.expect(303);
    }
    assert_eq!(hp().await, 74);
    let page = owner.get(&path).await.expect(200).text;
    assert!(page.contains("written to the sheet") && !page.contains("Write it to the sheets"), "{page}");
    // Buttons of a page from before the end change nothing any more.
    let version = fight(&world, &path).await["version"].clone();
    for (form, fields) in [
        ("act", vec![("target_id", alice.as_str()), ("amount", "5"), ("do", "damage")]),
        ("join", vec![("who-0-who", "goblin")]),
        ("remove", vec![("participant", alice.as_str())]),
        ("undo", vec![]),
        ("end", vec![("outcome", "defeat")]),
    ] {
        owner.post(&format!("{path}/{form}"), &fields).await.expect(303);
    }
    assert_eq!(fight(&world, &path).await["version"], version);
    viewer.post(&format!("{path}/undo"), &[]).await.expect(403);
}

/// Somebody whose id a creature has, and somebody who took part under another id, get in by the form all the same.
#[tokio::test(flavor = "multi_thread")]
async fn ids_are_nobodys_obstacle() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for slug in ["goblin", "ogre"] {
        world.post("/npcs", json!({ "slug": slug, "name": format!("{slug} of the hills") })).await.expect(201);
    }
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let path = begun(
        &mut owner,
        &[("who-0-who", "goblin of the hills"), ("who-1-who", "Goblin (SRD)"), ("who-2-who", "Ogre (SRD)")],
    )
    .await;
    let join = format!("{path}/join");
    owner.post(&join, &[("who-0-who", "ogre of the hills")]).await.expect(303);
    let now = fight(&world, &path).await;
    assert_eq!(names(&now), ["Goblin", "Ogre", "goblin of the hills", "ogre of the hills"]);
    // Nobody joins because a box was ticked beforehand.
    assert!(owner.get(NEW).await.text.contains("value=\"player_alice\" checked"));
    assert!(!owner.get(&path).await.text.contains("checked"));
    assert_eq!(one(&now, "goblin of the hills")["id"], "goblin");

    let id = path.rsplit('/').next().unwrap();
    let hero = json!({ "id": "hero", "character_id": "player_alice" });
    world.post(&format!("/encounters/{id}/participants"), hero).await.expect(200);
    owner.post(&format!("{path}/remove"), &[("participant", "hero")]).await.expect(303);
    owner.post(&join, &[("party", "player_alice")]).await.expect(303);
    assert_eq!(one(&fight(&world, &path).await, "Alice")["id"], "hero");
}

/// In a browser: a row for each of several names, the fight led by clicks, and no barrier on the way.
#[tokio::test(flavor = "multi_thread")]
async fn a_fight_is_led_by_clicks() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    let Some(browser) = Browser::open().await else { return };
    sign_in(&browser, &server, EMAIL, &password).await;
    browser.goto(&format!("{}{NEW}", server.url)).await;
    for (nth, who) in ["goblin", "kobold", "wolf", "ghoul"].into_iter().enumerate() {
        browser.write(&format!("[name=who-{nth}-who]"), who).await;
    }
    browser.until("another row", "return document.querySelector('[name=who-4-who]')?.value === ''").await;
    assert_eq!(barriers(&browser).await, Vec::<String>::new());
    browser.click("main .buttons button").await;
    browser.sees("[role=status]", "The fight begins.").await;
    for who in ["Alice", "Mallory", "Goblin", "Kobold", "Wolf", "Ghoul"] {
        browser.sees(".fight", who).await;
    }
    for width in [320, 820, 1280] {
        browser.narrow(Some(width)).await;
        let wide = browser.js("return document.documentElement.scrollWidth - innerWidth").await;
        assert!(wide.as_i64().unwrap() <= 0, "{width}: {wide}");
    }
    browser.js("document.querySelectorAll('.lead details').forEach((it) => { it.open = true })").await;
    assert_eq!(barriers(&browser).await, Vec::<String>::new());
    let path = browser.url().await;
    for foe in ["Goblin", "Kobold", "Wolf", "Ghoul"] {
        browser
            .js(&format!(
                "const its = [...document.querySelectorAll('.lead form')].find((it) => it.closest('li').innerText.startsWith({foe:?})); \
                 its.querySelector('[name=amount]').value = '99'; its.querySelector('[value=damage]').click()"
            ))
            .await;
        browser.sees("[role=status]", &format!("{foe} dies.")).await;
    }
    browser.sees(".down", "No enemy is standing.").await;
    assert_eq!(barriers(&browser).await, Vec::<String>::new());
    browser.click(".down button").await;
    browser.sees("main", "Victory").await;
    assert_eq!(browser.url().await, path);
    browser.sees("#sheets", "Nothing changed for Alice, Mallory.").await;
    assert_eq!(barriers(&browser).await, Vec::<String>::new());
    assert_eq!(world.get("/encounters?include_ended=true").await.items()[0]["outcome"], "victory");
}
