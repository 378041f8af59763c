//! `user`: manages users of the editor.

use clap::Subcommand;
use serde_json::json;

use super::output::say;
use crate::database;
use base::error::{Code, Error, Result};
use edge::{
    passwords,
    tenant_settings::service as tenants,
    users::{
        Role, links,
        operator::{self, Brought, UserRequest},
    },
};

#[derive(Subcommand)]
pub(super) enum UserCommand {
    /// Add somebody to a tenant, or change their role there. Prints the password of a new account. For an existing account prints the
    /// path of a link with which its owner accepts.
    Create {
        #[arg(long)]
        tenant: String,
        #[arg(long)]
        email: String,
        /// `owner`, `editor` or `viewer`.
        #[arg(long, default_value = "editor")]
        role: String,
        #[arg(long)]
        name: Option<String>,
        /// The password of a new account; a random one if left out. Others on this machine can see it while the command
        /// runs.
        #[arg(long, env = "TAVERNKEEP_USER_PASSWORD", hide_env_values = true)]
        password: Option<String>,
        /// Always print the path of a link. The owner of a new account sets the password with it.
        #[arg(long, conflicts_with = "password")]
        invite: bool,
    },
    /// Print the path of a link for setting a new password. It works once and expires after a day.
    Reset {
        #[arg(long)]
        email: String,
    },
    /// Remove an account's second factor, for somebody who lost it, and end the account's sessions.
    ResetSecondFactor {
        #[arg(long)]
        email: String,
    },
    /// Set a password, and end the account's sessions. Makes and prints a random one if none is given.
    Password {
        #[arg(long)]
        email: String,
        #[arg(long, env = "TAVERNKEEP_USER_PASSWORD", hide_env_values = true)]
        password: Option<String>,
    },
}

pub(super) async fn run(url: &str, command: UserCommand, as_json: bool) -> Result<()> {
    let mut db = database::as_owner(url).await?;
    match command {
        UserCommand::Create { tenant, email, role, name, password, invite } => {
            let known = Role::parse(&role);
            let role = known.ok_or_else(|| {
                Error::new(Code::ValidationFailed, format!("`{role}` is not a role; use owner, editor or viewer."))
            })?;
            if let Some(password) = &password {
                passwords::check("/password", password, &email)?;
            }
            let (tenant_id, _) = tenants::by_slug(&mut db, &tenant).await?;
            let (name, password) = (name.as_deref(), password.as_deref());
            let wanted = UserRequest { tenant: tenant_id, email: &email, name, role, password, invite };
            let (id, made, link) = match operator::bring(&mut db, &wanted).await? {
                Brought::Made { id, password } => (Some(id), Some(password), None),
                Brought::Changed { id } => (Some(id), None, None),
                Brought::Invited { path } => (None, None, Some(path)),
            };
            let changed = format!("{email} already has an account and now has the role {} in {tenant}.", role.as_str());
            let text = made.as_ref().or(link.as_ref()).unwrap_or(&changed);
            let shown = json!({
                "id": id, "email": email, "tenant": tenant, "role": role, "password": made, "link": link,
            });
            say(as_json, &shown, text);
        }
        UserCommand::Reset { email } => {
            let link = links::reset_by_operator(&mut db, &email).await?;
            say(as_json, &json!({ "email": email, "link": link }), &link);
        }
        UserCommand::ResetSecondFactor { email } => {
            operator::reset_second_factor(&mut db, &email).await?;
            let text = format!("{email} now signs in with the password only.");
            say(as_json, &json!({ "email": email, "has_second_factor": false }), &text);
        }
        UserCommand::Password { email, password } => {
            let password = match password {
                Some(password) => {
                    passwords::check("/password", &password, &email)?;
                    password
                }
                None => passwords::generate(),
            };
            operator::keep_password(&mut db, &email, &password).await?;
            say(as_json, &json!({ "email": email, "password": password }), &password);
        }
    }
    Ok(())
}
