//! Shows scores and reactions. A game master can end a reaction or try it again.

use edge::auth::player;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{AssertSqlSafe, postgres::PgRow};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use base::{
    error::{Code, Error, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::http::{
    paging::{Items, Page},
    resource::Ref,
};

/// An NPC or owner, as lists of scores and reactions name it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NamedEntity {
    /// `npc` or `owner`.
    #[serde(rename = "type")]
    pub kind: String,
    pub id: Uuid,
    /// Null if the entity was deleted.
    #[schema(required = true)]
    pub slug: Option<String>,
    #[schema(required = true)]
    pub name: Option<String>,
}

/// A player's character, as lists of scores and reactions name it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NamedPlayer {
    pub id: Uuid,
    pub slug: String,
    pub name: String,
}

/// The score of an entity for a character: how much the character's actions have mattered since the entity's last
/// reaction.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Standing {
    pub id: Uuid,
    pub entity: NamedEntity,
    pub player: NamedPlayer,
    /// The sum of the scores since the last reaction.
    pub score: f64,
    /// The score at which the entity reacts. Null if it reacts to no sum, or was deleted.
    #[schema(required = true)]
    pub threshold: Option<i32>,
    /// The number of actions in the score.
    pub actions: i32,
    /// When the cooldown ends. Until then, the entity does not react to this player again.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required = true)]
    pub cooldown_until: Option<OffsetDateTime>,
    /// When the server looks at the score again, because it became high enough while the entity could not react.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required = true)]
    pub due_at: Option<OffsetDateTime>,
    /// The newest reaction.
    #[schema(required = true)]
    pub last_reaction: Option<ReactionView>,
}

/// Why an attempt of a reaction failed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what the database keeps")]
struct ReactionError {
    /// One of `/problems`, or `lost` if the server stopped during each attempt.
    code: String,
    message: String,
}

/// A reaction of an NPC or owner: a turn that runs in the background.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReactionView {
    pub id: Uuid,
    /// `significance` or `prayer`.
    pub kind: String,
    #[schema(inline)]
    pub status: ReactionStatus,
    pub entity: NamedEntity,
    pub player: NamedPlayer,
    /// The score that led to the reaction.
    pub score: f64,
    /// How many actions the reaction answers.
    pub actions: i32,
    /// How often the server tried to run the reaction.
    pub tries: i32,
    pub turn_id: Uuid,
    /// Why the last attempt failed.
    #[schema(value_type = Option<ReactionError>, required = true)]
    pub error: Option<Value>,
    /// The reaction does not run before this time.
    #[serde(with = "time::serde::rfc3339")]
    pub due_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required = true)]
    pub finished_at: Option<OffsetDateTime>,
}

/// Filters of the list of scores.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct StandingFilter {
    /// Only scores of this NPC or owner, by id or slug.
    pub entity_id: Option<String>,
    /// Only scores for this character, by id or slug.
    pub player_id: Option<String>,
}

/// Filters of the list of reactions.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct ReactionFilter {
    /// Only reactions of this NPC or owner, by id or slug.
    pub entity_id: Option<String>,
    /// Only reactions to this character, by id or slug.
    pub player_id: Option<String>,
    /// Only reactions with this status.
    #[param(inline)]
    pub status: Option<ReactionStatus>,
}

/// What has become of a reaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReactionStatus {
    Waiting,
    Running,
    Done,
    /// It failed too often.
    Dead,
    Cancelled,
}

impl ReactionStatus {
    const ALL: [Self; 5] = [Self::Waiting, Self::Running, Self::Done, Self::Dead, Self::Cancelled];

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state in the database.
    #[must_use]
    pub fn stored(self) -> &'static str {
        match self {
            Self::Waiting => "queued",
            status => status.as_str(),
        }
    }

    /// # Errors
    /// `internal` for a state that there is not.
    fn of(state: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|status| status.stored() == state);
        found.ok_or_else(|| Error::internal("a reaction has an unknown state"))
    }
}

const REACTION: &str = "r.id, r.kind, r.state, r.entity_kind, r.entity_id, r.player_id, r.score::float8 AS score, r.actions, r.tries, r.turn_id, \
    r.error, r.due_at, r.created_at, r.finished_at";

