//! `trigger_world_event`: something happens in an owner's domain. The event becomes lore, which from then on is in the
//! prompts of the owner and of everybody whom the lore concerns.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    answers::EventTriggered,
    arguments::{line, text},
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::Result;
use edge::limits::check_rows;
use world::{lore::events, owners::domain::Domain};

pub(super) struct TriggerWorldEvent;

/// What happens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// What happens, as a short title such as `Flood`. The same title again rewrites what is told about the event.
    #[schemars(length(min = 1, max = 200))]
    event_type: String,
    /// What everybody there knows about it, in a few sentences.
    #[serde(default)]
    #[schemars(length(min = 1, max = 4000))]
    details: Option<String>,
}

impl ToolSpec for TriggerWorldEvent {
    const NAME: &'static str = "trigger_world_event";
    const DESCRIPTION: &'static str = "Make something happen in the place, race, profession or faction that you watch over. Everybody \
        whom it concerns knows it from then on.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = EventTriggered;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Value> {
        let title = line(&arguments.event_type, "/event_type")?;
        let content = match &arguments.details {
            Some(details) => text(details, "/details", 4000)?.to_owned(),
            None => format!("This has happened: {title}."),
        };
        let tx = cx.tx().await?;
        let owner = Domain::of(tx, cx.campaign, cx.entity).await?.owner;
        let before = events::before(tx, &owner, title).await?;
        if before.is_none() {
            check_rows(tx, cx.rows_max, "lore").await?;
        }
        let written = events::write(tx, &owner, before, title, &content).await?;
        Ok(json!({ "lore_id": written.lore, "slug": written.slug, "rewritten": written.is_rewritten }))
    }
}
