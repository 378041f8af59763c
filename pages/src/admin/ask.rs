//! A confirmation page before an action that cannot easily be undone. It is a page of its own so that it works without
//! JavaScript. Its form is sent to the address that shows it.

use askama::Template;

use super::{Frame, in_the_way::InTheWay};
use crate::render_blocks;

#[derive(Template)]
#[template(path = "admin/ask.html", blocks = ["main"])]
pub(super) struct AskPage {
    pub(super) frame: Frame,
    /// `Delete The mill?`
    pub(super) question: String,
    /// The content of the row, if its name says too little.
    pub(super) quoted: Option<String>,
    /// What the action does.
    pub(super) then: String,
    /// `Delete` and `Keep it`.
    pub(super) yes: &'static str,
    pub(super) no: &'static str,
    pub(super) back: String,
    /// The version of the row that the question is about, if it has one.
    pub(super) version: Option<i64>,
    pub(super) problem: Option<String>,
    /// Rows that prevent the action.
    pub(super) rows: Vec<InTheWay>,
    /// A page to visit first: its address and its label.
    pub(super) before: Option<(String, &'static str)>,
    /// What the user has to type to confirm.
    pub(super) repeat: Option<String>,
    /// Whether the user may choose to include forks.
    pub(super) forks: bool,
}
render_blocks!(AskPage: as_main);
