//! The routes for import and export: `GET …/export`, `POST /campaigns/import`, cards and lorebooks.

use actix_web::{HttpRequest, HttpResponse, Responder, web};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    card,
    described::{CampaignDocument, CharacterCard, WorldInfo},
    document::export::Export,
    file::File,
    lorebook::Lorebook,
    out, pieces,
    report::Report,
    service::{self, ImportFile, ImportFormat},
};
use base::error::{Error, Problem, Result};
use edge::{
    caller::Caller,
    http::{Answer, Written, page::attachment, paging},
    state::Edge,
};

/// The parameters of the import of a campaign document.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct CampaignImportParams {
    /// Whether only to report what would happen, without changing anything.
    dry_run: bool,
    /// The slug of the campaign to create or change. By default the document's own.
    slug: Option<String>,
}

/// The parameters of the import of a card.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct CardImportParams {
    /// Whether only to report what would happen, without changing anything.
    dry_run: bool,
}

/// The parameters of the import of a lorebook.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct LorebookImportParams {
    /// Whether only to report what would happen, without changing anything.
    dry_run: bool,
    /// The name that identifies the book. By default its own name.
    name: Option<String>,
}

/// The parameters of the import of entity documents.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct SeedImportParams {
    /// Whether only to report what would happen, without changing anything.
    dry_run: bool,
}

/// The parameters of the export of a lorebook.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct LorebookParams {
    /// Exports only the entries of this imported book. The value is the book's name as a slug.
    book: Option<String>,
}

async fn import(
    app: &Edge,
    caller: &Caller,
    format: ImportFormat,
    file: &File,
    is_dry_run: bool,
) -> Result<Written<Report>> {
    let (key, bytes) = (file.idempotency.as_ref(), file.bytes.clone());
    service::import(&app.pool, caller, &ImportFile { format, bytes, is_dry_run }, async |import| {
        let tx = import.tx;
        if let Some(key) = key
            && let Some(stored) = key.claim(tx).await?
        {
            return Ok(Written::Before(stored));
        }
        let answer = Answer::ok(import.write().await?);
        if let Some(key) = key.filter(|_| !is_dry_run) {
            key.store(tx, &answer).await?;
        }
        Ok(answer.into())
    })
    .await
}

/// Imports a campaign document.
///
/// New rows are created and different ones changed. Nothing is deleted. Importing the same document again changes
/// nothing.
#[utoipa::path(post, path = "/v1/campaigns/import",
    tag = "imports", operation_id = "import_campaign", request_body(content = Object, description = "A document of `GET …/export`, at most 32 MiB"),
    params(CampaignImportParams), responses((status = 200, body = Report), (status = "default", body = Problem)))]
pub async fn import_campaign(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    file: File,
) -> Result<impl Responder> {
    let asked: CampaignImportParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    import(&app, &caller, ImportFormat::Campaign { slug: asked.slug }, &file, asked.dry_run).await
}

/// Imports a character card (V1 to V3: JSON, PNG or CHARX) as an NPC.
///
/// The card's book is imported as lore that this NPC knows.
#[utoipa::path(post, path = "/v1/campaigns/{c}/import/character-card",
    tag = "imports", operation_id = "import_character_card",
    request_body(description = "The card as JSON, PNG or CHARX, at most 32 MiB", content((Object = "application/json"), (Vec<u8> = "image/png"), (Vec<u8> = "application/zip"))),
    params(("c" = String, Path, description = "Campaign id or slug"), CardImportParams),
    responses((status = 200, body = Report), (status = "default", body = Problem)))]
pub async fn import_card(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    file: File,
) -> Result<impl Responder> {
    let asked: CardImportParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    import(&app, &caller, ImportFormat::Card { campaign: path.into_inner() }, &file, asked.dry_run).await
}

/// Imports a lorebook.
///
/// It may be SillyTavern's world info, a card's book, or a book of Agnai, Risu, NovelAI or AI Dungeon.
#[utoipa::path(post, path = "/v1/campaigns/{c}/import/lorebook",
    tag = "imports", operation_id = "import_lorebook", request_body(content = serde_json::Value, description = "The book as JSON, at most 32 MiB"),
    params(("c" = String, Path, description = "Campaign id or slug"), LorebookImportParams),
    responses((status = 200, body = Report), (status = "default", body = Problem)))]
