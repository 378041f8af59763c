//! What a game master says: as the narrator or as an NPC, to everyone or to one character, in words or with dice. It is no turn, so it is no
//! part of an NPC's conversation.

use actix_web::HttpResponse;
use entity::{CharacterId, NpcId, message::Author};

use super::{SAID_CHARS_MAX, answer::done};
use crate::{
    admin::{
        InCampaign,
        answer::is_htmx,
        world_form::{form_id, once},
    },
    table::{
        command::{self, Command, Written},
        dice,
        name::{Misnamed, Named, named},
        notes::Aside,
        whisper,
    },
};
use base::error::{Error, Result};
use db::tenancy::TenantTx;
use edge::{
    auth::player,
    http::{
        Answer,
        resource::{self, Ref},
    },
};
use world::{
    memory::{
        self,
        service::{GameTime, NewMemory},
        subject::Subject,
    },
    messages::service::{self as messages, EMOTE, NewMessage, OOC},
    npcs::Npcs,
    seat, table,
};

const NARRATOR: &str = "Narrator";
const GAME_MASTER: &str = "Game Master";

/// Says something.
pub async fn say(at: InCampaign) -> Result<HttpResponse> {
    match said(&at).await {
        Ok(Some(help)) if is_htmx(&at.request) => at.piece(&Aside { message: &help }),
        Ok(Some(help)) => Ok(at.redirect(&at.url("table"), &help)),
        said => done(&at, said.map(drop)),
    }
}

/// Says what the form has, or does what its command says. Returns what only the game master who wrote it reads.
async fn said(at: &InCampaign) -> Result<Option<String>> {
    let text = at.form.text("text").trim();
    if text.is_empty() || text.chars().count() > SAID_CHARS_MAX {
        let message = format!("Write something, in at most {SAID_CHARS_MAX} characters.");
        return Err(Error::invalid("/text", "invalid_value", message));
    }
    let tx = at.read().await?;
    let (voice, words) = spoken_by(at, &tx, text).await?;
    let (voice, text) = match command::parse(words, words == text)? {
        Written::Words(text) => (NewMessage { whisper_to: hearer(at, &tx).await?, ..voice }, text),
        Written::Command(Command::Help) => return Ok(Some(command::help(true))),
        Written::Command(Command::Whisper(rest)) => {
            let characters = table::characters(&tx, at.campaign.id, None).await?;
            let around = whisper::Around { others: &characters, npcs: &[], has_master: false };
            let (to, words) = whisper::addressed(&around, rest)?;
            (NewMessage { whisper_to: vec![to], ..voice }, words)
        }
        Written::Command(Command::Roll { readers, formula, what_for }) => {
            let whisper_to = hearer(at, &tx).await?;
            drop(tx);
            rolled(at, readers.of(NewMessage { whisper_to, ..voice }), (formula, what_for)).await?;
            return Ok(None);
        }
        Written::Command(Command::Emote(words)) => {
            (NewMessage { flavor: Some(EMOTE.to_owned()), whisper_to: hearer(at, &tx).await?, ..voice }, words)
        }
        // Neither the narrator nor an NPC says it.
        Written::Command(Command::OutOfCharacter(words)) => {
            let own = NewMessage::chat(Author::Gm, GAME_MASTER, String::new());
            (NewMessage { flavor: Some(OOC.to_owned()), whisper_to: hearer(at, &tx).await?, ..own }, words)
        }
    };
    let subject = subject(at, &tx, &voice).await?;
    drop(tx);
    write(at, async |tx| {
        if let (Some(subject), Some(npc)) = (subject, voice.entity_id) {
            remembered(at, tx, (NpcId(npc), subject), text).await?;
        }
        Ok(NewMessage { content: text.to_owned(), ..voice.clone() })
    })
    .await?;
    Ok(None)
}

/// As whom a text is said, and the rest of it: as the NPC or the narrator that it begins with, or as the form says.
async fn spoken_by<'t>(at: &InCampaign, tx: &TenantTx, text: &'t str) -> Result<(NewMessage, &'t str)> {
    if let Some(rest) = command::rest(text, command::DESCRIBE) {
        return Ok((voice(at, tx, "").await?, command::words(rest)?));
    }
    let Some(rest) = command::rest(text, command::AS) else {
        return Ok((voice(at, tx, at.form.text("as")).await?, text));
    };
    let places = seat::everybody(tx, at.campaign.id).await?;
    let npcs = places.iter().flat_map(|place| &place.people).filter(|person| person.kind == "npcs");
    let npcs: Vec<Named<'_>> =
        npcs.map(|npc| Named { id: npc.slug.clone(), slug: &npc.slug, name: &npc.name, is_title: false }).collect();
    match named(&npcs, rest) {
        Ok((npc, rest)) => Ok((voice(at, tx, npc.slug).await?, command::words(rest)?)),
        Err(misnamed) => Err(command::refusal(match misnamed {
            Misnamed::Nobody => "Nothing was said: no NPC has that name. Write /as NAME and the words.".to_owned(),
            Misnamed::SameName(slugs) => {
                format!(
                    "Nothing was said: several NPCs have this name. Write one of these instead: {}.",
                    slugs.join(" or ")
                )
            }
            Misnamed::SameBeginning(names) => {
                format!(
                    "Nothing was said: several names begin with that. Write more of the one you mean: {}.",
                    names.join(", ")
                )
            }
        })),
    }
}

