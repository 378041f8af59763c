//! The emblem of a person who has no picture: two letters of the name on one of eight colours, always the same for a name.

/// The number of colours, `.e0` to `.e7` in the stylesheet.
const COLOURS: u32 = 8;

/// An emblem.
pub struct Emblem {
    pub letters: String,
    pub colour: u32,
}

impl Emblem {
    /// The emblem of a name: the first letters of its first and last word.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let mut first = name.split_whitespace().filter_map(|word| word.chars().find(|c| c.is_alphanumeric()));
        let letters = first.next().into_iter().chain(first.next_back());
        // FNV-1a: any function that spreads names evenly would do, as long as it never changes.
        let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Self { letters: letters.flat_map(char::to_uppercase).collect(), colour: hash % COLOURS }
    }
}

#[cfg(test)]
mod tests {
    use super::Emblem;

    #[test]
    fn an_emblem_has_two_letters_of_any_script() {
        let letters = |name: &str| Emblem::of(name).letters;
        assert_eq!(letters("Innkeeper Bob"), "IB");
        assert_eq!(letters("  alice "), "A");
        assert_eq!(letters("\"Ælf\" the 3rd ёж"), "ÆЁ");
        assert_eq!(letters("<!-- -->"), "");
        assert_eq!(letters(""), "");
        // The same in every version: people know others by their colour.
        assert_eq!(["Bob", "Alice", "Innkeeper Bob"].map(|name| Emblem::of(name).colour), [4, 7, 1]);
    }
}
