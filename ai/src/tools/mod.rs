//! Tools: what an AI may call. Each tool has one file and one line in [`REGISTRY`].
//!
//! A tool's typed arguments define its JSON Schema for models, its validation and its documentation. The caller is the
//! entity that has the turn. No tool takes its caller as an argument. Tools write through the services of the other
//! modules, in the transaction of their batch, and never call a model.
//!
//! To add a tool, add a file that implements [`ToolSpec`], and a line in the registry. A test of the list finds
//! whatever you forgot.

mod answers;
pub(crate) mod arguments;
mod as_meant;
mod change_npc_behavior;
mod change_npc_stats;
mod earlier;
mod effects;
pub(crate) mod encounters;
mod get_actor_details;
mod get_current_scene;
mod get_encounter;
mod get_message_history;
mod get_party_members;
mod grant_passive_skill;
pub mod granted;
mod hand;
pub mod http;
mod measure_distance;
mod modify_resource;
pub mod narrow;
mod npc_memorize;
mod owner_memorize;
mod owner_memorize_dependables;
pub mod paid;
mod plain;
mod post_message;
mod recall;
pub(crate) mod resolve;
mod roll_dice;
mod search_lore;
mod send_message;
pub mod shorten;
mod spawn_entity;
pub mod spec;
mod trigger_world_event;
mod work;

pub use as_meant::as_meant;
pub use earlier::Earlier;
pub use effects::Effects;
pub use granted::{Grant, definitions, granted};
pub use hand::Hand;
pub(crate) use roll_dice::roll_dice;
pub use work::{Hold, Rest, Work};

use std::{collections::BTreeMap, sync::LazyLock};

use entity::shapes::ToolRef;
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};

use self::spec::{ActorKind, Asking, Schemas, ToolCx, ToolSpec};
use crate::frontends::question::Question;
use base::error::{Error, Result};
use entity::kind::EntityKind;
use world::rules::answers::ResolvedOutcome;

/// A tool of the registry.
pub struct Tool {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub description: &'static str,
    pub callers: &'static [ActorKind],
    pub listed: bool,
    pub informs: bool,
    pub reads: bool,
    pub of_rules: bool,
    pub previews: bool,
    schema: fn() -> Value,
    answer: fn() -> Schemas,
    asks: fn(&Asking<'_>, &Value) -> Option<Question>,
    run: Run<Value>,
    /// None for those that are no resolvers.
    resolve: Option<Run<ResolvedOutcome>>,
}

/// The function that runs a tool with unchecked arguments.
type Run<A> = for<'a> fn(&'a ToolCx<'a>, Value) -> LocalBoxFuture<'a, Result<A>>;

const fn tool<T: ToolSpec>() -> Tool {
    fn schema<T: ToolSpec>() -> Value {
        arguments::schema::<T::Arguments>()
    }
    fn run<'a, T: ToolSpec>(cx: &'a ToolCx<'a>, given: Value) -> LocalBoxFuture<'a, Result<Value>> {
        Box::pin(
            async move { serde_json::to_value(T::run(cx, arguments::read(given)?).await?).map_err(Error::internal) },
        )
    }
    fn asks<T: ToolSpec>(asking: &Asking<'_>, given: &Value) -> Option<Question> {
        T::asks(asking, &arguments::read(given.clone()).ok()?)
    }
    Tool {
        name: T::NAME,
        aliases: T::ALIASES,
        description: T::DESCRIPTION,
        callers: T::CALLERS,
        listed: T::LISTED,
        informs: T::INFORMS,
        reads: T::READS,
        of_rules: T::OF_RULES,
        previews: T::PREVIEWS,
        schema: schema::<T>,
        answer: spec::schemas::<T::Answer>,
        asks: asks::<T>,
        run: run::<T>,
        resolve: None,
    }
}

const fn resolver<T: ToolSpec<Answer = ResolvedOutcome>>() -> Tool {
    fn resolve<'a, T: ToolSpec<Answer = ResolvedOutcome>>(
        cx: &'a ToolCx<'a>,
        given: Value,
    ) -> LocalBoxFuture<'a, Result<ResolvedOutcome>> {
        Box::pin(async move { T::run(cx, arguments::read(given)?).await })
    }
    Tool { resolve: Some(resolve::<T>), ..tool::<T>() }
}

