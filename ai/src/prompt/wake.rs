//! Lore that enters a conversation with a turn: entries that keywords activated, and lore of the scene's location. It is part of
//! the turn's own message and stays there. Lore that can still be read in the window is not repeated.

use std::{collections::HashSet, sync::Arc};

use super::{
    LoreDecision, fence,
    here::Here,
    lore::{FENCE_TOKENS, Fuel, Knower, LoreEntry, ScopeLore},
    pieces::{Piece, Pieces},
    reason::{LoreReason, Why},
    scope::LoreScope,
    transcript::Transcript,
};
use base::fold::fold;

/// The most exchanges of a conversation that are searched for keywords.
const EXCHANGES_MAX: usize = 50;

/// The lore that enters with a turn, and why other lore does not.
#[derive(Default)]
pub struct Entered {
    pub text: String,
    pub lore: Vec<LoreDecision>,
    pub cut: String,
    pub pieces: Pieces,
}

/// Lore of creatures and items, and which of them are here.
#[derive(Clone, Copy)]
pub struct Things<'t> {
    pub kinds: &'t [Arc<ScopeLore>],
    pub here: &'t Here,
}

/// Activates keyword lore by `now`, the text of this turn, and by earlier messages. Searches the scopes in order.
pub fn wake<'l>(
    lores: impl Iterator<Item = &'l ScopeLore> + Clone,
    things: Things<'_>,
    knower: Knower,
    transcript: &Transcript,
    now: &str,
    budget: u32,
) -> Entered {
    let mut entered = Entered::default();
    if !lores.clone().any(ScopeLore::has_keywords) && !things.kinds.iter().any(|kind| kind.has_keywords()) {
        return entered;
    }
    let mut texts = vec![fold(now)];
    for exchange in transcript.exchanges.iter().rev().take(EXCHANGES_MAX) {
        texts.push(fold(&exchange.assistant));
        texts.push(fold(&exchange.said));
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut room = Room::of(budget, transcript);
    let mut fuel = Fuel::default();
    for (n, lore) in lores.filter(|lore| lore.has_keywords()).enumerate() {
        if (n > 0 && room.is_full()) || fuel.is_spent() {
            room.is_cut = true;
            break;
        }
        let met = lore.met(&texts, knower, &mut fuel);
        for entry in met.woken {
            let decision = room.take(&mut entered.text, entry, knower, transcript);
            let reason = match decision {
                Taken::Before => LoreReason::KeywordEarlier,
                Taken::No => LoreReason::OverKeywordBudget { budget },
                Taken::Now => LoreReason::Keyword(lore.scope.clone()),
            };
            entered.lore.push(decided(entry, decision, reason));
        }
        let held_back = met.held_back.into_iter();
        entered.lore.extend(held_back.map(|(entry, why)| decided(entry, Taken::No, LoreReason::HeldBack(why))));
    }
    for kind in things.kinds.iter().filter(|kind| kind.has_keywords()) {
        if room.is_full() || fuel.is_spent() {
            room.is_cut = true;
            break;
        }
        meet(&mut entered, &mut room, kind, things.here, &texts, (knower, transcript, &mut fuel));
    }
    if room.left_out > 0 {
        entered.cut = format!("{} keyword {} did not fit into {budget} tokens", room.left_out, entries(room.left_out));
    }
    if room.is_cut || fuel.is_spent() {
        let and = if entered.cut.is_empty() { "" } else { "; " };
        entered.cut.push_str(and);
        entered.cut.push_str("the other keyword entries were not checked");
    }
    entered.pieces = Pieces::of_lore(0..entered.text.len(), room.pieces);
    entered
}

/// Takes the lore of a kind whose subject is here or is mentioned, except entries that have entered before.
fn meet(
    entered: &mut Entered,
    room: &mut Room<'_>,
    kind: &ScopeLore,
    here: &Here,
    texts: &[&str],
    (knower, transcript, fuel): (Knower, &Transcript, &mut Fuel),
) {
    let what = kind.scope.scope;
    let entered_before: HashSet<_> = entered.lore.iter().filter(|lore| lore.included).map(|lore| lore.id).collect();
    let is_new = |entry: &&LoreEntry| !entered_before.contains(&entry.id);
    let about: Vec<&LoreEntry> = kind.about(|key| here.has(what, key)).into_iter().filter(is_new).collect();
    let met = kind.met(texts, knower, fuel);
    let ids: HashSet<_> = about.iter().map(|entry| entry.id).collect();
    let spoken = met.woken.into_iter().filter(is_new).filter(|entry| !ids.contains(&entry.id));
    let spoken: Vec<_> = spoken.map(|entry| (entry, Why::SpokenOf)).collect();
    let decided_now: HashSet<_> = ids.iter().copied().chain(spoken.iter().map(|(entry, _)| entry.id)).collect();
    entered.lore.retain(|lore| !decided_now.contains(&lore.id));
    for (entry, why) in about.into_iter().map(|entry| (entry, Why::Here)).chain(spoken) {
        let scope = LoreScope { scope: what, key: entry.about.to_string() };
        if !entry.is_known_to(knower) {
            entered.lore.push(decided(entry, Taken::No, LoreReason::Secret));
            continue;
        }
        let decision = room.take(&mut entered.text, entry, knower, transcript);
        let reason = match decision {
            Taken::Before => LoreReason::ThingEarlier(why, scope),
            Taken::No => LoreReason::OverKeywordBudget { budget: room.budget },
            Taken::Now => LoreReason::Thing(why, scope),
        };
        entered.lore.push(decided(entry, decision, reason));
    }
    let was_decided: HashSet<_> = entered.lore.iter().map(|lore| lore.id).collect();
    let held_back = met.held_back.into_iter().filter(|(entry, _)| !was_decided.contains(&entry.id));
    entered.lore.extend(held_back.map(|(entry, why)| decided(entry, Taken::No, LoreReason::HeldBack(why))));
}

/// Takes the always active lore of `lores`, by priority, then age.
pub fn always<'l>(
    lores: impl Iterator<Item = &'l ScopeLore>,
    knower: Knower,
    transcript: &Transcript,
    budget: u32,
) -> Entered {
    let mut entered = Entered::default();
    let mut beyond = 0;
    let mut all: Vec<(&ScopeLore, &LoreEntry)> = Vec::new();
    for lore in lores {
        beyond += lore.always_beyond.unsigned_abs();
        all.extend(lore.always.iter().map(|entry| (lore, entry)));
    }
    all.sort_by_key(|(_, e)| (std::cmp::Reverse(e.priority), e.id));
    let mut room = Room { left_out: beyond, ..Room::of(budget, transcript) };
    for (lore, entry) in all {
        let (decision, reason) = if entry.is_known_to(knower) {
            let decision = room.take(&mut entered.text, entry, knower, transcript);
            let reason = match decision {
                Taken::Before => LoreReason::ScopeEarlier(lore.scope.clone()),
                Taken::No => LoreReason::OverBudget { tokens: entry.tokens, budget },
                Taken::Now => LoreReason::Scope(lore.scope.clone()),
            };
            (decision, reason)
        } else {
            (Taken::No, LoreReason::Secret)
        };
        entered.lore.push(decided(entry, decision, reason));
    }
    if room.left_out > 0 {
        entered.cut = format!("{} {} did not fit into {budget} tokens", room.left_out, entries(room.left_out));
    }
    entered.pieces = Pieces::of_lore(0..entered.text.len(), room.pieces);
    entered
}

