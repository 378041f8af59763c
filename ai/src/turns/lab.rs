//! The prompt lab: shows the prompt that a model would get, how an unsaved edit would change it, and what a model would answer. The
//! world does not change. The model's tokens are counted.

use std::{borrow::Cow, sync::Arc};

use actix_web::web;
use serde_json::{Value, json, value::RawValue};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    answer, ask,
    clean::{Cleaner, Removed},
    gm::{self, job::GmJob},
    job::{Job, OnBusy, OnFailure},
    running::Asker,
    start,
    store::{UsedBy, used},
    view::LlmCall,
};
use crate::{
    prompt::{
        assemble::assemble,
        cache::Prompts,
        key::task_of,
        names::{PromptNames, PromptRequest},
        preview::{Look, Preview, preview_in},
    },
    state::Ai,
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
        patch, read,
        resource::{self, Place, Ref, Resource, campaign_id},
        validate,
    },
    model_profiles::service::check_parameters,
    models::{Choice, TenantModels},
    tenants::tasks::{Task, slug_in},
};
use entity::{kind::EntityKind, shapes::Extensions};
use llm::{CancellationToken, ChatRequest, Ending, Message, Parameters, ReplyMode, Usage, reply};
use world::{
    lore::{LoreEntries, LoreInput},
    revisions,
};

/// The size of the cache for a comparison, which is thrown away afterwards.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Whose prompt to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptSubject {
    /// An NPC or owner, for a player.
    Entity { kind: EntityKind, entity: String, player: String },
    /// A session's AI.
    Session(Uuid),
}

/// The prompt to show.
pub struct Question<'a> {
    /// By slug or id.
    pub campaign: &'a str,
    pub subject: &'a PromptSubject,
    pub action: &'a str,
    /// None if the chosen model decides.
    pub mode: Option<ReplyMode>,
}

/// The prompt that would be sent now.
///
/// # Errors
/// `not_found`, `validation_failed` for unknown names.
pub async fn look(app: &Ai, caller: &Caller, question: &Question<'_>) -> Result<Preview> {
    let models = app.llm.of(&app.pool, &app.secrets, &caller.tenant).await?;
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let caches = (&app.prompts, Some(&app.session_prompts));
    look_in(app, caches, &tx, caller, (&models, None), question).await
}

/// The caches to use: the server's, or temporary ones.
type Caches<'a> = (&'a Prompts, Option<&'a gm::session_prompts::SessionPrompts>);

