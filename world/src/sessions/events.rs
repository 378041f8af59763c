//! Stores the reports of frontends: messages and rolls as messages, fights as a copy of the combat tracker, everything else as a
//! piece of the next delta. Either all events of a call are stored, or none.

use std::collections::{BTreeSet, HashMap};

use entity::{
    message::{Author, Type},
    shapes::Speaker,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Number, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    combat::CombatReport,
    delta::{Delta, Started},
    input::{self, Checked},
    service::{self, Dirty},
    world_state::{self, WorldState},
};
use crate::messages::service::{self as messages, NewMessage, RollFacts};
use crate::playing::Playing;
use base::{
    error::{Code, Error, Result},
    metrics,
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::{caller::Caller, http::resource::Ref};

/// The most events of one call.
pub const EVENTS_PER_CALL_MAX: usize = 100;
/// The most rolls of one message, and the most dice of one roll.
const ROLLS_MAX: usize = 20;
const DICE_MAX: usize = 1000;
const WHISPERS_MAX: usize = 50;
const FORMULA_CHARS_MAX: usize = 1000;

/// All types of events.
pub const KINDS: &[&str] = &[
    "chat_message",
    "dice_roll",
    "message_deleted",
    "combat_state",
    "world_state",
    "game_delta",
    "encounter_started",
    "encounter_ended",
    "turn_advanced",
    "combatant_changed",
    "scene_changed",
    "token_moved",
    "token_created",
    "scene_note_updated",
    "scene_lighting_changed",
    "door_state_changed",
    "item_acquired",
];

/// An event.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EventInput {
    /// `chat_message`, `dice_roll`, `message_deleted`, `combat_state`, `world_state`, `game_delta`, or the snake_case name of a
    /// delta's field, such as `token_moved`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The data of this type of event. Unknown members are ignored, because frontends send members of their own.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub data: Value,
}

/// What happened to an event.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventResult {
    #[serde(rename = "type")]
    pub kind: String,
    /// `stored`; `duplicate` for a message with an id that the session sent before; `unchanged` for a deleted message that does not
    /// exist.
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Uuid>,
}

/// A speaker's name, alone or with an alias.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = ReportedSpeaker)]
pub(crate) enum SpeakerData {
    Name(String),
    Full {
        /// The person's or character's name.
        #[serde(default)]
        #[schema(max_length = 300)]
        name: Option<String>,
        /// The displayed name.
        #[serde(default)]
        #[schema(max_length = 300)]
        alias: Option<String>,
    },
}

/// A message or a roll that a frontend reports.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = ReportedMessage)]
pub struct ReportedMessage {
    /// The frontend's own id. A message with a known id is not stored again.
    #[schema(min_length = 1, max_length = 100)]
    id: Option<String>,
    /// The speaker: a name, or an object with more details.
    speaker: Option<SpeakerData>,
    /// The text. Required for chat messages.
    #[schema(max_length = 20_000)]
    content: Option<String>,
    /// What the roll is for.
    #[schema(max_length = 300)]
    flavor: Option<String>,
    /// The author. Defaults to the person at the table.
    author: Option<Author>,
    /// The player character who said it, by id or slug.
    player_id: Option<String>,
    /// Who may read it: `gm`, or characters by id or slug. Everyone may if the list is empty.
    #[serde(alias = "whisper")]
    #[schema(max_items = 50)]
    whisper_to: Vec<String>,
    /// Whether only the game master sees the roll.
    blind: bool,
    /// The formula of a single roll.
    #[schema(max_length = 1000)]
    formula: Option<String>,
    /// The total of a single roll.
    #[serde(alias = "result")]
    #[schema(value_type = Option<f64>)]
    total: Option<Number>,
    /// The dice of a single roll, in the frontend's format.
    #[serde(alias = "dice")]
    #[schema(max_items = 1000)]
    results: Vec<Value>,
    /// The rolls, if there are several.
    #[schema(max_items = 20)]
    rolls: Vec<RollData>,
}

