//! Decides which memories a prompt holds, within a budget of tokens.
//!
//! The base of a prompt holds those that change seldom: pinned ones, and the newest of the settled ones. A turn's own message holds what
//! is newer, and what its action is about. New memories are settled eight at a time, so that eight of them change the base once.

use std::collections::{BTreeMap, HashSet};

use super::{
    corpus::{Corpus, Memory},
    echoes::Echoes,
    query::Query,
    rank::{Ranking, Score},
};

/// How many memories become settled together.
pub const SETTLED_STEP: usize = 8;
/// The percentage of a budget that pinned memories may take.
const PINNED_PERCENT: u64 = 25;
/// The percentage of a budget for the newest of the settled memories, and again for the newest of the others.
const NEWEST_PERCENT: u64 = 5;
/// The most memories that are named although they were left out.
const LEFT_OUT_NAMED_MAX: usize = 50;
/// A pass over memories ends after so many that did not fit…
const MISFITS_MAX: usize = 100;
/// …and after so many echoes.
const ECHOES_MAX: usize = 500;

/// The section of a prompt in which a memory stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// In the base, which is the same for many turns.
    Base,
    /// In the turn's own message.
    Turn,
}

/// Why a memory stands in a prompt, or why it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Pinned,
    Newest,
    Relevant,
    /// It says again what a memory says that was taken.
    Echo,
    OverBudget,
}

/// What was decided about a memory.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Its place in the corpus.
    pub memory: usize,
    /// Where it stands. None if it was left out.
    pub section: Option<Section>,
    pub reason: Reason,
    /// None for memories that have nothing to do with the query.
    pub score: Option<Score>,
}

/// Which memories a prompt holds.
#[derive(Debug, Default)]
pub struct Selection {
    /// All that were taken, the oldest first, and the best of those that were left out. Empty if there was room for all.
    pub decisions: Vec<Decision>,
    /// The places of the memories in the base, the oldest first.
    pub base: Vec<usize>,
    /// The places of those in the turn's message, the oldest first.
    pub turn: Vec<usize>,
    /// The tokens of all that were taken.
    pub used: u32,
    /// How many were left out, with those that were not read.
    pub left_out: usize,
}

impl Selection {
    /// The places of the memories in a section, the oldest first, with their scores. None has a score if there was room for all.
    pub fn scored(&self, section: Section) -> impl Iterator<Item = (usize, Option<Score>)> {
        let places = match section {
            Section::Base => &self.base,
            Section::Turn => &self.turn,
        };
        let mut decisions = self.decisions.iter().filter(move |decision| decision.section == Some(section));
        places.iter().map(move |place| (*place, decisions.next().and_then(|decision| decision.score)))
    }
}

/// How many of so many memories, the oldest first, are settled.
#[must_use]
pub fn settled(memories: usize) -> usize {
    if memories <= SETTLED_STEP { memories } else { memories - memories % SETTLED_STEP }
}

/// The sum of what memories take, if that is within a budget.
fn all_within(costs: impl IntoIterator<Item = u32>, budget: u32) -> Option<u32> {
    let mut used = 0u32;
    for cost in costs {
        used = used.checked_add(cost).filter(|used| *used <= budget)?;
    }
    Some(used)
}

impl Corpus {
    /// Fills a budget of tokens. `cost` says how many tokens the line of a memory takes; it is asked only about those that may be taken,
    /// and once about each: see [`Corpus::cost`].
    pub fn select(&self, query: &Query, budget: u32, mut cost: impl FnMut(&Memory) -> u32) -> Selection {
        // Those that were not read are the oldest.
        let settled = settled(self.total()).saturating_sub(self.total() - self.len());
        let are_all = self.total() == self.len();
        let costs = (0..self.len()).filter_map(|place| self.cost(place, &mut cost));
        if let Some(used) = are_all.then(|| all_within(costs, budget)).flatten() {
            let (base, turn) = ((0..settled).collect(), (settled..self.len()).collect());
            return Selection { base, turn, used, ..Selection::default() };
        }
        let ranking = self.rank(query);
        let mut filling = Filling::new(self, &ranking, budget, cost);
        let pinned = self.pinned().iter().rev().copied();
        filling.fill(percent(budget, PINNED_PERCENT), pinned, (Section::Base, Reason::Pinned));
        filling.fill(percent(budget, NEWEST_PERCENT), (0..settled).rev(), (Section::Base, Reason::Newest));
        let newest = (Section::Turn, Reason::Newest);
        let first = filling.fill(budget, (settled..self.len()).rev().take(1), newest);
        filling.fill(percent(budget, NEWEST_PERCENT).saturating_sub(first), (settled..self.len()).rev(), newest);
        let (mut best, mut offered) = (ranking.best_first(), Vec::new());
        let relevant = best.by_ref().inspect(|place| offered.push(*place));
        filling.fill(budget, relevant, (Section::Turn, Reason::Relevant));
        filling.fill(budget, (0..self.len()).rev(), newest);
        filling.finish(offered.into_iter().chain(best))
    }
}

