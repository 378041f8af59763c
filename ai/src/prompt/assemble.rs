//! Assembles the base prompt for the names in a request: the cached one if its version heads match the database's, or else one
//! whose outdated sections are written again.
//!
//! A cache hit costs one statement. Everything that goes into a section has a version head, which is read before the data.

use std::{collections::BTreeMap, sync::Arc};

use entity::{campaign, character, npc, owner};
use sea_orm::{EntityTrait, QueryFilter, sea_query::ExprTrait};
use serde_json::{Value, value::RawValue};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    cache::{Prompts, StampedLore, Weigh},
    cast::{Cast, EntityFacts, PlayerFacts},
    here::{self, Here},
    lore::{Knower, ScopeLore},
    macros::has_macros,
    reminder::{self, Reminder},
    scope::{self, LoreScope},
    segment::{self, SectionDraft, Segment, short_hash},
    transcript::{Transcript, messages},
};
use crate::tools;
use base::{
    error::{Error, Result},
    metrics,
    stored::Columns,
};
use db::{pool::Pool, tenancy::TenantTx};
use edge::{
    caller::Caller,
    http::resource::{Ref, campaign_id, col},
    models::{Choice, TenantModels},
    tenants::tasks::{Task, slug_in},
};
use entity::kind::EntityKind;
use llm::{Message, ReplyMode};
use world::campaigns::{prompt_section::Section, prompt_template::Layout};

/// The names of the campaign, the entity and the player in a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alias {
    pub tenant: Uuid,
    pub campaign: String,
    pub kind: EntityKind,
    pub entity: String,
    pub player: String,
    /// None if the chosen model decides.
    pub mode: Option<ReplyMode>,
}

/// The key of a base prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PromptKey {
    pub campaign: Uuid,
    pub entity: Uuid,
    pub player: Uuid,
    pub mode: ReplyMode,
}

/// A base prompt, ready to be sent with a conversation.
#[derive(Clone)]
pub struct BasePrompt {
    pub key: PromptKey,
    pub cast: Arc<Cast>,
    pub segments: Vec<Arc<Segment>>,
    /// The order of the segments, and the budgets of sections.
    pub layout: Layout,
    /// The size of the model's context for which the prompt was written, if it is known.
    context: Context,
    /// Lore that keywords may activate, in the order of its sections.
    pub lore: Vec<Arc<ScopeLore>>,
    /// Lore of creatures and of items, which enters a turn when its subject is here or is mentioned.
    pub kinds: Vec<Arc<ScopeLore>>,
    pub here: Arc<Here>,
    pub transcript: Arc<Transcript>,
    /// The most tokens of the conversation.
    history_budget: u32,
    pub situation: Arc<str>,
    pub hash: Arc<str>,
    pub tokens: u32,
    pub cache_key: Arc<str>,
    /// The tools' definitions in the format for models. None in XML mode.
    pub tools: Option<Arc<RawValue>>,
    /// Sorted. `head_versions` is in the same order.
    head_keys: Arc<[String]>,
    head_versions: Vec<i64>,
}

impl Weigh for BasePrompt {
    fn bytes(&self) -> usize {
        self.segments.iter().map(|s| s.bytes()).sum::<usize>()
            + self.transcript.bytes()
            + self.head_keys.iter().map(|k| 2 * k.len() + 80).sum::<usize>()
            + self.tools.as_ref().map_or(0, |t| t.get().len())
            + 1000
    }
}

impl BasePrompt {
    /// Whether a section was written from an older version of this head. A head of the prompt that no section was written from, such as
    /// that of an NPC's owner, outdates nothing that is costly to write.
    #[must_use]
    pub fn is_older(&self, head: &str, version: i64) -> bool {
        let mut stamps = self.segments.iter().flat_map(|segment| &segment.heads);
        stamps.any(|(own, then)| own == head && *then < version)
    }

    /// The heads from which the prompt was built.
    #[must_use]
    pub fn head_keys(&self) -> &[String] {
        &self.head_keys
    }

    /// The versions of [`BasePrompt::head_keys`].
    #[must_use]
    pub fn head_versions(&self) -> &[i64] {
        &self.head_versions
    }

