//! A question before something goes that does not come back by itself: a page, so that it is asked without script too. What it
//! asks about is sent to the address that it is shown at.

use askama::Template;

use super::{Frame, in_the_way::InTheWay};
use crate::shown;

#[derive(Template)]
#[template(path = "admin/ask.html", blocks = ["main"])]
pub(super) struct AskPage {
    pub(super) frame: Frame,
    /// `Delete The mill?`
    pub(super) question: String,
    /// What it is about, in its own words, if its name says too little.
    pub(super) quoted: Option<String>,
    /// What happens then.
    pub(super) then: String,
    /// `Delete` and `Keep it`.
    pub(super) yes: &'static str,
    pub(super) no: &'static str,
    pub(super) back: String,
    /// The version of the row that is asked about, if it has one.
    pub(super) version: Option<i64>,
    pub(super) problem: Option<String>,
    /// Rows that are in the way of it.
    pub(super) rows: Vec<InTheWay>,
    /// Where to go before: the address and what it is called.
    pub(super) before: Option<(String, &'static str)>,
    /// What has to be written for it.
    pub(super) repeat: Option<String>,
    /// Whether it may reach into forks as well.
    pub(super) forks: bool,
}
shown!(AskPage: as_main);
