//! Reads and stores the world as a frontend reports it.

use serde_json::Value;
use uuid::Uuid;

use super::{
    events,
    service::{self, Dirty},
    world_state::WorldState,
};
use base::error::{Error, Result};
use db::tenancy::TenantTx;
use edge::http::bounds;

/// Checks a world state that a frontend sent. `at` is the pointer to it in the request.
///
/// # Errors
/// `validation_failed`.
pub fn read_world(mut value: Value, at: &str) -> Result<WorldState> {
    if !value.is_object() {
        return Err(Error::invalid(at, "invalid_value", "must be an object"));
    }
    bounds::check::<WorldState>(&value).map_err(|error| error.below(at))?;
    super::input::put_names_on_one_line(&mut value);
    let state: WorldState = super::input::read(value, at)?;
    state.check(at)?;
    events::too_large(&state)?;
    Ok(state)
}

/// Stores the state. What moved since the previous one becomes part of the next delta.
///
/// # Errors
/// Those of the database.
pub async fn take_world(tx: &TenantTx, session: Uuid, state: WorldState) -> Result<()> {
    let mut known = service::reported_world(tx, session, true).await?;
    let dirty = Dirty { world: true, combat: state.active_encounter.is_some() };
    let piece = service::take_world(&mut known, state);
    service::keep(tx, session, &known, dirty, &[piece]).await
}
