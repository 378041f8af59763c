//! The application: the settings and the state of every layer.

use std::{ops::Deref, sync::Arc};

use actix_web::web::{Data, ServiceConfig};

use crate::config::Config;
use ai::state::Ai;
use base::{error::Result, metrics, secrets::Secrets};
use db::pool::Pool;
use edge::{
    models::Models,
    state::{Edge, Parts},
};

/// What the program's own handlers and its maintenance can reach. It dereferences to the state of the layers below.
pub struct App {
    pub config: Config,
    below: Arc<Ai>,
}

impl App {
    /// Puts the parts together. `model` is the operator's endpoint or the rehearsal model's.
    ///
    /// # Errors
    /// `internal` if the model client cannot be made.
    pub fn new(config: Config, pool: Pool, secrets: Secrets, model: llm::Endpoint, instance: i64) -> Result<Self> {
        metrics::register_all();
        let edge = Edge::new(Parts {
            models: Models::new(config.llm.clone(), model, config.models_allowed.clone(), config.reply_mode)?,
            proxies: config.proxies.clone(),
            connections: config.connections,
            admission: config.admission,
            public_url: config.public_url.clone(),
            pool,
            secrets,
        });
        Ok(Self { below: Ai::new(Arc::new(edge), config.ai, instance), config })
    }

    /// The state of the game master, for tasks that own it.
    #[must_use]
    pub fn ai(&self) -> Data<Ai> {
        Data::from(self.below.clone())
    }

    /// Gives handlers the state of their layer.
    pub fn register(self: &Arc<Self>, config: &mut ServiceConfig) {
        config.app_data(Data::from(self.edge().clone())).app_data(self.ai()).app_data(Data::from(self.clone()));
    }
}

impl Deref for App {
    type Target = Ai;
    fn deref(&self) -> &Ai {
        &self.below
    }
}
