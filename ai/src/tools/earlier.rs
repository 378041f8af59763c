//! What a turn's earlier attempts rolled. Another attempt gets the same dice again, however its formulas and calls are written: a die that
//! lies on the table stays there.
//!
//! A roll that means the same as an earlier roll gets the dice of that roll: the same formula, or the same call of a resolver. Any other
//! roll takes what lies there, die by die, as long as there is one with so many faces that this attempt has not taken yet.

use std::{
    cell::RefCell,
    collections::{HashMap, VecDeque},
};

use rules::dice::{Dice, Formula, OutOfDice};
use serde::Deserialize;
use serde_json::Value;

/// The dice of `roll_dice` and the resolvers.
#[derive(Clone, Debug, Default)]
pub struct Earlier {
    /// The values of all dice, by their faces, in the order in which they were rolled first.
    dice: HashMap<u32, Vec<u32>>,
    /// For each roll, by its meaning, the dice of the first such roll, the second one, and so on.
    rolls: HashMap<String, Vec<Vec<Die>>>,
    /// The meaning of the call that runs.
    call: RefCell<String>,
    /// What committed calls have taken, and what they and the present batch have taken.
    kept: RefCell<Taken>,
    taken: RefCell<Taken>,
}

/// A die in [`Earlier::dice`]: its faces, and its position among those with so many faces.
type Die = (u32, usize);

impl Earlier {
    /// Adds the rolls of a turn's calls, as its answer lists them. What is known already stays: the first attempt that rolled a die
    /// decides. `as_meant` writes the arguments of a tool as the tool reads them.
    pub fn learn(&mut self, calls: &Value, as_meant: impl Fn(&str, &mut Value)) {
        let mut taken = Taken::default();
        for CallMade { name, mut arguments, result } in calls.as_array().into_iter().flatten().filter_map(read) {
            if name == "roll_dice" {
                let rolls = read(&result).map(|RollsMade { results }| results).unwrap_or_default();
                for RollMade { formula, dice, .. } in
                    rolls.iter().filter_map(read).filter(|roll: &RollMade| roll.success)
                {
                    self.learn_roll(meaning(&formula), &dice, &mut taken);
                }
            } else if let Some(CheckMade { dice }) = read(&result) {
                as_meant(&name, &mut arguments);
                self.learn_roll(meaning_of_call(&name, &arguments), &dice, &mut taken);
            }
        }
    }

    fn learn_roll(&mut self, meaning: String, rolled: &[DieMade], taken: &mut Taken) {
        let Some(rolled) = rolled.iter().map(DieMade::shown).collect::<Option<Vec<_>>>() else { return };
        let nth = taken.count(meaning.clone());
        let known = self.rolls.entry(meaning).or_default();
        let mut own = Own::of(known.get(nth));
        let mut dice = Vec::with_capacity(rolled.len());
        for (faces, value) in rolled {
            let lies = self.dice.entry(faces).or_default();
            let at = own.next(faces, taken);
            if lies.len() == at {
                lies.push(value);
            }
            taken.take((faces, at));
            dice.push((faces, at));
        }
        if known.len() == nth {
            known.push(dice);
        }
    }

    /// A call of a tool begins, with its arguments as the tool reads them.
    pub fn calls(&self, tool: &str, arguments: &Value) {
        *self.call.borrow_mut() = meaning_of_call(tool, arguments);
    }

    /// The dice for the next roll of a formula.
    #[must_use]
    pub fn of_formula(&self, formula: &str) -> Table<'_> {
        self.table(meaning(formula))
    }

    /// The dice for the call that runs.
    #[must_use]
    pub fn of_call(&self) -> Table<'_> {
        self.table(self.call.borrow().clone())
    }

    fn table(&self, meaning: String) -> Table<'_> {
        let mut taken = self.taken.borrow().clone();
        let nth = taken.count(meaning.clone());
        let own = Own::of(self.rolls.get(&meaning).and_then(|rolls| rolls.get(nth)));
        Table { lies: &self.dice, own, taken, used: 0 }
    }

    /// What a roll has taken stays taken.
    pub fn take(&self, table: Table<'_>) {
        *self.taken.borrow_mut() = table.taken;
    }

    /// Starts a batch, possibly again. Rolls of uncommitted calls are open again.
    pub fn begin(&self) {
        self.taken.borrow_mut().clone_from(&self.kept.borrow());
    }

    /// Keeps the rolls when a batch is committed.
    pub fn keep(&self) {
        self.kept.borrow_mut().clone_from(&self.taken.borrow());
    }
}

