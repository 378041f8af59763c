//! Hit points, conditions and places, by click. Somebody in an open fight is changed there, because the fight writes the sheet when it is
//! committed.

use actix_web::HttpResponse;
use askama::Template;
use entity::message::{Author, Type};
use rules::{resolve::Word, srd::CONDITIONS};
use serde_json::{Value, json};

use super::answer::words_of;
use crate::{
    admin::{
        Frame, InCampaign, Tab,
        answer::is_htmx,
        encounters::asked_of,
        query::given,
        world_form::{form_id, once},
    },
    fight, render_blocks,
};
use base::error::{Code, Error, Result};
use edge::http::{
    Answer,
    etag::Expected,
    resource::{self, Ref},
};
use world::{
    characters::Characters,
    encounters::service::act_for,
    messages::service::{self as messages, NewMessage},
    npcs::Npcs,
    paused::AiPaused,
    rules::cast::Who,
    seat::{self, State},
};

/// The most places that the form suggests.
const PLACES_MAX: usize = 50;
/// The most characters of a place.
const PLACE_CHARS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "admin/table-change.html", blocks = ["form"])]
struct ChangePage {
    frame: Frame,
    /// The hidden fields of its forms.
    fields: String,
    table: String,
    root: String,
    /// `characters/SLUG` or `npcs/SLUG`.
    who: String,
    name: String,
    slug: String,
    is_npc: bool,
    /// Whether the AI of this NPC is paused, and everybody's.
    is_paused: bool,
    all_paused: bool,
    state: State,
    place: String,
    places: Vec<String>,
    /// What was done just now.
    told: Option<String>,
}
render_blocks!(ChangePage: as_form);

impl ChangePage {
    /// The attributes of each form that changes somebody. A form has one thing to do, so that the key Enter does it.
    fn attributes(&self) -> String {
        let path = format!("{}/change", self.table);
        format!(
            r##"method="post" action="{path}" hx-post="{path}" hx-target="#change" hx-swap="innerHTML" hx-sync="#change:drop" hx-disabled-elt="find button""##
        )
    }

    /// The names of the conditions.
    fn conditions(&self) -> impl Iterator<Item = &'static str> {
        CONDITIONS.iter().map(|rule| rule.name)
    }
}

/// Stands for somebody who is gone.
#[derive(Template)]
#[template(path = "admin/table-gone.html")]
struct Gone;

/// Somebody whom a form names.
struct Subject {
    who: Who,
    slug: String,
    name: String,
    location: Option<String>,
}

impl Subject {
    fn is_npc(&self) -> bool {
        matches!(self.who, Who::Npc(_))
    }

    /// Finds who a form means by `characters/SLUG` or `npcs/SLUG`.
    async fn find(at: &InCampaign, named: &str) -> Result<Self> {
        let tx = at.read().await?;
        let campaign = Ref::Id(at.campaign.id.0);
        match named.split_once('/') {
            Some(("characters", slug)) => {
                let it = resource::find::<Characters>(&tx, &at.caller, Some(&campaign), &Ref::parse(slug)).await?;
                Ok(Self { who: Who::Character(it.id.0), slug: it.slug, name: it.name, location: it.location })
            }
            Some(("npcs", slug)) => {
                let it = resource::find::<Npcs>(&tx, &at.caller, Some(&campaign), &Ref::parse(slug)).await?;
                Ok(Self { who: Who::Npc(it.id.0), slug: it.slug, name: it.name, location: it.location })
            }
            _ => Err(Error::not_found("character or NPC")),
        }
    }
}

/// The form for somebody.
pub async fn form(at: InCampaign) -> Result<HttpResponse> {
    match Subject::find(&at, &given(at.request.query_string(), "who")).await {
        // The form is open while somebody else deletes whom it is about.
        Err(error) if error.code == Code::NotFound && is_htmx(&at.request) => at.piece(&Gone),
        subject => at.show(&page(&at, subject?, None).await?),
    }
}

