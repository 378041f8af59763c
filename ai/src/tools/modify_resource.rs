//! `modify_resource`: an owner gains or loses some of what it has.

use entity::shapes::OwnerResource;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    arguments::line,
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::{Error, Result};
use world::{
    actors,
    owners::{change_resource, domain::Domain},
};

pub(super) struct ModifyResource;

const CHANGE_MAX: f64 = 1_000_000_000.0;

/// What changes, and by how much.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The name of the resource, such as `grain`. A new name begins with 0.
    #[schemars(length(min = 1, max = 200))]
    name: String,
    /// By how much it changes; less than 0 to take away. You cannot take more than there is.
    #[schemars(range(min = -1_000_000_000, max = 1_000_000_000))]
    change: f64,
    /// The place where it is. It must be in your domain.
    #[serde(default)]
    #[schemars(length(min = 1, max = 200))]
    location: Option<String>,
}

impl ToolSpec for ModifyResource {
    const NAME: &'static str = "modify_resource";
    const DESCRIPTION: &'static str =
        "Add to something that you have, or take from it. Those who answer to you know how much there is.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = OwnerResource;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let name = line(&arguments.name, "/name")?;
        let by = arguments.change;
        if !(-CHANGE_MAX..=CHANGE_MAX).contains(&by) {
            return Err(Error::invalid("/change", "invalid_value", "must be from -1000000000 to 1000000000"));
        }
        let location = arguments.location.as_deref().map(|place| line(place, "/location")).transpose()?;
        let tx = cx.tx().await?;
        let domain = Domain::of(tx, cx.campaign, cx.entity).await?;
        if domain.owner.ai_lock {
            return Err(actors::locked(&domain.owner.name));
        }
        if let Some(place) = location {
            domain.covers(tx, place).await?;
        }
        change_resource(tx, &domain.owner, (name, location), by).await
    }
}
