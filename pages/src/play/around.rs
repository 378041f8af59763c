//! Whom a player can write to, who is here, and where that is, as pieces of the page.

use askama::Template;

use super::{
    location::{GAME, LocationView},
    seat::Seat,
};
use ai::{planner, state::Ai};
use base::error::{Error, Result};
use entity::CampaignId;
use world::{
    paused,
    table::{self, Company, Person},
};

/// The most other characters of each group that the panel names.
const CHARACTERS_SHOWN: usize = 30;

/// The recipients that the player may write to.
#[derive(Template)]
#[template(path = "play/people.html")]
struct People<'a> {
    /// Those who are here, and the others, with the name of the group.
    groups: [(&'static str, Vec<&'a Person>); 2],
    /// Whether the player may write to the planner.
    plans: bool,
    /// Whether the character is in a fight. Then most texts say what it does.
    fights: bool,
    /// Whom the player chose by a link: an NPC, [`GAME`], or nobody if it is empty.
    chosen: Option<&'a str>,
}

impl<'a> People<'a> {
    fn of(company: &'a Company, plans: bool, chosen: Option<&'a str>) -> Self {
        let (here, others) = company.npcs.iter().partition(|person| person.is_here);
        let is_known =
            |chosen: &&str| matches!(*chosen, "" | GAME) || company.npcs.iter().any(|npc| npc.slug == *chosen);
        let groups = [("Here", here), (if company.location.is_some() { "Others" } else { "People" }, others)];
        Self { groups, plans, fights: company.fights, chosen: chosen.filter(is_known) }
    }

    fn is_chosen(&self, slug: &str) -> bool {
        match self.chosen {
            Some(chosen) => slug == chosen,
            None => {
                let mut all = self.groups.iter().flat_map(|(_, people)| people);
                let first = all.find(|person| !person.is_silent);
                !self.fights && first.is_some_and(|first| first.slug == slug)
            }
        }
    }
}

/// Who is here, for the panel beside the words.
#[derive(Template)]
#[template(path = "play/here.html")]
struct Here<'a> {
    link: &'a str,
    groups: Vec<Group<'a>>,
}

/// Some of the people whom the player can address.
struct Group<'a> {
    heading: &'static str,
    /// Each with whether it is another player's character.
    people: Vec<(&'a Person, bool)>,
}

impl<'a> Here<'a> {
    /// A group without anybody is left out, but a character that is somewhere can be alone there.
    fn of(link: &'a str, company: &'a Company, others: &'a [Person]) -> Self {
        let npcs = |is_here| company.npcs.iter().filter(move |npc| npc.is_here == is_here).map(|npc| (npc, false));
        let characters = |is_here| {
            let found = others.iter().filter(move |character| character.is_here == is_here);
            found.take(CHARACTERS_SHOWN).map(|character| (character, true))
        };
        let is_somewhere = company.location.is_some();
        let mut groups = vec![
            Group { heading: "Who is here", people: npcs(true).chain(characters(true)).collect() },
            Group { heading: if is_somewhere { "Others" } else { "People" }, people: npcs(false).collect() },
            Group { heading: "Other characters of the game", people: characters(false).collect() },
        ];
        groups.retain(|group| !group.people.is_empty() || group.heading == "Who is here" && is_somewhere);
        Self { link, groups }
    }
}

/// Whether the AI of the whole campaign is paused.
#[derive(Template)]
#[template(path = "play/paused.html")]
struct Paused {
    is_paused: bool,
}

/// Whom the player can write to and who answers, as the pieces of the page that show it.
pub(super) struct Around {
    pub paused: String,
    pub people: String,
    pub here: String,
    pub location: String,
    pub plans: bool,
    pub fights: bool,
}

/// Where the player's character is, and whom the player can write to. `chosen` is the slug of the one to begin with. At most six statements.
///
/// # Errors
/// `not_found` if the character is gone.
pub(super) async fn around(app: &Ai, seat: &Seat, link: &str, chosen: Option<&str>) -> Result<Around> {
    let company = table::company(&seat.tx, seat.campaign, seat.player).await?;
    let mut others = table::characters(&seat.tx, CampaignId(seat.campaign), company.location.as_deref()).await?;
    others.retain(|person| person.id != seat.player);
    let plans = planner::request::is_on(app, &seat.caller).is_ok();
    let people = People::of(&company, plans, chosen);
    let here = Here::of(link, &company, &others);
    let location = LocationView::read(seat, link, &company, &others, plans).await?;
    let is_paused = paused::is_all(&seat.tx, CampaignId(seat.campaign)).await?;
    Ok(Around {
        paused: Paused { is_paused }.render().map_err(Error::internal)?,
        people: people.render().map_err(Error::internal)?,
        here: here.render().map_err(Error::internal)?,
        location: location.piece()?,
        plans,
        fights: company.fights,
    })
}
