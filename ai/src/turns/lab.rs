//! The prompt lab: shows the prompt that a model would get, how an unsaved edit would change it, and what a model would answer. The
//! world does not change. The model's tokens are counted.

use actix_web::web;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::{Job, OnBusy, OnFailure, ask, gm, runner, start};
use crate::{
    prompt::{
        assemble::{Wanted, assemble},
        cache::Prompts,
        preview::{Preview, preview_in},
        scope,
    },
    turns::state::TurnState,
};
use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::{
    retry::{self, PAID},
    tenancy::TenantTx,
};
use edge::{
    caller::Caller,
    http::{
        body, patch,
        resource::{self, Place, Ref, Resource, campaign_id},
        validate,
    },
};
use entity::kind::EntityKind;
use llm::{CancellationToken, ChatRequest, Message, ReplyMode, Usage, reply};
use world::{
    lore::{LoreEntries, LoreInput},
    revisions,
};

/// The size of the cache for a comparison, which is thrown away afterwards.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Whose prompt to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An NPC or owner, for a player.
    Entity { kind: EntityKind, entity: String, player: String },
    /// A session's AI.
    Session(Uuid),
}

/// The prompt to show.
pub struct Question<'a> {
    /// By slug or id.
    pub campaign: &'a str,
    pub subject: &'a Subject,
    pub action: &'a str,
    pub mode: ReplyMode,
}

/// The prompt that would be sent now.
///
/// # Errors
/// `not_found`, `validation_failed` for unknown names.
pub async fn look(app: &TurnState, caller: &Caller, question: &Question<'_>) -> Result<Preview> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    look_in((&app.prompts, Some(&app.session_prompts)), &tx, caller, question).await
}

/// The caches to use: the server's, or temporary ones.
type Caches<'a> = (&'a Prompts, Option<&'a gm::session_prompts::SessionPrompts>);

async fn look_in(
    (prompts, tables): Caches<'_>,
    tx: &TenantTx,
    caller: &Caller,
    question: &Question<'_>,
) -> Result<Preview> {
    match question.subject {
        Subject::Entity { kind, entity, player } => {
            let wanted = Wanted { campaign: question.campaign, kind: *kind, entity, player, mode: question.mode };
            preview_in(prompts, tx, caller, &wanted, question.action).await
        }
        Subject::Session(id) => {
            let campaign = campaign_id(tx, caller, &Ref::parse(question.campaign)).await?;
            let instruction = Some(question.action);
            let look = gm::Look { campaign, session: *id, role: None, mode: question.mode, instruction };
            gm::preview_in(prompts, tables, tx, &look).await
        }
    }
}

/// A cached prompt that an edit would make outdated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stale {
    pub entity: String,
    pub player: String,
}

/// How an edit would change a prompt.
pub struct Compared {
    pub before: Preview,
    pub after: Preview,
    /// The affected prompts in this server's cache.
    pub stale: Vec<Stale>,
    pub title: String,
}

/// An edit of a lore entry that is not saved.
pub struct Edit<'a> {
    /// The entry, by id or slug.
    pub lore: &'a str,
    /// A merge patch for the stored entry.
    pub changes: &'a Value,
    /// The version on which the edit is based. Changes saved since then are part of the edit.
    pub opened: Option<i64>,
}

/// How a prompt would change with an edit of a lore entry. The edit is made in a transaction and never committed. Nothing of it
/// reaches the server's cache.
///
/// # Errors
/// The errors of the edit: `validation_failed`, `not_found`.
pub async fn compare(app: &TurnState, caller: &Caller, question: &Question<'_>, edit: Edit<'_>) -> Result<Compared> {
    let mut before = look(app, caller, question).await?;
    let tx = TenantTx::write(&app.pool, &caller.actor()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(question.campaign)).await?;
    let place = Place { tx: &tx, campaign, caller };
    let stored = resource::find::<LoreEntries>(&tx, caller, Some(&Ref::Id(campaign)), &Ref::parse(edit.lore)).await?;
    let id = stored.id.0;
    let began = match edit.opened.filter(|opened| *opened != stored.version) {
        Some(opened) => revisions::at_version::<LoreEntries>(&tx, campaign, id, opened).await?,
        None => None,
    };
    let look_at = async || look_in((&Prompts::new(CACHE_BYTES), None), &tx, caller, question).await;
    if let Some(began) = &began {
        resource::update::<LoreEntries>(&place, id, changed(began, &json!({}))?).await?;
        before = look_at().await?;
    }
    let is = resource::update::<LoreEntries>(&place, id, changed(&stored, edit.changes)?).await?;
    let after = look_at().await?;
    drop(tx);
    let heads = [scope_of(began.as_ref().unwrap_or(&stored)), scope_of(&is)];
    let mut stale: Vec<Stale> = app
        .prompts
        .base
        .select(caller.tenant_id(), |key, base| {
            key.campaign == campaign && heads.iter().any(|head| base.head_keys().contains(head))
        })
        .iter()
        .map(|base| Stale { entity: base.cast.entity.name.clone(), player: base.cast.player.name.clone() })
        .collect();
    stale.sort();
    stale.dedup();
    Ok(Compared { before, after, stale, title: is.title })
}

