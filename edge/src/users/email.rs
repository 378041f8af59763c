//! Email addresses as names of accounts, with the only code that folds them.
//!
//! Addresses of new accounts are ASCII. Other letters can look alike, and there are several ways to lower-case them:
//! `İ` becomes two characters in Rust and one in PostgreSQL. [`fold`] therefore only changes A to Z. No other code and
//! no database function folds addresses.

/// The form of an address that identifies an account and counts sign-in attempts.
#[must_use]
pub fn fold(address: &str) -> String {
    address.trim().to_ascii_lowercase()
}

/// Checks that mail could be sent to an address: ASCII, one @, a name before it and a host after it.
///
/// # Errors
/// What an address must look like.
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

/// The default name of somebody with this address.
#[must_use]
pub fn name_of(address: &str) -> &str {
    address.split('@').next().unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_to_which_mail_could_be_sent() {
        let name = |chars: usize| format!("{}@example.org", "n".repeat(chars));
        let host = |chars: usize| format!("mara@{}", "h".repeat(chars));
        for address in [
            "mara@example.org",
            "m.a+r'a_9@a-b.c-d.example",
            "mara@localhost",
            "MARA@EXAMPLE.ORG",
            "m@9",
            &name(64),
            &host(249),
        ] {
            assert!(check(address, &()).is_ok(), "{address}");
        }
        for address in [
            "",
            "mara",
            "@example.org",
            "mara@",
            "mara@@example.org",
            "mara@example@org",
            "mara@example..org",
            "mara@.example.org",
            "mara@example.org.",
            "mara@-example.org",
            "mara@example-.org",
            "mara@exa_mple.org",
            "mara@exa mple.org",
            "ma ra@example.org",
            "ma,ra@example.org",
            "<mara>@example.org",
            "mär@example.org",
            "mara@exämple.org",
            "mara@example.org\n",
            &name(65),
            &host(250),
        ] {
            assert!(check(address, &()).is_err(), "{address}");
        }
    }
}
