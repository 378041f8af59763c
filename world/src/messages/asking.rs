//! Asking players for rolls at the table, and their answers.

use serde_json::{Value, json};

use super::{asked::Asked, service::NewMessage};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use entity::{
    CampaignId, CharacterId, MessageId,
    message::{Author, Type},
};

/// The message that asks for a roll. `who` has the names and ids of those who are asked; nobody means everybody.
#[must_use]
pub fn request(asked: &Asked, who: &[(String, CharacterId)]) -> NewMessage {
    let names: Vec<&str> = who.iter().map(|(name, _)| name.as_str()).collect();
    let whom = match names.as_slice() {
        [] => " everybody".to_owned(),
        [name] => format!(" {name}"),
        [first @ .., last] => format!(" {} and {last}", first.join(", ")),
    };
    NewMessage {
        kind: Type::System,
        roll: Some(json!({ "asked": asked })),
        whisper_to: who.iter().map(|(_, id)| id.0.to_string()).collect(),
        ..NewMessage::chat(Author::System, "", format!("The game master asks{whom} to roll: {}.", asked.words()))
    }
}

/// A roll's message as the answer to the message that asked for it.
#[must_use]
pub fn answering(mut roll: NewMessage, asked: MessageId) -> NewMessage {
    // What succeeds or fails without dice answers, too.
    if let Value::Object(members) = roll.roll.get_or_insert_with(|| json!({})) {
        members.insert("asked".to_owned(), json!(asked));
    }
    roll
}

/// A message that asks a player for a roll, locked until the transaction ends.
pub struct Asking {
    pub asked: Asked,
    /// Whether not everybody was asked. Then only the game master sees the roll.
    pub is_whisper: bool,
}

/// Finds what a message asks a player for, who has not rolled it yet. Two statements.
///
/// # Errors
/// `conflict` if nobody asks for it any more, or if the player has rolled it.
pub async fn asking(tx: &TenantTx, campaign: CampaignId, id: MessageId, player: CharacterId) -> Result<Asking> {
    let late = || Error::new(Code::Conflict, "Nobody asks you for this roll any more.");
    let row = sqlx::query(
        "SELECT roll, whisper_to <> '[]' FROM message WHERE tenant_id = $1 AND campaign_id = $2 AND id = $3 AND author = 'system' \
           AND (whisper_to = '[]' OR whisper_to @> to_jsonb($4::text)) FOR NO KEY UPDATE",
    )
    .bind(tx.tenant())
    .bind(campaign.0)
    .bind(id.0)
    .bind(player.0.to_string())
    .fetch_optional(&mut *tx.connection().await)
    .await?
    .ok_or_else(late)?;
    let (roll, is_whisper) = row.read_all::<(Option<Value>, bool)>()?;
    let asked = roll.as_ref().and_then(Asked::of_roll).ok_or_else(late)?;
    if answered(tx, player, &[id]).await?.is_empty() {
        return Ok(Asking { asked, is_whisper });
    }
    Err(Error::new(Code::Conflict, "You have rolled this already."))
}

/// Which of these messages a player has answered with a roll. One statement, or none if there are no ids.
///
/// # Errors
/// Database errors.
pub async fn answered(tx: &TenantTx, player: CharacterId, asked: &[MessageId]) -> Result<Vec<MessageId>> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(
        "SELECT DISTINCT roll ->> 'asked' FROM message WHERE tenant_id = $1 AND player_id = $2 \
           AND seq > (SELECT min(a.seq) FROM message a WHERE a.tenant_id = $1 AND a.id = ANY ($3)) AND roll ->> 'asked' = ANY ($3::text[])",
    )
    .bind(tx.tenant())
    .bind(player.0)
    .bind(asked.iter().map(|id| id.0).collect::<Vec<_>>())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let ids = rows.iter().filter_map(|row| row.read_all::<(String,)>().ok());
    Ok(ids.filter_map(|(id,)| id.parse().ok().map(MessageId)).collect())
}