    /// The model that answers as this entity.
    ///
    /// # Errors
    /// `llm_unavailable`.
    pub fn choose(&self, models: &TenantModels) -> Result<Arc<Choice>> {
        let task = task_of(self.cast.entity.kind);
        models.choose(task, &self.named(task))
    }

    /// How that model replies.
    fn mode(&self, models: &TenantModels) -> ReplyMode {
        let task = task_of(self.cast.entity.kind);
        models.mode(task, &self.named(task))
    }

    /// The room that the chosen model has. A model that cannot be asked has no known one.
    fn context_of(&self, models: &TenantModels) -> Context {
        self.choose(models).map_or_else(|_| Context::default(), |choice| Context::of(&choice))
    }

    /// The profiles that the entity and its campaign name.
    fn named(&self, task: Task) -> [Option<&str>; 2] {
        self.cast.named_models(task)
    }

    /// The version head of the conversation.
    #[must_use]
    pub fn talk_head(&self) -> String {
        format!("talk:{}:{}", self.key.entity, self.key.player)
    }

    /// The same prompt after one more exchange, which raised the conversation's head to `version`.
    #[must_use]
    pub fn after(&self, transcript: Transcript) -> Self {
        let mut head_versions = self.head_versions.clone();
        let talk = self.head_keys.binary_search(&self.talk_head());
        if let Some(version) = talk.ok().and_then(|at| head_versions.get_mut(at)) {
            *version = transcript.version;
        }
        Self { transcript: Arc::new(transcript), head_versions, ..self.clone() }
    }

    /// The messages for the model: the rules, then everything about the world and the character, then the conversation. Roles
    /// alternate, as strict endpoints require. Nothing is copied.
    #[must_use]
    pub fn messages(&self, transcript: &Transcript, turn: Arc<str>, reminders: &[Reminder]) -> Vec<Message> {
        let is_rule = |segment: &&Arc<Segment>| matches!(segment.section, Section::EngineRules | Section::Instructions);
        let rules = self.segments.iter().take_while(is_rule).count();
        let told = self.segments.iter().skip(rules).filter(|segment| !segment.text.is_empty()).count();
        let texts = self.segments.iter().map(|s| s.text.clone());
        let mut messages = messages(texts, rules, transcript, turn);
        reminder::insert(&mut messages, reminders, told);
        messages
    }

    /// The segments as views list them: without optional ones that are empty.
    pub fn listed(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.segments.iter().filter(|s| !s.section.is_optional() || !s.text.is_empty() || !s.cut.is_empty())
    }

    /// The conversation, as far as its budget allows.
    #[must_use]
    pub fn window(&self) -> Arc<Transcript> {
        self.transcript.within(self.history_budget)
    }
}

/// The room that a model has for a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Context {
    /// The size of its context in tokens, if its profile says so.
    tokens: Option<u32>,
    /// What its answer may take of that.
    output_tokens: u32,
}

impl Context {
    fn of(choice: &Choice) -> Self {
        let output = choice.endpoint.options.parameters.max_output_tokens;
        Self { tokens: choice.context_tokens, output_tokens: output.unwrap_or(OUTPUT_TOKENS) }
    }
}

/// What is reserved for a player's action and the decision of the rules.
const ACTION_TOKENS: u32 = 200;
/// What is reserved for an answer whose length the profile does not limit.
const OUTPUT_TOKENS: u32 = 1024;

/// The requested prompt, in the names of the request.
pub struct PromptRequest<'a> {
    pub campaign: &'a str,
    pub kind: EntityKind,
    pub entity: &'a str,
    pub player: &'a str,
    /// None if the chosen model decides.
    pub mode: Option<ReplyMode>,
    /// What the tenant's turns can ask.
    pub models: &'a TenantModels,
}

/// A base prompt, and whether it came unchanged from the cache.
pub struct Assembled {
    pub base: Arc<BasePrompt>,
    pub hit: bool,
}

type Heads = BTreeMap<String, i64>;

