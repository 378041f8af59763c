//! What each route requires of a credential, whose rows it reaches, and what a player's token may do there. A route
//! that is not listed is denied.

use std::sync::LazyLock;

use crate::patterns::{Patterns, Row, fits};

use super::{
    Scope::{self, Admin, Gm, Play, Read, Tools, Write},
    Scopes,
};

/// What a token that is restricted to a player character may do on a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Player {
    /// Nothing: 403.
    Never,
    /// The same as everyone; the handler leaves out what players may not see.
    Filtered,
    /// Only act as its own character, or ask about it.
    Own,
}

/// Whose rows a route reads and writes. A token that is restricted to a campaign or a player stays within that
/// campaign, whatever its scopes. Each route states here how that is ensured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Rows of the campaign in its path. A token for another campaign finds nothing.
    Campaign,
    /// Rows of the tenant, or of a new campaign. Restricted tokens are rejected.
    Tenant,
    /// Rows that the caller may see. The handler limits a restricted token to its own campaign.
    Callers,
    /// No rows of a tenant.
    Shared,
}

/// The requirements of one route.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub method: &'static str,
    pub path: &'static str,
    /// None if any valid credential will do.
    pub scope: Option<Scope>,
    /// A second scope that is required too.
    pub also: Option<Scope>,
    /// A scope that is accepted instead of `scope`, for callers that read what they started themselves.
    pub or: Option<Scope>,
    pub reach: Reach,
    pub player: Player,
    /// The middleware checks nothing: the credential comes in the first frame, because a browser cannot set headers on
    /// a WebSocket. `bridge::connect` requires the scope `play` or `gm`, checks the tenant's origins, and lets a
    /// player's token use only its own session.
    pub in_first_frame: bool,
    /// The largest body, in bytes.
    pub body_bytes_max: usize,
}

/// The largest body in bytes, unless a route takes files.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// The largest file in bytes.
pub const FILE_BYTES_MAX: usize = 32 * 1024 * 1024;

const fn on(method: &'static str, path: &'static str, reach: Reach, scope: Scope, player: Player) -> Access {
    Access {
        method,
        path,
        scope: Some(scope),
        also: None,
        or: None,
        reach,
        player,
        in_first_frame: false,
        body_bytes_max: BODY_BYTES_MAX,
    }
}

impl Access {
    const fn and(self, scope: Scope) -> Self {
        Self { also: Some(scope), ..self }
    }

    const fn or(self, scope: Scope) -> Self {
        Self { or: Some(scope), ..self }
    }

    /// A route whose body is a file.
    const fn file(self) -> Self {
        Self { body_bytes_max: FILE_BYTES_MAX, ..self }
    }

    /// A required scope that the caller lacks.
    #[must_use]
    pub fn lacking(&self, scopes: Scopes) -> Option<Scope> {
        let does_as_well = |scope| Some(scope) == self.scope && self.or.is_some_and(|or| scopes.has(or));
        self.scopes().find(|scope| !scopes.has(*scope) && !does_as_well(*scope))
    }

    /// Whether its path's pattern fits a requested path.
    #[must_use]
    pub fn fits(&self, path: &str) -> bool {
        fits(self.path, path)
    }

    /// All required scopes.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        self.scope.into_iter().chain(self.also)
    }
}

use Player::{Filtered, Never, Own};
use Reach::{Callers, Campaign, Shared, Tenant};

