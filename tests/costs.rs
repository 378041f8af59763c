//! What the hot paths cost, in counts that a busy machine does not change: statements, round trips, plans, WAL, pages and allocations.
//! They are taken from a server of its own on a PostgreSQL of its own.
//!
//! If a path has become cheaper, lower its figures here.

use std::{
    ops::Range,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rehearsal::{Rehearsal, Reply, Script};
use serde_json::json;
use sqlx::{ConnectOptions, Connection, Executor, PgConnection, Row, postgres::PgConnectOptions};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp},
};

use crate::support::{Answer, Child, Database, Prepared};

/// How often each path is taken before it is measured. Each connection plans a statement anew five times before it keeps a plan.
const WARM: u32 = 100;
/// How often each path is taken in a round.
const TIMES: u32 = 30;
const ROUNDS: u32 = 3;

/// What is counted, each for one request.
const COUNTED: [&str; 8] = [
    // How often the server waits for PostgreSQL.
    "round trips",
    // All but `BEGIN`, `COMMIT` and `SET`. What triggers do when a transaction ends counts as well.
    "statements",
    // How often PostgreSQL plans a statement.
    "plans",
    "WAL records",
    "WAL bytes",
    // Pages of 8 KiB that PostgreSQL looks at.
    "pages",
    "allocations",
    "allocated bytes",
];

/// How much more than usual each may be.
const TOLERANCE: [f64; 8] = [1.0, 1.0, 1.0, 1.2, 1.2, 1.2, 1.1, 1.06];

/// What each path usually costs, as [`COUNTED`].
const USUAL: [(&str, [f64; 8]); 7] = [
    ("GET of an NPC", [1.0, 1.0, 0.0, 0.0, 0.0, 4.0, 362.0, 59_000.0]),
    ("page of 50 NPCs", [2.0, 2.0, 0.0, 0.0, 0.0, 18.0, 6500.0, 862_000.0]),
    ("turn", [2.0, 6.0, 0.0, 38.6, 7_350.0, 136.0, 560.0, 206_000.0]),
    // Its prompt is written anew, because the one before has added a memory.
    ("turn with a memory", [10.0, 15.0, 3.0, 63.5, 11_250.0, 272.0, 1400.0, 495_000.0]),
    // Chosen from 2,000 memories. Its trace says why each of 200 is in or out.
    ("turn that recalls", [2.0, 6.0, 0.0, 49.3, 15_550.0, 161.0, 1206.0, 616_000.0]),
    ("planned roll", [2.0, 6.0, 0.0, 36.0, 7_430.0, 106.0, 506.0, 144_500.0]),
    ("known plan", [2.0, 6.0, 0.0, 31.7, 6_650.0, 98.0, 332.0, 104_000.0]),
];

/// A server, its PostgreSQL, and everything that counts.
struct Stage {
    child: Child,
    db: PgConnection,
    trips: Arc<AtomicU64>,
    model: Rehearsal,
    cluster: pgcluster::EmbeddedPostgres,
    _home: Home,
}

