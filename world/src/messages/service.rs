//! Writes messages for other parts of the server, several at once, and reads them for models; `visible` reads them for people.

use entity::{
    CampaignId, TurnId,
    message::{Author, Type},
    session::Role,
    shapes::{Extensions, Speaker},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};
use sqlx::types::Json;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    playing::{Playing, Reader},
    significance::report::{ActionReport, Source, report_own},
};
use base::{
    clock,
    error::Result,
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::http::budget;

/// The largest number of characters in a message.
pub const CONTENT_CHARS_MAX: usize = 20_000;

/// The flavor of what is said out of character: it is no deed of the character.
pub const OOC: &str = "ooc";
/// The flavor of what somebody does, told without the name: `bows`.
pub const EMOTE: &str = "emote";

/// A message to write.
#[derive(Clone, Debug, Serialize)]
pub struct NewMessage {
    pub id: Uuid,
    pub session_id: Option<Uuid>,
    /// The scene where it was said; none if the scene has been deleted since.
    pub scene_id: Option<Uuid>,
    #[serde(rename = "type")]
    pub kind: Type,
    pub speaker: Speaker,
    pub content: String,
    pub flavor: Option<String>,
    pub roll: Option<Value>,
    pub author: Author,
    pub player_id: Option<Uuid>,
    pub entity_id: Option<Uuid>,
    /// The people who may read it: `gm`, or ids of characters. Empty means everyone.
    pub whisper_to: Vec<String>,
    pub blind: bool,
    pub turn_id: Option<Uuid>,
    pub prompt_text: Option<String>,
    pub tokens: u32,
    /// The messages with the oldest of which the window of the conversation begins. If there are none, it begins as before.
    pub window_start: Vec<Uuid>,
    /// For a session's turn: the role of its AI ([`crate::playing::Playing::conversation_key`]).
    pub told_as: Option<String>,
    /// For an event of the world: whose prompts tell it.
    pub event: Option<EventMark>,
    pub extensions: Extensions,
    pub external_ref: Option<String>,
}

/// Until when prompts tell a message, and to whom.
#[derive(Clone, Debug, Serialize)]
pub struct EventMark {
    #[serde(with = "time::serde::rfc3339")]
    pub until: OffsetDateTime,
    /// Keys of scopes, and ids.
    pub audience: Vec<String>,
}

impl NewMessage {
    /// A message from the session's AI. Only the game master reads an assistant's messages.
    #[must_use]
    pub fn of_session(session: &Playing, turn: Option<Uuid>, speaker: &str, content: String) -> Self {
        Self {
            session_id: Some(session.id),
            scene_id: session.scene,
            turn_id: turn,
            player_id: session.player.filter(|_| session.role == Role::Player),
            whisper_to: if session.role == Role::Assistant { vec!["gm".to_owned()] } else { Vec::new() },
            ..Self::chat(Author::Ai, speaker, content)
        }
    }

    /// A chat message for everyone.
    #[must_use]
    pub fn chat(author: Author, speaker: &str, content: String) -> Self {
        Self {
            id: clock::id(),
            session_id: None,
            scene_id: None,
            kind: Type::Chat,
            speaker: Speaker { name: speaker.to_owned(), alias: None },
            content,
            flavor: None,
            roll: None,
            author,
            player_id: None,
            entity_id: None,
            whisper_to: Vec::new(),
            blind: false,
            turn_id: None,
            prompt_text: None,
            tokens: 0,
            window_start: Vec::new(),
            told_as: None,
            event: None,
            extensions: Extensions::new(),
            external_ref: None,
        }
    }
}

/// Writes messages in order. A message whose `external_ref` already exists in the campaign is left out. Returns the ids
/// of the written ones. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn insert(tx: &TenantTx, campaign: Uuid, messages: &[NewMessage]) -> Result<Vec<Uuid>> {
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let row = sqlx::query("SELECT write_messages($1, $2, $3) AS ids")
        .bind(tx.tenant())
        .bind(campaign)
        .bind(Json(messages))
        .fetch_one(&mut *tx.connection().await)
        .await?;
    row.read("ids")
}