/// `choice` is another model than the usual one.
async fn look_in(
    app: &Ai,
    (prompts, tables): Caches<'_>,
    tx: &TenantTx,
    caller: &Caller,
    (models, choice): (&TenantModels, Option<&Choice>),
    question: &Question<'_>,
) -> Result<Preview> {
    let Question { campaign, action, mode, .. } = *question;
    match question.subject {
        PromptSubject::Entity { kind, entity, player } => {
            let names = PromptNames { campaign, kind: *kind, entity, player };
            let wanted = PromptRequest::new(prompts, caller, names, mode, models);
            preview_in((prompts, &app.llm), tx, caller, Look { wanted: &wanted, action, choice }).await
        }
        PromptSubject::Session(id) => {
            let campaign = campaign_id(tx, caller, &Ref::parse(campaign)).await?;
            let instruction = Some(action);
            let look = gm::preview::Look { campaign, session: *id, role: None, mode, models, choice, instruction };
            gm::preview::preview_in((prompts, &app.llm), tables, tx, &look).await
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
pub async fn compare(app: &Ai, caller: &Caller, question: &Question<'_>, edit: Edit<'_>) -> Result<Compared> {
    let mut before = look(app, caller, question).await?;
    let models = app.llm.of(&app.pool, &app.secrets, &caller.tenant).await?;
    let tx = TenantTx::write(&app.pool, &caller.actor()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(question.campaign)).await?;
    let place = Place { tx: &tx, campaign, caller };
    let stored = resource::find::<LoreEntries>(&tx, caller, Some(&Ref::Id(campaign)), &Ref::parse(edit.lore)).await?;
    let id = stored.id.0;
    let began = match edit.opened.filter(|opened| *opened != stored.version) {
        Some(opened) => revisions::at_version::<LoreEntries>(&tx, campaign, id, opened).await?,
        None => None,
    };
    let look_at =
        async || look_in(app, (&Prompts::new(CACHE_BYTES), None), &tx, caller, (&models, None), question).await;
    let mut present = stored.clone();
    if let Some(began) = &began {
        present = resource::update::<LoreEntries>(&place, present, changed(began, &json!({}))?).await?;
        before = look_at().await?;
    }
    let is = resource::update::<LoreEntries>(&place, present, changed(&stored, edit.changes)?).await?;
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
    let input: LoreInput = read::typed(patch::apply(shown, changes.clone(), &read_only)?)?;
    validate::check(&input)?;
    Ok(input)
}

/// The version head that an entry raises.
fn scope_of(lore: &entity::lore::Model) -> String {
    match lore.scope.as_str() {
        // All lore of a kind has one head.
        kind @ ("creature" | "item") => format!("lore:{kind}"),
        scope => format!("lore:{scope}:{}", lore.associated_key),
    }
}

/// A model's answer.
pub struct ModelAnswer {
    pub model: String,
    pub text: String,
    /// What the campaign's rules removed from the text.
    pub removed: Vec<Removed>,
    /// The calls that it would make: name and arguments. Nothing is executed.
    pub calls: Vec<(String, String)>,
    /// How it ended.
    pub ending: Ending,
    pub parse_error: Option<String>,
    pub usage: Usage,
    pub cost_micros: Option<u64>,
    pub milliseconds: u64,
}

/// What to ask with.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// Slugs of model profiles, to compare their answers; none stands for the usual model.
    pub profiles: Vec<Option<String>>,
    /// A merge patch for the parameters of each of them.
    pub parameters: Option<Value>,
}

/// The most models that one question asks.
pub const PROFILES_MAX: usize = 4;

/// The answer of one of the models that were asked, or why there is none.
pub struct Side {
    /// The profile's slug; none for the usual model.
    pub profile: Option<String>,
    pub answer: std::result::Result<ModelAnswer, String>,
}

/// Asks each model once, at the same time, and executes nothing. Each counts as a turn for limits and usage, even if the client has left: like
/// a turn, it runs in a task of its own.
///
/// # Errors
/// `validation_failed` for parameters, an unknown profile or too many of them; `rate_limited`, `quota_exceeded`.
pub async fn rehearse(
    app: &web::Data<Ai>,
    caller: &Caller,
    question: &Question<'_>,
    trial: &Trial,
) -> Result<Vec<Side>> {
    let usual = [None];
    let profiles = if trial.profiles.is_empty() { &usual[..] } else { &trial.profiles };
    if profiles.len() > PROFILES_MAX {
        let rule = format!("At most {PROFILES_MAX} models can be compared.");
        return Err(Error::invalid("/profiles", "invalid_value", rule));
    }
    // All are checked before the first is asked.
    let chooser = models_of(app, caller).await?;
    for profile in profiles {
        chooser.named(profile.as_deref(), trial.parameters.as_ref())?;
    }
    let mut tasks = Vec::with_capacity(profiles.len());
    for profile in profiles {
        let (campaign, subject) = (question.campaign.to_owned(), question.subject.clone());
        let (action, mode) = (question.action.to_owned(), question.mode);
        let (its_app, its_caller) = (app.clone(), caller.clone());
        let (its_profile, parameters) = (profile.clone(), trial.parameters.clone());
        let task = start::spawn(app, caller, async move {
            let question = Question { campaign: &campaign, subject: &subject, action: &action, mode };
            ask_model(&its_app, &its_caller, &question, its_profile.as_deref(), parameters.as_ref()).await
        });
        tasks.push((profile.clone(), task));
    }
    let mut sides = Vec::with_capacity(tasks.len());
    let is_alone = tasks.len() == 1;
    for (profile, task) in tasks {
        let answer = match task {
            Ok(task) => task.await.map_err(Error::internal)?,
            Err(error) => Err(error),
        };
        let answer = match answer {
            Err(error) if is_alone || error.code.status() == 500 => return Err(error),
            answer => answer.map_err(|error| error.detail.to_string()),
        };
        sides.push(Side { profile, answer });
    }
    Ok(sides)
}

/// The body of the request to the model, as JSON.
///
/// # Errors
/// As for [`rehearse`].
pub async fn request_body(app: &Ai, caller: &Caller, question: &Question<'_>, profile: Option<&str>) -> Result<String> {
    let ready = Ready::of(app, caller, question, profile, None).await?;
    let request = ChatRequest { prefix: &ready.messages, tools: ready.tools.as_deref(), ..ChatRequest::default() };
    let request = ask::sized(&ready.choice, &request).await?;
    app.llm.client().body(&ready.choice.endpoint, &request).map_err(Error::internal)
}

/// The tenant's models, and what builds choices from them.
struct Chooser<'a> {
    app: &'a Ai,
    models: Arc<TenantModels>,
}

async fn models_of<'a>(app: &'a Ai, caller: &Caller) -> Result<Chooser<'a>> {
    let models = app.llm.of(&app.pool, &app.secrets, &caller.tenant).await?;
    models.check_on()?;
    Ok(Chooser { app, models })
}

