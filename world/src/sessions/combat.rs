//! Fights: the state of the frontend's combat tracker, and what each report changed.

use entity::session::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    delta::{CombatantChange, Delta, Started},
    input::{self, Checked},
};
use crate::{
    encounters::{
        self,
        combat::{CombatantTold, FightTold},
        eyes::Eyes,
    },
    playing::Reader,
};
use base::{
    error::{Error, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;

/// The most fights that a frontend may report, and the most participants in one.
const ENCOUNTERS_MAX: usize = 20;
const COMBATANTS_MAX: usize = 200;
const CONDITIONS_MAX: usize = 30;
/// The name of a fight without a name.
pub const UNNAMED: &str = "Combat Encounter";

/// A participant in a fight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Combatant {
    pub name: String,
    /// The initiative; null if it was not rolled yet.
    #[schema(value_type = Option<f64>)]
    pub initiative: Option<Number>,
    pub is_player: bool,
    /// Whether it is this participant's turn.
    pub is_current_turn: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    #[serde(alias = "actor_id", alias = "actor_uuid", skip_serializing_if = "Option::is_none")]
    pub character_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_hp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<String>>,
}

impl Combatant {
    /// The id or name that others use for the participant.
    #[must_use]
    pub fn actor(&self) -> &str {
        self.character_id.as_deref().or(self.token_id.as_deref()).unwrap_or(&self.name)
    }

    /// The participant as a role may see it: a player does not see the hit points of anybody but players' characters.
    fn seen_by(self, role: Role) -> CombatantTold {
        let Self { name, initiative, is_player, is_current_turn, token_id, character_id, hp, max_hp, conditions } =
            self;
        let has_numbers = role != Role::Player || is_player;
        CombatantTold {
            name,
            initiative,
            is_player,
            is_current_turn,
            token_id,
            character_id,
            hp: hp.filter(|_| has_numbers),
            max_hp: max_hp.filter(|_| has_numbers),
            conditions,
            hidden: None,
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (&self.token_id, &other.token_id) {
            (Some(a), Some(b)) => a == b,
            _ => self.actor() == other.actor(),
        }
    }
}

/// A fight as a frontend reports it. Other members are not kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CombatState {
    /// Whether there is a fight.
    pub in_combat: bool,
    /// The frontend's own id of the fight.
    #[serde(alias = "id", alias = "encounter_id")]
    pub combat_id: Option<String>,
    pub name: Option<String>,
    pub round: i64,
    /// The place in the initiative order, from 1.
    pub turn: i64,
    /// The participants.
    pub combatants: Vec<Combatant>,
}

impl CombatState {
    /// Checks the sizes of texts and lists.
    ///
    /// # Errors
    /// `validation_failed` with pointers below `at`.
    pub fn check(&self, at: &str) -> Result<()> {
        let mut checked = Checked::at(at);
        checked.text("combat_id", self.combat_id.as_deref().unwrap_or_default());
        checked.text("name", self.name.as_deref().unwrap_or_default());
        checked.count("combatants", self.combatants.len(), COMBATANTS_MAX);
        for (i, c) in self.combatants.iter().enumerate().take(COMBATANTS_MAX) {
            let at = format!("combatants/{i}");
            for text in [Some(&c.name), c.token_id.as_ref(), c.character_id.as_ref()].into_iter().flatten() {
                checked.text(&at, text);
            }
            let conditions = c.conditions.as_deref().unwrap_or_default();
            checked.count(&format!("{at}/conditions"), conditions.len(), CONDITIONS_MAX);
            conditions.iter().take(CONDITIONS_MAX).for_each(|c| checked.text(&format!("{at}/conditions"), c));
        }
        checked.finish()
    }
}

/// The content of a `combat_state` event: one fight, or all fights.
#[derive(Debug)]
pub enum CombatReport {
    One(CombatState),
    All(Vec<CombatState>),
}

impl CombatReport {
    /// Reads an event's data: `{combat_state: {…}}`, the state itself, or `{encounters: […]}`.
    ///
    /// # Errors
    /// `validation_failed` with pointers below `at`.
    pub fn read(data: &Value, at: &str) -> Result<Self> {
        if let Some(list) = data.get("encounters") {
            let at = format!("{at}/encounters");
            let states: Vec<CombatState> = input::read(list.clone(), &at)?;
            if states.len() > ENCOUNTERS_MAX {
                return Err(Error::invalid(at, "invalid_value", format!("Send at most {ENCOUNTERS_MAX} encounters.")));
            }
            states.iter().enumerate().try_for_each(|(i, state)| state.check(&format!("{at}/{i}")))?;
            return Ok(Self::All(states));
        }
        let (state, at) = match data.get("combat_state") {
            Some(state) => (state, format!("{at}/combat_state")),
            None => (data, at.to_owned()),
        };
        if state.get("in_combat").and_then(Value::as_bool).is_none() {
            return Err(Error::invalid(
                format!("{at}/in_combat"),
                "required",
                "Say whether there is a fight: true or false.",
            ));
        }
        let state: CombatState = input::read(state.clone(), &at)?;
        state.check(&at)?;
        Ok(Self::One(state))
    }
}

/// A fight in progress, as last reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encounter {
    pub combat_id: String,
    pub name: String,
    pub round: i64,
    pub turn: i64,
    pub combatants: Vec<Combatant>,
    pub last_updated: String,
}