/// The dice that lie on the table, for one roll.
pub struct Table<'e> {
    lies: &'e HashMap<u32, Vec<u32>>,
    own: Own,
    taken: Taken,
    used: usize,
}

impl Table<'_> {
    /// How many dice the roll has taken.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used
    }
}

impl Dice for Table<'_> {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        let at = self.own.next(faces, &self.taken);
        let value = self.lies.get(&faces).and_then(|lies| lies.get(at));
        let value = *value.ok_or(OutOfDice::TooFew { index: self.used, faces })?;
        self.taken.take((faces, at));
        self.used += 1;
        Ok(value)
    }
}

/// The dice of an earlier roll that means the same, by their faces.
struct Own(HashMap<u32, VecDeque<usize>>);

impl Own {
    fn of(roll: Option<&Vec<Die>>) -> Self {
        let mut own: HashMap<u32, VecDeque<usize>> = HashMap::new();
        roll.into_iter().flatten().for_each(|(faces, at)| own.entry(*faces).or_default().push_back(*at));
        Self(own)
    }

    /// The position of the next die: one of these if it was not taken, or else the first that was not. Nothing may lie there.
    fn next(&mut self, faces: u32, taken: &Taken) -> usize {
        let own = self.0.get_mut(&faces);
        let own = own.and_then(|own| std::iter::from_fn(|| own.pop_front()).find(|at| !taken.has((faces, *at))));
        own.unwrap_or_else(|| taken.first(faces))
    }
}

/// The dice on the table, then others.
pub struct TableFirst<'e, D> {
    pub table: Table<'e>,
    pub rest: D,
}

impl<D: Dice> Dice for TableFirst<'_, D> {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        self.table.roll(faces).or_else(|_| self.rest.roll(faces))
    }
}

/// What an attempt has taken.
#[derive(Clone, Debug, Default)]
struct Taken {
    /// By faces: which dice are taken, and the position of the first that is not.
    dice: HashMap<u32, (Vec<bool>, usize)>,
    /// How often each roll was made.
    rolls: HashMap<String, usize>,
}

impl Taken {
    fn has(&self, (faces, at): Die) -> bool {
        self.dice.get(&faces).and_then(|(taken, _)| taken.get(at)).copied().unwrap_or_default()
    }

    /// The position of the first die with so many faces that is not taken.
    fn first(&self, faces: u32) -> usize {
        self.dice.get(&faces).map_or(0, |(_, first)| *first)
    }

    fn take(&mut self, (faces, at): Die) {
        let (taken, first) = self.dice.entry(faces).or_default();
        if taken.len() <= at {
            taken.resize(at + 1, false);
        }
        if let Some(taken) = taken.get_mut(at) {
            *taken = true;
        }
        while taken.get(*first) == Some(&true) {
            *first += 1;
        }
    }

    /// How often a roll was made before. Counts one more.
    fn count(&mut self, meaning: String) -> usize {
        let count = self.rolls.entry(meaning).or_default();
        *count += 1;
        *count - 1
    }
}

/// What a formula means, however it is written. A text that is no formula stands for itself.
fn meaning(formula: &str) -> String {
    Formula::parse(formula).map_or_else(|_| formula.to_owned(), |formula| formula.meaning())
}

/// What a call means. The arguments are written as the tool reads them.
fn meaning_of_call(tool: &str, arguments: &Value) -> String {
    format!("{tool} {arguments}")
}

/// A part of a stored record. Of other tools and older servers it may have any shape, and then it has no dice.
fn read<'v, T: Deserialize<'v>>(part: &'v Value) -> Option<T> {
    T::deserialize(part).ok()
}

