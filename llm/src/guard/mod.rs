//! Which addresses the server may connect to for a tenant.
//!
//! A tenant's endpoint has to pass three checks: the form of the URL ([`parse_url`]), the operator's list ([`Guard::check`]), and
//! the addresses that its name resolves to (`resolver.rs`, at connect time, so that the server connects to exactly the checked
//! addresses). Literal addresses never reach the resolver and are checked with the URL. The operator's endpoints only have to pass
//! the first check.
//!
//! It must never reveal the address of a name. A tenant could use that to map the operator's network.

pub mod address;
mod allowed;
mod resolver;

use std::net::IpAddr;

use url::{Host, Url};

pub use allowed::{AllowedHost, InvalidAllowedHost};
pub(super) use resolver::GuardedResolver;

use allowed::Grant;

/// The most bytes of an endpoint's address.
pub const URL_BYTES_MAX: usize = 2_048;

/// Ports that a public host may use without an entry for another port.
const PORTS: [u16; 2] = [443, 8443];

/// Names that mean this machine or its network, whatever they resolve to.
const LOCAL_SUFFIXES: [&str; 9] = [
    ".localhost",
    ".local",
    ".localdomain",
    ".internal",
    ".intranet",
    ".lan",
    ".home.arpa",
    ".in-addr.arpa",
    ".ip6.arpa",
];

/// Why the server does not call an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointRefused {
    /// Not an absolute URL with a host, or too long.
    #[error("it is not a valid URL of at most {URL_BYTES_MAX} bytes")]
    InvalidUrl,
    /// Neither https nor, where allowed, http.
    #[error("it must be an https URL")]
    Scheme,
    /// A user name or password in the URL.
    #[error("it must not contain a user name or password")]
    UserInfo,
    /// A `#…` part.
    #[error("it must not contain a fragment")]
    Fragment,
    /// A port that the operator did not allow.
    #[error("port {0} is not allowed")]
    Port(u16),
    /// A host that the operator did not list.
    #[error("the operator does not allow this host")]
    NotAllowed,
    /// A loopback, private or otherwise special address or name.
    #[error("its host is not a public address")]
    PrivateAddress,
    /// The key has characters that no HTTP header can carry.
    #[error("its API key contains characters that cannot be sent")]
    Key,
}

impl EndpointRefused {
    /// A stable code for validation errors.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidUrl => "invalid_url",
            Self::Scheme => "https_required",
            Self::UserInfo => "userinfo_not_allowed",
            Self::Fragment => "fragment_not_allowed",
            Self::Port(_) => "port_not_allowed",
            Self::NotAllowed => "host_not_allowed",
            Self::PrivateAddress => "private_address",
            Self::Key => "invalid_key",
        }
    }
}

/// Parses an http(s) URL without user info or fragment. Numeric hosts in any notation become addresses.
///
/// # Errors
/// [`EndpointRefused`] says what is wrong.
pub fn parse_url(text: &str) -> Result<Url, EndpointRefused> {
    let text = text.trim();
    // The parser would silently drop tabs and line breaks inside the text.
    if text.len() > URL_BYTES_MAX || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(EndpointRefused::InvalidUrl);
    }
    let url = Url::parse(text).map_err(|_| EndpointRefused::InvalidUrl)?;
    check_form(&url)?;
    Ok(url)
}

/// The rules for every endpoint, no matter who set it.
pub(super) fn check_form(url: &Url) -> Result<(), EndpointRefused> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(EndpointRefused::Scheme);
    }
    if url.host().is_none() || url.port() == Some(0) {
        return Err(EndpointRefused::InvalidUrl);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EndpointRefused::UserInfo);
    }
    if url.fragment().is_some() {
        return Err(EndpointRefused::Fragment);
    }
    Ok(())
}

/// The operator's rules for endpoints that tenants set.
#[derive(Debug)]
pub(super) struct Guard {
    allowed: Vec<AllowedHost>,
    allow_private: bool,
}

impl Guard {
    pub(super) fn new(allowed: Vec<AllowedHost>, allow_private: bool) -> Self {
        Self { allowed, allow_private }
    }

    /// Checks everything about a URL that needs no look-up.
    pub(super) fn check(&self, url: &Url) -> Result<(), EndpointRefused> {
        check_form(url)?;
        let listed = self.allowed.iter().map(|entry| entry.grant(url)).max().unwrap_or(Grant::None);
        if listed == Grant::Full {
            return Ok(());
        }
        let local = is_local(url);
        if self.allow_private && local {
            return Ok(());
        }
        // Report errors of the address itself before those of the operator's list.
        if url.scheme() != "https" && !self.allow_private {
            return Err(EndpointRefused::Scheme);
        }
        if local {
            return Err(EndpointRefused::PrivateAddress);
        }
        // The resolver allows private addresses for a host that the operator listed, so such a host must match its entry in full.
        let named = url.domain().is_some_and(|host| self.allowed.iter().any(|entry| entry.names_exactly(host)));
        if named || (listed == Grant::None && !self.allowed.is_empty()) {
            return Err(EndpointRefused::NotAllowed);
        }
        let port = url.port_or_known_default().unwrap_or_default();
        if !PORTS.contains(&port) && listed != Grant::PublicPort && !self.allow_private {
            return Err(EndpointRefused::Port(port));
        }
        Ok(())
    }

    /// Whether the server may connect to `address` for `host`, on any port.
    fn may_connect(&self, host: &str, address: IpAddr) -> bool {
        self.allow_private || address::is_public(address) || self.allowed.iter().any(|entry| entry.names_exactly(host))
    }
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => !address::is_public(address.into()),
        Some(Host::Ipv6(address)) => !address::is_public(address.into()),
        Some(Host::Domain(name)) => is_local_name(name),
        None => true,
    }
}

/// Names without a dot are resolved through search domains and hosts files, so they count as local.
fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    !name.contains('.') || LOCAL_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}