impl Chooser<'_> {
    /// A named profile, with other parameters if some are tried. None without a name.
    fn named(&self, profile: Option<&str>, parameters: Option<&Value>) -> Result<Option<Arc<Choice>>> {
        let Some(slug) = profile else {
            // The parameters are checked against a choice that is not known yet.
            parameters.map_or(Ok(()), |parameters| merged(&Parameters::default(), parameters).map(|_| ()))?;
            return Ok(None);
        };
        let choice = self.models.profile(slug).ok_or_else(|| {
            Error::invalid("/profiles", "unknown_reference", format!("There is no model profile `{slug}`."))
        })??;
        self.tuned(choice, parameters).map(Some)
    }

    fn tuned(&self, choice: Arc<Choice>, parameters: Option<&Value>) -> Result<Arc<Choice>> {
        let Some(patch) = parameters else { return Ok(choice) };
        let tried = merged(&choice.endpoint.options.parameters, patch)?;
        Ok(Arc::new(self.app.llm.with_parameters(&choice, tried)))
    }
}

/// Parameters with a merge patch applied.
fn merged(parameters: &Parameters, changes: &Value) -> Result<Parameters> {
    let mut value = serde_json::to_value(parameters).map_err(Error::internal)?;
    patch::merge(&mut value, changes.clone());
    let tried: Parameters = read::typed(value).map_err(|error| error.below("/parameters"))?;
    check_parameters(&tried)?;
    Ok(tried)
}

/// Everything that a question to a model needs.
struct Ready {
    campaign: Uuid,
    task: Task,
    choice: Arc<Choice>,
    mode: ReplyMode,
    tools: Option<Arc<RawValue>>,
    cleaner: Option<Cleaner>,
    messages: Vec<Message>,
}

impl Ready {
    async fn of(
        app: &Ai,
        caller: &Caller,
        question: &Question<'_>,
        profile: Option<&str>,
        parameters: Option<&Value>,
    ) -> Result<Self> {
        let chooser = models_of(app, caller).await?;
        let models = &chooser.models;
        let named = chooser.named(profile, parameters)?;
        let mode = question.mode.or(named.as_ref().map(|choice| choice.mode));
        let question = &Question { mode, ..*question };
        let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
        app.limits.check_tokens(&tx, &caller.tenant).await?;
        let campaign = campaign_id(&tx, caller, &Ref::parse(question.campaign)).await?;
        // The definitions of tools are not part of the text. They belong to the base prompt.
        let (task, usual, mode, tools, cleaner) = match question.subject {
            PromptSubject::Entity { kind, entity, player } => {
                let Question { campaign, mode, .. } = *question;
                let names = PromptNames { campaign, kind: *kind, entity, player };
                let wanted = PromptRequest::new(&app.prompts, caller, names, mode, models);
                let base = assemble(&app.prompts, &tx, caller, &wanted).await?.base;
                let cast = &base.cast;
                let cleaner = Cleaner::of(&cast.settings, &cast.entity.names(), &cast.player.name);
                (task_of(*kind), base.choose(models), base.key.mode, base.tools.clone(), cleaner)
            }
            PromptSubject::Session(_) => {
                let row = sqlx::query("SELECT settings FROM campaign WHERE tenant_id = $1 AND id = $2")
                    .bind(tx.tenant())
                    .bind(campaign)
                    .fetch_one(&mut *tx.connection().await)
                    .await?;
                let settings: Extensions = row.read_json("settings")?;
                let choice = models.choose(Task::Gm, &[slug_in(settings.get("models"), Task::Gm)]);
                let mode = question.mode.map_or_else(|| choice.as_ref().map(|choice| choice.mode), Ok);
                let mode = mode.unwrap_or(ReplyMode::Native);
                (Task::Gm, choice, mode, None, Cleaner::of(&settings, &[], ""))
            }
        };
        let choice = match named {
            Some(named) => named,
            None => chooser.tuned(usual?, parameters)?,
        };
        let caches = (&app.prompts, Some(&app.session_prompts));
        let preview = look_in(app, caches, &tx, caller, (models, Some(&choice)), question).await?;
        let messages = preview.messages.into_iter().map(|m| Message::text(m.role, m.content)).collect();
        Ok(Self { campaign, task, choice, mode, tools, cleaner, messages })
    }
}

