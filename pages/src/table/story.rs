//! The story so far: everything that its reader may read, by day and session, searchable, and as a file to take away.

use actix_web::{HttpResponse, web::Bytes};
use askama::Template;
use futures_util::stream;
use time::{Date, Duration, OffsetDateTime};

use super::{
    message::{Foot, MessageView, in_order},
    when,
};
use crate::marks::Marked;
use base::{
    error::{Error, Result},
    fold::fold,
};
use db::tenancy::TenantTx;
use edge::http::page::attachment;
use entity::{CampaignId, Seq};
use serde::Deserialize;
use world::{
    messages::visible::{Found, VisibleMessage, Which, found, looked_to},
    playing::Reader,
};

/// How many lines a page shows.
const LINES_SHOWN: i64 = 100;
/// How many lines are read at a time for a file.
const LINES_READ: i64 = 200;
/// The most characters of a search.
const WORDS_CHARS_MAX: usize = 200;
/// A session begins after so long without a line.
const BREAK: Duration = Duration::hours(4);

/// Which lines are asked for.
#[derive(Deserialize)]
pub(crate) struct Asked {
    /// Words that they have.
    #[serde(default)]
    pub(crate) q: String,
    /// A place in the order of writing: only lines before it. Anything else means the newest.
    #[serde(default)]
    pub(crate) before: String,
    /// A place in the order of writing: the first lines after it, if neither words nor `before` are given.
    #[serde(default)]
    pub(crate) after: String,
}

/// Lines of the story as a page shows them.
#[derive(Template)]
#[template(path = "table/story.html")]
pub(crate) struct Story {
    /// The path of the story.
    path: String,
    q: String,
    lines: Vec<Line>,
    /// The query for the lines before these, and for those after them.
    older: Option<String>,
    newer: Option<String>,
    /// Whether these are not the newest.
    is_past: bool,
}

struct Line {
    /// Of the first line of a day.
    day: Option<String>,
    /// Whether a session begins with it.
    begins: bool,
    time: String,
    at: String,
    html: String,
}

impl Story {
    /// Reads the lines that are asked for. At most three statements.
    ///
    /// # Errors
    /// `validation_failed` for a search that is too long.
    pub(crate) async fn read(
        tx: &TenantTx,
        campaign: CampaignId,
        reader: Option<Reader>,
        path: String,
        Asked { q, before, after }: Asked,
    ) -> Result<Self> {
        let place = |text: &str| text.parse().ok();
        let (before, after): (Option<Seq>, Option<Seq>) = (place(&before), place(&after));
        let words = if fold(&q).trim().is_empty() { "" } else { q.trim() };
        if words.chars().count() > WORDS_CHARS_MAX {
            let message = format!("Search for at most {WORDS_CHARS_MAX} characters.");
            return Err(Error::invalid("/q", "invalid_value", message));
        }
        let after = after.filter(|_| before.is_none() && words.is_empty());
        // One line more tells whether there are others, and whether a session begins with the first.
        let which = match (words, after) {
            (_, Some(after)) => Which::StorySince(after, LINES_SHOWN + 1),
            ("", None) => Which::StoryBefore(before, LINES_SHOWN + 1),
            (words, None) => Which::StoryWith(words, before, LINES_SHOWN + 1),
        };
        let Found { mut messages, is_cut } = found(tx, campaign, reader, which).await?;
        let is_full = messages.len() > LINES_SHOWN as usize;
        let former = match after {
            Some(after) => {
                messages.truncate(LINES_SHOWN as usize);
                let up_to = Seq(after.0.saturating_add(1));
                found(tx, campaign, reader, Which::StoryBefore(Some(up_to), 1)).await?.messages.pop()
            }
            None if is_full => Some(messages.remove(0)),
            None => None,
        };
        let [first, last] = [messages.first(), messages.last()].map(|message| message.map(|line| line.seq));
        let edge = if after.is_some() { last } else { first };
        let next = match edge {
            Some(next) if is_full || is_cut => Some(next),
            _ => looked_to(tx, campaign, after.or(before), after.is_some()).await?,
        };
        let query = |name: &str, place: Seq| {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            if !words.is_empty() {
                query.append_pair("q", words);
            }
            query.append_pair(name, &place.to_string()).finish()
        };
        let (older, newer) = match after {
            Some(after) => (former.as_ref().map(|_| first.unwrap_or(after)), next),
            None => (next, None),
        };
        Ok(Self {
            lines: lines(&messages, former.as_ref(), words.is_empty())?,
            older: older.map(|older| query("before", older)),
            newer: newer.map(|newer| query("after", newer)),
            is_past: before.is_some() || after.is_some(),
            q: words.to_owned(),
            path,
        })
    }
}

