//! A scope's lore for prompts, loaded once per version and shared by all entities that it concerns.

use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use entity::lore::Logic;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{
    LoreDecision,
    reason::{HeldBack, LoreReason},
    scope::LoreScope,
};
use crate::fair_cache::Weigh;
use base::{
    error::Result,
    fold::{fold, is_word, occurs},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// The most entries of one scope for the base prompt, by priority, then age.
const ALWAYS_MAX: i64 = 400;
/// The most keyword entries of one scope.
const KEYWORD_MAX: i64 = 20_000;
/// About how many tokens the fence around an entry has. No entry is shorter.
pub const FENCE_TOKENS: u32 = 20;
/// The most bytes of one scope's entries that are read, and of its keyword entries that are kept in memory.
const KEYWORD_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Who reads the lore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knower {
    /// A game master or an assistant. They may read secrets.
    GameMaster,
    /// An NPC, an owner or a character. Of secrets, they may read only those that name them in `known_by`.
    Entity(Uuid),
}

/// A lore entry.
#[derive(Debug)]
pub struct LoreEntry {
    pub id: Uuid,
    pub slug: String,
    pub title: String,
    pub content: Box<str>,
    pub priority: i32,
    pub tokens: u32,
    pub version: i64,
    /// What it is about, as a slug.
    pub about: Box<str>,
    secret: bool,
    known_by: Box<[Uuid]>,
    secondary: Box<[String]>,
    logic: Logic,
    scan_depth: usize,
}

impl LoreEntry {
    fn of(row: &PgRow) -> Result<Self> {
        let logic = match row.read::<&str>("logic")? {
            "and_all" => Logic::AndAll,
            "not_any" => Logic::NotAny,
            "not_all" => Logic::NotAll,
            _ => Logic::AndAny,
        };
        let secondary: sqlx::types::Json<Vec<String>> = row.read("secondary_keys")?;
        Ok(Self {
            id: row.read("id")?,
            slug: row.read("slug")?,
            title: row.read("title")?,
            content: row.read::<String>("content")?.into(),
            priority: row.read("priority")?,
            tokens: u32::try_from(row.read::<i32>("tokens")?).unwrap_or_default(),
            version: row.read("version")?,
            about: row.read::<String>("associated_key")?.into(),
            secret: row.read("secret")?,
            known_by: row.read::<Vec<Uuid>>("known_by")?.into(),
            secondary: secondary.0.iter().map(|key| fold(key.trim())).collect(),
            logic,
            scan_depth: usize::try_from(row.read::<i32>("scan_depth")?).unwrap_or_default(),
        })
    }

    /// Whether `knower` may read the entry.
    #[must_use]
    pub fn is_known_to(&self, knower: Knower) -> bool {
        match knower {
            Knower::GameMaster => true,
            Knower::Entity(entity) => !self.secret || self.known_by.contains(&entity),
        }
    }

    /// The mark of a secret for a game master, who must not tell it. Empty for everything else.
    #[must_use]
    pub fn mark(&self, knower: Knower) -> &'static str {
        if self.secret && knower == Knower::GameMaster { "true" } else { "" }
    }

    /// Why the entry is not activated, although one of its keys occurs in the text of this age.
    fn held_back(&self, age: usize, texts: &[&str], knower: Knower) -> Option<HeldBack> {
        let depth = self.scan_depth.max(1);
        if !self.is_known_to(knower) {
            Some(HeldBack::Secret)
        } else if age >= depth {
            Some(HeldBack::TooLongAgo { scan_depth: self.scan_depth })
        } else if !secondary_holds(self, texts.get(..depth.min(texts.len())).unwrap_or_default()) {
            Some(HeldBack::SecondaryKeys(self.logic))
        } else {
            None
        }
    }

    fn bytes(&self) -> usize {
        self.content.len()
            + self.title.len()
            + self.slug.len()
            + self.secondary.iter().map(String::len).sum::<usize>()
            + 200
    }
}

/// How much one prompt may search for keywords. Tenants write the lore and could make the search slow.
pub struct Fuel {
    matches: u32,
    bytes: usize,
}

impl Default for Fuel {
    fn default() -> Self {
        Self { matches: 200_000, bytes: 64 * 1024 * 1024 }
    }
}

impl Fuel {
    /// Whether the fuel is used up.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.matches == 0 || self.bytes == 0
    }

    /// Counts one match. Returns false if it was the last.
    fn one_match(&mut self) -> bool {
        self.matches = self.matches.saturating_sub(1);
        self.matches > 0
    }

    /// Counts a search of some texts for an entry's secondary keys.
    fn read(&mut self, texts: &[&str], keys: usize) {
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        self.bytes = self.bytes.saturating_sub(bytes.saturating_mul(keys));
    }
}

/// Entries with a key that occurs.
#[derive(Default)]
pub struct Met<'l> {
    pub woken: Vec<&'l LoreEntry>,
    pub held_back: Vec<(&'l LoreEntry, HeldBack)>,
}

