//! What a player says: to somebody, to everyone, or to the game, which decides what the character does.

use actix_web::{HttpRequest, HttpResponse, web};
use ai::{
    planner::{
        act::act,
        answer::ActView,
        request::{ActRequest, may},
    },
    state::Ai,
    turns::{
        answer,
        job::{Job, Way},
        running::Asker,
        start::start,
        view::Visibility,
    },
};
use db::tenancy;
use entity::{CampaignId, TurnId, message::Author};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    answer::{Filled, alert, empty_or_redirect, filled, is_htmx, page_or_alert, rendered, told_alone},
    location::GAME,
    roll,
    seat::Seat,
    visit::{Seating, Visitor, seated_at},
};
use crate::table::{
    command::{self, Command, Written},
    reply::Pending,
    whisper,
};
use base::error::{Error, Result};
use edge::{
    caller::Caller,
    http::{
        forms::from_our_page,
        resource::{self, Ref},
    },
};
use entity::kind::EntityKind;
use world::{
    campaigns::Campaigns,
    messages::service::{self as messages, EMOTE, NewMessage, OOC},
    npcs::Npcs,
    paused::AiPaused,
    table,
};

const SAID_CHARS_MAX: usize = 4000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// An NPC's slug; empty for everyone; `*` for the game.
    #[serde(default)]
    to: String,
    text: String,
}

/// Says something.
pub async fn say(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<String>,
    form: Filled<Words>,
) -> HttpResponse {
    // Another site's words are neither said nor shown.
    if let Err(error) = from_our_page(&request) {
        return alert(&request, &error);
    }
    match visitor {
        Ok(visitor) => page_or_alert(&request, post_words(&app, &visitor, &request, &path, form).await),
        Err(unseated) => unseated.page(filled(form).map(|words| words.text).as_deref().unwrap_or_default()),
    }
}

async fn post_words(
    app: &web::Data<Ai>,
    visitor: &Visitor,
    request: &HttpRequest,
    link: &str,
    words: Filled<Words>,
) -> Result<HttpResponse> {
    let words = filled(words)?;
    let text = words.text.trim();
    if text.is_empty() || text.chars().count() > SAID_CHARS_MAX {
        return Err(Error::invalid(
            "/text",
            "invalid_value",
            format!("Write something, in at most {SAID_CHARS_MAX} characters."),
        ));
    }
    let text = match command::parse(text, false)? {
        Written::Words(text) => text,
        Written::Command(command) => return commanded(app, visitor, request, link, command).await,
    };
    if words.to == GAME {
        return planned(app, visitor, request, link, text).await;
    }
    let seat = Seat::take(app, visitor, link).await?;
    let name = seat.actor().await?.name;
    if words.to.is_empty() {
        aloud(app, seat, &name, (text, None)).await?;
        return Ok(empty_or_redirect(request, link));
    }
    let campaign = Ref::Id(seat.campaign);
    let npc = resource::find::<Npcs>(&seat.tx, &seat.caller, Some(&campaign), &Ref::parse(&words.to)).await?;
    let settings = resource::find::<Campaigns>(&seat.tx, &seat.caller, None, &campaign).await?.settings;
    let paused = AiPaused::of(&settings);
    if paused.all || paused.names(npc.id, &npc.slug) {
        // A game master answers for the NPC, or lets it answer.
        aloud(app, seat, &name, (text, None)).await?;
        let told = format!(
            "{} does not answer now, because a game master has paused the AI. Everybody at the table can read your words, the game master too.",
            npc.name
        );
        return told_alone(request, link, &told);
    }
    drop(seat);
    let job = Job::new(link, (EntityKind::Npc, &words.to), &visitor.player.to_string(), text.to_owned());
    let run =
        async move |app: web::Data<Ai>, caller: Caller, asker: Asker| answer::run(&app, &caller, &job, &asker).await;
    let turn = start(app, &visitor.caller, true, run)?.turn().await?;
    if !is_htmx(request) {
        return Ok(empty_or_redirect(request, link));
    }
    rendered(&Pending::of(&format!("/play/{link}"), TurnId(turn), npc.name).to(&name, text))
}

