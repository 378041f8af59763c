//! What reactions say to players. A reply waits until its player is at the right location to hear it, or until it
//! expires. The server decides this when it delivers the reply, whoever asked for it. It drops a reply that can no
//! longer be heard. If the campaign says so, it also undoes the effects of the reply's turn.

use serde::{Deserialize, Serialize};
use sqlx::postgres::PgRow;
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::{state::Ai, turns::undo};
use base::{
    error::{Code, Error, Result},
    metrics,
    stored::{self, Columns},
};
use db::tenancy::{self, Origin, TenantTx};
use edge::{
    caller::{Caller, Scope},
    http::{
        budget,
        paging::{Items, Page},
        resource::scope_key,
    },
};
use world::significance::standing::NamedEntity;

/// How many replies are read at a time.
const ROWS_MAX: usize = 100;

/// What an NPC or owner says to a player in a reaction.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReplyView {
    pub id: Uuid,
    pub entity: NamedEntity,
    pub narrative: String,
    #[schema(inline)]
    pub status: ReplyStatus,
    pub conditions: ReplyConditions,
    /// The turn of the reaction.
    pub turn_id: Uuid,
    #[serde(with = "time::serde::rfc3339")]
    pub expires_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// A reply that its player can hear now.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReplyAnnounced {
    /// The reply.
    pub reply: ReplyView,
}

/// What has become of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyStatus {
    Waiting,
    /// It was acknowledged, and is in the history.
    Delivered,
    /// Its player was elsewhere when it was to be delivered.
    Withheld,
    /// Nobody fetched it in time.
    Expired,
}

impl ReplyStatus {
    /// The state in the database.
    fn stored(self) -> &'static str {
        match self {
            Self::Waiting => "pending",
            Self::Delivered => "delivered",
            Self::Withheld => "withheld",
            Self::Expired => "expired",
        }
    }

    fn of(state: &str) -> Result<Self> {
        let all = [Self::Waiting, Self::Delivered, Self::Withheld, Self::Expired];
        let found = all.into_iter().find(|status| status.stored() == state);
        found.ok_or_else(|| Error::internal("a reply has an unknown state"))
    }
}

/// Filters of the list of replies.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct ReplyFilter {
    /// Only replies with this status. By default those that wait. Others need the scope `gm`.
    #[param(inline)]
    pub status: Option<ReplyStatus>,
}

/// When a reply can be heard.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReplyConditions {
    /// The character that it is for.
    pub player_id: Uuid,
    /// Whether the character must still be where the action happened.
    pub in_place: bool,
    /// The location, as a slug, where the character must be to hear the reply. Null if it can be heard everywhere.
    #[schema(required = true)]
    pub location: Option<String>,
}

/// A reply that waits, and whether its turn is undone if it cannot be delivered.
pub(super) struct Waiting {
    view: ReplyView,
    campaign: Uuid,
    reverts: bool,
    is_over: bool,
}

const SELECT: &str = "\
    SELECT r.id, r.campaign_id, r.entity_kind, r.entity_id, r.player_id, r.turn_id, r.narrative, r.location_key, r.reverts, r.state, r.expires_at, \
      r.created_at, r.expires_at <= now() AS is_over, coalesce(n.slug, o.slug) AS entity_slug, coalesce(n.name, o.name) AS entity_name, \
      p.location FROM reply r JOIN character p ON p.tenant_id = $1 AND p.id = r.player_id \
      LEFT JOIN npc n ON n.tenant_id = $1 AND n.id = r.entity_id LEFT JOIN owner o ON o.tenant_id = $1 AND o.id = r.entity_id \
    WHERE r.tenant_id = $1";

impl Waiting {
    fn of(row: &PgRow) -> Result<(Self, Option<String>)> {
        let view = ReplyView {
            id: row.read("id")?,
            entity: NamedEntity {
                kind: row.read("entity_kind")?,
                id: row.read("entity_id")?,
                slug: row.read("entity_slug")?,
                name: row.read("entity_name")?,
            },
            narrative: row.read("narrative")?,
            status: ReplyStatus::of(row.read("state")?)?,
            conditions: {
                let location: Option<String> = row.read("location_key")?;
                ReplyConditions { player_id: row.read("player_id")?, in_place: location.is_some(), location }
            },
            turn_id: row.read("turn_id")?,
            expires_at: row.read("expires_at")?,
            created_at: row.read("created_at")?,
        };
        let waiting = Self {
            view,
            campaign: row.read("campaign_id")?,
            reverts: row.read("reverts")?,
            is_over: row.read("is_over")?,
        };
        Ok((waiting, row.read("location")?))
    }

