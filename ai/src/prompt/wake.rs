//! Lore that enters a conversation with a turn: entries that keywords activated, and lore of the scene's location. It is part of
//! the turn's own message and stays there. Lore that can still be read in the window is not repeated.

use std::collections::HashSet;

use super::{
    LoreDecision, fence,
    lore::{Entry, Fuel, Knower, ScopeLore},
    transcript::Transcript,
};

/// The most exchanges of a conversation that are searched for keywords.
const EXCHANGES_MAX: usize = 50;

/// The lore that enters with a turn, and why other lore does not.
#[derive(Default)]
pub struct Entered {
    pub text: String,
    pub lore: Vec<LoreDecision>,
    pub cut: String,
}

/// Activates keyword lore by `now`, the text of this turn, and by earlier messages. Searches the scopes in order.
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
                Taken::Before => "keyword: activated in an earlier turn that is still in the history".to_owned(),
                Taken::No => format!("budget: keyword lore may use at most {budget} tokens per turn"),
                Taken::Now => format!("keyword: activated this turn, {}", lore.scope.describe()),
            };
            entered.lore.push(decided(entry, decision, reason));
        }
        entered.lore.extend(met.held_back.iter().map(|(entry, why)| decided(entry, Taken::No, why.reason(entry))));
    }
    if room.left_out > 0 {
        entered.cut = format!("{} keyword {} did not fit into {budget} tokens", room.left_out, entries(room.left_out));
    }
    if room.is_cut || fuel.is_spent() {
        let and = if entered.cut.is_empty() { "" } else { "; " };
        entered.cut.push_str(and);
        entered.cut.push_str("the other keyword entries were not checked");
    }
    entered
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
                Taken::No => format!("budget: its {} tokens do not fit into the rest of {budget}", entry.tokens),
                Taken::Now => lore.scope.describe(),
            };
            (decision, reason)
        } else {
            (Taken::No, "secret: not in known_by".to_owned())
        };
        entered.lore.push(decided(entry, decision, reason));
    }
    if room.left_out > 0 {
        entered.cut = format!("{} {} did not fit into {budget} tokens", room.left_out, entries(room.left_out));
    }
    entered
}

fn entries(n: u64) -> &'static str {
    if n == 1 { "entry" } else { "entries" }
}

fn decided(entry: &Entry, taken: Taken, reason: String) -> LoreDecision {
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

/// The tokens of the fence around an entry. No entry is shorter.
const FENCE_TOKENS: u32 = 20;

/// How much of a budget is used.
struct Room<'t> {
    used: u32,
    budget: u32,
    left_out: u64,
    /// Whether something was not even checked.
    is_cut: bool,
    /// The slugs of entries in the window, in the form in which they stand there.
    told: HashSet<&'t str>,
}

impl<'t> Room<'t> {
    fn of(budget: u32, transcript: &'t Transcript) -> Self {
        const OPENS: &str = "<lore entry=\"";
        let texts = transcript.exchanges.iter().flat_map(|e| e.user.split(OPENS).skip(1));
        let told = texts.filter_map(|text| text.split('"').next()).collect();
        Self { used: 0, budget, left_out: 0, is_cut: false, told }
    }

    /// Whether no further entry can fit.
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
