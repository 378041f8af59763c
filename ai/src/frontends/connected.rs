//! The connected frontends of this server.

use std::{sync::Arc, time::Duration};

use edge::state::Edge;

use super::{hub::Hub, question::Asked};

/// How long a frontend may take to report its fights.
const REFRESH_PATIENCE: Duration = Duration::from_secs(2);

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

/// The connected frontends of this server, and what it takes to reach those of others.
pub struct Frontends {
    pub edge: Arc<Edge>,
    pub hub: Arc<Hub>,
    pub settings: FrontendSettings,
    /// The number of this server among those that share the database.
    pub instance: i64,
}

impl Frontends {
    #[must_use]
    pub fn new(edge: Arc<Edge>, settings: FrontendSettings, instance: i64) -> Self {
        Self { edge, hub: Arc::default(), settings, instance }
    }

    /// How long a frontend may take to answer.
    #[must_use]
    pub fn patience(&self, asked: Asked) -> Duration {
        match asked {
            Asked::ExecuteRoll => self.settings.roll_timeout,
            Asked::CombatStateRefresh => REFRESH_PATIENCE,
        }
    }
}
