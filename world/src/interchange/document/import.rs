//! Imports a campaign document. New rows are created, different ones are changed, and equal ones are left as they are.
//! Nothing is deleted.

use std::{collections::HashSet, fmt, marker::PhantomData};

use actix_web::web;
use entity::{npc, owner, shapes::OwnerResource};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::{Map, Value, json, value::RawValue};
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::{BehaviorDocument, FORMAT, ROWS_MAX, VERSION, apart::read_apart, talk};
use crate::{
    campaigns::{Campaigns, fork},
    characters::Characters,
    interchange::{
        book::Members,
        names::Names,
        originals::value_of,
        report::{Imported, Report},
        rows::{self, Onto, Row, RowIdentity},
        text::string,
    },
    lore::LoreEntries,
    npcs::{Npcs, changes::BEHAVIORS_MAX},
    owners::{Owners, resources_fit},
    scenes::Scenes,
};
use base::{
    clock,
    error::{Code, Error, Result},
    json,
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        bounds, misfit, read,
        resource::{self, Place, Ref, Resource},
        validate,
    },
    limits,
};

/// The number of rows that are parsed at a time.
const CHUNK: usize = 500;

/// A document, split into rows that are not parsed yet.
pub struct Document {
    campaign: web::Bytes,
    owners: Vec<web::Bytes>,
    characters: Vec<web::Bytes>,
    npcs: Vec<web::Bytes>,
    scenes: Vec<web::Bytes>,
    lore: Vec<web::Bytes>,
    memories: Vec<web::Bytes>,
    messages: Vec<web::Bytes>,
}

/// A document while it is being split.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Split<'a> {
    format: String,
    version: u32,
    #[serde(borrow)]
    campaign: &'a RawValue,
    #[serde(borrow, default)]
    owners: Rows<'a>,
    #[serde(borrow, default)]
    characters: Rows<'a>,
    #[serde(borrow, default)]
    npcs: Rows<'a>,
    #[serde(borrow, default)]
    scenes: Rows<'a>,
    #[serde(borrow, default)]
    lore: Rows<'a>,
    #[serde(borrow, default)]
    memories: Rows<'a>,
    #[serde(borrow, default)]
    messages: Rows<'a>,
}

/// A list of rows that are not parsed yet. Its length is limited while it is split.
#[derive(Default)]
struct Rows<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Rows<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for List<'a> {
            type Value = Rows<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of rows")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Rows<'a>, A::Error> {
                let mut rows = Vec::new();
                while let Some(row) = seq.next_element::<&'de RawValue>()? {
                    if rows.len() == ROWS_MAX {
                        return Err(A::Error::custom(format!("a list has more than {ROWS_MAX} rows")));
                    }
                    rows.push(row);
                }
                Ok(Rows(rows))
            }
        }
        deserializer.deserialize_seq(List(PhantomData))
    }
}

/// Whether a text is a campaign document. Its `format` may be anywhere among its members.
#[must_use]
pub fn is_ours(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Top<'a> {
        #[serde(borrow)]
        format: std::borrow::Cow<'a, str>,
    }
    text.trim_start().starts_with('{') && serde_json::from_str::<Top<'_>>(text).is_ok_and(|top| top.format == FORMAT)
}

/// Splits a document into rows without parsing them. Takes time in proportion to its length.
///
/// # Errors
/// `bad_request` for invalid JSON, `validation_failed` for something that is not a campaign document.
pub fn read(bytes: &web::Bytes) -> Result<Document> {
    let split = split(bytes)?;
    if split.format != FORMAT {
        return Err(Error::invalid(
            "/format",
            "invalid_value",
            format!("A campaign document must have the format `{FORMAT}`."),
        ));
    }
    if split.version == 0 || split.version > VERSION {
        return Err(Error::invalid(
            "/version",
            "invalid_value",
            format!("This server can read versions up to {VERSION}."),
        ));
    }
    let own = |raw: &RawValue| bytes.slice_ref(raw.get().as_bytes());
    let all = |rows: Rows<'_>| rows.0.into_iter().map(own).collect();
    Ok(Document {
        campaign: own(split.campaign),
        owners: all(split.owners),
        characters: all(split.characters),
        npcs: all(split.npcs),
        scenes: all(split.scenes),
        lore: all(split.lore),
        memories: all(split.memories),
        messages: all(split.messages),
    })
}

