//! What every handler can reach of this layer.

use std::{
    net::IpAddr,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use actix_web::HttpRequest;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    admission::{Admission, AdmissionSettings},
    caller::{jwt::Tokens, keys::Keys},
    client::Proxies,
    connections::{ConnectionSettings, Connections},
    limits::Limits,
    models::Models,
    origins::Origins,
    passwords::Passwords,
};
use base::{error::Result, secrets::Secrets, watched::Watched};
use db::{feeds::Feeds, pool::Pool};

/// What lower layers tell the layers above. The memory and the work of those layers depend on rows that lower layers
/// change.
pub trait Above: Send + Sync {
    /// Cancels a turn that runs in this process.
    fn cancel(&self, turn: Uuid);
    /// Forgets everything that was kept in memory of a tenant's world.
    fn forget(&self, tenant: Uuid);
    /// Checks that the tools in a list that somebody writes exist. Does not check entries of `stored`.
    ///
    /// # Errors
    /// `validation_failed`.
    fn check_tools(&self, sent: &Value, stored: &Value) -> Result<()>;
}

/// The parts that the program makes.
pub struct Parts {
    pub pool: Pool,
    pub secrets: Secrets,
    pub models: Models,
    pub proxies: Proxies,
    pub connections: ConnectionSettings,
    pub admission: AdmissionSettings,
    /// The address that people use, if the operator set one.
    pub public_url: Option<String>,
}

/// The state of this layer. Each layer above has a state of its own, which dereferences to the one below.
pub struct Edge {
    pub pool: Pool,
    pub keys: Keys,
    pub tokens: Tokens,
    pub secrets: Secrets,
    pub limits: Limits,
    pub admission: Admission,
    pub connections: Arc<Connections>,
    pub connection_limits: ConnectionSettings,
    pub proxies: Proxies,
    pub llm: Models,
    pub feeds: Feeds,
    /// The links by which somebody is at a table of this server now, each by its tenant and its id. A watcher gets `true` when the link no
    /// longer works.
    pub open_links: Watched<(Uuid, Uuid), bool>,
    pub passwords: Passwords,
    above: OnceLock<Weak<dyn Above>>,
    pub origins: Origins,
    public_url: Option<String>,
    stopping: AtomicBool,
}

impl Edge {
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let Parts { pool, secrets, models, proxies, connections, admission, public_url } = parts;
        Self {
            keys: Keys::new(pool.clone()),
            tokens: Tokens::new(&secrets),
            limits: Limits::default(),
            admission: Admission::new(&admission),
            connections: Arc::default(),
            connection_limits: connections,
            proxies,
            llm: models,
            feeds: Feeds::default(),
            open_links: Watched::default(),
            passwords: Passwords::default(),
            above: OnceLock::new(),
            origins: Origins::default(),
            public_url,
            stopping: AtomicBool::new(false),
            pool,
            secrets,
        }
    }

    /// Names the layer above, once.
    pub fn tell(&self, above: Weak<dyn Above>) {
        let _ = self.above.set(above);
    }

    /// Cancels a turn that runs in this process. Other servers learn of it from the database.
    pub fn cancel(&self, turn: Uuid) {
        if let Some(above) = self.above.get().and_then(Weak::upgrade) {
            above.cancel(turn);
        }
    }

    /// Forgets everything that this process keeps in memory of a tenant's world.
    pub fn forget(&self, tenant: Uuid) {
        if let Some(above) = self.above.get().and_then(Weak::upgrade) {
            above.forget(tenant);
        }
    }

    /// Checks a list of tools that somebody writes.
    ///
    /// # Errors
    /// `validation_failed` that points to what does not fit.
    pub fn check_tools(&self, sent: &Value, stored: &Value) -> Result<()> {
        self.above.get().and_then(Weak::upgrade).map_or(Ok(()), |above| above.check_tools(sent, stored))
    }

    /// Whether the server is shutting down and should get no more work.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Begins to shut down: readiness fails from now on, and feeds end.
    pub fn close(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.feeds.close();
    }

    /// The address with which links of this server begin: the one that the operator set, or else the one to which the request was sent.
    #[must_use]
    pub fn address(&self, request: &HttpRequest) -> String {
        self.public_url.clone().unwrap_or_else(|| {
            let info = request.connection_info();
            format!("{}://{}", info.scheme(), info.host())
        })
    }

    /// The address of the client that sent a request.
    #[must_use]
    pub fn client(&self, request: &HttpRequest) -> IpAddr {
        self.proxies.client(request.peer_addr(), request.headers())
    }
}
