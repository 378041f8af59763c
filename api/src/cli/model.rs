//! `model`: the model profiles of a tenant, with the API's services and answers.

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;
use serde_json::{Value, json};

use super::{
    output::{failed, say},
    players::Table,
};
use crate::config::Config;
use base::{
    error::{Code, Error, Result},
    json,
};
use db::tenancy::TenantTx;
use edge::{
    http::{
        bounds,
        etag::Expected,
        paging::{Items, NoFilter, Page},
    },
    model_profiles::{probe, service},
};

/// The most bytes of a profile in a file.
const FILE_BYTES_MAX: u64 = 256 * 1024;

#[derive(Subcommand)]
pub(super) enum ModelCommand {
    /// List the profiles.
    List,
    /// Show a profile. Its key is never shown.
    Show { slug: String },
    /// Create a profile, or change the members that the file gives: `tavernkeep model set bard profile.json`.
    Set {
        slug: String,
        /// A JSON file with the members of a profile, as in `PATCH /v1/models/{slug}`. `-` reads standard input.
        #[arg(default_value = "-")]
        file: PathBuf,
    },
    /// Delete a profile. Fails if something names it.
    Delete { slug: String },
    /// List the models that a profile's endpoint offers.
    Available { slug: String },
    /// Ask a profile's model a few short questions, and print what works there. Exits with 1 if the model does not answer.
    Test { slug: String },
}

/// What a command prints, as JSON and as text.
struct Printed {
    value: Value,
    text: String,
    is_good: bool,
}

pub(super) async fn run(
    config: Config,
    owner_url: &str,
    tenant: &str,
    command: &ModelCommand,
    as_json: bool,
) -> Result<ExitCode> {
    let table = Table::open(config, owner_url, tenant).await?;
    let request = table.caller.request.clone();
    let done = carry_out(&table, command).await;
    table.leave().await;
    match done {
        Ok(Printed { value, text, is_good }) => {
            say(as_json, &value, text.trim_end());
            Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Err(error) => Ok(failed(as_json, &error, &request)),
    }
}

async fn carry_out(Table { app, caller, .. }: &Table, command: &ModelCommand) -> Result<Printed> {
    let read = async || TenantTx::read(&app.pool, caller.tenant_id()).await;
    match command {
        ModelCommand::List => {
            let mut found = Items { items: Vec::new(), next_cursor: None };
            loop {
                let next = found.next_cursor.take().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
                let page = Page::<NoFilter>::parse(&format!("limit=200{next}"))?;
                let more = service::list(app, &read().await?, &page).await?;
                found.items.extend(more.items);
                found.next_cursor = more.next_cursor;
                if found.next_cursor.is_none() {
                    break;
                }
            }
            let line = |view: &service::ModelView| {
                let endpoint = view.endpoint.as_deref().unwrap_or("the tenant's endpoint");
                format!("{:<24} {:<32} {endpoint}", view.slug, view.model.as_deref().unwrap_or("-"))
            };
            let text = found.items.iter().map(line).collect::<Vec<_>>().join("\n");
            printed(&found, text)
        }
        ModelCommand::Show { slug } => shown(&service::get(app, &read().await?, slug).await?),
        ModelCommand::Set { slug, file } => {
            let given = about(members(file)?, slug)?;
            let known = service::get(app, &read().await?, slug).await;
            match known {
                Ok(_) => shown(&service::update(app, caller, &Expected::any(), slug, &given).await?),
                Err(error) if error.code == Code::NotFound => {
                    let input = bounds::read(named(given, slug))?;
                    shown(&service::create(app, caller, &input, None).await?.value()?)
                }
                Err(error) => Err(error),
            }
        }
        ModelCommand::Delete { slug } => {
            service::delete(app, caller, &Expected::any(), slug).await?;
            printed(&json!({ "deleted": slug }), format!("The model profile `{slug}` was deleted."))
        }
        ModelCommand::Available { slug } => {
            let (_, endpoint) = service::endpoint(app, caller, slug).await?;
            let items = probe::available(app, caller, &endpoint).await?;
            let text = items.iter().map(|model| model.id.as_str()).collect::<Vec<_>>().join("\n");
            printed(&Items { items, next_cursor: None }, text)
        }
        ModelCommand::Test { slug } => {
            let (slug, endpoint) = service::endpoint(app, caller, slug).await?;
            let tested = probe::test(app, caller, &slug, &endpoint).await?;
            let line = |check: &probe::Check| {
                let works = match check.works {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => "-",
                };
                format!("{:<28} {works:<4} {}", check.name.label(), check.seen)
            };
            let text = tested.checks.iter().map(line).collect::<Vec<_>>().join("\n");
            Ok(Printed { is_good: tested.works, ..printed(&tested, text)? })
        }
    }
}

fn printed(value: &impl serde::Serialize, text: String) -> Result<Printed> {
    Ok(Printed { value: serde_json::to_value(value).map_err(Error::internal)?, text, is_good: true })
}

/// A profile, which is printed as JSON also for people.
fn shown(view: &impl serde::Serialize) -> Result<Printed> {
    printed(view, serde_json::to_string_pretty(view).map_err(Error::internal)?)
}

/// The members of a profile in a file.
fn members(path: &Path) -> Result<Value> {
    let wrong = |error: std::io::Error| Error::new(Code::BadRequest, format!("{}: {error}", path.display()));
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(std::fs::File::open(path).map_err(wrong)?),
    };
    let mut bytes = Vec::new();
    source.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let detail = format!("A model profile may have at most {FILE_BYTES_MAX} bytes.");
        return Err(Error::new(Code::PayloadTooLarge, detail));
    }
    json::read("The file", json::text(&bytes)?)
}

/// The members without the slug, which must be that of the profile.
fn about(mut given: Value, slug: &str) -> Result<Value> {
    match given.as_object_mut().and_then(|members| members.remove("slug")) {
        Some(other) if other != slug => {
            Err(Error::new(Code::BadRequest, format!("The file is about the profile {other}.")))
        }
        _ => Ok(given),
    }
}

/// The members of a new profile: with its slug, which is its name too if the file gives none.
fn named(mut given: Value, slug: &str) -> Value {
    if let Value::Object(members) = &mut given {
        members.insert("slug".to_owned(), slug.into());
        members.entry("name").or_insert_with(|| slug.into());
    }
    given
}