fn percent(budget: u32, percent: u64) -> u32 {
    u32::try_from(u64::from(budget) * percent / 100).unwrap_or(budget)
}

/// What became of a memory that was offered.
enum Offered {
    /// With its tokens.
    Taken(u32),
    Before,
    Echo,
    TooLarge,
}

/// A budget that is being filled.
struct Filling<'a, C> {
    corpus: &'a Corpus,
    ranking: &'a Ranking,
    budget: u32,
    cost: C,
    used: u32,
    echoes: Echoes<'a>,
    taken: BTreeMap<usize, (Section, Reason)>,
    /// The memories that were left out for being echoes.
    echoing: HashSet<usize>,
}

impl<'a, C: FnMut(&Memory) -> u32> Filling<'a, C> {
    fn new(corpus: &'a Corpus, ranking: &'a Ranking, budget: u32, cost: C) -> Self {
        let echoes = Echoes::new(corpus);
        Self { corpus, ranking, budget, cost, used: 0, echoes, taken: BTreeMap::new(), echoing: HashSet::new() }
    }

    fn offer(&mut self, place: usize, room: u32, taken_as: (Section, Reason)) -> Offered {
        if self.taken.contains_key(&place) {
            return Offered::Before;
        }
        let Some(cost) = self.corpus.cost(place, &mut self.cost) else { return Offered::Before };
        if cost > room {
            return Offered::TooLarge;
        }
        if !self.echoes.take(place) {
            self.echoing.insert(place);
            return Offered::Echo;
        }
        self.used += cost;
        self.taken.insert(place, taken_as);
        Offered::Taken(cost)
    }

    /// Takes memories in the given order until so many tokens are full. What does not fit is passed over. Returns their tokens.
    fn fill(&mut self, share: u32, places: impl Iterator<Item = usize>, taken_as: (Section, Reason)) -> u32 {
        let share = share.min(self.budget - self.used);
        let (mut room, mut misfits, mut echoes) = (share, 0, 0);
        for place in places {
            if room == 0 || misfits == MISFITS_MAX || echoes == ECHOES_MAX {
                break;
            }
            match self.offer(place, room, taken_as) {
                Offered::Taken(cost) => room -= cost,
                Offered::TooLarge => misfits += 1,
                Offered::Echo => echoes += 1,
                Offered::Before => {}
            }
        }
        share - room
    }

    /// `best_first` are all memories with a score.
    fn finish(self, best_first: impl Iterator<Item = usize>) -> Selection {
        let in_section = |section| {
            let taken = self.taken.iter().filter(move |(_, (taken_in, _))| *taken_in == section);
            taken.map(|(place, _)| *place).collect()
        };
        let decided = |memory, section, reason| Decision { memory, section, reason, score: self.ranking.score(memory) };
        let taken = self.taken.iter().map(|(&memory, &(section, reason))| decided(memory, Some(section), reason));
        let left_out = best_first.filter(|place| !self.taken.contains_key(place));
        let left_out = left_out.take(LEFT_OUT_NAMED_MAX).map(|memory| {
            decided(memory, None, if self.echoing.contains(&memory) { Reason::Echo } else { Reason::OverBudget })
        });
        Selection {
            base: in_section(Section::Base),
            turn: in_section(Section::Turn),
            used: self.used,
            left_out: self.corpus.total() - self.taken.len(),
            decisions: taken.chain(left_out).collect(),
        }
    }
}