/// All tools, by name.
pub static REGISTRY: &[Tool] = &[
    tool::<npc_memorize::NpcMemorize>(),
    tool::<owner_memorize::OwnerMemorize>(),
    tool::<owner_memorize_dependables::OwnerMemorizeDependables>(),
    tool::<change_npc_behavior::ChangeNpcBehavior>(),
    tool::<change_npc_stats::ChangeNpcStats>(),
    tool::<grant_passive_skill::GrantPassiveSkill>(),
    tool::<modify_resource::ModifyResource>(),
    tool::<send_message::SendMessage>(),
    tool::<spawn_entity::SpawnEntity>(),
    tool::<trigger_world_event::TriggerWorldEvent>(),
    tool::<get_actor_details::GetActorDetails>(),
    tool::<get_current_scene::GetCurrentScene>(),
    tool::<get_encounter::GetEncounter>(),
    tool::<get_message_history::GetMessageHistory>(),
    tool::<get_party_members::GetPartyMembers>(),
    tool::<measure_distance::MeasureDistance>(),
    tool::<post_message::PostMessage>(),
    tool::<recall::Recall>(),
    tool::<roll_dice::RollDice>(),
    tool::<search_lore::SearchLore>(),
    tool::<encounters::ManageEncounter>(),
    tool::<encounters::EncounterAction>(),
    resolver::<resolve::ApplyDamage>(),
    resolver::<resolve::ApplyHealing>(),
    resolver::<resolve::MarkImpossible>(),
    resolver::<resolve::MarkNoCheck>(),
    resolver::<resolve::ResolveAbilityCheck>(),
    resolver::<resolve::ResolveAttack>(),
    resolver::<resolve::ResolveConcentration>(),
    resolver::<resolve::ResolveContest>(),
    resolver::<resolve::ResolveDeathSave>(),
    resolver::<resolve::ResolveFall>(),
    resolver::<resolve::ResolveGroupCheck>(),
    resolver::<resolve::ResolvePassive>(),
    resolver::<resolve::ResolveSavingThrow>(),
    resolver::<resolve::ResolveSkillCheck>(),
    resolver::<resolve::RollInitiative>(),
    resolver::<resolve::TakeRest>(),
];

/// The tool with which owners remember.
pub const OWNER_MEMORY: &str = owner_memorize::OwnerMemorize::NAME;

/// Whether an entity of this kind can remember something. For an owner, telling its dependents counts as well.
#[must_use]
pub fn remembers(kind: EntityKind, listed: &[ToolRef]) -> bool {
    let has = |name: &str| listed.iter().any(|tool| tool.name() == name);
    match kind {
        EntityKind::Npc => has(world::npcs::MEMORY_TOOL),
        EntityKind::Owner => has(OWNER_MEMORY) || has(owner_memorize_dependables::OwnerMemorizeDependables::NAME),
    }
}

impl Tool {
    /// The JSON Schema of the arguments.
    #[must_use]
    pub fn schema(&self) -> &'static Value {
        static SCHEMAS: LazyLock<BTreeMap<&'static str, Value>> =
            LazyLock::new(|| REGISTRY.iter().map(|t| (t.name, (t.schema)())).collect());
        SCHEMAS.get(self.name).unwrap_or(&Value::Null)
    }

    /// The schemas of the result, the result's own first.
    #[must_use]
    pub fn answer(&self) -> Schemas {
        (self.answer)()
    }

    /// The schema on one line.
    #[must_use]
    pub fn schema_text(&self) -> String {
        self.schema().to_string()
    }

    /// What to ask the session's frontend before the tool runs with these arguments.
    #[must_use]
    pub fn asks(&self, asking: &Asking<'_>, arguments: &Value) -> Option<Question> {
        (self.asks)(asking, arguments)
    }

    /// Runs the tool with unchecked arguments.
    ///
    /// # Errors
    /// `validation_failed` with pointers into the arguments; the tool's own errors.
    #[tracing::instrument(level = "debug", name = "tool_call", skip_all, fields(tool = self.name))]
    pub async fn run(&self, cx: &ToolCx<'_>, arguments: Value) -> Result<Value> {
        (self.run)(cx, arguments).await
    }

    /// Runs a resolver with unchecked arguments.
    ///
    /// # Errors
    /// As [`Tool::run`]; `internal` for a tool that is no resolver.
    #[tracing::instrument(level = "debug", name = "tool_call", skip_all, fields(tool = self.name))]
    pub async fn resolve(&self, cx: &ToolCx<'_>, arguments: Value) -> Result<ResolvedOutcome> {
        let resolve = self.resolve.ok_or_else(|| Error::internal("a tool that is no resolver was to resolve"))?;
        resolve(cx, arguments).await
    }

    /// The definition in the format for models.
    #[must_use]
    pub fn definition(&self, own_words: Option<&str>) -> Value {
        json!({ "type": "function", "function": {
            "name": self.name, "description": own_words.unwrap_or(self.description), "parameters": self.schema(),
        }})
    }
}

/// Finds a tool by its name or an older name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Tool> {
    REGISTRY.iter().find(|t| t.name == name || t.aliases.contains(&name))
}

/// The arguments of a call by this name. Some older names stand for a value of an argument.
#[must_use]
pub fn called_as(name: &str, mut arguments: Value) -> Value {
    let operation = match name {
        "create_encounter" => "create",
        "end_encounter" => "end",
        _ => return arguments,
    };
    if let Value::Object(members) = &mut arguments {
        members.entry("operation").or_insert_with(|| operation.into());
    }
    arguments
}
