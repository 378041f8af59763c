//! What the planner remembers in this process: plans, and what the names of requests stand for.

use std::{sync::Arc, time::Duration};

use moka::{future, sync};
use serde_json::Value;
use uuid::Uuid;

use super::plan::Plan;
use world::significance::scores::ReportActions;

/// About how many bytes of plans are cached.
const PLANS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// About how many bytes of scenes are cached, and for how long.
const SCENES_BYTES_MAX: u64 = 8 * 1024 * 1024;
const SCENE_KEPT: Duration = Duration::from_secs(600);

/// The player and text that a plan belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub tenant: Uuid,
    pub campaign: Uuid,
    pub scene: Option<Uuid>,
    pub player: Uuid,
    pub text: String,
}

/// Who acts, and where.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub campaign: Uuid,
    pub player: Uuid,
    pub player_slug: String,
    pub player_name: String,
    pub scene: Option<Uuid>,
    /// Whether the request names a channel that has no scene yet.
    pub is_new_channel: bool,
    /// The campaign's setting for allowed commands.
    pub allowed: Option<Value>,
    /// The model profiles that the campaign chose, by task.
    pub models: Option<Value>,
    pub report_actions: ReportActions,
    /// Whether the character is dead or unconscious.
    pub is_fallen: bool,
    /// Whether the AI of the campaign is paused.
    pub is_paused: bool,
    /// The version heads that it was read from, and the sum of their versions.
    pub heads: Vec<String>,
    pub heads_sum: i64,
    /// About how much memory it takes.
    pub bytes: u32,
}

/// The names in a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Names {
    pub tenant: Uuid,
    pub campaign: String,
    pub player: String,
    pub scene: Option<String>,
    pub channel: Option<String>,
}

/// The planner's caches in this process. They may be lost at any time.
pub struct Planner {
    pub(super) plans: future::Cache<Key, Arc<Plan>>,
    pub(super) scenes: sync::Cache<Names, Arc<Scene>>,
}

impl Planner {
    /// Creates empty caches. A plan is used again for `kept`.
    #[must_use]
    pub fn new(kept: Duration) -> Self {
        let weight = |key: &Key, plan: &Arc<Plan>| {
            let args: usize = plan.args.iter().map(|(name, value)| name.len() + value.to_string().len()).sum();
            let rationale = plan.rationale.as_ref().map_or(0, String::len);
            u32::try_from(200 + key.text.len() + plan.command.len() + args + rationale).unwrap_or(u32::MAX)
        };
        let bytes_max = if kept.is_zero() { 0 } else { PLANS_BYTES_MAX };
        Self {
            plans: future::Cache::builder()
                .weigher(weight)
                .max_capacity(bytes_max)
                .time_to_live(kept.max(Duration::from_millis(1)))
                .support_invalidation_closures()
                .build(),
            scenes: sync::Cache::builder()
                .weigher(|_, scene: &Arc<Scene>| scene.bytes)
                .max_capacity(SCENES_BYTES_MAX)
                .time_to_live(SCENE_KEPT)
                .support_invalidation_closures()
                .build(),
        }
    }

    /// Forgets a tenant's cached plans and scenes.
    pub fn forget(&self, tenant: Uuid) {
        // The caches were built for this, so it cannot fail.
        let _ = self.plans.invalidate_entries_if(move |key, _| key.tenant == tenant);
        let _ = self.scenes.invalidate_entries_if(move |names, _| names.tenant == tenant);
    }
}