/// An entry with the edit applied.
fn changed(entry: &entity::lore::Model, changes: &Value) -> Result<LoreInput> {
    let shown = serde_json::to_value(entry).map_err(Error::internal)?;
    let read_only: Vec<_> = resource::READ_ONLY.iter().chain(LoreEntries::READ_ONLY).copied().collect();
    let input: LoreInput = body::typed(patch::apply(shown, changes.clone(), &read_only)?)?;
    validate::check(&input)?;
    Ok(input)
}

/// The version head that an entry raises.
fn scope_of(lore: &entity::lore::Model) -> String {
    format!("lore:{}:{}", scope::name_of(lore.scope), lore.associated_key)
}

/// A model's answer.
pub struct Said {
    pub model: String,
    pub text: String,
    /// The calls that it would make: name and arguments. Nothing is executed.
    pub calls: Vec<(String, String)>,
    pub parse_error: Option<String>,
    pub usage: Usage,
    pub cost_micros: Option<u64>,
    pub milliseconds: u64,
}

/// Asks the model once and executes nothing. It counts as a turn for limits and usage, even if the client has left: like a turn, it
/// runs in a task of its own.
///
/// # Errors
/// `rate_limited`, `quota_exceeded`, `llm_unavailable`, `llm_timeout`.
pub async fn rehearse(app: &web::Data<TurnState>, caller: &Caller, question: &Question<'_>) -> Result<Said> {
    let (campaign, subject) = (question.campaign.to_owned(), question.subject.clone());
    let (action, mode) = (question.action.to_owned(), question.mode);
    let (its_app, its_caller) = (app.clone(), caller.clone());
    let task = start::spawn(app, caller, async move {
        let question = Question { campaign: &campaign, subject: &subject, action: &action, mode };
        said(&its_app, &its_caller, &question).await
    })?;
    task.await.map_err(Error::internal)?
}

