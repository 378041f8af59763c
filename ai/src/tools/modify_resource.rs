//! `modify_resource`: an owner gains or loses some of what it has.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    answers::ResourceChanged,
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::{Error, Result};
use world::owners::{change_resource, domain::Domain};

pub(super) struct ModifyResource;

const CHANGE_MAX: f64 = 1_000_000_000.0;

/// What changes, and by how much.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The name of one of your resources.
    resource_id: String,
    /// By how much it changes; less than 0 to take away. There is never less than 0 or more than its maximum.
    #[schemars(range(min = -1_000_000_000, max = 1_000_000_000))]
    change_amount: f64,
}

impl ToolSpec for ModifyResource {
    const NAME: &'static str = "modify_resource";
    const DESCRIPTION: &'static str =
        "Add to one of your resources, or take from it. Those who answer to you know how much there is.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = ResourceChanged;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Value> {
        let by = arguments.change_amount;
        if !(-CHANGE_MAX..=CHANGE_MAX).contains(&by) {
            let why = "must be from -1000000000 to 1000000000";
            return Err(Error::invalid("/change_amount", "invalid_value", why));
        }
        let tx = cx.tx().await?;
        let domain = Domain::of(tx, cx.campaign, cx.entity).await?;
        let now = change_resource(tx, &domain.owner, &arguments.resource_id, by).await?;
        Ok(json!({ "resource": now.name, "amount": now.amount }))
    }
}
