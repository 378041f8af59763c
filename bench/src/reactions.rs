//! `load reactions`: what an action costs that nobody reacts to, how long it takes to find whom an action concerns, and how long it
//! takes from an action to the model of the NPC that reacts to it, alone and beside another campaign's storm of reactions.
//!
//! The model is a server in this process, so that the bench knows when it was asked.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use actix_web::{App, HttpResponse, HttpServer, web};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection, Row};
use tokio::time::{sleep, timeout};

use crate::{
    Failure,
    client::{Connection, drive, request},
    process::Meter,
    report::{Report, checked, median},
    world::{NPCS, PLAYERS, World},
};

/// What stands before the number of an action in its text.
const MARK: &str = "crossing-";
/// How long the model thinks about reactions of the storm.
const SLOW: Duration = Duration::from_millis(200);
/// NPCs and players of the storm. Each action of a player concerns all NPCs.
const STORM: [usize; 2] = [100, 20];
const ROUNDS: usize = 5;
/// NPCs at an ordinary place.
const FEW: usize = 8;

/// When the model was asked about which action.
#[derive(Clone, Default)]
pub struct Asked(Arc<Mutex<HashMap<usize, Instant>>>);

impl Asked {
    fn note(&self, body: &[u8]) -> bool {
        let text = String::from_utf8_lossy(body);
        let Some((_, rest)) = text.rsplit_once(MARK) else { return false };
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let Ok(number) = digits.parse() else { return false };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(number).or_insert_with(Instant::now);
        true
    }

    async fn wait(&self, number: usize) -> Instant {
        loop {
            let when = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&number).copied();
            match when {
                Some(when) => return when,
                None => sleep(Duration::from_micros(500)).await,
            }
        }
    }
}

/// Starts the model. It answers each request with a word, at once if the request is about one action of [`Asked`].
///
/// # Errors
/// If it cannot listen.
pub fn model(addr: &str) -> Result<Asked, Failure> {
    let asked = Asked::default();
    let noted = web::Data::new(asked.clone());
    let answer = |body: web::Bytes, noted: web::Data<Asked>| async move {
        if !noted.note(&body) {
            sleep(SLOW).await;
        }
        let wanted: Value = serde_json::from_slice(&body).unwrap_or_default();
        let part = |name: &str, text: Value, end: Value| {
            let choice = json!({ "index": 0, name: text, "finish_reason": end });
            json!({ "id": "a", "object": "chat.completion", "created": 0, "model": "bench", "choices": [choice] })
        };
        let said = json!({ "role": "assistant", "content": "Hm." });
        if wanted["stream"] != true {
            return HttpResponse::Ok().json(part("message", said, json!("stop")));
        }
        let (said, end) = (part("delta", said, Value::Null), part("delta", json!({}), json!("stop")));
        let stream = format!("data: {said}\n\ndata: {end}\n\ndata: [DONE]\n\n");
        HttpResponse::Ok().content_type("text/event-stream").body(stream)
    };
    let server = HttpServer::new(move || {
        let limit = web::PayloadConfig::new(16 * 1024 * 1024);
        App::new().app_data(limit).app_data(noted.clone()).route("/v1/chat/completions", web::post().to(answer))
    });
    actix_web::rt::spawn(server.workers(1).bind(addr)?.run());
    Ok(asked)
}

/// Measures everything. `asked` is the model that the server asks.
///
/// # Errors
/// Those of the sockets and of the database.
pub async fn measure(
    report: &mut Report,
    world: &World,
    meter: Meter,
    (database, asked): (&str, &Asked),
    time: Duration,
) -> Result<(), Failure> {
    let mut db = PgConnection::connect(database).await?;
    let mut connection = Connection::open(&world.addr).await?;
    let settings = json!({ "settings": { "reaction_cooldown_seconds": 0, "reactions_per_day_max": 1_000_000 } });
    send(&mut connection, world, "PATCH", "port-town", &settings).await?;
    cost(report, world, meter, &mut db, time).await?;

    sqlx::query("UPDATE npc SET reaction_threshold = 1 WHERE campaign_id = $1")
        .bind(world.campaign)
        .execute(&mut db)
        .await?;
    let alone = crossings(world, asked, 0).await?;
    report.at_most("from an action to the model, idle, median", (median(alone.clone()), "ms"), 100.0);
    report.at_most("from an action to the model, idle, p99", (p99(alone.clone()), "ms"), 100.0);
    storm(world).await?;
    let beside = crossings(world, asked, alone.len()).await?;
    let waiting: i64 =
        sqlx::query("SELECT count(*) FROM reaction WHERE state = 'queued'").fetch_one(&mut db).await?.get(0);
    if waiting == 0 {
        return Err("the storm was over too soon to measure anything beside it".into());
    }
    for (name, of) in [("median", median as fn(Vec<f64>) -> f64), ("p99", p99)] {
        let (a, b) = (of(alone.clone()), of(beside.clone()));
        let [floor, ours] = [a, b].map(|ms| format!("{ms:.2} ms"));
        let name = format!("the same beside a storm of {}, {name}", STORM[0] * STORM[1]);
        report.line(&name, [&floor, &ours], (b / a, "x"), "<= 3", b / a <= 3.0);
    }
    relevance(report, world, &mut db).await
}