/// One of several rolls.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ReportedRoll)]
pub(crate) struct RollData {
    /// The formula.
    #[schema(max_length = 1000)]
    formula: String,
    /// The total.
    #[serde(alias = "result")]
    #[schema(value_type = f64)]
    total: Number,
    /// What the roll was for.
    #[serde(default)]
    #[schema(max_length = 300)]
    flavor: Option<String>,
    /// The dice, in the frontend's format.
    #[serde(default, alias = "dice")]
    #[schema(max_items = 1000)]
    results: Vec<Value>,
}

/// A parsed event.
enum Read {
    Message(Box<ReportedMessage>, Type),
    Deleted(String),
    Combat(CombatReport),
    World(Box<WorldState>),
    Piece(Box<Delta>),
}

/// Stores events.
///
/// # Errors
/// `validation_failed` with a pointer to the first invalid event, `forbidden` for an author that needs `gm`.
pub async fn take_in(
    tx: &TenantTx,
    caller: &Caller,
    session: &Playing,
    events: &[EventInput],
) -> Result<Vec<EventResult>> {
    if events.is_empty() || events.len() > EVENTS_PER_CALL_MAX {
        let message = format!("Send 1 to {EVENTS_PER_CALL_MAX} events.");
        return Err(Error::invalid("/events", "invalid_value", message));
    }
    let read = events.iter().enumerate().map(|(i, e)| read_event(i, e)).collect::<Result<Vec<_>>>()?;
    if !caller.sees_secrets() && !read.iter().all(|r| matches!(r, Read::Message(..) | Read::Deleted(_))) {
        return Err(Error::new(Code::Forbidden, "A player's token may only report messages and rolls of its player."));
    }
    let people = people(tx, session, &read).await?;
    let mut known = service::reported_world(tx, session.id, true).await?;
    let (mut dirty, mut pieces, mut new_messages, mut deleted) = (Dirty::default(), Vec::new(), Vec::new(), Vec::new());
    let mut results = Vec::with_capacity(events.len());
    for (i, (event, read)) in events.iter().zip(read).enumerate() {
        metrics::SESSION_EVENTS.with_label_values(&[family(&read)]).inc();
        let mut message_id = None;
        match read {
            Read::Message(said, kind) => {
                let message = message_of(caller, session, &people, *said, kind, i)?;
                let message = NewMessage { scene_id: known.scene, ..message };
                message_id = Some(message.id);
                new_messages.push(message);
            }
            Read::Deleted(id) => deleted.push((results.len(), id)),
            Read::Combat(told) => {
                dirty.combat = true;
                pieces.push(service::take_combat(&mut known, told));
            }
            Read::World(state) => {
                dirty = Dirty { world: true, combat: dirty.combat || state.active_encounter.is_some() };
                pieces.push(service::take_world(&mut known, *state));
            }
            Read::Piece(piece) => pieces.push(*piece),
        }
        results.push(EventResult { kind: event.kind.clone(), status: "stored", message_id });
    }
    let sent: BTreeSet<Uuid> = new_messages.iter().map(|m| m.id).collect();
    let stored = messages::insert(tx, session.campaign, &new_messages).await?;
    if known.table_counts {
        messages::report_table(tx, session.campaign, new_messages.iter().filter(|m| stored.contains(&m.id))).await?;
    }
    for result in &mut results {
        if result.message_id.is_some_and(|id| sent.contains(&id) && !stored.contains(&id)) {
            (result.status, result.message_id) = ("duplicate", None);
        }
    }
    // A message may be sent and deleted in the same call.
    let mut gone = delete(tx, session, &deleted).await?;
    for (at, id) in deleted {
        let own = own_ref(session, &id);
        let found = gone.iter().position(|(named, message)| *named == own || *message == id);
        match (found, results.get_mut(at)) {
            (Some(found), _) => drop(gone.swap_remove(found)),
            (None, Some(result)) => result.status = "unchanged",
            (None, None) => {}
        }
    }
    service::keep(tx, session.id, &known, dirty, &pieces).await?;
    Ok(results)
}

/// A metric's label from a fixed set, whatever a frontend calls its events.
fn family(read: &Read) -> &'static str {
    match read {
        Read::Message(_, Type::Roll) => "dice_roll",
        Read::Message(..) => "chat_message",
        Read::Deleted(_) => "message_deleted",
        Read::Combat(_) => "combat_state",
        Read::World(_) => "world_state",
        Read::Piece(_) => "other",
    }
}