/// The base prompt of an entity for a player. One statement if it is cached and no head changed.
///
/// # Errors
/// `not_found` for campaign or entity, `validation_failed` for the player, `forbidden` for another player.
pub async fn assemble(
    prompts: &Prompts,
    tx: &TenantTx,
    caller: &Caller,
    wanted: &PromptRequest<'_>,
) -> Result<Assembled> {
    let cached = cached(prompts, caller, wanted);
    if let Some(base) = &cached {
        let now = heads(tx, base.key.campaign, &base.head_keys).await?;
        if let Some(renewed) = renew(tx, base, &now).await? {
            prompts.base.put(tx.tenant(), renewed.base.key, renewed.base.clone());
            metrics::PROMPT_CACHE.with_label_values(&[if renewed.hit { "hit" } else { "miss" }]).inc();
            return Ok(renewed);
        }
    }
    let mut key = resolve(tx, caller, wanted).await?;
    may_use(caller, &key)?;
    let old = cached.filter(|base| base.key == key).or_else(|| prompts.base.get(tx.tenant(), &key));
    let build = async |key| Builder { prompts, tx, old: old.as_deref(), key, built: false }.build(wanted).await;
    let (mut base, mut built) = build(key).await?;
    // Somebody may have chosen another model since the names were resolved.
    if wanted.mode.is_none() && base.mode(wanted.models) != key.mode {
        key.mode = base.mode(wanted.models);
        (base, built) = build(key).await?;
    }
    let base = Arc::new(base);
    prompts.base.put(tx.tenant(), key, base.clone());
    prompts.learn(alias(tx.tenant(), wanted), key);
    let hit = old.is_some() && !built;
    metrics::PROMPT_CACHE.with_label_values(&[if hit { "hit" } else { "miss" }]).inc();
    Ok(Assembled { base, hit })
}

/// The cached prompt for these names, which may be outdated. None if the caller may not use it.
#[must_use]
pub fn cached(prompts: &Prompts, caller: &Caller, wanted: &PromptRequest<'_>) -> Option<Arc<BasePrompt>> {
    let key = prompts.cached_key(&alias(caller.tenant_id(), wanted))?;
    may_use(caller, &key).ok()?;
    let base = prompts.base.get(caller.tenant_id(), &key)?;
    // Another model may be chosen since, or the model's profile may have changed.
    let is_of_model = wanted.mode.is_some() || base.mode(wanted.models) == key.mode;
    let has_its_context = base.layout.is_plain() || base.context_of(wanted.models) == base.context;
    (is_of_model && has_its_context).then_some(base)
}

/// The ids for the names in a request, from the cache. Asks the database for names that are not cached.
///
/// # Errors
/// `not_found` for campaign or entity, `validation_failed` for the player, `forbidden` for another player.
pub async fn prompt_key(
    prompts: &Prompts,
    pool: &Pool,
    caller: &Caller,
    wanted: &PromptRequest<'_>,
) -> Result<PromptKey> {
    if let Some(key) = cached_prompt_key(prompts, caller, wanted) {
        return Ok(key);
    }
    let tx = TenantTx::read(pool, caller.tenant_id()).await?;
    let key = resolve(&tx, caller, wanted).await?;
    may_use(caller, &key)?;
    prompts.learn(alias(caller.tenant_id(), wanted), key);
    Ok(key)
}

/// The same, but only from the cache.
#[must_use]
pub fn cached_prompt_key(prompts: &Prompts, caller: &Caller, wanted: &PromptRequest<'_>) -> Option<PromptKey> {
    prompts.cached_key(&alias(caller.tenant_id(), wanted)).filter(|key| may_use(caller, key).is_ok())
}

fn alias(tenant: Uuid, wanted: &PromptRequest<'_>) -> Alias {
    Alias {
        tenant,
        campaign: wanted.campaign.to_owned(),
        kind: wanted.kind,
        entity: wanted.entity.to_owned(),
        player: wanted.player.to_owned(),
        mode: wanted.mode,
    }
}

