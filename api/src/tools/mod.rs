//! Tools: what an AI entity may call. One file per tool, one line in [`REGISTRY`].
//!
//! A tool's typed arguments are its JSON Schema for models, its validation and its documentation. The caller is the
//! entity whose turn it is; a tool never takes its caller as an argument. Tools write through the slices' services, in
//! the transaction of their batch, and never call a model.
//!
//! To add a tool: a file that implements [`ToolSpec`], a line in the registry. The catalogue test finds what was forgotten.

mod arguments;
pub mod http;
mod npc_memorize;
mod owner_memorize;
mod owner_memorize_dependables;

use std::{collections::BTreeMap, sync::LazyLock};

use entity::shapes::ToolRef;
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json, value::RawValue};
use uuid::Uuid;

use crate::{error::Result, prompt::EntityKind, tenancy::TenantTx};

/// Where and as whom a tool runs.
pub struct ToolCx<'a> {
    pub tx: &'a TenantTx,
    pub campaign: Uuid,
    pub kind: EntityKind,
    pub entity: Uuid,
    /// The player of the turn, by id and slug, so that naming it costs no look-up.
    pub player: Option<(Uuid, &'a str)>,
    pub turn: Option<Uuid>,
    /// The key that called the tool without a turn.
    pub key: Option<Uuid>,
}

/// What a tool's file says of it.
pub trait ToolSpec {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;
    const CALLERS: &'static [EntityKind];
    /// Whether the model needs the result to go on (in XML mode; native mode always shows it).
    const INFORMS: bool;
    type Arguments: DeserializeOwned + JsonSchema;

    /// Does it.
    fn run(cx: &ToolCx<'_>, arguments: Self::Arguments) -> impl Future<Output = Result<Value>>;
}

/// A tool of the registry.
pub struct Tool {
    pub name: &'static str,
    pub description: &'static str,
    pub callers: &'static [EntityKind],
    pub informs: bool,
    schema: fn() -> Value,
    run: for<'a> fn(&'a ToolCx<'a>, Value) -> LocalBoxFuture<'a, Result<Value>>,
}

const fn tool<T: ToolSpec>() -> Tool {
    fn schema<T: ToolSpec>() -> Value {
        arguments::schema::<T::Arguments>()
    }
    fn run<'a, T: ToolSpec>(cx: &'a ToolCx<'a>, given: Value) -> LocalBoxFuture<'a, Result<Value>> {
        Box::pin(async move { T::run(cx, arguments::read(given)?).await })
    }
    Tool {
        name: T::NAME,
        description: T::DESCRIPTION,
        callers: T::CALLERS,
        informs: T::INFORMS,
        schema: schema::<T>,
        run: run::<T>,
    }
}

/// Every tool there is, by name.
pub static REGISTRY: &[Tool] = &[
    tool::<npc_memorize::NpcMemorize>(),
    tool::<owner_memorize::OwnerMemorize>(),
    tool::<owner_memorize_dependables::OwnerMemorizeDependables>(),
];

impl Tool {
    /// The arguments' JSON Schema.
    #[must_use]
    pub fn schema(&self) -> &'static Value {
        static SCHEMAS: LazyLock<BTreeMap<&'static str, Value>> =
            LazyLock::new(|| REGISTRY.iter().map(|t| (t.name, (t.schema)())).collect());
        SCHEMAS.get(self.name).unwrap_or(&Value::Null)
    }

    /// The schema on one line.
    #[must_use]
    pub fn schema_text(&self) -> String {
        self.schema().to_string()
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

/// The tool of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Tool> {
    REGISTRY.iter().find(|t| t.name == name)
}

/// The tools an entity of this kind has: those it lists, that exist, and that its kind may call; by name.
#[must_use]
pub fn granted(kind: EntityKind, listed: &[ToolRef]) -> Vec<(&'static Tool, Option<&str>)> {
    let mut granted: Vec<_> = listed
        .iter()
        .filter_map(|l| find(l.name()).map(|t| (t, l.description())))
        .filter(|(t, _)| t.callers.contains(&kind))
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
