//! Decides about whom a tool may remember something.
//!
//! Memories about a player go into that player's prompts. So one player's turn must not be able to write what another
//! player will be told. In a turn, a tool can remember things about the turn's own player. It can do so about another
//! player only if the campaign's setting [`ABOUT_OTHERS`] allows it and that character is present: according to both
//! records, it is at the same location as the turn's player at that moment. A client that calls a tool outside of a
//! turn either names the player whose turn it belongs to, or may choose freely, like somebody who writes memories by
//! hand.
//!
//! [`Subject`] is the proof that this was checked: [`NewMemory`](super::service::NewMemory) needs one. To add another
//! way of being present, change `other`.

use edge::auth::player;
use serde_json::Value;
use uuid::Uuid;

use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::http::resource::{Ref, scope_key};

/// The campaign's setting that lets turns remember things about others who are present. Off unless it is true.
pub const ABOUT_OTHERS: &str = "memories_about_others";

/// The character that a memory may be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject(Uuid);

impl Subject {
    /// A subject chosen by a person or a program that writes memories itself.
    #[must_use]
    pub fn chosen(player: Uuid) -> Self {
        Self(player)
    }

    #[must_use]
    pub fn id(self) -> Uuid {
        self.0
    }
}

/// The player that a call belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The call is part of what this player does.
    To(Uuid),
    /// The call is not part of a turn, so its caller may choose.
    Free,
    /// The call is part of a turn without a player.
    Nobody,
}

/// The turn's own player, if `named` is their id or slug. Takes no statement.
#[must_use]
pub fn of_turn(player: Option<(Uuid, &str)>, named: &str) -> Option<Subject> {
    let (id, slug) = player?;
    let is_own = match Ref::parse(named) {
        Ref::Id(given) => given == id,
        Ref::Slug(given) => given == slug,
    };
    is_own.then_some(Subject(id))
}

/// The player that is named, if the call may remember things about them. Takes at most two statements.
///
/// # Errors
/// `validation_failed` for an unknown name, `forbidden` for a player about whom the turn may not remember anything.
pub async fn named(tx: &TenantTx, campaign: Uuid, bound: Bound, named: &str) -> Result<Subject> {
    let player = player::id(tx, campaign, named).await?;
    match bound {
        Bound::Free => Ok(Subject(player)),
        Bound::To(own) if own == player => Ok(Subject(player)),
        Bound::To(own) => other(tx, campaign, own, player).await,
        Bound::Nobody => {
            Err(Error::new(Code::Forbidden, "This turn has no player, so there is nobody to remember anything about."))
        }
    }
}

/// A player other than the turn's own.
async fn other(tx: &TenantTx, campaign: Uuid, own: Uuid, player: Uuid) -> Result<Subject> {
    let rows = sqlx::query(
        "SELECT p.id, p.slug, p.location, c.settings -> $4 AS allowed FROM character p \
         JOIN campaign c ON c.tenant_id = $1 AND c.id = p.campaign_id \
         WHERE p.tenant_id = $1 AND p.campaign_id = $2 AND p.id = ANY ($3)",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(&[own, player][..])
    .bind(ABOUT_OTHERS)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let mut people = Vec::with_capacity(rows.len());
    let mut is_allowed = false;
    for row in &rows {
        people.push((row.read::<Uuid>("id")?, row.read::<&str>("slug")?, row.read::<Option<&str>>("location")?));
        is_allowed |= row.read::<Option<Value>>("allowed")? == Some(Value::Bool(true));
    }
    let person = |wanted: Uuid| people.iter().find(|(id, ..)| *id == wanted);
    let place = |id: Uuid| person(id)?.2.map(scope_key).filter(|place| !place.is_empty());
    let name = person(own).map_or("its player", |(_, slug, _)| slug);
    if !is_allowed {
        return Err(refused(format!("In this turn you remember only about {name}.")));
    }
    match (place(own), place(player)) {
        (Some(here), Some(there)) if here == there => Ok(Subject(player)),
        _ => Err(refused(format!("In this turn you remember only about {name} and those who are present."))),
    }
}

fn refused(why: String) -> Error {
    Error::new(Code::Forbidden, why)
}
