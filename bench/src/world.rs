//! The world that is measured: a tenant, a campaign, and pairs of NPCs and players; and a tenant with much more data.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection, Row};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::{
    Failure,
    client::{Connection, request},
};

/// What a player says when no tool is called.
pub const PLAIN: &str = "Good morning to you";
/// What a player says that makes the model remember it.
pub const PAYING: &str = "I pay for my drink";
/// The number of NPCs in the campaign.
pub const NPCS: usize = 64;
/// The number of players in the campaign.
pub const PLAYERS: usize = 4;
/// The number of additional players, whom no NPC remembers before they pay.
pub const STRANGERS: usize = 16;

/// The measured server and its caller.
#[derive(Clone, Debug)]
pub struct World {
    pub addr: String,
    pub key: String,
    pub campaign: Uuid,
    pub npc: Uuid,
}

impl World {
    /// Creates the NPCs and players.
    ///
    /// # Errors
    /// If the server rejects them.
    pub async fn make(addr: &str, key: &str) -> Result<Self, Failure> {
        let mut world = Self { addr: addr.to_owned(), key: key.to_owned(), campaign: Uuid::nil(), npc: Uuid::nil() };
        let mut connection = Connection::open(addr).await?;
        for n in 0..PLAYERS + STRANGERS {
            let player = json!({ "slug": format!("p{n}"), "name": format!("Player {n}"), "race": "human", "profession": "adventurer" });
            world.post(&mut connection, "/characters", &player).await?;
        }
        for n in 0..NPCS {
            let npc = json!({
                "slug": format!("n{n}"), "name": format!("Keeper {n}"), "description": "Keeps a stall at the harbour.",
                "personality_prompt": "You are plain, honest and short of time.", "location": "harbour", "race": "human",
                "available_tools": ["NPC_memorize"],
            });
            let made = world.post(&mut connection, "/npcs", &npc).await?;
            world.npc = made["id"].as_str().unwrap_or_default().parse()?;
            world.campaign = made["campaign_id"].as_str().unwrap_or_default().parse()?;
        }
        Ok(world)
    }

    /// Begins a fight between participants who never fall. Returns its id.
    ///
    /// # Errors
    /// If the server rejects it.
    pub async fn begin(&self, participants: usize) -> Result<String, Failure> {
        let one = |n| {
            json!({ "id": format!("p{n}"), "hp": 1_000_000, "max_hp": 1_000_000, "armor_class": 12, "is_enemy": n % 2 == 1,
                "attacks": [{ "name": "Club", "bonus": 4, "damage": "1d4+2", "damage_type": "bludgeoning" }] })
        };
        let body = json!({ "participants": (0..participants).map(one).collect::<Vec<_>>() });
        let made = self.post(&mut Connection::open(&self.addr).await?, "/encounters", &body).await?;
        Ok(made["encounter_id"].as_str().unwrap_or_default().to_owned())
    }

