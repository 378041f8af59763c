//! Query strings of lists: reading and writing their parameters.

use url::form_urlencoded::{self, Serializer};

use super::InCampaign;

/// A parameter of a query; empty if it is missing.
#[must_use]
pub fn given(query: &str, name: &str) -> String {
    all_given(query, name).next().unwrap_or_default()
}

/// All values of a parameter that may be given several times.
pub fn all_given<'a>(query: &'a str, name: &'a str) -> impl Iterator<Item = String> + 'a {
    form_urlencoded::parse(query.as_bytes()).filter(move |(n, _)| n == name).map(|(_, value)| value.into_owned())
}

/// A text, encoded for a query.
#[must_use]
pub fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The query as the API's lists read it. Empty form fields are dropped. `sort` and `more` are the defaults for missing parameters.
#[must_use]
pub fn as_asked(at: &InCampaign, sort: &str, more: &[(&str, &str)]) -> String {
    let query = at.request.query_string().as_bytes();
    let given: Vec<_> =
        form_urlencoded::parse(query).filter(|(name, value)| !value.is_empty() && name != PAST).collect();
    let mut out = Serializer::new(String::new());
    out.extend_pairs(given.iter());
    for (name, value) in [("sort", sort)].iter().chain(more) {
        if !given.iter().any(|(known, _)| known == name) {
            out.append_pair(name, value);
        }
    }
    out.finish()
}

/// The parameter with the cursors of the pages before the present one, and how many of them an address holds.
pub const PAST: &str = "past";
const PAST_MAX: usize = 20;
/// Stands for the first page.
const BEGIN: &str = "0";

/// Links to other pages of a list, as queries.
pub struct Ways {
    pub first: Option<String>,
    pub previous: Option<String>,
    pub next: Option<String>,
}

impl Ways {
    /// The links from a page of a list to those around it. A cursor only leads forward, so the address also keeps the
    /// earlier cursors.
    #[must_use]
    pub fn of(at: &InCampaign, next_cursor: Option<&str>) -> Self {
        let query = at.request.query_string();
        let (here, past) = (given(query, "cursor"), given(query, PAST));
        let mut past: Vec<&str> = past.split(',').filter(|cursor| !cursor.is_empty()).collect();
        let is_first = here.is_empty();
        let previous = if is_first { None } else { past.last().copied() }.map(|cursor| {
            let before = past.get(..past.len().saturating_sub(1)).unwrap_or_default();
            with_place(query, Some(cursor).filter(|cursor| *cursor != BEGIN), before)
        });
        let next = next_cursor.map(|cursor| {
            past.push(if is_first { BEGIN } else { &here });
            let kept = past.get(past.len().saturating_sub(PAST_MAX)..).unwrap_or_default();
            with_place(query, Some(cursor), kept)
        });
        Self { first: (!is_first).then(|| with_place(query, None, &[])), previous, next }
    }
}

/// The same query at another position in its list.
fn with_place(query: &str, cursor: Option<&str>, past: &[&str]) -> String {
    let kept = form_urlencoded::parse(query.as_bytes())
        .filter(|(name, value)| !matches!(&**name, "cursor" | PAST) && !value.is_empty());
    let mut out = Serializer::new(String::new());
    out.extend_pairs(kept);
    out.extend_pairs(cursor.map(|cursor| ("cursor", cursor)));
    out.extend_pairs(Some((PAST, past.join(","))).filter(|(_, past)| !past.is_empty()));
    format!("?{}", out.finish())
}
