//! Describes the credentials: which routes require one, and with which scopes. This comes from the same table that the
//! server uses.

use serde_json::{Value, json};

use super::{
    document::{METHODS, operations},
    names,
};
use edge::caller::{
    Scope,
    access::{self, Access, Player},
};

/// What a route of the document requires of a credential; none if it requires none.
#[must_use]
pub fn access(method: &str, path: &str) -> Option<&'static Access> {
    access::TABLE.iter().find(|a| a.method.eq_ignore_ascii_case(method) && names::of_path(a.path) == path)
}

/// Describes what each operation requires.
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

/// One entry for each sufficient set of scopes.
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
            Some(_) => "The credential comes in the first frame, because a browser cannot set headers on a WebSocket."
                .to_owned(),
            None => "No credential is needed.".to_owned(),
        };
    };
    let name = |scope: Scope| match asked.or.filter(|_| Some(scope) == asked.scope) {
        Some(or) => format!("`{}` or `{}`", scope.as_str(), or.as_str()),
        None => format!("`{}`", scope.as_str()),
    };
    let scopes: Vec<_> = asked.scopes().map(name).collect();
    let scopes = match scopes.as_slice() {
        [] => "Any credential is accepted.".to_owned(),
        [one] => format!("Needs the scope {one}."),
        several => format!("Needs the scopes {}.", several.join(" and ")),
    };
    let player = match asked.player {
        Player::Never => "A player's token is rejected.",
        Player::Filtered => "With a player's token, the answer contains only what players may see.",
        Player::Own => "A player's token can act only for its own character.",
    };
    format!("{scopes} {player}")
}
