//! Measures frontends: a session's turn, dice and fights over the bridge, streamed text, and idle connections.

use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{net::TcpStream, task::JoinSet, time::sleep};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

use crate::{
    Failure,
    client::{Connection, drive, request},
    process::{self, Meter},
    report::{Report, checked},
    world::{self, World},
};

/// The number of measured sessions. They take their turns one after the other, each in its own world, so that no
/// conversation gets long.
const SESSIONS: usize = 32;
/// The number of open bridge connections, and of streams of each kind.
const SOCKETS: usize = 500;
/// The number of concurrent streams when a chunk's cost is measured, and the number of turns of each.
const TOLD_AT_ONCE: usize = 4;
const TOLD_EACH: usize = 4;
/// The length of a text, and of its chunks, in characters.
const TEXT_CHARS: usize = 4000;
const CHUNK_CHARS: usize = 4;
/// Texts that the model has scripted answers to.
const ON: &str = "Go on with it";
const FEW: &str = "Tell it in one breath";
const MANY: &str = "Tell it word by word";
const SLOW: &str = "Take your time";
/// How long a slow model takes.
const SLOW_TIME: Duration = Duration::from_secs(15);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Everything that is measured on a warm server. `model` is the rehearsal model's address, which gets a script.
///
/// # Errors
/// If something fails.
pub async fn measure(
    report: &mut Report,
    world: &World,
    meter: Meter,
    (model, database): (&str, &str),
    time: Duration,
) -> Result<(), Failure> {
    tell(model).await?;
    world.end_fights().await?;
    let tables = tables(world).await?;
    world::settle(database).await?;
    game_master(report, world, &tables, meter, time).await?;
    tools(report, world, time).await?;
    chunks(report, world, meter).await
}

/// The sessions' paths.
async fn tables(world: &World) -> Result<Vec<String>, Failure> {
    let mut tables = Vec::with_capacity(SESSIONS);
    for n in 0..SESSIONS {
        tables.push(world.table(&format!("table-{n}")).await?);
    }
    Ok(tables)
}

/// The CPU time of a session's turn, without tools and with one `roll_dice`.
async fn game_master(
    report: &mut Report,
    world: &World,
    tables: &[String],
    meter: Meter,
    time: Duration,
) -> Result<(), Failure> {
    for (instruction, name, goal) in [
        (ON, "GM turn, CPU without tools, 1 client", f64::INFINITY),
        ("Roll 1d20.", "GM turn, CPU with one roll_dice, 1 client", 2.0),
    ] {
        let body = json!({ "instruction": instruction }).to_string();
        let turns: Vec<_> = tables.iter().map(|s| request("POST", &format!("{s}/turns"), &world.key, &body)).collect();
        drive(&world.addr, std::slice::from_ref(&turns), Duration::from_secs(1)).await?;
        let before = meter.spent();
        let run = checked(drive(&world.addr, &[turns], time).await?)?;
        report.cpu(name, meter.each(before, run.requests), goal);
    }
    Ok(())
}

/// A roll through a frontend that answers at once, and `get_encounter` without a fight.
async fn tools(report: &mut Report, world: &World, time: Duration) -> Result<(), Failure> {
    let (socket, session) = connect(world, "roller", "frontend").await?;
    let answering = tokio::spawn(answer(socket));
    for (tool, arguments, goal) in
        [("roll_dice", json!({ "rolls": [{ "formula": "1d20+5" }] }), 3.0), ("get_encounter", json!({}), 5.0)]
    {
        let body = json!({ "arguments": arguments, "session_id": session, "actor": { "type": "gm" } }).to_string();
        let call = request("POST", &format!("/v1/campaigns/port-town/tools/{tool}"), &world.key, &body);
        let (_, answer) = Connection::open(&world.addr).await?.send(&call).await.map(|(s, b)| (s, b.to_vec()))?;
        let seen: Value = serde_json::from_slice(&answer)?;
        if tool == "roll_dice" && seen["result"]["source"] != "frontend" {
            return Err(format!("the frontend did not roll: {seen}").into());
        }
        let run = checked(drive(&world.addr, &[vec![call]], time).await?)?;
        report.at_most(&format!("{tool} over the bridge, median"), (run.quantile_ms(0.5), "ms"), goal);
    }
    answering.abort();
    Ok(())
}

/// Connects a frontend. Returns its socket and its session.
async fn connect(world: &World, name: &str, dice: &str) -> Result<(Socket, String), Failure> {
    let url = format!("ws://{}/v1/campaigns/port-town/bridge", world.addr);
    let (mut socket, _) = connect_async(url).await?;
    let hello = json!({ "type": "connect", "client_id": name, "token": world.key, "role": "gm", "dice": dice });
    socket.send(Message::text(hello.to_string())).await?;
    let Some(Ok(Message::Text(text))) = socket.next().await else { return Err("the bridge said nothing".into()) };
    let connected: Value = serde_json::from_str(&text)?;
    let session = connected["data"]["session_id"].as_str().ok_or_else(|| text.to_string())?;
    Ok((socket, session.to_owned()))
}

/// A frontend that answers at once.
async fn answer(mut socket: Socket) -> Result<(), Failure> {
    while let Some(message) = socket.next().await {
        let Message::Text(text) = message? else { continue };
        let frame: Value = serde_json::from_str(&text)?;
        if frame["type"] == "execute_roll" {
            let rolled = json!([{ "formula": "1d20+5", "total": 12, "dice": [{ "faces": 20, "value": 7 }] }]);
            let answer =
                json!({ "type": "roll_result", "request_id": frame["request_id"], "data": { "results": rolled } });
            socket.send(Message::text(answer.to_string())).await?;
        }
    }
    Ok(())
}

