//! A fight as a player may see it: the list of everything that a player is shown.
//!
//! Friends are the player's own character and everybody who is no enemy. They are shown whole. Of enemies a player sees how they
//! fare, and not their numbers. Hidden participants are not shown at all.
//!
//! What is not named here is not shown. Each function takes its argument apart without `..`, so a new member of an outcome or a
//! view does not compile until somebody has decided here whether players see it. Never show the target number of a roll, or a text
//! that the rules wrote for the game master (`raw`, and the `notes` of what is possible): both tell enemies' numbers.

use serde::{Deserialize, Serialize};

use super::{
    Changes, ConditionDetail, ConditionView, Encounter, EndOutcome, Hazard, Lighting, Participant, ParticipantUpdate,
    ParticipantView, Position, Provocation, Status, Summary, Terrain, Verbosity, View,
};
use crate::{
    resolve::{
        AttackRoll, Automatic, Damage, DamageRow, DieShown, Modifier, Outcome, ParticipantRoll, Parties, StateChange,
        rows_as_text,
    },
    srd::Advantage,
};

/// Somebody who watches a fight: a player, or its game master.
#[derive(Clone, Copy, Debug)]
pub struct Watcher<'a> {
    fight: &'a Encounter,
    /// The participant that the watcher plays.
    own: Option<&'a str>,
    /// Whether it is the game master, who sees everything.
    all: bool,
}

/// An outcome as players see it. Members that are absent are not for them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "they are those of `Outcome`")]
pub struct SeenOutcome {
    pub check_type: String,
    pub outcome: String,
    pub success: bool,
    pub advantage: Advantage,
    #[serde(default, skip_serializing_if = "is_false")]
    pub impossible: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_check: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<Automatic>,
    /// Why it is impossible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<SeenDamage>,
    /// The target number of a friend's check, if somebody told it to everybody. Only the command that told it sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dc_or_ac: Option<String>,
    /// The roll, if a friend made it.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub roll: Option<SeenRoll>,
    /// Only if no enemy takes part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attacks: Vec<SeenAttack>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub participants: Vec<SeenParticipant>,
    /// What changes for friends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<StateChange>,
}

/// A friend's roll.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "they are those of `Outcome`")]
pub struct SeenRoll {
    pub components: String,
    pub die_result: u32,
    pub total_modifier: String,
    pub total: i32,
    pub modifiers: Vec<Modifier>,
    /// The friends' dice.
    pub dice: Vec<DieShown>,
}

/// Damage as players see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "they are those of `Damage`")]
pub struct SeenDamage {
    pub breakdown: Vec<SeenRow>,
    pub total_damage: i32,
    pub is_crit: bool,
    /// Only if no enemy takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<i32>,
}

/// Damage of one source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SeenRow {
    /// Of a friend's roll.
    Whole(DamageRow),
    /// Of an enemy's.
    Type {
        /// The damage type; absent if it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        damage_type: Option<String>,
    },
}

/// One beam, ray or dart of several; of an enemy's only whether it hit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "they are those of `AttackRoll`")]
pub struct SeenAttack {
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<SeenDamage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub die_result: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_modifier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<i32>,
}

/// One creature's roll among others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SeenParticipant {
    /// A friend's.
    Whole(ParticipantRoll),
    /// An enemy's.
    Enemy {
        /// The creature's name.
        name: String,
        /// Whether this roll succeeded.
        success: bool,
    },
}

/// A participant of the fight.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SeenCombatant {
    /// A friend.
    Whole(Box<ParticipantView>),
    /// An enemy.
    Enemy(Enemy),
}

impl SeenCombatant {
    /// The participant's id.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Whole(it) => &it.id,
            Self::Enemy(it) => &it.id,
        }
    }
}