impl Encounter {
    fn of(state: CombatState, now: &str) -> Self {
        let named = |text: Option<String>| text.filter(|t| !t.trim().is_empty());
        Self {
            combat_id: named(state.combat_id).unwrap_or_else(|| "combat".to_owned()),
            name: named(state.name).unwrap_or_else(|| UNNAMED.to_owned()),
            round: state.round,
            turn: state.turn,
            combatants: state.combatants,
            last_updated: now.to_owned(),
        }
    }

    /// The fight as tools and overviews show it to a role, in the same form as the server's own encounters. Its name is not told.
    #[must_use]
    pub fn told(self, role: Role) -> FightTold {
        let Self { combat_id, name: _, round, turn, combatants, last_updated } = self;
        FightTold {
            in_combat: true,
            combat_id,
            name: None,
            round,
            turn,
            combatants: combatants.into_iter().map(|one| one.seen_by(role)).collect(),
            last_updated,
            stale: None,
        }
    }

    /// What changed since an earlier report.
    fn since(&self, before: &Self) -> Delta {
        let mut delta =
            Delta { turn_advanced: (self.round, self.turn) != (before.round, before.turn), ..Delta::default() };
        for now in &self.combatants {
            let Some(then) = before.combatants.iter().find(|c| c.is(now)) else { continue };
            let hp_change = match (then.hp, now.hp) {
                (Some(then), Some(now)) => now.saturating_sub(then),
                _ => 0,
            };
            let had = then.conditions.as_deref().unwrap_or_default();
            let has = now.conditions.as_deref().unwrap_or_default();
            let new_status_effects: Vec<_> = has.iter().filter(|c| !had.contains(c)).cloned().collect();
            if hp_change != 0 || !new_status_effects.is_empty() {
                let actor_id = now.actor().to_owned();
                delta.combatant_changed.push(CombatantChange { actor_id, hp_change, new_status_effects });
            }
        }
        delta
    }
}

/// Stores a frontend's report about its fights. Returns what changed.
pub fn mirror(encounters: &mut Vec<Encounter>, told: CombatReport, now: OffsetDateTime) -> Delta {
    let now = now.format(&Rfc3339).unwrap_or_default();
    let mut delta = Delta::default();
    match told {
        CombatReport::One(state) if state.in_combat => delta.add(update(encounters, Encounter::of(state, &now))),
        CombatReport::One(state) => {
            let before = encounters.len();
            encounters.retain(|e| state.combat_id.as_ref().is_some_and(|id| *id != e.combat_id));
            delta.encounter_ended = encounters.len() < before;
        }
        CombatReport::All(states) => {
            let going: Vec<_> = states.into_iter().filter(|s| s.in_combat).map(|s| Encounter::of(s, &now)).collect();
            let before = encounters.len();
            encounters.retain(|e| going.iter().any(|g| g.combat_id == e.combat_id));
            delta.encounter_ended = encounters.len() < before;
            going.into_iter().for_each(|encounter| delta.add(update(encounters, encounter)));
        }
    }
    delta
}