/// The lines of a page. `former` is the line before them; without it nobody knows whether a session begins with the first one. Of lines that
/// were searched for, nobody knows what was said between them (`is_gapless`).
fn lines(messages: &[VisibleMessage], former: Option<&VisibleMessage>, is_gapless: bool) -> Result<Vec<Line>> {
    let mut calendar = Calendar::default();
    if let Some(former) = former {
        calendar.turn(former.created_at);
    }
    let mut last = None;
    let foot = || Foot { table: "", fields: "", attempts: None, asked: None, may_mend: false };
    let line = |message: &VisibleMessage| {
        let Turned { session, .. } = calendar.turn(message.created_at);
        let day = message.created_at.date();
        Ok(Line {
            day: (last.replace(day) != Some(day)).then(|| when::day(day)),
            begins: is_gapless && session.is_some_and(|session| session > 1),
            time: when::time(message.created_at),
            at: when::for_programs(message.created_at),
            html: MessageView { message, foot: foot(), is_changed: false, has_time: false }
                .render()
                .map_err(Error::internal)?,
        })
    };
    in_order(messages).into_iter().map(line).collect()
}

/// Counts days and sessions while lines go by.
#[derive(Default)]
struct Calendar {
    last: Option<OffsetDateTime>,
    sessions: usize,
}

/// What begins with a line.
struct Turned {
    day: Option<Date>,
    /// The number of the session, from 1.
    session: Option<usize>,
}

impl Calendar {
    fn turn(&mut self, at: OffsetDateTime) -> Turned {
        let last = self.last;
        // A clock may be set back.
        self.last = last.max(Some(at));
        let begins = last.is_none_or(|last| at - last >= BREAK);
        self.sessions += usize::from(begins);
        Turned {
            day: Some(at.date()).filter(|day| last.is_none_or(|last| last.date() != *day)),
            session: begins.then_some(self.sessions),
        }
    }
}

/// The form of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Markdown,
    Html,
}

/// Where the lines of a file come from.
pub(crate) trait Source: 'static {
    /// The oldest lines after a message, or the first ones.
    ///
    /// # Errors
    /// Database errors; `unauthenticated`, `not_found` if its reader may no longer read them.
    async fn lines(&self, after: Option<Seq>, count: i64) -> Result<Vec<VisibleMessage>>;
}

/// A file with all lines, as they are read.
pub(crate) fn file<T: Source>(format: Format, (slug, campaign): (&str, &str), source: T) -> HttpResponse {
    let media = match format {
        Format::Markdown => "text/markdown; charset=utf-8",
        Format::Html => "text/html; charset=utf-8",
    };
    let ending = if format == Format::Markdown { "md" } else { "html" };
    let written = Written { format, source, calendar: Calendar::default(), after: None };
    let head = written.head(campaign);
    let pieces = stream::unfold(Some((written, head)), async |writing| {
        let (mut written, mut text) = writing?;
        match written.more(&mut text).await {
            Ok(true) => Some((Ok(Bytes::from(text)), Some((written, String::new())))),
            Ok(false) => Some((Ok(Bytes::from(text)), None)),
            Err(error) => Some((Err(error), None)),
        }
    });
    attachment(media, &format!("{slug}.story.{ending}")).streaming(Box::pin(pieces))
}

/// A file that is being written.
struct Written<T> {
    format: Format,
    source: T,
    calendar: Calendar,
    after: Option<Seq>,
}

impl<T: Source> Written<T> {
    fn head(&self, campaign: &str) -> String {
        match self.format {
            Format::Markdown => format!("# {}\n", Marked::plain(campaign)),
            Format::Html => Head { campaign }.render().unwrap_or_default(),
        }
    }

    /// Writes the next lines. Returns whether there were any.
    async fn more(&mut self, out: &mut String) -> Result<bool> {
        let found = self.source.lines(self.after, LINES_READ).await?;
        for message in in_order(&found) {
            let Turned { day, session } = self.calendar.turn(message.created_at);
            if day.is_some() || session.is_some() {
                self.heading(out, &when::day(message.created_at.date()));
            }
            match self.format {
                Format::Markdown => markdown(out, message),
                Format::Html => {
                    let time = when::time(message.created_at);
                    FileLine { message, time }.render_into(out).map_err(Error::internal)?;
                }
            }
        }
        self.after = found.last().map(|message| message.seq).or(self.after);
        if found.is_empty() && self.format == Format::Html {
            out.push_str("</main>\n</body>\n</html>\n");
        }
        Ok(!found.is_empty())
    }

