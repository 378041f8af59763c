//! The entity documents of the MUD design that Tavernkeep unites (PascalCase or snake_case), idempotent
//! by slug: what is new is created, what differs is changed, what is the same is left alone.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, post, web};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sqlx::Row;
use utoipa::IntoParams;
use uuid::Uuid;

use super::{
    IMPORT_BYTES_MAX,
    report::{Imported, Report},
};
use crate::{
    app::App,
    auth::Caller,
    characters::Characters,
    error::{Error, Problem, Result},
    http::{
        Body, Reply, body, paging,
        resource::{self, Place, Ref, Resource, campaign_id, slug_of},
        validate,
    },
    lore::LoreEntries,
    memory,
    npcs::Npcs,
    owners::Owners,
    tenancy::{Origin, TenantTx},
};

/// Entities of an import.
const ENTITIES_MAX: usize = 10_000;

/// How to import.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct ImportParams {
    /// Whether to report what would happen and change nothing.
    dry_run: bool,
}

/// Imports entity documents: one, a list, or `{players, owners, npcs, lore}`; keys in PascalCase or snake_case.
#[utoipa::path(tag = "imports", operation_id = "import_seed", request_body = Object,
    params(("c" = String, Path, description = "Campaign id or slug"), ImportParams),
    responses((status = 200, body = Report), (status = "default", body = Problem)))]
#[post("/campaigns/{c}/import/seed")]
pub async fn seed(
    app: web::Data<App>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<Value, IMPORT_BYTES_MAX>,
) -> Result<Reply> {
    let asked: ImportParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    let mut actor = caller.actor();
    actor.origin = Origin::Import;
    let tx = TenantTx::write(&app.pool, &actor).await?;
    if let Some(key) = &body.idempotency
        && let Some(stored) = key.claim(&tx).await?
    {
        return Ok(stored);
    }
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    let place = Place { tx: &tx, campaign, caller: &caller };
    let report = import(&place, body.value, asked.dry_run).await?;
    let reply = Reply::ok(&report)?;
    if asked.dry_run {
        return Ok(reply); // the transaction is forgotten, and with it everything it did
    }
    if let Some(key) = &body.idempotency {
        key.store(&tx, &reply).await?;
    }
    tx.commit().await?;
    Ok(reply)
}

/// Imports documents in a transaction of the caller's.
///
/// # Errors
/// `validation_failed` with a pointer to the document that does not fit.
pub async fn import(place: &Place<'_>, documents: Value, dry_run: bool) -> Result<Report> {
    let sorted = sort(documents)?;
    let mut report = Report::new("seed", dry_run);
    report.campaign = slug_of_campaign(place).await?;
    let mut memories: Vec<(String, Value)> = Vec::new();
    for (pointer, kind, mut document) in sorted {
        if let Some(held) = document.remove("memories_about_players") {
            memories.push((slug(&document, &pointer)?, held));
        }
        let at = |mut e: Error| {
            e.errors.iter_mut().for_each(|f| f.pointer.insert_str(0, &pointer));
            e
        };
        let item = match kind {
            Kind::Character => upsert::<Characters>(place, character(document, &pointer)?).await,
            Kind::Owner => upsert::<Owners>(place, owner(document, &pointer)?).await,
            Kind::Npc => {
                let document = npc(document, &pointer, place, &mut report).await?;
                upsert::<Npcs>(place, document).await
            }
            Kind::Lore => upsert::<LoreEntries>(place, lore(document, &pointer)?).await,
        };
        report.note(item.map_err(at)?);
    }
    for (holder, held) in memories {
        remember(place, &holder, held, &mut report).await?;
    }
    Ok(report)
}

async fn slug_of_campaign(place: &Place<'_>) -> Result<String> {
    let row = sqlx::query("SELECT slug FROM campaign WHERE tenant_id = $1 AND id = $2")
        .bind(place.tx.tenant())
        .bind(place.campaign)
        .fetch_optional(&mut *place.tx.connection().await)
        .await?;
    Ok(row.map(|row| row.get("slug")).unwrap_or_default())
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Owner,
    Character,
    Npc,
    Lore,
}

type Document = Map<String, Value>;

/// The documents with where they stood, in the order in which they can refer to each other.
fn sort(documents: Value) -> Result<Vec<(String, Kind, Document)>> {
    let mut found = Vec::new();
    let mut take = |pointer: String, kind: Option<Kind>, value: Value| {
        let Value::Object(members) = value else {
            return Err(Error::invalid(pointer, "invalid_value", "An entity is an object."));
        };
        let document: Document = members.into_iter().map(|(k, v)| (snake(&k), v)).collect();
        let kind = kind.unwrap_or_else(|| kind_of(&document));
        found.push((pointer, kind, document));
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
                    return Err(Error::invalid(format!("/{name}"), "invalid_value", "A group of entities is a list."));
                };
                for (i, item) in items.into_iter().enumerate() {
                    take(format!("/{name}/{i}"), groups.get(snake(&name).as_str()).copied(), item)?;
                }
            }
        }
        one => take(String::new(), None, one)?,
    }
    if found.len() > ENTITIES_MAX {
        return Err(Error::invalid("", "too_many", format!("An import may hold {ENTITIES_MAX} entities.")));
    }
    found.sort_by_key(|(_, kind, _)| *kind);
    Ok(found)
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

/// `CurrentRoomID` and `currentRoomId` as `current_room_id`; what is in snake case stays.
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