/// Names of the entity and the player of a row `r`.
const NAMES: &str = "coalesce(n.slug, o.slug) AS entity_slug, coalesce(n.name, o.name) AS entity_name, p.slug AS player_slug, p.name AS player_name";
const NAMED: &str = "LEFT JOIN npc n ON n.tenant_id = $1 AND n.id = r.entity_id LEFT JOIN owner o ON o.tenant_id = $1 AND o.id = r.entity_id \
    JOIN character p ON p.tenant_id = $1 AND p.id = r.player_id";

fn entity(row: &PgRow) -> Result<NamedEntity> {
    Ok(NamedEntity {
        kind: row.read("entity_kind")?,
        id: row.read("entity_id")?,
        slug: row.read("entity_slug")?,
        name: row.read("entity_name")?,
    })
}

fn player_of(row: &PgRow) -> Result<NamedPlayer> {
    Ok(NamedPlayer { id: row.read("player_id")?, slug: row.read("player_slug")?, name: row.read("player_name")? })
}

impl ReactionView {
    /// The turn of a reaction that runs.
    #[must_use]
    pub fn running(&self) -> Option<Uuid> {
        (self.status == ReactionStatus::Running).then_some(self.turn_id)
    }

    fn of(row: &PgRow) -> Result<Self> {
        Ok(Self {
            id: row.read("id")?,
            kind: row.read("kind")?,
            status: ReactionStatus::of(row.read("state")?)?,
            entity: entity(row)?,
            player: player_of(row)?,
            score: row.read("score")?,
            actions: row.read("actions")?,
            tries: row.read("tries")?,
            turn_id: row.read("turn_id")?,
            error: row.read("error")?,
            due_at: row.read("due_at")?,
            created_at: row.read("created_at")?,
            finished_at: row.read("finished_at")?,
        })
    }
}

/// The ids of the rows that filters name. None if a row does not exist; the list is then empty.
async fn ids(
    tx: &TenantTx,
    campaign: Uuid,
    (entity, player): (Option<&str>, Option<&str>),
) -> Result<Option<(Option<Uuid>, Option<Uuid>)>> {
    let mut found = (None, None);
    if let Some(name) = entity {
        let Some(id) = crate::actors::find(tx, campaign, &["npc", "owner"], name).await? else { return Ok(None) };
        found.0 = Some(id);
    }
    if let Some(name) = player {
        let Some(id) = player::find(tx, campaign, name).await? else { return Ok(None) };
        found.1 = Some(id);
    }
    Ok(Some(found))
}

fn nothing<T>() -> Items<T> {
    Items { items: Vec::new(), next_cursor: None }
}

/// A page of a campaign's scores. Takes two statements, and one more for each name in the filters.
///
/// # Errors
/// `bad_request` for an order that the list does not support.
pub async fn standings(tx: &TenantTx, campaign: Uuid, page: &Page<StandingFilter>) -> Result<Items<Standing>> {
    let descending = page.by_creation()?;
    let names = (page.filter.entity_id.as_deref(), page.filter.player_id.as_deref());
    let Some((entity_id, player_id)) = ids(tx, campaign, names).await? else { return Ok(nothing()) };
    let (sign, order) = if descending { ("<", "DESC") } else { (">", "ASC") };
    let sql = format!(
        "SELECT r.id, r.entity_kind, r.entity_id, r.player_id, r.score::float8 AS score, r.actions, r.cooldown_until, r.due_at, \
             coalesce(n.reaction_threshold, o.reaction_threshold) AS threshold, {NAMES}, \
             (SELECT l.id FROM reaction l WHERE l.tenant_id = $1 AND l.campaign_id = $2 AND l.entity_id = r.entity_id \
                AND l.player_id = r.player_id ORDER BY l.id DESC LIMIT 1) AS last \
         FROM significance r {NAMED} WHERE r.tenant_id = $1 AND r.campaign_id = $2 AND ($3::uuid IS NULL OR r.entity_id = $3) \
           AND ($4::uuid IS NULL OR r.player_id = $4) AND ($5::uuid IS NULL OR r.id {sign} $5) ORDER BY r.id {order} LIMIT $6"
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(entity_id)
        .bind(player_id)
        .bind(page.after.as_ref().map(|after| after.id))
        .bind(i64::try_from(page.limit + 1).unwrap_or(201))
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let last: Vec<Uuid> = rows.iter().filter_map(|row| row.read::<Option<Uuid>>("last").ok().flatten()).collect();
    let last = these(tx, campaign, &last).await?;
    let standings = stored::each(&rows, |row| {
        let newest: Option<Uuid> = row.read("last")?;
        Ok(Standing {
            id: row.read("id")?,
            entity: entity(row)?,
            player: player_of(row)?,
            score: row.read("score")?,
            threshold: row.read("threshold")?,
            actions: row.read("actions")?,
            cooldown_until: row.read("cooldown_until")?,
            due_at: row.read("due_at")?,
            last_reaction: newest.and_then(|id| last.iter().find(|reaction| reaction.id == id).cloned()),
        })
    });
    Ok(page.finish(standings, page.has_more(&rows), |standing| (standing.id, None)))
}

/// Reactions by their ids. One statement, or none.
async fn these(tx: &TenantTx, campaign: Uuid, ids: &[Uuid]) -> Result<Vec<ReactionView>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {REACTION}, {NAMES} FROM reaction r {NAMED} WHERE r.tenant_id = $1 AND r.campaign_id = $2 AND r.id = ANY ($3)"
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(ids)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    Ok(stored::each(&rows, ReactionView::of))
}

