//! Servers that are killed.

use std::time::Duration;

use super::{account::balance, stage::Stage, work::Work};

/// `kill -9` of one server after another at moments that drift through whatever they do: turns, commits, bulk edits,
/// imports, forks and streams.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: ./dev faults"]
async fn servers_are_killed() {
    let mut stage = Stage::set().await;
    let work = Work::begin(&stage).await;
    for round in 0..12_u64 {
        tokio::time::sleep(Duration::from_millis(200 + (round * 137) % 600)).await;
        let nth = usize::try_from(round).unwrap() % 2;
        stage.kill_server(nth).await;
        stage.start_server(nth).await;
    }
    work.goes_on().await;
    balance(&stage, work).await;
}

/// Both at once, as when a machine loses its power; PostgreSQL stands elsewhere.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: ./dev faults"]
async fn all_servers_are_killed() {
    let mut stage = Stage::set().await;
    let work = Work::begin(&stage).await;
    for round in 0..4_u64 {
        tokio::time::sleep(Duration::from_millis(300 + (round * 211) % 500)).await;
        stage.kill_server(0).await;
        stage.kill_server(1).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        stage.start_server(0).await;
        stage.start_server(1).await;
        work.goes_on().await;
    }
    balance(&stage, work).await;
}
