//! Builds a base prompt: reads what its sections are written from, and writes those that are outdated.

use std::sync::Arc;

use entity::{campaign, character, npc, owner};
use sea_orm::{EntityTrait, QueryFilter, sea_query::ExprTrait};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    base_prompt::{BasePrompt, context_tokens, summed},
    cache::Prompts,
    cast::{Cast, EntityFacts, PlayerFacts},
    fresh_lore::cached_lore,
    hash::short_hash,
    heads::{self, Heads},
    here::{self, Here},
    key::{PromptKey, task_of},
    lore::{Knower, ScopeLore},
    macros::has_macros,
    names::PromptRequest,
    remembered::{self, Recall, Remembered, Room},
    scope::{self, LoreScope},
    segment::{self, SectionDraft, Segment},
    transcript::Transcript,
};
use crate::tools;
use base::{
    error::{Error, Result},
    metrics,
};
use db::tenancy::TenantTx;
use edge::http::resource::col;
use entity::kind::EntityKind;
use llm::ReplyMode;
use world::{
    campaigns::{prompt_section::Section, prompt_template::Layout},
    messages::event::{self, Event},
    owners::domain::at_place,
};

/// What the sections of a base prompt are written from.
struct Sources {
    key: PromptKey,
    cast: Arc<Cast>,
    layout: Layout,
    context_tokens: Option<u32>,
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
            Section::Memories => (vec![campaign(), player(), self.key.memory_head()], &[]),
            Section::History | Section::Overview | Section::Recalled | Section::Turn => (Vec::new(), &[]),
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

    /// Writes a section, except the one with the memories.
    async fn write(&self, section: Section, budget: u32) -> Result<Segment> {
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
                let heading = segment::player_heading(cast);
                SectionDraft {
                    text: format!("{heading}{}", lore.text),
                    pieces: lore.pieces.after(heading.len()),
                    ..lore
                }
            }
            Section::Memories | Section::History | Section::Overview | Section::Recalled | Section::Turn => {
                SectionDraft::default()
            }
        };
        Segment::of(section, draft).await
    }
}

/// The version head of the campaign's events.
fn events_head(campaign: Uuid) -> String {
    format!("events:{campaign}")
}

/// Builds the prompt for a key, with as much of an old one as is up to date.
pub(super) struct Builder<'a> {
    prompts: &'a Prompts,
    tx: &'a TenantTx,
    old: Option<&'a BasePrompt>,
    key: PromptKey,
    recall: Recall,
    memory_rows: usize,
    built: bool,
}

impl<'a> Builder<'a> {
    pub fn new(prompts: &'a Prompts, tx: &'a TenantTx, old: Option<&'a BasePrompt>, key: PromptKey) -> Self {
        // Without a section for memories, nothing is recalled either.
        Self { prompts, tx, old, key, recall: Recall::nothing(), memory_rows: 0, built: false }
    }

    /// The prompt, what is recalled with it, and whether a section was written for it.
    pub async fn build(mut self, request: &PromptRequest<'_>) -> Result<(BasePrompt, Recall, bool)> {
        let sources = self.sources(request).await?;
        let mut segments = Vec::with_capacity(sources.layout.base.len());
        for section in &sources.layout.base {
            segments.push(self.segment(&sources, *section).await?);
        }
        let transcript = self.transcript(&sources).await?;
        let events = self.events(&sources).await?;
        let (hash, tokens) = summed(&segments);
        let cache_key = Sha256::digest([self.tx.tenant().as_bytes(), &self.key.campaign.as_bytes()[..], b"1"].concat());
        let Sources { cast, heads, lore_global, lore_scoped, lore_player, kinds, here, layout, context_tokens, .. } =
            sources;
        let base = BasePrompt {
            key: self.key,
            layout,
            context_tokens,
            hash,
            tokens,
            segments,
            lore: lore_global.into_iter().chain(lore_scoped).chain(lore_player).collect(),
            kinds,
            here,
            recalled: self.recall.same(),
            memory_rows: self.memory_rows,
            transcript,
            situation: segment::situation(&cast).into(),
            events,
            cache_key: short_hash(&cache_key).into(),
            tools: (self.key.mode == ReplyMode::Native)
                .then(|| tools::definitions(cast.entity.kind, &cast.entity.tools))
                .flatten()
                .map(Arc::from),
            cast,
            head_versions: heads.values().copied().collect(),
            head_keys: heads.into_keys().collect(),
        };
        Ok((base, self.recall, self.built))
    }

