//! `get_party_members`: the player characters and their condition.

use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::{
    answers::{MemberTold, PartyMemberTold, PartyTold},
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::Result;
use base::stored::{self, Columns};
use world::sessions::service;

pub(super) struct GetPartyMembers;

/// The most player characters that are shown.
const MEMBERS_MAX: i64 = 100;

/// Nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {}

impl ToolSpec for GetPartyMembers {
    const NAME: &'static str = "get_party_members";
    const DESCRIPTION: &'static str =
        "See the player characters: who plays them, level, hit points, conditions, place.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Gm];
    const INFORMS: bool = true;
    const READS: bool = true;
    type Arguments = Arguments;
    type Answer = PartyTold;

    async fn run(cx: &ToolCx<'_>, _: Arguments) -> Result<Self::Answer> {
        let rows = sqlx::query(
            "SELECT id, slug, name, player_name, race, profession, level, hp, max_hp, temp_hp, armor_class, conditions, location \
             FROM character WHERE tenant_id = $1 AND campaign_id = $2 ORDER BY id LIMIT $3",
        )
        .bind(cx.work.tenant())
        .bind(cx.campaign)
        .bind(MEMBERS_MAX)
        .fetch_all(&mut *cx.tx().await?.connection().await)
        .await?;
        let members = stored::each(&rows, |row| {
            let (
                id,
                slug,
                name,
                player,
                race,
                profession,
                level,
                hp,
                max_hp,
                temp_hp,
                armor_class,
                conditions,
                location,
            ) = row.read_all()?;
            Ok(PartyMemberTold {
                id: Uuid::to_string(&id),
                slug,
                name,
                player,
                race,
                profession,
                level,
                hp,
                max_hp,
                temp_hp,
                armor_class,
                conditions,
                location,
            })
        });
        let told = match cx.session.filter(|_| members.is_empty()) {
            Some(session) => service::reported_world(cx.tx().await?, session.id, false)
                .await?
                .world_state
                .map(|w| w.party_compendium),
            None => None,
        };
        let members: Vec<MemberTold> = match told {
            Some(party) => party.into_iter().map(MemberTold::Reported).collect(),
            None => members.into_iter().map(MemberTold::Ours).collect(),
        };
        Ok(PartyTold { count: members.len(), members })
    }
}
