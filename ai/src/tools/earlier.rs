//! What a turn's earlier attempts rolled. The same formula gets the same dice again.

use std::{cell::RefCell, collections::HashMap};

use serde_json::Value;

/// The dice of `roll_dice`, by formula.
#[derive(Clone, Debug, Default)]
pub struct Earlier {
    /// For each formula the dice of its first roll, its second roll, and so on.
    rolls: HashMap<String, Vec<Vec<u32>>>,
    /// How many rolls of each formula were taken by committed calls, and by the present batch.
    kept: RefCell<Taken>,
    taken: RefCell<Taken>,
}

/// How often each formula was rolled.
type Taken = HashMap<String, usize>;

impl Earlier {
    /// Adds the rolls of a turn's calls, as its answer lists them. What is known already stays: the first attempt that rolled a formula
    /// that often decides.
    pub fn learn(&mut self, calls: &Value) {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let rolls = calls.as_array().into_iter().flatten().filter(|call| call["name"] == "roll_dice");
        for roll in rolls.flat_map(|call| call["result"]["results"].as_array().into_iter().flatten()) {
            let (Some(formula), Some(dice)) = (roll["formula"].as_str(), dice_of(roll)) else { continue };
            let count = counts.entry(formula).or_default();
            let known = self.rolls.entry(formula.to_owned()).or_default();
            if known.len() == *count {
                known.push(dice);
            }
            *count += 1;
        }
    }

    /// The dice of the next roll of a formula, if it was rolled that often before.
    pub fn take(&self, formula: &str) -> Option<&[u32]> {
        let mut taken = self.taken.borrow_mut();
        let count = taken.entry(formula.to_owned()).or_default();
        let dice = self.rolls.get(formula).and_then(|rolls| rolls.get(*count));
        *count += 1;
        dice.map(Vec::as_slice)
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

/// The values of a roll's dice, in the order in which given dice are used. None for a roll that failed.
fn dice_of(roll: &Value) -> Option<Vec<u32>> {
    if roll["success"] != true {
        return None;
    }
    let dice = roll["dice"].as_array()?;
    dice.iter().map(|die| die["value"].as_u64().and_then(|value| u32::try_from(value).ok())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_formula_gets_the_dice_of_its_turn() {
        let call = |rolls: &[(&str, u32)]| {
            let results: Vec<Value> = rolls
                .iter()
                .map(|(formula, value)| json!({ "formula": formula, "success": true, "dice": [{ "faces": 20, "value": value }] }))
                .collect();
            json!([{ "name": "roll_dice", "result": { "results": results } }, { "name": "NPC_memorize" }])
        };
        let mut earlier = Earlier::default();
        earlier.learn(&call(&[("1d20", 7), ("1d6", 3)]));
        earlier.learn(&call(&[("1d20", 11), ("1d20", 12)]));
        earlier.begin();
        assert_eq!(earlier.take("1d20"), Some(&[7][..]));
        // The batch is tried again.
        earlier.begin();
        assert_eq!(earlier.take("1d20"), Some(&[7][..]));
        earlier.keep();
        earlier.begin();
        assert_eq!((earlier.take("1d20"), earlier.take("1d20")), (Some(&[12][..]), None));
        assert_eq!((earlier.take("1d6"), earlier.take("1d8")), (Some(&[3][..]), None));
    }
}
