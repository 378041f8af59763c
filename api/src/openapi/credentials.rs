//! What the document says of credentials: which routes ask for one, with which scopes, from the table that the server itself asks.

use serde_json::{Value, json};

use super::{
    document::{METHODS, operations},
    names,
};
use crate::auth::{
    Scope,
    access::{self, Access, Player},
};

/// What a route of the document asks of a credential; none if it asks for none.
#[must_use]
pub fn access(method: &str, path: &str) -> Option<&'static Access> {
    access::TABLE.iter().find(|a| a.method.eq_ignore_ascii_case(method) && names::of_path(a.path) == path)
}

/// Says of each operation what it asks.
pub fn ask(document: &mut Value) {
    debug_assert!(METHODS.len() == 5, "every method that a route has");
    operations(document, |path, method, operation| {
        let asked = access(method, path).filter(|a| !a.in_first_frame);
        operation.insert("security".to_owned(), asked.map_or_else(|| json!([]), requirements));
        let said = operation.get("description").and_then(Value::as_str).map(|said| format!("{said}\n\n"));
        let text = said.unwrap_or_default() + &sentence(method, path, asked);
        operation.insert("description".to_owned(), text.into());
    });
}

/// One line for each set of scopes that will do.
fn requirements(asked: &Access) -> Value {
    let scopes: Vec<Scope> = asked.scopes().collect();
    let with = |scopes: &[Scope]| json!({ "bearer": scopes.iter().map(|s| s.as_str()).collect::<Vec<_>>() });
    let other = asked.or.map(|or| {
        let scopes: Vec<_> = scopes.iter().map(|scope| if Some(*scope) == asked.scope { or } else { *scope }).collect();
        with(&scopes)
    });
    Value::Array(std::iter::once(with(&scopes)).chain(other).collect())
}

fn sentence(method: &str, path: &str, asked: Option<&Access>) -> String {
    let Some(asked) = asked else {
        return match access(method, path) {
            Some(_) => {
                "The credential comes in the first frame, since a browser's WebSocket sends no header.".to_owned()
            }
            None => "No credential is needed.".to_owned(),
        };
    };
    let name = |scope: Scope| match asked.or.filter(|_| Some(scope) == asked.scope) {
        Some(or) => format!("`{}` or `{}`", scope.as_str(), or.as_str()),
        None => format!("`{}`", scope.as_str()),
    };
    let scopes: Vec<_> = asked.scopes().map(name).collect();
    let scopes = match scopes.as_slice() {
        [] => "Any credential will do.".to_owned(),
        [one] => format!("Needs the scope {one}."),
        several => format!("Needs the scopes {}.", several.join(" and ")),
    };
    let player = match asked.player {
        Player::Never => "A player's token is refused.",
        Player::Filtered => "A player's token is shown what players see.",
        Player::Own => "A player's token acts for its own character alone.",
    };
    format!("{scopes} {player}")
}
