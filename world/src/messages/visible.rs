//! The messages that a reader may see, as pages show them to people and as a game master's AI reads the table. The lines of the story so
//! far are among them.

use entity::{CampaignId, MessageId, Seq, session::Role, shapes::Speaker};
use serde_json::Value;
use sqlx::{postgres::PgRow, types::Json};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    asked::{Asked, answered_by},
    service::{EMOTE, OOC, RollFacts, rolls},
};
use crate::playing::Reader;
use base::{
    error::Result,
    stored::{self, Columns},
    variants::pattern,
};
use db::tenancy::TenantTx;
use edge::{caller::Caller, http::budget};

/// How far back [`Which::OfActor`] looks: a campaign may have millions of messages, and no index has those of an NPC in order.
const LOOKED_AT_MAX: i64 = 5_000;

/// Which messages to read.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// This many of the newest.
    Newest(i64),
    /// Those of these messages that may be seen.
    These(&'a [Uuid]),
    /// This many of the newest that an NPC, an owner or a character took part in, of the campaign's newest [`LOOKED_AT_MAX`].
    OfActor(Uuid, i64),
    /// This many of the newest lines of the story, before a message if one is given, of [`STORY_LOOKED_AT_MAX`] messages. What a player asked of
    /// the game in vain is no line.
    StoryBefore(Option<Seq>, i64),
    /// The same, of the lines that have these words, or whose speaker has.
    StoryWith(&'a str, Option<Seq>, i64),
    /// This many of the oldest lines of the story after a message, of [`STORY_LOOKED_AT_MAX`] messages.
    StorySince(Seq, i64),
    /// This many of the oldest lines of the whole story, after a message if one is given.
    StoryAfter(Option<Seq>, i64),
}

/// How many messages are looked at for lines of the story: few of a million may be for their reader, or have the words.
pub const STORY_LOOKED_AT_MAX: i64 = 20_000;

/// SQL for whether a message `m` is a line of the story. A planner's turn has the id of what the player asked.
const IS_LINE: &str = "NOT (m.turn_id = m.id AND EXISTS (SELECT FROM turn t WHERE t.tenant_id = m.tenant_id AND t.id = m.turn_id \
    AND t.kind = 'planner' AND coalesce(t.record #>> '{view,planned,outcome}', '') <> 'executed'))";

/// A choice of messages as SQL. `condition` names the parameters that it needs. The parameters from `$4` on are the ids and the number; then a place, an actor, or the ends of a pause; then a search pattern.
#[derive(Clone)]
struct Chosen<'a> {
    ids: Option<&'a [Uuid]>,
    count: i64,
    actor: Option<Uuid>,
    mark: Option<Seq>,
    pause: Option<(OffsetDateTime, OffsetDateTime)>,
    pattern: Option<String>,
    condition: String,
    /// Whether they are counted from the oldest.
    from_oldest: bool,
}

impl Chosen<'_> {
    /// The statement that reads these columns of the messages `m` that were chosen and that a reader may see.
    fn select(&self, columns: &str, reader: Option<Reader>) -> String {
        let order = if self.from_oldest { "ASC" } else { "DESC" };
        let sees = match reader {
            Some(reader) => reader.sees(|name| format!("m.{name}"), "$3"),
            None => "$3::uuid IS NULL".to_owned(),
        };
        format!(
            "SELECT {columns} FROM message m \
             WHERE m.tenant_id = $1 AND m.campaign_id = $2 AND NOT (m.author = 'system' AND m.turn_id IS NOT NULL) \
               AND m.content <> '' AND {sees} AND ($4::uuid[] IS NULL OR m.id = ANY($4)) {} ORDER BY m.seq {order} LIMIT $5",
            self.condition
        )
    }

    /// The rows of such a statement.
    async fn rows(
        self,
        tx: &TenantTx,
        campaign: CampaignId,
        reader: Option<Reader>,
        select: String,
    ) -> Result<Vec<PgRow>> {
        let mut query = sqlx::query(sqlx::AssertSqlSafe(select))
            .bind(tx.tenant())
            .bind(campaign.0)
            .bind(reader.and_then(|reader| reader.player))
            .bind(self.ids)
            .bind(self.count);
        if self.condition.contains("$6") {
            query = match (self.actor, self.pause) {
                (Some(actor), _) => query.bind(actor),
                (None, Some((from, until))) => query.bind(from).bind(until),
                (None, None) => query.bind(self.mark.map(|mark| mark.0)),
            };
        }
        if let Some(pattern) = self.pattern {
            query = query.bind(pattern);
        }
        Ok(query.fetch_all(&mut *tx.connection().await).await?)
    }
}

