//! Lines of the table that a game master strikes, corrects or has answered.

use actix_web::HttpResponse;
use askama::Template;
use entity::{
    CharacterId,
    message::{self, Author},
};
use uuid::Uuid;

use super::{Around, answer::done};
use crate::{
    admin::{Frame, InCampaign, Tab},
    render_blocks,
};
use ai::turns::again::correct_one;
use base::error::{Code, Error, Result};
use edge::http::{
    etag::Expected,
    resource::{self, Ref},
};
use world::messages::{
    Messages,
    correct::{correct as correct_message, is_answer},
    service::CONTENT_CHARS_MAX,
};

#[derive(Template)]
#[template(path = "admin/table-line.html", blocks = ["form"])]
struct LinePage {
    frame: Frame,
    token: String,
    table: String,
    id: Uuid,
    version: i64,
    content: String,
    speaker: String,
    /// Whether it has words to correct. A roll has none.
    has_words: bool,
    /// The NPCs who can answer it now, if it is a player's line that nobody has answered.
    speakers: Option<String>,
}
render_blocks!(LinePage: as_form);

/// The form for a line.
pub async fn line(at: InCampaign) -> Result<HttpResponse> {
    let line = find(&at, at.path("x")).await?;
    let frame = at.frame("A line of the table", Tab::Table);
    // It was said to everybody, and nobody has answered it.
    let is_open =
        line.author == Author::Player && line.turn_id.is_none() && line.roll.is_none() && line.whisper_to.is_empty();
    let speakers = match line.player_id.filter(|_| is_open) {
        Some(character) => Some(Around::speakers(&at, CharacterId(character)).await?),
        None => None,
    };
    at.show(&LinePage {
        token: frame.token(),
        frame,
        table: at.url("table"),
        id: line.id.0,
        version: line.version,
        speaker: line.speaker.0.alias.unwrap_or(line.speaker.0.name),
        content: line.content,
        has_words: line.roll.is_none(),
        speakers,
    })
}

/// A line by its id.
pub(super) async fn find(at: &InCampaign, id: &str) -> Result<message::Model> {
    let id = Uuid::try_parse(id).map_err(|_| Error::not_found("message"))?;
    let tx = at.read().await?;
    resource::find::<Messages>(&tx, &at.caller, Some(&Ref::Id(at.campaign.id.0)), &Ref::Id(id)).await
}

/// The version that the form showed.
fn shown(at: &InCampaign) -> Result<Expected> {
    let no_version = || Error::invalid("/version", "invalid_value", "Reload the page and try again.");
    at.form.version().map(Expected::version).ok_or_else(no_version)
}

/// Says in words that a line is no longer as the form showed it.
pub(super) fn late(error: Error) -> Error {
    match error.code {
        Code::PreconditionFailed => {
            Error::new(Code::Conflict, "Somebody changed this line in the meantime. Look at it and try again.")
        }
        Code::NotFound => Error::new(Code::Conflict, "Somebody has struck this line in the meantime."),
        _ => error,
    }
}

/// Changes what a line says.
pub async fn correct(at: InCampaign) -> Result<HttpResponse> {
    done(&at, corrected(&at).await.map_err(late))
}

async fn corrected(at: &InCampaign) -> Result<()> {
    let text = at.form.text("text").trim();
    if text.is_empty() || text.chars().count() > CONTENT_CHARS_MAX {
        let message = format!("Write what the line says, in at most {CONTENT_CHARS_MAX} characters.");
        return Err(Error::invalid("/text", "invalid_value", message));
    }
    let (line, expected) = (find(at, at.path("x")).await?, shown(at)?);
    let campaign = Ref::Id(at.campaign.id.0);
    match line.turn_id.filter(|_| is_answer(&line)) {
        Some(turn) => {
            expected.check(line.version)?;
            let any = Expected::any();
            correct_one(&at.app, &at.caller, &at.campaign.id.0.to_string(), turn, text, &any).await?;
        }
        None => {
            correct_message(&at.app, &at.caller, (&campaign, line.id), text, &expected).await?;
        }
    }
    Ok(())
}

/// Removes a line.
pub async fn strike(at: InCampaign) -> Result<HttpResponse> {
    let struck = async {
        let expected = shown(&at)?;
        let campaign = at.campaign.id.0.to_string();
        resource::remove::<Messages>(&at.app, &at.caller, &expected, Some(&campaign), at.path("x")).await
    };
    let struck = struck.await.map_err(late);
    done(&at, struck)
}
