//! `GET …/events`: the journal as server-sent events, followed and resumed.

use edge::caller::Scope;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Client, Server, sse::Events};

/// The campaign's changes, followed.
struct Stream(Events);

impl Stream {
    async fn open(client: &Client<'_>, query: &str, last: Option<&str>) -> Self {
        let path = format!("/v1/campaigns/port-town/events{query}");
        Self(Events::open(client.request(reqwest::Method::GET, &path), last).await)
    }

    /// The next change: its id and data. None when the stream has ended.
    async fn next(&mut self) -> Option<(String, Value)> {
        let event = self.0.next().await?;
        assert_eq!(event.name, "change");
        Some((event.id, event.data))
    }
}

fn lore(n: usize) -> Value {
    json!({ "title": format!("Rumour {n}"), "scope": "global", "content": "They say so." })
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_arrive_and_are_resumed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut live = Stream::open(&tenant, "", None).await;
    world.post("/lore", lore(1)).await.expect(201);
    let (first, change) = live.next().await.unwrap();
    assert_eq!(
        (&change["table"], &change["op"], &change["after"]["title"]),
        (&json!("lore"), &json!("insert"), &json!("Rumour 1"))
    );
    assert_eq!(change["seq"].to_string(), first);
    drop(live);
    for n in 2..=4 {
        world.post("/lore", lore(n)).await.expect(201);
    }
    // Where one came back, or began: nothing is missed, nothing comes twice.
    let mut resumed = Stream::open(&tenant, "?after=0", Some(&first)).await;
    for n in 2..=4 {
        assert_eq!(resumed.next().await.unwrap().1["after"]["title"], format!("Rumour {n}"));
    }
    let all = world.get("/changes?after=0&limit=200").await.expect(200);
    let mut from_the_beginning = Stream::open(&tenant, "?after=0", None).await;
    for item in all.items() {
        assert_eq!(&from_the_beginning.next().await.unwrap().1, item);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_follow_and_how_it_ends() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let path = world.path("/events");
    server.tenant("globex").await.get(&path).await.problem(404, "not_found");
    for query in ["?after=-1", "?after=x", "?since=1"] {
        tenant.get(&format!("{path}{query}")).await.problem(400, "bad_request");
    }
    let strange = tenant.request(reqwest::Method::GET, &path).header("last-event-id", "turn:7");
    tenant.send(strange).await.problem(400, "bad_request");

    // A stream ends with its key.
    let made = tenant.post("/v1/api-keys", json!({ "name": "feed", "scopes": ["read", "gm"] })).await.expect(201).body;
    let guest = tenant.with_credential(made["key"].as_str().unwrap());
    let mut stream = Stream::open(&guest, "", None).await;
    world.post("/lore", lore(1)).await.expect(201);
    assert!(stream.next().await.is_some());
    tenant.delete(&format!("/v1/api-keys/{}", made["id"].as_str().unwrap())).await.expect(204);
    world.post("/lore", lore(2)).await.expect(201);
    assert!(stream.next().await.is_none(), "a revoked key is told nothing more");
}

/// Who does not see everything follows what is said, as far as it is for them.
#[tokio::test(flavor = "multi_thread")]
async fn players_follow_what_is_said_to_them() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let alice = tenant.token(json!({ "campaign": world.slug, "player_id": "player_alice" })).await;
    let bot = tenant.with_scopes(&[Scope::Read, Scope::Play]).await;
    let after = world.get("/changes?limit=200").await.expect(200).body["next_after"].clone();
    let mut streams = Vec::new();
    for client in [&alice, &bot] {
        streams.push((client, Stream::open(client, "", None).await));
    }
    world.post("/lore", lore(1)).await.expect(201);
    let said = [
        json!({ "content": "Night falls.", "author": "gm" }),
        json!({ "content": "Only you, Alice.", "author": "gm", "whisper_to": ["player_alice"] }),
        json!({ "content": "Only you, Mallory.", "author": "gm", "whisper_to": ["player_mallory"] }),
        json!({ "content": "Day breaks.", "author": "gm" }),
    ];
    for message in said {
        world.post("/messages", message).await.expect(201);
    }
    let for_alice = vec!["Night falls.", "Only you, Alice.", "Day breaks."];
    for ((client, stream), heard) in streams.iter_mut().zip([for_alice, vec!["Night falls.", "Day breaks."]]) {
        for words in &heard {
            assert_eq!(stream.next().await.unwrap().1["after"]["content"], *words);
        }
        // Page by page the same, and what is passed over is not looked through again.
        let mut told = Vec::new();
        let mut after = after.clone();
        loop {
            let page = client.get(&world.path(&format!("/changes?limit=1&after={after}"))).await.expect(200).body;
            told.extend(
                page["items"].as_array().unwrap().iter().map(|c| c["after"]["content"].as_str().unwrap().to_owned()),
            );
            after = page["next_after"].clone();
            if page["has_more"] == false {
                break;
            }
        }
        assert_eq!(told, heard);
        assert_eq!(after, world.get("/changes?limit=200").await.expect(200).body["next_after"]);
    }
    // A campaign's streams end with it.
    tenant.delete("/v1/campaigns/port-town").await.expect(204);
    for (_, mut stream) in streams {
        while let Some((_, change)) = stream.next().await {
            assert_eq!((&change["table"], &change["op"]), (&json!("message"), &json!("delete")));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_follow_at_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut streams = join_all((0..200).map(|_| Stream::open(&tenant, "", None))).await;
    world.post("/lore", lore(1)).await.expect(201);
    let told = join_all(streams.iter_mut().map(Stream::next)).await;
    assert!(told.iter().all(|t| t.as_ref().unwrap().1["after"]["title"] == "Rumour 1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_when_the_server_stops() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mut stream = Stream::open(&tenant, "", None).await;
    server.app.stop();
    assert!(stream.next().await.is_none(), "well before the next sign of life");
}
