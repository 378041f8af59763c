//! `erase`: erases a player's character or a user, and waits until nothing is left.

use std::process::ExitCode;

use clap::Subcommand;

use super::{
    output::{failed, say},
    players::Table,
};
use crate::config::Config;
use base::error::Result;
use world::erasure::{
    EraseParams,
    service::{self, Whom},
};

#[derive(Subcommand)]
pub(super) enum EraseCommand {
    /// Erase a character with everything that its player wrote.
    Character {
        #[arg(long)]
        tenant: String,
        /// The campaign, by id or slug.
        #[arg(long)]
        campaign: String,
        /// The character, by id or slug; a deleted one by its id.
        #[arg(long)]
        character: String,
        /// Also erase in campaigns that were forked from this one.
        #[arg(long)]
        forks: bool,
        /// Other words to erase, such as nicknames, separated by commas.
        #[arg(long)]
        also: Option<String>,
    },
    /// Erase a user from a tenant and from the tenant's data.
    User {
        #[arg(long)]
        tenant: String,
        /// The user, by id or email.
        #[arg(long)]
        email: String,
        /// Other words to erase, separated by commas.
        #[arg(long)]
        also: Option<String>,
    },
}

pub(super) async fn run(config: Config, owner_url: &str, command: &EraseCommand, as_json: bool) -> Result<ExitCode> {
    let (tenant, whom, forks, also) = match command {
        EraseCommand::Character { tenant, campaign, character, forks, also } => {
            (tenant, Whom::Character { campaign, character }, *forks, also)
        }
        EraseCommand::User { tenant, email, also } => (tenant, Whom::User(email), false, also),
    };
    let asked = EraseParams { erase: true, forks, also: also.clone() };
    let table = Table::open(config, owner_url, tenant).await?;
    let done = async {
        let id = service::begun(&table.app, &table.caller, &whom, &asked).await?;
        service::finish(&table.app, table.caller.tenant_id(), id).await
    };
    let done = done.await;
    let request = table.caller.request.clone();
    table.leave().await;
    match done {
        Ok(view) => {
            let value = serde_json::to_value(&view).map_err(base::error::Error::internal)?;
            say(as_json, &value, &format!("Erased. Rows deleted or redacted: {}.", view.rows));
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Ok(failed(as_json, &error, &request)),
    }
}
