//! What the house has too much of is counted, and may only become less.

use super::{
    LAYERS,
    counts::Counts,
    folder,
    paths::{Parsed, parse, parsed},
    root,
};

/// Each number may only fall, and the commit that lowers one writes the new one here.
const TOO_MANY: [(&str, usize); 7] = [
    ("files outside of the unit of work that name `StoredAnswer`, except those called `http.rs`", 5),
    ("places that parse the body of an answer", 1),
    ("functions that return `Result<Value>`", 38),
    ("JSON members that are read by their names", 165),
    ("columns that are read by their names", 847),
    ("ids without a type of their own in the parameters and results of functions", 671),
    ("public items that nobody names outside of their crate", 679),
];

/// The crates whose services and pages the counts are about. Those below them read what others send.
const SERVICES: [&str; 5] = ["edge", "world", "ai", "pages", "tavernkeep"];

/// Counts what is listed in [`TOO_MANY`].
fn counted() -> [usize; 7] {
    let of = |folder: &str| -> Vec<(String, Counts)> {
        parsed(root(), folder).into_iter().map(|Parsed { path, file, .. }| (path, Counts::of(&file))).collect()
    };
    let crates: Vec<_> = LAYERS.iter().map(|(name, _)| (*name, of(&format!("{}/src", folder(name))))).collect();
    let services = || crates.iter().filter(|(name, _)| SERVICES.contains(name)).flat_map(|(_, files)| files);
    let sum = |count: fn(&Counts) -> usize| services().map(|(_, counts)| count(counts)).sum();
    // These use the crates as others would.
    let users: Vec<_> = ["tests", "bench", "suite", "fuzz"].iter().flat_map(|folder| of(folder)).collect();
    let unnamed = |own: &str, files: &[(String, Counts)]| {
        let others = crates.iter().filter(|(other, _)| *other != own).flat_map(|(_, files)| files);
        let others: Vec<&Counts> = others.chain(&users).map(|(_, counts)| counts).collect();
        let public = files.iter().flat_map(|(_, counts)| &counts.public);
        public.filter(|name| !others.iter().any(|counts| counts.names.contains(*name))).count()
    };
    [
        services()
            .filter(|(path, counts)| {
                counts.has_bytes && !path.ends_with("/http.rs") && !path.starts_with("edge/src/http/")
            })
            .count(),
        sum(|counts| counts.parsed_bodies),
        sum(|counts| counts.untyped_results),
        sum(|counts| counts.members_by_name),
        sum(|counts| counts.columns_by_name),
        sum(|counts| counts.bare_ids),
        crates.iter().map(|(name, files)| unnamed(name, files)).sum(),
    ]
}

#[test]
fn what_there_is_too_much_of_only_falls() {
    let found: Vec<(&str, usize)> = TOO_MANY.iter().map(|(what, _)| *what).zip(counted()).collect();
    assert!(found == TOO_MANY, "now there are {found:#?}; write down what has fallen, and mend what has risen");
}

/// Each rule counts what it says, and nothing else.
#[test]
fn the_rules_of_counting_hold() {
    let counts = Counts::of(&parse(
        "planted.rs",
        r#"
        pub struct Shown;
        pub(crate) struct Inner;
        struct Private;
        pub fn make(id: Uuid, others: &[Uuid]) -> Result<Value> { read(row.read("id")?, row.read(name)?) }
        impl Shown { pub fn find(&self) -> Result<Option<uuid::Uuid>> { Ok(None) } }
        fn far() -> impl Future<Output = Result<serde_json::Value, Error>> { async { Ok(value["name"].clone()) } }
        fn near() -> Result<Vec<Value>> {
            value["name"] = other["name"].take();
            (value.get("name").and_then(Value::as_str), value.get("name"), value.get(name), value.pointer("/name"), value[0])
        }
        fn parse() { (serde_json::from_slice(&reply.body), from_str::<Value>(body), from_slice(&bytes), from_slice(row)) }
        #[cfg(test)]
        mod tests {
            pub struct Planted(StoredAnswer);
            fn id(id: Uuid) -> Result<Value> { value["name"]; row.read("id"); from_slice(&reply.body) }
        }
        "#,
    ));
    assert_eq!(counts.public, ["Shown", "make"]);
    assert_eq!((counts.parsed_bodies, counts.untyped_results, counts.members_by_name), (2, 2, 4));
    assert_eq!((counts.columns_by_name, counts.bare_ids, counts.has_bytes), (1, 3, false));
    let named = ["use edge::http::StoredAnswer;", "fn f() -> Result<StoredAnswer> { g() }"];
    assert!(named.iter().all(|text| Counts::of(&parse("planted.rs", text)).has_bytes));
}
