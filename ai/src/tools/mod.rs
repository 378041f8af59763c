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
mod encounters;
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
pub(crate) mod resolve;
mod roll_dice;
mod search_lore;
mod send_message;
pub mod shorten;
mod spawn_entity;
mod trigger_world_event;
mod work;

pub use as_meant::as_meant;
pub use earlier::Earlier;
pub use effects::Effects;
pub use granted::{Grant, definitions, granted};
pub use hand::Hand;
pub use work::{Hold, Rest, Work};

use std::{collections::BTreeMap, sync::LazyLock};

use entity::{session::Role, shapes::ToolRef};
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};
use uuid::Uuid;

use crate::frontends::{Heard, Question};
use base::error::Result;
use db::tenancy::TenantTx;
use entity::kind::EntityKind;
use world::{
    dice::service::Wish,
    memory::subject::Bound,
    playing::{Playing, Reader},
};

/// The context in which a tool runs.
pub struct ToolCx<'a> {
    pub work: &'a Work<'a>,
    pub campaign: Uuid,
    pub kind: ActorKind,
    /// Who calls the tool. The nil id stands for the game master.
    pub entity: Uuid,
    /// The player of the turn, by id and slug, so that naming the player needs no look-up.
    pub player: Option<(Uuid, &'a str)>,
    /// The session in which the call happens.
    pub session: Option<&'a Playing>,
    /// The reader for whom messages and secrets are read.
    pub reader: Reader,
    pub turn: Option<Uuid>,
    /// Whether a command runs the tool. Commands report themselves as actions.
    pub is_command: bool,
    /// The key that called the tool outside of a turn.
    pub key: Option<Uuid>,
    /// Dice that the caller rolled by hand. Only a game master may give any.
    pub dice: Option<&'a [u32]>,
    /// The answer of the session's frontend, if the tool asked it something.
    pub heard: Option<&'a Heard>,
    /// Dice rolled by hand for the whole turn. `roll_dice` uses them before it rolls.
    pub hand: Option<&'a Hand>,
    /// What earlier attempts at the turn rolled, if it is tried again.
    pub earlier: Option<&'a Earlier>,
    /// Change nothing: slots, hit points and the fair dice stay as they are.
    pub preview: bool,
    /// Deal the damage even though no encounter does.
    pub apply: bool,
    /// The most rows of one kind that the tenant may have. 0 means no limit.
    pub rows_max: u64,
    /// The effects of the turn, if a failure reverts them.
    pub effects: Option<&'a Effects>,
}

impl<'a> ToolCx<'a> {
    /// Where the dice of this call come from.
    #[must_use]
    pub fn wish(&self) -> Wish<'a> {
        Wish { given: self.dice, seed: None, preview: self.preview }
    }

    /// The player about whom the call may remember something.
    #[must_use]
    pub fn bound(&self) -> Bound {
        let played = self.session.filter(|session| session.role == Role::Player).and_then(|session| session.player);
        match (self.player.map(|(id, _)| id).or(played), self.turn) {
            (Some(player), _) => Bound::To(player),
            (None, Some(_)) => Bound::Nobody,
            (None, None) => Bound::Free,
        }
    }

    /// Counts rows that the call will change, in addition to the one that every call counts as. One statement if there are many.
    ///
    /// # Errors
    /// `quota_exceeded` if the turn may not change that many; database errors.
    pub async fn changes(&self, rows: u64) -> Result<()> {
        let Some(effects) = self.effects else { return Ok(()) };
        effects.take(rows)?;
        match self.turn {
            Some(turn) if rows >= effects::MANY => effects::take_time(self.tx().await?, turn).await,
            _ => Ok(()),
        }
    }

    /// The transaction in which the tool runs.
    ///
    /// # Errors
    /// The errors of [`Work::tx`].
    pub async fn tx(&self) -> Result<&TenantTx> {
        self.work.tx().await
    }
}

/// What a tool needs to know to decide whether to ask the frontend.
pub struct Asking<'a> {
    /// The session whose frontend would be asked.
    pub session: &'a Playing,
    /// Whether there are dice already: rolled by hand, or by the server for a preview.
    pub has_dice: bool,
}

/// The kinds of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    Character,
    Npc,
    Owner,
    Gm,
}

