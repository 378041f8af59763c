//! A stored answer, what stands in the way of trying it again, and how its effects leave the world for another attempt.

use serde_json::Value;
use sqlx::{AssertSqlSafe, postgres::PgRow};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::turns::{
    job::{Job, Way},
    store::{
        ENTITY_BUSY,
        revert::{Pace, revert},
    },
};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::{Actor, Origin, TenantTx};
use edge::{caller::Caller, http::idempotency::IdempotencyKey};
use entity::{MessageId, kind::EntityKind};
use llm::ReplyMode;
use world::edits::{self, Conflict};

/// The most effects of a turn that is set aside.
pub(super) const EFFECTS_MAX: i32 = 1000;

/// Whether to lock the turn that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    Yes,
    No,
}

/// A turn whose answer is the last of a conversation.
pub(super) struct Answer {
    pub id: Uuid,
    parent: Option<Uuid>,
    kind: EntityKind,
    pub entity: Uuid,
    pub player: Uuid,
    pub action: String,
    /// The rules turn whose outcome it tells. Only [`Answer::find`] reads this member and the last two.
    mechanics: Option<Uuid>,
    pub mode: ReplyMode,
    /// Whether no player said what it answers.
    pub is_unprompted: bool,
    /// The message that it answers, if the player had said that before the turn began.
    question: Option<MessageId>,
}

/// The columns of `turn t` that [`Answer::of_row`] reads, and `chosen` and `awaits`.
pub(super) const COLUMNS: &str = "t.id, t.kind, t.entity_id, t.player_id, t.action, t.status, t.undone_at, t.chosen, t.awaits, \
    t.parent_turn_id, t.reply_mode, t.revert_as, turn_is_unheard(t.tenant_id, t.id) AS is_unheard";

impl Answer {
    /// The answer, if it can be tried again or go on: it is the last one of its conversation, chosen, and not undone.
    ///
    /// # Errors
    /// `not_found`; `conflict` with what stands in the way.
    pub(super) async fn find(tx: &TenantTx, caller: &Caller, campaign: Uuid, turn: Uuid, lock: Lock) -> Result<Self> {
        let sql = format!(
            "SELECT {COLUMNS}, t.record #>> '{{view,mechanics,turn_id}}' AS mechanics, \
                    EXISTS (SELECT FROM message m WHERE m.tenant_id = $1 AND m.player_id = t.player_id AND m.entity_id = t.entity_id \
                            AND m.turn_id = t.id AND m.author = 'system') AS is_unprompted, \
                    (SELECT m.id FROM message m WHERE m.tenant_id = $1 AND m.player_id = t.player_id AND m.entity_id = t.entity_id \
                       AND m.turn_id = t.id AND m.author = 'player' AND NOT EXISTS (SELECT FROM journal j WHERE j.tenant_id = $1 \
                         AND j.turn_id = t.id AND j.table_name = 'message' AND j.row_id = m.id AND j.op = 'insert')) AS question \
             FROM turn t WHERE t.tenant_id = $1 AND t.campaign_id = $2 AND t.id = $3 AND ($4::uuid IS NULL OR t.player_id = $4) {}",
            if lock == Lock::Yes { "FOR NO KEY UPDATE" } else { "" }
        );
        let row = sqlx::query(AssertSqlSafe(sql))
            .bind(tx.tenant())
            .bind(campaign)
            .bind(turn)
            .bind(caller.player)
            .fetch_optional(&mut *tx.connection().await)
            .await?
            .ok_or_else(|| Error::not_found("turn"))?;
        let mut answer = Self::of_row(&row)?;
        if !row.read::<bool>("chosen")? {
            let detail = if row.read::<Option<Uuid>>("awaits")?.is_some() {
                "Another attempt at this answer is running."
            } else {
                "This alternative is not chosen. Choose it first."
            };
            return Err(Error::new(Code::Conflict, detail));
        }
        answer.is_last(tx).await?;
        answer.mechanics = row.read::<Option<String>>("mechanics")?.and_then(|id| Uuid::try_parse(&id).ok());
        answer.is_unprompted = row.read("is_unprompted")?;
        answer.question = row.read::<Option<Uuid>>("question")?.map(MessageId);
        Ok(answer)
    }

