//! What each route asks of a credential, and what a player's token may do there. What is not listed is denied.

use std::{collections::HashMap, sync::LazyLock};

use super::{
    Scope::{self, Admin, Gm, Play, Read, Tools, Write},
    Scopes,
};

/// What a token narrowed to a player character may do on a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Player {
    /// Nothing: 403.
    Never,
    /// What everyone may; the handler leaves out what players do not see.
    Filtered,
    /// Only as, or about, its own character.
    Own,
}

/// One route's demand.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub method: &'static str,
    pub path: &'static str,
    /// None: any live credential.
    pub scope: Option<Scope>,
    /// A second scope, for what is two things at once.
    pub also: Option<Scope>,
    /// A scope that does as well as `scope`, for what its holder asked for.
    pub or: Option<Scope>,
    pub player: Player,
    /// Nothing is asked at the door: the credential comes in the first frame, since a browser's WebSocket sends no header of ours.
    /// `bridge::connect` asks for the scope `play` or `gm`, the tenant's origins, and of a player's token its own session.
    pub in_first_frame: bool,
}

const fn on(method: &'static str, path: &'static str, scope: Scope, player: Player) -> Access {
    Access { method, path, scope: Some(scope), also: None, or: None, player, in_first_frame: false }
}

impl Access {
    const fn and(self, scope: Scope) -> Self {
        Self { also: Some(scope), ..self }
    }

    const fn or(self, scope: Scope) -> Self {
        Self { or: Some(scope), ..self }
    }

    /// The scope that a caller lacks.
    #[must_use]
    pub fn lacking(&self, scopes: Scopes) -> Option<Scope> {
        let does_as_well = |scope| Some(scope) == self.scope && self.or.is_some_and(|or| scopes.has(or));
        self.scopes().find(|scope| !scopes.has(*scope) && !does_as_well(*scope))
    }

    /// The scopes it asks, all of them.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        self.scope.into_iter().chain(self.also)
    }
}

use Player::{Filtered, Never, Own};

