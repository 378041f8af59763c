//! `./dev bench`: compares what a request costs here with the least that it could cost.
//!
//! `load [--quick] [--strict] [--frontends]` measures everything, or with `--frontends` only frontends. `load --guard [FIGURE…]` compares
//! the hot paths with what they usually cost. `load overload [--quick]`
//! sends three times what the server can handle. `load revert [--quick]` reverts a large turn beside another tenant.
//! `load reactions [--quick]` measures actions, and the reactions to them.
//! `load floor-read ADDR` and `load floor-forward ADDR MODEL` are the floors, which it starts itself.

use std::{process::ExitCode, time::Duration};

use bench::{
    Failure,
    client::{Connection, drive, once, request},
    floors,
    frontends::{self, Idle, Resident},
    guard::Guard,
    overload,
    process::{self, Meter, Program},
    reactions,
    report::{Report, checked, median},
    revert,
    world::{self, PAYING, PLAIN, World},
};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, Executor, PgConnection, Row};
use tokio::time::sleep;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const OURS: &str = "127.0.0.1:18180";
const READ_FLOOR: &str = "127.0.0.1:18181";
const FORWARD_FLOOR: &str = "127.0.0.1:18182";
const MODEL: &str = "127.0.0.1:18183";
/// The model of this process, which knows when it was asked.
const OWN_MODEL: &str = "127.0.0.1:18185";
/// The address of a fresh server, to measure the memory of connections.
const FRESH: &str = "127.0.0.1:18184";
const KEY: &str = "tk_benchbox_0000000000000000000000000000000000000000000";
const DATABASE: &str = "tavernkeep_bench";
/// The number of texts that are planned once each. A run never needs that many.
const TEXTS: usize = 20_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let database = std::env::var("DATABASE_URL").unwrap_or_default();
    let done = actix_web::rt::System::new().block_on(async {
        match words.as_slice() {
            ["floor-read", addr] => floors::read(addr, &database).await.map(|()| true),
            ["floor-forward", addr, model] => floors::forward(addr, model).await.map(|()| true),
            ["--guard", only @ ..] => guarded(&database, only).await,
            ["overload", ..] => overloaded(&database, words.contains(&"--quick")).await,
            ["reactions", ..] => reacted(&database, words.contains(&"--quick")).await,
            ["revert", ..] => reverted(&database, words.contains(&"--quick")).await,
            _ => measure(&database, words.contains(&"--quick"), words.contains(&"--frontends")).await,
        }
    });
    match done {
        Ok(all_met) if all_met || !words.iter().any(|word| ["--strict", "--guard"].contains(word)) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Waits until something listens on the address.
async fn up(addr: &str) -> Result<(), Failure> {
    for _ in 0..300 {
        if Connection::open(addr).await.is_ok() {
            return Ok(());
        }
        sleep(Duration::from_millis(100)).await;
    }
    Err(format!("nothing listens on {addr}").into())
}

/// A database with the demo, and a model.
struct Stand {
    database: String,
    postmaster: u32,
    model: String,
    model_program: Program,
}

impl Stand {
    async fn prepare(server: &str) -> Result<Self, Failure> {
        let mut db = PgConnection::connect(server).await?;
        db.execute(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)"))).await?;
        db.execute(AssertSqlSafe(format!("CREATE DATABASE {DATABASE}"))).await?;
        let backend: i32 = sqlx::query("SELECT pg_backend_pid()").fetch_one(&mut db).await?.try_get(0)?;
        let postmaster = process::parent(u32::try_from(backend)?)
            .ok_or("PostgreSQL runs on another machine, so its CPU time cannot be measured")?;
        let (head, _) = server.rsplit_once('/').ok_or("no database in DATABASE_URL")?;
        let program = Program::start("tavernkeep", &["rehearse", "--bind", MODEL, "--record", "0"], &[])?;
        let (database, model) = (format!("{head}/{DATABASE}"), format!("http://{MODEL}/v1"));
        let stand = Self { database, postmaster, model, model_program: program };
        // Measuring the planner needs more requests than one player may send.
        let limits = ["tenant", "limits", "--tenant", "demo", "--planner-per-player-per-minute", "0"];
        for arguments in [&["demo"][..], &limits] {
            stand.command(arguments)?;
        }
        Ok(stand)
    }

    /// Runs one of the program's commands and returns what it printed.
    fn command(&self, arguments: &[&str]) -> Result<String, Failure> {
        let program = process::beside("tavernkeep")?;
        let done = std::process::Command::new(program).args(arguments).envs(self.env()).output()?;
        if done.status.success() {
            Ok(String::from_utf8(done.stdout)?.trim().to_owned())
        } else {
            Err(String::from_utf8_lossy(&done.stderr).into_owned().into())
        }
    }

    /// The server's environment.
    fn env(&self) -> [(&str, &str); 7] {
        [
            ("DATABASE_URL", &self.database),
            ("TAVERNKEEP_SECRET_KEY", "a secret for measuring that is long enough"),
            ("TAVERNKEEP_DEMO_API_KEY", KEY),
            ("TAVERNKEEP_BIND", OURS),
            ("LLM_API_ENDPOINT", &self.model),
            ("LLM_MODEL_NAME", "rehearsal"),
            ("RUST_LOG", "warn"),
        ]
    }
}

impl Stand {
    /// Gives some cores to the server and PostgreSQL, and the others to the generator and the model, so that the overload does not take
    /// CPU from what it measures. If there is only one core, they share it.
    fn part(&self, server: u32) -> Result<(), Failure> {
        let cores = std::thread::available_parallelism()?.get();
        let all: Vec<usize> = (0..cores).collect();
        let (others, ours) = all.split_at(cores / 2);
        if others.is_empty() {
            return Ok(());
        }
        for process in [server, self.postmaster].into_iter().chain(process::children(self.postmaster)) {
            process::keep_on(process, ours)?;
        }
        for process in [std::process::id(), self.model_program.id()] {
            process::keep_on(process, others)?;
        }
        Ok(())
    }
}

/// Sends three times what the server can handle, for half a minute each.
async fn overloaded(server: &str, quick: bool) -> Result<bool, Failure> {
    let stand = Stand::prepare(server).await?;
    let ours = Program::start("tavernkeep", &["serve"], &stand.env())?;
    for addr in [MODEL, OURS] {
        up(addr).await?;
    }
    let world = World::make(OURS, KEY).await?;
    world::settle(&stand.database).await?;
    stand.part(ours.id())?;
    Report::heads();
    let mut report = Report::default();
    overload::measure(&mut report, &world, ours.id(), Duration::from_secs(if quick { 8 } else { 30 })).await?;
    Ok(report.missed == 0)
}

/// A large turn that is taken back, beside another tenant.
async fn reverted(server: &str, quick: bool) -> Result<bool, Failure> {
    let stand = Stand::prepare(server).await?;
    stand.command(&["tenant", "create", "--slug", "other", "--name", "Other"])?;
    let other = stand.command(&["key", "create", "--tenant", "other", "--scopes", "read,write"])?;
    let _ours = Program::start("tavernkeep", &["serve"], &stand.env())?;
    up(OURS).await?;
    let world = World::make(OURS, KEY).await?;
    Report::heads();
    let mut report = Report::default();
    let alone = Duration::from_secs(if quick { 5 } else { 20 });
    revert::measure(&mut report, &world, &other, &stand.database, alone).await?;
    Ok(report.missed == 0)
}

/// Actions, and the reactions to them.
async fn reacted(server: &str, quick: bool) -> Result<bool, Failure> {
    let stand = Stand::prepare(server).await?;
    let asked = reactions::model(OWN_MODEL)?;
    let endpoint = format!("http://{OWN_MODEL}/v1");
    let ours =
        Program::start("tavernkeep", &["serve"], &[&stand.env()[..], &[("LLM_API_ENDPOINT", &endpoint)]].concat())?;
    up(OURS).await?;
    let world = World::make(OURS, KEY).await?;
    world::settle(&stand.database).await?;
    Report::heads();
    let mut report = Report::default();
    let meter = Meter { server: ours.id(), postmaster: stand.postmaster };
    let time = Duration::from_secs(if quick { 2 } else { 5 });
    reactions::measure(&mut report, &world, meter, (&stand.database, &asked), time).await?;
    Ok(report.missed == 0)
}

/// Compares what the hot paths cost with what they usually cost.
async fn guarded(server: &str, only: &[&str]) -> Result<bool, Failure> {
    let stand = Stand::prepare(server).await?;
    let (env, database) = (stand.env(), &stand.database);
    let ours = Program::start("tavernkeep", &["serve"], &env)?;
    let floor = Program::start("load", &["floor-read", READ_FLOOR], &[("DATABASE_URL", database)])?;
    for addr in [MODEL, OURS, READ_FLOOR] {
        up(addr).await?;
    }
    sleep(Duration::from_secs(5)).await;
    let idle = process::resident_mib(ours.id());
    let world = World::make(OURS, KEY).await?;
    world::settle(database).await?;
    let meter = |program: &Program| Meter { server: program.id(), postmaster: stand.postmaster };
    let guard = Guard { world: &world, server: meter(&ours), floor: (meter(&floor), READ_FLOOR), idle, model: MODEL };
    let fresh = async || {
        let server = Program::start("tavernkeep", &["serve"], &[&env[..], &[("TAVERNKEEP_BIND", FRESH)]].concat())?;
        up(FRESH).await?;
        Ok((server, World { addr: FRESH.to_owned(), ..world.clone() }))
    };
    guard.watch(only, fresh).await
}

async fn measure(server: &str, quick: bool, only_frontends: bool) -> Result<bool, Failure> {
    let time = Duration::from_secs(if quick { 2 } else { 5 });
    let rounds = if quick { 2 } else { 3 };
    let stand = Stand::prepare(server).await?;
    let (env, database, model) = (stand.env(), &stand.database, &stand.model);
    let ours = Program::start("tavernkeep", &["serve"], &env)?;
    let _read = Program::start("load", &["floor-read", READ_FLOOR], &[("DATABASE_URL", database)])?;
    let _forward = Program::start("load", &["floor-forward", FORWARD_FLOOR, model], &[])?;
    for addr in [MODEL, OURS, READ_FLOOR, FORWARD_FLOOR] {
        up(addr).await?;
    }
    sleep(Duration::from_secs(5)).await;
    let idle = process::resident_mib(ours.id());

    Report::heads();
    let mut report = Report::default();
    report.at_most("resident memory, idle", (idle, "MiB"), 80.0);
    let meter = Meter { server: ours.id(), postmaster: stand.postmaster };
    let world = World::make(OURS, KEY).await?;
    drive(OURS, &world.turns(16, PLAIN), Duration::from_secs(2)).await?;
    drive(OURS, &world.turns(16, PAYING), Duration::from_secs(1)).await?;
    world::settle(database).await?;
    if !only_frontends {
        reads(&mut report, &world, time, rounds).await?;
        latency(&mut report, &world, model, time, rounds).await?;
        cost(&mut report, &world, meter, time).await?;
        throughput(&mut report, &world, time, rounds).await?;
        planner(&mut report, &world, meter, model, time).await?;
    }
    frontends::measure(&mut report, &world, meter, (MODEL, database), time).await?;
    let fresh = World { addr: FRESH.to_owned(), ..world.clone() };
    for part in [Idle::Sockets, Idle::Streams] {
        let server = Program::start("tavernkeep", &["serve"], &[&env[..], &[("TAVERNKEEP_BIND", FRESH)]].concat())?;
        up(FRESH).await?;
        let Resident { resident, grown } = frontends::memory(&fresh, server.id(), part).await?;
        match part {
            Idle::Sockets => report.at_most("500 idle bridge sockets, resident growth", (grown, "MiB"), 40.0),
            Idle::Streams => report.at_most("1,000 open streams, resident", (resident, "MiB"), 150.0),
        }
    }
    if !only_frontends {
        fights(&mut report, &world, meter, time).await?;
        journal(&mut report, &world, database, time).await?;
        edits(&mut report, &world, rounds).await?;
        world::settle(database).await?;
        size(&mut report, &world, database, time, quick).await?;
    }
    Ok(report.missed == 0)
}

async fn reads(report: &mut Report, world: &World, time: Duration, rounds: usize) -> Result<(), Failure> {
    let floor_requests = vec![vec![request("GET", &format!("/npc/{}", world.npc), "", "")]; 32];
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    drive(OURS, &world.reads(32), Duration::from_secs(1)).await?;
    for _ in 0..rounds {
        floor.push(drive(READ_FLOOR, &floor_requests, time).await?.rate());
        ours.push(checked(drive(OURS, &world.reads(32), time).await?)?.rate());
    }
    let (floor, ours) = (median(floor), median(ours));
    let ratio = ours / floor;
    let (a, b) = (format!("{floor:.0}/s"), format!("{ours:.0}/s"));
    report.line("GET of an NPC, 32 connections", [&a, &b], (ratio, "x"), ">= 0.45", ratio >= 0.45);
    Ok(())
}

async fn latency(
    report: &mut Report,
    world: &World,
    model: &str,
    time: Duration,
    rounds: usize,
) -> Result<(), Failure> {
    // A body as large as our prompts, sent unchanged.
    let text = "The harbour watch counts every crate twice. ".repeat(90);
    let body = json!({ "model": model, "messages": [{ "role": "user", "content": text }] }).to_string();
    let floor_requests = vec![vec![request("POST", "/", "", &body)]];
    drive(OURS, &world.turns(16, PLAIN), Duration::from_secs(2)).await?;
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        floor.push(drive(FORWARD_FLOOR, &floor_requests, time).await?.quantile_ms(0.5));
        ours.push(checked(drive(OURS, &world.turns(1, PLAIN), time).await?)?.quantile_ms(0.5));
    }
    let (floor, ours) = (median(floor), median(ours));
    let (a, b) = (format!("{floor:.2} ms"), format!("{ours:.2} ms"));
    report.line("NPC turn, 1 client, added median", [&a, &b], (ours - floor, "ms"), "<= 2", ours - floor <= 2.0);
    Ok(())
}

