//! Import and export. The server first shows a report about a file, and writes only after the user confirms.

use actix_web::{HttpResponse, http::StatusCode, web};
use askama::Template;
use db::tenancy::{self, TenantTx};
use uuid::Uuid;

use super::{Frame, InCampaign, Tab, submitted::Upload};
use crate::render_blocks;
use base::error::{Code, Error, Result};
use edge::{
    caller::Scope,
    http::{page::attachment, paging::Page, resource},
};
use world::{
    interchange::{
        IMPORT_BYTES_MAX,
        document::export::Export,
        lorebook::Lorebook,
        out, pending, pieces,
        report::{FieldReport, Outcome, Report},
        service::{self, ImportFile, ImportFormat},
    },
    npcs::{NpcFilter, Npcs},
};

#[derive(Template)]
#[template(path = "admin/exchange.html", blocks = ["main"])]
struct ExchangePage {
    frame: Frame,
    path: String,
    may_export: bool,
    npcs: Vec<(String, String)>,
    problem: Option<String>,
}
render_blocks!(ExchangePage: as_main);

async fn form(at: &InCampaign, problem: Option<String>) -> Result<ExchangePage> {
    let tx = at.read().await?;
    let page = Page::<NpcFilter>::parse("sort=name&limit=200")?;
    let npcs = resource::find_page::<Npcs>(&tx, &at.caller, Some(at.campaign.id.0), &page).await?;
    Ok(ExchangePage {
        frame: at.frame("Import and export", Tab::Exchange),
        path: at.url("exchange"),
        may_export: at.may(Scope::Gm),
        npcs: npcs.items.into_iter().map(|npc| (npc.slug, npc.name)).collect(),
        problem,
    })
}

/// The page for import and export.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    at.show(&form(&at, None).await?)
}

#[derive(Template)]
#[template(path = "admin/exchange-report.html", blocks = ["main"])]
struct ReportPage {
    frame: Frame,
    path: String,
    file: String,
    pending: String,
    what: &'static str,
    /// The campaign that the document belongs to, if it is another one.
    elsewhere: Option<String>,
    report: Report,
    lost: Vec<FieldReport>,
    kept: Vec<FieldReport>,
    is_idle: bool,
    /// How many rows the import would overwrite although they were edited here.
    edited: usize,
    /// How many rows the page names.
    shown: usize,
}
render_blocks!(ReportPage: as_main);

/// The most rows that the report's page names.
const ROWS_SHOWN: usize = 200;

/// The name of a report's format.
fn called(format: &str) -> &'static str {
    match format {
        "tavernkeep" => "a campaign document",
        "character_card_v1" => "a character card (V1)",
        "character_card_v2" => "a character card (V2)",
        "character_card_v3" => "a character card (V3)",
        "sillytavern" => "a SillyTavern lorebook",
        "character_book" => "the lorebook of a character card",
        "agnai" => "an Agnai memory book",
        "risu" => "a Risu lorebook",
        "novelai" => "a NovelAI lorebook",
        "ai_dungeon" => "a file with AI Dungeon story cards",
        _ => "a file",
    }
}

/// Previews an import: what it would do, without writing anything.
pub async fn look(at: InCampaign) -> Result<HttpResponse> {
    let is_large = |file: &Upload| file.bytes.len() > IMPORT_BYTES_MAX;
    if at.form.is_too_large() || at.form.file("file").is_some_and(is_large) {
        let problem = "This file is too large. A file may have at most 32 MiB.".to_owned();
        return at.show_with(StatusCode::PAYLOAD_TOO_LARGE, &form(&at, Some(problem)).await?);
    }
    let Some(file) = at.form.file("file") else {
        return at.show_again(&form(&at, Some("Choose a file first.".to_owned())).await?);
    };
    if file.bytes.is_empty() {
        return at.show_again(&form(&at, Some(format!("{} is empty.", file.name))).await?);
    }
    match try_look(&at, &file.name, &file.bytes).await {
        Ok(page) => at.show(&page),
        Err(error) if error.code.status() < 500 && error.code != Code::Forbidden => {
            let what = error.errors.first().map_or(error.detail.clone(), |first| match first.pointer.as_str() {
                "" => first.message.clone(),
                pointer => format!("At {pointer}: {}", first.message),
            });
            at.show_again(&form(&at, Some(format!("{} cannot be imported. {what}", file.name))).await?)
        }
        Err(error) => Err(error),
    }
}