/// The character about whom the NPC remembers what it says, if the form names one.
async fn subject(at: &InCampaign, tx: &TenantTx, voice: &NewMessage) -> Result<Option<CharacterId>> {
    let slug = at.form.text("remember");
    if slug.is_empty() {
        return Ok(None);
    }
    if voice.entity_id.is_none() {
        return Err(Error::invalid(
            "/remember",
            "invalid_value",
            "Choose the NPC who remembers it. The narrator has no memory.",
        ));
    }
    let found = player::find(tx, at.campaign.id.0, slug).await?;
    found.map(|id| Some(CharacterId(id))).ok_or_else(|| gone("/remember")(Error::not_found("character")))
}

/// Lets an NPC remember what it says, like a memory that is written in the editor.
async fn remembered(at: &InCampaign, tx: &TenantTx, (npc, subject): (NpcId, CharacterId), text: &str) -> Result<()> {
    let new = NewMemory {
        campaign: at.campaign.id.0,
        holder_type: "npc",
        holder: npc.0,
        player: Subject::chosen(subject.0),
        text: memory::service::text(text, "/text")?,
        game_time: GameTime::Now,
        is_pinned: false,
        source: "editor",
        author: at.caller.author(),
        turn: None,
    };
    memory::service::remember(tx, at.caller.tenant.limits.rows_per_kind, &new).await.map(drop)
}

/// Rolls a formula, for everyone or for game masters alone.
pub async fn roll(at: InCampaign) -> Result<HttpResponse> {
    done(&at, rolls(&at).await)
}

async fn rolls(at: &InCampaign) -> Result<()> {
    let voice = {
        let tx = at.read().await?;
        NewMessage { whisper_to: hearer(at, &tx).await?, ..voice(at, &tx, at.form.text("as")).await? }
    };
    // A button names a die; the field beside it has the formula.
    let formula = at.form.get("die").unwrap_or_else(|| at.form.text("formula"));
    rolled(at, voice, (formula, "")).await
}

/// Rolls a formula in somebody's name. Only game masters see it if the form says so, whether it is typed or clicked.
async fn rolled(at: &InCampaign, voice: NewMessage, roll: (&str, &str)) -> Result<()> {
    let voice = NewMessage { blind: voice.blind || at.form.has("blind"), ..voice };
    write(at, async |tx| {
        let facts = dice::rolled(tx, at.campaign.id, roll, &|_| None).await?;
        Ok(dice::told(facts, voice.clone()))
    })
    .await
}

/// Writes a message. A form that is sent twice, as by a double click on a page without JavaScript, writes it once.
pub(super) async fn write(at: &InCampaign, message: impl AsyncFn(&TenantTx) -> Result<NewMessage>) -> Result<()> {
    let sent: Vec<_> = at.form.fields().collect();
    let once = once(at, &form_id(at), &sent).filter(|_| !is_htmx(&at.request));
    let written = edge::http::write(&at.app, &at.caller, once.as_ref(), async |tx| {
        at.app.limits.check_rows(tx, &at.caller, "message").await?;
        let message = message(tx).await?;
        messages::insert(tx, at.campaign.id.0, std::slice::from_ref(&message)).await?;
        Ok(Answer::ok(()))
    });
    written.await.map(drop)
}

/// An empty message of the NPC with this slug, or of the narrator without one.
async fn voice(at: &InCampaign, tx: &TenantTx, slug: &str) -> Result<NewMessage> {
    if slug.is_empty() {
        return Ok(NewMessage::chat(Author::Gm, NARRATOR, String::new()));
    }
    let campaign = Ref::Id(at.campaign.id.0);
    let npc = resource::find::<Npcs>(tx, &at.caller, Some(&campaign), &Ref::parse(slug)).await.map_err(gone("/as"))?;
    Ok(NewMessage { entity_id: Some(npc.id.0), ..NewMessage::chat(Author::Gm, &npc.name, String::new()) })
}

/// The character whose slug the form has, as those who may read a message.
async fn hearer(at: &InCampaign, tx: &TenantTx) -> Result<Vec<String>> {
    let slug = at.form.text("to");
    if slug.is_empty() {
        return Ok(Vec::new());
    }
    match player::find(tx, at.campaign.id.0, slug).await? {
        Some(id) => Ok(vec![id.to_string()]),
        None => Err(gone("/to")(Error::not_found("character"))),
    }
}

/// Somebody who was chosen from a list and is gone since. A whisper is then not said aloud.
fn gone(field: &'static str) -> impl Fn(Error) -> Error {
    move |error| match error.code.status() {
        404 => Error::invalid(
            field,
            "unknown_reference",
            "Whom you chose is not in the world any more, so nothing was sent.",
        ),
        _ => error,
    }
}