/// The enabled entries of one scope.
pub struct ScopeLore {
    pub scope: LoreScope,
    /// The entries that are always active, by priority, then age.
    pub always: Vec<LoreEntry>,
    /// How many more always active entries there are.
    pub always_beyond: i64,
    keyword: Vec<LoreEntry>,
    /// Finds primary keys. `patterns` has the entry of each pattern.
    finder: Option<AhoCorasick>,
    patterns: Vec<usize>,
    bytes: usize,
}

impl Weigh for ScopeLore {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl ScopeLore {
    /// Loads a scope. Two statements.
    ///
    /// # Errors
    /// Database errors.
    pub async fn load(tx: &TenantTx, campaign: Uuid, scope: &LoreScope) -> Result<Self> {
        if scope.is_kind() {
            return Self::load_kind(tx, campaign, scope).await;
        }
        // Always active entries are loaded scope by scope.
        let always = if scope.is_any() { Vec::new() } else { rows(tx, campaign, scope, "always", ALWAYS_MAX).await? };
        let always_count = always.first().map_or(Ok(0), |row| row.read::<i64>("matching"))?;
        let always = always.iter().map(LoreEntry::of).collect::<Result<Vec<_>>>()?;
        let mut keyword = Vec::new();
        let (mut keys, mut patterns, mut bytes) = (Vec::new(), Vec::new(), 0);
        for row in rows(tx, campaign, scope, "keyword", KEYWORD_MAX).await? {
            let entry = LoreEntry::of(&row)?;
            let primary: sqlx::types::Json<Vec<String>> = row.read("keys")?;
            bytes += entry.bytes() + primary.0.iter().map(|k| k.len() * 8).sum::<usize>();
            if bytes > KEYWORD_BYTES_MAX {
                break;
            }
            for key in primary.0.iter().map(|key| fold(key.trim())).filter(|k| !k.is_empty()) {
                keys.push(key);
                patterns.push(keyword.len());
            }
            keyword.push(entry);
        }
        let finder = finder_of(&keys);
        let bytes = bytes + always.iter().map(LoreEntry::bytes).sum::<usize>() + 500;
        let always_beyond = always_count - i64::try_from(always.len()).unwrap_or(0);
        Ok(Self { scope: scope.clone(), always, always_beyond, keyword, finder, patterns, bytes })
    }

    /// Loads all lore of creatures or items. An entry is found by the names of its subject and by its keys. Two
    /// statements.
    async fn load_kind(tx: &TenantTx, campaign: Uuid, scope: &LoreScope) -> Result<Self> {
        let mut keyword = Vec::new();
        let (mut keys, mut patterns, mut bytes) = (Vec::new(), Vec::new(), 500);
        for activation in ["keyword", "always"] {
            for row in rows(tx, campaign, scope, activation, KEYWORD_MAX).await? {
                let mut entry = LoreEntry::of(&row)?;
                let mut names = names_of(&entry, row.read::<Option<&str>>("associated_id")?.unwrap_or_default());
                if activation == "keyword" {
                    let own: sqlx::types::Json<Vec<String>> = row.read("keys")?;
                    names.extend(own.0.iter().map(|key| fold(key.trim())));
                } else {
                    // The entry has no condition, and is matched only against this turn's text.
                    (entry.secondary, entry.scan_depth) = (Box::default(), 0);
                }
                bytes += entry.bytes() + names.iter().map(|name| name.len() * 8).sum::<usize>();
                if bytes > KEYWORD_BYTES_MAX {
                    break;
                }
                names.retain(|name| !name.is_empty());
                names.sort();
                names.dedup();
                patterns.extend(names.iter().map(|_| keyword.len()));
                keys.extend(names);
                keyword.push(entry);
            }
        }
        let (scope, finder) = (scope.clone(), finder_of(&keys));
        Ok(Self { scope, always: Vec::new(), always_beyond: 0, keyword, finder, patterns, bytes })
    }

    /// The entries whose subject is here, by priority, then age.
    #[must_use]
    pub fn about(&self, is_here: impl Fn(&str) -> bool) -> Vec<&LoreEntry> {
        let mut entries: Vec<&LoreEntry> = self.keyword.iter().filter(|entry| is_here(&entry.about)).collect();
        entries.sort_by_key(|e| (std::cmp::Reverse(e.priority), e.id));
        entries
    }

    /// The keyword entries whose keys occur in `texts`, by priority, then age. `texts` are folded, the newest first: this
    /// turn's action, then earlier messages. An entry's scan depth says how many of them it reads; it always reads the action.
    #[must_use]
    pub fn met(&self, texts: &[&str], knower: Knower, fuel: &mut Fuel) -> Met<'_> {
        let mut met = Met::default();
        let Some(finder) = &self.finder else { return met };
        let mut nearest: Vec<Option<usize>> = vec![None; self.keyword.len()];
        'texts: for (age, text) in texts.iter().enumerate() {
            for found in finder.find_overlapping_iter(*text) {
                if !fuel.one_match() {
                    break 'texts;
                }
                if is_word(text, found.start(), found.end())
                    && let Some(entry) = self.patterns.get(found.pattern().as_usize())
                    && let Some(seen) = nearest.get_mut(*entry)
                {
                    seen.get_or_insert(age);
                }
            }
        }
        for (entry, age) in self.keyword.iter().zip(nearest) {
            let Some(age) = age else { continue };
            if !entry.secondary.is_empty() {
                if fuel.bytes == 0 {
                    break;
                }
                fuel.read(
                    texts.get(..entry.scan_depth.max(1).min(texts.len())).unwrap_or_default(),
                    entry.secondary.len(),
                );
            }
            match entry.held_back(age, texts, knower) {
                None => met.woken.push(entry),
                Some(why) => met.held_back.push((entry, why)),
            }
        }
        met.woken.sort_by_key(|e| (std::cmp::Reverse(e.priority), e.id));
        met.held_back.sort_by_key(|(e, _)| (std::cmp::Reverse(e.priority), e.id));
        met
    }

    /// Whether there are keyword entries.
    #[must_use]
    pub fn has_keywords(&self) -> bool {
        self.finder.is_some()
    }
}

