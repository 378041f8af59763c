//! Memories and messages of a document. They have no slug. An existing one with the same people, time and text counts
//! as the same.

use std::collections::HashMap;

use actix_web::web;
use futures_util::TryStreamExt as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use uuid::Uuid;

use super::{MemoryDocument, MessageDocument, apart::read_apart, ids::Ids};
use entity::Seq;

use crate::{
    interchange::{names::Names, report::Report, rows},
    memory,
    messages::prompt_text,
};
use base::{
    clock,
    error::{Code, Error, Result},
    search,
    stored::Columns,
    tokens,
};
use edge::http::{read, resource::Place, validate};

/// The number of rows in one statement.
const CHUNK: usize = 500;
/// The largest number of existing rows that are compared.
const KNOWN_MAX: i64 = 500_000;

/// Existing rows: a hash of people and text, with the times and places of all rows that share it.
#[derive(Default)]
struct ExistingRows(HashMap<[u8; 32], Vec<Alike>>);

/// The creation time, the place in the order of writing, and the broadcast or turn.
type Alike = (OffsetDateTime, Seq, Option<Uuid>);

impl ExistingRows {
    /// Takes one of the equal rows, so that the next equal row of the document finds another one.
    fn take(&mut self, hash: [u8; 32], at: Option<OffsetDateTime>) -> Option<(Seq, Option<Uuid>)> {
        let alike = self.0.get_mut(&hash)?;
        let place = alike.iter().position(|(time, _, _)| at.is_none_or(|at| at == *time))?;
        let (_, seq, group) = alike.remove(place);
        Some((seq, group))
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Identifies a memory. [`MEMORIES`] computes the same hash for existing rows.
fn memory_hash(holder: Uuid, player: Uuid, source: &str, text: &str) -> [u8; 32] {
    hash(&format!("{holder}|{player}|{source}|{text}"))
}

/// Identifies a message. [`MESSAGES`] computes the same hash for existing rows.
fn message_hash(author: &str, speaker: &str, content: &str) -> [u8; 32] {
    hash(&format!("{author}|{}|{speaker}|{content}", speaker.len()))
}

/// The database hashes the existing rows, so no text is read.
const MEMORIES: &str = "SELECT seq, created_at, broadcast_id AS together, \
        sha256(convert_to(concat_ws('|', holder_id, subject_id, source, text), 'UTF8')) AS hash \
    FROM memory WHERE tenant_id = $1 AND campaign_id = $2 ORDER BY seq LIMIT $3";
const MESSAGES: &str = "SELECT m.seq, m.created_at, m.turn_id AS together, \
        sha256(convert_to(concat_ws('|', m.author, octet_length(s.name), s.name, m.content), 'UTF8')) AS hash \
    FROM message m, LATERAL (SELECT coalesce(m.speaker ->> 'name', '') AS name) AS s \
    WHERE m.tenant_id = $1 AND m.campaign_id = $2 ORDER BY m.seq LIMIT $3";

impl ExistingRows {
    /// Reads the existing rows in one statement, row by row.
    async fn load(place: &Place<'_>, statement: &'static str) -> Result<Self> {
        let mut known = Self::default();
        let mut count = 0;
        let mut connection = place.tx.connection().await;
        let mut rows = sqlx::query(statement)
            .bind(place.tx.tenant())
            .bind(place.campaign)
            .bind(KNOWN_MAX + 1)
            .fetch(&mut *connection);
        while let Some(row) = rows.try_next().await? {
            count += 1;
            if count > KNOWN_MAX {
                let detail = format!(
                    "This campaign has more than {KNOWN_MAX} memories or messages. The document cannot be compared with them."
                );
                return Err(Error::new(Code::PayloadTooLarge, detail));
            }
            let hash = row.read::<&[u8]>("hash")?.try_into().map_err(Error::internal)?;
            known.0.entry(hash).or_default().push((
                row.read("created_at")?,
                Seq(row.read("seq")?),
                row.read("together")?,
            ));
        }
        Ok(known)
    }
}

fn read<T: DeserializeOwned + garde::Validate<Context = ()>>(value: Value, pointer: String) -> Result<(T, String)> {
    let row = read::typed::<T>(value).map_err(|e| rows::at(e, &pointer))?;
    validate::check(&row).map_err(|e| rows::at(e, &pointer))?;
    Ok((row, pointer))
}

fn unknown(pointer: String, what: &str) -> Error {
    Error::invalid(pointer, "unknown_reference", format!("There is no such {what} in this campaign."))
}

fn time(at: OffsetDateTime) -> Result<String> {
    at.format(&Rfc3339).map_err(Error::internal)
}

/// A time in microseconds, as the database stores it.
fn moment(at: Option<OffsetDateTime>) -> Option<OffsetDateTime> {
    at.and_then(|at| at.replace_nanosecond(at.nanosecond() / 1000 * 1000).ok())
}

/// Creates the memories that do not exist yet.
///
/// # Errors
/// `validation_failed` with a pointer to the memory that does not fit.
pub async fn memories(place: &Place<'_>, list: &[web::Bytes], names: &Names, report: &mut Report) -> Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    let mut known = ExistingRows::load(place, MEMORIES).await?;
    let mut ids = Ids::default();
    let mut broadcasts: HashMap<u32, Uuid> = HashMap::new();
    for (number, chunk) in list.chunks(CHUNK).enumerate() {
        let mut new = Vec::new();
        for (document, pointer) in
            read_apart(chunk, "/memories", number * CHUNK, report, read::<MemoryDocument>).await?
        {
            let holder = match document.holder.kind {
                entity::memory::Holder::Npc => names.npc(&document.holder.slug),
                entity::memory::Holder::Owner => names.owner(&document.holder.slug),
            };
            let holder = holder.ok_or_else(|| unknown(format!("{pointer}/holder/slug"), "NPC or owner"))?;
            let player =
                names.character(&document.player).ok_or_else(|| unknown(format!("{pointer}/player"), "character"))?;
            let words = memory::service::text(&document.text, &format!("{pointer}/text"))?;
            let game_time = memory::service::game_time(document.game_time.as_deref(), &format!("{pointer}/game_time"))?;
            let source = json!(document.source);
            let created_at = moment(document.created_at);
            let key = memory_hash(holder, player, source.as_str().unwrap_or_default(), words);
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
                "text": words, "folded_text": search::stored(words), "source": source, "author": place.caller.author(), "created_at": time(created_at)?,
                "broadcast_id": document.broadcast.map(|n| *broadcasts.entry(n).or_insert_with(clock::id)),
                "extensions": document.extensions, "external_ref": document.external_ref, "game_time": game_time, "pinned": document.pinned,
            }));
        }
        report.counts.created += u32::try_from(new.len()).unwrap_or(u32::MAX);
        report.memories_created += u32::try_from(new.len()).unwrap_or(u32::MAX);
        if !new.is_empty() {
            let columns = "tenant_id, campaign_id, id, holder_type, holder_id, subject_type, subject_id, text, folded_text, game_time, \
                           pinned, source, author, broadcast_id, extensions, external_ref, created_at";
            let sql = format!(
                "INSERT INTO memory ({columns}) SELECT {columns} FROM jsonb_array_elements($1) WITH ORDINALITY AS list (item, n), \
                     jsonb_populate_record(NULL::memory, list.item) ORDER BY list.n"
            );
            sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(Value::Array(new))
                .execute(&mut *place.tx.connection().await)
                .await?;
        }
    }
    Ok(())
}

