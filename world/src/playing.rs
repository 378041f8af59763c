//! A session in use: whom its AI plays, where, and with whose dice.

use entity::session::{Dice, Role};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;

/// A session in use.
#[derive(Clone, Debug)]
pub struct Playing {
    pub id: Uuid,
    pub campaign: Uuid,
    pub client_id: String,
    /// The session's own role, or another one for a single turn.
    pub role: Role,
    pub dice: Dice,
    pub player: Option<Uuid>,
    /// The session's own scene, if it has one.
    pub scene: Option<Uuid>,
    player_name: Option<String>,
}

impl Playing {
    pub fn of_row(row: &PgRow, campaign: Uuid, id: Uuid) -> Result<Self> {
        let role = match row.read::<&str>("role")? {
            "assistant" => Role::Assistant,
            "player" => Role::Player,
            _ => Role::Gm,
        };
        Ok(Self {
            id,
            campaign,
            client_id: row.read("client_id")?,
            role,
            dice: if row.read::<&str>("dice")? == "frontend" { Dice::Frontend } else { Dice::Server },
            player: row.read("player_id")?,
            scene: row.read("scene_id")?,
            player_name: row.read("player_name")?,
        })
    }

    /// The AI's role and, if it plays a character, that character. Each of these has its own conversation and cursor, so that a
    /// player's AI never sees the game master's. The same as the database's `told_as`.
    #[must_use]
    pub fn conversation_key(&self) -> String {
        match (self.role, self.player) {
            (Role::Gm, _) => "gm".to_owned(),
            (Role::Assistant, _) => "assistant".to_owned(),
            (Role::Player, player) => format!("player:{}", player.map(|id| id.to_string()).unwrap_or_default()),
        }
    }

    /// The AI's name at the table.
    #[must_use]
    pub fn speaker(&self) -> &str {
        match (self.role, &self.player_name) {
            (Role::Player, Some(name)) => name,
            (Role::Player, None) => "Player",
            (Role::Assistant, _) => "GM's Assistant",
            (Role::Gm, _) => "Game Master",
        }
    }

    /// The reader for whom the AI may read messages.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader { role: self.role, player: self.player }
    }
}

/// A session of a campaign.
///
/// # Errors
/// `not_found`.
pub async fn playing(tx: &TenantTx, campaign: Uuid, id: Uuid) -> Result<Playing> {
    let row = sqlx::query(
        "SELECT s.client_id, s.role, s.dice, s.player_id, s.scene_id, c.name AS player_name FROM session s \
         LEFT JOIN character c ON c.tenant_id = $1 AND c.id = s.player_id \
         WHERE s.tenant_id = $1 AND s.campaign_id = $2 AND s.id = $3",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(id)
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(|| Error::not_found("session"))?;
    Playing::of_row(&row, campaign, id)
}

/// The same for a session from a request's body.
///
/// # Errors
/// `validation_failed` with `unknown_reference` at `/session_id`.
pub async fn named(tx: &TenantTx, campaign: Uuid, id: Uuid) -> Result<Playing> {
    playing(tx, campaign, id).await.map_err(|e| match e.code.status() {
        404 => Error::invalid("/session_id", "unknown_reference", "There is no such session in this campaign."),
        _ => e,
    })
}

/// For whom messages are read.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    pub role: Role,
    /// The character, for a player's AI.
    pub player: Option<Uuid>,
}

impl Reader {
    /// The game master.
    pub const GM: Self = Self { role: Role::Gm, player: None };

    /// A SQL condition: whether this reader may see a message. `field` returns the expression for a column, as text, or
    /// as jsonb for `whisper_to`. The character is the parameter `player`.
    #[must_use]
    pub fn sees(self, field: impl Fn(&str) -> String, player: &str) -> String {
        let (whisper, blind, author) = (field("whisper_to"), field("blind"), field("author"));
        match self.role {
            // The result of a blind roll is visible to the game master; whispers between players are not.
            Role::Gm | Role::Assistant => format!(
                "({whisper} = '[]' OR {whisper} @> '\"gm\"' OR {blind}::boolean OR {author} IN ('gm', 'ai') \
                  OR {}::uuid = {player}::uuid)",
                field("player_id")
            ),
            Role::Player => format!(
                "(NOT {blind}::boolean AND ({whisper} = '[]' OR {whisper} @> to_jsonb({player}::text) \
                  OR {}::uuid = {player}::uuid))",
                field("player_id")
            ),
        }
    }
}