impl From<EntityKind> for ActorKind {
    fn from(kind: EntityKind) -> Self {
        match kind {
            EntityKind::Npc => Self::Npc,
            EntityKind::Owner => Self::Owner,
        }
    }
}

/// All kinds of callers.
pub const ANYONE: &[ActorKind] = &[ActorKind::Character, ActorKind::Npc, ActorKind::Owner, ActorKind::Gm];

/// What a tool's file defines.
pub trait ToolSpec {
    const NAME: &'static str;
    /// Older names of the tool. They still work, but are not listed.
    const ALIASES: &'static [&'static str] = &[];
    const DESCRIPTION: &'static str;
    const CALLERS: &'static [ActorKind];
    /// Whether an NPC or owner must list the tool to call it. Tools that apply the rules are for everyone.
    const LISTED: bool = true;
    /// Whether the model needs the result to go on (in XML mode; native mode always returns it).
    const INFORMS: bool;
    /// Whether the tool reads things that only its caller may know. Other readers of the turn do not see its results.
    const READS: bool = false;
    /// Whether a call can only show what it would do. Tools that merely change something have nothing to show.
    const PREVIEWS: bool = Self::INFORMS;
    type Arguments: DeserializeOwned + JsonSchema;
    /// The result's type, for the OpenAPI document.
    type Answer: ToSchema;

    /// What to ask the session's frontend before the tool runs. The answer comes as [`ToolCx::heard`]. No transaction may be open
    /// while the frontend answers, so the calls before this one are committed first.
    fn asks(_: &Asking<'_>, _: &Self::Arguments) -> Option<Question> {
        None
    }

    /// Runs the tool.
    fn run(cx: &ToolCx<'_>, arguments: Self::Arguments) -> impl Future<Output = Result<Value>>;
}

/// A tool of the registry.
pub struct Tool {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub description: &'static str,
    pub callers: &'static [ActorKind],
    pub listed: bool,
    pub informs: bool,
    pub reads: bool,
    pub previews: bool,
    schema: fn() -> Value,
    answer: fn() -> Schemas,
    asks: fn(&Asking<'_>, &Value) -> Option<Question>,
    run: for<'a> fn(&'a ToolCx<'a>, Value) -> LocalBoxFuture<'a, Result<Value>>,
}

/// Schemas by name: a type's own, and those to which it refers.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// The schemas of a type, its own first.
pub fn schemas<T: ToSchema>() -> Schemas {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    schemas
}

const fn tool<T: ToolSpec>() -> Tool {
    fn schema<T: ToolSpec>() -> Value {
        arguments::schema::<T::Arguments>()
    }
    fn run<'a, T: ToolSpec>(cx: &'a ToolCx<'a>, given: Value) -> LocalBoxFuture<'a, Result<Value>> {
        Box::pin(async move { T::run(cx, arguments::read(given)?).await })
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
        previews: T::PREVIEWS,
        schema: schema::<T>,
        answer: schemas::<T::Answer>,
        asks: asks::<T>,
        run: run::<T>,
    }
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
    tool::<roll_dice::RollDice>(),
    tool::<search_lore::SearchLore>(),
    tool::<encounters::ManageEncounter>(),
    tool::<encounters::EncounterAction>(),
    tool::<resolve::ApplyDamage>(),
    tool::<resolve::ApplyHealing>(),
    tool::<resolve::MarkImpossible>(),
    tool::<resolve::MarkNoCheck>(),
    tool::<resolve::ResolveAbilityCheck>(),
    tool::<resolve::ResolveAttack>(),
    tool::<resolve::ResolveConcentration>(),
    tool::<resolve::ResolveContest>(),
    tool::<resolve::ResolveDeathSave>(),
    tool::<resolve::ResolveFall>(),
    tool::<resolve::ResolveGroupCheck>(),
    tool::<resolve::ResolvePassive>(),
    tool::<resolve::ResolveSavingThrow>(),
    tool::<resolve::ResolveSkillCheck>(),
    tool::<resolve::RollInitiative>(),
    tool::<resolve::TakeRest>(),
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
    pub async fn run(&self, cx: &ToolCx<'_>, arguments: Value) -> Result<Value> {
        (self.run)(cx, arguments).await
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