impl<'a> Which<'a> {
    fn chosen(self) -> Chosen<'a> {
        let all = Chosen {
            ids: None,
            count: i64::MAX,
            actor: None,
            mark: None,
            pause: None,
            pattern: None,
            condition: String::new(),
            from_oldest: false,
        };
        let story = |mark: Option<Seq>, count, condition| Chosen { count, mark, condition, ..all.clone() };
        // The plan of a statement without the parameter is another one, so the parameter is only there if there is a mark.
        let before = |mark: Option<Seq>| if mark.is_some() { "AND m.seq < $6" } else { "" };
        match self {
            Self::Newest(count) => Chosen { count, ..all },
            Self::These(ids) => Chosen { ids: Some(ids), ..all },
            Self::OfActor(actor, count) => {
                let condition = format!(
                    "AND m.id IN (SELECT id FROM (SELECT id, entity_id, player_id FROM message WHERE tenant_id = $1 AND campaign_id = $2 \
                       ORDER BY seq DESC LIMIT {LOOKED_AT_MAX}) AS l WHERE l.entity_id = $6 OR l.player_id = $6)"
                );
                Chosen { count, actor: Some(actor), condition, ..all }
            }
            Self::StoryBefore(mark, count) => {
                let before = before(mark);
                let condition = format!(
                    "AND {IS_LINE} {before} AND m.seq >= coalesce((SELECT m.seq FROM message m WHERE m.tenant_id = $1 AND m.campaign_id = $2 \
                       {before} ORDER BY m.seq DESC OFFSET {} LIMIT 1), 0)",
                    STORY_LOOKED_AT_MAX - 1
                );
                story(mark, count, condition)
            }
            Self::StoryWith(words, mark, count) => {
                let condition = format!(
                    "AND {IS_LINE} AND m.id = ANY (ARRAY (SELECT l.id FROM (SELECT m.id, m.content, m.speaker FROM message m \
                       WHERE m.tenant_id = $1 AND m.campaign_id = $2 {} ORDER BY m.seq DESC LIMIT {STORY_LOOKED_AT_MAX}) AS l \
                       WHERE l.content ~ $7 OR coalesce(l.speaker ->> 'alias', l.speaker ->> 'name') ~ $7))",
                    // Here it is there in any case, because another one follows it.
                    if mark.is_some() { before(mark) } else { "AND $6::bigint IS NULL" }
                );
                Chosen { pattern: Some(pattern(words)), ..story(mark, count, condition) }
            }
            Self::StorySince(mark, count) => {
                let condition = format!(
                    "AND {IS_LINE} AND m.seq > $6 AND m.seq <= coalesce((SELECT m.seq FROM message m WHERE m.tenant_id = $1 AND m.campaign_id = $2 \
                       AND m.seq > $6 ORDER BY m.seq OFFSET {} LIMIT 1), {})",
                    STORY_LOOKED_AT_MAX - 1,
                    i64::MAX
                );
                Chosen { from_oldest: true, ..story(Some(mark), count, condition) }
            }
            Self::StoryAfter(mark, count) => {
                let after = if mark.is_some() { "AND m.seq > $6" } else { "" };
                Chosen { from_oldest: true, ..story(mark, count, format!("AND {IS_LINE} {after}")) }
            }
        }
    }
}

