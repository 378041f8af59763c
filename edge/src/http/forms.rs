//! The check that a form comes from one of our pages.

use actix_web::HttpRequest;

use base::error::{Code, Error, Result};

/// Checks that a form comes from one of our pages. Browsers send one of these headers with every form. A client that
/// sends neither is not a browser, and has no cookie that another page could misuse.
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
    Err(Error::new(Code::Forbidden, "This form was sent from another site. Send it from its own page."))
}
