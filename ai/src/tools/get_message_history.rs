//! `get_message_history`: the newest messages that the caller may read.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    answers::MessageHistory,
    shorten::RESULT_BYTES_MAX,
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::{Error, Result};
use edge::http::bounds::size;
use world::messages::service;

pub(super) struct GetMessageHistory;

const COUNT: i64 = 15;
const COUNT_MAX: i64 = 50;

/// How many of the newest messages fit into one result. At least one: a message that is too large is shortened later.
fn newest_that_fit(messages: &[Value]) -> usize {
    let mut bytes = 0;
    let fit = messages.iter().rev().take_while(|message| {
        bytes += size(message) + 1;
        bytes < RESULT_BYTES_MAX - 1024
    });
    fit.count().max(messages.len().min(1))
}

/// How many, and how.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// How many messages; 15 if not given.
    #[serde(default, alias = "limit")]
    #[schemars(range(min = 1, max = 50))]
    count: Option<i64>,
    /// Short keys: t type, ts time, s speaker, a alias, c content, f formula, tt total, r dice, ft flavor.
    #[serde(default)]
    compact: bool,
}

impl ToolSpec for GetMessageHistory {
    const NAME: &'static str = "get_message_history";
    const ALIASES: &'static [&'static str] = &["get_messages"];
    const DESCRIPTION: &'static str = "Read the newest chat messages and dice rolls, oldest first.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Gm];
    const INFORMS: bool = true;
    const READS: bool = true;
    type Arguments = Arguments;
    type Answer = MessageHistory;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let count = arguments.count.unwrap_or(COUNT);
        if !(1..=COUNT_MAX).contains(&count) {
            let message = format!("count must be an integer between 1 and {COUNT_MAX}");
            return Err(Error::invalid("/count", "invalid_value", message));
        }
        let mut messages = service::history(cx.tx().await?, cx.campaign, cx.reader, count, arguments.compact).await?;
        // A message with several rolls counts once for each roll.
        let over = messages.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        messages.drain(..over);
        let over = messages.len() - newest_that_fit(&messages);
        messages.drain(..over);
        let shortened = (over > 0).then(|| format!("The {over} oldest of them have no room here. Ask for fewer."));
        Ok(MessageHistory { count: messages.len(), messages, shortened })
    }
}
