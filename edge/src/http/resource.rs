//! Listing, reading, creating, patching and deleting rows of the world, the same for every kind.
//!
//! Each kind implements [`Resource`] and declares its routes with `world_routes!` (`routes`). This module does the rest:
//! paging (`list`), slugs (`slugs`), and ETags, merge patches and idempotency (`write`). The rules of a kind are not
//! decided here.

mod deletion;
mod list;
mod routes;
mod slugs;
mod write;

pub use list::{find_page, list, paged, selected};
pub use slugs::{free_slug, free_slug_in, scope_key, slug_of, slugs_for};
pub use write::{
    change, change_held, change_in, create, delete, fold_columns, insert, insert_columns, patch, plain_columns, remove,
    returning, update, write_columns,
};

use actix_web::{HttpRequest, HttpResponse};
use entity::{campaign, shapes::Extensions};
use sea_orm::{
    ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QuerySelect, QueryTrait, Select,
    sea_query::{Alias, Expr, ExprTrait, LockType},
};
use serde::{Serialize, Serializer, de::DeserializeOwned};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Answer, paging::SortKey};
use crate::{caller::Caller, state::Edge};
use base::error::{Error, Result};
use db::tenancy::{SingleReads, TenantTx};

/// A path segment that names a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ref {
    Id(Uuid),
    Slug(String),
}

impl Ref {
    /// Reads an id or a slug.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Uuid::try_parse(text).map_or_else(|_| Self::Slug(text.to_owned()), Self::Id)
    }

    /// The condition that a column holds this row's id. `by_slug` is a query for the ids of the slug `$1` in the
    /// campaign of the row.
    #[must_use]
    pub fn is_in(&self, column: &str, by_slug: &str) -> Expr {
        match self {
            Self::Id(id) => col(column).eq(*id),
            Self::Slug(slug) => {
                Expr::cust_with_values(format!("{column} IN ({by_slug})"), [sea_orm::Value::from(slug.as_str())])
            }
        }
    }

    fn matches<R: Resource>(&self) -> Expr {
        match self {
            Self::Slug(_) if !R::HAS_SLUG => col("id").is_null(),
            named => named.is_this(),
        }
    }

    /// The condition that a row has this id or slug.
    fn is_this(&self) -> Expr {
        match self {
            Self::Id(id) => col("id").eq(*id),
            Self::Slug(slug) => col("slug").eq(slug.as_str()),
        }
    }
}

/// Values that every row has.
pub struct Stamp<'a> {
    pub id: Uuid,
    pub version: i64,
    pub label: &'a str,
    pub updated_at: OffsetDateTime,
}

/// The place where a row is written, for checks that look at related rows.
pub struct Place<'a> {
    pub tx: &'a TenantTx,
    pub campaign: Uuid,
    pub caller: &'a Caller,
}