/// The CPU time of server and PostgreSQL for a turn, without that of the model and the generator.
async fn cost(report: &mut Report, world: &World, meter: Meter, time: Duration) -> Result<(), Failure> {
    drive(OURS, &world.turns(8, PLAIN), Duration::from_secs(1)).await?;
    for (clients, name) in [(1, "NPC turn, CPU without tools, 1 client"), (8, "the same, 8 clients in one campaign")] {
        let before = meter.spent();
        let run = checked(drive(OURS, &world.turns(clients, PLAIN), time).await?)?;
        report.cpu(name, meter.each(before, run.requests), 1.0);
    }
    // Let each pair talk once, so that its prompt is cached. The turn's memory is then the pair's first.
    checked(once(OURS, &world.strangers(8, PLAIN)).await?)?;
    let before = meter.spent();
    let run = checked(once(OURS, &world.strangers(1, PAYING)).await?)?;
    report.cpu("NPC turn, CPU with one memory tool, 1 client", meter.each(before, run.requests), 1.5);
    // Every turn writes a memory, so every turn is a cache miss.
    let before = meter.spent();
    let run = checked(drive(OURS, &world.turns(1, PAYING), time).await?)?;
    report.cpu("the same, each a cache miss", meter.each(before, run.requests), f64::INFINITY);
    Ok(())
}