    /// The answer in a row with [`COLUMNS`].
    ///
    /// # Errors
    /// `conflict` or `turn_in_progress` for a turn that is no finished answer of an NPC or owner.
    pub(super) fn of_row(row: &PgRow) -> Result<Self> {
        let refused = |detail: &str| Err(Error::new(Code::Conflict, detail.to_owned()));
        let kind = match row.read::<&str>("kind")? {
            "npc" => EntityKind::Npc,
            "owner" => EntityKind::Owner,
            _ => return refused("Only the answers of NPCs and owners can be tried again, go on, or be corrected."),
        };
        match row.read::<&str>("status")? {
            "succeeded" | "limit_reached" => {}
            "queued" | "running" => return Err(Error::new(Code::TurnInProgress, "The turn is still running.")),
            _ => return refused("The turn failed. Send the action again."),
        }
        if row.read::<Option<OffsetDateTime>>("undone_at")?.is_some()
            || row.read::<Option<String>>("revert_as")?.is_some()
        {
            return refused("The turn was undone.");
        }
        if row.read("is_unheard")? {
            return refused("This is a reaction that its player has not heard yet.");
        }
        let (entity, player): (Option<Uuid>, Option<Uuid>) = (row.read("entity_id")?, row.read("player_id")?);
        let (Some(entity), Some(player)) = (entity, player) else {
            return refused("Somebody who took part in this turn does not exist any more.");
        };
        Ok(Self {
            id: row.read("id")?,
            parent: row.read("parent_turn_id")?,
            kind,
            entity,
            player,
            action: row.read::<Option<String>>("action")?.unwrap_or_default(),
            mechanics: None,
            mode: if row.read::<&str>("reply_mode")? == ReplyMode::Xml.as_str() {
                ReplyMode::Xml
            } else {
                ReplyMode::Native
            },
            is_unprompted: false,
            question: None,
        })
    }

    /// Checks that nothing was said after the answer, and that nobody is answering.
    pub(super) async fn is_last(&self, tx: &TenantTx) -> Result<()> {
        let row = sqlx::query(
            "SELECT m.turn_id, EXISTS (SELECT FROM turn t WHERE t.tenant_id = $1 AND t.entity_id = $2 AND t.player_id = $3 \
                        AND t.status = 'running' AND t.kind <> 'planner') AS is_busy \
             FROM message m WHERE m.tenant_id = $1 AND m.entity_id = $2 AND m.player_id = $3 AND m.turn_id IS NOT NULL \
             ORDER BY m.seq DESC LIMIT 1",
        )
        .bind(tx.tenant())
        .bind(self.entity)
        .bind(self.player)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
        if row.as_ref().map_or(Ok(false), |row| row.read("is_busy"))? {
            return Err(Error::new(Code::TurnInProgress, ENTITY_BUSY));
        }
        let last = row.map(|row| row.read::<Uuid>("turn_id")).transpose()?;
        if last == Some(self.id) {
            return Ok(());
        }
        let detail = match last {
            Some(last) => format!(
                "Turn {last} came after this answer. Only the last answer of a conversation can be tried again, chosen or continued. Undo the later turns first."
            ),
            None => "The messages of this answer were deleted.".to_owned(),
        };
        Err(Error::new(Code::Conflict, detail))
    }

    /// Checks that nothing was said since the turn, of which no attempt is chosen.
    pub(super) async fn is_next(&self, tx: &TenantTx) -> Result<()> {
        let row = sqlx::query(
            "SELECT EXISTS (SELECT FROM message m JOIN turn t ON t.tenant_id = $1 AND t.id = m.turn_id \
               WHERE m.tenant_id = $1 AND m.entity_id = $2 AND m.player_id = $3 \
                 AND t.seq > (SELECT r.seq FROM turn r WHERE r.tenant_id = $1 AND r.id = $4)) AS is_late",
        )
        .bind(tx.tenant())
        .bind(self.entity)
        .bind(self.player)
        .bind(self.root())
        .fetch_one(&mut *tx.connection().await)
        .await?;
        if row.read("is_late")? {
            let detail = "Something was said after this answer. Undo the later turns first.";
            return Err(Error::new(Code::Conflict, detail));
        }
        Ok(())
    }

