//! The game master's table: everything that is said, live, and what a game master does there. It shows what the API shows to a credential
//! with the scope `gm`.
//!
//! - [`live`] keeps the page up to date, with the pieces of [`View`].
//! - [`mod@say`]: speaking as the narrator or as an NPC, whispers and dice. [`mod@ask`]: rolls of players. [`reply`]: answers of NPCs.
//!   [`mod@again`]: answers that are tried again, go on or stop. [`lines`]: lines that are struck or corrected.
//! - [`mod@change`]: hit points, conditions and places. [`mod@pause`]: whose AI is paused. [`answer`]: what forms at the table answer.

mod again;
pub(super) mod answer;
mod ask;
mod change;
mod lines;
mod live;
mod pause;
mod reply;
mod say;

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use entity::{CampaignId, CharacterId, EncounterId};

pub use again::{again, choose, go_on, stop};
pub use ask::ask;
pub use change::{change, form};
pub use lines::{correct, line, strike};
pub use live::follow;
pub use pause::pause;
pub use reply::{answer_now, turn};
pub use say::{roll, say};

use self::pause::Paused;
use super::{Frame, InCampaign, Tab, answer::html, query::given};
use crate::{
    fight::Fight,
    render_blocks,
    table::{
        again::AllAttempts,
        message::{self, Before, Foot, MESSAGES_SHOWN},
    },
};
use base::error::{Error, Result};
use db::tenancy::TenantTx;
use edge::{caller::Caller, http::resource::Ref};
use world::{
    encounters::{aftermath, open::OpenFight, service::Cx},
    journal,
    messages::visible::{VisibleMessage, Which, visible_messages},
    paused,
    seat::{self, PlaceSeen, Present},
    table,
};

/// The most characters of what is said at once.
pub(super) const SAID_CHARS_MAX: usize = 4000;

/// Whose table it is, and where.
struct View {
    caller: Caller,
    campaign: CampaignId,
    /// The paths of the table and of the campaign.
    table: String,
    root: String,
}

impl View {
    fn of(at: &InCampaign) -> Self {
        Self { caller: at.caller.clone(), campaign: at.campaign.id, table: at.url("table"), root: at.url("") }
    }

    /// Messages, oldest first. One statement.
    async fn messages(&self, tx: &TenantTx, which: Which<'_>) -> Result<Vec<VisibleMessage>> {
        visible_messages(tx, self.campaign.0, None, which).await
    }

    /// What a game master can do with these messages. `fields` are the hidden fields of their forms. One statement if there are answers.
    async fn footing<'a>(&'a self, tx: &TenantTx, said: &[VisibleMessage], fields: &'a str) -> Result<Footing<'a>> {
        Ok(Footing { table: &self.table, fields, attempts: AllAttempts::read(tx, None, said).await? })
    }

    /// The open fights. `fields` are the hidden fields of their forms. One statement.
    async fn fights(&self, tx: &TenantTx, fields: String) -> Result<String> {
        let fights = table::fights(tx, self.campaign, &self.caller).await?;
        let path = format!("{}/encounters", self.root);
        let led = |fight: &OpenFight| {
            let change = |id: &str| change::path(&self.table, &change::fighter(EncounterId(fight.id), id));
            Fight::of(fight, &path, false).led_at_table(fight, change).live()
        };
        let fights = fights.iter().map(led).collect();
        rendered(&Fights { fights, token: fields })
    }
}

/// What a game master can do with messages.
struct Footing<'a> {
    table: &'a str,
    fields: &'a str,
    attempts: AllAttempts,
}

impl Footing<'_> {
    fn of(&self, message: &VisibleMessage) -> Foot<'_> {
        let Self { table, fields, attempts } = self;
        Foot { table, fields, attempts: attempts.of(message), asked: None, may_mend: true }
    }
}

fn rendered(piece: &impl Template) -> Result<String> {
    piece.render().map_err(Error::internal)
}

#[derive(Template)]
#[template(path = "fights.html")]
struct Fights {
    fights: Vec<Fight>,
    /// The hidden fields of the forms.
    token: String,
}

/// Who is where.
#[derive(Template)]
#[template(path = "admin/table-here.html")]
struct Here<'a> {
    view: &'a View,
    /// Whether there are more people than are listed.
    is_cut: bool,
    places: &'a [PlaceSeen],
    /// The newest fight, if what it did is not in the sheets: its id and name.
    unwritten: Option<(EncounterId, String)>,
}

impl Here<'_> {
    fn location_path(&self, location: &str) -> String {
        format!("{}/{}", self.view.root, super::entity::location_path(location))
    }
}

/// Whether a kind of people has as many as are listed at most.
fn is_cut(places: &[PlaceSeen]) -> bool {
    let most = usize::try_from(seat::PEOPLE_MAX).unwrap_or(usize::MAX);
    let people = || places.iter().flat_map(|place| &place.people);
    ["characters", "npcs"].iter().any(|kind| people().filter(|person| person.kind == *kind).count() >= most)
}

