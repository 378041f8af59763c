//! The world state overview: what a session's AI reads about the world before its first turn.

use entity::campaign;
use sea_orm::{EntityTrait, QueryFilter, sea_query::ExprTrait};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    combat::Fight,
    service::{self, ReportedWorld},
    world_state::{Pack, PartyMember, Scene, SessionInfo},
};
use crate::{encounters::combat::FightTold, playing::Playing};
use base::{
    error::{Error, Result},
    stored::{self, Columns},
    tokens,
};
use db::tenancy::TenantTx;
use edge::http::resource::col;

/// The most characters of the campaign that stand for the party if the frontend did not report one.
const PARTY_MAX: i64 = 200;

/// The overview.
#[derive(Debug, Serialize, ToSchema)]
pub struct Overview {
    pub session_info: SessionInfo,
    /// Null if neither the frontend nor the campaign has an active scene.
    pub active_scene: Option<Scene>,
    pub party_compendium: Vec<PartyMember>,
    pub compendium_index: Vec<Pack>,
    #[schema(value_type = Option<Object>)]
    pub active_encounter: Option<FightTold>,
}

/// Builds the overview from the frontend's report, and from the campaign where the frontend reported nothing.
///
/// # Errors
/// Database errors.
pub async fn overview(tx: &TenantTx, session: &Playing, known: ReportedWorld, fights: Vec<Fight>) -> Result<Overview> {
    let told = known.world_state.unwrap_or_default();
    let members =
        if told.party_compendium.is_empty() { party(tx, session.campaign).await? } else { told.party_compendium };
    let info = session_info(tx, session, told.session_info, &members).await?;
    let scene = match told.active_scene {
        Some(scene) => Some(scene),
        None => own_scene(tx, session.campaign, session.scene).await?,
    };
    let scene = scene.map(|scene| scene.seen_by(session.role));
    Ok(Overview {
        session_info: info,
        active_scene: scene,
        party_compendium: members,
        compendium_index: told.compendium_index,
        active_encounter: fights.into_iter().next().map(|fight| fight.told),
    })
}

/// The campaign's characters.
///
/// # Errors
/// Database errors.
pub async fn party(tx: &TenantTx, campaign: Uuid) -> Result<Vec<PartyMember>> {
    let rows = sqlx::query(
        "SELECT id, name, player_name FROM character WHERE tenant_id = $1 AND campaign_id = $2 ORDER BY id LIMIT $3",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(PARTY_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let member = |row: &sqlx::postgres::PgRow| {
        Ok(PartyMember {
            id: row.read::<Uuid>("id")?.to_string(),
            name: row.read("name")?,
            player: row.read("player_name")?,
        })
    };
    Ok(stored::each(&rows, member))
}

async fn session_info(
    tx: &TenantTx,
    session: &Playing,
    told: Option<SessionInfo>,
    party: &[PartyMember],
) -> Result<SessionInfo> {
    let mut info = told.unwrap_or_default();
    if info.gm_name.trim().is_empty() {
        info.gm_name = "Game Master".to_owned();
    }
    if info.players.is_empty() {
        for player in party.iter().filter_map(|m| m.player.as_ref()) {
            if !info.players.contains(player) {
                info.players.push(player.clone());
            }
        }
    }
    if info.game_system.trim().is_empty() {
        let campaign = campaign::Entity::find().filter(col("tenant_id").eq(tx.tenant()));
        let campaign = campaign.filter(col("id").eq(session.campaign)).one(tx).await?;
        info.game_system = campaign.map(|c| c.game_system).unwrap_or_default();
    }
    Ok(info)
}

/// The present scene: the one that the session's frontend reported, or the session's own, or the campaign's active one.
///
/// # Errors
/// Database errors.
pub async fn scene(tx: &TenantTx, campaign: Uuid, session: Option<&Playing>) -> Result<Option<Scene>> {
    let told = match session {
        Some(session) => service::reported_world(tx, session.id, false).await?.world_state.and_then(|w| w.active_scene),
        None => None,
    };
    match told {
        Some(scene) => Ok(Some(scene)),
        None => own_scene(tx, campaign, session.and_then(|s| s.scene)).await,
    }
}

/// A session's own scene, or else the campaign's active one. Of several active scenes, the one that changed last. One statement.
///
/// # Errors
/// Database errors.
pub async fn own_scene(tx: &TenantTx, campaign: Uuid, own: Option<Uuid>) -> Result<Option<Scene>> {
    let row = sqlx::query(
        "SELECT to_jsonb(s) AS row FROM scene s WHERE tenant_id = $1 AND campaign_id = $2 AND (id = $3 OR active AND $3 IS NULL) \
         ORDER BY updated_at DESC, id LIMIT 1",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(own)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map(|row| Ok(Scene::of_row(&row.read("row")?))).transpose()
}

impl Overview {
    /// The overview as JSON of at most `tokens_max` tokens, and what was cut to fit: packs first, then the scene's lights, notes
    /// and tokens, then the party.
    ///
    /// # Errors
    /// `internal` if it cannot be written as JSON.
    pub fn within(mut self, tokens_max: u32) -> Result<(String, String)> {
        let mut cut = Vec::new();
        loop {
            let text = serde_json::to_string(&self).map_err(Error::internal)?;
            if tokens::count(&text) <= tokens_max {
                return Ok((text, self.describe(&cut)));
            }
            match self.halve_one() {
                Some(list) if cut.last() != Some(&list) => cut.push(list),
                Some(_) => {}
                None => return Ok((text, self.describe(&cut))),
            }
        }
    }

    /// Halves the first list that is not empty. Players' tokens are cut last.
    fn halve_one(&mut self) -> Option<&'static str> {
        fn half<T>(list: &mut Vec<T>) -> bool {
            let had = list.len();
            list.truncate(had / 2);
            had > 0
        }
        if half(&mut self.compendium_index) {
            return Some("compendium_index");
        }
        if let Some(scene) = &mut self.active_scene {
            scene.tokens.sort_by_key(|t| !t.is_player);
            if half(&mut scene.light_sources) {
                return Some("light_sources");
            }
            if half(&mut scene.notes) {
                return Some("notes");
            }
            if half(&mut scene.tokens) {
                return Some("tokens");
            }
        }
        if half(&mut self.party_compendium) {
            return Some("party_compendium");
        }
        if half(&mut self.session_info.players) {
            return Some("players");
        }
        self.active_encounter.take().map(|_| "active_encounter")
    }

    fn describe(&self, cut: &[&str]) -> String {
        if cut.is_empty() { String::new() } else { format!("entries of {} did not fit", cut.join(", ")) }
    }
}