/// Creates the messages that do not exist yet.
///
/// # Errors
/// `validation_failed` with a pointer to the message that does not fit.
pub async fn messages(place: &Place<'_>, list: &[web::Bytes], names: &Names, report: &mut Report) -> Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    let mut known = ExistingRows::load(place, MESSAGES).await?;
    let scenes = scenes(place).await?;
    let mut writer =
        Messages { names, scenes: &scenes, ids: Ids::default(), exchanges: HashMap::new(), placed: Vec::new() };
    for (number, chunk) in list.chunks(CHUNK).enumerate() {
        let mut new = Vec::new();
        let documents = read_apart(chunk, "/messages", number * CHUNK, report, read::<MessageDocument>).await?;
        for ((document, pointer), seq) in documents.into_iter().zip(places(place, chunk.len()).await?) {
            let created_at = moment(document.created_at);
            let author = json!(document.author);
            let key = message_hash(author.as_str().unwrap_or_default(), &document.speaker.name, &document.content);
            if let Some((seq, exchange)) = known.take(key, created_at) {
                if let (Some(number), Some(turn)) = (document.exchange, exchange) {
                    writer.exchanges.entry(number).or_insert(turn);
                }
                writer.placed.push(seq);
                report.counts.unchanged += 1;
                continue;
            }
            // Tokens are counted only for texts that a model read, for its window.
            let seen = document.exchange.map(|_| document.prompt_text.as_ref().unwrap_or(&document.content).clone());
            let tokens = tokens::count_apart(seen.unwrap_or_default()).await?;
            let at = created_at.unwrap_or_else(clock::now);
            new.push(writer.row(place, document, (seq, at), tokens, &pointer)?);
        }
        report.counts.created += u32::try_from(new.len()).unwrap_or(u32::MAX);
        report.messages_created += u32::try_from(new.len()).unwrap_or(u32::MAX);
        if !new.is_empty() {
            let columns = "tenant_id, campaign_id, id, seq, scene_id, type, speaker, content, flavor, roll, author, player_id, entity_id, \
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

/// The next places in the order of writing.
async fn places(place: &Place<'_>, count: usize) -> Result<Vec<Seq>> {
    let numbers: Vec<i64> = sqlx::query_scalar("SELECT nextval('message_seq_seq') FROM generate_series(1, $1)")
        .bind(i64::try_from(count).unwrap_or(i64::MAX))
        .fetch_all(&mut *place.tx.connection().await)
        .await?;
    Ok(numbers.into_iter().map(Seq).collect())
}

async fn scenes(place: &Place<'_>) -> Result<HashMap<String, Uuid>> {
    let rows = sqlx::query("SELECT id, slug FROM scene WHERE tenant_id = $1 AND campaign_id = $2")
        .bind(place.tx.tenant())
        .bind(place.campaign)
        .fetch_all(&mut *place.tx.connection().await)
        .await?;
    rows.iter().map(|row| Ok((row.read("slug")?, row.read("id")?))).collect()
}

struct Messages<'a> {
    names: &'a Names,
    scenes: &'a HashMap<String, Uuid>,
    ids: Ids,
    /// The turns of exchanges. The records of these turns are not imported.
    exchanges: HashMap<u32, Uuid>,
    /// The places of the messages so far, in order.
    placed: Vec<Seq>,
}

impl Messages<'_> {
    fn row(
        &mut self,
        place: &Place<'_>,
        m: MessageDocument,
        (seq, at): (Seq, OffsetDateTime),
        tokens: u32,
        pointer: &str,
    ) -> Result<Value> {
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
            let id = match self.names.character(to) {
                Some(id) => id.to_string(),
                // A document refers to an actor that no longer existed by its id. The whisper goes to the game master
                // then.
                None if to == "gm" || Uuid::try_parse(to).is_ok() => "gm".to_owned(),
                None => return Err(unknown(format!("{pointer}/whisper_to/{i}"), "character")),
            };
            if !whisper.contains(&id) {
                whisper.push(id);
            }
        }
        if m.content.is_empty() && m.author != entity::message::Author::Ai {
            return Err(Error::invalid(format!("{pointer}/content"), "invalid_value", "must not be empty"));
        }
        let id = self.ids.at(at);
        self.placed.push(seq);
        let window = m.window_start.and_then(|n| self.placed.get(usize::try_from(n).ok()?)).map(|start| start.0);
        Ok(json!({
            "tenant_id": place.tx.tenant(), "campaign_id": place.campaign, "id": id, "seq": seq.0, "scene_id": scene, "type": m.kind,
            "speaker": m.speaker, "content": m.content, "flavor": m.flavor, "roll": m.roll, "author": m.author,
            "player_id": player, "entity_id": entity, "whisper_to": whisper, "blind": m.blind,
            "turn_id": m.exchange.map(|n| *self.exchanges.entry(n).or_insert_with(clock::id)),
            "prompt_text": m.prompt_text.as_deref().map(prompt_text::imported), "tokens": tokens, "window_start": window, "extensions": m.extensions,
            "external_ref": m.external_ref, "created_at": time(at)?,
        }))
    }
}
