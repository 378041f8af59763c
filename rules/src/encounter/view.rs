//! Views of an encounter at several levels of detail.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    ConditionDetail, Economy, Encounter, EndOutcome, Lighting, Participant, Position, Provocation, Statistics, Status,
    Terrain, snapshot::is_active,
};
use crate::sheet::{DeathSaves, Life, Resource};

/// How much a view contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verbosity {
    /// Round, turn and number of participants.
    Minimal,
    /// Also everybody's name and hit points.
    Summary,
    /// Also what is needed to continue the fight.
    #[default]
    Standard,
    /// Everything.
    Detailed,
}

/// A condition, as its name or in full.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = EncounterCondition)]
pub enum ConditionView {
    /// Its name.
    Name(String),
    /// In full.
    Detail(ConditionDetail),
}

impl ConditionView {
    /// The condition's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Detail(detail) => &detail.name,
        }
    }
}

/// A participant. `Standard` has all fields except those that only `Detailed` has.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[expect(missing_docs, reason = "their names say it")]
#[schema(as = EncounterParticipantView)]
pub struct ParticipantView {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub character_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npc_id: Option<String>,
    pub name: String,
    #[schema(required = false)]
    pub hp: i32,
    /// With exhaustion applied.
    #[schema(required = false)]
    pub max_hp: i32,
    pub is_enemy: bool,
    /// `alive`, `dying`, `stable` or `dead`.
    #[schema(value_type = Life)]
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temp_hp: Option<i32>,
    /// With effects applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub armor_class: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiative: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<ConditionView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Present only while it is surprised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surprised: Option<bool>,
    /// Present only while players do not know of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<bool>,
    /// Present only at 0 hit points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub death_saves: Option<DeathSaves>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concentration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spell_slots: Option<std::collections::BTreeMap<String, crate::sheet::SpellSlot>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<Resource>>,
    /// Present only in `Detailed`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = ParticipantDetail)]
    pub detail: Option<ParticipantDetail>,
}

/// The part of a participant that only [`Verbosity::Detailed`] has.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[expect(missing_docs, reason = "their names say it")]
pub struct ParticipantDetail {
    #[schema(required = false)]
    pub is_ephemeral: bool,
    #[schema(required = false)]
    pub movement_left: i32,
    #[schema(required = false)]
    pub initiative_bonus: i32,
    #[schema(required = false)]
    pub resistances: Vec<String>,
    #[schema(required = false)]
    pub immunities: Vec<String>,
    #[schema(required = false)]
    pub vulnerabilities: Vec<String>,
    #[schema(required = false)]
    pub condition_immunities: Vec<String>,
    #[schema(required = false)]
    pub effects: Vec<String>,
    #[schema(required = false)]
    pub economy: Economy,
    #[schema(required = false)]
    pub statistics: Statistics,
}

/// A view of an encounter.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = EncounterStanding)]
pub struct View {
    /// Its id.
    pub encounter_id: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether it is active.
    pub status: Status,
    /// The round, from 1.
    pub round: u32,
    /// The current participant's place in the turn order, from 1; 0 if it is nobody's turn. Players do not get it while it is
    /// a hidden participant's turn.
    #[schema(required = false)]
    pub turn: usize,
    /// The participant whose turn it is.
    #[schema(required = true)]
    pub current_participant_id: Option<String>,
    /// The number of participants.
    pub participant_count: usize,
    /// The participants in turn order. Not in `Minimal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participants: Option<Vec<ParticipantView>>,
    /// The light, from `Standard` on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lighting: Option<Lighting>,
    /// The ground, from `Standard` on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terrain: Option<Terrain>,
    /// Who may make an opportunity attack against whom. From `Standard` on, if there is anybody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provoked: Vec<Provocation>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<EndOutcome>,
    /// The game master's notes at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Warnings from when the encounter was created.
    pub warnings: Vec<String>,
}

impl Encounter {
    /// Makes a view.
    #[must_use]
    pub fn view(&self, verbosity: Verbosity) -> View {
        let standard = verbosity >= Verbosity::Standard;
        let everybody = || self.turn_order().into_iter().map(|p| self.participant_view(p, verbosity)).collect();
        View {
            encounter_id: self.id.clone(),
            name: self.name.clone(),
            status: self.status,
            round: self.round,
            turn: self.turn(),
            current_participant_id: self.current().map(|p| p.id.clone()),
            participant_count: self.participants.len(),
            participants: (verbosity > Verbosity::Minimal).then(everybody),
            lighting: standard.then_some(self.lighting),
            terrain: standard.then(|| (*self.terrain).clone()),
            provoked: if standard { self.provoked.clone() } else { Vec::new() },
            outcome: self.outcome,
            notes: self.notes.clone(),
            warnings: self.warnings.clone(),
        }
    }

    fn participant_view(&self, it: &Participant, verbosity: Verbosity) -> ParticipantView {
        let sheet = &it.creature;
        let standard = verbosity >= Verbosity::Standard;
        ParticipantView {
            id: it.id.clone(),
            character_id: it.character_id.clone(),
            npc_id: it.npc_id.clone(),
            name: sheet.name.clone(),
            hp: sheet.hp,
            max_hp: sheet.max_hp_now(),
            is_enemy: it.is_enemy,
            status: word(it.life()),
            temp_hp: standard.then_some(sheet.temp_hp),
            armor_class: standard.then(|| sheet.armor_class_now().total),
            initiative: standard.then_some(it.initiative),
            conditions: standard.then(|| self.conditions(it, verbosity)),
            position: it.position.filter(|_| standard),
            surprised: (standard && it.surprised).then_some(true),
            hidden: it.hidden.then_some(true),
            death_saves: (standard && sheet.hp <= 0).then_some(sheet.death_saves),
            concentration: sheet.concentration.as_ref().filter(|_| standard).map(|c| c.spell.clone()),
            size: standard.then(|| sheet.size.clone()),
            speed: standard.then(|| it.speed_now()),
            spell_slots: (standard && !sheet.spell_slots.is_empty()).then(|| sheet.spell_slots.clone()),
            resources: (standard && !sheet.resources.is_empty()).then(|| sheet.resources.clone()),
            detail: (verbosity == Verbosity::Detailed).then(|| detail(it)),
        }
    }

    fn conditions(&self, it: &Participant, verbosity: Verbosity) -> Vec<ConditionView> {
        let active = it.creature.conditions.iter().filter(|c| is_active(c));
        let told = active.map(|condition| {
            if verbosity < Verbosity::Detailed {
                return ConditionView::Name(condition.name.clone());
            }
            let mut detail = ConditionDetail::from(condition);
            self.complete(&mut detail, it);
            ConditionView::Detail(detail)
        });
        told.collect()
    }
}

fn detail(it: &Participant) -> ParticipantDetail {
    let sheet = &it.creature;
    ParticipantDetail {
        is_ephemeral: it.is_ephemeral(),
        movement_left: it.movement_left(),
        initiative_bonus: it.initiative_bonus,
        resistances: sheet.resistances.clone(),
        immunities: sheet.immunities.clone(),
        vulnerabilities: sheet.vulnerabilities.clone(),
        condition_immunities: sheet.condition_immunities.clone(),
        effects: sheet.effects.iter().map(|e| e.name.clone()).collect(),
        economy: it.economy,
        statistics: it.statistics,
    }
}

/// A word for a participant's state of life.
const fn word(life: Life) -> &'static str {
    match life {
        Life::Alive => "alive",
        Life::Dying => "dying",
        Life::Stable => "stable",
        Life::Dead => "dead",
    }
}
