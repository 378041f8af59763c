//! The tenant's API keys.

use db::tenancy;
use std::collections::BTreeSet;

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;

use super::{
    Editor, Frame, Tab,
    ask::AskPage,
    world_form::{form_id, once},
};
use crate::render_blocks;
use base::error::{Code, Error, Result};
use db::tenancy::TenantTx;
use edge::{
    auth::service::{self, KeyInput, KeyView},
    caller::Scope,
    http::{
        Written,
        etag::Expected,
        paging::{NoFilter, Page},
    },
};

#[derive(Template)]
#[template(path = "admin/keys.html", blocks = ["main"])]
struct KeysPage {
    frame: Frame,
    /// With their state and the time of their last use.
    keys: Vec<(KeyView, String, String)>,
    next: Option<String>,
    scopes: Vec<(Scope, &'static str, bool)>,
    name: String,
    days: String,
    problem: Option<String>,
    /// A key that was just created.
    made: Option<String>,
}
render_blocks!(KeysPage: as_main);

/// What a scope allows.
fn meaning(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "read the world",
        Scope::Write => "write the world",
        Scope::Play => "play: use commands and turns",
        Scope::Tools => "execute tools",
        Scope::Gm => "act as game master: secrets, prompts, undo",
        Scope::Admin => "manage keys, users and settings",
    }
}

async fn keys_page(editor: &Editor, problem: Option<String>, made: Option<String>) -> Result<KeysPage> {
    let query =
        if editor.request.query_string().is_empty() { "sort=-created_at" } else { editor.request.query_string() };
    let page = Page::<NoFilter>::parse(query)?;
    let tx = editor.read().await?;
    let found = service::list(&tx, &page).await?;
    let is_chosen = |scope: &Scope| editor.form.all("scope").any(|chosen| chosen == scope.as_str());
    let kept = problem.is_some();
    Ok(KeysPage {
        frame: editor.frame("API keys", Tab::Keys),
        keys: found.items.into_iter().map(with_words).collect(),
        next: found.next_cursor.map(|cursor| format!("/admin/keys?sort=-created_at&cursor={cursor}")),
        scopes: Scope::ALL.into_iter().map(|scope| (scope, meaning(scope), kept && is_chosen(&scope))).collect(),
        name: if kept { editor.form.text("name").to_owned() } else { String::new() },
        days: if kept { editor.form.text("days").to_owned() } else { String::new() },
        problem,
        made,
    })
}

fn with_words(key: KeyView) -> (KeyView, String, String) {
    // As stored: 2026-01-31T12:00:00Z.
    let short = |at: &String| at.chars().take(16).collect::<String>().replace('T', " ");
    let state = match (&key.revoked_at, &key.expires_at) {
        (Some(_), _) => "revoked".to_owned(),
        (None, Some(at)) => format!("until {}", short(at)),
        (None, None) => "active".to_owned(),
    };
    let used = key.last_used_at.as_ref().map_or_else(|| "never".to_owned(), short);
    (key, state, used)
}

/// The list, and the form for a new one.
pub async fn list(editor: Editor) -> Result<HttpResponse> {
    editor.show(&keys_page(&editor, None, None).await?)
}

fn key_input(editor: &Editor) -> Result<KeyInput> {
    let scopes: BTreeSet<Scope> = editor.form.all("scope").filter_map(Scope::parse).collect();
    if scopes.is_empty() {
        return Err(Error::invalid("/scopes", "required", "Choose at least one scope."));
    }
    let days = editor.form.text("days").trim();
    let expires_in_seconds = match days {
        "" => None,
        days => match days.parse::<i64>() {
            Ok(days @ 1..=3650) => Some(days * 86_400),
            _ => return Err(Error::invalid("/days", "invalid_value", "The number of days must be from 1 to 3650.")),
        },
    };
    Ok(KeyInput { name: editor.form.text("name").trim().to_owned(), scopes, expires_in_seconds })
}

/// Creates a key and shows it once.
pub async fn create(editor: Editor) -> Result<HttpResponse> {
    let sent: Vec<_> = editor.form.fields().collect();
    let once = once(&editor, &form_id(&editor), &sent);
    let made = async { service::create(&editor.app, &editor.caller, key_input(&editor)?, once.as_ref()).await };
    match made.await.map(Written::fresh) {
        Ok(Some(view)) => editor.show(&keys_page(&editor, None, view.key).await?),
        Ok(None) => {
            let message =
                "The first click created the key, and it is shown only once. If you did not see it, revoke it.";
            Ok(editor.redirect("/admin/keys", message))
        }
        Err(error) if error.code == Code::ValidationFailed => {
            let problem = error.errors.first().map(|wrong| wrong.message.clone());
            editor.show_again(&keys_page(&editor, problem, None).await?)
        }
        Err(error) => Err(error),
    }
}

async fn ask_page(editor: &Editor, problem: Option<String>) -> Result<AskPage> {
    let tx = editor.read().await?;
    let (key, state, used) = with_words(service::get(&tx, editor.path("x")).await?);
    Ok(AskPage {
        frame: editor.frame("Revoke a key", Tab::Keys),
        question: format!("Revoke tk_{}_…?", key.prefix),
        quoted: Some(key.name).filter(|name| !name.is_empty()),
        then: format!("Programs that use this key will no longer have access. State: {state}. Last used: {used}."),
        yes: "Revoke",
        no: "Keep it",
        back: "/admin/keys".to_owned(),
        version: Some(key.version),
        problem,
        repeat: None,
        forks: false,
        rows: Vec::new(),
        before: None,
    })
}

/// Asks whether to revoke a key.
pub async fn ask(editor: Editor) -> Result<HttpResponse> {
    editor.show(&ask_page(&editor, None).await?)
}

/// Revokes a key.
pub async fn revoke(editor: Editor) -> Result<HttpResponse> {
    let expected = Expected::version(editor.form.version().unwrap_or(0));
    let revoke = async |tx: &TenantTx| service::revoke(tx, &expected, editor.path("x")).await;
    let revoked = match tenancy::write(&editor.app.pool, editor.caller.actor(), revoke).await {
        Ok(revoked) => revoked,
        Err(error) if error.code == Code::PreconditionFailed => {
            let problem =
                "Somebody changed this key after you opened it. The page now shows its present state.".to_owned();
            return editor.show_with(StatusCode::CONFLICT, &ask_page(&editor, Some(problem)).await?);
        }
        Err(error) => return Err(error),
    };
    editor.app.keys.forget();
    Ok(editor.redirect("/admin/keys", &format!("The key {} was revoked.", revoked.prefix)))
}
