//! Asks the database about turns of other servers, for everybody on this server who waits: which places have become free, and what
//! news followed turns have. However many wait, this takes one statement of each kind per beat, and none while nobody waits. News
//! of this server's own turns come from memory, through [`Running`](super::running::Running).

use std::time::Duration;

use tokio::time::sleep;

use super::running::{Followed, Spot};
use crate::state::Ai;
use base::{error::Result, stored::Columns};

/// How often to ask.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Asks for ever.
pub async fn look(app: &Ai) {
    loop {
        let spots = app.running.waited_for_elsewhere();
        let turns = app.running.followed_elsewhere();
        if spots.is_empty() && turns.is_empty() {
            app.running.somebody_waits().await;
        } else if let Err(error) = once(app, &spots, &turns).await {
            tracing::warn!(%error, "could not ask about turns of other servers");
        }
        sleep(LOOK_EVERY).await;
    }
}

async fn once(app: &Ai, spots: &[Spot], turns: &[Followed]) -> Result<()> {
    if !spots.is_empty() {
        let rows = sqlx::query("SELECT * FROM free_places($1, $2, $3)")
            .bind(spots.iter().map(|spot| spot.tenant).collect::<Vec<_>>())
            .bind(spots.iter().map(|spot| spot.entity).collect::<Vec<_>>())
            .bind(spots.iter().map(|spot| spot.player).collect::<Vec<_>>())
            .fetch_all(&mut *app.pool.acquire().await?)
            .await?;
        for row in &rows {
            let spot =
                Spot { tenant: row.read("tenant_id")?, entity: row.read("entity_id")?, player: row.read("player_id")? };
            app.running.places.wake(&spot);
        }
    }
    if !turns.is_empty() {
        let rows = sqlx::query("SELECT * FROM turns_told($1, $2)")
            .bind(turns.iter().map(|turn| turn.0).collect::<Vec<_>>())
            .bind(turns.iter().map(|turn| turn.1).collect::<Vec<_>>())
            .fetch_all(&mut *app.pool.acquire().await?)
            .await?;
        for row in &rows {
            app.running.followed.tell(&(row.read("tenant_id")?, row.read("turn_id")?), row.read("told")?);
        }
    }
    Ok(())
}
