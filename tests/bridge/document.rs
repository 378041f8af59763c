//! `docs/bridge.md`: its examples are played against a real server, in their order.

use serde_json::{Value, json};

use super::Socket;
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn placeholder() {}