async fn try_look(at: &InCampaign, name: &str, bytes: &web::Bytes) -> Result<ReportPage> {
    let file = import_file(at, name, bytes.clone(), true);
    let report = service::import(&at.app.pool, &at.caller, &file, async |import| import.write().await).await?;
    let name = name.chars().filter(|c| !c.is_control()).take(200).collect::<String>();
    let keep = async |tx: &TenantTx| pending::keep(tx, at.user.id, at.campaign.id.0, &name, bytes).await;
    let pending = tenancy::write(&at.app.pool, at.caller.actor(), keep).await?;
    let (lost, kept) = report.fields.iter().cloned().partition(|field| field.outcome <= Outcome::Approximated);
    Ok(ReportPage {
        frame: at.frame("Import preview", Tab::Exchange),
        path: at.url("exchange"),
        file: name,
        pending: pending.to_string(),
        what: called(report.format),
        elsewhere: (report.campaign != at.campaign.slug).then(|| report.campaign.clone()),
        edited: report.edited_here(),
        shown: ROWS_SHOWN.min(report.items.len()),
        is_idle: report.counts.created + report.counts.updated == 0,
        report,
        lost,
        kept,
    })
}

/// A file of any format that we can import.
fn import_file(at: &InCampaign, name: &str, bytes: web::Bytes, is_dry_run: bool) -> ImportFile {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
    let format = ImportFormat::Any { campaign: at.campaign.slug.clone(), file: Some(stem) };
    ImportFile { format, bytes, is_dry_run }
}

/// Imports the previewed file.
pub async fn confirm(at: InCampaign) -> Result<HttpResponse> {
    let id = Uuid::try_parse(at.form.text("pending")).map_err(|_| Error::not_found("file"))?;
    let tx = at.read().await?;
    let (name, bytes) = pending::read(&tx, at.user.id, at.campaign.id.0, id).await?;
    drop(tx);
    let file = import_file(&at, &name, bytes.into(), false);
    let work = service::import(&at.app.pool, &at.caller, &file, async |import| {
        pending::take(import.tx, at.user.id, id).await?;
        import.write().await
    });
    let report = work.await?;
    let counts = report.counts;
    let message = format!(
        "{name} was imported: {} created, {} changed, {} unchanged.",
        counts.created, counts.updated, counts.unchanged
    );
    let to = match report.items.iter().find(|item| item.kind == "npc") {
        _ if report.format == "tavernkeep" => format!("/admin/c/{}", report.campaign),
        // The id, because a slug may equal the address of another page.
        Some(npc) => at.url(&format!("npcs/{}", npc.id.map_or_else(|| npc.slug.clone(), |id| id.to_string()))),
        None => at.url("lore?sort=-created_at"),
    };
    Ok(at.redirect(&to, &message))
}

/// Downloads the whole campaign.
pub async fn campaign(at: InCampaign) -> Result<HttpResponse> {
    let export = Export::begin(&at.app.pool, &at.caller, &at.campaign.slug).await?;
    let name = format!("{}.tavernkeep.json", export.slug);
    Ok(attachment("application/json", &name).streaming(Box::pin(pieces::stream(export))))
}

/// Downloads the lore as a lorebook.
pub async fn lorebook(at: InCampaign) -> Result<HttpResponse> {
    let lorebook = Lorebook::begin(&at.app.pool, &at.caller, &at.campaign.slug, None).await?;
    let name = format!("{}.lorebook.json", at.campaign.slug);
    Ok(attachment("application/json", &name).streaming(Box::pin(pieces::stream(lorebook))))
}

/// Downloads an NPC as a card: `?npc=slug&as=png`.
pub async fn card(at: InCampaign) -> Result<HttpResponse> {
    let query: std::collections::HashMap<String, String> =
        url::form_urlencoded::parse(at.request.query_string().as_bytes()).into_owned().collect();
    let npc = query.get("npc").map(String::as_str).unwrap_or_default();
    let (name, card) = out::card(&at.app.pool, &at.caller, &at.campaign.slug, npc).await?;
    if query.get("as").is_some_and(|form| form == "json") {
        let bytes = serde_json::to_vec_pretty(&card).map_err(Error::internal)?;
        return Ok(attachment("application/json", &format!("{name}.json")).body(bytes));
    }
    Ok(attachment("image/png", &format!("{name}.png")).body(world::interchange::card::picture(&card)?))
}
