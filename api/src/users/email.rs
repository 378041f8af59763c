//! Email addresses as names of accounts: folded in one way, for whoever looks one up or counts tries.
//!
//! Addresses of new accounts are ASCII. Letters beyond it look alike, and are made lower-case in more ways than one: `İ` is two
//! characters in Rust and one in PostgreSQL. [`fold`] therefore touches A to Z alone, and no other code and no database folds.

/// The form of an address that accounts and tries are known by.
#[must_use]
pub fn fold(address: &str) -> String {
    address.trim().to_ascii_lowercase()
}

/// Something that mail could be sent to: in ASCII, one @, a name before it and a host behind it.
///
/// # Errors
/// What it must be.
pub fn check(address: &str, _: &()) -> garde::Result {
    const QUOTED: &[u8] = b"\"(),:;<>[\\]";
    let is_name = |name: &str| {
        (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic() && !QUOTED.contains(&b))
    };
    let is_host = |host: &str| {
        let is_label = |label: &str| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
        host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.') && host.split('.').all(is_label)
    };
    let fits =
        address.len() <= 254 && address.split_once('@').is_some_and(|(name, host)| is_name(name) && is_host(host));
    if fits { Ok(()) } else { Err(garde::Error::new("must be an email address in ASCII, such as mara@example.org")) }
}

/// What somebody is called until they say otherwise.
#[must_use]
pub fn name_of(address: &str) -> &str {
    address.split('@').next().unwrap_or(address)
}
