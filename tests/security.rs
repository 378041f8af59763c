//! `docs/security.md` names tests; every one of them is there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The functions of a source that are tests: those that follow an attribute with `test` in it.
fn tests_of(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[") {
            is_test |= line.contains("test");
        } else if let Some(rest) =
            line.split_once("fn ").filter(|_| is_test && !line.starts_with("//")).map(|(_, rest)| rest)
        {
            found.insert(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
            is_test = false;
        } else if !line.is_empty() && !line.starts_with("//") && !line.ends_with(']') {
            is_test = false;
        }
    }
    found
}

/// What stands between backquotes and names a test: `tests/file.rs::name`, or a source alone.
fn named(text: &str) -> Vec<(String, Option<String>)> {
    let codes = text.split('`').skip(1).step_by(2);
    let is_path = |path: &str| Path::new(path).extension().is_some_and(|e| e == "rs") && path.contains('/');
    codes
        .filter_map(|code| match code.split_once("::") {
            Some((path, name)) if is_path(path) => Some((path.to_owned(), Some(name.to_owned()))),
            None if is_path(code) => Some((code.to_owned(), None)),
            _ => None,
        })
        .collect()
}

#[test]
fn every_test_that_the_document_names_is_there() {
    let text = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let named = named(&text);
    assert!(named.iter().filter(|(_, test)| test.is_some()).count() > 60, "it names only {}", named.len());
    let mut wrong = BTreeSet::new();
    for (path, test) in named {
        let Ok(source) = fs::read_to_string(root().join(&path)) else {
            wrong.insert(format!("{path} is not there"));
            continue;
        };
        if let Some(test) = test.filter(|test| !tests_of(&source).contains(test)) {
            wrong.insert(format!("{path} has no test {test}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Every requirement of the levels 1 and 2 is answered once.
#[test]
fn every_requirement_is_answered() {
    let text = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("| V")?.split(' ').next()).collect();
    let unique: BTreeSet<&str> = lines.iter().copied().collect();
    assert_eq!(lines.len(), unique.len(), "a number stands twice");
    assert_eq!(unique.len(), 253, "OWASP ASVS 5.0 has 253 requirements of the levels 1 and 2");
    for (chapter, count) in REQUIREMENTS {
        let prefix = format!("{chapter}.");
        assert_eq!(unique.iter().filter(|number| number.starts_with(&prefix)).count(), *count, "V{chapter}");
    }
}

/// How many requirements of the levels 1 and 2 each chapter has.
const REQUIREMENTS: &[(&str, usize)] = &[
    ("1", 27),
    ("2", 11),
    ("3", 19),
    ("4", 10),
    ("5", 9),
    ("6", 35),
    ("7", 18),
    ("8", 7),
    ("9", 7),
    ("10", 29),
    ("11", 14),
    ("12", 9),
    ("13", 13),
    ("14", 9),
    ("15", 13),
    ("16", 16),
    ("17", 7),
];

#[test]
fn tests_are_found_by_their_attributes() {
    let source = "#[test]\nfn one() {}\nfn no_test() {}\n#[tokio::test(flavor = \"x\")]\n#[rstest]\nasync fn two() {\n    fn inner() {}\n}\n";
    assert_eq!(tests_of(source), ["one", "two"].map(str::to_owned).into());
}