fn finder_of(keys: &[String]) -> Option<AhoCorasick> {
    if keys.is_empty() { None } else { AhoCorasick::builder().match_kind(MatchKind::Standard).build(keys).ok() }
}

/// The names of an entry's subject, folded: the subject as written, the same with spaces between its words, and
/// the title without an article.
fn names_of(entry: &LoreEntry, subject: &str) -> Vec<String> {
    let title = fold(entry.title.trim());
    let bare =
        ["the ", "a ", "an "].iter().find_map(|article| title.strip_prefix(article)).unwrap_or(&title).to_owned();
    vec![fold(subject.trim()), entry.about.replace(['_', '-'], " "), bare]
}

async fn rows(tx: &TenantTx, campaign: Uuid, scope: &LoreScope, activation: &str, rows_max: i64) -> Result<Vec<PgRow>> {
    // The scope of all scopes has no name. The parameter for its subject then has no effect.
    let in_scope = if scope.is_any() {
        "$3 || $4 = ''"
    } else if scope.is_kind() {
        "scope = $3 AND $4 <> ''"
    } else {
        "scope = $3 AND associated_key = $4"
    };
    let wanted = format!("tenant_id = $1 AND campaign_id = $2 AND {in_scope} AND activation = $5 AND enabled");
    let sql = format!(
        "SELECT * FROM (SELECT id, slug, title, associated_key, associated_id, content, priority, tokens, version, secret, known_by, keys, secondary_keys, logic, scan_depth, \
                (SELECT count(*) FROM lore WHERE {wanted}) AS matching, \
                sum(octet_length(content)) OVER (ORDER BY priority DESC, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before \
             FROM lore WHERE {wanted} ORDER BY priority DESC, id LIMIT $6) entry \
         WHERE coalesce(before, 0) < {KEYWORD_BYTES_MAX} ORDER BY priority DESC, id"
    );
    Ok(sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(scope.scope)
        .bind(&scope.key)
        .bind(activation)
        .bind(rows_max)
        .fetch_all(&mut *tx.connection().await)
        .await?)
}

fn holds(texts: &[&str], key: &str) -> bool {
    texts.iter().any(|text| occurs(text, key))
}

/// Whether the condition of the secondary keys is met. An entry without secondary keys has no condition.
fn secondary_holds(entry: &LoreEntry, texts: &[&str]) -> bool {
    let mut found = entry.secondary.iter().filter(|k| !k.is_empty()).map(|key| holds(texts, key));
    if entry.secondary.is_empty() {
        return true;
    }
    match entry.logic {
        Logic::AndAny => found.any(|f| f),
        Logic::AndAll => found.all(|f| f),
        Logic::NotAny => !found.any(|f| f),
        Logic::NotAll => !found.all(|f| f),
    }
}

/// Chooses entries by priority, then age, while they fit into `budget_tokens`. Explains each decision.
#[must_use]
pub fn choose(
    lores: &[Arc<ScopeLore>],
    knower: Knower,
    budget_tokens: u32,
) -> (Vec<(&ScopeLore, &LoreEntry)>, Vec<LoreDecision>) {
    let mut candidates: Vec<(&ScopeLore, &LoreEntry)> =
        lores.iter().flat_map(|lore| lore.always.iter().map(move |e| (&**lore, e))).collect();
    candidates.sort_by_key(|(_, e)| (std::cmp::Reverse(e.priority), e.id));
    let (mut chosen, mut decisions, mut used) = (Vec::new(), Vec::new(), 0u32);
    for (lore, entry) in candidates {
        let cost = entry.tokens.saturating_add(FENCE_TOKENS);
        let (included, reason) = if !entry.is_known_to(knower) {
            (false, LoreReason::Secret)
        } else if used.saturating_add(cost) > budget_tokens {
            (false, LoreReason::OverBudget { tokens: entry.tokens, budget: budget_tokens })
        } else {
            used += cost;
            chosen.push((lore, entry));
            (true, LoreReason::Scope(lore.scope.clone()))
        };
        decisions.push(LoreDecision { id: entry.id, slug: entry.slug.clone(), included, reason });
    }
    chosen.sort_by_key(|(_, e)| e.id);
    (chosen, decisions)
}
