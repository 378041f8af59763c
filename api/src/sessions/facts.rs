//! What a session stands on: who plays, where its turns have got to, where it plays, and which versions its prompt is made of. One
//! function of the database (`session_facts`) reads all of it, so that a turn opens in one round trip.

use entity::{session::Role, shapes::Extensions};
use sea_orm::ActiveEnum;
use sqlx::{postgres::PgRow, types::Json};
use uuid::Uuid;

use super::service::{Playing, Position, Standing};
use crate::{
    error::{Error, Result},
    stored::Columns,
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
        let settings: Option<Json<Extensions>> = row.read("settings")?;
        let now = settings.map(|settings| -> Result<_> {
            Ok(CampaignNow {
                version: row.read("campaign_version")?,
                name: row.read("campaign_name")?,
                game_system: row.read("game_system")?,
                game_time: row.read("game_time")?,
                description: row.read("description")?,
                settings: settings.0,
            })
        });
        let seen: Option<i64> = row.read("seen_seq")?;
        Ok(Self {
            playing: Playing::of_row(row, campaign, id)?,
            standing: Standing {
                cursor: seen
                    .map(|seq| -> Result<_> {
                        Ok(Position { seq, event: row.read::<Option<i64>>("seen_event")?.unwrap_or_default() })
                    })
                    .transpose()?,
                began: Position { seq: row.read("from_seq")?, event: 0 },
                now: Position { seq: row.read("seq")?, event: row.read("events")? },
                pruned: row.read("pruned")?,
            },
            at: Whereabouts { place: row.read("place")?, race: row.read("race")?, profession: row.read("profession")? },
            campaign: now.transpose()?,
            talk: row.read("talk")?,
            heads: row.read("heads")?,
            has_fights: row.read("has_fights")?,
            has_news: row.read("has_news")?,
            has_played: row.read("has_played")?,
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
