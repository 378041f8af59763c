//! What a player does: speaking to somebody or to everyone, saying what the character does, and rolling dice.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, post, web};
use ai::{
    planner::{
        act::act,
        request::{ActRequest, may},
    },
    state::Ai,
    turns::{
        again::{self, Wished},
        answer,
        job::{Job, OnBusy, OnFailure, Way},
        running::Asker,
        start::{Wish as AnswerWish, start},
    },
};
use askama::Template;
use db::tenancy;
use entity::message::{Author, Type};
use rules::dice::Meaning;
use serde::Deserialize;
use uuid::Uuid;

use super::{
    answer::{Filled, Notice, filled, is_htmx, page_or_alert, rendered},
    table::Seat,
    visit::Visitor,
    whisper,
};
use base::error::{Error, Result};
use edge::{
    caller::Caller,
    http::{forms::from_our_page, reply::html},
};
use entity::kind::EntityKind;
use world::{
    dice::{
        rolls::{self, RollInput},
        seeds::Taking,
        service::Wish,
        sheet,
    },
    messages::service::{self as messages, NewMessage, RollFacts},
};

const SAID_CHARS_MAX: usize = 4000;
/// The recipient that stands for the game, when a player says what the character does. No slug looks like this.
const GAME: &str = "*";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    /// An NPC's slug; empty for everyone; `*` for the game.
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
    app: web::Data<Ai>,
    visitor: Visitor,
    request: HttpRequest,
    path: web::Path<String>,
    form: Filled<Words>,
) -> HttpResponse {
    page_or_alert(&request, post_words(&app, &visitor, &request, &path, form).await)
}

async fn post_words(
    app: &web::Data<Ai>,
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
            format!("Write something, in at most {SAID_CHARS_MAX} characters."),
        ));
    }
    if let Some(rest) = whisper::parse(text) {
        let seat = Seat::take(app, visitor, link).await?;
        let message = whisper::message(&seat, rest).await?;
        write(app, seat.leave(), message).await?;
        return Ok(empty_or_redirect(request, link));
    }
    if words.to == GAME {
        return planned(app, visitor, request, link, text).await;
    }
    let seat = Seat::take(app, visitor, link).await?;
    let name = seat.sheet().await?.who.name;
    if words.to.is_empty() {
        let message =
            NewMessage { player_id: Some(seat.player), ..NewMessage::chat(Author::Player, &name, text.to_owned()) };
        write(app, seat.leave(), message).await?;
        return Ok(empty_or_redirect(request, link));
    }
    drop(seat);
    let job = Job {
        campaign: link.to_owned(),
        kind: EntityKind::Npc,
        entity: words.to.clone(),
        player: visitor.player.to_string(),
        action: text.to_owned(),
        mechanics: None,
        mode: None,
        on_busy: OnBusy::Reject,
        on_failure: OnFailure::Revert,
        key: None,
        reaction: None,
        way: Way::Answer,
    };
    let run =
        async move |app: web::Data<Ai>, caller: Caller, asker: Asker| answer::run(&app, &caller, &job, &asker).await;
    let Ok(turn) = start(app, &visitor.caller, true, run)?.begun().await? else {
        return Err(Error::internal("a turn without a key was answered before it began"));
    };
    if !is_htmx(request) {
        return Ok(empty_or_redirect(request, link));
    }
    rendered(&Pending { link, turn: turn.to_string(), player: &name, text, npc: &words.to })
}

/// A message only for the player who asked.
#[derive(Template)]
#[template(path = "play/aside.html")]
struct Aside<'a> {
    message: &'a str,
}

