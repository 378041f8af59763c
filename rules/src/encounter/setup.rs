//! How an encounter begins, and who joins it later.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    Decision, Encounter, Event, Lasting, Lighting, Participant, Position, Refusal, Snapshot, Status, Terrain, Until,
    fold, limits,
};
use crate::{
    SIZES,
    dice::Dice,
    resolve::{Circumstances, roll_initiative},
    sheet::{Abilities, Condition, Creature, Feature, NpcAttack, Resource, SpellSlot},
    srd::{Ability, Class, condition, damage_type, extra_attacks, same},
};

/// A condition somebody brings along.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NewCondition {
    /// The condition.
    #[serde(flatten)]
    pub condition: Condition,
    /// Difficulty of the save that ends it.
    pub save_dc: Option<i32>,
    /// The ability of that save.
    pub save_ability: Option<Ability>,
    /// What it looks like.
    pub description: Option<String>,
}

/// Somebody about to take part: with a `record` as that stands, without one as the fields say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NewParticipant {
    /// Id in the encounter.
    pub id: String,
    /// The character it is; kept, and not looked up here.
    pub character_id: Option<String>,
    /// The NPC it is.
    pub npc_id: Option<String>,
    /// Its sheet; wins over every field below that describes one.
    #[serde(skip)]
    pub record: Option<Creature>,
    /// Name; none: the record's, or the id.
    pub name: Option<String>,
    /// Which side it is on.
    pub is_enemy: bool,
    /// Its initiative, if it was rolled already.
    pub initiative: Option<i32>,
    /// Added to its initiative; none: what its sheet gives.
    pub initiative_bonus: Option<i32>,
    /// It does not act before the end of its first turn.
    pub surprised: bool,
    /// Where it stands.
    pub position: Option<Position>,
    /// Attacks of one attack action; none: what its class gives.
    pub attacks_per_action: Option<i32>,
    /// Whether it dies at 0 hit points instead of falling unconscious; none: when it is an enemy.
    pub is_npc: Option<bool>,
    /// Hit points; none: all.
    pub hp: Option<i32>,
    /// Hit points at most; none: `hp`, or 10.
    pub max_hp: Option<i32>,
    /// Temporary hit points.
    pub temp_hp: i32,
    /// Armor class; none: 10.
    pub armor_class: Option<i32>,
    /// Feet a round; none: 30.
    pub speed: Option<i32>,
    /// One of [`SIZES`]; none: medium.
    pub size: Option<String>,
    /// Creature type.
    pub creature_type: Option<String>,
    /// The six scores.
    pub abilities: Option<Abilities>,
    /// Saving throw bonuses, by ability.
    pub saving_throws: BTreeMap<String, i32>,
    /// Damage types it resists.
    pub resistances: Vec<String>,
    /// Damage types that do nothing to it.
    pub immunities: Vec<String>,
    /// Damage types that do it double damage.
    pub vulnerabilities: Vec<String>,
    /// Conditions that it cannot have.
    pub condition_immunities: Vec<String>,
    /// Conditions it brings along.
    pub conditions: Vec<NewCondition>,
    /// Class resources.
    pub resources: Vec<Resource>,
    /// Spell slots by level.
    pub spell_slots: BTreeMap<String, SpellSlot>,
    /// Its attacks.
    pub attacks: Vec<NpcAttack>,
    /// Its features, such as `Darkvision`.
    pub features: Vec<String>,
}

/// A fight about to begin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// Id of the encounter.
    pub encounter_id: String,
    /// Its name.
    pub name: Option<String>,
    /// Who takes part.
    pub participants: Vec<NewParticipant>,
    /// The ground; none: 50 by 50 empty squares.
    pub terrain: Option<Terrain>,
    /// Light.
    pub lighting: Lighting,
    /// Ids of those who are surprised.
    pub surprise: Vec<String>,
    /// What the caller wants to be told with it.
    pub warnings: Vec<String>,
}