/// A cached prompt, updated to the present heads, if only its memories and its conversation changed.
async fn renew(tx: &TenantTx, old: &Arc<BasePrompt>, now: &Heads) -> Result<Option<Assembled>> {
    let mut moved = now.iter().zip(&old.head_versions).filter(|((_, now), then)| now != then).map(|((key, _), _)| key);
    // With more memories, other sections may have to be cut.
    let may_remember = old.layout.cut.is_empty();
    if !moved.all(|key| key.starts_with("talk:") || may_remember && key.starts_with("memory:")) {
        return Ok(None);
    }
    let version = |name: &str| {
        let key = format!("{name}:{}:{}", old.key.entity, old.key.player);
        now.get(&key).copied().unwrap_or_default()
    };
    let (memory, talk) = (version("memory"), version("talk"));
    let mut segments = old.segments.clone();
    let mut hit = true;
    for segment in segments.iter_mut().filter(|s| s.section == Section::Memories) {
        let mut stamps = segment.heads.clone();
        stamps.iter_mut().filter(|(key, _)| key.starts_with("memory:")).for_each(|(_, version)| *version = memory);
        if stamps != segment.heads {
            hit = false;
            metrics::SEGMENTS_BUILT.with_label_values(&[Section::Memories.name()]).inc();
            let written =
                segment::memories(tx, &old.cast, old.layout.budget(Section::Memories, &old.cast.settings)).await?;
            *segment = Arc::new(Segment { heads: stamps, ..written });
        }
    }
    let transcript = if old.transcript.version == talk {
        old.transcript.clone()
    } else {
        Arc::new(Transcript::load(tx, old.key.entity, old.key.player, talk).await?)
    };
    let head_versions = now.values().copied().collect();
    let (hash, tokens) = summed(&segments);
    let base = BasePrompt { segments, transcript, head_versions, hash, tokens, ..BasePrompt::clone(old) };
    Ok(Some(Assembled { base: Arc::new(base), hit }))
}

/// The hash of a base prompt and its tokens.
fn summed(segments: &[Arc<Segment>]) -> (Arc<str>, u32) {
    let mut hash = Sha256::new();
    segments.iter().for_each(|s| hash.update(s.hash.as_bytes()));
    (short_hash(&hash.finalize()).into(), segments.iter().map(|s| s.tokens).sum())
}

fn may_use(caller: &Caller, key: &PromptKey) -> Result<()> {
    if caller.campaign.is_some_and(|only| only != key.campaign) {
        return Err(Error::not_found("campaign"));
    }
    caller.may_act_as(key.player)
}