/// Imports a document in the caller's transaction. If `slug` is given, it replaces the campaign's slug.
///
/// # Errors
/// `validation_failed` with a pointer to the value that does not fit; `forbidden` for a token of another campaign.
pub async fn import(
    tx: &TenantTx,
    caller: &Caller,
    document: &Document,
    slug: Option<&str>,
    dry_run: bool,
) -> Result<Report> {
    alone(tx).await?;
    let mut report = Report::new("tavernkeep", dry_run);
    let campaign = campaign(tx, caller, &document.campaign, slug, &mut report).await?;
    let place = Place { tx, campaign, caller };
    kind::<Owners>(&place, "/owners", &document.owners, owner_row, stored_of_owner, &mut report).await?;
    kind::<Characters>(&place, "/characters", &document.characters, plainly, |_| Map::new(), &mut report).await?;
    kind::<Npcs>(&place, "/npcs", &document.npcs, npc_row, stored_of_npc, &mut report).await?;
    kind::<Scenes>(&place, "/scenes", &document.scenes, plainly, |_| Map::new(), &mut report).await?;
    kind::<LoreEntries>(&place, "/lore", &document.lore, plainly, |_| Map::new(), &mut report).await?;
    if !document.memories.is_empty() || !document.messages.is_empty() {
        let names = Names::load(&place).await?;
        talk::memories(&place, &document.memories, &names, &mut report).await?;
        talk::messages(&place, &document.messages, &names, &mut report).await?;
    }
    limits::check_rows_kept(tx, caller.tenant.limits.rows_per_kind, fork::TABLES).await?;
    Ok(report)
}

/// Splits the text. Invalid JSON is reported before anything else.
fn split(bytes: &[u8]) -> Result<Split<'_>> {
    serde_json::from_str(json::text(bytes)?).or_else(|e| {
        if !e.is_data() {
            return Err(json::refused("The file", &e));
        }
        json::file(bytes)?;
        Err(Error::invalid(
            "",
            "invalid_value",
            format!("This is not a campaign document: {}.", misfit::in_words(&e.to_string())),
        ))
    })
}

/// Makes sure that a tenant runs one import at a time. Otherwise two imports of the same file would both create its
/// rows.
///
/// # Errors
/// `unavailable` if another import takes long.
pub async fn alone(tx: &TenantTx) -> Result<()> {
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('import:' || $1, 0))")
        .bind(tx.tenant().to_string())
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}

/// The members of a row.
fn object(value: Value, pointer: &str) -> Result<Members> {
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(Error::invalid(pointer, "invalid_value", "A row must be an object.")),
    }
}

/// Creates or changes the campaign itself.
async fn campaign(
    tx: &TenantTx,
    caller: &Caller,
    text: &[u8],
    slug: Option<&str>,
    report: &mut Report,
) -> Result<Uuid> {
    let (value, cleaned) = value_of(text, "/campaign")?;
    report.warn_of_control_characters(cleaned);
    let mut members = object(value, "/campaign")?;
    if let Some(slug) = slug
        && string(&members, "slug") != slug
    {
        members.insert("slug".to_owned(), slug.into());
        // With another slug it is another campaign, and an `external_ref` belongs to one campaign only.
        members.remove("external_ref");
    }
    let slug = members.get("slug").and_then(Value::as_str).map(ToOwned::to_owned);
    let slug = slug.ok_or_else(|| Error::invalid("/campaign/slug", "required", "The campaign must have a slug."))?;
    let found = sqlx::query("SELECT id FROM campaign WHERE tenant_id = $1 AND slug = $2 FOR NO KEY UPDATE")
        .bind(tx.tenant())
        .bind(&slug)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    let id = found.map(|row| row.read::<Uuid>("id")).transpose()?;
    if caller.campaign.is_some() && caller.campaign != id {
        return Err(Error::new(Code::Forbidden, "This token is for a different campaign."));
    }
    report.campaign.clone_from(&slug);
    let read = |members: Members| -> Result<_> {
        let input = bounds::read(Value::Object(members)).map_err(|e| rows::at(e, "/campaign"))?;
        validate::check(&input).map_err(|e| rows::at(e, "/campaign"))?;
        Ok(input)
    };
    let Some(id) = id else {
        let campaign = clock::id();
        let place = Place { tx, campaign, caller };
        report.in_force.note(&slug, None, &members);
        resource::insert::<Campaigns>(&place, read(members)?).await?;
        report.note(noted(slug, Some(campaign), ("created", Vec::new())));
        return Ok(campaign);
    };
    let place = Place { tx, campaign: id, caller };
    let model = resource::find::<Campaigns>(tx, caller, None, &Ref::Id(id)).await?;
    let Value::Object(mut shown) = serde_json::to_value(model).map_err(Error::internal)? else {
        return Err(Error::internal("a view is an object"));
    };
    shown.retain(|name, _| {
        !resource::READ_ONLY.contains(&name.as_str()) && !Campaigns::READ_ONLY.contains(&name.as_str())
    });
    let before = Campaigns::columns(&place, read(shown.clone())?).await?;
    shown.extend(members);
    let after = Campaigns::columns(&place, read(shown)?).await?;
    let action = if before == after { "unchanged" } else { "updated" };
    let changes = rows::changed_names(&before, &after);
    if before != after {
        report.in_force.note(&slug, Some(&before), &after);
        resource::write_columns::<Campaigns>(&place, id, after).await?;
    }
    report.note(noted(slug, Some(id), (action, changes)));
    Ok(id)
}