/// The CPU of an action that nobody reacts to, and of a plain turn, by turns: at a place with a few NPCs, and at one with many.
async fn cost(
    report: &mut Report,
    world: &World,
    meter: Meter,
    db: &mut PgConnection,
    time: Duration,
) -> Result<(), Failure> {
    for table in ["npc", "owner"] {
        let high = format!("UPDATE {table} SET reaction_threshold = 1000000000 WHERE campaign_id = $1");
        sqlx::query(sqlx::AssertSqlSafe(high)).bind(world.campaign).execute(&mut *db).await?;
    }
    for there in [FEW, NPCS] {
        let others = "UPDATE npc SET location = CASE WHEN substr(slug, 2)::int < $2 THEN 'harbour' ELSE 'market' END \
            WHERE campaign_id = $1 AND slug ~ '^n[0-9]+$'";
        sqlx::query(others).bind(world.campaign).bind(i32::try_from(there)?).execute(&mut *db).await?;
        cost_at(report, world, meter, there, time).await?;
    }
    Ok(())
}

/// The same at a place with this many NPCs.
async fn cost_at(
    report: &mut Report,
    world: &World,
    meter: Meter,
    there: usize,
    time: Duration,
) -> Result<(), Failure> {
    let one = |n: usize| {
        let body = json!({ "player_id": format!("p{}", n / NPCS), "type": "move", "targets": [format!("n{}", n % there)],
            "text": "Good morning to you" });
        request("POST", "/v1/campaigns/port-town/actions", &world.key, &body.to_string())
    };
    let actions = vec![(0..NPCS * PLAYERS).map(one).collect::<Vec<_>>()];
    // The model of this bench answers at once only what is marked.
    let turns = world.turns(1, &format!("{MARK}1000000"));
    for requests in [&actions, &turns] {
        drive(&world.addr, requests, Duration::from_secs(1)).await?;
    }
    // Of both processes, of the server, of PostgreSQL: of turns and of actions.
    let (mut ratios, mut all) = (Vec::new(), [const { [const { Vec::new() }; 2] }; 3]);
    for _ in 0..ROUNDS {
        let mut spent = [[0.0; 2]; 2];
        for (i, requests) in [&actions, &turns].into_iter().enumerate() {
            let before = meter.spent();
            let run = checked(drive(&world.addr, requests, time).await?)?;
            spent[i] = meter.each(before, run.requests);
        }
        let [action, turn] = spent;
        for (part, whole) in all.iter_mut().zip([[0, 1].as_slice(), &[0], &[1]]) {
            let sum = |of: [f64; 2]| whole.iter().map(|process| of[*process]).sum::<f64>();
            part[0].push(sum(turn));
            part[1].push(sum(action));
        }
        ratios.push(action.iter().sum::<f64>() / turn.iter().sum::<f64>());
    }
    let ratio = median(ratios);
    for (part, values) in ["", ", server", ", PostgreSQL"].into_iter().zip(all) {
        let [turns, actions] = values.map(median);
        let has_goal = part.is_empty() && there == FEW;
        let ratio = if part.is_empty() { ratio } else { actions / turns };
        let shown = [turns, actions].map(|ms| format!("{ms:.2} ms"));
        let name = format!("CPU of an action near {there} NPCs, a turn's{part}");
        let goal = if has_goal { "<= 0.5" } else { "" };
        report.line(&name, [&shown[0], &shown[1]], (ratio, "x"), goal, !has_goal || ratio <= 0.5);
    }
    Ok(())
}

/// How long it takes from sending each of a hundred actions until the model is asked, in milliseconds.
async fn crossings(world: &World, asked: &Asked, first: usize) -> Result<Vec<f64>, Failure> {
    let mut connection = Connection::open(&world.addr).await?;
    let mut all = Vec::new();
    for n in first..first + 100 {
        let body = json!({ "player_id": format!("p{}", n / NPCS), "type": "say", "targets": [format!("n{}", n % NPCS)],
            "text": format!("{MARK}{n}") });
        let sent = Instant::now();
        send(&mut connection, world, "POST", "port-town/actions", &body).await?;
        let when =
            timeout(Duration::from_secs(30), asked.wait(n)).await.map_err(|_| "no reaction within 30 seconds")?;
        all.push(when.duration_since(sent).as_secs_f64() * 1000.0);
        sleep(Duration::from_millis(50)).await;
    }
    Ok(all)
}

