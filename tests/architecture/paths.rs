//! Reads Rust sources and lists the paths they name: in imports, in code, in macros and in attributes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Expr, ExprMethodCall, ItemMod, ItemUse, Macro, Meta, UseTree,
    visit::{self, Visit},
};

/// A path that a source names. The first part is a room if the path is inside the crate, otherwise a crate or a name
/// in scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    pub is_inside: bool,
    pub path: Vec<String>,
}

/// One file.
pub struct Source {
    /// From the root of the repository.
    pub path: String,
    /// The file's module within its crate.
    pub module: Vec<String>,
    pub used: Vec<Used>,
    /// Whether it calls `acquire` on something named `pool`.
    pub takes_from_pool: bool,
}

impl Source {
    /// # Panics
    /// If the text is not Rust.
    pub fn parse(path: &str, module: Vec<String>, text: &str) -> Self {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut reader = Reader { module: module.clone(), used: Vec::new(), takes_from_pool: false };
        reader.visit_file(&file);
        Self { path: path.to_owned(), module, used: reader.used, takes_from_pool: reader.takes_from_pool }
    }
}

/// All sources of a crate.
pub fn sources(root: &Path, folder: &str) -> Vec<Source> {
    let base = root.join(folder).join("src");
    let mut found = Vec::new();
    files(&base, &mut found);
    assert!(!found.is_empty(), "{folder} has no sources");
    found
        .iter()
        .map(|file| {
            let inside = file.strip_prefix(&base).unwrap().with_extension("");
            let mut module: Vec<String> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if module.last().is_some_and(|last| matches!(&**last, "mod" | "lib" | "main")) {
                module.pop();
            }
            let path = format!("{folder}/src/{}", file.strip_prefix(&base).unwrap().display());
            Source::parse(&path, module, &fs::read_to_string(file).unwrap())
        })
        .collect()
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

struct Reader {
    module: Vec<String>,
    used: Vec<Used>,
    takes_from_pool: bool,
}

impl Reader {
    /// Notes a path as it is written, with `crate`, `self` and `super` resolved.
    fn note(&mut self, parts: &[String]) {
        let mut rest = parts;
        let mut at = match rest.first().map(String::as_str) {
            Some("crate") => {
                rest = &rest[1..];
                Vec::new()
            }
            Some("self" | "super") => self.module.clone(),
            Some(_) => {
                self.used.push(Used { is_inside: false, path: parts.to_vec() });
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
            self.used.push(Used { is_inside: true, path: at });
        }
    }

    fn imports(&mut self, tree: &UseTree, before: &[String]) {
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
                self.imports(&path.tree, &parts);
            }
            UseTree::Path(path) => self.imports(&path.tree, &with(&path.ident)),
            UseTree::Name(name) => self.note(&with(&name.ident)),
            UseTree::Rename(name) => self.note(&with(&name.ident)),
            UseTree::Glob(_) => self.note(before),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.imports(item, before)),
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
            self.note(path);
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

impl<'a> Visit<'a> for Reader {
    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.imports(&item.tree, &[]);
    }

    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.segments.len() > 1 {
            let parts: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.note(&parts);
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
