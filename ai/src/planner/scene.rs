//! Who acts in a plan, and where: what the names of a request stand for.
//!
//! The server remembers this with the version heads from which it was read. A plan begins only if they have not changed since
//! (`turn_begin`); otherwise it is read again.

use std::sync::Arc;

use serde_json::Value;
use sqlx::{AssertSqlSafe, postgres::PgRow};
use uuid::Uuid;

use super::{
    memory::{Names, Scene},
    request::ActRequest,
};
use crate::{state::Ai, turns::store::Stamps};
use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::{caller::Caller, http::resource::Ref};
use world::{paused::ALL_PAUSED, scenes, significance::scores::ReportActions};

impl Scene {
    /// What the names in a request stand for, from memory or else from the database.
    ///
    /// # Errors
    /// `not_found` for the campaign, `forbidden` for another player than the caller's, `validation_failed` for the player and the scene.
    pub async fn of(app: &Ai, caller: &Caller, request: &ActRequest) -> Result<Arc<Self>> {
        // If the caller may not use what is remembered, the names may stand for something else by now.
        let known = app.planner.scenes.get(&names(caller, request));
        if let Some(known) = known.filter(|known| check(caller, known.campaign, Some(known.player)).is_ok()) {
            return Ok(known);
        }
        Self::read(app, &TenantTx::read(&app.pool, caller.tenant_id()).await?, caller, request).await
    }

    /// The same from the database. One statement.
    ///
    /// # Errors
    /// As for [`Self::of`].
    pub async fn read(app: &Ai, tx: &TenantTx, caller: &Caller, request: &ActRequest) -> Result<Arc<Self>> {
        let by = |name: Option<&str>| match name.map(Ref::parse) {
            Some(Ref::Id(id)) => (Some(id), None),
            Some(Ref::Slug(slug)) => (None, Some(slug)),
            None => (None, None),
        };
        let (campaign, campaign_slug) = by(Some(&request.campaign));
        let (player, player_slug) = by(Some(&request.player));
        let (scene, scene_slug) = by(request.scene.as_deref());
        let row = sqlx::query(AssertSqlSafe(format!(
            "SELECT c.id AS campaign, c.settings -> 'planner_commands' AS allowed, c.settings -> 'report_actions' AS report_actions, \
               c.settings -> 'models' AS models, p.id AS player, p.slug, p.name, s.id AS scene, s.channel, \
               character_fallen(p.hp, p.max_hp, p.death_saves, p.conditions) IS NOT NULL AS is_fallen, {ALL_PAUSED} AS is_paused, \
               (SELECT coalesce(sum(h.version), 0)::bigint FROM version_head h WHERE h.tenant_id = $1 AND h.campaign_id = c.id \
                  AND h.key IN ('campaign:' || c.id, 'player:' || p.id, 'scene:' || s.id)) AS versions \
             FROM campaign c \
             LEFT JOIN character p ON p.tenant_id = $1 AND p.campaign_id = c.id AND (p.id = $4 OR p.slug = $5) \
             LEFT JOIN scene s ON s.tenant_id = $1 AND s.campaign_id = c.id AND (s.id = $6 OR s.slug = $7 OR s.channel = $8) \
             WHERE c.tenant_id = $1 AND (c.id = $2 OR c.slug = $3)",
        )))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(campaign_slug)
        .bind(player)
        .bind(player_slug)
        .bind(scene)
        .bind(scene_slug)
        .bind(request.channel.as_deref().filter(|_| request.scene.is_none()))
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(|| Error::not_found("campaign"))?;
        let scene = Arc::new(Self::of_row(&row, caller, request)?);
        // A new channel has no head that would show when it gets its scene.
        if !scene.is_new_channel {
            app.planner.scenes.insert(names(caller, request), scene.clone());
        }
        Ok(scene)
    }

    fn of_row(row: &PgRow, caller: &Caller, request: &ActRequest) -> Result<Self> {
        let campaign: Uuid = row.read("campaign")?;
        // Before anything is said about the campaign.
        check(caller, campaign, row.read("player")?)?;
        let unknown = |pointer: &str, what: &str| {
            Error::invalid(pointer, "unknown_reference", format!("There is no such {what} in this campaign."))
        };
        let player: Uuid = row.read::<Option<_>>("player")?.ok_or_else(|| unknown("/player_id", "character"))?;
        let scene: Option<Uuid> = row.read("scene")?;
        if request.scene.is_some() {
            if scene.is_none() {
                return Err(unknown("/scene_id", "scene"));
            }
            scenes::service::check_channel(request.channel.as_deref(), row.read("channel")?)?;
        }
        let mut heads = vec![format!("campaign:{campaign}"), format!("player:{player}")];
        heads.extend(scene.map(|scene| format!("scene:{scene}")));
        let [allowed, reports, models]: [Option<Value>; 3] =
            [row.read("allowed")?, row.read("report_actions")?, row.read("models")?];
        let bytes: usize = [&allowed, &reports, &models].into_iter().flatten().map(|v| v.to_string().len()).sum();
        Ok(Self {
            campaign,
            player,
            player_slug: row.read("slug")?,
            player_name: row.read("name")?,
            scene,
            is_new_channel: scene.is_none() && request.channel.is_some(),
            allowed,
            models,
            report_actions: ReportActions::of(reports.as_ref()),
            is_fallen: row.read("is_fallen")?,
            is_paused: row.read("is_paused")?,
            heads,
            heads_sum: row.read("versions")?,
            bytes: u32::try_from(2000 + 2 * bytes).unwrap_or(u32::MAX),
        })
    }

    /// The heads that it was read from.
    pub fn stamps(&self) -> Stamps<'_> {
        Stamps { heads: &self.heads, sum: self.heads_sum }
    }
}

/// Checks that a caller's token reaches this campaign and player.
fn check(caller: &Caller, campaign: Uuid, player: Option<Uuid>) -> Result<()> {
    if caller.campaign.is_some_and(|only| only != campaign) {
        return Err(Error::not_found("campaign"));
    }
    player.map_or(Ok(()), |player| caller.may_act_as(player))
}

fn names(caller: &Caller, request: &ActRequest) -> Names {
    Names {
        tenant: caller.tenant_id(),
        campaign: request.campaign.clone(),
        player: request.player.clone(),
        scene: request.scene.clone(),
        channel: request.channel.clone(),
    }
}