    fn heading(&self, out: &mut String, day: &str) {
        let heading = format!("{day}, session {}", self.calendar.sessions);
        out.push_str(&match self.format {
            Format::Markdown => format!("\n## {heading}\n"),
            Format::Html => format!("<h2>{heading}</h2>\n"),
        });
    }
}

/// The beginning of a file as HTML.
#[derive(Template)]
#[template(path = "table/story-head.html")]
struct Head<'a> {
    campaign: &'a str,
}

/// A line of a file as HTML.
#[derive(Template)]
#[template(path = "table/story-line.html")]
struct FileLine<'a> {
    message: &'a VisibleMessage,
    time: String,
}

/// A line of a file as Markdown.
fn markdown(out: &mut String, message: &VisibleMessage) {
    let name = Marked::plain(message.name());
    let to = match message.heard_by.as_slice() {
        [] if message.is_blind => " for the game master alone".to_owned(),
        // Whom it was for does not exist any more.
        [] if message.is_whisper => " in a whisper".to_owned(),
        [] => String::new(),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("**{}**", Marked::plain(name))).collect();
            format!(" to {}", names.join(", "))
        }
    };
    let ooc = if message.is_ooc() { ", out of character" } else { "" };
    let lead = format!("**{name}**{to} ({}{ooc})", when::time(message.created_at));
    for roll in &message.rolls {
        out.push('\n');
        let flavor = Marked::plain(&roll.flavor);
        let separator = if flavor.is_empty() { "" } else { ", " };
        let outcome = roll.outcome.as_ref().map(|outcome| format!(", {}", Marked::plain(outcome))).unwrap_or_default();
        let formula = Marked::plain(&roll.formula);
        out.push_str(&format!(
            "{lead} rolls {flavor}{separator}{formula}: **{}**{outcome}\n",
            Marked::plain(&roll.total)
        ));
    }
    if message.rolls.is_empty() {
        out.push('\n');
        let text = Marked::of(&message.content).markdown();
        out.push_str(&match () {
            () if message.is_of_the_game => {
                format!("({}{to}) {}\n", when::time(message.created_at), Marked::plain(&message.content))
            }
            () if message.is_emote() => format!("{lead} {text}\n"),
            () => format!("{lead}: {text}\n"),
        });
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::{Calendar, Seq, Turned, VisibleMessage, lines};

    #[test]
    fn a_session_begins_where_no_line_is_missing() {
        let said = |created_at| VisibleMessage {
            id: uuid::Uuid::nil(),
            seq: Seq(1),
            speaker: String::new(),
            content: "Hm.".to_owned(),
            flavor: String::new(),
            author: "gm".to_owned(),
            is_of_the_game: false,
            is_whisper: false,
            heard_by: Vec::new(),
            is_blind: false,
            created_at,
            turn_id: None,
            first_attempt: None,
            first_attempt_at: None,
            talk: None,
            rolls: Vec::new(),
            asks: None,
            answers: None,
        };
        let [early, late] = [datetime!(2026-11-28 18:00 UTC), datetime!(2026-11-28 23:00 UTC)].map(said);
        let begins = |messages: &[VisibleMessage], former, is_gapless| {
            lines(messages, former, is_gapless).unwrap().iter().map(|line| line.begins).collect::<Vec<_>>()
        };
        let both = [early.clone(), late.clone()];
        assert_eq!(begins(&both, None, true), [false, true]);
        assert_eq!(begins(&[late], Some(&early), true), [true]);
        assert_eq!(
            begins(&both, None, false),
            [false, false],
            "what was said between two lines that have the words is unknown"
        );
    }

    #[test]
    fn a_session_begins_after_four_hours_and_a_day_at_midnight() {
        let mut calendar = Calendar::default();
        let mut turn = |at| {
            let Turned { day, session } = calendar.turn(at);
            (day.is_some(), session)
        };
        assert_eq!(turn(datetime!(2026-11-28 20:00 UTC)), (true, Some(1)));
        assert_eq!(turn(datetime!(2026-11-28 23:59 UTC)), (false, None));
        assert_eq!(turn(datetime!(2026-11-29 00:30 UTC)), (true, None));
        assert_eq!(turn(datetime!(2026-11-29 04:29 UTC)), (false, None));
        assert_eq!(turn(datetime!(2026-11-29 08:29 UTC)), (false, Some(2)));
        assert_eq!(turn(datetime!(2026-11-29 04:00 UTC)), (false, None), "a clock that was set back");
        assert_eq!(turn(datetime!(2026-11-29 08:30 UTC)), (false, None), "and forward again");
    }
}
