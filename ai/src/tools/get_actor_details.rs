//! `get_actor_details`: the sheet of a character or an NPC, or the members of it that match a phrase.

use entity::{character, npc, session::Role};
use schemars::JsonSchema;
use sea_orm::{EntityTrait, QueryFilter, sea_query::ExprTrait};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    answers::{ActorDetails, ActorMatch},
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::{
    error::{Error, Result},
    fold::fold,
    stored::Columns,
};
use edge::http::resource::col;
use world::sessions::overview;

pub(super) struct GetActorDetails;

const MATCHES_MAX: usize = 100;
/// Members of rows that say nothing about the character or NPC.
const BOOKKEEPING: &[&str] = &[
    "campaign_id",
    "version",
    "created_at",
    "updated_at",
    "extensions",
    "external_ref",
    "turn_flags",
    "available_tools",
    "model",
    "instructions",
    "post_history_instructions",
    "authors_note",
    "greetings",
    "pending_instructions",
];
/// The members of an NPC that players may see.
const SEEN_BY_PLAYERS: &[&str] = &["id", "slug", "name", "description", "race", "profession", "location"];

/// Whose sheet, and what of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// A character or NPC, by id or slug, or a token of the scene that is played.
    actor_id: String,
    /// Only members whose name or value holds this.
    #[serde(default)]
    #[schemars(length(max = 200))]
    search_phrase: Option<String>,
}

impl ToolSpec for GetActorDetails {
    const NAME: &'static str = "get_actor_details";
    const DESCRIPTION: &'static str =
        "Read the sheet of a character or NPC: all of it, or what a search phrase finds in it.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Gm];
    const INFORMS: bool = true;
    const READS: bool = true;
    type Arguments = Arguments;
    type Answer = ActorDetails;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let name = arguments.actor_id.trim();
        let found = match sheet(cx, name).await? {
            Some(found) => Some(found),
            None => match token_actor(cx, name).await? {
                Some(actor) => sheet(cx, &actor).await?,
                None => None,
            },
        };
        let data = found.ok_or_else(|| {
            let message = "There is no such character, NPC or token here.";
            Error::invalid("/actor_id", "unknown_reference", message)
        })?;
        let name = data.get("name").cloned().unwrap_or_default();
        match arguments.search_phrase.as_deref().map(str::trim).filter(|p| !p.is_empty()) {
            None => Ok(ActorDetails { name, data: Some(data), matches: None, total_matches: None }),
            Some(phrase) => {
                let mut matches = Vec::new();
                search(&data, &mut String::new(), &fold(phrase), &mut matches);
                let total = matches.len();
                matches.truncate(MATCHES_MAX);
                Ok(ActorDetails { name, data: None, matches: Some(matches), total_matches: Some(total) })
            }
        }
    }
}

/// The character or NPC that a token of the scene stands for.
async fn token_actor(cx: &ToolCx<'_>, name: &str) -> Result<Option<String>> {
    let scene = overview::scene(cx.tx().await?, cx.campaign, cx.session).await?;
    let token = scene.and_then(|s| s.tokens.into_iter().find(|t| t.id == name || t.name.eq_ignore_ascii_case(name)));
    Ok(token.and_then(|t| t.actor_id))
}

async fn sheet(cx: &ToolCx<'_>, name: &str) -> Result<Option<Value>> {
    let row = sqlx::query(
        "SELECT kind, actor_id FROM actor_slug WHERE tenant_id = $1 AND campaign_id = $2 AND kind IN ('character', 'npc') \
           AND (slug = $3 OR actor_id = $4)",
    )
    .bind(cx.work.tenant())
    .bind(cx.campaign)
    .bind(name)
    .bind(Uuid::try_parse(name).ok())
    .fetch_optional(&mut *cx.tx().await?.connection().await)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let own = col("tenant_id").eq(cx.work.tenant()).and(col("id").eq(row.read::<Uuid>("actor_id")?));
    let is_npc = row.read::<&str>("kind")? == "npc";
    let data = if is_npc {
        npc::Entity::find().filter(own).one(cx.tx().await?).await?.map(serde_json::to_value)
    } else {
        character::Entity::find().filter(own).one(cx.tx().await?).await?.map(serde_json::to_value)
    };
    let mut data = data.transpose().map_err(Error::internal)?;
    if let Some(Value::Object(members)) = &mut data {
        let for_player = is_npc && cx.reader.role == Role::Player;
        members.retain(|name, value| {
            let known = !BOOKKEEPING.contains(&name.as_str()) && *value != Value::Null;
            known && (!for_player || SEEN_BY_PLAYERS.contains(&name.as_str()))
        });
    }
    Ok(data)
}

/// Finds values whose path or text contains the phrase, ignoring case.
fn search(value: &Value, path: &mut String, phrase: &str, found: &mut Vec<ActorMatch>) {
    let mut below = |name: &str, value: &Value| {
        let length = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        search(value, path, phrase, found);
        path.truncate(length);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| below(name, value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(i, value)| below(&i.to_string(), value)),
        leaf => {
            let text = leaf.as_str().map_or_else(|| leaf.to_string(), str::to_owned);
            if fold(path).contains(phrase) || fold(&text).contains(phrase) {
                found.push(ActorMatch { path: path.clone(), value: leaf.clone() });
            }
        }
    }
}
