//! What players see of a fight and of a turn is named member by member. A member that is planted in one of these types does not compile until somebody
//! has decided who sees it, as long as each is taken apart whole.

use std::{collections::BTreeMap, fs};

use syn::{
    Local, Pat,
    visit::{self, Visit},
};

use super::{paths::parse, root};

/// The types of which players see parts.
const TAKEN_APART: [&str; 8] =
    ["AttackRoll", "Damage", "Hazard", "Outcome", "ParticipantView", "Parties", "Terrain", "View"];

/// The types that `let` takes apart, and whether it always names every member.
#[derive(Default)]
struct TakenApart(BTreeMap<String, bool>);

impl Visit<'_> for TakenApart {
    fn visit_local(&mut self, local: &Local) {
        if let Pat::Struct(pattern) = &local.pat
            && let Some(last) = pattern.path.segments.last()
        {
            *self.0.entry(last.ident.to_string()).or_insert(true) &= pattern.rest.is_none();
        }
        visit::visit_local(self, local);
    }
}

fn taken_apart(path: &str, text: &str) -> Vec<(String, bool)> {
    let mut found = TakenApart::default();
    found.visit_file(&parse(path, text));
    found.0.into_iter().collect()
}

#[test]
fn every_member_of_a_fight_and_of_a_turn_is_shown_or_left_out_by_name() {
    let path = "rules/src/encounter/seen.rs";
    let text = fs::read_to_string(root().join(path)).expect(path);
    let whole = TAKEN_APART.map(|name| (name.to_owned(), true));
    assert_eq!(taken_apart(path, &text), whole, "each type is taken apart by `let Type {{ … }}` without `..`");

    let path = "ai/src/turns/words.rs";
    let text = fs::read_to_string(root().join(path)).expect(path);
    let whole = ["TurnRecord", "TurnView"].map(|name| (name.to_owned(), true));
    let found: Vec<_> = taken_apart(path, &text).into_iter().filter(|(name, _)| name.starts_with("Turn")).collect();
    assert_eq!(found, whole, "each type is taken apart by `let Type {{ … }}` without `..`");

    let planted = "fn f() { let Outcome { check_type, .. } = it; let g = || { let Damage { taken } = it; }; }";
    let found = taken_apart("planted.rs", planted);
    assert_eq!(found, [("Damage".to_owned(), true), ("Outcome".to_owned(), false)]);
}