/// People to choose from.
#[derive(Template)]
#[template(path = "admin/table-people.html")]
struct People<'a> {
    /// Who is meant if nobody is chosen.
    nobody: &'a str,
    people: Vec<&'a Present>,
    chosen: &'a str,
}

/// The pieces of the page that show people, and whether they answer.
struct Around {
    paused: String,
    /// As whom one can speak, and to whom.
    speakers: String,
    hearers: String,
    /// About whom an NPC can remember what it said.
    subjects: String,
    here: String,
}

impl Around {
    /// The NPCs who can answer a player's character, as choices. The first who is with it is chosen. One statement.
    async fn speakers(at: &InCampaign, character: CharacterId) -> Result<String> {
        let places = seat::everybody(&at.read().await?, at.campaign.id).await?;
        let is_npc = |person: &&Present| person.kind == "npcs";
        let is_with =
            |place: &&PlaceSeen| !place.location.is_empty() && place.people.iter().any(|it| it.id == character.0);
        let is_up = |person: &&Present| is_npc(person) && person.hp.is_none_or(|(hp, _)| hp > 0);
        let near = places.iter().find(is_with).and_then(|place| place.people.iter().find(is_up));
        let people = places.iter().flat_map(|place| &place.people).filter(is_npc).collect();
        rendered(&People { nobody: "", people, chosen: near.map_or("", |npc| npc.slug.as_str()) })
    }

    /// Four statements, and at most four more if a fight is not written. The first of `chosen` is the slug of an NPC to speak as, the second that of a character to whisper to.
    /// `token` is that of the forms.
    async fn read(view: &View, tx: &TenantTx, chosen: (&str, &str), token: &str) -> Result<Self> {
        let places = seat::everybody(tx, view.campaign).await?;
        let all = paused::is_all(tx, view.campaign).await?;
        let names = paused::names(tx, view.campaign).await?;
        let in_campaign = Ref::Id(view.campaign.0);
        let unwritten = aftermath::unwritten(&Cx::of(tx, &in_campaign, &view.caller), view.campaign).await?;
        let of = |kind: &'static str| places.iter().flat_map(|place| &place.people).filter(move |p| p.kind == kind);
        let choice = |nobody, kind, chosen| rendered(&People { nobody, people: of(kind).collect(), chosen });
        Ok(Self {
            paused: rendered(&Paused { table: &view.table, token, all, names })?,
            speakers: choice("Narrator", "npcs", chosen.0)?,
            hearers: choice("everyone at the table", "characters", chosen.1)?,
            subjects: choice("nobody", "characters", "")?,
            here: rendered(&Here { view, is_cut: is_cut(&places), places: &places, unwritten })?,
        })
    }
}

#[derive(Template)]
#[template(path = "admin/table.html", blocks = ["main"])]
struct TablePage {
    frame: Frame,
    view: View,
    campaign: String,
    seq: i64,
    messages: String,
    fights: String,
    around: Around,
    /// The token of the page's forms, and an id of this page for forms that are sent twice.
    token: String,
    fights_first: bool,
}
render_blocks!(TablePage: as_main);

/// The table.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let view = View::of(&at);
    let tx = at.read().await?;
    // Read first: everything after this entry is sent live.
    let (seq, _) = journal::head(&tx, view.campaign.0).await?;
    let newest = view.messages(&tx, Which::Newest(MESSAGES_SHOWN)).await?;
    let frame = at.frame("Table", Tab::Table);
    let token = frame.token();
    let footing = view.footing(&tx, &newest, &token).await?;
    let messages = message::with_older(&newest, None, (&view.root, &view.table), |message| footing.of(message))?;
    let wished = |name: &str| given(at.request.query_string(), name);
    at.show(&TablePage {
        campaign: at.campaign.name.clone(),
        seq,
        messages,
        fights: view.fights(&tx, answer::fields_at_table(&frame.token())).await?,
        around: Around::read(&view, &tx, (&wished("as"), &wished("whisper")), &frame.token()).await?,
        token: format!("{}{}", frame.token(), answer::form_id_field()),
        frame,
        view,
        fights_first: wished("view") == "fights",
    })
}

/// The messages before those that the page shows, as a piece of it.
pub async fn older(at: InCampaign) -> Result<HttpResponse> {
    let before = given(at.request.query_string(), "before").parse().map_err(|_| Error::not_found("message"))?;
    let (view, tx) = (View::of(&at), at.read().await?);
    let said = view.messages(&tx, Before { before }.which()).await?;
    let footing = view.footing(&tx, &said, "").await?;
    let lines = message::with_older(&said, None, (&view.root, &view.table), |message| footing.of(message))?;
    Ok(html(StatusCode::OK, lines))
}
