//! Users of the editor: people with an email and a password who belong to tenants as owner, editor or viewer.
//!
//! - [`passwords`](crate::passwords): argon2id on separate threads, a few hashes at a time.
//! - [`second_factor`]: codes in addition to the password.
//! - [`sessions`]: who is signed in. The browser has a secret, the database only its hash.
//! - [`email`]: addresses, and the only way to fold them.
//! - [`links`]: one-time links for invitations and password resets.
//! - [`service`]: the users of a tenant, for `/v1/users` and the editor. [`operator`]: accounts, for the command line.
//!
//! Users are global. The server reaches their tables only through database functions (`migration/src/sql/accounts.sql`). A
//! role is a set of scopes, so in the editor a person may do what an API key with these scopes may do.

pub mod email;
pub mod http;
pub mod links;
pub mod operator;
pub mod second_factor;
pub mod service;
pub mod sessions;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::caller::{Scope, Scopes};

/// A user's role in a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May do everything, including keys, users and settings.
    Owner,
    /// May read and change the whole world, including its secrets.
    Editor,
    /// May read what a key with the scope `read` may read.
    Viewer,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 3] = [Role::Owner, Role::Editor, Role::Viewer];

    /// The role's name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Owner => "owner",
            Role::Editor => "editor",
            Role::Viewer => "viewer",
        }
    }

    /// The role with a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// The scopes of the role.
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