    /// Reads what the sections are written from. Heads are read before the data that they are about.
    async fn sources(&self, request: &PromptRequest<'_>) -> Result<Sources> {
        let mut heads = self.cast_heads().await?;
        let cast = Arc::new(self.cast(request.names.kind, &mut heads).await?);
        let task = task_of(request.names.kind);
        let context_tokens = context_tokens(request.models.choose(task, &cast.named_models(task)));
        let layout = Layout::of(&cast.settings, task.as_str(), context_tokens);
        let player_scopes = scope::of_player(&cast.player.race, &cast.player.profession, &cast.entity.scopes);
        let global = [LoreScope::global()];
        let scopes = global.iter().chain(&cast.entity.scopes).chain(&player_scopes);
        let mut keys: Vec<String> = scopes.map(LoreScope::head).collect();
        keys.extend([self.key.memory_head(), self.key.talk_head()]);
        let kinds = LoreScope::kinds();
        keys.extend(kinds.iter().map(LoreScope::head));
        heads.extend(heads::versions(self.tx, self.key.campaign, &keys).await?);
        let kinds = self.lore(&kinds, &heads).await?;
        let here = Arc::new(self.here(&cast, &kinds, &mut heads).await?);
        Ok(Sources {
            key: self.key,
            layout,
            context_tokens,
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
        let is_same = |segment: &&Arc<Segment>| segment.section == section && segment.heads == heads;
        if let Some((old, same)) = self.old.and_then(|old| Some((old, old.segments.iter().find(is_same)?))) {
            if section == Section::Memories {
                self.recall = remembered::unchanged((self.prompts, self.tx), old).await?;
                self.memory_rows = old.memory_rows;
            }
            return Ok(same.clone());
        }
        self.built = true;
        metrics::SEGMENTS_BUILT.with_label_values(&[section.name()]).inc();
        let budget = sources.layout.budget(section, &sources.cast.settings);
        let written = match section {
            Section::Memories => {
                let (key, version) = (&self.key, sources.version(&self.key.memory_head()));
                let room = Room::of(&sources.cast, budget);
                let was_chosen = self.old.is_some_and(|old| old.recalled.is_none());
                let Remembered { memories, recall, rows } =
                    remembered::read((self.prompts, self.tx), key, version, &room, was_chosen).await?;
                (self.recall, self.memory_rows) = (recall, rows);
                memories
            }
            section => sources.write(section, budget).await?,
        };
        Ok(Arc::new(Segment { heads, ..written }))
    }

    /// The conversation: that of the old prompt if it has not changed, or the present one.
    async fn transcript(&self, sources: &Sources) -> Result<Arc<Transcript>> {
        let version = sources.version(&self.key.talk_head());
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
            events_head(campaign),
            format!("entity:{entity}"),
            format!("mood:{entity}"),
            format!("player:{player}"),
            format!("place:{player}"),
        ];
        heads::versions(self.tx, campaign, &keys).await
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
                known.extend(heads::versions(self.tx, self.key.campaign, &owner_heads).await?);
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

    /// The events that the prompt tells. No statement in a campaign that never had one.
    async fn events(&self, sources: &Sources) -> Result<Vec<Event>> {
        let PromptKey { campaign, entity, .. } = self.key;
        if sources.version(&events_head(campaign)) == 0 {
            return Ok(Vec::new());
        }
        let Cast { entity: own, player, .. } = &*sources.cast;
        // Somebody without a place is where the player is.
        let place = if own.place.is_empty() { &player.location } else { &own.place };
        let scopes = own.scopes.iter().map(LoreScope::name);
        let audience: Vec<String> = scopes.chain([at_place(place), entity.to_string()]).collect();
        event::told_to(self.tx, campaign, &audience).await
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
        known.extend(heads::versions(self.tx, campaign, &keys).await?);
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
