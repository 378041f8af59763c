//! Corrects what a message says.

use entity::{
    MessageId,
    message::{self, Author},
};

use super::Messages;
use base::{
    error::{Code, Error, Result},
    tokens,
};
use db::tenancy::{self, Origin};
use edge::{
    caller::Caller,
    http::{
        etag::Expected,
        resource::{Ref, hold},
    },
    state::Edge,
};

/// Changes a message's words. A transcript that contains it is rebuilt with them. If the message belongs to a turn, this is a change of the
/// turn, so that undoing the turn undoes it too.
///
/// # Errors
/// `conflict` for dice, and for the answer of an NPC or owner, whose text its turn has as well; `precondition_failed`, `not_found`.
pub async fn correct(
    app: &Edge,
    caller: &Caller,
    (campaign, id): (&Ref, MessageId),
    content: &str,
    expected: &Expected,
) -> Result<message::Model> {
    let words = tokens::count_apart(content.to_owned()).await?;
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        let it = hold::<Messages>(tx, caller, Some(campaign), &Ref::Id(id.0)).await?;
        expected.check(it.version)?;
        if let Some(turn) = it.turn_id.filter(|_| is_answer(&it)) {
            let detail = format!("This is the answer of a turn. Correct it with PATCH …/turns/{turn}.");
            return Err(Error::new(Code::Conflict, detail));
        }
        if it.roll.is_some() {
            let detail = "This message is about dice, which cannot be corrected. Delete it, and roll or ask again.";
            return Err(Error::new(Code::Conflict, detail));
        }
        if let Some(turn) = it.turn_id {
            tx.act_as(&caller.actor().in_turn(turn, Origin::Turn)).await?;
        }
        // Another attempt at the answer is made to these words.
        if let Some(turn) = it.turn_id.filter(|_| it.author == Author::Player) {
            sqlx::query("UPDATE turn SET action = $3 WHERE tenant_id = $1 AND id = $2")
                .bind(tx.tenant())
                .bind(turn)
                .bind(content)
                .execute(&mut *tx.connection().await)
                .await?;
        }
        let former = tokens::count_apart(it.content.clone()).await?;
        // Only messages of conversations have a number of tokens, which counts what stands around the words, too.
        sqlx::query(
            "UPDATE message SET content = $3, tokens = CASE tokens WHEN 0 THEN 0 ELSE greatest(tokens + $4, 1) END \
             WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tx.tenant())
        .bind(id.0)
        .bind(content)
        .bind(i32::try_from(i64::from(words) - i64::from(former)).unwrap_or_default())
        .execute(&mut *tx.connection().await)
        .await?;
        hold::<Messages>(tx, caller, Some(campaign), &Ref::Id(id.0)).await
    })
    .await
}

/// Whether a message of a turn is the answer of an NPC or owner.
#[must_use]
pub fn is_answer(message: &message::Model) -> bool {
    let is_entitys = message.entity_id.is_some() && message.entity_id != message.session_id;
    message.author == Author::Ai && is_entitys
}
