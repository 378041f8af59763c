//! Imports, as the API, the pages and the command line run them: read the file, write it in one transaction, report. A
//! dry run does the same but does not commit.

use std::time::Duration;

use actix_web::web;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    apply::{self, Shelf},
    book, card,
    document::import,
    picture::refuse_other_pictures,
    report::{Losses, Report},
    seed, text,
};
use crate::campaigns::fork;
use base::{
    error::{Code, Error, Result},
    json, metrics,
    stored::Columns,
};
use db::{
    pool::Pool,
    retry::{self, BRIEF},
    tenancy::{Actor, Origin, TenantTx},
};
use edge::{
    caller::{Caller, Scope},
    http::resource::{Place, Ref, campaign_id},
    limits,
};

/// The longest time for one statement of an import, in seconds.
const SECONDS_MAX: u32 = 120;

/// What to read a file as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportFormat {
    /// A campaign, with a slug if it should not be the document's own.
    Campaign { slug: Option<String> },
    /// A character card, for a campaign.
    Card { campaign: String },
    /// A lorebook, for a campaign. Its name is the given one, or else its own, or else the file's name without
    /// extension.
    Lorebook { campaign: String, name: Option<String>, file: Option<String> },
    /// Entity documents, for a campaign.
    Seed { campaign: String },
    /// Whatever its bytes look like. The file's name without extension is for a lorebook that has no name.
    Any { campaign: String, file: Option<String> },
}

/// A file to import.
#[derive(Clone, Debug)]
pub struct ImportFile {
    pub format: ImportFormat,
    pub bytes: web::Bytes,
    /// Whether only to report what would happen, without changing anything.
    pub is_dry_run: bool,
}

/// An import whose file was read and whose transaction is open.
pub struct Import<'a> {
    pub tx: &'a TenantTx,
    caller: &'a Caller,
    content: Content,
    is_dry_run: bool,
}

impl Import<'_> {
    /// Writes what was read.
    ///
    /// # Errors
    /// What cannot be stored, with a pointer into the file; `quota_exceeded`.
    pub async fn write(self) -> Result<Report> {
        let is_dry_run = self.is_dry_run;
        let mut report = write(self).await?;
        report.tell_in_force();
        metrics::IMPORTS.with_label_values(&[report.format, if is_dry_run { "yes" } else { "no" }]).inc();
        Ok(report)
    }
}

enum Content {
    /// The rows are parsed when they are written.
    Campaign(Box<import::Document>, Option<String>),
    Card(String, Box<card::Card>, Losses),
    Lorebook(String, book::Book, Shelf, Losses),
    Seed(String, seed::Entities),
}

/// Limits how many files are read at the same time, because each may take a multiple of its size in memory. A few more
/// may wait.
struct Readers {
    seats: Semaphore,
    places: Semaphore,
    wait_max: Duration,
}

static READERS: Readers = Readers::new(4, 16, Duration::from_secs(10));

impl Readers {
    const fn new(reading: usize, waiting: usize, wait_max: Duration) -> Self {
        Self { seats: Semaphore::const_new(reading), places: Semaphore::const_new(reading + waiting), wait_max }
    }

    /// Waits for a seat. Returns it together with the waiting place; both are free again when they are dropped.
    ///
    /// # Errors
    /// `unavailable` when too many are waiting, or no seat became free in time.
    async fn enter(&self) -> Result<(SemaphorePermit<'_>, SemaphorePermit<'_>)> {
        let busy = || {
            Error::new(Code::Unavailable, "Too many files are being imported right now. Try again in a few seconds.")
                .retry_after(5)
        };
        let place = self.places.try_acquire().map_err(|_| busy())?;
        let seat = tokio::time::timeout(self.wait_max, self.seats.acquire()).await.map_err(|_| busy())?;
        Ok((seat.map_err(Error::internal)?, place))
    }
}

