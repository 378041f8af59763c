//! `load revert`: what another tenant notices while the server reverts a turn with 100,000 effects.
//!
//! The bench writes the turn of one tenant into the database, with memories as its tools would have made them. The server reverts
//! it because the turn's server is gone. A second such turn is undone by a request. Before, during and after each revert another
//! tenant reads one NPC, about two hundred times a second.

use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::{Connection as _, PgConnection, Row};
use tokio::time::sleep;
use uuid::Uuid;

use crate::{
    Failure,
    client::{Connection, Run, request},
    report::{Report, checked, median},
    world::World,
};

/// Memories of the turn.
const EFFECTS: i64 = 100_000;
/// Reads in one window. The bench reports the median over all windows, because a shared machine stalls now and then, and one stall
/// would decide the 99th percentile of a whole run.
const WINDOW: usize = 200;
/// Between two reads of the other tenant.
const PAUSE: Duration = Duration::from_millis(3);

/// Measures both kinds of revert. `world` has the turn; the API key `other` belongs to another tenant.
///
/// # Errors
/// Those of the sockets and of the database.
pub async fn measure(
    report: &mut Report,
    world: &World,
    other: &str,
    database: &str,
    alone: Duration,
) -> Result<(), Failure> {
    let read = npc(&world.addr, other).await?;
    let mut db = PgConnection::connect(database).await?;
    for (name, is_undone) in [("its server is gone", false), ("it is undone", true)] {
        let turn = write(&mut db, world).await?;
        sqlx::query("VACUUM ANALYZE").execute(&mut db).await?;
        let first = reads(world, &read, async || Ok(true), alone).await?;
        if is_undone {
            let path = format!("/v1/campaigns/port-town/turns/{turn}/undo");
            let mut connection = Connection::open(&world.addr).await?;
            let (status, answer) = connection.send(&request("POST", &path, &world.key, "{}")).await?;
            if status != 202 {
                return Err(String::from_utf8_lossy(answer).into_owned().into());
            }
        } else {
            sqlx::query("UPDATE turn SET status = 'running' WHERE id = $1").bind(turn).execute(&mut db).await?;
            while !goes_on(&mut db, turn).await? {
                sleep(Duration::from_millis(100)).await;
            }
        }
        let began = Instant::now();
        let beside = {
            let mut asked = PgConnection::connect(database).await?;
            reads(world, &read, async || goes_on(&mut asked, turn).await, Duration::from_secs(600)).await?
        };
        let took = began.elapsed().as_secs_f64();
        let left: i64 =
            sqlx::query("SELECT count(*) FROM memory WHERE turn_id = $1").bind(turn).fetch_one(&mut db).await?.get(0);
        if left > 0 {
            return Err(format!("{left} memories of a turn that is taken back are still there").into());
        }
        let then = reads(world, &read, async || Ok(true), alone).await?;
        for (share, name_of) in [(0.5, "p50"), (0.99, "p99")] {
            let of = |windows: &[Run]| median(windows.iter().map(|run| run.quantile_ms(share)).collect());
            let (before, ours, after) = (of(&first), of(&beside), of(&then));
            let ratio = ours / f64::midpoint(before, after);
            let goal = if share > 0.9 { "<= 1.5" } else { "" };
            report.line(
                &format!("reads while {name}, {name_of}"),
                [&format!("{before:.2}, {after:.2} ms"), &format!("{ours:.2} ms")],
                (ratio, "x"),
                goal,
                goal.is_empty() || ratio <= 1.5,
            );
        }
        report.line(
            &format!("taken back because {name}"),
            ["", &format!("{} windows", beside.len())],
            (took, "s"),
            "",
            true,
        );
    }
    Ok(())
}

/// A request for the one NPC of a new campaign.
async fn npc(addr: &str, key: &str) -> Result<Vec<u8>, Failure> {
    let mut connection = Connection::open(addr).await?;
    for (path, body) in [
        ("/v1/campaigns", json!({ "slug": "elsewhere", "name": "Elsewhere" })),
        ("/v1/campaigns/elsewhere/npcs", json!({ "slug": "miller", "name": "The miller" })),
    ] {
        let (status, answer) = connection.send(&request("POST", path, key, &body.to_string())).await?;
        if status != 201 {
            return Err(String::from_utf8_lossy(answer).into_owned().into());
        }
    }
    Ok(request("GET", "/v1/campaigns/elsewhere/npcs/miller", key, ""))
}

/// Writes a turn that succeeded on a server that is gone, with all its effects.
#[expect(clippy::disallowed_methods, reason = "it writes rows without a server")]
async fn write(db: &mut PgConnection, world: &World) -> Result<Uuid, Failure> {
    let turn = Uuid::now_v7();
    let mut tx = db.begin().await?;
    let row = sqlx::query(
        "INSERT INTO turn (tenant_id, id, campaign_id, kind, status, entity_id, instance, lease_until, record) \
         SELECT tenant_id, $1, campaign_id, 'npc', 'succeeded', id, 0, now(), '{}' FROM npc WHERE id = $2 RETURNING tenant_id",
    )
    .bind(turn)
    .bind(world.npc)
    .fetch_one(&mut *tx)
    .await?;
    let tenant: Uuid = row.get(0);
    sqlx::query("SELECT set_config('app.tenant_id', $1, true), set_config('app.who', $2, true)")
        .bind(tenant.to_string())
        .bind(format!("tool||{turn}|bench"))
        .execute(&mut *tx)
        .await?;
    sqlx::query(
        "INSERT INTO memory (tenant_id, id, campaign_id, holder_type, holder_id, subject_id, text, source, turn_id) \
         SELECT $1, uuid7(), $2, 'npc', h.ids[1 + n % array_length(h.ids, 1)], s.ids[1 + n / 7 % array_length(s.ids, 1)], \
             'She pays, ' || n || '.', 'personal', $3 \
         FROM generate_series(1, $4) n, \
              (SELECT array_agg(id ORDER BY id) AS ids FROM npc WHERE campaign_id = $2) h, \
              (SELECT array_agg(id ORDER BY id) AS ids FROM character WHERE campaign_id = $2) s",
    )
    .bind(tenant)
    .bind(world.campaign)
    .bind(turn)
    .bind(EFFECTS)
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(turn)
}

async fn goes_on(db: &mut PgConnection, turn: Uuid) -> Result<bool, Failure> {
    let row = sqlx::query("SELECT revert_as IS NOT NULL FROM turn WHERE id = $1").bind(turn).fetch_one(db).await?;
    Ok(row.get(0))
}

/// Sends one request after the other, with pauses, while `goes_on` is true. Returns a run for each window of [`WINDOW`] requests.
async fn reads(
    world: &World,
    read: &[u8],
    mut goes_on: impl AsyncFnMut() -> Result<bool, Failure>,
    at_most: Duration,
) -> Result<Vec<Run>, Failure> {
    let mut connection = Connection::open(&world.addr).await?;
    let mut windows = Vec::new();
    let began = Instant::now();
    while began.elapsed() < at_most && goes_on().await? {
        let (mut run, started) = (Run::default(), Instant::now());
        for _ in 0..WINDOW {
            run.note(&mut connection, read).await?;
            sleep(PAUSE).await;
        }
        run.ends(started);
        windows.push(checked(run)?);
    }
    Ok(windows)
}
