//! The own account: the password, the tenants one belongs to, signing out everywhere.

use actix_web::HttpResponse;
use askama::Template;
use uuid::Uuid;

use super::{Editor, Frame, Tab};
use crate::{
    error::{Error, Result},
    shown,
    users::{
        email, passwords,
        sessions::{self, Choice},
    },
};

#[derive(Template)]
#[template(path = "admin/account.html", blocks = ["main"])]
struct AccountPage {
    frame: Frame,
    email: String,
    problem: Option<String>,
}
shown!(AccountPage: as_main);

fn shown_with(editor: &Editor, problem: Option<String>) -> Result<HttpResponse> {
    let is_wrong = problem.is_some();
    let page =
        AccountPage { frame: editor.frame("Your account", Tab::Elsewhere), email: editor.user.email.clone(), problem };
    if is_wrong { editor.show_again(&page) } else { editor.show(&page) }
}

/// The page.
pub async fn page(editor: Editor) -> Result<HttpResponse> {
    shown_with(&editor, None)
}

/// Whether who is signed in knows their password. Wrong ones are slowed down as at the door.
async fn knows_password(editor: &Editor, password: String) -> Result<bool> {
    let (app, folded) = (&editor.app, email::fold(&editor.user.email));
    let attempt = app.limits.sign_ins.password(app.client(&editor.request), &folded).await?;
    let stored = sessions::own_password(&app.pool, &editor.secret).await?;
    let is_right = password.len() <= 1024 && app.passwords.is(password, stored).await?;
    if is_right {
        attempt.right()
    } else {
        attempt.wrong()
    }
    Ok(is_right)
}

/// Sets the own password, for who knows the old one; every other session ends.
pub async fn set_password(editor: Editor) -> Result<HttpResponse> {
    let (old, new) = (editor.form.text("password").to_owned(), editor.form.text("new_password"));
    if new != editor.form.text("again") {
        return shown_with(&editor, Some("The new password is not the same twice.".to_owned()));
    }
    if let Err(error) = passwords::check("/new_password", new, &editor.user.email) {
        return shown_with(&editor, error.errors.first().map(|e| e.message.clone()));
    }
    if !knows_password(&editor, old).await? {
        return shown_with(&editor, Some("The old password is another.".to_owned()));
    }
    let hash = editor.app.passwords.hash(new.to_owned()).await?;
    sessions::set_own_password(&editor.app.pool, &editor.secret, &hash).await?;
    Ok(editor.done("/admin/account", "The password was changed, and you are signed out everywhere else."))
}

#[derive(Template)]
#[template(path = "admin/tenants.html", blocks = ["main"])]
struct TenantsPage {
    frame: Frame,
    choices: Vec<Choice>,
    current: Uuid,
}
shown!(TenantsPage: as_main);

/// The tenants one belongs to.
pub async fn tenants(editor: Editor) -> Result<HttpResponse> {
    let choices = sessions::choices(&editor.app.pool, &editor.secret).await?;
    let current = editor.caller.tenant_id();
    editor.show(&TenantsPage { frame: editor.frame("Tenants", Tab::Elsewhere), choices, current })
}

/// Goes to another.
pub async fn choose(editor: Editor) -> Result<HttpResponse> {
    let tenant = Uuid::try_parse(editor.form.text("tenant")).map_err(|_| Error::not_found("tenant"))?;
    sessions::choose(&editor.app.pool, &editor.secret, tenant).await?;
    Ok(editor.done("/admin/campaigns", "You are at another tenant now."))
}
