//! What a player said at the table, as the question that an NPC or owner answers: the message becomes part of their conversation, and is not
//! written again. Undoing the turn takes it out of the conversation and leaves it.

use entity::{CampaignId, CharacterId, MessageId};
use uuid::Uuid;

use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::{Actor, TenantTx};

/// The words of a message that nobody has answered.
///
/// # Errors
/// `validation_failed` with `unknown_reference` at `/message_id` unless this player said it to everybody; `conflict` if it has been answered.
pub async fn words(tx: &TenantTx, campaign: CampaignId, id: MessageId, player: CharacterId) -> Result<String> {
    let row = sqlx::query(
        "SELECT content, turn_id FROM message WHERE tenant_id = $1 AND campaign_id = $2 AND id = $3 AND player_id = $4 \
           AND author = 'player' AND type = 'chat' AND whisper_to = '[]'",
    )
    .bind(tx.tenant())
    .bind(campaign.0)
    .bind(id.0)
    .bind(player.0)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    let unknown =
        || Error::invalid("/message_id", "unknown_reference", "This player has not said such a message to everybody.");
    match row.ok_or_else(unknown)?.read_all::<(String, Option<Uuid>)>()? {
        (words, None) => Ok(words),
        (_, Some(turn)) => Err(Error::new(Code::Conflict, format!("Turn {turn} has answered this message."))),
    }
}

/// Takes a message into the conversation with an NPC or owner, for the turn that acts.
///
/// # Errors
/// `conflict` if another turn has answered it, or if it was struck meanwhile.
pub async fn take(tx: &TenantTx, id: MessageId, turn: &Actor, entity: Uuid) -> Result<()> {
    let taken = sqlx::query(
        "UPDATE message SET turn_id = $3, entity_id = $4 WHERE tenant_id = $1 AND id = $2 AND (turn_id IS NULL OR turn_id = $3)",
    )
    .bind(tx.tenant())
    .bind(id.0)
    .bind(turn.turn)
    .bind(entity)
    .execute(&mut *tx.connection().await)
    .await?;
    match taken.rows_affected() {
        0 => Err(Error::new(Code::Conflict, "This message has been answered or struck in the meantime.")),
        _ => Ok(()),
    }
}