fn read_event(i: usize, event: &EventInput) -> Result<Read> {
    let at = format!("/events/{i}/data");
    if !event.data.is_object() && !event.data.is_null() {
        return Err(Error::invalid(at, "invalid_value", "must be an object"));
    }
    let data = || {
        let mut data = if event.data.is_null() { json!({}) } else { event.data.clone() };
        input::put_names_on_one_line(&mut data);
        data
    };
    Ok(match event.kind.as_str() {
        "chat_message" => Read::Message(Box::new(read_message(data(), &at, Type::Chat)?), Type::Chat),
        "dice_roll" => Read::Message(Box::new(read_message(data(), &at, Type::Roll)?), Type::Roll),
        "message_deleted" => Read::Deleted(text(&event.data, "id", &at)?),
        "combat_state" => Read::Combat(CombatReport::read(&data(), &at)?),
        "world_state" => {
            let state: WorldState = input::read(data(), &at)?;
            state.check(&at)?;
            too_large(&state)?;
            Read::World(Box::new(state))
        }
        kind => Read::Piece(Box::new(piece(kind, data(), &at, i)?)),
    })
}

/// Checks that a world state is small enough to be stored.
///
/// # Errors
/// `payload_too_large`.
pub fn too_large(state: &WorldState) -> Result<()> {
    let bytes = serde_json::to_vec(state).map_err(Error::internal)?.len();
    if bytes <= world_state::BYTES_MAX {
        return Ok(());
    }
    let detail =
        format!("A world state may have at most {} bytes of JSON; this one has {bytes}.", world_state::BYTES_MAX);
    Err(Error::new(Code::PayloadTooLarge, detail))
}

/// Reads an event that is a piece of a delta.
fn piece(kind: &str, data: Value, at: &str, i: usize) -> Result<Delta> {
    fn one<T: DeserializeOwned>(data: Value, at: &str) -> Result<Vec<T>> {
        Ok(vec![input::read(data, at)?])
    }
    bounded(&data, at)?;
    let mut delta = Delta::default();
    match kind {
        "encounter_started" => {
            let mut started: Started = input::read(named(data), at)?;
            if started.name.trim().is_empty() {
                started.name = "Combat Encounter".to_owned();
            }
            delta.encounter_started = Some(started);
        }
        "encounter_ended" => delta.encounter_ended = true,
        "turn_advanced" => delta.turn_advanced = true,
        "combatant_changed" => delta.combatant_changed = one(data, at)?,
        "scene_changed" => delta.scene_changed = Some(input::read(data, at)?),
        "token_moved" => delta.token_moved = one(data, at)?,
        "token_created" => delta.token_created = one(data, at)?,
        "scene_note_updated" => delta.scene_note_updated = one(data, at)?,
        "scene_lighting_changed" => delta.scene_lighting_changed = one(data, at)?,
        "door_state_changed" => delta.door_state_changed = one(data, at)?,
        "item_acquired" => delta.item_acquired = one(data, at)?,
        // The frontend computed the changes itself; they are added. Its own flag (`has_changes`, or `hasChanges`) has no further
        // meaning, and null means no change.
        "game_delta" => delta.add(input::read(without_nulls(data), at)?),
        _ => {
            let message = "There is no such type of event.";
            return Err(Error::invalid(format!("/events/{i}/type"), "unknown_reference", message));
        }
    }
    Ok(delta)
}

fn without_nulls(mut data: Value) -> Value {
    if let Some(members) = data.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    data
}

fn named(mut data: Value) -> Value {
    if let Some(members) = data.as_object_mut() {
        members.entry("name").or_insert_with(|| "".into());
    }
    data
}

/// Limits the lengths of all texts and lists of an event.
fn bounded(data: &Value, at: &str) -> Result<()> {
    fn walk(value: &Value, checked: &mut Checked) {
        match value {
            Value::String(text) => checked.text("", text),
            Value::Array(items) => {
                checked.count("", items.len(), 100);
                items.iter().take(100).for_each(|item| walk(item, checked));
            }
            Value::Object(members) => members.values().for_each(|member| walk(member, checked)),
            _ => {}
        }
    }
    let mut checked = Checked::at(at);
    walk(data, &mut checked);
    checked.finish()
}

