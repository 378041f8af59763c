//! The state of a session: who plays, how far its turns have got, where it plays, and which versions its prompt is built from. One
//! database function (`session_facts`) reads everything, so that a turn begins in one round trip.

use entity::{session::Role, shapes::Extensions};
use sea_orm::ActiveEnum;
use sqlx::{postgres::PgRow, types::Json};
use uuid::Uuid;

use super::service::{Position, Standing};
use crate::playing::Playing;
use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// Where a session plays and as whom, for selecting lore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// The location of the present scene, or else its name.
    pub place: Option<String>,
    /// The race and profession of the character that the AI plays.
    pub race: Option<String>,
    pub profession: Option<String>,
}

/// The campaign's data for prompts.
#[derive(Clone, Debug)]
pub struct CampaignNow {
    pub version: i64,
    pub name: String,
    pub game_system: String,
    pub game_time: Option<String>,
    pub description: String,
    pub instructions: String,
    pub settings: Extensions,
}

/// What the server has in memory about a campaign and its lore: the campaign's version, and the heads of lore whose versions are
/// needed.
#[derive(Clone, Copy, Debug, Default)]
pub struct CachedFacts<'a> {
    pub campaign: Option<i64>,
    pub heads: &'a [String],
}

/// The state of a session at one moment.
#[derive(Debug)]
pub struct Facts {
    pub playing: Playing,
    pub standing: Standing,
    pub at: Whereabouts,
    /// None if the version in memory is current.
    pub campaign: Option<CampaignNow>,
    /// The version of the session's conversation.
    pub talk: i64,
    /// The versions of the requested heads of lore.
    pub heads: Vec<i64>,
    /// Whether there may be fights in progress.
    pub has_fights: bool,
    /// Whether the feed has entries since the session's last completed turn that are not from the session.
    pub has_news: bool,
    /// Whether the session completed a turn in any role.
    pub has_played: bool,
}

impl Facts {
    /// Reads a row of `session_facts`.
    ///
    /// # Errors
    /// `internal` if the row cannot be read.
    pub fn of_row(row: &PgRow, campaign: Uuid, id: Uuid) -> Result<Self> {
        let settings: Option<Json<Extensions>> = row.read("settings")?;
        let now = settings.map(|settings| -> Result<_> {
            Ok(CampaignNow {
                version: row.read("campaign_version")?,
                name: row.read("campaign_name")?,
                game_system: row.read("game_system")?,
                game_time: row.read("game_time")?,
                description: row.read("description")?,
                instructions: row.read("instructions")?,
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

/// The present state of a campaign's session, with another role if one is given. Data that is read later may be newer. Then the
/// next turn repeats it, and nothing is lost. One statement.
///
/// # Errors
/// `not_found`.
pub async fn facts(
    tx: &TenantTx,
    campaign: Uuid,
    session: Uuid,
    role: Option<Role>,
    held: CachedFacts<'_>,
) -> Result<Facts> {
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
