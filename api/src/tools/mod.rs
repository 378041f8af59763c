//! Tools: what an AI entity may call. One file per tool, one line in [`REGISTRY`].
//!
//! A tool's typed arguments are its JSON Schema for models, its validation and its documentation. The caller is the
//! entity whose turn it is; a tool never takes its caller as an argument. Tools write through the slices' services, in
//! the transaction of their batch, and never call a model.
//!
//! To add a tool: a file that implements [`ToolSpec`], a line in the registry. The catalogue test finds what was forgotten.

mod answers;
pub(crate) mod arguments;
mod effects;
mod encounters;
mod get_actor_details;
mod get_current_scene;
mod get_encounter;
mod get_message_history;
mod get_party_members;
mod hand;
pub mod http;
mod measure_distance;
mod npc_memorize;
mod owner_memorize;
mod owner_memorize_dependables;
mod post_message;
pub(crate) mod resolve;
mod roll_dice;
mod search_lore;
pub mod shorten;
mod work;

pub use effects::Effects;
pub use hand::Hand;
pub use work::{Hold, Rest, Work};

use std::{collections::BTreeMap, sync::LazyLock};

use entity::{session::Role, shapes::ToolRef};
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};
use uuid::Uuid;

use crate::{
    bridge::{Heard, Question},
    dice::service::Wish,
    error::Result,
    memory::subject::Bound,
    messages::service::Reader,
    prompt::EntityKind,
    sessions::service::Playing,
    tenancy::TenantTx,
};

/// Where and as whom a tool runs.
pub struct ToolCx<'a> {
    pub work: &'a Work<'a>,
    pub campaign: Uuid,
    pub kind: ActorKind,
    /// Who calls it; the nil id for the game master.
    pub entity: Uuid,
    /// The player of the turn, by id and slug, so that naming it costs no look-up.
    pub player: Option<(Uuid, &'a str)>,
    /// The session it happens in.
    pub session: Option<&'a Playing>,
    /// For whom messages are read and secrets are told.
    pub reader: Reader,
    pub turn: Option<Uuid>,
    /// The key that called the tool without a turn.
    pub key: Option<Uuid>,
    /// Dice that the caller rolled by hand; only a game master gives any.
    pub dice: Option<&'a [u32]>,
    /// What its question to the session's frontend led to, if it had one.
    pub heard: Option<&'a Heard>,
    /// Dice rolled by hand for the whole turn: `roll_dice` uses them up before it rolls its own.
    pub hand: Option<&'a Hand>,
    /// Nothing is to be changed: slots, hit points and the fair stream stay as they are.
    pub preview: bool,
    /// Damage is to be dealt although there is no encounter that would.
    pub apply: bool,
    /// Rows of a kind that the tenant may keep; 0: any number.
    pub rows_max: u64,
    /// What the turn may change, if it is one that is taken back when it fails.
    pub effects: Option<&'a Effects>,
}

impl<'a> ToolCx<'a> {
    /// The dice of this call.
    #[must_use]
    pub fn wish(&self) -> Wish<'a> {
        Wish { given: self.dice, seed: None, preview: self.preview }
    }

    /// Whose turn the call is part of, for what is remembered.
    #[must_use]
    pub fn bound(&self) -> Bound {
        let played = self.session.filter(|session| session.role == Role::Player).and_then(|session| session.player);
        match (self.player.map(|(id, _)| id).or(played), self.turn) {
            (Some(player), _) => Bound::To(player),
            (None, Some(_)) => Bound::Nobody,
            (None, None) => Bound::Free,
        }
    }

    /// Counts rows that the call is about to change, beside the one that every call counts as. One statement if they are many.
    ///
    /// # Errors
    /// `quota_exceeded` if the turn may not change so many; those of the database.
    pub async fn changes(&self, rows: u64) -> Result<()> {
        let Some(effects) = self.effects else { return Ok(()) };
        effects.take(rows)?;
        match self.turn {
            Some(turn) if rows >= effects::MANY => effects::take_time(self.tx().await?, turn).await,
            _ => Ok(()),
        }
    }

    /// The transaction it runs in.
    ///
    /// # Errors
    /// Those of [`Work::tx`].
    pub async fn tx(&self) -> Result<&TenantTx> {
        self.work.tx().await
    }
}

/// Whether a tool has anything to ask.
pub struct Asking<'a> {
    /// Whose frontend would be asked.
    pub session: &'a Playing,
    /// Dice are there already: rolled by hand, or by the server since nothing will be kept.
    pub has_dice: bool,
}

/// Kinds of callers.
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

/// Everyone.
pub const ANYONE: &[ActorKind] = &[ActorKind::Character, ActorKind::Npc, ActorKind::Owner, ActorKind::Gm];