/// An enemy: how it fares, and not its numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "they are those of `ParticipantView`")]
pub struct Enemy {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub character_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npc_id: Option<String>,
    pub name: String,
    pub is_enemy: bool,
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiative: Option<i32>,
    /// Their names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

/// A fight as players see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "they are those of `View`")]
pub struct SeenView {
    pub encounter_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub status: Status,
    pub round: u32,
    /// The place in the order of those who are shown; absent in the turn of somebody who is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    pub current_participant_id: Option<String>,
    /// The number of those who are shown.
    pub participant_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participants: Option<Vec<SeenCombatant>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lighting: Option<Lighting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terrain: Option<Terrain>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provoked: Vec<Provocation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<EndOutcome>,
    /// Those that the reader caused. The fight's own may name those who are not shown.
    pub warnings: Vec<String>,
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl<'a> Watcher<'a> {
    /// Who watches `fight` as the player of a character, given by the id of its record, or of none.
    #[must_use]
    pub fn of(fight: &'a Encounter, character: Option<&str>) -> Self {
        let own = character.and_then(|id| fight.participants().iter().find(|p| p.character_id.as_deref() == Some(id)));
        Self { fight, own: own.map(|p| p.id.as_str()), all: false }
    }

    /// The game master of `fight`, to whom everybody is like a friend.
    #[must_use]
    pub const fn master(fight: &'a Encounter) -> Self {
        Self { fight, own: None, all: true }
    }

    /// Whether the watcher knows of a participant.
    #[must_use]
    pub fn knows(&self, it: &Participant) -> bool {
        self.all || !it.hidden || self.own == Some(it.id.as_str())
    }

    /// Whether the watcher sees everything of a participant.
    #[must_use]
    pub fn is_friend(&self, it: &Participant) -> bool {
        self.all || self.own == Some(it.id.as_str()) || (!it.is_enemy && !it.hidden)
    }

    fn knows_id(&self, id: &str) -> bool {
        self.fight.participant(id).is_some_and(|it| self.knows(it))
    }

    fn befriends(&self, id: &str) -> bool {
        self.fight.anybody(id).is_some_and(|it| self.is_friend(it))
    }

    fn all_friends<'b>(&self, mut ids: impl Iterator<Item = &'b String>) -> bool {
        ids.all(|id| self.befriends(id))
    }

    /// Whether a text is the id or the name of somebody that the watcher does not know of.
    fn is_secret(&self, reference: &str) -> bool {
        let mut unknown = self.fight.participants().iter().filter(|it| !self.knows(it));
        unknown.any(|it| {
            let record = it.character_id.as_deref().or(it.npc_id.as_deref());
            it.id == reference || record == Some(reference) || it.creature.is_called(reference)
        })
    }

    /// The fight.
    #[must_use]
    pub fn view(&self, verbosity: Verbosity) -> SeenView {
        let View {
            encounter_id,
            name,
            status,
            round,
            turn: _,
            current_participant_id,
            participant_count: _,
            participants,
            lighting,
            terrain,
            provoked,
            outcome,
            notes: _,
            warnings: _,
        } = self.fight.view(verbosity);
        SeenView {
            encounter_id,
            name,
            status,
            round,
            turn: self.turn(),
            current_participant_id: current_participant_id.filter(|id| self.knows_id(id)),
            participant_count: self.fight.participants().iter().filter(|it| self.knows(it)).count(),
            participants: participants.map(|all| all.into_iter().filter_map(|one| self.combatant(one)).collect()),
            lighting,
            terrain: terrain.map(ground),
            provoked: provoked.into_iter().filter(|p| self.knows_id(&p.by) && self.knows_id(&p.target)).collect(),
            outcome,
            warnings: Vec::new(),
        }
    }

    /// The place of whoever has the turn among those whom the watcher knows of, from 1; 0 if nobody has it, and `None` if it is
    /// somebody unknown.
    #[must_use]
    pub fn turn(&self) -> Option<usize> {
        let Some(current) = self.fight.current() else { return Some(0) };
        let known = self.fight.turn_order().into_iter().filter(|it| self.knows(it));
        known.zip(1..).find(|(it, _)| it.id == current.id).map(|(_, place)| place)
    }