/// Every route under `/v1`.
#[rustfmt::skip]
pub const TABLE: &[Access] = &[
    Access { method: "POST", path: "/v1/auth/token", scope: None, also: None, or: None, player: Never, in_first_frame: false },
    on("GET",    "/v1/tenant", Read, Never),
    on("PATCH",  "/v1/tenant", Admin, Never),
    on("GET",    "/v1/usage", Read, Never),
    on("GET",    "/v1/api-keys", Admin, Never),
    on("POST",   "/v1/api-keys", Admin, Never),
    on("GET",    "/v1/api-keys/{x}", Admin, Never),
    on("PATCH",  "/v1/api-keys/{x}", Admin, Never),
    on("DELETE", "/v1/api-keys/{x}", Admin, Never),
    on("GET",    "/v1/users", Admin, Never),
    on("POST",   "/v1/users", Admin, Never),
    on("GET",    "/v1/users/{x}", Admin, Never),
    on("PATCH",  "/v1/users/{x}", Admin, Never),
    on("DELETE", "/v1/users/{x}", Admin, Never),
    on("GET",    "/v1/erasures/{x}", Admin, Never).and(Gm),

    on("POST",   "/v1/dice/roll", Play, Own),
    on("POST",   "/v1/dice/analyze", Read, Own),
    on("POST",   "/v1/dice/verify", Read, Own),
    on("GET",    "/v1/dice/seeds", Read, Never),
    on("POST",   "/v1/dice/seeds/rotate", Gm, Never),

    on("GET",    "/v1/campaigns", Read, Filtered),
    on("POST",   "/v1/campaigns", Write, Never),
    on("GET",    "/v1/campaigns/{c}", Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}", Write, Never),
    on("DELETE", "/v1/campaigns/{c}", Write, Never),
    on("POST",   "/v1/campaigns/{c}/fork", Write, Never).and(Gm),
    on("GET",    "/v1/campaigns/{c}/changes", Read, Filtered),
    on("GET",    "/v1/campaigns/{c}/events", Read, Filtered),
    on("POST",   "/v1/campaigns/import", Write, Never).and(Gm),
    on("GET",    "/v1/campaigns/{c}/export", Read, Never).and(Gm),
    on("GET",    "/v1/campaigns/{c}/lorebook.json", Read, Never),
    on("POST",   "/v1/campaigns/{c}/import/seed", Write, Never),
    on("POST",   "/v1/campaigns/{c}/import/character-card", Write, Never),
    on("POST",   "/v1/campaigns/{c}/import/lorebook", Write, Never),

    on("GET",    "/v1/campaigns/{c}/characters", Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/characters", Write, Never),
    on("GET",    "/v1/campaigns/{c}/characters/{x}", Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}/characters/{x}", Write, Never),
    on("DELETE", "/v1/campaigns/{c}/characters/{x}", Write, Never),
    on("GET",    "/v1/campaigns/{c}/characters/{x}/revisions", Gm, Never),
    on("POST",   "/v1/campaigns/{c}/characters/{x}/revisions/{seq}/restore", Write, Never).and(Gm),
    on("POST",   "/v1/campaigns/{c}/characters/{x}/rest", Play, Own),
    on("GET",    "/v1/rules/srd/{x}", Read, Filtered),

    on("GET",    "/v1/campaigns/{c}/npcs", Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/npcs", Write, Never),
    on("GET",    "/v1/campaigns/{c}/npcs/{x}", Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}/npcs/{x}", Write, Never),
    on("DELETE", "/v1/campaigns/{c}/npcs/{x}", Write, Never),
    on("GET",    "/v1/campaigns/{c}/npcs/{x}/revisions", Gm, Never),
    on("POST",   "/v1/campaigns/{c}/npcs/{x}/revisions/{seq}/restore", Write, Never).and(Gm),
    on("GET",    "/v1/campaigns/{c}/npcs/{x}/card.json", Read, Never),
    on("GET",    "/v1/campaigns/{c}/npcs/{x}/card.png", Read, Never),
    on("GET",    "/v1/campaigns/{c}/npcs/{x}/memories", Read, Own),
    on("POST",   "/v1/campaigns/{c}/npcs/{x}/memories", Write, Never),
    on("POST",   "/v1/campaigns/{c}/npcs/{x}/prompt", Gm, Never),
    on("POST",   "/v1/campaigns/{c}/npcs/{x}/turns", Play, Own),

    on("GET",    "/v1/campaigns/{c}/owners", Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/owners", Write, Never),
    on("GET",    "/v1/campaigns/{c}/owners/{x}", Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}/owners/{x}", Write, Never),
    on("DELETE", "/v1/campaigns/{c}/owners/{x}", Write, Never),
    on("GET",    "/v1/campaigns/{c}/owners/{x}/revisions", Gm, Never),
    on("POST",   "/v1/campaigns/{c}/owners/{x}/revisions/{seq}/restore", Write, Never).and(Gm),
    on("GET",    "/v1/campaigns/{c}/owners/{x}/memories", Read, Own),
    on("POST",   "/v1/campaigns/{c}/owners/{x}/memories", Write, Never),
    on("POST",   "/v1/campaigns/{c}/owners/{x}/prompt", Gm, Never),
    on("POST",   "/v1/campaigns/{c}/owners/{x}/turns", Play, Own),

    on("GET",    "/v1/campaigns/{c}/lore", Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/lore", Write, Never),
    on("GET",    "/v1/campaigns/{c}/lore/{x}", Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}/lore/{x}", Write, Never),
    on("DELETE", "/v1/campaigns/{c}/lore/{x}", Write, Never),
    on("GET",    "/v1/campaigns/{c}/lore/{x}/revisions", Gm, Never),
    on("POST",   "/v1/campaigns/{c}/lore/{x}/revisions/{seq}/restore", Write, Never).and(Gm),
    on("GET",    "/v1/campaigns/{c}/lore/{x}/links", Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/lore/{x}/mend-links", Write, Never),
    on("POST",   "/v1/campaigns/{c}/lore/{x}/duplicate", Write, Never),
    on("GET",    "/v1/campaigns/{c}/lore-totals", Read, Never),
    on("GET",    "/v1/campaigns/{c}/lore-duplicates", Read, Never),
    on("POST",   "/v1/campaigns/{c}/lore/bulk", Write, Never),
    on("POST",   "/v1/campaigns/{c}/lore/bulk/{x}/undo", Write, Never),

    on("GET",    "/v1/campaigns/{c}/memories", Read, Own),
    on("GET",    "/v1/campaigns/{c}/memories/{x}", Read, Own),
    on("PATCH",  "/v1/campaigns/{c}/memories/{x}", Write, Never),
    on("DELETE", "/v1/campaigns/{c}/memories/{x}", Write, Never),
    on("POST",   "/v1/campaigns/{c}/memories/{x}/move", Write, Never),
    on("GET",    "/v1/campaigns/{c}/broadcasts", Read, Never),
    on("DELETE", "/v1/campaigns/{c}/broadcasts/{x}", Write, Never),

    on("GET",    "/v1/campaigns/{c}/scenes", Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/scenes", Write, Never),
    on("GET",    "/v1/campaigns/{c}/scenes/{x}", Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}/scenes/{x}", Write, Never),
    on("DELETE", "/v1/campaigns/{c}/scenes/{x}", Write, Never),
    on("GET",    "/v1/campaigns/{c}/scenes/{x}/revisions", Gm, Never),
    on("POST",   "/v1/campaigns/{c}/scenes/{x}/revisions/{seq}/restore", Write, Never).and(Gm),

    on("GET",    "/v1/campaigns/{c}/sessions", Gm, Never),
    on("POST",   "/v1/campaigns/{c}/sessions", Gm, Never),
    on("GET",    "/v1/campaigns/{c}/sessions/{x}", Gm, Never),
    on("PATCH",  "/v1/campaigns/{c}/sessions/{x}", Gm, Never),
    on("DELETE", "/v1/campaigns/{c}/sessions/{x}", Gm, Never),
    on("PUT",    "/v1/campaigns/{c}/sessions/{x}/world-state", Gm, Never),
    on("POST",   "/v1/campaigns/{c}/sessions/{x}/events", Play, Own),
    on("GET",    "/v1/campaigns/{c}/sessions/{x}/delta", Gm, Never),
    on("POST",   "/v1/campaigns/{c}/sessions/{x}/prompt", Gm, Never),
    on("POST",   "/v1/campaigns/{c}/sessions/{x}/turns", Gm, Never),

    Access { method: "GET", path: "/v1/campaigns/{c}/bridge", scope: None, also: None, or: None, player: Own, in_first_frame: true },

    on("GET",    "/v1/campaigns/{c}/encounters", Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/encounters", Play, Never),
    on("GET",    "/v1/campaigns/{c}/encounters/{x}", Read, Filtered),
    on("PATCH",  "/v1/campaigns/{c}/encounters/{x}", Write, Never),
    on("DELETE", "/v1/campaigns/{c}/encounters/{x}", Write, Never),
    on("POST",   "/v1/campaigns/{c}/encounters/{x}/actions", Play, Own),
    on("POST",   "/v1/campaigns/{c}/encounters/{x}/participants", Play, Never),
    on("POST",   "/v1/campaigns/{c}/encounters/{x}/end", Play, Never),
    on("POST",   "/v1/campaigns/{c}/encounters/{x}/commit", Play, Never),

    on("GET",    "/v1/campaigns/{c}/messages", Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/messages", Write, Never),
    on("GET",    "/v1/campaigns/{c}/messages/{x}", Read, Filtered),
    on("DELETE", "/v1/campaigns/{c}/messages/{x}", Write, Never),

    on("GET",    "/v1/campaigns/{c}/dice/seeds", Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/dice/seeds/rotate", Gm, Never),

    on("GET",    "/v1/campaigns/{c}/tools", Read, Never),
    on("POST",   "/v1/campaigns/{c}/tools/{x}", Tools, Never),

    on("POST",   "/v1/campaigns/{c}/act", Play, Own),
    on("GET",    "/v1/campaigns/{c}/commands", Read, Filtered),
    on("POST",   "/v1/campaigns/{c}/commands/{x}", Play, Own),

    on("POST",   "/v1/campaigns/{c}/rules/resolve", Play, Own),
    on("GET",    "/v1/campaigns/{c}/turns", Read, Never),
    on("GET",    "/v1/campaigns/{c}/turns/{x}", Read, Own).or(Play),
    on("GET",    "/v1/campaigns/{c}/turns/{x}/events", Play, Own),
    on("POST",   "/v1/campaigns/{c}/turns/{x}/cancel", Play, Own),
    on("POST",   "/v1/campaigns/{c}/turns/{x}/undo", Gm, Never),
];

static INDEX: LazyLock<HashMap<(&'static str, &'static str), &'static Access>> =
    LazyLock::new(|| TABLE.iter().map(|a| ((a.method, a.path), a)).collect());

/// What a method on a route's pattern asks; none if the pair is not listed.
#[must_use]
pub fn of(method: &str, pattern: &str) -> Option<&'static Access> {
    INDEX.get(&(method, pattern)).copied()
}

/// What a method on a path as it was requested asks.
#[must_use]
pub fn fitting(method: &str, path: &str) -> Option<&'static Access> {
    TABLE.iter().find(|a| a.method == method && fits(a.path, path))
}

/// The methods allowed on a path as it was requested.
#[must_use]
pub fn methods(path: &str) -> Vec<&'static str> {
    TABLE.iter().filter(|a| fits(a.path, path)).map(|a| a.method).collect()
}

fn fits(pattern: &str, path: &str) -> bool {
    let mut given = path.trim_end_matches('/').split('/');
    pattern.split('/').all(|part| given.next().is_some_and(|g| g == part || (part.starts_with('{') && !g.is_empty())))
        && given.next().is_none()
}
