//! Fights: the frontend's combat tracker as it was last told, and what each telling changed.

use entity::session::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    delta::{CombatantChange, Delta, Started},
    input::{self, Checked},
};
use crate::{
    encounters,
    error::{Error, Result},
    stored::Columns,
    tenancy::TenantTx,
};

/// Fights a frontend may tell of at once, and who may take part in one.
const ENCOUNTERS_MAX: usize = 20;
const COMBATANTS_MAX: usize = 200;
const CONDITIONS_MAX: usize = 30;
/// What a fight is called that has neither name nor id.
pub const UNNAMED: &str = "Combat Encounter";

/// One who fights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Combatant {
    pub name: String,
    /// Its place in the order; null if it has none yet.
    #[schema(value_type = Option<f64>)]
    pub initiative: Option<Number>,
    pub is_player: bool,
    /// Whether it is its turn.
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
    /// What others call it.
    #[must_use]
    pub fn actor(&self) -> &str {
        self.character_id.as_deref().or(self.token_id.as_deref()).unwrap_or(&self.name)
    }

    fn is(&self, other: &Self) -> bool {
        match (&self.token_id, &other.token_id) {
            (Some(a), Some(b)) => a == b,
            _ => self.actor() == other.actor(),
        }
    }
}

/// A fight as a frontend tells of it. Its own further members are not kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CombatState {
    /// Whether anybody fights.
    pub in_combat: bool,
    /// The frontend's own id of the fight.
    #[serde(alias = "id", alias = "encounter_id")]
    pub combat_id: Option<String>,
    pub name: Option<String>,
    pub round: i64,
    /// 1 is the first in the order.
    pub turn: i64,
    /// Who fights.
    pub combatants: Vec<Combatant>,
}

impl CombatState {
    /// Whether it is of a sound size.
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
        checked.done()
    }
}

/// What a `combat_state` event tells: one fight, or all of them.
#[derive(Debug)]
pub enum Told {
    One(CombatState),
    All(Vec<CombatState>),
}

impl Told {
    /// Reads an event's data: `{combat_state: {…}}`, the state itself, or `{encounters: […]}`.
    ///
    /// # Errors
    /// `validation_failed` with pointers below `at`.
    pub fn read(data: &Value, at: &str) -> Result<Self> {
        if let Some(list) = data.get("encounters") {
            let at = format!("{at}/encounters");
            let states: Vec<CombatState> = input::read(list.clone(), &at)?;
            if states.len() > ENCOUNTERS_MAX {
                return Err(Error::invalid(
                    at,
                    "invalid_value",
                    format!("Tell of at most {ENCOUNTERS_MAX} encounters."),
                ));
            }
            states.iter().enumerate().try_for_each(|(i, state)| state.check(&format!("{at}/{i}")))?;
            return Ok(Self::All(states));
        }
        let (state, at) = match data.get("combat_state") {
            Some(state) => (state, format!("{at}/combat_state")),
            None => (data, at.to_owned()),
        };
        if state.get("in_combat").and_then(Value::as_bool).is_none() {
            return Err(Error::invalid(format!("{at}/in_combat"), "required", "Say whether there is a fight."));
        }
        let state: CombatState = input::read(state.clone(), &at)?;
        state.check(&at)?;
        Ok(Self::One(state))
    }
}

/// A fight that goes on, as it was last told.
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

    /// The fight as tools and overviews show it, like an encounter of the server's own.
    #[must_use]
    pub fn shown(&self) -> Value {
        json!({
            "in_combat": true, "combat_id": self.combat_id, "round": self.round, "turn": self.turn,
            "combatants": self.combatants, "last_updated": self.last_updated,
        })
    }

    /// What is different now.
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

