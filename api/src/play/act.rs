//! What a player does: speak to somebody or to everyone, and roll dice.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, post, web};
use askama::Template;
use entity::message::{Author, Type};
use serde::Deserialize;

use super::{Filled, filled, html, is_htmx, rendered, shown, table::Seat, visit::Visitor};
use crate::{
    app::App,
    auth::Caller,
    dice::{
        rolls::{self, RollInput},
        service::{Draw, Wish},
        sheet,
    },
    error::{Error, Result},
    http::forms::from_our_page,
    messages::service::{self as messages, NewMessage, RollFacts},
    prompt::EntityKind,
    tenancy::TenantTx,
    turns::{
        Job, OnBusy, OnFailure, runner,
        start::{Asker, start},
    },
};

const SAID_CHARS_MAX: usize = 4000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    /// An NPC's slug; empty: everyone.
    #[serde(default)]
    to: String,
    text: String,
}

#[derive(Template)]
#[template(path = "play/pending.html")]
struct Pending<'a> {
    link: &'a str,
    turn: String,
    player: &'a str,
    text: &'a str,
    npc: &'a str,
}

/// Says something.
#[post("/{campaign}/say")]
pub async fn say(
    app: web::Data<App>,
    visitor: Visitor,
    request: HttpRequest,
    path: web::Path<String>,
    form: Filled<Words>,
) -> HttpResponse {
    shown(&request, said(&app, &visitor, &request, &path, form).await)
}

async fn said(
    app: &web::Data<App>,
    visitor: &Visitor,
    request: &HttpRequest,
    link: &str,
    words: Filled<Words>,
) -> Result<HttpResponse> {
    from_our_page(request)?;
    let words = filled(words)?;
    let text = words.text.trim();
    if text.is_empty() || text.chars().count() > SAID_CHARS_MAX || text.contains('\0') {
        return Err(Error::invalid(
            "/text",
            "invalid_value",
            format!("Say something, in at most {SAID_CHARS_MAX} characters."),
        ));
    }
    let seat = Seat::take(app, visitor, link).await?;
    let name = seat.sheet().await?.who.name;
    if words.to.is_empty() {
        let message =
            NewMessage { player_id: Some(seat.player), ..NewMessage::chat(Author::Player, &name, text.to_owned()) };
        write(app, seat, message).await?;
        return Ok(done(request, link));
    }
    drop(seat);
    let job = Job {
        campaign: link.to_owned(),
        kind: EntityKind::Npc,
        entity: words.to.clone(),
        player: visitor.player.to_string(),
        action: text.to_owned(),
        mechanics: None,
        mode: app.llm.reply_mode(&visitor.caller.tenant),
        on_busy: OnBusy::Reject,
        on_failure: OnFailure::Revert,
        key: None,
    };
    let run =
        async move |app: web::Data<App>, caller: Caller, asker: Asker| runner::run(&app, &caller, &job, &asker).await;
    let Ok(turn) = start(app, &visitor.caller, true, run)?.begun().await? else {
        return Err(Error::internal("a turn without a key was answered before it began"));
    };
    if !is_htmx(request) {
        return Ok(done(request, link));
    }
    rendered(&Pending { link, turn: turn.to_string(), player: &name, text, npc: &words.to })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Roll {
    formula: String,
}

/// Rolls dice of the campaign's fair stream, for everyone to see.
#[post("/{campaign}/roll")]
pub async fn roll(
    app: web::Data<App>,
    visitor: Visitor,
    request: HttpRequest,
    path: web::Path<String>,
    form: Filled<Roll>,
) -> HttpResponse {
    shown(&request, rolled(&app, &visitor, &request, &path, form).await)
}

async fn rolled(
    app: &App,
    visitor: &Visitor,
    request: &HttpRequest,
    link: &str,
    dice: Filled<Roll>,
) -> Result<HttpResponse> {
    from_our_page(request)?;
    let dice = filled(dice)?;
    let rolls = [RollInput { formula: dice.formula.trim().to_owned(), flavor: None }];
    let seat = Seat::take(app, visitor, link).await?;
    let who = seat.sheet().await?.who;
    let own = sheet::of_character(&who);
    let tx = TenantTx::write(&app.pool, &seat.caller.actor()).await?;
    app.limits.check_rows(&tx, &seat.caller, "message").await?;
    let mut draw = Draw::new(&tx, Some(seat.campaign), &Wish::default()).await?;
    let report = rolls::all(&mut draw, &rolls, &|name: &str| sheet::value(&own, name)).await?;
    let Some((result, total)) = report.results.first().and_then(|first| Some((first, first.total.clone()?))) else {
        let error = report.results.into_iter().find_map(|result| result.error);
        let message = error.map_or_else(|| "These dice cannot be rolled.".to_owned(), |error| error.message);
        return Err(Error::invalid("/formula", "invalid_formula", message));
    };
    let facts = [RollFacts {
        formula: result.formula.clone(),
        total,
        flavor: String::new(),
        dice: serde_json::to_value(&result.dice).map_err(Error::internal)?,
    }];
    let message = NewMessage {
        kind: Type::Roll,
        roll: Some(messages::roll_value(&facts)),
        player_id: Some(seat.player),
        ..NewMessage::chat(Author::Player, &who.name, messages::roll_text(&facts))
    };
    messages::insert(&tx, seat.campaign, &[message]).await?;
    tx.commit().await?;
    Ok(done(request, link))
}

async fn write(app: &App, seat: Seat, message: NewMessage) -> Result<()> {
    let tx = TenantTx::write(&app.pool, &seat.caller.actor()).await?;
    app.limits.check_rows(&tx, &seat.caller, "message").await?;
    messages::insert(&tx, seat.campaign, &[message]).await?;
    tx.commit().await
}

/// Nothing to show here: it comes live. Without script the page is loaded anew.
fn done(request: &HttpRequest, link: &str) -> HttpResponse {
    if is_htmx(request) {
        return html(StatusCode::OK, String::new());
    }
    HttpResponse::SeeOther().insert_header(("location", format!("/play/{link}"))).finish()
}
