//! The demo with the rehearsal model: what a newcomer types does what the README says.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::support::{Client, DEMO_KEY, Server, World, until};

const LIRIEN: &str = "lirien_vale";

/// The demo's world, after its fight.
async fn in_peace<'a>(client: &'a Client<'a>) -> World<'a> {
    let world = World { client, slug: "port-town".to_owned() };
    let fights = world.get("/encounters").await.expect(200);
    for fight in fights.items() {
        let path = format!("/encounters/{}/end", fight["id"].as_str().unwrap());
        world.post(&path, json!({ "outcome": "fled" })).await.expect(200);
    }
    world
}

async fn says(world: &World<'_>, text: &str) -> Value {
    let said = world.post("/act", json!({ "player_id": LIRIEN, "message": text })).await.expect(200).body;
    assert_eq!(said["outcome"], "executed", "{text}: {said}");
    said
}

async fn hears(world: &World<'_>, who: &str) {
    let path = format!("/players/{LIRIEN}/replies");
    let is_heard =
        async || world.get(&path).await.expect(200).items().iter().any(|reply| reply["entity"]["slug"] == who);
    until(&format!("an answer of {who}"), is_heard).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_steals_prays_and_rests_in_words_does_so() {
    let server = Server::with_demo().await;
    let client = server.anonymous().with_credential(DEMO_KEY);
    let world = in_peace(&client).await;
    // Nobody has done anything yet that would matter to the innkeeper but this.
    says(&world, "I steal a spoon from the bar.").await;
    hears(&world, "innkeeper_bob").await;
    says(&world, "I pray for a safe night.").await;
    hears(&world, "hearth_of_the_gull").await;
    world.patch(&format!("/characters/{LIRIEN}"), json!({ "hp": 3 })).await.expect(200);
    let rested = says(&world, "I take a short rest and spend a hit die.").await;
    assert!(rested["message"].as_str().unwrap().starts_with("Lirien Vale rests and regains "), "{rested}");
    let lirien = async || world.get(&format!("/characters/{LIRIEN}")).await.expect(200).body;
    assert!(lirien().await["hp"].as_i64().unwrap() > 3);
    says(&world, "We make camp and sleep until morning.").await;
    assert_eq!(lirien().await["hp"], 20);
    says(&world, "I go to the harbour.").await;
    assert_eq!(lirien().await["location"], "harbour");
    let lore = world.get("/lore?scope=zone").await.expect(200);
    assert!(lore.items().iter().any(|entry| entry["associated_id"] == "harbour"));
    // What is the campaign's to tell, the rehearsal model tells, in other words each time.
    let asked = json!({ "player_id": LIRIEN, "action": "Why is the lighthouse dark?" });
    let first = world.post("/npcs/harbourmaster_ilse/turns", asked).await.expect(200);
    let narrative = |body: &Value| body["narrative"].as_str().unwrap().to_owned();
    let knows = |words: &str| words.contains("nine years") || words.contains("last keeper");
    assert!(knows(&narrative(&first.body)), "{}", first.text);
    let path = format!("/turns/{}/regenerate", first.id());
    let again = world.post(&path, json!({})).await.expect(200);
    assert!(knows(&narrative(&again.body)), "{}", again.text);
    assert_ne!(narrative(&first.body), narrative(&again.body));
    // But not what only the council knows, to whomever one turns.
    for question in ["What does the council know?", "Who pays the Tide Gang?"] {
        let asked = json!({ "player_id": LIRIEN, "action": question });
        for who in ["owners/town_council_owner", "npcs/harbourmaster_ilse"] {
            let answer = world.post(&format!("/{who}/turns"), asked.clone()).await.expect(200);
            assert!(!narrative(&answer.body).contains("pays the Tide Gang"), "{}", answer.text);
        }
    }
}

/// Every location at which somebody is has lore.
#[tokio::test(flavor = "multi_thread")]
async fn the_small_world_has_what_it_speaks_of() {
    let server = Server::with_demo().await;
    let client = server.anonymous().with_credential(DEMO_KEY);
    let world = World { client: &client, slug: "port-town".to_owned() };
    let lore = world.get("/lore?scope=zone&limit=200").await.expect(200);
    let told: Vec<&Value> = lore.items().iter().map(|entry| &entry["associated_id"]).collect();
    for kind in ["characters", "npcs"] {
        for row in world.get(&format!("/{kind}?limit=200")).await.expect(200).items() {
            assert!(told.contains(&&row["location"]), "{} is at {}", row["slug"], row["location"]);
        }
    }
}

/// The fight of the README, as it is pasted from a fresh start.
#[tokio::test(flavor = "multi_thread")]
async fn the_fight_of_the_readme_works_as_it_is_pasted() {
    let tool = |name: &str| Command::new(name).arg("--version").output().is_ok();
    if !["bash", "curl", "sed"].into_iter().all(tool) {
        println!("not run: it needs bash, curl and sed");
        return;
    }
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let (_, section) = readme.split_once("## A fight\n").unwrap();
    let (_, script) = section.split_once("```sh\n").unwrap();
    let script = script.split_once("```").unwrap().0.to_owned();
    let server = Server::with_demo().await;
    let set = format!("H='Authorization: Bearer {DEMO_KEY}'\nB={}/v1/campaigns/port-town\n", server.url);
    let run = tokio::process::Command::new("bash").arg("-c").arg(set + &script).output();
    let output = run.await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!printed.contains("/problems/"), "{printed}");
    for seen in ["Battleaxe", "Scimitar", "\"outcome\":\"fled\""] {
        assert!(printed.contains(seen), "{seen}: {printed}");
    }
}