impl Encounter {
    /// Begins a fight: everybody's initiative is rolled, in the order given, and the first turn begins.
    ///
    /// The encounter is as it stands after the events; folding them once more changes nothing, so a log may hold them.
    ///
    /// # Errors
    /// When dice run out; when an argument cannot be meant or is over a limit.
    pub fn create(setup: &Setup, dice: &mut dyn Dice) -> Result<(Self, Vec<Event>), Refusal> {
        let terrain = setup.terrain.clone().unwrap_or_default();
        terrain.check()?;
        text("encounter_id", &setup.encounter_id, limits::ID_CHARS_MAX)?;
        text("name", setup.name.as_deref().unwrap_or_default(), limits::NAME_CHARS_MAX)?;
        if setup.participants.is_empty() {
            return Err(Refusal::argument("participants", "at least one takes part"));
        }
        if setup.participants.len() > limits::PARTICIPANTS_MAX {
            return Err(Refusal::too_many("participants", limits::PARTICIPANTS_MAX));
        }
        let mut it = Self {
            id: setup.encounter_id.clone(),
            name: setup.name.clone(),
            status: Status::Active,
            round: 1,
            current: None,
            participants: Vec::with_capacity(setup.participants.len()),
            terrain: Arc::new(terrain),
            lighting: setup.lighting,
            provoked: Vec::new(),
            outcome: None,
            notes: None,
            warnings: setup.warnings.iter().take(limits::PARTICIPANTS_MAX).cloned().collect(),
        };
        let mut events = Vec::new();
        for (index, new) in setup.participants.iter().enumerate() {
            let surprised = setup.surprise.contains(&new.id);
            let participant = it.prepared(new, surprised, &format!("participants/{index}"), dice)?;
            let initiative = participant.initiative;
            events.push(Event::Initiative { participant: participant.id.clone(), initiative });
            it.participants.push(participant);
        }
        if let Some(unknown) = setup.surprise.iter().find(|id| it.at(id).is_none()) {
            return Err(Refusal::Unknown { argument: "surprise", id: unknown.clone() });
        }
        it.name_sources();
        let first = it.first_turn(dice)?;
        first.iter().for_each(|event| it.apply(event));
        // A turn of the surprised that passed is in the state; folded once more it would pass again.
        events.extend(first.into_iter().filter(|event| matches!(event, Event::TurnStarted { .. })));
        Ok((it, events))
    }

    /// Decides how somebody joins: it has its turn in this round if its place is still to come.
    ///
    /// # Errors
    /// As for [`Encounter::create`], and after the end.
    pub fn join(&self, new: &NewParticipant, dice: &mut dyn Dice) -> Result<Decision, Refusal> {
        if self.status == Status::Ended {
            return Err(Refusal::AlreadyEnded);
        }
        if self.participants.len() >= limits::PARTICIPANTS_MAX {
            return Err(Refusal::too_many("participants", limits::PARTICIPANTS_MAX));
        }
        let participant = Box::new(self.prepared(new, false, "participant", dice)?);
        Ok(Decision { events: vec![Event::Joined { participant }], outcomes: Vec::new() })
    }

    fn prepared(
        &self,
        new: &NewParticipant,
        surprised: bool,
        path: &str,
        dice: &mut dyn Dice,
    ) -> Result<Participant, Refusal> {
        let wrong = |field: &str, message: String| Refusal::argument(format!("{path}/{field}"), message);
        if new.id.trim().is_empty() {
            return Err(wrong("id", "must not be empty".to_owned()));
        }
        text(&format!("{path}/id"), &new.id, limits::ID_CHARS_MAX)?;
        text(&format!("{path}/name"), new.name.as_deref().unwrap_or_default(), limits::NAME_CHARS_MAX)?;
        if self.at(&new.id).is_some() {
            return Err(wrong("id", format!("\"{}\" takes part already", new.id)));
        }
        let mut creature = match &new.record {
            Some(record) => record.clone(),
            None => new.sheet(path)?,
        };
        fold::bound(&mut creature);
        let initial = Arc::new(Snapshot::of(&creature));
        creature.id.clone_from(&new.id);
        if let Some(name) = new.name.as_ref().filter(|n| !n.trim().is_empty()) {
            creature.name.clone_from(name);
        }
        let bound = |value: i32| value.clamp(-limits::AMOUNT_MAX, limits::AMOUNT_MAX);
        let bonus = new.initiative_bonus.map(bound);
        let initiative = match new.initiative {
            Some(initiative) => bound(initiative),
            None => rolled(&creature, bonus, dice)?,
        };
        let participant = Participant {
            id: new.id.clone(),
            character_id: new.character_id.clone().filter(|_| new.record.is_some()),
            npc_id: new.npc_id.clone().filter(|_| new.record.is_some()),
            initial,
            is_enemy: new.is_enemy,
            initiative,
            initiative_bonus: bonus.unwrap_or_else(|| creature.modifier(Ability::Dexterity)),
            surprised: new.surprised || surprised,
            position: new.position,
            attacks_per_action: new.attacks_per_action.map_or_else(|| attacks(&creature), |n| n.clamp(1, 20)),
            statistics: super::Statistics::default(),
            economy: super::Economy::default(),
            lasting: if new.record.is_some() { Vec::new() } else { new.lasting() },
            creature: Arc::new(creature),
        };
        self.check_place(&participant).map_err(|message| wrong("position", message))?;
        Ok(participant)
    }

