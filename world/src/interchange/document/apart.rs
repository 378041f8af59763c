//! Parses rows of a document on a thread that answers no requests.

use actix_web::web;
use serde_json::Value;

use crate::interchange::{originals::value_of, report::Report};
use base::error::{Error, Result};

/// Parses rows on a thread that answers no requests. `first` is the index of the first row in its list. Control characters are left
/// out and reported.
///
/// # Errors
/// `bad_request` for invalid JSON, and those of `read`.
pub async fn read_apart<T: Send + 'static>(
    list: &[web::Bytes],
    at: &'static str,
    first: usize,
    report: &mut Report,
    read: impl Fn(Value, String) -> Result<T> + Send + 'static,
) -> Result<Vec<T>> {
    let list = list.to_vec();
    let all = move || -> Result<(Vec<T>, Vec<String>)> {
        let (mut rows, mut cleaned) = (Vec::with_capacity(list.len()), Vec::new());
        for (i, text) in list.iter().enumerate() {
            let pointer = format!("{at}/{}", first + i);
            let (value, paths) = value_of(text, &pointer)?;
            cleaned.extend(paths);
            rows.push(read(value, pointer)?);
        }
        Ok((rows, cleaned))
    };
    let (rows, cleaned) = web::block(all).await.map_err(Error::internal)??;
    report.warn_of_control_characters(cleaned);
    Ok(rows)
}
