//! The form that sends people and creatures into a fight, when it begins and later.

use entity::{campaign, shapes::NpcAttack};
use rules::srd::DAMAGE_TYPES;

use crate::admin::submitted::Submitted;
use base::error::{Error, FieldError, Result};
use db::tenancy::TenantTx;
use world::{
    encounters::{
        input::ParticipantInput,
        recruits::{self, COUNT_MAX, Kind, Offer, Recruit},
    },
    table,
};

/// The most rows of a list that are read; as many as the page's script adds.
const ROWS_MAX: usize = 40;
/// Empty rows that are shown.
const ROWS_SHOWN: usize = 3;
/// The most characters that are ticked, not written.
const PARTY_MAX: usize = 50;
/// The most characters that all take part unless somebody says otherwise.
const PARTY_TICKED_MAX: usize = 8;

/// The form.
pub(super) struct RecruitForm {
    pub party: Vec<Hero>,
    /// Whether there are characters whose names must be written.
    pub has_more: bool,
    pub rows: Vec<Row>,
    pub described: Vec<Described>,
    pub offers: Vec<Offer>,
    pub problems: Vec<String>,
}

/// A character of the campaign.
pub(super) struct Hero {
    pub slug: String,
    pub name: String,
    pub is_ticked: bool,
}

/// Somebody by name.
#[derive(Default)]
pub(super) struct Row {
    pub who: String,
    pub count: String,
    pub side: String,
}

/// Somebody described by hand.
#[derive(Default)]
pub(super) struct Described {
    pub name: String,
    pub hp: String,
    pub armor_class: String,
    pub initiative_bonus: String,
    pub attack: String,
    pub bonus: String,
    pub damage: String,
    pub damage_type: String,
    pub count: String,
    pub side: String,
}

/// The choices of a side, with their words.
const SIDES: [(&str, &str); 3] = [("", "enemy"), ("hidden", "enemy, hidden"), ("party", "party")];

impl RecruitForm {
    /// The form as it was sent, or empty. The characters `there` are in the fight already and are not offered; none for a new fight, for
    /// which the party is ticked.
    ///
    /// # Errors
    /// Database errors.
    pub async fn read(
        tx: &TenantTx,
        campaign: &campaign::Model,
        sent: &Submitted,
        there: Option<&[String]>,
        problems: Vec<String>,
    ) -> Result<Self> {
        let characters = table::characters(tx, campaign.id, None).await?;
        let is_new = sent.fields().next().is_none() && there.is_none() && characters.len() <= PARTY_TICKED_MAX;
        let ticked: Vec<&str> = sent.all("party").collect();
        let has_more = characters.len() > PARTY_MAX;
        let is_there = |id: &str| there.is_some_and(|there| there.iter().any(|one| one == id));
        let all = characters.into_iter().filter(|one| !is_there(&one.id.to_string())).take(PARTY_MAX);
        let party = all.map(|one| Hero {
            is_ticked: is_new || ticked.contains(&one.slug.as_str()),
            slug: one.slug,
            name: one.name,
        });
        let mut rows: Vec<Row> = rows(sent).collect();
        rows.retain(|row| !row.who.trim().is_empty());
        rows.resize_with((rows.len() + 1).max(ROWS_SHOWN), Row::default);
        let mut described: Vec<Described> = described(sent).collect();
        described.retain(|one| !one.is_empty());
        described.push(Described::default());
        let offers = recruits::offers(tx, campaign).await?;
        Ok(Self { party: party.collect(), has_more, rows, described, offers, problems })
    }

    /// The choices of a side.
    #[must_use]
    pub const fn sides(&self) -> [(&'static str, &'static str); 3] {
        SIDES
    }

    /// The types of damage.
    #[must_use]
    pub const fn damage_types(&self) -> [&'static str; 13] {
        DAMAGE_TYPES
    }
}

fn rows(sent: &Submitted) -> impl Iterator<Item = Row> {
    (0..ROWS_MAX).map(|n| {
        let text = |part: &str| sent.text(&format!("who-{n}-{part}")).to_owned();
        Row { who: text("who"), count: text("count"), side: text("side") }
    })
}

fn described(sent: &Submitted) -> impl Iterator<Item = Described> {
    (0..ROWS_MAX).map(|n| {
        let text = |part: &str| sent.text(&format!("hand-{n}-{part}")).trim().to_owned();
        Described {
            name: text("name"),
            hp: text("hp"),
            armor_class: text("armor_class"),
            initiative_bonus: text("initiative_bonus"),
            attack: text("attack"),
            bonus: text("bonus"),
            damage: text("damage"),
            damage_type: text("damage_type"),
            count: text("count"),
            side: text("side"),
        }
    })
}

