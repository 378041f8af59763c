//! Users of the editor: people with an email and a password, who belong to tenants as owner, editor or viewer.
//!
//! - [`passwords`]: argon2id, away from the threads that answer requests, a few at a time.
//! - [`second_factor`]: codes beside the password.
//! - [`sessions`]: who is signed in. A browser holds a secret, the database its hash.
//! - [`email`]: addresses, which are folded in one way.
//! - [`links`]: invitations and resets, good once.
//! - [`service`]: the users of a tenant, for `/v1/users` and the editor; [`operator`]: accounts, for the command line.
//!
//! Users are global: their tables are reached through functions of the database alone (`migration/src/sql/users.sql`). A role is
//! a set of scopes, so that the editor lets a person do what the API lets a key with these scopes do.

pub mod email;
pub mod http;
pub mod links;
pub mod operator;
pub mod passwords;
pub mod second_factor;
pub mod service;
pub mod sessions;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::{Scope, Scopes};

/// What a user is at a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything: also keys, users and settings.
    Owner,
    /// The whole world, with its secrets.
    Editor,
    /// Reads what a key with the scope `read` reads.
    Viewer,
}

impl Role {
    /// Every role there is.
    pub const ALL: [Role; 3] = [Role::Owner, Role::Editor, Role::Viewer];

    /// The role's name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Owner => "owner",
            Role::Editor => "editor",
            Role::Viewer => "viewer",
        }
    }

    /// The role of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// What a user of this role may do.
    #[must_use]
    pub fn scopes(self) -> Scopes {
        let scopes = match self {
            Role::Owner => &Scope::ALL[..],
            Role::Editor => &[Scope::Read, Scope::Write, Scope::Play, Scope::Tools, Scope::Gm],
            Role::Viewer => &[Scope::Read],
        };
        scopes.iter().copied().collect()
    }
}