/// Plans a command from the player's text. Everyone sees the public result live. A private result is the response to the player.
async fn planned(
    app: &web::Data<Ai>,
    visitor: &Visitor,
    request: &HttpRequest,
    link: &str,
    text: &str,
) -> Result<HttpResponse> {
    may(app, &visitor.caller, text)?;
    let wanted = ActRequest {
        campaign: link.to_owned(),
        player: visitor.player.to_string(),
        text: text.to_owned(),
        scene: None,
        channel: None,
        dry_run: false,
        key: None,
    };
    let planner = app.clone();
    let run = async move |_, caller: Caller, asker: Asker| act(&planner, &caller, &wanted, &asker).await;
    let Err(reply) = start(app, &visitor.caller, false, run)?.begun().await? else {
        return Err(Error::internal("the planner began a turn instead of answering"));
    };
    let answer: serde_json::Value = serde_json::from_slice(&reply.body).map_err(Error::internal)?;
    let message = answer["message"].as_str().unwrap_or_default();
    match (answer["visibility"] == "public", is_htmx(request)) {
        (true, _) => Ok(empty_or_redirect(request, link)),
        (false, true) => rendered(&Aside { message }),
        (false, false) => rendered(&Notice { message, back: &format!("/play/{link}") }),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Roll {
    formula: String,
}

/// Rolls dice from the campaign's fair stream, for everyone to see.
#[post("/{campaign}/roll")]
pub async fn roll(
    app: web::Data<Ai>,
    visitor: Visitor,
    request: HttpRequest,
    path: web::Path<String>,
    form: Filled<Roll>,
) -> HttpResponse {
    page_or_alert(&request, rolled(&app, &visitor, &request, &path, form).await)
}

async fn rolled(
    app: &Ai,
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
    let (caller, campaign) = seat.leave();
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        app.limits.check_rows(tx, &caller, "message").await?;
        let value = |name: &str| sheet::value(&own, name).map(Meaning::Number);
        let report = rolls::roll(Taking::Within(tx), Some(campaign), &Wish::default(), &rolls, &value).await?;
        let Some((result, total)) = report.results.first().and_then(|first| Some((first, first.total.clone()?))) else {
            let error = report.results.into_iter().find_map(|result| result.error);
            let message = error.map_or_else(|| "This formula cannot be rolled.".to_owned(), |error| error.message);
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
            player_id: Some(visitor.player),
            ..NewMessage::chat(Author::Player, &who.name, messages::roll_text(&facts))
        };
        messages::insert(tx, campaign, std::slice::from_ref(&message)).await?;
        messages::report_table(tx, campaign, std::iter::once(&message)).await
    })
    .await?;
    Ok(empty_or_redirect(request, link))
}

async fn write(app: &Ai, (caller, campaign): (Caller, Uuid), message: NewMessage) -> Result<()> {
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        app.limits.check_rows(tx, &caller, "message").await?;
        messages::insert(tx, campaign, std::slice::from_ref(&message)).await?;
        messages::report_table(tx, campaign, std::iter::once(&message)).await
    })
    .await
}

/// Nothing to show: the news arrives live. Without JavaScript the page is reloaded.
fn empty_or_redirect(request: &HttpRequest, link: &str) -> HttpResponse {
    if is_htmx(request) {
        return html(StatusCode::OK, String::new());
    }
    HttpResponse::SeeOther().insert_header(("location", format!("/play/{link}"))).finish()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attempt {}

/// Tries the last answer to this player again. The new one arrives like every message, in place of the other.
#[post("/{campaign}/turns/{turn}/again")]
pub async fn try_again(
    app: web::Data<Ai>,
    visitor: Visitor,
    request: HttpRequest,
    path: web::Path<(String, Uuid)>,
    form: Filled<Attempt>,
) -> HttpResponse {
    let (link, turn) = path.into_inner();
    let done = async {
        from_our_page(&request)?;
        let Attempt {} = filled(form)?;
        let caller = visitor.caller.clone();
        again::try_again(app.clone(), caller, &link, turn, Wished::default(), AnswerWish::Later, None).await?;
        Ok(empty_or_redirect(&request, &link))
    };
    page_or_alert(&request, done.await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chosen {
    /// The turn to choose.
    turn: Uuid,
}

/// Chooses another alternative of the last answer to this player.
#[post("/{campaign}/choose")]
pub async fn choose(
    app: web::Data<Ai>,
    visitor: Visitor,
    request: HttpRequest,
    path: web::Path<String>,
    form: Filled<Chosen>,
) -> HttpResponse {
    let done = async {
        from_our_page(&request)?;
        let Chosen { turn } = filled(form)?;
        again::choose_one(&app, &visitor.caller, &path, turn, None).await?;
        Ok(empty_or_redirect(&request, &path))
    };
    page_or_alert(&request, done.await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Met {
    /// The slug of an NPC.
    to: String,
}

/// Lets an NPC greet the player, if their conversation has not begun.
#[post("/{campaign}/meet")]
pub async fn meet(
    app: web::Data<Ai>,
    visitor: Visitor,
    request: HttpRequest,
    path: web::Path<String>,
    form: Filled<Met>,
) -> HttpResponse {
    let done = async {
        from_our_page(&request)?;
        let Met { to } = filled(form)?;
        let job = Job {
            campaign: path.to_string(),
            kind: EntityKind::Npc,
            entity: to,
            player: visitor.player.to_string(),
            action: String::new(),
            mechanics: None,
            mode: None,
            on_busy: OnBusy::Reject,
            on_failure: OnFailure::Revert,
            key: None,
            reaction: None,
            way: Way::Greeting(0),
        };
        let run = async move |app: web::Data<Ai>, caller: Caller, asker: Asker| {
            answer::run(&app, &caller, &job, &asker).await
        };
        start(&app, &visitor.caller, false, run)?.ended().await?;
        Ok(empty_or_redirect(&request, &path))
    };
    page_or_alert(&request, done.await)
}
