//! Counts what the house has too much of. Each count has a rule of its own, which reads the code and not its text, and leaves out what is
//! there for tests only.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, Expr, ExprAssign, ExprCall, ExprIndex, ExprMethodCall, GenericArgument, ImplItemFn, Item, ItemFn,
    ItemMod, Lit, PathArguments, ReturnType, Signature, TraitItemFn, Type, Visibility,
    visit::{self, Visit},
};

use super::paths::is_for_tests;

/// The counts of one file.
#[derive(Debug, Default)]
pub struct Counts {
    /// Whether it names the type `StoredAnswer`.
    pub has_bytes: bool,
    /// JSON that is read from the body of an answer: `from_slice(&reply.body)`.
    pub parsed_bodies: usize,
    /// Functions that return `Result<Value>`.
    pub untyped_results: usize,
    /// JSON members that are read by their names: `value["name"]`, `value.get("name").and_then(Value::as_str)`, `value.pointer("/name")`.
    pub members_by_name: usize,
    /// Columns that are read by their names: `row.read("name")`.
    pub columns_by_name: usize,
    /// The type `Uuid` in the parameters and results of functions.
    pub bare_ids: usize,
    /// Public items that are no methods, by name.
    pub public: Vec<String>,
    /// All names that occur, also in tests.
    pub names: BTreeSet<String>,
}

impl Counts {
    /// Counts a file.
    pub fn of(file: &syn::File) -> Self {
        let mut counter = Counter::default();
        counter.visit_file(file);
        counter.counts
    }
}

#[derive(Default)]
struct Counter {
    counts: Counts,
    is_in_tests: bool,
}

impl Counter {
    fn within(&mut self, attributes: &[Attribute], read: impl FnOnce(&mut Self)) {
        let before = self.is_in_tests;
        self.is_in_tests |= attributes.iter().any(is_for_tests);
        read(self);
        self.is_in_tests = before;
    }

    fn names_in(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(name) => drop(self.counts.names.insert(name.to_string())),
                TokenTree::Group(group) => self.names_in(group.stream()),
                _ => {}
            }
        }
    }
}

/// A type's last name.
fn last_name(ty: &Type) -> Option<String> {
    let Type::Path(path) = ty else { return None };
    path.path.segments.last().map(|segment| segment.ident.to_string())
}

/// Whether a type is `Result<Value>`, also inside of others.
fn has_untyped_result(output: &ReturnType) -> bool {
    struct Finder(bool);
    impl Visit<'_> for Finder {
        fn visit_path_segment(&mut self, segment: &syn::PathSegment) {
            if segment.ident == "Result"
                && let PathArguments::AngleBracketed(arguments) = &segment.arguments
                && let Some(GenericArgument::Type(first)) = arguments.args.first()
            {
                self.0 |= last_name(first).as_deref() == Some("Value");
            }
            visit::visit_path_segment(self, segment);
        }
    }
    let mut finder = Finder(false);
    finder.visit_return_type(output);
    finder.0
}

fn ids_in(signature: &Signature) -> usize {
    struct Finder(usize);
    impl Visit<'_> for Finder {
        fn visit_type_path(&mut self, path: &syn::TypePath) {
            self.0 += usize::from(path.path.segments.last().is_some_and(|last| last.ident == "Uuid"));
            visit::visit_type_path(self, path);
        }
    }
    let mut finder = Finder(0);
    finder.visit_signature(signature);
    finder.0
}

fn is_text(expression: &Expr) -> bool {
    matches!(expression, Expr::Lit(literal) if matches!(literal.lit, Lit::Str(_)))
}

/// Whether it is a function of JSON values: `Value::as_str`.
fn is_of_value(expression: &Expr) -> bool {
    matches!(expression, Expr::Path(path) if path.path.segments.iter().any(|segment| segment.ident == "Value"))
}

/// Whether it is `….get("name")`.
fn is_got_by_name(expression: &Expr) -> bool {
    matches!(expression, Expr::MethodCall(call) if call.method == "get" && call.args.first().is_some_and(is_text))
}

/// Whether an expression reads a field or a variable with the name `body`.
fn is_body(expression: &Expr) -> bool {
    match expression {
        Expr::Reference(reference) => is_body(&reference.expr),
        Expr::MethodCall(call) => is_body(&call.receiver),
        Expr::Field(field) => matches!(&field.member, syn::Member::Named(name) if name == "body"),
        Expr::Path(path) => path.path.is_ident("body"),
        _ => false,
    }
}

fn public(item: &Item) -> Option<String> {
    let (visibility, name) = match item {
        Item::Const(item) => (&item.vis, &item.ident),
        Item::Enum(item) => (&item.vis, &item.ident),
        Item::Fn(item) => (&item.vis, &item.sig.ident),
        Item::Static(item) => (&item.vis, &item.ident),
        Item::Struct(item) => (&item.vis, &item.ident),
        Item::Trait(item) => (&item.vis, &item.ident),
        Item::Type(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    matches!(visibility, Visibility::Public(_)).then(|| name.to_string())
}

impl<'a> Visit<'a> for Counter {
    fn visit_item(&mut self, item: &'a Item) {
        if !self.is_in_tests {
            self.counts.public.extend(public(item));
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        self.within(&item.attrs, |counter| visit::visit_item_mod(counter, item));
    }

    fn visit_item_fn(&mut self, item: &'a ItemFn) {
        self.within(&item.attrs, |counter| visit::visit_item_fn(counter, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'a ImplItemFn) {
        self.within(&item.attrs, |counter| visit::visit_impl_item_fn(counter, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'a TraitItemFn) {
        self.within(&item.attrs, |counter| visit::visit_trait_item_fn(counter, item));
    }

    fn visit_signature(&mut self, signature: &'a Signature) {
        if !self.is_in_tests {
            self.counts.untyped_results += usize::from(has_untyped_result(&signature.output));
            self.counts.bare_ids += ids_in(signature);
        }
        visit::visit_signature(self, signature);
    }

    fn visit_ident(&mut self, name: &'a syn::Ident) {
        self.counts.names.insert(name.to_string());
        self.counts.has_bytes |= !self.is_in_tests && name == "StoredAnswer";
    }

    fn visit_macro(&mut self, called: &'a syn::Macro) {
        self.names_in(called.tokens.clone());
        visit::visit_macro(self, called);
    }

    fn visit_expr_call(&mut self, call: &'a ExprCall) {
        if !self.is_in_tests
            && let Expr::Path(path) = &*call.func
            && path.path.segments.last().is_some_and(|last| last.ident == "from_slice" || last.ident == "from_str")
            && call.args.first().is_some_and(is_body)
        {
            self.counts.parsed_bodies += 1;
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        if !self.is_in_tests {
            let has_text = call.args.first().is_some_and(is_text);
            self.counts.columns_by_name += usize::from(has_text && call.method == "read");
            self.counts.members_by_name += usize::from(has_text && call.method == "pointer");
            self.counts.members_by_name +=
                usize::from(call.args.iter().any(is_of_value) && is_got_by_name(&call.receiver));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_assign(&mut self, assignment: &'a ExprAssign) {
        match &*assignment.left {
            // A member that is written.
            Expr::Index(index) => self.visit_expr(&index.expr),
            left => self.visit_expr(left),
        }
        self.visit_expr(&assignment.right);
    }

    fn visit_expr_index(&mut self, index: &'a ExprIndex) {
        self.counts.members_by_name += usize::from(!self.is_in_tests && is_text(&index.index));
        visit::visit_expr_index(self, index);
    }
}
