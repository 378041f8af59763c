//! Erasing a character or a user: a question that asks for their slug or email, and what came of it.

use actix_web::{HttpResponse, http::StatusCode};
use entity::character;

use super::{Editor, InCampaign, Tab, ask::AskPage};
use crate::{
    characters::Characters,
    erasure::{EraseParams, service},
    error::{Code, Result},
    http::{
        Reply,
        etag::Expected,
        resource::{self, Ref},
    },
    users::service::{self as users, UserView},
};

/// What a person reads once it began.
fn told(reply: &Reply, name: &str) -> String {
    if reply.status == 204 {
        format!("{name} was erased.")
    } else {
        format!("{name} is being erased. It goes on by itself.")
    }
}

fn expected(editor: &Editor) -> Expected {
    Expected::version(editor.form.version().unwrap_or(0))
}

fn asked(editor: &Editor) -> EraseParams {
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
        then: "The character goes with every copy: what its player wrote and was answered, memories about it, its history, records of \
            turns. Its name becomes [erased] wherever it stands. Nobody can bring it back."
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

/// The question whether a character is to be erased.
pub async fn ask_character(at: InCampaign) -> Result<HttpResponse> {
    let row = character(&at).await?;
    at.show(&character_page(&at, &row, None))
}

/// Erases one, if its slug was written.
pub async fn erase_character(at: InCampaign) -> Result<HttpResponse> {
    let row = character(&at).await?;
    if at.form.text("repeat").trim() != row.slug {
        let problem = format!("Write {} to erase it.", row.slug);
        return at.show_again(&character_page(&at, &row, Some(problem)));
    }
    let (c, x) = (at.campaign_id(), row.id.0.to_string());
    match service::character(&at.app, &at.caller, &expected(&at), (&c, &x), &asked(&at)).await {
        Ok(reply) => Ok(at.done(&at.url("characters"), &told(&reply, "The character"))),
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
        then: "They leave this tenant, and so do their name, their address and their mark in the audit. The world they wrote stays. \
            Nobody can bring them back."
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

/// The question whether a user is to be erased.
pub async fn ask_user(editor: Editor) -> Result<HttpResponse> {
    let user = users::get(&editor.read().await?, editor.path("x")).await?;
    editor.show(&user_page(&editor, &user, None))
}

/// Erases one, if their email was written.
pub async fn erase_user(editor: Editor) -> Result<HttpResponse> {
    let user = users::get(&editor.read().await?, editor.path("x")).await?;
    if editor.form.text("repeat").trim() != user.email {
        let problem = format!("Write {} to erase them.", user.email);
        return editor.show_again(&user_page(&editor, &user, Some(problem)));
    }
    match service::user(&editor.app, &editor.caller, &expected(&editor), &user.id.to_string(), &asked(&editor)).await {
        Ok(reply) => Ok(editor.done("/admin/users", &told(&reply, "The user"))),
        Err(error) if refused(error.code) => {
            editor.show_with(StatusCode::CONFLICT, &user_page(&editor, &user, Some(error.detail.clone())))
        }
        Err(error) => Err(error),
    }
}
