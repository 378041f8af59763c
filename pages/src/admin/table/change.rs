//! Hit points, conditions and places, by click. Somebody in an open fight is changed there, because the fight writes the sheet when it is
//! committed.

use actix_web::HttpResponse;
use askama::{
    Template,
    filters::{Html, escape},
};
use entity::{
    EncounterId,
    message::{Author, Type},
};
use rules::{resolve::Word, srd::CONDITIONS};
use serde_json::{Value, json};

use url::form_urlencoded;
use uuid::Uuid;

use super::answer::{form_id_field, words_of};
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
use db::tenancy::TenantTx;
use edge::http::{
    Answer,
    etag::Expected,
    resource::{self, Ref},
};
use world::{
    characters::Characters,
    encounters::{
        roster,
        service::{Cx, act_for},
    },
    messages::service::{self as messages, NewMessage},
    npcs::{
        Npcs,
        place::{is_same, location_name},
    },
    paused::AiPaused,
    rules::cast::Who,
    seat::{self, Fighter, Fighting, State},
};

/// The most places that the form suggests.
const PLACES_MAX: usize = 50;
/// The most characters of a place.
const PLACE_CHARS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "admin/table-change.html", blocks = ["form"])]
struct ChangePage {
    frame: Frame,
    token: String,
    /// The hidden fields of the forms that change somebody.
    fields: String,
    table: String,
    root: String,
    path: String,
    name: String,
    /// The record of somebody who has one.
    record: Option<RecordView>,
    /// Whether everybody's AI is paused.
    all_paused: bool,
    state: State,
    places: Vec<String>,
    /// What was done just now.
    told: Option<String>,
}

/// Somebody with a sheet or stat block.
struct RecordView {
    /// Its path in the editor.
    path: String,
    slug: String,
    is_npc: bool,
    /// Whether the AI of this NPC is paused.
    is_paused: bool,
    location: String,
}
render_blocks!(ChangePage: as_form);