/// Imports a file in one transaction and retries errors that will pass. `work` calls [`Import::write`], and does before
/// and after it what the same transaction must do. A dry run is not committed.
///
/// The file is read before the transaction begins. If two imports create the same rows, the second one is retried and
/// finds what the first one created.
///
/// # Errors
/// What is wrong with the file, with a pointer into it; `forbidden` for a campaign document without the scope `gm`;
/// `unavailable` when too many files are being read or no connection is free in time; those of `work`.
pub async fn import<T>(
    pool: &Pool,
    caller: &Caller,
    file: &ImportFile,
    work: impl AsyncFn(Import<'_>) -> Result<T>,
) -> Result<T> {
    retry::repeat(BRIEF, async || {
        let content = read(caller, file).await?;
        let actor = Actor { origin: Origin::Import, ..caller.actor() };
        let tx = TenantTx::write_much(pool, &actor, SECONDS_MAX).await?;
        let import = Import { tx: &tx, caller, content, is_dry_run: file.is_dry_run };
        let done = work(import).await.map_err(Error::of_derived_slug)?;
        if !file.is_dry_run {
            tx.commit().await?;
        }
        Ok(done)
    })
    .await
}

/// Reads a file, on a thread that answers no requests and before any database connection is held.
async fn read(caller: &Caller, file: &ImportFile) -> Result<Content> {
    let _seat = READERS.enter().await?;
    let (format, bytes) = (file.format.clone(), file.bytes.clone());
    let content = web::block(move || parse(format, bytes)).await.map_err(Error::internal)??;
    if matches!(content, Content::Campaign(..)) {
        caller.needs(Scope::Gm, "A campaign document")?;
    }
    Ok(content)
}

async fn write(Import { tx, caller, content, is_dry_run }: Import<'_>) -> Result<Report> {
    let (campaign, mut report) = match &content {
        Content::Campaign(document, slug) => {
            return import::import(tx, caller, document, slug.as_deref(), is_dry_run).await;
        }
        Content::Card(campaign, card, _) => (campaign, Report::new(card.format, is_dry_run)),
        Content::Lorebook(campaign, book, ..) => (campaign, Report::new(book.format.as_str(), is_dry_run)),
        Content::Seed(campaign, _) => (campaign, Report::new("seed", is_dry_run)),
    };
    import::alone(tx).await?;
    let campaign = campaign_id(tx, caller, &Ref::parse(campaign)).await?;
    report.campaign = slug_of(tx, campaign).await?;
    let place = Place { tx, campaign, caller };
    match content {
        Content::Campaign(..) => {}
        Content::Card(_, card, losses) => apply::card(&place, *card, losses, &mut report).await?,
        Content::Lorebook(_, book, shelf, losses) => apply::book(&place, book, &shelf, losses, &mut report).await?,
        Content::Seed(_, entities) => seed::import(&place, entities, &mut report).await?,
    }
    limits::check_rows_kept(tx, caller.tenant.limits.rows_per_kind, fork::TABLES).await?;
    Ok(report)
}

fn parse(format: ImportFormat, bytes: web::Bytes) -> Result<Content> {
    let mut losses = Losses::default();
    Ok(match format {
        ImportFormat::Any { campaign, file } => {
            let guessed = guess(&campaign, file, &bytes)?;
            return parse(guessed, bytes);
        }
        ImportFormat::Campaign { slug } => Content::Campaign(Box::new(import::read(&bytes)?), slug),
        ImportFormat::Seed { campaign } => Content::Seed(campaign, seed::read(&bytes)?),
        ImportFormat::Card { campaign } => {
            let card = card::read(&bytes, &mut losses)?;
            Content::Card(campaign, Box::new(card), losses)
        }
        ImportFormat::Lorebook { campaign, name, file } => {
            let book = book::read(&bytes, &mut losses)?;
            let names = [text::line(&name.unwrap_or_default()), book.name.clone(), of_file(&file.unwrap_or_default())];
            let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
            let key = edge::http::resource::slug_of(&name, "_").unwrap_or_else(|| "lorebook".to_owned());
            Content::Lorebook(campaign, book, Shelf { key, tag: name, known_by: None }, losses)
        }
    })
}

/// The name of a file without the number that browsers add to a duplicate: `wi (1)` becomes `wi`.
fn of_file(stem: &str) -> String {
    let numbered = stem.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text::line(numbered.filter(|(_, number)| is_number(number)).map_or(stem, |(name, _)| name))
}

async fn slug_of(tx: &TenantTx, campaign: uuid::Uuid) -> Result<String> {
    let row = sqlx::query("SELECT slug FROM campaign WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(campaign)
        .fetch_one(&mut *tx.connection().await)
        .await?;
    row.read("slug")
}

/// Guesses the type of a file from its first bytes and its members.
///
/// # Errors
/// `validation_failed` for a file that we cannot read.
pub fn guess(campaign: &str, file: Option<String>, bytes: &[u8]) -> Result<ImportFormat> {
    let campaign = campaign.to_owned();
    if super::png::is_png(bytes) || super::charx::is_zip(bytes) {
        return Ok(ImportFormat::Card { campaign });
    }
    refuse_other_pictures(bytes)?;
    if import::is_ours(json::text(bytes)?) {
        return Ok(ImportFormat::Campaign { slug: None });
    }
    let value = json::file(bytes)?;
    let has = |name: &str| value.get(name).is_some();
    if value.get("spec").and_then(|s| s.as_str()).is_some_and(|s| s.starts_with("chara_card"))
        || has("first_mes")
        || has("personality")
    {
        return Ok(ImportFormat::Card { campaign });
    }
    if has("entries") || has("data") || value.is_array() {
        return Ok(ImportFormat::Lorebook { campaign, name: None, file });
    }
    Err(Error::new(Code::ValidationFailed, "This is neither a character card nor a lorebook nor a campaign document."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_reads_is_bounded_and_so_is_who_waits() {
        let readers = Readers::new(1, 1, Duration::from_millis(20));
        let first = readers.enter().await.expect("a seat");
        let (waited, refused) = tokio::join!(readers.enter(), async {
            tokio::task::yield_now().await;
            readers.enter().await
        });
        for answer in [waited, refused] {
            assert_eq!(answer.err().map(|e| e.code), Some(Code::Unavailable));
        }
        drop(first);
        assert!(readers.enter().await.is_ok());
    }
}
