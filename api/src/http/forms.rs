//! Where forms come from.

use actix_web::HttpRequest;

use crate::error::{Code, Error, Result};

/// That a form comes from a page of ours. Browsers send one of these headers with every form; whoever sends neither is no
/// browser, and has no cookie that a page could misuse.
///
/// # Errors
/// `forbidden` for another site's form.
pub fn from_our_page(request: &HttpRequest) -> Result<()> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let host = request.connection_info().host().to_owned();
    let is_ours = match (header("sec-fetch-site"), header("origin")) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => origin.split_once("://").is_some_and(|(_, from)| from == host),
        (None, None) => true,
    };
    if is_ours {
        return Ok(());
    }
    Err(Error::new(Code::Forbidden, "This form came from another site."))
}