    /// Ends the campaign's fights.
    ///
    /// # Errors
    /// If the server rejects it.
    pub async fn end_fights(&self) -> Result<(), Failure> {
        let mut connection = Connection::open(&self.addr).await?;
        let path = "/v1/campaigns/port-town/encounters";
        let (_, answer) = connection.send(&request("GET", path, &self.key, "")).await?;
        let fights: Value = serde_json::from_slice(answer)?;
        for fight in fights["items"].as_array().ok_or("no list of fights")? {
            let end = format!("{path}/{}/end", fight["id"].as_str().unwrap_or_default());
            let (status, answer) =
                connection.send(&request("POST", &end, &self.key, r#"{"outcome":"victory"}"#)).await?;
            if status != 200 {
                return Err(String::from_utf8_lossy(answer).into_owned().into());
            }
        }
        Ok(())
    }

    /// Copies the campaign and opens a game master's session in the copy. Returns the session's path.
    ///
    /// # Errors
    /// If the server rejects it.
    pub async fn table(&self, name: &str) -> Result<String, Failure> {
        let mut connection = Connection::open(&self.addr).await?;
        self.post(&mut connection, "/fork", &json!({ "slug": name, "name": name })).await?;
        let path = format!("/v1/campaigns/{name}/sessions");
        let body = json!({ "client_id": name, "role": "gm", "dice": "server" }).to_string();
        let (status, answer) = connection.send(&request("POST", &path, &self.key, &body)).await?;
        let made: Value = serde_json::from_slice(answer)?;
        match made["id"].as_str() {
            Some(id) if status == 201 => Ok(format!("{path}/{id}")),
            _ => Err(made.to_string().into()),
        }
    }

    /// Creates lore entries that are not in any prompt.
    ///
    /// # Errors
    /// If the server rejects them.
    pub async fn lore(&self, entries: usize) -> Result<(), Failure> {
        let entry = |n| {
            json!({ "slug": format!("edited_{entries}_{n}"), "title": format!("Edited {n}"), "scope": "zone", "associated_id": "nowhere",
                "content": "The harbour of Port Town, where the chain is raised at night.", "tags": [format!("of_{entries}")] })
        };
        let body = json!({ "lore": (0..entries).map(entry).collect::<Vec<_>>() });
        self.done("/import/seed", &body).await.map(|_| ())
    }

    /// Edits the entries of [`World::lore`] and undoes that. Returns the seconds that the edit took.
    ///
    /// # Errors
    /// If the server rejects it, or edits another number of entries.
    pub async fn edit(&self, entries: usize) -> Result<f64, Failure> {
        let changes = json!({
            "tags": { "add": ["new"] }, "priority": { "add": 1 },
            "replace": { "find": "chain", "with": "great chain", "whole_word": true },
        });
        let edit = json!({ "filter": { "tag": format!("of_{entries}") }, "changes": changes });
        let started = Instant::now();
        let done = self.done("/lore/bulk", &edit).await?;
        let seconds = started.elapsed().as_secs_f64();
        if done["changed"] != entries {
            return Err(done.to_string().into());
        }
        let undo = format!("/lore/bulk/{}/undo", done["step_id"].as_str().unwrap_or_default());
        self.done(&undo, &json!({})).await?;
        Ok(seconds)
    }

    /// The answer to a call that must succeed at once.
    async fn done(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let mut connection = Connection::open(&self.addr).await?;
        let path = format!("/v1/campaigns/port-town{path}");
        let (status, answer) = connection.send(&request("POST", &path, &self.key, &body.to_string())).await?;
        if status == 200 {
            Ok(serde_json::from_slice(answer)?)
        } else {
            Err(String::from_utf8_lossy(answer).into_owned().into())
        }
    }

    async fn post(&self, connection: &mut Connection, path: &str, body: &Value) -> Result<Value, Failure> {
        let path = format!("/v1/campaigns/port-town{path}");
        let (status, answer) = connection.send(&request("POST", &path, &self.key, &body.to_string())).await?;
        if status == 201 {
            Ok(serde_json::from_slice(answer)?)
        } else {
            Err(String::from_utf8_lossy(answer).into_owned().into())
        }
    }

    /// Reads of one NPC.
    #[must_use]
    pub fn reads(&self, clients: usize) -> Vec<Vec<Vec<u8>>> {
        let path = format!("/v1/campaigns/{}/npcs/{}", self.campaign, self.npc);
        vec![vec![request("GET", &path, &self.key, "")]; clients]
    }

    /// Reads of the first page of NPCs.
    #[must_use]
    pub fn lists(&self, clients: usize) -> Vec<Vec<Vec<u8>>> {
        let path = format!("/v1/campaigns/{}/npcs?limit=50", self.campaign);
        vec![vec![request("GET", &path, &self.key, "")]; clients]
    }

    /// Turns in which each client has its own pairs, so that none waits for another's.
    #[must_use]
    pub fn turns(&self, clients: usize, action: &str) -> Vec<Vec<Vec<u8>>> {
        self.pairs(clients, action, 0..PLAYERS, false)
    }

    /// One turn of each stranger with each NPC.
    #[must_use]
    pub fn strangers(&self, clients: usize, action: &str) -> Vec<Vec<Vec<u8>>> {
        self.pairs(clients, action, PLAYERS..PLAYERS + STRANGERS, false)
    }

    /// Streamed turns of all pairs, divided among the clients.
    #[must_use]
    pub fn streams(&self, clients: usize, action: &str) -> Vec<Vec<Vec<u8>>> {
        self.pairs(clients, action, 0..PLAYERS + STRANGERS, true)
    }

    /// Texts of one player for the planner: all different, or always the same.
    #[must_use]
    pub fn texts(&self, count: usize, same: bool) -> Vec<Vec<Vec<u8>>> {
        let text = |n: usize| {
            let message = if same { "roll 1d20 for luck".to_owned() } else { format!("roll 1d20 for door number {n}") };
            let body = json!({ "player_id": "p0", "message": message }).to_string();
            request("POST", "/v1/campaigns/port-town/act", &self.key, &body)
        };
        vec![(0..count).map(text).collect()]
    }

    fn pairs(&self, clients: usize, action: &str, players: Range<usize>, stream: bool) -> Vec<Vec<Vec<u8>>> {
        let pair = |n: usize| {
            let body = json!({ "player_id": format!("p{}", n / NPCS), "action": action, "stream": stream }).to_string();
            request("POST", &format!("/v1/campaigns/port-town/npcs/n{}/turns", n % NPCS), &self.key, &body)
        };
        let all = NPCS * players.start..NPCS * players.end;
        (0..clients).map(|c| all.clone().skip(c).step_by(clients).map(pair).collect()).collect()
    }
}

/// Fills the tenant with lore and memories of other locations and people, and with some about the measured ones.
///
/// # Errors
/// Database errors.
pub async fn grow(database: &str, world: &World, lore: i64, memories: i64) -> Result<(), Failure> {
    let mut db = PgConnection::connect(database).await?;
    let tenant: Uuid = sqlx::query("SELECT tenant_id FROM campaign WHERE id = $1")
        .bind(world.campaign)
        .fetch_one(&mut db)
        .await?
        .get(0);
    for statement in [
        "ALTER TABLE lore DISABLE TRIGGER USER",
        "ALTER TABLE memory DISABLE TRIGGER USER",
        "INSERT INTO lore (tenant_id, id, campaign_id, slug, title, scope, associated_key, associated_id, content, tags, priority, \
             enabled, secret, known_by, activation, keys, secondary_keys, logic, scan_depth, ai_lock, tokens) \
         SELECT $1, uuid7(), $2, 'grown_' || n, 'Grown ' || n, 'zone', 'place_' || n % 1000, 'place_' || n % 1000, \
             'What is told of place ' || n % 1000 || ', for the ' || n || 'th time.', '[]', 0, true, false, '{}', \
             CASE WHEN n % 3 = 0 THEN 'keyword' ELSE 'always' END, '[\"tower\"]', '[]', 'and_any', 2, false, 12 \
         FROM generate_series(1, $3) n",
        "INSERT INTO memory (tenant_id, id, campaign_id, holder_type, holder_id, subject_id, text, source) \
         SELECT $1, uuid7(), $2, 'npc', h.ids[1 + n % array_length(h.ids, 1)], s.ids[1 + n / 7 % array_length(s.ids, 1)], \
             'Something that was said on day ' || n || '.', 'personal' \
         FROM generate_series(1, $3) n, \
              (SELECT array_agg(id ORDER BY id) AS ids FROM npc WHERE campaign_id = $2) h, \
              (SELECT array_agg(id ORDER BY id) AS ids FROM character WHERE campaign_id = $2) s",
        "ALTER TABLE lore ENABLE TRIGGER USER",
        "ALTER TABLE memory ENABLE TRIGGER USER",
        "ANALYZE lore",
        "ANALYZE memory",
    ] {
        let query = sqlx::query(statement);
        let rows = if statement.contains("INTO lore") { lore } else { memories };
        let query =
            if statement.starts_with("INSERT") { query.bind(tenant).bind(world.campaign).bind(rows) } else { query };
        query.execute(&mut db).await?;
    }
    Ok(())
}

/// Vacuums and analyzes, as PostgreSQL does by itself within a minute.
///
/// # Errors
/// If the database rejects it.
pub async fn settle(database: &str) -> Result<(), Failure> {
    let mut db = PgConnection::connect(database).await?;
    sqlx::query("VACUUM ANALYZE").execute(&mut db).await?;
    Ok(())
}

/// Creates campaigns with one NPC each.
///
/// # Errors
/// Database errors.
#[expect(clippy::disallowed_methods, reason = "it writes rows without a server")]
pub async fn campaigns(database: &str, world: &World, count: usize) -> Result<Vec<Uuid>, Failure> {
    let mut db = PgConnection::connect(database).await?;
    let mut made = Vec::with_capacity(count);
    for n in 0..count {
        let (campaign, npc) = (Uuid::now_v7(), Uuid::now_v7());
        for statement in [
            "INSERT INTO campaign SELECT (c).* FROM (SELECT jsonb_populate_record(c, jsonb_build_object('id', $2::text, 'slug', $4::text)) AS c \
             FROM campaign c WHERE id = $1 AND $3 IS NOT NULL) made",
            "INSERT INTO npc (tenant_id, id, campaign_id, slug, name, description, personality_prompt, location, owner_ids, available_tools, stats, \
               conditions, effects, disposition, inventory, reaction_threshold) \
             SELECT tenant_id, $3::uuid, $2::uuid, slug, name, description, personality_prompt, location, owner_ids, available_tools, stats, \
               conditions, effects, disposition, inventory, reaction_threshold \
             FROM npc n WHERE campaign_id = $1 AND $4 IS NOT NULL LIMIT 1",
        ] {
            let slug = format!("bench-{n}");
            sqlx::query(statement)
                .bind(world.campaign)
                .bind(campaign.to_string())
                .bind(npc.to_string())
                .bind(slug)
                .execute(&mut db)
                .await?;
        }
        made.push(campaign);
    }
    Ok(made)
}

/// Small updates per second by 8 connections. Each connection updates NPCs of its own campaign if there are enough
/// campaigns.
///
/// # Errors
/// Database errors.
pub async fn updates(database: &str, campaigns: &[Uuid], journaled: bool, time: Duration) -> Result<f64, Failure> {
    let mut db = PgConnection::connect(database).await?;
    let switch = if journaled {
        "ALTER TABLE npc ENABLE TRIGGER b_journal"
    } else {
        "ALTER TABLE npc DISABLE TRIGGER b_journal"
    };
    sqlx::query(switch).execute(&mut db).await?;
    let rows = sqlx::query("SELECT tenant_id, id FROM npc WHERE campaign_id = ANY ($1) ORDER BY id").bind(campaigns);
    let rows: Vec<(Uuid, Uuid)> = rows.fetch_all(&mut db).await?.iter().map(|r| (r.get(0), r.get(1))).collect();
    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for client in 0..8 {
        let own: Vec<_> = rows.iter().copied().skip(client).step_by(8).collect();
        let mut db = PgConnection::connect(database).await?;
        tasks.spawn(async move {
            let mut done = 0u32;
            for (tenant, npc) in own.iter().cycle() {
                if started.elapsed() >= time {
                    break;
                }
                let update = sqlx::query(
                    "UPDATE npc SET reaction_threshold = reaction_threshold + 1 WHERE tenant_id = $1 AND id = $2",
                );
                update.bind(tenant).bind(npc).execute(&mut db).await?;
                done += 1;
            }
            Ok::<_, Failure>(done)
        });
    }
    let mut done = 0;
    while let Some(count) = tasks.join_next().await {
        done += count??;
    }
    sqlx::query("ALTER TABLE npc ENABLE TRIGGER b_journal").execute(&mut db).await?;
    Ok(f64::from(done) / started.elapsed().as_secs_f64())
}