/// Renames members, drops what is empty, and keeps what has no place here as clients' own keys.
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

/// The document's slug: its id if that is one, else made of id or name.
fn slug(document: &Document, pointer: &str) -> Result<String> {
    let given = ["slug", "id", "name", "title"].iter().find_map(|k| document.get(*k).and_then(Value::as_str));
    let given =
        given.ok_or_else(|| Error::invalid(format!("{pointer}/id"), "required", "An entity has an id or a name."))?;
    if validate::opt_slug(&Some(given.to_owned()), &()).is_ok() {
        return Ok(given.to_owned());
    }
    slug_of(given, "_")
        .ok_or_else(|| Error::invalid(format!("{pointer}/id"), "invalid_value", "This id cannot be a slug."))
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
        "influence",
        "external_ref",
        "extensions",
    ];
    Ok(tools(fit(document, &[("llm_prompt_context", "personality_prompt")], &known)))
}

async fn npc(document: Document, pointer: &str, place: &Place<'_>, report: &mut Report) -> Result<Document> {
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
        "external_ref",
        "extensions",
    ];
    let mut document = tools(fit(with_slug(document, pointer)?, &renames, &known));
    if let Some(Value::Array(owners)) = document.get_mut("owner_ids") {
        let mut kept = Vec::new();
        for owner in owners.drain(..) {
            let name = owner.as_str().unwrap_or_default().to_owned();
            match crate::actors::resolve(place, "", std::slice::from_ref(&name), &["owner"]).await {
                Ok(_) => kept.push(owner),
                Err(_) => report.warn(format!("{pointer}/owner_ids: there is no owner `{name}`; left out")),
            }
        }
        *owners = kept;
    }
    Ok(document)
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

/// Tools as `{Name, Description, Parameters}`.
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

/// Creates the row of a document, or changes it where it differs.
async fn upsert<R: Resource>(place: &Place<'_>, document: Document) -> Result<Imported> {
    let slug = document.get("slug").and_then(Value::as_str).unwrap_or_default().to_owned();
    let campaign = Ref::Id(place.campaign);
    let found = resource::find::<R>(place.tx, place.caller, Some(&campaign), &Ref::Slug(slug.clone())).await;
    let current = match found {
        Ok(model) => model,
        Err(e) if e.code.status() == 404 => {
            let input: R::Input = body::typed(Value::Object(document))?;
            validate::check(&input)?;
            let model = resource::insert::<R>(place, input).await?;
            return Ok(Imported { kind: R::TABLE, slug, id: Some(R::stamp(&model).id), action: "created" });
        }
        Err(e) => return Err(e),
    };
    let id = R::stamp(&current).id;
    let shown = serde_json::to_value(R::View::from(current)).map_err(Error::internal)?;
    let read_only: Vec<_> = resource::READ_ONLY.iter().chain(R::READ_ONLY).copied().collect();
    let before: R::Input = body::typed(crate::http::patch::apply(shown.clone(), json!({}), &read_only)?)?;
    let after: R::Input = body::typed(crate::http::patch::apply(shown, Value::Object(document), &read_only)?)?;
    validate::check(&after)?;
    let (before, after_columns) = (R::columns(place, before).await?, R::columns(place, after).await?);
    let differs = after_columns.iter().any(|(name, value)| !name.ends_with("_at") && before.get(name) != Some(value));
    if differs {
        resource::write_columns::<R>(place, id, after_columns).await?;
    }
    Ok(Imported { kind: R::TABLE, slug, id: Some(id), action: if differs { "updated" } else { "unchanged" } })
}

/// Memories as `{player: [text]}`; those that are there already are not written again.
async fn remember(place: &Place<'_>, holder: &str, held: Value, report: &mut Report) -> Result<()> {
    let Value::Object(players) = held else { return Ok(()) };
    let row =
        sqlx::query("SELECT actor_id, kind FROM actor_slug WHERE tenant_id = $1 AND campaign_id = $2 AND slug = $3")
            .bind(place.tx.tenant())
            .bind(place.campaign)
            .bind(holder)
            .fetch_one(&mut *place.tx.connection().await)
            .await?;
    let holder_type = if row.get::<&str, _>("kind") == "owner" { "owner" } else { "npc" };
    for (player, texts) in players {
        let Some(player_id) = crate::characters::service::find(place.tx, place.campaign, &player).await? else {
            report.warn(format!("{holder}: there is no character `{player}`; its memories are left out"));
            continue;
        };
        for text in texts.as_array().into_iter().flatten().filter_map(Value::as_str) {
            let text = memory::service::text(text, "/memories_about_players")?;
            let known = sqlx::query(
                "SELECT 1 FROM memory WHERE tenant_id = $1 AND holder_id = $2 AND subject_id = $3 AND text = $4",
            )
            .bind(place.tx.tenant())
            .bind(row.get::<Uuid, _>("actor_id"))
            .bind(player_id)
            .bind(text)
            .fetch_optional(&mut *place.tx.connection().await)
            .await?;
            if known.is_none() {
                let new = memory::service::NewMemory {
                    campaign: place.campaign,
                    holder_type,
                    holder: row.get("actor_id"),
                    player: player_id,
                    text,
                    source: "import",
                    author: Some(place.caller.author()),
                    turn: None,
                };
                memory::service::insert(place.tx, &new).await?;
                report.memories_created += 1;
            }
        }
    }
    Ok(())
}
