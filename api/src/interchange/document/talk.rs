//! Memories and messages of a document. They have no slug: one that is there, whose it is, of its time and with its words, is the same.

use std::collections::HashMap;

use serde::de::DeserializeOwned;
use serde_json::{Value, json, value::RawValue};
use sha2::{Digest, Sha256};
use sqlx::Row as _;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use uuid::Uuid;

use super::{MemoryDocument, MessageDocument, ids::Ids, import::Rows};
use crate::{
    clock,
    error::{Error, Result},
    http::{body, resource::Place, validate},
    interchange::{names::Names, report::Report, rows, strict},
    memory,
    prompt::tokens,
};

/// Rows of one statement.
const CHUNK: usize = 500;
/// Rows that are compared with.
const KNOWN_MAX: i64 = 500_000;

/// What is there: a hash of whose it is and what it says, with the times and ids of all that are alike.
#[derive(Default)]
struct Known(HashMap<[u8; 32], Vec<Alike>>);

/// When one was made, its id, and its broadcast or turn.
type Alike = (OffsetDateTime, Uuid, Option<Uuid>);

impl Known {
    /// Takes one that is alike, so that another of the document finds another.
    fn take(&mut self, hash: [u8; 32], at: Option<OffsetDateTime>) -> Option<(Uuid, Option<Uuid>)> {
        let alike = self.0.get_mut(&hash)?;
        let place = alike.iter().position(|(time, _, _)| at.is_none_or(|at| at == *time))?;
        let (_, id, group) = alike.remove(place);
        Some((id, group))
    }
}

