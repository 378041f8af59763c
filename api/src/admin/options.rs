//! What a field may be filled with: a page to read, and to htmx the options of a list.

use askama::Template;

use super::Frame;
use crate::shown;

/// The page.
#[derive(Template)]
#[template(path = "admin/options.html", blocks = ["main", "options"])]
pub struct OptionsPage {
    pub frame: Frame,
    pub heading: &'static str,
    pub many: &'static str,
    pub list: String,
    pub options: Vec<OptionView>,
}
shown!(OptionsPage: as_main, "tags" => as_options, "names" => as_options, "actors" => as_options);

/// One of them, and where it leads.
pub struct OptionView {
    pub value: String,
    pub label: String,
    pub path: String,
}