/// One kind of row of the world.
pub trait Resource: Sized + 'static {
    /// The table. Messages use it as the name of the kind.
    const TABLE: &'static str;
    /// The column with a row's name or title: lists sort by it and search it.
    const LABEL: &'static str = "name";
    /// Whether rows belong to a campaign (all kinds but campaigns themselves).
    const IN_CAMPAIGN: bool = true;
    /// Whether the kind shares the slugs of characters, NPCs and owners.
    const IS_ACTOR: bool = false;
    /// Whether rows list tools of an AI in `available_tools`.
    const LISTS_TOOLS: bool = false;
    /// Whether rows have a slug.
    const HAS_SLUG: bool = true;
    /// Whether the order of creation is the number in the column `seq`, and not that of ids: the clocks of servers differ.
    const IS_NUMBERED: bool = false;
    /// Members of the view that a client cannot write, in addition to those of every row.
    const READ_ONLY: &'static [&'static str] = &[];
    /// Members of the view that are not shown to a player's token.
    const HIDDEN_FROM_PLAYERS: &'static [&'static str] = &[];
    /// Those of them that are shown to nobody without the scope `gm`.
    const ONLY_FOR_GM: &'static [&'static str] = &[];
    /// The database function that searches rows under row security. If there is none, the label is searched.
    const SEARCH: Option<&'static str> = None;

    /// The columns with text or lists of texts that are stored folded as well, for searching ([`fold_columns`]).
    const FOLDED: &'static [&'static str] = &[];

    /// The member that refers to actors by id or slug, and the kinds it may refer to.
    const NAMES_ACTORS: Option<(&'static str, &'static [&'static str])> = None;

    /// The orders that the list supports; each has an index.
    const SORTS: &'static [SortKey] = &[SortKey::Created, SortKey::Updated, SortKey::Name];

    type Entity: EntityTrait<Model = Self::Model>;
    type Model: FromQueryResult + Send + Sync;
    type View: Serialize + From<Self::Model>;
    type Input: Serialize + DeserializeOwned + ToSchema + garde::Validate<Context = ()>;
    type Filter: DeserializeOwned;

    fn stamp(model: &Self::Model) -> Stamp<'_>;

    /// The value of a numeric column that the list can be sorted by.
    fn number(_: &Self::Model, _: SortKey) -> Option<i64> {
        None
    }

    /// Leaves out rows that the caller may not see.
    fn restrict(select: Select<Self::Entity>, _: &Caller) -> Select<Self::Entity> {
        select
    }

    /// Applies the list's filters.
    ///
    /// # Errors
    /// `bad_request` for an invalid value.
    fn filter(select: Select<Self::Entity>, _: &Self::Filter) -> Result<Select<Self::Entity>> {
        Ok(select)
    }

    /// Checks whether a row may be deleted, beyond what foreign keys check.
    ///
    /// # Errors
    /// `referenced`.
    fn may_delete(_: &TenantTx, _: &Self::Model) -> impl Future<Output = Result<()>> {
        async { Ok(()) }
    }

    /// Deletes a row that the transaction has locked. Returns the turns that were asked to stop because of it.
    ///
    /// # Errors
    /// `referenced`.
    fn delete(tx: &TenantTx, id: Uuid) -> impl Future<Output = Result<Vec<Uuid>>> {
        deletion::delete_row(tx, Self::TABLE, id)
    }

    /// Rules for what a client sends that do not apply to what is already stored.
    ///
    /// # Errors
    /// `validation_failed`.
    fn check_sent(_: &Value) -> Result<()> {
        Ok(())
    }

    /// Members that a patch does not carry over, because nobody set them and they depend on something the patch
    /// changes. `columns` sees them as absent.
    fn derived(_before: &Value, _changes: &Value) -> &'static [&'static str] {
        &[]
    }

    /// What [`Self::changed`] compares with the row as it is then.
    fn watched(_: &Self::Model) -> Option<String> {
        None
    }

    /// What follows from a client's change of a row, in its transaction.
    ///
    /// # Errors
    /// Database errors.
    fn changed(_: &Place<'_>, _before: Option<String>, _: &Self::Model) -> impl Future<Output = Result<()>> {
        async { Ok(()) }
    }

    /// Fixes an older content of a row before it is restored: rows that it refers to may be gone.
    fn before_restore(_: &Place<'_>, _: &mut Map<String, Value>) -> impl Future<Output = Result<()>> {
        async { Ok(()) }
    }

    /// The columns in which a valid input is stored: references are resolved and derived columns filled in.
    fn columns(place: &Place<'_>, input: Self::Input) -> impl Future<Output = Result<Map<String, Value>>>;

    /// Like [`Self::columns`], for an input whose actors are ids that are known to exist. The caller checks them for
    /// many rows at once.
    fn columns_of_known(place: &Place<'_>, input: Self::Input) -> impl Future<Output = Result<Map<String, Value>>> {
        Self::columns(place, input)
    }
}

/// Members of every row that a client cannot write.
pub const READ_ONLY: &[&str] = &["id", "campaign_id", "version", "created_at", "updated_at"];

/// A column by name.
pub fn col(name: &str) -> Expr {
    Expr::col(Alias::new(name))
}

/// Restricts a select to one campaign, given by id or slug, if the caller's token allows it.
fn in_campaign<E: EntityTrait>(select: Select<E>, caller: &Caller, campaign: &Ref) -> Select<E> {
    // The campaign is looked up even by id: some rows of a deleted campaign may still exist.
    let found = campaign_named(caller, campaign).into_query();
    let select = select.filter(col("campaign_id").in_subquery(found));
    let select = match campaign {
        // This lets PostgreSQL choose the right index.
        Ref::Id(id) => select.filter(col("campaign_id").eq(*id)),
        Ref::Slug(_) => select,
    };
    match caller.campaign {
        Some(only) => select.filter(col("campaign_id").eq(only)),
        None => select,
    }
}

fn visible<R: Resource>(caller: &Caller, campaign: Option<&Ref>) -> Select<R::Entity> {
    let select = R::Entity::find().filter(col("tenant_id").eq(caller.tenant_id()));
    let select = match (campaign, caller.campaign) {
        (Some(campaign), _) => in_campaign(select, caller, campaign),
        (None, Some(only)) => select.filter(col("id").eq(only)),
        (None, None) => select,
    };
    R::restrict(select, caller)
}

/// The id of a campaign the caller may see.
///
/// # Errors
/// `not_found`.
pub async fn campaign_id(tx: &TenantTx, caller: &Caller, campaign: &Ref) -> Result<Uuid> {
    id_of(campaign_named(caller, campaign), tx).await
}

/// Finds the id of a campaign, if the caller may see it.
fn campaign_named(caller: &Caller, named: &Ref) -> Select<campaign::Entity> {
    let select = campaign::Entity::find().select_only().column(campaign::Column::Id);
    let select = select.filter(col("tenant_id").eq(caller.tenant_id())).filter(named.is_this());
    match caller.campaign {
        Some(only) => select.filter(col("id").eq(only)),
        None => select,
    }
}

async fn id_of(select: Select<campaign::Entity>, db: &impl ConnectionTrait) -> Result<Uuid> {
    select.into_tuple().one(db).await?.ok_or_else(|| Error::not_found("campaign"))
}

/// One row.
///
/// # Errors
/// `not_found`, also if the row exists but the caller may not see it.
pub async fn find<R: Resource>(tx: &TenantTx, caller: &Caller, campaign: Option<&Ref>, x: &Ref) -> Result<R::Model> {
    visible::<R>(caller, campaign).filter(x.matches::<R>()).one(tx).await?.ok_or_else(|| Error::not_found(R::TABLE))
}

/// Like [`find`], and locks the row until the transaction ends. Others may still refer to it: a stronger lock would wait for whoever
/// inserts a row that refers to this one, who may in turn wait for this transaction.
///
/// # Errors
/// `not_found`, also if the row exists but the caller may not see it.
pub async fn hold<R: Resource>(tx: &TenantTx, caller: &Caller, campaign: Option<&Ref>, x: &Ref) -> Result<R::Model> {
    locked::<R>(tx, caller, campaign, x, LockType::NoKeyUpdate).await
}

/// Like [`hold`], before the row is deleted or its key changes. Nobody can refer to it meanwhile.
///
/// # Errors
/// `not_found`, also if the row exists but the caller may not see it.
pub async fn hold_key<R: Resource>(
    tx: &TenantTx,
    caller: &Caller,
    campaign: Option<&Ref>,
    x: &Ref,
) -> Result<R::Model> {
    locked::<R>(tx, caller, campaign, x, LockType::Update).await
}

async fn locked<R: Resource>(
    tx: &TenantTx,
    caller: &Caller,
    campaign: Option<&Ref>,
    x: &Ref,
    lock: LockType,
) -> Result<R::Model> {
    let select = visible::<R>(caller, campaign).filter(x.matches::<R>()).lock(lock);
    select.one(tx).await?.ok_or_else(|| Error::not_found(R::TABLE))
}

/// A row as its caller may see it.
#[derive(Clone, Debug)]
pub struct Shown<V> {
    pub row: V,
    /// Members that the caller does not see.
    hidden: &'static [&'static str],
}

