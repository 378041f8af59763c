//! Whom a game master sends into a fight by name: people of the campaign, creatures of the SRD, and those described by hand, each alone
//! or as several of a kind.
//!
//! Several of an NPC are copies of its stat block without its record, so the fight changes nothing of the NPC. They are numbered after
//! those of the same name who are in the fight already.

use std::collections::BTreeSet;

use entity::{
    campaign,
    shapes::{self, Stats},
};
use rules::{
    encounter::{Encounter, limits},
    srd::{CREATURES, CreatureAttack, CreatureRange, CreatureRule, creature},
};
use sqlx::{AssertSqlSafe, types::Json};

use super::input::ParticipantInput;
use base::{
    error::{Error, FieldError, Result},
    fold,
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::http::resource::slug_of;

/// The most of a kind at once.
pub const COUNT_MAX: usize = 12;
/// The most NPCs whose names are suggested.
const OFFERED_MAX: i64 = 200;
/// The most people who are found for all names of a request.
const FOUND_MAX: i64 = 1000;
/// After a creature's name: means the SRD's, whoever in the campaign has the same name.
const OF_SRD: &str = " (SRD)";

/// Somebody to send into a fight.
pub struct Recruit {
    pub is: Kind,
    /// 1 to [`COUNT_MAX`].
    pub count: usize,
    pub is_enemy: bool,
    pub hidden: bool,
}

/// Who it is.
pub enum Kind {
    /// Somebody's name or slug in the campaign, or a creature's name in the SRD.
    Named(String),
    /// As described, with a name.
    Described(Box<ParticipantInput>),
}

/// A suggestion: what is written, and what it means.
pub struct Offer {
    pub name: String,
    pub means: String,
}

/// The names of NPCs, the first 200, and of the SRD's creatures. One statement.
///
/// # Errors
/// Database errors.
pub async fn offers(tx: &TenantTx, campaign: &campaign::Model) -> Result<Vec<Offer>> {
    let rows = sqlx::query(
        "SELECT slug, name FROM npc WHERE tenant_id = $1 AND campaign_id = $2 ORDER BY name COLLATE natural_order, id LIMIT $3",
    )
    .bind(tx.tenant())
    .bind(campaign.id.0)
    .bind(OFFERED_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let npcs: Vec<(String, String)> = stored::each(&rows, |row| row.read_all());
    let has_namesake = |name: &str| npcs.iter().filter(|(_, other)| other == name).count() > 1;
    let npcs: Vec<Offer> = npcs
        .iter()
        .map(|(slug, name)| match has_namesake(name) {
            true => Offer { name: slug.clone(), means: format!("{name}, an NPC") },
            false => Offer { name: name.clone(), means: "an NPC".to_owned() },
        })
        .collect();
    let of_srd = CREATURES.iter().map(|creature| Offer {
        name: format!("{}{OF_SRD}", creature.name),
        means: format!("challenge {}, {} hit points", creature.challenge_rating, creature.max_hp),
    });
    Ok(npcs.into_iter().chain(of_srd).collect())
}

/// Somebody of the campaign.
struct Found {
    /// Which of the names means it, from 0.
    nth: usize,
    slug: String,
    name: String,
    /// Its stat block; none for a character.
    stats: Option<Stats>,
    by_slug: bool,
}

/// Everybody of the campaign who has one of these slugs or names. One statement, or none for no names.
async fn found(tx: &TenantTx, campaign: &campaign::Model, names: &[&str]) -> Result<Vec<Found>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let folded = fold::sql("p.name");
    let sql = format!(
        "SELECT a.n, p.slug, p.name, p.stats, p.slug = a.slug FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS a (slug, folded, n) \
         JOIN (SELECT slug, name, NULL::jsonb AS stats FROM character WHERE tenant_id = $1 AND campaign_id = $2 \
               UNION ALL SELECT slug, name, stats FROM npc WHERE tenant_id = $1 AND campaign_id = $2) p \
           ON p.slug = a.slug OR {folded} = a.folded ORDER BY a.n, p.slug LIMIT $5"
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign.id.0)
        .bind(names)
        .bind(names.iter().map(|name| fold::fold(name)).collect::<Vec<_>>())
        .bind(FOUND_MAX)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    Ok(stored::each(&rows, |row| {
        let (n, slug, name, stats, by_slug): (i64, String, String, Option<Json<Stats>>, bool) = row.read_all()?;
        let nth = usize::try_from(n - 1).map_err(Error::internal)?;
        Ok(Found { nth, slug, name, stats: stats.map(|Json(stats)| stats), by_slug })
    }))
}

/// The participants that recruits become, with ids and names that nobody has in `fight`. One statement at most.
///
/// # Errors
/// `validation_failed`, with a message for each name that means nobody or several people, or if they are too many.
pub async fn enlisted(
    tx: &TenantTx,
    campaign: &campaign::Model,
    recruits: Vec<Recruit>,
    fight: Option<&Encounter>,
) -> Result<Vec<ParticipantInput>> {
    let there = fight.map_or(0, |fight| fight.participants().len() + fight.departed().len());
    if recruits.iter().map(|recruit| recruit.count).sum::<usize>() + there > limits::PARTICIPANTS_MAX {
        let message = format!("A fight can have at most {} participants.", limits::PARTICIPANTS_MAX);
        return Err(Error::invalid("/participants", "too_many", message));
    }
    let names: Vec<&str> = recruits
        .iter()
        .filter_map(|recruit| match &recruit.is {
            Kind::Named(name) => Some(name.trim()),
            Kind::Described(_) => None,
        })
        .collect();
    let found = found(tx, campaign, &names).await?;
    let (mut all, mut wrong, mut nth) = (Vec::new(), Vec::new(), 0);
    for recruit in &recruits {
        let meant = match &recruit.is {
            Kind::Described(input) => Ok(ParticipantInput::clone(input)),
            Kind::Named(name) => {
                nth += 1;
                let those: Vec<&Found> = found.iter().filter(|one| one.nth + 1 == nth).collect();
                meant(name.trim(), &those, recruit.count)
            }
        };
        match meant {
            Ok(one) => {
                let one = ParticipantInput { is_enemy: recruit.is_enemy, hidden: recruit.hidden, ..one };
                all.push((one, recruit.count.clamp(1, COUNT_MAX)));
            }
            Err(message) => {
                wrong.push(FieldError { pointer: "/who".to_owned(), code: "unknown_reference".into(), message });
            }
        }
    }
    if !wrong.is_empty() {
        return Err(Error::validation(wrong));
    }
    let mut taken = Taken::of(fight);
    // The ids of records are their slugs, so nobody else gets them.
    for (one, _) in &mut all {
        taken.reserve(one);
    }
    Ok(all.iter().flat_map(|(one, count)| taken.several(one, *count)).collect())
}

/// Whom a name means: somebody of the campaign by slug, or the only one of that name, or a creature of the SRD.
fn meant(name: &str, found: &[&Found], count: usize) -> std::result::Result<ParticipantInput, String> {
    if let Some(of_srd) = name.strip_suffix(OF_SRD).and_then(creature) {
        return Ok(of_srd.into());
    }
    let one = match (found.iter().find(|one| one.by_slug), found) {
        (Some(one), _) => one,
        (None, [one]) => one,
        (None, []) => {
            let known = creature(name).map(ParticipantInput::from);
            let nobody = || format!("Nobody in this campaign and no creature of the SRD is called “{name}”.");
            return known.ok_or_else(nobody);
        }
        (None, several) => {
            let slugs: Vec<&str> = several.iter().map(|one| one.slug.as_str()).collect();
            return Err(format!("Several people are called “{name}”. Write the slug: {}.", slugs.join(" or ")));
        }
    };
    match (&one.stats, count) {
        (None, 1) => Ok(ParticipantInput { character_id: Some(one.slug.clone()), ..ParticipantInput::default() }),
        (None, _) => Err(format!("There is only one {}. Several can be of an NPC or a creature.", one.name)),
        (Some(_), 1) => Ok(ParticipantInput { npc_id: Some(one.slug.clone()), ..ParticipantInput::default() }),
        (Some(stats), _) => Ok(copied(&one.name, stats)),
    }
}

/// The ids and names that are taken.
struct Taken {
    ids: BTreeSet<String>,
    names: BTreeSet<String>,
    /// The ids of those without a record.
    strangers: BTreeSet<String>,
}

impl Taken {
    fn of(fight: Option<&Encounter>) -> Self {
        let those = || fight.into_iter().flat_map(|fight| fight.participants().iter().chain(fight.departed()));
        Self {
            ids: those().map(|one| one.id.clone()).collect(),
            names: those().map(|one| fold::fold(&one.creature.name)).collect(),
            strangers: those().filter(|one| one.is_ephemeral()).map(|one| one.id.clone()).collect(),
        }
    }

    /// Reserves the id of somebody with a record: the slug, unless somebody else has it.
    fn reserve(&mut self, one: &mut ParticipantInput) {
        let Some(slug) = one.character_id.clone().or_else(|| one.npc_id.clone()) else { return };
        if self.strangers.contains(&slug) {
            one.id = Some(self.free_id(&slug));
        } else {
            self.ids.insert(slug);
        }
    }

    /// An id that nobody has, taken from now on.
    fn free_id(&mut self, base: &str) -> String {
        let mut ids = std::iter::once(base.to_owned()).chain((2..).map(|n| format!("{base}_{n}")));
        let id = ids.find(|id| !self.ids.contains(id)).unwrap_or_default();
        self.ids.insert(id.clone());
        id
    }

    /// `count` of a kind, each with an id and a name of its own. Somebody with a record keeps what the record gives.
    fn several(&mut self, one: &ParticipantInput, count: usize) -> Vec<ParticipantInput> {
        let Some(name) = one.name.as_deref().map(str::trim).filter(|name| !name.is_empty()) else {
            return vec![one.clone()];
        };
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            // Whoever is alone has no number, and the next one is the second.
            let is_taken = |name: &str| self.names.contains(&fold::fold(name));
            let numbers = if is_taken(name) { 2.. } else { 1.. };
            let alone = (count == 1 && !is_taken(&format!("{name} 1"))).then(|| name.to_owned());
            let mut free = alone.into_iter().chain(numbers.map(|n| format!("{name} {n}")));
            let name = free.find(|name| !is_taken(name)).unwrap_or_default();
            self.names.insert(fold::fold(&name));
            let id = self.free_id(&slug_of(&name, "_").unwrap_or_else(|| "participant".to_owned()));
            all.push(ParticipantInput { id: Some(id), name: Some(name), ..one.clone() });
        }
        all
    }
}