fn hash(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

fn read<T: DeserializeOwned + garde::Validate<Context = ()>>(text: &RawValue, pointer: &str) -> Result<T> {
    let row = strict::parse(text.get().as_bytes()).and_then(body::typed::<T>).map_err(|e| rows::at(e, pointer))?;
    validate::check(&row).map_err(|e| rows::at(e, pointer))?;
    Ok(row)
}

fn unknown(pointer: String, what: &str) -> Error {
    Error::invalid(pointer, "unknown_reference", format!("There is no such {what} in this campaign."))
}

fn time(at: OffsetDateTime) -> Result<String> {
    at.format(&Rfc3339).map_err(Error::internal)
}

/// To the microsecond, as the database keeps it.
fn moment(at: Option<OffsetDateTime>) -> Option<OffsetDateTime> {
    at.and_then(|at| at.replace_nanosecond(at.nanosecond() / 1000 * 1000).ok())
        .map(|at| at.to_offset(time::UtcOffset::UTC))
}

/// Makes the memories that are not there.
///
/// # Errors
/// `validation_failed` with a pointer to one that does not fit.
pub async fn memories(place: &Place<'_>, list: &Rows<'_>, names: &Names, report: &mut Report) -> Result<()> {
    if list.0.is_empty() {
        return Ok(());
    }
    let stored = sqlx::query(
        "SELECT id, holder_id, subject_id, source, text, created_at, broadcast_id FROM memory \
         WHERE tenant_id = $1 AND campaign_id = $2 ORDER BY id LIMIT $3",
    )
    .bind(place.tx.tenant())
    .bind(place.campaign)
    .bind(KNOWN_MAX)
    .fetch_all(&mut *place.tx.connection().await)
    .await?;
    let mut known = Known::default();
    for row in &stored {
        let (holder, player): (Uuid, Uuid) = (row.get("holder_id"), row.get("subject_id"));
        let key = hash(&[&holder.to_string(), &player.to_string(), row.get("source"), row.get("text")]);
        known.0.entry(key).or_default().push((row.get("created_at"), row.get("id"), row.get("broadcast_id")));
    }
    drop(stored);
    let mut ids = Ids::default();
    let mut broadcasts: HashMap<u32, Uuid> = HashMap::new();
    for (number, chunk) in list.0.chunks(CHUNK).enumerate() {
        let mut new = Vec::new();
        for (i, text) in chunk.iter().enumerate() {
            let pointer = format!("/memories/{}", number * CHUNK + i);
            let document: MemoryDocument = read(text, &pointer)?;
            let holder = match document.holder.kind {
                entity::memory::Holder::Npc => names.npc(&document.holder.slug),
                entity::memory::Holder::Owner => names.owner(&document.holder.slug),
            };
            let holder = holder.ok_or_else(|| unknown(format!("{pointer}/holder/slug"), "NPC or owner"))?;
            let player =
                names.character(&document.player).ok_or_else(|| unknown(format!("{pointer}/player"), "character"))?;
            let words = memory::service::text(&document.text, &format!("{pointer}/text"))?;
            let source = json!(document.source);
            let created_at = moment(document.created_at);
            let key = hash(&[&holder.to_string(), &player.to_string(), source.as_str().unwrap_or_default(), words]);
            if let Some((_, group)) = known.take(key, created_at) {
                if let (Some(number), Some(group)) = (document.broadcast, group) {
                    broadcasts.entry(number).or_insert(group);
                }
                report.counts.unchanged += 1;
                continue;
            }
            let created_at = created_at.unwrap_or_else(clock::now);
            new.push(json!({
                "tenant_id": place.tx.tenant(), "campaign_id": place.campaign, "id": ids.at(created_at),
                "holder_type": document.holder.kind, "holder_id": holder, "subject_id": player, "subject_type": "character",
                "text": words, "source": source, "author": place.caller.author(), "created_at": time(created_at)?,
                "broadcast_id": document.broadcast.map(|n| *broadcasts.entry(n).or_insert_with(Uuid::now_v7)),
                "extensions": document.extensions, "external_ref": document.external_ref,
            }));
        }
        report.counts.created += u32::try_from(new.len()).unwrap_or(u32::MAX);
        report.memories_created += u32::try_from(new.len()).unwrap_or(u32::MAX);
        if !new.is_empty() {
            sqlx::query(
                "INSERT INTO memory (tenant_id, campaign_id, id, holder_type, holder_id, subject_type, subject_id, text, source, \
                     author, broadcast_id, extensions, external_ref, created_at) \
                 SELECT tenant_id, campaign_id, id, holder_type, holder_id, subject_type, subject_id, text, source, \
                     author, broadcast_id, extensions, external_ref, created_at FROM jsonb_populate_recordset(NULL::memory, $1)",
            )
            .bind(Value::Array(new))
            .execute(&mut *place.tx.connection().await)
            .await?;
        }
    }
    Ok(())
}

/// Makes the messages that are not there.
///
/// # Errors
/// `validation_failed` with a pointer to one that does not fit.
pub async fn messages(place: &Place<'_>, list: &Rows<'_>, names: &Names, report: &mut Report) -> Result<()> {
    if list.0.is_empty() {
        return Ok(());
    }
    let mut known = known_messages(place).await?;
    let scenes = scenes(place).await?;
    let mut writer =
        Messages { names, scenes: &scenes, ids: Ids::default(), exchanges: HashMap::new(), placed: Vec::new() };
    for (number, chunk) in list.0.chunks(CHUNK).enumerate() {
        let mut new = Vec::new();
        for (i, text) in chunk.iter().enumerate() {
            let pointer = format!("/messages/{}", number * CHUNK + i);
            let document: MessageDocument = read(text, &pointer)?;
            let created_at = moment(document.created_at);
            let author = json!(document.author);
            let key = hash(&[author.as_str().unwrap_or_default(), &document.speaker.name, &document.content]);
            if let Some((id, exchange)) = known.take(key, created_at) {
                if let (Some(number), Some(turn)) = (document.exchange, exchange) {
                    writer.exchanges.entry(number).or_insert(turn);
                }
                writer.placed.push(id);
                report.counts.unchanged += 1;
                continue;
            }
            new.push(writer.row(place, document, created_at.unwrap_or_else(clock::now), &pointer)?);
        }
        report.counts.created += u32::try_from(new.len()).unwrap_or(u32::MAX);
        report.messages_created += u32::try_from(new.len()).unwrap_or(u32::MAX);
        if !new.is_empty() {
            let columns = "tenant_id, campaign_id, id, scene_id, type, speaker, content, flavor, roll, author, player_id, entity_id, \
                           whisper_to, blind, turn_id, prompt_text, tokens, window_start, extensions, external_ref, created_at";
            let sql = format!(
                "INSERT INTO message ({columns}) SELECT {columns} FROM jsonb_populate_recordset(NULL::message, $1)"
            );
            sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(Value::Array(new))
                .execute(&mut *place.tx.connection().await)
                .await?;
        }
    }
    Ok(())
}

async fn known_messages(place: &Place<'_>) -> Result<Known> {
    let stored = sqlx::query(
        "SELECT id, author, speaker ->> 'name' AS speaker, content, created_at, turn_id FROM message \
         WHERE tenant_id = $1 AND campaign_id = $2 ORDER BY id LIMIT $3",
    )
    .bind(place.tx.tenant())
    .bind(place.campaign)
    .bind(KNOWN_MAX)
    .fetch_all(&mut *place.tx.connection().await)
    .await?;
    let mut known = Known::default();
    for row in &stored {
        let speaker: Option<&str> = row.get("speaker");
        let key = hash(&[row.get("author"), speaker.unwrap_or_default(), row.get("content")]);
        known.0.entry(key).or_default().push((row.get("created_at"), row.get("id"), row.get("turn_id")));
    }
    Ok(known)
}

async fn scenes(place: &Place<'_>) -> Result<HashMap<String, Uuid>> {
    let rows = sqlx::query("SELECT id, slug FROM scene WHERE tenant_id = $1 AND campaign_id = $2 LIMIT 200000")
        .bind(place.tx.tenant())
        .bind(place.campaign)
        .fetch_all(&mut *place.tx.connection().await)
        .await?;
    Ok(rows.iter().map(|row| (row.get("slug"), row.get("id"))).collect())
}

struct Messages<'a> {
    names: &'a Names,
    scenes: &'a HashMap<String, Uuid>,
    ids: Ids,
    /// The turns of exchanges; their records stayed behind.
    exchanges: HashMap<u32, Uuid>,
    /// The ids of the messages so far.
    placed: Vec<Uuid>,
}

