//! Whatever a world became by whatever clients sent: its document is read again, and writes the same document.

use proptest::{
    collection::vec,
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};

use super::send;
use crate::support::{Client, Server, World};

/// Something a client does to its world.
#[derive(Clone, Debug)]
enum Deed {
    Make(&'static str, Value),
    Change(&'static str, u8, Value),
    Delete(&'static str, u8),
}

/// Text that formats and templates may stumble over.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,30}",
        "[a-z {}\"'\\\\<>&|@#,:\\[\\]\n\t\r\u{2028}\u{feff}]{0,30}",
        Just("{{char}} \\, {{random::a::b}} @@activate </lore> \u{1f9d9}\u{200d}\u{2642}".to_owned()),
    ]
}

/// The same on one line, as names are.
fn line() -> impl Strategy<Value = String> {
    text().prop_map(|text| text.chars().filter(|c| !c.is_control() && *c != '\u{2028}').collect())
}

/// One of the few rows that every world begins with.
fn slug(kind: &'static str) -> impl Strategy<Value = String> {
    (0u8..3).prop_map(move |n| format!("{kind}{n}"))
}

fn extensions() -> impl Strategy<Value = Value> {
    let number = any::<f32>().prop_filter("is kept", |n| n.is_normal() && n.abs() > 1e-20 && n.abs() < 1e18);
    vec((text(), number), 0..3)
        .prop_map(|all| all.into_iter().map(|(name, n)| (name, json!({ "n": n, "l": [null, true, ""] }))).collect())
}

fn character() -> impl Strategy<Value = Value> {
    (line(), line(), 1u8..=20, extensions())
        .prop_map(|(name, place, level, more)| json!({ "name": format!("C{name}"), "location": place, "level": level, "extensions": more }))
}

fn npc() -> impl Strategy<Value = Value> {
    (line(), text(), text(), vec(slug("o"), 0..2), extensions()).prop_map(|(name, description, prompt, owners, more)| {
        json!({ "name": format!("N{name}"), "description": description, "personality_prompt": prompt, "owner_ids": owners, "extensions": more })
    })
}

fn owner() -> impl Strategy<Value = Value> {
    (line(), text(), line()).prop_map(|(name, description, of)| {
        json!({ "name": format!("O{name}"), "description": description, "monitored_aspect": "location", "associated_id": format!("a{of}") })
    })
}

fn lore() -> impl Strategy<Value = Value> {
    let keys = || vec(line().prop_map(|key| format!("k{key}")), 0..3);
    let logic = prop_oneof![Just("and_any"), Just("and_all"), Just("not_any"), Just("not_all")];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    ((line(), text(), keys(), keys()), logic, flags, -5i32..5, 0i32..9, vec(slug("c"), 0..3), extensions()).prop_map(
        |((title, content, keys, secondary), logic, (is_keyword, secret, enabled, is_here), priority, depth, known, more)| {
            json!({ "title": format!("T{title}"), "content": content, "keys": keys, "secondary_keys": secondary, "logic": logic,
                "activation": if is_keyword { "keyword" } else { "always" }, "secret": secret, "enabled": enabled,
                "scope": if is_here { "zone" } else { "global" }, "associated_id": is_here.then_some("the quay"),
                "priority": priority, "scan_depth": depth, "known_by": known, "extensions": more })
        },
    )
}

fn message() -> impl Strategy<Value = Value> {
    let whom = vec(prop_oneof![slug("c"), Just("gm".to_owned())], 0..3);
    (text(), proptest::option::of(slug("c")), whom, proptest::option::of(slug("s")), line(), extensions()).prop_map(
        |(content, player, whom, scene, speaker, more)| {
            json!({ "content": format!("M{content}"), "player_id": player, "whisper_to": whom, "scene_id": scene,
                "speaker": { "name": speaker }, "extensions": more })
        },
    )
}

fn scene() -> impl Strategy<Value = Value> {
    (line(), text(), -100i32..100).prop_map(|(name, note, x)| {
        json!({ "name": format!("S{name}"), "notes": [{ "text": note }],
            "tokens": [{ "id": "t", "name": name, "actor_id": "n0", "x": x, "y": 0 }] })
    })
}

fn deed() -> impl Strategy<Value = Deed> {
    let kind = || prop_oneof![Just("characters"), Just("npcs"), Just("owners"), Just("scenes"), Just("lore")];
    prop_oneof![
        1 => character().prop_map(|body| Deed::Make("/characters", body)),
        2 => npc().prop_map(|body| Deed::Make("/npcs", body)),
        1 => owner().prop_map(|body| Deed::Make("/owners", body)),
        1 => scene().prop_map(|body| Deed::Make("/scenes", body)),
        3 => lore().prop_map(|body| Deed::Make("/lore", body)),
        3 => message().prop_map(|body| Deed::Make("/messages", body)),
        2 => (slug("c"), text()).prop_map(|(player, text)| {
            Deed::Make("/npcs/n0/memories", json!({ "player_id": player, "text": format!("R{text}") }))
        }),
        1 => (kind(), 0u8..4, text(), extensions()).prop_map(|(kind, n, text, extensions)| {
            Deed::Change(kind, n, json!({ "external_ref": format!("x{text}"), "extensions": extensions }))
        }),
        1 => (kind(), 0u8..4).prop_map(|(kind, n)| Deed::Delete(kind, n)),
    ]
}

/// Does it to a campaign; whether the server took it.
async fn done(world: &World<'_>, deed: &Deed) -> bool {
    let row = async |kind: &str, n: u8| {
        let list = world.get(&format!("/{kind}")).await.expect(200);
        let ids: Vec<String> = list.items().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
        ids.get(usize::from(n)).map(|id| format!("/{kind}/{id}"))
    };
    let answer = match deed {
        Deed::Make(path, body) => world.post(path, body.clone()).await,
        Deed::Change(kind, n, body) => match row(kind, *n).await {
            Some(path) => world.patch(&path, body.clone()).await,
            None => return false,
        },
        Deed::Delete(kind, n) => match row(kind, *n).await {
            Some(path) => world.delete(&path).await,
            None => return false,
        },
    };
    assert!(answer.status < 500, "{deed:?}: {}", answer.text);
    answer.status < 300
}

/// That a campaign's document, read into another tenant, writes the same document.
async fn comes_back(from: &Client<'_>, slug: &str, to: &Client<'_>) -> String {
    let document = from.get(&format!("/v1/campaigns/{slug}/export")).await.expect(200).text;
    let read = send(to, "/v1/campaigns/import", "application/json", document.clone().into_bytes()).await;
    assert_eq!(read.status, 200, "{}\n{document}", read.text);
    let again = to.get(&format!("/v1/campaigns/{slug}/export")).await.expect(200).text;
    assert_eq!(again, document);
    document
}

#[tokio::test(flavor = "multi_thread")]
async fn any_world_and_its_fork_come_back_as_they_were() {
    let server = Server::start().await;
    let (acme, other) = (server.tenant("acme").await, server.tenant("other").await);
    let mut runner = TestRunner::new(Config::default());
    let worlds = vec(deed(), 5..40);
    let (mut taken, mut refused) = (0, 0);
    for n in 0..20 {
        let slug = format!("w{n}");
        acme.post("/v1/campaigns", json!({ "slug": slug, "name": "World" })).await.expect(201);
        let world = World { client: &acme, slug: slug.clone() };
        world.post("/npcs", json!({ "slug": "n0", "name": "Nel" })).await.expect(201);
        for n in 0..3 {
            world.post("/characters", json!({ "slug": format!("c{n}"), "name": "Cal" })).await.expect(201);
            world.post("/scenes", json!({ "slug": format!("s{n}"), "name": "Shore" })).await.expect(201);
            let owner = json!({ "slug": format!("o{n}"), "name": "Ode", "monitored_aspect": "location", "associated_id": "quay" });
            world.post("/owners", owner).await.expect(201);
        }
        for deed in worlds.new_tree(&mut runner).unwrap().current() {
            *(if done(&world, &deed).await { &mut taken } else { &mut refused }) += 1;
        }
        comes_back(&acme, &slug, &other).await;
        let fork = format!("fork{n}");
        world.post("/fork", json!({ "slug": fork, "name": "World" })).await.expect(201);
        comes_back(&acme, &fork, &other).await;
    }
    assert!(taken > 4 * refused, "{taken} deeds were taken, {refused} refused: they say little of worlds");
}
