//! Reads Rust sources and lists the paths they name: in imports, in code, in macros and in attributes. It also lists the
//! items that each source defines.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, Expr, ExprMethodCall, Item, ItemFn, ItemMod, ItemUse, Macro, Meta, UseTree, Visibility,
    visit::{self, Visit},
};

/// A path that a source names. The first part is a room if the path is inside the crate, otherwise a crate or a name
/// in scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    pub is_inside: bool,
    pub path: Vec<String>,
    /// Whether only tests use it.
    pub is_tested: bool,
    pub import: Option<Import>,
}

/// What an import does with the path that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The name in scope; `*` stands for everything.
    pub name: String,
    /// Whether the name has a visibility: `pub use`, `pub(crate) use`.
    pub is_passed_on: bool,
}

/// One file.
pub struct Source {
    /// From the root of the repository.
    pub path: String,
    /// The file's module within its crate.
    pub module: Vec<String>,
    pub used: Vec<Used>,
    /// The items outside of functions and inline modules.
    pub defined: BTreeSet<String>,
    /// The macros that are found at the root of the crate.
    pub exported: BTreeSet<String>,
    /// The first names of all paths in the code, except in tests.
    pub words: BTreeSet<String>,
    /// Whether it calls `acquire` on something named `pool`.
    pub takes_from_pool: bool,
}

impl Source {
    /// # Panics
    /// If the text is not Rust.
    pub fn parse(path: &str, module: Vec<String>, text: &str) -> Self {
        Self::of(Parsed { path: path.to_owned(), module, file: parse(path, text) })
    }

    fn of(Parsed { path, module, file }: Parsed) -> Self {
        let mut reader = Reader { module: module.clone(), ..Reader::default() };
        reader.visit_file(&file);
        Self {
            path,
            module,
            used: reader.used,
            defined: file.items.iter().filter_map(defined).collect(),
            exported: file.items.iter().filter_map(exported).collect(),
            words: reader.words,
            takes_from_pool: reader.takes_from_pool,
        }
    }
}

/// The name that an item defines.
fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Mod(item) if item.content.is_some() => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// The name of a macro that the whole crate can call.
fn exported(item: &Item) -> Option<String> {
    let Item::Macro(item) = item else { return None };
    let is_exported = item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"));
    item.ident.as_ref().filter(|_| is_exported).map(ToString::to_string)
}

/// A file as the compiler reads it.
pub struct Parsed {
    /// From the root of the repository.
    pub path: String,
    /// The file's module within its crate.
    pub module: Vec<String>,
    pub file: syn::File,
}

/// All sources of a crate.
pub fn sources(root: &Path, folder: &str) -> Vec<Source> {
    let sources: Vec<_> = parsed(root, &format!("{folder}/src")).into_iter().map(Source::of).collect();
    assert!(!sources.is_empty(), "{folder} has no sources");
    sources
}

/// All Rust files of a folder.
pub fn parsed(root: &Path, folder: &str) -> Vec<Parsed> {
    let base = root.join(folder);
    let mut found = Vec::new();
    files(&base, &mut found);
    found
        .iter()
        .map(|file| {
            let inside = file.strip_prefix(&base).unwrap().with_extension("");
            let mut module: Vec<String> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if module.last().is_some_and(|last| matches!(&**last, "mod" | "lib" | "main")) {
                module.pop();
            }
            let path = format!("{folder}/{}", file.strip_prefix(&base).unwrap().display());
            let file = parse(&path, &fs::read_to_string(file).unwrap());
            Parsed { path, module, file }
        })
        .collect()
}