fn text(data: &Value, name: &str, at: &str) -> Result<String> {
    let text = data.get(name).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty() && t.len() <= 200);
    let missing = || Error::invalid(format!("{at}/{name}"), "required", "must have 1 to 200 characters");
    text.map(str::to_owned).ok_or_else(missing)
}

fn read_message(data: Value, at: &str, kind: Type) -> Result<ReportedMessage> {
    let mut said: ReportedMessage = input::read(data, at)?;
    let mut checked = Checked::at(at);
    checked.count("whisper_to", said.whisper_to.len(), WHISPERS_MAX);
    checked.count("rolls", said.rolls.len(), ROLLS_MAX);
    checked.count("results", said.results.len(), DICE_MAX);
    said.rolls.iter().for_each(|r| checked.count("rolls", r.results.len(), DICE_MAX));
    checked.text("flavor", said.flavor.as_deref().unwrap_or_default());
    for flavor in said.rolls.iter().filter_map(|r| r.flavor.as_deref()) {
        checked.text("rolls", flavor);
    }
    if let Some(SpeakerData::Name(name) | SpeakerData::Full { name: Some(name), .. }) = &said.speaker {
        checked.text("speaker", name);
    }
    if let Some(SpeakerData::Full { alias: Some(alias), .. }) = &said.speaker {
        checked.text("speaker", alias);
    }
    checked.finish()?;
    if said.id.as_ref().is_some_and(|id| id.is_empty() || id.len() > 100) {
        return Err(Error::invalid(format!("{at}/id"), "invalid_value", "must have 1 to 100 characters"));
    }
    if said.content.as_ref().is_some_and(|c| c.chars().count() > messages::CONTENT_CHARS_MAX) {
        let message = format!("must have at most {} characters", messages::CONTENT_CHARS_MAX);
        return Err(Error::invalid(format!("{at}/content"), "invalid_value", message));
    }
    match kind {
        Type::Roll => one_roll(&mut said, at)?,
        _ if said.content.as_ref().is_none_or(|c| c.trim().is_empty()) => {
            return Err(Error::invalid(format!("{at}/content"), "required", "A chat message needs a text."));
        }
        _ => {}
    }
    Ok(said)
}

/// Moves a single roll into `rolls`.
fn one_roll(said: &mut ReportedMessage, at: &str) -> Result<()> {
    if said.rolls.is_empty() {
        let missing =
            |name: &str| Error::invalid(format!("{at}/{name}"), "required", "A roll needs a formula and a total.");
        let formula = said.formula.take().ok_or_else(|| missing("formula"))?;
        let total = said.total.take().ok_or_else(|| missing("total"))?;
        let results = std::mem::take(&mut said.results);
        said.rolls.push(RollData { formula, total, flavor: said.flavor.clone(), results });
    }
    match said.rolls.iter().position(|r| r.formula.trim().is_empty() || r.formula.len() > FORMULA_CHARS_MAX) {
        Some(i) => Err(Error::invalid(
            format!("{at}/rolls/{i}/formula"),
            "invalid_value",
            format!("must have 1 to {FORMULA_CHARS_MAX} characters"),
        )),
        None => Ok(()),
    }
}

/// The characters that messages refer to, by the name that was used. One statement, if there are any.
async fn people(tx: &TenantTx, session: &Playing, read: &[Read]) -> Result<HashMap<String, Uuid>> {
    let mut names = BTreeSet::new();
    for read in read {
        if let Read::Message(said, _) = read {
            names.extend(said.whisper_to.iter().filter(|n| *n != "gm").map(String::as_str));
            names.extend(said.player_id.as_deref());
        }
    }
    characters_named(tx, session.campaign, &names.into_iter().collect::<Vec<_>>()).await
}

