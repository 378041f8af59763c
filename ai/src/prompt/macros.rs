//! Macros in texts that people wrote: `{{char}}`, `{{user}}` and others. `docs/instructions.md` lists them.
//!
//! They are filled in when a prompt is built, and always in the same way: what is random depends on a seed. In the base prompt, which
//! must stay the same from turn to turn, the seed is the entity and the player. In a text that belongs to a turn, it is the entity and the turn.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::cast::Cast;
use world::interchange::text::{choices, fill, same_for_all, within};

pub use world::interchange::text::has_macros;

/// The most characters of a text with its macros filled in.
const CHARS_MAX: usize = 100_000;
/// The most dice of a roll, and the most faces of a die.
const DICE_MAX: u32 = 100;
const FACES_MAX: u32 = 1000;
/// The most bytes of a roll's formula, and the most random macros of a text.
const FORMULA_BYTES_MAX: usize = 12;
const DRAWS_MAX: u32 = 500;
/// The most characters of a name that are filled in.
const NAME_CHARS_MAX: usize = 60;

/// What the macros of a text mean.
#[derive(Clone, Copy)]
pub struct Macros<'a> {
    character: &'a str,
    player: &'a str,
    /// The text that `{{original}}` stands for.
    original: &'a str,
    seed: [Uuid; 2],
}

impl<'a> Macros<'a> {
    /// For a text of the base prompt.
    #[must_use]
    pub fn of_base(cast: &'a Cast) -> Self {
        Self::seeded(cast, [cast.entity.id, cast.player.id])
    }

    /// For a text that belongs to a turn.
    #[must_use]
    pub fn of_turn(cast: &'a Cast, turn: Uuid) -> Self {
        Self::seeded(cast, [cast.entity.id, turn])
    }

    fn seeded(cast: &'a Cast, seed: [Uuid; 2]) -> Self {
        // A file may bring names. In instructions a long one could be read as one.
        let (character, player) =
            (within(&cast.entity.called, NAME_CHARS_MAX), within(&cast.player.name, NAME_CHARS_MAX));
        Self { character, player, original: "", seed }
    }

    /// The same, with a text for `{{original}}`.
    #[must_use]
    pub fn over(self, original: &'a str) -> Self {
        Self { original, ..self }
    }

    /// The text with its macros filled in. Unknown macros stay as they are.
    #[must_use]
    pub fn fill(&self, text: &'a str) -> Cow<'a, str> {
        self.fill_and_see(text).0
    }

    /// The same, and whether the text contains `{{original}}`.
    #[must_use]
    pub fn fill_and_see(&self, text: &'a str) -> (Cow<'a, str>, bool) {
        if !has_macros(text) {
            return (text.into(), false);
        }
        let mut inserts_original = false;
        let mut number = 0u32;
        let meaning = |name: &str, value: &'a str| -> Option<Cow<'a, str>> {
            number += 1;
            match name {
                "char" => Some(self.character.into()),
                "user" => Some(self.player.into()),
                "original" => {
                    inserts_original = true;
                    Some(self.original.into())
                }
                "random" | "pick" | "roll" if number > DRAWS_MAX => None,
                "random" | "pick" => {
                    let choices: Vec<String> = choices(value).collect();
                    let chosen = self.number(number, u64::try_from(choices.len()).unwrap_or(1));
                    choices.into_iter().nth(usize::try_from(chosen).unwrap_or(0)).map(Into::into)
                }
                "roll" => self.roll(number, value).map(|total| total.to_string().into()),
                _ => same_for_all(name, value),
            }
        };
        (fill(text, CHARS_MAX, meaning).into(), inserts_original)
    }

    /// The total of `6`, `d6` or `2d6`. None for anything else.
    fn roll(&self, number: u32, formula: &str) -> Option<u64> {
        let formula = formula.trim();
        if formula.len() > FORMULA_BYTES_MAX {
            return None;
        }
        let formula = formula.to_ascii_lowercase();
        let (dice, faces) = formula.split_once('d').unwrap_or(("", &formula));
        let dice = if dice.is_empty() { 1 } else { dice.parse::<u32>().ok()? };
        let faces = faces.parse::<u32>().ok()?;
        if !(1..=DICE_MAX).contains(&dice) || !(1..=FACES_MAX).contains(&faces) {
            return None;
        }
        Some((0..dice).map(|die| 1 + self.number(number * DICE_MAX + die, faces.into())).sum())
    }

    /// A number below `below`. It depends on the seed and on the number of the draw.
    fn number(&self, draw: u32, below: u64) -> u64 {
        let hash = Sha256::new()
            .chain_update(self.seed[0].as_bytes())
            .chain_update(self.seed[1].as_bytes())
            .chain_update(draw.to_be_bytes())
            .finalize();
        let number = hash.iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        number % below.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn macros(seed: u128) -> Macros<'static> {
        Macros { character: "Ann", player: "{{char}}", original: "Be brief.", seed: [Uuid::from_u128(seed); 2] }
    }

    #[test]
    fn macros_have_their_meaning_and_are_read_once() {
        for (text, filled) in [
            ("{{char}} and {{User}}, <bot>", "Ann and {{char}}, Ann"),
            ("{{original}} {{// not this}}{{unknown}}", "Be brief. {{unknown}}"),
            ("{{pick:a}} {{roll:1}} {{roll:x}} {{reverse:abc}}", "a 1 {{roll:x}} cba"),
        ] {
            assert_eq!(macros(1).fill(text), filled, "{text}");
        }
    }

    #[test]
    fn what_is_random_depends_on_the_seed_alone() {
        let text = "{{random:a,b,c,d,e,f}} {{roll:3d6}} {{pick::x::y::z}}";
        assert_eq!(macros(1).fill(text), macros(1).fill(text));
        let all: std::collections::HashSet<String> = (0..50).map(|seed| macros(seed).fill(text).into_owned()).collect();
        assert!(all.len() > 20, "{}", all.len());
        for seed in 0..200 {
            let roll: u32 = macros(seed).fill("{{roll:2d6}}").parse().unwrap();
            assert!((2..=12).contains(&roll));
        }
    }
}
