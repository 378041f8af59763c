//! Which lore concerns whom. A scope is a kind of lore, with the location, race, profession or faction that it is about.

use std::fmt::Write as _;

use entity::{lore::Scope, npc, owner};
use sea_orm::Iterable;

use edge::http::resource::scope_key;

/// The key of all subjects of a scope. No slug is like it.
const ALL: &str = "*";

/// A scope of lore. Its entries raise its version head.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoreScope {
    pub scope: &'static str,
    /// The subject as a slug; empty for global lore.
    pub key: String,
}

impl LoreScope {
    /// Lore that everyone knows.
    #[must_use]
    pub fn global() -> Self {
        Self { scope: "global", key: String::new() }
    }

    /// All scopes at once, for somebody who knows the whole world. Only its keyword entries are used.
    #[must_use]
    pub fn any() -> Self {
        Self { scope: "", key: String::new() }
    }

    /// All lore of creatures, and all lore of items. It concerns whoever meets them.
    #[must_use]
    pub fn kinds() -> [Self; 2] {
        ["creature", "item"].map(|scope| Self { scope, key: ALL.to_owned() })
    }

    /// Whether it is one of [`LoreScope::kinds`].
    #[must_use]
    pub fn is_kind(&self) -> bool {
        self.key == ALL
    }

    /// Whether it is [`LoreScope::any`].
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.scope.is_empty()
    }

    /// Lore about a location.
    #[must_use]
    pub fn zone(place: Option<&str>) -> Option<Self> {
        Self::of("zone", place)
    }

    fn of(scope: &'static str, name: Option<&str>) -> Option<Self> {
        let key = scope_key(name.filter(|n| !n.trim().is_empty())?);
        Some(Self { scope, key })
    }

    /// The scope that a lore row names.
    #[must_use]
    pub fn named(scope: &str, key: &str) -> Option<Self> {
        let scope = Scope::iter().map(Scope::as_str).find(|name| *name == scope)?;
        Some(Self { scope, key: key.to_owned() })
    }

    /// The scope in one word, such as `zone:town_square`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}:{}", self.scope, self.key)
    }

    /// The version head (see `bump_heads`).
    #[must_use]
    pub fn head(&self) -> String {
        if self.is_kind() { format!("lore:{}", self.scope) } else { format!("lore:{}", self.name()) }
    }

    /// A few words for people.
    #[must_use]
    pub fn describe(&self) -> String {
        if self.is_any() {
            return "any scope".to_owned();
        }
        let mut out = format!("scope {}", self.scope);
        if !self.key.is_empty() && !self.is_kind() {
            let _ = write!(out, " {}", self.key);
        }
        out
    }
}

/// What an NPC knows besides global lore: lore about its location, race, profession and faction, and about what its owners monitor.
#[must_use]
pub fn of_npc(npc: &npc::Model, owners: &[owner::Model]) -> Vec<LoreScope> {
    let own = [
        LoreScope::of("zone", npc.location.as_deref()),
        LoreScope::of("race", npc.race.as_deref()),
        LoreScope::of("profession", npc.profession.as_deref()),
        LoreScope::of("faction", npc.faction.as_deref()),
    ];
    sorted(own.into_iter().flatten().chain(owners.iter().flat_map(of_owner)))
}

/// What an owner knows besides global lore: lore about what it monitors.
#[must_use]
pub fn of_owner(owner: &owner::Model) -> Vec<LoreScope> {
    let scope = owner.monitored_aspect.scope().as_str();
    LoreScope::of(scope, Some(&owner.associated_id)).into_iter().collect()
}

/// Common knowledge about a player: about their race and profession, without the lore that the entity knows anyway.
#[must_use]
pub fn of_player(race: &str, profession: &str, known: &[LoreScope]) -> Vec<LoreScope> {
    let both = [LoreScope::of("race", Some(race)), LoreScope::of("profession", Some(profession))];
    sorted(both.into_iter().flatten().filter(|s| !known.contains(s)))
}

fn sorted(scopes: impl Iterator<Item = LoreScope>) -> Vec<LoreScope> {
    let mut scopes: Vec<_> = scopes.collect();
    scopes.sort();
    scopes.dedup();
    scopes
}