/// Takes in what a frontend tells of its fights; returns what that changed.
pub fn mirror(encounters: &mut Vec<Encounter>, told: Told, now: OffsetDateTime) -> Delta {
    let now = now.format(&Rfc3339).unwrap_or_default();
    let mut delta = Delta::default();
    match told {
        Told::One(state) if state.in_combat => delta.add(update(encounters, Encounter::of(state, &now))),
        Told::One(state) => {
            let before = encounters.len();
            encounters.retain(|e| state.combat_id.as_ref().is_some_and(|id| *id != e.combat_id));
            delta.encounter_ended = encounters.len() < before;
        }
        Told::All(states) => {
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

/// A fight that goes on, the server's own or a frontend's.
pub struct Fight {
    pub id: String,
    /// Whether it is the server's own.
    pub own: bool,
    pub shown: Value,
}

impl Fight {
    /// Says of a frontend's fight that it may have gone on unseen.
    #[must_use]
    pub fn gone_stale(mut self) -> Self {
        if let Some(shown) = self.shown.as_object_mut().filter(|_| !self.own) {
            shown.insert("stale".to_owned(), true.into());
        }
        self
    }
}

/// The fights that go on: the campaign's own encounters, then what the session's frontend told of its tracker; without a session,
/// what any frontend of the campaign told last. The one place that says what is being fought. Two statements.
///
/// # Errors
/// Those of the database.
pub async fn going_on(tx: &TenantTx, campaign: Uuid, session: Option<Uuid>) -> Result<Vec<Fight>> {
    let own = encounters::combat::going_on(tx, campaign).await?.into_iter();
    let mut fights: Vec<_> = own.map(|c| Fight { id: c.id.to_string(), own: true, shown: c.shown }).collect();
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
        let told: Vec<Encounter> = row.read_json("combat")?;
        fights.extend(told.into_iter().map(|e| Fight { shown: e.shown(), own: false, id: e.combat_id }));
    }
    Ok(fights)
}

/// Whether a session's frontend told of a fight that goes on. One statement.
///
/// # Errors
/// Those of the database.
pub async fn is_told_of(tx: &TenantTx, session: Uuid) -> Result<bool> {
    let row =
        sqlx::query("SELECT combat <> '[]' AS fights FROM session_state WHERE tenant_id = $1 AND session_id = $2")
            .bind(tx.tenant())
            .bind(session)
            .fetch_optional(&mut *tx.connection().await)
            .await?;
    row.map_or(Ok(false), |row| row.read("fights"))
}

/// Fights as a role may see them: a player sees how many blows its foes took, not how many they can take.
#[must_use]
pub fn seen_by(role: Role, mut fights: Vec<Fight>) -> Vec<Fight> {
    if role == Role::Player {
        for combatants in fights.iter_mut().filter_map(|f| f.shown.get_mut("combatants")?.as_array_mut()) {
            combatants.retain(|c| c.get("hidden") != Some(&Value::Bool(true)));
        }
        let combatants = fights.iter_mut().filter_map(|f| f.shown.get_mut("combatants")?.as_array_mut());
        let foes = combatants.flatten().filter(|c| c.get("is_player") != Some(&Value::Bool(true)));
        for foe in foes.filter_map(Value::as_object_mut) {
            foe.remove("hp");
            foe.remove("max_hp");
        }
    }
    fights
}

/// `get_encounter`'s answer.
///
/// # Errors
/// `not_found` if there is no fight of this id.
pub fn answer(mut fights: Vec<Fight>, wanted: Option<&str>) -> Result<Value> {
    if let Some(id) = wanted {
        let found = fights.into_iter().find(|fight| fight.id == id);
        return found.map(|fight| fight.shown).ok_or_else(|| Error::not_found("encounter"));
    }
    Ok(match fights.len() {
        0 => json!({ "in_combat": false, "message": "No active encounter" }),
        1 => fights.remove(0).shown,
        several => {
            let shown: Vec<_> = fights.into_iter().map(|fight| fight.shown).collect();
            json!({ "in_combat": true, "active_count": several, "encounters": shown })
        }
    })
}