fn entries(n: u64) -> &'static str {
    if n == 1 { "entry" } else { "entries" }
}

fn decided(entry: &LoreEntry, taken: Taken, reason: LoreReason) -> LoreDecision {
    LoreDecision { id: entry.id, slug: entry.slug.clone(), included: taken != Taken::No, reason }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// It is in the window already.
    Before,
    Now,
    /// It does not fit.
    No,
}

/// How much of a budget is used.
struct Room<'t> {
    used: u32,
    budget: u32,
    left_out: u64,
    /// Whether something was not even checked.
    is_cut: bool,
    /// The slugs of entries in the window, in the form in which they stand there.
    told: HashSet<&'t str>,
    /// The entries that were taken, with their priorities.
    pieces: Vec<(i32, Piece)>,
}

impl<'t> Room<'t> {
    fn of(budget: u32, transcript: &'t Transcript) -> Self {
        const OPENS: &str = "<lore entry=\"";
        let texts = transcript.exchanges.iter().flat_map(|e| e.user.split(OPENS).skip(1));
        let told = texts.filter_map(|text| text.split('"').next()).collect();
        Self { used: 0, budget, left_out: 0, is_cut: false, told, pieces: Vec::new() }
    }

    /// Whether no further entry can fit.
    fn is_full(&self) -> bool {
        self.used.saturating_add(FENCE_TOKENS) >= self.budget
    }

    fn take(&mut self, out: &mut String, entry: &LoreEntry, knower: Knower, transcript: &Transcript) -> Taken {
        let is_told = self.told.contains(fence::attribute(&entry.slug).as_ref());
        if self.is_full() && !is_told {
            self.left_out += 1;
            return Taken::No;
        }
        let version = entry.version.to_string();
        let attributes = [
            ("entry", entry.slug.as_str()),
            ("version", version.as_str()),
            ("title", entry.title.as_str()),
            ("secret", entry.mark(knower)),
        ];
        let mut fenced = String::new();
        fence::put(&mut fenced, "lore", &attributes, &entry.content);
        let cost = entry.tokens.saturating_add(FENCE_TOKENS);
        if is_told && transcript.exchanges.iter().any(|e| e.user.contains(&fenced)) {
            Taken::Before
        } else if self.used.saturating_add(cost) > self.budget {
            self.left_out += 1;
            Taken::No
        } else {
            self.used += cost;
            let place = out.len()..out.len() + fenced.len();
            self.pieces.push((entry.priority, Piece { place, tokens: cost, id: Some(entry.id) }));
            out.push_str(&fenced);
            Taken::Now
        }
    }
}
