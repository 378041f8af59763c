//! A normalised picture of a campaign: every row of its world, with names in the place of ids, so that a copy's picture is the
//! original's.

use std::collections::{BTreeMap, HashMap};

use ::rules::encounter::{Encounter, Event};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Row};
use world::campaigns::fork::TABLES;

use crate::support::World;

/// Rows by table and id.
pub type Rows = BTreeMap<String, BTreeMap<String, Value>>;

/// The campaign's rows as the database holds them, with the logs, members and states of its encounters.
pub async fn stored(world: &World<'_>) -> Rows {
    let campaign = world.get("").await.expect(200).id();
    let mut db = world.client.server.owner().await;
    let mut rows = Rows::new();
    for table in TABLES {
        let column = if *table == "campaign" { "id" } else { "campaign_id" };
        // Copies are numbered anew, in the order of the original.
        let nth =
            if *table == "memory" { " || jsonb_build_object('seq', row_number() OVER (ORDER BY t.seq))" } else { "" };
        let sql = format!("SELECT to_jsonb(t){nth} AS row FROM {table} t WHERE {column} = '{campaign}'");
        let found = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut db).await.unwrap();
        let found = found.iter().map(|row| row.get::<Value, _>("row"));
        rows.insert((*table).to_owned(), found.map(|row| (row["id"].as_str().unwrap().to_owned(), row)).collect());
    }
    for (kind, sql) in [
        (
            "log",
            "SELECT e.id || lpad(l.seq::text, 6, '0') AS key, to_jsonb(l) - 'created_at' AS row FROM encounter_log l JOIN encounter e ON e.id = l.encounter_id",
        ),
        (
            "member",
            "SELECT e.id || m.participant_id AS key, to_jsonb(m) - 'created_at' - 'since_at' || jsonb_build_object('unchanged', \
               m.version = coalesce((SELECT version FROM character WHERE id = m.record_id), (SELECT version FROM npc WHERE id = m.record_id))) AS row \
             FROM encounter_member m JOIN encounter e ON e.id = m.encounter_id",
        ),
        (
            "state",
            "SELECT e.id::text AS key, to_jsonb(s) - 'created_at' AS row FROM encounter_state s JOIN encounter e ON e.id = s.encounter_id",
        ),
    ] {
        let sql = format!("{sql} WHERE e.campaign_id = '{campaign}'");
        let found = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut db).await.unwrap();
        let found = found.iter().map(|row| (row.get("key"), row.get::<Value, _>("row")));
        let found = found.map(|(key, row)| (key, if kind == "state" { folded(row) } else { row }));
        rows.insert(kind.to_owned(), found.collect());
    }
    // Fights are stored without a gap: the log folded onto the beginning is the state.
    for (id, state) in &rows["state"] {
        let mut again: Encounter = serde_json::from_value(state["beginning"].clone()).unwrap();
        for (_, entry) in rows["log"].iter().filter(|(key, _)| key.starts_with(id.as_str())) {
            again.apply_all(&serde_json::from_value::<Vec<Event>>(entry["events"].clone()).unwrap());
        }
        assert_eq!(json!(again), state["now"], "{id}");
    }
    rows
}

/// The state with the events of its tail.
fn folded(mut row: Value) -> Value {
    let mut now: Encounter = serde_json::from_value(row["state"].take()).unwrap();
    now.apply_all(&serde_json::from_value::<Vec<Event>>(row["tail"].take()).unwrap());
    row["now"] = json!(now);
    row
}

/// The rows of a feed's changes, replayed from the beginning.
pub fn replayed<'a>(changes: impl Iterator<Item = &'a Value>) -> Rows {
    let mut rows: Rows = TABLES.iter().map(|table| ((*table).to_owned(), BTreeMap::new())).collect();
    for change in changes {
        let (table, id) = (change["table"].as_str().unwrap(), change["id"].as_str().unwrap());
        let Some(rows) = rows.get_mut(table) else { continue };
        match change["op"].as_str().unwrap() {
            "delete" => assert!(rows.remove(id).is_some()),
            "insert" => assert!(rows.insert(id.to_owned(), change["after"].clone()).is_none()),
            _ => assert!(rows.insert(id.to_owned(), change["after"].clone()).is_some()),
        }
    }
    rows
}

/// What differs in a copy by right.
const OWN: [&str; 6] = ["version", "updated_at", "tenant_id", "session_id", "influence_at", "search"];
const OWN_OF_CAMPAIGNS: [&str; 5] = ["slug", "name", "external_ref", "created_at", "forked_from"];
/// Prose is copied to the letter: an id in it is no reference.
const PROSE: [&str; 4] = ["content", "text", "prompt_text", "personality_prompt"];

/// The rows with names in the place of ids: a slug, or the kind and the row's number in it. Ids of nothing that is copied are
/// numbered as they are met.
pub fn picture(rows: Rows) -> String {
    let mut names: HashMap<String, String> = HashMap::new();
    for (table, rows) in rows.iter().filter(|(table, _)| TABLES.contains(&table.as_str())) {
        for (n, (id, row)) in rows.iter().enumerate() {
            let name = row["slug"].as_str().map_or_else(|| n.to_string(), str::to_owned);
            names.insert(id.clone(), if table == "campaign" { table.clone() } else { format!("{table} {name}") });
        }
    }
    let mut lines = String::new();
    for (table, rows) in rows {
        for (_, mut row) in rows {
            if table == "message" && row["entity_id"] == row["session_id"] {
                row["entity_id"] = Value::Null;
            }
            let members = row.as_object_mut().unwrap();
            members.retain(|name, _| !OWN.contains(&name.as_str()));
            if table == "campaign" {
                members.retain(|name, _| !OWN_OF_CAMPAIGNS.contains(&name.as_str()));
            }
            let prose: Vec<_> = PROSE.iter().filter_map(|name| members.remove(*name)).collect();
            lines.push_str(&format!("{table} {} {}\n", named(&row.to_string(), &mut names), json!(prose)));
        }
    }
    lines
}

fn named(text: &str, names: &mut HashMap<String, String>) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let id = rest.get(..36).filter(|id| id.as_bytes()[8] == b'-' && uuid::Uuid::try_parse(id).is_ok());
        if let Some(id) = id {
            let strangers = names.len();
            out.push_str(names.entry(id.to_owned()).or_insert_with(|| format!("stranger {strangers}")));
            rest = &rest[36..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// The present picture of a campaign.
pub async fn now(world: &World<'_>) -> String {
    picture(stored(world).await)
}

/// All changes of a campaign.
pub async fn feed(world: &World<'_>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let page = world.get(&format!("/changes?after={}&limit=200", all.len())).await.expect(200);
        all.extend(page.items().iter().cloned());
        if page.body["has_more"] == false {
            return all;
        }
    }
}

/// That two pictures are the same, or the first line in which they differ.
#[track_caller]
pub fn assert_same(copy: &str, original: &str, when: &str) {
    for (copied, line) in copy.lines().zip(original.lines()) {
        assert_eq!(copied, line, "{when}");
    }
    assert_eq!(copy.lines().count(), original.lines().count(), "{when}: rows");
}
