//! Who the caller is and what the caller may do.
//!
//! [`keys`] knows the API keys. [`jwt`] signs and checks the short-lived tokens that keys are exchanged for. [`links`] knows the
//! links of players. [`access`] is the table of what each route requires; a route that is not in the table is denied. `auth::gate` turns a request's
//! credential into a [`Caller`] before any handler runs.

pub mod access;
pub mod jwt;
pub mod keys;
pub mod links;
pub mod secret;

use std::sync::Arc;

use actix_web::{FromRequest, HttpMessage, HttpRequest, dev::Payload};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::tenants::Tenant;
use base::{
    error::{Code, Error, Result},
    request_id::RequestId,
};
use db::tenancy::{Actor, Origin};

/// What a credential may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Read the world.
    Read,
    /// Write the world.
    Write,
    /// Play: use commands and take turns as a player.
    Play,
    /// Execute tools.
    Tools,
    /// The game master: secrets, prompts, traces, undo.
    Gm,
    /// Keys, users and settings.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Scope; 6] = [Scope::Read, Scope::Write, Scope::Play, Scope::Tools, Scope::Gm, Scope::Admin];

    /// The scope's name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Play => "play",
            Scope::Tools => "tools",
            Scope::Gm => "gm",
            Scope::Admin => "admin",
        }
    }

    /// The scope with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == name)
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    #[must_use]
    pub fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// All but the given one.
    #[must_use]
    pub fn without(self, scope: Scope) -> Self {
        Self(self.0 & !(1 << scope as u8))
    }

    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |s| self.has(*s))
    }

    /// The names, separated by spaces, as OAuth writes them.
    #[must_use]
    pub fn to_text(self) -> String {
        self.iter().map(Scope::as_str).collect::<Vec<_>>().join(" ")
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<T: IntoIterator<Item = Scope>>(scopes: T) -> Self {
        Self(scopes.into_iter().fold(0, |set, s| set | 1 << s as u8))
    }
}

/// A caller whose credential was checked and whose scope is enough for the route. A handler that takes one needs no
/// further check.
#[derive(Clone)]
pub struct Caller(Arc<CallerParts>);

/// The details of a caller.
pub struct CallerParts {
    pub tenant: Arc<Tenant>,
    /// The API key; none for a user of the editor or the operator.
    pub key: Option<Uuid>,
    /// The signed-in user of the editor.
    pub user: Option<Uuid>,
    pub key_prefix: String,
    pub scopes: Scopes,
    /// The one campaign that a token is restricted to.
    pub campaign: Option<Uuid>,
    /// The one player character that a token is restricted to.
    pub player: Option<Uuid>,
    /// Whether the credential is an access token, which cannot be exchanged for another.
    pub is_token: bool,
    /// When the access token expires, in seconds since the Unix epoch.
    pub token_until: Option<i64>,
    /// The visit to the table in a browser, if the credential is for one.
    pub visit: Option<Uuid>,
    /// The player link by which the visit began, unless it was a token.
    pub link: Option<Uuid>,
    pub request: RequestId,
}

impl std::ops::Deref for Caller {
    type Target = CallerParts;
    fn deref(&self) -> &CallerParts {
        &self.0
    }
}

impl Caller {
    #[must_use]
    pub fn new(parts: CallerParts) -> Self {
        Self(Arc::new(parts))
    }

    /// The operator, who may do everything for a tenant. The journal names no key then.
    #[must_use]
    pub fn operator(tenant: Arc<Tenant>) -> Self {
        Self::new(CallerParts {
            tenant,
            key: None,
            user: None,
            key_prefix: String::new(),
            scopes: Scope::ALL.into_iter().collect(),
            campaign: None,
            player: None,
            is_token: false,
            token_until: None,
            visit: None,
            link: None,
            request: RequestId::generate(),
        })
    }

    #[must_use]
    pub fn tenant_id(&self) -> Uuid {
        self.tenant.id
    }

    /// Whether the credential can only play one character.
    #[must_use]
    pub fn is_player(&self) -> bool {
        self.player.is_some()
    }

    /// Whether the credential is restricted to one campaign. It then reaches nothing else of the tenant, whatever its
    /// scopes.
    #[must_use]
    pub fn is_narrowed(&self) -> bool {
        self.campaign.is_some() || self.is_player()
    }

    /// Whether secrets may be shown to the caller.
    #[must_use]
    pub fn sees_secrets(&self) -> bool {
        self.scopes.has(Scope::Gm) && !self.is_player()
    }

    /// Checks a scope that only some uses of a route require. `what` begins the error message.
    ///
    /// # Errors
    /// `forbidden` without the scope.
    pub fn needs(&self, scope: Scope, what: &str) -> Result<()> {
        if self.scopes.has(scope) {
            return Ok(());
        }
        Err(Error::new(Code::Forbidden, format!("{what} needs the scope `{}`.", scope.as_str())))
    }

    /// Checks that the caller is a game master. A player's token is rejected even if it has the scope.
    ///
    /// # Errors
    /// `forbidden`.
    pub fn needs_game_master(&self, what: &str) -> Result<()> {
        if self.is_player() {
            return Err(Error::new(Code::Forbidden, format!("{what} is not for players.")));
        }
        self.needs(Scope::Gm, what)
    }

    /// Checks that a player's token acts only as its own character.
    ///
    /// # Errors
    /// `forbidden`.
    pub fn may_act_as(&self, player: Uuid) -> Result<()> {
        if self.player.is_none_or(|own| own == player) {
            return Ok(());
        }
        Err(Error::new(Code::Forbidden, "This token can only act as the player it was made for."))
    }

    /// The user or key, for rows that record their author; none for the operator.
    #[must_use]
    pub fn author(&self) -> Option<Uuid> {
        self.user.or(self.key)
    }

    /// Who the journal names for the caller's changes.
    #[must_use]
    pub fn actor(&self) -> Actor {
        Actor {
            tenant: self.tenant.id,
            key: self.key.filter(|_| self.user.is_none()),
            user: self.user,
            turn: None,
            origin: Origin::Api,
            request: self.request.clone(),
        }
    }
}

impl FromRequest for Caller {
    type Error = Error;
    type Future = std::future::Ready<Result<Self>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let caller = request.extensions().get::<Caller>().cloned();
        std::future::ready(caller.ok_or_else(|| Error::new(Code::Unauthenticated, "Send a credential.")))
    }
}
