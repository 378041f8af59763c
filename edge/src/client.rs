//! Where a request comes from: the address that connected or, if that is a trusted proxy, the address that the proxy
//! names.
//!
//! Limits per address use this address. Headers from anybody else are ignored: a sender could pretend to be a new
//! client with each request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use actix_web::http::header::HeaderMap;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The addresses and networks whose `X-Forwarded-For` we trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies(Vec<(IpAddr, u32)>);

impl Proxies {
    /// Reads addresses (`10.0.0.1`) and networks (`10.0.0.0/8`).
    ///
    /// # Errors
    /// Returns the item that is neither.
    pub fn parse(items: &[String]) -> Result<Self, String> {
        items.iter().map(|item| network(item).ok_or_else(|| item.clone())).collect::<Result<_, _>>().map(Self)
    }

    /// Whether an address belongs to a trusted proxy.
    #[must_use]
    pub fn trust(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|(network, bits)| match (network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => begins_alike(*network, address, *bits),
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differ = network.to_bits() ^ address.to_bits();
                *bits == 0 || differ.checked_shr(128 - bits).unwrap_or(0) == 0
            }
            _ => false,
        })
    }

    /// The client of a request: going back from the connection, the first address that is not a trusted proxy.
    #[must_use]
    pub fn client(&self, peer: Option<SocketAddr>, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip()).to_canonical();
        if !self.trust(client) {
            return client;
        }
        let lines: Vec<&str> = headers.get_all(FORWARDED_FOR).filter_map(|line| line.to_str().ok()).collect();
        for named in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
            // Something that is not an address was not written by a trusted proxy, nor was anything before it.
            let Some(address) = address(named.trim()) else { break };
            client = address;
            if !self.trust(client) {
                break;
            }
        }
        client
    }
}

/// The network that counts as one client. An IPv6 customer usually has a whole /64.
#[must_use]
pub fn household(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

fn begins_alike(network: Ipv4Addr, address: Ipv4Addr, bits: u32) -> bool {
    let differ = network.to_bits() ^ address.to_bits();
    bits == 0 || differ.checked_shr(32 - bits).unwrap_or(0) == 0
}

fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(bits_max), |bits| bits.parse().ok().filter(|bits| *bits <= bits_max))?;
    Some((address, bits))
}

/// Reads an address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}