/// A player's text that becomes a roll: the time added to the model's, and the CPU time without the model's; and the same if its
/// plan is known.
async fn planner(report: &mut Report, world: &World, meter: Meter, model: &str, time: Duration) -> Result<(), Failure> {
    // A body as large as a planner's prompt, sent unchanged.
    let text = "The harbour watch counts every crate twice. ".repeat(130);
    let body = json!({ "model": model, "messages": [{ "role": "user", "content": text }] }).to_string();
    let floor = drive(FORWARD_FLOOR, &[vec![request("POST", "/", "", &body)]], time).await?.quantile_ms(0.5);
    drive(OURS, &world.texts(1, true), Duration::from_secs(1)).await?;
    let before = meter.spent();
    let run = checked(drive(OURS, &world.texts(TEXTS, false), time).await?)?;
    let (a, b) = (format!("{floor:.2} ms"), format!("{:.2} ms", run.quantile_ms(0.5)));
    let added = run.quantile_ms(0.5) - floor;
    report.cpu("planned roll, CPU, 1 client", meter.each(before, run.requests), 1.5);
    report.line("planned roll, 1 client, added median", [&a, &b], (added, "ms"), "<= 3", added <= 3.0);
    let before = meter.spent();
    let run = checked(drive(OURS, &world.texts(1, true), time).await?)?;
    report.cpu("the same with a known plan, CPU", meter.each(before, run.requests), 1.0);
    Ok(())
}

