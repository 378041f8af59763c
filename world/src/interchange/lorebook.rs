//! Exports a campaign's lore as SillyTavern's world info. It is read page by page within one snapshot and never held in
//! memory as a whole.

use entity::lore;
use sea_orm::{
    EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
    sea_query::{Expr, ExprTrait},
};
use serde_json::Value;
use uuid::Uuid;

use super::{
    book::{
        ENTRIES_MAX, Members,
        write::{Uids, world_info_entry},
    },
    names::Names,
    out::identified,
    pieces::{self, Pieces},
};
use crate::lore::LoreEntries;
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::{pool::Pool, tenancy::TenantTx};
use edge::{
    caller::Caller,
    http::{
        budget,
        resource::{Place, Ref, Resource, campaign_id, col},
    },
};

/// The number of entries in one page.
const PAGE_ROWS: u64 = 50;

/// A lorebook that is being written.
pub struct Lorebook {
    tx: TenantTx,
    caller: Caller,
    campaign: Uuid,
    names: Names,
    /// The prefix of the entries' `external_ref` if only one book is exported.
    shelf: Option<String>,
    after: String,
    written: usize,
    uids: Uids,
    head: Option<String>,
    is_done: bool,
}

impl Lorebook {
    /// Begins to export all lore that the caller may see, or one imported book. Errors are found here, before anything
    /// is sent.
    ///
    /// # Errors
    /// `not_found` for the campaign or the book, `conflict` while another export of the tenant is running,
    /// `payload_too_large`.
    pub async fn begin(pool: &Pool, caller: &Caller, c: &str, book: Option<&str>) -> Result<Self> {
        let tx = TenantTx::read_at_one_moment(pool, caller.tenant_id()).await?;
        let campaign = campaign_id(&tx, caller, &Ref::parse(c)).await?;
        pieces::alone(&tx).await?;
        let place = Place { tx: &tx, campaign, caller };
        let shelf = book.map(|book| format!("lorebook:{book}:"));
        let found: Vec<Uuid> = entries(&place, shelf.as_deref())
            .select_only()
            .expr_as(col("id"), "id")
            .limit(ENTRIES_MAX as u64 + 1)
            .into_tuple()
            .all(&tx)
            .await?;
        if found.len() > ENTRIES_MAX {
            let detail = format!(
                "A lorebook may have at most {ENTRIES_MAX} entries, and there are more. Export the campaign document instead."
            );
            return Err(Error::new(Code::PayloadTooLarge, detail));
        }
        let about = match book {
            None => Members::new(),
            Some(_) if found.is_empty() => return Err(Error::not_found("lorebook")),
            Some(book) => about(&place, book).await?,
        };
        let names = Names::load(&place).await?;
        let uids = Uids::beside(uids(&place).await?);
        let mut head = Value::Object(about).to_string();
        head.pop();
        head.push_str(if head.len() > 1 { ",\"entries\":{" } else { "\"entries\":{" });
        Ok(Self {
            tx,
            caller: caller.clone(),
            campaign,
            names,
            shelf,
            after: String::new(),
            written: 0,
            uids,
            head: Some(head),
            is_done: false,
        })
    }
}

impl Pieces for Lorebook {
    async fn next(&mut self) -> Result<Option<String>> {
        if self.is_done {
            return Ok(None);
        }
        let mut out = self.head.take().unwrap_or_default();
        let place = Place { tx: &self.tx, campaign: self.campaign, caller: &self.caller };
        let select = entries(&place, self.shelf.as_deref())
            .filter(col("slug").gt(self.after.as_str()))
            .order_by(col("slug"), Order::Asc)
            .limit(PAGE_ROWS);
        let (page, is_cut) = budget::rows(&self.tx, select).await?;
        self.is_done = page.is_empty() || !is_cut && (page.len() as u64) < PAGE_ROWS;
        for model in page {
            self.after.clone_from(&model.slug);
            let entry = world_info_entry(&identified::<LoreEntries>(model, &self.names)?, "", &mut self.uids);
            let comma = if self.written == 0 { "" } else { "," };
            let uid = entry.get("uid").and_then(Value::as_u64).unwrap_or_default();
            out.push_str(&format!("{comma}\n\"{uid}\":{}", Value::Object(entry)));
            self.written += 1;
        }
        if self.is_done {
            out.push_str("}}\n");
        }
        Ok(Some(out))
    }

    async fn end(self) -> Result<()> {
        self.tx.commit().await
    }
}

fn entries(place: &Place<'_>, shelf: Option<&str>) -> Select<lore::Entity> {
    LoreEntries::restrict(lore::Entity::find(), place.caller)
        .filter(col("tenant_id").eq(place.tx.tenant()))
        .filter(col("campaign_id").eq(place.campaign))
        .apply_if(shelf, |select, shelf| {
            select.filter(Expr::cust_with_values("starts_with(external_ref, $1)", [shelf]))
        })
}

/// The numbers with which entries were imported. They may keep them.
async fn uids(place: &Place<'_>) -> Result<Vec<u64>> {
    let rows = sqlx::query(
        "SELECT uid::bigint AS uid FROM lore CROSS JOIN LATERAL \
             (SELECT extensions #>> '{lorebook,entry,uid}' AS a, extensions #>> '{lorebook,entry,id}' AS b) said \
             CROSS JOIN LATERAL (VALUES (a), (b)) numbers (uid) \
         WHERE tenant_id = $1 AND campaign_id = $2 AND uid ~ '^[0-9]{1,9}$' LIMIT $3",
    )
    .bind(place.tx.tenant())
    .bind(place.campaign)
    .bind(2 * ENTRIES_MAX as i64)
    .fetch_all(&mut *place.tx.connection().await)
    .await?;
    let uids = rows.iter().map(|row| row.read::<i64>("uid")).collect::<Result<Vec<_>>>()?;
    Ok(uids.into_iter().filter_map(|uid| u64::try_from(uid).ok()).collect())
}

/// An imported book's own settings.
async fn about(place: &Place<'_>, book: &str) -> Result<Members> {
    let row =
        sqlx::query("SELECT extensions -> 'lorebooks' -> $3 AS about FROM campaign WHERE tenant_id = $1 AND id = $2")
            .bind(place.tx.tenant())
            .bind(place.campaign)
            .bind(book)
            .fetch_optional(&mut *place.tx.connection().await)
            .await?
            .ok_or_else(|| Error::not_found("campaign"))?;
    match row.read::<Option<Value>>("about")? {
        Some(Value::Object(mut about)) => {
            about.remove("entries");
            Ok(about)
        }
        _ => Ok(Members::new()),
    }
}
