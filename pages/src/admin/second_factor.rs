//! The user's own second factor: setting it up, showing the recovery codes once, and removing it.

use actix_web::HttpResponse;

use super::{Editor, account};
use base::error::Result;
use edge::users::{
    email,
    second_factor::{self, Code},
};

/// Creates a secret if the password is right. The second factor is on only after the user enters a code.
pub async fn begin(editor: Editor) -> Result<HttpResponse> {
    if !account::knows_password(&editor, editor.form.text("password").to_owned()).await? {
        return account::show_page(&editor, account::Wrong::Factor("The password is wrong."), Vec::new()).await;
    }
    let sealed = second_factor::generate(&editor.app.secrets, editor.user.id)?;
    second_factor::begin(&editor.app.pool, &editor.secret, &sealed).await?;
    account::show_page(&editor, account::Wrong::Nothing, Vec::new()).await
}

/// Turns the second factor on if the code is right, and shows the recovery codes.
pub async fn confirm(editor: Editor) -> Result<HttpResponse> {
    const WRONG: &str =
        "This code is wrong. Check the clock of your authenticator app's device, and enter the next code.";
    let app = &editor.app;
    let attempt = app.limits.sign_ins.code(&email::fold(&editor.user.email)).await?;
    let factor = second_factor::own(&app.pool, &editor.secret).await?;
    let code = match &factor.pending {
        Some(sealed) => second_factor::read(&app.secrets, factor.user, sealed, editor.form.text("code"))?,
        None => None,
    };
    let (codes, hashes) = second_factor::recovery_codes(factor.user);
    let done = match (&factor.pending, code) {
        (Some(sealed), Some(Code::Step(step))) => {
            second_factor::confirm(&app.pool, &editor.secret, sealed, step, &hashes).await?
        }
        _ => false,
    };
    if !done {
        attempt.wrong();
        return account::show_page(&editor, account::Wrong::Factor(WRONG), Vec::new()).await;
    }
    attempt.right();
    account::show_page(&editor, account::Wrong::Nothing, codes).await
}

/// Removes the second factor if the password and a code are right.
pub async fn remove(editor: Editor) -> Result<HttpResponse> {
    const WRONG: &str = "The password or the code is wrong.";
    let app = &editor.app;
    if !account::knows_password(&editor, editor.form.text("password").to_owned()).await? {
        return account::show_page(&editor, account::Wrong::Factor(WRONG), Vec::new()).await;
    }
    let attempt = app.limits.sign_ins.code(&email::fold(&editor.user.email)).await?;
    let factor = second_factor::own(&app.pool, &editor.secret).await?;
    let code = match &factor.sealed {
        Some(sealed) => second_factor::read(&app.secrets, factor.user, sealed, editor.form.text("code"))?,
        None => None,
    };
    let done = match &code {
        Some(code) => second_factor::remove(&app.pool, &editor.secret, code).await?,
        None => false,
    };
    if !done {
        attempt.wrong();
        return account::show_page(&editor, account::Wrong::Factor(WRONG), Vec::new()).await;
    }
    attempt.right();
    Ok(editor.redirect("/admin/account", "The second factor was removed. Your password alone now signs you in."))
}
