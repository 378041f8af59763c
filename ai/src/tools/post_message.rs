//! `post_message`: the AI of a session says something at the table.

use std::collections::{BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{
    answers::{PostSent, PostsSent},
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::{
    error::{Error, Result},
    text,
};
use world::{
    messages::service::{CONTENT_CHARS_MAX, NewMessage, OOC},
    sessions::events::characters_named,
};

pub(super) struct PostMessage;

/// The most messages of one call.
const MESSAGES_MAX: usize = 20;

/// How it is said.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PostType {
    #[default]
    Ic,
    Ooc,
    Emote,
}

/// One message.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Post {
    /// What is said.
    content: String,
    /// Who says it; the game master if not given.
    #[serde(default)]
    speaker_name: Option<String>,
    /// A line beside it.
    #[serde(default)]
    flavor: Option<String>,
    /// In character (`ic`), out of character (`ooc`), or what someone does (`emote`).
    #[serde(default, rename = "type")]
    kind: PostType,
    /// Who alone may read it: `gm` or player characters, by id or slug. Empty: everyone.
    #[serde(default)]
    whisper_to: Vec<String>,
}

/// One message, or several.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// What is said, for one message.
    #[serde(default)]
    content: Option<String>,
    /// Who says it; the game master if not given.
    #[serde(default)]
    speaker_name: Option<String>,
    /// A line beside it.
    #[serde(default)]
    flavor: Option<String>,
    /// In character (`ic`), out of character (`ooc`), or what someone does (`emote`).
    #[serde(default, rename = "type")]
    kind: PostType,
    /// Who alone may read it: `gm` or player characters, by id or slug. Empty: everyone.
    #[serde(default)]
    whisper_to: Vec<String>,
    /// Several messages instead, in order.
    #[serde(default)]
    #[schemars(length(max = 20))]
    messages: Vec<Post>,
}

impl Arguments {
    fn posts(self) -> Result<Vec<Post>> {
        let Self { content, speaker_name, flavor, kind, whisper_to, messages } = self;
        match (content, messages.len()) {
            (Some(content), 0) => Ok(vec![Post { content, speaker_name, flavor, kind, whisper_to }]),
            (None, 1..=MESSAGES_MAX) => Ok(messages),
            (Some(_), _) => {
                Err(Error::invalid("/messages", "invalid_value", "Give `content` or `messages`, not both."))
            }
            (None, 0) => Err(Error::invalid("/content", "required", "Give `content`, or `messages` for several.")),
            (None, _) => {
                Err(Error::invalid("/messages", "invalid_value", format!("Give at most {MESSAGES_MAX} messages.")))
            }
        }
    }
}

impl ToolSpec for PostMessage {
    const NAME: &'static str = "post_message";
    const ALIASES: &'static [&'static str] = &["post_messages"];
    const DESCRIPTION: &'static str = "Post a chat message at the table, in the voice of anyone the game master plays. What you \
        answer outside of tools is told as narration by itself: do not post it again.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Gm];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = PostsSent;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let posts = arguments.posts()?;
        let names: BTreeSet<&str> =
            posts.iter().flat_map(|p| &p.whisper_to).map(String::as_str).filter(|n| *n != "gm").collect();
        let people = if names.is_empty() {
            HashMap::new()
        } else {
            characters_named(cx.tx().await?, cx.campaign, &names.into_iter().collect::<Vec<_>>()).await?
        };
        let mut results = Vec::with_capacity(posts.len());
        let mut messages = Vec::with_capacity(posts.len());
        for post in posts {
            let unknown = post.whisper_to.iter().find(|n| *n != "gm" && !people.contains_key(*n));
            let error = match unknown {
                Some(name) => Some(format!("There is no character `{name}` to whisper to.")),
                None => fault(&post),
            };
            match error {
                Some(error) => results.push(PostSent { id: None, success: false, error: Some(error) }),
                None => {
                    let whisper: Vec<String> = post
                        .whisper_to
                        .iter()
                        .map(|n| people.get(n).map_or_else(|| n.clone(), Uuid::to_string))
                        .collect();
                    let message = message_of(cx, post, whisper);
                    results.push(PostSent { id: Some(message.id), success: true, error: None });
                    messages.push(message);
                }
            }
        }
        let sent = messages.len();
        cx.work.say(messages).await?;
        Ok(PostsSent { sent_count: sent, results })
    }
}

/// Why a message cannot be posted.
fn fault(post: &Post) -> Option<String> {
    let long = |text: &Option<String>| text.as_ref().is_some_and(|t| t.chars().count() > 200);
    if post.content.trim().is_empty() {
        return Some("content must not be empty".to_owned());
    }
    if post.content.chars().count() > CONTENT_CHARS_MAX {
        return Some(format!("content must have at most {CONTENT_CHARS_MAX} characters"));
    }
    if long(&post.speaker_name) || long(&post.flavor) {
        return Some("speaker_name and flavor must have at most 200 characters".to_owned());
    }
    None
}

fn message_of(cx: &ToolCx<'_>, post: Post, whisper: Vec<String>) -> NewMessage {
    let speaker = |given: Option<String>, own: &str| {
        given
            .filter(|s| !s.trim().is_empty())
            .map_or_else(|| own.to_owned(), |s| text::on_one_line(s.trim()).into_owned())
    };
    let mut message = match cx.session {
        Some(session) => {
            let name = speaker(post.speaker_name, session.speaker());
            NewMessage::of_session(session, cx.turn, &name, post.content)
        }
        None => NewMessage {
            turn_id: cx.turn,
            ..NewMessage::chat(entity::message::Author::Ai, &speaker(post.speaker_name, "Game Master"), post.content)
        },
    };
    if !whisper.is_empty() {
        message.whisper_to = whisper;
    }
    let is_ooc = matches!(post.kind, PostType::Ooc);
    message.flavor = post.flavor.or_else(|| is_ooc.then(|| OOC.to_owned()));
    message.extensions.insert("post_type".to_owned(), json!(post.kind));
    message
}
