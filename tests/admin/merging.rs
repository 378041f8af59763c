//! Texts of two people put together: whatever they hold, a field gets nothing that nobody wrote.

use pages::admin::diff::merged;
use proptest::prelude::*;

/// Lines that are easily taken for others, marks of conflicts among them; with an end or without one.
fn text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "Knight.",
        "A rose",
        "a",
        "",
        "=======",
        "<<<<<<< ours",
        ">>>>>>> theirs",
        "||||||| x",
        "==========",
        "<",
        "\r",
    ]);
    (prop::collection::vec(line, 0..7), any::<bool>())
        .prop_map(|(lines, is_ended)| lines.join("\n") + if is_ended { "\n" } else { "" })
}

proptest! {
    #[test]
    fn every_line_of_it_was_written_by_somebody(base in text(), mine in text(), theirs in text()) {
        let (both, _) = merged(&base, &mine, &theirs);
        let mut lines = [&base, &mine, &theirs].into_iter().flat_map(|text| text.split('\n')).collect::<Vec<_>>();
        lines.push("");
        for line in both.split('\n') {
            prop_assert!(lines.contains(&line), "{line:?} of {both:?}");
        }
        prop_assert_eq!(merged(&base, &mine, &base), (mine.clone(), false));
        prop_assert_eq!(merged(&base, &mine, &mine), (mine.clone(), false));
    }
}

#[test]
fn a_last_line_without_an_end_is_a_line() {
    let thorn = "Knight of the thorn.";
    assert_eq!(merged("Knight.", thorn, "Knight of the rose."), (thorn.to_owned(), true));
    let (mine, theirs) = ("First, mine.\nSecond.\nLast.", "First.\nSecond.\nLast, theirs.");
    assert_eq!(
        merged("First.\nSecond.\nLast.", mine, theirs),
        ("First, mine.\nSecond.\nLast, theirs.".to_owned(), false)
    );
}