/// Somebody with an NPC's stat block, unhurt.
fn copied(name: &str, stats: &Stats) -> ParticipantInput {
    let Stats {
        armor_class,
        hp: _,
        max_hp,
        temp_hp,
        abilities,
        saving_throws,
        attacks,
        creature_type,
        size,
        speed,
        resistances,
        immunities,
        vulnerabilities,
        condition_immunities,
    } = stats.clone();
    ParticipantInput {
        name: Some(name.to_owned()),
        armor_class: Some(armor_class),
        max_hp: Some(max_hp),
        temp_hp,
        abilities,
        saving_throws,
        attacks,
        creature_type: Some(creature_type),
        size: Some(size),
        speed: Some(speed),
        resistances,
        immunities,
        vulnerabilities,
        condition_immunities,
        is_npc: Some(true),
        ..ParticipantInput::default()
    }
}

impl From<&CreatureRule> for ParticipantInput {
    fn from(rule: &CreatureRule) -> Self {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let [strength, dexterity, constitution, intelligence, wisdom, charisma] = rule.abilities;
        Self {
            name: Some(rule.name.to_owned()),
            max_hp: Some(rule.max_hp),
            armor_class: Some(rule.armor_class),
            speed: Some(rule.speed),
            size: Some(rule.size.to_owned()),
            creature_type: Some(rule.creature_type.to_owned()),
            abilities: Some(shapes::Abilities { strength, dexterity, constitution, intelligence, wisdom, charisma }),
            saving_throws: rule.saving_throws.iter().map(|(ability, bonus)| ((*ability).to_owned(), *bonus)).collect(),
            immunities: words(rule.immunities),
            vulnerabilities: words(rule.vulnerabilities),
            condition_immunities: words(rule.condition_immunities),
            attacks: rule.attacks.iter().map(attack).collect(),
            features: words(rule.features),
            attacks_per_action: Some(rule.attacks_per_action),
            is_npc: Some(true),
            ..Self::default()
        }
    }
}

fn attack(of: &CreatureAttack) -> shapes::NpcAttack {
    shapes::NpcAttack {
        name: of.name.to_owned(),
        bonus: of.bonus,
        damage: of.damage.to_owned(),
        damage_type: of.damage_type.to_owned(),
        reach_ft: of.reach_ft,
        range: of.range.map(|CreatureRange { normal, long }| shapes::Range { normal, long: Some(long) }),
    }
}