/// # Panics
/// If the text is not Rust.
pub fn parse(path: &str, text: &str) -> syn::File {
    syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[derive(Default)]
struct Reader {
    module: Vec<String>,
    used: Vec<Used>,
    words: BTreeSet<String>,
    is_in_tests: bool,
    takes_from_pool: bool,
}

impl Reader {
    /// Notes a path as it is written, with `crate`, `self` and `super` resolved.
    fn note(&mut self, parts: &[String], import: Option<Import>) {
        let mut rest = parts;
        let mut at = match rest.first().map(String::as_str) {
            Some("crate") => {
                rest = &rest[1..];
                Vec::new()
            }
            Some("self" | "super") => self.module.clone(),
            Some(_) => {
                self.push(false, parts.to_vec(), import);
                return;
            }
            None => return,
        };
        while let Some(step @ ("self" | "super")) = rest.first().map(String::as_str) {
            if step == "super" {
                at.pop();
            }
            rest = &rest[1..];
        }
        at.extend(rest.iter().cloned());
        if !at.is_empty() {
            self.push(true, at, import);
        }
    }

    fn push(&mut self, is_inside: bool, path: Vec<String>, import: Option<Import>) {
        self.used.push(Used { is_inside, path, is_tested: self.is_in_tests, import });
    }

    fn word(&mut self, name: &syn::Ident) {
        if !self.is_in_tests {
            self.words.insert(name.to_string());
        }
    }

    /// Reads an item, knowing whether it is there for tests only.
    fn within(&mut self, attributes: &[Attribute], read: impl FnOnce(&mut Self)) {
        let before = self.is_in_tests;
        self.is_in_tests |= attributes.iter().any(is_for_tests);
        read(self);
        self.is_in_tests = before;
    }

    fn imports(&mut self, tree: &UseTree, before: &[String], is_passed_on: bool) {
        let with = |name: &syn::Ident| {
            let mut path = before.to_vec();
            if name != "self" || path.is_empty() {
                path.push(name.to_string());
            }
            path
        };
        match tree {
            UseTree::Path(path) if path.ident == "super" => {
                let mut parts = before.to_vec();
                parts.push("super".to_owned());
                self.imports(&path.tree, &parts, is_passed_on);
            }
            UseTree::Path(path) => self.imports(&path.tree, &with(&path.ident), is_passed_on),
            UseTree::Name(name) => {
                let path = with(&name.ident);
                let name = path.last().cloned().unwrap_or_default();
                self.note(&path, Some(Import { name, is_passed_on }));
            }
            UseTree::Rename(name) => {
                let import = Import { name: name.rename.to_string(), is_passed_on };
                self.note(&with(&name.ident), Some(import));
            }
            UseTree::Glob(_) => self.note(before, Some(Import { name: "*".to_owned(), is_passed_on })),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.imports(item, before, is_passed_on)),
        }
    }

    /// Notes what looks like a path among a macro's tokens.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.end(&mut path);
                    }
                    self.word(&name);
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.end(&mut path);
                    colons = 0;
                    match other {
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        TokenTree::Literal(literal) => self.literal(&literal.to_string()),
                        _ => {}
                    }
                }
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        if path.len() > 1 {
            self.note(path, None);
        }
        path.clear();
    }

    /// Attributes name functions and modules in strings.
    fn literal(&mut self, text: &str) {
        if let Ok(path) = syn::parse_str::<syn::Path>(text.trim_matches('"'))
            && path.segments.len() > 1
        {
            self.visit_path(&path);
        }
    }
}

pub fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
}

impl<'a> Visit<'a> for Reader {
    fn visit_item_use(&mut self, item: &'a ItemUse) {
        let is_passed_on = !matches!(item.vis, Visibility::Inherited);
        self.within(&item.attrs, |reader| reader.imports(&item.tree, &[], is_passed_on));
    }

    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        self.module.push(item.ident.to_string());
        self.within(&item.attrs, |reader| visit::visit_item_mod(reader, item));
        self.module.pop();
    }

    fn visit_item_fn(&mut self, item: &'a ItemFn) {
        self.within(&item.attrs, |reader| visit::visit_item_fn(reader, item));
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if let Some(first) = path.segments.first() {
            self.word(&first.ident);
        }
        if path.segments.len() > 1 {
            let parts: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.note(&parts, None);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'a Macro) {
        self.visit_path(&called.path);
        self.tokens(called.tokens.clone());
    }

    fn visit_meta(&mut self, meta: &'a Meta) {
        if let Meta::List(list) = meta {
            self.tokens(list.tokens.clone());
        }
    }

    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        if call.method == "acquire" {
            self.takes_from_pool |= match &*call.receiver {
                Expr::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "pool"),
                Expr::Field(field) => matches!(&field.member, syn::Member::Named(name) if name == "pool"),
                _ => false,
            };
        }
        visit::visit_expr_method_call(self, call);
    }
}
