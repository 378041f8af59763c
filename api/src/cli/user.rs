//! `user`: users of the editor, as the operator makes them.

use clap::Subcommand;
use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::say;
use crate::{
    error::{Code, Error, Result},
    tenants::service as tenants,
    users::{
        Role, links,
        operator::{self, Brought, Wanted},
        passwords,
    },
};

#[derive(Subcommand)]
pub(super) enum UserCommand {
    /// Bring somebody to a tenant, or change their role there. Prints the password of a new account; for an account that is there, the
    /// path of a link that its owner accepts with.
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
        /// For a new account; one is made unless given. Others on this machine can see it while the command runs.
        #[arg(long, env = "TAVERNKEEP_USER_PASSWORD", hide_env_values = true)]
        password: Option<String>,
        /// Print the path of a link in any case: a new account's owner then sets the password.
        #[arg(long, conflicts_with = "password")]
        invite: bool,
    },
    /// Print the path of a link to set a new password with, good once and for a day.
    Reset {
        #[arg(long)]
        email: String,
    },
    /// Take an account's second factor away, for somebody who lost it, and end the account's sessions.
    ResetSecondFactor {
        #[arg(long)]
        email: String,
    },
    /// Set a password, made and printed unless given, and end the account's sessions.
    Password {
        #[arg(long)]
        email: String,
        #[arg(long, env = "TAVERNKEEP_USER_PASSWORD", hide_env_values = true)]
        password: Option<String>,
    },
}

pub(super) async fn run(url: &str, command: UserCommand, as_json: bool) -> Result<()> {
    let mut db = PgConnection::connect(url).await?;
    match command {
        UserCommand::Create { tenant, email, role, name, password, invite } => {
            let known = Role::parse(&role);
            let role = known.ok_or_else(|| Error::new(Code::ValidationFailed, format!("`{role}` is no role.")))?;
            if let Some(password) = &password {
                passwords::check("/password", password, &email)?;
            }
            let (tenant_id, _) = tenants::by_slug(&mut db, &tenant).await?;
            let (name, password) = (name.as_deref(), password.as_deref());
            let wanted = Wanted { tenant: tenant_id, email: &email, name, role, password, invite };
            let (id, made, link) = match operator::bring(&mut db, &wanted).await? {
                Brought::Made { id, password } => (Some(id), Some(password), None),
                Brought::Changed { id } => (Some(id), None, None),
                Brought::Invited { path } => (None, None, Some(path)),
            };
            let changed = format!("{email} has an account already and is now {} of {tenant}.", role.as_str());
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
            let text = format!("{email} signs in with the password alone.");
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