pub async fn import_lorebook(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    file: File,
) -> Result<impl Responder> {
    let asked: LorebookImportParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    let format = ImportFormat::Lorebook { campaign: path.into_inner(), name: asked.name, file: None };
    import(&app, &caller, format, &file, asked.dry_run).await
}

/// Imports entity documents.
///
/// The body is a single document, a list, or `{players, owners, npcs, lore}`, with keys in PascalCase or snake_case.
#[utoipa::path(post, path = "/v1/campaigns/{c}/import/seed",
    tag = "imports", operation_id = "import_seed", request_body = serde_json::Value,
    params(("c" = String, Path, description = "Campaign id or slug"), SeedImportParams),
    responses((status = 200, body = Report), (status = "default", body = Problem)))]
pub async fn import_seed(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    file: File,
) -> Result<impl Responder> {
    let asked: SeedImportParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    import(&app, &caller, ImportFormat::Seed { campaign: path.into_inner() }, &file, asked.dry_run).await
}

/// Exports the whole campaign as one document.
///
/// It includes secrets, so it requires the scope `gm` in addition to `read`.
#[utoipa::path(get, path = "/v1/campaigns/{c}/export",
    tag = "imports", operation_id = "export_campaign", params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 200, body = CampaignDocument), (status = "default", body = Problem)))]
pub async fn export_campaign(app: web::Data<Edge>, caller: Caller, path: web::Path<String>) -> Result<HttpResponse> {
    let export = Export::begin(&app.pool, &caller, &path).await?;
    let name = format!("{}.tavernkeep.json", export.slug);
    Ok(attachment("application/json", &name).streaming(Box::pin(pieces::stream(export))))
}

/// Exports an NPC as a character card, V3.
#[utoipa::path(get, path = "/v1/campaigns/{c}/npcs/{x}/card.json",
    tag = "imports", operation_id = "export_card_json",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "NPC id or slug")),
    responses((status = 200, body = CharacterCard), (status = "default", body = Problem)))]
pub async fn card_json(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse> {
    let (name, card) = out::card(&app.pool, &caller, &path.0, &path.1).await?;
    let bytes = serde_json::to_vec_pretty(&card).map_err(Error::internal)?;
    Ok(attachment("application/json", &format!("{name}.json")).body(bytes))
}

/// Exports an NPC as a picture that contains its character card, in V2 and V3.
#[utoipa::path(get, path = "/v1/campaigns/{c}/npcs/{x}/card.png",
    tag = "imports", operation_id = "export_card_png",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "NPC id or slug")),
    responses((status = 200, content_type = "image/png", body = Vec<u8>), (status = "default", body = Problem)))]
pub async fn card_png(app: web::Data<Edge>, caller: Caller, path: web::Path<(String, String)>) -> Result<HttpResponse> {
    let (name, card) = out::card(&app.pool, &caller, &path.0, &path.1).await?;
    Ok(attachment("image/png", &format!("{name}.png")).body(card::picture(&card)?))
}

/// Exports the campaign's lore as SillyTavern's world info.
///
/// Secret entries are included only if the caller may see secrets.
#[utoipa::path(get, path = "/v1/campaigns/{c}/lorebook.json",
    tag = "imports", operation_id = "export_lorebook",
    params(("c" = String, Path, description = "Campaign id or slug"), LorebookParams),
    responses((status = 200, body = WorldInfo), (status = "default", body = Problem)))]
pub async fn lorebook(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
) -> Result<HttpResponse> {
    let asked: LorebookParams = paging::read_filter(paging::parameters(request.query_string())?)?;
    let lorebook = Lorebook::begin(&app.pool, &caller, &path, asked.book.as_deref()).await?;
    let name = asked
        .book
        .as_deref()
        .filter(|b| b.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
        .unwrap_or("lorebook");
    Ok(attachment("application/json", &format!("{name}.json")).streaming(Box::pin(pieces::stream(lorebook))))
}
