//! What a session stands on: who plays, where its turns have got to, where it plays, and which versions its prompt is made of. One
//! function of the database (`session_facts`) reads all of it, so that a turn opens in one round trip.

use entity::{session::Role, shapes::Extensions};
use sea_orm::ActiveEnum;
use sqlx::{Row, postgres::PgRow, types::Json};
use uuid::Uuid;

use super::service::{Playing, Position, Standing};
use crate::{
    error::{Error, Result},
    tenancy::TenantTx,
};

/// Where a session plays and as whom, as far as lore is concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// The place of the scene that is played: its location, or else its name.
    pub place: Option<String>,
    /// The race and profession of the character its AI plays.
    pub race: Option<String>,
    pub profession: Option<String>,
}

/// The campaign as prompts tell of it.
#[derive(Clone, Debug)]
pub struct CampaignNow {
    pub version: i64,
    pub name: String,
    pub game_system: String,
    pub game_time: Option<String>,
    pub description: String,
    pub settings: Extensions,
}

/// What of a campaign and its lore is in memory: the campaign's version, and heads of lore whose versions are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held<'a> {
    pub campaign: Option<i64>,
    pub heads: &'a [String],
}

/// A session at one moment.
#[derive(Debug)]
pub struct Facts {
    pub playing: Playing,
    pub standing: Standing,
    pub at: Whereabouts,
    /// None if it is the version that is held.
    pub campaign: Option<CampaignNow>,
    /// The version of its conversation.
    pub talk: i64,
    /// The versions of the heads of lore that were asked for.
    pub heads: Vec<i64>,
    /// Whether there may be fights that go on.
    pub has_fights: bool,
    /// Whether the feed went on since its last completed turn without it.
    pub has_news: bool,
    /// Whether it completed a turn, as whatever.
    pub has_played: bool,
}

impl Facts {
    /// A row of `session_facts`.
    ///
    /// # Errors
    /// `internal` if the row is not one.
    pub fn of_row(row: &PgRow, campaign: Uuid, id: Uuid) -> Result<Self> {
        let settings: Option<Json<Extensions>> = row.try_get("settings").map_err(Error::internal)?;
        let now = settings.map(|settings| CampaignNow {
            version: row.get("campaign_version"),
            name: row.get("campaign_name"),
            game_system: row.get("game_system"),
            game_time: row.get("game_time"),
            description: row.get("description"),
            settings: settings.0,
        });
        let seen: Option<i64> = row.get("seen_seq");
        Ok(Self {
            playing: Playing::of_row(row, campaign, id),
            standing: Standing {
                cursor: seen
                    .map(|seq| Position { seq, event: row.get::<Option<i64>, _>("seen_event").unwrap_or_default() }),
                began: Position { seq: row.get("from_seq"), event: 0 },
                now: Position { seq: row.get("seq"), event: row.get("events") },
                pruned: row.get("pruned"),
            },
            at: Whereabouts { place: row.get("place"), race: row.get("race"), profession: row.get("profession") },
            campaign: now,
            talk: row.get("talk"),
            heads: row.get("heads"),
            has_fights: row.get("has_fights"),
            has_news: row.get("has_news"),
            has_played: row.get("has_played"),
        })
    }
}

/// A session of a campaign as it is now, with another role if one is given. What is read after this may be newer, and is then told again, never lost. One statement.
///
/// # Errors
/// `not_found`.
pub async fn facts(tx: &TenantTx, campaign: Uuid, session: Uuid, role: Option<Role>, held: Held<'_>) -> Result<Facts> {
    let row = sqlx::query("SELECT * FROM session_facts($1, $2, $3, $4, $5, $6)")
        .bind(tx.tenant())
        .bind(campaign)
        .bind(session)
        .bind(role.as_ref().map(ActiveEnum::to_value))
        .bind(held.campaign)
        .bind(held.heads)
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(|| Error::not_found("session"))?;
    Facts::of_row(&row, campaign, session)
}
