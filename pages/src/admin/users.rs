//! The tenant's users.

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use serde_json::json;

use super::{
    Editor, Frame, Tab,
    ask::AskPage,
    list::moment,
    world_form::{form_id, once},
};
use crate::render_blocks;
use base::error::{Code, Error, Result};
use edge::{
    http::{
        Written,
        etag::Expected,
        paging::{NoFilter, Page},
    },
    users::{
        Role,
        service::{self, UserInput, UserStatus, UserView},
    },
};

#[derive(Template)]
#[template(path = "admin/users.html", blocks = ["main"])]
struct UsersPage {
    frame: Frame,
    /// With the time of their last sign-in, or the time until which they are invited.
    users: Vec<(UserView, String)>,
    next: Option<String>,
    email: String,
    name: String,
    role: Role,
    problem: Option<String>,
    /// The email of somebody who was just invited, and their link.
    made: Option<(String, String)>,
}
render_blocks!(UsersPage: as_main);

async fn users_page(editor: &Editor, problem: Option<String>, made: Option<(String, String)>) -> Result<UsersPage> {
    let page = Page::<NoFilter>::parse(editor.request.query_string())?;
    let tx = editor.read().await?;
    let found = service::list(&tx, &page).await?;
    let sent_text = |name: &str| if problem.is_some() { editor.form.text(name).to_owned() } else { String::new() };
    Ok(UsersPage {
        frame: editor.frame("Users", Tab::Users),
        users: found.items.into_iter().map(with_moment).collect(),
        next: found.next_cursor.map(|cursor| format!("/admin/users?cursor={cursor}")),
        email: sent_text("email"),
        name: sent_text("name"),
        role: Role::parse(editor.form.text("role")).unwrap_or(Role::Editor),
        problem,
        made,
    })
}

fn with_moment(user: UserView) -> (UserView, String) {
    let seen = match (user.last_sign_in_at, user.expires_at) {
        (Some(at), _) => moment(at),
        (None, Some(until)) => format!("invited until {}", moment(until)),
        (None, None) => "never".to_owned(),
    };
    (user, seen)
}

/// The list, and the form for an invitation.
pub async fn list(editor: Editor) -> Result<HttpResponse> {
    editor.show(&users_page(&editor, None, None).await?)
}

/// The text of an error that is about the form; other errors are returned.
fn form_error(error: Error) -> Result<String> {
    match error.code {
        Code::ValidationFailed | Code::Conflict | Code::Forbidden => {
            Ok(error.errors.first().map_or_else(|| error.detail.clone(), |wrong| wrong.message.clone()))
        }
        _ => Err(error),
    }
}

fn role_of(editor: &Editor) -> Result<Role> {
    let role = Role::parse(editor.form.text("role"));
    role.ok_or_else(|| Error::invalid("/role", "invalid_value", "Choose a role."))
}

/// Invites somebody and shows the link, once.
pub async fn create(editor: Editor) -> Result<HttpResponse> {
    let text = |name: &str| Some(editor.form.text(name).trim().to_owned()).filter(|text| !text.is_empty());
    let made = async {
        let email = text("email").unwrap_or_default();
        let input = UserInput { email, name: text("name"), role: role_of(&editor)? };
        let sent: Vec<_> = editor.form.fields().collect();
        let once = once(&editor, &form_id(&editor), &sent);
        service::invite(&editor.app, &editor.caller, input, once.as_ref()).await
    };
    match made.await.map(Written::fresh) {
        Ok(None) => {
            let message = "The first click invited them, and the link is shown only once. \
                If you did not see it, create another link on their page.";
            Ok(editor.redirect("/admin/users", message))
        }
        Ok(Some(view)) => {
            let made = view.link.map(|path| (view.email, editor.whole_url(&path)));
            editor.show(&users_page(&editor, None, made).await?)
        }
        Err(error) => {
            let problem = form_error(error)?;
            editor.show_again(&users_page(&editor, Some(problem), None).await?)
        }
    }
}

#[derive(Template)]
#[template(path = "admin/user.html", blocks = ["main"])]
struct UserPage {
    frame: Frame,
    user: UserView,
    created: String,
    seen: Option<String>,
    /// Until when the invitation is valid, if they have not accepted it.
    until: Option<String>,
    problem: Option<String>,
    /// A link that was just created.
    made: Option<String>,
}
render_blocks!(UserPage: as_main);