    /// A participant; `None` if the watcher does not know of it.
    #[must_use]
    pub fn combatant(&self, it: ParticipantView) -> Option<SeenCombatant> {
        let participant = self.fight.participant(&it.id).filter(|it| self.knows(it))?;
        if self.is_friend(participant) {
            let conditions = it.conditions.map(|all| all.into_iter().map(|one| self.condition(one)).collect());
            return Some(SeenCombatant::Whole(Box::new(ParticipantView { conditions, ..it })));
        }
        let ParticipantView {
            id,
            character_id,
            npc_id,
            name,
            hp: _,
            max_hp: _,
            is_enemy,
            status,
            temp_hp: _,
            armor_class: _,
            initiative,
            conditions,
            position,
            surprised: _,
            hidden: _,
            death_saves: _,
            concentration: _,
            size: _,
            speed: _,
            spell_slots: _,
            resources: _,
            detail: _,
        } = it;
        let named = |condition| match condition {
            ConditionView::Name(name) | ConditionView::Detail(ConditionDetail { name, .. }) => name,
        };
        let conditions = conditions.map(|all| all.into_iter().map(named).collect());
        let enemy = Enemy { id, character_id, npc_id, name, is_enemy, status, initiative, conditions, position };
        Some(SeenCombatant::Enemy(enemy))
    }

    /// A friend's condition, without a source that the watcher does not know of.
    fn condition(&self, mut condition: ConditionView) -> ConditionView {
        if let ConditionView::Detail(detail) = &mut condition {
            self.forget(&mut detail.source);
        }
        condition
    }

    /// Removes a source that the watcher does not know of.
    fn forget(&self, source: &mut Option<String>) {
        source.take_if(|source| self.is_secret(source));
    }

    /// A text for the game master without the names of those that the watcher does not know of.
    #[must_use]
    pub fn unnamed(&self, text: &str) -> String {
        let unknown = self.fight.participants().iter().filter(|it| !self.knows(it));
        let names = unknown.flat_map(|it| [it.id.as_str(), it.creature.name.as_str()]).filter(|name| !name.is_empty());
        names.fold(text.to_owned(), |text, name| text.replace(name, "somebody"))
    }

    /// What came of something; `None` if only somebody did it that the watcher does not know of.
    #[must_use]
    pub fn outcome(&self, it: &Outcome) -> Option<SeenOutcome> {
        let Outcome {
            check_type,
            components,
            die_result,
            total_modifier,
            total,
            dc_or_ac: _,
            success,
            notes,
            outcome,
            impossible,
            no_check,
            automatic,
            damage,
            modifiers,
            advantage,
            reasons,
            dice,
            attacks,
            participants,
            effects,
            raw: _,
            parties,
        } = it;
        let Parties { rolled, others } = parties;
        if !rolled.is_empty() && !rolled.iter().any(|id| self.knows_id(id)) {
            return None;
        }
        let by_friends = !rolled.is_empty() && self.all_friends(rolled.iter());
        let only_friends = by_friends
            && self.all_friends(others.iter().chain(participants.iter().map(|p| &p.creature)))
            && effects.iter().all(|change| self.befriends(change.creature()));
        let friendly_fire = self.is_friendly_fire(it);
        let seen_damage = |damage: &Damage| self.damage(damage, by_friends, friendly_fire);
        let own = |die: &&DieShown| die.by.as_ref().is_none_or(|by| self.befriends(by));
        Some(SeenOutcome {
            check_type: check_type.clone(),
            outcome: if by_friends { outcome.clone() } else { without_numbers(outcome) },
            success: *success,
            advantage: *advantage,
            impossible: *impossible,
            no_check: *no_check,
            automatic: *automatic,
            notes: impossible.then(|| self.unnamed(notes)),
            damage: damage.as_ref().map(seen_damage),
            dc_or_ac: None,
            roll: by_friends.then(|| SeenRoll {
                components: components.clone(),
                die_result: *die_result,
                total_modifier: total_modifier.clone(),
                total: *total,
                modifiers: modifiers.clone(),
                dice: dice.iter().filter(own).cloned().collect(),
            }),
            reasons: only_friends.then(|| reasons.iter().map(|reason| reason.clone().into_owned()).collect()),
            attacks: attacks.iter().map(|attack| self.attack(attack, by_friends, friendly_fire)).collect(),
            participants: participants.iter().filter_map(|one| self.roll(one)).collect(),
            effects: effects.iter().filter(|it| self.befriends(it.creature())).map(|it| self.change(it)).collect(),
        })
    }

