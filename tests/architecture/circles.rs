//! Circles of files: files of a crate that use each other's items, directly or through other files. Whoever reads one of
//! them has to read them all.
//!
//! A file uses another one if it names an item that is defined there, through whatever re-exports. Neither `mod`, nor a
//! re-export that the file itself does not use, nor a test makes a file use another one. Calls of methods are not seen.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{Source, Used};

/// How many re-exports a name is followed through.
const STEPS_MAX: usize = 16;

/// The files of a crate.
pub struct Files<'a> {
    by_module: BTreeMap<&'a [String], &'a Source>,
}

/// For each file, the files that it uses, with the names that it takes from them.
pub type Uses<'a> = BTreeMap<&'a str, BTreeMap<&'a str, BTreeSet<String>>>;

impl<'a> Files<'a> {
    pub fn new(sources: &'a [Source]) -> Self {
        // A program names its library as if it were another crate.
        let library = sources.iter().filter(|source| !source.path.ends_with("src/main.rs"));
        Self { by_module: library.map(|source| (&*source.module, source)).collect() }
    }

    pub fn uses(&self) -> Uses<'a> {
        let mut uses = Uses::new();
        for &source in self.by_module.values() {
            let of_file = uses.entry(&*source.path).or_default();
            for used in source.used.iter().filter(|used| counts(source, used)) {
                let path = self.inside(source, used, STEPS_MAX);
                let Some((other, name)) = path.and_then(|path| self.definition(&path, true, STEPS_MAX)) else {
                    continue;
                };
                if other.path != source.path {
                    of_file.entry(&*other.path).or_default().insert(name);
                }
            }
        }
        uses
    }

    /// The path within the crate, if it is inside the crate.
    fn inside(&self, source: &Source, used: &Used, steps: usize) -> Option<Vec<String>> {
        if used.is_inside {
            return Some(used.path.clone());
        }
        let (first, rest) = used.path.split_first()?;
        let child = [&*source.module, &used.path[..1]].concat();
        if source.defined.contains(first) || self.by_module.contains_key(&*child) {
            return Some([&*source.module, &used.path].concat());
        }
        let steps = steps.checked_sub(1)?;
        let import = imports(source, first).find(|import| import.path != used.path)?;
        Some([&*self.inside(source, import, steps)?, rest].concat())
    }

    /// The file that defines what a path names, and the name. A path that names a module itself names no item. An item
    /// that is not found comes from a macro, which is presumed to be in the module that the path names.
    fn definition(&self, path: &[String], is_presumed: bool, steps: usize) -> Option<(&'a Source, String)> {
        let steps = steps.checked_sub(1)?;
        let end = (0..=path.len()).rev().find(|&end| self.by_module.contains_key(&path[..end]))?;
        let Some(name) = path.get(end) else { return self.namesake(path, steps) };
        let source = self.by_module[&path[..end]];
        if source.defined.contains(name) {
            return Some((source, name.clone()));
        }
        if end == 0
            && let Some(other) = self.by_module.values().find(|other| other.exported.contains(name))
        {
            return Some((other, name.clone()));
        }
        if let Some(import) = imports(source, name).next() {
            let target = self.inside(source, import, steps)?;
            return self.definition(&[&*target, &path[end + 1..]].concat(), true, steps);
        }
        let mut everything = imports(source, "*");
        let found = everything.find_map(|import| {
            let target = self.inside(source, import, steps)?;
            self.definition(&[&*target, &path[end..]].concat(), false, steps)
        });
        found.or_else(|| is_presumed.then(|| (source, name.clone())))
    }

    /// The item that has the same name as a module and is re-exported beside it.
    fn namesake(&self, module: &[String], steps: usize) -> Option<(&'a Source, String)> {
        let (name, parent) = module.split_last()?;
        let source = self.by_module.get(parent)?;
        let targets = imports(source, name).filter_map(|import| self.inside(source, import, steps));
        let mut others = targets.filter(|target| target != module);
        others.find_map(|target| self.definition(&target, true, steps))
    }
}

/// The imports of a source that bring a name into its scope.
fn imports<'a>(source: &'a Source, name: &str) -> impl Iterator<Item = &'a Used> {
    source.used.iter().filter(move |used| used.import.as_ref().is_some_and(|import| import.name == name))
}

