//! `turn end`: ends a turn whose revert does not end by itself.

use std::process::ExitCode;

use clap::Subcommand;
use rand::RngExt;
use uuid::Uuid;

use super::output::{failed, say};
use crate::{config::Config, database};
use ai::turns::store::end_now;
use base::{
    error::{Code, Error, Result},
    request_id::RequestId,
    stored::Columns,
};

#[derive(Subcommand)]
pub(super) enum TurnCommand {
    /// End a turn that is being reverted, or whose server is gone. Reverts at once what can still be reverted. The rest stays as it is,
    /// and the turn's record lists it.
    End {
        /// The turn's id.
        id: Uuid,
        /// Revert nothing more.
        #[arg(long)]
        keep: bool,
    },
}

pub(super) async fn run(config: &Config, owner_url: &str, command: &TurnCommand, as_json: bool) -> Result<ExitCode> {
    let TurnCommand::End { id, keep } = command;
    let mut db = database::as_owner(owner_url).await?;
    let tenant = sqlx::query("SELECT tenant_id FROM turn WHERE id = $1").bind(id).fetch_optional(&mut db).await?;
    let tenant: Uuid = match tenant {
        Some(row) => row.read("tenant_id")?,
        None => return Ok(failed(as_json, &Error::not_found("turn"), &RequestId::generate())),
    };
    let url = config.database_url.as_deref().unwrap_or(owner_url);
    let pool = database::connect(url, 2).await?;
    let instance = i64::from(rand::rng().random_range(1..i32::MAX));
    let held = database::hold_instance(url, instance).await?;
    let ended = end_now(&pool, (tenant, *id), instance, *keep).await;
    pool.close();
    drop(held);
    let ended = match ended {
        Ok(Some(ended)) => ended,
        Ok(None) => {
            let detail = "This turn is not being reverted: it still runs on a server, or it has ended.";
            return Ok(failed(as_json, &Error::new(Code::Conflict, detail), &RequestId::generate()));
        }
        Err(error) => return Ok(failed(as_json, &error, &RequestId::generate())),
    };
    let text = match ended.left {
        0 => format!("The turn has ended: {}. Everything was reverted.", ended.status),
        1 => format!("The turn has ended: {}. 1 change was not reverted.", ended.status),
        n => format!("The turn has ended: {}. {n} changes were not reverted.", ended.status),
    };
    let value =
        serde_json::json!({ "id": id, "status": ended.status, "left": ended.left, "conflicts": ended.conflicts });
    say(as_json, &value, &text);
    Ok(ExitCode::SUCCESS)
}