/// Does what a command says.
async fn commanded(
    app: &Ai,
    visitor: &Visitor,
    request: &HttpRequest,
    link: &str,
    command: Command<'_>,
) -> Result<HttpResponse> {
    match command {
        Command::Help => return told_alone(request, link, &command::help(false)),
        Command::Whisper(rest) => {
            let seat = Seat::take(app, visitor, link).await?;
            let name = seat.character().await?.name;
            let mut others = table::characters(&seat.tx, CampaignId(seat.campaign), None).await?;
            others.retain(|person| person.id != seat.player);
            let npcs = table::company(&seat.tx, seat.campaign, seat.player).await?.npcs;
            let around = whisper::Around { others: &others, npcs: &npcs, has_master: true };
            let (to, words) = whisper::addressed(&around, rest)?;
            let message = NewMessage {
                player_id: Some(seat.player),
                whisper_to: vec![to],
                ..NewMessage::chat(Author::Player, &name, words.to_owned())
            };
            write(app, seat.leave(), message).await?;
        }
        Command::Roll { readers, formula, what_for } => {
            roll::rolled(app, visitor, link, (formula, what_for), readers).await?;
            return roll::told_to(request, link, readers);
        }
        Command::Emote(words) => {
            let seat = Seat::take(app, visitor, link).await?;
            let name = seat.actor().await?.name;
            aloud(app, seat, &name, (words, Some(EMOTE))).await?;
        }
        // Whoever is dead or unconscious can still talk about the game.
        Command::OutOfCharacter(words) => {
            let seat = Seat::take(app, visitor, link).await?;
            let name = seat.character().await?.name;
            aloud(app, seat, &name, (words, Some(OOC))).await?;
        }
    }
    Ok(empty_or_redirect(request, link))
}

/// Says something to everyone.
async fn aloud(app: &Ai, seat: Seat, name: &str, (words, flavor): (&str, Option<&str>)) -> Result<()> {
    let message = NewMessage {
        player_id: Some(seat.player),
        flavor: flavor.map(str::to_owned),
        ..NewMessage::chat(Author::Player, name, words.to_owned())
    };
    write(app, seat.leave(), message).await
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
    let answer = start(app, &visitor.caller, false, run)?.ended().await?.fresh();
    match answer {
        Some(ActView { visibility: Visibility::Ephemeral, message, .. }) => told_alone(request, link, &message),
        _ => Ok(empty_or_redirect(request, link)),
    }
}

async fn write(app: &Ai, (caller, campaign): (Caller, Uuid), message: NewMessage) -> Result<()> {
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        app.limits.check_rows(tx, &caller, "message").await?;
        messages::insert(tx, campaign, std::slice::from_ref(&message)).await?;
        messages::report_table(tx, campaign, std::iter::once(&message)).await
    })
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Met {
    /// The slug of an NPC.
    to: String,
}

/// Lets an NPC greet the player, if their conversation has not begun.
pub async fn meet(
    app: web::Data<Ai>,
    visitor: Seating,
    request: HttpRequest,
    path: web::Path<String>,
    form: Filled<Met>,
) -> HttpResponse {
    seated_at(visitor, &request, async |visitor| {
        from_our_page(&request)?;
        let Met { to } = filled(form)?;
        let usual = Job::new(&path, (EntityKind::Npc, &to), &visitor.player.to_string(), String::new());
        let job = Job { way: Way::Greeting(0), ..usual };
        let run = async move |app: web::Data<Ai>, caller: Caller, asker: Asker| {
            answer::run(&app, &caller, &job, &asker).await
        };
        start(&app, &visitor.caller, false, run)?.ended().await?;
        Ok(empty_or_redirect(&request, &path))
    })
    .await
}