    /// Whether a player at this location hears the reply now.
    fn is_heard(&self, location: Option<&str>) -> bool {
        let wanted = self.view.conditions.location.as_deref();
        !self.is_over && wanted.is_none_or(|wanted| location.map(scope_key).as_deref() == Some(wanted))
    }
}

/// A page of a player's replies with a status. Of those that wait, only those that the player can hear now; the others are dropped.
///
/// # Errors
/// `forbidden` for replies that do not wait, without the scope `gm`; `bad_request` for an order that the list does not support.
pub async fn page(
    app: &Ai,
    caller: &Caller,
    (campaign, player): (Uuid, Uuid),
    page: &Page<ReplyFilter>,
) -> Result<Items<ReplyView>> {
    let (sign, order) = if page.by_creation()? { ("<", "DESC") } else { (">", "ASC") };
    let status = page.filter.status.unwrap_or(ReplyStatus::Waiting);
    if status != ReplyStatus::Waiting {
        caller.needs(Scope::Gm, "A list of replies that do not wait")?;
    }
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
        "{SELECT} AND r.campaign_id = $2 AND r.player_id = $3 AND r.state = $4 AND ($5::uuid IS NULL OR r.id {sign} $5) \
         ORDER BY r.id {order} LIMIT $6"
    )))
    .bind(tx.tenant())
    .bind(campaign)
    .bind(player)
    .bind(status.stored())
    .bind(page.after.as_ref().map(|after| after.id))
    .bind(i64::try_from(page.limit + 1).unwrap_or(201))
    .fetch_all(&mut *tx.connection().await)
    .await?;
    drop(tx);
    let found = stored::each(&rows, Waiting::of);
    let Items { items, next_cursor } = page.finish(found, page.has_more(&rows), |(reply, _)| (reply.view.id, None));
    let mut shown = Vec::with_capacity(items.len());
    for (reply, location) in items {
        if status != ReplyStatus::Waiting || reply.is_heard(location.as_deref()) {
            shown.push(reply.view);
        } else {
            drop_it(app, caller, &reply).await?;
        }
    }
    Ok(Items { items: shown, next_cursor })
}

/// Which of a campaign's waiting replies to read.
pub(super) enum Of {
    Campaign,
    Player(Uuid),
    /// At most a hundred.
    These(Vec<Uuid>),
}

impl Of {
    /// The condition with its ids as `$3`, and how many rows to read. A few ids have no limit: it would make PostgreSQL search for them in
    /// all that waits, because that is in order.
    fn sql(&self) -> (&'static str, &[Uuid], Option<i64>) {
        let most = i64::try_from(ROWS_MAX).ok();
        match self {
            Self::Campaign => ("$3::uuid[] IS NOT NULL", &[], most),
            Self::Player(player) => ("r.player_id = ($3::uuid[])[1]", std::slice::from_ref(player), most),
            Self::These(ids) => ("r.id = ANY ($3)", ids, None),
        }
    }
}

/// Waiting replies, oldest first: at most a hundred, and at most a page of bytes.
pub(super) struct WaitingPage {
    /// Those that their players can hear now.
    pub heard: Vec<ReplyView>,
    /// Those that they cannot hear.
    pub unheard: Vec<Waiting>,
    /// The id of the last one, if there may be more.
    pub next: Option<Uuid>,
}