/// A directory that is deleted at the end.
struct Home(std::path::PathBuf);

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Stage {
    async fn set(model: Rehearsal) -> Self {
        let home = Home(std::env::temp_dir().join(format!("tavernkeep-costs-{}", std::process::id())));
        let settings = [
            ("shared_preload_libraries", "pg_stat_statements"),
            ("pg_stat_statements.track", "all"),
            ("pg_stat_statements.track_planning", "on"),
            ("pg_stat_statements.track_utility", "off"),
            // What others do meanwhile would be counted, and pages that are written whole after a checkpoint.
            ("autovacuum", "off"),
            ("full_page_writes", "off"),
            ("fsync", "off"),
        ];
        let cluster = pgcluster::start_with(&home.0, &settings).await.unwrap();
        let owner = cluster.owner_url();
        tavernkeep::database::migrate(owner, owner).await.unwrap();
        let prepared = Prepared::on(Database::elsewhere(owner.to_owned())).await;
        let superuser = PgConnectOptions::from_str(cluster.superuser_url()).unwrap();
        let mut db = superuser.database(pgcluster::DATABASE).connect().await.unwrap();
        db.execute("CREATE EXTENSION pg_stat_statements").await.unwrap();
        let (url, trips) = counted_wire(owner).await;
        let env = [("RUST_LOG", "error"), ("DATABASE_URL", &url), ("DATABASE_CONNECTIONS_MAX", "4")];
        let child = prepared.start_counted(&model, &env).await;
        Self { child, db, trips, model, cluster, _home: home }
    }

    /// What a request costs: of each figure the least of some rounds, because what the server does now and then only adds to it.
    async fn costs<F: Future<Output = reqwest::Result<Answer>>>(&mut self, ask: impl Fn(&Child, u32) -> F) -> [f64; 8] {
        for n in 0..WARM {
            let answer = ask(&self.child, n).await.unwrap();
            assert!(answer.status < 300, "{}", answer.text);
        }
        let mut least = [f64::INFINITY; 8];
        for round in 0..ROUNDS {
            let first = WARM + round * TIMES;
            let round = self.round(first..first + TIMES, &ask).await;
            least = std::array::from_fn(|n| least[n].min(round[n]));
        }
        least
    }

    /// What a request costs in a round: on average, but for allocations, of which it is what a usual request does. The server refills
    /// what it remembers now and then, and does so in more of the requests if a busy machine lets them take longer.
    async fn round<F: Future<Output = reqwest::Result<Answer>>>(
        &mut self,
        numbers: Range<u32>,
        ask: &impl Fn(&Child, u32) -> F,
    ) -> [f64; 8] {
        self.db.execute("SELECT pg_stat_statements_reset()").await.unwrap();
        let (mut trips, mut times, mut bytes) = (u64::MAX, Vec::new(), Vec::new());
        let mut allocated = self.child.allocated().await;
        for n in numbers {
            let before = self.trips.load(Ordering::SeqCst);
            ask(&self.child, n).await.unwrap();
            // The least, because the server also asks for its own purposes.
            trips = trips.min(self.trips.load(Ordering::SeqCst) - before);
            let now = self.child.allocated().await;
            times.push(now.0 - allocated.0);
            bytes.push(now.1 - allocated.1);
            allocated = now;
        }
        let [statements, plans, records, wal, pages] = self.counted_by_postgres().await;
        let each = |count: u64| count as f64 / f64::from(TIMES);
        let whole = |count: u64| each(count).round();
        let usual = |mut counts: Vec<u64>| *counts.select_nth_unstable(TIMES as usize / 2).1 as f64;
        [
            trips as f64,
            whole(statements),
            whole(plans),
            each(records),
            each(wal),
            each(pages),
            usual(times),
            usual(bytes),
        ]
    }

    /// Statements, plans, WAL records, WAL bytes and pages. What a function's statements read and write is the function's. Only what is
    /// done each time counts: the server asks for its own purposes now and then, and a connection plans a statement when it is new to it.
    async fn counted_by_postgres(&mut self) -> [u64; 5] {
        let sums = "SELECT sum(calls) FILTER (WHERE toplevel)::bigint, sum(plans) FILTER (WHERE plans > $1)::bigint, \
                    sum(wal_records) FILTER (WHERE toplevel)::bigint, sum(wal_bytes) FILTER (WHERE toplevel)::bigint, \
                    sum(shared_blks_hit + shared_blks_read) FILTER (WHERE toplevel)::bigint \
                    FROM pg_stat_statements WHERE calls > $1";
        let row = sqlx::query(sums).bind(i64::from(TIMES / 2)).fetch_one(&mut self.db).await.unwrap();
        let sum = |n| row.get::<Option<i64>, _>(n).unwrap_or_default().try_into().unwrap();
        [sum(0), sum(1), sum(2), sum(3), sum(4)]
    }
}

/// A database's URL by way of a wire that counts round trips.
async fn counted_wire(url: &str) -> (String, Arc<AtomicU64>) {
    let options = PgConnectOptions::from_str(url).unwrap();
    let target = format!("{}:{}", options.get_host(), options.get_port());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = options.host("127.0.0.1").port(listener.local_addr().unwrap().port()).to_url_lossy().to_string();
    let trips = Arc::new(AtomicU64::new(0));
    let counter = trips.clone();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(&target).await.unwrap();
            near.set_nodelay(true).unwrap();
            far.set_nodelay(true).unwrap();
            let ((near_in, mut near_out), (mut far_in, far_out)) = (near.into_split(), far.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut far_in, &mut near_out).await });
            tokio::spawn(passed_on(near_in, far_out, counter.clone()));
        }
    });
    (own, trips)
}

