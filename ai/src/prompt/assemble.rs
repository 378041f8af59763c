//! Assembles the base prompt for the names in a request: the cached one if its version heads match the database's, or else one
//! whose outdated sections are written again.
//!
//! A cache hit costs one statement. Everything that goes into a section has a version head, which is read before the data.

use std::{collections::BTreeMap, sync::Arc};

use entity::{
    campaign, character, npc, owner,
    shapes::{Extensions, ToolRef},
};
use sea_orm::{EntityTrait, QueryFilter, sea_query::ExprTrait};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use base::tokens;

use super::{
    cache::{Prompts, StampedLore, Weigh},
    fence,
    lore::{Knower, ScopeLore},
    scope::{self, LoreScope},
    segment::{self, Segment, Written, short_hash},
    transcript::{Transcript, messages},
    wake::{Entered, wake},
};
use crate::tools;
use base::{
    error::{Error, Result},
    metrics,
    stored::Columns,
    threads,
};
use db::{pool::Pool, tenancy::TenantTx};
use edge::{
    caller::Caller,
    http::resource::{Ref, campaign_id, col},
};
use entity::kind::EntityKind;
use llm::{Message, ReplyMode};
use world::campaigns::prompt_section::Section;

/// The names of the campaign, the entity and the player in a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alias {
    pub tenant: Uuid,
    pub campaign: String,
    pub kind: EntityKind,
    pub entity: String,
    pub player: String,
    pub mode: ReplyMode,
}

/// The key of a base prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PromptKey {
    pub campaign: Uuid,
    pub entity: Uuid,
    pub player: Uuid,
    pub mode: ReplyMode,
}

/// The campaign, the entity and the player, as of the heads in the prompt.
#[derive(Debug)]
pub struct Cast {
    pub campaign: Uuid,
    pub settings: Extensions,
    pub game_time: String,
    pub entity: EntityFacts,
    pub player: PlayerFacts,
}

/// The entity that answers.
#[derive(Debug)]
pub struct EntityFacts {
    pub kind: EntityKind,
    pub id: Uuid,
    pub slug: String,
    pub name: String,
    pub description: String,
    pub personality: String,
    pub race: String,
    pub profession: String,
    pub faction: String,
    pub location: String,
    pub disposition: String,
    /// The aspect that an owner monitors, and its subject.
    pub watches_over: String,
    pub tools: Vec<ToolRef>,
    pub scopes: Vec<LoreScope>,
}

/// The acting player character.
#[derive(Debug)]
pub struct PlayerFacts {
    pub id: Uuid,
    pub slug: String,
    pub name: String,
    pub race: String,
    pub profession: String,
    pub location: String,
}

