//! The planner: a player's free text to exactly one allowed, validated command.
//!
//! - [`act`] is a text from beginning to end: switches, length, limit, history, cache, model, gates, dispatch. [`open`] is its first
//!   transaction, [`ask`] how it gets its plan, [`dispatch`] how that is done, [`answer`] what is told of it, [`http`] its route.
//! - [`prompt`] is what the model is told; [`plan`] reads its reply; [`gates`] are what a plan has to pass.
//! - [`evaluate`] asks a model for the plans of written sentences and counts how many are right.
//!
//! The model proposes one name and some arguments; everything else is decided here. No outcome but `executed` changes the game,
//! and nothing a model wrote is shown to players but what a command made of it and the cleaned sentence of a refusal. The
//! rationale goes to the log at `debug` and nowhere else. No transaction is open while the model is asked.

pub mod act;
pub mod answer;
mod ask;
mod dispatch;
pub mod evaluate;
pub mod gates;
pub mod http;
mod open;
pub mod plan;
pub mod prompt;

use std::{sync::Arc, time::Duration};

use moka::{future::Cache, sync::Cache as Names};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::error::Code;

/// Bytes of plans that are kept, about.
const PLANS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How long a player's name is known, for its limit alone.
const NAME_KEPT: Duration = Duration::from_secs(60);
const NAMES_MAX: u64 = 20_000;
/// Characters of a player's text.
pub const TEXT_CHARS_MAX: usize = 2000;
/// Below it a player is asked what was meant.
const SURE: f64 = 0.5;

/// Why a plan is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The reply holds no plan.
    Parse,
    /// It names no command that is allowed here.
    Allowlist,
    /// It breaks a rule that `failed_predicates` name.
    Predicate,
    /// Its arguments do not fit the command.
    ArgValidation,
    /// The model says that no command fits.
    Unsupported,
    /// The model took too long; what was done instead is the tenant's fallback.
    Timeout,
}

impl Reason {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Allowlist => "allowlist",
            Self::Predicate => "predicate",
            Self::ArgValidation => "arg_validation",
            Self::Unsupported => "unsupported",
            Self::Timeout => "timeout",
        }
    }
}

/// Whether a plan's command is the model's way to say that nothing fits.
#[must_use]
pub fn is_refusal(command: &str) -> bool {
    matches!(command, "error" | "none")
}

/// Whose words a plan is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    tenant: Uuid,
    campaign: Uuid,
    scene: Option<Uuid>,
    player: Uuid,
    text: String,
}

/// Why there is no plan. Those who asked for the same at the same time hear it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Unreadable(plan::Unreadable),
    Model(Code),
    /// Whoever asked the model has left.
    Abandoned,
}

/// What the planner keeps in this process. It may be lost at any time.
pub struct Planner {
    plans: Cache<Key, Arc<plan::Plan>>,
    players: Names<(Uuid, String, String), Uuid>,
}

impl Planner {
    /// Nothing is known yet; the same words lead to the same plan for `kept`.
    #[must_use]
    pub fn new(kept: Duration) -> Self {
        let weight = |key: &Key, plan: &Arc<plan::Plan>| {
            let args: usize = plan.args.iter().map(|(name, value)| name.len() + value.to_string().len()).sum();
            let rationale = plan.rationale.as_ref().map_or(0, String::len);
            u32::try_from(200 + key.text.len() + plan.command.len() + args + rationale).unwrap_or(u32::MAX)
        };
        let bytes_max = if kept.is_zero() { 0 } else { PLANS_BYTES_MAX };
        Self {
            plans: Cache::builder()
                .weigher(weight)
                .max_capacity(bytes_max)
                .time_to_live(kept.max(Duration::from_millis(1)))
                .build(),
            players: Names::builder().max_capacity(NAMES_MAX).time_to_live(NAME_KEPT).build(),
        }
    }

    /// Forgets all plans, and who asked for them.
    pub fn forget(&self) {
        self.plans.invalidate_all();
        self.players.invalidate_all();
    }
}