/// The waiting replies after the one with this id. One statement.
///
/// # Errors
/// Database errors.
pub(super) async fn waiting(
    app: &Ai,
    caller: &Caller,
    campaign: Uuid,
    (of, after): (&Of, Uuid),
) -> Result<WaitingPage> {
    let (which, ids, most) = of.sql();
    let limit = most.map(|most| format!("LIMIT {most}")).unwrap_or_default();
    let sql = format!(
        "{SELECT} AND r.campaign_id = $2 AND {which} AND r.state = 'pending' AND r.id > $4 ORDER BY r.id {limit}"
    );
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let rows = sqlx::query(sqlx::AssertSqlSafe(budget::within(&sql, ["narrative"])))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(ids)
        .bind(after)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    drop(tx);
    let may_be_more = rows.len() == ROWS_MAX || budget::is_cut(&rows);
    let next = rows.last().filter(|_| may_be_more).map(|last| last.read("id")).transpose()?;
    let mut page = WaitingPage { heard: Vec::new(), unheard: Vec::new(), next };
    for (waiting, location) in stored::each(&rows, Waiting::of) {
        if waiting.is_heard(location.as_deref()) {
            page.heard.push(waiting.view);
        } else {
            page.unheard.push(waiting);
        }
    }
    Ok(page)
}

/// Tells of all replies that a player can hear now, oldest first. Nothing is dropped. One statement for each hundred that wait.
///
/// # Errors
/// Database errors.
pub async fn tell(
    app: &Ai,
    caller: &Caller,
    (campaign, player): (Uuid, Uuid),
    mut told: impl FnMut(&ReplyView),
) -> Result<()> {
    let of = Of::Player(player);
    let mut after = Some(Uuid::nil());
    while let Some(last) = after {
        let page = waiting(app, caller, campaign, (&of, last)).await?;
        page.heard.iter().for_each(&mut told);
        after = page.next;
    }
    Ok(())
}

/// One reply, if its player can hear it now.
///
/// # Errors
/// Database errors.
pub async fn one(app: &Ai, caller: &Caller, campaign: Uuid, id: Uuid) -> Result<Option<ReplyView>> {
    let found = find(app, caller, (campaign, None), id).await?;
    Ok(found.and_then(|(waiting, location)| {
        let is_heard = waiting.view.status == ReplyStatus::Waiting && waiting.is_heard(location.as_deref());
        is_heard.then_some(waiting.view)
    }))
}

/// A reply of a campaign, for any player or for the given one, and the location of its player.
async fn find(
    app: &Ai,
    caller: &Caller,
    (campaign, player): (Uuid, Option<Uuid>),
    id: Uuid,
) -> Result<Option<(Waiting, Option<String>)>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let sql = format!("{SELECT} AND r.campaign_id = $2 AND ($3::uuid IS NULL OR r.player_id = $3) AND r.id = $4");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(player)
        .bind(id)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    row.as_ref().map(Waiting::of).transpose()
}

/// Delivers all replies that a player can hear now: they become messages of the history. Drops the others.
///
/// # Errors
/// Database errors.
pub async fn deliver_all(app: &Ai, caller: &Caller, campaign: Uuid, player: Uuid) -> Result<()> {
    let of = Of::Player(player);
    let mut after = Some(Uuid::nil());
    while let Some(last) = after {
        let page = waiting(app, caller, campaign, (&of, last)).await?;
        for reply in &page.heard {
            deliver(app, caller, reply).await?;
        }
        for reply in &page.unheard {
            drop_it(app, caller, reply).await?;
        }
        after = page.next;
    }
    Ok(())
}

/// Delivers one reply. Returns false if somebody else has delivered it.
async fn deliver(app: &Ai, caller: &Caller, reply: &ReplyView) -> Result<bool> {
    let actor = caller.actor().in_turn(reply.turn_id, Origin::Turn);
    let row =
        tenancy::call(&app.pool, &actor, "SELECT deliver_reply($1, $2, $3) AS is_done", |q| q.bind(reply.id)).await?;
    let is_done = row.read("is_done")?;
    if is_done {
        metrics::REPLIES.with_label_values(&["delivered"]).inc();
    }
    Ok(is_done)
}

/// Takes a reply, for any player or for the given one, from the queue because its player has seen it. A second call
/// changes nothing.
///
/// # Errors
/// `not_found`; `gone` if the player can no longer hear the reply.
pub async fn acknowledge(app: &Ai, caller: &Caller, (campaign, player): (Uuid, Option<Uuid>), id: Uuid) -> Result<()> {
    let (waiting, location) =
        find(app, caller, (campaign, player), id).await?.ok_or_else(|| Error::not_found("reply"))?;
    match waiting.view.status {
        ReplyStatus::Delivered => Ok(()),
        ReplyStatus::Waiting if waiting.is_heard(location.as_deref()) => {
            deliver(app, caller, &waiting.view).await.map(drop)
        }
        ReplyStatus::Waiting => {
            drop_it(app, caller, &waiting).await?;
            Err(gone())
        }
        ReplyStatus::Withheld | ReplyStatus::Expired => Err(gone()),
    }
}

