//! Who is dead or unconscious outside of a fight. They neither talk nor act, unless a fight that goes on decides about them.
//!
//! What counts is the stored row: what a commit, a client or a tool wrote. `npc_fallen` and `character_fallen` in `sql/world.sql` say the same,
//! for statements that read the row anyway.

use entity::{
    character, npc,
    shapes::{Condition, Extensions},
};
use rules::{
    sheet::{self, Creature, Life},
    srd::same,
};
use uuid::Uuid;

use crate::{encounters::stand::FIGHT_OF_CHARACTER, rules::sheet::condition, significance::scores::DEAD_SPEAK};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// How somebody is who neither talks nor acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallen {
    Dead,
    /// Unconscious, dying or stable.
    Unconscious,
}

impl Fallen {
    /// How an NPC is. None if it is awake.
    #[must_use]
    pub fn of_npc(npc: &npc::Model) -> Option<Self> {
        let stats = &npc.stats.0;
        Self::of(&Creature {
            is_npc: true,
            hp: stats.hp,
            max_hp: stats.max_hp,
            conditions: conditions(&npc.conditions.0),
            ..Creature::default()
        })
    }

    /// How a character is. None if it is awake.
    #[must_use]
    pub fn of_character(who: &character::Model) -> Option<Self> {
        let death_saves =
            sheet::DeathSaves { successes: who.death_saves.successes, failures: who.death_saves.failures };
        let conditions = conditions(&who.conditions.0);
        Self::of(&Creature { hp: who.hp, max_hp: who.max_hp, death_saves, conditions, ..Creature::default() })
    }

    /// Without maximum hit points nobody dies: such a sheet is for talking alone.
    fn of(creature: &Creature) -> Option<Self> {
        let is_unconscious = creature.conditions.iter().any(|condition| same(&condition.name, "unconscious"));
        match creature.life() {
            _ if creature.max_hp <= 0 => is_unconscious.then_some(Self::Unconscious),
            Life::Dead => Some(Self::Dead),
            Life::Alive => is_unconscious.then_some(Self::Unconscious),
            Life::Dying | Life::Stable => Some(Self::Unconscious),
        }
    }

    /// Whether a campaign lets them talk and act all the same: the dead, if its settings say so.
    #[must_use]
    pub fn may_speak(self, settings: &Extensions) -> bool {
        self == Self::Dead && settings.get(DEAD_SPEAK).is_some_and(|speak| *speak == true)
    }

    /// `dead` or `unconscious`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Unconscious => "unconscious",
        }
    }

    /// The refusal of what they cannot do, such as `does not answer`.
    #[must_use]
    pub fn refusal(self, name: &str, what: &str) -> Error {
        let code = if self == Self::Dead { Code::Dead } else { Code::Unconscious };
        Error::new(code, format!("{name} is {} and {what}.", self.as_str()))
    }

    fn named(word: &str) -> Option<Self> {
        [Self::Dead, Self::Unconscious].into_iter().find(|fallen| fallen.as_str() == word)
    }
}

fn conditions(stored: &[Condition]) -> Vec<sheet::Condition> {
    stored.iter().cloned().map(condition).collect()
}

/// What characters cannot do who are dead or unconscious.
pub const NEITHER: &str = "can neither talk nor act";

/// Checks that a character can talk and act. No statement for one that is awake.
///
/// # Errors
/// `dead`, `unconscious`.
pub async fn check(tx: &TenantTx, who: &character::Model) -> Result<()> {
    match Fallen::of_character(who) {
        None => Ok(()),
        Some(_) => check_fallen(tx, who.id.0).await,
    }
}

/// The same for a character that a statement has found to be dead or unconscious: what an active fight accepts is the fight's own decision, and a
/// campaign can let the dead speak. One statement.
///
/// # Errors
/// `dead`, `unconscious`.
pub async fn check_fallen(tx: &TenantTx, who: Uuid) -> Result<()> {
    let sql = format!(
        "SELECT name, character_fallen(hp, max_hp, death_saves, conditions) AS fallen, {FIGHT_OF_CHARACTER} AS fight, \
           (SELECT c.settings FROM campaign c WHERE c.tenant_id = $1 AND c.id = character.campaign_id) AS settings \
         FROM character WHERE tenant_id = $1 AND id = $2"
    );
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(who)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    let Some(row) = row else { return Ok(()) };
    let Some(fallen) = row.read::<Option<&str>>("fallen")?.and_then(Fallen::named) else { return Ok(()) };
    let fights = row.read::<Option<Uuid>>("fight")?.is_some();
    if fights || fallen.may_speak(&row.read_json::<Extensions>("settings")?) {
        return Ok(());
    }
    Err(fallen.refusal(row.read("name")?, NEITHER))
}
