//! The fields of a card, for reports: where they are in the file, and how much of their texts is kept.

/// The largest number of characters in a description or personality.
pub(super) const TEXT_CHARS_MAX: usize = 20_000;
/// Why a text is not all there.
pub(super) const CUT: &str = "cut off after 20000 characters";

/// The path of the card's fields in the file, for reports.
#[derive(Clone, Copy)]
pub(super) struct At(pub(super) &'static str);

impl At {
    pub(super) fn path(self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }
}