/// Every route under `/v1`.
#[rustfmt::skip]
pub const TABLE: &[Access] = &[
    Access { scope: None, ..on("POST", "/v1/auth/token", Tenant, Read, Never) },
    Access { scope: None, ..on("GET",  "/v1/whoami", Callers, Read, Own) },
    on("GET",    "/v1/tenant", Tenant, Read, Never),
    on("PATCH",  "/v1/tenant", Tenant, Admin, Never),
    on("GET",    "/v1/models", Tenant, Read, Never),
    on("POST",   "/v1/models", Tenant, Admin, Never),
    on("GET",    "/v1/models/{x}", Tenant, Read, Never),
    on("PATCH",  "/v1/models/{x}", Tenant, Admin, Never),
    on("DELETE", "/v1/models/{x}", Tenant, Admin, Never),
    on("GET",    "/v1/models/{x}/available", Tenant, Admin, Never),
    on("POST",   "/v1/models/{x}/test", Tenant, Admin, Never).and(Gm),
    on("GET",    "/v1/usage", Callers, Read, Never),
    on("GET",    "/v1/api-keys", Tenant, Admin, Never),
    on("POST",   "/v1/api-keys", Tenant, Admin, Never),
    on("GET",    "/v1/api-keys/{x}", Tenant, Admin, Never),
    on("PATCH",  "/v1/api-keys/{x}", Tenant, Admin, Never),
    on("DELETE", "/v1/api-keys/{x}", Tenant, Admin, Never),
    on("GET",    "/v1/users", Tenant, Admin, Never),
    on("POST",   "/v1/users", Tenant, Admin, Never),
    on("GET",    "/v1/users/{x}", Tenant, Admin, Never),
    on("PATCH",  "/v1/users/{x}", Tenant, Admin, Never),
    on("DELETE", "/v1/users/{x}", Tenant, Admin, Never),
    on("POST",   "/v1/users/{x}/reset", Tenant, Admin, Never),
    on("GET",    "/v1/erasures/{x}", Tenant, Admin, Never).and(Gm),

    on("POST",   "/v1/dice/roll", Callers, Play, Own),
    on("POST",   "/v1/dice/analyze", Shared, Read, Own),
    on("POST",   "/v1/dice/verify", Callers, Read, Own),
    on("GET",    "/v1/dice/seeds", Tenant, Read, Never),
    on("POST",   "/v1/dice/seeds/rotate", Tenant, Gm, Never),

    on("GET",    "/v1/campaigns", Callers, Read, Filtered),
    on("POST",   "/v1/campaigns", Tenant, Write, Never),
    on("GET",    "/v1/campaigns/{c}", Campaign, Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}", Campaign, Write, Never),
    on("DELETE", "/v1/campaigns/{c}", Campaign, Write, Never),
    on("POST",   "/v1/campaigns/{c}/fork", Tenant, Write, Never).and(Gm),
    on("GET",    "/v1/campaigns/{c}/changes", Campaign, Read, Filtered),
    on("GET",    "/v1/campaigns/{c}/events", Campaign, Read, Filtered),
    on("POST",   "/v1/campaigns/import", Callers, Write, Never).and(Gm).file(),
    on("GET",    "/v1/campaigns/{c}/export", Campaign, Read, Never).and(Gm),
    on("GET",    "/v1/campaigns/{c}/lorebook.json", Campaign, Read, Never),
    on("POST",   "/v1/campaigns/{c}/import/seed", Campaign, Write, Never).file(),
    on("POST",   "/v1/campaigns/{c}/import/character-card", Campaign, Write, Never).file(),
    on("POST",   "/v1/campaigns/{c}/import/lorebook", Campaign, Write, Never).file(),

    on("GET",    "/v1/campaigns/{c}/characters", Campaign, Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/characters", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/characters/{x}", Campaign, Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}/characters/{x}", Campaign, Write, Never),
    on("DELETE", "/v1/campaigns/{c}/characters/{x}", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/characters/{x}/revisions", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/characters/{x}/revisions/{seq}/restore", Campaign, Write, Never).and(Gm),
    on("POST",   "/v1/campaigns/{c}/characters/{x}/rest", Campaign, Play, Own),
    on("GET",    "/v1/rules/srd/{x}", Shared, Read, Filtered),

    on("GET",    "/v1/campaigns/{c}/npcs", Campaign, Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/npcs", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/npcs/{x}", Campaign, Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}/npcs/{x}", Campaign, Write, Never),
    on("DELETE", "/v1/campaigns/{c}/npcs/{x}", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/npcs/{x}/revisions", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/npcs/{x}/revisions/{seq}/restore", Campaign, Write, Never).and(Gm),
    on("POST",   "/v1/campaigns/{c}/npcs/{x}/instructions/accept", Campaign, Write, Never),
    on("POST",   "/v1/campaigns/{c}/npcs/{x}/instructions/discard", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/npcs/{x}/card.json", Campaign, Read, Never),
    on("GET",    "/v1/campaigns/{c}/npcs/{x}/card.png", Campaign, Read, Never),
    on("GET",    "/v1/campaigns/{c}/npcs/{x}/memories", Campaign, Read, Own),
    on("POST",   "/v1/campaigns/{c}/npcs/{x}/memories", Campaign, Write, Never),
    on("POST",   "/v1/campaigns/{c}/npcs/{x}/prompt", Campaign, Gm, Never),
    on("GET",    "/v1/campaigns/{c}/npcs/{x}/scores", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/npcs/{x}/turns", Campaign, Play, Own),
    on("POST",   "/v1/campaigns/{c}/npcs/{x}/greet", Campaign, Play, Own),

    on("GET",    "/v1/campaigns/{c}/owners", Campaign, Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/owners", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/owners/{x}", Campaign, Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}/owners/{x}", Campaign, Write, Never),
    on("DELETE", "/v1/campaigns/{c}/owners/{x}", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/owners/{x}/revisions", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/owners/{x}/revisions/{seq}/restore", Campaign, Write, Never).and(Gm),
    on("GET",    "/v1/campaigns/{c}/owners/{x}/memories", Campaign, Read, Own),
    on("POST",   "/v1/campaigns/{c}/owners/{x}/memories", Campaign, Write, Never),
    on("POST",   "/v1/campaigns/{c}/owners/{x}/prompt", Campaign, Gm, Never),
    on("GET",    "/v1/campaigns/{c}/owners/{x}/scores", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/owners/{x}/turns", Campaign, Play, Own),
    on("POST",   "/v1/campaigns/{c}/owners/{x}/greet", Campaign, Play, Own),

    on("GET",    "/v1/campaigns/{c}/lore", Campaign, Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/lore", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/lore/{x}", Campaign, Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}/lore/{x}", Campaign, Write, Never),
    on("DELETE", "/v1/campaigns/{c}/lore/{x}", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/lore/{x}/revisions", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/lore/{x}/revisions/{seq}/restore", Campaign, Write, Never).and(Gm),
    on("GET",    "/v1/campaigns/{c}/lore/{x}/links", Campaign, Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/lore/{x}/mend-links", Campaign, Write, Never),
    on("POST",   "/v1/campaigns/{c}/lore/{x}/duplicate", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/lore-totals", Campaign, Read, Never),
    on("GET",    "/v1/campaigns/{c}/lore-duplicates", Campaign, Read, Never),
    on("POST",   "/v1/campaigns/{c}/lore/bulk", Campaign, Write, Never),
    on("POST",   "/v1/campaigns/{c}/lore/bulk/{x}/undo", Campaign, Write, Never),

    on("GET",    "/v1/campaigns/{c}/memories", Campaign, Read, Own),
    on("GET",    "/v1/campaigns/{c}/memories/search", Campaign, Read, Own),
    on("GET",    "/v1/campaigns/{c}/memories/{x}", Campaign, Read, Own),
    on("PATCH",  "/v1/campaigns/{c}/memories/{x}", Campaign, Write, Never),
    on("DELETE", "/v1/campaigns/{c}/memories/{x}", Campaign, Write, Never),
    on("POST",   "/v1/campaigns/{c}/memories/{x}/move", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/broadcasts", Campaign, Read, Never),
    on("DELETE", "/v1/campaigns/{c}/broadcasts/{x}", Campaign, Write, Never),

    on("GET",    "/v1/campaigns/{c}/scenes", Campaign, Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/scenes", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/scenes/{x}", Campaign, Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}/scenes/{x}", Campaign, Write, Never),
    on("DELETE", "/v1/campaigns/{c}/scenes/{x}", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/scenes/{x}/revisions", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/scenes/{x}/revisions/{seq}/restore", Campaign, Write, Never).and(Gm),

    on("GET",    "/v1/campaigns/{c}/sessions", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/sessions", Campaign, Gm, Never),
    on("GET",    "/v1/campaigns/{c}/sessions/{x}", Campaign, Gm, Never),
    on("PATCH",  "/v1/campaigns/{c}/sessions/{x}", Campaign, Gm, Never),
    on("DELETE", "/v1/campaigns/{c}/sessions/{x}", Campaign, Gm, Never),
    on("PUT",    "/v1/campaigns/{c}/sessions/{x}/world-state", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/sessions/{x}/events", Campaign, Play, Own),
    on("GET",    "/v1/campaigns/{c}/sessions/{x}/delta", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/sessions/{x}/prompt", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/sessions/{x}/turns", Campaign, Gm, Never),

    Access { scope: None, in_first_frame: true, ..on("GET", "/v1/campaigns/{c}/bridge", Campaign, Play, Own) },

    on("GET",    "/v1/campaigns/{c}/encounters", Campaign, Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/encounters", Campaign, Play, Never),
    on("GET",    "/v1/campaigns/{c}/encounters/{x}", Campaign, Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}/encounters/{x}", Campaign, Write, Never),
    on("DELETE", "/v1/campaigns/{c}/encounters/{x}", Campaign, Write, Never),
    on("POST",   "/v1/campaigns/{c}/encounters/{x}/actions", Campaign, Play, Own),
    on("POST",   "/v1/campaigns/{c}/encounters/{x}/participants", Campaign, Play, Never),
    on("DELETE", "/v1/campaigns/{c}/encounters/{x}/participants/{participant}", Campaign, Play, Never),
    on("POST",   "/v1/campaigns/{c}/encounters/{x}/undo", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/encounters/{x}/end", Campaign, Play, Never),
    on("POST",   "/v1/campaigns/{c}/encounters/{x}/commit", Campaign, Play, Never),

    on("GET",    "/v1/campaigns/{c}/messages", Campaign, Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/messages", Campaign, Write, Never),
    on("GET",    "/v1/campaigns/{c}/messages/{x}", Campaign, Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}/messages/{x}", Campaign, Write, Never),
    on("DELETE", "/v1/campaigns/{c}/messages/{x}", Campaign, Write, Never),

    on("GET",    "/v1/campaigns/{c}/dice/seeds", Campaign, Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/dice/seeds/rotate", Campaign, Gm, Never),

    on("GET",    "/v1/campaigns/{c}/tools", Campaign, Read, Never),
    on("POST",   "/v1/campaigns/{c}/tools/{x}", Campaign, Tools, Never),

    on("POST",   "/v1/campaigns/{c}/act", Campaign, Play, Own),
    on("POST",   "/v1/campaigns/{c}/actions", Campaign, Play, Own),
    on("POST",   "/v1/campaigns/{c}/pray", Campaign, Play, Own),
    on("GET",    "/v1/campaigns/{c}/players/{x}/replies", Campaign, Play, Own),
    on("GET",    "/v1/campaigns/{c}/players/{x}/replies/events", Campaign, Play, Own),
    on("POST",   "/v1/campaigns/{c}/players/{x}/replies/{reply}/ack", Campaign, Play, Own),
    on("POST",   "/v1/campaigns/{c}/replies/{x}/ack", Campaign, Play, Own),
    on("GET",    "/v1/campaigns/{c}/significance", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/significance/rehearse", Campaign, Gm, Never),
    on("GET",    "/v1/campaigns/{c}/player-links", Campaign, Play, Never),
    on("POST",   "/v1/campaigns/{c}/player-links", Campaign, Play, Never),
    on("GET",    "/v1/campaigns/{c}/player-links/{x}", Campaign, Play, Never),
    on("DELETE", "/v1/campaigns/{c}/player-links/{x}", Campaign, Play, Never),
    on("GET",    "/v1/campaigns/{c}/reactions", Campaign, Gm, Never),
    on("GET",    "/v1/campaigns/{c}/reactions/{x}", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/reactions/{x}/end", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/reactions/{x}/retry", Campaign, Gm, Never),
    on("GET",    "/v1/campaigns/{c}/commands", Campaign, Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/commands/{x}", Campaign, Play, Own),

    on("POST",   "/v1/campaigns/{c}/rules/resolve", Campaign, Play, Own),
    on("GET",    "/v1/campaigns/{c}/turns", Campaign, Read, Never),
    on("GET",    "/v1/campaigns/{c}/turns/{x}", Campaign, Read, Own).or(Play),
    on("GET",    "/v1/campaigns/{c}/turns/{x}/events", Campaign, Play, Own),
    on("POST",   "/v1/campaigns/{c}/turns/{x}/cancel", Campaign, Play, Own),
    on("POST",   "/v1/campaigns/{c}/turns/{x}/regenerate", Campaign, Play, Own),
    on("POST",   "/v1/campaigns/{c}/turns/{x}/continue", Campaign, Play, Own),
    on("POST",   "/v1/campaigns/{c}/turns/{x}/choose", Campaign, Play, Own),
    on("PATCH",  "/v1/campaigns/{c}/turns/{x}", Campaign, Gm, Never),
    on("POST",   "/v1/campaigns/{c}/turns/{x}/undo", Campaign, Gm, Never),
];

static ROWS: LazyLock<Patterns<&'static Access>> = LazyLock::new(|| {
    Patterns::new(TABLE.iter().map(|access| Row { method: access.method, pattern: access.path.into(), value: access }))
});

/// The requirements of a method on a requested path, decoded. Not more than one row fits.
#[must_use]
pub fn fitting(method: &str, path: &str) -> Option<&'static Access> {
    ROWS.find(method, path).map(|row| row.value)
}

/// The methods of a requested path, decoded.
#[must_use]
pub fn methods(path: &str) -> Vec<&'static str> {
    ROWS.methods(path)
}