    /// Whether everybody whom the damage hits is a friend.
    fn is_friendly_fire(&self, it: &Outcome) -> bool {
        let hurt = |change: &StateChange| matches!(change, StateChange::Damage { .. });
        let mut hurt = it.effects.iter().filter(|change| hurt(change)).peekable();
        if !it.participants.is_empty() {
            return self.all_friends(it.participants.iter().map(|p| &p.creature));
        }
        if hurt.peek().is_some() {
            return hurt.all(|change| self.befriends(change.creature()));
        }
        // Nobody was hurt, which may be because an enemy is immune.
        self.all_friends(it.parties.rolled.iter().chain(&it.parties.others))
    }

    fn damage(&self, it: &Damage, by_friends: bool, friendly_fire: bool) -> SeenDamage {
        let Damage { breakdown, total_damage, is_crit, taken } = it;
        let row = |row: &DamageRow| match by_friends {
            true => SeenRow::Whole(row.clone()),
            false => SeenRow::Type { damage_type: row.damage_type.clone().map(std::borrow::Cow::into_owned) },
        };
        SeenDamage {
            breakdown: breakdown.iter().map(row).collect(),
            total_damage: *total_damage,
            is_crit: *is_crit,
            taken: taken.filter(|_| friendly_fire),
        }
    }

    fn attack(&self, it: &AttackRoll, by_friends: bool, friendly_fire: bool) -> SeenAttack {
        let AttackRoll { die_result, total_modifier, total, success, outcome, damage } = it;
        SeenAttack {
            success: *success,
            outcome: by_friends.then(|| outcome.clone()),
            damage: damage.as_ref().filter(|_| by_friends).map(|it| self.damage(it, by_friends, friendly_fire)),
            die_result: by_friends.then_some(*die_result),
            total_modifier: by_friends.then(|| total_modifier.clone()),
            total: by_friends.then_some(*total),
        }
    }

    /// One creature's roll among others; `None` if the watcher does not know of it.
    #[must_use]
    pub fn roll(&self, it: &ParticipantRoll) -> Option<SeenParticipant> {
        self.knows_id(&it.creature).then(|| match self.befriends(&it.creature) {
            true => SeenParticipant::Whole(it.clone()),
            false => SeenParticipant::Enemy { name: it.name.clone(), success: it.success },
        })
    }

    /// A friend's change, without a source that the watcher does not know of.
    fn change(&self, it: &StateChange) -> StateChange {
        let mut change = it.clone();
        match &mut change {
            StateChange::AddCondition { condition, .. } => self.forget(&mut condition.source),
            StateChange::AddEffect { effect, .. } => self.forget(&mut effect.source),
            _ => {}
        }
        change
    }

    /// What the fight did to friends.
    #[must_use]
    pub fn updates(&self, all: Vec<ParticipantUpdate>) -> Vec<ParticipantUpdate> {
        let mut seen: Vec<_> = all.into_iter().filter(|update| self.befriends(&update.participant_id)).collect();
        seen.iter_mut().for_each(|update| self.name_only_known(&mut update.changes));
        seen
    }

