//! Handlers of routes stand in files called `http.rs`, and what they call returns values.

use syn::{
    ItemFn, Macro,
    visit::{self, Visit},
};

use super::{
    LAYERS, folder,
    paths::{Parsed, parse, parsed},
    root,
};

/// The documents about the API are no part of it: they have no values.
const DOCUMENTS: &str = "api/src/docs/mod.rs";
/// The macros that make handlers.
const MACROS: [&str; 3] = ["world_routes", "world_routes_but_delete", "revision_routes"];

/// The handlers of a file, by name, and the macros that make some.
#[derive(Default)]
struct Handlers(Vec<String>);

impl Visit<'_> for Handlers {
    fn visit_item_fn(&mut self, function: &ItemFn) {
        let is_route =
            |path: &syn::Path| path.segments.iter().map(|part| part.ident.to_string()).eq(["utoipa", "path"]);
        if function.attrs.iter().any(|attribute| is_route(attribute.path())) {
            self.0.push(function.sig.ident.to_string());
        }
        visit::visit_item_fn(self, function);
    }

    fn visit_macro(&mut self, called: &Macro) {
        let name = called.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        if MACROS.contains(&name.as_str()) {
            self.0.push(name);
        }
    }
}

fn handlers(file: &syn::File) -> Vec<String> {
    let mut found = Handlers::default();
    found.visit_file(file);
    found.0
}

#[test]
fn handlers_stand_in_files_called_http() {
    let (mut others, mut count) = (Vec::new(), 0);
    for (name, _) in LAYERS {
        for Parsed { path, file, .. } in parsed(root(), &format!("{}/src", folder(name))) {
            let found = handlers(&file);
            count += found.len();
            if !path.ends_with("/http.rs") && path != DOCUMENTS {
                others.extend(found.into_iter().map(|handler| format!("{path}: {handler}")));
            }
        }
    }
    assert!(others.is_empty(), "{others:#?}");
    assert!(count > 100, "only {count} handlers were found");

    let planted = "#[utoipa::path(get)] async fn f() {} mod m { edge::world_routes!(A); } fn g() {}";
    assert_eq!(handlers(&parse("planted.rs", planted)), ["f", "world_routes"]);
}