impl<V: Serialize> Serialize for Shown<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        if self.hidden.is_empty() {
            return self.row.serialize(serializer);
        }
        let mut value = serde_json::to_value(&self.row).map_err(serde::ser::Error::custom)?;
        if let Value::Object(members) = &mut value {
            self.hidden.iter().for_each(|name| drop(members.remove(*name)));
        }
        value.serialize(serializer)
    }
}

/// The row as the caller may see it.
pub fn shown<R: Resource>(model: R::Model, caller: &Caller) -> Shown<R::View> {
    let hidden = match (caller.is_player(), caller.sees_secrets()) {
        (true, _) => R::HIDDEN_FROM_PLAYERS,
        (false, false) => R::ONLY_FOR_GM,
        (false, true) => &[],
    };
    Shown { row: model.into(), hidden }
}

/// The members of the row that the caller may see.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub fn view<R: Resource>(model: R::Model, caller: &Caller) -> Result<Value> {
    serde_json::to_value(shown::<R>(model, caller)).map_err(Error::internal)
}

/// GET of one row. Takes one round trip.
///
/// # Errors
/// `not_found`.
pub async fn get<R: Resource>(
    app: &Edge,
    caller: &Caller,
    request: &HttpRequest,
    c: Option<&str>,
    x: &str,
) -> Result<HttpResponse> {
    let db = SingleReads::new(&app.pool, caller.tenant_id());
    let select = visible::<R>(caller, c.map(Ref::parse).as_ref()).filter(Ref::parse(x).matches::<R>());
    let model = select.filter(db.condition()).one(&db).await?.ok_or_else(|| Error::not_found(R::TABLE))?;
    answer::<R>(model, caller).unless_known(request)
}

/// The answer that is this row.
fn answer<R: Resource>(model: R::Model, caller: &Caller) -> Answer<Shown<R::View>> {
    Answer::versioned(R::stamp(&model).version, shown::<R>(model, caller))
}

/// An empty set of clients' own keys.
#[must_use]
pub fn no_extensions() -> Extensions {
    Extensions::new()
}
