//! The entity documents of the MUD design that Tavernkeep unites (PascalCase or snake_case). Importing them is
//! idempotent by slug: new rows are created, different ones changed, and equal ones left as they are.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    names::Names,
    originals::value_of,
    report::Report,
    rows::{self, Onto, Row, RowIdentity},
    text::string,
};
use crate::{characters::Characters, lore::LoreEntries, memory, npcs::Npcs, owners::Owners};
use base::{
    clock,
    error::{Error, Result},
    search,
    stored::Columns,
};
use edge::http::{
    resource::{Place, slug_of},
    validate,
};

/// The largest number of entities in an import.
const ENTITIES_MAX: usize = 10_000;

/// The documents, sorted so that they can refer to earlier ones.
pub struct Entities {
    all: Vec<Entity>,
    /// The paths of texts that lost control characters.
    cleaned: Vec<String>,
}

struct Entity {
    /// The position in the file.
    pointer: String,
    kind: Kind,
    document: Document,
}

/// Reads documents: a single one, a list, or `{players, owners, npcs, lore}`.
///
/// # Errors
/// `bad_request` for invalid JSON, `validation_failed` for something that is not an entity.
pub fn read(bytes: &[u8]) -> Result<Entities> {
    let (documents, cleaned) = value_of(bytes, "")?;
    Ok(Entities { cleaned, ..of_value(documents)? })
}

/// Creates or changes the rows of the documents, in the caller's transaction.
///
/// # Errors
/// `validation_failed` with a pointer to the invalid document.
pub async fn import(place: &Place<'_>, entities: Entities, report: &mut Report) -> Result<()> {
    let mut memories = Vec::new();
    let mut of_kind: BTreeMap<Kind, Vec<Row>> = BTreeMap::new();
    report.warn_of_control_characters(entities.cleaned);
    for Entity { pointer, kind, mut document } in entities.all {
        let held = document.remove("memories_about_players");
        let document = match kind {
            Kind::Character => character(document, &pointer)?,
            Kind::Owner => owner(document, &pointer)?,
            Kind::Npc => npc(document, &pointer)?,
            Kind::Lore => lore(document, &pointer)?,
        };
        let slug = string(&document, "slug").to_owned();
        if let Some(held) = held {
            memories.push(Held::of(held, kind, &slug, &pointer)?);
        }
        let row = Row { members: document, identity: RowIdentity::BySlug(slug), onto: Onto::Merge, ..Row::at(pointer) };
        of_kind.entry(kind).or_default().push(row);
    }
    for (kind, mut rows) in of_kind {
        match kind {
            Kind::Owner => rows::write::<Owners>(place, rows, |_| Document::new(), report).await?,
            Kind::Character => rows::write::<Characters>(place, rows, |_| Document::new(), report).await?,
            Kind::Npc => {
                keep_owners(place, &mut rows, report).await?;
                rows::write::<Npcs>(place, rows, |_| Document::new(), report).await?
            }
            Kind::Lore => rows::write::<LoreEntries>(place, rows, |_| Document::new(), report).await?,
        };
    }
    remember(place, memories, report).await
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Owner,
    Character,
    Npc,
    Lore,
}

type Document = Map<String, Value>;

/// Like [`read`], from parsed JSON.
///
/// # Errors
/// `validation_failed` for something that is not an entity.
pub fn of_value(documents: Value) -> Result<Entities> {
    let mut found = Vec::new();
    let mut take = |pointer: String, kind: Option<Kind>, value: Value| {
        let Value::Object(members) = value else {
            return Err(Error::invalid(pointer, "invalid_value", "An entity must be an object."));
        };
        let document: Document = members.into_iter().map(|(k, v)| (snake(&k), v)).collect();
        let kind = kind.unwrap_or_else(|| kind_of(&document));
        found.push(Entity { pointer, kind, document });
        Ok(())
    };
    let groups: BTreeMap<&str, Kind> = [
        ("players", Kind::Character),
        ("characters", Kind::Character),
        ("owners", Kind::Owner),
        ("npcs", Kind::Npc),
        ("lore", Kind::Lore),
        ("lore_entries", Kind::Lore),
    ]
    .into();
    match documents {
        Value::Array(items) => {
            for (i, item) in items.into_iter().enumerate() {
                take(format!("/{i}"), None, item)?;
            }
        }
        Value::Object(members) if members.keys().all(|k| k == "entities" || groups.contains_key(snake(k).as_str())) => {
            for (name, items) in members {
                let Value::Array(items) = items else {
                    return Err(Error::invalid(
                        format!("/{name}"),
                        "invalid_value",
                        "A group of entities must be a list.",
                    ));
                };
                for (i, item) in items.into_iter().enumerate() {
                    take(format!("/{name}/{i}"), groups.get(snake(&name).as_str()).copied(), item)?;
                }
            }
        }
        one => take(String::new(), None, one)?,
    }
    if found.len() > ENTITIES_MAX {
        return Err(Error::invalid("", "too_many", format!("An import may contain at most {ENTITIES_MAX} entities.")));
    }
    found.sort_by_key(|entity| entity.kind);
    Ok(Entities { all: found, cleaned: Vec::new() })
}

