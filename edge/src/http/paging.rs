//! Lists: `limit`, `cursor`, `sort`, `q`, `updated_since`. They use keyset paging: every page costs the same, even far
//! into the list.

use std::collections::BTreeMap;

use actix_web::{FromRequest, HttpRequest, dev::Payload};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use sqlx::postgres::PgRow;
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{budget, misfit};
use base::{
    clock,
    error::{Code, Error, FieldError, Result},
};

pub use base::variants::pattern;

/// Query parameters of every list.
#[derive(Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the parameters for the OpenAPI file; `Page` reads them")]
pub struct ListParams {
    /// Rows per page, 1 to 200. A page of large rows has fewer, and then a cursor: it ends with the row that reaches 4
    /// MiB of JSON.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
    /// Text that a row's name or slug contains, or a message's content. In lore, memories and broadcasts: words to search for;
    /// `-word` excludes a word.
    #[param(max_length = 200)]
    q: Option<String>,
    /// Only rows that changed at or after this time (RFC 3339).
    #[param(format = DateTime)]
    updated_since: Option<String>,
    /// `created_at`, `updated_at` or `name`; for lore also `priority` and `tokens`. Put `-` in front for descending
    /// order.
    #[param(pattern = "^-?(created_at|updated_at|name|title|priority|tokens)$")]
    sort: Option<String>,
}

/// The request for one page: the position, and the list's own filters, read as `F`.
#[derive(Debug)]
pub struct Page<F> {
    pub limit: u64,
    pub sort: Sort,
    pub after: Option<Cursor>,
    pub q: Option<String>,
    pub updated_since: Option<OffsetDateTime>,
    pub filter: F,
    fingerprint: String,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    pub key: SortKey,
    pub descending: bool,
}

/// The columns that a list can be ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// The order of writing: that of the ids, which are UUIDv7, or that of numbers which the database gave.
    Created,
    Updated,
    Name,
    Priority,
    Tokens,
}

/// The position of the last row of a page in the list's order.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cursor {
    /// The sorted column's value. In the order of creation, the row's number if it has one.
    #[serde(rename = "v")]
    pub value: Option<String>,
    #[serde(rename = "i")]
    pub id: Uuid,
    #[serde(rename = "f")]
    fingerprint: String,
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct Items<T> {
    pub items: Vec<T>,
    /// Pass this as `cursor` to get the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// A page whose rows are JSON already.
pub type RawItems = Items<Box<RawValue>>;

/// For a list that has no filters of its own.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoFilter {}

impl<F: DeserializeOwned + 'static> FromRequest for Page<F> {
    type Error = Error;
    type Future = std::future::Ready<Result<Self>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(Self::parse(request.query_string()))
    }
}

impl<F: DeserializeOwned> Page<F> {
    /// Reads a query string.
    ///
    /// # Errors
    /// `bad_request` for a parameter that is unknown, repeated or out of range.
    pub fn parse(query: &str) -> Result<Self> {
        let mut given = parameters(query)?;
        let limit = match given.remove("limit") {
            None => 50,
            Some(text) => text
                .parse()
                .ok()
                .filter(|n| (1..=200).contains(n))
                .ok_or_else(|| bad("limit", "must be from 1 to 200"))?,
        };
        let sort = Sort::parse(given.remove("sort").as_deref().unwrap_or("created_at"))?;
        let cursor = given.remove("cursor");
        let q = given.remove("q").filter(|q| !q.trim().is_empty());
        if q.as_deref().is_some_and(|q| q.chars().count() > 200) {
            return Err(bad("q", "must have at most 200 characters"));
        }
        let fingerprint = fingerprint(sort, q.as_deref(), &given);
        let since = given.remove("updated_since");
        let updated_since = since
            .map(|text| {
                clock::parse(&text).ok_or_else(|| bad("updated_since", "must be an RFC 3339 time, up to the year 9999"))
            })
            .transpose()?;
        let after = cursor.map(|c| Cursor::decode(&c, &fingerprint, sort.key)).transpose()?;
        Ok(Self { limit, sort, after, q, updated_since, filter: read_filter(given)?, fingerprint })
    }

