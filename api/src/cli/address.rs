//! Where the server answers, for what commands print.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sqlx::PgConnection;

use crate::{config::Config, life};
use base::error::Result;

/// The address of the server that a command runs next to: the one that people use if it is set, else the one where a running server
/// listens, else the one where it would.
pub(super) async fn of_server(config: &Config, db: &mut PgConnection) -> Result<String> {
    if let Some(url) = &config.public_url {
        return Ok(url.clone());
    }
    Ok(life::announced(db).await?.unwrap_or_else(|| here(config.bind)))
}

/// How this machine reaches a server that listens on an address.
pub(super) fn here(mut bind: SocketAddr) -> String {
    if bind.ip().is_unspecified() {
        bind.set_ip(match bind.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{bind}")
}