/// Gives the model a script with its answers. It sends them as models do, each chunk separately.
///
/// # Errors
/// If it does not take it.
pub async fn tell(model: &str) -> Result<(), Failure> {
    let text: String = "Rain on the old quay. ".chars().cycle().take(TEXT_CHARS).collect();
    let step =
        |contains: &str, reply: Value| json!({ "when": { "contains": contains }, "sticky": true, "reply": reply });
    let told = |chars: usize| json!({ "text": text, "delta_chars": chars, "chunk_delay_ms": 1 });
    let slow = json!({ "text": "Hm.", "delay_ms": SLOW_TIME.as_millis() });
    let script = json!({ "steps": [step(ON, json!({ "text": "The bell rings." })), step(FEW, told(TEXT_CHARS)), step(MANY, told(CHUNK_CHARS)), step(SLOW, slow)] });
    let put = request("PUT", "/rehearsal/script", "", &script.to_string());
    let mut connection = Connection::open(model).await?;
    let (status, answer) = connection.send(&put).await?;
    if status == 204 { Ok(()) } else { Err(String::from_utf8_lossy(answer).into_owned().into()) }
}

/// The CPU time of the server for the same text in one chunk and in many, in milliseconds, and for each chunk, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    pub few_ms: f64,
    pub many_ms: f64,
    pub each_us: f64,
}

async fn chunks(report: &mut Report, world: &World, meter: Meter) -> Result<(), Failure> {
    let Chunk { few_ms, many_ms, each_us } = chunk(world, meter).await?;
    let texts = [format!("1: {few_ms:.1} ms"), format!("1,000: {many_ms:.1} ms")];
    let texts = texts.each_ref().map(String::as_str);
    report.line("streamed chunk, CPU of the server", texts, (each_us, "us"), "<= 30", each_us <= 30.0);
    Ok(())
}

/// Measures a chunk of streamed text. The model must have the script ([`tell`]).
///
/// # Errors
/// If something fails.
pub async fn chunk(world: &World, meter: Meter) -> Result<Chunk, Failure> {
    let mut spent = [0.0; 2];
    for (action, spent) in [FEW, MANY].into_iter().zip(&mut spent) {
        let before = meter.spent();
        let mut listeners = JoinSet::new();
        for turns in world.streams(TOLD_AT_ONCE, action) {
            let addr = world.addr.clone();
            listeners.spawn(async move {
                for turn in turns.iter().take(TOLD_EACH) {
                    Connection::open(&addr).await?.follow(turn, "event: turn.completed").await?;
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(done) = listeners.join_next().await {
            done??;
        }
        *spent = meter.each(before, TOLD_AT_ONCE * TOLD_EACH)[0];
    }
    let [few_ms, many_ms] = spent;
    Ok(Chunk { few_ms, many_ms, each_us: 1000.0 * (many_ms - few_ms) / (TEXT_CHARS / CHUNK_CHARS - 1) as f64 })
}

/// Idle connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Frontends' sockets.
    Sockets,
    /// Streams of the journal, streamed turns with a slow model, and listeners to one turn.
    Streams,
}

/// Resident memory in MiB.
#[derive(Clone, Copy, Debug)]
pub struct Resident {
    pub resident: f64,
    pub grown: f64,
}

/// The memory of idle connections in a server that has done nothing else.
///
/// # Errors
/// If something fails.
pub async fn memory(world: &World, server: u32, what: Idle) -> Result<Resident, Failure> {
    // Open one of each kind first, because the first one loads more.
    drop(connect(world, "first", "server").await?);
    drive(&world.addr, &world.reads(8), Duration::from_millis(200)).await?;
    sleep(Duration::from_secs(2)).await;
    let before = process::resident_mib(server);
    let measured = || {
        let resident = process::resident_mib(server);
        Resident { resident, grown: resident - before }
    };
    if what == Idle::Sockets {
        let mut sockets = Vec::with_capacity(SOCKETS);
        for n in 0..SOCKETS {
            sockets.push(connect(world, &format!("idle-{n}"), "server").await?.0);
        }
        sleep(Duration::from_secs(2)).await;
        return Ok(measured());
    }
    let mut open = Vec::with_capacity(2 * SOCKETS);
    let journal = request("GET", "/v1/campaigns/port-town/events", &world.key, "");
    for _ in 0..SOCKETS {
        let mut stream = Connection::open(&world.addr).await?;
        stream.follow(&journal, "\r\n\r\n").await?;
        open.push(stream);
    }
    let started = Instant::now();
    let mut turns = Vec::with_capacity(SOCKETS);
    for turn in world.streams(1, SLOW).concat().iter().take(SOCKETS / 2) {
        let mut stream = Connection::open(&world.addr).await?;
        let told = stream.follow(turn, "\"turn_id\":\"").await?;
        let id = told.rsplit_once("\"turn_id\":\"").and_then(|(_, id)| id.get(..36));
        turns.push(id.ok_or("a turn without its id")?.to_owned());
        open.push(stream);
    }
    let last_began = Instant::now();
    for turn in turns {
        let path = format!("/v1/campaigns/port-town/turns/{turn}/events");
        let mut stream = Connection::open(&world.addr).await?;
        stream.follow(&request("GET", &path, &world.key, ""), "event: turn.started").await?;
        open.push(stream);
    }
    sleep(Duration::from_secs(1)).await;
    let measured = measured();
    if started.elapsed() >= SLOW_TIME {
        return Err("some streams had ended before all were open".into());
    }
    // Wait until the turns have ended, so that nobody has to clean up after them.
    sleep((SLOW_TIME + Duration::from_secs(1)).saturating_sub(last_began.elapsed())).await;
    Ok(measured)
}