async fn said(app: &TurnState, caller: &Caller, question: &Question<'_>) -> Result<Said> {
    let endpoint = app.llm.endpoint(&caller.tenant, &app.secrets)?;
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    app.limits.check_tokens(&tx, &caller.tenant).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(question.campaign)).await?;
    let preview = look_in((&app.prompts, Some(&app.session_prompts)), &tx, caller, question).await?;
    // The definitions of tools are not part of the text. They belong to the base prompt.
    let tools = match question.subject {
        Subject::Entity { kind, entity, player } => {
            let wanted = Wanted { campaign: question.campaign, kind: *kind, entity, player, mode: question.mode };
            assemble(&app.prompts, &tx, caller, &wanted).await?.base.tools.clone()
        }
        Subject::Session(_) => None,
    };
    drop(tx);
    let messages: Vec<Message> = preview
        .messages
        .into_iter()
        .map(|m| Message { role: m.role, content: vec![m.content.into()], tool_calls: Vec::new(), tool_call_id: None })
        .collect();
    let request = ChatRequest { prefix: &messages, tools: tools.as_deref(), ..ChatRequest::default() };
    let begun = Instant::now();
    let (completion, _) = ask::ask(app, &endpoint, &request, &CancellationToken::new()).await?;
    let parsed = match question.mode {
        ReplyMode::Native => reply::parse_native(&completion),
        ReplyMode::Xml => reply::parse_text(&completion.text),
    };
    let cost_micros = caller.tenant.settings.llm.prices.map(|p| p.cost_micros(&completion.usage));
    count(app, caller, campaign, &completion.model, &completion.usage, cost_micros).await?;
    Ok(Said {
        model: completion.model.clone(),
        text: parsed.narrative.trim().to_owned(),
        calls: parsed
            .calls
            .iter()
            .map(|call| (call.name.clone(), call.arguments.as_ref().map_or_else(Clone::clone, pretty)))
            .collect(),
        parse_error: parsed.parse_error,
        usage: completion.usage,
        cost_micros,
        milliseconds: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

async fn count(
    app: &TurnState,
    caller: &Caller,
    campaign: Uuid,
    model: &str,
    usage: &Usage,
    cost_micros: Option<u64>,
) -> Result<()> {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let id = Uuid::now_v7();
    let write = async || {
        let tx = TenantTx::write(&app.pool, &caller.actor()).await?;
        sqlx::query(
            "INSERT INTO usage_entry (tenant_id, id, campaign_id, kind, model, llm_calls, prompt_tokens, cached_tokens, \
                 completion_tokens, cost_micros) VALUES ($1, $2, $3, 'lab', $4, 1, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
        )
        .bind(tx.tenant())
        .bind(id)
        .bind(campaign)
        .bind(model)
        .bind(number(usage.prompt_tokens))
        .bind(number(usage.cached_tokens))
        .bind(number(usage.completion_tokens))
        .bind(cost_micros.map(number))
        .execute(&mut *tx.connection().await)
        .await?;
        tx.commit_within(PAID).await.map_err(|error| error.settled())
    };
    retry::repeat(PAID, write).await
}

/// Starts a real turn and returns its id as soon as it runs.
///
/// # Errors
/// Why the turn did not begin.
pub async fn take(app: &web::Data<TurnState>, caller: &Caller, question: &Question<'_>) -> Result<Uuid> {
    let mode = question.mode;
    let (campaign, action) = (question.campaign.to_owned(), question.action.to_owned());
    let started = match question.subject.clone() {
        Subject::Entity { kind, entity, player } => {
            let job = Job {
                campaign,
                kind,
                entity,
                player,
                action,
                mechanics: None,
                mode,
                on_busy: OnBusy::Reject,
                on_failure: OnFailure::Revert,
                key: None,
            };
            start::start(
                app,
                caller,
                true,
                async move |app: web::Data<TurnState>, caller: Caller, asker: start::Asker| {
                    runner::run(&app, &caller, &job, &asker).await
                },
            )?
        }
        Subject::Session(id) => {
            let job = gm::GmJob {
                campaign,
                session: id,
                instruction: Some(action).filter(|a| !a.trim().is_empty()),
                role: None,
                steps_max: None,
                mechanics: None,
                dice: None,
                mode,
                on_busy: OnBusy::Reject,
                on_failure: OnFailure::Revert,
                key: None,
            };
            start::start(
                app,
                caller,
                true,
                async move |app: web::Data<TurnState>, caller: Caller, asker: start::Asker| {
                    gm::run(&app, &caller, &job, &asker).await
                },
            )?
        }
    };
    match started.begun().await? {
        Ok(turn) => Ok(turn),
        Err(reply) => {
            let answer: Value = serde_json::from_slice(&reply.body).map_err(Error::internal)?;
            let id = answer.get("id").and_then(Value::as_str).and_then(|id| Uuid::try_parse(id).ok());
            id.ok_or_else(|| Error::internal("a turn without an id"))
        }
    }
}

/// The subject and action of a past turn.
///
/// # Errors
/// `not_found`.
pub async fn of_turn(tx: &TenantTx, campaign: Uuid, turn: Uuid) -> Result<Option<(Subject, String)>> {
    let row = sqlx::query(
        "SELECT kind, entity_id, player_id, action FROM turn WHERE tenant_id = $1 AND campaign_id = $2 AND id = $3",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(turn)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("turn"))?;
    let (entity, player): (Option<Uuid>, Option<Uuid>) = (row.read("entity_id")?, row.read("player_id")?);
    let action = row.read::<Option<String>>("action")?.unwrap_or_default();
    let subject = match (row.read::<&str>("kind")?, entity, player) {
        ("npc", Some(entity), Some(player)) => {
            Subject::Entity { kind: EntityKind::Npc, entity: entity.to_string(), player: player.to_string() }
        }
        ("owner", Some(entity), Some(player)) => {
            Subject::Entity { kind: EntityKind::Owner, entity: entity.to_string(), player: player.to_string() }
        }
        ("gm", Some(session), _) => Subject::Session(session),
        _ => return Ok(None),
    };
    Ok(Some((subject, action)))
}