    /// Whether somebody can stand where it wants to.
    fn check_place(&self, it: &Participant) -> Result<(), String> {
        let Some(at) = it.position else { return Ok(()) };
        if !self.terrain.holds(at, it.side()) {
            return Err(format!("lies outside of the grid of {} by {}", self.terrain.width, self.terrain.height));
        }
        if at.z == 0 && self.terrain.blocks(at, it.side()) {
            return Err("is an obstacle".to_owned());
        }
        Ok(())
    }

    /// Conditions name who they come from by id, slug or name of a record; here by the id of who that is.
    fn name_sources(&mut self) {
        let known = self.participants.iter().filter_map(|p| Some((p.record()?.to_owned(), p.id.clone())));
        let known: Vec<(String, String)> = known.collect();
        for participant in &mut self.participants {
            let named = |source: &Option<String>| {
                let source = source.as_deref()?;
                known.iter().find(|(record, _)| same(record, source)).map(|(_, id)| id.clone())
            };
            if participant.creature.conditions.iter().all(|c| named(&c.source).is_none()) {
                continue;
            }
            for condition in &mut Arc::make_mut(&mut participant.creature).conditions {
                condition.source = named(&condition.source).or_else(|| condition.source.take());
            }
        }
    }
}

impl Participant {
    /// The id of the record behind it.
    pub(super) fn record(&self) -> Option<&str> {
        self.character_id.as_deref().or(self.npc_id.as_deref())
    }
}

impl NewParticipant {
    /// A sheet of the fields alone.
    fn sheet(&self, path: &str) -> Result<Creature, Refusal> {
        self.check(path)?;
        let max_hp = self.max_hp.or(self.hp.filter(|hp| *hp > 0)).unwrap_or(10);
        let plain = Creature::default();
        Ok(Creature {
            name: self.name.clone().unwrap_or_else(|| self.id.clone()),
            is_npc: self.is_npc.unwrap_or(self.is_enemy),
            hp: self.hp.unwrap_or(max_hp),
            max_hp,
            temp_hp: self.temp_hp,
            armor_class: self.armor_class.unwrap_or(plain.armor_class),
            speed: self.speed.unwrap_or(plain.speed),
            size: self.size.clone().unwrap_or_else(|| plain.size.clone()),
            creature_type: self.creature_type.clone().unwrap_or_else(|| plain.creature_type.clone()),
            abilities: self.abilities.unwrap_or_default(),
            saving_throws: self.saving_throws.clone(),
            resistances: self.resistances.clone(),
            immunities: self.immunities.clone(),
            vulnerabilities: self.vulnerabilities.clone(),
            condition_immunities: self.condition_immunities.clone(),
            conditions: self.conditions.iter().map(|c| c.condition.clone()).collect(),
            resources: self.resources.clone(),
            spell_slots: self.spell_slots.clone(),
            attacks: self.attacks.clone(),
            features: self.features.iter().map(|f| Feature { name: f.clone(), ..Feature::default() }).collect(),
            ..plain
        })
    }

    fn check(&self, path: &str) -> Result<(), Refusal> {
        let wrong = |field: &str, message: String| Err(Refusal::argument(format!("{path}/{field}"), message));
        let numbers = [
            ("hp", self.hp, 0),
            ("max_hp", self.max_hp, 1),
            ("temp_hp", Some(self.temp_hp), 0),
            ("armor_class", self.armor_class, 0),
            ("speed", self.speed, 0),
        ];
        for (field, value, least) in numbers {
            if value.is_some_and(|v| !(least..=limits::AMOUNT_MAX).contains(&v)) {
                return wrong(field, format!("must be {least} to {}", limits::AMOUNT_MAX));
            }
        }
        if let (Some(hp), Some(max)) = (self.hp, self.max_hp)
            && hp > max
        {
            return wrong("hp", format!("{hp} is more than max_hp, which is {max}"));
        }
        if self.size.as_deref().is_some_and(|size| !SIZES.contains(&size)) {
            return wrong("size", format!("must be one of {}", SIZES.join(", ")));
        }
        let lists = [
            ("resistances", self.resistances.len()),
            ("immunities", self.immunities.len()),
            ("vulnerabilities", self.vulnerabilities.len()),
            ("condition_immunities", self.condition_immunities.len()),
            ("conditions", self.conditions.len()),
            ("resources", self.resources.len()),
            ("spell_slots", self.spell_slots.len()),
            ("saving_throws", self.saving_throws.len()),
            ("attacks", self.attacks.len()),
            ("features", self.features.len()),
        ];
        if let Some((field, _)) = lists.iter().find(|(_, length)| *length > limits::LIST_MAX) {
            return Err(Refusal::too_many(format!("{path}/{field}"), limits::LIST_MAX));
        }
        self.check_names(path)
    }