/// A base prompt, ready to be sent with a conversation.
#[derive(Clone)]
pub struct BasePrompt {
    pub key: PromptKey,
    pub cast: Arc<Cast>,
    /// In the order of [`Section::BASE`].
    pub segments: Vec<Arc<Segment>>,
    /// Lore that keywords may activate, in the order of its sections.
    pub lore: Vec<Arc<ScopeLore>>,
    pub transcript: Arc<Transcript>,
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
    /// Whether the prompt was built from an older version of this head.
    #[must_use]
    pub fn is_older(&self, head: &str, version: i64) -> bool {
        let at = self.head_keys.binary_search_by(|k| k.as_str().cmp(head)).ok();
        at.and_then(|at| self.head_versions.get(at)).is_some_and(|own| *own < version)
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
    pub fn messages(&self, transcript: &Transcript, turn: Arc<str>) -> Vec<Message> {
        messages(self.segments.iter().map(|s| s.text.clone()), transcript, turn)
    }
}

/// The requested prompt, in the names of the request.
pub struct Wanted<'a> {
    pub campaign: &'a str,
    pub kind: EntityKind,
    pub entity: &'a str,
    pub player: &'a str,
    pub mode: ReplyMode,
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
pub async fn assemble(prompts: &Prompts, tx: &TenantTx, caller: &Caller, wanted: &Wanted<'_>) -> Result<Assembled> {
    let cached = cached(prompts, caller, wanted);
    if let Some(base) = &cached {
        let now = heads(tx, base.key.campaign, &base.head_keys).await?;
        if let Some(renewed) = renew(tx, base, &now).await? {
            prompts.base.put(tx.tenant(), renewed.base.key, renewed.base.clone());
            metrics::PROMPT_CACHE.with_label_values(&[if renewed.hit { "hit" } else { "miss" }]).inc();
            return Ok(renewed);
        }
    }
    let key = resolve(tx, caller, wanted).await?;
    may_use(caller, &key)?;
    let old = cached.filter(|base| base.key == key).or_else(|| prompts.base.get(tx.tenant(), &key));
    let builder = Builder { prompts, tx, old: old.as_deref(), key, built: false };
    let (base, built) = builder.build(wanted).await?;
    let base = Arc::new(base);
    prompts.base.put(tx.tenant(), key, base.clone());
    prompts.learn(alias(tx.tenant(), wanted), key);
    let hit = old.is_some() && !built;
    metrics::PROMPT_CACHE.with_label_values(&[if hit { "hit" } else { "miss" }]).inc();
    Ok(Assembled { base, hit })
}

/// The cached prompt for these names, which may be outdated. None if the caller may not use it.
#[must_use]
pub fn cached(prompts: &Prompts, caller: &Caller, wanted: &Wanted<'_>) -> Option<Arc<BasePrompt>> {
    let key = prompts.known_as(&alias(caller.tenant_id(), wanted))?;
    may_use(caller, &key).ok()?;
    prompts.base.get(caller.tenant_id(), &key)
}

/// The ids for the names in a request, from the cache. Asks the database for names that are not cached.
///
/// # Errors
/// `not_found` for campaign or entity, `validation_failed` for the player, `forbidden` for another player.
pub async fn known(prompts: &Prompts, pool: &Pool, caller: &Caller, wanted: &Wanted<'_>) -> Result<PromptKey> {
    if let Some(key) = known_already(prompts, caller, wanted) {
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
pub fn known_already(prompts: &Prompts, caller: &Caller, wanted: &Wanted<'_>) -> Option<PromptKey> {
    prompts.known_as(&alias(caller.tenant_id(), wanted)).filter(|key| may_use(caller, key).is_ok())
}

fn alias(tenant: Uuid, wanted: &Wanted<'_>) -> Alias {
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
    if !moved.all(|key| key.starts_with("memory:") || key.starts_with("talk:")) {
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
            let written = segment::memories(tx, &old.cast, Section::Memories.budget_in(&old.cast.settings)).await?;
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

async fn resolve(tx: &TenantTx, caller: &Caller, wanted: &Wanted<'_>) -> Result<PromptKey> {
    let campaign = campaign_id(tx, caller, &Ref::parse(wanted.campaign)).await?;
    let rows = sqlx::query(
        "SELECT kind, actor_id, slug FROM actor_slug WHERE tenant_id = $1 AND campaign_id = $2 \
         AND (slug = ANY ($3) OR actor_id = ANY ($4))",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind([wanted.entity, wanted.player])
    .bind([wanted.entity, wanted.player].iter().filter_map(|n| Uuid::try_parse(n).ok()).collect::<Vec<_>>())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let actors = rows
        .iter()
        .map(|row| Ok((row.read("kind")?, row.read("actor_id")?, row.read("slug")?)))
        .collect::<Result<Vec<(&str, Uuid, &str)>>>()?;
    let find = |wanted: &str, name: &str| {
        actors.iter().find_map(|&(kind, id, slug)| {
            let named = match Ref::parse(name) {
                Ref::Id(given) => given == id,
                Ref::Slug(given) => given == slug,
            };
            (named && kind == wanted).then_some(id)
        })
    };
    let entity = find(wanted.kind.as_str(), wanted.entity).ok_or_else(|| Error::not_found(wanted.kind.as_str()))?;
    let player = find("character", wanted.player).ok_or_else(|| {
        Error::invalid("/player_id", "unknown_reference", "There is no such character in this campaign.")
    })?;
    Ok(PromptKey { campaign, entity, player, mode: wanted.mode })
}

struct Builder<'a> {
    prompts: &'a Prompts,
    tx: &'a TenantTx,
    old: Option<&'a BasePrompt>,
    key: PromptKey,
    built: bool,
}

impl Builder<'_> {
    async fn build(mut self, wanted: &Wanted<'_>) -> Result<(BasePrompt, bool)> {
        let mut known = self.cast_heads().await?;
        let cast = Arc::new(self.cast(wanted.kind, &mut known).await?);
        let player_scopes = scope::of_player(&cast.player.race, &cast.player.profession, &cast.entity.scopes);
        let (memory, talk) = (
            format!("memory:{}:{}", self.key.entity, self.key.player),
            format!("talk:{}:{}", self.key.entity, self.key.player),
        );
        let global = [LoreScope::global()];
        let scopes = global.iter().chain(&cast.entity.scopes).chain(&player_scopes);
        let mut keys: Vec<String> = scopes.map(LoreScope::head).collect();
        keys.extend([memory.clone(), talk.clone()]);
        known.extend(heads(self.tx, self.key.campaign, &keys).await?);

        let lore_global = self.lore(&global, &known).await?;
        let lore_scoped = self.lore(&cast.entity.scopes, &known).await?;
        let lore_player = self.lore(&player_scopes, &known).await?;
        let head = |name: &str, id: Uuid| format!("{name}:{id}");
        let (campaign, entity, player) =
            (head("campaign", self.key.campaign), head("entity", self.key.entity), head("player", self.key.player));
        let stamps = |keys: &[&String], scopes: &[LoreScope]| -> Vec<(String, i64)> {
            let keys = keys.iter().map(|k| (*k).clone()).chain(scopes.iter().map(LoreScope::head));
            keys.map(|k| {
                let v = known.get(&k).copied().unwrap_or_default();
                (k, v)
            })
            .collect()
        };
        let budget = |section: Section| section.budget_in(&cast.settings);
        let mode = self.key.mode;
        let id = Knower::Entity(self.key.entity);
        let mut segments = Vec::with_capacity(Section::BASE.len());
        for section in Section::BASE {
            let stamps = match section {
                Section::EngineRules => Vec::new(),
                Section::GlobalLore => stamps(&[&campaign], &global),
                Section::ScopedLore => stamps(&[&campaign], &cast.entity.scopes),
                Section::Personality | Section::Tools => stamps(&[&entity], &[]),
                Section::PlayerLore => stamps(&[&campaign, &player], &player_scopes),
                _ => stamps(&[&campaign, &player, &memory], &[]),
            };
            let same = self.old.and_then(|old| old.segments.iter().find(|s| s.section == section && s.heads == stamps));
            if let Some(same) = same {
                segments.push(same.clone());
                continue;
            }
            self.built = true;
            metrics::SEGMENTS_BUILT.with_label_values(&[section.name()]).inc();
            let written = match section {
                Section::EngineRules => segment::engine_rules(mode).into(),
                Section::GlobalLore => segment::lore_section("world_lore", &lore_global, id, budget(section)),
                Section::ScopedLore => segment::lore_section("local_lore", &lore_scoped, id, budget(section)),
                Section::Personality => segment::personality(&cast).into(),
                Section::Tools => segment::tools(&cast, mode).into(),
                Section::PlayerLore => {
                    let lore = segment::lore_section("player_lore", &lore_player, id, budget(section));
                    Written { text: format!("{}{}", segment::player_heading(&cast), lore.text), ..lore }
                }
                _ => {
                    let memories = segment::memories(self.tx, &cast, budget(section)).await?;
                    segments.push(Arc::new(Segment { heads: stamps, ..memories }));
                    continue;
                }
            };
            let segment = Segment::of(section, written).await?;
            segments.push(Arc::new(Segment { heads: stamps, ..segment }));
        }
        let talk_version = known.get(&talk).copied().unwrap_or_default();
        let transcript = match self.old.map(|old| &old.transcript).filter(|t| t.version == talk_version) {
            Some(same) => same.clone(),
            None => Arc::new(Transcript::load(self.tx, self.key.entity, self.key.player, talk_version).await?),
        };
        let (hash, tokens) = summed(&segments);
        let cache_key = Sha256::digest([self.tx.tenant().as_bytes(), &self.key.campaign.as_bytes()[..], b"1"].concat());
        let base = BasePrompt {
            key: self.key,
            hash,
            tokens,
            segments,
            lore: lore_global.into_iter().chain(lore_scoped).chain(lore_player).collect(),
            transcript,
            situation: segment::situation(&cast).into(),
            cache_key: short_hash(&cache_key).into(),
            tools: (mode == ReplyMode::Native)
                .then(|| tools::definitions(cast.entity.kind, &cast.entity.tools))
                .flatten()
                .map(Arc::from),
            cast,
            head_versions: known.values().copied().collect(),
            head_keys: known.into_keys().collect(),
        };
        Ok((base, self.built))
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
                let owner_heads: Vec<_> = npc.owner_ids.iter().map(|id| format!("entity:{id}")).collect();
                known.extend(heads(self.tx, self.key.campaign, &owner_heads).await?);
                let owners = owner::Entity::find()
                    .filter(col("tenant_id").eq(self.tx.tenant()))
                    .filter(col("id").is_in(npc.owner_ids.iter().copied()))
                    .all(self.tx)
                    .await?;
                npc_facts(npc, &owners)
            }
            EntityKind::Owner => owner_facts(self.row::<owner::Entity>(self.key.entity, "owner").await?),
        };
        Ok(Cast {
            campaign: self.key.campaign,
            settings: campaign.settings.0,
            game_time: campaign.game_time.unwrap_or_default(),
            entity,
            player: PlayerFacts {
                id: player.id.0,
                slug: player.slug,
                name: player.name,
                race: player.race,
                profession: player.profession,
                location: player.location.unwrap_or_default(),
            },
        })
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

fn npc_facts(npc: npc::Model, owners: &[owner::Model]) -> EntityFacts {
    EntityFacts {
        kind: EntityKind::Npc,
        id: npc.id.0,
        scopes: scope::of_npc(&npc, owners),
        slug: npc.slug,
        name: npc.name,
        description: npc.description,
        personality: npc.personality_prompt,
        race: npc.race.unwrap_or_default(),
        profession: npc.profession.unwrap_or_default(),
        faction: npc.faction.unwrap_or_default(),
        location: npc.location.unwrap_or_default(),
        disposition: npc.disposition,
        watches_over: String::new(),
        tools: npc.available_tools.0,
    }
}

fn owner_facts(owner: owner::Model) -> EntityFacts {
    let scopes = scope::of_owner(&owner);
    EntityFacts {
        kind: EntityKind::Owner,
        id: owner.id.0,
        watches_over: scopes.first().map(|s| s.describe().trim_start_matches("scope ").to_owned()).unwrap_or_default(),
        scopes,
        slug: owner.slug,
        name: owner.name,
        description: owner.description,
        personality: owner.personality_prompt,
        race: String::new(),
        profession: String::new(),
        faction: String::new(),
        location: String::new(),
        disposition: String::new(),
        tools: owner.available_tools.0,
    }
}

/// The turn's own message: lore that keywords activated, the situation, the action.
pub struct TurnText {
    pub text: Arc<str>,
    pub tokens: u32,
    pub hash: String,
    pub lore: Vec<super::LoreDecision>,
    pub cut: String,
}

/// Writes the turn's message: activated lore, the situation, the decision of the rules, the action. Does not repeat lore that the
/// model can still read in the window.
///
/// # Errors
/// `internal` if the server is stopping.
pub async fn turn_text_apart(
    base: &Arc<BasePrompt>,
    transcript: &Arc<Transcript>,
    action: &str,
    mechanics: Option<&str>,
) -> Result<TurnText> {
    // Without keyword lore, only the action has to be read.
    let read = if base.lore.iter().any(|lore| lore.has_keywords()) { transcript.bytes() } else { 0 };
    let (base, transcript) = (base.clone(), transcript.clone());
    let (action, mechanics) = (action.to_owned(), mechanics.map(ToOwned::to_owned));
    let bytes = action.len() + mechanics.as_ref().map_or(0, String::len) + read / LIGHTER;
    threads::apart(bytes, move || turn_text(&base, &transcript, &action, mechanics.as_deref())).await
}

/// Searching for words is this many times faster than counting tokens.
pub const LIGHTER: usize = 16;

fn turn_text(base: &BasePrompt, transcript: &Transcript, action: &str, mechanics: Option<&str>) -> TurnText {
    let mut out = String::new();
    let budget = Section::Turn.budget_in(&base.cast.settings);
    let lores = base.lore.iter().map(AsRef::as_ref);
    let Entered { text, lore, cut } = wake(lores, Knower::Entity(base.key.entity), transcript, action, budget);
    out.push_str(&text);
    out.push_str(&base.situation);
    if let Some(mechanics) = mechanics {
        fence::put(&mut out, "mechanics", &[], mechanics);
    }
    let attributes = [("player", base.cast.player.slug.as_str()), ("name", base.cast.player.name.as_str())];
    fence::put(&mut out, "player_action", &attributes, action);
    let (tokens, hash) = (tokens::count(&out), short_hash(&Sha256::digest(out.as_bytes())));
    TurnText { text: out.into(), tokens, hash, lore, cut }
}
