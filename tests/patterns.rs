//! Patterns of paths, as the gate and the router compare them.

use std::collections::BTreeMap;

use edge::patterns::{Patterns, Row, fits, values};
use proptest::prelude::*;

/// A part of a pattern, and what stands for it in a path.
fn part() -> impl Strategy<Value = (String, String)> {
    let fixed = "[a-z.-]{1,8}".prop_map(|part| (part.clone(), part));
    let open = ("[a-z]{1,4}", "[^/]{1,12}").prop_map(|(name, value)| (format!("{{{name}}}"), value));
    prop_oneof![fixed, open]
}

proptest! {
    #[test]
    fn a_pattern_fits_its_paths_and_gives_their_values(parts in prop::collection::vec(part(), 1..6)) {
        let pattern: String = parts.iter().map(|(part, _)| format!("/{part}")).collect();
        let path: String = parts.iter().map(|(_, value)| format!("/{value}")).collect();
        prop_assert!(fits(&pattern, &path));
        let is_open = |part: &str| part.starts_with('{');
        let wanted: Vec<_> = parts.iter().filter(|(part, _)| is_open(part)).map(|(_, value)| value.as_str()).collect();
        prop_assert_eq!(values(&pattern, &path).map(|(_, value)| value).collect::<Vec<_>>(), wanted);

        let longer = format!("{}/more", path);
        let slashed = format!("{}/", path);
        prop_assert!(!fits(&pattern, &longer) && !fits(&pattern, &slashed) && !fits(&pattern, ""));
    }

    #[test]
    fn any_path_is_compared_without_a_panic(pattern in ".{0,40}", path in ".{0,40}") {
        let found = fits(&pattern, &path);
        prop_assert_eq!(found, Patterns::new([Row { method: "GET", pattern: pattern.into(), value: () }]).find("GET", &path).is_some());
    }
}

#[test]
fn the_first_pattern_and_its_method_count() {
    let rows = [
        ("GET", "/models/new", 1),
        ("GET", "/models/{x}", 2),
        ("POST", "/models/{x}", 3),
        ("GET", "", 4),
        ("GET", "/", 5),
    ];
    let rows = rows.map(|(method, pattern, value)| Row { method, pattern: pattern.into(), value });
    let patterns = Patterns::new(rows);
    let asked = [
        ("GET", "/models/new"),
        ("GET", "/models/a"),
        ("POST", "/models/new"),
        ("PUT", "/models/a"),
        ("GET", "/models/"),
        ("GET", ""),
        ("GET", "/"),
    ];
    let found: Vec<_> = asked.map(|(method, path)| patterns.find(method, path).map(|row| row.value)).into();
    assert_eq!(found, [Some(1), Some(2), Some(3), None, None, Some(4), Some(5)]);
    assert_eq!(patterns.methods("/models/new"), ["GET", "POST"]);
    let named: BTreeMap<_, _> = values("/c/{c}/lore/{x}", "/c/saltmarsh/lore/reef").collect();
    assert_eq!(named, [("c", "saltmarsh"), ("x", "reef")].into());
}