/// The present versions of heads. A head that never changed is 0.
async fn heads(tx: &TenantTx, campaign: Uuid, keys: &[String]) -> Result<Heads> {
    let rows = sqlx::query(
        // Looks up each head by itself. Over all at once, the planner would read every head of the campaign. The list comes from a
        // subquery, because with a known length each call would be planned anew.
        "SELECT k AS key, coalesce((SELECT h.version FROM version_head h \
           WHERE h.tenant_id = $1 AND h.campaign_id = $2 AND h.key = k), 0) AS version FROM unnest((SELECT $3::text[])) AS k",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(keys)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    rows.iter().map(|row| Ok((row.read("key")?, row.read("version")?))).collect()
}

async fn resolve(tx: &TenantTx, caller: &Caller, wanted: &PromptRequest<'_>) -> Result<PromptKey> {
    let campaign = campaign_id(tx, caller, &Ref::parse(wanted.campaign)).await?;
    let rows = sqlx::query(
        "SELECT kind, actor_id, slug, \
           (SELECT c.settings -> 'models' FROM campaign c WHERE c.tenant_id = $1 AND c.id = $2) AS models, \
           CASE kind WHEN 'npc' THEN (SELECT n.model FROM npc n WHERE n.tenant_id = $1 AND n.id = actor_id) \
             WHEN 'owner' THEN (SELECT o.model FROM owner o WHERE o.tenant_id = $1 AND o.id = actor_id) END AS model \
         FROM actor_slug WHERE tenant_id = $1 AND campaign_id = $2 AND (slug IN ($3, $4) OR actor_id IN ($5, $6))",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(wanted.entity)
    .bind(wanted.player)
    .bind(Uuid::try_parse(wanted.entity).ok())
    .bind(Uuid::try_parse(wanted.player).ok())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let actors = rows
        .iter()
        .map(|row| Ok((row.read("kind")?, row.read("actor_id")?, row.read("slug")?, row.read("model")?)))
        .collect::<Result<Vec<(&str, Uuid, &str, Option<&str>)>>>()?;
    let find = |wanted: &str, name: &str| {
        actors.iter().find_map(|&(kind, id, slug, model)| {
            let named = match Ref::parse(name) {
                Ref::Id(given) => given == id,
                Ref::Slug(given) => given == slug,
            };
            (named && kind == wanted).then_some((id, model))
        })
    };
    let (entity, own) =
        find(wanted.kind.as_str(), wanted.entity).ok_or_else(|| Error::not_found(wanted.kind.as_str()))?;
    let (player, _) = find("character", wanted.player).ok_or_else(|| {
        Error::invalid("/player_id", "unknown_reference", "There is no such character in this campaign.")
    })?;
    let chosen: Option<Value> = rows.first().map_or(Ok(None), |row| row.read("models"))?;
    let task = task_of(wanted.kind);
    let mode = wanted.mode.unwrap_or_else(|| wanted.models.mode(task, &[own, slug_in(chosen.as_ref(), task)]));
    Ok(PromptKey { campaign, entity, player, mode })
}

/// What a model is asked for when an entity answers.
#[must_use]
pub fn task_of(kind: EntityKind) -> Task {
    match kind {
        EntityKind::Npc => Task::Npc,
        EntityKind::Owner => Task::Owner,
    }
}

fn memory_head(key: &PromptKey) -> String {
    format!("memory:{}:{}", key.entity, key.player)
}

fn talk_head(key: &PromptKey) -> String {
    format!("talk:{}:{}", key.entity, key.player)
}

/// What the sections of a base prompt are written from.
struct Sources {
    key: PromptKey,
    cast: Arc<Cast>,
    layout: Layout,
    context: Context,
    heads: Heads,
    global: [LoreScope; 1],
    player_scopes: Vec<LoreScope>,
    lore_global: Vec<Arc<ScopeLore>>,
    lore_scoped: Vec<Arc<ScopeLore>>,
    lore_player: Vec<Arc<ScopeLore>>,
    /// Lore of creatures and of items, and which of them are here.
    kinds: Vec<Arc<ScopeLore>>,
    here: Arc<Here>,
}

impl Sources {
    fn version(&self, head: &str) -> i64 {
        self.heads.get(head).copied().unwrap_or_default()
    }

    /// The heads from which a section is written, with their versions.
    fn stamps(&self, section: Section) -> Vec<(String, i64)> {
        let campaign = || format!("campaign:{}", self.key.campaign);
        let entity = || format!("entity:{}", self.key.entity);
        let player = || format!("player:{}", self.key.player);
        let told = || vec![campaign(), entity(), player()];
        let (heads, scopes): (Vec<String>, &[LoreScope]) = match section {
            Section::EngineRules => (Vec::new(), &[]),
            // Macros in them name the entity and the player.
            Section::Instructions | Section::CharacterInstructions => (told(), &[]),
            Section::Scenario | Section::ExampleDialogue => (told(), &[]),
            Section::Personality
                if has_macros(&self.cast.entity.description) || has_macros(&self.cast.entity.personality) =>
            {
                (vec![entity(), player()], &[])
            }
            Section::GlobalLore => (vec![campaign()], &self.global),
            Section::ScopedLore => (vec![campaign()], &self.cast.entity.scopes),
            Section::Personality | Section::Tools => (vec![entity()], &[]),
            Section::PlayerLore => (vec![campaign(), player()], &self.player_scopes),
            _ => (vec![campaign(), player(), memory_head(&self.key)], &[]),
        };
        let heads = heads.into_iter().chain(scopes.iter().map(LoreScope::head));
        let stamp = |head: String| {
            let version = self.version(&head);
            (head, version)
        };
        // A budget that depends on the model's profile has no head of its own.
        let share = self.layout.share(section).map(|tokens| ("share".to_owned(), i64::from(tokens)));
        heads.map(stamp).chain(share).collect()
    }

    /// Writes a section. Only the section with the memories reads from the database.
    async fn write(&self, tx: &TenantTx, section: Section, budget: u32) -> Result<Segment> {
        let (cast, mode, knower) = (&*self.cast, self.key.mode, Knower::Entity(self.key.entity));
        let draft = match section {
            Section::EngineRules => segment::engine_rules(mode).into(),
            Section::Instructions => {
                let is_shown = self.layout.base.contains(&Section::CharacterInstructions);
                segment::instructions(cast, is_shown).into()
            }
            Section::CharacterInstructions => segment::character_instructions(cast).into(),
            Section::Scenario => segment::scenario(cast, budget),
            Section::ExampleDialogue => segment::example_dialogue(cast, budget),
            Section::GlobalLore => segment::lore_section("world_lore", &self.lore_global, knower, budget),
            Section::ScopedLore => segment::lore_section("local_lore", &self.lore_scoped, knower, budget),
            Section::Personality => segment::personality(cast).into(),
            Section::Tools => segment::tools(cast, mode).into(),
            Section::PlayerLore => {
                let lore = segment::lore_section("player_lore", &self.lore_player, knower, budget);
                SectionDraft { text: format!("{}{}", segment::player_heading(cast), lore.text), ..lore }
            }
            _ => return segment::memories(tx, cast, budget).await,
        };
        Segment::of(section, draft).await
    }
}

struct Builder<'a> {
    prompts: &'a Prompts,
    tx: &'a TenantTx,
    old: Option<&'a BasePrompt>,
    key: PromptKey,
    built: bool,
}

impl Builder<'_> {
    async fn build(mut self, wanted: &PromptRequest<'_>) -> Result<(BasePrompt, bool)> {
        let sources = self.sources(wanted).await?;
        let mut segments = Vec::with_capacity(sources.layout.base.len());
        for section in &sources.layout.base {
            segments.push(self.segment(&sources, *section).await?);
        }
        let history_budget = self.fit(&sources, &mut segments).await?;
        let transcript = self.transcript(&sources).await?;
        let (hash, tokens) = summed(&segments);
        let cache_key = Sha256::digest([self.tx.tenant().as_bytes(), &self.key.campaign.as_bytes()[..], b"1"].concat());
        let Sources { cast, heads, lore_global, lore_scoped, lore_player, kinds, here, layout, context, .. } = sources;
        let base = BasePrompt {
            key: self.key,
            layout,
            context,
            history_budget,
            hash,
            tokens,
            segments,
            lore: lore_global.into_iter().chain(lore_scoped).chain(lore_player).collect(),
            kinds,
            here,
            transcript,
            situation: segment::situation(&cast).into(),
            cache_key: short_hash(&cache_key).into(),
            tools: (self.key.mode == ReplyMode::Native)
                .then(|| tools::definitions(cast.entity.kind, &cast.entity.tools))
                .flatten()
                .map(Arc::from),
            cast,
            head_versions: heads.values().copied().collect(),
            head_keys: heads.into_keys().collect(),
        };
        Ok((base, self.built))
    }

    /// Reads what the sections are written from. Heads are read before the data that they are about.
    async fn sources(&self, wanted: &PromptRequest<'_>) -> Result<Sources> {
        let mut heads = self.cast_heads().await?;
        let cast = Arc::new(self.cast(wanted.kind, &mut heads).await?);
        let task = task_of(wanted.kind);
        let chosen = wanted.models.choose(task, &cast.named_models(task));
        let context = chosen.map_or_else(|_| Context::default(), |choice| Context::of(&choice));
        let layout = Layout::of(&cast.settings, task.as_str(), context.tokens);
        let player_scopes = scope::of_player(&cast.player.race, &cast.player.profession, &cast.entity.scopes);
        let global = [LoreScope::global()];
        let scopes = global.iter().chain(&cast.entity.scopes).chain(&player_scopes);
        let mut keys: Vec<String> = scopes.map(LoreScope::head).collect();
        keys.extend([memory_head(&self.key), talk_head(&self.key)]);
        let kinds = LoreScope::kinds();
        keys.extend(kinds.iter().map(LoreScope::head));
        heads.extend(self::heads(self.tx, self.key.campaign, &keys).await?);
        let kinds = self.lore(&kinds, &heads).await?;
        let here = Arc::new(self.here(&cast, &kinds, &mut heads).await?);
        Ok(Sources {
            key: self.key,
            layout,
            context,
            lore_global: self.lore(&global, &heads).await?,
            lore_scoped: self.lore(&cast.entity.scopes, &heads).await?,
            lore_player: self.lore(&player_scopes, &heads).await?,
            kinds,
            here,
            cast,
            heads,
            global,
            player_scopes,
        })
    }

    /// A section: that of the old prompt if its heads have not changed, or a new one.
    async fn segment(&mut self, sources: &Sources, section: Section) -> Result<Arc<Segment>> {
        let heads = sources.stamps(section);
        let same = self.old.and_then(|old| old.segments.iter().find(|s| s.section == section && s.heads == heads));
        if let Some(same) = same {
            return Ok(same.clone());
        }
        self.built = true;
        metrics::SEGMENTS_BUILT.with_label_values(&[section.name()]).inc();
        let budget = sources.layout.budget(section, &sources.cast.settings);
        let segment = sources.write(self.tx, section, budget).await?;
        Ok(Arc::new(Segment { heads, ..segment }))
    }

    /// Cuts sections, as the campaign's template says, until the prompt fits into the model's context together with the conversation, the
    /// turn and an answer. Returns the budget that is left for the conversation.
    async fn fit(&self, sources: &Sources, segments: &mut [Arc<Segment>]) -> Result<u32> {
        let budget = |section| sources.layout.budget(section, &sources.cast.settings);
        let mut history = budget(Section::History);
        let Some(context) = sources.context.tokens else { return Ok(history) };
        // The definitions of tools are sent beside the messages. A token has about three bytes of JSON.
        let tools = tools::definitions(sources.cast.entity.kind, &sources.cast.entity.tools);
        let tools = tools.filter(|_| self.key.mode == ReplyMode::Native).map_or(0, |tools| tools.get().len() / 3);
        let late: u32 = reminder::reminders(&sources.cast, Uuid::nil()).iter().map(|reminder| reminder.tokens).sum();
        let kept = [budget(Section::Turn), late, u32::try_from(tools).unwrap_or(u32::MAX), ACTION_TOKENS];
        let kept = kept.into_iter().fold(sources.context.output_tokens, u32::saturating_add);
        let room = context.saturating_sub(kept);
        for section in &sources.layout.cut {
            let base: u32 = segments.iter().map(|segment| segment.tokens).sum();
            let excess = base.saturating_add(history).saturating_sub(room);
            if excess == 0 {
                break;
            }
            if *section == Section::History {
                history = history.saturating_sub(excess);
            } else if let Some(segment) = segments.iter_mut().find(|segment| segment.section == *section) {
                let budget = segment.tokens.saturating_sub(excess);
                let written = sources.write(self.tx, *section, budget).await?;
                // Nobody takes it for the whole section.
                let cut = ("cut".to_owned(), i64::from(budget));
                let heads = segment.heads.iter().cloned().chain([cut]).collect();
                *segment = Arc::new(Segment { heads, ..written });
            }
        }
        Ok(history)
    }

    /// The conversation: that of the old prompt if it has not changed, or the present one.
    async fn transcript(&self, sources: &Sources) -> Result<Arc<Transcript>> {
        let version = sources.version(&talk_head(&self.key));
        if let Some(same) = self.old.map(|old| &old.transcript).filter(|t| t.version == version) {
            return Ok(same.clone());
        }
        Transcript::load(self.tx, self.key.entity, self.key.player, version).await.map(Arc::new)
    }

    /// The heads of the data about campaign, entity and player, read before that data.
    async fn cast_heads(&self) -> Result<Heads> {
        let PromptKey { campaign, entity, player, .. } = self.key;
        let keys = [
            format!("campaign:{campaign}"),
            format!("clock:{campaign}"),
            format!("entity:{entity}"),
            format!("mood:{entity}"),
            format!("player:{player}"),
            format!("place:{player}"),
        ];
        heads(self.tx, campaign, &keys).await
    }

    async fn row<E: EntityTrait>(&self, id: Uuid, what: &str) -> Result<E::Model> {
        let select = E::find().filter(col("tenant_id").eq(self.tx.tenant())).filter(col("id").eq(id));
        select.one(self.tx).await?.ok_or_else(|| Error::not_found(what))
    }

    async fn cast(&self, kind: EntityKind, known: &mut Heads) -> Result<Cast> {
        let campaign: campaign::Model = self.row::<campaign::Entity>(self.key.campaign, "campaign").await?;
        let player: character::Model = self.row::<character::Entity>(self.key.player, "character").await?;
        let entity = match kind {
            EntityKind::Npc => {
                let npc: npc::Model = self.row::<npc::Entity>(self.key.entity, "npc").await?;
                let of_owner = |id| [format!("entity:{id}"), format!("mood:{id}")];
                let owner_heads: Vec<_> = npc.owner_ids.iter().flat_map(of_owner).collect();
                known.extend(heads(self.tx, self.key.campaign, &owner_heads).await?);
                let owners = owner::Entity::find()
                    .filter(col("tenant_id").eq(self.tx.tenant()))
                    .filter(col("id").is_in(npc.owner_ids.iter().copied()))
                    .all(self.tx)
                    .await?;
                EntityFacts::of_npc(npc, &owners)
            }
            EntityKind::Owner => EntityFacts::of_owner(self.row::<owner::Entity>(self.key.entity, "owner").await?),
        };
        Ok(Cast {
            campaign: self.key.campaign,
            settings: campaign.settings.0,
            instructions: campaign.instructions,
            game_time: campaign.game_time.unwrap_or_default(),
            entity,
            player: PlayerFacts::of(player),
        })
    }

    /// Which creatures or items are here, for the kinds that have lore. No statement if there is no such lore.
    async fn here(&self, cast: &Cast, kinds: &[Arc<ScopeLore>], known: &mut Heads) -> Result<Here> {
        let PromptKey { campaign, entity, player, .. } = self.key;
        let has = |kind: &str| kinds.iter().any(|lore| lore.scope.scope == kind && lore.has_keywords());
        let (creatures, items) = (has("creature"), has("item"));
        let mut keys = Vec::new();
        if creatures {
            keys.push(format!("creatures:{campaign}"));
        }
        if items {
            keys.extend([format!("pack:{entity}"), format!("pack:{player}")]);
        }
        let mut here = Here::default();
        if keys.is_empty() {
            return Ok(here);
        }
        known.extend(heads(self.tx, campaign, &keys).await?);
        if creatures {
            let places = [cast.player.location.as_str(), cast.entity.place.as_str()];
            here.creatures = here::creatures(self.tx, campaign, &places, entity).await?;
        }
        if items {
            here.items = here::items(self.tx, player, entity).await?;
        }
        Ok(here)
    }

    async fn lore(&self, scopes: &[LoreScope], known: &Heads) -> Result<Vec<Arc<ScopeLore>>> {
        cached_lore(self.prompts, self.tx, self.key.campaign, scopes, known).await
    }
}

