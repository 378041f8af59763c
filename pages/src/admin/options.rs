//! Suggestions for a field: a page for people, and a list of options for htmx.

use askama::Template;

use super::Frame;
use crate::render_blocks;

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
render_blocks!(OptionsPage: as_main, "tags" => as_options, "names" => as_options, "actors" => as_options);

/// A suggestion and the page that it links to.
pub struct OptionView {
    pub value: String,
    pub label: String,
    pub path: String,
}