    /// For lists that can only be ordered by creation: whether the order is descending.
    ///
    /// # Errors
    /// `bad_request` for another order.
    pub fn by_creation(&self) -> Result<bool> {
        match self.sort.key {
            SortKey::Created => Ok(self.sort.descending),
            _ => Err(no_order(&[SortKey::Created])),
        }
    }

    /// For lists whose order of creation is a number of the database: the number after which this page begins.
    ///
    /// # Errors
    /// `bad_request` for the cursor of another list.
    pub fn after_number(&self) -> Result<Option<i64>> {
        let Some(after) = &self.after else { return Ok(None) };
        let number = after.value.as_deref().and_then(|value| value.parse().ok());
        number.map(Some).ok_or_else(cursor_of_another_list)
    }

    /// Whether more rows follow this page: the database found one more than the limit, or cut off rows that did not
    /// fit. A row that cannot be read counts too.
    #[must_use]
    pub fn has_more(&self, rows: &[PgRow]) -> bool {
        budget::is_cut(rows) || rows.len() as u64 > self.limit
    }

    /// Cuts `rows` to a page. They were fetched with one more than the limit; `is_cut` says that the database cut off
    /// rows that did not fit. `key` returns a row's id and sorted value.
    pub fn finish<T>(&self, mut rows: Vec<T>, is_cut: bool, key: impl Fn(&T) -> (Uuid, Option<String>)) -> Items<T> {
        let more = is_cut || rows.len() as u64 > self.limit;
        rows.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        let next_cursor = rows.last().filter(|_| more).map(|row| {
            let (id, value) = key(row);
            self.cursor(id, value)
        });
        Items { items: rows, next_cursor }
    }

    fn cursor(&self, id: Uuid, value: Option<String>) -> String {
        Cursor { value, id, fingerprint: self.fingerprint.clone() }.encode()
    }

    /// Writes the page's rows as JSON until the page is full ([`budget::PAGE_BYTES_MAX`]), and the cursor to continue
    /// from there. `key` is the same as for [`Self::finish`].
    ///
    /// # Errors
    /// Those of `view`; `internal` if a row cannot be written as JSON.
    pub fn serialize_items<T, V: Serialize>(
        &self,
        page: Items<T>,
        key: impl Fn(&T) -> (Uuid, Option<String>),
        view: impl Fn(T) -> Result<V>,
    ) -> Result<RawItems> {
        let count = page.items.len();
        let mut last = None;
        let views = page.items.into_iter().map(|row| {
            last = Some(key(&row));
            view(row)
        });
        let items = budget::serialize_until_full(views)?;
        let next_cursor = match last {
            Some((id, value)) if items.len() < count => Some(self.cursor(id, value)),
            _ => page.next_cursor,
        };
        Ok(Items { items, next_cursor })
    }
}

/// The parameters of a query string, each at most once.
///
/// # Errors
/// `bad_request` for a repeated parameter or one that is not UTF-8.
pub fn parameters(query: &str) -> Result<BTreeMap<String, String>> {
    let mut given = BTreeMap::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if value.contains('\0') || value.contains('\u{fffd}') {
            return Err(bad(&name, "must be UTF-8 text without NUL characters"));
        }
        if given.insert(name.clone().into_owned(), value.into_owned()).is_some() {
            return Err(bad(&name, "is given twice"));
        }
    }
    Ok(given)
}