/// Passes on what a client says, and counts the messages to which PostgreSQL answers that it is ready: `Query` and `Sync`.
async fn passed_on(mut from: tcp::OwnedReadHalf, mut to: tcp::OwnedWriteHalf, trips: Arc<AtomicU64>) {
    // The first message has no type.
    let (mut said, mut read, mut has_type) = (Vec::new(), vec![0; 64 * 1024], false);
    while let Ok(n @ 1..) = from.read(&mut read).await {
        if to.write_all(&read[..n]).await.is_err() {
            return;
        }
        said.extend_from_slice(&read[..n]);
        loop {
            let at = usize::from(has_type);
            let Some(length) = said.get(at..at + 4) else { break };
            let end = at + u32::from_be_bytes(length.try_into().unwrap()) as usize;
            if said.len() < end {
                break;
            }
            trips.fetch_add(u64::from(has_type && matches!(said[0], b'Q' | b'S')), Ordering::SeqCst);
            said.drain(..end);
            has_type = true;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hot_paths_cost_no_more_than_usual() {
    let model = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let mut stage = Stage::set(model).await;
    let mut db = PgConnection::connect(stage.cluster.owner_url()).await.unwrap();
    db.execute("UPDATE tenant SET limits = limits || '{\"planner_per_player_per_minute\": 0}'").await.unwrap();
    for n in 0..50 {
        let npc = json!({ "name": format!("Guard {n}"), "description": "Stands at the gate of the town. ".repeat(8) });
        stage.child.post("/npcs", npc).await.unwrap().expect(201);
    }
    // A prompt that is copied once more shall be seen.
    let teller = json!({ "slug": "teller", "name": "The Teller", "personality_prompt": "Never waters the ale. ".repeat(900),
        "available_tools": ["NPC_memorize"] });
    stage.child.post("/npcs", teller).await.unwrap().expect(201);
    stage.db.execute("VACUUM ANALYZE").await.unwrap();
    let act = |text: String| json!({ "player_id": "player_alice", "message": text });
    let roll = json!({ "command": "roll", "args": { "expr": "1d20" } }).to_string();
    let mut found = Vec::new();

    let costs = stage.costs(|child, _| child.read("/npcs/innkeeper_bob")).await;
    found.push(("GET of an NPC", costs));
    let costs = stage.costs(|child, _| child.read("/npcs?limit=50")).await;
    found.push(("page of 50 NPCs", costs));
    stage.model.set_script(Script::always(Reply::text("Hm.")));
    let costs = stage.costs(|child, _| child.turn("teller", "Hello.", None)).await;
    found.push(("turn", costs));
    let pair = |n: u32| {
        let memory = json!({ "player_id": "player_alice", "memory_string": format!("Pays {n}.") });
        [Reply::tool("NPC_memorize", memory), Reply::text("Thanks.")]
    };
    stage.model.set_script(Script::replies((0..WARM + ROUNDS * TIMES).flat_map(pair)));
    let costs = stage.costs(|child, _| child.turn("teller", "I pay.", None)).await;
    found.push(("turn with a memory", costs));
    sqlx::query(
        "INSERT INTO memory (tenant_id, id, campaign_id, holder_type, holder_id, subject_id, text, source) \
         SELECT n.tenant_id, uuid7(), n.campaign_id, 'npc', n.id, c.id, 'Alice lent me ' || g || ' coins for the horse.', 'import' \
         FROM npc n JOIN character c USING (tenant_id, campaign_id), generate_series(1, 2000) g \
         WHERE n.slug = 'teller' AND c.slug = 'player_alice'",
    )
    .execute(&mut db)
    .await
    .unwrap();
    stage.model.set_script(Script::always(Reply::text("Hm.")));
    let costs = stage.costs(|child, n| child.turn("teller", &format!("I sell horse {n}."), None)).await;
    found.push(("turn that recalls", costs));
    stage.model.set_script(Script::always(Reply::text(roll)));
    let costs = stage.costs(|child, n| child.post("/act", act(format!("roll for door {n}")))).await;
    found.push(("planned roll", costs));
    let costs = stage.costs(|child, _| child.post("/act", act("roll for door 1".to_owned()))).await;
    found.push(("known plan", costs));

    let mut above = Vec::new();
    for ((path, costs), (named, usual)) in found.iter().zip(USUAL) {
        assert_eq!(*path, named);
        println!("{path}");
        for (n, what) in COUNTED.iter().enumerate() {
            println!("    {:>10.1} {what}, usually {}", costs[n], usual[n]);
            if costs[n] > usual[n] * TOLERANCE[n] {
                above.push(format!("{path}: {:.1} {what} instead of {}", costs[n], usual[n]));
            }
        }
    }
    assert!(above.is_empty(), "more than usual: {above:#?}");
}