async fn ask_model(
    app: &Ai,
    caller: &Caller,
    question: &Question<'_>,
    profile: Option<&str>,
    parameters: Option<&Value>,
) -> Result<ModelAnswer> {
    let ready = Ready::of(app, caller, question, profile, parameters).await?;
    let Ready { campaign, task, choice, mode, tools, cleaner, messages } = ready;
    let request = ChatRequest { prefix: &messages, tools: tools.as_deref(), ..ChatRequest::default() };
    let begun = Instant::now();
    let (completion, call) = ask::ask(app, task, &choice, &request, &CancellationToken::new()).await?;
    let parsed = match mode {
        ReplyMode::Native => reply::parse_native(&completion),
        ReplyMode::Xml => reply::parse_text(&completion.text),
    };
    let said = parsed.narrative.trim();
    let cleaned = cleaner.map(|cleaner| cleaner.clean(said, completion.was_cut()));
    let (text, removed) = cleaned.unwrap_or((Cow::Borrowed(said), Vec::new()));
    let before = call.tried.iter().filter(|tried| tried.usage.is_some()).map(|tried| tried.cost_micros);
    let cost_micros = before.chain([call.cost_micros]).sum();
    count(app, caller, campaign, call).await?;
    Ok(ModelAnswer {
        model: completion.model.clone(),
        text: text.into_owned(),
        removed,
        calls: parsed
            .calls
            .iter()
            .map(|call| (call.name.clone(), call.arguments.as_ref().map_or_else(Clone::clone, pretty)))
            .collect(),
        ending: if parsed.narrative_cut { Ending::Truncated } else { completion.ending() },
        parse_error: parsed.parse_error,
        usage: completion.usage,
        cost_micros,
        milliseconds: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

async fn count(app: &Ai, caller: &Caller, campaign: Uuid, call: LlmCall) -> Result<()> {
    let calls = [call];
    let rows = used(&calls);
    let write = async || {
        let tx = TenantTx::write(&app.pool, &caller.actor()).await?;
        UsedBy { campaign, kind: "lab", turn: None, player: caller.player }.count(&tx, &rows).await?;
        tx.commit_within(PAID).await.map_err(|error| error.settled())
    };
    retry::repeat(PAID, write).await
}

/// Starts a real turn and returns its id as soon as it runs.
///
/// # Errors
/// Why the turn did not begin.
pub async fn take(app: &web::Data<Ai>, caller: &Caller, question: &Question<'_>) -> Result<Uuid> {
    let mode = question.mode;
    let (campaign, action) = (question.campaign.to_owned(), question.action.to_owned());
    match question.subject.clone() {
        PromptSubject::Entity { kind, entity, player } => {
            let job = Job { mode, ..Job::new(&campaign, (kind, &entity), &player, action) };
            let run = async move |app: web::Data<Ai>, caller: Caller, asker: Asker| {
                answer::run(&app, &caller, &job, &asker).await
            };
            start::start(app, caller, true, run)?.turn().await
        }
        PromptSubject::Session(id) => {
            let job = GmJob {
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
            let run = async move |app: web::Data<Ai>, caller: Caller, asker: Asker| {
                gm::run(&app, &caller, &job, &asker).await
            };
            start::start(app, caller, true, run)?.turn().await
        }
    }
}

/// The subject and action of a past turn.
///
/// # Errors
/// `not_found`.
pub async fn of_turn(tx: &TenantTx, campaign: Uuid, turn: Uuid) -> Result<Option<(PromptSubject, String)>> {
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
            PromptSubject::Entity { kind: EntityKind::Npc, entity: entity.to_string(), player: player.to_string() }
        }
        ("owner", Some(entity), Some(player)) => {
            PromptSubject::Entity { kind: EntityKind::Owner, entity: entity.to_string(), player: player.to_string() }
        }
        ("gm", Some(session), _) => PromptSubject::Session(session),
        _ => return Ok(None),
    };
    Ok(Some((subject, action)))
}