    pub(super) fn root(&self) -> Uuid {
        self.parent.unwrap_or(self.id)
    }

    pub(super) fn job(self, campaign: &str, way: Way, body_key: Option<IdempotencyKey>) -> Job {
        let (entity, player) = (self.entity.to_string(), self.player.to_string());
        let usual = Job::new(campaign, (self.kind, &entity), &player, self.action);
        Job { mechanics: self.mechanics, question: self.question, key: body_key, way, ..usual }
    }
}

/// Reverts the effects of a chosen turn, which the transaction has locked, so that another alternative can have its place.
///
/// # Errors
/// `undo_conflict` with each row that was changed since; `conflict` for effects that cannot be applied again.
pub(super) async fn set_aside(tx: &TenantTx, actor: &Actor, turn: Uuid) -> Result<()> {
    check_journal(tx, turn).await?;
    sqlx::query("UPDATE turn SET revert_conflicts = NULL, revert_conflicts_total = 0, revert_next = NULL WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(turn)
        .execute(&mut *tx.connection().await)
        .await?;
    tx.act_as(&actor.clone().in_turn(turn, Origin::Revert)).await?;
    let reverted = revert(tx, turn, Pace::whole(EFFECTS_MAX + 1), true).await?;
    let conflicts: Vec<Conflict> = reverted.conflicts.as_array().into_iter().flatten().map(Conflict::of).collect();
    edits::refuse_some(&conflicts, usize::try_from(reverted.total).unwrap_or_default(), "turn")?;
    refuse_locked(tx, turn).await?;
    sqlx::query(
        "UPDATE turn SET chosen = false, revert_next = NULL, revert_done = 0, revert_conflicts = NULL, revert_conflicts_total = 0 \
         WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tx.tenant())
    .bind(turn)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(())
}

/// Checks that no row that the turn changed is locked for AI tools. The transaction has changed these rows already, so nobody can lock one
/// meanwhile.
///
/// # Errors
/// `undo_conflict` with each locked row.
pub(super) async fn refuse_locked(tx: &TenantTx, turn: Uuid) -> Result<()> {
    let row = sqlx::query("SELECT turn_locked($1) AS locked").bind(turn).fetch_one(&mut *tx.connection().await).await?;
    let locked: Value = row.read("locked")?;
    let locked: Vec<Conflict> = locked.as_array().into_iter().flatten().map(Conflict::of).collect();
    edits::refuse_some(&locked, locked.len(), "turn")
}

/// Checks that the journal has all effects of a turn, that they can be applied again, and that they are not too many.
///
/// # Errors
/// `gone`, `conflict`.
pub(super) async fn check_journal(tx: &TenantTx, turn: Uuid) -> Result<()> {
    let row = sqlx::query(
        "SELECT count(*) FILTER (WHERE j.origin <> 'revert' AND j.seq > t.reverted_through) AS effects, count(j.seq) AS entries, \
                count(*) FILTER (WHERE j.table_name = 'encounter') AS fights, count(j.redacted_at) AS redacted, \
                coalesce(bool_or(h.pruned_at >= t.created_at), false) AS is_pruned \
         FROM turn t LEFT JOIN feed_head h ON h.tenant_id = $1 AND h.campaign_id = t.campaign_id \
         LEFT JOIN journal j ON j.tenant_id = $1 AND j.turn_id = t.id WHERE t.tenant_id = $1 AND t.id = $2",
    )
    .bind(tx.tenant())
    .bind(turn)
    .fetch_one(&mut *tx.connection().await)
    .await?;
    if row.read::<i64>("fights")? > 0 {
        return Err(Error::new(Code::Conflict, "The turn acted in a fight. Undo it and send the action again."));
    }
    if row.read::<i64>("redacted")? > 0 || row.read::<bool>("is_pruned")? || row.read::<i64>("entries")? == 0 {
        return Err(Error::new(Code::Gone, "Some of the turn's journal entries are gone, so it cannot be exchanged."));
    }
    if row.read::<i64>("effects")? > i64::from(EFFECTS_MAX) {
        let detail = format!("The turn changed more than {EFFECTS_MAX} rows. Undo it and send the action again.");
        return Err(Error::new(Code::Conflict, detail));
    }
    Ok(())
}
