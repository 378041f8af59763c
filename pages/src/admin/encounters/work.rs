//! What the forms of an encounter's page do, and what is said of it.

use actix_web::HttpResponse;
use uuid::Uuid;

use crate::admin::{
    InCampaign, query,
    table::answer::{self, AT_TABLE},
    world_form::{form_id, once},
};
use base::{
    clock,
    error::{Code, Error, Result},
};
use edge::http::{Answer, resource::Ref};
use world::encounters::service::Cx;

/// Works on the page's encounter in a transaction, once for each form, and shows how it stands.
pub(super) async fn work(
    at: &InCampaign,
    work: impl AsyncFn(&Cx<'_>, &str) -> Result<Option<String>>,
) -> Result<HttpResponse> {
    said(at, once_for_form(at, work).await)
}

/// Works on the page's encounter in a transaction. A form that is sent again, as by a double click, does nothing.
///
/// # Errors
/// Those of the work.
pub(super) async fn once_for_form(
    at: &InCampaign,
    work: impl AsyncFn(&Cx<'_>, &str) -> Result<Option<String>>,
) -> Result<Option<String>> {
    let campaign = Ref::Id(at.campaign.id.0);
    let sent: Vec<_> = at.form.fields().collect();
    let once = once(at, &form_id(at), &sent);
    let done = edge::http::write(&at.app, &at.caller, once.as_ref(), async |tx| {
        Ok(Answer::ok(work(&Cx::of(tx, &campaign, &at.caller), at.path("x")).await?))
    });
    Ok(done.await?.fresh().flatten())
}

/// The hidden fields of every form of an encounter's page.
pub(super) fn fields(at: &InCampaign, token: &str) -> String {
    let goes_on = if goes_on(at) { r#"<input type="hidden" name="go_on" value="1">"# } else { "" };
    format!(r#"{token}<input type="hidden" name="form_id" value="{}">{goes_on}"#, clock::id())
}

/// Whether the game master goes on although a side is down.
pub(super) fn goes_on(at: &InCampaign) -> bool {
    query::given(at.request.query_string(), "go_on") == "1" || at.form.text("go_on") == "1"
}

/// Shows how the fight stands, with what came of something. Nothing has changed if it was refused, because the fight was no longer as the
/// page showed it; then the message says why, in the colour of a refusal. A form at the game master's table leads back there.
pub(super) fn said(at: &InCampaign, done: Result<Option<String>>) -> Result<HttpResponse> {
    let done = done.map_err(|error| match error.code {
        Code::PreconditionFailed => Error::new(
            Code::Conflict,
            "Somebody acted in the meantime, so nothing was changed. This is how the fight stands now.",
        ),
        _ => error,
    });
    if at.form.has(AT_TABLE) { answer::done(at, done.map(drop)) } else { said_on_page(at, done) }
}

/// The same for a form whose page is the fight's.
pub(super) fn said_on_page(at: &InCampaign, done: Result<Option<String>>) -> Result<HttpResponse> {
    match done {
        Ok(told) => {
            let message = told.filter(|message| !message.is_empty()).unwrap_or_else(|| "Done.".to_owned());
            Ok(at.redirect(&here(at), &message))
        }
        Err(error) if is_late(error.code) => Ok(at.refuse(&here(at), &answer::words_of(&error))),
        Err(error) => Err(error),
    }
}

/// The address of the page's encounter.
pub(super) fn here(at: &InCampaign) -> String {
    let id = Uuid::try_parse(at.path("x")).unwrap_or_default();
    at.url(&format!("encounters/{id}{}", if goes_on(at) { "?go_on=1" } else { "" }))
}

/// Whether an action was refused because the fight is no longer as the page showed it.
const fn is_late(code: Code) -> bool {
    matches!(
        code,
        Code::NotYourTurn
            | Code::NoActionLeft
            | Code::NotDying
            | Code::EncounterAlreadyEnded
            | Code::EncounterNotEnded
            | Code::Conflict
            | Code::ValidationFailed
    )
}