/// The last message that is looked at for lines of the story before or after `mark`, if there are more messages.
///
/// # Errors
/// Those of the database.
pub async fn looked_to(tx: &TenantTx, campaign: CampaignId, mark: Option<Seq>, is_after: bool) -> Result<Option<Seq>> {
    let (sign, order) = if is_after { (">", "ASC") } else { ("<", "DESC") };
    let beyond = if mark.is_some() { format!("AND seq {sign} $4") } else { "AND $4::bigint IS NULL".to_owned() };
    let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
        "SELECT seq FROM message WHERE tenant_id = $1 AND campaign_id = $2 {beyond} ORDER BY seq {order} OFFSET $3 LIMIT 2"
    )))
    .bind(tx.tenant())
    .bind(campaign.0)
    .bind(STORY_LOOKED_AT_MAX - 1)
    .bind(mark.map(|mark| mark.0))
    .fetch_all(&mut *tx.connection().await)
    .await?;
    match rows.as_slice() {
        [last, _] => last.read_all().map(|(seq,)| Some(Seq(seq))),
        _ => Ok(None),
    }
}

/// The lines that were said while a reader was away.
#[derive(Clone, Copy, Debug)]
pub struct Missed {
    pub first: MessageId,
    /// They are after this place, at which there may be no message.
    pub after: Seq,
    /// At most [`MISSED_MAX`].
    pub count: usize,
}

/// How many lines are counted that were said while a reader was away.
pub const MISSED_MAX: usize = 100;

/// The lines in a pause that are not the reader's own words, of the newest [`STORY_LOOKED_AT_MAX`] messages. None if there are none. One
/// statement.
///
/// # Errors
/// Those of the database.
pub async fn missed(
    tx: &TenantTx,
    campaign: CampaignId,
    reader: Reader,
    pause: (OffsetDateTime, OffsetDateTime),
) -> Result<Option<Missed>> {
    let mut chosen = Which::StoryAfter(None, i64::try_from(MISSED_MAX).unwrap_or(i64::MAX)).chosen();
    // From the newest on, the first that was there before the pause. The times of messages rise almost always.
    chosen.condition.push_str(&format!(
        " AND m.created_at > $6 AND m.created_at < $7 AND NOT (m.author = 'player' AND m.player_id IS NOT DISTINCT FROM $3) \
          AND m.seq > coalesce((SELECT l.seq FROM (SELECT o.seq, o.created_at, row_number() OVER (ORDER BY o.seq DESC) AS nth FROM message o \
              WHERE o.tenant_id = $1 AND o.campaign_id = $2 ORDER BY o.seq DESC LIMIT {STORY_LOOKED_AT_MAX}) l \
            WHERE l.created_at <= $6 OR l.nth = {STORY_LOOKED_AT_MAX} ORDER BY l.seq DESC LIMIT 1), 0)"
    ));
    chosen.pause = Some(pause);
    let sql = chosen.select("id, seq", Some(reader));
    let rows = chosen.rows(tx, campaign, Some(reader), sql).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let (id, seq): (Uuid, i64) = first.read_all()?;
    Ok(Some(Missed { first: MessageId(id), after: Seq(seq.saturating_sub(1)), count: rows.len() }))
}

