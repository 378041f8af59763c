//! Chooses slugs for rows that are identified by something else.

use std::collections::HashSet;

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{
    row::{Row, RowIdentity},
    stored::Stored,
};
use base::{clock, error::Result, stored::Columns};
use edge::http::resource::{self, Place, Resource};

/// How many candidates are tried for a row whose slug is taken.
const NAMES_TRIED: usize = 12;

/// The slugs that are taken or reserved.
pub(super) struct Slugs {
    /// Slugs that rows of the file claim. They are not used for other rows.
    named: HashSet<String>,
    taken: HashSet<String>,
}

impl Slugs {
    pub(super) fn of(rows: &[Row]) -> Self {
        let named = rows.iter().filter_map(|row| row.slug()).map(ToOwned::to_owned).collect();
        Self { named, taken: HashSet::new() }
    }

    /// Asks once which of all candidates are taken.
    pub(super) async fn look<R: Resource>(
        &mut self,
        place: &Place<'_>,
        rows: &[Row],
        stored: &Stored<R::Model>,
    ) -> Result<()>
    where
        R::Model: Clone,
    {
        let is_new =
            |row: &&Row| matches!(row.identity, RowIdentity::ByOrigin { .. }) && stored.find(&row.identity).is_none();
        let wished = |row: &Row| row.slug().map(ToOwned::to_owned).into_iter().chain(Self::names::<R>(row));
        let candidates: Vec<String> = rows.iter().filter(is_new).flat_map(wished).collect();
        if candidates.is_empty() {
            return Ok(());
        }
        let table = if R::IS_ACTOR { "actor_slug" } else { R::TABLE };
        let sql = format!("SELECT slug FROM {table} WHERE tenant_id = $1 AND campaign_id = $2 AND slug = ANY ($3)");
        let taken = sqlx::query(AssertSqlSafe(sql))
            .bind(place.tx.tenant())
            .bind(place.campaign)
            .bind(&candidates)
            .fetch_all(&mut *place.tx.connection().await)
            .await?;
        for row in &taken {
            self.taken.insert(row.read("slug")?);
        }
        Ok(())
    }

    fn names<R: Resource>(row: &Row) -> impl Iterator<Item = String> + use<R> {
        let label = row.label::<R>();
        let base = resource::slug_of(label, "_").filter(|slug| Uuid::try_parse(slug).is_err());
        let base = base.unwrap_or_else(|| R::TABLE.to_owned());
        std::iter::once(base.clone()).chain((2..=NAMES_TRIED).map(move |n| format!("{base}_{n}")))
    }

    pub(super) fn take<R: Resource>(&mut self, row: &Row) -> String {
        let wish = row.slug().filter(|slug| !self.taken.contains(*slug)).map(ToOwned::to_owned);
        let is_free = |name: &String| !self.taken.contains(name) && !self.named.contains(name);
        let slug = wish
            .or_else(|| Self::names::<R>(row).find(is_free))
            .unwrap_or_else(|| format!("{}_{}", R::TABLE, clock::id().simple()));
        self.taken.insert(slug.clone());
        slug
    }
}
