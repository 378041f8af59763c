//! What is said to one reader alone.

use askama::Template;

/// Something that failed.
#[derive(Template)]
#[template(path = "table/alert.html")]
pub(crate) struct Alert<'a> {
    pub(crate) message: &'a str,
}

/// Something that was done, or is worth knowing.
#[derive(Template)]
#[template(path = "table/aside.html")]
pub(crate) struct Aside<'a> {
    pub(crate) message: &'a str,
}