async fn page(at: &InCampaign, it: Subject, told: Option<String>) -> Result<ChangePage> {
    let tx = at.read().await?;
    let places = seat::everybody(&tx, at.campaign.id).await?;
    let named = places.into_iter().map(|place| place.location).filter(|place| !place.is_empty());
    let frame = at.frame(&it.name, Tab::Table);
    let paused = AiPaused::of(&at.campaign.settings);
    // A slug is safe in an attribute.
    let who = format!("{}/{}", if it.is_npc() { "npcs" } else { "characters" }, it.slug);
    Ok(ChangePage {
        fields: format!(r#"{}{}<input type="hidden" name="who" value="{who}">"#, frame.token(), super::form_id()),
        frame,
        table: at.url("table"),
        root: at.url(""),
        who,
        is_npc: it.is_npc(),
        is_paused: paused.names(it.who.id(), &it.slug),
        all_paused: paused.all,
        state: seat::state(&tx, at.campaign.id, it.who).await?,
        place: it.location.unwrap_or_default(),
        places: named.take(PLACES_MAX).collect(),
        name: it.name,
        slug: it.slug,
        told,
    })
}

/// Does what the form says, and shows the form again.
pub async fn change(at: InCampaign) -> Result<HttpResponse> {
    let subject = Subject::find(&at, at.form.text("who")).await?;
    let back = format!("{}?who={}", at.url("table/change"), at.form.text("who"));
    match changed(&at, &subject).await {
        Ok(told) if is_htmx(&at.request) => {
            let subject = Subject::find(&at, at.form.text("who")).await?;
            at.show(&page(&at, subject, Some(told)).await?)
        }
        Ok(told) => Ok(at.redirect(&back, &told)),
        Err(error) if is_htmx(&at.request) || error.code.status() >= 500 => Err(error),
        Err(error) => Ok(at.refuse(&back, &words_of(&error))),
    }
}

async fn changed(at: &InCampaign, it: &Subject) -> Result<String> {
    if at.form.text("do") == "move" {
        return moved(at, it).await;
    }
    let sent: Vec<_> = at.form.fields().collect();
    let once = once(at, &form_id(at), &sent);
    let campaign = Ref::Id(at.campaign.id.0);
    let done = edge::http::write(&at.app, &at.caller, once.as_ref(), async |tx| {
        let fight = seat::state(tx, at.campaign.id, it.who).await?.fight;
        let told = match fight {
            Some(fight) => {
                let input = asked_of(at, &fight.participant)?;
                let id = fight.encounter.to_string();
                let told = act_for(tx, &at.caller, (&campaign, &id), &input).await?;
                if let Some(why) = fight::why_nothing(&told) {
                    return Err(Error::new(Code::Conflict, why));
                }
                told.told.unwrap_or_default()
            }
            None => {
                let told = seat::change(tx, at.campaign.id, it.who, word(at)?).await?;
                // What happens to an NPC is the game master's to tell.
                if !it.is_npc() && !told.is_empty() {
                    at.app.limits.check_rows(tx, &at.caller, "message").await?;
                    let message =
                        NewMessage { kind: Type::System, ..NewMessage::chat(Author::System, "", told.clone()) };
                    messages::insert(tx, at.campaign.id.0, std::slice::from_ref(&message)).await?;
                }
                told
            }
        };
        Ok(Answer::ok(told))
    });
    let told = done.await?.fresh().unwrap_or_default();
    Ok(if told.is_empty() { "Done.".to_owned() } else { told })
}

/// What the form says about hit points or conditions.
fn word(at: &InCampaign) -> Result<Word<'_>> {
    if let Some(condition) = at.form.get("remove") {
        return Ok(Word::RemoveCondition(condition));
    }
    let amount = || {
        let text = at.form.text("amount").trim();
        text.parse().map_err(|_| Error::invalid("/amount", "invalid_value", "Write a whole number of hit points."))
    };
    Ok(match at.form.text("do") {
        "damage" => Word::Damage(amount()?),
        "heal" => Word::Heal(amount()?),
        "temp_hp" => Word::TempHp(amount()?),
        "add_condition" => Word::AddCondition(at.form.text("condition")),
        _ => return Err(Error::invalid("/do", "invalid_value", "This form cannot be read. Reload the page.")),
    })
}

/// Takes somebody to another place.
async fn moved(at: &InCampaign, it: &Subject) -> Result<String> {
    let place = at.form.text("place").trim();
    if place.chars().count() > PLACE_CHARS_MAX {
        let message = format!("Write a place, in at most {PLACE_CHARS_MAX} characters.");
        return Err(Error::invalid("/place", "invalid_value", message));
    }
    let location = if place.is_empty() { Value::Null } else { json!(place) };
    let is_new = !place.is_empty() && !seat::is_location(&at.read().await?, at.campaign.id, place).await?;
    let changes = json!({ "location": location });
    let campaign = at.campaign.id.0.to_string();
    let (any, id) = (Expected::any(), it.who.id().to_string());
    if it.is_npc() {
        resource::change::<Npcs>(&at.app, &at.caller, &any, Some(&campaign), &id, changes).await?;
    } else {
        resource::change::<Characters>(&at.app, &at.caller, &any, Some(&campaign), &id, changes).await?;
    }
    Ok(match place {
        "" => format!("{} is nowhere now.", it.name),
        place if is_new => {
            format!(
                "{} is at {place} now. That location is new: nobody else is there, and no lore tells of it.",
                it.name
            )
        }
        place => format!("{} is at {place} now.", it.name),
    })
}