/// What a tool's file says of it.
pub trait ToolSpec {
    const NAME: &'static str;
    /// Older names it answers to; no catalogue lists them.
    const ALIASES: &'static [&'static str] = &[];
    const DESCRIPTION: &'static str;
    const CALLERS: &'static [ActorKind];
    /// Whether an NPC or owner must list it to be called as it. What the rules decide is decided for everyone.
    const LISTED: bool = true;
    /// Whether the model needs the result to go on (in XML mode; native mode always shows it).
    const INFORMS: bool;
    /// Whether it looks up what its caller may know. Others who read the turn are not told what it found.
    const READS: bool = false;
    type Arguments: DeserializeOwned + JsonSchema;
    /// What it answers, for the document.
    type Answer: ToSchema;

    /// What it has to ask the session's frontend before it runs; what comes of it is [`ToolCx::heard`]. No transaction is open
    /// while the frontend answers, so a batch is committed up to such a call before it is asked.
    fn asks(_: &Asking<'_>, _: &Self::Arguments) -> Option<Question> {
        None
    }

    /// Does it.
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
    schema: fn() -> Value,
    answer: fn() -> Schemas,
    asks: fn(&Asking<'_>, &Value) -> Option<Question>,
    run: for<'a> fn(&'a ToolCx<'a>, Value) -> LocalBoxFuture<'a, Result<Value>>,
}

/// Schemas by name: a type's own, and those that it refers to.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// The schemas of a type, its own first.
pub(crate) fn schemas<T: ToSchema>() -> Schemas {
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
        schema: schema::<T>,
        answer: schemas::<T::Answer>,
        asks: asks::<T>,
        run: run::<T>,
    }
}

/// Every tool there is, by name.
pub static REGISTRY: &[Tool] = &[
    tool::<npc_memorize::NpcMemorize>(),
    tool::<owner_memorize::OwnerMemorize>(),
    tool::<owner_memorize_dependables::OwnerMemorizeDependables>(),
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

/// What an NPC remembers with, and what an owner does.
pub const NPC_MEMORY: &str = npc_memorize::NpcMemorize::NAME;
pub const OWNER_MEMORY: &str = owner_memorize::OwnerMemorize::NAME;

/// Whether an entity of this kind can remember: an owner also with the tool that tells its dependables.
#[must_use]
pub fn remembers(kind: EntityKind, listed: &[ToolRef]) -> bool {
    let has = |name: &str| listed.iter().any(|tool| tool.name() == name);
    match kind {
        EntityKind::Npc => has(NPC_MEMORY),
        EntityKind::Owner => has(OWNER_MEMORY) || has(owner_memorize_dependables::OwnerMemorizeDependables::NAME),
    }
}

impl Tool {
    /// The arguments' JSON Schema.
    #[must_use]
    pub fn schema(&self) -> &'static Value {
        static SCHEMAS: LazyLock<BTreeMap<&'static str, Value>> =
            LazyLock::new(|| REGISTRY.iter().map(|t| (t.name, (t.schema)())).collect());
        SCHEMAS.get(self.name).unwrap_or(&Value::Null)
    }

    /// The schemas of what it answers, its own first.
    #[must_use]
    pub fn answer(&self) -> Schemas {
        (self.answer)()
    }

    /// The schema on one line.
    #[must_use]
    pub fn schema_text(&self) -> String {
        self.schema().to_string()
    }

    /// What it has to ask the session's frontend before it runs with these arguments.
    #[must_use]
    pub fn asks(&self, asking: &Asking<'_>, arguments: &Value) -> Option<Question> {
        (self.asks)(asking, arguments)
    }

    /// Runs the tool with arguments that nobody has looked at yet.
    ///
    /// # Errors
    /// `validation_failed` with pointers into the arguments, or what the tool itself finds.
    pub async fn run(&self, cx: &ToolCx<'_>, arguments: Value) -> Result<Value> {
        (self.run)(cx, arguments).await
    }

    /// The definition as models take it.
    #[must_use]
    pub fn definition(&self, own_words: Option<&str>) -> Value {
        json!({ "type": "function", "function": {
            "name": self.name, "description": own_words.unwrap_or(self.description), "parameters": self.schema(),
        }})
    }
}

/// The tool of a name, or of an older name of it.
#[must_use]
pub fn find(name: &str) -> Option<&'static Tool> {
    REGISTRY.iter().find(|t| t.name == name || t.aliases.contains(&name))
}

/// The arguments of a call by this name: an older name says something that its tool takes as an argument.
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

/// The tools an entity of this kind has: those it lists, that exist, and that its kind may call; by name.
#[must_use]
pub fn granted(kind: EntityKind, listed: &[ToolRef]) -> Vec<(&'static Tool, Option<&str>)> {
    let mut granted: Vec<_> = listed
        .iter()
        .filter_map(|l| find(l.name()).map(|t| (t, l.description())))
        .filter(|(t, _)| t.callers.contains(&kind.into()))
        .collect();
    granted.sort_by_key(|(t, _)| t.name);
    granted.dedup_by_key(|(t, _)| t.name);
    granted
}

/// The definitions of an entity's tools as one JSON array; none if it has no tool.
#[must_use]
pub fn definitions(kind: EntityKind, listed: &[ToolRef]) -> Option<Box<RawValue>> {
    let definitions: Vec<_> = granted(kind, listed).into_iter().map(|(t, own)| t.definition(own)).collect();
    if definitions.is_empty() { None } else { serde_json::value::to_raw_value(&definitions).ok() }
}
