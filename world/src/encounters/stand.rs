//! A character's place in an active fight: which fight, whose turn it is, and whom the player means by a name.
//!
//! Rules turns, `/act`, the page at the table and tools all use this module, so that a name means the same everywhere. It decides
//! nothing; `rules::encounter` decides what an action does.
//!
//! It must never name a hidden participant ([`Participant::hidden`]) or repeat text that a model wrote.

use rules::{
    encounter::{Encounter, Participant, Status},
    sheet::Life,
};
use uuid::Uuid;

use super::{
    names::{called, choice, listed, named, names, plain},
    store::{self, Place, Stored},
};
use base::{
    error::{Code, Result},
    fold::occurs,
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::http::resource::Ref;

/// SQL for the newest active fight of a row of `character`; null if there is none. It is part of the query that reads the
/// character, so it costs nothing for a character without a fight.
pub const FIGHT_OF_CHARACTER: &str = "(SELECT m.encounter_id FROM encounter_member m \
    JOIN encounter e ON e.tenant_id = m.tenant_id AND e.id = m.encounter_id \
    WHERE m.tenant_id = \"character\".tenant_id AND m.record_id = \"character\".id AND NOT m.has_left AND e.status = 'active' AND NOT e.hidden \
    ORDER BY e.id DESC LIMIT 1)";

/// A character's place in a fight.
pub struct Stand {
    pub fight: Stored,
    own: String,
}

impl Stand {
    /// A record's place in the newest active fight in which it takes part. One statement, and another one if there is a fight.
    ///
    /// # Errors
    /// Database errors.
    pub async fn of(tx: &TenantTx, campaign: Uuid, record: Uuid) -> Result<Option<Self>> {
        match fight_of(tx, record).await? {
            Some(fight) => Self::read(tx, campaign, fight, record).await,
            None => Ok(None),
        }
    }

    /// A record's place in a fight; `None` if the fight has ended. One statement.
    ///
    /// # Errors
    /// Database errors.
    pub async fn read(tx: &TenantTx, campaign: Uuid, fight: Uuid, record: Uuid) -> Result<Option<Self>> {
        let place = Place { campaign: &Ref::Id(campaign), only: None };
        let fight = match store::read(tx, place, &fight.to_string(), false).await {
            Ok(fight) if fight.now.status() == Status::Active => fight,
            Ok(_) => return Ok(None),
            Err(error) if error.code == Code::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let own = own_in(&fight.now, &record.to_string()).map(|p| p.id.clone());
        Ok(own.map(|own| Self { fight, own }))
    }

    /// The character's id as a participant.
    #[must_use]
    pub fn own(&self) -> &str {
        &self.own
    }

    /// Everybody the character knows of, in turn order.
    #[must_use]
    pub fn known_participants(&self) -> Vec<&Participant> {
        self.fight.now.turn_order().into_iter().filter(|p| is_known(p, Some(&self.own))).collect()
    }

    /// A sentence that says whose turn it is.
    #[must_use]
    pub fn whose_turn(&self) -> String {
        whose_turn(&self.fight.now, Some(&self.own))
    }

    /// Finds the participant that a model means by a name, if the player's own words leave no doubt.
    ///
    /// # Errors
    /// A question for the player, with the possible names.
    pub fn meant(&self, wanted: &str, words: &str) -> std::result::Result<&Participant, String> {
        let it = &self.fight.now;
        if wanted.trim().eq_ignore_ascii_case("self") {
            return it.participant(&self.own).ok_or_else(|| self.nobody());
        }
        let found = named(it, wanted, |p| is_known(p, Some(&self.own)));
        let one = match found.as_slice() {
            // A loose match with the acting character itself does not name a target.
            [one] if one.id != self.own || one.id == wanted.trim() || names(one).contains(&plain(wanted)) => *one,
            [] | [_] => return Err(self.nobody()),
            several => return Err(choice(it, several)),
        };
        let twins = self.not_told_apart(one, words);
        let words = plain(words);
        // Prefer the longest name in the text: `thug 2` does not mean `thug`.
        let length = |p: &Participant| {
            let said = names(p).into_iter().filter(|name| occurs(&words, name));
            said.map(|name| name.len()).max().unwrap_or(0)
        };
        let longest = twins.iter().map(|p| length(p)).max().filter(|length| *length > 0);
        let by_name: Vec<&Participant> = twins.iter().filter(|p| Some(length(p)) == longest).copied().collect();
        match (twins.as_slice(), by_name.as_slice()) {
            // The text has somebody's full name, so take that one, whichever the model chose.
            (_, [one]) => Ok(one),
            ([], _) => Ok(one),
            ([only], _) => Ok(only),
            (several, _) => Err(choice(it, several)),
        }
    }

    fn nobody(&self) -> String {
        let others: Vec<&Participant> =
            self.known_participants().into_iter().filter(|p| p.id != self.own && p.life() != Life::Dead).collect();
        if others.is_empty() {
            return "Nobody of that name is in the fight.".to_owned();
        }
        format!("Nobody of that name is in the fight. The others are: {}.", listed(&self.fight.now, &others, "and"))
    }

    /// Everybody that the player's words name as well as the chosen one, including it. Empty if the words do not name the chosen
    /// one. A player who writes "the thug" with three thugs present is asked which one, whatever the model chose.
    fn not_told_apart(&self, chosen: &Participant, words: &str) -> Vec<&Participant> {
        let words = plain(words);
        let it = &self.fight.now;
        let others: Vec<&Participant> = self
            .known_participants()
            .into_iter()
            .filter(|p| p.id != chosen.id && p.id != self.own && p.life() != Life::Dead)
            .collect();
        let is_longer = |name: &str, own: &str| name != own && occurs(name, own) && occurs(&words, name);
        let is_part = |own: &str| others.iter().any(|p| names(p).iter().any(|name| is_longer(name, own)));
        // `Thug` within `Thug Captain` is not the thug's name.
        let full: Vec<String> =
            names(chosen).into_iter().filter(|name| occurs(&words, name) && !is_part(name)).collect();
        let twins: Vec<&Participant> = if full.is_empty() {
            let name = plain(&chosen.creature.name);
            let said: Vec<&str> = name.split(' ').filter(|word| word.len() > 2 && occurs(&words, word)).collect();
            if said.is_empty() {
                return Vec::new();
            }
            let is_as_good = |p: &&&Participant| {
                let theirs = plain(&p.creature.name);
                said.iter().all(|word| occurs(&theirs, word))
            };
            others.iter().filter(is_as_good).copied().collect()
        } else {
            others.iter().filter(|p| full.iter().all(|name| names(p).contains(name))).copied().collect()
        };
        // A player who writes about the thug means a living one.
        let chosen = it.participant(&chosen.id).filter(|p| twins.is_empty() || p.life() != Life::Dead);
        chosen.into_iter().chain(twins).collect()
    }
}

/// The newest active fight in which a record takes part. One statement.
///
/// # Errors
/// Database errors.
pub async fn fight_of(tx: &TenantTx, record: Uuid) -> Result<Option<Uuid>> {
    let row = sqlx::query(
        "SELECT m.encounter_id FROM encounter_member m JOIN encounter e ON e.tenant_id = m.tenant_id AND e.id = m.encounter_id \
         WHERE m.tenant_id = $1 AND m.record_id = $2 AND NOT m.has_left AND e.status = 'active' AND NOT e.hidden ORDER BY e.id DESC LIMIT 1",
    )
    .bind(tx.tenant())
    .bind(record)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map(|row| row.read("encounter_id")).transpose()
}

/// The participant that has this record.
#[must_use]
pub fn own_in<'a>(it: &'a Encounter, record: &str) -> Option<&'a Participant> {
    it.participants().iter().find(|p| p.character_id.as_deref().or(p.npc_id.as_deref()) == Some(record))
}

/// Whether a player who plays `own` knows of a participant.
#[must_use]
pub fn is_known(it: &Participant, own: Option<&str>) -> bool {
    !it.hidden || own == Some(it.id.as_str())
}

/// A sentence that says whose turn it is, for a player who plays `own`.
#[must_use]
pub fn whose_turn(it: &Encounter, own: Option<&str>) -> String {
    match it.current() {
        None => "It is nobody's turn.".to_owned(),
        Some(current) if is_known(current, own) => format!("It is {}'s turn.", called(it, current)),
        Some(_) => "It is somebody else's turn.".to_owned(),
    }
}
