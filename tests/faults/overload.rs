//! More requests than two servers can answer, for a while.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;

use super::{account::balance, stage::Stage, work::Work};

/// Clients that send one request after the other, however they are answered.
const CLIENTS: usize = 400;
const LASTS: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: ./dev faults"]
async fn servers_are_overloaded() {
    let stage = Stage::set().await;
    let work = Work::begin(&stage).await;
    let until = Instant::now() + LASTS;
    let flood = (0..CLIENTS).map(|n| {
        let party = work.party.clone();
        tokio::spawn(async move {
            let mut answered = 0_u32;
            while Instant::now() < until {
                let request = match n % 4 {
                    0 => party.request(Method::GET, "/campaigns/port-town/lore?limit=200"),
                    1 => party.request(Method::GET, "/campaigns/port-town/changes?limit=200"),
                    2 => party.request(Method::GET, "/campaigns/port-town/characters?q=alice"),
                    _ => party
                        .request(Method::POST, "/campaigns/port-town/messages")
                        .json(&json!({ "content": "Make way!" })),
                };
                answered += u32::from(party.once(request).await.is_some());
            }
            answered
        })
    });
    let answered: u32 = join_all(flood.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap).sum();
    assert!(answered > 0, "nobody was answered");
    work.goes_on().await;
    balance(&stage, work).await;
}
