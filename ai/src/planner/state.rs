//! What handlers can reach of the planner and everything below. It is the whole state of this crate.

use std::{ops::Deref, sync::Arc, time::Duration};

use actix_web::web;
use base::error::Result;
use edge::state::{Above, Edge};
use serde_json::Value;
use uuid::Uuid;

use super::Planner;
use crate::{
    frontends::state::{FrontendSettings, FrontendState},
    prompt::state::PromptState,
    turns::state::{TurnSettings, TurnState},
};

/// Settings of the planner.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// False disables the planner for as long as the server runs.
    pub enabled: bool,
    /// How long a player waits for a plan.
    pub timeout: Duration,
    /// How long the same text leads to the same plan.
    pub plan_kept: Duration,
}

/// The settings of this crate.
#[derive(Clone, Copy, Debug)]
pub struct AiSettings {
    pub frontends: FrontendSettings,
    pub turns: TurnSettings,
    pub planner: Settings,
    /// The limit on the bytes of cached prompts.
    pub prompt_cache_bytes_max: usize,
}

/// The planner's memory, beside the state of turns.
pub struct PlannerState {
    below: Arc<TurnState>,
    pub planner: Planner,
    pub planner_settings: Settings,
}

impl PlannerState {
    /// Puts the states of this crate on top of the edge's. `instance` is the number of this server among those that
    /// share the database.
    #[must_use]
    pub fn new(edge: Arc<Edge>, settings: &AiSettings, instance: i64) -> Arc<Self> {
        let cached = settings.prompt_cache_bytes_max / 4;
        let frontends = Arc::new(FrontendState::new(edge, settings.frontends, instance));
        let prompts = Arc::new(PromptState::new(frontends, cached * 3));
        let turns = Arc::new(TurnState::new(prompts, cached, settings.turns));
        let state = Arc::new(Self {
            below: turns,
            planner: Planner::new(settings.planner.plan_kept),
            planner_settings: settings.planner,
        });
        let above: Arc<dyn Above> = state.clone();
        state.tell(Arc::downgrade(&above));
        state
    }

    /// The state of the layer below.
    #[must_use]
    pub fn turn(&self) -> web::Data<TurnState> {
        web::Data::from(self.below.clone())
    }

    /// Begins to shut down: readiness fails from now on, and streams and frontends' connections end.
    pub fn stop(&self) {
        self.close();
        self.running.close();
        self.hub.shut();
    }
}

impl Deref for PlannerState {
    type Target = TurnState;
    fn deref(&self) -> &TurnState {
        &self.below
    }
}

impl Above for PlannerState {
    fn cancel(&self, turn: Uuid) {
        self.running.cancel(turn);
    }

    fn check_tools(&self, sent: &Value, stored: &Value) -> Result<()> {
        crate::tools::granted::check(sent, stored)
    }

    fn forget(&self, tenant: Uuid) {
        self.prompts.forget(tenant);
        self.session_prompts.forget(tenant, |_, _| true);
        self.planner.forget();
    }
}
