//! A list of a campaign's rows with search, order and pages. Its `GET` parameters are those of the API's lists.

use askama::Template;
use time::{OffsetDateTime, macros::format_description};

use super::{
    Frame, InCampaign, Tab,
    query::{Ways, given},
};
use crate::render_blocks;

/// The orders that most lists offer.
pub const ORDERS: &[(&str, &str)] =
    &[("name", "by name"), ("-updated_at", "last changed first"), ("-created_at", "newest first")];

/// A row of a list.
pub struct Row {
    pub path: String,
    pub label: String,
    pub cells: Vec<String>,
}

/// The page of a list.
#[derive(Template)]
#[template(path = "admin/list.html", blocks = ["main", "rows"])]
pub struct ListPage {
    pub frame: Frame,
    pub many: &'static str,
    pub about: &'static str,
    /// What the first row could be, if there is none.
    pub example: &'static str,
    /// A link to create a new row: its path and label.
    pub new: Option<(String, String)>,
    /// The title of the first column.
    pub label: &'static str,
    /// The page of deleted rows.
    pub deleted: Option<String>,
    /// The columns after the first.
    pub columns: &'static [&'static str],
    pub orders: &'static [(&'static str, &'static str)],
    /// Whether the list has a text search.
    pub is_searched: bool,
    path: String,
    q: String,
    sort: String,
    rows: Vec<Row>,
    ways: Ways,
}
render_blocks!(ListPage: as_main, "rows" => as_rows);

impl ListPage {
    /// An empty list.
    #[must_use]
    pub fn new(at: &InCampaign, many: &'static str, tab: Tab, path: &str) -> Self {
        Self {
            frame: at.frame(many, tab),
            many,
            about: "",
            example: "",
            new: None,
            label: "Name",
            deleted: None,
            columns: &[],
            orders: ORDERS,
            is_searched: true,
            path: at.url(path),
            q: given(at.request.query_string(), "q"),
            sort: given(at.request.query_string(), "sort"),
            rows: Vec::new(),
            ways: Ways::of(at, None),
        }
    }

    /// Adds a row. Its page is below the list's path.
    pub fn add(&mut self, id: &str, label: String, cells: Vec<String>) {
        self.rows.push(Row { path: format!("{}/{id}", self.path), label, cells });
    }

    /// Sets the links to the previous and next page.
    pub fn pages(&mut self, at: &InCampaign, next_cursor: Option<&str>) {
        self.ways = Ways::of(at, next_cursor);
    }
}

/// A time for people to read, in UTC.
#[must_use]
pub fn moment(at: OffsetDateTime) -> String {
    at.format(format_description!("[year]-[month]-[day] [hour]:[minute]")).unwrap_or_default()
}

/// A time from a response, for people to read; the text itself if it is not a time.
#[must_use]
pub fn moment_of(text: &str) -> String {
    base::clock::parse(text).map_or_else(|| text.to_owned(), moment)
}
