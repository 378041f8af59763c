//! The slugs and ids of a campaign's characters, NPCs and owners. Documents name rows by slug.

use std::collections::HashMap;

use uuid::Uuid;

use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use edge::http::resource::Place;

/// The largest number of actors in memory. A campaign with more cannot be exported, and no file that names actors can
/// be imported into it.
const ACTORS_MAX: usize = 200_000;

/// The actors of a campaign.
#[derive(Debug, Default)]
pub struct Names {
    by_slug: HashMap<String, (Uuid, char)>,
    by_id: HashMap<Uuid, String>,
}

impl Names {
    /// Reads the actors in one statement.
    ///
    /// # Errors
    /// `payload_too_large` if there are too many. If some were left out, references to them would silently be lost.
    pub async fn load(place: &Place<'_>) -> Result<Self> {
        let rows = sqlx::query(
            "SELECT slug, kind, actor_id FROM actor_slug WHERE tenant_id = $1 AND campaign_id = $2 LIMIT $3",
        )
        .bind(place.tx.tenant())
        .bind(place.campaign)
        .bind(ACTORS_MAX as i64 + 1)
        .fetch_all(&mut *place.tx.connection().await)
        .await?;
        if rows.len() > ACTORS_MAX {
            let detail = format!(
                "This campaign has more than {ACTORS_MAX} characters, NPCs and owners. That is too many for import and export."
            );
            return Err(Error::new(Code::PayloadTooLarge, detail));
        }
        let mut names = Self::default();
        for row in rows {
            let (slug, id): (String, Uuid) = (row.read("slug")?, row.read("actor_id")?);
            let kind = row.read::<&str>("kind")?.chars().next().unwrap_or_default();
            names.by_id.insert(id, slug.clone());
            names.by_slug.insert(slug, (id, kind));
        }
        Ok(names)
    }

    /// The id that belongs to a slug.
    #[must_use]
    pub fn id(&self, slug: &str) -> Option<Uuid> {
        self.by_slug.get(slug).map(|(id, _)| *id)
    }

    fn of_kind(&self, slug: &str, wanted: char) -> Option<Uuid> {
        self.by_slug.get(slug).filter(|(_, kind)| *kind == wanted).map(|(id, _)| *id)
    }

    /// The id of an owner, by slug.
    #[must_use]
    pub fn owner(&self, slug: &str) -> Option<Uuid> {
        self.of_kind(slug, 'o')
    }

    /// The id of an NPC, by slug.
    #[must_use]
    pub fn npc(&self, slug: &str) -> Option<Uuid> {
        self.of_kind(slug, 'n')
    }

    /// The id of a player character, by slug.
    #[must_use]
    pub fn character(&self, slug: &str) -> Option<Uuid> {
        self.of_kind(slug, 'c')
    }

    /// The slug that belongs to an id, given as text.
    #[must_use]
    pub fn slug_of(&self, id: &str) -> Option<&str> {
        self.of(Uuid::try_parse(id).ok()?)
    }

    /// The slug that belongs to an id.
    #[must_use]
    pub fn of(&self, id: Uuid) -> Option<&str> {
        self.by_id.get(&id).map(String::as_str)
    }
}
