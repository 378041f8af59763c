//! What handlers can reach of this crate, and of the edge below it.

use std::{ops::Deref, sync::Arc, time::Duration};

use base::error::Result;
use edge::state::{Above, Edge};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    frontends::connected::{FrontendSettings, Frontends},
    planner::memory::Planner,
    prompt::cache::Prompts,
    tools::granted,
    turns::{gm::session_prompts::SessionPrompts, running::Running},
};

/// The settings of this crate.
#[derive(Clone, Copy, Debug)]
pub struct AiSettings {
    pub frontends: FrontendSettings,
    pub turns: TurnSettings,
    pub planner: PlannerSettings,
    /// The limit on the bytes of cached prompts.
    pub prompt_cache_bytes_max: usize,
    /// How long a server keeps a reaction that it works on without renewing it. After that, another server does it.
    pub reaction_lease_seconds: u16,
}

/// Limits of one turn.
#[derive(Clone, Copy, Debug)]
pub struct TurnSettings {
    /// The most model calls.
    pub steps_max: u32,
    /// The most rows that it may change.
    pub effects_max: u64,
}

/// Settings of the planner.
#[derive(Clone, Copy, Debug)]
pub struct PlannerSettings {
    /// False disables the planner for as long as the server runs.
    pub enabled: bool,
    /// How long a player waits for a plan.
    pub timeout: Duration,
    /// How long the same text leads to the same plan.
    pub plan_kept: Duration,
}

/// The state of this crate.
pub struct Ai {
    edge: Arc<Edge>,
    pub settings: AiSettings,
    pub frontends: Arc<Frontends>,
    pub prompts: Prompts,
    /// Cached parts of sessions' prompts.
    pub session_prompts: SessionPrompts,
    pub running: Running,
    pub planner: Planner,
}

impl Ai {
    /// Puts the state of this crate on top of the edge's. `instance` is the number of this server among those that share the
    /// database.
    #[must_use]
    pub fn new(edge: Arc<Edge>, settings: AiSettings, instance: i64) -> Arc<Self> {
        let cached = settings.prompt_cache_bytes_max / 6;
        let state = Arc::new(Self {
            frontends: Arc::new(Frontends::new(edge.clone(), settings.frontends, instance)),
            edge,
            prompts: Prompts::new(cached * 5),
            session_prompts: SessionPrompts::new(cached),
            running: Running::new(instance),
            planner: Planner::new(settings.planner.plan_kept),
            settings,
        });
        let above: Arc<dyn Above> = state.clone();
        state.tell(Arc::downgrade(&above));
        state
    }

    /// The state of the layer below.
    #[must_use]
    pub fn edge(&self) -> &Arc<Edge> {
        &self.edge
    }

    /// Begins to shut down: readiness fails from now on, and streams and frontends' connections end.
    pub fn stop(&self) {
        self.close();
        self.running.close();
        self.frontends.hub.shut();
    }
}

impl Deref for Ai {
    type Target = Edge;
    fn deref(&self) -> &Edge {
        &self.edge
    }
}

impl Above for Ai {
    fn cancel(&self, turn: Uuid) {
        self.running.cancel(turn);
    }

    fn check_tools(&self, sent: &Value, stored: &Value) -> Result<()> {
        granted::check(sent, stored)
    }

    fn forget(&self, tenant: Uuid) {
        self.prompts.forget(tenant);
        self.session_prompts.forget(tenant, |_, _| true);
        self.planner.forget(tenant);
    }
}
