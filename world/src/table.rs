//! What a player sees at the table: their character, where it is, the open fights, whom they can speak and whisper to, and
//! what changed.

use entity::{CampaignId, MessageId, character};
use sea_orm::{EntityTrait, QueryFilter, sea_query::ExprTrait};
use sqlx::{AssertSqlSafe, postgres::PgRow};
use uuid::Uuid;

use crate::{
    encounters::{self, open::OpenFight, stand::FIGHT_OF_CHARACTER},
    messages::service::REWORDS,
    npcs,
};
use base::{
    error::{Error, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::resource::{col, scope_key},
};

const FIGHTS_MAX: i64 = 3;
const PEOPLE_MAX: i64 = 200;
const CHARACTERS_MAX: i64 = 500;
/// The most characters of a text about a location.
const ABOUT_CHARS_MAX: i32 = 4_000;
/// The most changes that are read at once.
const CHANGES_MAX: i64 = 500;
/// The most of them that are of messages, so that their texts are less than a page of bytes.
const MESSAGES_MAX: usize = 25;

/// The player's character.
///
/// # Errors
/// `not_found` if it is gone.
pub async fn character(tx: &TenantTx, player: Uuid) -> Result<character::Model> {
    let own = col("tenant_id").eq(tx.tenant()).and(col("id").eq(player));
    let found = character::Entity::find().filter(own).one(tx).await?;
    found.ok_or_else(|| Error::not_found("character"))
}

/// The newest three open fights as the caller may see them, newest first, with what the caller can do in them. One statement.
///
/// # Errors
/// Database errors.
pub async fn fights(tx: &TenantTx, campaign: CampaignId, caller: &Caller) -> Result<Vec<OpenFight>> {
    encounters::open::open_fights(tx, campaign.0, caller, FIGHTS_MAX).await
}

/// Somebody whom a player can address.
pub struct Person {
    pub id: Uuid,
    pub slug: String,
    pub name: String,
    /// Whether it has a greeting for the player, because their conversation has not begun.
    pub greets: bool,
    /// Whether it does not answer now: its AI is paused, or it is dead or unconscious.
    pub is_silent: bool,
    /// Whether it is where the player's character is.
    pub is_here: bool,
    /// Whether it has no location.
    pub is_nowhere: bool,
}

impl Person {
    /// `here` is the location of the player's character.
    fn of(row: &PgRow, here: Option<&str>) -> Result<Self> {
        let (id, slug, name, greets, is_silent, location): (_, _, _, _, _, Option<String>) = row.read_all()?;
        let is_nowhere = location.is_none();
        let is_here = here.zip(location).is_some_and(|(here, location)| npcs::place::is_same(here, &location));
        Ok(Self { id, slug, name, greets, is_silent, is_here, is_nowhere })
    }
}

/// Where a player's character is, and whom the player can speak to.
pub struct Company {
    /// The character's location, as it is written there.
    pub location: Option<String>,
    /// Those at the location come first.
    pub npcs: Vec<Person>,
    /// The character's name.
    pub who: String,
    /// Whether the character is in a fight.
    pub fights: bool,
    /// Whether the character is dead or unconscious.
    pub has_fallen: bool,
}

/// The NPCs at the character's location, and those without a location, which are nowhere but can be written to. If the character has no
/// location, all NPCs. At most three statements.
///
/// # Errors
/// `not_found` if the character is gone.
pub async fn company(tx: &TenantTx, campaign: Uuid, player: Uuid) -> Result<Company> {
    let sql = format!(
        "SELECT name, location, {FIGHT_OF_CHARACTER} IS NOT NULL AS fights, \
           character_fallen(hp, max_hp, death_saves, conditions) IS NOT NULL AS has_fallen FROM character WHERE tenant_id = $1 AND id = $2"
    );
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(player)
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(|| Error::not_found("character"))?;
    let (who, location, fights, has_fallen): (_, Option<String>, _, _) = row.read_all()?;
    let location = location.filter(|location| !location.trim().is_empty());
    let spellings = match &location {
        Some(location) => Some(npcs::place::spellings(tx, campaign, location).await?),
        None => None,
    };
    let rows = sqlx::query(
        "SELECT id, slug, name, greetings <> '[]' AND NOT EXISTS (SELECT FROM message m WHERE m.tenant_id = $1 AND m.entity_id = npc.id \
             AND m.player_id = $5 AND m.turn_id IS NOT NULL) AS greets, \
             p.all_of_them OR npc.id = ANY (p.entities) OR NOT notices(stats, conditions, p.dead_speak) AS is_silent, location \
           FROM (SELECT all_ai_paused(c.settings) AS all_of_them, ai_paused_alone($1, c.id, c.settings) AS entities, \
                     coalesce(c.settings -> 'dead_speak' = 'true', false) AS dead_speak \
                 FROM campaign c WHERE c.tenant_id = $1 AND c.id = $2) p, npc WHERE npc.tenant_id = $1 AND npc.campaign_id = $2 \
           AND ($3::text[] IS NULL OR location = ANY ($3) OR location IS NULL) \
         ORDER BY location IS NULL, name COLLATE natural_order, id LIMIT $4",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(spellings)
    .bind(PEOPLE_MAX)
    .bind(player)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let npcs = stored::each(&rows, |row| Person::of(row, location.as_deref()));
    Ok(Company { npcs, location, who, fights, has_fallen })
}

/// The text of the lore about a location that has the highest priority, of what everybody may know. At most the first
/// [`ABOUT_CHARS_MAX`] characters. One statement.
///
/// # Errors
/// Database errors.
pub async fn about(tx: &TenantTx, campaign: CampaignId, location: &str) -> Result<Option<String>> {
    let found = sqlx::query_scalar(
        "SELECT left(content, $4) FROM lore WHERE tenant_id = $1 AND campaign_id = $2 AND scope = 'zone' AND associated_key = $3 \
           AND enabled AND NOT secret ORDER BY priority DESC, id LIMIT 1",
    )
    .bind(tx.tenant())
    .bind(campaign.0)
    .bind(scope_key(location))
    .bind(ABOUT_CHARS_MAX)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    Ok(found)
}

/// The first 500 characters of a campaign, by name. `here` is the location of the player's character. One statement.
///
/// # Errors
/// Database errors.
pub async fn characters(tx: &TenantTx, campaign: CampaignId, here: Option<&str>) -> Result<Vec<Person>> {
    let rows = sqlx::query(
        "SELECT id, slug, name, false AS greets, false AS is_silent, location FROM character WHERE tenant_id = $1 AND campaign_id = $2 ORDER BY name COLLATE natural_order, id LIMIT $3",
    )
    .bind(tx.tenant())
    .bind(campaign.0)
    .bind(CHARACTERS_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    Ok(stored::each(&rows, |row| Person::of(row, here)))
}

/// A row of the campaign that changed.
pub struct Change {
    pub table: String,
    pub op: String,
    pub row: Uuid,
    /// Whether a message is gone because another attempt takes the place of its turn.
    pub is_set_aside: bool,
}

/// Changes in the order of their commits.
pub struct Changes {
    pub changes: Vec<Change>,
    /// The `seq` of the last one.
    pub last: i64,
    /// Whether there are more.
    pub has_more: bool,
}

impl Changes {
    /// The rows of a table that changed, or to which just `op` happened.
    pub fn of(&self, table: &str, op: Option<&str>) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| change.table == table && op.is_none_or(|op| change.op == op))
    }

    /// Whether a row of one of these tables changed.
    #[must_use]
    pub fn any(&self, tables: &[&str]) -> bool {
        self.changes.iter().any(|change| tables.contains(&change.table.as_str()))
    }
}

/// Which of these messages, which were set aside, no longer wait for another attempt and are gone. One statement, or none if there are none.
///
/// # Errors
/// Database errors.
pub async fn gone_for_good(tx: &TenantTx, set_aside: &[MessageId]) -> Result<Vec<MessageId>> {
    if set_aside.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(
        "SELECT a.id FROM unnest($2::uuid[]) AS a (id) WHERE NOT EXISTS (SELECT FROM message m WHERE m.tenant_id = $1 AND m.id = a.id) \
           AND NOT EXISTS (SELECT FROM journal j JOIN turn t ON t.tenant_id = $1 AND t.id = j.turn_id \
             WHERE j.tenant_id = $1 AND j.row_id = a.id AND j.op = 'delete' AND t.awaits IS NOT NULL)",
    )
    .bind(tx.tenant())
    .bind(set_aside.iter().map(|id| id.0).collect::<Vec<_>>())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter().map(|row| row.read_all().map(|(id,)| MessageId(id))).collect()
}

/// The changes after `seq`: at most 500, and at most 25 of messages; `None` if there are none. Changes of a message that nobody can read are
/// left out.
///
/// # Errors
/// Database errors.
pub async fn changes(tx: &TenantTx, campaign: Uuid, seq: i64) -> Result<Option<Changes>> {
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT seq, table_name, row_id, op, table_name <> 'message' OR op <> 'update' OR {REWORDS} AS is_shown, \
             table_name = 'message' AND op = 'delete' AND origin = 'revert' AND EXISTS ( \
                 SELECT FROM turn t WHERE t.tenant_id = $1 AND t.id = journal.turn_id AND t.status IN ('succeeded', 'limit_reached') \
                   AND t.undone_at IS NULL AND t.revert_as IS NULL) AS is_set_aside \
         FROM journal WHERE tenant_id = $1 AND campaign_id = $2 AND seq > $3 ORDER BY seq LIMIT $4"
    )))
    .bind(tx.tenant())
    .bind(campaign)
    .bind(seq)
    .bind(CHANGES_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let (mut last, mut changes, mut messages) = (None, Vec::new(), 0);
    for row in &rows {
        let (seq, table, id, op, is_shown, is_set_aside) = row.read_all::<(i64, _, _, _, bool, _)>()?;
        let change = Change { table, op, row: id, is_set_aside };
        messages += usize::from(is_shown && change.table == "message");
        if messages > MESSAGES_MAX {
            break;
        }
        last = Some(seq);
        if is_shown {
            changes.push(change);
        }
    }
    let Some(last) = last else { return Ok(None) };
    let is_full = rows.len() == usize::try_from(CHANGES_MAX).unwrap_or(usize::MAX);
    Ok(Some(Changes { changes, last, has_more: is_full || messages > MESSAGES_MAX }))
}