fn kind_of(document: &Document) -> Kind {
    let has = |name: &str| document.contains_key(name);
    if has("monitored_aspect") {
        Kind::Owner
    } else if has("content") || has("scope") {
        Kind::Lore
    } else if has("personality_prompt") || has("owner_ids") || has("available_tools") {
        Kind::Npc
    } else {
        Kind::Character
    }
}

/// Converts a name such as `CurrentRoomID` or `currentRoomId` to `current_room_id`. A name in snake case stays.
fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let letters: Vec<char> = name.chars().collect();
    for (i, c) in letters.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|b| letters.get(b)).copied();
        let starts = c.is_uppercase()
            && before.is_some_and(|b| b != '_')
            && (before.is_some_and(char::is_lowercase)
                || letters.get(i + 1).is_some_and(|n| n.is_lowercase() && *n != 's'));
        if starts {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Renames members, drops nulls, and moves unknown members into `extensions`.
fn fit(mut document: Document, renames: &[(&str, &str)], known: &[&str]) -> Document {
    for (from, to) in renames {
        if let Some(value) = document.remove(*from) {
            document.entry((*to).to_owned()).or_insert(value);
        }
    }
    let mut extensions = Document::new();
    let mut out = Document::new();
    for (name, value) in document {
        if value.is_null() {
            continue;
        }
        if known.contains(&name.as_str()) {
            out.insert(name, value);
        } else {
            extensions.insert(name, value);
        }
    }
    if let Some(Value::Object(given)) = out.remove("extensions") {
        extensions.extend(given);
    }
    out.insert("extensions".to_owned(), Value::Object(extensions));
    out
}

/// The document's slug: its id if that is a valid slug, otherwise derived from the id or name.
fn slug(document: &Document, pointer: &str) -> Result<String> {
    let given = ["slug", "id", "name", "title"].iter().find_map(|k| document.get(*k).and_then(Value::as_str));
    let given = given
        .ok_or_else(|| Error::invalid(format!("{pointer}/id"), "required", "An entity must have an id or a name."))?;
    if validate::opt_slug(&Some(given.to_owned()), &()).is_ok() {
        return Ok(given.to_owned());
    }
    slug_of(given, "_")
        .ok_or_else(|| Error::invalid(format!("{pointer}/id"), "invalid_value", "No slug can be made from this id."))
}

fn with_slug(mut document: Document, pointer: &str) -> Result<Document> {
    let slug = slug(&document, pointer)?;
    document.remove("id");
    document.insert("slug".to_owned(), slug.into());
    Ok(document)
}

fn character(document: Document, pointer: &str) -> Result<Document> {
    let renames = [
        ("current_room_id", "location"),
        ("health", "hp"),
        ("max_health", "max_hp"),
        ("race_id", "race"),
        ("profession_id", "profession"),
    ];
    let known = [
        "slug",
        "name",
        "player_name",
        "race",
        "profession",
        "level",
        "abilities",
        "max_hp",
        "hp",
        "temp_hp",
        "armor_class",
        "speed",
        "size",
        "inventory",
        "location",
        "external_ref",
        "skill_proficiencies",
        "saving_throw_proficiencies",
        "weapon_proficiencies",
        "features",
        "weapons",
        "spells",
        "spell_slots",
        "spellcasting_ability",
        "resources",
        "hit_dice",
        "conditions",
        "extensions",
    ];
    Ok(fit(with_slug(document, pointer)?, &renames, &known))
}

fn owner(document: Document, pointer: &str) -> Result<Document> {
    let mut document = with_slug(document, pointer)?;
    let mut influence = Document::new();
    for (from, to) in [
        ("current_influence_budget", "current"),
        ("max_influence_budget", "max"),
        ("budget_regen_rate", "regen_per_hour"),
    ] {
        if let Some(value) = document.remove(from) {
            influence.insert(to.to_owned(), value);
        }
    }
    if !influence.is_empty() {
        document.insert("influence".to_owned(), Value::Object(influence));
    }
    let known = [
        "slug",
        "name",
        "description",
        "personality_prompt",
        "monitored_aspect",
        "associated_id",
        "available_tools",
        "reaction_threshold",
        "immediate_threshold",
        "influence",
        "greetings",
        "scenario",
        "example_dialogue",
        "external_ref",
        "extensions",
    ];
    Ok(tools(fit(document, &[("llm_prompt_context", "personality_prompt")], &known)))
}

fn npc(document: Document, pointer: &str) -> Result<Document> {
    let renames = [("current_room_id", "location"), ("race_id", "race"), ("profession_id", "profession")];
    let known = [
        "slug",
        "name",
        "description",
        "personality_prompt",
        "race",
        "profession",
        "location",
        "faction",
        "owner_ids",
        "available_tools",
        "stats",
        "disposition",
        "inventory",
        "reaction_threshold",
        "immediate_threshold",
        "greetings",
        "scenario",
        "example_dialogue",
        "external_ref",
        "extensions",
    ];
    Ok(tools(fit(with_slug(document, pointer)?, &renames, &known)))
}

/// Removes owners that do not exist. Takes one statement.
async fn keep_owners(place: &Place<'_>, rows: &mut [Row], report: &mut Report) -> Result<()> {
    let names = Names::load(place).await?;
    for row in rows {
        let Some(Value::Array(owners)) = row.members.get_mut("owner_ids") else { continue };
        owners.retain(|owner| {
            let name = owner.as_str().unwrap_or_default();
            let is_there = names.owner(name).is_some() || names.slug_of(name).is_some();
            if !is_there {
                report.warn(format!("{}/owner_ids: there is no owner `{name}`, so it was left out", row.pointer));
            }
            is_there
        });
    }
    Ok(())
}

fn lore(document: Document, pointer: &str) -> Result<Document> {
    let known = [
        "slug",
        "title",
        "scope",
        "associated_id",
        "content",
        "tags",
        "priority",
        "enabled",
        "secret",
        "known_by",
        "activation",
        "keys",
        "secondary_keys",
        "logic",
        "scan_depth",
        "ai_lock",
        "external_ref",
        "extensions",
    ];
    let mut document = fit(with_slug(document, pointer)?, &[("type", "scope"), ("name", "title")], &known);
    if let Some(Value::String(scope)) = document.get_mut("scope") {
        *scope = scope.to_lowercase();
    }
    if document.get("associated_id").and_then(Value::as_str).is_some_and(str::is_empty) {
        document.remove("associated_id");
    }
    Ok(document)
}

/// Converts tools written as `{Name, Description, Parameters}`.
fn tools(mut document: Document) -> Document {
    if let Some(Value::Array(tools)) = document.get_mut("available_tools") {
        for tool in tools {
            if let Value::Object(members) = tool {
                *members = std::mem::take(members).into_iter().map(|(k, v)| (snake(&k), v)).collect();
            }
        }
    }
    document
}

/// What an entity remembers about players.
struct Held {
    holder: String,
    is_owner: bool,
    /// `{player: [text]}`.
    players: Document,
    pointer: String,
}

impl Held {
    fn of(held: Value, kind: Kind, holder: &str, pointer: &str) -> Result<Self> {
        let pointer = format!("{pointer}/memories_about_players");
        let is_owner = match kind {
            Kind::Owner => true,
            Kind::Npc => false,
            Kind::Character | Kind::Lore => {
                return Err(Error::invalid(pointer, "invalid_value", "Only NPCs and owners can have memories."));
            }
        };
        let Value::Object(players) = held else {
            let message = "Memories must be an object with a list of texts for each player.";
            return Err(Error::invalid(pointer, "invalid_value", message));
        };
        Ok(Self { holder: holder.to_owned(), is_owner, players, pointer })
    }
}

/// A memory to create: its holder, its subject and its text.
struct Remembered<'a> {
    holder_type: &'static str,
    holder: Uuid,
    player: Uuid,
    text: &'a str,
}