    /// Damage types and conditions are those of the rules.
    fn check_names(&self, path: &str) -> Result<(), Refusal> {
        let types = [
            ("resistances", &self.resistances),
            ("immunities", &self.immunities),
            ("vulnerabilities", &self.vulnerabilities),
        ];
        let unknown = |entry: &&String| {
            !crate::srd::DAMAGE_TYPES.iter().any(|t| crate::srd::holds(entry, t)) && !same(entry, "all")
        };
        for (field, list) in types {
            if let Some(entry) = list.iter().find(unknown) {
                let known = crate::srd::DAMAGE_TYPES.join(", ");
                return Err(Refusal::argument(format!("{path}/{field}"), format!("\"{entry}\" is none of {known}")));
            }
        }
        let immune = self.condition_immunities.iter().map(|name| ("condition_immunities", name));
        let has = self.conditions.iter().map(|c| ("conditions", &c.condition.name));
        for (field, name) in immune.chain(has) {
            known_condition(&format!("{path}/{field}"), name)?;
        }
        let untyped = |a: &&NpcAttack| !a.damage_type.is_empty() && damage_type(&a.damage_type).is_none();
        if let Some(attack) = self.attacks.iter().find(untyped) {
            let known = crate::srd::DAMAGE_TYPES.join(", ");
            let message = format!("\"{}\" is none of {known}", attack.damage_type);
            return Err(Refusal::argument(format!("{path}/attacks"), message));
        }
        Ok(())
    }

    fn lasting(&self) -> Vec<Lasting> {
        let known = self.conditions.iter().filter_map(|c| {
            let until = match (c.save_dc, c.save_ability) {
                (Some(dc), Some(ability)) => Until::Save { dc, ability },
                _ if c.condition.rounds_remaining.is_some() => Until::Rounds,
                _ => Until::Dispelled,
            };
            let told = c.description.is_some() || matches!(until, Until::Save { .. });
            told.then(|| Lasting { condition: c.condition.name.clone(), until, description: c.description.clone() })
        });
        known.collect()
    }
}

/// The condition of the rules of this name.
pub(super) fn known_condition(argument: &str, name: &str) -> Result<&'static str, Refusal> {
    condition(name).map(|rule| rule.name).ok_or_else(|| {
        let known = crate::srd::CONDITIONS.iter().map(|c| c.name).collect::<Vec<_>>().join(", ");
        Refusal::argument(argument, format!("\"{name}\" is none of {known}"))
    })
}

pub(super) fn text(argument: &str, value: &str, most: usize) -> Result<(), Refusal> {
    if value.chars().count() > most {
        return Err(Refusal::argument(argument, format!("at most {most} characters")));
    }
    Ok(())
}

/// A rolled initiative. A bonus that was given stands in for the sheet's.
pub(super) fn rolled(creature: &Creature, bonus: Option<i32>, dice: &mut dyn Dice) -> Result<i32, Refusal> {
    let outcome = roll_initiative(creature, &Circumstances::default(), dice)?;
    Ok(match bonus {
        Some(bonus) => i32::try_from(outcome.die_result).unwrap_or(0).saturating_add(bonus),
        None => outcome.total,
    })
}

/// Attacks of one attack action (SRD 5.1, "Extra Attack").
fn attacks(creature: &Creature) -> i32 {
    let classes = [Class::Barbarian, Class::Fighter, Class::Monk, Class::Paladin, Class::Ranger];
    let extra = classes.into_iter().map(|class| extra_attacks(class, creature.class_level(class))).max().unwrap_or(0);
    let extra = if extra == 0 && creature.has_feature("Extra Attack") { 1 } else { extra };
    i32::try_from(extra).unwrap_or(0) + 1
}