/// The ids of characters, by slug or id.
///
/// # Errors
/// Database errors.
pub async fn characters_named(tx: &TenantTx, campaign: Uuid, names: &[&str]) -> Result<HashMap<String, Uuid>> {
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query(
        "SELECT id, slug FROM character WHERE tenant_id = $1 AND campaign_id = $2 AND (slug = ANY ($3) OR id = ANY ($4))",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(names)
    .bind(names.iter().filter_map(|n| Uuid::try_parse(n).ok()).collect::<Vec<_>>())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let mut found = HashMap::new();
    for row in rows {
        let (id, slug): (Uuid, String) = (row.read("id")?, row.read("slug")?);
        for name in names {
            let named = match Ref::parse(name) {
                Ref::Id(given) => given == id,
                Ref::Slug(given) => given == slug,
            };
            if named {
                found.insert((*name).to_owned(), id);
            }
        }
    }
    Ok(found)
}

fn message_of(
    caller: &Caller,
    session: &Playing,
    people: &HashMap<String, Uuid>,
    said: ReportedMessage,
    kind: Type,
    i: usize,
) -> Result<NewMessage> {
    let at = format!("/events/{i}/data");
    let find = |pointer: String, name: &str| {
        let unknown = || Error::invalid(pointer, "unknown_reference", "There is no such character in this campaign.");
        people.get(name).copied().ok_or_else(unknown)
    };
    let author = said.author.unwrap_or_default();
    if author != Author::Player {
        caller.needs_game_master("Reporting words of anyone but players")?;
    }
    let speaker = match said.speaker {
        None => Speaker::default(),
        Some(SpeakerData::Name(name)) => Speaker { name, alias: None },
        Some(SpeakerData::Full { name, alias }) => Speaker { name: name.unwrap_or_default(), alias },
    };
    // A player's token cannot speak under another name.
    let speaker =
        if caller.is_player() { Speaker { name: session.speaker().to_owned(), alias: None } } else { speaker };
    let rolls: Vec<RollFacts> = said
        .rolls
        .into_iter()
        .map(|r| RollFacts {
            formula: r.formula,
            total: r.total,
            flavor: r.flavor.or_else(|| said.flavor.clone()).unwrap_or_default(),
            dice: Value::Array(r.results),
            outcome: None,
        })
        .collect();
    let content = match said.content.filter(|c| !c.trim().is_empty()) {
        Some(content) => content,
        None => messages::roll_text(&rolls),
    };
    let mut whisper_to = Vec::with_capacity(said.whisper_to.len());
    for (n, name) in said.whisper_to.iter().enumerate() {
        whisper_to.push(match name.as_str() {
            "gm" => "gm".to_owned(),
            name => find(format!("{at}/whisper_to/{n}"), name)?.to_string(),
        });
    }
    let named = said.player_id.as_deref().map(|name| find(format!("{at}/player_id"), name)).transpose()?;
    let player = named.or(caller.player);
    caller.may_act_as(player.unwrap_or_default())?;
    Ok(NewMessage {
        session_id: Some(session.id),
        kind,
        speaker,
        flavor: said.flavor,
        roll: (kind == Type::Roll).then(|| messages::roll_value(&rolls)),
        player_id: player,
        whisper_to,
        blind: said.blind,
        external_ref: said.id.map(|id| own_ref(session, &id)),
        ..NewMessage::chat(author, "", content)
    })
}

/// A frontend's message id, made unique among frontends.
fn own_ref(session: &Playing, id: &str) -> String {
    format!("{}/{id}", session.client_id)
}

/// Deletes messages of this session, by the frontend's ids or ours. Returns both ids of the deleted messages. One statement, if
/// there are any ids.
async fn delete(tx: &TenantTx, session: &Playing, ids: &[(usize, String)]) -> Result<Vec<(String, String)>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(
        "DELETE FROM message WHERE tenant_id = $1 AND campaign_id = $2 AND session_id = $3 \
           AND (external_ref = ANY ($4) OR id = ANY ($5)) RETURNING id, external_ref",
    )
    .bind(tx.tenant())
    .bind(session.campaign)
    .bind(session.id)
    .bind(ids.iter().map(|(_, id)| own_ref(session, id)).collect::<Vec<_>>())
    .bind(ids.iter().filter_map(|(_, id)| Uuid::try_parse(id).ok()).collect::<Vec<_>>())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let names = |row: &sqlx::postgres::PgRow| {
        let named: Option<String> = row.read("external_ref")?;
        Ok((named.unwrap_or_default(), row.read::<Uuid>("id")?.to_string()))
    };
    rows.iter().map(names).collect()
}
