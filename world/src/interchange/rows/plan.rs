//! Decides for one row whether it is created, changed or left as it is.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    row::{Onto, Row, RowIdentity, changed_names, twice},
    slugs::Slugs,
    stored::{Found, Stored},
};
use crate::{actors, guidance::draft};
use base::{
    clock,
    error::{Code, Error, Result},
};
use edge::http::{
    bounds, patch, read,
    resource::{self, Place, Resource},
    validate,
};

/// What is to be done with a row, and its columns.
pub(super) struct Plan {
    pub(super) id: Uuid,
    pub(super) columns: Map<String, Value>,
    pub(super) action: &'static str,
    pub(super) slug: String,
    /// The name or title that the row has here.
    pub(super) label: String,
    /// The names of the fields that are overwritten.
    pub(super) changes: Vec<String>,
}

/// The state while rows of one kind are written.
pub(super) struct Writer<'a> {
    pub(super) place: &'a Place<'a>,
    pub(super) slugs: Slugs,
    /// Existing rows that the file has already referred to. Each may occur only once.
    pub(super) met: HashSet<Uuid>,
}

impl Writer<'_> {
    /// None for an existing row with the same origin that the caller may not see.
    pub(super) async fn plan<R: Resource>(
        &mut self,
        mut row: Row,
        stored: &Stored<R::Model>,
        actors: &actors::ActorIndex,
        raw: &impl Fn(&R::Model) -> Map<String, Value>,
    ) -> Result<Option<Plan>>
    where
        R::Model: Clone,
    {
        settle::<R>(&mut row.members, actors)?;
        let Some(found) = stored.find(&row.identity) else { return self.created::<R>(row).await.map(Some) };
        if stored.hidden.contains(&found.id) {
            return match row.identity {
                RowIdentity::BySlug(_) => Err(Error::new(Code::SlugTaken, "This slug is taken in this campaign.")),
                RowIdentity::ByOrigin { .. } => Ok(None),
            };
        }
        if !self.met.insert(found.id) {
            return Err(twice(""));
        }
        self.changed::<R>(row, found, raw).await.map(Some)
    }

    async fn created<R: Resource>(&mut self, mut row: Row) -> Result<Plan> {
        let slug = match &row.identity {
            RowIdentity::BySlug(slug) => slug.clone(),
            RowIdentity::ByOrigin { reference, .. } => {
                row.members.insert("external_ref".to_owned(), reference.as_str().into());
                self.slugs.take::<R>(&row)
            }
        };
        row.members.insert("slug".to_owned(), slug.as_str().into());
        if row.is_strangers && R::LISTS_TOOLS {
            draft::keep_apart(&mut row.members, None);
        }
        for (name, value) in row.at_first {
            row.members.entry(name).or_insert(value);
        }
        let label = label_of::<R>(&row.members);
        let mut columns = R::columns_of_known(self.place, checked::<R>(row.members)?).await?;
        columns.extend(row.beside_first);
        columns.extend(row.beside);
        let id = clock::id();
        columns.insert("id".to_owned(), json!(id));
        columns.insert("tenant_id".to_owned(), json!(self.place.tx.tenant()));
        columns.insert("campaign_id".to_owned(), json!(self.place.campaign));
        Ok(Plan { id, columns, action: "created", slug, label, changes: Vec::new() })
    }

    async fn changed<R: Resource>(
        &self,
        mut row: Row,
        found: &Found<R::Model>,
        raw: &impl Fn(&R::Model) -> Map<String, Value>,
    ) -> Result<Plan> {
        let Found { id, model, shown } = found;
        let slug = shown.get("slug").and_then(Value::as_str).unwrap_or_default().to_owned();
        row.members.remove("slug");
        if row.is_strangers && R::LISTS_TOOLS {
            draft::keep_apart(&mut row.members, Some(shown));
        }
        let before: R::Input = read::typed(Value::Object(shown.clone()))?;
        let after_input = checked::<R>(met(shown.clone(), row.members, row.onto))?;
        let label = label_of::<R>(shown);
        let same = Plan { id: *id, columns: Map::new(), action: "unchanged", slug, label, changes: Vec::new() };
        let mut changes = changed_names(&resource::plain_columns(&before)?, &resource::plain_columns(&after_input)?);
        // Rows with equal members are stored equally. Nothing needs to be resolved or counted for them.
        if row.beside.is_empty() && changes.is_empty() {
            return Ok(same);
        }
        let mut before = R::columns_of_known(self.place, before).await?;
        before.extend(raw(model));
        // What the file does not set stays.
        let mut after = raw(model);
        after.extend(R::columns_of_known(self.place, after_input).await?);
        let timed: Vec<String> = row.beside.keys().cloned().collect();
        after.extend(row.beside);
        // Columns for times are set anew at each write. They are a difference only if the file sets them.
        let mut differs = changed_names(&before, &after);
        differs.retain(|name| !name.ends_with("_at") || timed.contains(name));
        if differs.is_empty() {
            return Ok(same);
        }
        if changes.is_empty() {
            changes = differs;
        }
        after.insert("id".to_owned(), json!(id));
        Ok(Plan { columns: after, action: "updated", changes, ..same })
    }
}

/// The name or title of a row.
fn label_of<R: Resource>(members: &Map<String, Value>) -> String {
    members.get(R::LABEL).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Combines a stored row with the members from the file.
fn met(mut shown: Map<String, Value>, mut members: Map<String, Value>, onto: Onto) -> Map<String, Value> {
    match onto {
        Onto::Replace => {}
        Onto::BesideExtensions => {
            if let Some(Value::Object(added)) = members.remove("extensions")
                && let Some(Value::Object(own)) = shown.get_mut("extensions")
            {
                own.extend(added);
            }
        }
        Onto::Merge => {
            let mut merged = Value::Object(shown);
            patch::merge(&mut merged, Value::Object(members));
            return if let Value::Object(merged) = merged { merged } else { Map::new() };
        }
    }
    shown.extend(members);
    shown
}

fn checked<R: Resource>(members: Map<String, Value>) -> Result<R::Input> {
    let input: R::Input = bounds::read(Value::Object(members))?;
    validate::check(&input)?;
    Ok(input)
}

/// The largest number of actors that one row may name. The limits of the kinds are not higher, and reject longer lists.
const ACTORS_NAMED_MAX: usize = 200;

/// The actors that a row names, if they are a list of names.
fn named<'a>(members: &'a Map<String, Value>, member: &str) -> Option<Vec<&'a str>> {
    let names = members.get(member)?.as_array().filter(|names| names.len() <= ACTORS_NAMED_MAX)?;
    names.iter().map(Value::as_str).collect()
}

/// Looks up all actors that the rows name, at once.
pub(super) async fn look_up_actors<R: Resource>(place: &Place<'_>, rows: &[Row]) -> Result<actors::ActorIndex> {
    let Some((member, kinds)) = R::NAMES_ACTORS else { return Ok(actors::ActorIndex::default()) };
    let names: HashSet<&str> = rows.iter().filter_map(|row| named(&row.members, member)).flatten().collect();
    actors::ActorIndex::look(place, &names.into_iter().collect::<Vec<_>>(), kinds).await
}

/// Replaces the names of actors by their ids.
fn settle<R: Resource>(members: &mut Map<String, Value>, actors: &actors::ActorIndex) -> Result<()> {
    let Some((member, kinds)) = R::NAMES_ACTORS else { return Ok(()) };
    let Some(names) = named(members, member) else { return Ok(()) };
    let ids = actors.ids(&format!("/{member}"), &names, kinds)?;
    members.insert(member.to_owned(), json!(ids));
    Ok(())
}