fn update(encounters: &mut Vec<Encounter>, encounter: Encounter) -> Delta {
    if let Some(known) = encounters.iter_mut().find(|e| e.combat_id == encounter.combat_id) {
        let delta = encounter.since(known);
        *known = encounter;
        return delta;
    }
    let started = Started { id: encounter.combat_id.clone(), name: encounter.name.clone() };
    if encounters.len() >= ENCOUNTERS_MAX {
        encounters.remove(0);
    }
    encounters.push(encounter);
    Delta { encounter_started: Some(started), ..Delta::default() }
}

/// A fight in progress, run by the server or reported by a frontend.
#[derive(Clone)]
pub struct Fight {
    /// Whether the server runs it.
    pub own: bool,
    pub told: FightTold,
}

impl Fight {
    /// Marks a frontend's fight as possibly outdated.
    #[must_use]
    pub fn gone_stale(mut self) -> Self {
        self.told.stale = self.told.stale.or((!self.own).then_some(true));
        self
    }
}

/// The fights in progress, as the reader may see them: the campaign's own encounters, then those in the session's frontend. Without
/// a session, those that any frontend of the campaign reported last. This is the only place that decides which fights are in
/// progress. Two statements.
///
/// # Errors
/// Database errors.
pub async fn going_on(tx: &TenantTx, campaign: Uuid, session: Option<Uuid>, reader: Reader) -> Result<Vec<Fight>> {
    let own = encounters::combat::going_on(tx, campaign, Eyes::of_reader(reader)).await?.into_iter();
    let mut fights: Vec<_> = own.map(|told| Fight { own: true, told }).collect();
    let row = sqlx::query(
        "SELECT combat FROM session_state WHERE tenant_id = $1 AND campaign_id = $2 AND ($3::uuid IS NULL OR session_id = $3) \
           AND combat <> '[]' ORDER BY combat_at DESC LIMIT 1",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(session)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    if let Some(row) = row {
        let reported: Vec<Encounter> = stored::readable(row.read_json("combat")).unwrap_or_default();
        fights.extend(reported.into_iter().map(|one| Fight { own: false, told: one.told(reader.role) }));
    }
    Ok(fights)
}

/// Whether a session's frontend has reported a fight in progress. One statement.
///
/// # Errors
/// Database errors.
pub async fn is_told_of(tx: &TenantTx, session: Uuid) -> Result<bool> {
    let row =
        sqlx::query("SELECT combat <> '[]' AS fights FROM session_state WHERE tenant_id = $1 AND session_id = $2")
            .bind(tx.tenant())
            .bind(session)
            .fetch_optional(&mut *tx.connection().await)
            .await?;
    row.map_or(Ok(false), |row| row.read("fights"))
}

/// The fight in progress, several fights, or the message that there is none.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum InProgress {
    One(FightTold),
    Several { in_combat: bool, active_count: usize, encounters: Vec<FightTold> },
    Nothing { in_combat: bool, message: &'static str },
}

impl InProgress {
    /// The fight with the id `wanted`, or all fights.
    ///
    /// # Errors
    /// `not_found` if there is no fight with this id.
    pub fn of(fights: Vec<Fight>, wanted: Option<&str>) -> Result<Self> {
        let mut all: Vec<FightTold> = fights.into_iter().map(|fight| fight.told).collect();
        if let Some(id) = wanted {
            let found = all.into_iter().find(|told| told.combat_id == id);
            return found.map(Self::One).ok_or_else(|| Error::not_found("encounter"));
        }
        Ok(match (all.len(), all.pop()) {
            (1, Some(one)) => Self::One(one),
            (active_count, Some(last)) => {
                all.push(last);
                Self::Several { in_combat: true, active_count, encounters: all }
            }
            (_, None) => Self::Nothing { in_combat: false, message: "No active encounter" },
        })
    }
}
