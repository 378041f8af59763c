//! Open fights for a page: how they stand, and what the reader can do in them.

use rules::encounter::{Choice, Encounter, Verbosity};
use uuid::Uuid;

use super::{
    answers::FightShown,
    eyes::Eyes,
    service,
    stand::own_in,
    store::{self, Place, Stored},
};
use base::{
    error::{Error, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::{
    caller::{Caller, Scope},
    http::resource::Ref,
};

/// The most messages of a fight that its page shows.
const TOLD_MAX: i64 = 30;

/// An open fight as its reader may see it, and what the reader can do in it now.
pub struct OpenFight {
    pub id: Uuid,
    /// Rises with every change.
    pub version: i64,
    /// The number of actions so far.
    pub seq: i64,
    pub fight: FightShown,
    /// The ids of those whom only the game master knows of.
    pub hidden: Vec<String>,
    /// The participant that the reader acts for; none for players who do not take part.
    pub actor: Option<FightActor>,
}

/// A participant that the reader acts for.
pub struct FightActor {
    pub in_turn: bool,
    pub has_action: bool,
    pub has_bonus_action: bool,
    pub movement_left_ft: i32,
    pub choices: Vec<Choice>,
}

impl FightActor {
    /// A player acts for the own character, and everybody else who may play for whoever has the turn.
    fn of(it: &Encounter, caller: &Caller) -> Option<Self> {
        let current = it.current();
        let own = caller.player.map(|player| player.to_string());
        let actor = match &own {
            Some(own) => own_in(it, own)?,
            None => current.filter(|_| !caller.is_player() && caller.scopes.has(Scope::Play))?,
        };
        let eyes = Eyes::of(caller);
        if !eyes.sees_through(it, actor) {
            return None;
        }
        let economy = &actor.economy;
        Some(Self {
            in_turn: current.is_some_and(|current| current.id == actor.id),
            has_action: !economy.action || economy.attacks_left > 0,
            has_bonus_action: !economy.bonus_action,
            movement_left_ft: actor.movement_left(),
            choices: it.choices(&actor.id, |p| eyes.knows(it, p)),
        })
    }
}

impl OpenFight {
    fn of(it: &Stored, caller: &Caller) -> Self {
        let fight = service::fight_shown(it, Verbosity::Standard, Eyes::of(caller));
        let hidden = Eyes::of(caller).hidden(&it.now);
        Self { id: it.id, version: it.version, seq: it.seq, hidden, fight, actor: FightActor::of(&it.now, caller) }
    }
}

/// An encounter as the caller may see it, also one that has ended. One statement.
///
/// # Errors
/// `not_found`.
pub async fn seen_by(tx: &TenantTx, campaign: Uuid, id: &str, caller: &Caller) -> Result<OpenFight> {
    let place = Place { campaign: &Ref::Id(campaign), only: caller.campaign };
    let it = store::read(tx, place, id, false).await?;
    if it.hidden {
        return Err(Error::not_found("encounter"));
    }
    Ok(OpenFight::of(&it, caller))
}

/// A fight as it stands, whole, for those who decide who joins it. One statement.
///
/// # Errors
/// `not_found`.
pub async fn now(tx: &TenantTx, campaign: Uuid, id: &str, caller: &Caller) -> Result<Encounter> {
    let place = Place { campaign: &Ref::Id(campaign), only: caller.campaign };
    Ok(store::read(tx, place, id, false).await?.now)
}

/// What was told of a fight last, newest first, as far as the caller may read it. One statement.
///
/// # Errors
/// Database errors.
pub async fn told(tx: &TenantTx, fight: &OpenFight, caller: &Caller) -> Result<Vec<String>> {
    let rows = sqlx::query(
        "SELECT m.content FROM encounter_log l CROSS JOIN LATERAL unnest(l.told) WITH ORDINALITY AS t (id, nth) \
         JOIN message m ON m.tenant_id = $1 AND m.id = t.id \
         WHERE l.tenant_id = $1 AND l.encounter_id = $2 AND ($3 OR m.whisper_to = '[]') ORDER BY l.seq DESC, t.nth LIMIT $4",
    )
    .bind(tx.tenant())
    .bind(fight.id)
    .bind(caller.sees_secrets())
    .bind(TOLD_MAX)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    Ok(stored::each(&rows, |row| Ok(row.read_all::<(String,)>()?.0)))
}

/// The newest open fights as the caller may see them, newest first. One statement.
///
/// # Errors
/// Database errors.
pub async fn open_fights(tx: &TenantTx, campaign: Uuid, caller: &Caller, most: i64) -> Result<Vec<OpenFight>> {
    let rows = sqlx::query(store::ACTIVE)
        .bind(tx.tenant())
        .bind(campaign)
        .bind(most)
        .fetch_all(&mut *tx.connection().await)
        .await?;
    Ok(stored::each(&rows, |row| Ok(OpenFight::of(&Stored::of(row)?, caller))))
}