/// A reaction of a campaign.
///
/// # Errors
/// `not_found`.
pub async fn reaction(tx: &TenantTx, campaign: Uuid, id: Uuid) -> Result<ReactionView> {
    these(tx, campaign, &[id]).await?.pop().ok_or_else(|| Error::not_found("reaction"))
}

/// A page of a campaign's reactions. Takes one statement, and one more for each name in the filters.
///
/// # Errors
/// `bad_request` for an order that the list does not support.
pub async fn reactions(tx: &TenantTx, campaign: Uuid, page: &Page<ReactionFilter>) -> Result<Items<ReactionView>> {
    reactions_in(tx, campaign, page, page.filter.status.as_slice()).await
}

/// Like [`reactions`], but with these statuses instead of the filter's. An empty list means all of them.
///
/// # Errors
/// The errors of [`reactions`].
pub async fn reactions_in(
    tx: &TenantTx,
    campaign: Uuid,
    page: &Page<ReactionFilter>,
    statuses: &[ReactionStatus],
) -> Result<Items<ReactionView>> {
    let descending = page.by_creation()?;
    let names = (page.filter.entity_id.as_deref(), page.filter.player_id.as_deref());
    let Some((entity_id, player_id)) = ids(tx, campaign, names).await? else { return Ok(nothing()) };
    let (sign, order) = if descending { ("<", "DESC") } else { (">", "ASC") };
    let sql = format!(
        "SELECT {REACTION}, {NAMES} FROM reaction r {NAMED} WHERE r.tenant_id = $1 AND r.campaign_id = $2 \
           AND ($3::uuid IS NULL OR r.entity_id = $3) AND ($4::uuid IS NULL OR r.player_id = $4) AND (cardinality($5::text[]) = 0 OR r.state = ANY ($5)) \
           AND ($6::uuid IS NULL OR r.id {sign} $6) ORDER BY r.id {order} LIMIT $7"
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(entity_id)
        .bind(player_id)
        .bind(statuses.iter().map(|status| status.stored()).collect::<Vec<_>>())
        .bind(page.after.as_ref().map(|after| after.id))
        .bind(i64::try_from(page.limit + 1).unwrap_or(201))
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let views = stored::each(&rows, ReactionView::of);
    Ok(page.finish(views, page.has_more(&rows), |reaction| (reaction.id, None)))
}

/// Ends a reaction. One that waits gives its score back, and its turn is over. One that runs is asked to stop, and is cancelled soon. One
/// that is dead is cancelled.
///
/// # Errors
/// `not_found`; `conflict` if the reaction has ended, or begins another attempt at this moment.
pub async fn end(tx: &TenantTx, campaign: Uuid, id: Uuid) -> Result<ReactionView> {
    use ReactionStatus::{Cancelled, Dead, Running, Waiting};
    let was = change(tx, campaign, id, &[Waiting, Running, Dead], Cancelled).await?;
    if was == Waiting {
        sqlx::query("SELECT restore_score($1, $2)")
            .bind(tx.tenant())
            .bind(id)
            .execute(&mut *tx.connection().await)
            .await?;
    }
    if was == Running {
        let asked = sqlx::query(
            "UPDATE turn t SET cancel_requested = true FROM reaction r WHERE r.tenant_id = $1 AND r.id = $2 AND t.tenant_id = $1 \
             AND t.id = r.turn_id AND t.status IN ('queued', 'running')",
        )
        .bind(tx.tenant())
        .bind(id)
        .execute(&mut *tx.connection().await)
        .await?;
        if asked.rows_affected() == 0 {
            let why = "The reaction is just beginning another attempt. Try again in a moment.";
            return Err(Error::new(Code::Conflict, why));
        }
        return reaction(tx, campaign, id).await;
    }
    sqlx::query(
        "WITH over AS (UPDATE turn t SET status = 'cancelled', finished_at = now() FROM reaction r WHERE r.tenant_id = $1 AND r.id = $2 \
             AND t.tenant_id = $1 AND t.id = r.turn_id AND t.status = 'queued' RETURNING t.id) \
         UPDATE idempotency i SET state = 'retry' FROM over WHERE i.tenant_id = $1 AND i.turn_id = over.id",
    )
    .bind(tx.tenant())
    .bind(id)
    .execute(&mut *tx.connection().await)
    .await?;
    reaction(tx, campaign, id).await
}

/// Queues a dead or cancelled reaction again.
///
/// # Errors
/// `not_found`; `gone` if its NPC or owner was deleted; `conflict` if it waits, runs or is done, or has given its score back.
pub async fn retry(tx: &TenantTx, campaign: Uuid, id: Uuid) -> Result<ReactionView> {
    if reaction(tx, campaign, id).await?.entity.slug.is_none() {
        return Err(Error::new(Code::Gone, "The NPC or owner that would react was deleted."));
    }
    change(tx, campaign, id, &[ReactionStatus::Dead, ReactionStatus::Cancelled], ReactionStatus::Waiting).await?;
    // Read when the row is locked.
    let queued = reaction(tx, campaign, id).await?;
    if queued.actions == 0 {
        let why =
            "The reaction was ended before it ran. Its actions count again, and will be part of the next reaction.";
        return Err(Error::new(Code::Conflict, why));
    }
    sqlx::query("SELECT pg_notify('tavernkeep_reactions', '')").execute(&mut *tx.connection().await).await?;
    Ok(queued)
}

/// Gives a reaction another status, unless it runs: then its server does. Returns the status before.
async fn change(
    tx: &TenantTx,
    campaign: Uuid,
    id: Uuid,
    from: &[ReactionStatus],
    to: ReactionStatus,
) -> Result<ReactionStatus> {
    let state: Option<String> = sqlx::query(
        "SELECT state FROM reaction WHERE tenant_id = $1 AND campaign_id = $2 AND id = $3 FOR NO KEY UPDATE",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(id)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .map(|row| row.read("state"))
    .transpose()?;
    let status = ReactionStatus::of(&state.ok_or_else(|| Error::not_found("reaction"))?)?;
    if !from.contains(&status) {
        let from = from.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(" or ");
        let message = format!("The reaction is {}. This is possible only if it is {from}.", status.as_str());
        return Err(Error::new(Code::Conflict, message));
    }
    if status == ReactionStatus::Running {
        return Ok(status);
    }
    sqlx::query(
        "UPDATE reaction SET state = $3, tries = 0, error = CASE WHEN $3 = 'queued' THEN NULL ELSE error END, due_at = now(), \
           finished_at = CASE WHEN $3 = 'cancelled' THEN now() END WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(id)
    .bind(to.stored())
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(status)
}

/// The id of a reaction in a path. Reactions have no slugs.
///
/// # Errors
/// `not_found`.
pub fn reaction_id(name: &str) -> Result<Uuid> {
    match Ref::parse(name) {
        Ref::Id(id) => Ok(id),
        Ref::Slug(_) => Err(Error::not_found("reaction")),
    }
}