/// The CPU time of an action in a fight of eight, and the time to read a fight of a hundred after a thousand events.
async fn fights(report: &mut Report, world: &World, meter: Meter, time: Duration) -> Result<(), Failure> {
    let duel = world.begin(8).await?;
    let action = |fight: &str, body: &str| {
        vec![vec![request("POST", &format!("/v1/campaigns/port-town/encounters/{fight}/actions"), KEY, body)]]
    };
    let blow = action(&duel, r#"{"action":"attack","participant_id":"p0","target_id":"p1","override":true}"#);
    drive(OURS, &blow, Duration::from_secs(1)).await?;
    let before = meter.spent();
    let run = checked(drive(OURS, &blow, time).await?)?;
    report.cpu("action in a fight, CPU, 1 client", meter.each(before, run.requests), 1.5);

    let crowd = world.begin(100).await?;
    let turn = action(&crowd, r#"{"action":"advance_turn"}"#);
    drive(OURS, &turn, Duration::from_secs(2)).await?;
    let read = vec![vec![request("GET", &format!("/v1/campaigns/port-town/encounters/{crowd}"), KEY, "")]];
    let median = checked(drive(OURS, &read, time).await?)?.quantile_ms(0.5);
    report.at_most("GET of a fight of 100, median", (median, "ms"), 5.0);
    Ok(())
}

/// The cost of the journal: small updates by 8 connections, without it, with it, and spread over several campaigns.
async fn journal(report: &mut Report, world: &World, database: &str, time: Duration) -> Result<(), Failure> {
    let without = world::updates(database, &[world.campaign], false, time).await?;
    let one = world::updates(database, &[world.campaign], true, time).await?;
    let campaigns = world::campaigns(database, world, 100).await?;
    let many = world::updates(database, &campaigns, true, time).await?;
    for (name, rate) in [("journal: updates in one campaign", one), ("journal: updates in 100 campaigns", many)] {
        let (a, b) = (format!("{without:.0}/s"), format!("{rate:.0}/s"));
        report.line(name, [&a, &b], (rate / without, "x"), "", true);
    }
    Ok(())
}

/// The time of a bulk edit that finds, replaces and tags. Each edit is undone before the next.
async fn edits(report: &mut Report, world: &World, rounds: usize) -> Result<(), Failure> {
    for (entries, goal) in [(1000, 2.0), (5000, 10.0)] {
        world.lore(entries).await?;
        let mut seconds = Vec::new();
        for _ in 0..rounds {
            seconds.push(world.edit(entries).await?);
        }
        report.at_most(&format!("bulk edit of {entries} entries, median"), (median(seconds), "s"), goal);
    }
    Ok(())
}

async fn throughput(report: &mut Report, world: &World, time: Duration, rounds: usize) -> Result<(), Failure> {
    let mut rates = Vec::new();
    for _ in 0..rounds {
        rates.push(checked(drive(OURS, &world.turns(16, PLAIN), time).await?)?.rate());
    }
    let rate = median(rates);
    report.line("NPC turns, 16 clients", ["", ""], (rate, "/s"), ">= 800", rate >= 800.0);
    Ok(())
}

async fn size(report: &mut Report, world: &World, database: &str, time: Duration, quick: bool) -> Result<(), Failure> {
    let requests = world.turns(1, PLAIN);
    let small = checked(drive(OURS, &requests, time).await?)?.quantile_ms(0.5);
    let share = if quick { 10 } else { 1 };
    world::grow(database, world, 100_000 / share, 1_000_000 / share).await?;
    drive(OURS, &requests, Duration::from_secs(1)).await?;
    let large = checked(drive(OURS, &requests, time).await?)?.quantile_ms(0.5);
    let (a, b) = (format!("{small:.2} ms"), format!("{large:.2} ms"));
    report.line(
        "NPC turn, median: small and large tenant",
        [&a, &b],
        (large / small, "x"),
        "<= 1.5",
        large / small <= 1.5,
    );
    Ok(())
}
