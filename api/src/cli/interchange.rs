//! `tavernkeep export` and `tavernkeep import`: write a campaign to a file and read it back, next to a running server.

use std::{
    io::{Read, Write},
    path::PathBuf,
    sync::Arc,
};

use clap::Args;
use sqlx::Connection;

use crate::database;
use base::error::{Code, Error, Result};
use edge::{caller::Caller, tenant_settings::service as tenants};
use world::interchange::{
    IMPORT_BYTES_MAX,
    document::export::Export,
    pieces::Pieces as _,
    report::{Outcome, Report},
    service::{self, ImportFile, ImportFormat},
};

/// What to export.
#[derive(Args)]
pub struct ExportArgs {
    #[arg(long)]
    tenant: String,
    /// The campaign's id or slug.
    #[arg(long)]
    campaign: String,
    /// The file to write. Default: standard output.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// What to import.
#[derive(Args)]
pub struct ImportArgs {
    /// A campaign document, a character card or a lorebook; `-` reads standard input.
    file: PathBuf,
    #[arg(long)]
    tenant: String,
    /// The campaign that a card or lorebook goes into. For a campaign document: a new slug instead of the document's
    /// own.
    #[arg(long)]
    campaign: Option<String>,
    /// Only print what would happen.
    #[arg(long)]
    dry_run: bool,
}

/// The command line's caller: the operator, acting for a tenant and within its row limit.
async fn caller(url: &str, slug: &str) -> Result<Caller> {
    let mut db = database::as_owner(url).await?;
    let tenant = tenants::load(&mut db, slug).await?;
    db.close().await?;
    Ok(Caller::operator(Arc::new(tenant)))
}

fn failed(path: &std::path::Path, error: &std::io::Error) -> Error {
    Error::new(Code::BadRequest, format!("{}: {error}", path.display()))
}

/// Writes a campaign document.
///
/// # Errors
/// `not_found`, and file system errors.
pub async fn export(owner_url: &str, app_url: &str, args: ExportArgs) -> Result<()> {
    let caller = caller(owner_url, &args.tenant).await?;
    let pool = database::connect(app_url, 2).await?;
    let mut export = Export::begin(&pool, &caller, &args.campaign).await?;
    let mut out: Box<dyn Write> = match &args.out {
        Some(path) => Box::new(std::fs::File::create(path).map_err(|e| failed(path, &e))?),
        None => Box::new(std::io::stdout().lock()),
    };
    while let Some(piece) = export.next().await? {
        out.write_all(piece.as_bytes()).map_err(Error::internal)?;
    }
    out.flush().map_err(Error::internal)
}

/// Imports a file into a campaign.
///
/// # Errors
/// What is wrong with the file.
pub async fn import(owner_url: &str, app_url: &str, args: &ImportArgs) -> Result<Report> {
    let caller = caller(owner_url, &args.tenant).await?;
    let bytes = read(&args.file)?;
    let file = args.file.file_stem().map(|s| s.to_string_lossy().into_owned());
    let mut format = service::guess(args.campaign.as_deref().unwrap_or_default(), file, &bytes)?;
    match &mut format {
        ImportFormat::Campaign { slug } => slug.clone_from(&args.campaign),
        _ if args.campaign.is_none() => {
            return Err(Error::new(
                Code::BadRequest,
                "Use --campaign to say which campaign the card or lorebook goes into.",
            ));
        }
        _ if bytes.len() > IMPORT_BYTES_MAX => return Err(too_large(IMPORT_BYTES_MAX)),
        _ => {}
    }
    let pool = database::connect(app_url, 2).await?;
    let file = ImportFile { format, bytes: bytes.into(), is_dry_run: args.dry_run };
    service::import(&pool, &caller, &file, async |import| import.write().await).await
}

fn too_large(bytes: usize) -> Error {
    Error::new(
        Code::PayloadTooLarge,
        format!("This file may have at most {bytes} bytes, because it is not a campaign document."),
    )
}

/// Reads a file. A campaign document may be larger than over HTTP, and has no limit in bytes: an export limits its rows, not its
/// bytes, and whatever was exported can be imported here.
fn read(path: &std::path::Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut source: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(path).map_err(|e| failed(path, &e))?)
    };
    let limit = u64::try_from(IMPORT_BYTES_MAX).unwrap_or(u64::MAX);
    source.by_ref().take(limit + 1).read_to_end(&mut bytes).map_err(|e| failed(path, &e))?;
    if bytes.len() > IMPORT_BYTES_MAX {
        if !bytes.trim_ascii_start().starts_with(b"{") {
            return Err(too_large(IMPORT_BYTES_MAX));
        }
        source.read_to_end(&mut bytes).map_err(|e| failed(path, &e))?;
    }
    Ok(bytes)
}

/// Prints what an import did.
///
/// # Errors
/// `internal` if the report cannot be written as JSON.
pub fn tell(json: bool, report: &Report) -> Result<()> {
    let shown = serde_json::to_value(report).map_err(Error::internal)?;
    let would = if report.dry_run { "would be " } else { "" };
    let counts = report.counts;
    let text = format!(
        "{}: {} {would}created, {} {would}changed, {} unchanged; fields that were approximated or dropped: {}",
        report.format,
        counts.created,
        counts.updated,
        counts.unchanged,
        report.fields.iter().filter(|f| f.outcome <= Outcome::Approximated).count()
    );
    let warnings = report.warnings.iter().map(|warning| format!("\n- {warning}")).collect::<String>();
    super::output::say(json, &shown, &format!("{text}{warnings}"));
    Ok(())
}
