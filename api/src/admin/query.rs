//! Addresses of lists: parameters read from a query, and put into one.

use url::form_urlencoded::{self, Serializer};

use super::InCampaign;

/// A parameter of a query; empty if there is none.
#[must_use]
pub fn given(query: &str, name: &str) -> String {
    all_given(query, name).next().unwrap_or_default()
}

/// All values of a parameter that may be given several times.
pub fn all_given<'a>(query: &'a str, name: &'a str) -> impl Iterator<Item = String> + 'a {
    form_urlencoded::parse(query.as_bytes()).filter(move |(n, _)| n == name).map(|(_, value)| value.into_owned())
}

/// A text as a query holds it.
#[must_use]
pub fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The query as the API's lists read it: an empty field of a form asks for nothing, and what is not asked for is `sort` and `more`.
#[must_use]
pub fn as_asked(at: &InCampaign, sort: &str, more: &[(&str, &str)]) -> String {
    let query = at.request.query_string().as_bytes();
    let given: Vec<_> = form_urlencoded::parse(query).filter(|(_, value)| !value.is_empty()).collect();
    let mut out = Serializer::new(String::new());
    out.extend_pairs(given.iter());
    for (name, value) in [("sort", sort)].iter().chain(more) {
        if !given.iter().any(|(known, _)| known == name) {
            out.append_pair(name, value);
        }
    }
    out.finish()
}

/// The page's query with another place in the list.
#[must_use]
pub fn with_cursor(at: &InCampaign, cursor: Option<&str>) -> String {
    let kept = form_urlencoded::parse(at.request.query_string().as_bytes())
        .filter(|(name, value)| name != "cursor" && !value.is_empty());
    let all = kept.chain(cursor.map(|cursor| ("cursor".into(), cursor.into())));
    format!("?{}", Serializer::new(String::new()).extend_pairs(all).finish())
}
