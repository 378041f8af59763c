//! An entry in the operator's list of hosts that tenants may use.
//!
//! - `api.example.com` or `llm.intranet:8000` or `http://10.0.0.7:8000`: exactly this host. It may be private and, unless the entry
//!   says `https://`, use plain http. Without a port, every port is allowed.
//! - `*.example.com`: any name below; `*`: any name. Only public addresses and https, because the operator does not control all
//!   such names. An entry with a port allows that port too.

use std::str::FromStr;

use url::{Host, Url};

/// What an entry allows for a URL, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grant {
    None,
    /// Listed; the rules for public hosts apply.
    Public,
    /// The same, and the port is listed.
    PublicPort,
    /// Everything is allowed.
    Full,
}

/// A host, or a family of hosts, that tenants' endpoints may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    scheme: Option<&'static str>,
    host: Pattern,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Any,
    /// With its leading dot.
    Below(String),
    Exactly(Host),
}

/// An entry that is not `[scheme://]host[:port]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an allowed host is written `host`, `host:port`, `https://host`, `*.domain` or `*`")]
pub struct InvalidAllowedHost;

impl FromStr for AllowedHost {
    type Err = InvalidAllowedHost;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim().trim_end_matches('/');
        let (scheme, rest) = match text.split_once("://") {
            Some(("http", rest)) => (Some("http"), rest),
            Some(("https", rest)) => (Some("https"), rest),
            Some(_) => return Err(InvalidAllowedHost),
            None => (None, text),
        };
        let (host, port) = split_port(rest)?;
        let host = match host.strip_prefix("*.") {
            _ if host == "*" => Pattern::Any,
            Some(domain) => Pattern::Below(format!(".{}", parse_host(domain)?)),
            None => Pattern::Exactly(parse_host(host)?),
        };
        Ok(Self { scheme, host, port })
    }
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), InvalidAllowedHost> {
    match text.rsplit_once(':') {
        // The colon may belong to a bracketed IPv6 address.
        Some((host, port)) if !port.ends_with(']') => Ok((host, Some(port.parse().map_err(|_| InvalidAllowedHost)?))),
        _ => Ok((text, None)),
    }
}

fn parse_host(text: &str) -> Result<Host, InvalidAllowedHost> {
    match Host::parse(text.trim_end_matches('.')).map_err(|_| InvalidAllowedHost)? {
        Host::Domain(name) if name.is_empty() || name.contains('*') => Err(InvalidAllowedHost),
        host => Ok(host),
    }
}

impl AllowedHost {
    pub(super) fn grant(&self, url: &Url) -> Grant {
        let port = url.port_or_known_default();
        if self.scheme.is_some_and(|scheme| scheme != url.scheme()) || (self.port.is_some() && self.port != port) {
            return Grant::None;
        }
        let public = if self.port.is_some() { Grant::PublicPort } else { Grant::Public };
        match (&self.host, url.host()) {
            (Pattern::Exactly(Host::Domain(name)), Some(Host::Domain(host))) if same_name(name, host) => Grant::Full,
            (Pattern::Exactly(Host::Ipv4(address)), Some(Host::Ipv4(host))) if *address == host => Grant::Full,
            (Pattern::Exactly(Host::Ipv6(address)), Some(Host::Ipv6(host))) if *address == host => Grant::Full,
            (Pattern::Any, Some(_)) => public,
            (Pattern::Below(suffix), Some(Host::Domain(host))) if without_dot(host).ends_with(suffix.as_str()) => {
                public
            }
            _ => Grant::None,
        }
    }

    /// Whether the operator listed this very host, so that its name may resolve to a private address.
    pub(super) fn names_exactly(&self, host: &str) -> bool {
        matches!(&self.host, Pattern::Exactly(Host::Domain(name)) if same_name(name, host))
    }
}

fn without_dot(name: &str) -> &str {
    name.trim_end_matches('.')
}

fn same_name(name: &str, host: &str) -> bool {
    without_dot(host).eq_ignore_ascii_case(name)
}
