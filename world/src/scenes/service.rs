//! Finds the scene that a request names: by id or slug, or by a frontend's channel. A channel's scene is created when
//! the channel is first used.

use uuid::Uuid;

use super::Scenes;
use base::{
    clock,
    error::{Code, Error, Result},
    stored::Columns,
};
use edge::{
    http::resource::{self, Place, Ref, Resource as _},
    limits,
};

/// The scene that a request names by `scene_id`, by `channel`, or by both if they agree.
///
/// # Errors
/// `validation_failed` at `/scene_id` for a scene that does not exist, at `/channel` for the channel of another scene;
/// those of [`of_channel`].
pub async fn named(place: &Place<'_>, scene: Option<&str>, channel: Option<&str>) -> Result<Option<Uuid>> {
    let Some(name) = scene else {
        return match channel {
            Some(channel) => of_channel(place, channel).await.map(Some),
            None => Ok(None),
        };
    };
    let (campaign, name) = (Ref::Id(place.campaign), Ref::parse(name));
    let found = resource::find::<Scenes>(place.tx, place.caller, Some(&campaign), &name);
    let found = found.await.map_err(|e| match e.code.status() {
        404 => Error::invalid("/scene_id", "unknown_reference", "There is no such scene in this campaign."),
        _ => e,
    })?;
    check_channel(channel, found.channel.as_deref())?;
    Ok(Some(found.id.0))
}

/// Checks that a channel, if a request names one besides the scene, is that of the scene.
///
/// # Errors
/// `validation_failed` at `/channel`.
pub fn check_channel(named: Option<&str>, of_scene: Option<&str>) -> Result<()> {
    if named.is_none() || named == of_scene {
        return Ok(());
    }
    let message = "The scene in `scene_id` does not belong to this channel. Give only one of the two.";
    Err(Error::invalid("/channel", "invalid_value", message))
}

/// The scene of a channel. If there is none, a scene named after the channel is created; concurrent callers all get the
/// same one. Takes one statement if the scene exists.
///
/// # Errors
/// `quota_exceeded`; an error that a retry avoids if somebody else took the channel's slug or deleted its scene just
/// now; those of the database.
pub async fn of_channel(place: &Place<'_>, channel: &str) -> Result<Uuid> {
    if let Some(id) = find(place, channel).await? {
        return Ok(id);
    }
    limits::check_rows(place.tx, place.caller.tenant.limits.rows_per_kind, Scenes::TABLE).await?;
    if let Some(id) = make(place, channel).await? {
        return Ok(id);
    }
    let made_by_another = find(place, channel).await?;
    made_by_another.ok_or_else(|| {
        Error::new(Code::Conflict, "Others keep creating and deleting the channel's scene. Try again.").will_pass()
    })
}

async fn find(place: &Place<'_>, channel: &str) -> Result<Option<Uuid>> {
    let row = sqlx::query("SELECT id FROM scene WHERE tenant_id = $1 AND campaign_id = $2 AND channel = $3")
        .bind(place.tx.tenant())
        .bind(place.campaign)
        .bind(channel)
        .fetch_optional(&mut *place.tx.connection().await)
        .await?;
    row.map(|row| row.read("id")).transpose()
}

/// Creates a channel's scene. Returns none if somebody else took the channel or the slug meanwhile. If somebody is just creating it, this waits for them.
async fn make(place: &Place<'_>, channel: &str) -> Result<Option<Uuid>> {
    let slug = resource::free_slug::<Scenes>(place, channel).await?;
    let row = sqlx::query(
        "INSERT INTO scene (tenant_id, id, campaign_id, slug, name, channel, description, active, width, height, grid, tokens, \
             notes, light_sources) VALUES ($1, $2, $3, $4, $5, $5, '', false, 0, 0, '{}', '[]', '[]', '[]') \
         ON CONFLICT DO NOTHING RETURNING id",
    )
    .bind(place.tx.tenant())
    .bind(clock::id())
    .bind(place.campaign)
    .bind(slug)
    .bind(channel)
    .fetch_optional(&mut *place.tx.connection().await)
    .await?;
    row.map(|row| row.read("id")).transpose()
}