    /// Removes from a friend's changes the sources that the watcher does not know of.
    pub fn name_only_known(&self, changes: &mut Changes) {
        changes.conditions.details.iter_mut().for_each(|detail| self.forget(&mut detail.source));
        let effects = changes.effects.iter_mut().flat_map(|both| both.initial.iter_mut().chain(&mut both.now));
        effects.for_each(|effect| self.forget(&mut effect.source));
    }

    /// A short summary: how those fare whom the watcher knows of, and who did most among the friends.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.fight.summary_of(|it| self.knows(it), |it| self.is_friend(it))
    }
}

/// The ground: where it harms, and not how much.
fn ground(it: Terrain) -> Terrain {
    let Terrain { width, height, obstacles, difficult_terrain, water, hazards } = it;
    let harm = |it: Hazard| {
        let Hazard { position, kind, damage: _, damage_type: _, dc: _, save_ability: _, condition: _ } = it;
        Hazard { position, kind, ..Hazard::default() }
    };
    Terrain { width, height, obstacles, difficult_terrain, water, hazards: hazards.into_iter().map(harm).collect() }
}

/// What came of an enemy's roll, and not how much: `damage` of `5 damage`, `targets failed the save` of `2 of 3 targets failed the
/// save`.
fn without_numbers(outcome: &str) -> String {
    const WAKES: &str = "regains 1 hit point";
    let tells = |word: &&str| *word != "of" && word.parse::<i32>().is_err();
    let words: Vec<&str> = outcome.split(' ').filter(tells).collect();
    if outcome == WAKES { WAKES.to_owned() } else { words.join(" ") }
}

impl SeenDamage {
    fn line(&self) -> String {
        let whole = self.breakdown.iter().filter_map(|row| match row {
            SeenRow::Whole(row) => Some(row),
            SeenRow::Type { .. } => None,
        });
        let types = self.breakdown.iter().filter_map(|row| match row {
            SeenRow::Whole(_) => None,
            SeenRow::Type { damage_type } => damage_type.as_deref(),
        });
        let whole = rows_as_text(whole);
        if whole.is_empty() {
            let types = types.collect::<Vec<_>>().join(" and ");
            return format!("{} {types}", self.total_damage).trim_end().to_owned();
        }
        whole
    }
}

impl SeenOutcome {
    /// The outcome of something that needed no roll, or of which players see nothing.
    #[must_use]
    pub fn nothing(success: bool) -> Self {
        Self {
            check_type: "NONE".to_owned(),
            outcome: String::new(),
            success,
            advantage: Advantage::None,
            impossible: false,
            no_check: false,
            automatic: None,
            notes: None,
            damage: None,
            dc_or_ac: None,
            roll: None,
            reasons: None,
            attacks: Vec::new(),
            participants: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// The lines for a narrator, as [`Outcome::raw`] has them, from what players see. `told` is what else they read of it.
    #[must_use]
    pub fn lines(&self, told: Option<&str>) -> String {
        let mut lines = vec![format!("CHECK: {}", self.check_type)];
        if !self.impossible && !self.no_check {
            if let Some(SeenRoll { components, die_result, total_modifier, total, .. }) = &self.roll {
                lines.push(format!("COMPONENTS: {components}"));
                let total = if *die_result == 0 { 0 } else { *total };
                lines.push(format!("ROLL: {die_result} + {total_modifier} = {total}"));
            }
            lines.push(format!("RESULT: {}", if self.success { "SUCCESS" } else { "FAILURE" }));
            if let Some(damage) = &self.damage {
                lines.push(format!("DAMAGE: {}", damage.line()));
            }
        }
        let notes = self.notes.as_deref().into_iter().chain(told).collect::<Vec<_>>().join(" ");
        if !notes.is_empty() {
            lines.push(format!("NOTES: {notes}"));
        }
        lines.join("\n")
    }
}
