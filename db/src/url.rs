//! URLs of databases, as operators write them.

use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

/// A PostgreSQL URL in the form that our libraries read. libpq also accepts a user without a host, `postgres://user@/database?host=/run/postgresql`,
/// which URLs in general cannot have: the user goes into the query.
///
/// # Errors
/// What is wrong with it, without its password.
pub fn read(text: &str) -> Result<String, String> {
    let scheme = ["postgres", "postgresql"]
        .into_iter()
        .find(|scheme| text.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("://")));
    let Some(scheme) = scheme else { return Err("must begin with postgres://".to_owned()) };
    let rest = &text[scheme.len() + "://".len()..];
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let url = match authority.rsplit_once('@') {
        Some((user, port)) if port.is_empty() || port.starts_with(':') => {
            let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            let named = [("user", name), ("password", password), ("port", port.trim_start_matches(':'))];
            let given = named.iter().filter(|(_, value)| !value.is_empty());
            // What separates the parts of a query may stand in a name or a password.
            let given = given.map(|(name, value)| format!("{name}={}", value.replace('&', "%26").replace('+', "%2B")));
            let query: Vec<_> = given.chain((!query.is_empty()).then(|| query.to_owned())).collect();
            format!("{scheme}://{path}?{}", query.join("&"))
        }
        _ => text.to_owned(),
    };
    match PgConnectOptions::from_str(&url) {
        Ok(_) => Ok(url),
        Err(error) => Err(format!("is not a URL of PostgreSQL: {error}")),
    }
}
