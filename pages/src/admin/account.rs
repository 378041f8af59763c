//! The user's own account: the password, the tenants that they belong to, and signing out everywhere.
//! [`super::second_factor`] handles the forms of the second factor.

use actix_web::HttpResponse;
use askama::Template;
use uuid::Uuid;

use super::{Editor, Frame, Tab};
use crate::render_blocks;
use base::error::{Error, Result};
use edge::{
    passwords,
    users::{
        email, second_factor,
        sessions::{self, Choice, SignedIn},
    },
};

/// The error of one of the page's forms.
pub(super) enum Wrong<'a> {
    Nothing,
    Password(String),
    Factor(&'a str),
}

#[derive(Template)]
#[template(path = "admin/account.html", blocks = ["main"])]
struct AccountPage<'a> {
    frame: Frame,
    email: String,
    wrong: Wrong<'a>,
    has_factor: bool,
    is_required: bool,
    codes_left: i64,
    /// The secret and the link for an authenticator app that is being set up.
    pending: Option<(String, String)>,
    /// Recovery codes that were just created.
    codes: Vec<String>,
    sessions: Vec<SignedIn>,
}
render_blocks!(AccountPage<'a>: as_main);

/// The page, perhaps with recovery codes, which are shown only once.
pub(super) async fn show_page(editor: &Editor, wrong: Wrong<'_>, codes: Vec<String>) -> Result<HttpResponse> {
    let factor = second_factor::own(&editor.app.pool, &editor.secret).await?;
    let pending = match (&factor.sealed, &factor.pending) {
        (None, Some(sealed)) => {
            Some(second_factor::setup_details(&editor.app.secrets, factor.user, sealed, &editor.user.email)?)
        }
        _ => None,
    };
    let is_wrong = !matches!(wrong, Wrong::Nothing);
    let page = AccountPage {
        frame: editor.frame("Your account", Tab::Elsewhere),
        email: editor.user.email.clone(),
        wrong,
        has_factor: factor.sealed.is_some(),
        is_required: editor.caller.tenant.settings.second_factor_required,
        codes_left: factor.codes_left,
        pending,
        codes,
        sessions: sessions::list(&editor.app.pool, &editor.secret).await?,
    };
    if is_wrong { editor.show_again(&page) } else { editor.show(&page) }
}

/// The page.
pub async fn page(editor: Editor) -> Result<HttpResponse> {
    show_page(&editor, Wrong::Nothing, Vec::new()).await
}

/// Whether the signed-in user knows their password. Wrong attempts are slowed down as in the sign-in form.
pub(super) async fn knows_password(editor: &Editor, password: String) -> Result<bool> {
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

/// Sets the user's password if the old one is right. All other sessions end.
pub async fn set_password(editor: Editor) -> Result<HttpResponse> {
    let (old, new) = (editor.form.text("password").to_owned(), editor.form.text("new_password"));
    if new != editor.form.text("again") {
        let wrong = Wrong::Password("The two new passwords differ.".to_owned());
        return show_page(&editor, wrong, Vec::new()).await;
    }
    if let Err(error) = passwords::check("/new_password", new, &editor.user.email) {
        let why = error.errors.first().map_or_else(|| error.detail.clone(), |e| e.message.clone());
        return show_page(&editor, Wrong::Password(why), Vec::new()).await;
    }
    if !knows_password(&editor, old).await? {
        return show_page(&editor, Wrong::Password("The old password is wrong.".to_owned()), Vec::new()).await;
    }
    let hash = editor.app.passwords.hash(new.to_owned()).await?;
    sessions::set_own_password(&editor.app.pool, &editor.secret, &hash).await?;
    Ok(editor.redirect("/admin/account", "The password was changed, and you are signed out everywhere else."))
}

/// Ends one of the user's sessions.
pub async fn end_session(editor: Editor) -> Result<HttpResponse> {
    sessions::end_named(&editor.app.pool, &editor.secret, editor.form.text("session")).await?;
    Ok(editor.redirect("/admin/account", "The session was ended."))
}

#[derive(Template)]
#[template(path = "admin/tenants.html", blocks = ["main"])]
struct TenantsPage {
    frame: Frame,
    choices: Vec<Choice>,
    current: Uuid,
}
render_blocks!(TenantsPage: as_main);

/// The tenants that the user belongs to.
pub async fn tenants(editor: Editor) -> Result<HttpResponse> {
    let choices = sessions::choices(&editor.app.pool, &editor.secret).await?;
    let current = editor.caller.tenant_id();
    editor.show(&TenantsPage { frame: editor.frame("Tenants", Tab::Elsewhere), choices, current })
}

/// Switches to another tenant.
pub async fn choose(editor: Editor) -> Result<HttpResponse> {
    let tenant = Uuid::try_parse(editor.form.text("tenant")).map_err(|_| Error::not_found("tenant"))?;
    sessions::choose(&editor.app.pool, &editor.secret, tenant).await?;
    Ok(editor.redirect("/admin/campaigns", "You switched to another tenant."))
}
