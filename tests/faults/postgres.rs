//! PostgreSQL killed, stopped, silent, full and out of connections.

use std::time::Duration;

use sqlx::{Connection, PgConnection};

use super::{
    account::balance,
    stage::{CONNECTIONS_MAX, Stage, can_fill},
    work::Work,
};

/// Within which ordinary work goes on once it can.
const SOON: Duration = Duration::from_secs(10);

async fn a_while(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: ./dev faults"]
async fn postgres_is_killed() {
    let mut stage = Stage::set().await;
    let work = Work::begin(&stage).await;
    for round in 0..4 {
        tokio::time::sleep(Duration::from_millis(300 + round * 170)).await;
        stage.cluster.kill().await;
        stage.start_postgres().await;
        work.goes_on_within(2 * SOON).await;
    }
    balance(&stage, work).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: ./dev faults"]
async fn postgres_is_away() {
    let mut stage = Stage::set().await;
    let work = Work::begin(&stage).await;
    stage.cluster.stop().await;
    a_while(5).await;
    stage.start_postgres().await;
    work.goes_on().await;
    balance(&stage, work).await;
}

/// Its processes stand still, while the kernel still takes what is sent to them.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: ./dev faults"]
async fn postgres_stands_still() {
    let stage = Stage::set().await;
    let work = Work::begin(&stage).await;
    let frozen = stage.cluster.freeze();
    a_while(12).await;
    stage.cluster.thaw(&frozen);
    work.goes_on().await;
    balance(&stage, work).await;
}

/// Open connections go silent; new ones work at once.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: ./dev faults"]
async fn connections_fall_silent() {
    let stage = Stage::set().await;
    let work = Work::begin(&stage).await;
    for _ in 0..3 {
        stage.wire.silence();
        work.is_heard_within(SOON).await;
        // What a silent connection has locked is free when PostgreSQL ends its transaction, after ten seconds.
        work.goes_on_within(3 * SOON).await;
    }
    balance(&stage, work).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: ./dev faults"]
async fn connections_are_cut() {
    let stage = Stage::set().await;
    let work = Work::begin(&stage).await;
    for round in 0..20_u64 {
        stage.wire.cut();
        tokio::time::sleep(Duration::from_millis(50 + (round * 97) % 300)).await;
    }
    work.goes_on().await;
    balance(&stage, work).await;
}

/// The disk is full, and has room again. PostgreSQL may end itself over it, and is started again then.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: ./dev faults"]
async fn the_disk_is_full() {
    assert!(can_fill(), "only root can make a small file system");
    let mut stage = Stage::with(Some(400 << 20), &[]).await;
    let work = Work::begin(&stage).await;
    let filled = stage.cluster.fill();
    a_while(6).await;
    std::fs::remove_file(filled).unwrap();
    if !stage.cluster.is_up().await {
        stage.cluster.kill().await;
        stage.start_postgres().await;
    }
    work.goes_on().await;
    balance(&stage, work).await;
}

/// Somebody else takes every connection that is left, and those of the servers are ended.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: ./dev faults"]
async fn no_connection_is_left() {
    let stage = Stage::set().await;
    let work = Work::begin(&stage).await;
    let url = stage.cluster.url();
    let mut taken = Vec::new();
    for _ in 0..6 {
        stage.wire.cut();
        while taken.len() < CONNECTIONS_MAX
            && let Ok(connection) = PgConnection::connect(&url).await
        {
            taken.push(connection);
        }
        a_while(1).await;
    }
    assert!(taken.len() > CONNECTIONS_MAX / 2, "{}", taken.len());
    drop(taken);
    work.goes_on().await;
    balance(&stage, work).await;
}