/// A message as it is shown to people.
#[derive(Clone, Debug)]
pub struct VisibleMessage {
    pub id: Uuid,
    /// Its place in the order of writing.
    pub seq: Seq,
    pub speaker: String,
    pub content: String,
    /// [`OOC`], [`EMOTE`], or what else its writer says about it.
    pub flavor: String,
    /// `player`, `ai`, `gm` or `system`.
    pub author: String,
    /// Whether it is told by the game, such as what the rules made of something: nobody says it.
    pub is_of_the_game: bool,
    pub is_whisper: bool,
    /// The names of those for whom a whisper is.
    pub heard_by: Vec<String>,
    /// Whether it is a roll, or something that the game tells, for game masters alone.
    pub is_blind: bool,
    pub created_at: OffsetDateTime,
    pub turn_id: Option<Uuid>,
    /// The first attempt at what its turn answers; the turn itself if it is the only one.
    pub first_attempt: Option<Uuid>,
    /// When the first attempt had ended, if this is a further one.
    pub first_attempt_at: Option<OffsetDateTime>,
    /// The NPC or owner and the character whose conversation it is part of.
    pub talk: Option<(Uuid, Uuid)>,
    pub rolls: Vec<VisibleRoll>,
    /// The roll that it asks players for.
    pub asks: Option<Asked>,
    /// The message that asked for this roll.
    pub answers: Option<MessageId>,
}

impl VisibleMessage {
    /// Whether it is said out of character.
    #[must_use]
    pub fn is_ooc(&self) -> bool {
        self.flavor == OOC && self.rolls.is_empty() && !self.is_of_the_game
    }

    /// Whether it is a deed that is told without the name of who does it.
    #[must_use]
    pub fn is_emote(&self) -> bool {
        self.flavor == EMOTE && self.rolls.is_empty() && !self.is_of_the_game
    }

    /// The speaker's name, or a default if the frontend gave none.
    #[must_use]
    pub fn name(&self) -> &str {
        match (self.speaker.as_str(), self.author.as_str()) {
            ("", "player") => "A player",
            ("", "system") => "The table",
            ("", _) => "Game Master",
            (name, _) => name,
        }
    }
}

/// A roll as it is shown to people.
#[derive(Clone, Debug)]
pub struct VisibleRoll {
    pub formula: String,
    pub flavor: String,
    pub total: String,
    /// What came of it, if a difficulty was told.
    pub outcome: Option<String>,
    /// The value of each die, and whether it counts.
    pub dice: Vec<(String, bool)>,
}

impl VisibleRoll {
    fn of(facts: RollFacts) -> Self {
        let die = |die: &Value| {
            let value = die.get("value").unwrap_or(die);
            (value.to_string(), die.get("kept").is_none_or(|kept| kept == &Value::Bool(true)))
        };
        let dice = facts.dice.as_array().map(|dice| dice.iter().map(die).collect()).unwrap_or_default();
        Self {
            formula: facts.formula,
            flavor: facts.flavor,
            total: facts.total.to_string(),
            outcome: facts.outcome,
            dice,
        }
    }
}

/// For whom [`visible_messages`] reads for a caller: anybody may see what the caller's player may, and game masters everything.
#[must_use]
pub fn reader_of(caller: &Caller) -> Option<Reader> {
    (!caller.sees_secrets()).then_some(Reader { role: Role::Player, player: caller.player })
}

/// SQL for the names of those for whom a whisper `m` is.
const HEARD_BY: &str = "CASE WHEN m.whisper_to = '[]' THEN '{}'::text[] ELSE ARRAY (SELECT coalesce(c.name, 'the game master') \
    FROM jsonb_array_elements_text(m.whisper_to) WITH ORDINALITY AS w (id, n) LEFT JOIN character c ON c.tenant_id = m.tenant_id \
      AND c.id = CASE WHEN w.id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN w.id::uuid END \
    WHERE c.id IS NOT NULL OR w.id = 'gm' ORDER BY w.n) END";

/// The messages that a reader may see, oldest first, without those that were only for a model. Without a `reader`, those that anybody may
/// see, as game masters read them. Takes one statement, or none if there are no ids.
///
/// # Errors
/// Those of the database.
pub async fn visible_messages(
    tx: &TenantTx,
    campaign: Uuid,
    reader: Option<Reader>,
    which: Which<'_>,
) -> Result<Vec<VisibleMessage>> {
    found(tx, CampaignId(campaign), reader, which).await.map(|found| found.messages)
}