/// Whether the file itself uses what it names: a re-export alone does not.
fn counts(source: &Source, used: &Used) -> bool {
    let is_only_passed_on =
        used.import.as_ref().is_some_and(|import| import.is_passed_on && !source.words.contains(&import.name));
    !used.is_tested && !is_only_passed_on
}

/// The files that can be reached from a file.
fn reached<'a>(uses: &Uses<'a>, file: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut next = vec![file];
    while let Some(file) = next.pop() {
        next.extend(uses[file].keys().filter(|other| found.insert(**other)));
    }
    found
}

/// The circles, each with its files in order.
pub fn circles<'a>(uses: &Uses<'a>) -> BTreeSet<Vec<&'a str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = uses.keys().map(|file| (*file, reached(uses, file))).collect();
    let circle = |file: &&'a str| -> Vec<&'a str> {
        uses.keys().copied().filter(|other| reached[file].contains(other) && reached[other].contains(file)).collect()
    };
    uses.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

/// A circle in words: each of its files, what it uses of the others, and the names that tie them.
pub fn described(uses: &Uses<'_>, circle: &[&str]) -> String {
    let mut text = format!("these {} files use each other:\n", circle.len());
    for file in circle {
        for (other, names) in uses[file].iter().filter(|(other, _)| circle.contains(other)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            text += &format!("  {file} -> {other}: {}\n", names.join(", "));
        }
    }
    text
}

fn planted(files: &[(&str, &str)]) -> Vec<String> {
    let source = |(path, text): &(&str, &str)| {
        let module = path.trim_end_matches(".rs").split('/').filter(|part| !matches!(*part, "mod" | "lib"));
        Source::parse(path, module.map(str::to_owned).collect(), text)
    };
    let sources: Vec<Source> = files.iter().map(source).collect();
    let uses = Files::new(&sources).uses();
    circles(&uses).iter().map(|circle| described(&uses, circle)).collect()
}

#[test]
fn a_planted_circle_is_found() {
    let other = ("room/other.rs", "use super::file::Thing; pub fn other(thing: Thing) {}");
    for text in [
        "use super::other::other; pub struct Thing;",
        "use crate::room::other; pub struct Thing; fn f() { other::other() }",
        "pub struct Thing; fn f() { super::other::other() }",
        "pub struct Thing; fn f() { print!(\"{}\", super::other::other()) }",
        "use super::again; pub struct Thing;",
        "use super::everything; pub struct Thing;",
        "use crate::room::deep::deeper; pub struct Thing;",
    ] {
        let found = planted(&[
            ("lib.rs", "mod room;"),
            ("room/mod.rs", "mod deep; mod file; mod other; pub use other::other as again; pub use deep::*;"),
            ("room/deep.rs", "pub use super::other::other as everything; pub use super::again as deeper;"),
            ("room/file.rs", text),
            other,
        ]);
        let expected = "these 2 files use each other:\n  room/file.rs -> room/other.rs: other\n  room/other.rs -> room/file.rs: Thing\n";
        assert_eq!(found, [expected], "{text}");
    }
}

#[test]
fn what_makes_no_circle_is_not_found() {
    let file = ("room/file.rs", "use super::{Lower, lower}; pub struct Thing; fn f() { lower::low() }");
    let lower = ("room/lower.rs", "pub struct Lower; pub fn low() {}");
    for text in [
        "mod file; mod lower; pub use lower::Lower; use file::Thing;",
        "mod file; mod lower; pub use {file::Thing, lower::Lower};",
        "mod file; mod lower; pub(crate) use lower::*; pub struct Other(file::Thing);",
        "mod file; mod lower; pub use lower::Lower; pub struct Other; #[cfg(test)] mod tests { use super::file::Thing; }",
    ] {
        assert_eq!(planted(&[("room/mod.rs", text), file, lower]), Vec::<String>::new(), "{text}");
    }
    let text = "mod file; mod lower; pub struct Lower(file::Thing);";
    assert_eq!(planted(&[("room/mod.rs", text), file, lower]).len(), 1);
}
