//! The existing rows that an import compares with. They are read and locked in one statement, so that what is compared
//! is also what is overwritten. Other rows can still refer to the locked rows, so turns continue during a large import.

use std::collections::{HashMap, HashSet};

use sea_orm::{
    EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, ExprTrait, LockType},
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::row::{Row, RowIdentity};
use base::error::{Error, Result};
use edge::http::resource::{self, Place, Resource, col};

/// An existing row, and its current members as an input.
pub(super) struct Found<M> {
    pub(super) id: Uuid,
    pub(super) model: M,
    pub(super) shown: Map<String, Value>,
}

/// Existing rows, locked, with indexes.
pub(super) struct Stored<M> {
    found: Vec<Found<M>>,
    by_slug: HashMap<String, usize>,
    by_reference: HashMap<String, usize>,
    by_id: HashMap<Uuid, usize>,
    /// Rows that the caller may not see.
    pub(super) hidden: HashSet<Uuid>,
}

impl<M: Clone> Stored<M> {
    pub(super) async fn look<R: Resource<Model = M>>(place: &Place<'_>, rows: &[Row]) -> Result<Self> {
        let (mut slugs, mut references, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            match &row.identity {
                RowIdentity::BySlug(slug) => slugs.push(slug.clone()),
                RowIdentity::ByOrigin { id, reference, .. } => {
                    references.push(reference.clone());
                    ids.extend(*id);
                }
            }
        }
        let models = R::Entity::find()
            .filter(col("tenant_id").eq(place.tx.tenant()))
            .filter(col("campaign_id").eq(place.campaign))
            .filter(Expr::cust_with_values(
                "(slug = ANY ($1) OR external_ref = ANY ($2) OR id = ANY ($3))",
                [sea_orm::Value::from(slugs), sea_orm::Value::from(references), sea_orm::Value::from(ids)],
            ))
            .order_by(col("id"), Order::Asc)
            .lock(LockType::NoKeyUpdate)
            .all(place.tx)
            .await?;
        let mut stored = Self {
            found: Vec::with_capacity(models.len()),
            by_slug: HashMap::new(),
            by_reference: HashMap::new(),
            by_id: HashMap::new(),
            hidden: HashSet::new(),
        };
        models.into_iter().try_for_each(|model| stored.add::<R>(model))?;
        stored.hidden = stored.hidden_from::<R>(place).await?;
        Ok(stored)
    }

    fn add<R: Resource<Model = M>>(&mut self, model: M) -> Result<()> {
        let id = R::stamp(&model).id;
        let shown = serde_json::to_value(R::View::from(model.clone())).map_err(Error::internal)?;
        let Value::Object(mut shown) = shown else { return Err(Error::internal("a view is an object")) };
        shown.retain(|name, _| !resource::READ_ONLY.contains(&name.as_str()) && !R::READ_ONLY.contains(&name.as_str()));
        let (place, text) =
            (self.found.len(), |name: &str| shown.get(name).and_then(Value::as_str).map(ToOwned::to_owned));
        self.by_id.insert(id, place);
        self.by_slug.extend(text("slug").map(|slug| (slug, place)));
        self.by_reference.extend(text("external_ref").map(|reference| (reference, place)));
        self.found.push(Found { id, model, shown });
        Ok(())
    }

    /// Takes one statement, or none for a caller who may see everything.
    async fn hidden_from<R: Resource<Model = M>>(&self, place: &Place<'_>) -> Result<HashSet<Uuid>> {
        let mut hidden: HashSet<Uuid> = self.by_id.keys().copied().collect();
        if place.caller.sees_secrets() || hidden.is_empty() {
            return Ok(HashSet::new());
        }
        let ids: Vec<Uuid> = hidden.iter().copied().collect();
        let seen: Vec<Uuid> = R::restrict(R::Entity::find(), place.caller)
            .filter(col("tenant_id").eq(place.tx.tenant()))
            .filter(Expr::cust_with_values("id = ANY ($1)", [sea_orm::Value::from(ids)]))
            .select_only()
            .expr_as(col("id"), "id")
            .into_tuple()
            .all(place.tx)
            .await?;
        for id in seen {
            hidden.remove(&id);
        }
        Ok(hidden)
    }

    /// The members of an existing row.
    pub(super) fn shown(&self, id: Uuid) -> Option<&Map<String, Value>> {
        Some(&self.found.get(*self.by_id.get(&id)?)?.shown)
    }

    pub(super) fn find(&self, identity: &RowIdentity) -> Option<&Found<M>> {
        let place = match identity {
            RowIdentity::BySlug(slug) => self.by_slug.get(slug),
            RowIdentity::ByOrigin { id, reference, .. } => {
                id.and_then(|id| self.by_id.get(&id)).or_else(|| self.by_reference.get(reference))
            }
        };
        self.found.get(*place?)
    }
}
