//! The journal for administrators: who changed what, newest first, with filters and the values before and after.

use actix_web::HttpResponse;
use askama::Template;
use serde_json::Value;
use url::form_urlencoded;
use uuid::Uuid;

use super::{Frame, InCampaign, Tab, list::moment, words};
use crate::render_blocks;
use base::error::{Code, Error, Result};
use edge::http::paging;
use world::audit::{self, AuditEntry, Filter};

const TABLES: &[&str] =
    &["campaign", "character", "encounter", "lore", "memory", "message", "npc", "owner", "scene", "session"];
const ORIGINS: &[&str] = &["api", "turn", "import", "fork", "revert", "system"];
/// The most entries of a page.
const ENTRIES_MAX: u16 = 50;
/// The most characters that are shown of a value.
const CHARS_MAX: usize = 2000;
const OPS: &[&str] = &["insert", "update", "delete"];

#[derive(Template)]
#[template(path = "admin/audit.html", blocks = ["main", "rows"])]
struct AuditPage {
    frame: Frame,
    path: String,
    tables: &'static [&'static str],
    origins: &'static [&'static str],
    ops: &'static [&'static str],
    filter: Filter,
    row: String,
    actor: String,
    entries: Vec<(AuditEntry, String)>,
    /// The link to older entries.
    further: Option<String>,
}
render_blocks!(AuditPage: as_main, "rows" => as_rows);

impl AuditPage {
    fn is(&self, chosen: &Option<String>, value: &str) -> bool {
        chosen.as_deref() == Some(value)
    }

    fn did(&self, op: &str) -> &'static str {
        match op {
            "insert" => "created",
            "delete" => "deleted",
            _ => "changed",
        }
    }

    fn cut(&self, value: &Value) -> String {
        let whole = words::display_text(value);
        match whole.char_indices().nth(CHARS_MAX) {
            None => whole,
            Some((end, _)) => format!("{}…", whole.get(..end).unwrap_or_default()),
        }
    }

    fn only(&self, name: &str, value: &impl std::fmt::Display) -> String {
        format!("{}?{name}={value}", self.path)
    }
}

/// The page.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let mut given = paging::parameters(at.request.query_string())?;
    given.retain(|_, value| !value.trim().is_empty());
    let one_of = |name: &str, words: &[&str]| given.get(name).filter(|value| words.contains(&value.as_str())).cloned();
    let id = |name: &str| match given.get(name) {
        None => Ok(None),
        Some(text) => {
            let wrong = |_| Error::new(Code::BadRequest, format!("`{name}` must be an id."));
            Uuid::try_parse(text.trim()).map(Some).map_err(wrong)
        }
    };
    let filter = Filter {
        table: one_of("table", TABLES),
        tables: Vec::new(),
        origin: one_of("origin", ORIGINS),
        op: one_of("op", OPS),
        row: id("row")?,
        actor: id("actor")?,
        turn: id("turn")?,
        before: given.get("before").and_then(|before| before.parse().ok()),
    };
    let tx = at.read().await?;
    let found = audit::page(&tx, at.campaign.id.0, &filter, ENTRIES_MAX).await?;
    let path = at.url("audit");
    let further = found.before.map(|before| {
        let kept = given.iter().filter(|(name, _)| *name != "before");
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(kept)
            .append_pair("before", &before.to_string())
            .finish();
        format!("{path}?{query}")
    });
    at.show(&AuditPage {
        frame: at.frame("Audit", Tab::Audit),
        path,
        tables: TABLES,
        origins: ORIGINS,
        ops: OPS,
        row: filter.row.map(|id| id.to_string()).unwrap_or_default(),
        actor: filter.actor.map(|id| id.to_string()).unwrap_or_default(),
        filter,
        entries: found
            .entries
            .into_iter()
            .map(|entry| {
                let when = moment(entry.at);
                (entry, when)
            })
            .collect(),
        further,
    })
}