/// Creates the memories that do not exist yet. Takes three statements, however many there are.
async fn remember(place: &Place<'_>, held: Vec<Held>, report: &mut Report) -> Result<()> {
    if held.is_empty() {
        return Ok(());
    }
    let names = Names::load(place).await?;
    let mut all = Vec::new();
    for Held { holder, is_owner, players, pointer } in &held {
        let (holder_type, id) = if *is_owner { ("owner", names.owner(holder)) } else { ("npc", names.npc(holder)) };
        let id = id.ok_or_else(|| Error::internal("an entity that was just written is not there"))?;
        for (player, texts) in players {
            let Some(player_id) = names.character(player) else {
                report.warn(format!(
                    "{holder}: there is no character `{player}`, so the memories about it were left out"
                ));
                continue;
            };
            let pointer = format!("{pointer}/{}", player.replace('~', "~0").replace('/', "~1"));
            let texts = texts.as_array().and_then(|texts| texts.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
            let texts = texts.ok_or_else(|| {
                Error::invalid(&pointer, "invalid_value", "The memories about a player must be a list of texts.")
            })?;
            for (i, text) in texts.into_iter().enumerate() {
                let text = memory::service::text(text, &format!("{pointer}/{i}"))?;
                all.push(Remembered { holder_type, holder: id, player: player_id, text });
            }
        }
    }
    report.memories_created += new_memories(place, &all).await?;
    Ok(())
}

async fn new_memories(place: &Place<'_>, all: &[Remembered<'_>]) -> Result<u32> {
    let (tenant, campaign) = (place.tx.tenant(), place.campaign);
    let known = sqlx::query(
        "SELECT DISTINCT n.n FROM unnest($3::uuid[], $4::uuid[], $5::text[]) WITH ORDINALITY AS n (holder, player, text, n) \
         JOIN memory m ON m.tenant_id = $1 AND m.campaign_id = $2 AND m.holder_id = n.holder AND m.subject_id = n.player \
             AND m.text = n.text",
    )
    .bind(tenant)
    .bind(campaign)
    .bind(all.iter().map(|m| m.holder).collect::<Vec<_>>())
    .bind(all.iter().map(|m| m.player).collect::<Vec<_>>())
    .bind(all.iter().map(|m| m.text).collect::<Vec<_>>())
    .fetch_all(&mut *place.tx.connection().await)
    .await?;
    let mut seen = HashSet::new();
    let known: HashSet<i64> = known.iter().map(|row| row.read("n")).collect::<Result<_>>()?;
    let new: Vec<Value> = (1_i64..)
        .zip(all)
        .filter(|(n, m)| !known.contains(n) && seen.insert((m.holder, m.player, m.text)))
        .map(|(_, m)| {
            json!({ "id": clock::id(), "holder_type": m.holder_type, "holder_id": m.holder, "subject_id": m.player,
                "text": m.text, "folded_text": search::stored(m.text) })
        })
        .collect();
    let count = u32::try_from(new.len()).unwrap_or(u32::MAX);
    if new.is_empty() {
        return Ok(0);
    }
    sqlx::query(
        "INSERT INTO memory (tenant_id, campaign_id, id, holder_type, holder_id, subject_id, text, folded_text, source, author) \
         SELECT $1, $2, id, holder_type, holder_id, subject_id, text, folded_text, 'import', $3 \
         FROM jsonb_array_elements($4) WITH ORDINALITY AS list (item, n), jsonb_populate_record(NULL::memory, list.item) ORDER BY list.n",
    )
    .bind(tenant)
    .bind(campaign)
    .bind(place.caller.author())
    .bind(Value::Array(new))
    .execute(&mut *place.tx.connection().await)
    .await?;
    Ok(count)
}
