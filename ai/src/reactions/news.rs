//! Which replies a stream has yet to send. At first these are all that wait, a hundred at a time; from then on those of which the
//! journal has news: a reply was made, or a character came to another location. A change costs a stream what the change is about,
//! however many replies wait.

use std::collections::{HashSet, VecDeque};

use uuid::Uuid;

use super::replies::{self, Of, ReplyView};
use crate::state::Ai;
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::caller::Caller;

/// The most entries of the journal that are read at once.
const ROWS_MAX: usize = 100;

/// Replies to read, after the one with this id.
struct Unread {
    of: Of,
    after: Uuid,
}

impl Unread {
    fn all(of: Of) -> Self {
        Self { of, after: Uuid::nil() }
    }
}

/// The state of one stream of replies.
pub struct News {
    campaign: Uuid,
    /// The player whose replies these are; `None` for all players.
    player: Option<Uuid>,
    /// Up to where the journal was read; `None` before the first time.
    seq: Option<i64>,
    unread: VecDeque<Unread>,
    sent: HashSet<Uuid>,
}

impl News {
    /// For a stream of what a player hears, or of what every player hears.
    pub fn of(campaign: Uuid, player: Option<Uuid>) -> Self {
        Self { campaign, player, seq: None, unread: VecDeque::new(), sent: HashSet::new() }
    }

    /// Replies that can be heard now and were not sent yet; none if there is no news. Those that their player can no longer hear
    /// are dropped if this is the player's stream.
    ///
    /// # Errors
    /// Those of the database; nothing is lost then. `unauthenticated` if the credential is no longer valid.
    pub async fn next(&mut self, app: &Ai, caller: &Caller) -> Result<Vec<ReplyView>> {
        loop {
            let Some(unread) = self.unread.front() else {
                if self.look(app, caller).await? && self.unread.is_empty() {
                    return Ok(Vec::new());
                }
                continue;
            };
            let page = replies::waiting(app, caller, self.campaign, (&unread.of, unread.after)).await?;
            // After the replies were read: a credential that is valid now was valid when they were committed.
            is_live(app, caller).await?;
            if self.player.is_some() {
                for waiting in &page.unheard {
                    replies::drop_it(app, caller, waiting).await?;
                }
            }
            match (page.next, self.unread.front_mut()) {
                (Some(next), Some(unread)) => unread.after = next,
                _ => drop(self.unread.pop_front()),
            }
            let new: Vec<_> = page.heard.into_iter().filter(|reply| self.sent.insert(reply.id)).collect();
            if !new.is_empty() {
                return Ok(new);
            }
        }
    }

    /// Reads on in the journal, and notes which replies are to be read. Returns whether it came to the end.
    async fn look(&mut self, app: &Ai, caller: &Caller) -> Result<bool> {
        let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
        // The first time there is no `$3`, and only the journal's end is read.
        let rows = sqlx::query(
            "SELECT h.seq AS journal_end, n.* FROM feed_head h LEFT JOIN LATERAL ( \
                 SELECT seq, row_id, table_name = 'reply' AS is_reply FROM journal \
                 WHERE tenant_id = $1 AND campaign_id = $2 AND seq > $3 AND seq <= h.seq \
                   AND (table_name = 'reply' AND op <> 'delete' AND after ->> 'state' = 'pending' \
                       AND ($4::uuid IS NULL OR after ->> 'player_id' = $4::text) \
                     OR table_name = 'character' AND op = 'update' AND ($4 IS NULL OR row_id = $4) \
                       AND before ->> 'location' IS DISTINCT FROM after ->> 'location') \
                 ORDER BY seq LIMIT $5) n ON true \
             WHERE h.tenant_id = $1 AND h.campaign_id = $2 ORDER BY n.seq",
        )
        .bind(tx.tenant())
        .bind(self.campaign)
        .bind(self.seq)
        .bind(self.player)
        .bind(i64::try_from(ROWS_MAX).unwrap_or(100))
        .fetch_all(&mut *tx.connection().await)
        .await?;
        drop(tx);
        is_live(app, caller).await?;
        let end = rows.first().map_or(Ok(0), |row| row.read("journal_end"))?;
        if self.seq.replace(end).is_none() {
            self.unread.push_back(Unread::all(self.player.map_or(Of::Campaign, Of::Player)));
            return Ok(true);
        }
        let (mut made, mut moved) = (Vec::new(), Vec::new());
        for row in &rows {
            match row.read::<Option<bool>>("is_reply")? {
                Some(true) => made.push(row.read("row_id")?),
                Some(false) => moved.push(row.read("row_id")?),
                None => {}
            }
        }
        let is_end = rows.len() < ROWS_MAX;
        if let Some(last) = rows.last().filter(|_| !is_end) {
            self.seq = Some(last.read("seq")?);
        }
        moved.sort_unstable();
        moved.dedup();
        self.unread.extend(moved.into_iter().map(|player| Unread::all(Of::Player(player))));
        if !made.is_empty() {
            self.unread.push_back(Unread::all(Of::These(made)));
        }
        Ok(is_end)
    }
}

async fn is_live(app: &Ai, caller: &Caller) -> Result<()> {
    match app.keys.is_live(caller).await? {
        true => Ok(()),
        false => Err(Error::new(Code::Unauthenticated, "The credential was revoked.")),
    }
}
