//! Parses rows of a document on a thread that answers no requests.

use actix_web::web;

use base::error::{Error, Result};

/// Parses rows on a thread that answers no requests. `first` is the index of the first row in its list.
///
/// # Errors
/// Those of `read`.
pub async fn read_apart<T: Send + 'static>(
    rows: &[web::Bytes],
    at: &'static str,
    first: usize,
    read: impl Fn(&[u8], String) -> Result<T> + Send + 'static,
) -> Result<Vec<T>> {
    let rows = rows.to_vec();
    let all = move || rows.iter().enumerate().map(|(i, text)| read(text, format!("{at}/{}", first + i))).collect();
    web::block(all).await.map_err(Error::internal)?
}
