//! About whom a tool may remember.
//!
//! What is remembered about a player stands in that player's prompts, so a turn of one must not write what another is told. A tool
//! of a turn remembers about the turn's player. About another only if the campaign's setting [`ABOUT_OTHERS`] allows it and
//! that character is present: in the same location as the turn's player, as both records say at that moment. Who calls a tool
//! outside of a turn says whose turn it is part of, or chooses freely, as one who writes memories by hand does.
//!
//! [`Subject`] is the proof: a memory is written with one, and tools have no other way to get it than [`of_turn`]. To add a
//! way of being present: in `other`.

use serde_json::Value;
use uuid::Uuid;

use crate::{
    characters,
    error::{Code, Error, Result},
    http::resource::{Ref, scope_key},
    stored::Columns,
    tenancy::TenantTx,
};

/// The campaign's setting that lets turns remember about those who are present; off unless it is true.
pub const ABOUT_OTHERS: &str = "memories_about_others";

/// The character that a memory may be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject(Uuid);

impl Subject {
    /// Chosen by a person, or a program, that writes memories itself.
    #[must_use]
    pub fn chosen(player: Uuid) -> Self {
        Self(player)
    }

    #[must_use]
    pub fn id(self) -> Uuid {
        self.0
    }
}

/// To whom a call is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// It is part of what this player does.
    To(Uuid),
    /// It is nobody's turn, and its caller chooses.
    Free,
    /// It is part of a turn of no player's.
    Nobody,
}

/// The turn's own player, if that is who is named, by id or slug. No statement.
#[must_use]
pub fn of_turn(player: Option<(Uuid, &str)>, named: &str) -> Option<Subject> {
    let (id, slug) = player?;
    let is_own = match Ref::parse(named) {
        Ref::Id(given) => given == id,
        Ref::Slug(given) => given == slug,
    };
    is_own.then_some(Subject(id))
}

/// Anybody who is named, if the call may remember about them. Two statements at most.
///
/// # Errors
/// `validation_failed` for a name that is none, `forbidden` for one the turn may not remember about.
pub async fn named(tx: &TenantTx, campaign: Uuid, bound: Bound, named: &str) -> Result<Subject> {
    let player = characters::service::player_id(tx, campaign, named).await?;
    match bound {
        Bound::Free => Ok(Subject(player)),
        Bound::To(own) if own == player => Ok(Subject(player)),
        Bound::To(own) => other(tx, campaign, own, player).await,
        Bound::Nobody => Err(Error::new(Code::Forbidden, "This is no player's turn: there is nobody to remember.")),
    }
}

/// Somebody else than the turn's player.
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
