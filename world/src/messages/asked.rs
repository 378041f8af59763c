//! Rolls that a game master asks for: a message of the table that each player who reads it can answer with one roll.

use rules::srd::{Ability, Advantage, SKILLS};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::service::NewMessage;
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use entity::{
    CampaignId, CharacterId, MessageId,
    message::{Author, Type},
};

/// What a game master asks players to roll, as the message has it in `roll.asked`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// `ability`, `skill` or `save`, and after a space the name of the ability or skill.
    pub of: String,
    #[serde(default, skip_serializing_if = "is_none")]
    pub advantage: Advantage,
    /// The difficulty, if it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dc: Option<i32>,
}

fn is_none(advantage: &Advantage) -> bool {
    *advantage == Advantage::None
}

/// A message's `roll` that asks for one.
#[derive(Serialize, Deserialize)]
struct AskingRoll {
    asked: Asked,
}

/// The highest difficulty. The rules know none above 30.
const DC_MAX: i32 = 100;

impl Asked {
    /// What a message asks for, if it does. Clients write what they like into a message.
    #[must_use]
    pub fn of_roll(roll: &Value) -> Option<Self> {
        let AskingRoll { asked } = AskingRoll::deserialize(roll).ok()?;
        asked.what().map(|_| asked)
    }

    /// Checks what a form asks for.
    ///
    /// # Errors
    /// `validation_failed`.
    pub fn checked(self) -> Result<Self> {
        if self.what().is_none() {
            return Err(Error::invalid("/of", "invalid_value", "Choose an ability, a skill or a saving throw."));
        }
        if self.dc.is_some_and(|dc| !(0..=DC_MAX).contains(&dc)) {
            return Err(Error::invalid("/dc", "invalid_value", format!("Write a difficulty from 0 to {DC_MAX}.")));
        }
        Ok(self)
    }

    /// The kind of roll, and the name of the ability or skill.
    #[must_use]
    pub fn parts(&self) -> (&str, &str) {
        self.of.split_once(' ').unwrap_or((&self.of, ""))
    }

    /// What is rolled, in words: `Stealth check`. None if there is no such thing.
    fn what(&self) -> Option<String> {
        match self.parts() {
            ("skill", name) => {
                SKILLS.iter().find(|skill| skill.name == name).map(|skill| format!("{} check", skill.name))
            }
            ("ability", name) => Ability::named(name).map(|ability| format!("{} check", ability.title())),
            ("save", name) => Ability::named(name).map(|ability| format!("{} saving throw", ability.title())),
            _ => None,
        }
    }

    /// The message that asks. `who` has the names and ids of those who are asked; nobody means everybody.
    #[must_use]
    pub fn message(&self, who: &[(String, CharacterId)]) -> NewMessage {
        let names: Vec<&str> = who.iter().map(|(name, _)| name.as_str()).collect();
        let whom = match names.as_slice() {
            [] => String::new(),
            [name] => format!(" {name}"),
            [first @ .., last] => format!(" {} and {last}", first.join(", ")),
        };
        NewMessage {
            kind: Type::System,
            roll: Some(json!({ "asked": self })),
            whisper_to: who.iter().map(|(_, id)| id.0.to_string()).collect(),
            ..NewMessage::chat(Author::System, "", format!("The game master asks{whom} for a {}.", self.words()))
        }
    }

    /// What the result of this roll means, if its difficulty was told: `success by 2 against 15`.
    #[must_use]
    pub fn outcome(&self, total: i32, success: bool) -> Option<String> {
        let dc = self.dc?;
        let result = if success { "success" } else { "failure" };
        Some(match total.abs_diff(dc) {
            0 => format!("{result} against {dc}"),
            by => format!("{result} by {by} against {dc}"),
        })
    }

    /// What is rolled and how, in words: `Stealth check with advantage against 15`.
    #[must_use]
    pub fn words(&self) -> String {
        let with = match self.advantage {
            Advantage::None => "",
            Advantage::Advantage => " with advantage",
            Advantage::Disadvantage => " with disadvantage",
        };
        let against = self.dc.map(|dc| format!(" against {dc}")).unwrap_or_default();
        format!("{}{with}{against}", self.what().unwrap_or_default())
    }
}

/// A roll that answers a message: the message's id beside the roll.
#[derive(Deserialize)]
struct AnsweringRoll {
    asked: MessageId,
}

/// The message that a roll answers, if it does.
#[must_use]
pub fn answered_by(roll: &Value) -> Option<MessageId> {
    AnsweringRoll::deserialize(roll).ok().map(|roll| roll.asked)
}

/// A roll's message as the answer to the message that asked for it.
#[must_use]
pub fn answering(mut roll: NewMessage, asked: MessageId) -> NewMessage {
    if let Some(Value::Object(members)) = &mut roll.roll {
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
    if answered(tx, player, &[id.0]).await?.is_empty() {
        return Ok(Asking { asked, is_whisper });
    }
    Err(Error::new(Code::Conflict, "You have rolled this already."))
}

/// Which of these messages a player has answered with a roll. One statement, or none if there are no ids.
///
/// # Errors
/// Database errors.
pub async fn answered(tx: &TenantTx, player: CharacterId, asked: &[uuid::Uuid]) -> Result<Vec<MessageId>> {
    let Some(first) = asked.iter().min() else { return Ok(Vec::new()) };
    let rows = sqlx::query(
        "SELECT DISTINCT roll ->> 'asked' FROM message WHERE tenant_id = $1 AND player_id = $2 AND id > $3 AND type = 'roll' \
           AND roll ->> 'asked' = ANY ($4)",
    )
    .bind(tx.tenant())
    .bind(player.0)
    .bind(first)
    .bind(asked.iter().map(ToString::to_string).collect::<Vec<_>>())
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let ids = rows.iter().filter_map(|row| row.read_all::<(String,)>().ok());
    Ok(ids.filter_map(|(id,)| id.parse().ok().map(MessageId)).collect())
}