/// The report's line for the campaign itself.
fn noted(slug: String, id: Option<Uuid>, (action, changes): (&'static str, Vec<String>)) -> Imported {
    Imported { kind: "campaign", label: slug.clone(), slug, id, action, changes, edited_here: false }
}

/// Parses a row, which is identified by its slug.
fn row(value: Value, pointer: String, fit: fn(&mut Row) -> Result<()>) -> Result<Row> {
    let members = object(value, &pointer)?;
    let slug = members.get("slug").and_then(Value::as_str).map(ToOwned::to_owned);
    let slug = slug.ok_or_else(|| Error::invalid(format!("{pointer}/slug"), "required", "A row must have a slug."))?;
    let mut row = Row { members, identity: RowIdentity::BySlug(slug), onto: Onto::Replace, ..Row::at(pointer) };
    fit(&mut row)?;
    Ok(row)
}

/// Imports the rows of one kind, a few hundred at a time.
async fn kind<R: Resource>(
    place: &Place<'_>,
    at: &'static str,
    list: &[web::Bytes],
    fit: fn(&mut Row) -> Result<()>,
    raw: impl Fn(&R::Model) -> Map<String, Value>,
    report: &mut Report,
) -> Result<()>
where
    R::Model: Clone,
{
    let mut seen = HashSet::new();
    for (number, chunk) in list.chunks(CHUNK).enumerate() {
        let read = move |value, pointer| row(value, pointer, fit);
        let mut rows = read_apart(chunk, at, number * CHUNK, report, read).await?;
        name_players(place, &mut rows).await?;
        for row in &rows {
            if !row.slug().is_some_and(|slug| seen.insert(slug.to_owned())) {
                return Err(rows::twice(&row.pointer));
            }
        }
        rows::write::<R>(place, rows, &raw, report).await?;
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "others of its type can fail")]
fn plainly(row: &mut Row) -> Result<()> {
    row.members.remove("player_user");
    Ok(())
}

/// An owner's row: the time of its influence and its resources are columns but not members of the input.
fn owner_row(row: &mut Row) -> Result<()> {
    row.beside_first.insert("resources".to_owned(), json!([]));
    if let Some(resources) = row.members.remove("resources") {
        let at = format!("{}/resources", row.pointer);
        let resources: Vec<OwnerResource> = read::typed(resources).map_err(|e| e.below(&at))?;
        resources_fit(&resources).map_err(|why| Error::invalid(&at, "invalid_value", why.to_string()))?;
        row.beside.insert("resources".to_owned(), json!(resources));
    }
    let Some(Value::Object(influence)) = row.members.get_mut("influence") else { return Ok(()) };
    let Some(at) = influence.remove("at") else { return Ok(()) };
    let at = at.as_str().and_then(base::clock::parse_stored).ok_or_else(|| {
        Error::invalid(format!("{}/influence/at", row.pointer), "invalid_value", "This is not an RFC 3339 time.")
    })?;
    let at = at.min(base::clock::now());
    row.beside.insert("influence_at".to_owned(), at.format(&Rfc3339).map_err(Error::internal)?.into());
    Ok(())
}

fn stored_of_owner(model: &owner::Model) -> Map<String, Value> {
    let mut stored = Map::new();
    stored.insert("influence_current".to_owned(), json!(model.influence_current));
    stored.insert("resources".to_owned(), json!(model.resources));
    if let Ok(at) = model.influence_at.format(&Rfc3339) {
        stored.insert("influence_at".to_owned(), at.into());
    }
    stored
}

/// An NPC's row: its behaviors are a column but not a member of the input. [`name_players`] completes them.
fn npc_row(row: &mut Row) -> Result<()> {
    row.beside_first.insert("behaviors".to_owned(), json!([]));
    if let Some(behaviors) = row.members.remove("behaviors") {
        row.beside.insert("behaviors".to_owned(), behaviors);
    }
    Ok(())
}

fn stored_of_npc(model: &npc::Model) -> Map<String, Value> {
    Map::from_iter([("behaviors".to_owned(), json!(model.behaviors))])
}

/// Reads the behaviors of rows, and puts ids in place of the players' slugs.
async fn name_players(place: &Place<'_>, rows: &mut [Row]) -> Result<()> {
    let mut names = None;
    for row in rows {
        let Some(behaviors) = row.beside.get_mut("behaviors") else { continue };
        let at = format!("{}/behaviors", row.pointer);
        let told: Vec<BehaviorDocument> = read::typed(std::mem::take(behaviors)).map_err(|e| e.below(&at))?;
        if told.len() > BEHAVIORS_MAX {
            return Err(Error::invalid(&at, "too_long", format!("must have at most {BEHAVIORS_MAX} behaviors")));
        }
        let mut known = Vec::with_capacity(told.len());
        for (n, behavior) in told.into_iter().enumerate() {
            let names = match &mut names {
                Some(names) => names,
                none => none.insert(Names::load(place).await?),
            };
            known.push(behavior.known(names).map_err(|e| e.below(&format!("{at}/{n}")))?);
        }
        *behaviors = json!(known);
    }
    Ok(())
}