/// Reads the remaining parameters as `F`. Values are converted as serde does for a query string.
///
/// # Errors
/// `bad_request` for a parameter that is unknown or has the wrong type.
pub fn read_filter<F: DeserializeOwned>(given: BTreeMap<String, String>) -> Result<F> {
    let text = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish();
    let pairs = serde_urlencoded::Deserializer::new(url::form_urlencoded::parse(text.as_bytes()));
    serde_path_to_error::deserialize(pairs).map_err(|error| {
        let path = error.path().to_string();
        let message = error.into_inner().to_string();
        // Unknown and missing fields have no path. Their name is in the message.
        let named = message.strip_prefix("unknown field").or(message.strip_prefix("missing field"));
        let name = named.and_then(|rest| rest.split('`').nth(1)).unwrap_or(&path);
        bad(name, &misfit::in_words(&message))
    })
}

/// An SQL condition that one of these columns contains a text, of which the parameter `$n` is the [`pattern`]. True if it is null.
#[must_use]
pub fn contains(n: usize, columns: &[&str]) -> String {
    let any: Vec<String> = columns.iter().map(|column| format!("{column} ~ ${n}")).collect();
    format!("(${n}::text IS NULL OR {})", any.join(" OR "))
}

/// The error for a rejected query parameter. `rule` follows its name: "must be from 1 to 200".
#[must_use]
pub fn bad(name: &str, rule: &str) -> Error {
    let detail = format!("The query parameter `{name}` {rule}.");
    let mut error = Error::new(Code::BadRequest, detail.clone());
    error.errors = vec![FieldError { pointer: name.to_owned(), code: "invalid_value".into(), message: detail }];
    error
}

fn fingerprint(sort: Sort, q: Option<&str>, filter: &BTreeMap<String, String>) -> String {
    let hash = Sha256::digest(format!("{sort:?}{q:?}{filter:?}"));
    BASE64_URL_SAFE_NO_PAD.encode(&hash[..6])
}

impl SortKey {
    /// Its name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created_at",
            Self::Updated => "updated_at",
            Self::Name => "name",
            Self::Priority => "priority",
            Self::Tokens => "tokens",
        }
    }
}

/// The error for an order that a list does not support; `has` are the ones it supports.
#[must_use]
pub fn no_order(has: &[SortKey]) -> Error {
    let names: Vec<_> = has.iter().map(|key| format!("`{}`", key.as_str())).collect();
    bad("sort", &format!("must be {} here; put `-` in front for descending order", names.join(" or ")))
}

impl Sort {
    fn parse(text: &str) -> Result<Self> {
        let (descending, name) = text.strip_prefix('-').map_or((false, text), |name| (true, name));
        let key = match name {
            "created_at" => SortKey::Created,
            "updated_at" => SortKey::Updated,
            "name" | "title" => SortKey::Name,
            "priority" => SortKey::Priority,
            "tokens" => SortKey::Tokens,
            _ => {
                let rule = "must be `created_at`, or for some lists `updated_at`, `name`, `priority` or `tokens`";
                return Err(bad("sort", &format!("{rule}; put `-` in front for descending order")));
            }
        };
        Ok(Self { key, descending })
    }
}

fn cursor_of_another_list() -> Error {
    bad("cursor", "does not belong to this list with these filters")
}

impl Cursor {
    fn encode(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn decode(text: &str, fingerprint: &str, key: SortKey) -> Result<Self> {
        let cursor: Option<Self> =
            BASE64_URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        cursor.filter(|c| c.fingerprint == fingerprint && c.fits(key)).ok_or_else(cursor_of_another_list)
    }

    /// Whether the value is one that a list sorted by `key` can give.
    fn fits(&self, key: SortKey) -> bool {
        match (key, self.value.as_deref()) {
            (SortKey::Created, value) => value.is_none_or(|value| value.parse::<i64>().is_ok()),
            (SortKey::Updated, Some(value)) => clock::parse_stored(value).is_some(),
            (SortKey::Name, Some(value)) => !value.contains('\0'),
            (SortKey::Priority | SortKey::Tokens, Some(value)) => value.parse::<i32>().is_ok(),
            (_, None) => false,
        }
    }
}
