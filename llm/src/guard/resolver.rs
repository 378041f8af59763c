//! Name look-up that only returns addresses that the guard allows.
//!
//! The HTTP client connects to exactly the returned addresses, so a name cannot change its address between check and connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{EndpointRefused, Guard};

/// The resolver of the client for tenants' endpoints.
#[derive(Debug, Clone)]
pub(in super::super) struct GuardedResolver {
    guard: Arc<Guard>,
}

impl GuardedResolver {
    pub(in super::super) fn new(guard: Arc<Guard>) -> Self {
        Self { guard }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.guard);
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if found.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into());
            }
            let passed: Vec<SocketAddr> =
                found.into_iter().filter(|address| guard.may_connect(name.as_str(), address.ip())).collect();
            if passed.is_empty() {
                return Err(EndpointRefused::PrivateAddress.into());
            }
            Ok(Box::new(passed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::AllowedHost;
    use super::*;

    async fn resolve(guard: Guard) -> Result<usize, String> {
        let name: Name = "localhost".parse().map_err(|_| "no name".to_owned())?;
        let found = GuardedResolver::new(Arc::new(guard)).resolve(name).await;
        found.map(Iterator::count).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_name_on_this_machine_gives_no_address_unless_the_operator_says_so() {
        assert_eq!(resolve(Guard::new(Vec::new(), false)).await, Err(EndpointRefused::PrivateAddress.to_string()));
        let listed = |entry: &str| Guard::new(entry.parse::<AllowedHost>().into_iter().collect(), false);
        assert!(resolve(listed("*")).await.is_err());
        assert!(resolve(listed("localhost")).await.is_ok_and(|count| count > 0));
        assert!(resolve(Guard::new(Vec::new(), true)).await.is_ok());
    }
}