impl ChangePage {
    /// The attributes of each form that changes somebody. A form has one thing to do, so that the key Enter does it.
    fn attributes(&self) -> String {
        let path = format!("{}/change", self.table);
        format!(
            r##"method="post" action="{path}" hx-post="{path}" hx-target="#change" hx-select="unset" hx-swap="innerHTML" hx-sync="#change:drop" hx-disabled-elt="find button""##
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

/// Somebody whom a form names: by a record, or by a place in a fight, which those without a record have too.
struct Subject {
    /// `characters/SLUG`, `npcs/SLUG` or `fighters/FIGHT/PARTICIPANT`.
    named: String,
    name: String,
    record: Option<Record>,
    /// How it is in the fight, if the form names that.
    fighter: Option<State>,
}

struct Record {
    who: Who,
    slug: String,
    name: String,
    location: Option<String>,
}

impl Record {
    /// The record of a character or an NPC.
    async fn find(at: &InCampaign, tx: &TenantTx, kind: Kind, named: &Ref) -> Result<Self> {
        let campaign = Ref::Id(at.campaign.id.0);
        match kind {
            Kind::Characters => {
                let it = resource::find::<Characters>(tx, &at.caller, Some(&campaign), named).await?;
                Ok(Self { who: Who::Character(it.id.0), slug: it.slug, name: it.name, location: it.location })
            }
            Kind::Npcs => {
                let it = resource::find::<Npcs>(tx, &at.caller, Some(&campaign), named).await?;
                Ok(Self { who: Who::Npc(it.id.0), slug: it.slug, name: it.name, location: it.location })
            }
        }
    }

    fn is_npc(&self) -> bool {
        matches!(self.who, Who::Npc(_))
    }

    /// Its path in the editor.
    fn path(&self) -> String {
        format!("{}/{}", if self.is_npc() { "npcs" } else { "characters" }, self.slug)
    }
}

/// The kinds of records.
#[derive(Clone, Copy)]
enum Kind {
    Characters,
    Npcs,
}

impl Subject {
    /// Finds who is meant.
    async fn find(at: &InCampaign, named: &str) -> Result<Self> {
        let tx = at.read().await?;
        let (kind, slug) = match named.split_once('/') {
            Some(("characters", slug)) => (Kind::Characters, slug),
            Some(("npcs", slug)) => (Kind::Npcs, slug),
            Some(("fighters", place)) => return Self::fighter(at, &tx, place).await,
            _ => return Err(Error::not_found("character or NPC")),
        };
        let record = Record::find(at, &tx, kind, &Ref::parse(slug)).await?;
        Ok(Self { named: record.path(), name: record.name.clone(), record: Some(record), fighter: None })
    }

    /// Finds somebody in a fight. A record that was deleted since is none.
    async fn fighter(at: &InCampaign, tx: &TenantTx, place: &str) -> Result<Self> {
        let missing = || Error::not_found("participant");
        let (fight, participant) = place.split_once('/').ok_or_else(missing)?;
        let fight = EncounterId(Uuid::try_parse(fight).map_err(|_| missing())?);
        let Fighter { name, record, state } = seat::fighter(tx, at.campaign.id, fight, participant).await?;
        let kind = |who| if matches!(who, Who::Npc(_)) { Kind::Npcs } else { Kind::Characters };
        let record = match record {
            Some(who) => Record::find(at, tx, kind(who), &Ref::Id(who.id())).await,
            None => Err(missing()),
        };
        let record = match record {
            Err(error) if error.code == Code::NotFound => None,
            record => Some(record?),
        };
        Ok(Self { named: self::fighter(fight, participant), name, record, fighter: Some(state) })
    }

    /// How it is now.
    async fn state(&self, at: &InCampaign, tx: &TenantTx) -> Result<State> {
        match (&self.fighter, &self.record) {
            (Some(state), _) => Ok(state.clone()),
            (None, Some(record)) => seat::state(tx, at.campaign.id, record.who).await,
            (None, None) => Err(Error::not_found("participant")),
        }
    }
}

/// How a form names somebody in a fight.
pub(super) fn fighter(fight: EncounterId, participant: &str) -> String {
    format!("fighters/{fight}/{participant}")
}

/// Where the form for somebody is. `table` is the path of the table.
pub(super) fn path(table: &str, named: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("who", named).finish();
    format!("{table}/change?{query}")
}

/// The form for somebody.
pub async fn form(at: InCampaign) -> Result<HttpResponse> {
    let named = given(at.request.query_string(), "who");
    shown(&at, &named, None).await
}

/// The form as it is now. It may be open while somebody else deletes whom it is about, or ends the fight.
async fn shown(at: &InCampaign, named: &str, told: Option<String>) -> Result<HttpResponse> {
    match Subject::find(at, named).await {
        Err(error) if error.code == Code::NotFound && is_htmx(&at.request) => at.piece(&Gone),
        subject => at.show(&page(at, subject?, told).await?),
    }
}

async fn page(at: &InCampaign, it: Subject, told: Option<String>) -> Result<ChangePage> {
    let tx = at.read().await?;
    let places = seat::everybody(&tx, at.campaign.id).await?;
    let named = places.into_iter().map(|place| place.location).filter(|place| !place.is_empty());
    let frame = at.frame(&it.name, Tab::Table);
    let paused = AiPaused::of(&at.campaign.settings);
    let state = it.state(at, &tx).await?;
    Ok(ChangePage {
        token: format!("{}{}", frame.token(), form_id_field()),
        fields: format!(
            r#"{}{}<input type="hidden" name="who" value="{}">"#,
            frame.token(),
            form_id_field(),
            escape(&it.named, Html).map_err(Error::internal)?
        ),
        frame,
        table: at.url("table"),
        root: at.url(""),
        path: path(&at.url("table"), &it.named),
        record: it.record.map(|record| RecordView {
            path: record.path(),
            is_npc: record.is_npc(),
            is_paused: paused.names(record.who.id(), &record.slug),
            slug: record.slug,
            location: record.location.unwrap_or_default(),
        }),
        all_paused: paused.all,
        state,
        places: named.take(PLACES_MAX).collect(),
        name: it.name,
        told,
    })
}

/// Does what the form says, and shows the form again.
pub async fn change(at: InCampaign) -> Result<HttpResponse> {
    let named = at.form.text("who");
    let back = path(&at.url("table"), named);
    match changed(&at, &Subject::find(&at, named).await?).await {
        Ok(told) if is_htmx(&at.request) => shown(&at, named, Some(told)).await,
        Ok(told) => Ok(at.redirect(&back, &told)),
        Err(error) if is_htmx(&at.request) || error.code.status() >= 500 => Err(error),
        Err(error) => Ok(at.refuse(&back, &words_of(&error))),
    }
}

async fn changed(at: &InCampaign, it: &Subject) -> Result<String> {
    let sent: Vec<_> = at.form.fields().collect();
    let once = once(at, &form_id(at), &sent);
    let done = edge::http::write(&at.app, &at.caller, once.as_ref(), async |tx| {
        let told = match (at.form.text("do"), &it.record) {
            ("move", Some(record)) => moved(at, tx, record).await?,
            (_, record) => match (it.state(at, tx).await?.fight, record) {
                (Some(fight), _) => changed_in_fight(at, tx, &fight).await?,
                (None, Some(record)) => changed_on_sheet(at, tx, record.who).await?,
                (None, None) => return Err(Error::not_found("participant")),
            },
        };
        Ok(Answer::ok(told))
    });
    let told = done.await?.fresh().unwrap_or_default();
    Ok(if told.is_empty() { "Done.".to_owned() } else { told })
}

async fn changed_in_fight(at: &InCampaign, tx: &TenantTx, fight: &Fighting) -> Result<String> {
    let (campaign, id) = (Ref::Id(at.campaign.id.0), fight.encounter.to_string());
    if at.form.text("do") == "leave" {
        roster::remove(&Cx::of(tx, &campaign, &at.caller), &id, &fight.participant, &Expected::any()).await?;
        return Ok("Removed from the fight.".to_owned());
    }
    let input = asked_of(at, &fight.participant)?;
    let told = act_for(tx, &at.caller, (&campaign, &id), &input).await?;
    match fight::why_nothing(&told) {
        Some(why) => Err(Error::new(Code::Conflict, why)),
        None => Ok(told.told.unwrap_or_default()),
    }
}

async fn changed_on_sheet(at: &InCampaign, tx: &TenantTx, who: Who) -> Result<String> {
    let told = seat::change(tx, at.campaign.id, who, word(at)?).await?;
    if !told.is_empty() {
        tell(at, tx, who, &told).await?;
    }
    Ok(told)
}

/// Tells the table what happened to a character. What happens to an NPC is the game master's to tell.
async fn tell(at: &InCampaign, tx: &TenantTx, who: Who, what: &str) -> Result<()> {
    if matches!(who, Who::Npc(_)) {
        return Ok(());
    }
    at.app.limits.check_rows(tx, &at.caller, "message").await?;
    let message = NewMessage { kind: Type::System, ..NewMessage::chat(Author::System, "", what.to_owned()) };
    messages::insert(tx, at.campaign.id.0, std::slice::from_ref(&message)).await?;
    Ok(())
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
async fn moved(at: &InCampaign, tx: &TenantTx, it: &Record) -> Result<String> {
    let place = at.form.text("place").trim();
    if place.chars().count() > PLACE_CHARS_MAX {
        let message = format!("Write a place, in at most {PLACE_CHARS_MAX} characters.");
        return Err(Error::invalid("/place", "invalid_value", message));
    }
    let is_new = !place.is_empty() && !seat::is_location(tx, at.campaign.id, place).await?;
    let changes = json!({ "location": if place.is_empty() { Value::Null } else { json!(place) } });
    let (any, named) = (Expected::any(), (Some(&Ref::Id(at.campaign.id.0)), &Ref::Id(it.who.id())));
    if it.is_npc() {
        resource::change_in::<Npcs>(&at.app, &at.caller, tx, &any, named, &changes).await?;
    } else {
        resource::change_in::<Characters>(&at.app, &at.caller, tx, &any, named, &changes).await?;
    }
    if place.is_empty() {
        return Ok(format!("{} is nowhere now.", it.name));
    }
    let told = format!("{} is at {} now.", it.name, location_name(place));
    if it.location.as_deref().is_none_or(|before| !is_same(before, place)) {
        tell(at, tx, it.who, &told).await?;
    }
    let new = " That location is new: nobody else is there, and no lore tells of it.";
    Ok(told + if is_new { new } else { "" })
}
