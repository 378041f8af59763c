//! Slugs made of names: of many at once with one name, each gets one.

use std::collections::HashSet;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Answer, Server};

const MANY: usize = 8;

fn all_different(made: Vec<Answer>) {
    let slugs: Vec<String> =
        made.into_iter().map(|answer| answer.expect(201).body["slug"].as_str().unwrap().to_owned()).collect();
    assert_eq!(slugs.iter().collect::<HashSet<_>>().len(), MANY, "{slugs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_eight_gets_one() {
    let server = Server::start_with(&[("DATABASE_CONNECTIONS_MAX", "16")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let kinds: [(&str, Value); 5] = [
        ("/npcs", json!({ "name": "The Twin" })),
        ("/owners", json!({ "name": "The Guild", "monitored_aspect": "location", "associated_id": "docks" })),
        ("/characters", json!({ "name": "Robin", "race": "elf", "profession": "ranger" })),
        ("/lore", json!({ "title": "The Well", "content": "Deep.", "scope": "global" })),
        ("/scenes", json!({ "name": "The Cellar" })),
    ];
    for (path, body) in kinds {
        let made = join_all((0..MANY).map(|_| world.post(path, body.clone()))).await;
        all_different(made);
    }
    let made = join_all((0..MANY).map(|_| tenant.post("/v1/campaigns", json!({ "name": "The Reach" })))).await;
    all_different(made);
}

#[tokio::test(flavor = "multi_thread")]
async fn they_share_what_actors_share() {
    let server = Server::start_with(&[("DATABASE_CONNECTIONS_MAX", "16")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let bodies = ["/npcs", "/owners", "/characters", "/npcs", "/owners", "/characters", "/npcs", "/owners"];
    let made = join_all(bodies.map(|path| {
        let body = match path {
            "/owners" => json!({ "name": "Ash", "monitored_aspect": "location", "associated_id": "docks" }),
            _ => json!({ "name": "Ash" }),
        };
        world.post(path, body)
    }));
    all_different(made.await);
    // Names of which one is what another's becomes.
    let made = join_all((0..MANY).map(|n| {
        let name = if n % 2 == 0 { "Elm" } else { "Elm 2" };
        world.post("/npcs", json!({ "name": name }))
    }));
    all_different(made.await);
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_and_channels_too() {
    let server = Server::start_with(&[("DATABASE_CONNECTIONS_MAX", "16")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let tenant = &tenant;
    let forks = (0..MANY).map(|n| async move {
        match n % 2 {
            0 => tenant.post("/v1/campaigns/port-town/fork", json!({ "name": "Again" })).await,
            _ => tenant.post("/v1/campaigns", json!({ "name": "Again" })).await,
        }
    });
    all_different(join_all(forks).await);
    let channels = ["hall", "Hall", "HALL", "hall!", "hall?", "hall.", " hall-", "hall#"];
    let opened = join_all(channels.iter().enumerate().map(|(n, channel)| {
        let body = json!({ "client_id": format!("c{n}"), "role": "gm", "channel": channel });
        world.post("/sessions", body)
    }));
    for session in opened.await {
        session.expect(201);
    }
    let scenes = world.get("/scenes?limit=200").await.expect(200);
    let slugs: HashSet<&str> = scenes.items().iter().map(|scene| scene["slug"].as_str().unwrap()).collect();
    assert_eq!((scenes.items().len(), slugs.len()), (channels.len(), channels.len()), "{}", scenes.text);
}