/// Queues many reactions in another campaign.
async fn storm(world: &World) -> Result<(), Failure> {
    let mut connection = Connection::open(&world.addr).await?;
    let [npcs, players] = STORM;
    let npc =
        |n| json!({ "slug": format!("s{n}"), "name": format!("S {n}"), "location": "square", "reaction_threshold": 1 });
    let player = |n| json!({ "slug": format!("q{n}"), "name": format!("Q {n}"), "location": "square" });
    let settings = json!({ "reaction_cooldown_seconds": 0, "reactions_per_day_max": 1_000_000 });
    let body = json!({ "slug": "storm", "name": "Storm", "settings": settings });
    send(&mut connection, world, "POST", "", &body).await?;
    for n in 0..npcs {
        send(&mut connection, world, "POST", "storm/npcs", &npc(n)).await?;
    }
    for n in 0..players {
        send(&mut connection, world, "POST", "storm/characters", &player(n)).await?;
        let body = json!({ "player_id": format!("q{n}"), "type": "say", "text": "Storm." });
        let done = send(&mut connection, world, "POST", "storm/actions", &body).await?;
        let triggered = done["triggered"].as_array().map_or(0, Vec::len);
        if triggered != npcs {
            return Err(format!("{triggered} of {npcs} NPCs react").into());
        }
    }
    Ok(())
}

/// How long the database takes to find whom an action concerns, with 10,000 NPCs and 1,000 owners in the campaign.
async fn relevance(report: &mut Report, world: &World, db: &mut PgConnection) -> Result<(), Failure> {
    for statement in [
        "ALTER TABLE npc DISABLE TRIGGER USER",
        "INSERT INTO npc (tenant_id, id, campaign_id, slug, name, description, personality_prompt, location, owner_ids, available_tools, \
           stats, conditions, effects, disposition, inventory, reaction_threshold) \
         SELECT tenant_id, uuid7(), campaign_id, 'r' || g, 'R ' || g, '', '', 'Place ' || g % 500, owner_ids, available_tools, \
           stats, conditions, effects, disposition, inventory, 1000 \
         FROM npc n, generate_series(1, 10000) g WHERE n.campaign_id = $1 AND n.slug = 'n0'",
        "ALTER TABLE npc ENABLE TRIGGER USER",
        "ALTER TABLE owner DISABLE TRIGGER USER",
        "INSERT INTO owner (tenant_id, id, campaign_id, slug, name, description, personality_prompt, monitored_aspect, associated_id, \
           associated_key, available_tools, reaction_threshold, influence_current, influence_max, influence_regen_per_hour) \
         SELECT tenant_id, uuid7(), campaign_id, 'r' || g, 'R ' || g, '', '', 'location', 'Place ' || g, 'place_' || g, \
           '[]', 1000, 1, 1, 1 FROM owner o, generate_series(1, 1000) g WHERE o.campaign_id = $1 AND o.slug = 'town_council_owner'",
        "ALTER TABLE owner ENABLE TRIGGER USER",
        "ANALYZE npc",
        "ANALYZE owner",
    ] {
        let query = sqlx::query(statement);
        let query = if statement.starts_with("INSERT") { query.bind(world.campaign) } else { query };
        query.execute(&mut *db).await?;
    }
    let tenant: uuid::Uuid = sqlx::query("SELECT tenant_id FROM campaign WHERE id = $1")
        .bind(world.campaign)
        .fetch_one(&mut *db)
        .await?
        .get(0);
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for n in 0..300 {
        let action = json!({ "campaign_id": world.campaign, "location_key": format!("place_{n}"), "race_key": "dwarf",
            "profession_key": "fighter", "target_ids": [], "spellings": [], "factions": ["tide_gang"] });
        let began = Instant::now();
        sqlx::query("SELECT 1").execute(&mut *db).await?;
        floor.push(began.elapsed().as_secs_f64() * 1000.0);
        let began = Instant::now();
        let row = sqlx::query("SELECT count(*) FROM concerned_by($1, $2, 200)")
            .bind(tenant)
            .bind(action)
            .fetch_one(&mut *db)
            .await?;
        ours.push(began.elapsed().as_secs_f64() * 1000.0);
        if row.get::<i64, _>(0) < 20 {
            return Err("too few are concerned".into());
        }
    }
    for (name, of) in [("median", median as fn(Vec<f64>) -> f64), ("p99", p99)] {
        let (a, b) = (of(floor.clone()), of(ours.clone()));
        let [floor, ours] = [a, b].map(|ms| format!("{ms:.2} ms"));
        let name = format!("relevance among 11,000, {name}");
        report.line(&name, [&floor, &ours], (b - a, "ms"), "<= 3", b - a <= 3.0);
    }
    Ok(())
}

fn p99(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() * 99 / 100).copied().unwrap_or(0.0)
}

/// A call that must succeed. `path` is below `/v1/campaigns`.
async fn send(
    connection: &mut Connection,
    world: &World,
    method: &str,
    path: &str,
    body: &Value,
) -> Result<Value, Failure> {
    let path = format!("/v1/campaigns/{path}");
    let (status, answer) =
        connection.send(&request(method, path.trim_end_matches('/'), &world.key, &body.to_string())).await?;
    if (200..300).contains(&status) {
        Ok(serde_json::from_slice(answer)?)
    } else {
        Err(String::from_utf8_lossy(answer).into_owned().into())
    }
}
