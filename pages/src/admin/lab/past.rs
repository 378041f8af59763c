//! A past turn in the lab. Its prompt is built again from the world as it is now. The sections that were recorded then
//! are shown beside it.

use uuid::Uuid;

use super::{
    asked::{Asked, Choice},
    why::words,
};
use crate::admin::{InCampaign, list::moment};
use ai::{
    prompt::preview::Preview,
    turns::{
        lab::{self, PromptSubject},
        list::{SummaryFilter, summaries},
        trace,
        view::TurnView,
    },
};
use base::error::{Error, Result};
use db::tenancy::TenantTx;
use edge::http::{paging::Page, resource};
use entity::kind::EntityKind;
use world::{characters::Characters, npcs::Npcs, owners::Owners};

/// The turns that the list offers.
const TURNS: &str = "limit=20&sort=-created_at";
/// The most characters of an action in the list of turns.
const ACTION_CHARS: usize = 60;

/// A turn's prompt as it was recorded, beside the present one.
pub struct Past {
    pub path: String,
    pub at: String,
    pub sections: Vec<Section>,
}

/// A section then and now.
pub struct Section {
    pub name: String,
    pub then_tokens: Option<u32>,
    pub now_tokens: Option<u32>,
    pub is_same: bool,
}

/// The turn's request, as choices in the page's lists.
///
/// # Errors
/// `not_found`.
pub async fn request_of_turn(at: &InCampaign, turn: &str) -> Result<Asked> {
    let tx = at.read().await?;
    let id = Uuid::try_parse(turn).map_err(|_| Error::not_found("turn"))?;
    let none = Asked { turn: turn.to_owned(), ..Asked::default() };
    let Some((subject, action)) = lab::of_turn(&tx, at.campaign.id.0, id).await? else { return Ok(none) };
    let campaign = resource::Ref::Id(at.campaign.id.0);
    let (campaign, named) = (Some(&campaign), resource::Ref::parse);
    let (entity, player) = match subject {
        PromptSubject::Session(id) => (format!("session:{id}"), String::new()),
        PromptSubject::Entity { kind, entity, player } => {
            let entity = match kind {
                EntityKind::Npc => {
                    format!("npc:{}", resource::find::<Npcs>(&tx, &at.caller, campaign, &named(&entity)).await?.slug)
                }
                EntityKind::Owner => format!(
                    "owner:{}",
                    resource::find::<Owners>(&tx, &at.caller, campaign, &named(&entity)).await?.slug
                ),
            };
            (entity, resource::find::<Characters>(&tx, &at.caller, campaign, &named(&player)).await?.slug)
        }
    };
    Ok(Asked { entity, player, action, ..none })
}

/// The record of a turn beside the present prompt.
///
/// # Errors
/// `not_found`.
pub async fn beside(at: &InCampaign, turn: &str, now: &Preview) -> Result<Past> {
    let id = Uuid::try_parse(turn).map_err(|_| Error::not_found("turn"))?;
    let tx = at.read().await?;
    let TurnView { prompt, created_at, .. } = trace::find(&tx, &at.caller, at.campaign.id.0, id).await?.turn;
    let then = prompt.map(|prompt| prompt.sections).unwrap_or_default();
    let mut sections: Vec<Section> = now
        .sections
        .iter()
        .map(|section| {
            let was = then.iter().find(|was| was.name == section.name);
            Section {
                name: words(section.name),
                then_tokens: was.map(|was| was.tokens),
                now_tokens: Some(section.tokens),
                is_same: was.is_some_and(|was| was.hash == section.hash),
            }
        })
        .collect();
    let gone = then.iter().filter(|was| now.sections.iter().all(|section| section.name != was.name));
    sections.extend(gone.map(|was| Section {
        name: words(&was.name),
        then_tokens: Some(was.tokens),
        now_tokens: None,
        is_same: false,
    }));
    Ok(Past { path: at.url(&format!("turns/{id}")), at: moment(created_at), sections })
}

/// The most recent turns that have a prompt.
///
/// # Errors
/// Database errors.
pub async fn turns(at: &InCampaign, tx: &TenantTx) -> Result<Vec<Choice>> {
    let page = Page::<SummaryFilter>::parse(TURNS)?;
    let found = summaries(tx, &at.caller, at.campaign.id.0, &page).await?;
    let with_prompt = found.items.into_iter().filter(|turn| matches!(turn.kind.as_str(), "npc" | "owner" | "gm"));
    Ok(with_prompt
        .map(|turn| {
            let who = turn.entity.unwrap_or_else(|| turn.kind.clone());
            let action: String = turn.action.chars().take(ACTION_CHARS).collect();
            (turn.id.to_string(), format!("{}, {who}: {action}", moment(turn.created_at)))
        })
        .collect())
}