impl Described {
    fn is_empty(&self) -> bool {
        [&self.name, &self.hp, &self.armor_class, &self.initiative_bonus, &self.attack, &self.bonus, &self.damage]
            .iter()
            .all(|text| text.is_empty())
    }

    fn participant(&self) -> std::result::Result<ParticipantInput, String> {
        if self.name.is_empty() {
            return Err("Somebody described by hand has no name.".to_owned());
        }
        let number = |text: &str, what: &str| match text {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| format!("{}: {what} must be a whole number.", self.name)),
        };
        let bonus = number(&self.bonus, "the bonus of the attack")?.unwrap_or(0);
        let attack = (!self.attack.is_empty() || !self.damage.is_empty()).then(|| NpcAttack {
            name: if self.attack.is_empty() { "Attack".to_owned() } else { self.attack.clone() },
            bonus,
            damage: self.damage.clone(),
            damage_type: self.damage_type.clone(),
            reach_ft: None,
            range: None,
        });
        Ok(ParticipantInput {
            name: Some(self.name.clone()),
            max_hp: number(&self.hp, "hit points")?,
            armor_class: number(&self.armor_class, "the armor class")?,
            initiative_bonus: number(&self.initiative_bonus, "the bonus to initiative")?,
            attacks: attack.into_iter().collect(),
            is_npc: Some(true),
            ..ParticipantInput::default()
        })
    }
}

/// How many, 1 if that is left empty.
fn count(text: &str, who: &str) -> std::result::Result<usize, String> {
    let text = text.trim().trim_start_matches('×').trim();
    let known = if text.is_empty() { Some(1) } else { text.parse().ok().filter(|n| (1..=COUNT_MAX).contains(n)) };
    known.ok_or_else(|| format!("{who}: how many must be 1 to {COUNT_MAX}."))
}

/// Who is to be sent into a fight.
///
/// # Errors
/// `validation_failed` with a sentence for each row that makes no sense.
pub(super) fn wanted(sent: &Submitted) -> Result<Vec<Recruit>> {
    let mut wrong = Vec::new();
    let mut all: Vec<Recruit> = sent
        .all("party")
        .take(PARTY_MAX)
        .map(|slug| Recruit { is: Kind::Named(slug.to_owned()), count: 1, is_enemy: false, hidden: false })
        .collect();
    let by_name = rows(sent).filter(|row| !row.who.trim().is_empty()).map(|row| {
        let is = Kind::Named(row.who.trim().to_owned());
        count(&row.count, row.who.trim()).map(|count| (is, count, row.side))
    });
    let by_hand = described(sent).filter(|one| !one.is_empty()).map(|one| {
        let is = Kind::Described(Box::new(one.participant()?));
        count(&one.count, &one.name).map(|count| (is, count, one.side))
    });
    for row in by_name.chain(by_hand) {
        match row {
            Ok((is, count, side)) => {
                all.push(Recruit { is, count, is_enemy: side != "party", hidden: side == "hidden" });
            }
            Err(message) => wrong.push(message),
        }
    }
    if all.is_empty() && wrong.is_empty() {
        wrong.push("Choose somebody who takes part.".to_owned());
    }
    if wrong.is_empty() { Ok(all) } else { Err(Error::validation(wrong.into_iter().map(problem).collect())) }
}

fn problem(message: String) -> FieldError {
    FieldError { pointer: "/participants".to_owned(), code: "invalid_value".into(), message }
}

/// The sentences of an error about the participants, which have these names.
#[must_use]
pub(super) fn sentences(error: &Error, participants: &[ParticipantInput]) -> Vec<String> {
    let named = |wrong: &FieldError| {
        let mut parts = wrong.pointer.split('/').skip_while(|part| part.parse::<usize>().is_err());
        let one = parts.next().and_then(|nth| participants.get(nth.parse::<usize>().ok()?))?;
        let name = one.name.as_ref().or(one.character_id.as_ref()).or(one.npc_id.as_ref())?;
        let field = parts.next().unwrap_or_default().replace('_', " ");
        Some(match field.as_str() {
            "id" | "character id" | "npc id" => {
                // The message may begin with the id in quotation marks.
                let message = wrong.message.strip_prefix('"').and_then(|quoted| Some(quoted.split_once("\" ")?.1));
                format!("{name} {}.", message.unwrap_or(&wrong.message))
            }
            field => format!("{name}: {field} {}.", wrong.message),
        })
    };
    if error.errors.is_empty() {
        return vec![error.detail.to_string()];
    }
    error.errors.iter().map(|wrong| named(wrong).unwrap_or_else(|| wrong.message.clone())).collect()
}