/// A call of an earlier attempt.
#[derive(Deserialize)]
struct CallMade {
    name: String,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    result: Value,
}

/// A result of `roll_dice`.
#[derive(Deserialize)]
struct RollsMade {
    results: Vec<Value>,
}

/// One of its rolls.
#[derive(Deserialize)]
struct RollMade {
    success: bool,
    formula: String,
    dice: Vec<DieMade>,
}

/// A resolver's result.
#[derive(Deserialize)]
struct CheckMade {
    dice: Vec<DieMade>,
}

/// A die, in the order of rolling.
#[derive(Deserialize)]
struct DieMade {
    faces: u32,
    value: i64,
    #[serde(default)]
    kind: Option<String>,
}

impl DieMade {
    /// The faces, and what it showed from 1. None if it cannot have shown that.
    fn shown(&self) -> Option<(u32, u32)> {
        let lowest = match self.kind.as_deref() {
            Some("fate") => -1,
            Some("coin") => 0,
            _ => 1,
        };
        let value = u32::try_from(self.value.checked_sub(lowest)?.checked_add(1)?).ok()?;
        (1..=self.faces).contains(&value).then_some((self.faces, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// An earlier attempt that rolled these formulas with these dice.
    fn attempt(rolls: &[(&str, &[(u32, i32)])]) -> Value {
        let roll = |(formula, dice): &(&str, &[(u32, i32)])| {
            let dice: Vec<Value> =
                dice.iter().map(|(faces, value)| json!({ "faces": faces, "value": value })).collect();
            json!({ "formula": formula, "success": true, "dice": dice })
        };
        let results: Vec<Value> = rolls.iter().map(roll).collect();
        json!([{ "name": "roll_dice", "result": { "results": results } }, { "name": "NPC_memorize" }])
    }

    fn known(attempts: &[Value]) -> Earlier {
        let mut earlier = Earlier::default();
        attempts.iter().for_each(|calls| earlier.learn(calls, |_, _| {}));
        earlier.begin();
        earlier
    }

    /// The total of a roll with the dice on the table alone. None if there are too few.
    fn total(earlier: &Earlier, formula: &str) -> Option<f64> {
        let mut table = earlier.of_formula(formula);
        let total = Formula::parse(formula).unwrap().total(&mut table, &|_: &str| None).ok()?;
        earlier.take(table);
        Some(total)
    }

    #[test]
    fn the_same_roll_gets_its_dice() {
        let earlier = known(&[
            attempt(&[("1d20", &[(20, 7)]), ("1d6", &[(6, 3)])]),
            attempt(&[("1d20", &[(20, 7)]), ("1d20", &[(20, 12)])]),
        ]);
        assert_eq!(total(&earlier, "1d20"), Some(7.0));
        // The batch is tried again.
        earlier.begin();
        assert_eq!(total(&earlier, "1d20"), Some(7.0));
        earlier.keep();
        earlier.begin();
        assert_eq!((total(&earlier, "1d20"), total(&earlier, "1d20")), (Some(12.0), None));
        assert_eq!((total(&earlier, "1d6"), total(&earlier, "1d8")), (Some(3.0), None));
    }

    #[test]
    fn another_spelling_gets_no_other_dice() {
        let first = || attempt(&[("1d6", &[(6, 3)])]);
        for formula in [
            " 1d6",
            "1D6",
            "d6",
            "1d6 # please",
            "1d6[fire]",
            "(1d6)",
            "1d6 + 0",
            "0+d6",
            "1d6 + 0 * 1d6",
            "1d6kh",
            "{1d6}",
        ] {
            let earlier = known(&[first()]);
            let mut table = earlier.of_formula(formula);
            assert_eq!(table.roll(6), Ok(3), "{formula}");
        }
        let earlier = known(&[first()]);
        assert_eq!((total(&earlier, "1d6 + 0"), total(&earlier, "1d6")), (Some(3.0), None));
        let two = known(&[attempt(&[("2d6 + 1d8", &[(6, 1), (6, 2), (8, 3)])])]);
        assert_eq!(total(&two, "1d8 * 100 + d6 * 10 + 1d6"), Some(312.0));
        // A respelling that was rolled is known itself, and brings no dice of its own.
        let again = known(&[first(), attempt(&[("1d6 + 0", &[(6, 3)])])]);
        assert_eq!((total(&again, "1d6 + 0"), total(&again, "1d6")), (Some(3.0), None));
    }

    #[test]
    fn a_new_die_is_known_from_then_on() {
        let first = attempt(&[("1d20", &[(20, 4)])]);
        let second = attempt(&[("1d20 + 5", &[(20, 4)]), ("1d20", &[(20, 13)])]);
        let earlier = known(&[first, second]);
        assert_eq!((total(&earlier, "1d20+5"), total(&earlier, "1d20")), (Some(9.0), Some(13.0)));
        assert_eq!(total(&earlier, "1d20"), None);
        // A roll that failed has shown no die, and takes none.
        let failed =
            json!([{ "name": "roll_dice", "result": { "results": [{ "formula": "1d20 / 0", "success": false }] } }]);
        assert_eq!(total(&known(&[failed]), "1d20"), None);
    }

    #[test]
    fn a_roll_alone_keeps_its_own_dice() {
        let earlier = || known(&[attempt(&[("1d20", &[(20, 4)]), ("1d20 + 3", &[(20, 17)])])]);
        assert_eq!(total(&earlier(), "1d20+3"), Some(20.0));
        let both = earlier();
        assert_eq!((total(&both, "1d20 + 3"), total(&both, "1d20 + 5")), (Some(20.0), Some(9.0)));
        // Two dice of which one lies there: the roll needs one more.
        assert_eq!(total(&earlier(), "3d20"), None);
        assert_eq!(total(&earlier(), "2d20kh"), Some(17.0));
    }

    #[test]
    fn the_same_call_gets_its_dice() {
        let call = |tool: &str, arguments: Value, dice: &[(u32, u32)]| {
            let dice: Vec<Value> =
                dice.iter().map(|(faces, value)| json!({ "faces": faces, "value": value })).collect();
            json!({ "name": tool, "arguments": arguments, "result": { "outcome": "success", "dice": dice } })
        };
        let stealth = json!({ "skill": "stealth", "dc": 12 });
        let search = json!({ "skill": "perception", "dc": 15 });
        let calls = json!([
            call("resolve_skill_check", stealth.clone(), &[(20, 4)]),
            call("resolve_skill_check", search.clone(), &[(20, 17)]),
            call("resolve_attack", json!({ "target_id": "orc" }), &[(20, 9), (8, 5)])
        ]);
        let rolled = |earlier: &Earlier, tool: &str, arguments: &Value| {
            earlier.calls(tool, arguments);
            let mut table = earlier.of_call();
            let die = table.roll(20).ok();
            earlier.take(table);
            die
        };
        let earlier = known(&[calls]);
        assert_eq!(rolled(&earlier, "resolve_skill_check", &search), Some(17));
        assert_eq!(rolled(&earlier, "resolve_skill_check", &json!({ "dc": 12, "skill": "stealth" })), Some(4));
        // Another call takes what is left, and so does a formula.
        assert_eq!(rolled(&earlier, "resolve_skill_check", &json!({ "skill": "stealth", "dc": 11 })), Some(9));
        assert_eq!((total(&earlier, "1d8"), total(&earlier, "1d20")), (Some(5.0), None));
    }

    #[test]
    fn dice_of_fate_and_coins_are_dice() {
        let calls = json!([{ "name": "roll_dice", "result": { "results": [{ "formula": "2dF", "success": true, "dice": [
            { "faces": 3, "value": -1, "kind": "fate" }, { "faces": 3, "value": 0, "kind": "fate" } ] },
            { "formula": "1dc", "success": true, "dice": [{ "faces": 2, "value": 1, "kind": "coin" }] },
            { "formula": "1d6", "success": false }] } }]);
        let earlier = known(&[calls]);
        assert_eq!((total(&earlier, "2dF"), total(&earlier, "1dc")), (Some(-1.0), Some(1.0)));
        assert_eq!(total(&earlier, "1d6"), None);
    }
}
