//! An owner acts only inside its domain: the NPCs that list it in `owner_ids`, the location, race, profession or
//! faction that it watches over, and players who are at its location or have its race, profession or faction. Names are compared
//! like the names of lore scopes.
//!
//! Every tool with which an owner changes something else asks this module. Memories need no check: an owner remembers
//! for itself, and tells only the NPCs that list it.

use entity::{
    character, npc,
    owner::{self, Aspect},
};
use sea_orm::{
    EntityTrait, QueryFilter, QuerySelect,
    sea_query::{ExprTrait, LockType},
};
use uuid::Uuid;

use crate::actors;
use base::error::{Code, Error, Result};
use db::tenancy::TenantTx;
use edge::http::resource::{Ref, col, scope_key};

/// An owner, and what it may act on.
pub struct Domain {
    pub owner: owner::Model,
}

impl Domain {
    /// The domain of an owner. The owner's row stays locked. One statement.
    ///
    /// # Errors
    /// `not_found`; database errors.
    pub async fn of(tx: &TenantTx, campaign: Uuid, owner: Uuid) -> Result<Self> {
        let select = owner::Entity::find()
            .filter(col("tenant_id").eq(tx.tenant()))
            .filter(col("campaign_id").eq(campaign))
            .filter(col("id").eq(owner))
            .lock(LockType::NoKeyUpdate);
        Ok(Self { owner: select.one(tx).await?.ok_or_else(|| Error::not_found("owner"))? })
    }

    /// Finds an NPC of the domain by id or slug. Its row stays locked. One statement.
    ///
    /// # Errors
    /// `validation_failed` at `pointer` for an unknown name, `not_in_domain`.
    pub async fn npc(&self, tx: &TenantTx, name: &str, pointer: &str) -> Result<npc::Model> {
        let npc = find_npc(tx, self.owner.campaign_id.0, name)
            .await?
            .ok_or_else(|| Error::invalid(pointer, "unknown_reference", "There is no such NPC in this campaign."))?;
        self.holds(&npc)?;
        Ok(npc)
    }

    /// [`Domain::npc`], to be changed.
    ///
    /// # Errors
    /// Those of [`Domain::npc`], and `locked`.
    pub async fn npc_to_change(&self, tx: &TenantTx, name: &str, pointer: &str) -> Result<npc::Model> {
        let npc = self.npc(tx, name, pointer).await?;
        if npc.ai_lock { Err(actors::locked(&npc.name)) } else { Ok(npc) }
    }

    /// Checks that an NPC is in the domain.
    ///
    /// # Errors
    /// `not_in_domain`.
    pub fn holds(&self, npc: &npc::Model) -> Result<()> {
        if npc.owner_ids.contains(&self.owner.id.0) {
            return Ok(());
        }
        Err(outside(format!("{} does not list you among its owners.", npc.name)))
    }

    /// Finds a player character of the domain by id or slug. Its row stays locked. One statement.
    ///
    /// # Errors
    /// `validation_failed` at `pointer` for an unknown name, `not_in_domain`.
    pub async fn player(&self, tx: &TenantTx, name: &str, pointer: &str) -> Result<character::Model> {
        let player = find_player(tx, self.owner.campaign_id.0, name).await?.ok_or_else(|| {
            Error::invalid(pointer, "unknown_reference", "There is no such character in this campaign.")
        })?;
        self.reaches(&player)?;
        Ok(player)
    }

    /// Checks that a player character is at the location that the owner watches over, or has the race, profession or faction.
    ///
    /// # Errors
    /// `not_in_domain`.
    pub fn reaches(&self, player: &character::Model) -> Result<()> {
        let (what, own) = match self.owner.monitored_aspect {
            Aspect::Location => ("at your location", player.location.as_deref().unwrap_or_default()),
            Aspect::Race => ("of your race", player.race.as_str()),
            Aspect::Profession => ("of your profession", player.profession.as_str()),
            Aspect::Faction => ("of your faction", player.faction.as_deref().unwrap_or_default()),
        };
        if !own.trim().is_empty() && scope_key(own) == self.owner.associated_key {
            return Ok(());
        }
        Err(outside(format!("{} is not {what}, {}.", player.name, self.owner.associated_id)))
    }

    /// The keys of those whom an event concerns: at a place, or in the whole domain. The owner is always one of them.
    #[must_use]
    pub fn audience(&self, place: Option<&str>) -> Vec<String> {
        let concerned = match place {
            Some(place) => at_place(place),
            None => format!("{}:{}", self.owner.monitored_aspect.scope().as_str(), self.owner.associated_key),
        };
        vec![concerned, self.owner.id.0.to_string()]
    }

    /// Checks that a location is in the domain. It must be the location that the owner watches over. If the owner
    /// watches over something else, it must be the location of one of its NPCs, which takes one statement.
    ///
    /// # Errors
    /// `not_in_domain`.
    pub async fn covers(&self, tx: &TenantTx, place: &str) -> Result<()> {
        let key = scope_key(place);
        if self.owner.monitored_aspect == Aspect::Location {
            return if key == self.owner.associated_key {
                Ok(())
            } else {
                Err(outside(format!("You watch over {} only.", self.owner.associated_id)))
            };
        }
        let places = sqlx::query_scalar::<_, String>(
            "SELECT DISTINCT n.location FROM npc_owner o JOIN npc n ON n.tenant_id = o.tenant_id AND n.id = o.npc_id \
             WHERE o.tenant_id = $1 AND o.owner_id = $2 AND n.location IS NOT NULL LIMIT 1000",
        )
        .bind(tx.tenant())
        .bind(self.owner.id.0)
        .fetch_all(&mut *tx.connection().await)
        .await?;
        if places.iter().any(|known| scope_key(known) == key) {
            return Ok(());
        }
        Err(outside("None of the NPCs that answer to you is at that location.".to_owned()))
    }
}

/// An NPC by id or slug. Its row stays locked. One statement.
///
/// # Errors
/// Database errors.
pub async fn find_npc(tx: &TenantTx, campaign: Uuid, name: &str) -> Result<Option<npc::Model>> {
    let select = npc::Entity::find()
        .filter(col("tenant_id").eq(tx.tenant()))
        .filter(col("campaign_id").eq(campaign))
        .filter(named(name))
        .lock(LockType::NoKeyUpdate);
    Ok(select.one(tx).await?)
}

/// A player character by id or slug. Its row stays locked. One statement.
///
/// # Errors
/// Database errors.
pub async fn find_player(tx: &TenantTx, campaign: Uuid, name: &str) -> Result<Option<character::Model>> {
    let select = character::Entity::find()
        .filter(col("tenant_id").eq(tx.tenant()))
        .filter(col("campaign_id").eq(campaign))
        .filter(named(name))
        .lock(LockType::NoKeyUpdate);
    Ok(select.one(tx).await?)
}

fn named(name: &str) -> sea_orm::sea_query::Expr {
    match Ref::parse(name) {
        Ref::Id(id) => col("id").eq(id),
        Ref::Slug(slug) => col("slug").eq(slug),
    }
}

/// The key of everybody at a place.
#[must_use]
pub fn at_place(place: &str) -> String {
    format!("place:{}", scope_key(place))
}

fn outside(why: String) -> Error {
    Error::new(Code::NotInDomain, why)
}
