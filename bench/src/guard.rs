//! `./dev bench --guard`: what the hot paths cost beside a minimal GET, compared with what `bench/guard.json` says they cost.
//!
//! The unit is the CPU time that a GET of the floor takes, its PostgreSQL included. It is measured before and after each figure, because
//! a shared machine's speed changes within seconds.

use std::time::Duration;

use serde_json::Value;

use crate::{
    Failure,
    client::{drive, once, request},
    frontends::{self, Idle},
    process::{Meter, Program},
    report::{checked, median},
    world::{PAYING, PLAIN, World},
};

/// The usual figures, as last recorded.
const USUAL: &str = include_str!("../guard.json");
/// How often each figure is measured. The median counts.
const ROUNDS: usize = 3;
/// How much worse than usual a figure may be.
const TOLERANCE: f64 = 0.2;
/// How long the unit, and a figure, is measured each time.
const UNIT_TIME: Duration = Duration::from_millis(700);
const FIGURE_TIME: Duration = Duration::from_millis(1500);
/// Texts for the planner. No round needs that many.
const TEXTS_EACH: usize = 6_000;

/// What is measured.
pub struct Guard<'a> {
    pub world: &'a World,
    pub server: Meter,
    /// The floor's process and address.
    pub floor: (Meter, &'a str),
    /// The resident memory of the server before its first request, in MiB.
    pub idle: f64,
    /// The model's address.
    pub model: &'a str,
}

impl Guard<'_> {
    /// Measures all figures, or only those that are named, and prints them. Returns whether none is worse than it may be. `fresh` starts a
    /// server that has done nothing, for the memory of connections.
    ///
    /// # Errors
    /// If something fails, or `guard.json` lists something else than what is measured.
    pub async fn watch(
        &self,
        only: &[&str],
        fresh: impl AsyncFn() -> Result<(Program, World), Failure>,
    ) -> Result<bool, Failure> {
        let usual: Value = serde_json::from_str(USUAL)?;
        let usual = usual.as_object().ok_or("guard.json is no object")?;
        let names: Vec<&str> = usual.keys().map(String::as_str).collect();
        let is_wanted = |name: &str| only.is_empty() || only.contains(&name);
        if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
            return Err(format!("no figure {unknown}; there are {}", names.join(", ")).into());
        }
        let mut found = vec![Vec::new(); names.len()];
        self.warm().await?;
        for round in 0..ROUNDS {
            for (name, found) in names.iter().zip(&mut found).filter(|(name, _)| is_wanted(name)) {
                found.push(match *name {
                    "idle_mib" => self.idle,
                    "streams_mib" if round == 0 => {
                        let (server, world) = fresh().await?;
                        frontends::memory(&world, server.id(), Idle::Streams).await?.resident
                    }
                    "streams_mib" => continue,
                    name => self.figure(name, round).await?,
                });
            }
        }
        println!("{:<18} {:>9} {:>9} {:>9}  {:<26} what", "", "now", "usual", "bound", "each time");
        let mut all_kept = true;
        for (name, found) in names.iter().zip(found).filter(|(_, found)| !found.is_empty()) {
            let entry = &usual[*name];
            let each: Vec<String> = found.iter().map(|value| format!("{value:.2}")).collect();
            let (now, then) =
                (median(found), entry["usual"].as_f64().ok_or_else(|| format!("{name} has no usual value"))?);
            // A rate gets worse when it falls.
            let (bound, kept) = if *name == "get_rate" {
                (then * (1.0 - TOLERANCE), now >= then * (1.0 - TOLERANCE))
            } else {
                (then * (1.0 + TOLERANCE), now <= then * (1.0 + TOLERANCE))
            };
            all_kept &= kept;
            let (verdict, what) = (if kept { "" } else { "WORSE: " }, entry["what"].as_str().unwrap_or_default());
            println!("{name:<18} {now:>9.2} {then:>9.2} {bound:>9.2}  {:<26} {verdict}{what}", each.join(" "));
        }
        Ok(all_kept)
    }

    /// Loads names, prompts and plans, and lets every pair talk once.
    async fn warm(&self) -> Result<(), Failure> {
        let second = Duration::from_secs(1);
        let addr = &self.world.addr;
        checked(drive(self.floor.1, &self.floor_reads(8), second).await?)?;
        checked(drive(addr, &self.world.reads(8), second).await?)?;
        checked(drive(addr, &self.world.turns(8, PLAIN), second).await?)?;
        checked(drive(addr, &self.world.texts(1, true), second).await?)?;
        checked(once(addr, &self.world.strangers(8, PLAIN)).await?)?;
        frontends::tell(self.model).await
    }

    fn floor_reads(&self, clients: usize) -> Vec<Vec<Vec<u8>>> {
        vec![vec![request("GET", &format!("/npc/{}", self.world.npc), "", "")]; clients]
    }

    /// The CPU time of a GET of the floor, in milliseconds.
    async fn unit(&self) -> Result<f64, Failure> {
        let (meter, addr) = self.floor;
        let before = meter.spent();
        let run = checked(drive(addr, &self.floor_reads(1), UNIT_TIME).await?)?;
        Ok(meter.each(before, run.requests).iter().sum())
    }

    /// One figure: a ratio to the floor.
    async fn figure(&self, name: &str, round: usize) -> Result<f64, Failure> {
        if name == "get_rate" {
            let floor = checked(drive(self.floor.1, &self.floor_reads(32), FIGURE_TIME).await?)?.rate();
            let ours = checked(drive(&self.world.addr, &self.world.reads(32), FIGURE_TIME).await?)?.rate();
            return Ok(ours / floor);
        }
        let before = self.unit().await?;
        let [server, database] = self.cost(name, round).await?;
        let unit = f64::midpoint(before, self.unit().await?);
        let (server, database) = (server / unit, database / unit);
        println!("{name:<18} {:>9.2}  server {server:.2}, PostgreSQL {database:.2}", server + database);
        Ok(server + database)
    }

    /// The CPU time of the server and of PostgreSQL for what a figure measures, in milliseconds.
    async fn cost(&self, name: &str, round: usize) -> Result<[f64; 2], Failure> {
        let world = self.world;
        if name == "chunk_cpu" {
            return Ok([frontends::chunk(world, self.server).await?.each_us / 1000.0, 0.0]);
        }
        // What each round must do for the first time.
        let share = |all: Vec<Vec<Vec<u8>>>| -> Vec<Vec<Vec<u8>>> {
            let part = |own: Vec<Vec<u8>>| own.chunks(own.len() / ROUNDS).nth(round).unwrap_or_default().to_vec();
            all.into_iter().map(part).collect()
        };
        let requests = match name {
            "get_cpu" => world.reads(1),
            "list_cpu" => world.lists(1),
            "turn_cpu" => world.turns(1, PLAIN),
            "memory_turn_cpu" => share(world.strangers(1, PAYING)),
            "planned_roll_cpu" => share(world.texts(TEXTS_EACH * ROUNDS, false)),
            "known_plan_cpu" => world.texts(1, true),
            other => return Err(format!("guard.json lists {other}, which nothing measures").into()),
        };
        let before = self.server.spent();
        let run = if name == "memory_turn_cpu" {
            once(&world.addr, &requests).await?
        } else {
            drive(&world.addr, &requests, FIGURE_TIME).await?
        };
        Ok(self.server.each(before, checked(run)?.requests))
    }
}