/// Reports what players say at the table as actions, if the campaign's settings say so. Does not report whispers.
///
/// # Errors
/// Those of the database.
pub async fn report_table(tx: &TenantTx, campaign: Uuid, said: impl Iterator<Item = &NewMessage>) -> Result<()> {
    for message in said {
        let is_open = message.kind == Type::Chat
            && message.author == Author::Player
            && message.whisper_to.is_empty()
            && message.flavor.as_deref() != Some(OOC);
        if let Some(player) = message.player_id.filter(|_| is_open) {
            let seen = ActionReport::observed(player, "say", Vec::new(), &message.content);
            report_own(tx, campaign, &seen, Source::Table).await?;
        }
    }
    Ok(())
}

/// Whether a message exists.
///
/// # Errors
/// Those of the database.
pub async fn is_there(tx: &TenantTx, id: Uuid) -> Result<bool> {
    let found = sqlx::query("SELECT 1 FROM message WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(id)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    Ok(found.is_some())
}

/// The name of the NPC or owner whose answer is in a turn's messages.
///
/// # Errors
/// Those of the database.
pub async fn answerer(tx: &TenantTx, campaign: CampaignId, turn: TurnId) -> Result<Option<String>> {
    let row = sqlx::query(
        "SELECT speaker ->> 'name' FROM message WHERE tenant_id = $1 AND campaign_id = $2 AND turn_id = $3 AND author = 'ai' \
           AND entity_id IS NOT NULL ORDER BY seq DESC LIMIT 1",
    )
    .bind(tx.tenant())
    .bind(campaign.0)
    .bind(turn.0)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map(|row| row.read_all::<(String,)>().map(|(name,)| name)).transpose()
}

/// One roll of a message, in the same form for all sources.
#[derive(Clone, Debug, PartialEq)]
pub struct RollFacts {
    pub formula: String,
    pub total: Number,
    pub flavor: String,
    pub dice: Value,
    /// What came of it, if a difficulty was told: `success by 2 against 15`.
    pub outcome: Option<String>,
}

/// A roll as clients and the server store it. Clients write what they like.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredRoll {
    formula: Value,
    total: Value,
    result: Value,
    flavor: Value,
    dice: Option<Value>,
    results: Option<Value>,
    outcome: Value,
}

/// The rolls in a message: a single one, or several under `rolls` or `results`.
#[must_use]
pub fn rolls(roll: &Value, flavor: Option<&str>) -> Vec<RollFacts> {
    let several = ["rolls", "results"].iter().find_map(|name| {
        let list = roll.get(name)?.as_array()?;
        list.iter().any(|item| item.get("formula").is_some()).then_some(list)
    });
    let one = |roll: &Value| {
        let stored = StoredRoll::deserialize(roll.as_object()?).ok()?;
        Some(RollFacts {
            formula: stored.formula.as_str().unwrap_or_default().to_owned(),
            total: stored.total.as_number().or_else(|| stored.result.as_number())?.clone(),
            flavor: stored.flavor.as_str().or(flavor).unwrap_or_default().to_owned(),
            dice: stored.dice.or(stored.results).unwrap_or_else(|| json!([])),
            outcome: stored.outcome.as_str().map(str::to_owned),
        })
    };
    match several {
        Some(list) => list.iter().filter_map(one).collect(),
        None => one(roll).into_iter().collect(),
    }
}

/// Rolls in the form in which a message stores them.
#[must_use]
pub fn roll_value(rolls: &[RollFacts]) -> Value {
    let one = |roll: &RollFacts| {
        let mut one = json!({ "formula": roll.formula, "total": roll.total, "flavor": roll.flavor, "dice": roll.dice });
        if let Some(outcome) = &roll.outcome {
            one["outcome"] = json!(outcome);
        }
        one
    };
    match rolls {
        [roll] => one(roll),
        rolls => json!({ "rolls": rolls.iter().map(one).collect::<Vec<_>>() }),
    }
}

