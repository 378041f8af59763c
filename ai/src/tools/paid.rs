//! Makes an owner pay influence for a call, then runs it. Other callers pay nothing.

use serde_json::Value;

use super::{
    Tool,
    spec::{ActorKind, ToolCx},
};
use base::error::Result;
use world::owners::influence::{self, Prices};

/// What a call to a tool costs its caller.
#[must_use]
pub fn price(prices: &Prices, kind: ActorKind, tool: &Tool) -> f64 {
    if kind == ActorKind::Owner { prices.price(tool.name) } else { 0.0 }
}

/// Runs a call if its caller can pay for it, then spends the price; all in the call's transaction. A call that fails costs nothing.
///
/// # Errors
/// `insufficient_influence`, and those of the tool.
pub async fn run(cx: &ToolCx<'_>, tool: &Tool, arguments: Value, price: f64) -> Result<Value> {
    if price <= 0.0 {
        return tool.run(cx, arguments).await;
    }
    influence::needs(cx.tx().await?, cx.entity, tool.name, price).await?;
    let result = tool.run(cx, arguments).await?;
    influence::spend(cx.tx().await?, cx.entity, price).await?;
    Ok(result)
}