async fn user_page(editor: &Editor, problem: Option<String>) -> Result<UserPage> {
    user_page_of(editor, editor.path("x"), problem).await
}

async fn user_page_of(editor: &Editor, x: &str, problem: Option<String>) -> Result<UserPage> {
    let tx = editor.read().await?;
    let user = service::get(&tx, x).await?;
    Ok(UserPage {
        frame: editor.frame(&user.name, Tab::Users),
        created: moment(user.created_at),
        seen: user.last_sign_in_at.map(moment),
        until: user.expires_at.map(moment),
        user,
        problem,
        made: None,
    })
}

/// One user.
pub async fn page(editor: Editor) -> Result<HttpResponse> {
    editor.show(&user_page(&editor, None).await?)
}

/// Creates a link and shows it once: another invitation for somebody who is invited, or a password reset for a user.
pub async fn link(editor: Editor) -> Result<HttpResponse> {
    let user = service::get(&editor.read().await?, editor.path("x")).await?;
    let made = async {
        match user.status {
            UserStatus::Active => {
                let reset = service::reset(&editor.app, &editor.caller, editor.path("x"), None).await?;
                Ok((user.id, reset.fresh().and_then(|view| view.link)))
            }
            UserStatus::Invited => {
                let input = UserInput { email: user.email, name: Some(user.name), role: user.role };
                let again = service::invite(&editor.app, &editor.caller, input, None).await?;
                Ok(again.fresh().map_or((user.id, None), |view| (view.id, view.link)))
            }
        }
    };
    match made.await {
        Ok((id, path)) => {
            let page = user_page_of(&editor, &id.to_string(), None).await?;
            editor.show(&UserPage { made: path.map(|path| editor.whole_url(&path)), ..page })
        }
        Err(error) => editor.show_again(&user_page(&editor, Some(form_error(error)?)).await?),
    }
}

fn expected(editor: &Editor) -> Expected {
    Expected::version(editor.form.version().unwrap_or(0))
}

async fn answered(editor: &Editor, outcome: Result<UserView>, message: &str) -> Result<HttpResponse> {
    match outcome {
        Ok(user) => Ok(editor.redirect("/admin/users", &format!("{} {message}", user.name))),
        Err(error) if error.code == Code::PreconditionFailed => {
            let problem =
                "Somebody changed this user meanwhile. Nothing was saved. The page now shows the stored values."
                    .to_owned();
            editor.show_with(StatusCode::CONFLICT, &user_page(editor, Some(problem)).await?)
        }
        Err(error) => {
            let problem = form_error(error)?;
            editor.show_again(&user_page(editor, Some(problem)).await?)
        }
    }
}

/// Changes a user.
pub async fn save(editor: Editor) -> Result<HttpResponse> {
    let mut patch = json!({ "role": editor.form.text("role") });
    if let Some(name) = editor.form.get("name") {
        patch["name"] = name.trim().into();
    }
    let saved = service::update(&editor.app, &editor.caller, &expected(&editor), editor.path("x"), &patch).await;
    answered(&editor, saved, "was saved.").await
}

/// Asks whether to remove a user from the tenant.
pub async fn ask(editor: Editor) -> Result<HttpResponse> {
    let tx = editor.read().await?;
    let user = service::get(&tx, editor.path("x")).await?;
    let then = if user.status == UserStatus::Invited {
        "Their link will no longer work. You can invite them again."
    } else if user.is_shared {
        "They lose access to this tenant, but stay in their other tenants. What they wrote here stays."
    } else {
        "This deletes their account. To come back, they need a new one. What they wrote stays."
    };
    editor.show(&AskPage {
        frame: editor.frame(&format!("Remove {}", user.name), Tab::Users),
        question: format!("Remove {}?", user.name),
        quoted: Some(user.email),
        then: then.to_owned(),
        yes: "Remove",
        no: "Keep them",
        back: format!("/admin/users/{}", user.id),
        version: Some(user.version),
        problem: None,
        repeat: None,
        forks: false,
        rows: Vec::new(),
        before: None,
    })
}

/// Removes a user from the tenant.
pub async fn remove(editor: Editor) -> Result<HttpResponse> {
    let gone = service::leave(&editor.app, &editor.caller, &expected(&editor), editor.path("x")).await;
    answered(&editor, gone, "was removed.").await
}
