//! What characters, NPCs and owners share: one namespace of slugs, and the tools that an AI entity may call.

use std::collections::{HashMap, HashSet};

use entity::shapes::ToolRef;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use base::{
    error::{Code, Error, FieldError, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::http::resource::{Place, Ref};

/// The actors that exist among those a request names, by id and by slug.
#[derive(Debug, Default)]
pub struct ActorIndex {
    ids: HashSet<Uuid>,
    by_slug: HashMap<String, Uuid>,
}

impl ActorIndex {
    /// Looks up actors of the given kinds by id or slug. One statement, or none if `names` is empty.
    ///
    /// # Errors
    /// Database errors.
    pub async fn look(place: &Place<'_>, names: &[&str], kinds: &[&str]) -> Result<Self> {
        let mut known = Self::default();
        if names.is_empty() {
            return Ok(known);
        }
        let rows = sqlx::query(
            "SELECT actor_id, slug FROM actor_slug WHERE tenant_id = $1 AND campaign_id = $2 AND kind = ANY ($3) \
             AND (slug = ANY ($4) OR actor_id = ANY ($5))",
        )
        .bind(place.tx.tenant())
        .bind(place.campaign)
        .bind(kinds)
        .bind(names)
        .bind(names.iter().filter_map(|n| Uuid::try_parse(n).ok()).collect::<Vec<_>>())
        .fetch_all(&mut *place.tx.connection().await)
        .await?;
        for row in rows {
            known.ids.insert(row.read("actor_id")?);
            known.by_slug.insert(row.read("slug")?, row.read("actor_id")?);
        }
        Ok(known)
    }

    /// The actors' ids in the order of `names`, without duplicates. `kinds` is used in the error message.
    ///
    /// # Errors
    /// `validation_failed` with `unknown_reference` for each unknown name.
    pub fn ids(&self, pointer: &str, names: &[&str], kinds: &[&str]) -> Result<Vec<Uuid>> {
        let mut ids = Vec::with_capacity(names.len());
        let mut errors = Vec::new();
        for (i, name) in names.iter().enumerate() {
            let found = match Ref::parse(name) {
                Ref::Id(id) => self.ids.get(&id),
                Ref::Slug(slug) => self.by_slug.get(&slug),
            };
            match found {
                Some(id) if !ids.contains(id) => ids.push(*id),
                Some(_) => {}
                None => errors.push(FieldError {
                    pointer: format!("{pointer}/{i}"),
                    code: "unknown_reference".into(),
                    message: format!("There is no such {} in this campaign.", kinds.join(" or ")),
                }),
            }
        }
        if errors.is_empty() { Ok(ids) } else { Err(Error::validation(errors)) }
    }
}

/// The ids of actors that a request's body names by id or slug, in the order given.
///
/// # Errors
/// `validation_failed` with `unknown_reference` for each unknown name.
pub async fn resolve(place: &Place<'_>, pointer: &str, names: &[String], kinds: &[&str]) -> Result<Vec<Uuid>> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    ActorIndex::look(place, &names, kinds).await?.ids(pointer, &names, kinds)
}

/// The slugs and kinds of a campaign's first 1,000 actors, for pages that offer a choice. One statement.
///
/// # Errors
/// Database errors.
pub async fn all(tx: &TenantTx, campaign: Uuid) -> Result<Vec<(String, String)>> {
    let rows = sqlx::query(
        "SELECT slug, kind FROM actor_slug WHERE tenant_id = $1 AND campaign_id = $2 ORDER BY slug LIMIT 1000",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter().map(|row| Ok((row.read("slug")?, row.read("kind")?))).collect()
}

/// Names of actors by id. One statement, or none if `ids` is empty.
///
/// # Errors
/// Database errors.
pub async fn called(tx: &TenantTx, ids: &[Uuid]) -> Result<HashMap<Uuid, String>> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query(
        "SELECT id, name FROM npc WHERE tenant_id = $1 AND id = ANY ($2) \
         UNION ALL SELECT id, name FROM owner WHERE tenant_id = $1 AND id = ANY ($2) \
         UNION ALL SELECT id, name FROM character WHERE tenant_id = $1 AND id = ANY ($2)",
    )
    .bind(tx.tenant())
    .bind(ids)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter().map(|row| Ok((row.read("id")?, row.read("name")?))).collect()
}

/// Slugs of actors, or the id for an actor that no longer exists, in the order given. One statement, or none if `ids`
/// is empty.
///
/// # Errors
/// Database errors.
pub async fn names(tx: &TenantTx, ids: &[Uuid]) -> Result<Vec<String>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(
        "SELECT coalesce(a.slug, named.id::text) AS name FROM unnest($2::uuid[]) WITH ORDINALITY AS named (id, n) \
         LEFT JOIN actor_slug a ON a.tenant_id = $1 AND a.actor_id = named.id ORDER BY n",
    )
    .bind(tx.tenant())
    .bind(ids)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter().map(|row| row.read("name")).collect()
}

/// Those of the given actors that exist, in the order given.
///
/// # Errors
/// Database errors.
pub async fn existing(place: &Place<'_>, ids: &[Uuid]) -> Result<Vec<Uuid>> {
    let rows = sqlx::query(
        "SELECT id FROM unnest($3::uuid[]) WITH ORDINALITY AS named (id, n) WHERE EXISTS (              SELECT FROM actor_slug a WHERE a.tenant_id = $1 AND a.campaign_id = $2 AND a.actor_id = named.id) ORDER BY n",
    )
    .bind(place.tx.tenant())
    .bind(place.campaign)
    .bind(ids)
    .fetch_all(&mut *place.tx.connection().await)
    .await?;
    rows.iter().map(|row| row.read("id")).collect()
}

/// Checks that no lore entry is restricted to an actor that is about to be deleted.
///
/// # Errors
/// `referenced` if a lore entry names it in `known_by`.
pub async fn may_be_forgotten(tx: &TenantTx, campaign: Uuid, actor: Uuid) -> Result<()> {
    let named = sqlx::query(
        "SELECT id, slug, count(*) OVER () AS n FROM lore \
         WHERE tenant_id = $1 AND campaign_id = $2 AND known_by @> ARRAY[$3] ORDER BY slug LIMIT $4",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(actor)
    .bind(REFERENCES_NAMED_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let Some(first) = named.first() else { return Ok(()) };
    let detail = match first.read::<i64>("n")? {
        1 => format!("The lore entry `{}` names it in `known_by`.", first.read::<&str>("slug")?),
        n => format!("{n} lore entries name it in `known_by`, among them `{}`.", first.read::<&str>("slug")?),
    };
    let mut error = Error::new(Code::Referenced, detail);
    let field = |row: &PgRow| {
        Ok(FieldError {
            pointer: format!("/lore/{}", row.read::<Uuid>("id")?),
            code: "referenced".into(),
            message: format!("The lore entry `{}` names it in `known_by`.", row.read::<&str>("slug")?),
        })
    };
    error.errors = stored::each(&named, field);
    Err(error)
}

/// The most references that an error lists.
const REFERENCES_NAMED_MAX: i64 = 100;

/// The most tools that a row may list.
pub const TOOLS_MAX: usize = 100;

/// Checks a list of tools: its length and the form of the names. A list that is written over the API may name only
/// tools that exist (`Above::check_tools`). Of a list in a file, others are left out.
pub fn tool_refs(tools: &[ToolRef], _: &()) -> garde::Result {
    if tools.len() > TOOLS_MAX {
        return Err(garde::Error::new(format!("must have at most {TOOLS_MAX} tools")));
    }
    let is_name =
        |n: &str| (1..=64).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
    if !tools.iter().all(|t| is_name(t.name())) {
        return Err(garde::Error::new("tool names must consist of 1 to 64 letters, digits, `_`, `-` or `.`"));
    }
    if tools.iter().filter_map(ToolRef::description).any(|d| d.chars().count() > 2000) {
        return Err(garde::Error::new("a tool's description must have at most 2000 characters"));
    }
    Ok(())
}

/// Checks the model profile that an NPC or owner names. A slug without a profile is accepted if an NPC or owner of the campaign already
/// has it, so that imported rows can be changed. One statement, or none without a slug.
///
/// # Errors
/// `validation_failed` at `/model`.
pub async fn model_exists(place: &Place<'_>, slug: Option<&str>) -> Result<()> {
    let Some(slug) = slug else { return Ok(()) };
    let row = sqlx::query(
        "SELECT EXISTS (SELECT FROM model_profile p WHERE p.tenant_id = $1 AND p.slug = $3 FOR KEY SHARE) \
           OR EXISTS (SELECT FROM npc n WHERE n.tenant_id = $1 AND n.model = $3 AND n.campaign_id = $2) \
           OR EXISTS (SELECT FROM owner o WHERE o.tenant_id = $1 AND o.model = $3 AND o.campaign_id = $2) AS is_known",
    )
    .bind(place.tx.tenant())
    .bind(place.campaign)
    .bind(slug)
    .fetch_one(&mut *place.tx.connection().await)
    .await?;
    if row.read("is_known")? {
        return Ok(());
    }
    Err(Error::invalid("/model", "unknown_reference", format!("There is no model profile `{slug}`.")))
}

/// The error for an actor whose row AI tools must not change (`ai_lock`).
#[must_use]
pub fn locked(name: &str) -> Error {
    Error::new(Code::Locked, format!("{name} is locked: AI tools must not change it."))
}

/// An actor of these kinds, by id or slug. Takes one statement.
///
/// # Errors
/// Those of the database.
pub async fn find(tx: &TenantTx, campaign: Uuid, kinds: &[&str], name: &str) -> Result<Option<Uuid>> {
    let (id, slug) = match Ref::parse(name) {
        Ref::Id(id) => (Some(id), None),
        Ref::Slug(slug) => (None, Some(slug)),
    };
    let row = sqlx::query(
        "SELECT actor_id FROM actor_slug WHERE tenant_id = $1 AND campaign_id = $2 AND kind = ANY ($3) \
         AND (actor_id = $4 OR slug = $5)",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(kinds)
    .bind(id)
    .bind(slug)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map(|row| row.read("actor_id")).transpose()
}
