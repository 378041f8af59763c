//! Where the frontend of a session is.

use std::sync::Arc;

use uuid::Uuid;

use super::hub::Connection;

/// Where a session's frontend is.
pub enum Frontend {
    Here(Arc<Connection>),
    /// Connected to another server.
    There {
        instance: i64,
        connection: Uuid,
    },
    /// Not connected. `left` says whether it was.
    Nowhere {
        left: bool,
    },
}