/// The lore of scopes as of their heads. Uses the cache if it is not outdated.
async fn cached_lore(
    prompts: &Prompts,
    tx: &TenantTx,
    campaign: Uuid,
    scopes: &[LoreScope],
    known: &Heads,
) -> Result<Vec<Arc<ScopeLore>>> {
    let mut out = Vec::with_capacity(scopes.len());
    for scope in scopes {
        let version = known.get(&scope.head()).copied().unwrap_or_default();
        let key = (campaign, scope.clone());
        if let Some(held) = prompts.lore.get(tx.tenant(), &key).filter(|held| held.version == version) {
            out.push(held.lore.clone());
            continue;
        }
        let lore = Arc::new(ScopeLore::load(tx, campaign, scope).await?);
        prompts.lore.put(tx.tenant(), key, Arc::new(StampedLore { version, lore: lore.clone() }));
        out.push(lore);
    }
    Ok(out)
}

/// The present lore of scopes, which may include [`LoreScope::any`], and the versions of their heads. One statement for cached
/// lore.
///
/// # Errors
/// Database errors.
pub async fn lore_now(
    prompts: &Prompts,
    tx: &TenantTx,
    campaign: Uuid,
    scopes: &[LoreScope],
) -> Result<(Vec<Arc<ScopeLore>>, Vec<i64>)> {
    let keys: Vec<String> = scopes.iter().map(LoreScope::head).collect();
    let row = sqlx::query("SELECT lore_heads($1, $2, $3) AS versions")
        .bind(tx.tenant())
        .bind(campaign)
        .bind(&keys)
        .fetch_one(&mut *tx.connection().await)
        .await?;
    let versions: Vec<i64> = row.read("versions")?;
    let known = keys.into_iter().zip(versions.iter().copied()).collect();
    Ok((cached_lore(prompts, tx, campaign, scopes, &known).await?, versions))
}
