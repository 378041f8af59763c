//! `trigger_world_event`: something happens in an owner's domain. The log tells it to everybody, and for a day the prompts of those
//! whom it concerns tell it too.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    answers::EventTriggered,
    arguments::{line, text},
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::Result;
use edge::limits::check_rows;
use world::{messages::event, owners::domain::Domain};

pub(super) struct TriggerWorldEvent;

/// What happens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// What happens, as a short title such as `Flood`.
    #[schemars(length(min = 1, max = 200))]
    title: String,
    /// What everybody there knows about it, in a few sentences.
    #[schemars(length(min = 1, max = 1000))]
    description: String,
    /// The place where it happens. It must be in your domain. Leave it out if it concerns your whole domain.
    #[serde(default)]
    #[schemars(length(min = 1, max = 200))]
    location: Option<String>,
}

impl ToolSpec for TriggerWorldEvent {
    const NAME: &'static str = "trigger_world_event";
    const DESCRIPTION: &'static str =
        "Make something happen in your domain, or at one place in it. Everybody there knows it for a day.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = EventTriggered;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let title = line(&arguments.title, "/title")?;
        let description = text(&arguments.description, "/description", 1000)?;
        let location = arguments.location.as_deref().map(|place| line(place, "/location")).transpose()?;
        let tx = cx.tx().await?;
        let domain = Domain::of(tx, cx.campaign, cx.entity).await?;
        if let Some(place) = location {
            domain.covers(tx, place).await?;
        }
        check_rows(tx, cx.rows_max, "message").await?;
        let mut said = event::message(&domain.owner.name, format!("{title}: {description}"), domain.audience(location));
        said.turn_id = cx.turn;
        let id = said.id;
        cx.work.say(vec![said]).await?;
        Ok(EventTriggered { message_id: id })
    }
}
