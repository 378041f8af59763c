//! `user`: users of the editor, as the operator makes them.

use clap::Subcommand;
use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::say;
use crate::{
    error::{Code, Error, Result},
    tenants::service as tenants,
    users::{
        Role, passwords,
        service::{self as users, Wanted},
    },
};

#[derive(Subcommand)]
pub(super) enum UserCommand {
    /// Bring somebody to a tenant, or change their role there. Prints the password of a new account.
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
        UserCommand::Create { tenant, email, role, name, password } => {
            let known = Role::parse(&role);
            let role = known.ok_or_else(|| Error::new(Code::ValidationFailed, format!("`{role}` is no role.")))?;
            if let Some(password) = &password {
                passwords::check("/password", password, &email)?;
            }
            let (tenant_id, _) = tenants::by_slug(&mut db, &tenant).await?;
            let (name, password) = (name.as_deref(), password.as_deref());
            let wanted = Wanted { tenant: tenant_id, email: &email, name, role, password };
            let (id, made) = users::bring(&mut db, &wanted).await?;
            let text = match &made {
                Some(password) => password.clone(),
                None => format!("{email} has an account already and is now {} of {tenant}.", role.as_str()),
            };
            let shown = json!({ "id": id, "email": email, "tenant": tenant, "role": role, "password": made });
            say(as_json, &shown, &text);
        }
        UserCommand::Password { email, password } => {
            let password = match password {
                Some(password) => {
                    passwords::check("/password", &password, &email)?;
                    password
                }
                None => passwords::generate(),
            };
            users::keep_password(&mut db, &email, &password).await?;
            say(as_json, &json!({ "email": email, "password": password }), &password);
        }
    }
    Ok(())
}