/// The text of a roll's message, for readers who see only text.
#[must_use]
pub fn roll_text(rolls: &[RollFacts]) -> String {
    let line = |roll: &RollFacts| match roll.flavor.as_str() {
        "" => format!("{} = {}", roll.formula, roll.total),
        flavor => format!("{flavor}: {} = {}", roll.formula, roll.total),
    };
    rolls.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The newest messages that a reader may see, oldest first, without those that were only for a model.
///
/// # Errors
/// Those of the database.
pub async fn history(tx: &TenantTx, campaign: Uuid, reader: Reader, count: i64, compact: bool) -> Result<Vec<Value>> {
    let sees = reader.sees(|name| format!("m.{name}"), "$3");
    let sql = format!(
        "SELECT type, speaker, content, flavor, roll, author, whisper_to <> '[]' AS whispered, created_at FROM message m \
         WHERE m.tenant_id = $1 AND m.campaign_id = $2 AND NOT (m.author = 'system' AND m.turn_id IS NOT NULL) \
           AND m.content <> '' AND {sees} \
         ORDER BY m.seq DESC LIMIT $4"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(budget::within(&sql, ["content", "roll"])))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(reader.player)
        .bind(count)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    Ok(stored::each(rows.iter().rev(), |row| items_for_model(row, compact)).into_iter().flatten().collect())
}

/// SQL for whether a journal entry changes what people read of a message. An erasure leaves the former words out of its entries, so each of
/// these counts.
pub const REWORDS: &str = "(redacted_at IS NOT NULL OR before -> 'content' IS DISTINCT FROM after -> 'content' \
    OR before -> 'speaker' IS DISTINCT FROM after -> 'speaker' OR before -> 'flavor' IS DISTINCT FROM after -> 'flavor' \
    OR before -> 'roll' IS DISTINCT FROM after -> 'roll')";

/// A message as a model reads it. A message with several rolls becomes one item per roll.
fn items_for_model(row: &sqlx::postgres::PgRow, compact: bool) -> Result<Vec<Value>> {
    let at = row.read::<time::OffsetDateTime>("created_at")?;
    let millis = i64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX);
    let speaker: sqlx::types::Json<Speaker> = row.read("speaker")?;
    let kind: &str = row.read("type")?;
    let flavor: Option<&str> = row.read("flavor")?;
    let is_whisper: bool = row.read("whispered")?;
    let base = |code: &str| {
        let mut item = Map::new();
        let kind = if is_whisper && !compact { "whisper" } else { kind };
        item.insert(key("type", compact), if compact { code.into() } else { kind.into() });
        item.insert("ts".to_owned(), millis.into());
        item.insert(key("speaker", compact), speaker.name.as_str().into());
        if let Some(alias) = &speaker.alias {
            item.insert(key("alias", compact), alias.as_str().into());
        }
        item
    };
    let roll: Option<Value> = row.read("roll")?;
    let rolls = roll.as_ref().map(|roll| rolls(roll, flavor)).unwrap_or_default();
    if kind == "roll" && !rolls.is_empty() {
        return Ok(rolls
            .into_iter()
            .map(|roll| {
                let mut item = base("dr");
                item.insert(key("formula", compact), roll.formula.into());
                item.insert(key("total", compact), roll.total.into());
                item.insert(key("dice", compact), roll.dice);
                item.insert(key("flavor", compact), roll.flavor.into());
                Value::Object(item)
            })
            .collect());
    }
    let code = match (kind, is_whisper) {
        (_, true) => "wp",
        ("card", _) => "cc",
        _ if row.read::<&str>("author")? == "gm" => "gm",
        _ => "cm",
    };
    let mut item = base(code);
    item.insert(key("content", compact), row.read::<&str>("content")?.into());
    if let Some(flavor) = flavor {
        item.insert(key("flavor", compact), flavor.into());
    }
    Ok(vec![Value::Object(item)])
}

/// The name of a member, or its short form.
fn key(name: &'static str, compact: bool) -> String {
    let short = match name {
        "type" => "t",
        "speaker" => "s",
        "alias" => "a",
        "content" => "c",
        "formula" => "f",
        "total" => "tt",
        "dice" => "r",
        "flavor" => "ft",
        other => other,
    };
    (if compact { short } else { name }).to_owned()
}
