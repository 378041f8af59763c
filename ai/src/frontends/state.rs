//! What handlers can reach of frontends and everything below.

use std::{ops::Deref, sync::Arc, time::Duration};

use edge::state::Edge;

use super::hub::Hub;

/// Limits on frontends' connections.
#[derive(Clone, Copy, Debug)]
pub struct FrontendSettings {
    /// The most connections of one tenant to one server.
    pub connections_max: usize,
    /// The time between two pings. A frontend that is silent for three of them is disconnected. Credentials are checked
    /// as often.
    pub ping: Duration,
    /// How long a frontend may take to roll.
    pub roll_timeout: Duration,
}

/// The connected frontends, beside the state of the edge.
pub struct FrontendState {
    below: Arc<Edge>,
    pub hub: Arc<Hub>,
    pub frontends: FrontendSettings,
    /// The number of this server among those that share the database.
    pub instance: i64,
}

impl FrontendState {
    #[must_use]
    pub fn new(below: Arc<Edge>, frontends: FrontendSettings, instance: i64) -> Self {
        Self { below, hub: Arc::default(), frontends, instance }
    }

    /// The state of the layer below.
    #[must_use]
    pub fn edge(&self) -> &Arc<Edge> {
        &self.below
    }
}

impl Deref for FrontendState {
    type Target = Edge;
    fn deref(&self) -> &Edge {
        &self.below
    }
}
