//! Erasing a character or a user: a page that asks for their slug or email, and the result.

use actix_web::{HttpResponse, http::StatusCode};
use entity::character;

use super::{Editor, InCampaign, Tab, ask::AskPage};
use base::error::{Code, Result};
use edge::{
    http::{
        etag::Expected,
        resource::{self, Ref},
    },
    users::service::{self as users, UserView},
};
use world::{
    characters::Characters,
    erasure::{EraseParams, Erasure, Progress, service},
};

/// The message after the erasure has begun.
fn begun_message(erasure: &Erasure, name: &str) -> String {
    match erasure.status {
        Progress::Done => format!("{name} was erased."),
        Progress::Running => format!("{name} is being erased. This continues in the background."),
    }
}

fn expected(editor: &Editor) -> Expected {
    Expected::version(editor.form.version().unwrap_or(0))
}

fn erase_params(editor: &Editor) -> EraseParams {
    EraseParams { erase: true, forks: editor.form.text("forks") == "on", also: None }
}

fn refused(code: Code) -> bool {
    matches!(code, Code::PreconditionFailed | Code::Conflict | Code::Forbidden)
}

async fn character(at: &InCampaign) -> Result<character::Model> {
    let campaign = Ref::Id(at.campaign.id.0);
    resource::find::<Characters>(&at.read().await?, &at.caller, Some(&campaign), &Ref::parse(at.path("x"))).await
}

fn character_page(at: &InCampaign, row: &character::Model, problem: Option<String>) -> AskPage {
    AskPage {
        frame: at.frame(&format!("Erase {}", row.name), Tab::Characters),
        question: format!("Erase {}?", row.name),
        quoted: None,
        then: "This erases the character and every copy of its data: what its player wrote and the answers, memories about it, its history, \
            and records of turns. Its name becomes [erased] everywhere. Nobody can restore it."
            .to_owned(),
        rows: Vec::new(),
        before: None,
        yes: "Erase",
        no: "Keep it",
        back: format!("{}/{}", at.url("characters"), row.id.0),
        version: Some(row.version),
        repeat: Some(row.slug.clone()),
        forks: true,
        problem,
    }
}

/// Asks whether to erase a character.
pub async fn ask_character(at: InCampaign) -> Result<HttpResponse> {
    let row = character(&at).await?;
    at.show(&character_page(&at, &row, None))
}

/// Erases a character if the user typed its slug.
pub async fn erase_character(at: InCampaign) -> Result<HttpResponse> {
    let row = character(&at).await?;
    if at.form.text("repeat").trim() != row.slug {
        let problem = format!("Type {} to erase it.", row.slug);
        return at.show_again(&character_page(&at, &row, Some(problem)));
    }
    let (c, x) = (at.campaign_id(), row.id.0.to_string());
    match service::character(&at.app, &at.caller, &expected(&at), (&c, &x), &erase_params(&at)).await {
        Ok(erasure) => Ok(at.redirect(&at.url("characters"), &begun_message(&erasure, "The character"))),
        Err(error) if refused(error.code) => {
            at.show_with(StatusCode::CONFLICT, &character_page(&at, &row, Some(error.detail.clone())))
        }
        Err(error) => Err(error),
    }
}

fn user_page(editor: &Editor, user: &UserView, problem: Option<String>) -> AskPage {
    AskPage {
        frame: editor.frame(&format!("Erase {}", user.name), Tab::Users),
        question: format!("Erase {}?", user.name),
        quoted: Some(user.email.clone()),
        then: "This removes them from this tenant, with their name, their address and their mark in the audit. What they wrote stays. \
            Nobody can undo this."
            .to_owned(),
        rows: Vec::new(),
        before: None,
        yes: "Erase",
        no: "Keep them",
        back: format!("/admin/users/{}", user.id),
        version: Some(user.version),
        repeat: Some(user.email.clone()),
        forks: false,
        problem,
    }
}

/// Asks whether to erase a user.
pub async fn ask_user(editor: Editor) -> Result<HttpResponse> {
    let user = users::get(&editor.read().await?, editor.path("x")).await?;
    editor.show(&user_page(&editor, &user, None))
}

/// Erases a user if the email was typed.
pub async fn erase_user(editor: Editor) -> Result<HttpResponse> {
    let user = users::get(&editor.read().await?, editor.path("x")).await?;
    if editor.form.text("repeat").trim() != user.email {
        let problem = format!("Type {} to erase them.", user.email);
        return editor.show_again(&user_page(&editor, &user, Some(problem)));
    }
    match service::user(&editor.app, &editor.caller, &expected(&editor), &user.id.to_string(), &erase_params(&editor))
        .await
    {
        Ok(erasure) => Ok(editor.redirect("/admin/users", &begun_message(&erasure, "The user"))),
        Err(error) if refused(error.code) => {
            editor.show_with(StatusCode::CONFLICT, &user_page(&editor, &user, Some(error.detail.clone())))
        }
        Err(error) => Err(error),
    }
}