/// Messages, oldest first.
#[derive(Default)]
pub struct Found {
    pub messages: Vec<VisibleMessage>,
    /// Whether there were too many bytes, or one that cannot be read, so that these are fewer than were asked for.
    pub is_cut: bool,
}

/// The same as [`visible_messages`], and whether some were left out.
///
/// # Errors
/// Those of the database.
pub async fn found(tx: &TenantTx, campaign: CampaignId, reader: Option<Reader>, which: Which<'_>) -> Result<Found> {
    if let Which::These([]) = which {
        return Ok(Found::default());
    }
    let chosen = which.chosen();
    let from_oldest = chosen.from_oldest;
    let columns = format!(
        "id, speaker, content, flavor, roll, author, turn_id, \
         (SELECT coalesce(t.parent_turn_id, t.id) FROM turn t WHERE t.tenant_id = m.tenant_id AND t.id = m.turn_id) AS first_attempt, \
         (SELECT f.finished_at FROM turn t JOIN turn f ON f.tenant_id = t.tenant_id AND f.id = t.parent_turn_id \
            WHERE t.tenant_id = m.tenant_id AND t.id = m.turn_id) AS first_attempt_at, \
         CASE WHEN turn_id IS NOT NULL AND entity_id IS NOT NULL AND player_id IS NOT NULL THEN ARRAY[entity_id, player_id] END AS talk, whisper_to <> '[]' AS is_whisper, \
         author = 'system' OR type = 'system' OR type = 'roll' AND turn_id IS NOT NULL AS is_of_the_game, {HEARD_BY} AS heard_by, \
         blind OR author = 'system' AND whisper_to = '[\"gm\"]' AS blind, created_at, seq"
    );
    let sql = budget::within(&chosen.select(&columns, reader), ["content", "roll"]);
    let rows = chosen.rows(tx, campaign, reader, sql).await?;
    let mut messages = stored::each(&rows, seen);
    if !from_oldest {
        messages.reverse();
    }
    Ok(Found { is_cut: budget::is_cut(&rows) || messages.len() < rows.len(), messages })
}

/// The columns of [`visible_messages`], in its order.
type SeenRow = (
    Uuid,
    Json<Speaker>,
    String,
    Option<String>,
    Option<Value>,
    String,
    Option<Uuid>,
    Option<Uuid>,
    Option<OffsetDateTime>,
    Option<Vec<Uuid>>,
    bool,
    bool,
    Vec<String>,
    bool,
    OffsetDateTime,
    i64,
);

fn seen(row: &PgRow) -> Result<VisibleMessage> {
    let (
        id,
        speaker,
        content,
        flavor,
        roll,
        author,
        turn_id,
        first_attempt,
        first_attempt_at,
        talk,
        is_whisper,
        is_of_the_game,
        heard_by,
        is_blind,
        created_at,
        seq,
    ) = row.read_all::<SeenRow>()?;
    let Json(Speaker { name, alias }) = speaker;
    let facts = roll.as_ref().map(|roll: &Value| rolls(roll, flavor.as_deref())).unwrap_or_default();
    Ok(VisibleMessage {
        id,
        seq: Seq(seq),
        speaker: alias.unwrap_or(name),
        content,
        flavor: flavor.unwrap_or_default(),
        author,
        is_of_the_game,
        is_whisper: is_whisper && !(is_of_the_game && is_blind),
        heard_by,
        is_blind,
        created_at,
        turn_id,
        first_attempt,
        first_attempt_at,
        talk: talk.and_then(|talk| <[Uuid; 2]>::try_from(talk).ok()).map(Into::into),
        rolls: facts.into_iter().map(VisibleRoll::of).collect(),
        asks: roll.as_ref().and_then(Asked::of_roll),
        answers: roll.as_ref().and_then(answered_by),
    })
}
