//! Which IP addresses are public, according to the IANA special-purpose registries.
//!
//! In doubt an address is not public: only addresses known to be globally reachable unicast are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is a globally reachable unicast address.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        // "This network", private, loopback, and everything from multicast up.
        (0 | 10 | 127 | 224..=255, _, _) => true,
        // Carrier-grade NAT.
        (100, 64..=127, _) => true,
        // Link-local, with the metadata services of clouds.
        (169, 254, _) => true,
        (172, 16..=31, _) => true,
        // Protocol assignments, documentation, 6to4 relays, private.
        (192, 0, 0 | 2) | (192, 88, 99) | (192, 168, _) => true,
        // Benchmarking, documentation.
        (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => true,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // Only 2000::/3 is global unicast. This excludes loopback, unspecified, mapped and compatible IPv4, NAT64, unique local,
    // link-local and multicast.
    if a & 0xe000 != 0x2000 {
        return false;
    }
    let special = match (a, b) {
        // 2001::/23: protocol assignments with Teredo, benchmarking and ORCHID; 2001:db8::/32: documentation.
        (0x2001, 0..=0x01ff | 0x0db8) => true,
        // 6to4 embeds an IPv4 address.
        (0x2002, _) => true,
        // 3fff::/20: documentation.
        (0x3fff, 0..=0x0fff) => true,
        _ => false,
    };
    !special
}