fn gone() -> Error {
    Error::new(
        Code::Gone,
        "This reply was dropped, because it expired or the character left the location where it could be heard.",
    )
}

/// Drops a reply that can no longer be heard, and undoes its turn if the campaign says so.
pub(super) async fn drop_it(app: &Ai, caller: &Caller, waiting: &Waiting) -> Result<()> {
    let state = if waiting.is_over { "expired" } else { "withheld" };
    let actor = caller.actor().in_turn(waiting.view.turn_id, Origin::Turn);
    let is_first = tenancy::write(&app.pool, actor, async |tx| {
        let done = sqlx::query(
            "UPDATE reply SET state = $3, ended_at = now() WHERE tenant_id = $1 AND id = $2 AND state = 'pending'",
        )
        .bind(tx.tenant())
        .bind(waiting.view.id)
        .bind(state)
        .execute(&mut *tx.connection().await)
        .await?;
        Ok(done.rows_affected() > 0)
    })
    .await?;
    if !is_first {
        return Ok(());
    }
    metrics::REPLIES.with_label_values(&[state]).inc();
    undo_dropped(app, caller, waiting).await
}

/// Undoes the turn of a dropped reply, if the campaign says so, and notes that this is done. Keeps what others have
/// changed since. If the server or the database fails, another attempt follows in a minute.
async fn undo_dropped(app: &Ai, caller: &Caller, waiting: &Waiting) -> Result<()> {
    if !waiting.reverts {
        return Ok(());
    }
    let operator = Caller::operator(caller.tenant.clone());
    let turn = waiting.view.turn_id;
    let undone = undo::undo_rest(app, &operator, &waiting.campaign.to_string(), turn).await;
    if let Err(error) = &undone {
        tracing::warn!(turn_id = %turn, %error, "could not undo a reaction whose reply could not be delivered");
    }
    let is_tried_again = undone.is_err_and(|error| matches!(error.code, Code::Internal | Code::Unavailable));
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        sqlx::query("UPDATE reply SET reverts = $3, ended_at = now() WHERE tenant_id = $1 AND id = $2")
            .bind(tx.tenant())
            .bind(waiting.view.id)
            .bind(is_tried_again)
            .execute(&mut *tx.connection().await)
            .await?;
        Ok(())
    })
    .await
}

/// Drops replies that nobody fetched in time, and undoes the turns of dropped replies where this is still to do.
///
/// # Errors
/// Database errors.
pub async fn expire(app: &Ai, rows_max: i32) -> Result<()> {
    let expired = sqlx::query("SELECT tenant_id, id FROM replies_expired($1)")
        .bind(rows_max)
        .fetch_all(&mut *app.pool.acquire().await?)
        .await?;
    for row in &expired {
        let (tenant, id): (Uuid, Uuid) = (row.read("tenant_id")?, row.read("id")?);
        // One tenant's bad row must not stop the others.
        if let Err(error) = expire_one(app, tenant, id).await {
            tracing::warn!(reply_id = %id, %error, "could not drop an expired reply");
        }
    }
    Ok(())
}

async fn expire_one(app: &Ai, tenant: Uuid, id: Uuid) -> Result<()> {
    let tx = TenantTx::read(&app.pool, tenant).await?;
    let row = sqlx::query("SELECT * FROM reacting_tenant()").fetch_one(&mut *tx.connection().await).await?;
    let caller = Caller::operator(std::sync::Arc::new(edge::tenants::Tenant::from_row(&row)?));
    let row = sqlx::query(sqlx::AssertSqlSafe(format!("{SELECT} AND r.id = $2")))
        .bind(tenant)
        .bind(id)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    drop(tx);
    match row {
        Some(row) => {
            let (waiting, _) = Waiting::of(&row)?;
            match waiting.view.status {
                ReplyStatus::Waiting => drop_it(app, &caller, &waiting).await,
                ReplyStatus::Expired | ReplyStatus::Withheld => undo_dropped(app, &caller, &waiting).await,
                ReplyStatus::Delivered => Ok(()),
            }
        }
        None => Ok(()),
    }
}
