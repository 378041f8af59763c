//! Lore that enters a conversation with a turn: what keywords woke, and what belongs to where it plays. It stands in the turn's own
//! message and stays there; what is still to be read in the window is not repeated.

use std::collections::HashSet;

use super::{
    LoreDecision, fence,
    lore::{Entry, Fuel, Knower, ScopeLore},
    transcript::Transcript,
};

/// Exchanges of a conversation whose words are looked at.
const EXCHANGES_MAX: usize = 50;

/// What enters with a turn, and why the rest does not.
#[derive(Default)]
pub struct Entered {
    pub text: String,
    pub lore: Vec<LoreDecision>,
    pub cut: String,
}

/// Wakes keyword lore by `now`, the words of this turn, and by what was said before. Lores are looked through in their order.
pub fn wake<'l>(
    lores: impl Iterator<Item = &'l ScopeLore> + Clone,
    knower: Knower,
    transcript: &Transcript,
    now: &str,
    budget: u32,
) -> Entered {
    let mut entered = Entered::default();
    if !lores.clone().any(ScopeLore::has_keywords) {
        return entered;
    }
    let mut texts = vec![now.to_lowercase()];
    for exchange in transcript.exchanges.iter().rev().take(EXCHANGES_MAX) {
        texts.push(exchange.assistant.to_lowercase());
        texts.push(exchange.said.to_lowercase());
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
                Taken::Before => "keyword: woke in an earlier turn that is still in the history".to_owned(),
                Taken::No => format!("budget: keyword lore may fill {budget} tokens a turn"),
                Taken::Now => format!("keyword: woke this turn, {}", lore.scope.describe()),
            };
            entered.lore.push(decided(entry, decision, reason));
        }
        entered.lore.extend(met.held_back.iter().map(|(entry, why)| decided(entry, Taken::No, why.reason(entry))));
    }
    if room.left_out > 0 {
        entered.cut = format!("{} keyword entries did not fit into {budget} tokens", room.left_out);
    }
    if room.is_cut || fuel.is_spent() {
        let and = if entered.cut.is_empty() { "" } else { "; " };
        entered.cut.push_str(and);
        entered.cut.push_str("other keyword entries were not looked for");
    }
    entered
}

/// Takes the lore of `lores` that is always in, by priority, then age.
pub fn always<'l>(
    lores: impl Iterator<Item = &'l ScopeLore>,
    knower: Knower,
    transcript: &Transcript,
    budget: u32,
) -> Entered {
    let mut entered = Entered::default();
    let mut beyond = 0;
    let mut all: Vec<(&ScopeLore, &Entry)> = Vec::new();
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
                Taken::Before => {
                    format!("{}, told in an earlier turn that is still in the history", lore.scope.describe())
                }
                Taken::No => format!("budget: {} tokens do not fit into what is left of {budget}", entry.tokens),
                Taken::Now => lore.scope.describe(),
            };
            (decision, reason)
        } else {
            (Taken::No, "secret: not in known_by".to_owned())
        };
        entered.lore.push(decided(entry, decision, reason));
    }
    if room.left_out > 0 {
        entered.cut = format!("{} entries did not fit into {budget} tokens", room.left_out);
    }
    entered
}

fn decided(entry: &Entry, taken: Taken, reason: String) -> LoreDecision {
    LoreDecision { id: entry.id, slug: entry.slug.clone(), included: taken != Taken::No, reason }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// It stands in the window.
    Before,
    Now,
    /// There is no room for it.
    No,
}

/// Tokens of the fence around an entry, which no entry is shorter than.
const FENCE_TOKENS: u32 = 20;

/// What a budget has room for.
struct Room<'t> {
    used: u32,
    budget: u32,
    left_out: u64,
    /// Whether something was not even looked at.
    is_cut: bool,
    /// Slugs of entries that stand in the window, as they stand there.
    told: HashSet<&'t str>,
}

impl<'t> Room<'t> {
    fn of(budget: u32, transcript: &'t Transcript) -> Self {
        const OPENS: &str = "<lore entry=\"";
        let texts = transcript.exchanges.iter().flat_map(|e| e.user.split(OPENS).skip(1));
        let told = texts.filter_map(|text| text.split('"').next()).collect();
        Self { used: 0, budget, left_out: 0, is_cut: false, told }
    }

    /// Whether no entry at all fits any more.
    fn is_full(&self) -> bool {
        self.used.saturating_add(FENCE_TOKENS) >= self.budget
    }

    fn take(&mut self, out: &mut String, entry: &Entry, knower: Knower, transcript: &Transcript) -> Taken {
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
            out.push_str(&fenced);
            Taken::Now
        }
    }
}