impl Messages<'_> {
    fn row(&mut self, place: &Place<'_>, m: MessageDocument, at: OffsetDateTime, pointer: &str) -> Result<Value> {
        let actor = |slug: &Option<String>, member: &str, find: &dyn Fn(&str) -> Option<Uuid>, what: &str| match slug {
            None => Ok(None),
            Some(slug) => find(slug).map(Some).ok_or_else(|| unknown(format!("{pointer}/{member}"), what)),
        };
        let player = actor(&m.player, "player", &|s| self.names.character(s), "character")?;
        let entity =
            actor(&m.entity, "entity", &|s| self.names.npc(s).or_else(|| self.names.owner(s)), "NPC or owner")?;
        let scene = actor(&m.scene, "scene", &|s| self.scenes.get(s).copied(), "scene")?;
        let mut whisper = Vec::with_capacity(m.whisper_to.len());
        for (i, to) in m.whisper_to.iter().enumerate() {
            if to == "gm" {
                whisper.push(to.clone());
                continue;
            }
            let id =
                self.names.character(to).ok_or_else(|| unknown(format!("{pointer}/whisper_to/{i}"), "character"))?;
            whisper.push(id.to_string());
        }
        if m.content.is_empty() && m.author != entity::message::Author::Ai {
            return Err(Error::invalid(format!("{pointer}/content"), "invalid_value", "must not be empty"));
        }
        let id = self.ids.at(at);
        self.placed.push(id);
        let window = m.window_start.and_then(|n| self.placed.get(usize::try_from(n).ok()?)).copied();
        let seen = m.prompt_text.as_deref().unwrap_or(&m.content);
        let tokens = if m.exchange.is_some() { tokens::count(seen) } else { 0 };
        Ok(json!({
            "tenant_id": place.tx.tenant(), "campaign_id": place.campaign, "id": id, "scene_id": scene, "type": m.kind,
            "speaker": m.speaker, "content": m.content, "flavor": m.flavor, "roll": m.roll, "author": m.author,
            "player_id": player, "entity_id": entity, "whisper_to": whisper, "blind": m.blind,
            "turn_id": m.exchange.map(|n| *self.exchanges.entry(n).or_insert_with(Uuid::now_v7)),
            "prompt_text": m.prompt_text, "tokens": tokens, "window_start": window, "extensions": m.extensions,
            "external_ref": m.external_ref, "created_at": time(at)?,
        }))
    }
}
